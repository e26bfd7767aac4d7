"""The account of a protected folder, for whoever must answer for it: data, and a page to read."""

import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from steps.standalone.job import plain
from steps.standalone.people import in_words
from steps.standalone.shards import Shard, part_name, parts_of
from utils.cli import UserError, clock_time
from utils.stamps import ROOT, commit_of_code
from utils.tables import read_json_object, write_file, write_json

# Of each file, beside its length: seconds of what became of it.
COLUMNS = {
    "people": "people",
    "turns": "turns",
    "sure": "share clearly of one person",
    "seconds_overlap": "overlap, in one voice (s)",
    "seconds_clear": "in the clear (s)",
    "removed": "removed: spans, seconds",
    "seconds_read": "words read anew (s)",
    "seconds_heard": "doubtful words, as heard (s)",
    "seconds_unread": "not readable, as heard (s)",
    "seconds_hushed": "other sounds, made pauses (s)",
    "seconds_later": "speech begins later by (s)",
    "seconds_now": "length now (s)",
}

DIGESTS = {"source_sha256": "recording", "sha256": "result"}  # where names are kept


def beside(folder: Path, name: str) -> Path:
    """Path of a file about a folder, beside it: `<folder>.<name>`."""
    whole = folder.resolve()
    return whole.with_name(f"{whole.name}.{name}")


def write_account(
    out: Path,
    run: Mapping[str, object],
    settings: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any]],
    limits: Sequence[str],
    shard: Shard | None = None,
) -> Path:
    """Write `<out>.account.json` and, for people, `<out>.account.html`; returns the latter.

    run: facts about this run alone, such as its key's digest, which identifies it when it has ended
    (before, `ended` is None); settings: what all runs share, with `source`, `system`, `per`,
    `channels`, `level`, `ends` and `keeps_time`; files: by name, with the `status` of each. An
    account of an earlier run with the same settings is merged: what it says of files that are done,
    and of its run, stays. So are those of shards; a shard has data alone.
    """
    path = beside(out, part_name("account.json", shard))
    parts = parts_of(path)
    before = [_earlier(one, settings) for one in (path, *parts)]
    key, runs = run["key_digest"], [old for one in before for old in one.get("runs", [])]
    known = {name: file for one in before for name, file in one.get("files", {}).items()}
    known = {
        name: file for name, file in known.items()
        if {file["status"], files.get(name, file)["status"]} == {"done"}
    }  # fmt: skip
    found = {
        **settings,
        "out": plain(out),
        "runs": [*(old for old in runs if old["key_digest"] != key), {**origin(), **run}],
        "files": known | {name: known.get(name, {}) | {**file} for name, file in files.items()},
        "limits": sentences(limits),
    }
    write_json(path, found, ensure_ascii=False)
    for part in parts:
        part.unlink()
    if shard:
        return path
    page = beside(out, "account.html")
    write_file(page, _render(found))
    return page


def told(out: Path, what: str) -> dict[str, str]:
    """Values of one kind that accounts tell of files, also those of shards, by name."""
    path, found = beside(out, "account.json"), dict[str, str]()
    for one in (path, *parts_of(path)):
        with suppress(UserError, AttributeError):  # none, or none of ours
            files = read_json_object(one, "").get("files", {})
            found |= {name: file[what] for name, file in files.items() if what in file}
    return found


def read(out: Path) -> dict[str, Any]:
    """Account of a protected folder; UserError where there is none."""
    return read_json_object(beside(out, "account.json"), "make protect wrote it")


def cuts(out: Path) -> dict[str, tuple[float, float]]:
    """Seconds by which speech begins later in a protected version than in its recording, and those
    that it lasts, by name, where the ends were changed; UserError without an account."""
    return {
        name: (file["seconds_later"], file["seconds_now"])
        for name, file in read(out)["files"].items()
        if "seconds_now" in file
    }


def sentences(lines: Sequence[str]) -> list[str]:
    """Sentences of a text in lines.

    >>> sentences(["It hides the voice. It does not", "hide words."])
    ['It hides the voice.', 'It does not hide words.']
    """
    return re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(line.strip() for line in lines))


def _earlier(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found = read_json_object(path, "")
        return found if _same(found) == _same(settings) else {}
    except (UserError, KeyError, TypeError):  # none, or none of ours
        return {}


def _same(settings: Mapping[str, Any]) -> list[object]:
    """Settings that two runs share if their accounts may be merged."""
    names = ("source", "per", "channels", "level", "ends", "keeps_time", "renamed")
    return [settings["system"]["digest"], *(settings[name] for name in names)]


def now() -> str:
    """Time, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def origin() -> dict[str, str]:
    """Time at which a run ended, and its program: `ended`, `version`, `commit`."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "ended": now(),
        "version": about["project"]["version"],
        "commit": commit_of_code(),
    }


def _render(found: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(ROOT), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, autoescape=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["clock"] = clock_time
    files = found["files"]
    told = {
        "done": {name: file for name, file in files.items() if file["status"] == "done"},
        "failed": {name: file for name, file in files.items() if file["status"] == "failed"},
        "remarked": {name: file for name, file in files.items() if file.get("warnings")},
        "people": in_words(files.values(), found["per"] != "file"),
        "seconds": sum(file.get("seconds", 0.0) for file in files.values()),
        "columns": {
            name: title
            for name, title in COLUMNS.items()
            if any(name in file for file in files.values())
        },
        "digests": {n: DIGESTS[n] for n in [*DIGESTS][: 1 if found["renamed"] else 2]},
    }
    return environment.get_template("steps/standalone/account.html.jinja").render(found, **told)
