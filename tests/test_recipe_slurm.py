"""The whole recipe submitted to a real Slurm gives the same results as on this machine."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.recipes import ROOT, TINY, make_corpus_folder
from utils.tables import timed_in

# As little speech as gives every step something to do.
SMALL = """
corpus_name=smallest
evaluation=small_test
genders=f
evaluators="tiny/plda"
prepare_options="--evaluation small_test --eval-speakers 4 --eval-utterances 3 \
--enrol-utterances 1 --train-speakers 6 --train-utterances 3"
bootstrap=5
nj=2
attackers="ignorant lazy_informed semi_informed_finetuned"
prosody=true
asr=pocketsphinx
"""

# These hold times: when they were made, and how long it took.
NOT_COMPARED = ("exp/report",)
TIMED = {"run.json"}


def make_small_folder(folder: Path) -> None:
    folder.mkdir()
    make_corpus_folder(folder)
    (folder / "conf/recipe.conf").write_text(SMALL)
    (folder / "conf/encoders/tiny.yaml").write_text(TINY.replace("steps: 30", "steps: 5"))
    (folder / "conf/slurm.conf").symlink_to(ROOT / "egs/TEMPLATE/conf/slurm.conf")


def start(folder: Path, environment: dict[str, str], backend: str) -> subprocess.Popen[str]:
    env = {**environment, "cmd_backend": backend}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(["./run.sh", "--systems", "b2"], cwd=folder, env=env, **how)


def end(started: subprocess.Popen[str]) -> str:
    said, _ = started.communicate()
    print(said[-3000:])
    assert started.returncode == 0
    return said


def written(folder: Path) -> dict[str, dict[str, str]]:
    """Step -> digests of the files that it wrote, from its stamp."""
    stamps = {path.parent.relative_to(folder): path for path in folder.glob("*/**/.done")}
    return {
        str(step): {
            name: digest
            for name, digest in json.loads(path.read_text())["outputs"].items()
            if name not in TIMED | timed_in(path.parent)
        }
        for step, path in stamps.items()
        if str(step) not in NOT_COMPARED
    }


@pytest.mark.slow
def test_the_recipe_gives_the_same_under_slurm(tmp_path, slurm):
    folders = {backend: tmp_path / backend for backend in ("local", "slurm")}
    for folder in folders.values():
        make_small_folder(folder)
    # Side by side: mostly each waits for its programs to start.
    both = [start(folder, slurm, backend) for backend, folder in folders.items()]
    for started in both:
        end(started)
    local, submitted = (written(folder) for folder in folders.values())
    for what in ("encoders/tiny.train_b2", "decode/b2/pocketsphinx", "prosody/b2"):
        assert any(step.startswith(f"exp/{what}") for step in local)
    assert len(local) > 40
    assert submitted.keys() == local.keys()
    different = [
        f"{step}/{name}"
        for step, files in local.items()
        for name in files.keys() | submitted[step].keys()
        if files.get(name) != submitted[step].get(name)
    ]
    assert different == []
    scripts = list(folders["slurm"].glob("*/**/q/*.sh"))
    assert len(scripts) > 25
    assert not list(folders["local"].glob("*/**/q/*.sh"))
    # The back end is no part of a step: what Slurm made is up to date here.
    assert "nothing to do" in end(start(folders["slurm"], slurm, "local"))
