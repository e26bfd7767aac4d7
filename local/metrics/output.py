# SPDX-License-Identifier: Apache-2.0
"""Figures as a JSON file: infinities as text, undefined figures as null."""

import json
import math
import sys
from collections.abc import Mapping

from utils.cli import UserError
from utils.tables import atomic_write


def to_json(value: object) -> object:
    """Convert to values that JSON can hold: infinities as text, undefined (NaN) as null."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def write_figures(out: str, figures: Mapping[str, object]) -> None:
    """Write figures to a file, atomically, or to standard output for `-`."""
    text = json.dumps(to_json(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        with atomic_write(out) as stream:
            stream.write(text)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from error
