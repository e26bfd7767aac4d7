"""Leakage: ranks counted one by one, chance levels by simulation, tables 7 and 8 of 003."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from local.metrics.intervals import holm
from local.metrics.leakage import (
    RANKS,
    Embeddings,
    alignment,
    basis,
    cca_top10,
    chance_figures,
    check_same_space,
    embeddings,
    held_out_correlation,
    held_out_cosine,
    leakage,
    leakage_sums,
    permutation_tests,
    procrustes_cosine,
    rank_figures,
    search,
    unit,
)
from tests.refusals import refuses
from utils.archives import read_vectors
from utils.tables import read_map

PATHS = {"path": "x.ark", "utt2spk_path": "u"}
CURVE = (*(f"cmc_{k}" for k in RANKS), "auc_cmc")


def make(x: np.ndarray, speaker: Sequence[int] | np.ndarray) -> Embeddings:
    who = np.asarray(speaker)
    ids = [f"u{i:04d}" for i in range(len(x))]
    return Embeddings(ids, np.asarray(x, float), who, [f"s{i:03d}" for i in range(who.max() + 1)])


def figures_of(original: Embeddings, protected: Embeddings, same_utt: bool = True) -> dict:
    found = rank_figures(search(original, protected, same_utt=same_utt))
    assert found is not None
    return found


def noise(seed: int, speaker: Sequence[int] | np.ndarray, d: int) -> list[Embeddings]:
    """Two sides that have nothing in common."""
    rng = np.random.default_rng(seed)
    return [make(rng.normal(size=(len(speaker), d)), speaker) for _ in range(2)]


def counted(original: Embeddings, protected: Embeddings, same_utt: bool) -> dict[str, float]:
    """Every definition, one query and one segment at a time."""
    ranks, all_ranks, sizes = [], [], []
    for i, key in enumerate(protected.ids):
        rows = [j for j, other in enumerate(original.ids) if same_utt or other != key]
        a = protected.x[i] / np.linalg.norm(protected.x[i])
        cos = {j: round(float(a @ original.x[j] / np.linalg.norm(original.x[j])), 9) for j in rows}
        mine = [j for j in rows if original.speaker[j] == protected.speaker[i]]
        if not mine:
            continue
        best = max(cos[j] for j in mine)
        ranks.append(1 + sum(cos[j] >= best for j in rows if j not in mine))
        for j in mine:
            above = sum(cos[k] > cos[j] for k in rows)
            all_ranks.append(above + (1 + sum(cos[k] == cos[j] for k in rows)) / 2)
        sizes.append(len(rows))
    top = min(50, *sizes)
    return {
        **{f"cmc_{k}": float(np.mean([r <= k for r in ranks])) for k in RANKS},
        "auc_cmc": float(np.mean([[r <= k for r in ranks] for k in range(1, top + 1)])),
        "mean_rank": float(np.mean(ranks)),
        "mean_rank_all_mates": float(np.mean(all_ranks)),
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("same_utt", [True, False])
def test_ranks_agree_with_counting(seed, same_utt):
    """Few directions, so that many segments tie."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(6, 3))
    speaker = rng.integers(0, 5, 40)
    speaker[:5] = range(5)
    original = make(directions[rng.integers(0, 6, 40)], speaker)
    protected = make(directions[rng.integers(0, 6, 40)], speaker)
    found = figures_of(original, protected, same_utt)
    assert found == pytest.approx(counted(original, protected, same_utt))


def test_by_hand():
    """Speaker 0 at 0° and 80°, speaker 1 at 20°; queries at 5° (of 0) and at 70° (of 1)."""

    def at(*degrees: float) -> np.ndarray:
        angle = np.radians(degrees)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    found = figures_of(make(at(0, 80, 20), [0, 0, 1]), make(at(5, 70), [0, 1]))
    assert found["cmc_1"] == 0.5  # the second finds 80° first
    assert found["mean_rank"] == 1.5
    assert found["mean_rank_all_mates"] == (1 + 3 + 2) / 3
    assert found["auc_cmc"] == pytest.approx((0.5 + 1 + 1) / 3)


