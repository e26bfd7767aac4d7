"""Times of a recording whose speech is said in another time: a table of its words, and the map."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from utils.cli import UserError
from utils.tables import read_lines, write_file


class Span(NamedTuple):
    """Seconds of a word in the recording and in its protected version. Without a word it is a
    stretch that was not read, whose time only moved; the last one, of no length, is the end."""

    old_begin: float
    old_end: float
    new_begin: float
    new_end: float
    word: str = ""


def laid_out(pieces: Iterable[tuple[float, float, Sequence[Sequence[Any]]]]) -> list[Span]:
    """Spans of a recording, from its pieces one after another: seconds of each before and after,
    and the spans within it. A piece without any was not read."""
    found, old, new = list[Span](), 0.0, 0.0
    for before, after, spans in pieces:
        for a, b, begin, end, word in spans or [(0.0, before, 0.0, after, "")]:
            found.append(Span(old + a, old + b, new + begin, new + end, word))
        old, new = old + before, new + after
    return [*found, Span(old, old, new, new)]


def table_of(folder: Path, name: Path) -> Path:
    """Path of the table of a protected file."""
    return folder / f"{name}.tsv"


class TimeMap:
    """Map from seconds of a recording to those of its protected version: linear between the edges
    of spans, from 0, which stays, to the end, behind which everything is the end."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """spans: in order. ValueError where time goes back."""
        self.spans = spans
        self.old = np.array([0.0, *(x for span in spans for x in span[:2])])
        self.new = np.array([0.0, *(x for span in spans for x in span[2:4])])
        for i, (old, new) in enumerate(zip(np.diff(self.old), np.diff(self.new), strict=True)):
            if not (old >= 0 and new >= 0):
                raise ValueError(f"span {i // 2 + 1}: begins or ends before what precedes it")

    def __call__(self, seconds: float) -> float:
        """Second of the protected version at which is heard what the recording says then."""
        return float(np.interp(seconds, self.old, self.new))

    def moved(self, by: float, lasts: float) -> Self:
        """Map of a whole recording whose protected version begins so much later, or, below 0,
        without its first seconds, and lasts so long."""
        spans = list[Span]()
        for span in self.spans[:-1]:
            old, new = np.array(span[:2]), np.array(span[2:4]) + by
            kept = np.clip(new, 0.0, lasts)
            if not span.word:  # of which the rest keeps its time
                old = np.clip(old + kept - new, *old)
            spans.append(Span(old[0], old[1], kept[0], kept[1], span.word))
        end = self.spans[-1].old_end
        return type(self)([*spans, Span(end, end, lasts, lasts)])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a table that `write` wrote; UserError for anything else."""
        spans = list[Span]()
        for number, line in [*read_lines(path)][1:]:
            *times, word = line.split("\t")
            try:
                old_begin, old_end, new_begin, new_end = map(float, times)
            except ValueError as error:
                raise UserError(f"{path}:{number}: not four times and a word, with tabs") from error
            spans.append(Span(old_begin, old_end, new_begin, new_end, word))
        try:
            return cls(spans)
        except ValueError as error:
            raise UserError(f"{path}: {error}; write it anew (make protect)") from error

    def write(self, path: Path) -> None:
        """Write a table with a header, a span a line, with tabs."""
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [Span._fields, *((*(f"{x:.3f}" for x in s[:4]), s.word) for s in self.spans)]
        write_file(path, "".join("\t".join(row) + "\n" for row in rows))
