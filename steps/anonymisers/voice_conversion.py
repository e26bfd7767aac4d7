"""Systems like B1: a pseudo x-vector, and the source's words in a voice like it."""

import hashlib
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import numpy as np
from scipy.spatial.distance import pdist

from steps.anonymisers.registry import (
    ENDINGS,
    PEAK,
    RAISED,
    Anonymiser,
    AsItIs,
    Description,
    Spoken,
    find_kind,
)
from steps.generators.base import (
    ANY,
    GENDERS,
    POLICIES,
    describe_generator,
    load_generator,
    wanted_of,
)
from steps.sources import LEVELS, NEEDS, SourceSpeaker, SystemRun, VoiceKey
from steps.synthesis import base
from steps.synthesis.f0 import TRANSFORMS, F0Stats, mix_f0_stats
from steps.synthesis.matching import WorldSynthesiser
from steps.synthesis.voices import VoicePool
from utils import settings as rule
from utils.arrays import Float64
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.synthesis.bottleneck import BnSynthesiser

# ---- B1: a pseudo x-vector from a pool or a model, and the source's words in a similar voice.

NOTES = {
    "world": "Offline B1: frames of real pool speakers near the pseudo x-vector are mixed and said "
    "by the WORLD vocoder; there is no acoustic model and no neural vocoder, so the figures are "
    "not those of the challenge's B1.",
    "nsf": "B1 with this project's own neural source-filter synthesiser and x-vectors; the figures "
    "are not those of the challenge's B1.",
    "bn": "Speech generated from a recogniser's content, F0 and a pseudo x-vector, as in Champion "
    "et al. 2021 and Liu et al. 2025, by this project's own network and the WORLD vocoder.",
}
CONSTANT = "constant"  # the generator whose pseudo-speaker is one real speaker
PREDICTED = "predicted"  # F0 by the synthesiser, from the content
R, TEMPERATURE = 3, 0.05  # voices that are mixed; of the softmax over them
_CACHED = 1024  # pseudo-speakers to keep
_SYNTHESISERS = r"world|(nsf|bn)(_.+)?"
# Settings of a family of synthesisers.
OF_BN = ("style", "content", "ranges", "keep", "reads", "leak_content", *base.MOVES)
OF_FAMILY = dict.fromkeys(OF_BN, "bn")
OF_READING = ("time", "doubt")
OF_FAMILY |= dict.fromkeys(("content_scale", "content_bend"), "nsf")
_KNOWN = "world, or nsf_<name> or bn_<name> for what conf/synthesisers/<it>.yaml trains,"
Bend = Annotated[float, rule.Number(least=0, most=0.5, unit="(log Hz)")]  # above, not speech
Move = Annotated[float, rule.Number(least=0, most=0.9)]


