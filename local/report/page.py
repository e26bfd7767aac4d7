# SPDX-License-Identifier: Apache-2.0
"""The page: one HTML file with everything in it, no network, no server."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from local.report import doubts, html, strongest, summary, systems, tables
from local.report.cards import cards
from local.report.draw import Picture
from local.report.html import Contents, element, raw
from local.report.load import Results
from local.report.markdown import SECTIONS as TABLES
from local.report.players import Players
from local.report.recognisers import opinions
from local.report.screen import NO_ATTACK, screen
from local.report.sections import Section
from local.report.style import CSS, JS
from local.report.words import attacker
from local.report.worst import worst

MOST = 14_500_000  # bytes of the page, which is to stay below 15 MB
MOST_AUDIO = 8_000_000  # of these for clips
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; media-src data:"
)


def page(
    results: Results,
    first: Sequence[Picture],
    sections: dict[str, list[Section]],
    utility: Section,
    *,
    with_audio: bool,
) -> str:
    """The whole page. first: pictures of the first screen; sections: pictures by evaluator;
    utility: those of no one evaluator. Clips get the room that the rest leaves."""

    def whole(players: Players | None) -> str:
        contents = Contents()
        details = _details(results, sections, utility, players, contents)
        return _page(results, screen(results, first, players, contents), details, players)

    silent = whole(None)
    if not with_audio or not results.clips:
        return silent
    return whole(Players(results, min(MOST_AUDIO, MOST - len(silent.encode()))))


def _page(results: Results, front: str, details: str, players: Players | None) -> str:
    title = f"Privacy report: {results.corpus or 'no corpus named'}"
    store = players.store() + "\n" if players else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n{element("title", title)}\n<style>{CSS}</style>\n'
        f'</head>\n<body>\n<main id="main">\n{element("h1", title)}\n{front}\n{details}\n'
        f"</main>\n{store}<script>{JS}</script>\n</body>\n</html>\n"
    )


def _details(
    results: Results,
    sections: dict[str, list[Section]],
    utility: Section,
    players: Players | None,
    contents: Contents,
) -> str:
    """All that the first screen leaves out, folded; its headings come to `contents`."""
    body = [_summary(results, contents)]
    for evaluator, drawn in sections.items():
        body += _evaluator(results, evaluator, drawn, contents, players)
    body.append(_utility(results, utility, contents))
    prosody = tables.prosody_table(results.figures)
    if prosody.rows:
        name = tables.PROSODY_TITLE
        table = html.sheet(name, prosody.header, prosody.rows)
        body.append(html.section(name, contents.add(name), table))
    body.append(_times(results, contents))
    body.append(_terms(contents))
    body += [_missing(results, contents), _origin(results, contents)]
    toc = raw("details", element("summary", "Contents") + contents.html(), open="")
    nav = raw("nav", toc, aria_label="Contents")
    head = element("summary", "Details for specialists", id="specialists")
    inside = raw("div", "\n".join((nav, *body)), class_="inside")
    return raw("details", head + inside, class_="specialists")


def _summary(results: Results, contents: Contents) -> str:
    anchor = contents.add("Summary")
    parts = []
    if warnings := doubts.doubts(results.figures):
        box = element("h3", doubts.TITLE) + html.items(warnings)
        parts.append(raw("div", box, class_="box warn alarm prose"))
    parts += _strongest(results)
    for evaluator in results.evaluators():
        rows = summary.rows(results, evaluator)
        if not rows:
            continue
        parts.append(element("h3", f"Measured by evaluator {evaluator}"))
        parts += _findings(summary.findings(results, evaluator), _summary_table(rows, evaluator))
        parts += _vocoder(results, evaluator)
    parts += _notes(results)
    if results.evaluators():
        used = [m for m in summary.USES if results.recognisers(m.metric)]
        meanings = [f"{m.title}: {m.meaning}." for m in (*summary.MEASURES, *used)]
        parts.append(raw("div", element("h3", "What the figures mean") + html.items(meanings)
            + element("p", _MARKS), class_="box prose"))  # fmt: skip
    else:
        parts.append(element("p", NO_ATTACK))
    missing = summary.not_measured(results)
    if results.missing:
        missing.append(f"{len(results.missing)} results are missing or broken: see Missing.")
    box = element("h3", "What was not measured") + html.items(missing)
    parts.append(raw("div", box, class_="box warn prose"))
    return html.section("Summary", anchor, *parts)


def _strongest(results: Results) -> list[str]:
    """The report's first table."""
    found = strongest.strongest_table(results.figures)
    if not found.rows:
        return []
    return [
        element("h3", strongest.TITLE),
        html.sheet(strongest.TITLE, found.header, found.rows),
        element("p", strongest.READING, class_="soft"),
    ]


