# SPDX-License-Identifier: Apache-2.0
"""The page: one HTML file with everything in it, no network, no server."""

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from local.report import html, summary, tables
from local.report.html import element, raw
from local.report.load import Results
from local.report.markdown import SECTIONS as TABLES
from local.report.sections import Section
from local.report.speakers import Speaker, worst_first
from local.report.style import CSS, JS
from local.report.words import attacker, number, percent

MOST_AUDIO = 8_000_000  # bytes of clips as they stand in the page, which may have 15 MB
N_WORST = 10
_SIDES = ("original", "protected")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; media-src data:"
)


@dataclass
class _Contents:
    """Headings as they come, for the table of contents; gives each an anchor."""

    entries: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, title: str, level: int = 2) -> str:
        anchor = f"s{len(self.entries) + 1}"
        self.entries.append((level, title, anchor))
        return anchor

    def html(self) -> str:
        parts, depth = [], 1
        for level, title, anchor in self.entries:
            parts.append("<ul>" * (level - depth) + "</ul>" * (depth - level))
            parts.append(raw("li", element("a", title, href=f"#{anchor}")))
            depth = level
        return "".join(parts) + "</ul>" * (depth - 1)


def page(
    results: Results,
    sections: dict[str, list[Section]],
    *,
    with_audio: bool,
) -> str:
    """The whole page. sections: pictures by evaluator."""
    contents = _Contents()
    body = [_summary(results, contents)]
    for evaluator, drawn in sections.items():
        body += _evaluator(results, evaluator, drawn, contents, with_audio=with_audio)
    body += [_missing(results, contents), _origin(results, contents)]
    title = f"Privacy report: {results.corpus or 'no corpus named'}"
    toc = raw("details", element("summary", "Contents") + contents.html(), open="")
    nav = raw("nav", toc, aria_label="Contents")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n{element("title", title)}\n<style>{CSS}</style>\n'
        '</head>\n<body>\n<a class="skip" href="#main">To the results</a>\n'
        f'<div class="layout">\n{nav}\n<main id="main">\n{element("h1", title)}\n'
        + "\n".join(body)
        + f"\n</main>\n</div>\n<script>{JS}</script>\n</body>\n</html>\n"
    )


def _summary(results: Results, contents: _Contents) -> str:
    anchor = contents.add("Summary")
    parts = []
    for evaluator in results.evaluators():
        rows = summary.rows(results, evaluator)
        if not rows:
            continue
        parts.append(element("h3", f"Measured by evaluator {evaluator}"))
        parts.append(html.items(summary.findings(results, evaluator)))
        parts.append(_summary_table(rows, evaluator))
    if parts:
        meanings = [f"{m.title}: {m.meaning}." for m in summary.MEASURES]
        parts.append(raw("div", element("h3", "What the figures mean") + html.items(meanings)
            + element("p", _MARKS), class_="box prose"))  # fmt: skip
    else:
        parts.append(element("p", "No system was measured; see what is missing, below."))
    missing = summary.not_measured(results)
    if results.missing:
        missing.append(f"{len(results.missing)} results are missing or broken: see Missing.")
    box = element("h3", "What was not measured") + html.items(missing)
    parts.append(raw("div", box, class_="box warn prose"))
    return html.section("Summary", anchor, *parts)


_MARKS = (
    "In brackets: 95 % interval by resampling speakers. Best and worst are marked among the "
    "systems of a split; * means that the interval overlaps that of another system, so that the "
    "order may be chance."
)


def _summary_table(rows: Sequence[summary.Row], evaluator: str) -> str:
    header = [
        "system", "split", *(m.title for m in summary.MEASURES), "utility", "strongest attacker",
        "speakers",
    ]  # fmt: skip
    lines = []
    for r in rows:
        cells = [html.cell(_marked(c), number=True) for c in r.cells]
        who = attacker(r.attacker) if r.attacker else "not measured"
        cells += [html.plain(text) for text in ("not measured", who, r.speakers)]
        lines.append(html.row([r.system, r.split], cells))
    return html.table(f"Summary, evaluator {evaluator}", header, lines)


