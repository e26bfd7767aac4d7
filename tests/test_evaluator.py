"""The evaluator of models/: its back end fits its card, and training again gives its figures."""

import csv
import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from local.plan.evaluators import find_encoder
from steps.speaker.backends import read_folder
from tests.recipes import ROOT, link_recipe, run_recipe
from utils.datadir import read_training_speakers
from utils.settings import read_settings

MODEL = ROOT / "models/pyannote_synth"
CARD = (MODEL / "README.md").read_text(encoding="utf-8")
BACKEND = MODEL / "backend"
XVECTORS = "exp/xvectors/pyannote_synth"


def test_the_back_end_and_its_settings_are_those_of_the_card(here):
    for name in ("plda", "transform.mat"):
        digest = hashlib.sha256((BACKEND / name).read_bytes()).hexdigest()
        assert f"`{name}` {digest[:16]}" in CARD
    settings = read_settings(MODEL / "evaluator.yaml")
    for option in ("seed", "speakers", "utterances", "lda_dim"):
        assert f"--{option.replace('_', '-')} {settings[option]} " in CARD
    speakers = read_training_speakers(BACKEND)
    assert speakers is not None and len(speakers) == settings["speakers"]
    assert min(int(name[4:]) for name in speakers) == 181  # of egs/synth 1 to 180 are there
    assert read_folder(str(BACKEND)).dim == 512
    assert sum(path.stat().st_size for path in MODEL.rglob("*") if path.is_file()) < 5e6
    (here / "steps").symlink_to(ROOT / "steps")
    assert find_encoder("pyannote_synth").model == "pyannote"


@pytest.mark.slow
@pytest.mark.skipif("PSEUDOVOX_RETRAIN" not in os.environ, reason="takes 6 CPU-minutes")
def test_training_again_gives_figures_within_the_spread_of_the_card(tmp_path: Path) -> None:
    """By the commands of the card, in a folder as egs/synth is."""
    folder = link_recipe(tmp_path, (ROOT / "egs/synth/conf/recipe.conf").read_text())
    (folder / "prepare.sh").symlink_to(ROOT / "egs/synth/prepare.sh")
    for name in ("encoders", "systems"):
        (folder / "conf" / name).symlink_to(ROOT / "egs/TEMPLATE/conf" / name)
    (block,) = re.findall(r"^```\ncd egs/synth.*?\n(.*?)^```", CARD, flags=re.S | re.M)
    subprocess.run(["bash", "-euc", f". ./path.sh\n{block}"], cwd=folder, check=True)
    run_recipe(folder, "--systems=", "--evaluators", "pyannote_synth/plda", "--stop-stage", "3")
    with (MODEL / "figures.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for gender, name in (("f", "women, EER (%)"), ("m", "men, EER (%)")):
        told = [float(row[name].split()[0]) for row in rows]
        trials = f"data/synth_test_trials_{gender}"
        sides = [f"{XVECTORS}/synth_test_enrolls", f"{XVECTORS}/synth_test_trials_{gender}"]
        score = ["steps/score_trials.py", "--backend", "exp/again", *sides, f"{trials}/trials"]
        figures = ["local/compute_metrics.py", "verification", f"{trials}/trials", "scores", "out"]
        for command in ([*score, "scores"], figures):
            subprocess.run(command, cwd=folder, check=True)
        eer = 100 * json.loads((folder / "out").read_text())["eer"]
        assert min(told) - 0.5 <= eer <= max(told) + 0.5
