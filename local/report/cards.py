"""What the terms of the page mean: the cards of docs/metrics, which tables link to."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from local.report.frame import MEASURES

FOLDER = Path(__file__).resolve().parents[2] / "docs/metrics"
# As headings have them, and their cards; of two that fit the same letters the first one counts.
TERMS = {"legal linkability": "legal", "singling out": "legal", "chance": "chance"} | {
    term: next(m.card for m in MEASURES.values() if term in m.title)
    for term in (
        "ROCCH-EER", "EER", "C_ECE", "D_ECE", "l_w", "min Cllr", "DeID", "G_VD", "D_diag", "CMC",
        "linkability", "mean rank", "named", "CCA", "Procrustes", "WER", "UAR", "MOS",
    )
}  # fmt: skip
_TERM = re.compile("|".join(map(re.escape, TERMS)))
_SHOWN = ("Question", "Range and direction", "Hides")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Card:
    """name: of its file; paragraphs: what is asked, how to read it, what it hides."""

    name: str
    title: str
    paragraphs: tuple[str, ...]


def terms_in(texts: Iterable[str]) -> dict[str, str]:
    """The terms that stand in headings, and their cards.

    >>> terms_in(["EER (%)", "legal linkability, 3 utterances (%)"])
    {'EER': 'eer', 'legal linkability': 'legal'}
    """
    return {term: TERMS[term] for text in texts for term in _TERM.findall(text)}


def cards() -> Iterator[Card]:
    """Every card that a term has, by name."""
    for name in sorted(set(TERMS.values())):
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        told = re.findall(r"^\*\*([^*]+)\.\*\* (.+)$", text, flags=re.MULTILINE)
        yield Card(
            name,
            _plain(title.rpartition("`: ")[2] or title),
            tuple(_plain(said) for what, said in told if what in _SHOWN)
            or (_plain(text.split("\n\n")[1]),),
        )


def _plain(text: str) -> str:
    """Markdown without its marks."""
    return re.sub(r"[`*]", "", _LINK.sub(r"\1", text))