def _marked(cell: summary.Cell) -> str:
    text = escape(cell.text)
    if cell.mark:
        sign = "▲" if cell.mark == "best" else "▼"
        words = f"{sign} {cell.mark}" + ("" if cell.sure else "*")
        text += element("span", words, class_=cell.mark)
    return text


def _evaluator(
    results: Results,
    evaluator: str,
    drawn: Sequence[Section],
    contents: _Contents,
    *,
    with_audio: bool,
) -> list[str]:
    """Pictures, the worst-protected speakers and the tables of one evaluator."""
    parts = []
    name = f" ({evaluator})" if len(results.evaluators()) > 1 else ""
    pictures = []
    contents_at = contents.add(f"Pictures{name}")
    for section in drawn:
        if not section.pictures:
            continue
        anchor = contents.add(section.title, 3)
        figures = "".join(html.figure(picture) for picture in section.pictures)
        pictures.append(
            html.section(section.title, anchor, element("p", section.text),
                         raw("div", figures, class_="pictures"), level=3)
        )  # fmt: skip
    empty = [section.title for section in drawn if not section.pictures]
    if empty:
        text = (
            f"Not drawn, as it was not measured or is not defined on this data: {'; '.join(empty)}."
        )
        pictures.append(element("p", text, class_="soft"))
    parts.append(html.section(f"Pictures{name}", contents_at, *pictures))
    parts.append(_worst(results, evaluator, name, contents, with_audio=with_audio))
    own = tables.group(f for f in results.figures if f.evaluator == evaluator)
    at = contents.add(f"Tables{name}")
    shown = [_table(title, make(own), contents) for title, make in TABLES]
    parts.append(html.section(f"Tables{name}", at, element("p", _SORT, class_="soft"), *shown))
    return parts


_SORT = "A click (or Enter) on a heading sorts the table. Brackets: 95 % interval over speakers."


def _table(title: str, table: tables.Table, contents: _Contents) -> str:
    anchor = contents.add(title, 3)
    if not table.rows:
        return html.section(title, anchor, element("p", "Not measured."), level=3)
    lines = [html.row(r[:1], map(html.plain, r[1:])) for r in table.rows]
    return html.section(title, anchor, html.table(title, table.header, lines), level=3)


def _worst(
    results: Results, evaluator: str, name: str, contents: _Contents, *, with_audio: bool
) -> str:
    title = f"The worst-protected speakers{name}"
    anchor = contents.add(title)
    clips = _Clips(results, evaluator) if with_audio and results.clips else None
    parts = [element("p", _WORST + (_CLIPS if clips else _NO_CLIPS))]
    for system in results.systems():
        speakers = worst_first(results.speakers, system, evaluator)[:N_WORST]
        if not speakers:
            continue
        at = contents.add(system, 3)
        header = ["speaker", "linkability", *(_SIDES if clips else ())]
        header += ["best attacker", "split", "DeID (%)", "G_VD (dB)"]
        lines = [_speaker(s, system, clips) for s in speakers]
        table = html.table(f"Worst-protected speakers, {system}", header, lines, fixed=_SIDES)
        parts.append(html.section(system, at, table, level=3))
        if clips and clips.left_out:
            parts.append(element("p", "More clips would make the page too big.", class_="soft"))
    if len(parts) == 1:
        parts.append(element("p", "Not measured: per_speaker.csv holds no protected speaker."))
    return html.section(title, anchor, *parts)


_CLIPS = " Clips: the loudest three seconds of an utterance, the same stretch in both."
_NO_CLIPS = " No clips: audio was left out."
_WORST = (
    f"Up to {N_WORST} speakers of each system, those first whom the attacker who does best on them "
    "links most surely, then those whose old voice is least gone (DeID). A good average may hide "
    "these people."
)


def _speaker(s: Speaker, system: str, clips: "_Clips | None") -> str:
    rest = [attacker(s.attacker) if s.attacker else "none", s.split]
    rest += [percent(s.deid).removesuffix(" %"), number(s.g_vd)]
    players = clips.players(system, s) if clips else []
    return html.row([s.name, number(s.linkability, 3)], [*players, *map(html.plain, rest)])


