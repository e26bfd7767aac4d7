# SPDX-License-Identifier: Apache-2.0
"""Any number of pseudo-speakers of a system: made-up keys, and real sources in turn.

A generator whose vectors depend only on an index (`trained.Model`) needs no source; all others are
called as in a system, so that their vectors are those of a system.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steps.generators.base import Generator
from steps.generators.speakers import (
    SpeakerSettings,
    generate_one,
    load_pool,
    read_speaker_settings,
)
from steps.keys import Key
from steps.sources import Resources, Source
from steps.speaker.averaging import read_xvectors
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.settings import read_settings
from utils.tables import sort_ids

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
