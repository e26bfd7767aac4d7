"""Identity indices: the vector of an index, and which index a key gets."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from steps.generators.identity import hashed_index, identity_vectors, key_name
from utils.seeds import Draws

ROOT = Path(__file__).resolve().parents[1]


def test_a5_the_vector_of_an_index_is_the_same_in_a_new_process_and_any_order():
    indices = np.array([7, 2**62, 0, 12345])
    vectors = identity_vectors(indices, 512)
    np.testing.assert_array_equal(identity_vectors(indices[::-1], 512), vectors[::-1])
    code = (
        "import sys, numpy as np; from steps.generators.identity import identity_vectors as f; "
        "sys.stdout.buffer.write(f(np.array([2**62]), 512).tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == vectors[1].tobytes()


def test_an_identity_vector_is_pcg64_seeded_with_the_index_and_normalised_by_vector():
    raw = np.random.Generator(np.random.PCG64(41)).standard_normal(100)
    expected = (raw - raw.mean()) / raw.std()
    got = identity_vectors(np.array([41]), 100)[0]
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_the_index_of_a_key_is_what_it_was_when_figures_were_made():
    """Computed by commit a0cca4c, before a file of used indices was dropped."""
    assert hashed_index(key_name(Draws(), ("spk", "libri_test", "121")), 250) == 5859102303521893006