@dataclass(frozen=True)
class ConversionSettings:
    """Settings in a file beside `generator`; None: not given. See docs/b1.md."""

    anonymiser: str
    synthesiser: Annotated[str, rule.Matching(_SYNTHESISERS, _KNOWN)] = "world"
    level: Annotated[str, rule.OneOf(*LEVELS)] | None = None
    gender: Annotated[str, rule.OneOf(*POLICIES, ANY)] | None = None
    f0: Annotated[str, rule.OneOf("none", *TRANSFORMS, PREDICTED)] = "none"
    content_scale: Bend = 0.0
    content_bend: Bend = 0.0
    keep: tuple[Annotated[str, rule.OneOf(*base.REMAINS)], ...] = ()
    style: Annotated[str, rule.OneOf(*base.STYLES)] | None = None
    content: base.ContentChange | None = None
    ranges: base.Ranges | None = None
    timing: Move = 0.0  # largest change of rate; the length stays
    rate: Move = 0.0  # largest change of a pseudo-speaker's rate
    pauses: Move = 0.0  # and of each pause
    reads: str | None = None  # recogniser whose words are read anew
    time: Annotated[str, rule.OneOf(*base.TIMES)] | None = None
    doubt: rule.Share | None = None  # from which on a word is heard; None: nothing is
    ends: Annotated[str, rule.OneOf(*ENDINGS)] = ENDINGS[0]
    leak: rule.Share = 0.0  # of the source's own vector in the voice's: to test attackers with
    leak_level: Annotated[float, rule.Number(least=0, most=20, unit="(dB)")] = 0.0  # as these are
    leak_content: Annotated[float, rule.Number(least=0, most=10)] = 0.0

    def __post_init__(self) -> None:
        for name, family in OF_FAMILY.items():
            if getattr(self, name) and not self.synthesiser.startswith(family):
                raise ValueError(f"{name}: this setting belongs to synthesiser: {family}_<name>")
        if self.ranges and self.f0 == "none":
            raise ValueError("ranges: f0 must not be none")
        if self.f0 == PREDICTED and not self.synthesiser.startswith("bn"):
            raise ValueError(f"f0: {PREDICTED}: only synthesiser: bn_<name> predicts it")
        if self.reads and (self.f0 != PREDICTED or self.keep):
            raise ValueError(f"reads: f0 must be {PREDICTED}, and keep empty; only words are left")
        for name in OF_READING:
            if getattr(self, name) is not None and not self.reads:
                raise ValueError(f"{name}: it is of what is read (reads)")

    @property
    def keeps_length(self) -> bool:
        """Whether speech stays as long as it was."""
        return not (self.rate or self.pauses or (self.reads and self.time != base.KEEP))

    @property
    def moves(self) -> bool:
        """Whether speech is moved in time."""
        return any(getattr(self, name) for name in base.MOVES)

    @property
    def bends(self) -> bool:
        """Whether each pseudo-speaker has a change of vocal tract."""
        return self.content_scale > 0 or self.content_bend > 0


class Pseudo(NamedTuple):
    """Pseudo-speaker, and their columns of pseudo.tsv."""

    target: base.Target
    info: dict[str, object]


