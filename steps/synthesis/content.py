"""Content of speech for synthesis: of WORLD's envelope, or of a recogniser, extracted and read."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steps.content.extractors import ContentLayout, load_extractor
from steps.synthesis import world
from steps.synthesis.f0 import HIGHEST_HZ
from steps.training.audio import TrainingAudio
from utils.archives import ArchiveWriter, ObjectReader
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import parse_settings
from utils.tables import need_ids, read_json_object, write_json

# ---- Content with as little as possible of the speaker: features of the WORLD envelope.
#
# Mel-cepstra of an utterance get mean 0 and variance 1 each (instance normalisation): this removes
# all that is constant over an utterance, above all vocal-tract length and channel. In training the
# frequency axis is bent at random before that, so that the place of the formants says little, and a
# network has to find the voice elsewhere (after vocal-tract-length perturbation, Jaitly and Hinton
# 2013).

_DYNAMIC_RANGE = 7.0  # of log power, 30 dB: frames so far under the loudest are not speech
_ENERGY_UNIT = 3.0  # of log power; brings the energy to about variance 1
_LARGEST = 4.0  # normalised values are clipped to +-4
_SMALLEST_SD = 1e-3
_KNOTS_HZ = (40.0, 900.0, 1800.0, 3000.0, 8000.0)  # between them formants are bent apart
_ENDS = 1127.01048 * np.log1p(np.array([40.0, 8000.0]) / 700.0)  # of WORLD's mel axis
_GRID = (np.arange(120) + 0.5) / 120  # of the mel axis, 0 ... 1


@dataclass(frozen=True)
class Content:
    """Features of T frames. features: (T, 1 + n) float32, energy and n cepstra. level: log power of
    the speech. gate: (T,) 1, and 0 in digital silence. has_speech: whether there is any speech."""

    features: npt.NDArray[np.float32]
    level: float
    gate: npt.NDArray[np.float32]
    has_speech: bool


def analyse_content(wave: Float64) -> tuple[Float64, Float64]:
    """F0 (T,) and envelope codes (T, 40) of a signal (n,), as in `world.analyse`, without D4C.

    UserError for a signal that is empty or not finite.
    """
    f0 = world.extract_f0(wave)
    samples = np.ascontiguousarray(wave, dtype=np.float64)
    times = np.arange(len(f0), dtype=np.float64) * world.FRAME_SHIFT
    return f0, world.envelope_code(samples, f0, times)


def extract_content(envelope: Float64, n_cepstra: int, warp: Float64 | None = None) -> Content:
    """Content features of the codes (T, 40) of one whole utterance.

    Mean and variance are over speech: frames less than 30 dB under the loudest 5 %. The energy only
    loses its mean. warp: (40, 40), see `draw_warp`.
    """
    sounds, log_power = ~world.silent_frames(envelope), envelope[:, 0]
    speech = sounds & (log_power > np.quantile(log_power, 0.95) - _DYNAMIC_RANGE)
    gate = sounds.astype(np.float32)
    if not speech.any():
        empty = np.zeros((len(envelope), 1 + n_cepstra), np.float32)
        return Content(empty, 0.0, gate, False)
    level = float(envelope[speech, 0].mean())
    energy = (envelope[:, :1] - level) / _ENERGY_UNIT
    code = envelope if warp is None else envelope @ warp.T
    cepstra = code[:, 1 : 1 + n_cepstra]
    mean, sd = cepstra[speech].mean(axis=0), cepstra[speech].std(axis=0)
    normal = (cepstra - mean) / np.maximum(sd, _SMALLEST_SD)
    features = np.hstack((energy, normal)).clip(-_LARGEST, _LARGEST)
    return Content(features.astype(np.float32), level, gate, True)


class Cepstra:
    """Mel-cepstra as content, without energy: see `steps.content.extractors.ContentExtractor`."""

    width, hop, first = 20, world.HOP, 0
    digest = f"{width} mel-cepstra of WORLD"

    def __init__(self, device: str = "cpu") -> None:
        """Ignore the device: cepstra are computed on the processor."""

    def __call__(self, wave: Float64) -> Float32:
        """Frames (T, 20) of speech (n,) float64 at 16 kHz; T is 0 for an empty signal."""
        if not len(wave):
            return np.zeros((0, self.width), np.float32)
        return extract_content(analyse_content(wave)[1], self.width).features[:, 1:]


def draw_warp(rng: np.random.Generator, scale: float, bend: float) -> Float64:
    """Draw a random change of vocal tract as a matrix (40, 40) for codes.

    All formants move by one factor, exp(U(-scale, scale)), and each of five regions by a further
    exp(U(-bend, bend)).
    """
    shift = rng.uniform(-scale, scale) + rng.uniform(-bend, bend, len(_KNOTS_HZ))
    return warp_matrix(np.exp(shift))


def warp_matrix(factors: Float64) -> Float64:
    """Matrix (40, 40) that stretches the envelope by a factor at each of the five knots.

    Factors above 1 move formants up. Source: a code is a cosine series over the mel axis, so that
    reading it elsewhere is linear.
    """
    low, high = _ENDS
    hz = 700.0 * np.expm1((low + _GRID * (high - low)) / 1127.01048)
    factor = np.interp(_GRID, _to_axis(np.array(_KNOTS_HZ)), factors)
    return _cosines(_GRID).T @ _cosines(_to_axis(hz / factor)) / len(_GRID)


def _cosines(places: Float64) -> Float64:
    """Values (P, 40) of each coefficient's cosine at places 0 ... 1 of the mel axis."""
    scale = np.where(np.arange(world.CODE_DIM) == 0, 1.0, np.sqrt(2.0))
    return scale * np.cos(np.pi * places[:, None] * np.arange(world.CODE_DIM))


