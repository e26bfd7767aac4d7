"""kNN-VC with pseudo-profiles: a real voice of a pool, drawn by key, speaks for the source.

Baas et al. 2023 (the conversion), Seo et al. 2025 (eight profiles a speaker, the evaluation's
baseline). The latter's profiles are not published in full; see docs/voice_conversion.md.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from steps.anonymisers.registry import RAISED, Anonymiser, Description, Spoken
from steps.generators.base import POLICIES, choose_gender
from steps.sources import LEVELS, SourceSpeaker, SystemRun, VoiceKey
from steps.synthesis.f0 import TRANSFORMS
from utils.arrays import Float64
from utils.cli import UserError
from utils.settings import Count, Natural, OneOf, Share
from utils.tables import StrPath

if TYPE_CHECKING:
    from pathlib import Path

    from steps.synthesis.matching import WorldConverter

FEATURES = ("world", "content")


@dataclass(frozen=True)
class KnnVcSettings:
    """Settings of a configuration; None: not given. See docs/voice_conversion.md."""

    anonymiser: str
    features: Annotated[str, OneOf(*FEATURES)] = "world"
    k: Count = 4
    level: Annotated[str, OneOf(*LEVELS)] = "spk"
    gender: Annotated[str, OneOf(*POLICIES)] = "same"
    f0: Annotated[str, OneOf(*TRANSFORMS, "none")] = "linear"
    profiles: Natural = 0
    profile: int | None = None
    source_share: Share = 0.0
    content: str | None = None

    def __post_init__(self) -> None:
        n, profile = self.profiles, self.profile
        if not n and profile is not None:
            raise ValueError("profile: there are no profiles; give profiles, such as 8")
        if n and self.level == "utt":
            raise ValueError(
                "profiles: a profile belongs to a speaker, and level: utt has none; "
                "take spk, perm or const"
            )
        if n and not 1 <= (1 if profile is None else profile) <= n:
            raise ValueError(f"profile: {profile}; it must be from 1 to {n}")
        if self.content is not None and self.features != "content":
            raise ValueError("content: only features: content has it")


class KnnVc(Anonymiser):
    """One configured system; see `registry.Anonymiser`."""

    kind = KnnVcSettings
    given: KnnVcSettings

    def __init__(self, settings: KnnVcSettings, run: SystemRun) -> None:
        """settings: from `complete`. UserError for a pool that is too small."""
        super().__init__(settings, run)
        for need in _needs(settings):
            run.folder(need)
        self._pool = run.folder("pool")
        self._converter = converter = _load_converter(settings, self._pool, run.resources.device)
        self.level = settings.level
        self.raised = RAISED
        self.notes.append(converter.note)
        if dropped := converter.unvoiced:
            self.notes.append(
                f"{len(dropped)} of {len(converter.speakers)} voices are left out of the pool: no "
                f"voiced frame, which f0 needs (the first: {dropped[0]})"
            )
        # All have a position, so that a draw does not depend on who is excluded.
        self._genders = {s: converter.gender(s) for s in converter.speakers if s not in dropped}
        by_gender = [list(self._genders.values()).count(gender) for gender in "fm"]
        self._check_number(max(by_gender), "of one gender at most")
        # Of one voice only a gender is left to draw.
        self.is_random = settings.gender == "random" or max(by_gender) > 1

    @classmethod
    def parse(cls, values: object, path: StrPath) -> KnnVcSettings:
        """Return the settings that a mapping gives, completed."""
        return complete(super().parse(values, path))

    @classmethod
    def describe(cls, settings: KnnVcSettings, path: StrPath) -> Description:
        """Needs: a pool; with a transform of F0 also the statistics of the source speakers."""
        needs = _needs(settings)
        if settings.features != "world":
            needs = (f"pool:{settings.content}", *needs[1:])
        # A profile belongs to a speaker, so utterances cannot have their own.
        levels = tuple(name for name in LEVELS if name != "utt" or not settings.profiles)
        return Description(settings.level, needs, levels)

    def settings(self) -> dict[str, object]:
        """All settings, defaults included."""
        return {**super().settings(), "note": self._converter.note}

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Protected speech; the target voice, its gender, and the profile."""
        target, gender = self.choose(key, source)
        profile = self.given.profile or 0
        told = {"target": target, "target_gender": gender, "profile": profile}
        return self._converter.convert(wave, target, source.f0), told

    def choose(self, key: VoiceKey, source: SourceSpeaker) -> tuple[str, str]:
        """Target of a key and its gender: never the source, of the wanted gender.

        The pool is shuffled by the key; profile p takes the p-th of the eligible voices, so that
        the profiles of a speaker share none.
        """
        settings, draws = self.given, self.draws
        toss = draws.rng("knn_vc", "gender", *key.group_parts)
        gender = choose_gender(settings.gender, source.gender, toss)
        speakers = self._converter.speakers
        order = draws.rng("knn_vc", *key.parts).permutation(len(speakers))
        shuffled = [speakers[i] for i in order]
        left = [s for s in shuffled if self._genders.get(s) == gender and s != source.speaker]
        self._check_number(len(left), f"of gender {gender} beside {source.speaker}")
        return left[(settings.profile or 1) - 1], gender

    def _check_number(self, n: int, which: str) -> None:
        if n < (profiles := max(self.given.profiles, 1)):
            raise UserError(
                f"{self._pool}: {n} voices {which}, and {profiles} are needed (profiles); take a "
                "larger pool or fewer of them"
            )


def complete(settings: KnnVcSettings) -> KnnVcSettings:
    """Settings with every default filled in."""
    return replace(
        settings,
        profile=(settings.profile or 1) if settings.profiles else None,
        content=settings.content or ("moonshine" if settings.features == "content" else None),
    )


def _needs(settings: KnnVcSettings) -> tuple[str, ...]:
    return ("pool",) if settings.f0 == "none" else ("pool", "f0")


def _load_converter(settings: KnnVcSettings, pool: "Path", device: str) -> "WorldConverter":
    """Make the back end, whose libraries are loaded on demand."""
    from steps.content.extractors import load_extractor
    from steps.synthesis.matching import WorldConverter
    from steps.synthesis.voices import VoicePool

    content = settings.content or ""
    return WorldConverter(
        VoicePool.load(pool, content),
        settings.k,
        settings.f0,
        settings.source_share,
        load_extractor(content, device) if content else None,
    )
