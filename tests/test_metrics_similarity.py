"""Similarity matrices: against loops over cells, the papers' figures, and what must be refused."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from local.metrics import similarity as module
from local.metrics.intervals import multiplicities, percentiles
from local.metrics.similarity import (
    SETTINGS,
    SegmentPairs,
    check_cells,
    common_speakers,
    gain_db,
    loss,
    segment_pairs,
    similarity,
)
from tests.refusals import refuses
from tests.scored import max_min, trials_of
from utils.archives import read_vectors
from utils.tables import read_map

PATHS = {"trials_path": "t", "utt2spk_path": "u"}
Rows = list[tuple[str, str, float]]


def speaker(utt: str) -> str:
    return utt.split("-")[0]


def pairs(rows: Rows) -> SegmentPairs:
    trials = trials_of((a, b, speaker(a) == speaker(b)) for a, b, _ in rows)
    utt2spk = {utt: speaker(utt) for a, b, _ in rows for utt in (a, b)}
    return segment_pairs(trials, np.array([s for *_, s in rows]), utt2spk, **PATHS)


def report(rows: dict[str, Rows], **options: int) -> dict:
    sets = {setting: pairs(rows[setting]) for setting in SETTINGS}
    names = common_speakers(sets, {s: s for s in SETTINGS})
    for setting in SETTINGS:
        check_cells(sets[setting], setting, symmetric=setting != "op")
    return similarity(sets, names, **options)


@pytest.fixture
def rows() -> dict[str, Rows]:
    return example()


def example(
    n_speakers: int = 4, seed: int = 0, leak: float = 0.5, digits: int = 1
) -> dict[str, Rows]:
    """Speakers with 2, 3, ... segments; each unordered pair once in OO and PP, all pairs in OP."""
    rng = np.random.default_rng(seed)
    utts = [f"s{i}-{j}" for i in range(n_speakers) for j in range(2 + i)]
    found: dict[str, Rows] = {}
    for s, shift in {"oo": 3.0, "op": leak, "pp": 1.5}.items():
        wanted = [
            (a, b) for i, a in enumerate(utts) for b in (utts if s == "op" else utts[i + 1 :])
        ]
        own = [shift * (speaker(a) == speaker(b)) for a, b in wanted]
        scores = [round(float(x + rng.normal()), digits) for x in own]
        found[s] = [(*pair, x) for pair, x in zip(wanted, scores, strict=True)]
    return found


# --- the definitions in loops ---


def looped_llr(rows: Rows) -> list[float]:
    """PAV with Laplace's rule by the max-min formula, one score at a time."""
    values = sorted({s for *_, s in rows})
    t = [1] + [sum(speaker(a) == speaker(b) for a, b, s in rows if s == v) for v in values] + [1]
    n = [1] + [sum(speaker(a) != speaker(b) for a, b, s in rows if s == v) for v in values] + [1]
    prior = math.log((sum(t) - 2) / (sum(n) - 2))
    at = {
        v: math.log(q / (1 - q)) - prior for v, q in zip(values, max_min(t, n)[1:-1], strict=True)
    }
    return [at[s] for *_, s in rows]


def looped(rows: Rows, symmetric: bool) -> dict[str, dict[tuple[str, str], float]]:
    """Cells of 002 Eq. 6 and 000 Eq. 2, a pair at a time."""
    rows = [row for row in rows if row[0] != row[1]]
    cells: dict[tuple[str, str], list[float]] = {}
    for (a, b, _), llr in zip(rows, looped_llr(rows), strict=True):
        cells.setdefault((speaker(a), speaker(b)), []).append(llr)
        if symmetric:
            cells.setdefault((speaker(b), speaker(a)), []).append(llr)
    sigmoid = {k: [1 / (1 + math.exp(-x)) for x in v] for k, v in cells.items()}
    return {
        "sim": {k: math.prod(x ** (1 / len(v)) for x in v) for k, v in sigmoid.items()},
        "sim2020": {k: 1 / (1 + math.exp(-np.mean(v))) for k, v in cells.items()},
        "cells": cells,  # type: ignore[dict-item]
    }


