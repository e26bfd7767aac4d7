# SPDX-License-Identifier: Apache-2.0
"""JSON files of programs, read strictly. Apart from utils/settings.py, whose YAML takes longer to
load than all else that utils/stamps.py does, several times a step."""

import json
from typing import Any, TypeVar

from utils.cli import UserError
from utils.tables import StrPath, read_bytes

Kind = TypeVar("Kind", dict[str, Any], list[Any])
JSON_KINDS = {dict: "object", list: "list"}


def read_json_object(path: StrPath, mend: str) -> dict[str, Any]:
    """Read the object in a JSON file of a program. UserError with `mend`, the remedy, for anything
    else."""
    return read_json(path, dict, mend)


def read_json(path: StrPath, kind: type[Kind], mend: str) -> Kind:
    """Read an object or a list, with the same errors."""
    try:
        found = json.loads(read_bytes(path).decode("utf-8"))
    except UserError as error:
        raise UserError(f"{error}; {mend}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}; {mend}") from error
    if not isinstance(found, kind):
        raise UserError(f"{path}: holds no JSON {JSON_KINDS[kind]}; {mend}")
    return found
