"""Audio in and out, mono float64 at the wanted rate, and which of it is speech."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import soundfile

from utils.arrays import Float64
from utils.audiofile import NO_SAMPLES, AudioError, AudioFile, Sink
from utils.cli import LossError, UserError, refusing
from utils.tables import replacing, write_map

if TYPE_CHECKING:
    import onnxruntime

T = TypeVar("T")

# ---- Audio input and output: mono float64 at the wanted rate; errors name utterance and file.

SAMPLE_RATE = 16000
LOUDEST = 100.0  # times full scale; overs of real files reach a few times
FORMATS = {".wav": "WAV", ".flac": "FLAC"}


class EmptyAudioError(UserError):
    """Error for an audio file without samples."""


@dataclass(frozen=True)
class Audio:
    """Audio. `samples`: (n,) float64, full scale 1; `rate`: in Hz; `file_rate`: the file's."""

    samples: Float64
    rate: int
    file_rate: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


def read_audio(utt: str, rxfilename: str, rate: int = SAMPLE_RATE) -> Audio:
    """Read one mono file; resample it (polyphase) if its rate differs from `rate`.

    Raises UserError naming utterance and file for: a pipe, a missing or unreadable file, several
    channels, no samples (EmptyAudioError), fewer samples than its header says, an absurd rate, a
    sample that is not finite, or of another scale.
    """
    try:
        found = AudioFile.open_mono(rxfilename)
        mono = np.concatenate(list(found.blocks()))[:, 0]
    except AudioError as error:
        kind = EmptyAudioError if str(error) == NO_SAMPLES else UserError
        raise kind(f"{utt}: {rxfilename}: {error}") from error
    file_rate = found.rate
    peak = np.abs(mono).max()
    if not np.isfinite(peak):
        raise UserError(f"{utt}: {rxfilename}: holds a sample that is not a finite number")
    if peak > LOUDEST:
        raise UserError(
            f"{utt}: {rxfilename}: samples reach {peak:.0f} times full scale, which is 1 in files "
            "of floating-point numbers; divide those of 16 bit by 32768"
        )
    if file_rate != rate:
        from scipy.signal import resample_poly  # takes over a second; most corpora are at this rate

        divisor = int(np.gcd(file_rate, rate))
        mono = resample_poly(mono, rate // divisor, file_rate // divisor)
    return Audio(mono, rate, file_rate)


@dataclass
class Losses:
    """Utterances that could not be used. skipped: the reason, by utterance."""

    skipped: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def noting(self, utt: str) -> Iterator[None]:
        """Note a UserError of the block as the reason why an utterance is skipped, and go on."""
        try:
            yield
        except UserError as error:
            self.skipped[utt] = " ".join(str(error).split())
            logging.warning("skipped: %s", self._told(utt))

    def each(self, utts: Iterable[str], measure: Callable[[str], T]) -> Iterator[tuple[str, T]]:
        """Yield each utterance with the result of measuring it; skip those that raise."""
        for utt in utts:
            with self.noting(utt):
                yield utt, measure(utt)

    def _told(self, utt: str) -> str:
        reason = self.skipped[utt]
        return reason if utt in reason else f"{utt}: {reason}"

    def finish(self, folder: Path, n: int, allow_loss: int) -> None:
        """Write skipped.txt; LossError where more than `allow_loss` of `n` utterances are lost."""
        if len(self.skipped) > allow_loss:
            raise LossError(
                f"{len(self.skipped)} of {n} utterances lost, {allow_loss} allowed (--allow-loss); "
                f"the first: {self._told(next(iter(self.skipped)))}"
            )
        (folder / "skipped.txt").unlink(missing_ok=True)
        if self.skipped:
            write_map(folder / "skipped.txt", self.skipped)


def quietest(samples: Float64, begin: int, end: int, width: int) -> int:
    """Middle of the quietest stretch of `width` samples within samples[begin:end]."""
    energy = np.convolve(samples[begin:end] ** 2, np.ones(width), "valid")
    return begin + int(energy.argmin()) + width // 2


def write_wav(path: str | os.PathLike[str], samples: Float64, rate: int = SAMPLE_RATE) -> None:
    """Write mono 16-bit WAV atomically; UserError for samples beyond full scale (no clipping)."""
    peak = float(np.max(np.abs(samples))) if len(samples) else 0.0
    if not np.isfinite(peak) or peak > 1.0:
        raise UserError(f"{path}: samples reach {peak:.3g} of full scale; normalise before writing")
    write_pcm16(path, samples, rate)


def write_pcm16(
    path: str | os.PathLike[str], samples: npt.NDArray[Any], rate: int = SAMPLE_RATE
) -> None:
    """Write mono samples with 16 bit, atomically, int16 as they are; WAV or FLAC by the suffix."""
    audio_format = FORMATS[Path(path).suffix]
    refused = refusing(f"{path}: cannot be written: {{}}", soundfile.LibsndfileError, OSError)
    with refused, replacing(path) as beside, Sink(beside, "w+") as sink:
        soundfile.write(sink, samples, rate, subtype="PCM_16", format=audio_format)
        sink.check()


# ---- Speech or pause: by energy, and by the detectors of WebRTC and of Silero.
#
# Pauses reveal the room, not the speaker. If every training speaker has one recording, an encoder
# that hears pauses learns to tell rooms apart.

FRAME = SAMPLE_RATE // 100  # 10 ms
CONTEXT = 7  # frames around a loud one that are kept, itself included
VAD_FRAME = 3 * FRAME  # 30 ms
LOUD, QUIET = 95, 5  # percentiles of frame energy for speech and for the floor
SILERO_FRAME, SILERO_CONTEXT = 512, 64  # samples: 32 ms, and the context before each
SILERO, SILERO_VERSION = "silero-vad", "6.2.3"  # MIT; its package is not imported
SILERO_FILE = "silero_vad/data/silero_vad_16k_sequence.onnx"
SILERO_DIGEST = "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85"  # sha256


def keep_speech(samples: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Remove pauses from the samples: (n,) -> (m,), m <= n.

    A frame is speech above a threshold of 10 dB over the floor of the recording, but between 25 and
    40 dB under its loud frames, so that noisy speech stays whole.
    """
    n_frames = len(samples) // FRAME
    if n_frames < CONTEXT:
        return samples
    frames = samples[: n_frames * FRAME].reshape(n_frames, FRAME)
    energy = 10 * np.log10(np.mean(np.square(frames, dtype=np.float64), axis=1) + 1e-12)
    loud, quiet = np.percentile(energy, [LOUD, QUIET])
    threshold = np.clip(quiet + 10, loud - 40, loud - 25)
    speech = np.convolve(energy > threshold, np.ones(CONTEXT), "same") > 0
    return frames[speech].reshape(-1)


def detect_speech(samples: npt.NDArray[np.floating], strictness: int = 2) -> npt.NDArray[np.bool_]:
    """Mask (n // 480,) of 30 ms frames with speech, of a signal (n,) at 16 kHz, full scale 1.

    The Gaussian mixtures of WebRTC (`webrtcvad`, weights inside), which look back in time.
    strictness: 0 to 3, of the detector.
    """
    import webrtcvad

    detector = webrtcvad.Vad(strictness)
    whole = np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2")
    frames = whole[: len(whole) // VAD_FRAME * VAD_FRAME].reshape(-1, VAD_FRAME)
    found = [detector.is_speech(frame.tobytes(), SAMPLE_RATE) for frame in frames]
    return np.array(found, np.bool_)


def detect_silero(
    samples: npt.NDArray[np.floating], threshold: float = 0.5
) -> npt.NDArray[np.bool_]:
    """Mask (n // 512,) of 32 ms frames with speech, of a signal (n,) at 16 kHz, full scale 1.

    A recurrent network (`silero-vad`, weights inside its wheel): each frame with the 4 ms before
    it. threshold: the least probability of speech. UserError where the wheel is not installed.
    """
    n = len(samples) // SILERO_FRAME
    if not n:
        return np.zeros(0, np.bool_)
    padded = np.zeros(SILERO_CONTEXT + n * SILERO_FRAME, np.float32)
    padded[SILERO_CONTEXT:] = samples[: n * SILERO_FRAME]
    size = SILERO_CONTEXT + SILERO_FRAME
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::SILERO_FRAME]
    state = np.zeros((1, 1, 128), np.float32)
    given = {"input": np.ascontiguousarray(frames), "h": state, "c": state}
    (found,) = _silero().run(["speech_probs"], given)
    return np.asarray(found >= threshold, np.bool_)


@cache
def _silero() -> "onnxruntime.InferenceSession":
    """Load its network on one thread; UserError where it is missing or not the tested one."""
    import hashlib

    again = f"install {SILERO}=={SILERO_VERSION}, or take --vad webrtc"
    path = wheel_file(
        SILERO, SILERO_FILE, f"silero: the package {SILERO} is not installed; {again}"
    )
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != SILERO_DIGEST:
        raise UserError(f"{path}: is not the file of {SILERO} {SILERO_VERSION}; {again}")
    return open_graph(path)


def wheel_file(package: str, name: str, lacking: str) -> Path:
    """Path of a file of an installed package; UserError `lacking` where it is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    with refusing(lacking, PackageNotFoundError):
        return Path(str(distribution(package).locate_file(name)))


def open_graph(path: Path, model: bytes = b"") -> "onnxruntime.InferenceSession":
    """Open a network in ONNX's form, on one thread; model: the network's bytes, where the file
    holds more. UserError where it is not one."""
    import onnxruntime  # most programs need none

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; users need no remarks on graphs
    try:
        graph, on = model or path, ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(graph, options, providers=on)
    except Exception as error:  # of classes without names in onnxruntime
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: onnxruntime does not load it: {reason}") from error


@dataclass(frozen=True)
class Detector:
    """Detector of speech: from a signal (n,) to (n // frame,); frame: its samples."""

    frame: int
    detect: Callable[[npt.NDArray[np.floating]], npt.NDArray[np.bool_]]


DETECTORS = {
    "webrtc": Detector(VAD_FRAME, detect_speech),
    "silero": Detector(SILERO_FRAME, detect_silero),
}