def test_ties_count_against_the_attacker_and_never_depend_on_order():
    sides = [make(np.ones((6, 4)), who) for who in ([0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 1])]
    found, again = (figures_of(side, side) for side in sides)
    assert found == again
    assert (found["cmc_1"], found["mean_rank"]) == (0.0, 4.0)
    assert found["mean_rank_all_mates"] == 3.5


def test_file_order_does_not_matter():
    rng = np.random.default_rng(0)
    ids = [f"s{i % 7}-{i}" for i in range(60)]
    utt2spk = {key: key.split("-")[0] for key in ids}
    sets = [{key: rng.normal(size=8).astype(np.float32) for key in ids} for _ in range(2)]
    results = []
    for order in (ids, ids[::-1]):
        sides = [embeddings({k: s[k] for k in order}, utt2spk, **PATHS) for s in sets]
        results.append(leakage(*sides, n_bootstrap=10))
    assert results[0] == results[1]


def test_scaling_and_rotation_leave_searches_alone():
    rng = np.random.default_rng(1)
    speaker = np.repeat(np.arange(10), 6)
    x, y = rng.normal(size=(60, 5)), rng.normal(size=(60, 5))
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    once = leakage(make(x, speaker), make(y, speaker))
    again = leakage(make(3 * x @ turn, speaker), make(0.1 * y @ turn, speaker))
    for name in ("cmc_1", "auc_cmc", "mean_rank_no_same_utt", "p_cos", "cca_top10"):
        assert again[name] == pytest.approx(once[name]), name


def test_copies_of_the_originals_leak_everything():
    rng = np.random.default_rng(2)
    speaker = np.repeat(np.arange(20), 20)
    original = make(rng.normal(size=(400, 6)), speaker)
    found = leakage(original, original)
    for name in ("cmc_1", "mean_rank", "auc_cmc", "cca_top10", "p_cos"):
        assert found[name] == pytest.approx(1.0, abs=1e-9 * name.startswith(("cca", "p_"))), name
    assert found["p_mse"] == pytest.approx(0.0, abs=1e-15)
    assert found["cmc_1_no_same_utt"] < 0.2  # without the source itself the voices are noise


# --- chance ---


def near_the_mean(found: dict, kind: str, runs: list[dict], names: Iterable[str]) -> None:
    """Chance levels are the means of simulations."""
    for name in names:
        values = np.array([run[name] for run in runs])
        error = 4 * values.std() / len(runs) ** 0.5
        assert found[f"{kind}_{name}"] == pytest.approx(values.mean(), abs=error), name


@pytest.mark.slow
def test_chance_of_permuted_labels_is_the_mean_of_simulations() -> None:
    rng = np.random.default_rng(3)
    speaker = np.sort(rng.integers(0, 12, 90))
    speaker[:12] = range(12)
    original, protected = noise(3, speaker, 4)
    found = chance_figures(search(original, protected, same_utt=True))
    shuffled = (make(original.x, rng.permutation(speaker)) for _ in range(300))
    runs = [figures_of(one, protected) for one in shuffled]
    near_the_mean(found, "chance", runs, [*CURVE, "mean_rank", "mean_rank_all_mates"])


@pytest.mark.slow
def test_chance_of_permuted_speakers_is_the_mean_of_simulations():
    rng = np.random.default_rng(4)
    speaker = np.repeat(np.arange(12), 8)
    voice = rng.normal(size=(12, 4))[speaker]
    original = make(voice + 0.3 * rng.normal(size=(96, 4)), speaker)
    protected = make(rng.normal(size=(96, 4)), speaker)
    found = chance_figures(search(original, protected, same_utt=True))
    renamed = (make(protected.x, rng.permutation(12)[speaker]) for _ in range(300))
    runs = [figures_of(original, one) for one in renamed]
    near_the_mean(found, "chance_clustered", runs, [*CURVE, "mean_rank"])
    # A system that leaks nothing falls below the label shuffle: clusters hold one answer each.
    assert found["chance_clustered_cmc_50"] < found["chance_cmc_50"] - 0.1


