"""The whole recipe submitted to a real Slurm gives the same results as on this machine."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.test_recipe import ROOT, make_corpus_folder

# These hold times: when they were made, or the CPU time of training and digests of what holds it.
NOT_COMPARED = ("exp/report",)
TIMED = ("encoder.yaml", "valid_eer.tsv", "attacker.json", "run.json")


def run(folder: Path, environment: dict[str, str], *options: str) -> str:
    done = subprocess.run(
        ["./run.sh", "--systems", "b2r", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    print(done.stdout[-3000:], done.stderr[-3000:])
    assert done.returncode == 0
    return done.stdout


def written(folder: Path) -> dict[str, dict[str, str]]:
    """Step -> digests of the files that it wrote, from its stamp."""
    stamps = {path.parent.relative_to(folder): path for path in folder.glob("*/**/.done")}
    return {
        str(step): {
            name: digest
            for name, digest in json.loads(path.read_text())["outputs"].items()
            if name not in TIMED
        }
        for step, path in stamps.items()
        if str(step) not in NOT_COMPARED
    }


@pytest.mark.slow
def test_the_recipe_gives_the_same_under_slurm(tmp_path: Path, slurm: dict[str, str]) -> None:
    folders = {backend: tmp_path / backend for backend in ("local", "slurm")}
    for backend, folder in folders.items():
        folder.mkdir()
        make_corpus_folder(folder)
        (folder / "conf/slurm.conf").symlink_to(ROOT / "egs/TEMPLATE/conf/slurm.conf")
        run(folder, {**slurm, "cmd_backend": backend})
    local, submitted = (written(folder) for folder in folders.values())
    assert len(local) > 30
    assert submitted.keys() == local.keys()
    different = [
        f"{step}/{name}"
        for step, files in local.items()
        for name in files.keys() | submitted[step].keys()
        if files.get(name) != submitted[step].get(name)
    ]
    assert different == []
    scripts = list(folders["slurm"].glob("*/**/q/*.sh"))
    assert len(scripts) > 30
    assert not list(folders["local"].glob("*/**/q/*.sh"))
    # The back end is no part of a step: what Slurm made is up to date here.
    again = run(folders["slurm"], {**slurm, "cmd_backend": "local"})
    assert "nothing to do" in again
