"""Detection and ZEBRA: against literal definitions, by hand, and in what must not matter."""

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.metrics import detection
from local.metrics.verification import prepare
from tests.scored import max_min
from utils.trials import join_scores, read_scores, read_trials

Trials = tuple[np.ndarray, np.ndarray]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)
PRIORS, WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS  # an integral over prior probabilities


def trials(targets: list[float], nontargets: list[float]) -> Trials:
    score = np.array([*targets, *nontargets], float)
    return score, np.arange(len(score)) < len(targets)


def figures(score: np.ndarray, target: np.ndarray) -> dict[str, float]:
    found = prepare(score, target).figures()
    assert found is not None
    return found


COUNTS = [(t, n) for t in range(4) for n in range(4) if t or n]

# A few values, so that ties are common.
some_trials = st.lists(
    st.tuples(st.sampled_from([-2.5, -1.0, 0.0, 0.5, 1.0, 3.0, 7.0]), st.booleans()),
    min_size=2,
    max_size=10,
).filter(lambda rows: 0 < sum(y for _, y in rows) < len(rows))


def arrays(rows: list[tuple[float, bool]]) -> Trials:
    score, target = zip(*rows, strict=True)
    return np.array(score), np.array(target)


# --- EERs of the challenges' tools ---


@given(some_trials)
def test_the_error_rate_of_kaldi_is_a_count_of_missed_targets(rows):
    """Its rule, read out for each target in turn."""
    score, target = arrays(rows)
    own, others = sorted(score[target]), sorted(score[~target])
    stops = [k for k in range(len(own))
             if others[max(len(others) - 1 - len(others) * k // len(own), 0)] < own[k]]  # fmt: skip
    wanted = Fraction(stops[0] if stops else len(own) - 1, len(own))
    assert detection.eer_kaldi(score, target) == pytest.approx(float(wanted))
    assert detection.eer_kaldi(np.exp(score), target) == detection.eer_kaldi(score, target)


def test_error_rates_of_the_challenges_of_one_score():
    for eer in (detection.eer_kaldi, detection.eer_speechbrain):
        assert eer(np.zeros(4), np.arange(4) < 2) == 0.5


VPC2020 = Path(__file__).resolve().parents[2] / "shared/corpora/vpc2020_libri_test"
# EER of the file that Kaldi's compute-eer wrote, and SpeechBrain's of the same scores, in percent.
PUBLIC = [
    ("libri_test_enrolls-libri_test_trials_f", "7.664", 7.664),
    ("libri_test_enrolls-libri_test_trials_f_anon", "46.9", 46.750),
    ("libri_test_enrolls-libri_test_trials_m", "1.114", 1.112),
    ("libri_test_enrolls-libri_test_trials_m_anon", "52.34", 52.340),
    ("libri_test_enrolls_anon-libri_test_trials_f_anon", "31.39", 31.215),
    ("libri_test_enrolls_anon-libri_test_trials_m_anon", "36.75", 36.540),
]


@pytest.mark.skipif(not VPC2020.is_dir(), reason="../shared/corpora/vpc2020_libri_test is absent")
@pytest.mark.parametrize(("lists", "kaldi", "speechbrain"), PUBLIC, ids=[row[0] for row in PUBLIC])
def test_published_error_rates_of_2020(lists, kaldi, speechbrain):
    name = lists.split("-")[1].removesuffix("_anon")
    rows = read_trials(VPC2020 / "data" / name / "trials")
    path = VPC2020 / "results" / f"ASV-{lists}" / "scores"
    score = join_scores(rows, read_scores(path), trials_path=path, scores_path=path)
    assert f"{100 * detection.eer_kaldi(score, rows.target):.4g}" == kaldi
    found = 100 * detection.eer_speechbrain(score, rows.target)
    assert found == pytest.approx(speechbrain, abs=5e-4)


# --- the definitions, taken literally ---


def literal_roc(score: np.ndarray, target: np.ndarray) -> list[tuple[Fraction, Fraction]]:
    """(P_miss, P_fa) at every threshold between distinct scores."""
    points = []
    for threshold in [*sorted(set(score)), math.inf]:
        miss = Fraction(int((score[target] < threshold).sum()), int(target.sum()))
        fa = Fraction(int((score[~target] >= threshold).sum()), int((~target).sum()))
        points.append((miss, fa))
    return points


def crossings(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Iterator[Fraction]:
    """Where the line from a to b meets P_miss = P_fa."""
    da, db = a[0] - a[1], b[0] - b[1]
    if da <= 0 <= db and da != db:
        yield a[0] + (b[0] - a[0]) * da / (da - db)


def literal_eer(score: np.ndarray, target: np.ndarray) -> Fraction:
    points = literal_roc(score, target)
    (value,) = {x for a, b in itertools.pairwise(points) for x in crossings(a, b)}
    return value


def literal_eer_rocch(score: np.ndarray, target: np.ndarray) -> Fraction:
    """The lowest crossing of any chord: the convex hull is below them all."""
    points = literal_roc(score, target)
    return min(x for a, b in itertools.combinations(points, 2) for x in crossings(a, b))


def literal_llr(score: np.ndarray, target: np.ndarray, *, laplace: bool) -> np.ndarray:
    values = sorted(set(score))
    t = [int((score[target] == v).sum()) for v in values]
    n = [int((score[~target] == v).sum()) for v in values]
    shares = max_min([1, *t, 1], [1, *n, 1])[1:-1] if laplace else max_min(t, n)
    prior = math.log(target.sum() / (~target).sum())
    logit = {
        v: (math.inf if p == 1 else -math.inf if p == 0 else math.log(p / (1 - p))) - prior
        for v, p in zip(values, shares, strict=True)
    }
    return np.array([logit[s] for s in score])


def literal_cllr(llr: np.ndarray, target: np.ndarray) -> float:
    cost = [math.log2(1 + math.exp(-x)) if x > -700 else math.inf for x in llr[target]]
    false = [math.log2(1 + math.exp(x)) if x < 700 else math.inf for x in llr[~target]]
    return 0.5 * (np.mean(cost) + np.mean(false))


def literal_d_ece(llr: np.ndarray, target: np.ndarray) -> float:
    """Area between the prior and the posterior ECE profile (002, Eq. 11 to 13), by quadrature."""
    prior, weight = PRIORS, WEIGHTS
    with np.errstate(divide="ignore", over="ignore"):
        odds = prior / (1 - prior)
        miss = np.array([np.log2(1 + np.exp(-a) / odds) for a in llr[target]]).mean(axis=0)
        fa = np.array([np.log2(1 + np.exp(b) * odds) for b in llr[~target]]).mean(axis=0)
    entropy = -prior * np.log2(prior) - (1 - prior) * np.log2(1 - prior)
    return float(weight @ (entropy - prior * miss - (1 - prior) * fa))


@given(some_trials)
def test_every_figure_agrees_with_its_definition(rows):
    score, target = arrays(rows)
    found = figures(score, target)
    plain = literal_llr(score, target, laplace=False)
    laplace = literal_llr(score, target, laplace=True)
    assert found["eer"] == pytest.approx(float(literal_eer(score, target)), abs=1e-12)
    assert found["eer_rocch"] == pytest.approx(float(literal_eer_rocch(score, target)), abs=1e-12)
    assert found["cllr"] == pytest.approx(literal_cllr(score, target), rel=1e-12)
    assert found["cllr_min"] == pytest.approx(literal_cllr(plain, target), abs=1e-12)
    assert found["d_ece"] == pytest.approx(literal_d_ece(plain, target), abs=1e-5)
    assert found["d_ece_raw"] == pytest.approx(literal_d_ece(score, target), abs=1e-5)
    assert found["l_w"] == pytest.approx(np.abs(laplace).max() / math.log(10), abs=1e-12)


@given(st.lists(st.sampled_from(COUNTS), min_size=1, max_size=12))
def test_blocks_are_the_isotonic_regression_pooled_exactly(rows):
    t, n = [a for a, _ in rows], [b for _, b in rows]
    shares = max_min(t, n)
    starts = [i for i in range(len(t)) if i == 0 or shares[i] != shares[i - 1]]
    found = detection.pool_adjacent_violators(np.array(t, float), np.array(n, float))
    assert found.tolist() == starts


def test_pooling_of_many_points_turns_to_the_sequential_form_and_agrees():
    """A staircase that pools one step at a time, the worst case for pooling in parallel."""
    falling = np.arange(3000.0, 0.0, -1.0)
    t = np.concatenate([[1.0], np.repeat(1.0, len(falling))])
    n = np.concatenate([[0.0], falling])
    for a, b in ((t, n), (t[::-1].copy(), n[::-1].copy())):
        sequential = detection._pool_in_sequence(a.tolist(), b.tolist())
        assert detection.pool_adjacent_violators(a, b).tolist() == sequential
    rng = np.random.default_rng(0)
    y = rng.random(20000) < 1 / (1 + np.exp(-rng.normal(size=20000).cumsum() / 50))
    a, b = y.astype(float), 1.0 - y
    sequential = detection._pool_in_sequence(a.tolist(), b.tolist())
    assert detection.pool_adjacent_violators(a, b).tolist() == sequential


# --- by hand ---


def test_ordinary_scores_by_hand():
    """Targets 1 3 4, nontargets 0 2: at a threshold in (2, 3) P_miss = 1/3, P_fa = 0; in (1, 2)
    1/3 and 1/2; the ROC is level at 1/3 between. PAV blocks: {0}, {1, 2}, {3, 4}."""
    found = figures(*trials([1, 3, 4], [0, 2]))
    assert found["eer"] == pytest.approx(1 / 3)
    # Hull from (0, 1/2) to (1/3, 0): P_miss = P_fa = 1/5.
    assert found["eer_rocch"] == pytest.approx(1 / 5)
    # LLR of the middle block: ln(1/1) − ln(3/2).
    cllr_min = math.log2(1 + 3 / 2) / 3 + math.log2(1 + 2 / 3) / 2
    assert found["cllr_min"] == pytest.approx(0.5 * cllr_min)


def test_separable_and_reversed_scores():
    found = figures(*trials([3, 4], [1, 2]))
    assert (found["eer"], found["eer_rocch"], found["cllr_min"]) == (0.0, 0.0, 0.0)
    assert found["d_ece"] == pytest.approx(1 / (2 * math.log(2)), abs=1e-15)
    # Laplace: the blocks are 1 target in 3 nontargets and its mirror image.
    assert found["l_w"] == pytest.approx(math.log10(3))
    found = figures(*trials([1, 2], [3, 4]))
    assert (found["eer"], found["eer_rocch"], found["cllr_min"]) == (1.0, 0.5, 1.0)
    assert found["d_ece"] == 0.0
    assert (found["l_w"], detection.tag(found["l_w"])) == (0.0, "0")


@pytest.mark.parametrize(("n_target", "n_nontarget"), [(4, 4), (3, 7), (1, 90), (20, 7)])
def test_constant_scores(n_target, n_nontarget):
    found = figures(*trials([2.0] * n_target, [2.0] * n_nontarget))
    assert (found["eer"], found["eer_rocch"], found["cllr_min"]) == (0.5, 0.5, 1.0)
    assert found["d_ece"] == 0.0
    odds = ((n_target + 1) / (n_nontarget + 1)) / (n_target / n_nontarget)
    assert found["l_w"] == pytest.approx(abs(math.log10(odds)), abs=1e-15)


def test_one_target_and_ties():
    """The ROC falls from 1/2 straight through P_miss = P_fa at the only target; a target tied with
    a nontarget counts on neither side: P_miss 0 to 1, P_fa 1/2 to 0."""
    found = figures(*trials([1.5], [0, 1, 2, 3]))
    assert found["eer"] == 0.5
    assert found["eer_rocch"] == pytest.approx(1 / 3)  # hull: (0, 1/2) to (1, 0)
    assert figures(*trials([1], [0, 1]))["eer"] == pytest.approx(1 / 3)


def test_scores_of_800_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        found = figures(*trials([800, -800], [-800, 800]))
    assert found["cllr"] == pytest.approx(0.5 * 800 / math.log(2))
    # Z(800) = 1/2 and Z(−800) = −800 + 3/2.
    assert found["d_ece_raw"] == pytest.approx((0.5 - 800 + 1.5) / (2 * math.log(2)))
    right = figures(*trials([800, 800], [-800, -800]))
    assert right["cllr"] == 0.0
    assert right["d_ece_raw"] == pytest.approx(detection.D_ECE_MAX)


def test_the_cost_of_huge_finite_scores_was_infinite():
    """The sum of two is beyond the largest number, their mean is not."""
    found = figures(*trials([-1e308, -1e308], [0]))
    assert found["cllr"] == -found["d_ece_raw"] == pytest.approx(1e308 / (2 * math.log(2)))


def test_unbalanced_one_to_ninety():
    """The prior T/N is taken out: only the classes' distributions matter."""
    rng = np.random.default_rng(3)
    few = trials(list(rng.normal(2, 1, 100)), list(rng.normal(0, 1, 9000)))
    many = trials(list(np.tile(few[0][:100], 90)), list(few[0][100:]))
    for name in ("eer", "eer_rocch", "cllr", "cllr_min", "d_ece", "d_ece_raw"):
        assert figures(*few)[name] == pytest.approx(figures(*many)[name], abs=1e-12), name


# --- what must not matter ---


@given(some_trials, st.randoms())
def test_order_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert figures(*arrays(rows)) == pytest.approx(figures(*arrays(shuffled)), nan_ok=True)


@given(some_trials)
def test_monotone_maps_matter_to_the_raw_figures_only(rows):
    score, target = arrays(rows)
    plain, mapped = figures(score, target), figures(np.exp(score) - 3.0, target)
    for name in ("eer", "eer_rocch", "cllr_min", "d_ece", "l_w"):
        assert mapped[name] == plain[name], name


@given(some_trials)
def test_swapping_labels_and_sign_changes_nothing(rows):
    score, target = arrays(rows)
    assert figures(-score, ~target) == pytest.approx(figures(score, target), abs=1e-12, nan_ok=True)
    assert figures(score, ~target)["eer"] == pytest.approx(1 - figures(score, target)["eer"])


@given(some_trials, st.integers(2, 4))
def test_duplicating_all_trials_matters_to_laplace_only(rows, times):
    once, often = figures(*arrays(rows)), figures(*arrays(rows * times))
    for name in ("eer", "eer_rocch", "cllr", "cllr_min", "d_ece", "d_ece_raw"):
        assert often[name] == pytest.approx(once[name], abs=1e-12), name


@given(some_trials, st.data())
def test_weights_are_copies(rows, data):
    """A resample by weights equals the trials written out that often."""
    score, target = arrays(rows)
    weight = np.array([data.draw(st.integers(0, 3)) for _ in rows])
    copied = np.repeat(np.arange(len(rows)), weight)
    scored = prepare(score, target)
    found = scored.figures(weight[scored.ranking.order].astype(float))
    if not 0 < target[copied].sum() < len(copied):
        assert found is None
        return
    assert found == pytest.approx(figures(score[copied], target[copied]), abs=1e-12, nan_ok=True)


# --- Z, the tags, the profile ---


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-3, 0.1, 0.499, 0.501, 1.0, 5.0, 30.0, 100.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_z_to_the_last_digits(size, sign):
    """By its definition in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        x = Decimal(sign * size)
        u = x.exp() - 1
        exact = float(Decimal("0.5") + (x - u) / u**2)
    assert detection.z(np.array(sign * size)) == pytest.approx(exact, rel=4e-15)


def test_z_at_its_limits():
    with np.errstate(all="raise", under="ignore"):
        found = detection.z(np.array([0.0, np.inf, -np.inf, 800.0, -800.0, 1e-300]))
    assert found.tolist() == [0.0, 0.5, -np.inf, 0.5, -798.5, pytest.approx(1e-300 / 3)]


def test_tags_have_inclusive_lower_bounds():
    bounds = [0.0, 1e-9, 1.0, 2.0, 3.999, 4.0, 5.0, 6.0, math.inf]
    assert [detection.tag(x) for x in bounds] == ["0", "A", "B", "C", "C", "D", "E", "F", "F"]


@pytest.mark.parametrize(("odds", "tag"), [(10, "B"), (100, "C"), (1000, "C"), (10000, "D")])
def test_worst_case_odds_of_powers_of_ten_lie_on_the_bounds(odds, tag):
    """ln 1000 / ln 10 is 2.9999999999999996: the bounds of Table 1 need log10 itself."""
    n = odds - 1  # separable: the lower block holds 1 extra target and n + 1 nontargets
    worst = figures(*trials([1.0] * n, [0.0] * n))["l_w"]
    assert worst == math.log10(odds)
    assert detection.tag(worst) == tag


def test_the_profile_meets_cllr_and_encloses_d_ece():
    """002, section 5: the profile is C_llr at prior 1/2, and D_ECE the area under the entropy."""
    rng = np.random.default_rng(5)
    llr, target = trials(list(rng.normal(1, 2, 50)), list(rng.normal(-1, 2, 80)))
    y = target.astype(float)
    at_half = detection.ece(llr, y, 1 - y, np.array([0.5]))[0]
    assert at_half == pytest.approx(detection.cllr(llr, y, 1 - y))
    prior, one = PRIORS, np.ones(1)
    entropy = detection.ece(np.zeros(1), one, one, prior)
    assert entropy == pytest.approx(-prior * np.log2(prior) - (1 - prior) * np.log2(1 - prior))
    area = WEIGHTS @ (entropy - detection.ece(llr, y, 1 - y, prior))
    assert area == pytest.approx(detection.d_ece(llr, y, 1 - y), abs=1e-6)
