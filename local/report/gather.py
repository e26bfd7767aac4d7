"""Figures, curves and records of a run, gathered for the folder of results.

`figures.json` has what the pictures need, in the lists `similarity`, `attacks`, `calibrations` and
`searches`; each entry holds its `where` (the labels of metrics.csv) and its curves; `prior` holds
the ECE of an attacker who hears nothing. Numbers have six digits: pictures show no more.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path

from local.metrics import verification
from local.report.frame import COUNTS, LABELS
from local.report.origin import Json, Missing, lacks
from utils.arrays import Bool, Float64
from utils.cli import UserError
from utils.stamps import provenance
from utils.tables import read_json_object
from utils.trials import join_scores, read_scores, read_trials

Row = dict[str, str]
SETTINGS = ("oo", "op", "pp")


def labelled(lists: Iterable[Sequence[str]]) -> dict[Path, Row]:
    """What each folder of figures speaks of; lists: a folder and the words for LABELS, `-` for none
    (`Labelled` of local/options.py)."""
    return {
        Path(folder): dict(zip(LABELS, ("" if w == "-" else w for w in words), strict=True))
        for folder, *words in lists
    }


def read_figures(folder: Path) -> Json:
    """Read the metrics.json of a folder; UserError where it is missing or not a JSON object."""
    return read_json_object(folder / "metrics.json", "remove it and run stage 9")


def _text(value: object) -> str:
    """A scalar as it stands in the table; nothing for an undefined one."""
    return "" if value is None else str(value)


def _count(figures: Json, name: str) -> object:
    """A count of a metrics.json, or the sum of those of its three matrices or lists."""
    parts = [figures.get(f"{name}_{setting}") for setting in ("oo", "op", "pp", "oa", "aa")]
    whole = [part for part in parts if isinstance(part, int)]
    return sum(whole) if len(whole) == 3 else figures.get(name)


def tabulate(folder: Path, where: Row) -> tuple[list[Row], list[Row]]:
    """The rows of one folder of figures: scalars, and figures by speaker. where: its labels.

    Matrices and zoo points stay in the JSON.
    """
    digest = provenance(folder)  # of all that made the figures
    if digest is None:
        raise UserError(f"{folder}: has no stamp, so nobody can say how it was made; run stage 9")
    where = where | {"settings": digest[:12]}  # as short as git has them
    figures = read_figures(folder)
    intervals = figures.get("intervals")
    bounds = intervals if isinstance(intervals, dict) else {}
    counts = {name: _text(_count(figures, name)) for name in COUNTS}
    rows, speaker_rows = [], []
    for metric, value in figures.items():
        if isinstance(value, Mapping) and metric.endswith("_per_speaker"):
            of = where | {"metric": metric.removesuffix("_per_speaker")}
            speaker_rows += [of | {"speaker": s, "value": _text(own)} for s, own in value.items()]
        elif not isinstance(value, Mapping | list) and _is_figure(metric):
            low, high = (_text(bound) for bound in bounds.get(metric) or (None, None))
            of = {"metric": metric, "value": _text(value), "low": low, "high": high}
            rows.append(where | counts | of)
    return rows, speaker_rows


def _is_figure(metric: str) -> bool:
    """Whether a scalar of a metrics.json has a row of its own; counts are columns, but for that of
    people with target trials."""
    return metric == "n_target_speakers" or not metric.startswith(("n_", "cmc_curve"))


def tabulate_all(
    folders: Mapping[Path, Row], corpus: str
) -> tuple[list[Row], list[Row], list[Missing]]:
    """The rows of all folders of figures, and the folders that could not be used, each with why.
    folders: with the labels of each."""
    figures: list[Row] = []
    speakers: list[Row] = []
    missing: list[Missing] = []
    for folder, where in folders.items():
        try:
            rows, speaker_rows = tabulate(folder, {"corpus": corpus} | where)
        except UserError as error:
            missing.append(lacks(folder, error))
            continue
        figures += rows
        speakers += speaker_rows
    return figures, speakers, missing


# What the pictures need.


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


def _entry(where: Row, found: Mapping[str, object]) -> Json:
    return {"where": where} | {name: shorten(value) for name, value in found.items()}


def of_metrics(folders: Mapping[Path, Row]) -> dict[str, list[Json]]:
    """Similarity matrices as lists of rows, with zoo points as lists of pairs, and rank curves."""
    similarity, searches = [], []
    for folder, where in folders.items():
        figures = read_figures(folder)
        oo = figures.get("sim_oo")
        if not where["attacker"] and isinstance(oo, dict):
            found: Json = {"speakers": list(oo)}
            for s in SETTINGS:
                sim, zoo = figures.get(f"sim_{s}"), figures.get(f"zoo_{s}")
                if isinstance(sim, dict) and isinstance(zoo, dict):
                    found[f"sim_{s}"] = [list(row.values()) for row in sim.values()]
                    found[f"zoo_{s}"] = list(zoo.values())
            similarity.append(_entry(where, found))
        if isinstance(curve := figures.get("cmc_curve"), dict):
            searches.append(_entry(where, curve))
    return {"similarity": similarity, "searches": searches}


def _scores(trials_path: Path, *folders: Path) -> list[Bool | Float64]:
    """Which trials are target trials, and their scores in each folder."""
    trials = read_trials(trials_path)
    if trials.target.all() or not trials.target.any():
        raise UserError(f"{trials_path}:1: target and nontarget trials are both needed")
    paths = [folder / "scores" for folder in folders]
    return [trials.target] + [
        join_scores(trials, read_scores(path), trials_path=trials_path, scores_path=path)
        for path in paths
    ]


def gather(
    folders: Mapping[Path, Row], used: Container[Path],
    attacks: Sequence[Sequence[Path]], runs: Sequence[Sequence[Path]],
) -> tuple[Json, list[Missing]]:  # fmt: skip
    """All that the pictures need, and what of it could not be had.

    folders: with the labels of each; used: those with metrics.json; attacks: (folder of its
    figures, trials, score folder); runs: (folder of their figures, trials, f0, f1).
    """
    missing: list[Missing] = []
    made: dict[str, list[Json]] = {"attacks": [], "calibrations": []}
    jobs: tuple[tuple[str, Callable[..., Json], Sequence[Sequence[Path]]], ...] = (
        ("attacks", verification.attack, attacks),
        ("calibrations", verification.calibrations, runs),
    )
    for name, curves, lists in jobs:
        for figures, trials, *scores in lists:
            if figures not in folders:
                raise UserError(f"{figures}: no folder of --figures, so its labels are not known")
            try:
                found = curves(*_scores(trials, *scores))
                made[name].append(_entry(folders[figures], found))
            except UserError as error:
                missing.append(lacks(scores[0], error))
    there = {folder: where for folder, where in folders.items() if folder in used}
    return {**of_metrics(there), **made, "prior": shorten(verification.prior_profile())}, missing
