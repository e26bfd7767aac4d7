"""Gains on the enrolment-trial lists (002, Eq. 17 to 20, Tables 3 and 4)."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.scored import compute, write_lists
from tests.test_compute_metrics import challenge
from utils.tables import write_map

LISTS = ("d_ece_oa_oo", "cllr_min_oa_oo", "g_d_ece_lists", "g_cllr_min_lists")
APART, HALF, NOTHING = ([3.0, 4.0], [1.0, 2.0]), ([9.0, 5.0], [5.0, 5.0]), ([1.0] * 2, [1.0] * 2)
Case = tuple[list[float], list[float]]


def files(folder: Path, *cases: Case) -> list[Path]:
    """Trials and scores of OO, OA and AA."""
    found: list[Path] = []
    for name, case in zip(("oo", "oa", "aa"), cases, strict=True):
        (folder / name).mkdir(parents=True)
        found += write_lists(folder / name, *case)
    return found


def speakers(folder: Path, n: int, of: int) -> Path:
    write_map(folder / "utt2spk", {f"t{i}": f"s{i % of}" for i in range(n)})
    return folder / "utt2spk"


def test_by_hand(tmp_path):
    """HALF: a target above all (LLR ∞), below it one target tied with both nontargets (LLR -ln 2).

    By Eq. 13 Z(∞) = 1/2, Z(-ln 2) = 5/2 - 4 ln 2, Z(ln 2) = ln 2 - 1/2: the D_ECE is
    (1 - ln 2)/(2 ln 2); separated lists have 1/(2 ln 2) and a C of 0.
    """
    found = compute(tmp_path, "gains", *files(tmp_path, APART, HALF, HALF))
    c = (math.log(3) / 2 + math.log(1.5)) / (2 * math.log(2))
    expected = {
        **{"d_ece_oo": 1 / (2 * math.log(2)), "d_ece_aa": (1 - math.log(2)) / (2 * math.log(2))},
        **{"cllr_min_oo": 0.0, "cllr_min_oa": c, "cllr_min_aa": c},
        **{"d_ece_oa_oo": math.log(2), "cllr_min_oa_oo": c},
        "g_d_ece_lists": 10 * math.log10(1 - math.log(2)),
        "g_cllr_min_lists": 10 * math.log10(1 - c),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert (found["n_target_oa"], found["n_nontarget_aa"], found["n_segments"]) == (2, 2, 4)


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("gender", "expected"),
    [("f", (0.9920, 0.9916, -6.994, -6.810)), ("m", (0.9996, 0.9996, -10.456, -10.226))],
)
def test_the_challenges_lists(corpora, tmp_path, gender, expected):
    """B1 of VoicePrivacy 2020; 002 prints 99.32/99.86, 99.39/99.90 %, -7.21/-10.19, -7.05/-9.95."""
    lists: list[Path] = []
    for enrol, trial in (("", ""), ("", "_anon"), ("_anon", "_anon")):
        data, results = challenge(corpora, gender, enrol, trial)
        lists += [data / "trials", results / "scores"]
    found = compute(tmp_path, "gains", *lists)
    assert [found[name] for name in LISTS[:2]] == pytest.approx(expected[:2], abs=6e-5)
    assert [found[name] for name in LISTS[2:]] == pytest.approx(expected[2:], abs=6e-4)


def test_only_the_order_of_scores_matters_and_the_people_are_drawn_for_all_lists(tmp_path):
    rng = np.random.default_rng(0)
    cases = [(list(rng.normal(gap, 1, 40)), list(rng.normal(0, 1, 60))) for gap in (3, 0.5, 1)]
    options = ["--utt2spk", speakers(tmp_path, 100, 7), "--bootstrap", 30]
    found = compute(tmp_path, "gains", *options, *files(tmp_path / "a", *cases))
    bent = [([math.exp(x) for x in t], [math.exp(x) for x in n]) for t, n in cases]
    again = compute(tmp_path, "gains", *options, *files(tmp_path / "b", *bent))
    assert {name: again[name] for name in LISTS} == {name: found[name] for name in LISTS}
    assert again["intervals"] == found["intervals"]
    alone = compute(tmp_path, "verification", *options, *files(tmp_path / "d", *cases)[4:])
    for name in ("d_ece", "cllr_min"):
        assert found["intervals"][f"{name}_aa"] == alone["intervals"][name]
    same = files(tmp_path / "c", *[cases[0]] * 3)  # a list and itself: no resample parts them
    alike = compute(tmp_path, "gains", *options, *same)
    assert [alike["intervals"][name] for name in LISTS] == [[0, 0]] * 4


def test_flat_protected_lists_give_minus_infinity_and_flat_originals_null(tmp_path, caplog):
    found = compute(tmp_path, "gains", *files(tmp_path / "a", APART, NOTHING, NOTHING))
    assert [found[name] for name in LISTS] == [1.0, 1.0, "-inf", "-inf"]
    assert not caplog.text
    found = compute(tmp_path, "gains", *files(tmp_path / "b", NOTHING, HALF, HALF))
    assert [found[name] for name in LISTS] == [None] * 4
    for name in LISTS:
        assert f"{name} is undefined: the original voices cannot be told apart" in caplog.text


def test_lists_of_different_people_are_named(tmp_path, caplog):
    lists = files(tmp_path, APART, APART, ([3.0], [1.0]))
    compute(tmp_path, "gains", "--utt2spk", speakers(tmp_path, 4, 4), *lists)
    assert "AA: no trial of 4 of 7 speakers" in caplog.text
