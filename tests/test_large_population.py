"""Simulated speakers: what is fitted comes out again, and the curve against their number."""

from pathlib import Path

import numpy as np
import pytest

from local import measure_large
from local.report.large import read_points
from steps.generators.populations import Recipe, make_population
from steps.speaker.population import fit_population
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


def test_too_few_x_vectors() -> None:
    vectors, utt2spk, genders, _ = real(10, each=1)
    with pytest.raises(UserError, match="several"):
        fit_population(vectors, utt2spk, genders)


def test_curve_of_original_and_of_pseudo_speakers(tmp_path: Path) -> None:
    sources, pool = write_sources(tmp_path / "sources", 12), write_sources(tmp_path / "pool", 8)
    conf, out = tmp_path / "random.yaml", tmp_path / "out.tsv"
    conf.write_text("generator: {name: random, averaged: 1}\n")
    common = ("--sources", *sources, "--populations", 2)
    given = ("--pool", pool[0], "--pool-data", pool[1], "--conf", conf)

    def run(*options: object) -> list[float]:
        assert measure_large.main(words(*common, *options, "--sizes", 20, 40, "--", out)) == 0
        points = read_points("x", out)
        assert [p.speakers for p in points] == [20, 20, 40, 40]
        assert all(p.eer_least <= p.eer <= p.eer_most for p in points)
        return [p.eer for p in points]

    assert max(run()) < 0.5
    two, same = run(*given), run(*given, "--voices", "same")
    assert np.mean(two) == pytest.approx(0.5, abs=0.06)  # nothing of the speaker is left
    assert max(same) < np.mean(two)  # the same voice on both sides betrays him
    assert np.mean(run(*given, "--leak", "1")) < np.mean(two) - 0.05


def test_real_x_vectors_and_bad_inputs(tmp_path: Path) -> None:
    one, two = write_sources(tmp_path / "a", 12), write_sources(tmp_path / "b", 12)
    out = tmp_path / "out.tsv"
    both = ("--real", "--sources", *one, "--sources", *two, "--sizes", 6, 100)
    # Both sets have the same ids here: an utterance is not compared with itself.
    assert measure_large.main(words(*both, "--populations", 3, "--", out)) == 0
    points = read_points("real", out)
    assert [p.speakers for p in points] == [6, 6, 6, 12]
    assert points[-1].n_target == 12 * 2 * 2 - 24
    with pytest.raises(UserError, match="two sets"):
        measure_large.main(words("--real", "--sources", *one, "--", out))
    with pytest.raises(UserError, match="from 2 speakers"):
        measure_large.main(words("--sources", *one, "--sizes", 1, "--", out))
    out.write_text("nonsense\n")
    with pytest.raises(UserError, match="not a table"):
        read_points("real", out)
