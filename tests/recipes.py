"""A recipe's folder with a few synthetic voices, made once a session; its runs and its plans."""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from utils.recipe import Planned, Script, read_script
from utils.settings import settings_text
from utils.tables import write_file

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "egs/TEMPLATE"
LINKS = ("steps", "utils", "local", "path.sh", "cmd.sh")

RECIPE_CONF = """
corpus_name=small
evaluation=small_test
evaluators="tiny/plda"
systems="b2 b2r"
prepare_options="--evaluation small_test --eval-speakers 8 --eval-utterances 6 \
--enrol-utterances 2 --train-speakers 12 --train-utterances 6"
bootstrap=20
nj=1
"""
TINY = """
encoder: ecapa
network:
  channels: [16, 16, 16, 16, 48]
  kernel_sizes: [5, 3, 3, 3, 1]
  dilations: [1, 2, 3, 4, 1]
  attention_channels: 16
  se_channels: 16
  embedding: 24
features: {kind: fbank, bins: 24}
training: {steps: 30, batch: 16, crop_seconds: [1, 1], loss: aam, learning_rate: 0.002}
"""

Done = subprocess.CompletedProcess[str]


def link_recipe(folder: Path, conf: str) -> Path:
    """A corpus's folder with its recipe.conf, without data and other settings."""
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    for name in LINKS:
        (folder / name).symlink_to(ROOT / name)
    (folder / "run.sh").symlink_to(TEMPLATE / "run.sh")
    (folder / "conf/recipe.conf").write_text(conf)
    return folder


def make_corpus_folder(folder: Path) -> None:
    """A folder such as egs/synth, with its own small settings."""
    link_recipe(folder, RECIPE_CONF)
    (folder / "prepare.sh").symlink_to(ROOT / "egs/synth/prepare.sh")
    for name in ("encoders", "systems"):
        (folder / "conf" / name).mkdir()
    (folder / "conf/encoders/tiny.yaml").write_text(TINY)
    take_systems(folder, "b2", "b2r")


def take_systems(folder: Path, *names: str) -> None:
    """The project's settings of systems, as files that a test may change."""
    for name in names:
        text = settings_text(TEMPLATE / f"conf/systems/{name}.yaml")
        (folder / f"conf/systems/{name}.yaml").write_bytes(text)


def put_program(path: Path, text: str) -> None:
    """A script that can be run."""
    write_file(path, text)
    path.chmod(0o755)


def link(path: Path, target: Path) -> None:
    """A link in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def run_words(words: Sequence[str], status: int | None, **options: Any) -> Done:
    """Output of a command, which must end with this status, where one is given."""
    done = subprocess.run(words, capture_output=True, text=True, **options)
    assert status in (None, done.returncode), done.stderr
    return done


def run_recipe(folder: Path, *options: str, script: str = "run.sh", status: int | None = 0) -> Done:
    """Output of a recipe, which must end with this status."""
    done = run_words([f"./{script}", *options], status, cwd=folder)
    print(done.stdout[-4000:], done.stderr[-2000:])
    steps = folder / "exp/steps.log"
    if "--dry-run" not in options and steps.is_file():  # a pipe has few of them
        done.stdout = steps.read_text() + done.stdout
    return done


def made(done: Done) -> set[str]:
    """The folders that a run made (or, dry, would make)."""
    lines = [
        line for line in done.stdout.splitlines() if "making " in line or "would make " in line
    ]
    return {line.split(" make ")[-1].split("making ")[-1].split(" ")[0] for line in lines}


def make_world(shared: Path) -> Path:
    """A corpus's folder after stage 3: sets, encoder, x-vectors and back end.

    The first of the processes that share a folder makes it, the others wait. Tests work in copies
    (`copy_world`), in which the recipe finds all of it up to date.
    """
    shared.mkdir(exist_ok=True)
    world = shared / "small"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (world / "exp/backends/tiny/.done").exists():
            shutil.rmtree(world, ignore_errors=True)
            world.mkdir()
            make_corpus_folder(world)
            run_recipe(world, "--systems=", "--stop-stage", "3")
    return world


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A temporary folder of this session, of all its workers."""
    base = factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "world"


def copy_world(world: Path, folder: Path) -> Path:
    """A copy with the times of its files."""
    shutil.copytree(world, folder, symlinks=True, dirs_exist_ok=True)
    return folder


def options_of(script: Path, *confs: Path) -> dict[str, str]:
    """The options of a script with their defaults, as its block and a corpus's recipe.conf say."""
    values: dict[str, str] = {}
    for path in (ROOT / "local/options.sh", script, *confs):
        text = path.read_text().partition(". local/options.sh" if path == script else "\0")[0]
        found = re.findall(r'^([a-z][a-z0-9_]*)=(?:"([^"]*)"|(\S*))', text, re.M)
        values |= {name: quoted or plain for name, quoted, plain in found}
        if path == script:
            values |= {"nj": "2", "evaluation": "e", "corpus_name": "toy", "corpus_note": "",
                       "quality_utterances": "4", "also_prepared": ""}  # fmt: skip
    return values | {"command_line": str(script)}


def script_of(path: Path) -> Script:
    """Stages of a recipe and their commands, without running any."""
    body = path.read_text().partition("begin_recipe")[2]
    words = f"""
command_line= cpu_cmd= gpu_cmd= option_names=(stage) stage=
declare -A job_options=()
. {ROOT}/utils/recipe.sh
exec() {{ printf '%s\\0' "${{recipe_lines[@]}}"; }}
begin_recipe {body}"""
    return read_script(run_words(["bash", "-euc", words], 0).stdout.split("\0")[:-1])


def commands(planned: Planned, script: str = "run.sh", **options: str) -> dict[str, str]:
    """Output -> commands of every step that is planned, with && between them."""
    said = script_of(TEMPLATE / script)
    values = options_of(TEMPLATE / script) | options
    rows = said.arrange(planned.tables, values)
    return {row.out: " ".join(said.words(row, values)) for row in rows}