def looped_d_diag(sim: dict[tuple[str, str], float]) -> float:
    own = [v for (a, b), v in sim.items() if a == b]
    other = [v for (a, b), v in sim.items() if a != b]
    return abs(sum(own) / len(own) - sum(other) / len(other))


def dominance_of_row(name: str, row: dict[str, float]) -> float:
    return abs(row[name] - float(np.mean([x for other, x in row.items() if other != name])))


@pytest.mark.parametrize("seed", range(3))
def test_everything_agrees_with_loops_over_cells(seed):
    rows = example(seed=seed)
    found = report(rows)
    d, d2020 = {}, {}
    for s in SETTINGS:
        expected = looped(rows[s], symmetric=s != "op")
        for kind in ("sim", "sim2020"):
            matrix = found[f"{kind}_{s}"]
            assert list(matrix) == sorted(matrix)
            cells = {(a, b): v for a, row in matrix.items() for b, v in row.items()}
            assert cells == pytest.approx(expected[kind], abs=1e-12)
        d[s], d2020[s] = looped_d_diag(expected["sim"]), looped_d_diag(expected["sim2020"])
        assert found[f"d_diag_{s}"] == pytest.approx(d[s], abs=1e-12)
        rows_of = {a: dominance_of_row(a, row) for a, row in found[f"sim_{s}"].items()}
        assert found[f"d_diag_{s}_per_speaker"] == pytest.approx(rows_of)
        for name, point in found[f"zoo_{s}"].items():
            cells = expected["cells"]
            impostor = [x for (a, b), v in cells.items() if a == name != b for x in v]  # type: ignore[attr-defined]
            assert point == pytest.approx([np.mean(cells[name, name]), np.mean(impostor)])
    assert found["deid"] == pytest.approx(1 - d["op"] / d["oo"])
    assert found["g_vd"] == pytest.approx(10 * math.log10(d["pp"] / d["oo"]))
    assert found["deid_2020"] == pytest.approx(1 - d2020["op"] / d2020["oo"])
    assert found["g_vd_2020"] == pytest.approx(10 * math.log10(d2020["pp"] / d2020["oo"]))
    oo, op, pp = (np.array([*found[f"d_diag_{s}_per_speaker"].values()]) for s in SETTINGS)
    assert [*found["deid_per_speaker"].values()] == pytest.approx(1 - op / oo)
    assert [*found["g_vd_per_speaker"].values()] == pytest.approx(10 * np.log10(pp / oo))


def test_two_speakers_by_hand():
    """Separable OO: PAV with Laplace gives targets ln(3/1) − ln(2/4), others ln(1/5) − ln(2/4)."""
    oo: Rows = [("a-1", "a-2", 9.0), ("b-1", "b-2", 8.0)]
    oo += [(f"a-{i}", f"b-{j}", -1.0 - i - j) for i in (1, 2) for j in (1, 2)]
    flat = [(a, b, 0.0) for a, b, _ in oo]
    op = [(x, y, 0.0) for x in ("a-1", "a-2", "b-1", "b-2") for y in ("a-1", "a-2", "b-1", "b-2")]
    found = report({"oo": oo, "op": op, "pp": flat})
    own, other = 6 / 7, 0.4 / 1.4  # odds 6 and 0.4
    assert found["sim_oo"] == {
        "a": {"a": pytest.approx(own), "b": pytest.approx(other)},
        "b": {"a": pytest.approx(other), "b": pytest.approx(own)},
    }
    assert found["d_diag_oo"] == pytest.approx(own - other)
    assert (found["deid"], found["g_vd"]) == (pytest.approx(1.0), -math.inf)
    assert (found["g_d_ece"], found["g_cllr_min"]) == (-math.inf, -math.inf)
    assert found["zoo_oo"]["a"] == pytest.approx([math.log(6), math.log(0.4)])
    assert found["n_target_op"] == 4  # of 16 pairs, 4 are of one utterance with itself
    assert (found["n_speakers"], found["n_segments"], found["n_target_oo"]) == (2, 4, 2)


def test_pairs_of_one_utterance_are_dropped_before_calibration(rows):
    with_itself = {s: r + [(a, a, 99.0) for a in {a for a, _, _ in r}] for s, r in rows.items()}
    with_itself["op"] = rows["op"]
    assert report(with_itself) == report(rows)


