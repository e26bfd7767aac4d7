"""Capacity: figures by blocks against the full matrix, and memory."""

from collections.abc import Iterator

import numpy as np
import pytest

from steps.generators.identity import measure_capacity
from tests.refusals import refuses
from utils.arrays import Float32


def vectors(n: int, d: int = 16) -> Float32:
    rng = np.random.default_rng(3)
    made = rng.standard_normal((n, d)) * rng.uniform(0.5, 9, (n, 1)) + 1.0
    return made.astype(np.float32)


def blocks(made: Float32, size: int) -> Iterator[Float32]:
    return (made[start : start + size] for start in range(0, len(made), size))


def brute_force(made: Float32) -> np.ndarray:
    """Cosines of all pairs, from the n x n matrix."""
    unit = made.astype(np.float64) / np.linalg.norm(made.astype(np.float64), axis=1)[:, None]
    return (unit @ unit.T)[np.triu_indices(len(unit), 1)]


@pytest.mark.parametrize("size", [7, 300, 2000])
def test_all_pairs_of_two_thousand_vectors(size):
    made = vectors(2000)
    found = list(measure_capacity(blocks(made, size), [100, 2000], threshold=0.5))
    for figures in found:
        expected = brute_force(made[: figures.n])
        assert figures.pairs == len(expected) == figures.n * (figures.n - 1) // 2
        assert figures.mean == pytest.approx(expected.mean(), abs=1e-6)
        assert figures.minimum == pytest.approx(expected.min(), abs=1e-6)
        assert figures.maximum == pytest.approx(expected.max(), abs=1e-6)
        assert figures.above == pytest.approx(np.mean(expected > 0.5), abs=1e-5)
    assert [figures.n for figures in found] == [100, 2000]


def test_beyond_the_exact_number_the_mean_is_of_all_pairs_and_the_rest_of_a_sample():
    made = vectors(900)
    found = list(
        measure_capacity(blocks(made, 128), [200, 900], threshold=0.5, exact=300, references=50)
    )
    cosines = brute_force(made)
    assert found[0].pairs == 200 * 199 // 2
    assert found[1].pairs == 300 * 299 // 2 + 600 * 50
    assert found[1].mean == pytest.approx(cosines.mean(), abs=1e-6)
    assert found[1].maximum <= cosines.max() + 1e-6
    assert found[1].above == pytest.approx(np.mean(cosines > 0.5), abs=0.01)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1], "from 2 on"),
        ([], "from 2 on"),
        ([10, 5], "ascending"),
        ([5, 5], "ascending"),
        ([10], "8 vectors, and 10 are asked for"),
    ],
)  # fmt: skip
def test_bad_sizes(sizes, message):
    refuses(message, list, measure_capacity([vectors(8)], sizes))


def test_a_zero_vector_has_no_cosine():
    made = vectors(8)
    made[5] = 0
    refuses("is zero", list, measure_capacity([made], [8]))