def _to_axis(hz: Float64) -> Float64:
    """Place 0 ... 1 of a frequency in Hz on WORLD's mel axis, clipped."""
    low, high = _ENDS
    return np.clip((1127.01048 * np.log1p(hz / 700.0) - low) / (high - low), 0.0, 1.0)


# ---- Content and frames of training speech: computed on demand, or stored once.
#
# A folder of steps/extract_content.py: content.{ark,scp}, frames (T, d) of half precision; where
# the settings ask for it warped.{ark,scp}, of the same words by another vocal tract and at another
# pitch; for trainings fine.{ark,scp}, frames of `world.analyse_finely`; content.json, written last.

_MADE_BY = "make it with steps/extract_content.py"
_CONTENT, _WARPED, _FINE = "content", "warped", "fine"  # the archives of a folder
_PEAK = 0.5  # content made with another vocal tract

Wanted = dict[str, Any]
"""Settings that content and frames depend on: `content`, of extractors.EXTRACTORS; for trainings
`frames`, and `scale`, `bend`, `pitch` and `seed` of other vocal tracts. A folder keeps it."""


def wanted_content(config: Any, seed: int) -> Wanted:
    """Wanted for a training; config: has content and augmentation."""
    wanted = {"content": config.content, "frames": "unbroken F0, 5 ms"}
    if config.augmentation.warped:
        wanted |= {name: getattr(config.augmentation, name) for name in ("scale", "bend", "pitch")}
        wanted["seed"] = seed
    return wanted


def _archives(wanted: Wanted) -> tuple[str, ...]:
    return (_CONTENT, *[_WARPED] * ("seed" in wanted), *[_FINE] * ("frames" in wanted))


class SpeechContents(ABC):
    """Content of utterances, and their frames of 5 ms. of: layout of the content's frames."""

    of: ContentLayout

    @abstractmethod
    def find(self, utt: str, what: str) -> npt.NDArray[np.floating]:
        """Matrix of an utterance in the archive of that name."""

    def __call__(self, utt: str, *, warped: bool) -> Float32:
        """Frames (T, d) of an utterance, as spoken or as by another speaker."""
        return self.find(utt, _WARPED if warped else _CONTENT).astype(np.float32)

    def fine(self, utt: str) -> world.WorldFrames:
        """`world.analyse_finely` of an utterance."""
        return world.unpack(self.find(utt, _FINE), world.FRAME_SHIFT / world.FINE)


