"""Streaming scores of all pairs: the same figures as the exact tool, in parts, after a kill."""

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from local.large import main
from local.metrics.large import bounds, figures, report
from local.metrics.verification import prepare, verification
from steps.populations import pairs
from steps.populations.pairs import (
    NONTARGET,
    TARGET,
    Bins,
    PairSide,
    ScoreCounts,
    count_pairs,
    make_plan,
)
from steps.speaker.backends import CosineBackend, PldaBackend, shorten, train_backend
from tests.refusals import accepts, refuses, refuses_words
from tests.scored import people_of
from tests.waiting import LIMIT
from tests.world import write_people
from utils.cli import LossError, UserError
from utils.trials import Trials

ROOT = Path(__file__).resolve().parents[1]
D = 24
Sides = tuple[PairSide, PairSide]


def make_side(
    rng: np.random.Generator, means: np.ndarray, each: int, prefix: str, noise: float = 1.0
) -> PairSide:
    """Utterances of speakers s0, s1 ... around their means."""
    ids = [f"{prefix}{spk}-{i}" for spk in range(len(means)) for i in range(each)]
    speakers = [f"s{spk:03d}" for spk in range(len(means)) for _ in range(each)]
    x = np.repeat(means, each, axis=0) + noise * rng.standard_normal((len(ids), D))
    genders = [("f", "m")[int(spk[1:]) % 2] for spk in speakers]
    return PairSide(ids, speakers, x.astype(np.float32), np.ones(len(ids)), genders)


@pytest.fixture
def sides() -> Sides:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((40, D))
    return make_side(rng, means, 3, "e"), make_side(rng, means, 7, "t")


def trained_backend() -> PldaBackend:
    rng = np.random.default_rng(1)
    side = make_side(rng, rng.standard_normal((60, D)), 6, "b")
    vectors = dict(zip(side.ids, np.asarray(side.vectors), strict=True))
    return train_backend(vectors, dict(zip(side.ids, side.speakers, strict=True)), 12)


def exact(enrol: PairSide, trial: PairSide, backend: object) -> tuple[np.ndarray, np.ndarray]:
    """All scores (n, m) in float64, and where the speakers are the same."""
    left = backend.left(np.asarray(enrol.vectors, np.float64), enrol.counts)
    right = backend.right(np.asarray(trial.vectors, np.float64))
    return left @ right.T, np.array(enrol.speakers)[:, None] == np.array(trial.speakers)


def total_of(
    enrol: PairSide, trial: PairSide, backend: object, nj: int = 1, **options: object
) -> object:
    return count_pairs(make_plan(enrol, trial, backend, **{"n_groups": 8, **options}), nj=nj)


Report = dict[str, Any]


def compared(
    pair: Sides, backend: Any, among: np.ndarray | None = None, **options: object
) -> tuple[Report, Report, np.ndarray, np.ndarray]:
    """Figures of all pairs and those of the exact tool; scores of the pairs `among` all, and
    which are targets. The numbers of both kinds of pairs are right."""
    made = report(total_of(*pair, backend, **options))
    scores, same = exact(*pair, backend)
    if among is not None:
        scores, same = scores[among], same[among]
    wanted = prepare(scores.ravel(), same.ravel()).figures()
    assert wanted is not None
    assert (made["n_target"], made["n_nontarget"]) == (same.sum(), (~same).sum())
    return made, wanted, scores, same


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cosine", "plda"])
def test_figures_are_those_of_the_exact_tool(sides, kind):
    backend = CosineBackend() if kind == "cosine" else trained_backend()
    bins = Bins(-1.0, 1.0) if kind == "cosine" else None
    made, wanted, scores, same = compared(sides, backend, bins=bins)
    assert made["eer"] == pytest.approx(wanted["eer"], abs=1e-4)
    for name, (low, high) in made["bounds"].items():
        assert low - 1e-6 <= wanted[name] <= high + 1e-6, name
        assert low - 1e-12 <= made[name] <= high + 1e-12, name
        # Some figures of few trials hang on single scores, so not all are this close.
        assert high - low < 0.02, name
    for kind_, mask in (("target", same), ("nontarget", ~same)):
        found = [scores[mask].min(), scores[mask].max()]
        assert made["extremes"][kind_] == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize("width", [1.0, 0.05, 1e-4])
