"""Examples in docstrings are true, and seeds are what other implementations would get."""

import doctest
import hashlib
import importlib
from pathlib import Path

import numpy as np
import pytest

from utils.seeds import derive_seed, make_rng

ROOT = Path(__file__).resolve().parents[1]
WITH_EXAMPLES = sorted(
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
    for floor in ("utils", "steps", "local")
    for path in (ROOT / floor).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_a_seed_is_the_head_of_a_sha256():
    expected = int.from_bytes(hashlib.sha256(b"1:07:mcadams3:f01").digest()[:8], "big")
    assert derive_seed(0, "mcadams", "f01") == expected


def test_vpc20_random_draws_do_not_depend_on_order():
    """Conventions 2.18: dropping or reordering sets changed all later pseudo-speakers."""
    items = ["s1", "s2", "s3"]
    forwards = {item: make_rng(0, "draw", item).uniform() for item in items}
    backwards = {item: make_rng(0, "draw", item).uniform() for item in reversed(items)}
    assert forwards == backwards
    assert len(set(forwards.values())) == 3
    assert isinstance(make_rng(0, "x").bit_generator, np.random.PCG64)
