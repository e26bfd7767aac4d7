"""Anonymisers by name: their interface, settings and level, and the protection of a data set."""

import hashlib
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from steps import sources
from steps.audio import SAMPLE_RATE, Audio, Losses, read_audio, write_pcm16
from steps.synthesis.base import WORDS
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import DataDir, select, write_data_dir
from utils.registry import choose, load
from utils.seeds import Draws
from utils.settings import name_settings, read_settings
from utils.tables import StrPath, sort_ids, write_json, write_map, write_timed

# ---- Level of protected speech: one rule for every system, as level alone can leak who speaks.

PEAK = 0.95  # largest sample of each file, as a share of full scale


class OutputLevel:
    """Rule that the largest sample becomes PEAK of full scale."""

    def to_pcm16(self, samples: Float64) -> npt.NDArray[np.int16]:
        """16-bit samples at that level; digital silence stays silent. UserError if not finite."""
        return self.written(samples, float(np.max(np.abs(samples), initial=0.0)))

    def written(self, samples: Float64, largest: float, kind: str = "PCM_16") -> npt.NDArray[Any]:
        """Samples in the form that libsndfile writes as a kind; the largest of the whole file is
        given."""
        if not np.isfinite(largest):
            raise UserError("the protected signal is not finite")
        if largest == 0.0:
            return whole_numbers(np.zeros(samples.shape), kind)
        return whole_numbers(self.scaled(samples, largest), kind)

    def scaled(self, samples: Float64, largest: float) -> Float64:
        """Samples at that level, full scale 32768."""
        return samples / largest * (PEAK * 32768)


class AsItIs(OutputLevel):
    """Rule that keeps a given level: 1 is full scale, and values above are clipped."""

    def scaled(self, samples: Float64, largest: float) -> Float64:
        return samples * 32768


# Ends of protected speech: how long one waits before speaking tells who speaks.
ENDS = round(0.12 * SAMPLE_RATE)  # samples at each end, where all recordings get the same
_MARGIN, _EDGE = round(0.03 * SAMPLE_RATE), round(0.01 * SAMPLE_RATE)
_SILENT = 0.01  # share of the largest sample, which speech is above
ENDINGS = ("keep", "one")


def speech_of(parts: Iterable[Float64], largest: float) -> tuple[int, int] | None:
    """First sample of speech, and the one after its last, in successive parts (n,) or (n, c) of a
    signal, to 10 ms; None where there is none. largest: sample of all of it."""
    first, last, at = None, 0, 0
    for part in parts:
        for begin in range(0, len(part), _EDGE):
            if np.abs(part[begin : begin + _EDGE]).max() > _SILENT * largest:
                first = at + begin if first is None else first
                last = at + min(begin + _EDGE, len(part))
        at += len(part)
    return None if first is None else (first, last)


def with_ends(parts: Iterable[Float64], speech: tuple[int, int]) -> Iterator[Float64]:
    """Yield parts (n,) or (n, c) of a signal with ENDS samples before its speech and after it, of
    which all but the next to it are silence."""
    begin, end, at = speech[0] - _MARGIN, speech[1] + _MARGIN, 0
    silence = np.zeros(0)
    for part in parts:
        places = np.arange(at, at + len(part))
        share = np.clip(np.minimum(places - begin, end - places) / _EDGE, 0.0, 1.0)
        faded = part * share.reshape(-1, *[1] * (part.ndim - 1))
        if not at:
            silence = np.zeros((ENDS, *part.shape[1:]))
            yield silence[: max(0, ENDS - speech[0])]
        yield faded[max(0, speech[0] - ENDS - at) : max(0, speech[1] + ENDS - at)]
        at += len(part)
    yield silence[: max(0, speech[1] + ENDS - at)]


WIDE = {"PCM_24": 24, "ALAC_24": 24, "PCM_32": 32, "ALAC_32": 32, "FLOAT": 0, "DOUBLE": 0}
"""Bits of the kinds of samples that hold more than 16; 0: they are not whole numbers."""


def whole_numbers(samples: Float64, kind: str) -> npt.NDArray[Any]:
    """Samples, full scale 32768, as numbers of a kind of libsndfile's: int16, the upper bits of
    int32, or, where the kind is of floating point or compressed, float64 of full scale 1."""
    bits = 16 if kind == "PCM_16" else WIDE.get(kind, 0)
    if not bits:
        return np.clip(samples / 32768, -1.0, 1.0)
    scale = 2.0 ** (bits - 16)
    whole = np.clip(np.rint(samples * scale), -32768 * scale, 32768 * scale - 1)
    return whole.astype(np.int16) if bits == 16 else whole.astype(np.int32) << (32 - bits)


# ---- Anonymisers by name, their common interface, and their construction from a YAML file.

# Of an anonymiser: CPU seconds for a second of speech, one core of ours (benchmarks/RESULTS.md);
# `model`: of the default, models/place (benchmarks/archive.csv).
CPU_SECONDS = {"mcadams": 0.006, "voice_conversion": 0.04, "knn_vc": 0.04, "model": 0.1}


