#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""How far figures of attackers who train nothing move with the pseudo-speakers that are drawn.

One run of a recipe is one draw: some speakers happen to get a voice near their own. Here a system
protects the trials of egs/librispeech N times, each time by another draw, and Resemblyzer's cosine
scores them against the original enrolment (ignorant) and one that a further draw protected
(lazy-informed). EGS is that folder after stage 4 with --systems bn, or after stage 0 for a system
that needs nothing but speech.

  benchmarks/compare_draws.py EGS N OUT.csv                      EERs of models/bn by draw, and mean
  benchmarks/compare_draws.py EGS N OUT.csv SYSTEM BESIDE WORK   beside one that draws nothing

The first form gives the mean over draws with its 95 % interval (Student's t), which does not hold
for other speakers. The second (mcadams_r mcadams: B2r and B2 of Noé et al. 2022) writes a row for
each figure, and each draw to OUT_each.csv; the interval of the difference is a bootstrap over
people and draws, both systems on the same people. What it protects stays in WORK and is used again.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.measuring import ROOT, run, show, write
from local.compute_metrics import main as compute_metrics
from local.metrics import detection
from local.metrics.detection import Ranking
from local.metrics.intervals import Figures, multiplicities, pair_weights, percentiles
from local.metrics.similarity import (
    Assessment,
    Setting,
    assess,
    gain_figures,
    prepare,
    segment_pairs,
    zoo,
)
from local.metrics.similarity import figures as similarity_figures
from local.metrics.verification import find_speakers, fit_isotonic, fit_linear
from steps.anonymise import main as anonymise
from steps.average_xvectors import main as average_xvectors
from steps.extract_xvectors import main as extract_xvectors
from steps.score_pairs import main as score_pairs
from steps.score_trials import main as score_trials
from utils.arrays import Bool, Float64, Int64
from utils.seeds import make_rng
from utils.tables import read_map, sort_ids
from utils.trials import Trials, join_scores, read_scores, read_trials

SYSTEMS = ROOT / "egs/TEMPLATE/conf/systems"
ENROLMENT = "libri_test_enrolls"
TRIALS = {"women": "libri_test_trials_f", "men": "libri_test_trials_m"}
N_BOOTSTRAP = 1000
PRIORS = np.linspace(0.01, 0.99, 99)
SHOWN = {  # of a draw: title, factor
    "eer": ("EER, ignorant (%)", 100.0),
    "eer_lazy": ("EER, lazy-informed (%)", 100.0),
    "d_ece_oa": ("D_ECE (bit)", 1.0),
    "d_ece_oa_oo": ("D_ECE avoided (%)", 100.0),
    "deid": ("DeID (%)", 100.0),
    "g_vd": ("G_VD (dB)", 1.0),
    "g_d_ece_lists": ("gain of D_ECE, lists (dB)", 1.0),
    "lenient_lists": ("G_VD less that gain (dB)", 1.0),
    "g_d_ece": ("gain of D_ECE, all pairs (dB)", 1.0),
    "lenient_pairs": ("G_VD less that gain, all pairs (dB)", 1.0),
}
ONCE = {  # of a draw, without people drawn
    "bimodality": ("bimodality of M_PP off the diagonal", 1.0),
    "zoo": ("rank correlation of own and other similarity in M_PP", 1.0),
    "profile_gap": ("largest gap to the ECE profile of the other (bit)", 1.0),
    "c_ece_linear": ("C_ECE, linear (bit)", 1.0),
    "c_ece_isotonic": ("C_ECE, isotonic (bit)", 1.0),
}


def xvectors(data: Path, out: Path) -> Path:
    """Make x-vectors of every utterance, and of every speaker."""
    if not (out / "spk_xvector.scp").is_file():
        run(extract_xvectors, "resemblyzer", data, out)
        run(average_xvectors, out, data, out)
    return out


def protected(data: Path, draw: int, work: Path, system: str = "bn") -> Path:
    """The x-vectors of a set that a draw protected."""
    made, wav, out = work / data.name, work / f"wav_{data.name}", work / f"x_{data.name}"
    if (out / "spk_xvector.scp").is_file():
        return out
    given: Sequence[object] = ()
    if system == "bn":
        given = ("--model", ROOT / "models/bn", "--f0", Path("exp/f0") / data.name)
    run(anonymise, *given, "--draw", draw, SYSTEMS / f"{system}.yaml", data, made, wav)
    xvectors(made, out)
    shutil.rmtree(wav)
    return out


def measure(original: Path, draw: int, work: Path) -> dict[str, float]:
    """EERs in per cent of trials by a draw; the next protects the enrolment."""
    enrolment = protected(Path("data") / ENROLMENT, draw + 1, work)
    eers = {}
    for voices, name in TRIALS.items():
        found = protected(Path("data") / name, draw, work)
        for attacker, enrolled in (("ignorant", original), ("lazy-informed", enrolment)):
            trials, scores, out = Path("data") / name / "trials", work / "scores", work / "eer.json"
            run(score_trials, "--backend", "cosine_raw", enrolled, found, trials, scores)
            run(compute_metrics, "verification", trials, scores, out)
            eers[f"{attacker}, {voices}"] = 100 * float(json.loads(out.read_text())["eer"])
    return eers


def mean_of(values: Sequence[float], digits: int = 1) -> str:
    """The mean over draws with its interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    ends = (np.mean(values), np.mean(values) - half, np.mean(values) + half)
    value, low, high = (f"{end:.{digits}f}" for end in ends)
    return f"{value} [{low}, {high}]"


def of_bn(n: int, out: Path) -> None:
    """EERs by draw."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        original = xvectors(Path("data") / ENROLMENT, Path(name) / "original")
        for draw in range(0, 2 * n, 2):
            (work := Path(name) / str(draw)).mkdir()
            found.append(measure(original, draw, work))
            print(draw, found[-1], flush=True)
    rows = [[str(2 * i), *(f"{eer:.1f}" for eer in eers.values())] for i, eers in enumerate(found)]
    rows.append(["mean", *(mean_of([eers[name] for eers in found]) for name in found[0])])
    print(*rows[-1])
    write(out, [["draw", *found[0]], *rows])


@dataclass(frozen=True, eq=False)
class Scored:
    """A run of a system: the enrolment-trial lists (oo, oa, aa) and all pairs (oo, op, pp).

    cells: of a list, both people of each trial as one number, in ascending order of score; trials,
    score: of the ignorant attacker's list.
    """

    lists: Mapping[str, Ranking]
    cells: Mapping[str, Int64]
    pairs: Mapping[str, Setting]
    target: Bool
    score: Float64

    def figures(self, drawn: Float64 | None = None) -> Figures | None:
        """All of SHOWN; drawn: how often a resample holds each person; None where undefined."""
        weights = {}
        if drawn is not None:
            weights = {s: pair_weights(drawn, cell) for s, cell in self.cells.items()}
        found = self.assessed(drawn)
        of_lists = gain_figures(self.lists, weights)
        if found is None or of_lists is None:
            return None
        every = of_lists | similarity_figures(found, drawn)
        for name, s in (("eer", "oa"), ("eer_lazy", "aa")):
            every[name] = detection.eer(*self.lists[s].counts(weights.get(s)))
        every["lenient_lists"] = every["g_vd"] - every["g_d_ece_lists"]
        every["lenient_pairs"] = every["g_vd"] - every["g_d_ece"]
        return {name: every[name] for name in SHOWN}

    def assessed(self, drawn: Float64 | None = None) -> dict[str, Assessment] | None:
        """The similarity matrices."""
        found = {s: assess(setting, drawn) for s, setting in self.pairs.items()}
        kept = {s: one for s, one in found.items() if one is not None}
        return kept if len(kept) == len(found) else None

    def once(self, beside: "Scored", following: "Scored") -> Figures:
        """All of ONCE; following: the draw on which this one's calibration is tried."""
        found = self.assessed()
        assert found is not None
        off = found["pp"].sim[np.triu_indices(len(found["pp"].sim), 1)]
        own, other = zoo(self.pairs["pp"], found["pp"].llr).T
        linear, isotonic = (fit(self.score, self.target) for fit in (fit_linear, fit_isotonic))
        y = following.target.astype(np.float64)
        return {
            "bimodality": bimodality(off),
            "zoo": float(stats.spearmanr(own, other).statistic),
            "profile_gap": float(np.abs(self.profile() - beside.profile()).max()),
            "c_ece_linear": detection.d_ece(linear(following.score), y, 1.0 - y),
            "c_ece_isotonic": detection.d_ece(isotonic(following.score), y, 1.0 - y),
        }

    def profile(self) -> Float64:
        """The ignorant attacker's ECE at PRIORS."""
        plain = detection.pav(*self.lists["oa"].counts())
        return detection.ece(plain.llr, plain.t, plain.n, PRIORS)


def bimodality(values: Float64) -> float:
    """Sarle's coefficient: 1/3 for a bell, 5/9 for evenly spread values, more for two groups."""
    n = len(values)
    skew, kurtosis = stats.skew(values, bias=False), stats.kurtosis(values, bias=False)
    return float((skew**2 + 1) / (kurtosis + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))))


