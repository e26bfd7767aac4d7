# SPDX-License-Identifier: Apache-2.0
"""Pieces of HTML; every text is escaped here, whoever named the system or the speaker."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from local.report.cards import terms_in
from local.report.draw import Picture

_NUMBERS = "0123456789−∞"
_INTERVAL = re.compile(r"(.*?) (\[.*\])")
_WIDE = 7  # columns beyond which those that hold one value in all rows are told above the table
_TOLD = 260  # letters of a finding that stand beneath a picture; a longer one is folded
_SHORT = 24  # letters of a name that does not break into lines


def element(name: str, text: str, **attributes: str) -> str:
    """`<name ...>text</name>` with the text escaped."""
    return raw(name, escape(text), **attributes)


def raw(name: str, html: str, **attributes: str) -> str:
    """The same around HTML; attributes are escaped, `class_` stands for class, `_` for `-`."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{words}>{html}</{name}>"


def items(texts: Iterable[str]) -> str:
    """A list of sentences."""
    return raw("ul", "".join(element("li", text) for text in texts))


def cell(html: str, *, number: bool = False) -> str:
    """A cell; a number does not break into lines."""
    return f'<td class="n">{html}</td>' if number else f"<td>{html}</td>"


def plain(text: str) -> str:
    """A cell of a text; an interval in brackets may stand beneath its value."""
    is_number = text[:1] != "" and text[0] in _NUMBERS
    found = _INTERVAL.fullmatch(text) if is_number else None
    if found is None:
        return cell(escape(text), number=is_number)
    return cell(f"{escape(found[1])} {element('span', found[2])}", number=True)


def table(
    caption: str, header: Sequence[str], rows: Iterable[str], *, fixed: Sequence[str] = ()
) -> str:
    """A table in a box that scrolls by itself; its headings sort.

    rows: <tr>...</tr>; fixed: headings of columns that say nothing to sort by.
    """
    heads = "".join(
        element("th", title, scope="col", class_="fixed")
        if title in fixed
        else raw("th", element("button", title, type="button"), scope="col", aria_sort="none")
        for title in header
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table data-sortable aria-label="{escape(caption)}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{terms(header)}"
    )


def sheet(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts. Of a wide one, columns with one value in all rows are told above it, but
    for those that only their place explains: chance levels, and headings that occur twice."""
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
    lines = [row([own[0]], [plain(own[i]) for i in kept[1:]]) for own in rows]
    told = "; ".join(f"{header[i]}: {value}" for i, value in same.items())
    above = element("p", f"In all rows: {told}.", class_="soft") if same else ""
    return above + table(caption, [header[i] for i in kept], lines)


def terms(header: Sequence[str]) -> str:
    """Links from the terms of headings to their cards."""
    links = [element("a", term, href=f"#card-{card}") for term, card in terms_in(header).items()]
    return raw("p", f"Terms: {', '.join(links)}", class_="terms") if links else ""


def row(names: Sequence[str], cells: Iterable[str]) -> str:
    """A row whose first cell is its heading. names: texts; cells: <td>...</td>."""
    short = " n" if len(names[0]) <= _SHORT else ""
    head = element("th", names[0], scope="row", class_=f"name{short}")
    return f"<tr>{head}{''.join(plain(text) for text in names[1:])}{''.join(cells)}</tr>"


def figure(picture: Picture) -> str:
    """A picture with its finding beneath, which is its alternative text too."""
    svg = picture.svg.replace(
        "<svg", f'<svg role="img" aria-label="{escape(picture.title)}. {escape(picture.alt)}"', 1
    )
    caption = element("b", picture.title)
    if len(picture.alt) <= _TOLD:
        caption += escape(picture.alt)
    else:
        caption += raw("details", element("summary", "In words") + escape(picture.alt))
    return raw("figure", svg + raw("figcaption", caption), id=f"picture-{picture.name}")


def audio(clip: str, text: str) -> str:
    """A player. clip: a name in the store of clips, from which the script of the page fills it when
    it comes into view; text: what is heard."""
    return raw("audio", "", controls="", preload="metadata", aria_label=text, data_clip=clip)


def definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values."""
    return raw("dl", "".join(element("dt", name) + element("dd", value) for name, value in pairs))


def section(title: str, anchor: str, *parts: str, level: int = 2) -> str:
    """A heading with an anchor, and what follows it."""
    head = element(f"h{level}", title, id=anchor)
    return raw("section", head + "\n".join(parts), aria_labelledby=anchor)


@dataclass
class Contents:
    """Headings as they come, for the table of contents; gives each an anchor."""

    entries: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, title: str, level: int = 2) -> str:
        """The anchor of a new heading of `level` (2 to 4)."""
        anchor = f"s{len(self.entries) + 1}"
        self.entries.append((level, title, anchor))
        return anchor

    def html(self) -> str:
        """Lists within lists; those of the lowest level (4) are folded."""
        return self._list(self.entries)

    def _list(self, entries: Sequence[tuple[int, str, str]]) -> str:
        if not entries:
            return ""
        starts = [i for i, entry in enumerate(entries) if entry[0] <= entries[0][0]]
        parts = []
        for start, stop in zip(starts, [*starts[1:], len(entries)], strict=True):
            level, title, anchor = entries[start]
            beneath = self._list(entries[start + 1 : stop])
            if level == 3 and beneath:
                n = stop - start - 1
                head = element("summary", f"{n} system{'s'[: n > 1]}")
                beneath = raw("details", head + beneath)
            parts.append(raw("li", element("a", title, href=f"#{anchor}") + beneath))
        return raw("ul", "".join(parts))
