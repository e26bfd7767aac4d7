"""Attackers who hear the file as it is written: content, level, energy, rhythm; weights."""

from pathlib import Path

import numpy as np
import pytest

from steps import score_trials
from steps.channels import written
from steps.channels.written import ContentEncoder
from steps.speaker.backends import ScaledCosine, standardise
from steps.speaker.encoders import TooShortError, load_encoder
from tests.making import say
from tests.refusals import refuses
from utils.archives import write_archive
from utils.arrays import Float32, Float64
from utils.tables import write_map


class Frames:
    """Content of three frames, or none of a short signal."""

    def __call__(self, wave: Float64) -> Float32:
        frames = np.array([[1, 0], [2, 0], [3, 6]], np.float32)
        return frames * np.float32(wave.max()) if len(wave) > 9 else frames[:0]


def test_content_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means 2 and 2, deviations sqrt(2/3) and sqrt(8); the level of the file counts."""
    asked = []
    monkeypatch.setattr(written, "load_extractor", lambda *of: asked.append(of) or Frames())
    encoder = load_encoder("content")
    moments = [2, 2, np.sqrt(2 / 3), np.sqrt(8)]
    assert encoder.embed(np.ones(10)) == pytest.approx(moments)
    assert encoder.embed(np.full(10, 0.5)) == pytest.approx(np.array(moments) / 2)
    refuses("9 samples are too few", encoder.embed, np.ones(9))
    load_encoder("content:hub:a/b:3")
    assert asked == [("moonshine", "cpu"), ("hub:a/b:3", "cpu")]


def test_content_of_moonshine() -> None:
    pytest.importorskip("moonshine_voice", reason="Moonshine has no wheel here")
    encoder = ContentEncoder("cpu")
    one, other = (encoder.embed(say(seed)) for seed in (1, 2))
    assert one.shape == (576,) and not np.allclose(one, other, atol=0.01)
    with pytest.raises(TooShortError):
        encoder.embed(say(1)[:800])


def test_scaled_cosine_by_hand(tmp_path: Path) -> None:
    """Sides in units of their deviations: people (-1, -1), (1, 1), whatever the units; the trials
    (-1, 1), (1, -1), (0, 0), of which the last, the mean, tells nothing."""
    for name, rows in (("e", {"a": [0, 10], "b": [2, 9000]}), ("t", {"u": [1, 5], "v": [3, 3]})):
        rows = {key: np.array(row, np.float32) for key, row in rows.items()}
        write_archive(tmp_path / name, rows)
    pairs = {"a u": "target", "a v": "nontarget", "b u": "nontarget", "b v": "target"}
    write_map(tmp_path / "trials", pairs, blanks=True)
    files = [str(tmp_path / name) for name in ("e.scp", "t.scp", "trials", "s")]
    assert score_trials.main(["--backend", "cosine_scaled", *files]) == 0
    found = [float(line.split()[2]) for line in Path(files[-1]).read_text().splitlines()]
    assert found == pytest.approx([0, 0, 0, 0], abs=1e-6)
    side = np.array([[-1.0, 1], [1, -1], [0, 0], [-1, -1], [1, 1]])
    rows = ScaledCosine().right(side * [1, 1e4] + [5, -3])
    assert rows == pytest.approx(ScaledCosine().right(side))
    assert rows @ rows.T == pytest.approx(np.sign(side @ side.T), abs=1e-6)


def test_a_value_that_is_equal_for_all_tells_nothing() -> None:
    """Nor does the rounding of its mean; a side of equal vectors has nothing to compare."""
    rows = np.array([[0.1, 1], [0.1, 2], [0.1, 4]])
    assert not standardise(rows)[:, 0].any() and standardise(rows)[:, 1].std() == pytest.approx(1)
    refuses("3 x-vectors are zero: there is nothing", ScaledCosine().right, rows[[0, 0, 0]])
