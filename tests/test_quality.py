"""Quality without listeners: the estimator on speech, no score for none, figures, the recipe."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import soundfile

from local.compute_utility import main as compute
from local.metrics.utility import quality_figures, read_quality
from steps.estimate_quality import main as estimate_quality
from steps.quality import WINDOW, Quality, load_estimator, middle, problem_of
from tests.refusals import accepts, refuses, refuses_file, refuses_words
from tests.world import RATE, voice, write_speech
from utils.cli import LossError
from utils.datadir import write_data_dir


def buzz(seconds: float = 1.0) -> np.ndarray:
    """Something voiced that swells and fades."""
    return voice(seconds, 140, 550)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two speakers, two utterances each; one of them silent, one empty in the protected set."""
    waves = {"f1-1": buzz(1), "f1-2": np.zeros(RATE), "f2-1": buzz(1.2), "f2-2": buzz(1.3)}
    for name in ("o", "p"):
        write_speech(tmp_path / name, waves)
    soundfile.write(tmp_path / "p/wav/f2-2.wav", np.zeros(0), RATE)
    return tmp_path


def test_silence_clipped_and_empty_audio_has_no_score():
    """DistillMOS gives digital silence 1.97, more than it gives noise."""
    wave = buzz()
    assert problem_of(wave) == ""
    assert problem_of(np.zeros(0)) == "empty"
    assert problem_of(wave[: RATE // 10]) == "short"
    assert problem_of(np.zeros(RATE)) == problem_of(3e-4 * wave / wave.std()) == "silent"
    assert problem_of(np.clip(20 * wave, -1, 1)) == "clipped"
    peak = wave / np.abs(wave).max()  # normalised to full scale, which a few samples reach
    assert problem_of(peak) == ""
    quiet = np.r_[np.zeros(9 * RATE), 0.5 * wave]  # heard in the middle, where it is mute
    assert problem_of(middle(quiet)) == "silent"


@pytest.mark.slow
def test_the_score_is_that_of_the_package_and_of_the_middle_of_long_speech():
    import torch
    from distillmos import ConvTransformerSQAModel

    network = ConvTransformerSQAModel().eval()
    estimate = load_estimator()
    paused = np.r_[buzz(2.0), np.zeros(RATE), buzz(0.5)]
    for wave in (buzz(0.3), buzz(1.0), paused, buzz(5.01), buzz(7.0)):
        with torch.inference_mode():
            expected = network(torch.from_numpy(wave).float()[None]).item()
        assert estimate(wave) == Quality(expected)
    long = buzz(10)
    assert len(middle(long)) == WINDOW
    assert estimate(long) == estimate(middle(long))
    noisy = buzz(7.0) + 0.1 * np.random.default_rng(0).standard_normal(7 * RATE)
    assert estimate(noisy).mos < estimate(buzz(7.0)).mos
    assert math.isnan(estimate(np.zeros(RATE)).mos)


def test_figures_by_hand():
    """Speakers weigh the same, and the drop is of what has both scores."""
    before = {"a1": 4.0, "a2": 3.0, "b1": 4.5, "b2": "silent"}
    after = {"a1": 3.0, "a2": "clipped", "b1": 2.0, "b2": 1.0}
    utt2spk = {utt: utt[0] for utt in before}
    found = quality_figures(after, utt2spk, before, n_bootstrap=200)
    assert found["mos"] == pytest.approx((3.0 + 1.5) / 2)
    assert found["mos_original"] == pytest.approx((4.0 + 4.5) / 2)
    assert found["mos_drop"] == pytest.approx((1.0 + 2.5) / 2)
    assert found["mos_per_speaker"] == {"a": 3.0, "b": 1.5}
    assert (found["n_undefined"], found["n_undefined_original"]) == ({"clipped": 1}, {"silent": 1})
    assert (found["n_speakers"], found["n_segments"]) == (2, 4)
    # Two speakers: a resample is a twice, both, or b twice.
    assert found["intervals"]["mos_drop"] == pytest.approx([1.0, 2.5])  # type: ignore[index]
    alone = quality_figures(before, utt2spk)
    assert alone["mos"] == pytest.approx(4.0)
    assert "mos_drop" not in alone
    nothing = quality_figures({"a1": "empty"}, utt2spk)
    assert math.isnan(nothing["mos"])  # type: ignore[arg-type]


@pytest.mark.slow
def test_programs_say_what_has_no_score(data, capsys):
    for name in ("o", "p"):
        accepts(estimate_quality, data / "o", data / name, data / "out" / name)
    said = capsys.readouterr().out
    assert said.count("f1-2: not defined, its audio is silent: ") == 2
    assert "f2-2: not defined, its audio is empty: " in said
    assert "read 4 utterances / written 4 / not defined 2 / skipped 0" in said
    options = [f"--original={data}/out/o/quality", "--bootstrap", "50", data / "o"]
    metrics = data / "metrics.json"
    accepts(compute, "quality", *options, data / "out/p/quality", metrics)
    figures = json.loads(metrics.read_text())
    assert figures["n_undefined"] == {"empty": 1, "silent": 1}
    assert figures["n_undefined_original"] == {"silent": 1}
    assert figures["mos_drop"] == 0  # the two that are left are the same audio
    assert set(figures["intervals"]) == {"mos", "mos_original", "mos_drop"}


def test_what_cannot_be_read_is_a_loss_not_a_score(data):
    (data / "p/wav/f1-1.wav").write_text("no audio")
    command = [str(data / "o"), str(data / "p"), str(data / "out")]
    refuses(r"1 of 4 utterances lost, 0 allowed.*f1-1", estimate_quality, command, kind=LossError)
    assert not (data / "out/quality").exists()
    accepts(estimate_quality, "--allow-loss", "1", *command)
    assert (data / "out/skipped.txt").read_text().startswith("f1-1 ")
    write_data_dir(data / "p", {"wav.scp": {"x": "x.wav"}, "utt2spk": {"x": "x"}})
    refuses("has no f1-1, which", estimate_quality, command)


def test_sets_that_do_not_fit(data):
    own = (data / "o", data / "q")
    (data / "other").write_text("f2-1 3.5\n")
    for scored, said, *more in (
        ("x1", r"x1 is not in .*utt2spk"), ("f1-1", "f1-1 is also in another set", "--also", *own),
        ("f1-1", "has no f1-1", f"--original={data / 'other'}"),
    ):  # fmt: skip
        (data / "q").write_text(f"{scored} 3.5\n")
        refuses_words(said, compute, "quality", *more, *own, "-")


@pytest.mark.parametrize("line", ["u 7", "u nan", "u x", "u - because", "u -"])
def test_a_table_of_something_else(tmp_path, line):
    """A score of 450 was averaged."""
    refuses_file("is not a score from 1 to 5", read_quality, tmp_path / "quality", line + "\n")
