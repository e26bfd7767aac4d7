# SPDX-License-Identifier: Apache-2.0
"""Speaker encoders behind one interface: audio in, one vector out.

| name | what it is | vector |
|---|---|---|
| a trained folder | `ecapa` or `xvector` of steps/train_encoder.py | as configured |
| `resemblyzer` | pretrained d-vectors, comes with its package | 256, length 1 |
| `hub:<model>` | SpeechBrain model of the Hugging Face hub, or a folder of one | the model's |
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from steps.activity import keep_speech
from steps.audio import SAMPLE_RATE
from steps.learning.devices import check_device
from steps.learning.hub import load_hub_model
from steps.learning.settings import read_config
from steps.speaker.config import EncoderConfig
from steps.speaker.features import Features
from steps.speaker.networks import MINIMUM_FRAMES, EncoderNetwork
from steps.weights import fill_network, load_state
from utils.arrays import Float32
from utils.cli import UserError
from utils.registry import find

Samples = npt.NDArray[np.float32] | npt.NDArray[np.float64]
MINIMUM_SECONDS = MINIMUM_FRAMES * 0.01
# Values for <...>, and the device, are arguments.
ENCODERS = {
    "resemblyzer": "steps.speaker.encoders:ResemblyzerEncoder",
    "hub:<model>": "steps.speaker.encoders:HubEncoder",
    "<folder>": "steps.speaker.encoders:TrainedEncoder",
}
PARTIAL_SECONDS = 1.6  # length of Resemblyzer's windows
SHORTEST_WHOLE_SECONDS = 0.1


class TooShortError(Exception):
    """Error for an utterance with too little speech for a vector."""


class Encoder(Protocol):
    """Encoder of utterances of any length as vectors of fixed length.

    One utterance at a time: the last bits of a batch's arithmetic depend on its size, and figures
    would depend on the division of a corpus among jobs.
    """

    name: str
    n_whole: int  # utterances so far whose pauses were not cut out, because too little was left

    def embed(self, samples: Samples) -> Float32:
        """Encode (n,) samples at 16 kHz, full scale 1, as (d,) float32. Raises TooShortError."""
        ...


class NetworkEncoder:
    """Network of this project with its features."""

    n_whole = 0

    def __init__(self, config: EncoderConfig, network: EncoderNetwork, device: str = "cpu") -> None:
        self.name = config.encoder
        self.device = device
        self.speech_only = config.features.speech_only
        self.least_seconds = config.features.least_seconds
        self.features = Features(config.features).to(device)
        self.network = network.to(device)

    @torch.inference_mode()
    def embed(self, samples: Samples) -> Float32:
        """See Encoder."""
        self.network.eval()
        vector: Float32 = self.network(self._features(samples)[None])[0].cpu().numpy()
        return vector

    @torch.inference_mode()
    def frames(self, samples: Samples) -> tuple[Float32, Float32]:
        """Means and variances (T, d) of each frame's estimate of the speaker; xi pooling only."""
        self.network.eval()
        means, variances = self.network.frame_gaussians(self._features(samples)[None])
        return means[0].cpu().numpy(), variances[0].cpu().numpy()

    def _features(self, samples: Samples) -> torch.Tensor:
        if self.speech_only:
            samples = keep_speech(samples)
        need_seconds(samples, self.least_seconds, "of speech" if self.speech_only else "long")
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32)).to(self.device)
        features: torch.Tensor = self.features(wave[None])[0]
        return features


class TrainedEncoder(NetworkEncoder):
    """Load a folder of steps/train_encoder.py."""

    def __init__(self, folder: str, device: str = "cpu") -> None:
        super().__init__(*load_network(Path(folder)), device)


class ResemblyzerEncoder:
    """Pretrained encoder of the package resemblyzer, on the CPU.

    As its authors use it: levels raised to -30 dBFS, pauses cut out (WebRTC's detector), partial
    vectors of 1.6 s averaged and scaled to length 1.

    The detector may remove all of a single short word ("six" in 0.15 s is mostly noise), and then
    its authors' code makes the vector of silence. So a signal shorter than a partial vector, of
    which less than 0.2 s is left, is used whole.
    """

    name = "resemblyzer"

    def __init__(self, device: str = "cpu") -> None:  # noqa: ARG002
        try:
            import resemblyzer
        except ImportError as error:
            raise UserError(
                f"resemblyzer: not installed ({error}); utils/setup.sh installs it"
            ) from error
        self.n_whole = 0
        self._preprocess = resemblyzer.preprocess_wav
        self._raise_level = resemblyzer.audio.normalize_volume
        self._level = resemblyzer.hparams.audio_norm_target_dBFS
        self._encoder = resemblyzer.VoiceEncoder("cpu", verbose=False)

    def embed(self, samples: Samples) -> Float32:
        """See Encoder."""
        wave = np.asarray(samples, dtype=np.float32)
        if not wave.any():
            raise TooShortError("digital silence from end to end")
        speech = self._preprocess(wave, source_sr=SAMPLE_RATE)
        short = len(speech) < MINIMUM_SECONDS * SAMPLE_RATE
        if short and len(wave) < PARTIAL_SECONDS * SAMPLE_RATE:
            need_seconds(wave, SHORTEST_WHOLE_SECONDS)
            self.n_whole += 1
            speech = self._raise_level(wave, self._level, increase_only=True)
        else:
            need_seconds(speech, MINIMUM_SECONDS, "of speech after its pauses were cut out")
        return np.asarray(self._encoder.embed_utterance(speech), dtype=np.float32)


class HubEncoder:
    """SpeechBrain model of the hub, or a folder that holds one; embedding not normalised."""

    n_whole = 0

    def __init__(self, source: str, device: str = "cpu") -> None:
        from speechbrain.inference.classifiers import EncoderClassifier

        self.name = f"hub:{source}"
        self._model: Any = load_hub_model(
            source, device, lambda how: EncoderClassifier.from_hparams(**how)
        )

    @torch.inference_mode()
    def embed(self, samples: Samples) -> Float32:
        """See Encoder."""
        need_seconds(samples, MINIMUM_SECONDS)
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
        vector: Float32 = self._model.encode_batch(wave).reshape(-1).cpu().numpy()
        return vector


def need_seconds(samples: Samples, seconds: float, what: str = "long") -> None:
    """Raise TooShortError below `seconds`."""
    if len(samples) < seconds * SAMPLE_RATE:
        found = len(samples) / SAMPLE_RATE
        raise TooShortError(f"{found:.2f} s {what}; at least {seconds:g} s are needed")


def load_encoder(name: str, device: str = "cpu") -> Encoder:
    """Make the encoder of a name (table above); `device`: cpu or cuda. One thread a process."""
    torch.set_num_threads(1)
    check_device(device)
    kind, found = find(ENCODERS, name, "encoder")
    encoder: Encoder = kind(*found, device)
    return encoder


def load_network(folder: Path) -> tuple[EncoderConfig, EncoderNetwork]:
    """Settings and network of a trained folder, on the CPU; UserError where it is none."""
    for part in ("encoder.yaml", "final.pt"):
        if not (folder / part).is_file():
            raise UserError(
                f"{folder}: no {part} there; an encoder is a folder that steps/train_encoder.py "
                "finished, resemblyzer, or hub:<model>"
            )
    config = read_config(EncoderConfig, folder / "encoder.yaml")
    network = EncoderNetwork(config)
    fill_network(network, load_state(folder / "final.pt"), folder / "final.pt")
    return config, network
