"""Pseudo-speakers of trained generators, those of a whole set without speech, and any number."""

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from steps.generators import base
from steps.generators.identity import END, hashed_index, key_name
from steps.sources import LEVELS, Resources, SourceSpeaker, SystemRun, VoiceKey
from steps.speaker.vectors import read_xvectors
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.seeds import Draws
from utils.settings import Count, Number, OneOf, name_settings, parse_settings, read_settings
from utils.tables import StrPath, sort_ids

# ---- Pseudo-speakers of trained generators, from keys by way of identity indices: WGAN and IDMap.
#
# PyTorch is loaded with a trained network, so that a system's needs are found quickly.


class TrainedSpeakers(base.Generator):
    """Common part of generators whose voices a trained network makes of indices.

    The pool serves comparison alone. There is no choice of gender.
    """

    def __init__(self, settings: Any, run: SystemRun) -> None:
        """Open the folder --generator."""
        super().__init__(settings, run)
        from steps.generators.training import load_trained  # loads torch

        folder = run.folder("generator", f": generator.name: {settings.name}")
        self._trained = load_trained(folder, settings.name)
        self._model = self._trained.model

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        return ("generator",)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        self.check_size("trained on x-vectors of", self._model.dimension)

    def note_gender(self, wanted: base.Wanted) -> None:
        """Note that a wanted gender was not heeded."""
        if wanted.gender is not None:
            self.note(
                f"generator {self.name}: its voices have no gender to choose; the wanted one was "
                "not heeded"
            )


# ---- Pseudo-speakers of a trained WGAN (Meyer et al. 2022; Liu et al. 2025, II-C).
#
# A generated vector that is too similar to the source is drawn again.

NORMS = ("calibrated", "raw")


@dataclass(frozen=True)
class WganSettings:
    """threshold: vectors whose cosine with the source is not below are drawn again; 1: never.

    norm: calibrated, vectors are as far apart as those of people, and one that is nearer to a
    speaker of the pool than two recordings of one person are to each other is also drawn again
    (ours); raw, they stay as the network makes them (the paper). tries: vectors drawn for a key at
    most; then the one with the lowest cosine is kept, among those that are nobody's if possible.
    centred: cosines with the source are about the mean of the pool. The paper takes raw ones
    (false), of an encoder whose real speakers have a mean cosine near 0; where all are similar
    (0.58 with Resemblyzer), no two real speakers are below 0.3, and only vectors unlike any speaker
    are kept. trained: as in idmap_speakers.IdMapSettings.
    """

    name: str
    trained: str = ""
    threshold: Annotated[float, Number(above=-1, most=1)] = 0.3
    tries: Count = 100
    centred: bool = True
    norm: Annotated[str, OneOf(*NORMS)] = "calibrated"


@dataclass(frozen=True, eq=False)
class _Voice:
    """Drawn vector: its index, its cosine with the source (NaN: not requested), and with the most
    similar speaker of the pool."""

    y: Float64
    index: int
    cosine: float
    nearest: float


