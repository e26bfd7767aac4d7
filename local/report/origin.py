# SPDX-License-Identifier: Apache-2.0
"""Where the figures came from: command, commit, machine, versions, settings."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from local.report.results import Json, Missing
from utils.settings import read_json_object
from utils.stamps import DONE, provenance
from utils.tables import read_map

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "speechbrain", "numpy", "scipy", "kaldiio", "matplotlib", "resemblyzer")


def _commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "not a git checkout"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} absent"


def _command(log: Path) -> str:
    """What the recipe that runs was called with; by hand, the last of exp/cmdline.log.

    Its lines are `<date> <time>  <commit>  <command>`; another recipe may have written the last.
    """
    if told := os.environ.get("PSEUDOVOX_COMMAND"):
        return told.strip()
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    return lines[-1].split("  ", 2)[-1].strip() if lines else "not recorded"


def _processors(info: Path = Path("/proc/cpuinfo")) -> str:
    """Number and model of the processors, as far as the system tells."""
    try:
        lines = info.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    count = os.cpu_count() or len(models)
    return f"{count} processors ({models[0] if models else 'model unknown'})"


def origin(command_log: Path) -> dict[str, str]:
    """Command, commit, date, machine and versions of this run."""
    return {
        "command": _command(command_log),
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {_processors()}, Python {platform.python_version()}",
        "versions": ", ".join(_version(package) for package in PACKAGES),
    }


def steps(folders: Sequence[Path]) -> list[dict[str, str]]:
    """How each folder of figures was made, from its stamp; folders without one are left out."""
    found = []
    for folder in folders:
        digest = provenance(folder)
        if digest is None:
            continue
        stamp = json.loads((folder / DONE).read_text(encoding="utf-8"))
        words = [str(word) for word in stamp.get("command") or []]
        if words[:1] == ["job"]:  # the recipe's own wrapper: `job OUT PROGRAM ...`
            words = words[2:]
        finished, host = (str(stamp.get(name) or "") for name in ("finished", "host"))
        found.append(
            {
                "folder": str(folder),
                "settings": digest[:12],
                "command": " ".join(words),
                "finished": finished,
                "host": host,
            }
        )
    return found


def attacks(scores: Sequence[Path]) -> tuple[list[Json], list[Missing]]:
    """attacker.json beside the scores of each attack, and those that have none beside them."""
    found: list[Json] = []
    missing: list[Missing] = []
    for folder in scores:
        path = folder / "attacker.json"
        if not (folder / "scores").is_file():
            continue  # nothing to tell of; that they are missing is said by those who need them
        try:
            found.append({"scores": str(folder), **json.loads(path.read_text(encoding="utf-8"))})
        except (OSError, ValueError) as error:
            why = f"cannot be read ({error}); run stage 8"
            missing.append({"what": str(path), "why": why})
    return found, missing


def settings_of_systems(speech: Sequence[Sequence[str]]) -> dict[str, Json]:
    """conf.json of a protected set of each system: what the anonymiser was told.

    speech: system, original data directory, protected data directory. "remarks" are the lines of
    all its sets' notes.txt: what could not be had as it was asked for.
    """
    found: dict[str, Json] = {}
    remarks: dict[str, dict[str, None]] = {}
    for system, _, protected in speech:
        path = Path(protected) / "conf.json"
        if system not in found and path.is_file():
            conf = read_json_object(path, "protect the set again")
            found[system] = {**conf.get("system", conf), "seed": conf.get("seed")}
        notes = path.with_name("notes.txt")
        if notes.is_file():
            lines = read_map(notes, rest_of_line=True).values()
            remarks.setdefault(system, {}).update(dict.fromkeys(lines))
    for system, told in remarks.items():
        found.setdefault(system, {})["remarks"] = sorted(told)
    return found
