"""Where the programs are, and what starts one: a process of its own, in their environment."""

import hashlib
import os
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKED = Path(__file__).with_name("tree.tar")  # setup.py makes it for the wheel; no checkout has it
CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "protect": "steps/protect_folder.py",
    "evidence": "local/measure_evidence.py",
    "stream": "steps/protect_stream.py",
    "verify": "steps/verify_account.py",
    "recipe": "egs/{}/run.sh",
}


class Error(Exception):
    """Error that the user can put right, in one line. status: the program's."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


def find_version() -> str:
    """Version of the package, or of the checkout."""
    try:
        return version("pseudovox")
    except PackageNotFoundError:
        about = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
        return str(about["project"]["version"])


def find_tree() -> Path:
    """Folder of the programs: the checkout, or what the wheel holds, unpacked once for a user into
    PSEUDOVOX_HOME, which is `~/.local/share/pseudovox` if not set. Error where that cannot be
    written."""
    if not PACKED.exists():
        return CHECKOUT
    with PACKED.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    home = Path(os.environ.get("PSEUDOVOX_HOME") or Path(data, "pseudovox"))
    try:
        home = home.expanduser().absolute()
    except RuntimeError as error:
        raise Error("you have no home; set PSEUDOVOX_HOME to a folder for programs") from error
    place = home / f"{find_version()}-{digest[:12]}"
    if place.is_dir():
        return place
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as beside, tarfile.open(PACKED) as packed:
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            packed.extractall(made := Path(beside, "tree"), **safe)  # type: ignore[arg-type]
            with suppress(FileExistsError):  # somebody else was faster
                made.rename(place)
    except OSError as error:
        raise Error(
            f"{home}: {error.strerror}; set PSEUDOVOX_HOME to a folder that you may write"
        ) from error
    return place


def start_of(
    name: str, words: Sequence[str], corpus: str = ""
) -> tuple[list[str], dict[str, str], Path | None]:
    """Words and environment that start a program, and the folder that it starts in: that of its
    corpus, or where the user is. Error for an unknown corpus."""
    tree = find_tree()
    path = tree / PROGRAMS[name].format(corpus)
    if not path.exists():
        known = ", ".join(sorted(run.parent.name for run in tree.glob("egs/[a-z]*/run.sh")))
        raise Error(f"{corpus}: no such recipe; known: {known}")
    python = Path(sys.executable).parent
    own = {"PATH": f"{python}:{os.environ.get('PATH', os.defpath)}"}
    own |= {} if corpus else {"PSEUDOVOX_COMMAND": f"pseudovox {name}"}
    return [str(path), *words], {**os.environ, **own}, path.parent if corpus else None
