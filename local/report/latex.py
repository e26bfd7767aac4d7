"""Tables of Markdown pages as LaTeX (booktabs), for papers."""

import re
from collections.abc import Iterator

_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|?(\s*:?-+:?\s*\|)+\s*:?-*:?\s*\|?")
_MEANT = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "±": r"$\pm$", "∞": r"$\infty$", "<": "$<$", ">": "$>$", "≥": r"$\geq$",
    "≤": r"$\leq$", "–": "--", "φ": r"$\phi$", "α": r"$\alpha$", "×": r"$\times$", "’": "'",
}  # fmt: skip
_MARKS = (  # of Markdown, after escaping
    (re.compile(r"\[([^]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`+([^`]+)`+"), r"\\texttt{\1}"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\\textbf{\1}"),
    (re.compile(r"\*([^*]+)\*"), r"\\emph{\1}"),
)


def find_tables(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The tables of a page, each with the heading above it; the first row is the header."""
    heading, lines, fenced = "", text.splitlines(), False
    place = 0
    while place < len(lines):
        line = lines[place]
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("#"):
            heading = line.lstrip("#").strip()
        if not fenced and line.startswith("|") and _RULE.fullmatch("".join(lines[place + 1 :][:1])):
            end = place
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield heading, [_cells(row) for row in (line, *lines[place + 2 : end])]
            place = end
        else:
            place += 1


def _cells(line: str) -> list[str]:
    parts = _CELL.split(line.strip())[1:]
    if parts and not parts[-1].strip():
        parts.pop()
    return [part.strip().replace(r"\|", "|") for part in parts]


def escape(text: str) -> str:
    """A cell of Markdown in LaTeX.

    >>> escape("`b2_x` 9.1 [0.0, 28.3] % −1")
    '\\\\texttt{b2\\\\_x} 9.1 [0.0, 28.3] \\\\% $-$1'
    """
    plain = re.sub(r"\\([\\`*_<&|])", r"\1", text)
    found = "".join(_MEANT.get(letter, letter) for letter in plain)
    for pattern, replacement in _MARKS:
        found = pattern.sub(replacement, found)
    return found


def latex(heading: str, rows: list[list[str]]) -> str:
    """A table as a `table*` with booktabs; figures are to the right of where words are."""
    width = max(map(len, rows))
    body = [row + [""] * (width - len(row)) for row in rows]
    header, *lines = (" & ".join(map(escape, row)) + r" \\" for row in body)
    return "\n".join(
        [r"\begin{table*}", r"\centering", rf"\caption{{{escape(heading)}}}",
         rf"\begin{{tabular}}{{{'l' * width}}}", r"\toprule", header, r"\midrule", *lines,
         r"\bottomrule", r"\end{tabular}", r"\end{table*}", ""]
    )  # fmt: skip
