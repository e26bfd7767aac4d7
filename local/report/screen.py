# SPDX-License-Identifier: Apache-2.0
"""The page's first screen: what was tested on whom, a verdict a system, and whether to trust it;
then three pictures and one pair of clips."""

from collections.abc import Sequence
from html import escape

from local.report import doubts, evidence, html
from local.report.draw import Picture
from local.report.html import Contents, element, raw
from local.report.load import Results
from local.report.players import SIDES, Players
from local.report.systems import notes
from local.report.tables import Table
from local.report.verdict import RULES

TITLE = evidence.TITLE
_LONG = 130  # letters of what a system says of itself here; all of it stands in the details
LEGAL = "Legal criteria"
NO_NOTE = "Whether these voices are real or synthetic was not recorded"
NO_ATTACK = "No attack was measured, so nothing is said of privacy."


def screen(
    results: Results, pictures: Sequence[Picture], players: Players | None, contents: Contents
) -> str:
    """Everything before the details, whose headings are `contents`."""
    found = evidence.verdict_table(results.figures, results.speakers)
    parts = [element("p", _whom(results), class_="whom")]
    if found.rows:
        boxes = _trust(results, contents) + _now(results)
        parts += [_table(results, found), html.terms(found.header), boxes]
    else:
        parts.append(element("p", NO_ATTACK))
    if pictures:
        parts.append(raw("div", "".join(map(html.figure, pictures)), class_="pictures three"))
    if players:
        parts.append(_clips(players))
    parts.append(_more(contents))
    return raw("section", "\n".join(parts), class_="front", aria_label=TITLE)


def _more(contents: Contents) -> str:
    """Links into the details: to what is not of one evaluator of several, and to the criteria that
    regulators name."""
    found: dict[str, str] = {}
    for level, title, anchor in contents.entries:
        if (level == 2 and "(" not in title) or (level == 3 and title.startswith(LEGAL)):
            found.setdefault(title.partition(":")[0], anchor)
    links = (element("a", title, href=f"#{anchor}") for title, anchor in found.items())
    return raw("p", f"In the details: {', '.join(links)}.", class_="terms")


def _whom(results: Results) -> str:
    """Whose speech, and when."""
    note = str(results.run.get("corpus_note") or NO_NOTE)
    origin = results.run.get("origin")
    date = str(origin.get("date") or "") if isinstance(origin, dict) else ""
    people = evidence.people(results.figures)
    told = [f"Speech of {people}" if people else "", note, f"Measured on {date}" if date else ""]
    return " ".join(f"{text}." for text in told if text)


def _table(results: Results, found: Table) -> str:
    """A row a system; on a phone, a paragraph a system with the headings between."""
    told: dict[str, str] = {}
    for system, note in notes(results):
        told.setdefault(system, note if len(note) <= _LONG else f"{note[: _LONG - 1].rstrip()}…")
    heads = "".join(element("th", title, scope="col") for title in found.header)
    lines = []
    for system, said, *rest in found.rows:
        own = told.get(system, _anonymiser(results, system))
        verdicts = "".join(
            element("span", part, class_=evidence.colour(part)) for part in said.split("; ")
        )
        cells = raw("td", raw("b", verdicts) + (element("small", own) if own else ""))
        cells += "".join(
            raw("td", _lines(text), data_label=title)
            for title, text in zip(found.header[2:], rest, strict=True)
        )
        lines.append(raw("tr", element("th", system, scope="row") + cells))
    head = raw("thead", raw("tr", heads))
    return raw("table", head + raw("tbody", "".join(lines)), class_="verdicts", aria_label=TITLE)


def _lines(text: str) -> str:
    """A cell whose groups of people stand on lines of their own."""
    return "".join(element("span", part) for part in text.split("; "))


def _anonymiser(results: Results, system: str) -> str:
    systems = results.run.get("systems")
    own = systems.get(system) if isinstance(systems, dict) else None
    name = own.get("anonymiser") if isinstance(own, dict) else None
    return str(name or "").replace("_", " ")


def _trust(results: Results, contents: Contents) -> str:
    """A red warning where the attackers are too weak, and how many warnings the details have."""
    weak = evidence.too_weak(results.figures)
    lines = [
        element("li", text, class_="alarm" if text == weak else "plain")
        for text in evidence.trust(results.figures)
    ]
    if n := len(doubts.doubts(results.figures)):
        text = f"{n} warning{'s'[: n > 1]} on single evaluators and systems"
        anchor = next((at for _, title, at in contents.entries if title == "Summary"), "")
        link = element("a", text, href=f"#{anchor}")
        lines.append(raw("li", f"{link} stand{'s'[n > 1 :]} in the details."))
    rules = element("summary", "How a verdict is made") + html.items(RULES)
    box = element("h2", "Can I trust this?") + raw("ul", "".join(lines))
    return raw("div", box + raw("details", rules), class_="box warn" if weak else "box")


def _now(results: Results) -> str:
    """Commands that would make the verdicts firmer."""
    steps = evidence.what_now(results.figures)
    if not steps:
        return ""
    lines = (
        raw("li", f"{escape(s.why)}: {element('code', s.command)} ({escape(s.time)}).")
        for s in steps
    )
    return raw("div", element("h2", "What now?") + raw("ul", "".join(lines)), class_="box")


def _clips(players: Players) -> str:
    """One pair: the person who is protected worst of all who can be heard here."""
    found = players.worst()
    if found is None:
        return ""
    group, speaker = found
    said = f"{speaker.name}, the worst-protected person who can be heard here, by {group[0]}: "
    pair = zip(SIDES, players.players(group, speaker), strict=True)
    heard = "".join(raw("span", escape(side) + player) for side, player in pair)
    return raw("div", element("span", said) + heard, class_="box pair")