def scored(voices: str, enrolment: Path, trial: Path, work: Path) -> Scored:
    """Scores of protected x-vectors; the original ones are in WORK."""
    data, plain = Path("data") / TRIALS[voices], work / f"x_{TRIALS[voices]}"
    original, spk = work / f"x_{ENROLMENT}", read_map(data / "utt2spk")
    names, scores = sort_ids(set(spk.values())), work / "scores"
    lists, cells, kept = {}, {}, {}
    sides = {"oo": (original, plain), "oa": (original, trial), "aa": (enrolment, trial)}
    for s, (enrolled, tried) in sides.items():
        run(score_trials, "--backend", "cosine_raw", enrolled, tried, data / "trials", scores)
        trials, score = read(data / "trials", scores)
        who = find_speakers(trials, spk, trials_path=data / "trials", utt2spk_path=data / "utt2spk")
        place = np.array([names.index(name) for name in who.names])
        cell = place[who.enrol] * len(names) + place[who.trial]
        lists[s] = detection.rank(score, trials.target, cell)
        cells[s], kept[s] = cell[lists[s].order], (trials.target, score)
    pairs = {}
    for s, (rows, columns) in {
        "oo": (plain, plain),
        "op": (plain, trial),
        "pp": (trial, trial),
    }.items():
        path, options = work / "pairs", ("--backend", "cosine_raw", "--utt2spk", data / "utt2spk")
        run(score_pairs, *options, rows, columns, path, scores)
        found = segment_pairs(
            *read(path, scores), spk, trials_path=path, utt2spk_path=data / "utt2spk"
        )
        pairs[s] = prepare(found, len(names), symmetric=s != "op")
    return Scored(lists, cells, pairs, *kept["oa"])