def nist(seed: int = 0) -> list[Embeddings]:
    """223 speakers, 2,983 segments of 192 dimensions, nothing shared between the two sides."""
    rng = np.random.default_rng(seed)
    return noise(seed, np.sort([*range(223), *rng.integers(0, 223, 2983 - 223)]), 192)


@pytest.mark.slow
def test_random_row_of_table_7():
    """003 shuffled segment labels: 0.48, 2.39, 4.73, 9.22, 21.48 %; its AUC must be near 0.115
    (the printed 0.015 is impossible beside them)."""
    original, protected = nist()
    found = chance_figures(search(original, protected, same_utt=True))
    printed = {1: 0.48, 5: 2.39, 10: 4.73, 20: 9.22, 50: 21.48}
    for k, percent in printed.items():
        assert 100 * found[f"chance_cmc_{k}"] == pytest.approx(percent, rel=0.025)
    assert found["chance_auc_cmc"] == pytest.approx(0.115, abs=0.003)
    simulated = figures_of(original, protected)
    for k in RANKS:  # nothing is shared and nothing clusters: a search is a draw of this chance
        p = found[f"chance_cmc_{k}"]
        assert simulated[f"cmc_{k}"] == pytest.approx(p, abs=4 * math.sqrt(p / 2983))


def test_random_row_of_table_8():
    """003: CCA 0.459, P-cosine 0.212, P-MSE 0.008 are what 2,983 × 192 give without any leakage."""
    original, protected = nist(1)
    assert cca_top10(basis(original.x), basis(protected.x)) == pytest.approx(0.459, abs=0.008)
    cosine = procrustes_cosine(unit(original.x), unit(protected.x))
    assert cosine == pytest.approx(0.212, abs=0.004)
    assert 2 * (1 - cosine) / 192 == pytest.approx(0.008, abs=0.0005)


# --- CCA and Procrustes ---


