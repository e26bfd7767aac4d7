"""kNN-VC with pseudo-profiles: real voices of a pool, drawn by key, speak for the source.

Baas et al. 2023 (the conversion), Seo et al. 2025 (eight profiles a speaker, the evaluation's
baseline). The latter's profiles are not published in full; see docs/voice_conversion.md.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from steps.anonymisers.registry import RAISED, Anonymiser, Description, OutputLevel, Spoken
from steps.generators.base import POLICIES, choose_gender
from steps.sources import LEVELS, SourceSpeaker, SystemRun, VoiceKey
from steps.synthesis.base import SOURCE_SHARE
from steps.synthesis.f0 import TRANSFORMS
from utils.arrays import Float64
from utils.cli import UserError
from utils.settings import Count, Matching, Natural, OneOf, Part, Share
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.synthesis.matching import WorldConverter
    from steps.synthesis.wavlm import WavLMConverter

FEATURES = ("world", "content", "wavlm")
FUSIONS = ("pool", "mix")
_WAVLM_ONLY = ("wavlm", "wavlm_sha256", "vocoder", "vocoder_sha256")


Sha256 = Annotated[str, Matching("[0-9a-f]{64}", "64 digits 0-9, a-f")]


@dataclass(frozen=True)
class KnnVcSettings:
    """Settings of a configuration; None: not given. See docs/voice_conversion.md."""

    anonymiser: str
    features: Annotated[str, OneOf(*FEATURES)] = "world"
    k: Count = 4
    level: Annotated[str, OneOf(*LEVELS)] = "spk"
    gender: Annotated[str, OneOf(*POLICIES)] = "same"
    f0: str | None = None
    profiles: Natural = 0
    profile: int | None = None
    fusion: Count = 1
    fusion_kind: Annotated[str, OneOf(*FUSIONS)] | None = None
    max_frames: Count = 30000
    source_share: Share | None = None
    content: str | None = None
    wavlm: str | None = None
    wavlm_sha256: Sha256 | None = None
    vocoder: str | None = None
    vocoder_sha256: Sha256 | None = None
    peak: Part = 0.95

    def __post_init__(self) -> None:
        if self.max_frames < self.k:
            raise ValueError(f"max_frames: {self.max_frames}; k is {self.k}")
        if self.fusion_kind and self.fusion == 1:
            raise ValueError("fusion_kind: there is one target; give fusion, 2 or more")
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
        wavlm = self.features == "wavlm"
        given = [name for name in _WAVLM_ONLY if getattr(self, name) is not None]
        if given and not wavlm:
            raise ValueError(f"{given[0]}: only features: wavlm has it")
        if self.content is not None and self.features != "content":
            raise ValueError("content: only features: content has it")
        if wavlm and self.source_share:
            raise ValueError("source_share: features: wavlm takes the voice's frames only")
        known = ("none",) if wavlm else (*TRANSFORMS, "none")
        if self.f0 not in (None, *known):
            raise ValueError(
                f"f0: {self.f0!r} is unknown with features: {self.features}; "
                f"known: {', '.join(known)}"
            )


@dataclass(frozen=True)
class Choice:
    """Targets of a key; weights sum to 1."""

    gender: str
    targets: tuple[str, ...]
    weights: tuple[float, ...]


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
        self.level, self.output = settings.level, OutputLevel(settings.peak)
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
        # Where all voices become targets, only a gender or weights are left to draw.
        coins = settings.gender == "random" or settings.fusion_kind == "mix"
        self.is_random = coins or max(by_gender) > settings.fusion

    @classmethod
    def parse(cls, values: object, path: StrPath) -> KnnVcSettings:
        """Return the settings that a mapping gives, completed."""
        return complete(super().parse(values, path))

    @classmethod
    def describe(cls, settings: KnnVcSettings, path: StrPath) -> Description:
        """Needs: a pool; with a transform of F0 also the statistics of the source speakers."""
        needs = _needs(settings)
        if settings.features != "world":
            needs = (f"pool:{settings.content or 'wavlm'}", *needs[1:])
        # A profile belongs to a speaker, so utterances cannot have their own.
        levels = tuple(name for name in LEVELS if name != "utt" or not settings.profiles)
        return Description(settings.level, needs, levels)

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, without those that apply to other features only."""
        left_out = {"peak", *(_WAVLM_ONLY if self.given.features != "wavlm" else ())}
        left_out |= {"content"} if self.given.content is None else set()
        values = {k: v for k, v in super().settings().items() if k not in left_out}
        return {**values, "output": asdict(self.output), "note": self._converter.note}

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Protected speech; the target voices, with their weights, and the profile."""
        choice = self.choose(key, source)
        voices: list[tuple[str, ...]] = [choice.targets]
        weights: tuple[float, ...] = (1.0,)
        if self.given.fusion_kind == "mix":
            voices, weights = [(target,) for target in choice.targets], choice.weights
        samples = self._converter.convert(wave, voices, weights, source.f0)
        return samples, {
            "targets": ",".join(choice.targets),
            "weights": ",".join(f"{weight:.6g}" for weight in choice.weights),
            "target_gender": choice.gender,
            "profile": self.given.profile or 0,
        }

    def choose(self, key: VoiceKey, source: SourceSpeaker) -> Choice:
        """Targets of a key: never the source, of the wanted gender.

        The pool is shuffled by the key; profile p takes the p-th handful of the eligible voices, so
        that the profiles of a speaker share no voice.
        """
        settings, draws = self.given, self.draws
        toss = draws.rng("knn_vc", "gender", *key.group_parts)
        gender = choose_gender(settings.gender, source.gender, toss)
        speakers = self._converter.speakers
        order = draws.rng("knn_vc", *key.parts).permutation(len(speakers))
        shuffled = [speakers[i] for i in order]
        left = [s for s in shuffled if self._genders.get(s) == gender and s != source.speaker]
        self._check_number(len(left), f"of gender {gender} beside {source.speaker}")
        n, profile = settings.fusion, settings.profile or 0
        first = max(profile - 1, 0) * n
        weights = (1.0 / n,) * n
        if settings.fusion_kind == "mix":
            rng = draws.rng("knn_vc", "weights", f"profile {profile}", *key.parts)
            weights = tuple(rng.dirichlet(np.ones(n)).tolist())
        return Choice(gender, tuple(left[first : first + n]), weights)

    def _check_number(self, n: int, which: str) -> None:
        profiles, fusion = max(self.given.profiles, 1), self.given.fusion
        if n < profiles * fusion:
            raise UserError(
                f"{self._pool}: {n} voices {which}, and {profiles * fusion} are needed "
                f"(profiles {profiles} x fusion {fusion}); take a larger pool or fewer of them"
            )


def complete(settings: KnnVcSettings) -> KnnVcSettings:
    """Settings with every default filled in."""
    wavlm = settings.features == "wavlm"
    share = settings.source_share
    return replace(
        settings,
        f0=settings.f0 or ("none" if wavlm else "linear"),
        profile=(settings.profile or 1) if settings.profiles else None,
        fusion_kind=settings.fusion_kind or ("pool" if settings.fusion > 1 else None),
        content=settings.content or ("moonshine" if settings.features == "content" else None),
        vocoder=settings.vocoder or ("prematched" if wavlm else None),
        source_share=(0.0 if wavlm else SOURCE_SHARE) if share is None else share,
    )


def _needs(settings: KnnVcSettings) -> tuple[str, ...]:
    return ("pool",) if settings.f0 == "none" else ("pool", "f0")


def _load_converter(
    settings: KnnVcSettings, pool: Path, device: str
) -> "WorldConverter | WavLMConverter":
    """Make the back end, whose libraries are loaded on demand."""
    if settings.features == "wavlm":
        from steps.synthesis.wavlm import load_converter

        weights = {name: getattr(settings, name) for name in _WAVLM_ONLY}
        return load_converter(pool, settings.k, settings.max_frames, device=device, **weights)
    from steps.content.extractors import load_extractor
    from steps.synthesis.matching import WorldConverter
    from steps.synthesis.voices import VoicePool

    assert settings.f0 is not None
    assert settings.source_share is not None
    content = settings.content or ""
    return WorldConverter(
        VoicePool.load(pool, content),
        settings.k,
        settings.f0,
        settings.max_frames,
        settings.source_share,
        load_extractor(content, device) if content else None,
    )