def test_either_order_or_both_may_be_listed():
    rows = example(digits=6)
    turned = {
        s: [(b, a, x) if i % 2 and s != "op" else (a, b, x) for i, (a, b, x) in enumerate(r)]
        for s, r in rows.items()
    }
    once, other = report(rows), report(turned)
    assert other["sim_oo"] == {a: pytest.approx(row) for a, row in once["sim_oo"].items()}
    assert other["zoo_pp"] == {a: pytest.approx(row) for a, row in once["zoo_pp"].items()}
    both = {s: r + ([(b, a, x) for a, b, x in r] if s != "op" else []) for s, r in rows.items()}
    doubled = report(both)
    for s in SETTINGS:  # Laplace's extra trials weigh half as much against twice the pairs
        assert doubled[f"d_ece_{s}"] == pytest.approx(once[f"d_ece_{s}"])
        assert doubled[f"d_diag_{s}"] == pytest.approx(once[f"d_diag_{s}"], abs=0.06)


def test_order_of_lines_does_not_matter(rows):
    mixed = {
        s: [r[i] for i in np.random.default_rng(0).permutation(len(r))] for s, r in rows.items()
    }
    found, again = report(rows), report(mixed)
    for name in ("deid", "g_vd", "deid_2020", "g_d_ece", "cllr_min_op_oo"):
        assert again[name] == pytest.approx(found[name], abs=1e-12)


def test_originals_that_cannot_be_told_apart_leave_everything_undefined(caplog, rows):
    rows["oo"] = [(a, b, 1.0) for a, b, _ in rows["oo"]]
    found = report(rows)
    both = [f"{name}{year}" for name in ("deid", "g_vd") for year in ("", "_2020")]
    for name in (*both, "d_ece_op_oo", "cllr_min_op_oo", "g_d_ece"):
        assert math.isnan(found[name]), name
        assert f"{name} is undefined" in caplog.text
    assert all(math.isnan(x) for x in found["deid_per_speaker"].values())
    assert "deid_per_speaker and g_vd_per_speaker are undefined for s0, s1" in caplog.text


def test_speakers_and_cells_that_lack_pairs_are_named(rows):
    """A speaker of one segment; one whom a list lacks, on either side; an empty cell."""

    def without(setting: str, lacks: Callable[[str, str], bool]) -> dict[str, Rows]:
        return rows | {setting: [r for r in rows[setting] if not lacks(r[0], r[1])]}

    for setting in ("oo", "op"):
        less = without(setting, lambda a, b: "s0-1" in (a, b))
        refuses(f"^{setting}: speaker s0 has no pair of two different seg", report, less)
    for setting in ("oo", "pp"):
        less = without(setting, lambda a, b: "s2" in (speaker(a), speaker(b)))
        refuses(f"^{setting}: no pair of speaker s2", report, less)
    for i, side in enumerate(("rows of op", "columns of op")):
        less = without("op", lambda *pair, i=i: speaker(pair[i]) == "s2")
        refuses(f"^{side}: no pair of speaker s2", report, less)
    less = without("op", lambda a, b: (speaker(a), speaker(b)) == ("s3", "s1"))
    refuses(r"^op: no pair of speakers s3 and s1", report, less)


def test_missing_pairs_are_counted(caplog, rows):
    report(rows)
    assert not caplog.text
    rows["pp"].pop()
    report(rows)
    assert "pp: 90 pairs of 14 segments, where 91 or 182 are complete" in caplog.text


def test_weights_are_copies_of_people_that_do_not_meet():
    """A resample by weights equals renamed copies of the speakers that never meet."""
    rows = example(n_speakers=4, seed=5)
    drawn = {"s0": 2, "s1": 0, "s2": 1, "s3": 1}
    copies = {s: [f"{s}x{i}" for i in range(n)] for s, n in drawn.items()}

    def written_out(r: Rows) -> Rows:
        return [
            (f"{ca}-{a}", f"{cb}-{b}", x)
            for a, b, x in r
            for ca in copies[speaker(a)]
            for cb in copies[speaker(b)]
            if (speaker(a) != speaker(b) or ca == cb) and f"{ca}-{a}" != f"{cb}-{b}"
        ]

    names = sorted(drawn)
    weight = np.array([float(drawn[name]) for name in names])
    for s in SETTINGS:
        setting = module.prepare(pairs(rows[s]), 4, symmetric=s != "op")
        found = module.assess(setting, weight)
        expanded = written_out(rows[s])
        expected = looped(expanded, symmetric=s != "op")
        assert found is not None
        for (a, b), value in expected["sim"].items():
            i, j = names.index(a.split("x")[0]), names.index(b.split("x")[0])
            assert found.sim[i, j] == pytest.approx(value, abs=1e-12)
        same = [v for (a, b), v in expected["sim"].items() if a == b]
        other = [v for (a, b), v in expected["sim"].items() if a != b]
        expected_d = abs(np.mean(same) - np.mean(other))
        assert module.d_diag(found.sim, weight) == pytest.approx(expected_d)


