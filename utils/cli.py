"""Common parts of every program: the one kind of user error, its exit status, and kinds of values.

Exit status: 0 done; 2 bad input or usage; 3 more was lost than allowed; 130 interrupted.
"""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import argparse


COMMON = "common option"  # mark of those that many programs have, which --help shows first


class UserError(Exception):
    """Error that the user can fix, in one line: file, line or id, fault, remedy."""

    exit_status = 2


class LossError(UserError):
    """More items were lost than the caller allowed."""

    exit_status = 3


class BadValue(UserError):
    """Error for an argument's text that does not make a value."""


def boolean(text: str) -> bool:
    """Parse `true` or `false`, the only spellings (`type=bool` would make "false" true)."""
    if text in ("true", "false"):
        return text == "true"
    raise BadValue(f"expected true or false, not {text!r}")


def natural(text: str, least: int = 0) -> int:
    """Parse a whole number from 0 on, such as how many utterances may be lost."""
    if text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least:
        return int(text)
    raise BadValue(f"expected a whole number from {least}, not {text!r}")


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    return natural(text, 1)


def make_parser(description: str, epilog: str | None = None) -> "argparse.ArgumentParser":
    """Parser that shows defaults and refuses abbreviated options, for a program whose start-up
    counts, or that is not a typed function yet."""
    import argparse

    class Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
        def _get_help_string(self, action: argparse.Action) -> str | None:
            if any(action.default is nothing for nothing in (None, False, argparse.SUPPRESS)):
                return action.help  # not of 0
            return super()._get_help_string(action)

    return argparse.ArgumentParser(
        description=description, epilog=epilog, formatter_class=Formatter, allow_abbrev=False
    )


def _file_error(error: OSError) -> str:
    """The system's message for a file: not there, not allowed, no space left."""
    name = "" if error.filename is None else f"{error.filename}: "
    return f"{name}{error.strerror or error}; look at the path, its permissions and the free space"


def run_program(main: Callable[[Sequence[str] | None], int]) -> NoReturn:
    """Run `main`, print a user error as one line, and exit.

    Libraries report through `logging`; here warnings and notes go to standard error.
    """
    name = Path(sys.argv[0]).name
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format=f"{name}: %(levelname)s: %(message)s"
    )
    try:
        status = main(None)
        sys.stdout.flush()
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        status = error.exit_status
    except BrokenPipeError:  # the reader of our output has ended, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:  # a file cannot be made or written; reading has its own checks
        print(f"{name}: {_file_error(error)}", file=sys.stderr)
        status = UserError.exit_status
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)