class WganSpeakers(TrainedSpeakers):
    """Pseudo-speakers of a trained WGAN."""

    kind = WganSettings
    given: WganSettings

    def __init__(self, settings: WganSettings, run: SystemRun) -> None:
        super().__init__(settings, run)
        self._is_calibrated = settings.norm == "calibrated"
        self._limit = self._trained.same_person if self._is_calibrated else math.nan

    @classmethod
    def describe(cls, settings: WganSettings, path: StrPath) -> tuple[str, ...]:
        needs = super().describe(settings, path)
        return needs if settings.threshold >= 1 else ("xvectors", *needs)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        self._centre = self.pool.vectors.mean(axis=0) if self.given.centred else 0.0
        self._people = base.units(self.pool.vectors)

    def generate(self, wanted: base.Wanted) -> base.Generated:
        self.note_gender(wanted)
        x = self.source(wanted) - self._centre if self.given.threshold < 1 else None
        found: list[_Voice] = []
        for voice in self._voices(wanted.key, x):
            found.append(voice)
            if not (self._is_like(voice) or self._is_somebody(voice)):
                break
        else:
            self.note(
                f"{self.name}: for some keys none of {self.given.tries} vectors was below the "
                f"threshold {self.given.threshold:g} of the source"
                + " and nobody's" * any(self._is_somebody(voice) for voice in found)
                + "; the best was taken (`cosine` and `nearest` in pseudo.tsv)"
            )
        kept = min(found, key=self._badness)
        return kept.y, {
            "index": kept.index,
            "tries": len(found),
            "cosine": "" if x is None else round(kept.cosine, 4),
            "nearest": round(kept.nearest, 4),
        }

    def _voices(self, key: VoiceKey, x: Float64 | None) -> Iterator[_Voice]:
        """Draw vectors for a key, at most `tries`, with their cosines to the source's x."""
        rng = self.draws.rng(self.name, *key.parts)
        for index in (int(rng.integers(END)) for _ in range(self.given.tries)):
            made = self._model.vectors(np.array([index], dtype=np.int64))
            if self._is_calibrated:
                made = self._model.calibrate(made)
            y = made[0].astype(np.float64)
            cosine = math.nan if x is None else float(base.units(x) @ base.units(y - self._centre))
            yield _Voice(y, index, cosine, float((self._people @ base.units(y)).max()))

    def _badness(self, voice: _Voice) -> tuple[bool, bool, float, float]:
        return self._is_somebody(voice), self._is_like(voice), voice.cosine, voice.nearest

    def _is_like(self, voice: _Voice) -> bool:
        """Whether it is too similar to the source."""
        return voice.cosine >= self.given.threshold

    def _is_somebody(self, voice: _Voice) -> bool:
        """Whether it is too near to a speaker of the pool."""
        return voice.nearest > self._limit


# ---- Pseudo-speakers of a trained IDMap, MLP or Diff (Liu et al. 2025): keys to indices to
# vectors.


@dataclass(frozen=True)
class IdMapSettings:
    """`generator` of a system. norm: calibrated, vectors are as far apart as those of people
    (ours); raw, they stay as the network makes them (the paper). tries: most indices that a key
    gets until its voice is nobody's: nearer to no training speaker than two recordings of one
    person are to each other; 1 takes the first. trained: the recipe trains it by
    conf/generators/<trained>.yaml ("": <name>.yaml), so that variants stand side by side."""

    name: str
    trained: str = ""
    norm: Annotated[str, OneOf(*NORMS)] = "calibrated"
    tries: Count = 100


class IdMapGenerator(TrainedSpeakers):
    """Pseudo-speakers of IDMap, MLP or Diff.

    They depend on the key, seed and draw alone: not on the source, nor on the pool.
    """

    kind = IdMapSettings
    given: IdMapSettings

    def __init__(self, settings: IdMapSettings, run: SystemRun) -> None:
        super().__init__(settings, run)
        seen = np.arange(self._model.n_seen, dtype=np.int64)
        # The training speakers as the network models them (S, d), of length 1.
        people = base.units(self._model.vectors(seen).astype(np.float64))
        self._people = np.ascontiguousarray(people, dtype=np.float32)

    def generate(self, wanted: base.Wanted) -> base.Generated:
        """norm_ratio in the columns is that of the network's own vector, tries the number of
        indices, nearest the cosine with the training speaker who is most like the voice."""
        self.note_gender(wanted)
        same_person, found = self._trained.same_person, list[tuple[float, int, float, Float64]]()
        for attempt in range(self.given.tries):
            parts = wanted.key.parts + ((f"again {attempt}",) if attempt else ())
            index = hashed_index(key_name(self.draws, parts), self._model.n_seen)
            y, ratio = self._voice(index)
            nearest = float((self._people @ base.units(y).astype(np.float32)).max())
            found.append((nearest, index, ratio, y))
            if not nearest > same_person:
                break
        else:
            self.note(
                f"generator {self.name}: tries: for some keys all {self.given.tries} voices were "
                "nearer to a training speaker than two recordings of one person are; the most "
                "distant was taken (`nearest` in pseudo.tsv)"
            )
        if self.given.tries > 1 and math.isnan(same_person):
            self.note(
                f"generator {self.name}: tries: nobody whom it was trained on has two x-vectors, "
                "so nothing says how near to a real speaker is too near; the first voice was taken"
            )
        nearest, index, ratio, y = min(found, key=lambda voice: voice[0])
        return y, {
            "identity_index": index,
            "norm_ratio": round(ratio, 4),
            "tries": len(found),
            "nearest": round(nearest, 4),
        }

    def _voice(self, index: int) -> tuple[Float64, float]:
        """Pseudo-speaker's vector (d,) of an index, and how long the raw one is beside real ones.

        UserError where the network does not make usable ones.
        """
        made, (least, most) = self._model.vectors(np.array([index])), self._model.norm_limits
        ratio = float(np.linalg.norm(made.astype(np.float64))) / self._trained.norm
        if not least <= ratio <= most:
            raise UserError(
                f"generator {self.name}: the vector of index {index} has {ratio:.3g} times "
                f"the norm of real ones, and {least:g} to {most:g} is usable; train the "
                "generator longer"
            )
        if self.given.norm == "calibrated":
            made = self._model.calibrate(made)
        return made[0].astype(np.float64), ratio