def read(trials_path: Path, scores_path: Path) -> tuple[Trials, Float64]:
    """A list and its scores."""
    trials, scores = read_trials(trials_path), read_scores(scores_path)
    return trials, join_scores(trials, scores, trials_path=trials_path, scores_path=scores_path)


def differences(draws: Sequence[Scored], beside: Scored) -> dict[str, list[float]]:
    """Replicates of the mean over draws less the other system's figure: people are drawn, the same
    for both, and draws."""
    rng = make_rng(0, "bootstrap over draws")
    found: dict[str, list[float]] = {name: [] for name in SHOWN}
    n_people = len(beside.pairs["oo"].n_in_cell)
    for drawn in multiplicities(n_people, N_BOOTSTRAP, 0):
        chosen = rng.integers(len(draws), size=len(draws))
        own = {i: draws[i].figures(drawn) for i in set(chosen.tolist())}
        other = beside.figures(drawn)
        if other is None or None in own.values():
            continue
        for name in SHOWN:
            values = [one[name] for i in chosen.tolist() if (one := own[i])]
            found[name].append(float(np.mean(values)) - other[name])
    return found


def compare(voices: str, draws: Sequence[Scored], beside: Scored) -> tuple[list[list[str]], ...]:
    """Rows of OUT, and of each draw."""
    other = (beside.figures() or {}) | beside.once(beside, beside)
    each = [
        (one.figures() or {}) | one.once(beside, following)
        for one, following in zip(draws, [*draws[1:], draws[0]], strict=True)
    ]
    apart = differences(draws, beside)
    rows = []
    for name, (title, factor) in (SHOWN | ONCE).items():
        values = [factor * one[name] for one in each]
        digits = 1 if factor > 1 else 2 if "dB" in title else 3
        alone = name in ("profile_gap", "c_ece_linear", "c_ece_isotonic")  # of what draws
        row = [voices, title, "" if alone else f"{factor * other[name]:.{digits}f}"]
        row += [mean_of(values, digits), f"{np.std(values, ddof=1):.{digits}f}"]
        row += [f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"]
        if name in SHOWN:
            low, high = (factor * end for end in percentiles(np.array(apart[name])))
            gap = np.mean(values) - factor * other[name]
            row.append(f"{gap:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]")
        else:
            row.append("")
        row.append("" if alone else str(sum(v > factor * other[name] for v in values)))
        rows.append(row)
    split = sum(
        (e["deid"] > other["deid"]) != (e["d_ece_oa_oo"] > other["d_ece_oa_oo"]) for e in each
    )
    rows.append([voices, "draws that DeID and D_ECE rank otherwise", *[""] * 6, str(split)])
    return rows, [[voices, *(f"{one[name]:.6g}" for name in SHOWN | ONCE)] for one in each]


def against(n: int, out: Path, system: str, other: str, work: Path) -> None:
    """The second form."""
    work.mkdir(exist_ok=True)
    for name in (ENROLMENT, *TRIALS.values()):
        xvectors(Path("data") / name, work / f"x_{name}")

    def of(name: str, draw: int, voices: str) -> Scored:
        place = work / (name if name == other else str(draw))
        place.mkdir(exist_ok=True)
        enrolment = protected(Path("data") / ENROLMENT, draw + 1, place, name)
        return scored(
            voices, enrolment, protected(Path("data") / TRIALS[voices], draw, place, name), work
        )

    head = ["voices", "figure", other, f"{system}, mean over draws", "deviation", "least", "most"]
    rows, each = [[*head, "difference", "draws above"]], [["voices", "draw", *SHOWN, *ONCE]]
    for voices in TRIALS:
        draws = [of(system, draw, voices) for draw in range(0, 2 * n, 2)]
        found, single = compare(voices, draws, of(other, 0, voices))
        rows += found
        each += [[one[0], str(2 * i), *one[1:]] for i, one in enumerate(single)]
    rows = [[re.sub(r"-(?=\d)", "−", cell) for cell in row] for row in rows]
    show(out, rows)
    write(out.with_name(f"{out.stem}_each.csv"), each)


def main() -> int:
    """Measure, print, write."""
    if len(sys.argv) not in (4, 7) or not sys.argv[2].isdecimal() or int(sys.argv[2]) < 2:
        sys.exit(f"{__doc__}")
    n, out = int(sys.argv[2]), Path(sys.argv[3]).absolute()
    work = Path(sys.argv[-1]).absolute()
    os.chdir(sys.argv[1])
    if len(sys.argv) == 7:
        against(n, out, sys.argv[4], sys.argv[5], work)
    else:
        of_bn(n, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
