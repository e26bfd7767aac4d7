"""pyannote's embedding out of Moonshine's wheel: the bytes, the vectors, and refusals."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from local.plan import evaluators
from steps.speaker import pyannote
from steps.speaker.encoders import TooShortError, load_encoder
from tests.refusals import refuses
from tests.world import or_skip


@pytest.fixture(scope="module")
def encoder():
    pytest.importorskip("onnxruntime")
    or_skip(pyannote.find_library)
    return load_encoder("pyannote")


def test_a_wheel_that_is_missing_or_has_another_network(monkeypatch, tmp_path):
    other = tmp_path / "libmoonshine.so"
    other.write_bytes(b"\0" * 64 + b"ORTM" + bytes(1000))
    refuses(f"{other}: pyannote's network is not in it", pyannote.read_model, other)

    def missing(package: str) -> Path:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    refuses("utils/setup.sh installs it", load_encoder, "pyannote")


def test_a_plan_without_the_wheel_says_so_before_it_starts(monkeypatch):
    monkeypatch.setattr(evaluators, "find_spec", lambda _name: None)
    refuses("setup.sh installs it .* or name --evaluators", evaluators.find_encoder, "pyannote")
    assert evaluators.find_encoder("resemblyzer").model == "resemblyzer"


def test_vectors_have_512_values_and_short_speech_is_repeated(encoder):
    speech = np.random.default_rng(0).normal(0, 0.1, 8000).astype(np.float32)
    vector = encoder.embed(speech)
    assert vector.shape == (512,)
    assert vector.dtype == np.float32
    np.testing.assert_array_equal(vector, encoder.embed(np.tile(speech, 2)))
    refuses(r"0\.05 s long", encoder.embed, speech[:800], kind=TooShortError)


def test_it_tells_real_people_apart(encoder, corpora):
    """Control: utterances of the same person are nearer than those of two."""
    soundfile = pytest.importorskip("soundfile")
    vectors = []
    for speaker in ("1188", "1221"):
        files = sorted((corpora / "librispeech" / "test-clean" / speaker).rglob("*.flac"))[:4]
        found = np.stack([encoder.embed(soundfile.read(path)[0]) for path in files])
        vectors.append(found / np.linalg.norm(found, axis=1, keepdims=True))
    same = [own @ own.T for own in vectors]
    least = min(matrix[np.triu_indices(4, 1)].min() for matrix in same)
    assert least > (vectors[0] @ vectors[1].T).max()
