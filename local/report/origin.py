"""Where the figures came from: command, commit, machine, versions, settings."""

import logging
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from utils.cli import LossError, UserError
from utils.digests import sha256
from utils.stamps import commit_of_code, provenance, read_stamp
from utils.tables import is_there, read_bytes, read_json_object, read_map, write_file, write_json

T = TypeVar("T")
Json = dict[str, object]
Missing = dict[str, str]  # what: a folder or file; why
logger = logging.getLogger(__name__)
PACKAGES = ("torch", "speechbrain", "numpy", "scipy", "kaldiio", "matplotlib", "resemblyzer")


def lacks(what: object, error: UserError) -> Missing:
    """Note, and warn of, what is left out."""
    logger.warning("left out: %s", error)
    return {"what": str(what), "why": str(error)}


def usable(jobs: Iterable[tuple[object, Callable[[], T]]]) -> tuple[list[T], list[Missing]]:
    """Findings of several readers, and the names of those that find nothing, with the reason."""
    found, missing = [], []
    for name, read in jobs:
        try:
            found.append(read())
        except UserError as error:
            missing.append(lacks(name, error))
    return found, missing


def check_losses(missing: Sequence[Missing], allowed: int) -> None:
    """LossError where more is left out than allowed; it names the first."""
    if len(missing) > allowed:
        raise LossError(
            f"{missing[0]['why']} ({len(missing)} left out in all; --allow-loss is {allowed})"
        )


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} absent"


def _command(log: Path) -> str:
    """Command line of the recipe that runs; by hand, the last of exp/cmdline.log.

    Its lines are `<date> <time>  <commit>  <command>`; another recipe may have written the last.
    """
    if told := os.environ.get("PSEUDOVOX_COMMAND"):
        return told.strip()
    lines = read_bytes(log).decode(errors="replace").splitlines() if is_there(log) else []
    return lines[-1].split("  ", 2)[-1].strip() if lines else "not recorded"


def _processors(info: Path = Path("/proc/cpuinfo")) -> str:
    """Number and model of the processors, as far as the system tells."""
    try:
        models = re.findall(r"^model name\s*: *(.*)", info.read_text(encoding="utf-8"), re.M)
    except OSError:
        models = []
    count = os.cpu_count() or len(models)
    return f"{count} processors ({models[0] if models else 'model unknown'})"


def origin(command_log: Path) -> dict[str, str]:
    """Command, commit, date, machine and versions of this run."""
    return {
        "command": _command(command_log),
        "commit": commit_of_code(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {_processors()}, Python {platform.python_version()}",
        "versions": ", ".join(_version(package) for package in PACKAGES),
    }


def steps(folders: Sequence[Path]) -> list[dict[str, str]]:
    """How each folder of figures was made, from its stamp; folders without one are left out."""
    found = []
    for folder in folders:
        if (digest := provenance(folder)) is None:
            continue
        stamp = read_stamp(folder) or {}
        command = stamp.get("command")
        words = [str(word) for word in command] if isinstance(command, list) else []
        if words[:1] == ["job"]:  # the recipe's own wrapper: `job OUT PROGRAM ...`
            words = words[2:]
        made = {"folder": str(folder), "settings": digest[:12], "command": " ".join(words)}
        found.append(made | {name: str(stamp.get(name) or "") for name in ("finished", "host")})
    return found


def attacks(scores: Sequence[Path]) -> tuple[list[Json], list[Missing]]:
    """attacker.json beside the scores of each attack, and those that have none beside them.

    Of a folder without scores there is nothing to tell; those who need them say that.
    """

    def read(path: Path) -> Json:
        return {"scores": str(path.parent), **read_json_object(path, "run stage 8")}

    paths = [folder / "attacker.json" for folder in scores if (folder / "scores").is_file()]
    return usable((path, partial(read, path)) for path in paths)


def settings_of_systems(
    speech: Sequence[Sequence[str]],
) -> tuple[dict[str, Json], list[Missing]]:
    """conf.json of each system's protected sets: what the anonymiser was told; and what is missing.

    speech: system, original data directory, protected data directory. "remarks" are the lines of
    all its sets' notes.txt: what could not be had as it was asked for.
    """
    found: dict[str, Json] = {}
    remarks: dict[str, set[str]] = {}

    def read(system: str, path: Path) -> None:
        conf = read_json_object(path, "protect the set again")
        told = conf.get("system", conf)
        if not isinstance(told, dict):
            raise UserError(f"{path}: system: no settings; protect the set again")
        found.setdefault(system, {**told, "seed": conf.get("seed")})
        if is_there(notes := path.with_name("notes.txt")):
            lines = read_map(notes, rest_of_line=True).values()
            remarks.setdefault(system, set()).update(lines)

    paths = [(system, Path(protected) / "conf.json") for system, _, protected in speech]
    _, missing = usable((path, partial(read, system, path)) for system, path in paths)
    for system, remarked in remarks.items():
        found[system]["remarks"] = sorted(remarked)
    return found, missing


KEPT = ("metrics.csv", "generators.csv")  # of collect_results.py and collect_generators.py


def keep(results: Path, out: Path, names: dict[str, str], command: str = "") -> str:
    """Copy a run's figures to a folder that is committed, with command.txt and origin.json; returns
    the name of the table.

    names: what to write for a path of this machine, in the command. UserError where the run has no
    command, or one with an absolute path that has no name: the page would not say what to run.
    """
    run = read_json_object(results / "run.json", "run stage 11")
    origin = run.get("origin")
    told = dict(origin) if isinstance(origin, dict) else {}
    said = str(told.pop("command", ""))
    text = command or said.replace("not recorded", "")
    for path in sorted(names, key=len, reverse=True):
        text = text.replace(path, names[path])
    if not text:
        raise UserError(f"{results}/run.json: no command was recorded; give --command")
    if left := [word for word in re.split(r"[\s='\"]+", text) if word.startswith("/")]:
        raise UserError(f"{left[0]}: a path of this machine; give --name {left[0]}=NAME")
    name = next((name for name in KEPT if is_there(results / name)), KEPT[0])
    table = read_bytes(results / name)
    told[name] = f"sha256:{sha256(table)}"
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / name, table)
    write_file(out / "command.txt", text + "\n")
    write_json(out / "origin.json", told)
    return name
