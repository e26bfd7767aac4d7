"""Columns of large tables: the same fields as a plain split, the same numbers as a dictionary."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.refusals import refuses
from utils.arrays import Fields, number, read_fields

field = st.text(
    st.characters(
        codec="utf-8", min_codepoint=33, blacklist_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]
    ),
    min_size=1,
    max_size=20,
)
blanks = st.text(" \t", min_size=1, max_size=3)
edge = st.text(" \t", max_size=2)
line = st.tuples(edge, field, blanks, field, blanks, field, edge)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(line, min_size=1, max_size=12), last=st.booleans())
def test_fields_are_those_of_a_plain_split(
    tmp_path: Path, lines: list[tuple[str, ...]], last: bool
) -> None:
    content = "\n".join("".join(parts) for parts in lines) + ("\n" if last else "")
    (tmp_path / "table").write_bytes(content.encode())
    fields = read_fields(tmp_path / "table", 3)
    for column in range(3):
        expected = [parts[1 + 2 * column].encode() for parts in lines]
        assert fields.texts(column) == expected
        codes, texts = fields.numbered(column)
        assert [texts[code] for code in codes] == expected
        assert len(set(texts)) == len(texts)
        assert set(fields.rows_with(column, b"_").tolist()) == {
            i for i, text in enumerate(expected) if b"_" in text
        }


def table(path: Path, rows: list[list[str]]) -> Fields:
    path.write_text("".join(" ".join(row) + "\n" for row in rows))
    return read_fields(path, len(rows[0]))


def test_long_fields(tmp_path: Path) -> None:
    """Fields too long to pack go the plain way."""
    names = ["x" * 300, "x" * 299 + "y", "z", "x" * 300, "z"]
    fields = table(tmp_path / "table", [[name, str(i)] for i, name in enumerate(names)])
    codes, texts = fields.numbered(0)
    assert [texts[code].decode() for code in codes] == names
    assert fields.texts(0, np.array([1, 2])) == [names[1].encode(), b"z"]


@pytest.mark.parametrize("n_values", [1, 7, 3000, 40000])
def test_numbers_are_those_of_a_dictionary(n_values: int) -> None:
    """Also where more values than buckets need many rounds."""
    rng = np.random.default_rng(n_values)
    values = rng.integers(0, 2**63, (n_values, 2), np.uint64)
    values[:, 0] %= 5  # words that often agree
    rows = values[rng.integers(0, n_values, 50000)]
    codes, first = number([rows[:, 0].copy(), rows[:, 1].copy()])
    assert (rows[first][codes] == rows).all()
    assert len({tuple(row) for row in rows.tolist()}) == len(first)
    assert (np.diff(first) > 0).all()


def test_a_line_of_other_width_is_named(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("a b\nc d\ne\nf g\n")
    refuses(r"table:3: 1 fields where 2 are expected", read_fields, tmp_path / "table", 2)
