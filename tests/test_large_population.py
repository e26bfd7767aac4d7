"""Simulated speakers: what is fitted comes out again, and the curve against their number."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from local import large
from local.report.curves import Point, read_points
from steps.generators.sampling import load_sampler
from steps.populations.populations import (
    Recipe,
    Simulated,
    fit_population,
    fit_sources,
    make_population,
)
from steps.sources import Resources
from tests.test_generators_recipe import words, write_sources
from utils.cli import UserError


def real(n_speakers=400, each=8, dim=5):
    rng = np.random.default_rng(0)
    spread = np.array([3.0, 2.0, 1.0, 0.5, 0.2])[:dim]
    names = [f"s{s}" for s in range(n_speakers)]
    genders = {name: "fm"[i % 2] for i, name in enumerate(names)}
    vectors, utt2spk = {}, {}
    for i, name in enumerate(names):
        voice = 10.0 * (i % 2) + spread * rng.normal(size=dim)
        for u in range(each):
            vectors[f"{name}-{u}"] = (voice + rng.normal(size=dim)).astype(np.float32)
            utt2spk[f"{name}-{u}"] = name
    return vectors, utt2spk, genders, spread


def test_a_fit_finds_the_covariances_and_draws_have_them() -> None:
    vectors, utt2spk, genders, spread = real()
    fitted = fit_population(vectors, utt2spk, genders)
    assert np.diag(fitted.within @ fitted.within.T) == pytest.approx(1.0, abs=0.1)
    assert np.diag(fitted.between @ fitted.between.T) == pytest.approx(
        spread**2, rel=0.25, abs=0.05
    )
    assert fitted.shares == {"f": 0.5, "m": 0.5}
    drawn, drawn_genders = fitted.speakers(4000, np.random.default_rng(1))
    male = np.array(drawn_genders) == "m"
    assert drawn[male].mean(axis=0) - drawn[~male].mean(axis=0) == pytest.approx(10.0, abs=0.6)
    assert drawn[male].std(axis=0) == pytest.approx(spread, rel=0.2, abs=0.1)


def test_numbers_of_utterances_are_those_of_the_paper() -> None:
    vectors, utt2spk, _, _ = real(20)
    fitted = fit_population(vectors, utt2spk, None)
    enrol, trial = make_population(fitted, Recipe(None, "two", 0.0, 0), 50, 0)
    assert (len(enrol), len(trial)) == (500, 1292)  # 50 x 25.8482
    again = make_population(fitted, Recipe(None, "two", 0.0, 0), 50, 0)
    assert np.array_equal(enrol.vectors, again[0].vectors)
    other = make_population(fitted, Recipe(None, "two", 0.0, 0), 50, 1)
    assert not np.array_equal(enrol.vectors, other[0].vectors)


LEVELS = ("utt", 40, 80), ("spk", 4, 6), ("perm", 4, 4), ("const", 1, 1)


@pytest.mark.parametrize(("level", "n_enrol", "n_both"), LEVELS)
def test_every_utterance_of_an_utterance_level_system_had_the_same_pseudo_speaker(
    tmp_path: Path, level: str, n_enrol: int, n_both: int
) -> None:
    """Four people, 10 utterances each, and the first 40 trials, of two of them; W is 0."""
    sources, pool = write_sources(tmp_path / "sources", 12), write_sources(tmp_path / "pool", 300)
    conf = tmp_path / "random.yaml"
    conf.write_text(f"{{generator: {{name: random, averaged: 1}}, level: {level}, gender: any}}\n")
    given = [(Path(sources[0]), Path(sources[1]))]
    resources = Resources()
    sampler = load_sampler(
        conf, given, resources, pool=Path(pool[0]), pool_data=Path(pool[1]), seed=0
    )
    fitted = fit_sources(given)
    fitted = replace(fitted, within=0 * fitted.within)
    sides = make_population(fitted, Recipe(sampler, "two", 0.0, 0), 4, 0)
    enrol, trial = ({tuple(vector) for vector in side.vectors[:40]} for side in sides)
    assert 0.8 * n_enrol < len(enrol) <= n_enrol  # of 300 some are drawn twice
    assert 0.8 * n_both < len(enrol | trial) <= n_both
    words_given = ("--sources", *sources, "--pool", pool[0], "--pool-data", pool[1], "--conf", conf)
    if level == "utt":
        rows = Simulated(fitted, Recipe(sampler, "two", 0.0, 0)).rows([4], [1])
        assert rows[0].voices == "each"
        with pytest.raises(UserError, match=r"level: utt.* give --voices two"):
            asked = words("populations", *words_given, "--voices", "same", "--", tmp_path / "out")
            large.main(asked)


def test_too_few_x_vectors() -> None:
    vectors, utt2spk, genders, _ = real(10, each=1)
    with pytest.raises(UserError, match="several"):
        fit_population(vectors, utt2spk, genders)


def measure(folder: Path, *options: object, parts: int = 1) -> list[Point]:
    """The three commands, as large.sh calls them."""
    shutil.rmtree(folder, ignore_errors=True)
    assert large.main(words("populations", *options, "--", folder)) == 0
    plans = sorted((folder / "plans").iterdir())
    for part in range(1, parts + 1):
        count = ("count", "--part", part, "--parts", parts)
        assert large.main(words(*count, *plans)) == 0
    curve = folder / "curve.tsv"
    assert large.main(words("curve", "--parts", parts, "--bootstrap", 20, folder, curve)) == 0
    return read_points("x", curve)


@pytest.mark.slow
def test_curve_of_original_and_of_pseudo_speakers(tmp_path: Path) -> None:
    sources, pool = write_sources(tmp_path / "sources", 12), write_sources(tmp_path / "pool", 8)
    conf, out = tmp_path / "random.yaml", tmp_path / "out"
    conf.write_text("generator: {name: random, averaged: 1}\n")
    common = ("--sources", *sources, "--populations", 2)
    given = ("--pool", pool[0], "--pool-data", pool[1], "--conf", conf)

    def run(*options: object) -> list[float]:
        points = measure(out, *common, *options, "--sizes", 20, "40:1", parts=2)
        assert [p.speakers for p in points] == [20, 20, 40]
        assert all(p.eer_least <= p.eer <= p.eer_most for p in points)
        assert all(p.eer_low < p.eer < p.eer_high for p in points)
        return [p.eer for p in points]

    assert max(run()) < 0.5
    two, same = run(*given), run(*given, "--voices", "same")
    assert np.mean(two) == pytest.approx(0.5, abs=0.06)  # nothing of the speaker is left
    assert max(same) < np.mean(two)  # the same voice on both sides betrays him
    assert np.mean(run(*given, "--leak", "1")) < np.mean(two) - 0.05


def test_real_x_vectors_and_bad_inputs(tmp_path: Path) -> None:
    one, two = write_sources(tmp_path / "a", 12), write_sources(tmp_path / "b", 12)
    out = tmp_path / "out"
    both = ("--real", "--sources", *one, "--sources", *two, "--sizes", 6, 100)
    # Both sets have the same ids here: an utterance is not compared with itself.
    points = measure(out, *both, "--populations", 3)
    assert [p.speakers for p in points] == [6, 6, 6, 12]
    assert points[-1].n_target == 12 * 2 * 2 - 24
    for options, message in (
        (("--real", "--sources", *one), "two sets"),
        (("--sources", *one, "--sizes", 1), "from 2 speakers"),
    ):
        with pytest.raises(UserError, match=message):
            large.main(words("populations", *options, "--", tmp_path / "bad"))
    assert not (tmp_path / "bad").exists()
    for options, message in (
        (("--sources", *one, "--sources", *two), "utterance s0-0 is in .*/a/xvectors, too"),
        (("--real", *both[1:7], "--sources", *two), "utterance s0-0 is in .*/b/xvectors, too"),
    ):  # the second set replaced the first in silence
        with pytest.raises(UserError, match=message):
            large.main(words("populations", *options, "--sizes", 6, "--", tmp_path / "bad"))
    (out / "plans/6.0/part.1.of.1.npz").unlink()
    with pytest.raises(UserError, match=r"6.0/part.1.of.1.npz: is missing; count part 1 of 1"):
        large.main(words("curve", out, out / "curve.tsv"))
    (out / "populations.tsv").write_text("nonsense\n")
    with pytest.raises(UserError, match=r"populations.tsv:1: not a table"):
        large.main(words("curve", out, out / "curve.tsv"))
    (out / "curve.tsv").write_text("nonsense\n")
    with pytest.raises(UserError, match="not a table"):
        read_points("real", out / "curve.tsv")


def test_whole_plans_are_kept_when_a_stopped_run_goes_on(tmp_path: Path) -> None:
    command = words("populations", "--sources", *write_sources(tmp_path / "a", 12), "--sizes", 6, 8)
    command += words("--populations", 1, "--", tmp_path / "out")
    assert large.main(command) == 0
    whole, stopped = (tmp_path / f"out/plans/{size}.0/plan.json" for size in (6, 8))
    before = [path.read_text() for path in (whole, stopped)]
    made = whole.stat().st_mtime_ns
    stopped.unlink()
    (tmp_path / "out/populations.tsv").unlink()
    assert large.main(command) == 0
    assert whole.stat().st_mtime_ns == made
    assert [path.read_text() for path in (whole, stopped)] == before
