"""Generators of pseudo-speakers by name: what all do, and the pool of speakers that they use."""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steps.sources import FromSettings, SourceSpeaker, SystemRun, VoiceKey
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.datachecks import OTHER
from utils.registry import choose, load
from utils.seeds import Draws
from utils.tables import StrPath

# ---- Interface of all generators of pseudo-speakers, and the pool of real speakers for them.

GENDERS = ("f", "m")


Generated = tuple[Float64, dict[str, object]]
"""A pseudo-speaker y (d,) float64, and columns of pseudo.tsv."""


@dataclass(frozen=True)
class Wanted:
    """Pseudo-speaker to make. key: of its draws. x: (d,) mean x-vector of the source speaker.
    gender: f, m, or None for any. exclude: ids never to be chosen."""

    key: VoiceKey
    x: Float64 | None = None
    gender: str | None = None
    exclude: Collection[str] = ()


class Generator(FromSettings):
    """Generator of pseudo-speakers' x-vectors, configured and, after `fit`, with a pool.

    name: in the registry. needs: those of `sources.NEEDS` beside the pool; "xvectors" means that
    `generate` needs the source's x. is_random: another draw gives another pseudo-speaker; asked
    after `fit`. target_genders: those that will be used; draws for others do not count in
    `is_random`. All, unless the system says which.
    """

    where = "generator"
    pool: "Pool"
    target_genders: Sequence[str | None] = (*GENDERS, None)

    def __init__(self, settings: Any, run: SystemRun) -> None:
        super().__init__(settings, run)
        self.name: str = settings.name
        self.needs = self.describe(settings, run.path)

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        """Needs, without any folder; none, unless a subclass has some."""
        return ()

    def settings(self) -> dict[str, object]:
        """All settings, defaults and `name` included, for conf.json."""
        return asdict(self.given)

    @property
    def is_random(self) -> bool:
        """True, unless a subclass or its settings say otherwise."""
        return True

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """Take the pool, once: x-vectors (S, d) float64, one a speaker, with ids and f, m or None.

        Later results do not depend on the order of the speakers.
        """
        self.pool = Pool.make(vectors, speakers, genders)

    def source(self, wanted: Wanted) -> Float64:
        """Source's x as (d,) float64. UserError where it is missing or does not fit the pool."""
        if wanted.x is None:
            raise UserError(
                f"generator {self.name}: the x-vector of the source speaker is needed "
                "(--xvectors DIR)"
            )
        self.check_size("the source's x-vector has", wanted.x.size)
        return wanted.x.astype(np.float64)

    def check_size(self, whose: str, size: int | None) -> None:
        """Raise a UserError where vectors have another size than the pool's; None: any size is
        right."""
        if size not in (None, dim := self.pool.vectors.shape[1]):
            raise UserError(
                f"generator {self.name}: {whose} {size} values, and the pool's have {dim}; make "
                "both with the same encoder"
            )

    @abstractmethod
    def generate(self, wanted: Wanted) -> Generated:
        """Make a pseudo-speaker; the columns have the same names for all keys.

        UserError where the pool or the source does not allow it.
        """


@dataclass(frozen=True)
class Pool:
    """Real speakers in C order of their ids: vectors (S, d), and f, m or None for each."""

    speakers: tuple[str, ...]
    vectors: Float64
    genders: tuple[str | None, ...]

    @classmethod
    def make(
        cls, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]
    ) -> "Pool":
        """Sort. UserError for no speaker."""
        if not len(speakers):
            raise UserError("pool: no speaker is in it")
        order = sorted(range(len(speakers)), key=lambda place: speakers[place])
        return cls(
            tuple(speakers[place] for place in order),
            np.asarray(vectors, dtype=np.float64)[order],
            tuple(genders[place] for place in order),
        )

    @cached_property
    def _places(self) -> dict[str, int]:
        return {speaker: place for place, speaker in enumerate(self.speakers)}

    def group(self, target_gender: str | None) -> Int64:
        """Positions of the speakers of a gender, ascending; for None of all. UserError for none."""
        if target_gender is None:
            return np.arange(len(self.speakers))
        places = np.flatnonzero([gender == target_gender for gender in self.genders])
        if not len(places):
            known = "has no genders (spk2gender)" if not any(self.genders) else "lacks this gender"
            raise UserError(f"pool: no speaker of gender {target_gender}: it {known}")
        return places

    def without(self, places: Int64, exclude: Collection[str]) -> Int64:
        """Positions without the speakers `exclude`, who need not be in the pool."""
        left_out = [self._places[speaker] for speaker in exclude if speaker in self._places]
        return places[~np.isin(places, left_out)] if left_out else places