@dataclass(frozen=True)
class Description:
    """Requirements of a system. level: of its keys. needs: folders (`sources.NEEDS`). levels:
    allowed values of `level` in its file; none where nothing is drawn, so that no level applies.
    moves: whether draws move speech in time.

    "pool:moonshine" is a pool with that content. A trained part is named with its settings:
    "synthesiser:nsf_mini" is made by conf/synthesisers/nsf_mini.yaml, "generator:idmap_mlp" by
    conf/generators/idmap_mlp.yaml. "model:bn" is models/bn. "external:<folder>" is that folder;
    "external:" one that a user's command fills (steps/protect_by_command.py).
    """

    level: str
    needs: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    moves: bool = False


RAISED = 6.0
"""`Anonymiser.raised` of systems that give a piece of mere noise the level of speech."""
Spoken = tuple[Float64, dict[str, object]]
"""Protected speech float64 at 16 kHz, and columns of pseudo.tsv, beside which may be `WORDS`."""


class Anonymiser(sources.FromSettings):
    """Configured system.

    level: of its keys (`make_keys`). output: the level of its files. is_random: a second run
    (`--draw 1`) gives other speech; calibration distortion needs two runs. None: unknown.
    keeps_length: whether its speech is as long as the source's. raised: dB by which its own level
    may raise a soft piece of a long recording, whose pieces it converts one by one; None: its
    speech has the level of each piece. context: whether it hears more than a piece, on either side.
    ends: `one`: silence before and after the speech of a recording becomes ENDS; `keep`.
    words_alone: whether its speech is made by `say`, of what `hear` finds, and of nothing else.
    tells_words: whether it says words in another time than the source's, and knows both.
    """

    level: str
    output: OutputLevel = OutputLevel()
    is_random: bool | None = True
    keeps_length: bool = True
    raised: float | None = None
    context: bool = True
    ends: str = ENDINGS[0]
    words_alone: bool = False
    tells_words: bool = False

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> Description:
        """Requirements of the settings, without any folder; nothing, unless a subclass has some."""
        return Description(cls.level)

    @abstractmethod
    def transform(
        self, wave: Float64, key: sources.VoiceKey, source: sources.SourceSpeaker
    ) -> Spoken:
        """Protect (n,) float64 at 16 kHz; returns speech, (n,) if it `keeps_length`, and further
        columns of pseudo.tsv."""

    def apart(self, one: sources.VoiceKey, other: sources.VoiceKey) -> float:
        """Distance of two keys' voices, 1: as that of two people; 1 where a system cannot tell."""
        return 1.0

    def hear(self, wave: Float64) -> str:
        """Words of speech (n,), for a system whose speech is made of `words_alone`."""
        raise NotImplementedError

    def say(
        self, words: str, key: sources.VoiceKey, source: sources.SourceSpeaker
    ) -> Iterator[Spoken]:
        """Yield speech of words part by part, and further columns as `transform`; as `hear`."""
        raise NotImplementedError

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, in the form of conf/systems/*.yaml."""
        return asdict(self.given)


# Loaded on demand: some need packages that take seconds to load.
KINDS = {
    "mcadams": "steps.anonymisers.mcadams:McAdams",
    "copy_synthesis": "steps.anonymisers.vocoder:CopySynthesis",
    "knn_vc": "steps.anonymisers.knn_vc:KnnVc",
    "articulation": "steps.anonymisers.vocoder:Articulation",
    "voice_conversion": "steps.anonymisers.voice_conversion:VoiceConversion",
    "model": "steps.anonymisers.voice_conversion:HandedOn",
    "external": "steps.anonymisers.external:External",
    "command": "steps.anonymisers.external:Command",
}


def load_anonymiser(
    path: StrPath,
    draws: Draws = sources.FIRST,
    resources: sources.Resources = sources.NOTHING,
    *,
    level: str | None = None,
    changes: Mapping[str, object] = MappingProxyType({}),
) -> Anonymiser:
    """Make the system that a YAML file describes.

    level: instead of the file's, for an attacker who trains on a system's speech. changes: settings
    instead of the file's. UserError for an
    unknown system or setting, a value out of range, a missing folder that is needed, a second draw
    of a system that is not random, and a level that it cannot have.
    """
    kind, settings = _read(path, level, changes)
    path = name_settings(path)
    anonymiser: Anonymiser = kind.make(settings, sources.SystemRun(path, resources, draws))
    if draws.draw and not anonymiser.is_random:
        raise UserError(
            f"{path}: --draw {draws.draw}: this system draws nothing at random, so all its runs "
            "are the same, and what compares two runs (C_ECE) is not defined for it"
        )
    return anonymiser


def describe_system(path: StrPath, level: str | None = None) -> Description:
    """Requirements of a system, from its YAML file alone; errors as in `load_anonymiser`."""
    kind, settings = _read(path, level)
    return kind.describe(settings, name_settings(path))


def find_kind(values: dict[str, object], path: StrPath) -> type[Anonymiser]:
    """Kind for the settings from `path`; UserError for an unknown one."""
    return load(choose(KINDS, values.get("anonymiser"), path, "anonymiser"))


def _read(
    path: StrPath, level: str | None, changes: Mapping[str, object] = MappingProxyType({})
) -> tuple[type[Anonymiser], Any]:
    """Kind of a system, and its settings."""
    values, path = {**read_settings(path), **changes}, name_settings(path)
    kind = find_kind(values, path)
    settings = kind.parse(values, path)
    if level is None:
        return kind, settings
    levels = kind.describe(settings, path).levels
    if level not in levels:
        known = ", ".join(levels) or "none: it draws nothing at random"
        raise UserError(f"{path}: --level {level}: this system cannot have it; known: {known}")
    return kind, kind.parse({**values, "level": level}, path)


# ---- Protection of a data set by an anonymiser: audio file by audio file, then the tables.

# Tables that stay true of protected speech; features and voice activity of the original do not.
KEPT = [
    "utt2spk", "spk2gender", "spk2age", "text", "utt2dur", "utt2lang", "utt2emotion", "enrolls",
    "trials",
]  # fmt: skip


_ROUNDED = 0.02  # seconds of rounding allowed in utt2dur


@dataclass
class Protected(Losses):
    """Result for each utterance. `rows`: utterance -> column of pseudo.tsv -> value. seconds:
    length of the protected audio."""

    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    n_resampled: int = 0

    def summary(self) -> str:
        """Counts in words."""
        n = len(self.files)
        return (
            f"{n + len(self.skipped)} read, {n} written, {len(self.skipped)} skipped; "
            f"{self.n_resampled} resampled to 16 kHz"
        )


def protect_audio(
    wav: Mapping[str, str],
    keys: Mapping[str, sources.VoiceKey],
    who: Mapping[str, sources.SourceSpeaker],
    anonymiser: Anonymiser,
    folder: StrPath,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Protected:
    """Read, transform, level and write each utterance to `folder`/<utterance>.wav.

    who: the speaker of each utterance. progress: wraps the utterances, to show progress. Audio that
    cannot be used is skipped, with its reason. UserError for a file that cannot be written.
    """
    result = Protected()

    def protect(utt: str) -> tuple[Audio, npt.NDArray[np.int16], dict[str, object]]:
        audio = read_audio(utt, wav[utt])
        start = time.perf_counter()
        samples, info = anonymiser.transform(audio.samples, keys[utt], who[utt])
        seconds = time.perf_counter() - start
        if anonymiser.ends == "one" and (
            speech := speech_of([samples], float(np.max(np.abs(samples), initial=0.0)))
        ):
            samples = np.concatenate(list(with_ends([samples], speech)))
        levelled = anonymiser.output.to_pcm16(samples)
        if audio.samples.any() and not levelled.any():
            raise UserError(
                f"{utt}: the protected signal is digital silence, but the original is speech"
            )
        row = {name: value for name, value in info.items() if name != WORDS}
        return audio, levelled, {"key": keys[utt], **row, "seconds": f"{seconds:.4f}"}

    for utt, (audio, levelled, row) in result.each(progress(wav), protect):
        path = f"{os.fspath(folder)}/{utt}.wav"
        write_pcm16(path, levelled)
        result.files[utt], result.seconds[utt] = path, len(levelled) / SAMPLE_RATE
        result.rows[utt] = row
        result.n_resampled += audio.rate != audio.file_rate
    return result


def write_protected(
    out: Path,
    data: DataDir,
    result: Protected,
    settings: Mapping[str, object],
    notes: Sequence[str] = (),
) -> None:
    """Write conf.json, pseudo.tsv, notes.txt, a data directory; wav.scp last."""
    write_json(out / "conf.json", settings, indent=2, sort_keys=True)
    write_pseudo(out / "pseudo.tsv", result.rows)
    # Notes have ids, so that equal ones of several jobs become one.
    by_id = {hashlib.sha256(note.encode()).hexdigest()[:12]: note for note in notes}
    (out / "notes.txt").unlink(missing_ok=True)
    if by_id:
        write_map(out / "notes.txt", by_id)
    tables = select(data, result.files.keys())
    kept = {name: dict(table) for name, table in tables.items() if name in KEPT}
    for utt, told in kept.get("utt2dur", {}).items():  # unchanged, unless its length differs
        if abs(float(told) - result.seconds[utt]) > _ROUNDED:
            kept["utt2dur"][utt] = f"{result.seconds[utt]:.4f}"
    write_data_dir(out, {**kept, "wav.scp": result.files})


def write_pseudo(path: Path, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Write a header that starts with #, then a line an utterance: id and columns between tabs."""
    columns = next(iter(rows.values()), {})
    write_timed(path, ("utt", *columns), ((utt, *rows[utt].values()) for utt in sort_ids(rows)))
