"""Cases as data: the rows of a test stand in tests/cases.yaml."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml


@cache
def _tables() -> dict[str, dict[str, list[list[Any]]]]:
    return yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))


def cases(test: Callable[..., None]) -> Callable[..., None]:
    """Parametrise a test by its table, whose first row names the arguments of the others."""
    file = test.__module__.rpartition(".")[2].removeprefix("test_")
    names, *rows = _tables()[file][test.__name__]
    return pytest.mark.parametrize(names, rows)(test)
