"""Pseudo-speakers without speech: those of a whole set, or any number of made-up ones."""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from steps.generators.base import POLICIES, Generator, choose_gender, load_generator
from steps.sources import LEVELS, Key, Resources, Source
from steps.speaker.vectors import read_xvectors
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.seeds import make_rng
from utils.settings import name_settings, read_settings
from utils.tables import StrPath, sort_ids

# ---- Pseudo x-vectors of a whole set with any generator, without speech.

ANY = "any"  # gender
AT_ONCE = 4096  # keys given to a generator that takes many


class BatchGenerator(Generator, Protocol):
    """Generator that is faster for many keys than for one."""

    def generate_many(self, keys: Sequence[Key]) -> tuple[Float64, list[dict[str, object]]]:
        """Generate for n keys: (n, d), and columns of each."""
        ...


@dataclass(frozen=True)
class SpeakerSettings:
    """Settings of a system's file that count here. gender: a policy, or None for any."""

    generator: dict[str, object]
    level: str
    gender: str | None

    def load(self, path: StrPath, *, seed: int, draw: int, resources: Resources) -> Generator:
        """Make the generator, not fitted yet; UserError for settings or folders."""
        where = name_settings(path)
        return load_generator(self.generator, where, seed=seed, draw=draw, resources=resources)


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
class Made:
    """Vectors (d,) and rows of pseudo.tsv by utterance; number of different pseudo-speakers."""

    vectors: dict[str, Float64]
    rows: dict[str, dict[str, object]]
    n_speakers: int


def generate_speakers(
    generator: Generator,
    settings: SpeakerSettings,
    keys: Mapping[str, Key],
    utt2spk: Mapping[str, str],
    sources: Mapping[str, Source],
    *,
    seed: int,
    draw: int,
) -> Made:
    """Make a vector for each utterance. UserError if a source or the pool does not allow it."""
    first = {keys[utt]: sources[utt2spk[utt]] for utt in reversed(sort_ids(keys))}
    made: dict[Key, tuple[Float64, dict[str, object]]] = {}
    if hasattr(generator, "generate_many"):
        many, todo = cast(BatchGenerator, generator), list(first)
        for start in range(0, len(todo), AT_ONCE):
            part, started = todo[start : start + AT_ONCE], time.perf_counter()
            vectors, columns = many.generate_many(part)
            each = (time.perf_counter() - started) / len(part)
            for key, y, row in zip(part, vectors, columns, strict=True):
                made[key] = y, {**row, "seconds": f"{each:.6f}"}
    else:
        for key, source in first.items():
            started = time.perf_counter()
            y, row = generate_one(generator, settings, key, source, seed, draw)
            made[key] = y, {**row, "seconds": f"{time.perf_counter() - started:.6f}"}
    utts = sort_ids(keys)
    return Made(
        {utt: made[keys[utt]][0] for utt in utts},
        {utt: {"key": keys[utt], **made[keys[utt]][1]} for utt in utts},
        len(made),
    )


def generate_one(
    generator: Generator,
    settings: SpeakerSettings,
    key: Key,
    source: Source,
    seed: int,
    draw: int,
) -> tuple[Float64, dict[str, object]]:
    """Pseudo-speaker (d,) of a key, and columns, as in `generate_speakers`."""
    gender = None
    if settings.gender is not None:
        rng = make_rng(seed, "voice_conversion gender", f"draw {draw}", *key.group_parts)
        gender = choose_gender(settings.gender, source.gender, rng)
    if settings.level == "const":  # one vector for all is independent of the source
        return generator.generate(key, target_gender=gender)
    return generator.generate(key, source.xvector, source.gender, gender, {source.speaker})


# ---- Any number of pseudo-speakers of a system: made-up keys, and real sources in turn.
#
# A generator whose vectors depend only on an index (`training.Model`) needs no source; all others
# are called as in a system, so that their vectors are those of a system.

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
    sources: tuple[Source, ...]
    seconds: float
    seed: int

    @property
    def limit(self) -> int | None:
        """Number of different ones, if nothing is drawn and only the source makes a difference."""
        return None if self.generator.is_random else len(self.sources)

    def vector(self, place: int) -> Float64:
        """Pseudo-speaker `place`: (d,) float64. UserError as from the generator."""
        names = ("sampling", str(place))
        key = Key(self.settings.level, names, names)
        source = self.sources[place % len(self.sources)]
        return generate_one(self.generator, self.settings, key, source, self.seed, 0)[0]

    def blocks(self) -> Iterator[Float32]:
        """Yield all pseudo-speakers in order, (n, d) a block; for ever if there is no limit."""
        places = iter(itertools.count() if self.limit is None else range(self.limit))
        while block := [self.vector(place) for place in itertools.islice(places, BLOCK)]:
            yield np.stack(block).astype(np.float32)


def load_sampler(
    conf: Path,
    sources: Sequence[tuple[Path, Path]],
    resources: Resources,
    *,
    pool: Path | None,
    pool_data: Path | None,
    seed: int,
) -> Sampler:
    """Make the sampler of a system's file.

    sources: folder of x-vectors and data directory (utt2dur needed) of each set of sources. pool:
    folder with spk_xvector.scp. UserError for missing or unfit files.
    """
    settings = read_speaker_settings(read_settings(conf), conf)
    generator = settings.load(conf, seed=seed, draw=0, resources=resources)
    if pool is None and "generator" not in generator.needs:
        raise UserError(f"{conf}: this generator needs --pool XVECTORS")
    if pool is not None:
        generator.fit(*load_pool(pool, pool_data))
    found, durations = [], []
    for xvectors, data in sources:
        for source, seconds in _read_sources(xvectors, data):
            found.append(source)
            durations.append(seconds)
    if not found:
        raise UserError(f"{conf}: no source to make pseudo-speakers of; give --sources")
    return Sampler(generator, settings, tuple(found), float(np.mean(durations)), seed)


def _read_sources(xvectors: Path, data: Path) -> Iterator[tuple[Source, float]]:
    """Utterances of a set: speaker and x-vector of each, and its seconds."""
    loaded, vectors = load_data_dir(data, need=("utt2spk", "utt2dur")), read_xvectors(xvectors)
    genders, durations = loaded.spk2gender or {}, loaded.utt2dur or {}
    for utt in sort_ids(loaded.utt2spk):
        if utt not in vectors:
            raise UserError(f"{xvectors / 'xvector.scp'}: utterance {utt} of {data} is not in it")
        speaker = loaded.utt2spk[utt]
        vector = vectors[utt].astype(np.float64)
        yield Source(speaker, genders.get(speaker), vector), durations[utt]
