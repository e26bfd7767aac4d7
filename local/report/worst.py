# SPDX-License-Identifier: Apache-2.0
"""The part of the page on the worst-protected speakers: a section a speaker group and system."""

from local.report import html
from local.report.html import Contents, element
from local.report.load import Results
from local.report.players import N_WORST, SIDES, Group, Players
from local.report.speakers import Speaker, worst_first
from local.report.words import HEARD, attacker, number, percent

_HOW = (
    f"Up to {N_WORST} speakers of each group and system, those first whom the attacker who does "
    f"best on them links most surely, then those whose old voice is least gone {HEARD} (DeID). "
    "A good average may hide these people."
)
_CLIPS = (
    " Clips: the loudest three seconds of an utterance, the same stretch in both. They need "
    "JavaScript."
)
_NO_CLIPS = " No clips: audio was left out."


def worst(
    results: Results, evaluator: str, name: str, contents: Contents, players: Players | None
) -> str:
    """The sections of one evaluator. name: what its heading adds; players: None without audio."""
    title = f"The worst-protected speakers{name}"
    anchor = contents.add(title)
    parts = [element("p", _HOW + (_CLIPS if players else _NO_CLIPS))]
    if players and players.left_out:
        n = sum(players.left_out.values())
        text = (
            f"{n} pairs of clips (all evaluators) are left out, as the page would be too big: "
            "those of the speakers who are protected less badly. They lie in exp/results/clips."
        )
        parts.append(element("p", text, class_="soft"))
    before = len(parts)
    for split in results.splits(evaluator):
        groups = [(system, evaluator, split) for system in results.systems()]
        found = {g: worst_first(results.speakers, *g)[:N_WORST] for g in groups}
        measured = {g: speakers for g, speakers in found.items() if speakers}
        if measured:
            at = contents.add(split, 3)
            own = [_group(g, s, name, contents, players) for g, s in measured.items()]
            parts.append(html.section(split, at, *own, level=3))
    if len(parts) == before:
        parts.append(element("p", "Not measured: per_speaker.csv holds no protected speaker."))
    return html.section(title, anchor, *parts)


def _group(
    group: Group, speakers: list[Speaker], name: str, contents: Contents, players: Players | None
) -> str:
    system, _, split = group
    anchor = contents.add(system, 4)
    header = ["speaker", "linkability", *(SIDES if players else ())]
    header += ["best attacker", "DeID (%)", "G_VD (dB)"]
    lines = [_row(s, players.cells(group, s) if players else []) for s in speakers]
    title = f"{system} on {split}"
    table = html.table(f"Worst-protected speakers, {title}{name}", header, lines, fixed=SIDES)
    return html.section(title, anchor, table, level=4)


def _row(s: Speaker, players: list[str]) -> str:
    rest = [attacker(s.attacker) if s.attacker else "none"]
    rest += [percent(s.deid).removesuffix(" %"), number(s.g_vd)]
    return html.row([s.name, number(s.linkability, 3)], [*players, *map(html.plain, rest)])
