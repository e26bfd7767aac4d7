# SPDX-License-Identifier: Apache-2.0
"""Pseudo x-vectors of a whole set with any generator, without speech."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from steps.generators.base import Generator
from steps.generators.gender import POLICIES, choose_gender
from steps.generators.registry import load_generator
from steps.keys import LEVELS, Key
from steps.sources import Resources, Source
from steps.speaker.averaging import read_xvectors
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.seeds import make_rng
from utils.settings import name_settings
from utils.tables import StrPath, sort_ids

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
