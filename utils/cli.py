"""Parts that every program shares: errors of users, arguments and their wording, progress.

Exit status: 0 done; 2 bad input or usage; 3 more was lost than allowed; 130 interrupted; 141 nobody
reads the output, so that not all may be done.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

# ---- Common parts of every program: the one kind of user error, its exit status, and kinds of
# values.

COMMON = "common option"  # mark of those that many programs have, which --help shows first


class UserError(Exception):
    """Error that the user can fix, in one line: file, line or id, fault, remedy."""

    exit_status = 2


class LossError(UserError):
    """More items were lost than the caller allowed."""

    exit_status = 3


class refusing:
    """Context that turns errors of some kinds into a UserError. In its message {} stands for the
    text of the error; for the system's errors, without number and file."""

    def __init__(self, message: str, *kinds: type[Exception]) -> None:
        self._message, self._kinds = message, kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, self._kinds):
            said = getattr(error, "strerror", None) or str(error)
            raise UserError(self._message.replace("{}", said)) from error


class BadValue(UserError):
    """Error for an argument whose text is not a valid value."""


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


def user_path(text: str) -> Path:
    """Parse a path; a leading ~ or ~/ that no shell has expanded is the home directory."""
    if text != "~" and not text.startswith("~/"):
        return Path(text)
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise BadValue(f"{text}: you have no home (HOME); write the whole path") from error


def run_program(main: Callable[[Sequence[str] | None], int]) -> NoReturn:
    """Run `main`, print a user error as one line, and exit.

    Libraries report through `logging`; here warnings and notes go to standard error.
    """
    name = Path(sys.argv[0]).name
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format=f"{name}: %(levelname)s: %(message)s"
    )
    for talkative in ("speechbrain", "matplotlib"):  # of how they were set up
        logging.getLogger(talkative).setLevel(logging.WARNING)
    try:
        status = main(None)
        sys.stdout.flush()
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        status = error.exit_status
    except BrokenPipeError:  # the reader of our output has ended, for example `| head`
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        status = 128 + signal.SIGPIPE  # what was to be done may not be done
    except OSError as error:  # a file cannot be made or written; reading has its own checks
        file, why = f"{error.filename}: " * (error.filename is not None), error.strerror or error
        advice = "look at the path, its permissions and the free space"
        print(f"{name}: {file}{why}; {advice}", file=sys.stderr)
        status = UserError.exit_status
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)


# ---- Progress of a long stage: a bar on a terminal, a plain line now and then in a log.
#
# Programs make a wrapper with `progress(NAME)`, and the library wraps its iterables with it;
# libraries themselves report nothing. Output goes to standard error.

Item = TypeVar("Item")
APART = 10.0  # seconds between two lines, at least
SHARE = 0.1  # of the work between two lines, at least, unless they are LONG seconds apart
LONG = 60.0


def progress(
    name: str, *, unit: str = "utterances", beside: Callable[[], str] = str
) -> Callable[[Iterable[Item]], Iterator[Item]]:
    """Make a wrapper for an iterable: it yields the items unchanged and shows how many are done.

    On a terminal: a tqdm bar. Elsewhere lines such as `anonymise: 120 of 400 utterances, 0:35
    left`, at least 10 s apart, and from the second on only where 10 % more is done or a minute has
    gone; a stage of less than 10 s writes nothing. The time left assumes that the rest goes as
    fast as all but the first. beside: what else is said of how far it is.
    """

    def wrapped(items: Iterable[Item]) -> Iterator[Item]:
        total = len(items) if isinstance(items, Sized) else None
        if sys.stderr.isatty():
            from tqdm import tqdm

            return on_terminal(tqdm(items, name, total, unit=f" {unit}", dynamic_ncols=True))
        return in_lines(items, total)

    def on_terminal(bar: "tqdm[Item]") -> Iterator[Item]:
        for item in bar:
            bar.set_postfix_str(beside(), refresh=False)
            yield item

    def in_lines(items: Iterable[Item], total: int | None) -> Iterator[Item]:
        started = last = first = time.monotonic()
        told = 0
        for done, item in enumerate(items):
            now = time.monotonic()
            first = now if done < 2 else first  # it also has what is loaded
            more = total is not None and done - told >= SHARE * total
            if now - last >= APART and (more or not told or now - last >= LONG):
                further = beside() and f", {beside()}"
                far = _how_far(done, total, unit + further, now - started, now - first)
                print(f"{name}: {far}", file=sys.stderr, flush=True)
                last, told = now, done
            yield item

    return wrapped


def _how_far(done: int, total: int | None, unit: str, seconds: float, but_first: float) -> str:
    if total is None:
        return f"{done} {unit} in {clock_time(seconds)}"
    left = clock_time(but_first * (total - done) / (done - 1)) if done > 1 else "unknown time"
    return f"{done} of {total} {unit}, {left} left"


def clock_time(seconds: float) -> str:
    """Format seconds for people.

    >>> [clock_time(s) for s in (0.4, 35, 754.6, 7265)]
    ['0:00', '0:35', '12:35', '2:01:05']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# ---- Return of memory by the C library.

_TRIM_THRESHOLD, _TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h of glibc
_MAXIMUM = 32 * 2**20  # limit for memory that is mapped on its own


def keep_freed_memory() -> bool:
    """Have the C library keep freed memory; returns whether it does.

    A training frees its large arrays after each step and takes them again. Given back to the system
    in between, each of their pages is mapped anew, which took a twentieth of a training of
    `ecapa_mini`. Only glibc has the option.
    """
    return tell_allocator({_TRIM_THRESHOLD: 2**30, MMAP_THRESHOLD: _MAXIMUM, _TOP_PAD: 2**27})


def tell_allocator(wanted: dict[int, int]) -> bool:
    """Set options of the C library's malloc; returns whether it has them."""
    import ctypes  # few programs need it

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library than glibc
        return False
    told = [mallopt(name, value) for name, value in wanted.items()]
    return all(told)
