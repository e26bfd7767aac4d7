"""Pseudo-speakers without speech: those of a whole set, or any number of made-up ones."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steps.generators.base import POLICIES, Generated, Generator, load_generator, want
from steps.generators.indexed import IdMapGenerator
from steps.sources import LEVELS, Resources, SourceSpeaker, SystemRun, VoiceKey
from steps.speaker.vectors import read_xvectors
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.seeds import Draws
from utils.settings import name_settings, read_settings
from utils.tables import StrPath, sort_ids

# ---- Pseudo x-vectors of a whole set with any generator, without speech.

ANY = "any"  # gender
AT_ONCE = 4096  # keys given to a generator that takes many, and is faster then


@dataclass(frozen=True)
class SpeakerSettings:
    """Settings of a system's file that count here. gender: a policy, or None for any."""

    generator: dict[str, object]
    level: str
    gender: str | None

    def load(
        self, path: Path, draws: Draws, resources: Resources, pool: Path | None, data: Path | None
    ) -> Generator:
        """Make the generator, and fit it to the x-vectors of a pool and the genders in its data
        directory. UserError for settings, folders, or a pool that it needs."""
        run = SystemRun(name_settings(path), resources, draws)
        generator = load_generator(self.generator, run)
        if pool is None and "generator" not in generator.needs:
            raise UserError(f"{path}: this generator needs --pool XVECTORS")
        if pool is not None:
            generator.fit(*load_pool(pool, data))
        return generator


def read_speaker_settings(values: Mapping[str, object], path: StrPath) -> SpeakerSettings:
    """Read from a system's file; default level spk and gender same, as in voice_conversion
    (constant: level const, any gender)."""
    path, generator = name_settings(path), values.get("generator")
    if not isinstance(generator, dict):
        raise UserError(f"{path}: generator: settings are expected, one `name: value` a line")
    constant = generator.get("name") == "constant"
    level = values.get("level", "const" if constant else "spk")
    gender = values.get("gender", None if constant else "random" if level == "const" else "same")
    if level not in LEVELS:
        raise UserError(f"{path}: level: {level!r} is unknown; known: {', '.join(LEVELS)}")
    gender = None if gender == ANY else gender
    if gender is not None and gender not in POLICIES:
        known = ", ".join((*POLICIES, ANY))
        raise UserError(f"{path}: gender: {gender!r} is unknown; known: {known}")
    return SpeakerSettings(generator, str(level), None if gender is None else str(gender))


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


@dataclass
class MadeSpeakers:
    """Vectors (d,) and rows of pseudo.tsv by utterance; number of different pseudo-speakers."""

    vectors: dict[str, Float64]
    rows: dict[str, dict[str, object]]
    n_speakers: int


def generate_speakers(
    generator: Generator,
    settings: SpeakerSettings,
    keys: Mapping[str, VoiceKey],
    utt2spk: Mapping[str, str],
    sources: Mapping[str, SourceSpeaker],
    draws: Draws,
) -> MadeSpeakers:
    """Make a vector for each utterance. UserError if a source or the pool does not allow it."""
    utts = sort_ids(keys)
    first = {keys[utt]: sources[utt2spk[utt]] for utt in reversed(utts)}
    at_once = AT_ONCE if isinstance(generator, IdMapGenerator) else 1
    made: dict[VoiceKey, Generated] = {}
    todo = list(first)
    for start in range(0, len(todo), at_once):
        part, started = todo[start : start + at_once], time.perf_counter()
        if isinstance(generator, IdMapGenerator):  # of the keys alone
            found: Iterable[Generated] = zip(*generator.generate_many(part), strict=True)
        else:
            wanted = want(settings.level, settings.gender, part[0], first[part[0]], draws)
            found = [generator.generate(wanted)]
        each = (time.perf_counter() - started) / len(part)
        for key, (y, row) in zip(part, found, strict=True):
            made[key] = y, {**row, "seconds": f"{each:.6f}"}
    return MadeSpeakers(
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

    generator: Generator
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
        wanted = want(settings.level, settings.gender, key, source, self.draws)
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
        raise UserError(f"{conf}: no source to make pseudo-speakers of; give --sources")
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
