# SPDX-License-Identifier: Apache-2.0
"""What the pictures need, gathered from metrics and scores into `figures.json`.

Its lists: `similarity`, `attacks`, `calibrations`, `searches`; each entry holds its `where`
(split, system, attacker, evaluator, condition) and its curves; `prior` holds the ECE of an attacker
who hears nothing. Numbers have six digits: pictures show no more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from local.metrics import curves
from local.report.results import Json, Missing, lacks, read_figures, where_is
from utils.arrays import Float64
from utils.cli import UserError
from utils.trials import join_scores, read_scores, read_trials

SETTINGS = ("oo", "op", "pp")


def shorten(value: object) -> object:
    """The same with six significant digits, infinities as text and NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): shorten(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shorten(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
        return float(f"{value:.6g}")
    return value


def _entry(folder: Path, **curves_: object) -> Json:
    where = asdict(where_is(folder, ""))
    return {"where": {name: where[name] for name in where if name not in ("corpus", "gender")}} | {
        name: shorten(value) for name, value in curves_.items()
    }


def of_metrics(folders: Sequence[Path]) -> dict[str, list[Json]]:
    """Similarity matrices with zoo points, and rank curves, as the metrics hold them."""
    similarity, searches = [], []
    for folder in folders:
        figures = read_figures(folder / "metrics.json")
        sim = figures.get("sim_oo")
        if isinstance(sim, dict) and where_is(folder, "").attacker == "similarity":
            similarity.append(_entry(folder, speakers=list(sim), **_matrices(figures)))
        if isinstance(figures.get("cmc_curve"), dict):
            searches.append(_entry(folder, **figures["cmc_curve"]))  # type: ignore[arg-type]
    return {"similarity": similarity, "searches": searches}


def _matrices(figures: Json) -> Json:
    """Matrices as lists of rows, zoo points as lists of pairs."""
    found: Json = {}
    for s in SETTINGS:
        sim, zoo = figures.get(f"sim_{s}"), figures.get(f"zoo_{s}")
        if isinstance(sim, dict) and isinstance(zoo, dict):
            found[f"sim_{s}"] = [list(row.values()) for row in sim.values()]
            found[f"zoo_{s}"] = list(zoo.values())
    return found


def attack(trials_path: Path, folder: Path) -> Json:
    """ECE profile and histogram of one attack. folder: .../<split> with `scores`."""
    trials, (score,) = read_trials(trials_path), _scores(trials_path, folder)
    return _entry(folder, **curves.attack(trials.target, score))


def calibration(trials_path: Path, f0: Path, f1: Path) -> Json:
    """Curves of two runs of a random safeguard. f0, f1: folders with `scores`."""
    trials, (first, second) = read_trials(trials_path), _scores(trials_path, f0, f1)
    return _entry(f0, **curves.calibrations(trials.target, first, second))


def _scores(trials_path: Path, *folders: Path) -> list[Float64]:
    trials = read_trials(trials_path)
    if trials.target.all() or not trials.target.any():
        raise UserError(f"{trials_path}:1: target and nontarget trials are both needed")
    paths = [folder / "scores" for folder in folders]
    return [
        join_scores(trials, read_scores(path), trials_path=trials_path, scores_path=path)
        for path in paths
    ]


def gather(
    folders: Sequence[Path], attacks: Sequence[Sequence[Path]], runs: Sequence[Sequence[Path]]
) -> tuple[Json, list[Missing]]:
    """All that the pictures need, and what of it could not be had.

    folders: with metrics.json; attacks: (trials, score folder); runs: (trials, f0, f1).
    """
    missing: list[Missing] = []
    made: dict[str, list[Json]] = {"attacks": [], "calibrations": []}
    for name, function, lists in (
        ("attacks", attack, attacks),
        ("calibrations", calibration, runs),
    ):
        for paths in lists:
            where_is(paths[1], "")
            try:
                made[name].append(function(*paths))
            except UserError as error:
                missing.append(lacks(paths[1], error))
    return {**of_metrics(folders), **made, "prior": shorten(curves.prior_profile())}, missing