def test_intervals_hold_every_figure():
    rows = example(n_speakers=6, digits=6)
    found = report(rows, n_bootstrap=40, seed=2)
    assert set(found["intervals"]) >= {"deid", "g_vd", "d_ece_op", "cllr_min_op_oo", "g_d_ece"}
    values = []
    for drawn in multiplicities(6, 40, 2):
        own = [module.prepare(pairs(rows[s]), 6, symmetric=True) for s in ("pp", "oo")]
        assessed = [module.assess(setting, drawn) for setting in own]
        values.append(gain_db(*(module.d_diag(one.sim, drawn) for one in assessed if one)))
    assert found["intervals"]["g_vd"] == pytest.approx(percentiles(np.array(values)))


def test_arithmetic_of_losses_and_gains():
    """002: D_ECE^(OP/OO) of Table 3 follows from the D_ECE of Table 2 (three digits printed)."""
    for oo, op, percent in ((0.584, 0.004, 99.32), (0.69, 0.354, 48.7), (0.653, 0.153, 76.57)):
        assert 100 * loss(op, oo) == pytest.approx(percent, abs=0.15)
    assert gain_db(0.5, 0.5) == 0.0
    assert gain_db(0.05, 0.5) == pytest.approx(-10.0)
    assert gain_db(0.0, 0.5) == -math.inf
    assert math.isnan(gain_db(0.5, 0.0))
    # 002 Table 2, B1 on libri_test_f: −10.45 dB leave 9 % of the dominance, as DeID of 91 % would.
    assert loss(10 ** (-1.045), 1.0) == pytest.approx(0.9098, abs=1e-4)


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize(
    ("gender", "expected"),
    [("f", (0.944, 0.987, -9.02, -8.70)), ("m", (0.924, 0.973, -7.72, -7.09))],
)
def test_b1_by_cosine_of_real_xvectors(corpora, monkeypatch, gender, expected):
    """DeID near 100 % and the G_VD that were measured on these x-vectors; 002 prints −10.45 and
    −9.56 with PLDA. All pairs of different utterances, in both orders."""
    monkeypatch.chdir(corpora / "vpc2020_libri_test")
    name = f"libri_test_trials_{gender}"
    x = {k: read_vectors(f"xvectors/{name}{k}/xvector.scp") for k in ("", "_anon")}
    utt2spk, ids, sets = read_map(f"data/{name}/utt2spk"), list(x[""]), {}
    off = np.argwhere(~np.eye(len(ids), dtype=bool)).tolist()
    trials = trials_of((ids[i], ids[j], utt2spk[ids[i]] == utt2spk[ids[j]]) for i, j in off)
    unit = {k: np.stack([v / np.linalg.norm(v) for v in own.values()]) for k, own in x.items()}
    for setting, row, column in (("oo", "", ""), ("op", "", "_anon"), ("pp", "_anon", "_anon")):
        score = (unit[row].astype(float) @ unit[column].astype(float).T)[tuple(np.transpose(off))]
        sets[setting] = segment_pairs(trials, score, utt2spk, **PATHS)
    found = similarity(sets, common_speakers(sets, {s: s for s in SETTINGS}))
    assert found["deid"] == pytest.approx(1.0, abs=2e-4)
    assert [found["d_diag_oo"], found["d_diag_2020_oo"]] == pytest.approx(expected[:2], abs=6e-4)
    assert [found["g_vd"], found["g_vd_2020"]] == pytest.approx(expected[2:], abs=6e-3)
