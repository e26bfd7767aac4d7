"""Attackers who hear the file as it is written: content, level, energy, rhythm; weights."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from local import fuse_scores
from local.metrics.verification import fuse, learn_weights
from steps import extract_channel, score_pairs, score_trials, train_backend
from steps.channels import written
from steps.channels.written import ContentEncoder, energy_contour, rhythm_of
from steps.speaker import backends
from steps.speaker.backends import Distance, ScaledCosine, standardise
from steps.speaker.encoders import TooShortError, load_encoder
from tests.refusals import accepts, refuses, refuses_words
from tests.world import say
from utils.archives import read_vectors, write_archive
from utils.arrays import Float32, Float64
from utils.tables import invert, read_json_object, write_id_lists, write_json, write_map
from utils.trials import Trials, read_scores


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
    refuses(".", encoder.embed, say(1)[:800], kind=TooShortError)


def scored(folder: Path, backend: object, pairs: dict[str, str], *sides: str) -> list[float]:
    """Scores of pairs of the archives e and t, or of what is named."""
    write_map(folder / "pairs", pairs, blanks=True)
    files = [folder / name for name in (*(sides or ("e.scp", "t.scp")), "pairs", "s")]
    accepts(score_trials.main, "--backend", backend, *files)
    return [float(line.split()[2]) for line in (folder / "s").read_text().splitlines()]


def test_scaled_cosine_by_hand(tmp_path: Path) -> None:
    """Sides in units of their deviations: people (-1, -1), (1, 1), whatever the units; the trials
    (-1, 1), (1, -1), (0, 0), of which the last, the mean, tells nothing."""
    for name, rows in (("e", {"a": [0, 10], "b": [2, 9000]}), ("t", {"u": [1, 5], "v": [3, 3]})):
        rows = {key: np.array(row, np.float32) for key, row in rows.items()}
        write_archive(tmp_path / name, rows)
    pairs = {"a u": "target", "a v": "nontarget", "b u": "nontarget", "b v": "target"}
    assert scored(tmp_path, "cosine_scaled", pairs) == pytest.approx([0, 0, 0, 0], abs=1e-6)
    side = np.array([[-1.0, 1], [1, -1], [0, 0], [-1, -1], [1, 1]])
    rows = ScaledCosine().right(side * [1, 1e4] + [5, -3])
    assert rows == pytest.approx(ScaledCosine().right(side))
    assert rows @ rows.T == pytest.approx(np.sign(side @ side.T), abs=1e-6)


def test_a_value_that_is_equal_for_all_tells_nothing() -> None:
    """Nor does the rounding of its mean; a side of equal vectors has nothing to compare."""
    rows = np.array([[0.1, 1], [0.1, 2], [0.1, 4]])
    assert not standardise(rows)[:, 0].any() and standardise(rows)[:, 1].std() == pytest.approx(1)
    refuses("3 x-vectors are zero: there is nothing", ScaledCosine().right, rows[[0, 0, 0]])


# ---- Level and energy.

RATE = 16000


def test_level_by_hand(tmp_path: Path) -> None:
    """A sine of amplitude 1 has -3 dB, a tenth of it 20 dB less, silence a floor; the score is
    minus the distance in deviations of each side."""
    encoder = load_encoder("level")
    sine = np.sin(2 * np.pi * 100 * np.arange(RATE) / RATE)
    levels = [encoder.embed(wave) for wave in (sine, sine / 10, -sine, np.zeros(9))]
    wanted = [-3.01, -23.01, -3.01, -100]
    assert [float(level[0]) for level in levels] == pytest.approx(wanted, abs=0.01)
    write_archive(tmp_path / "e", {"a": levels[0], "b": levels[1]})
    write_archive(tmp_path / "t", {"u": np.float32([7]), "v": np.float32([8])})
    pairs = {"a u": "nontarget", "a v": "target", "b u": "target", "b v": "nontarget"}
    assert scored(tmp_path, "distance", pairs) == pytest.approx([-2, 0, 0, -2], abs=1e-6)
    write_map(tmp_path / "u", {"u": "p", "v": "q"})
    words = ["--backend", "distance", "--utt2spk", tmp_path / "u", *[tmp_path / "t.scp"] * 2]
    said = "distance scores lists of trials alone"
    refuses_words(said, score_pairs.main, *words, "t", "s")


def test_one_person_has_no_level_among_others(tmp_path: Path) -> None:
    """And equal levels tell nobody apart."""
    for name in "ab":
        write_archive(tmp_path / name, {name: np.float32([1])})
    pairs = {"a b": "target"}
    refuses("1 person is enrolled", scored, tmp_path, "distance", pairs, "a.scp", "b.scp")
    assert not Distance().rows(np.full((3, 1), -20.0)).any()


def test_contour_of_energy_by_hand() -> None:
    """Loud and 20 dB less by turns of 0.1 s, between silences of 0.2 s: half of the speech at
    0 dB, the other half at -20, in one run; with silence of 0.3 s in it, two, and one pause."""
    half = np.tile(np.repeat([1.0, 0.1], RATE // 10), 5)
    quiet = np.zeros(RATE // 5)
    wave = 0.5 * np.concatenate([quiet, half, quiet])
    contour = energy_contour(wave)
    assert sorted({*contour.round(6)}) == [-60, -20, 0] and len(contour) == 140
    encoder = load_encoder("energy")
    paused = np.concatenate([wave[:19200], np.zeros(4800), wave[3200:]])
    one, two = map(encoder.embed, (wave, paused))
    assert one[:2] == pytest.approx([-10, 10])  # mean and deviation of speech
    assert one[6:13] == pytest.approx([1, np.log(100), 0, 0, 0, 0, 1], abs=1e-6)
    assert two[12] == pytest.approx(200 / 230) and two[11] == pytest.approx(np.log(30))
    shares = np.square(one[13:25])
    assert [*shares[[0, 10]], shares.sum()] == pytest.approx([40 / 140, 50 / 140, 1])
    assert one[25:].argmax() == 6  # of 0.5, 0.7, ... Hz: 5 Hz are in the seventh band


def test_contour_does_not_hear_the_level_and_the_words_do_not_end_it() -> None:
    """Nor the sign; silence and noise have one, a tenth of a second too, less is refused."""
    encoder, wave = load_encoder("energy"), say(3)
    assert encoder.embed(-0.1 * wave) == pytest.approx(encoder.embed(wave), abs=1e-3)
    noise = np.random.default_rng(0).standard_normal(RATE)
    for odd in (np.zeros(RATE), noise, wave[:1600], wave[: RATE // 2]):
        assert np.isfinite(encoder.embed(odd)).all()
    refuses("0.09 s long; at least 0.1 s are needed", encoder.embed, wave[:1500])


# ---- Rhythm, and the Gaussian that compares it.


def test_rhythm_by_hand() -> None:
    """0.3 s of silence, 0.5 s of speech, 0.6 s of pause, 0.2 s of speech, 0.1 s of silence; frames
    within 30 ms of speech count as speech, and letters alone count."""
    parts = [(0.3, 0), (0.5, 1), (0.6, 0), (0.2, 1), (0.1, 0)]
    wave = np.concatenate([np.full(round(s * RATE), 0.1 * on) for s, on in parts])
    seconds = np.array([0.3 - 0.03, 0.1 - 0.03, 0.6 - 0.06, 0.7 + 0.12])
    found = rhythm_of(wave, "It's 5, all!")
    assert found == pytest.approx(np.log([*(seconds + 0.1), 1 + 6]))
    assert rhythm_of(-3 * wave, "it s all") == pytest.approx(found)  # nor level, nor spelling
    assert np.isfinite(rhythm_of(np.zeros(RATE), "")).all()


def test_gaussian_by_hand(tmp_path: Path) -> None:
    """People of mean 0 and deviation 3, recordings of deviation 1 around them. By Gaussians of one
    value: a recording at y is one of a person at x, of n recordings, by the ratio of two densities.
    What scales to length hears the sign alone, and is refused."""
    rng, n_people = np.random.default_rng(0), 2000
    people = rng.normal(0, 3, n_people)
    people -= people.mean()
    noise = rng.normal(0, 1, (n_people, 4))
    noise -= noise.mean(axis=1, keepdims=True)
    names = {f"p{p:04}-{r}": f"p{p:04}" for p in range(n_people) for r in range(4)}
    rows = dict(zip(names, np.float32((people[:, None] + noise).reshape(-1, 1)), strict=True))
    write_archive(tmp_path / "xvector", rows)
    write_map(tmp_path / "utt2spk", names)
    paths = [str(tmp_path), str(tmp_path), str(tmp_path / "g")]
    accepts(train_backend.main, "--gaussian", *paths)
    write_archive(tmp_path / "e/spk_xvector", {"a": np.float32([5]), "b": np.float32([-1])})
    write_map(tmp_path / "e/num_utts.ark", {"a": 1, "b": 3})
    write_archive(tmp_path / "t/xvector", {"u": np.float32([4]), "v": np.float32([20])})
    pairs = {f"{m} {u}": "target" for m in "ab" for u in "uv"}
    found = scored(tmp_path, paths[2], pairs, "e", "t")
    within, between = noise.var() * 4 / 3, people.var() - noise.var() / 3

    def score(x: float, n: int, y: float) -> float:
        known = within / n / (between + within / n)  # of the person's mean, what is not
        mean, rest = (1 - known) * x, between * known + within
        total = between + within
        return float(np.log(total / rest) + y**2 / total - (y - mean) ** 2 / rest) / 2

    wanted = [score(*x, y) for x in ((5, 1), (-1, 3)) for y in (4, 20)]
    assert found == pytest.approx(wanted, rel=0.02)
    accepts(train_backend.main, *paths)
    refuses("is of one dimension", scored, tmp_path, paths[2], pairs, "e", "t")


def test_rhythm_of_a_set(tmp_path: Path) -> None:
    """Of its audio, and of the text that was recognised; without words a recording has a
    rhythm, and without audio the channel says so."""
    write_map(tmp_path / "text", {"a-1": "go on", "a-2": ""}, blanks=True)
    for utt in ("a-1", "a-2"):
        soundfile.write(tmp_path / f"{utt}.wav", say(len(utt)), RATE)
    data = tmp_path / "d"
    write_map(data / "utt2spk", {"a-1": "a", "a-2": "a"})
    write_map(data / "spk2utt", {"a": "a-1 a-2"})
    words = ["rhythm", str(tmp_path), str(data), str(tmp_path / "x")]
    refuses("wav.scp", extract_channel.main, words)
    write_map(data / "wav.scp", {utt: tmp_path / f"{utt}.wav" for utt in ("a-1", "a-2")})
    accepts(extract_channel.main, *words)
    found = read_vectors(tmp_path / "x/xvector.scp")
    assert found["a-1"][:4] == pytest.approx(found["a-2"][:4]) and found["a-2"][4] == 0


# ---- Weights of the fusion, learnt from people who were held out.


def pairs_of(n_people: int, n_each: int) -> Trials:
    """All pairs of recordings of some people."""
    utts = [f"p{p:02}-{r}" for p in range(n_people) for r in range(n_each)]
    pairs = [(a, b) for i, a in enumerate(utts) for b in utts[i + 1 :]]
    left, right = zip(*pairs, strict=True)
    return Trials(left, right, np.array([a[:3] == b[:3] for a, b in pairs]))


def test_what_tells_nothing_has_no_weight() -> None:
    """One evaluator hears people, another nothing, the third is the first on another scale; without
    weights the scores are those of equal weights."""
    trials, rng = pairs_of(12, 5), np.random.default_rng(0)
    heard, noise = trials.target + rng.normal(0, 0.7, len(trials)), rng.normal(0, 9, len(trials))
    good, bad = learn_weights(trials, [heard, noise])
    assert good > 1 and abs(bad) < 0.1 * good
    one, other = learn_weights(trials, [heard, 5 * heard - 3])
    assert one == pytest.approx(other, rel=1e-3)
    equal = fuse(trials, [heard, noise])
    assert fuse(trials, [heard, noise], [1, 1]).tolist() == equal.tolist()
    assert fuse(trials, [heard, noise], [2, 0]) == pytest.approx(2 * fuse(trials, [heard]))


def write_held_out(folder: Path, trials: Trials, score: Float64, suffix: str = "") -> list[str]:
    """Scores of held-out people, whose recordings have a suffix by their draw; the option."""
    before = {f"{utt}{suffix}": utt for utt in {*trials.enrol, *trials.trial}}
    utt2spk = {utt: name[:3] for utt, name in before.items()}
    write_map(folder / "data/utt2spk", utt2spk)
    write_id_lists(folder / "data/spk2utt", invert(utt2spk))
    write_map(folder / "data/utt2uniq", before)
    kinds = ["target" if target else "nontarget" for target in trials.target]
    for name, values in (("trials", kinds), ("scores", score)):
        lines = zip(trials.enrol, trials.trial, values, strict=True)
        table = {f"{a}{suffix} {b}{suffix}": value for a, b, value in lines}
        write_map(folder / "held" / name, table, blanks=True)
    write_json(folder / "held/held_out.json", {"held_out_why_undefined": ""})
    return ["--learn-from", str(folder / "held"), str(folder / "data")]


def test_weights_of_held_out_people(tmp_path: Path) -> None:
    """Pairs are those of the recordings before protection, whichever draw was compared. Where
    nobody was held out all weigh the same, and it is said why."""
    trials, rng = pairs_of(12, 4), np.random.default_rng(1)
    heard, noise = trials.target + rng.normal(0, 0.5, len(trials)), rng.normal(0, 1, len(trials))
    held = write_held_out(tmp_path / "a", trials, heard)
    held += write_held_out(tmp_path / "b", trials, noise, "-draw1")
    for name, values in (("t", ["target", "nontarget"]), ("x", [1, 2]), ("y", [9, 0])):
        text = f"a u {values[0]}\nb u {values[1]}\n"
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("t", "out", "x", "y")]
    accepts(fuse_scores.main, *held, *files)
    weights = read_json_object(tmp_path / "out/weights.json", "")["weights"]
    wanted = learn_weights(trials, [heard, noise])
    assert [*weights.values()] == pytest.approx(wanted, rel=0.05) and wanted[0] > 1
    found = read_scores(tmp_path / "out/scores").score
    assert found == pytest.approx(np.array([1, -1]) * (weights[files[3]] - weights[files[2]]))
    write_json(tmp_path / "b/held/held_out.json", {"held_out_why_undefined": "3 people"})
    accepts(fuse_scores.main, *held, *files)
    told = read_json_object(tmp_path / "out/weights.json", "")
    assert set(told["weights"].values()) == {1.0} and "b/held: 3 people" in told["why_equal"]
    refuses_words("1 --learn-from for 2 SCORES", fuse_scores.main, *held[:3], *files)


def test_many_values_of_few_people_hid_what_a_plda_learns() -> None:
    """300 values, of which three tell people apart, and 24 people: on others of them the PLDA finds
    more with few principal axes than with all. As many axes as there are values change nothing."""
    rng = np.random.default_rng(0)
    spread = np.concatenate([np.full(6, 3.0), np.full(294, 0.3)])

    def draw(n_people: int, n_each: int) -> tuple[Float64, list[str]]:
        people = rng.normal(0, 1, (n_people, 300)) * np.r_[np.full(3, 3.0), np.zeros(297)]
        rows = people[:, None] + rng.normal(0, 1, (n_people, n_each, 300)) * spread
        return rows.reshape(-1, 300), [f"p{i}" for i in range(n_people) for _ in range(n_each)]

    (rows, who), (tested, own) = draw(24, 12), draw(40, 2)
    vectors = {f"{i}": row.astype(np.float32) for i, row in enumerate(rows)}
    utt2spk = dict(zip(vectors, who, strict=True))

    def named(**how: int) -> int:
        backend = backends.train_backend(vectors, utt2spk, 20, **how)
        left = backend.left(tested[::2], np.ones(40))
        return int(((left @ backend.right(tested[1::2]).T).argmax(axis=0) == np.arange(40)).sum())

    assert len(own) == 80 and named(pca_dim=10) > 1.5 * named()
    assert named(pca_dim=300) == named(pca_dim=999) == named()