def test_procrustes_undoes_a_rotation_and_a_reflection():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(50, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for orthogonal in (turn, turn @ np.diag([1, 1, 1, -1.0])):
        found = alignment(x, x @ orthogonal)
        assert found["p_cos"] == pytest.approx(1.0)
    noisy = alignment(x, x @ turn + rng.normal(size=x.shape))
    assert np.mean((unit(x) - unit(x @ turn)) ** 2) > noisy["p_mse"]
    assert noisy["p_mse"] == pytest.approx(2 * (1 - noisy["p_cos"]) / 4)


def test_cca_by_another_road():
    """Canonical correlations are the roots of the eigenvalues of Cxx⁻¹ Cxy Cyy⁻¹ Cyx."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(300, 12))
    y = x @ rng.normal(size=(12, 12)) + 3 * rng.normal(size=(300, 12))
    xc, yc = x - x.mean(0), y - y.mean(0)
    m = np.linalg.solve(xc.T @ xc, xc.T @ yc) @ np.linalg.solve(yc.T @ yc, yc.T @ xc)
    roots = np.sqrt(np.sort(np.linalg.eigvals(m).real)[::-1])
    assert alignment(x + 100, y - 50)["cca_top10"] == pytest.approx(roots[:10].mean())


def test_dependent_columns_do_not_count_twice():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(400, 15)), rng.normal(size=(400, 15))
    once = alignment(x, y)["cca_top10"]
    more = alignment(np.hstack([x, x[:, :5] + x[:, 5:10]]), np.hstack([y, y[:, :5]]))
    assert more["cca_top10"] == pytest.approx(once)


@pytest.mark.parametrize(
    ("rows", "dims", "certain"), [(20, 30, True), (49, 30, True), (52, 30, False)]
)
def test_too_few_rows_make_cca_one(rows, dims, certain, caplog):
    """Two subspaces of 30 dimensions in one of rows − 1 meet in 60 − (rows − 1) at least."""
    rng = np.random.default_rng(8)
    found = alignment(rng.normal(size=(rows, dims)), rng.normal(size=(rows, dims)))
    assert ("1 by construction" in caplog.text) == certain
    assert (found["cca_top10"] > 1 - 1e-9) == certain


def test_undefined_alignments(caplog):
    found = alignment(np.ones((30, 3)), np.random.default_rng(0).normal(size=(30, 3)))
    assert math.isnan(found["cca_top10"])
    assert found["p_cos"] > 0
    assert "cca_top10* is undefined: the x-vectors of one side are all equal" in caplog.text
    x = np.random.default_rng(0).normal(size=(5, 1))
    assert math.isnan(alignment(x, x[::-1])["cca_top10_held_out"])
    assert "cca_top10_held_out is undefined: no fifth" in caplog.text, "null without a reason"
    found = alignment(np.zeros((0, 3)), np.zeros((0, 3)))
    assert math.isnan(found["p_cos"])
    assert "no utterance is in both sets" in caplog.text


def test_held_out_cosine():
    """A rotation is found again in others' rows; noise is not, however many dimensions."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(60, 40))
    turn = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    speaker = np.repeat(np.arange(30), 2)
    found = alignment(x, x @ turn, speaker)
    assert found["p_cos_held_out"] == pytest.approx(1.0)
    noise = alignment(x, rng.normal(size=x.shape), speaker)
    assert noise["p_cos"] > 0.5
    assert abs(noise["p_cos_held_out"]) < 0.06
    # By hand, of two speakers: each is turned as the other was, here by 90° where -90° is right.
    a, b = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, -1.0]])
    right, left = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
    pairs = np.vstack((a, b)), np.vstack((a @ right, b @ left))
    assert held_out_cosine(*pairs, np.array([0, 0, 1, 1])) == pytest.approx(-1.0)
    assert math.isnan(alignment(x, x, np.zeros(60, int))["p_cos_held_out"])


def test_directions_that_others_do_not_span_stay_where_they_are():
    """With fewer rows than dimensions the map was arbitrary there: unprotected speech had 0.90, and
    the figure changed with the order of the dimensions."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 40, 64))
    y, who, order = x + noise, np.arange(40) // 4, rng.permutation(64)
    assert held_out_cosine(unit(x), unit(x), who) == pytest.approx(1.0)
    found = held_out_cosine(unit(x), unit(y), who)
    assert held_out_cosine(unit(x)[:, order], unit(y)[:, order], who) == pytest.approx(found)


def test_held_out_correlation():
    """A linear image is found again in others' rows, whatever its scale; noise is not."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(400, 12))
    speaker = np.repeat(np.arange(40), 10)
    image = (x + 3) @ rng.normal(size=(12, 12)) * 50
    assert alignment(x, image, speaker)["cca_top10_held_out"] == pytest.approx(1.0)
    noise = alignment(x, rng.normal(size=x.shape), speaker)
    assert noise["cca_top10"] > 0.15
    assert abs(noise["cca_top10_held_out"]) < 0.05
    assert abs(noise["chance_cca_top10_held_out"]) < 0.05
    # By hand, of two speakers and one dimension: the one's y falls with x, the other's rises.
    up = np.array([[0.0], [1.0], [2.0]])
    pairs = np.vstack((up, up)), np.vstack((up, -up))
    assert held_out_correlation(*pairs, np.repeat([0, 1], 3)) == pytest.approx(-1.0)