def test_squeezed_scores_are_within_the_stated_bound(width):
    rng = np.random.default_rng(2)
    t = 1.0 - width * rng.beta(2.0, 5.0, 20_000)
    n = 1.0 - width * rng.beta(5.0, 2.0, 200_000)
    wanted = prepare(np.concatenate([t, n]), np.arange(220_000) < 20_000).figures()
    assert wanted is not None
    edges = Bins(-1.0, 1.0).edges
    counts = np.stack([np.histogram(x, edges)[0] for x in (n, t)])
    by_bin = counts.astype(np.float64)
    found = figures(by_bin[TARGET], by_bin[NONTARGET])
    limits = bounds(by_bin[TARGET], by_bin[NONTARGET])
    assert found is not None
    for name, (low, high) in limits.items():
        assert low - 1e-9 <= wanted[name] <= high + 1e-9, name
    if width >= 0.05:  # 1600 bins and more hold scores
        assert abs(found["eer"] - wanted["eer"]) < 1e-4
    if width == 1e-4:  # 3 bins: the bounds say so
        assert limits["eer"][1] - limits["eer"][0] > 1e-2


def test_a_pair_of_an_utterance_with_itself_is_no_trial(sides):
    twice, others = (sides[1], sides[1]), ~np.eye(len(sides[1]), dtype=bool)
    made, wanted, _, _ = compared(twice, CosineBackend(), others, bins=Bins(-1.0, 1.0))
    assert made["n_same_utterance"] == len(sides[1])
    assert made["eer"] == pytest.approx(wanted["eer"], abs=1e-4)
    assert made["extremes"]["target"][1] < 0.999


def test_scores_outside_of_the_bins_are_not_lost(sides):
    made, wanted, scores, _ = compared(sides, CosineBackend(), bins=Bins(-0.2, 0.5))
    assert made["n_below_bins"] == pytest.approx((scores < -0.2).sum(), abs=1)
    assert made["n_above_bins"] == pytest.approx((scores >= 0.5).sum(), abs=1)
    for name, (low, high) in made["bounds"].items():
        assert low - 1e-6 <= wanted[name] <= high + 1e-6, name


def test_intervals_are_those_of_the_exact_tool_where_groups_are_speakers(sides):
    enrol, trial = sides
    made = report(total_of(enrol, trial, CosineBackend(), n_groups=64), n_bootstrap=60, seed=5)
    scores, same = exact(enrol, trial, CosineBackend())
    trials = Trials(
        np.repeat(enrol.ids, len(trial)).tolist(), [*trial.ids] * len(enrol), same.ravel()
    )
    utt2spk = {u: s for side in sides for u, s in zip(side.ids, side.speakers, strict=True)}
    speakers = people_of(trials, utt2spk)
    wanted = verification(trials, scores.ravel(), speakers=speakers, n_bootstrap=60, seed=5)
    for name in ("eer", "eer_rocch", "cllr_min", "d_ece"):
        assert made["intervals"][name] == pytest.approx(wanted["intervals"][name], abs=4e-3), name


def test_short_rows_of_plda_give_the_same_scores():
    backend, rng = trained_backend(), np.random.default_rng(4)
    x, y = rng.standard_normal((30, D)), rng.standard_normal((50, D))
    counts = rng.integers(1, 5, 30).astype(np.float64)
    short = shorten(backend, counts)
    assert short is not backend
    assert short.left(x, counts).shape[1] < backend.left(x, counts).shape[1]
    wanted = backend.left(x, counts) @ backend.right(y).T
    np.testing.assert_allclose(short.left(x, counts) @ short.right(y).T, wanted, atol=1e-10)
    assert shorten(backend, np.arange(1.0, 31.0)) is backend  # as many counts as dimensions


def test_hand_computed_bounds():
    # Two bins: 3 nontargets and 1 target, then 1 and 3. The ROC goes through P_miss = P_fa = 1/4.
    t, n = np.array([1.0, 3.0]), np.array([3.0, 1.0])
    assert bounds(t, n)["eer"] == (0.25, 0.25)
    # One bin of everything: nothing is known.
    t, n = np.array([4.0]), np.array([4.0])
    assert bounds(t, n)["eer"] == (0.0, 1.0)
    assert bounds(t, n)["cllr_min"] == pytest.approx((0.0, 1.0))
    assert figures(t, n)["d_ece"] == 0.0
    assert figures(t, np.zeros(1)) is None
    assert figures(t, n)["eer"] == 0.5


# The program.


def write_side(folder: Path, side: PairSide) -> tuple[str, str]:
    """x-vectors and a data directory."""
    genders = dict(zip(side.speakers, side.genders or ["f"] * len(side), strict=True))
    vectors, of = (dict(zip(side.ids, own, strict=True)) for own in (side.vectors, side.speakers))
    return write_people(folder, vectors, of, spk2gender=genders)


@pytest.fixture
def written(tmp_path: Path, sides: Sides) -> list[str]:
    return [*write_side(tmp_path / "enrol", sides[0]), *write_side(tmp_path / "trial", sides[1])]


def test_a_centred_cosine_is_refused_as_sides_are_read_in_parts(written, tmp_path):
    refuses_words("centres whole sides", main, "--backend", "cosine", *written, tmp_path / "j")


