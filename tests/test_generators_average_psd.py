"""PSD: moments by hand, by Monte Carlo, what depends on what, bad inputs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from steps.generators.base import Generator, Wanted, load_generator
from steps.generators.frames import FrameGaussians, read_frames, split_variance
from steps.sources import VoiceKey
from tests.refusals import refuses
from tests.world import run_of, write_people

ROOT = Path(__file__).resolve().parents[1]

ONE, TWO = VoiceKey("spk", ("set", "s1")), VoiceKey("spk", ("set", "s2"))


def load(values: dict[str, object], seed: int = 0, draw: int = 0, **folders: Path) -> Generator:
    return load_generator(values, run_of("s.yaml", seed, draw, **folders))


# the distribution of frames


def test_moments_by_hand():
    # means 0 (three frames, variance 1) and 4 (one frame, variance 9): m = 1, and
    # v = (3 * 1 + 9) / 4 + (3 * 1 + 9) / 4 = 6
    means, variances = np.array([[0.0, 0, 0, 4]]).T, np.array([[1.0, 1, 1, 9]]).T
    mean, variance = FrameGaussians(means, variances).moments()
    assert (float(mean[0]), float(variance[0])) == (1.0, 6.0)


def test_split_variance_by_hand():
    # a: 0, 2 around 1; b: 3, 3, 6 around 4; squares 1 + 1 + 1 + 1 + 4 over 5
    vectors = np.array([[0.0], [3.0], [2.0], [3.0], [6.0]])
    means, within = split_variance(vectors, np.array(list("ababb")))
    assert means[:, 0].tolist() == [1.0, 4.0, 1.0, 4.0, 4.0]
    assert within[0] == pytest.approx(8 / 5)
    refuses("single x-vector", split_variance, vectors[:2], np.array(["a", "b"]))


# PSD as a generator

N_GROUPS, PER_GROUP, SIZE = 3, 4, 5
WriteFrames = Callable[..., Path]


def centres() -> np.ndarray:
    return 4.0 * np.eye(SIZE)[:N_GROUPS]


def psd_pool() -> tuple[np.ndarray, list[str], list[str | None]]:
    """Three clusters of four speakers, g0s0 ... g2s3; f and m by turns."""
    rng = np.random.default_rng(5)
    vectors = np.repeat(centres(), PER_GROUP, axis=0)
    vectors = vectors + 0.1 * rng.standard_normal(vectors.shape)
    names = [f"g{g}s{s}" for g in range(N_GROUPS) for s in range(PER_GROUP)]
    return vectors, names, ["fm"[s % 2] for s in range(len(names))]


@pytest.fixture
def write_frames(tmp_path: Path) -> WriteFrames:
    """A folder with six x-vectors a speaker; returns it."""

    def write(name: str = "frames", skip: str = "nobody", size: int = SIZE) -> Path:
        rng, made = np.random.default_rng(6), {}
        for vector, speaker in zip(*psd_pool()[:2], strict=True):
            for utt in range(6):
                made[f"{speaker}-{utt}"] = (vector + 0.3 * rng.standard_normal(SIZE))[:size]
        made = {utt: frame for utt, frame in made.items() if not utt.startswith(skip)}
        write_people(tmp_path / name, made, {utt: utt.partition("-")[0] for utt in made})
        return tmp_path / name

    return write


PSD: dict[str, object] = {
    "name": "psd",
    "distance": "cosine",
    "clusters": 1,
    "exclude_closest_cluster": False,
}


def psd(folder: Path, seed: int = 0, draw: int = 0, **more: object) -> Generator:
    generator = load({**PSD, **more}, seed, draw, generator=folder)
    vectors, names, genders = psd_pool()
    generator.fit(vectors, names, genders)
    return generator


def test_psd_samples_have_the_moments_of_the_frames(write_frames):
    folder = write_frames()
    generator = psd(folder)
    keys = (VoiceKey("utt", ("set", f"{n}")) for n in range(2000))
    made = np.array([generator.generate(Wanted(key))[0] for key in keys])
    info = generator.generate(Wanted(ONE))[1]
    cohort = str(info["speakers"]).split(",")
    assert len({name[:2] for name in cohort}) == 1 and info["frames"] == 6 * len(cohort)
    mean, variance = read_frames(folder, None).of(cohort).moments()
    assert np.abs((made.mean(axis=0) - mean) / np.sqrt(variance)).max() < 0.2
    np.testing.assert_allclose(made.var(axis=0), variance, rtol=0.15)


def test_psd_depends_on_key_seed_and_draw_alone(write_frames):
    folder = write_frames()
    generator = psd(folder)
    y = generator.generate(Wanted(ONE))[0]
    generator.generate(Wanted(TWO))
    assert np.array_equal(generator.generate(Wanted(ONE))[0], y)
    for other in (psd(folder, draw=1), psd(folder, seed=1)):
        assert not np.array_equal(other.generate(Wanted(ONE))[0], y)
    assert not np.array_equal(generator.generate(Wanted(TWO))[0], y)


def test_psd_cohort_is_that_of_the_speaker_and_not_the_sources(write_frames):
    generator = psd(write_frames(), clusters=10, exclude_closest_cluster=True)
    clusters = set()
    for n in range(40):
        group = ("set", f"s{n}")
        keys = [VoiceKey("utt", ("set", f"s{n}-{u}"), group) for u in range(2)]
        infos = [generator.generate(Wanted(key, centres()[1]))[1] for key in keys]
        assert infos[0]["cluster"] == infos[1]["cluster"]
        clusters.add(str(infos[0]["cluster"])[:2])
    assert clusters == {"g0", "g2"}


def test_psd_frames_of_nobody_were_a_traceback(write_frames):
    folder = write_frames()
    rows = (folder / "utt2spk").read_text().splitlines(keepends=True)
    (folder / "utt2spk").write_text("".join(rows[1:]))
    refuses("g.* has an x-vector, but no speaker", psd, folder)


def test_psd_folder_of_the_program_that_trains_generators(write_frames, tmp_path, run_program):
    folder, data = write_frames(), tmp_path / "data"
    data.mkdir()
    (folder / "utt2spk").rename(data / "utt2spk")  # then the speakers are those of the data
    conf = ROOT / "egs/TEMPLATE/conf/generators/psd.yaml"
    done = run_program("steps/train_generator.py", conf, folder, data, tmp_path / "made", status=0)
    made = psd(tmp_path / "made").generate(Wanted(ONE))[0]
    (folder / "utt2spk").write_text((data / "utt2spk").read_text())
    assert np.array_equal(made, psd(folder).generate(Wanted(ONE))[0])
    conf = tmp_path / "psd.yaml"
    conf.write_text("generator: psd\nscale: 2\n")
    done = run_program("steps/train_generator.py", conf, folder, data, tmp_path / "no")
    assert (done.returncode, (tmp_path / "no").exists()) == (2, False)


def test_psd_bad_inputs(write_frames):
    refuses("g1s2 of the pool has no frames", psd, write_frames("short", skip="g1s2"))
    refuses("frames have 4 values", psd, write_frames("narrow", size=4))
