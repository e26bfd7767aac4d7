"""How programs end: well, or with one clear line about what they cannot use."""

from collections.abc import Callable
from pathlib import Path

import pytest

from utils.cli import UserError
from utils.tables import write_file


def refuses(
    message: str,
    function: Callable[..., object],
    *arguments: object,
    kind: type[BaseException] = UserError,
    **options: object,
) -> str:
    """Call the function; its error, which must match the message and be one line."""
    with pytest.raises(kind, match=message) as caught:
        function(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refuses_file(
    message: str, read: Callable[..., object], path: Path | str, content: str | bytes,
    *more: object, kind: type[UserError] = UserError,
) -> str:  # fmt: skip
    """The same of who reads a file, which is written first."""
    write_file(path, content)
    return refuses(message, read, path, *more, kind=kind)


def refuses_words(
    message: str, program: Callable[..., object], *words: object, kind: type[UserError] = UserError
) -> str:
    """The same of a program and the words of a command line."""
    return refuses(message, program, [str(word) for word in words], kind=kind)


def accepts(program: Callable[[list[str]], int], *words: object) -> None:
    """Run a program with the words of a command line, which must end well."""
    assert program([str(word) for word in words]) == 0
