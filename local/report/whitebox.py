"""Tables of the white-box study (001): figures over constant targets, the published ones beside."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.report import frame
from local.report.frame import MEASURES, NOTHING, UTILITY, Measure, Value, number
from local.report.load import Results
from local.report.papers import of_table
from local.report.study import Study, dashed, headed, pivot
from local.report.tables import Table
from local.report.words import target_series
from utils.cli import UserError
from utils.datadir import read_noted
from utils.tables import read_map

FIGURES = (
    MEASURES["eer"],
    frame.measure("linkability", title="D_sys", digits=2),
    MEASURES["d_ece"],
)
PROSODY = ("f0_correlation", "voicing_agreement", "duration_drift", "level_change", "clipping",
           "clipping_original")  # fmt: skip
# 001, Table 2, on LibriSpeech test-clean: B1 of VoicePrivacy 2020, x-vector and PLDA retrained for
# each of 40 targets; mean and standard deviation over targets.
PUBLISHED_HEADER = ["Champion et al. 2021", "women: D_sys", "EER (%)", "men: D_sys", "EER (%)"]


def read_target(data: Path) -> tuple[str, str]:
    """Speaker and gender of the target of a protected set (pseudo.tsv); of several, with commas."""
    utts = read_map(data / "utt2spk")
    named = read_noted(data / "pseudo.tsv", ("speakers", "target_gender"), utts).values()
    speakers, genders = (",".join(dict.fromkeys(column)) for column in zip(*named, strict=True))
    return speakers, genders


def spread(values: Sequence[Value], measure: Measure) -> str:
    """Mean ± standard deviation over targets; how many are undefined or missing, if any.

    >>> spread([Value(0.1), Value(0.2), Value(0.3), Value(math.nan)], FIGURES[0])
    '20.0 ± 10.0 (1 of 4 not defined)'
    """
    defined = [measure.scale * value.value for value in values if value.defined]
    if not defined:
        return "–"
    text = number(statistics.fmean(defined), measure.digits)
    if len(defined) > 1:
        text += f" ± {number(statistics.stdev(defined), measure.digits)}"
    lost = len(values) - len(defined)
    return f"{text} ({lost} of {len(values)} not defined)" if lost else text


@dataclass(frozen=True)
class Targets:
    """Results of constant targets. voices: speaker and gender of each target that was asked for.

    UserError for a target without figures.
    """

    results: Results
    voices: Mapping[str, tuple[str, str]]

    def __post_init__(self) -> None:
        measured = set(self.results.metrics["system"])
        if missing := [system for system in self.voices if system not in measured]:
            path = self.results.folder / "metrics.csv"
            raise UserError(f"{path}: no figure of {missing[0]}; run stage 5")

    @property
    def series(self) -> dict[str, list[str]]:
        """The targets of each experiment."""
        return target_series(self.voices, fewest=1)

    @property
    def columns(self) -> list[tuple[str, Measure]]:
        """FIGURES, and D_sys on a fixed number of bins where it was measured."""
        names = set(self.results.metrics["metric"])
        fixed = sorted(name for name in names if name.startswith("linkability_bins_"))
        more = [Measure(name, f"D_sys, {name.rpartition('_')[2]} bins", digits=2) for name in fixed]
        return headed([*FIGURES, *more])

    @property
    def places(self) -> list[tuple[str, str, str]]:
        """Every split, evaluator and attacker."""
        return [
            (split, evaluator, attack)
            for evaluator in self.results.evaluators()
            for split in self.results.splits(evaluator)
            for attack in self.results.attackers(evaluator)
        ]

    def value(self, place: tuple[str, str, str], system: str, measure: Measure) -> Value | None:
        """A figure; None where it was not measured."""
        split, evaluator, attack = place
        return self.results.value(evaluator, split, system, attack, measure.name)


def over_targets(targets: Targets) -> Table:
    """A row original speech and each series, evaluator, attacker and split."""
    rows = []
    for place in targets.places:
        if place[2] == "unprotected":
            rows.append(([*place, "original", ""], (place, ["original"])))
            continue
        for name, own in targets.series.items():
            rows.append(([*place, name, str(len(own))], (place, own)))

    def cell(row: tuple[tuple[str, str, str], list[str]], measure: Measure) -> str:
        found = [targets.value(row[0], system, measure) or NOTHING for system in row[1]]
        alone = row[0][2] == "unprotected"
        return dashed(found[0], measure) if alone else spread(found, measure)

    names = ["split", "evaluator", "attacker", "speech", "targets"]
    return pivot(names, rows, targets.columns, cell)


def by_target(targets: Targets) -> Table:
    """A row a target, evaluator, attacker and split."""
    rows = [
        ([*place, system, *voice], (place, system))
        for place in targets.places
        for system, voice in targets.voices.items()
        if any(targets.value(place, system, measure) for _, measure in targets.columns)
    ]
    names = ["split", "evaluator", "attacker", "system", "target", "gender"]
    return pivot(names, rows, targets.columns, lambda row, measure: dashed(
        targets.value(row[0], row[1], measure), measure
    ))  # fmt: skip


def utility(targets: Targets) -> Table:
    """A row a series, split and measure: mean ± deviation over targets, lowest and highest of them.

    Word error rate, recall of emotions and opinion score are there where they were measured.
    """
    use = frame.where(targets.results.metrics, family=UTILITY)
    index = frame.values(use, "split", "evaluator", "metric", "system")
    rows = []
    for split, by in sorted({key[:2] for key in index}):
        for name, own in {"original": ["original"], **targets.series}.items():
            for metric in (*frame.UTILITY_MEASURES, *PROSODY):
                of = (split, by, metric)
                found = {system: index[*of, system] for system in own if (*of, system) in index}
                if found:
                    measure = MEASURES[metric]
                    cells = [spread([*found.values()], measure), *_ends(found, measure)]
                    rows.append([split, by, name, measure.heading, str(len(found)), *cells])
    header = ["split", "measured by", "speech", "figure", "targets", "mean", "lowest", "highest"]
    return Table(header, rows, 4)


def _ends(found: Mapping[str, Value], measure: Measure) -> list[str]:
    """The lowest and the highest, and which targets have them."""
    defined = {system: value.value for system, value in found.items() if value.defined}
    if not defined:
        return ["–", "–"]
    ends = (choose(defined, key=lambda system: defined[system]) for choose in (min, max))
    return [f"{dashed(defined[system], measure)} ({system})" for system in ends]


def by_speaker(targets: Targets) -> Table:
    """A row a speaker, evaluator and attacker: linkability by each definition, before and after."""
    people = targets.results.speakers
    people = people[people["metric"].str.startswith("linkab")]  # not prosody
    index = frame.values(people, "split", "evaluator", "attacker", "system", "speaker", "metric")
    header, rows, own = ["split", "evaluator", "attacker", "speech", "speaker"], [], FIGURES[1]
    metrics = sorted(set(people["metric"]))
    for metric in metrics:
        bins = metric.rpartition("_")[2]
        what = "all trials' densities" if metric == "linkability" else f"own trials, {bins} bins"
        header += [f"{what}: original", "over targets", "highest"]
    for place in dict.fromkeys(key[:3] for key in index if key[2] != "unprotected"):
        for name, systems in targets.series.items():
            speakers = {key[4] for key in index if key[:3] == place and key[3] in systems}
            for speaker in sorted(speakers):
                row = [*place, name, speaker]
                for metric in metrics:
                    of = speaker, metric
                    before = index.get((*place[:2], "unprotected", "original", *of))
                    found = [index.get((*place, system, *of), NOTHING) for system in systems]
                    most = max((v.value for v in found if v.defined), default=math.nan)
                    row += [dashed(before, own), spread(found, own), dashed(most, own)]
                rows.append(row)
    return Table(header, rows, 5)


def _published(_: Targets) -> Table:
    """Table 2 of 001: a row a kind of speech, in the order of PUBLISHED_HEADER."""
    rows: dict[str, list[str]] = {}
    for f in of_table("001", "2").itertuples():
        text = f"{f.value} ± {f.spread}" if f.spread else f.value
        rows.setdefault(f.system, [f.system]).append(text)
    return Table(PUBLISHED_HEADER, list(rows.values()))


STUDY = Study(
    "local/report/templates/whitebox.md.jinja",
    {
        "over_targets": over_targets,
        "by_target": by_target,
        "by_speaker": by_speaker,
        "utility": utility,
        "published": _published,
    },
)
