"""The page, one HTML file with everything in it, and RESULTS.md, both from templates/."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

from markupsafe import Markup

from local.report import findings, select, tables
from local.report.draw import Picture, css
from local.report.frame import where
from local.report.pictures import Section
from local.report.results import Group, Person, Results
from local.report.select import Level
from local.report.wording import Marked, render

MOST = 14_500_000  # bytes of the page, which is to stay below 15 MB
MOST_AUDIO = 8_000_000  # of these for clips
SIDES = ("original", "protected")
N_WORST = 10
_INTERVAL = re.compile(r"(.*?) (\[.*\])")
_SENTENCE = 40  # letters from which on a cell needs room
_WIDE = 7  # columns beyond which those that hold one value in all rows are told above the table
_LONG = 80  # letters of what a system says of itself on the first screen; the details have all


@dataclass
class Entry:
    """A heading, and those beneath it."""

    title: str
    anchor: str
    beneath: list["Entry"] = field(default_factory=list)


class Headings:
    """Headings as they come, for the table of contents; gives each an anchor. tree: those of level
    2, each with those beneath it."""

    def __init__(self) -> None:
        self.tree: list[Entry] = []
        self._n = 0

    def add(self, title: str, level: int) -> str:
        """The anchor of a new heading of `level` (2 or 3)."""
        self._n += 1
        entry = Entry(title, f"s{self._n}")
        (self.tree if level == 2 else self.tree[-1].beneath).append(entry)
        return entry.anchor


class Players:
    """Clips of the worst-protected speakers, the worst of every group first, up to a budget.

    budget: bytes that the clips may take in the page. An original is shared by all systems.
    left_out: how many pairs of clips did not fit.
    """

    def __init__(self, results: Results, budget: int) -> None:
        self.left_out = 0
        self.data: dict[str, str] = {}  # base64, by the name of the file
        self._fits: list[tuple[Group, Person]] = []
        self._clips = {
            (*(str(c.get(k)) for k in ("system", "evaluator", "split", "speaker")),): c
            for c in results.clips
        }
        read = cache(partial(_read_clip, results))
        ranked = [(i, *one) for worst in results.worst_people(N_WORST).values()
                  for i, one in enumerate(worst)]  # fmt: skip
        for _, group, person in sorted(ranked, key=lambda one: one[0]):
            if clip := self._clips.get((*group, person.name)):
                found = {name: read(name) for name in (str(clip.get(side)) for side in SIDES)}
                new = {name: data for name, data in found.items() if data and name not in self.data}
                size = sum(map(len, new.values()))
                if size > budget:
                    self.left_out += 1
                    continue
                budget -= size
                self.data |= new
                self._fits.append((group, person))

    def worst(self) -> tuple[Group, Person] | None:
        """Who of all that can be heard is protected worst, and in which group."""
        return min(self._fits, key=lambda pair: (pair[1].order(), pair[0]), default=None)

    def heard(self, group: Group, person: Person) -> list[dict[str, str]]:
        """The original and its protected version: `clip`, a name in the store, and `text`, what is
        heard; without a clip, why there is none."""
        clip = self._clips.get((*group, person.name))
        if clip is None or (group, person) not in self._fits:
            return [{"text": "no clip" if clip is None else "left out"}] * 2
        told = []
        for side, by in zip(SIDES, ("", f" by {group[0]}"), strict=True):
            name, said = str(clip.get(side)), f"{side.capitalize()} speech of {clip['speaker']}{by}"
            heard = {"clip": name, "text": f"{said}, utterance {clip['utterance']}"}
            told.append(heard if name in self.data else {"text": "missing"})
        return told

    def store(self) -> str:
        """The clips themselves, for the end of the page; its script gives them to the players."""
        return json.dumps(self.data, sort_keys=True)


def _read_clip(results: Results, name: str) -> str:
    """A file as base64; empty, and named among what is missing, where it is missing."""
    try:
        if not re.fullmatch(r"clips/\d+\.mp3", name):
            raise OSError(0, "not the name of a clip")
        return base64.b64encode((results.folder / name).read_bytes()).decode("ascii")
    except OSError as error:
        results.note(name, f"{name}: cannot be read: {error.strerror}; run stage 11")
        return ""


def page(
    results: Results,
    first: Sequence[Picture],
    sections: Sequence[Section],
    utility: Section,
    *,
    with_audio: bool,
) -> str:
    """The whole page. first: pictures of the first screen; sections: those by evaluators; utility:
    those of no one evaluator. Clips get the room that the rest leaves."""
    given = {"first": first, "sections": sections, "utility": utility, **_shared(results)}
    as_json = partial(json.dumps, ensure_ascii=False, sort_keys=True)
    given |= _of_html() | {
        "N_WORST": N_WORST, "SIDES": SIDES,
        "as_json": as_json, "board_rows": board(results),
        "worst": [*chain(*results.worst_people(N_WORST).values())],
    }  # fmt: skip

    def whole(players: Players | None) -> str:
        more = {"players": players, "contents": Headings()}
        return render("local/report/templates/report.html.jinja", **given, **more)

    silent = whole(None)
    if not with_audio or not results.clips:
        return silent
    return whole(Players(results, min(MOST_AUDIO, MOST - len(silent.encode()))))


def markdown(results: Results) -> str:
    """The whole report in Markdown."""
    told = _shared(results)
    n = results.metrics["settings"].nunique()
    settings = Marked(f"{n} digests, in the column `settings` of metrics.csv")
    fronts = [t.finding() for t in select.trades(results.metrics) if t.points]
    return render(
        "local/report/templates/report.md.jinja", **told,
        corpus=results.corpus, fronts=fronts,
        origin={**results.origin, "settings": settings},
    )  # fmt: skip


def runs_page(runs: Mapping[str, Results], links: Mapping[str, str]) -> str:
    """The page of several runs. links: to the report of each."""
    rows = [
        row._replace(told=run, link=links[run])
        for run, results in runs.items() for row in board(results)
    ]  # fmt: skip
    rows.sort(key=lambda row: (-row.line.judged.verdict.level, -row.line.judged.eer.value))
    return render(
        "local/report/templates/runs.html.jinja", **_of_runs(runs), **_of_html(), board_rows=rows,
        contents=Headings(),
    )  # fmt: skip


def _of_html() -> dict[str, Any]:
    """Contents that all pages share."""
    light, dark = css()
    return {
        "light": light, "dark": dark, "cell": cell, "without_constants": without_constants,
        "tables": tables, "fold": select.fold, "by": tables.by,
    }  # fmt: skip


def runs_markdown(runs: Mapping[str, Results]) -> str:
    """The same in Markdown."""
    return render("local/report/templates/runs.md.jinja", **_of_runs(runs))


def _of_runs(runs: Mapping[str, Results]) -> dict[str, Any]:
    return {
        "n": len(runs), "verdicts": tables.verdict_table(runs), "made": tables.run_table(runs),
        "doubts": findings.beside(runs),
    }  # fmt: skip


def _shared(results: Results) -> dict[str, Any]:
    """Contents that the page and RESULTS.md share."""
    return {
        "results": results, "findings": findings, "select": select,
        "evaluators": (by := results.evaluators()), "notes": findings.notes(results),
        "verdicts": tables.verdict_table({"": results}),
        "summary": [(title, make(results.metrics)) for title, make in SUMMARY.items()],
        "useful": tables.utility_table(results.metrics),
        "has_mos": "mos" in set(results.metrics["metric"]),
        "prosody": tables.tabulate(tables.PROSODY, where(results.metrics, evaluator="prosody")),
        "PROSODY": tables.PROSODY.title,
        "by_evaluators": [(spec.title, tables.tabulate(spec, where(results.metrics, evaluator=by)))
                          for spec in tables.SPECS.values()],
    }  # fmt: skip


def cell(text: str) -> Markup:
    """A cell of a text; an interval in brackets may stand beneath its value."""
    if text[:1] not in {*"0123456789−∞"}:
        long = Markup(' class="long"') if len(text) > _SENTENCE else ""
        return Markup("<td{}>{}</td>").format(long, Markup("/<wbr>").join(text.split("/")))
    if found := _INTERVAL.fullmatch(text):
        return Markup('<td class="n">{} <span>{}</span></td>').format(*found.groups())
    return Markup('<td class="n">{}</td>').format(text)


def without_constants(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[str, list[str], list[list[str]]]:
    """Columns of a wide table with one value in all rows, in words, and the rest of it. Columns
    that only their place explains stay: chance levels, and headings that occur twice."""
    same = {
        i: rows[0][i]
        for i in range(1, len(header))
        if len(header) > _WIDE
        and len(rows) > 1
        and header.count(header[i]) == 1
        and not header[i].startswith("chance")
        and len({own[i] for own in rows}) == 1
    }
    kept = [i for i in range(len(header)) if i not in same]
    said = "; ".join(f"{header[i]}: {value}" for i, value in same.items())
    return said, [header[i] for i in kept], [[own[i] for i in kept] for own in rows]


_COLOURS = {Level.NOTHING: "bad", Level.MOSTLY: "bad", Level.OFTEN: "bad", Level.HIDDEN: "good"}
SUMMARY = {  # tables of all evaluators together
    "Differences between systems": tables.difference_table,
    "Sex and age": tables.group_table,
    "Among more candidates": tables.crowd_table,
    "Recordings enrolled": tables.enrolment_table,
}
_USES = {"wer": "words misheard", "uar": "emotions heard", "mos": "sound, 1 to 5,"}


def colour(level: Level) -> str:
    """`bad`, `good` or `open`: the class of a verdict."""
    return _COLOURS.get(level, "open")


class Row(NamedTuple):
    """A row of the first screen. told: what the system is, or of which run; colour: a class of the
    verdict; use: headings and figures; link: to the report of its run, if there are several."""

    line: select.Line
    told: str
    colour: str
    use: list[tuple[str, str]]
    link: str = ""


def board(results: Results) -> list[Row]:
    """The rows of the first screen."""
    kept = select.uses(results.metrics)
    notes = dict(findings.notes(results))

    def told(system: str) -> str:
        note = notes.get(system, "").partition(". ")[0].removesuffix(".")
        kind = str(results.settings(system).get("anonymiser") or "").replace("_", " ")
        return note if 0 < len(note) <= _LONG else kind

    return [
        Row(line, told(line.system), colour(line.judged.verdict.level),
            [(f"{_USES[metric]} by {who}", text)
             for (metric, who), text in tables.used(kept, line.system, unit=True) if text != "–"])
        for line in select.lines(results)
    ]  # fmt: skip