def units(vectors: Float64) -> Float64:
    """Scale (..., d) to length 1; zero stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30)


# ---- Gender of the pseudo-speaker.

POLICIES = ("same", "other", "random")
ANY = "any"  # no choice of gender: voices of any


def choose_gender(policy: str, gender: str | None, rng: np.random.Generator) -> str:
    """Choose f or m for a source of gender f, m, or None where it is not known.

    same and other (the challenge's cross-gender option) look at the source's gender and draw
    nothing. random is a fair coin, independent of the source (Srivastava et al. 2020); to toss it
    once a speaker, seed `rng` with `VoiceKey.group_parts`; it is also tossed for people of another
    sex. UserError where the gender is needed and not known.
    """
    if policy == "random" or gender == OTHER:
        return GENDERS[int(rng.integers(2))]
    if gender not in GENDERS:
        raise UserError(
            f"gender: {policy}: the source's gender is {gender!r}, and f or m is needed; give it "
            "in spk2gender of the data directory"
        )
    return gender if policy == "same" else GENDERS[1 - GENDERS.index(gender)]


def wanted_of(
    level: str, policy: str | None, key: VoiceKey, source: SourceSpeaker, draws: Draws
) -> Wanted:
    """Pseudo-speaker of a key in a system with a level and a policy of gender (None: any).

    One vector for all (level const) is independent of the source.
    """
    gender = None
    if policy is not None:
        rng = draws.rng("voice_conversion gender", *key.group_parts)
        gender = choose_gender(policy, source.gender, rng)
    if level == "const":
        return Wanted(key, gender=gender)
    return Wanted(key, source.xvector, gender, {source.speaker})


# ---- Generators of pseudo-speakers by name, and their construction from the settings of a system.

# Loaded on demand: some need packages that take seconds to load.
GENERATORS = {
    "random": "steps.generators.pool:RandomSpeakers",
    "farthest": "steps.generators.pool:RankedSpeakers",
    "dense": "steps.generators.pool:ClusteredSpeakers",
    "constant": "steps.generators.pool:ConstantTarget",
    "average": "steps.generators.pool:AverageSpeakers",
    "psd": "steps.generators.frames:PseudoSpeakerDistribution",
    "wgan": "steps.generators.sampling:WganSpeakers",
    "idmap_mlp": "steps.generators.sampling:IdMapGenerator",
    "idmap_diff": "steps.generators.sampling:IdMapGenerator",
}


def load_generator(values: object, run: SystemRun) -> Generator:
    """Make the generator that the mapping `generator` of a run's file describes; not fitted yet.

    UserError for an unknown name or setting, a value out of range, and a missing folder.
    """
    kind, settings = _find(values, run.path)
    return kind.make(settings, run)


def describe_generator(values: object, path: StrPath) -> tuple[str, ...]:
    """Needs beside the pool (of `sources.NEEDS`); errors as in `load_generator`."""
    kind, settings = _find(values, path)
    return kind.describe(settings, path)


def _find(values: object, path: StrPath) -> tuple[type[Generator], Any]:
    if not isinstance(values, dict):
        raise UserError(f"{path}: generator: settings are expected, one `name: value` a line")
    kind: type[Generator] = load(choose(GENERATORS, values.get("name"), path, "generator.name"))
    return kind, kind.parse(values, path)
