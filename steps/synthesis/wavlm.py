"""Public kNN-VC: WavLM features and the HiFi-GAN that its authors trained on them.

Baas et al. 2023: layer 6 of WavLM-Large (1024 values every 20 ms), cosine distance, the mean of the
4 nearest frames, a HiFi-GAN V1 on 512 channels that takes features instead of a mel spectrogram.
Two files of weights are needed, 1.3 GB and 66 MB. They are loaded only when a configuration asks
for features: wavlm, from a path that it gives, or from torch.hub's folder, or downloaded to it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torchaudio
from torch import nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.synthesis.bottleneck import ResidualBlock
from steps.synthesis.f0 import F0Stats
from steps.synthesis.matching import Groups, NearestConverter, average
from steps.synthesis.voices import PoolFrames, SpeakerPool, write_speakers
from steps.training.weights import check_device, fill_network, load_state, loading
from utils import tables
from utils.archives import ObjectReader
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.tables import StrPath

LAYER = 6
HOP, WINDOW = 320, 400  # samples of a frame's step and view: 20 and 25 ms
DIMENSION = 1024
WAVLM_URL = "https://download.pytorch.org/torchaudio/models/wavlm_large.pth"
_RELEASE = "https://github.com/bshall/knn-vc/releases/download/v0.1"
VOCODERS = {
    "prematched": f"{_RELEASE}/prematch_g_02500000.pt",  # trained on features rebuilt by matching
    "regular": f"{_RELEASE}/g_02500000.pt",
}
WEIGHTS = "weights.json"  # in a pool: the SHA-256 of the weights that made it
_SLOPE = 0.1  # of the leaky rectifiers
_TRIGGER_LEVEL = 7.0  # of SoX's voice activity detector, which trims the targets' ends
NOTE = "features: wavlm: no pitch is set, it comes with the target's frames"


@dataclass(frozen=True)
class Weights:
    """File of weights, and the SHA-256 of its content. note: said where none was expected."""

    path: Path
    sha256: str
    note: str = ""


def fetch(setting: str, path: str | None, url: str, sha256: str | None) -> Weights:
    """Path of the file: `path`, or that of `url` in torch.hub's folder, where it is downloaded
    once.

    sha256: 64 digits. Without them the file must be the one first used, whose digest is kept beside
    it (<file>.sha256). UserError for a file that is missing, other than expected, or cannot be
    downloaded; it names the setting and the remedy.
    """
    target = Path(path) if path else Path(torch.hub.get_dir()) / "checkpoints" / Path(url).name
    if path and not target.is_file():
        raise UserError(f"{setting}: {path}: no such file; download {url}")
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(url, str(target), sha256, progress=False)
        except (OSError, RuntimeError) as error:  # no network, or another hash
            raise UserError(
                f"{setting}: {url} cannot be downloaded ({' '.join(str(error).split())}); download "
                f"it elsewhere and put it at {target}, or say {setting}: PATH"
            ) from error
    with target.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 is None:
        _check_first_use(setting, target, found)
        return Weights(target, found, f"; {setting}_sha256 was not given: it is {found}")
    if found != sha256:
        raise UserError(f"{setting}: {target}: its SHA-256 is {found}, not {sha256}; do not use it")
    return Weights(target, found)


def _check_first_use(setting: str, path: Path, found: str) -> None:
    """Keep the digest of a file at its first use; UserError for another one later."""
    stamp = path.with_name(f"{path.name}.sha256")  # a line in the format of sha256sum
    if not tables.is_there(stamp):
        with refusing(
            f"{setting}: {stamp} cannot be written ({{}}); copy the file to a folder of your own, "
            f"or give its SHA-256, {found}, if it is to be trusted",
            OSError,
        ):
            tables.write_file(stamp, f"{found}  {path.name}\n")
    first = stamp.read_text(encoding="utf-8").partition(" ")[0]
    if first != found:
        raise UserError(
            f"{setting}: {path}: its SHA-256 is {found}, and was {first} when it was first used; "
            f"fetch it again, or remove {stamp} if another file is meant"
        )


class WavLMFeatures:
    """Frames of layer 6. The signal is not scaled first, as the vocoder was trained."""

    def __init__(
        self, model: torchaudio.models.Wav2Vec2Model, layer: int = LAYER, device: str = "cpu"
    ) -> None:
        """model: from torchaudio, without its wrapper that normalises the signal."""
        self._model, self._layer, self._device = model.eval().to(device), layer, device

    @classmethod
    def load(cls, path: Path, device: str = "cpu") -> "WavLMFeatures":
        """torchaudio's WAVLM_LARGE from its checkpoint; UserError for another file."""
        where = {"model_dir": str(path.parent), "file_name": path.name, "weights_only": True}
        what = "no weights of torchaudio's WAVLM_LARGE"
        # Errors are of many kinds: archives, pickles, names and shapes of weights.
        with loading(f"{path}: {what} ({{}}); take the file of {WAVLM_URL}", Exception):
            wrapped = torchaudio.pipelines.WAVLM_LARGE.get_model(dl_kwargs=where)
        return cls(wrapped.model, device=device)

    @torch.inference_mode()
    def extract(self, wave: Float64) -> Float32:
        """Frames (ceil(n / 320), d) float32 of (n,) at 16 kHz; zeros fill up the last ones."""
        frames = -(-len(wave) // HOP)
        padded = np.zeros((1, HOP * (frames - 1) + WINDOW), np.float32)
        padded[0, : len(wave)] = wave
        signal = torch.from_numpy(padded).to(self._device)
        layers, _ = self._model.extract_features(signal, num_layers=self._layer)
        return layers[-1][0].cpu().numpy()


class PublicBlock(ResidualBlock):
    """Residual block with the names in the public checkpoint."""

    names = ("convs1", "convs2")
    norm = staticmethod(lambda layer: layer)


class Vocoder(nn.Module):
    """HiFi-GAN on features; layers have the names in the public checkpoint."""

    RATES, KERNELS = (10, 8, 2, 2), (20, 16, 4, 4)
    BLOCK_KERNELS = (3, 7, 11)

    def __init__(self, dimension: int = DIMENSION, channels: int = 512) -> None:
        """dimension: of the features; channels: at the first rate, halved with each of the four."""
        super().__init__()
        self.lin_pre = nn.Linear(dimension, channels)
        self.conv_pre = nn.Conv1d(channels, channels, 7, padding=3)
        sizes = [channels // 2**i for i in range(len(self.RATES) + 1)]
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(sizes[i], sizes[i + 1], kernel, rate, padding=(kernel - rate) // 2)
            for i, (rate, kernel) in enumerate(zip(self.RATES, self.KERNELS, strict=True))
        )
        self.resblocks = nn.ModuleList(
            PublicBlock(size, kernel, (1, 3, 5))
            for size in sizes[1:]
            for kernel in self.BLOCK_KERNELS
        )
        self.conv_post = nn.Conv1d(sizes[-1], 1, 7, padding=3)

    @classmethod
    def load(cls, path: Path, device: str = "cpu") -> "Vocoder":
        """Load a checkpoint of kNN-VC; UserError for another file."""
        url = VOCODERS["prematched"]
        with loading(f"{path}: no vocoder of kNN-VC ({{}}); take the file of {url}", Exception):
            vocoder = cls()
            fill_network(vocoder, fold_weight_norm(load_state(path)["generator"]), path)
        return vocoder.eval().to(device)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Signals (batch, 320 T) within -1 ... 1 of features (batch, T, dimension)."""
        x = self.conv_pre(self.lin_pre(features).transpose(1, 2))
        n = len(self.BLOCK_KERNELS)
        for i, up in enumerate(self.ups):
            x = up(functional.leaky_relu(x, _SLOPE))
            x = torch.stack([block(x) for block in self.resblocks[i * n : (i + 1) * n]]).mean(0)
        return torch.tanh(self.conv_post(functional.leaky_relu(x))).squeeze(1)

    @torch.inference_mode()
    def say(self, features: Float64, n_samples: int) -> Float64:
        """Signal (n_samples,) float64 of features (T, dimension); cut, or filled up with zeros."""
        given = torch.from_numpy(features.astype(np.float32)).to(self.conv_pre.weight.device)
        wave = self(given[None])[0, :n_samples].cpu().numpy()
        return np.pad(wave.astype(np.float64), (0, n_samples - len(wave)))


def fold_weight_norm(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights w = g v / |v| in place of the pairs weight_g, weight_v in a checkpoint."""
    folded = {}
    for name, tensor in state.items():
        if name.endswith(".weight_v"):
            length = tensor.flatten(1).norm(dim=1).reshape(-1, *[1] * (tensor.dim() - 1))
            folded[name[:-2]] = state[f"{name[:-1]}g"] * tensor / length
        elif not name.endswith(".weight_g"):
            folded[name] = tensor
    return folded


def trim(wave: Float64) -> Float64:
    """Speech (n,) without its leading and trailing parts, by SoX's detector; UserError for none."""
    signal = torch.from_numpy(wave.astype(np.float32))[None]
    for _ in range(2):  # the detector looks for the beginning only
        if signal.shape[1]:
            signal = torchaudio.functional.vad(signal, SAMPLE_RATE, _TRIGGER_LEVEL)
        signal = signal.flip(1)
    if signal.shape[1] < HOP:
        raise UserError("no speech was found in it (SoX's detector, trigger level 7)")
    return np.asarray(signal[0].numpy().astype(np.float64))


def speech_features(wave: Float64, features: WavLMFeatures) -> Float32:
    """Features of a signal (n,) without its ends; see `trim`."""
    return features.extract(trim(wave))


def finish_pool(
    out: Path, utt2spk: Mapping[str, str], genders: Mapping[str, str], weights: Weights
) -> None:
    """Write the rest of a pool with wavlm.{ark,scp}: speakers, and the digest of the weights."""
    write_speakers(out, {utt: utt2spk[utt] for utt in ObjectReader(out / "wavlm.scp")}, genders)
    tables.write_json(out / WEIGHTS, {"wavlm": weights.sha256}, indent=None)


class WavLMPool(SpeakerPool):
    """Target voices in a folder of steps/extract_wavlm.py, read on demand."""

    def __init__(self, folder: StrPath) -> None:
        """Open the folder; UserError for a file that is missing."""
        path = Path(folder)
        needed = (path / name for name in ("wavlm.scp", "spk2utt", "spk2gender"))
        tables.need_files(needed, "make it with steps/extract_wavlm.py")
        super().__init__(
            path, tables.read_id_lists(path / "spk2utt"), tables.read_map(path / "spk2gender")
        )
        self._frames = ObjectReader(path / "wavlm.scp")
        made = path / WEIGHTS
        self.weights = (
            tables.read_json_object(made, "make the pool again") if tables.is_there(made) else {}
        )

    def frames(self, speaker: str) -> PoolFrames:
        """Features (M, d), utterances in C order, by which they are also found."""
        features = np.concatenate([self._frames.matrix(utt) for utt in self.utterances(speaker)])
        return PoolFrames(features, features)


class WavLMConverter(NearestConverter):
    """Converter of speech by the nearest WavLM features of a voice."""

    def __init__(
        self, pool: WavLMPool, features: WavLMFeatures, vocoder: Vocoder, k: int, max_frames: int
    ) -> None:
        super().__init__(pool, k, max_frames, "cosine", NOTE)
        self._features, self._vocoder = features, vocoder

    def convert(
        self, wave: Float64, voices: Groups, weights: Sequence[float], source_f0: F0Stats | None
    ) -> Float64:
        """Convert as `WorldConverter.convert`; digital silence is returned unchanged."""
        if not np.any(wave):
            return np.zeros(len(wave))
        queries = self._features.extract(wave)
        mixed = np.zeros(queries.shape)
        for group, weight in zip(voices, weights, strict=True):
            voice = self._voice(tuple(group))
            mixed += weight * average(voice.codes, voice.index.search(queries, self._k))
        return self._vocoder.say(mixed, len(wave))


def load_converter(
    pool: Path,
    k: int,
    max_frames: int,
    *,
    wavlm: str | None,
    wavlm_sha256: str | None,
    vocoder: str,
    vocoder_sha256: str | None,
    device: str = "cpu",
) -> WavLMConverter:
    """Converter with public weights; wavlm, vocoder: path (vocoder: or prematched, regular).

    UserError for a file that is missing or not the expected one, and for a missing device. Files
    that were not checked go to the note, with the SHA-256 found.
    """
    check_device(device)
    voices = WavLMPool(pool)  # the cheap part first
    public, url = VOCODERS.get(vocoder), VOCODERS["prematched"]
    vocoder_file = fetch("vocoder", None if public else vocoder, public or url, vocoder_sha256)
    wavlm_file = fetch("wavlm", wavlm, WAVLM_URL, wavlm_sha256)
    made_with = voices.weights.get("wavlm", wavlm_file.sha256)
    if made_with != wavlm_file.sha256:
        raise UserError(
            f"{pool / WEIGHTS}: the pool was made with weights of SHA-256 {made_with}, and "
            f"{wavlm_file.path} has {wavlm_file.sha256}; make the pool again with these "
            "(steps/extract_wavlm.py), or say wavlm: PATH"
        )
    features = WavLMFeatures.load(wavlm_file.path, device)
    spoken = Vocoder.load(vocoder_file.path, device)
    converter = WavLMConverter(voices, features, spoken, k, max_frames)
    converter.note += wavlm_file.note + vocoder_file.note
    return converter