# ---- Pseudo x-vectors of a whole set with any generator, without speech.


@dataclass(frozen=True)
class Choices:
    """Settings of a system's file that are checked here."""

    level: Annotated[str, OneOf(*LEVELS)]
    gender: Annotated[str, OneOf(*base.POLICIES, base.ANY)]


@dataclass(frozen=True)
class SpeakerSettings:
    """Settings of a system's file that count here. gender: a policy, or None for any."""

    generator: object
    level: str
    gender: str | None

    def load(
        self, path: Path, draws: Draws, resources: Resources, pool: Path | None, data: Path | None
    ) -> base.Generator:
        """Make the generator, and fit it to the x-vectors of a pool and the genders in its data
        directory. UserError for settings, folders, or a pool that it needs."""
        run = SystemRun(name_settings(path), resources, draws)
        generator = base.load_generator(self.generator, run)
        if pool is None and "generator" not in generator.needs:
            raise UserError(f"{path}: this generator needs --pool XVECTORS")
        generator.target_genders = (None,) if self.gender is None else base.GENDERS
        if pool is not None:
            generator.fit(*load_pool(pool, data))
        return generator


def read_speaker_settings(values: Mapping[str, object], path: StrPath) -> SpeakerSettings:
    """Read from a system's file; default level spk and gender same, as in voice_conversion
    (constant: level const, any gender)."""
    path, generator = name_settings(path), values.get("generator")
    constant = isinstance(generator, dict) and generator.get("name") == "constant"
    level = values.get("level", "const" if constant else "spk")
    usual = base.ANY if constant else "random" if level == "const" else "same"
    given = {"level": level, "gender": values.get("gender", usual)}
    choices = parse_settings(Choices, given, path)
    gender = None if choices.gender == base.ANY else choices.gender
    return SpeakerSettings(generator, choices.level, gender)


def load_pool(
    folder: Path, data: Path | None
) -> tuple[Float64, tuple[str, ...], tuple[str | None, ...]]:
    """Read x-vectors (S, d), speakers and genders of spk_xvector.scp; None without `data`."""
    vectors = read_xvectors(folder, "spk_xvector")
    genders: Mapping[str, str] = {}
    if data is not None:
        genders = load_data_dir(data, need=("utt2spk",)).spk2gender or {}
    speakers = tuple(sort_ids(vectors))
    stack = np.stack([vectors[speaker] for speaker in speakers]).astype(np.float64)
    return stack, speakers, tuple(genders.get(speaker) for speaker in speakers)