class Finder(SpeechContents):
    """Contents computed on demand; the first cache_gb are kept, the rest computed each time."""

    def __init__(
        self, audio: TrainingAudio, wanted: Wanted, device: str, cache_gb: float = 0.0
    ) -> None:
        self.wanted, self._audio = wanted, audio
        self.of = self._extract = load_extractor(wanted["content"], device)
        self._kept: dict[tuple[str, str], npt.NDArray[np.floating]] = {}
        self._free = int(cache_gb * 1e9)

    def find(self, utt: str, what: str) -> npt.NDArray[np.floating]:
        found = self._kept.get((utt, what))
        if found is None:
            if what == _FINE:
                found = world.pack(world.analyse_finely(self._read(utt))).astype(np.float32)
            else:
                wave = self._warped(utt) if what == _WARPED else self._read(utt)
                found = self._extract(wave).astype(np.float16)
            if found.nbytes <= self._free:
                self._free -= found.nbytes
                self._kept[utt, what] = found
        return found

    def _read(self, utt: str) -> Float64:
        return self._audio.read(utt, 0, self._audio.lengths[utt]).astype(np.float64)

    def _warped(self, utt: str) -> Float64:
        """The utterance by another vocal tract, at another pitch: one version of each utterance."""
        scale, bend, pitch, seed = (self.wanted[x] for x in ("scale", "bend", "pitch", "seed"))
        rng, frames = make_rng(seed, "bn-warp", utt), self.fine(utt)
        warp = draw_warp(rng, scale, bend)
        factor = np.exp(rng.uniform(-pitch, pitch))
        f0 = np.minimum(frames.f0 * factor, HIGHEST_HZ)
        bent = replace(frames, f0=f0, envelope=frames.envelope @ warp.T)
        wave = world.synthesise(bent, self._audio.lengths[utt])
        peak = float(np.max(np.abs(wave), initial=0.0))
        return wave * (_PEAK / peak) if peak > 0 else wave


@dataclass
class _StoredLayout:
    """Frames as `extractors.ContentLayout` has them."""

    width: int
    hop: int
    first: int
    digest: str


class Stored(SpeechContents):
    """A folder of `write_contents`."""

    def __init__(
        self, folder: Path, wanted: Wanted, utts: Iterable[str], made_by: str = _MADE_BY
    ) -> None:
        """Check that all that is wanted is there for every utterance; UserError, with `made_by`."""
        path = folder / "content.json"
        told = read_json_object(path, made_by)
        if told.get("settings") != wanted:
            raise UserError(
                f"{path}: is of {told.get('settings')}, where {wanted} are wanted; {made_by} of "
                "these settings"
            )
        self.of = parse_settings(_StoredLayout, told.get("frames"), path, "frames")
        self._readers = {name: ObjectReader(folder / f"{name}.scp") for name in _archives(wanted)}
        utts = list(utts)
        for reader in self._readers.values():
            need_ids(utts, reader, reader.path, f"{made_by} of this data")

    def find(self, utt: str, what: str) -> Float32:
        return self._readers[what].matrix(utt)


def write_contents(finder: Finder, out: Path, utts: Iterable[str]) -> None:
    """Write what the finder finds of the utterances to the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "content.json").unlink(missing_ok=True)
    with ExitStack() as stack:
        names = _archives(finder.wanted)
        writers = {name: stack.enter_context(ArchiveWriter(out / name)) for name in names}
        for utt in utts:
            for name, writer in writers.items():
                writer.write(utt, finder.find(utt, name))
    frames = {name: getattr(finder.of, name) for name in _StoredLayout.__annotations__}
    told = {"frames": frames, "settings": finder.wanted}
    write_json(out / "content.json", told, sort_keys=True)