class _Clips:
    """Players from the clips of the results, as long as they fit."""

    def __init__(self, results: Results, evaluator: str) -> None:
        self.results, self.left_out, self.size = results, 0, 0
        self.of = {
            (str(c.get("system")), str(c.get("split")), str(c.get("speaker"))): c
            for c in results.clips
            if c.get("evaluator") == evaluator
        }
        self.budget = MOST_AUDIO // max(1, len(results.evaluators()))

    def players(self, system: str, speaker: Speaker) -> list[str]:
        """Two cells: original and protected."""
        clip = self.of.get((system, speaker.split, speaker.name))
        if clip is None:
            return [html.plain("no clip")] * 2
        return [html.cell(self._player(clip, side, system)) for side in _SIDES]

    def _player(self, clip: dict[str, Any], side: str, system: str) -> str:
        name = str(clip.get(side))
        if not re.fullmatch(r"clips/\d+\.mp3", name):
            return "no clip"
        try:
            data = base64.b64encode((self.results.folder / name).read_bytes()).decode("ascii")
        except OSError as error:
            self.results.missing.append((name, f"cannot be read: {error.strerror}"))
            return "missing"
        if self.size + len(data) > self.budget:
            self.left_out += 1
            return "left out"
        self.size += len(data)
        by = "" if side == "original" else f" by {system}"
        text = f"{side.capitalize()} speech of {clip['speaker']}{by}, utterance {clip['utterance']}"
        return html.audio(f"data:audio/mpeg;base64,{data}", text)


def _missing(results: Results, contents: _Contents) -> str:
    anchor = contents.add("Missing")
    if not results.missing:
        return html.section("Missing", anchor, element("p", "Nothing of what was run is missing."))
    lines = [html.row([what], [html.plain(why)]) for what, why in results.missing]
    return html.section("Missing", anchor, html.table("Missing", ["what", "why"], lines))


def _origin(results: Results, contents: _Contents) -> str:
    anchor = contents.add("Where this comes from")
    told = results.run.get("origin")
    known = {str(k): str(v) for k, v in told.items()} if isinstance(told, dict) else {}
    corpus = ("corpus", results.corpus or "not named")
    parts = [html.definitions([corpus, *_counts(results), *known.items()])]
    if not known:
        parts.append(element("p", "run.json is missing: command, commit and versions are unknown."))
    systems = results.run.get("systems")
    for name, settings in (systems if isinstance(systems, dict) else {}).items():
        text = json.dumps(settings, ensure_ascii=False, sort_keys=True)
        parts.append(element("h3", f"Settings of {name}") + raw("p", element("code", text)))
    steps = results.run.get("steps")
    fields = ("folder", "settings", "command", "finished", "host")
    lines = [
        html.row([str(s.get("folder"))], [html.plain(str(s.get(f))) for f in fields[1:]])
        for s in (steps if isinstance(steps, list) else [])
        if isinstance(s, dict)
    ]
    if lines:
        table = html.table("How each figure was made", fields, lines)
        note = element("p", _DIGESTS, class_="soft")
        head = element("summary", f"How each of {len(lines)} comparisons was made")
        parts.append(raw("details", head + note + table))
    return html.section("Where this comes from", anchor, *parts)


def _counts(results: Results) -> list[tuple[str, str]]:
    """What was compared, by split: the most that any figure rests on."""
    names = {"n_speakers": "speakers", "n_segments": "segments",
             "n_target": "target trials", "n_nontarget": "nontarget trials"}  # fmt: skip
    found: dict[str, dict[str, int]] = {}
    for f in results.figures:
        for field_, name in names.items():
            count = getattr(f, field_)
            if count.isdecimal():
                own = found.setdefault(f.split, {})
                own[name] = max(own.get(name, 0), int(count))
    return [
        (split, ", ".join(f"{count} {name}" for name, count in own.items()))
        for split, own in found.items()
    ]


_DIGESTS = (
    "settings: digest of the command, of the content of all its inputs, and of its code; the same "
    "digest stands in every row of metrics.csv."
)


def write_size(path: Path) -> str:
    """Size of a file for people."""
    return f"{path.stat().st_size / 1e6:.1f} MB"
