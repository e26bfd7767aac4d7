# SPDX-License-Identifier: Apache-2.0
"""Content and frames of training speech: computed on demand, or stored once.

A folder of steps/extract_content.py: content.{ark,scp}, frames (T, d) of half precision; where the
settings ask for it warped.{ark,scp}, of the same words by another vocal tract and at another pitch;
for trainings fine.{ark,scp}, frames of `world.analyse_finely`; content.json, written last.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from steps.content.extractors import Frames, load_extractor
from steps.learning.audio import TrainingAudio
from steps.synthesis.content import draw_warp
from steps.synthesis.f0 import HIGHEST_HZ
from steps.synthesis.world import (
    FINE,
    FRAME_SHIFT,
    WorldFrames,
    analyse_finely,
    pack,
    synthesise,
    unpack,
)
from utils.archives import ArchiveWriter, ObjectReader
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.jsonfiles import read_json_object
from utils.seeds import make_rng
from utils.settings import parse_settings
from utils.tables import StrPath, atomic_write

_MADE_BY = "make it with steps/extract_content.py"
_CONTENT, _WARPED, _FINE = "content", "warped", "fine"  # the archives of a folder
_PEAK = 0.5  # content made with another vocal tract


class Contents(Protocol):
    """Content of utterances, and their frames of 5 ms. of: layout of the content's frames."""

    @property
    def of(self) -> Frames:
        """See the class."""
        ...

    def __call__(self, utt: str, *, warped: bool) -> Float32:
        """Frames (T, d) of an utterance, as spoken or as by another speaker."""
        ...

    def fine(self, utt: str) -> WorldFrames:
        """`world.analyse_finely` of an utterance."""
        ...


class Finder:
    """Contents computed on demand; the first cache_gb are kept, the rest computed each time."""

    def __init__(self, audio: TrainingAudio, config: Any, seed: int, device: str) -> None:
        """config: has content, augmentation, training."""
        self._audio, self._config, self._seed = audio, config, seed
        self.of = load_extractor(config.content, device)
        self._kept: dict[tuple[str, str], npt.NDArray[np.floating]] = {}
        self._free = int(config.training.cache_gb * 1e9)

    def __call__(self, utt: str, *, warped: bool) -> Float32:
        """See Contents."""
        return self.find(utt, _WARPED if warped else _CONTENT).astype(np.float32)

    def fine(self, utt: str) -> WorldFrames:
        """See Contents."""
        return _fine(self.find(utt, _FINE))

    def find(self, utt: str, what: str) -> npt.NDArray[np.floating]:
        """Matrix of an utterance in the archive of that name."""
        found = self._kept.get((utt, what))
        if found is None:
            if what == _FINE:
                found = pack(analyse_finely(self._read(utt))).astype(np.float32)
            else:
                wave = self._warped(utt) if what == _WARPED else self._read(utt)
                found = self.of(wave).astype(np.float16)
            if found.nbytes <= self._free:
                self._free -= found.nbytes
                self._kept[utt, what] = found
        return found

    def _read(self, utt: str) -> Float64:
        return self._audio.read(utt, 0, self._audio.lengths[utt]).astype(np.float64)

    def _warped(self, utt: str) -> Float64:
        """The utterance by another vocal tract, at another pitch: one version of each utterance."""
        rng, augment = make_rng(self._seed, "bn-warp", utt), self._config.augmentation
        frames = self.fine(utt)
        warp = draw_warp(rng, augment.scale, augment.bend)
        factor = np.exp(rng.uniform(-augment.pitch, augment.pitch))
        f0 = np.minimum(frames.f0 * factor, HIGHEST_HZ)
        wave = synthesise(
            replace(frames, f0=f0, envelope=frames.envelope @ warp.T), self._audio.lengths[utt]
        )
        peak = float(np.max(np.abs(wave), initial=0.0))
        return wave * (_PEAK / peak) if peak > 0 else wave


def _fine(matrix: npt.NDArray[np.floating]) -> WorldFrames:
    return unpack(matrix, FRAME_SHIFT / FINE)


@dataclass(frozen=True)
class _Like:
    """See `extractors.Frames`."""

    width: int
    hop: int
    first: int
    digest: str


class Stored:
    """A folder of `write_contents`."""

    def __init__(
        self, folder: Path, config: Any, seed: int, utts: Iterable[str], made_by: str = _MADE_BY
    ) -> None:
        """Check that the folder was made by these settings and has every utterance; UserError, with
        `made_by`."""
        path = folder / "content.json"
        told = read_json_object(path, made_by)
        if told.get("settings") != _settings(config, seed):
            raise UserError(
                f"{path}: is of {told.get('settings')}, where {_settings(config, seed)} are "
                f"wanted; {made_by} of these settings"
            )
        self.of = parse_settings(_Like, told.get("frames"), path, "frames")
        self._readers = {name: ObjectReader(folder / f"{name}.scp") for name in _files(config)}
        for utt in utts:
            for reader in self._readers.values():
                if utt not in reader:
                    raise UserError(f"{reader.path}: {utt} is not in it; {made_by} of this data")

    def __call__(self, utt: str, *, warped: bool) -> Float32:
        """See Contents."""
        return self._readers[_WARPED if warped else _CONTENT].matrix(utt)

    def fine(self, utt: str) -> WorldFrames:
        """See Contents."""
        return _fine(self._readers[_FINE].matrix(utt))


@dataclass(frozen=True)
class _Once:
    """No augmentation, and no memory for results."""

    warped: float = 0.0
    cache_gb: float = 0.0


@dataclass(frozen=True)
class PlainContent:
    """Settings for plain speech, for `Finder` and `Stored`. content: of extractors.EXTRACTORS."""

    content: str
    augmentation: _Once = _Once()
    training: _Once = _Once()


def write_contents(
    finder: Finder,
    utts: Iterable[str],
    out: Path,
    config: Any,
    seed: int,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> None:
    """Write the results of the finder, made with these settings and seed, to the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "content.json").unlink(missing_ok=True)
    with ExitStack() as stack:
        writers = {name: stack.enter_context(ArchiveWriter(out / name)) for name in _files(config)}
        for utt in progress(utts):
            for name, writer in writers.items():
                writer.write(utt, finder.find(utt, name))
    frames = {name: getattr(finder.of, name) for name in _Like.__annotations__}
    with atomic_write(out / "content.json") as stream:
        told = {"frames": frames, "settings": _settings(config, seed)}
        stream.write(json.dumps(told, indent=1, sort_keys=True) + "\n")


def _files(config: Any) -> tuple[str, ...]:
    if isinstance(config, PlainContent):
        return (_CONTENT,)
    return (_CONTENT, _WARPED, _FINE) if config.augmentation.warped else (_CONTENT, _FINE)


def _settings(config: Any, seed: int) -> dict[str, object]:
    """Settings that the content and the frames depend on."""
    found: dict[str, object] = {"content": config.content}
    if _FINE in _files(config):
        found["frames"] = "unbroken F0, 5 ms"
    if _WARPED in _files(config):
        augment = config.augmentation
        found |= {name: getattr(augment, name) for name in ("scale", "bend", "pitch")}
        found["seed"] = seed
    return found


def open_contents(
    folder: StrPath | None,
    audio: TrainingAudio,
    config: Any,
    seed: int,
    device: str,
) -> Contents:
    """Contents from a folder, where one is given, else computed on demand."""
    if folder is None:
        return Finder(audio, config, seed, device)
    return Stored(Path(folder), config, seed, audio.lengths)