def test_held_out_correlation_needs_more_rows(caplog):
    """52 rows are enough for 30 dimensions, but not 42 that four of five folds have."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(52, 30)), rng.normal(size=(52, 30))
    found = alignment(x, y)
    assert found["cca_top10"] < 1
    assert math.isnan(found["cca_top10_held_out"])
    # Of 25 and 25 dimensions 48 others share three at least: it changed with the order of the rows.
    x, y = rng.normal(size=(2, 60, 25))
    assert math.isnan(alignment(x, y, np.arange(60) // 3)["cca_top10_held_out"])
    assert "cca_top10_held_out is undefined: 41 segments of the others" in caplog.text
    assert math.isnan(held_out_correlation(np.ones((4, 2)), x[:4, :2], np.repeat([0, 1], 2)))


# --- permutation tests ---


@pytest.mark.parametrize("alone", [[], [8, 9]])
def test_permutation_sums_are_the_figures(alone):
    """Also beside speakers without mates, under whose names chance had also looked."""
    found = search(*noise(12, [*np.repeat(np.arange(8), 5), *alone], 3), same_utt=False)
    sums, figures, chance = leakage_sums(found), rank_figures(found), chance_figures(found)
    assert figures is not None
    for place, name in enumerate(CURVE):
        assert np.trace(sums[place]) / 40 == pytest.approx(figures[name]), name
        assert sums[place].sum() / 8 / 40 == pytest.approx(chance[f"chance_clustered_{name}"]), name
    assert -np.trace(sums[-1]) / 40 == pytest.approx(figures["mean_rank"])


def test_p_values_by_hand():
    """Three speakers, found under their own names alone: 1 of the 6 permutations is as good."""
    side = make(np.eye(3), [0, 1, 2])
    found = permutation_tests(search(side, side, same_utt=True))
    assert found["p_value_cmc_1"] == pytest.approx(1 / 6, abs=0.015)
    assert found["p_value_cmc_5"] == 1.0  # three of three are always among five
    # Each is found as the next one: 2 permutations of 6 hit nobody, 3 hit one: all are as good.
    turned = make(np.roll(np.eye(3), 1, axis=0), [0, 1, 2])
    found_turned = permutation_tests(search(side, turned, same_utt=True))
    assert found_turned["p_value_cmc_1"] == 1.0


def test_a_search_that_finds_everybody_but_the_speaker_was_no_leak():
    side, opposite = make(np.eye(8), range(8)), make(-np.eye(8), range(8))
    found = permutation_tests(search(side, opposite, same_utt=True))
    assert found["p_value_auc_cmc"] == 1.0


def test_p_values_hold_under_the_null_and_do_not_depend_on_names():
    rng = np.random.default_rng(13)
    speaker = np.repeat(np.arange(10), 4)
    small = 0
    for _ in range(60):
        sides = [make(rng.normal(size=(10, 4))[speaker], speaker) for _ in range(2)]
        small += permutation_tests(search(*sides, same_utt=True), 199)["p_value_auc_cmc"] <= 0.1
    assert small <= 13  # 6 expected; more than 13 has a probability below 0.003
    voice = rng.normal(size=(10, 8))[speaker]
    clear = make(voice, speaker), make(voice + 0.1 * rng.normal(size=voice.shape), speaker)
    assert permutation_tests(search(*clear, same_utt=True))["p_value_mean_rank"] < 0.001


def test_p_values_of_one_speaker_are_undefined(caplog):
    side = make(np.eye(3), [0, 0, 0])
    found = permutation_tests(search(side, side, same_utt=True))
    assert all(math.isnan(value) for value in found.values())
    assert "p_value_* is undefined" in caplog.text


def test_holm():
    """0.01 · 4, 0.02 · 3, 0.03 · 2, 0.9; none below a smaller one, none above 1."""
    assert holm([0.9, 0.02, 0.01, 0.03]) == pytest.approx([0.9, 0.06, 0.04, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    once = holm([math.nan, 0.01])
    assert math.isnan(once[0]) and once[1] == 0.01
    assert holm([]) == []


# --- what is refused or left out ---


def test_a_speaker_without_originals_is_named():
    alone, two = make(np.ones((1, 3)), [0]), make(np.ones((2, 3)), [0, 1])
    refuses(r"^p: speaker s001 has no segment in o", check_same_space, alone, two, "o", "p")


def test_speakers_are_matched_by_name():
    original = make(np.eye(3), [0, 1, 2])
    protected = Embeddings(["x"], np.array([[0.0, 0.0, 1.0]]), np.array([0]), ["s002"])
    _, renumbered = check_same_space(original, protected, "o", "p")
    assert figures_of(original, renumbered)["cmc_1"] == 1.0


def test_a_speaker_of_one_segment_has_no_mate_but_its_source(caplog):
    original, protected = noise(9, [0, 0, 0, 1, 1, 2], 3)
    found = leakage(original, protected)
    assert "1 queries have no segment of their own speaker" in caplog.text
    assert "_no_same_utt: s002" in caplog.text
    for name in ("cmc_1", "mean_rank"):
        by_hand = counted(original, protected, False)[name]
        assert found[f"{name}_no_same_utt"] == pytest.approx(by_hand)
    alone = leakage(*[make(np.eye(3), [0, 1, 2])] * 2)
    assert math.isnan(alone["cmc_1_no_same_utt"])
    assert "*_no_same_utt is undefined" in caplog.text


def test_intervals_are_over_the_queries_speakers():
    rng = np.random.default_rng(10)
    speaker = np.repeat(np.arange(15), 6)
    voice = rng.normal(size=(15, 8))[speaker]
    original = make(voice + 0.5 * rng.normal(size=voice.shape), speaker)
    protected = make(voice + 2.0 * rng.normal(size=voice.shape), speaker)
    found = leakage(original, protected, n_bootstrap=100)
    for name, (low, high) in found["intervals"].items():
        assert low < found[name] < high, name


def test_resamples_drew_people_of_the_gallery_who_have_no_query():
    """Two of 30 have queries: one of eight resamples held neither, and was left out."""
    rng = np.random.default_rng(0)
    speaker = np.repeat(np.arange(30), 4)
    original = make(rng.normal(size=(120, 8)), speaker)
    two = Embeddings(original.ids[:8], rng.normal(size=(8, 8)), speaker[:8], original.names)
    found = leakage(original, two, n_bootstrap=200)
    assert found["n_bootstrap_undefined"] == 0
    one = Embeddings(two.ids[:4], two.x[:4], speaker[:4], original.names)
    assert leakage(original, one, n_bootstrap=9)["intervals"]["mean_rank"] is None


def test_people_of_one_segment_took_the_intervals_of_all_searches():
    """Without their source they have nothing to find, with it they do."""
    found = leakage(*noise(0, np.arange(12), 4), n_bootstrap=50)
    assert found["intervals"]["mean_rank_no_same_utt"] is None
    low, high = found["intervals"]["mean_rank"]
    assert low < found["mean_rank"] < high


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize("gender", ["f", "m"])
def test_b1_leaks_no_more_than_chance_to_this_attacker(corpora, monkeypatch, caplog, gender):
    """Real x-vectors: a blind search among clustered originals is what B1 leaves (its EER under OA
    is 47 and 52 %), far below shuffled labels; 512 dimensions are too many for 750 rows."""
    monkeypatch.chdir(corpora / "vpc2020_libri_test")
    name = f"libri_test_trials_{gender}"
    utt2spk = read_map(f"data/{name}/utt2spk")
    vectors = [read_vectors(f"xvectors/{name}{kind}/xvector.scp") for kind in ("", "_anon")]
    sides = [embeddings(own, utt2spk, **PATHS) for own in vectors]
    found = leakage(*check_same_space(*sides, "o", "p"), n_bootstrap=300)
    for key in ("cmc_1", "cmc_10", "cmc_50", "auc_cmc"):
        low, high = found["intervals"][key]
        assert low <= found[f"chance_clustered_{key}"] <= high, key
    assert found["chance_cmc_50"] > 2 * found["cmc_50"]
    assert found["cca_top10"] == pytest.approx(1.0)
    assert "cca_top10 is 1 by construction" in caplog.text
    assert found["p_cos"] > found["chance_p_cos"] > 0.4
