#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Say whether a protected folder, or file, is still the one of its account, by SHA-256.

ACCOUNT is OUT.account.json, beside OUT. Each difference is a line: a file that changed, is missing,
or is additional. Hidden files do not count. Where names were drawn, the account does not tell which
file is which, so a changed file is missing and additional.

Exit status 1: there are differences.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from utils.cli import UserError
from utils.commands import program
from utils.tables import read_json_object

ENDING = ".account.json"


def digests_by_name(out: Path) -> dict[str, str]:
    """SHA-256 of each file in a folder, by its name there; of a file, by its own. UserError for a
    folder that cannot be read, and a file."""
    from steps.standalone.job import plain

    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename}: {error.strerror}; look at its permissions")

    if out.is_file():
        paths, start = [out], out.parent
    else:
        walk, start = os.walk(out, onerror=refuse, followlinks=True), out
        shown = [(top, name) for top, folders, names in walk for name in _visible(folders, names)]
        paths = [Path(top, name) for top, name in shown]
    found = {}
    for path in sorted(paths):
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            refuse(error)
        found[plain(path.relative_to(start))] = digest
    return found


def _visible(folders: list[str], names: list[str]) -> list[str]:
    folders[:] = sorted(name for name in folders if not name.startswith("."))
    return [name for name in names if not name.startswith(".")]


def compare(told: Mapping[str, Any], out: Path, found: Mapping[str, str]) -> list[str]:
    """Differences between an account and the digests that are found, a line each. UserError for an
    account without digests."""
    from steps.standalone.job import made_name, plain

    done = {name: row for name, row in told["files"].items() if row["status"] == "done"}
    listed = told.get("sha256", []) if told["renamed"] else [r.get("sha256") for r in done.values()]
    if len(listed) < len(done) or not all(listed):
        raise UserError(f"{out}: its account holds no digests; protect it again")
    if told["renamed"]:
        here, there = Counter(found.values()), Counter(listed)
        extra = [name for name in found if (here - there)[found[name]]]
        lost = [f"SHA-256 {digest}: missing" for digest in sorted((there - here).elements())]
        return [*lost, *(f"{_place(out, name)}: additional" for name in extra)]
    names = [out.name] if out.is_file() else [plain(made_name(Path(name))) for name in done]
    known = dict(zip(names, listed, strict=True))
    kinds = {
        name: "missing" if name not in found else "additional" if name not in known else "changed"
        for name in sorted({*known, *found})
        if known.get(name) != found.get(name)
    }
    return [f"{_place(out, name)}: {kind}" for name, kind in kinds.items()]


def _place(out: Path, name: str) -> Path:
    return out if out.is_file() else out / name


@program
def main(account: Annotated[Path, "The account, OUT.account.json", "ACCOUNT"]) -> int:
    if not account.name.endswith(ENDING):
        raise UserError(f"{account}: is not called OUT{ENDING}; name the account beside OUT")
    told = read_json_object(account, "give the account that was written beside OUT")
    if not {"files", "renamed"} <= told.keys():
        raise UserError(f"{account}: is not an account; give the one beside OUT")
    out = account.with_name(account.name.removesuffix(ENDING))
    if not out.exists():
        raise UserError(f"{out}: is not there; the account must lie beside it")
    found = digests_by_name(out)
    differences = compare(told, out, found)
    print(*differences, sep="\n", end="\n" * bool(differences))
    if not differences:
        print(f"{out}: {len(found)} files, all as the account says")
    return bool(differences)
