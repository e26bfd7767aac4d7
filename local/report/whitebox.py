# SPDX-License-Identifier: Apache-2.0
"""Tables of the white-box study (001): figures over constant targets, the published ones beside."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from local.report.load import NOTHING, Results, Value
from local.report.published import of_table
from local.report.tables import PROSODY_COLUMNS, Column, Table
from local.report.words import UTILITY, UTILITY_METRICS, number, parse, target_series
from utils.cli import UserError
from utils.datadir import read_noted
from utils.tables import read_map

FIGURES = (
    Column("EER (%)", "eer", 100, 1),
    Column("D_sys", "linkability", 1, 2),
    Column("D_ECE (bit)", "d_ece", 1, 3),
)
# 001, Table 2, on LibriSpeech test-clean: B1 of VoicePrivacy 2020, x-vector and PLDA retrained for
# each of 40 targets; mean and standard deviation over targets.
PUBLISHED_HEADER = ["Champion et al. 2021", "women: D_sys", "EER (%)", "men: D_sys", "EER (%)"]
NOTES = """\
Everybody speaks with one constant voice, target NN of the series `const_NN`; with `_f0` pitch is
moved to the target's, without it stays. White-box attackers know the target: enrolment and training
set are protected with it, and the evaluator is trained on that: *(back end)* only LDA and PLDA,
*(fine-tuned)* the encoder tuned further, else the encoder anew. `±`: standard deviation over
targets (n − 1), which says nothing of how few speakers there are; brackets: 95 % interval over
speakers. A speaker's linkability is measured twice: the mean of D↔ over their trials with the
densities of all trials (the text of Champion et al. 2021), and D_sys of their trials alone on a
fixed number of bins (their code), which tends to 1 where they have few trials
(docs/metrics/linkability_per_speaker.md).
"""


def _published() -> Table:
    """Table 2 of 001: a row a kind of speech, in the order of PUBLISHED_HEADER."""
    rows: dict[str, list[str]] = {}
    for f in of_table("001", "2"):
        text = f"{f.value} ± {f.spread}" if f.spread else f.value
        rows.setdefault(f.system, [f.system]).append(text)
    return Table(PUBLISHED_HEADER, list(rows.values()))


def read_target(data: Path) -> tuple[str, str]:
    """Speaker and gender of the target of a protected set (pseudo.tsv); of several, with commas."""
    utts = read_map(data / "utt2spk")
    named = read_noted(data / "pseudo.tsv", ("speakers", "target_gender"), utts).values()
    speakers, genders = (",".join(dict.fromkeys(column)) for column in zip(*named, strict=True))
    return speakers, genders


def spread(values: Sequence[Value], column: Column) -> str:
    """Mean ± standard deviation over targets; how many are undefined or missing, if any.

    >>> spread([Value(0.1), Value(0.2), Value(0.3), Value(math.nan)], FIGURES[0])
    '20.0 ± 10.0 (1 of 4 not defined)'
    """
    defined = [column.scale * v.value for v in values if math.isfinite(v.value)]
    if not defined:
        return "–"
    text = number(statistics.fmean(defined), column.digits)
    if len(defined) > 1:
        text += f" ± {number(statistics.stdev(defined), column.digits)}"
    lost = len(values) - len(defined)
    return f"{text} ({lost} of {len(values)} not defined)" if lost else text


def _cell(value: Value | None, column: Column) -> str:
    return (value or NOTHING).text(column.scale, column.digits)


def _columns(results: Results) -> tuple[Column, ...]:
    """FIGURES, and D_sys on a fixed number of bins where it was measured."""
    fixed = sorted({f.metric for f in results.figures if f.metric.startswith("linkability_bins_")})
    more = [Column(f"D_sys, {name.rpartition('_')[2]} bins", name, 1, 2) for name in fixed]
    return (*FIGURES, *more)


def over_targets(results: Results, series: Mapping[str, Sequence[str]]) -> Table:
    """A row original speech and each series, evaluator, attacker and split."""
    columns = _columns(results)
    header = ["split", "evaluator", "attacker", "speech", "targets", *(c.title for c in columns)]
    rows = []
    for evaluator in results.evaluators():
        for split in results.splits(evaluator):
            for attack in results.attackers(evaluator):
                where = (evaluator, split)
                if attack == "unprotected":
                    cells = [
                        _cell(results.value(*where, "original", attack, c.metric), c)
                        for c in columns
                    ]
                    rows.append([split, evaluator, attack, "original", "", *cells])
                    continue
                for name, own in series.items():
                    found = [
                        [results.value(*where, s, attack, c.metric) or NOTHING for s in own]
                        for c in columns
                    ]
                    cells = [spread(v, c) for v, c in zip(found, columns, strict=True)]
                    rows.append([split, evaluator, attack, name, str(len(own)), *cells])
    return Table(header, rows, 5)


def by_target(results: Results, voices: Mapping[str, tuple[str, str]]) -> Table:
    """A row a target, evaluator, attacker and split. voices: speaker and gender of each target."""
    columns = _columns(results)
    header = ["split", "evaluator", "attacker", "system", "target", "gender"]
    rows = []
    for evaluator in results.evaluators():
        for split in results.splits(evaluator):
            for attack in results.attackers(evaluator):
                for system, voice in voices.items():
                    found = [
                        results.value(evaluator, split, system, attack, c.metric) for c in columns
                    ]
                    if any(value is not None for value in found):
                        cells = [_cell(v, c) for v, c in zip(found, columns, strict=True)]
                        rows.append([split, evaluator, attack, system, *voice, *cells])
    return Table([*header, *(c.title for c in columns)], rows, 6)


def utility(results: Results, series: Mapping[str, Sequence[str]]) -> Table:
    """A row a series, split and measure: mean ± deviation over targets, lowest and highest of them.

    Word error rate, recall of emotions and opinion score are there where they were measured.
    """
    columns = (
        *(
            Column(use.titled(name), name, use.scale, use.digits)
            for name, use in UTILITY_METRICS.items()
        ),
        *PROSODY_COLUMNS,
    )
    index = {
        (f.split, f.evaluator, f.system, f.metric): Value(parse(f.value))
        for f in results.figures
        if f.attacker == UTILITY
    }
    header = ["split", "measured by", "speech", "figure", "targets", "mean", "lowest", "highest"]
    rows = []
    for split, by in sorted({key[:2] for key in index}):
        for name, own in {"original": ["original"], **series}.items():
            for column in columns:
                keys = {s: (split, by, s, column.metric) for s in own}
                found = {s: index[key] for s, key in keys.items() if key in index}
                if found:
                    cells = [spread(list(found.values()), column), *_ends(found, column)]
                    rows.append([split, by, name, column.title, str(len(found)), *cells])
    return Table(header, rows, 4)


def _ends(found: Mapping[str, Value], column: Column) -> tuple[str, str]:
    """The lowest and the highest, and which targets have them."""
    defined = {s: v.value for s, v in found.items() if math.isfinite(v.value)}
    if not defined:
        return "–", "–"
    low, high = (choose(defined, key=lambda s: defined[s]) for choose in (min, max))
    return (
        f"{number(column.scale * defined[low], column.digits)} ({low})",
        f"{number(column.scale * defined[high], column.digits)} ({high})",
    )


def by_speaker(results: Results, series: Mapping[str, Sequence[str]]) -> Table:
    """A row a speaker, evaluator and attacker: linkability by each definition, before and after."""
    linked = [row for row in results.speakers if row.metric.startswith("linkab")]  # not prosody
    metrics = sorted({row.metric for row in linked})
    index = {
        (r.evaluator, r.split, r.attacker, r.system, r.speaker, r.metric): Value(parse(r.value))
        for r in linked
    }
    header = ["split", "evaluator", "attacker", "speech", "speaker"]
    for metric in metrics:
        bins = metric.rpartition("_")[2]
        what = "all trials' densities" if metric == "linkability" else f"own trials, {bins} bins"
        header += [f"{what}: original", "over targets", "highest"]
    rows = []
    seen = dict.fromkeys((r.evaluator, r.split, r.attacker) for r in linked)
    for evaluator, split, attack in seen:
        if attack == "unprotected":
            continue
        where = (evaluator, split)
        for name, own in series.items():
            names = sorted({r.speaker for r in linked
                            if (r.evaluator, r.split, r.attacker) == (*where, attack)
                            and r.system in own})  # fmt: skip
            for speaker in names:
                cells = []
                for metric in metrics:
                    column = Column("", metric, 1, 2)
                    before = index.get((*where, "unprotected", "original", speaker, metric))
                    found = [index.get((*where, attack, s, speaker, metric), NOTHING) for s in own]
                    most = max((v.value for v in found if math.isfinite(v.value)), default=math.nan)
                    cells += [_cell(before, column), spread(found, column),
                              _cell(Value(most), column)]  # fmt: skip
                rows.append([split, evaluator, attack, name, speaker, *cells])
    return Table(header, rows, 5)


def render(results: Results, voices: Mapping[str, tuple[str, str]]) -> str:
    """RESULTS.md. voices: speaker and gender of each target that was asked for.

    UserError for a target without figures.
    """
    measured = {f.system for f in results.figures}
    for system in voices:
        if system not in measured:
            raise UserError(f"{results.folder}/metrics.csv: no figure of {system}; run stage 5")
    series = target_series(voices, fewest=1)
    told = results.run.get("origin")
    origin = told if isinstance(told, dict) else {}
    missing = [f"- {what}: {why}" for what, why in results.missing]
    parts = [
        f"# White box after Champion et al. 2021: {results.corpus}",
        NOTES.strip(),
        "## Over targets, beside Champion et al. 2021",
        over_targets(results, series).markdown(),
        _published().markdown(),
        "The paper's figures are of other speakers, another system and an x-vector network "
        "retrained from scratch: compare the pattern, not values.",
        "## Utility over targets",
        utility(results, series).markdown(),
        "## Speakers",
        by_speaker(results, series).markdown(),
        "## Targets",
        by_target(results, voices).markdown(),
        *(["## Missing", "\n".join(missing)] if missing else []),
        "## Origin",
        "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"