def _vocoder(results: Results, evaluator: str) -> list[str]:
    """What of each conversion's protection copy synthesis has, too."""
    found = systems.vocoder_table(results, evaluator)
    if not found.rows:
        return []
    return [
        element("h4", systems.VOCODER_TITLE),
        html.sheet(f"{systems.VOCODER_TITLE}, {evaluator}", found.header, found.rows),
        element("p", systems.VOCODER_READING, class_="soft"),
    ]


def _findings(said: Sequence[str], table: str) -> list[str]:
    """Few sentences stand before the table, many are folded beneath it."""
    if len(said) <= _FEW:
        return [html.items(said), table]
    folded = element("summary", f"In words: {len(said)} findings") + html.items(said)
    return [table, raw("details", folded)]


def _notes(results: Results) -> list[str]:
    """The systems in their own words, where they have some."""
    told = systems.notes(results)
    return (
        [element("h3", "What systems say of themselves") + html.definitions(told)] if told else []
    )


_FEW = 6  # findings that are read before the table
_MARKS = (
    "In brackets: 95 % interval by resampling speakers. Best and worst are marked among the "
    "systems of a split, utility within a recogniser; * means that the interval overlaps that of "
    "another system, so that the order may be chance. A dash: not measured by this recogniser."
)


def _summary_table(rows: Sequence[summary.Row], evaluator: str) -> str:
    columns = list(rows[0].cells)
    without = [] if any(m.recogniser for m in columns) else ["utility"]
    header = ["system", "split", *(m.title for m in columns), *without]
    header += ["strongest attacker", "speakers"]
    lines = []
    for r in rows:
        cells = [html.cell(_marked(c), number=True) for c in r.cells.values()]
        who = attacker(r.attacker) if r.attacker else tables.MISSING
        cells += map(html.plain, (*(tables.MISSING for _ in without), who, r.speakers))
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
    contents: Contents,
    players: Players | None,
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
    parts.append(worst(results, evaluator, name, contents, players))
    own = tables.group(f for f in results.figures if f.evaluator == evaluator)
    at = contents.add(f"Tables{name}")
    shown = [_table(title, make(own), contents) for title, make in TABLES]
    parts.append(html.section(f"Tables{name}", at, element("p", _SORT, class_="soft"), *shown))
    return parts


_SORT = "A click (or Enter) on a heading sorts the table. Brackets: 95 % interval over speakers."


def _table(title: str, table: tables.Table, contents: Contents) -> str:
    anchor = contents.add(title, 3)
    if not table.rows:
        return html.section(title, anchor, element("p", "Not measured."), level=3)
    return html.section(title, anchor, html.sheet(title, table.header, table.rows), level=3)