def generate_speakers(
    generator: base.Generator,
    settings: SpeakerSettings,
    keys: Mapping[str, VoiceKey],
    utt2spk: Mapping[str, str],
    sources: Mapping[str, SourceSpeaker],
    draws: Draws,
) -> tuple[dict[str, Float64], dict[str, dict[str, object]], int]:
    """Vectors (d,) and rows of pseudo.tsv by utterance, and the number of different ones.

    UserError if a source or the pool does not allow it.
    """
    utts = sort_ids(keys)
    first = {keys[utt]: sources[utt2spk[utt]] for utt in reversed(utts)}
    made: dict[VoiceKey, base.Generated] = {}
    for key, source in first.items():
        started = time.perf_counter()
        wanted = base.wanted_of(settings.level, settings.gender, key, source, draws)
        y, row = generator.generate(wanted)
        made[key] = y, {**row, "seconds": f"{time.perf_counter() - started:.6f}"}
    return (
        {utt: made[keys[utt]][0] for utt in utts},
        {utt: {"key": keys[utt], **made[keys[utt]][1]} for utt in utts},
        len(made),
    )


# ---- Any number of pseudo-speakers of a system: made-up keys, and real sources in turn.
#
# A generator whose vectors depend only on an index (`training.IndexModel`) needs no source; all
# others are called as in a system, so that their vectors are those of a system.

BLOCK = 1024


@dataclass(frozen=True)
class Sampler:
    """Pseudo-speakers 0, 1, 2 ... of a system; the i-th has its own key, and the source i modulo
    the number of sources.

    sources: utterances, each with its x-vector and its speaker, in C order by set.
    seconds: mean duration of the sources.
    """

    generator: base.Generator
    settings: SpeakerSettings
    sources: tuple[SourceSpeaker, ...]
    seconds: float
    draws: Draws

    @property
    def limit(self) -> int | None:
        """Number of different ones, if nothing is drawn and only the source makes a difference."""
        return None if self.generator.is_random else len(self.sources)

    def vector(self, place: int) -> Float64:
        """Pseudo-speaker `place`: (d,) float64. UserError as from the generator."""
        names = ("sampling", str(place))
        key = VoiceKey(self.settings.level, names, names)
        source, settings = self.sources[place % len(self.sources)], self.settings
        wanted = base.wanted_of(settings.level, settings.gender, key, source, self.draws)
        return self.generator.generate(wanted)[0]

    def blocks(self) -> Iterator[Float32]:
        """Yield all pseudo-speakers in order, (n, d) a block; for ever if there is no limit."""
        places = iter(itertools.count() if self.limit is None else range(self.limit))
        while block := [self.vector(place) for place in itertools.islice(places, BLOCK)]:
            yield np.stack(block).astype(np.float32)


def load_sampler(
    conf: Path, sources: Sequence[tuple[Path, Path]], seed: int, *, pool: Path | None,
    pool_data: Path | None, pool_backend: Path | None, generator: Path | None,
) -> Sampler:  # fmt: skip
    """Make the sampler of a system's file, by the options of steps/time_generator.py.

    sources: folder of x-vectors and data directory (utt2dur needed) of each set of sources. pool:
    folder with spk_xvector.scp. UserError for missing or unfit files.
    """
    folders = tuple(xvectors for xvectors, _ in sources)
    resources = Resources(xvectors=folders, backend=pool_backend, generator=generator)
    settings, draws = read_speaker_settings(read_settings(conf), conf), Draws(seed)
    loaded = settings.load(conf, draws, resources, pool, pool_data)
    found = [one for xvectors, data in sources for one in _read_sources(xvectors, data)]
    if not found:
        raise UserError(f"{conf}: no source for pseudo-speakers; give --sources")
    speakers, durations = zip(*found, strict=True)
    return Sampler(loaded, settings, speakers, float(np.mean(durations)), draws)


def _read_sources(xvectors: Path, data: Path) -> Iterator[tuple[SourceSpeaker, float]]:
    """Utterances of a set: speaker and x-vector of each, and its seconds."""
    loaded, vectors = load_data_dir(data, need=("utt2spk", "utt2dur")), read_xvectors(xvectors)
    genders, durations = loaded.spk2gender or {}, loaded.utt2dur or {}
    for utt in sort_ids(loaded.utt2spk):
        if utt not in vectors:
            raise UserError(f"{xvectors / 'xvector.scp'}: utterance {utt} of {data} is not in it")
        speaker = loaded.utt2spk[utt]
        vector = vectors[utt].astype(np.float64)
        yield SourceSpeaker(speaker, genders.get(speaker), vector), durations[utt]
