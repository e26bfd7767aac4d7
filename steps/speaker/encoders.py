"""Speaker encoders behind one interface, and x-vectors of data directories by them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from steps.audio import SAMPLE_RATE, Losses, keep_speech, read_audio
from steps.speaker.config import EncoderConfig
from steps.speaker.features import Features
from steps.speaker.kinds import ENCODERS
from steps.speaker.network import MINIMUM_FRAMES, EncoderNetwork
from steps.training.settings import read_config
from steps.training.weights import fill_network, load_hub_model, load_state, use_device
from utils.arrays import Float32
from utils.cli import UserError, refusing
from utils.registry import find
from utils.tables import need_files, write_map

# ---- Speaker encoders behind one interface: audio in, one vector out.
#
# | name | what it is | vector |
# |---|---|---|
# | a trained folder | `ecapa` or `xvector` of steps/train_encoder.py | as configured |
# | `resemblyzer` | pretrained d-vectors, comes with its package | 256, length 1 |
# | `pyannote` | pretrained x-vectors, comes in Moonshine's package | 512 |
# | `melody` | pitch, voicing and energy, no network | 16 |
# | `level` | level of the file in dB | 1 |
# | `energy` | contour of energy | 37 |
# | `content`, `content:<extractor>` | moments of a recogniser's frames | twice the frame's |
# | `hub:<model>` | SpeechBrain model of the Hugging Face hub, or a folder of one | the model's |

Samples = npt.NDArray[np.float32] | npt.NDArray[np.float64]
MINIMUM_SECONDS = MINIMUM_FRAMES * 0.01
PARTIAL_SECONDS = 1.6  # length of Resemblyzer's windows
SHORTEST_WHOLE_SECONDS = 0.1


class TooShortError(UserError):
    """Error for an utterance with too little speech for a vector."""


class Encoder(Protocol):
    """Encoder of utterances of any length as vectors of fixed length.

    One utterance at a time: the last bits of a batch's arithmetic depend on its size, and figures
    would depend on the division of a corpus among jobs.
    """

    n_whole: int  # utterances so far whose pauses were not cut out, because too little was left

    def embed(self, samples: Samples) -> Float32:
        """Encode (n,) samples at 16 kHz, full scale 1, as (d,) float32. Raises TooShortError."""
        ...


class NetworkEncoder:
    """Network of this project with its features."""

    n_whole = 0

    def __init__(self, config: EncoderConfig, network: EncoderNetwork, device: str = "cpu") -> None:
        self.device, self.config = device, config.features
        self.unit_length = config.network.unit_length
        self.features = Features(config.features).to(device)
        self.network = network.to(device)

    @torch.inference_mode()
    def embed(self, samples: Samples) -> Float32:
        self.network.eval()
        vector = self.network(self._features(samples)[None])[0]
        if self.unit_length:
            vector = torch.nn.functional.normalize(vector, dim=0)
        return vector.cpu().numpy()

    def _features(self, samples: Samples) -> torch.Tensor:
        speech_only = self.config.speech_only
        if speech_only:
            samples = keep_speech(samples)
        need_seconds(samples, self.config.least_seconds, "of speech" if speech_only else "long")
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32)).to(self.device)
        return self.features(wave[None])[0]


def load_trained(folder: str, device: str = "cpu") -> NetworkEncoder:
    """Load a folder of steps/train_encoder.py."""
    return NetworkEncoder(*load_network(Path(folder)), device)


class ResemblyzerEncoder:
    """Pretrained encoder of the package resemblyzer, on the CPU.

    As its authors use it: levels raised to -30 dBFS, pauses cut out (WebRTC's detector), partial
    vectors of 1.6 s averaged and scaled to length 1.

    The detector may remove all of a single short word ("six" in 0.15 s is mostly noise), and then
    its authors' code makes the vector of silence. So a signal shorter than a partial vector, of
    which less than 0.2 s is left, is used whole.
    """

    def __init__(self, device: str = "cpu") -> None:
        with refusing("resemblyzer: not installed ({}); utils/setup.sh installs it", ImportError):
            import resemblyzer
        self.n_whole, self._package = 0, resemblyzer
        self._encoder = resemblyzer.VoiceEncoder("cpu", verbose=False)

    def embed(self, samples: Samples) -> Float32:
        wave = np.asarray(samples, dtype=np.float32)
        if not wave.any():
            raise TooShortError("digital silence from end to end")
        package = self._package
        speech = package.preprocess_wav(wave, source_sr=SAMPLE_RATE)
        short = len(speech) < MINIMUM_SECONDS * SAMPLE_RATE
        if short and len(wave) < PARTIAL_SECONDS * SAMPLE_RATE:
            need_seconds(wave, SHORTEST_WHOLE_SECONDS)
            self.n_whole += 1
            level = package.hparams.audio_norm_target_dBFS
            speech = package.audio.normalize_volume(wave, level, increase_only=True)
        else:
            need_seconds(speech, MINIMUM_SECONDS, "of speech after its pauses were cut out")
        return np.asarray(self._encoder.embed_utterance(speech), dtype=np.float32)


class HubEncoder:
    """SpeechBrain model of the hub, or a folder that holds one; embedding not normalised."""

    n_whole = 0

    def __init__(self, source: str, device: str = "cpu") -> None:
        from speechbrain.inference.classifiers import EncoderClassifier

        self._model: Any = load_hub_model(
            source, device, lambda how: EncoderClassifier.from_hparams(**how)
        )

    @torch.inference_mode()
    def embed(self, samples: Samples) -> Float32:
        need_seconds(samples, MINIMUM_SECONDS)
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
        return self._model.encode_batch(wave).reshape(-1).cpu().numpy()


def need_seconds(samples: Samples, seconds: float, what: str = "long") -> None:
    """Raise TooShortError below `seconds`."""
    if len(samples) < seconds * SAMPLE_RATE:
        found = len(samples) / SAMPLE_RATE
        raise TooShortError(f"{found:.2f} s {what}; at least {seconds:g} s are needed")


def load_encoder(name: str, device: str = "cpu") -> Encoder:
    """Make the encoder of a name (table above), with the values for <...> of its kind and the
    device, cpu or cuda. One thread a process."""
    use_device(device)
    kind, found = find(ENCODERS, name, "encoder")
    return kind(*found, device)


SPEECHBRAIN = "embedding_model.ckpt"  # weights of an ECAPA-TDNN that SpeechBrain trained
OTHERS = "give the weights that fit encoder.yaml, or the settings that fit them"


def load_network(folder: Path) -> tuple[EncoderConfig, EncoderNetwork]:
    """Settings and network of a trained folder, or of one with SpeechBrain's weights in the place
    of final.pt, on the CPU; UserError for anything else."""
    ours, theirs = folder / "final.pt", folder / SPEECHBRAIN
    given = theirs.is_file() and not ours.is_file()
    need_files(
        (folder / "encoder.yaml", theirs if given else ours),
        "an encoder is a folder that steps/train_encoder.py finished, resemblyzer, pyannote, or "
        "hub:<model>",
    )
    config = read_config(EncoderConfig, folder / "encoder.yaml")
    network = EncoderNetwork(config)
    if given:
        own = {n: value for n, value in network.state_dict().items() if n == "front.digest"}
        fill_network(network, own | _take(theirs), theirs, OTHERS)
    else:
        fill_network(network, load_state(ours), ours)
    return config, network


def _take(path: Path) -> dict[str, Any]:
    """Weights of SpeechBrain's or DAST's ECAPA-TDNN by the names of EncoderNetwork."""
    state = load_state(path, OTHERS)
    state = state.get("state_dict", state)
    named = {f"body.{str(name).removeprefix('module.')}": state[name] for name in state}
    layers = named.pop("body.weighted_sum.layer_weights", None)  # DAST's, of its hub model
    return named if layers is None else named | {"front.weights": layers}


# ---- X-vectors of a data directory: whole utterances, or cut into chunks.


@dataclass
class Extraction(Losses):
    """Counts. utt2spk: of the ids written (`chunked`: of chunks)."""

    chunked: bool = False
    utt2spk: dict[str, str] = field(default_factory=dict)
    n_utts: int = 0
    n_read: int = 0
    n_resampled: int = 0
    n_whole: int = 0  # pauses not cut out, see Encoder

    def summary(self) -> str:
        """Counts in one line."""
        whole = f" ({self.n_whole} with their pauses: too short without)" if self.n_whole else ""
        resampled = f" ({self.n_resampled} resampled to 16 kHz)" if self.n_resampled else ""
        return (
            f"read {self.n_read} utterances{resampled} / written {len(self.utt2spk)} x-vectors"
            f"{' of chunks' if self.chunked else ''}{whole} / skipped {len(self.skipped)}"
        )

    def read(self, utt: str, rxfilename: str) -> Float32:
        """Samples (n,) of an utterance at 16 kHz; UserError for silence from end to end."""
        audio = read_audio(utt, rxfilename)
        self.n_read += 1
        self.n_resampled += audio.file_rate != audio.rate
        if not audio.samples.any():  # its x-vector would count as speech that hides its speaker
            raise UserError(f"{utt}: {rxfilename}: digital silence from end to end")
        return audio.samples.astype(np.float32)


def extract(
    encoder: Encoder,
    wav: Mapping[str, str],
    utt2spk: Mapping[str, str],
    write: Callable[[str, Float32], None],
    *,
    chunk_seconds: float | None = None,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Extraction:
    """Extract the x-vectors of all utterances; unusable ones are noted with their reason.

    write: gets each x-vector with its id as soon as it is computed; none is kept. progress: wraps
    the utterances, to show progress.
    """
    result = Extraction(chunked=chunk_seconds is not None, n_utts=len(utt2spk))
    n_whole = encoder.n_whole
    for utt in progress(utt2spk):
        pieces: dict[str, Float32] = {}
        with result.noting(utt):
            samples = result.read(utt, wav[utt])
            pieces = {utt: samples}
            if chunk_seconds is not None:
                chunks = enumerate(cut(samples, chunk_seconds))
                pieces = {f"{utt}-c{number:04d}": chunk for number, chunk in chunks}
        for key, piece in pieces.items():
            vector = None
            with result.noting(utt):
                vector = encoder.embed(piece)
                if not np.isfinite(vector).all():
                    raise UserError("its x-vector is not finite")
                result.utt2spk[key] = utt2spk[utt]
            if key in result.utt2spk:
                write(key, vector)
    result.n_whole = encoder.n_whole - n_whole
    return result


def cut(samples: Float32, chunk_seconds: float) -> list[Float32]:
    """Cut into equal pieces of `chunk_seconds` to twice that; a shorter signal stays whole.

    >>> [len(piece) for piece in cut(np.zeros(80000, np.float32), 2.0)]
    [40000, 40000]
    """
    n_chunks = max(1, int(len(samples) / (chunk_seconds * SAMPLE_RATE)))
    return list(np.array_split(samples, n_chunks))


def finish(out: Path, result: Extraction, allow_loss: int) -> None:
    """Write utt2spk of chunks and skipped.txt; LossError when too many utterances were lost.

    Call it before the archive is closed, whose .scp comes last, or not at all.
    """
    result.finish(out, result.n_utts, allow_loss)
    (out / "utt2spk").unlink(missing_ok=True)
    if result.chunked:
        write_map(out / "utt2spk", result.utt2spk)