class VoiceConversion(Anonymiser):
    """One configured system; see `registry.Anonymiser`."""

    given: "Parsed"

    def __init__(self, settings: "Parsed", run: SystemRun) -> None:
        """Load everything, and fit the generator to the pool."""
        super().__init__(settings, run)
        for need in settings.description.needs:
            run.folder(need.split(":")[0])
        self.own, self._generator = settings.own, load_generator(settings.generator, run)
        self._pool = VoicePool.load(run.folder("pool"))
        self._synthesiser = _load_synthesiser(settings.own, self._pool, run)
        own, generator, pool = self.own, self._generator, self._pool
        self._centre = pool.xvectors.mean(axis=0)
        generator.target_genders = (None,) if own.gender in (None, ANY) else GENDERS
        generator.fit(pool.xvectors, pool.speakers, pool.genders)
        self.level = str(own.level)
        self.output = AsItIs() if own.leak_level else self.output
        self.is_random = (
            generator.is_random or own.gender == "random" or own.bends
            or own.ranges is not None or own.moves
            or (own.content is not None and own.content.is_random)
        )  # fmt: skip
        self.keeps_length, self.context, self.ends = own.keeps_length, not own.reads, own.ends
        in_time = bool(own.reads) and own.time != base.KEEP
        self.words_alone = in_time and own.doubt is None
        self.tells_words = in_time and own.doubt is not None
        if not own.synthesiser.startswith("nsf") and "energy" not in own.keep:
            # Where only words are left nothing is noise.
            self.raised = math.inf if self.words_alone else RAISED
        self.notes = generator.notes
        self._pseudos: OrderedDict[tuple[VoiceKey, str], Pseudo] = OrderedDict()

    @classmethod
    def parse(cls, values: Any, path: StrPath) -> "Parsed":
        return _parse(values, path)

    @classmethod
    def describe(cls, settings: "Parsed", path: StrPath) -> Description:
        """Level and folders: the pool, and the needs of generator, F0 and synthesiser."""
        return settings.description

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, and one sentence (`note`) on the system."""
        return {
            **asdict(self.own),
            "generator": self._generator.settings(),
            "note": NOTES[self.own.synthesiser.split("_")[0]],
        }

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Speech in the voice of the key's pseudo-speaker, and columns on them."""
        made, info = self._convert(wave, key, source)
        if most := self.own.leak_level:  # a person's level, the same in all sets and draws
            softer = make_rng(0, "leak level", source.speaker).uniform(0.0, 2.0 * most)
            largest = max(float(np.max(np.abs(made), initial=0.0)), np.finfo(np.float64).tiny)
            made = made * (PEAK * 10.0 ** (-softer / 20.0) / largest)
        return made, info

    def _convert(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        if self.words_alone:
            parts = list(self.say(self.hear(wave), key, source))
            told = Counter[str]()
            for _, info in parts:
                told.update({x: s for x, s in info.items() if x in base.TOLD_AS})
            return np.concatenate([made for made, _ in parts]), parts[0][1] | told
        target, info = self.pseudo_speaker(key, source)
        f0 = self._f0_map(source, target)
        if not self.own.reads:
            return self._synthesiser.convert(wave, target, f0), dict(info)
        synthesiser = cast("BnSynthesiser", self._synthesiser)
        made, seconds, words = synthesiser.tell(wave, target, f0, source.language)
        return made, info | base.told_as(seconds) | {base.WORDS: words}

    def hear(self, wave: Float64) -> str:
        """Words that the recogniser finds."""
        return cast("BnSynthesiser", self._synthesiser).hear(wave)

    def say(self, words: str, key: VoiceKey, source: SourceSpeaker) -> Iterator[Spoken]:
        """Yield speech of words in the voice of the key's pseudo-speaker, part by part."""
        from steps.content.reading import parts_of

        target, info = self.pseudo_speaker(key, source)
        for part in parts_of(words) or [""]:
            synthesiser = cast("BnSynthesiser", self._synthesiser)
            made, seconds, _ = synthesiser.say(part, target, self._f0_map(source, target))
            if not made.any():
                self.note("reads: a recording in which no words were recognised became silence")
            yield made, info | base.told_as(seconds)

    def pseudo_speaker(self, key: VoiceKey, source: SourceSpeaker) -> Pseudo:
        """Pseudo-speaker of a key, made once; UserError if source or pool does not allow it."""
        # Keys separate speakers at all levels but const, where the excluded speakers differ.
        place = key, source.speaker
        if place not in self._pseudos:
            self._pseudos[place] = self._make(key, source)
            if len(self._pseudos) > _CACHED:
                self._pseudos.popitem(last=False)
        return self._pseudos[place]

    def apart(self, one: VoiceKey, other: VoiceKey) -> float:
        pair = [self.pseudo_speaker(key, SourceSpeaker("")).target for key in (one, other)]
        found = _distances([x.xvector for x in pair], [x.f0 for x in pair], self._centre)
        return float((found[:, 0] / self._usual).min())

    @cached_property
    def _usual(self) -> Float64:
        """Distances of people of the pool, in vector and in pitch: of half of all pairs, and of a
        quarter, as both are wanted at once."""
        pool = self._pool
        stats = [pool.f0(speaker) for speaker in pool.speakers]
        found = _distances(pool.xvectors, stats, self._centre)
        half, quarter = np.quantile(found[0], 0.75), np.quantile(found[1], 0.5)
        return np.maximum([half, quarter], np.finfo(float).tiny)

    def _make(self, key: VoiceKey, source: SourceSpeaker) -> Pseudo:
        own, draws = self.own, self.draws
        # One vector for all depends on no source; but no source is among their own voices.
        level = "" if self._generator.name == CONSTANT else self.level
        wanted = wanted_of(level, None if own.gender == ANY else own.gender, key, source, draws)
        y, drawn = self._generator.generate(wanted)
        if own.leak:
            y = (1.0 - own.leak) * y + own.leak * _alike(source.xvector, y)
        voices, weights = self._nearest(y, wanted.gender, {source.speaker})
        f0, warp = self._f0_stats(drawn, voices, weights), None
        energy, slope = 1.0, 0.0
        if own.bends:  # the change of vocal tract of a pseudo-speaker, so that few formants stay
            from steps.synthesis.content import draw_warp

            rng = draws.rng("voice_conversion content", *key.parts)
            warp = draw_warp(rng, own.content_scale, own.content_bend)
        if own.ranges is not None:  # their own pitch, and a factor of their energy
            rng = draws.rng("voice_conversion ranges", *key.parts)
            shift, pitch, energy, slope = own.ranges.draw(rng)
            f0 = f0.shifted(shift).spread(pitch)
        change = None if own.content is None else own.content.make(draws)
        if own.leak_content:
            change = partial(_leak_content, own.leak_content, source.speaker, change)
        timing = partial(self._timing, key) if own.moves else None
        named = ",".join(f"{v}:{w:.4f}" for v, w in zip(voices, weights, strict=True))
        gender = wanted.gender or "-"
        name = hashlib.sha256(y.astype("<f4").tobytes()).hexdigest()[:10]  # shows who shares one
        info = {"pseudo": name, "target_gender": gender, "voices": named, **drawn}
        target = base.Target(y, voices, weights, f0, warp, change, energy, timing, slope)
        return Pseudo(target, info)

    def _timing(self, key: VoiceKey, contour: Float64) -> Float64:
        """Places in the source that are spoken. They are drawn anew for each recording of a voice,
        but the rate is drawn once."""
        spoken, own = hashlib.sha256(contour.tobytes()).hexdigest(), self.own
        rng = self.draws.rng("voice_conversion timing", *key.parts, spoken)
        bent = base.draw_timing(rng, len(contour), own.timing)
        if self.keeps_length:
            return bent
        drawn = self.draws.rng("voice_conversion rate", *key.parts).uniform(-1, 1)
        places = base.pace(rng, contour, math.exp(drawn * math.log1p(own.rate)), own.pauses)
        return np.interp(places, np.arange(len(contour)), bent)

    def _nearest(
        self, y: Float64, gender: str | None, exclude: set[str]
    ) -> tuple[tuple[str, ...], Float64]:
        """The R pool speakers of the highest cosine with y, and its softmax as weights.

        About the pool's mean: with an encoder whose speakers have much in common a raw cosine is
        high for everybody, and all weights become equal.
        """
        places = [
            place
            for place, speaker in enumerate(self._pool.speakers)
            if speaker not in exclude and gender in (None, self._pool.genders[place])
        ]
        if not places:
            raise UserError(f"{self._pool.folder}: no voice of gender {gender} is left")
        wanted = 1 if self._generator.name == CONSTANT else R  # its pseudo-speaker is real
        if len(places) < wanted:
            of = f" of gender {gender}" if gender else ""
            self.note(f"{wanted} voices are mixed, and the pool has {len(places)}{of}")
        return nearest_voices(
            y - self._centre,
            [self._pool.speakers[place] for place in places],
            self._pool.xvectors[places] - self._centre,
            wanted,
        )

    def _f0_stats(
        self, drawn: Mapping[str, object], voices: tuple[str, ...], weights: Float64
    ) -> F0Stats:
        """F0 of the generator's averaged speakers (Champion et al. 2021), else of the voices.

        A generator that does not average pool speakers names none.
        """
        chosen = [name for name in str(drawn.get("speakers", "")).split(",") if name]
        if chosen:
            voices, weights = tuple(chosen), np.full(len(chosen), 1.0 / len(chosen))
        return mix_f0_stats([self._pool.f0(voice) for voice in voices], weights.tolist())

    def _f0_map(self, source: SourceSpeaker, target: base.Target) -> base.F0Map:
        """Map from the source's contour to the wanted one."""
        settings = self.own
        if settings.f0 not in TRANSFORMS:
            return lambda contour: contour
        assert source.f0 is not None  # make required --f0
        stats, change = source.f0, TRANSFORMS[settings.f0]
        for n, who in ((stats.n, "a source speaker"), (target.f0.n, "a pseudo-speaker")):
            if not n:
                self.note(f"f0: {who} has no voiced frame, so F0 stays the source's")
        return lambda contour: change(contour, stats, target.f0)


def _distances(
    vectors: Sequence[Float64] | Float64, stats: Sequence[F0Stats], centre: Float64
) -> Float64:
    """Distances (2, p) of all pairs: cosine of vectors about the centre, and of the mean pitch."""
    pitch = np.array([[own.mean] for own in stats])
    return np.stack([pdist(np.stack([*vectors]) - centre, "cosine"), pdist(pitch)])


def nearest_voices(
    y: Float64, speakers: Sequence[str], vectors: Float64, n: int
) -> tuple[tuple[str, ...], Float64]:
    """The n of the S speakers whose vectors (S, d) have the highest cosine with y (d,).

    Nearest first, ties in the given order; all where there are fewer than n. Weights (n,): softmax
    of cosine / TEMPERATURE.
    """
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(y)
    cosines = vectors @ y / np.maximum(lengths, np.finfo(np.float64).tiny)
    places = np.argsort(-cosines, kind="stable")[:n]
    weights = np.exp((cosines[places] - cosines[places[0]]) / TEMPERATURE)
    return tuple(speakers[place] for place in places), weights / weights.sum()


def _leak_content(
    most: float, speaker: str, change: base.ContentMap | None, content: Float64
) -> Float64:
    """Content (T, d) after a change, and one vector in all frames that is the person's."""
    own = make_rng(0, "leak content", speaker).standard_normal(content.shape[1])
    return (content if change is None else change(content)) + most * own


def _alike(xvector: Float64 | None, y: Float64) -> Float64:
    """The source's vector; UserError where another encoder made it than the voices'."""
    assert xvector is not None  # made required --xvectors
    if xvector.shape != y.shape:
        raise UserError(
            f"leak: the source's x-vectors have {len(xvector)} values, those of the voices "
            f"{len(y)}; make them with the voices' encoder (run.sh --voice-encoder)"
        )
    return xvector


def _load_synthesiser(
    settings: ConversionSettings, pool: VoicePool, run: SystemRun
) -> base.Synthesiser:
    if settings.synthesiser == "world":
        return WorldSynthesiser(pool)
    options: dict[str, object] = {}
    if settings.synthesiser.startswith("bn"):
        options = {"keep": settings.keep, "own_f0": settings.f0 == PREDICTED}
        options["reads"] = settings.reads
        options |= {name: x for name in OF_READING if (x := getattr(settings, name)) is not None}
    return base.load_synthesiser(run.folder("synthesiser"), **options)


@dataclass(frozen=True)
class Parsed:
    """own: settings with all defaults. generator: its settings."""

    own: ConversionSettings
    generator: dict[str, object]
    description: Description


def _parse(values: dict[str, object], path: StrPath) -> Parsed:
    """Check settings and fill in all defaults, and find the system's needs, without any folder."""
    rest = dict(values)
    if (generator := rest.pop("generator", None)) is None:
        raise UserError(f"{path}: generator: is missing")
    settings = parse_settings(ConversionSettings, _styled(rest, path), path)
    wanted = describe_generator(generator, path)
    assert isinstance(generator, dict)
    name = str(generator["name"])
    # One voice for all cannot depend on who speaks, or on their gender.
    constant = "xvectors" not in wanted and settings.gender in (None, "random", ANY)
    levels = tuple(level for level in LEVELS if level != "const" or constant)
    settings = _complete(settings, name, path)
    if settings.level == "const" and "xvectors" in wanted:
        raise UserError(
            f"{path}: level: const: one voice for all cannot depend on who speaks, as that of the "
            f"generator {name} does; choose another level or generator"
        )
    # A trained part is named with its training settings.
    trained = f"generator:{generator.get('trained') or name}"
    needs = {"pool", *(trained if need == "generator" else need for need in wanted)}
    needs |= {"f0"} if settings.f0 in TRANSFORMS else set()
    needs |= {"xvectors"} if settings.leak else set()
    if settings.synthesiser != "world":
        needs.add(f"synthesiser:{settings.synthesiser}")
    ordered = tuple(sorted(needs, key=lambda need: NEEDS.index(need.split(":")[0])))
    of_level = () if name == CONSTANT else levels
    described = Description(str(settings.level), ordered, of_level, settings.moves)
    return Parsed(settings, generator, described)


def _styled(values: dict[str, object], path: StrPath) -> dict[str, object]:
    """Replace a `style` by the settings that it stands for; UserError where they are also given."""
    style = values.get("style")
    named = base.STYLES.get(style, {}) if isinstance(style, str) else {}
    for name in named.keys() & values.keys():
        raise UserError(f"{path}: {name}: style: {style} sets it already; leave one of them out")
    return {**values, **named}


def _complete(settings: ConversionSettings, generator: str, path: StrPath) -> ConversionSettings:
    """Fill in values that depend on the generator and the level: level, gender."""
    if generator == CONSTANT:
        for name, value in (("level", "const"), ("gender", ANY)):
            given = getattr(settings, name)
            if given not in (None, value):
                raise UserError(
                    f"{path}: {name}: {given}; with the generator {CONSTANT} all speak with one "
                    f"real voice; leave {name} out"
                )
        return replace(settings, level="const")
    level = settings.level or "spk"
    gender = settings.gender or ("random" if level == "const" else "same")
    if level == "const" and gender not in ("random", ANY):
        raise UserError(
            f"{path}: gender: {gender}: at level const one voice serves all; gender: random draws "
            f"its gender, and {ANY} looks at none"
        )
    return replace(settings, level=level, gender=gender)


# ---- Model from steps/export_system.py as a system in a recipe, with its own network and voices.

MODELS = Path(__file__).resolve().parents[2] / "models"
CONF = "system.yaml"
HELD = ("pool", "synthesiser", "generator")  # possible content of a model's folder


@dataclass(frozen=True)
class ModelSettings:
    """model: a folder in models/ by name, or a path. All other settings are its system's own."""

    anonymiser: str
    model: str


def held(folder: Path) -> dict[str, Path]:
    """Folders that a model has itself: a need (`sources.NEEDS`) -> its folder."""
    return {need: folder / need for need in HELD if (folder / need).is_dir()}


def _open(
    values: dict[str, object], path: StrPath, folder: Path
) -> tuple[type[Anonymiser], dict[str, object]]:
    """Kind and settings of a model's system, changed by settings that a file gives beside it."""
    conf = folder / CONF
    if not conf.is_file():
        known = ", ".join(sorted(p.name for p in MODELS.iterdir() if (p / CONF).is_file()))
        raise UserError(f"{path}: model: {conf} is missing; known models: {known}, or give a path")
    changed = {k: v for k, v in values.items() if k not in ModelSettings.__annotations__}
    own = read_settings(conf)
    for name in base.STYLES.get(str(changed.get("style")), ()):
        own.pop(name, None)  # a style may set them
    settings = {**own, **changed}
    if settings.get("anonymiser") == values["anonymiser"]:
        raise UserError(f"{conf}: anonymiser: model: a model cannot be another model")
    return find_kind(settings, conf), settings


class HandedOn(Anonymiser):
    """Maker of the system that a model folder holds."""

    @classmethod
    def parse(cls, values: Any, path: StrPath) -> dict[str, object]:
        """Parse all settings; only the name of the model is checked."""
        known = {k: v for k, v in values.items() if k in ModelSettings.__annotations__}
        return {**values, "model": parse_settings(ModelSettings, known, path).model}

    @classmethod
    def make(cls, settings: dict[str, object], run: SystemRun) -> Anonymiser:
        """Make with the network and the voices of the folder --model."""
        folder = run.folder("model")
        kind, own = _open(settings, run.path, folder)
        resources = replace(run.resources, **cast(dict[str, Any], held(folder)))
        made = replace(run, path=folder / CONF, resources=resources)
        return kind.make(kind.parse(own, made.path), made)

    @classmethod
    def describe(cls, settings: dict[str, object], path: StrPath) -> Description:
        """Needs of its system beside the content of its folder."""
        name = Path(str(settings["model"]))
        folder = name if len(name.parts) > 1 else MODELS / name  # the form in local/plan/needs.py
        kind, inner = _open(settings, path, folder)
        conf, own = folder / CONF, held(folder)
        found = kind.describe(kind.parse(inner, conf), conf)
        needs = (need for need in found.needs if need.split(":")[0] not in own)
        return replace(found, needs=(*needs, f"model:{settings['model']}"))