@pytest.mark.slow
def test_the_program_with_one_job_and_several(written, tmp_path):
    for name, jobs in (("a.j", "1"), ("b.j", "3")):
        options = ["--nj", jobs, "--bootstrap", "10", "--enrol", "mean"]
        accepts(main, *options, *written, tmp_path / name)
    one, other = ((tmp_path / name).read_text() for name in ("a.j", "b.j"))
    assert one == other
    assert not list(tmp_path.glob("*.partial"))
    made = json.loads(one)
    assert (made["n_enrol"], made["n_enrol_utterances"], made["enrol"]) == (40, 120, "mean")
    assert made["intervals"]["eer"][0] <= made["eer"] <= made["intervals"]["eer"][1]


COUNT_AND_DIE = """
import os
from local import large
def deadly(name, unit):
    def cells(found):
        for number, cell in enumerate(found):
            if number == 7:
                os.kill(os.getpid(), 9)
            yield cell
    return cells
large.progress = deadly
from steps.populations import pairs
always = pairs.count_pairs
pairs.count_pairs = lambda *given, **named: always(*given, **named, every=0.0)
large.main()
"""


@pytest.mark.slow
def test_a_killed_count_goes_on(written, tmp_path):
    whole, out = tmp_path / "whole.j", tmp_path / "x.j"
    accepts(main, "--groups", "30", *written, whole)
    command = [sys.executable, "-c", COUNT_AND_DIE, "--groups", "30", *written, str(out)]
    assert subprocess.run(command, cwd=ROOT).returncode == -signal.SIGKILL
    with np.load(tmp_path / "x.j.partial") as file:
        assert int(file["done"]) == 7
    # A checkpoint of other pairs is refused, and so is a damaged one.
    kept = (tmp_path / "x.j.partial").read_bytes()
    refuses_words("of other x-vectors", main, "--groups", "29", *written, out)
    (tmp_path / "x.j.partial").write_bytes(kept[:-9])
    refuses_words("delete it and count again", main, "--groups", "30", *written, out)
    (tmp_path / "x.j.partial").write_bytes(kept)
    accepts(main, "--groups", "30", *written, out)
    assert out.read_text() == whole.read_text()


def test_bad_input_is_one_line(written, sides, tmp_path):
    trial, out = sides[1], tmp_path / "x.j"

    def fails(pattern: str, *arguments: str, kind: type[UserError] = UserError) -> None:
        refuses_words(pattern, main, *arguments, out, kind=kind)
        assert not out.exists()

    utt2spk = tmp_path / "trial" / "utt2spk"
    whole = utt2spk.read_text()
    (tmp_path / "trial/spk2utt").unlink()
    utt2spk.write_text(whole.split("\n", 1)[1])
    fails("without a speaker in utt2spk", *written)
    utt2spk.write_text(whole + "zzz s000\n")
    fails("have no x-vector", *written, kind=LossError)
    utt2spk.write_text(whole)
    fails("bins from 1.0 to -1.0", "--range", "1", "-1", *written)
    x = np.array(trial.vectors)
    x[5, 13] = np.nan
    moved, others = ["f"] * len(trial), [f"x{s}" for s in trial.speakers]
    for name, options, changed, said in (
        ("others", (), {"speakers": others, "genders": None}, "no target pair"),
        ("short", (), {"vectors": x[:, :9]}, "24 dimensions, .* of 9"),
        ("nan", (), {"vectors": x}, "t0-5.*finite"),
        ("moved", ("--same-gender",), {"genders": moved}, "different genders"),
    ):
        side = write_side(tmp_path / name, replace(trial, **changed))
        fails(said, *options, *written[:2], *side)
    fails("tried and enrolled", "--enrol", "mean", *written[:2], *written[:2])


def test_huge_vectors_are_refused(sides):
    raw = SimpleNamespace(dim=None, left=lambda x, _: 1e18 * x, right=lambda x: 1e18 * x)
    refuses("too large", make_plan, *sides, raw)


def test_a_full_disk_ended_a_count_only_when_all_was_counted(sides, tmp_path, monkeypatch):
    always, counted, ended = pairs.count_cell, [], threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            ended.set()
            super().shutdown(wait=wait)

    def count(*given: Any) -> ScoreCounts:
        if counted:  # the second cell waits until the error has ended the pool
            assert ended.wait(LIMIT)
        counted.append(given)
        return always(*given)

    def full(*_: object) -> None:
        raise OSError("no space left")

    for name, made in (("ThreadPoolExecutor", Pool), ("count_cell", count), ("atomic_write", full)):
        monkeypatch.setattr(pairs, name, made)
    plan = make_plan(*sides, CosineBackend(), n_groups=12)
    beside = {"checkpoint": tmp_path / "x.partial", "every": 0.0}
    refuses("no space left", count_pairs, plan, **beside, kind=OSError)
    assert len(counted) <= 2 < len(plan.cells)
