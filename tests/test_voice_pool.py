"""steps/make_voice_pool.py and steps/synthesis/voices.py: target voices, read when needed."""

from pathlib import Path

import numpy as np
import pytest

from steps.make_voice_pool import main
from steps.synthesis import voices
from steps.synthesis.f0 import compute_f0_stats
from steps.synthesis.voices import VoicePool, match_vectors
from steps.synthesis.world import SILENCE
from tests.refusals import accepts, refuses
from utils.archives import write_archive

SPEAKERS = {"s1": 2, "s2": 1, "t-3": 1}
UTTS = ("s1-000", "s1-001", "s2-000", "t-3-000")


def frames(utt: str, n: int = 40) -> np.ndarray:
    """(n, 42) as `world.pack` makes them: pitch, aperiodicity, codes."""
    rng = np.random.default_rng([ord(c) for c in utt])
    f0 = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(80, 250, n))
    return np.hstack((f0[:, None], -rng.random((n, 1)), rng.standard_normal((n, 40)) - 5))


@pytest.fixture
def sources(make_data_dir, tmp_path: Path) -> tuple[Path, Path, Path]:
    """WORLD_DIR, DATA, XVECTORS of three speakers."""
    data = make_data_dir(tmp_path / "set", SPEAKERS, seconds=0.02)
    world, xvectors = tmp_path / "world", tmp_path / "xvectors"
    write_archive(world / "world", {utt: frames(utt) for utt in UTTS})
    vectors = {spk: np.full(3, float(i)) for i, spk in enumerate(SPEAKERS)}
    write_archive(xvectors / "spk_xvector", vectors)
    return world, data, xvectors


def make(sources: tuple[Path, Path, Path], out: Path, *options: str) -> VoicePool:
    accepts(main, *options, *sources, out)
    return VoicePool.load(out)


def test_a_pool(sources, tmp_path, capsys):
    pool = make(sources, tmp_path / "pool")
    assert "read 4 utterances / written 3 voices, 136 frames" in capsys.readouterr().out
    assert pool.speakers == ("s1", "s2", "t-3")
    assert pool.xvectors.dtype == np.float64
    assert pool.xvectors.tolist() == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
    assert [pool.gender(speaker) for speaker in pool.speakers] == ["f", "m", "f"]
    both = compute_f0_stats([frames("s1-000")[:, 0], frames("s1-001")[:, 0]])
    assert pool.f0("s1").n == both.n
    assert pool.f0("s1").mean == pytest.approx(both.mean, rel=1e-6)

    got = pool.frames("s1")
    assert got.envelope.shape == (68, 40)  # 34 of 40, twice
    assert got.match.shape == (68, 72)
    codes = [frames(utt)[:, 2:] for utt in ("s1-000", "s1-001")]
    loud = [np.flatnonzero(c[:, 0] > np.sort(c[:, 0])[5]) for c in codes]
    expected = np.concatenate([c[i] for c, i in zip(codes, loud, strict=True)])
    np.testing.assert_allclose(got.envelope, expected, rtol=1e-6)
    # Match vectors are of whole utterances, each for itself; then the quiet frames go.
    match = np.concatenate([match_vectors(c)[i] for c, i in zip(codes, loud, strict=True)])
    np.testing.assert_allclose(got.match, match, atol=1e-5)


def test_match_vectors_by_hand():
    rng = np.random.default_rng(5)
    codes = 3 * rng.standard_normal((20, 40)) + 7
    match = match_vectors(codes)
    assert match.shape == (20, 72)
    middle = match[:, 24:48]
    np.testing.assert_allclose(middle.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(middle.std(axis=0), 1.0, atol=1e-12)
    by_hand = (codes[10, 1] - codes[:, 1].mean()) / codes[:, 1].std()
    assert match[10, 24] == pytest.approx(by_hand)  # coefficient 1: the energy, 0, does not count
    assert match[13, 0] == match[10, 24] == match[7, 48]
    assert match[0, :24].tolist() == match[0, 24:48].tolist()  # before the start: the first
    # Another channel or level, the same vectors.
    np.testing.assert_allclose(match_vectors(2 * codes - 4), match, atol=1e-9)
    changed = codes.copy()
    changed[:, 0] += 9
    changed[:, 25:] = 0
    np.testing.assert_array_equal(match_vectors(changed), match)


def test_long_speakers_filled_the_memory(sources, tmp_path, monkeypatch):
    """Eight speakers were kept, however long: of 25 minutes each they took 0.9 GB in every job."""
    monkeypatch.setattr(voices, "_CACHED_FRAMES", 60)
    pool = make(sources, tmp_path / "pool")
    for speaker, kept in (("s2", ["s2"]), ("s1", ["s1"]), ("t-3", ["t-3"]), ("s2", ["s2"])):
        pool.frames(speaker)
        assert list(pool._cache) == kept


def test_a_pool_without_genders_says_so_when_asked(sources, tmp_path):
    (sources[1] / "spk2gender").unlink()
    pool = make(sources, tmp_path / "pool")
    refuses(r"spk2gender: the gender of s1 is not there", pool.gender, "s1")


def test_making_of_bad_input(sources, tmp_path):
    world, _, xvectors = sources
    write_archive(xvectors / "spk_xvector", {"s1": np.ones(3), "t-3": np.ones(3)})
    refuses(r"spk_xvector.scp: s2 is not in it", make, sources, tmp_path / "pool")
    silent = frames("s2-000")
    silent[:, 2] = -36.0
    write_archive(world / "world", {utt: frames(utt) for utt in UTTS} | {"s2-000": silent})
    write_archive(xvectors / "spk_xvector", {spk: np.ones(3) for spk in SPEAKERS})
    refuses("all frames of s2 are silent", make, sources, tmp_path / "pool")
    write_archive(world / "world", {utt: frames(utt)[:, :30] for utt in UTTS})
    refuses(r"world.scp: s1-000: not WORLD frames: \(40, 30\)", make, sources, tmp_path / "pool")
    (world / "world.scp").unlink()
    said = r"world.scp: is missing; make it with steps/extract_world"
    refuses(said, make, sources, tmp_path / "pool")
    assert not (tmp_path / "pool").exists()


def test_a_pool_that_was_damaged(sources, tmp_path):
    out = tmp_path / "pool"
    make(sources, out)
    lines = (out / "world.scp").read_text().splitlines(keepends=True)
    (out / "world.scp").write_text("".join(lines[1:]))
    pool = VoicePool.load(out)
    refuses(r"world.scp: s1-000 is not in it", pool.frames, "s1")
    write_archive(out / "spk_xvector", {"s1": np.ones(3)})
    refuses(r"spk_xvector.scp: s2 is not in it", VoicePool.load, out)


def test_digital_silence_around_speech_does_not_move_its_match_vectors():
    """With a quarter of zeros, one neighbour in five was another one."""
    codes = np.random.default_rng(0).normal(size=(60, 40))
    silence = np.full((20, 40), SILENCE - 1.0)
    padded = match_vectors(np.vstack([silence, codes, silence]))[20:-20]
    np.testing.assert_allclose(padded[3:-3], match_vectors(codes)[3:-3], atol=1e-12)