def _utility(results: Results, drawn: Section, contents: Contents) -> str:
    """Word error rates and recalls: against privacy, and the table."""
    at, rows = contents.add(drawn.title), tables.utility_table(results.figures).rows
    if not rows:
        return html.section(drawn.title, at, element("p", "Not measured."))
    parts = [element("p", _NO_TRADE, class_="soft")]
    if drawn.pictures:
        figures = "".join(html.figure(picture) for picture in drawn.pictures)
        parts = [element("p", drawn.text), raw("div", figures, class_="pictures")]
    if said := opinions(results.figures):
        parts.append(element("h3", "Second opinion") + html.items(said))
    parts.append(html.sheet(drawn.title, tables.UTILITY_HEADER, rows))
    if reading := tables.utility_reading(results.figures):
        parts.append(element("p", reading, class_="soft"))
    return html.section(drawn.title, at, *parts)


_NO_TRADE = "No picture of privacy against utility: no system has both on one split."


def _times(results: Results, contents: Contents) -> str:
    name = tables.RTF_TITLE
    at, found = contents.add(name), tables.rtf_table(results.timings)
    if not found.rows:
        return html.section(name, at, element("p", "Not measured."))
    reading = element("p", tables.RTF_READING, class_="soft")
    return html.section(name, at, reading, html.sheet(name, found.header, found.rows))


def _terms(contents: Contents) -> str:
    """The cards that tables link to."""
    name = "What the terms mean"
    at = contents.add(name)
    told = "".join(
        element("dt", card.title, id=f"card-{card.name}")
        + raw("dd", "".join(element("p", text) for text in card.paragraphs))
        for card in cards()
    )
    return html.section(name, at, raw("dl", told, class_="cards"))


def _missing(results: Results, contents: Contents) -> str:
    anchor = contents.add("Missing")
    if not results.missing:
        return html.section("Missing", anchor, element("p", "Nothing of what was run is missing."))
    table = html.sheet("Missing", ["what", "why"], results.missing)
    return html.section("Missing", anchor, table)


def _origin(results: Results, contents: Contents) -> str:
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
    parts += _attacks(results)
    steps = results.run.get("steps")
    fields = ("folder", "settings", "command", "finished", "host")
    lines = [
        [str(s.get(f)) for f in fields]
        for s in (steps if isinstance(steps, list) else [])
        if isinstance(s, dict)
    ]
    if lines:
        table = html.sheet("How each figure was made", fields, lines)
        note = element("p", _DIGESTS, class_="soft")
        head = element("summary", f"How each of {len(lines)} comparisons was made")
        parts.append(raw("details", head + note + table, class_="paths"))
    return html.section("Where this comes from", anchor, *parts)


def _attacks(results: Results) -> list[str]:
    """Sets, draws and models of each attack, folded."""
    told = results.run.get("attacks")
    records = [r for r in (told if isinstance(told, list) else []) if isinstance(r, dict)]
    if not records:
        return []
    header = ["scores", "enrolment", "trials", "draws", "learnt from", "encoder", "back end"]
    lines = []
    for r in records:
        sides = [_set_of(r.get(side)) for side in ("enrolment_set", "trial_set")]
        compared, encoder = r.get("comparison") or {}, r.get("encoder") or {}
        texts = [*sides, str(compared.get("draws")), _learnt_from(r),
                 str(encoder.get("encoder")), str(r.get("backend"))]  # fmt: skip
        lines.append([str(r.get("scores")), *texts])
    head = element("summary", f"What each of {len(lines)} attacks was")
    return [
        raw("details", head + html.sheet("What each attack was", header, lines), class_="paths")
    ]


def _learnt_from(record: dict[str, object]) -> str:
    """The training set of an attack, or the pairs that it was aligned with."""
    if record.get("pairs"):
        return f"pairs before and after protection: {_set_of(record['pairs'])}"
    return _set_of(record.get("training_set"))


def _set_of(record: object) -> str:
    """A set of an attack: its folder, and seed, draw and level where it is protected."""
    if not isinstance(record, dict):
        return "original speech"
    text = f"{record.get('data')}: {record.get('n_speakers')} speakers"
    if record.get("protected"):
        text += f", level {record.get('key_level')}, seed {record.get('seed')}"
        text += f", draw {record.get('draw')}"
    return text


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
