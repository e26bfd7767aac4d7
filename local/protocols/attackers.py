"""The attackers, made of parts, those that challenges ask for, and the record of an attack."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

from steps.speaker.kinds import BACKENDS, VOICE, kind_of
from utils.cli import UserError
from utils.datadir import DataDir, check_apart, load_data_dir, read_noted, read_training_speakers
from utils.settings import Count, OneOf, Part, parse_settings, read_settings
from utils.tables import is_there, read_json_object, read_map

# ---- Attackers, composed of parts: the knowledge of each, and their evaluator.
#
# One table for all: recipes, records of scores, and reports read it from here. docs/attackers.md
# explains it.

# Ways in which an attacker obtains their evaluator.
ORIGINAL = "original"  # encoder and back end trained on original speech
ALIGNED = "aligned"  # as ORIGINAL, after a rotation learnt on speech before and after protection
SCRATCH = "scratch"  # encoder and back end trained anew on protected speech
FINETUNED = "finetuned"  # encoder, or a head on it, tuned on protected speech, back end anew
BACKEND = "backend"  # frozen encoder, back end trained anew on protected speech


@dataclass(frozen=True)
class Attacker:
    """Parts of an attacker. words: the name in sentences.

    enrolment: `original`, `other draw` (protected by the attacker with the system, but with other
    draws unless the system's level is perm or const) or `same target`. trial: `original` or
    `protected`. knows_system, knows_target: whether they can use the system, and know its target
    voice. evaluator: one of the five above.
    """

    words: str
    enrolment: str
    trial: str
    knows_system: bool
    knows_target: bool
    evaluator: str

    @property
    def condition(self) -> str:
        """OO, OA or AA: enrolment, trial; A is protected."""
        return "".join("O" if part == ORIGINAL else "A" for part in (self.enrolment, self.trial))


UNPROTECTED = Attacker("unprotected", ORIGINAL, ORIGINAL, False, False, ORIGINAL)
_NOTHING = (ORIGINAL, "protected", False, False)
_SYSTEM = ("other draw", "protected", True, False)
_TARGET = ("same target", "protected", True, True)
ATTACKERS = {  # of protected speech, from the least informed
    "ignorant": Attacker("ignorant", *_NOTHING, ORIGINAL),
    "aligned": Attacker("aligned", *_NOTHING, ALIGNED),
    "lazy_informed": Attacker("lazy-informed", *_SYSTEM, ORIGINAL),
    "semi_informed_backend": Attacker("semi-informed (back end)", *_SYSTEM, BACKEND),
    "semi_informed_finetuned": Attacker("semi-informed (fine-tuned)", *_SYSTEM, FINETUNED),
    "semi_informed": Attacker("semi-informed", *_SYSTEM, SCRATCH),
    "white_box_backend": Attacker("white-box (back end)", *_TARGET, BACKEND),
    "white_box_finetuned": Attacker("white-box (fine-tuned)", *_TARGET, FINETUNED),
    "white_box": Attacker("white-box", *_TARGET, SCRATCH),
}
LEVELS = ("utt", "spk", "same")  # of the training set of semi-informed attackers

# Systems of which it is known what an attacker must find (docs/attackers.md, "Controls"): speech
# that hides nothing, one pseudo-voice a person, doses of the own voice, a voice that is nobody's.
READING = "reading"
LEAKS = ("bn_leak_10", "bn_leak_20", "bn_leak_40", "bn_leak_level", "bn_leak_content")
CONTROLS = ("copy", "bn_perm", *LEAKS, READING)


@dataclass(frozen=True)
class AttackedSystem:
    """System as attackers see it. level: of its keys; levels: those it could also have. lacks:
    missing parts of its speech: `enrolment`, `training`."""

    name: str
    level: str
    levels: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """Attacker with an evaluator on a system. level: of their protected training set."""

    evaluator: str
    system: str
    attacker: str
    level: str

    @property
    def parts(self) -> Attacker:
        """Attacker's row of the table."""
        return UNPROTECTED if self.attacker == "unprotected" else ATTACKERS[self.attacker]

    @property
    def protection(self) -> tuple[str, str]:
        """Protection of enrolment and trials: the system, or an empty string for originals."""
        enrolment, trial = (
            "" if part == ORIGINAL else self.system
            for part in (self.parts.enrolment, self.parts.trial)
        )
        return enrolment, trial


class Skipped(NamedTuple):
    """An attack that does not exist, and why."""

    attacker: str
    system: str
    evaluator: str
    why: str

    def __str__(self) -> str:
        return f"{self.attacker} on {self.system} with {self.evaluator}: {self.why}"


@dataclass(frozen=True)
class AttackPlan:
    """Attacks to run, and requests that could not be met."""

    attacks: list[Attempt]
    skipped: list[Skipped]


def plan_attacks(
    attackers: Sequence[str],
    systems: Sequence[AttackedSystem],
    evaluators: Sequence[str],
    level: str,
) -> AttackPlan:
    """Plan each attacker on each system with each evaluator (<encoder>/<back end>), if it exists.

    level: `utt`, `spk` or `same` (as the system itself), of semi-informed attackers' training sets.
    Unprotected speech comes first. UserError for an unknown attacker or level.
    """
    for name in attackers:
        if name not in ATTACKERS:
            raise UserError(f"--attackers: {name} is unknown; known: {' '.join(ATTACKERS)}")
    if level not in LEVELS:
        raise UserError(f"--informed-level: {level} is unknown; known: {' '.join(LEVELS)}")
    plan = AttackPlan([], [])
    for evaluator in dict.fromkeys(evaluators):
        plan.attacks.append(Attempt(evaluator, "original", "unprotected", "-"))
        for system in systems:
            for name in dict.fromkeys(attackers):
                if why := _why_not(ATTACKERS[name], system, evaluator, level):
                    plan.skipped.append(Skipped(name, system.name, evaluator, why))
                else:
                    trained = _training_level(ATTACKERS[name], system, level)
                    plan.attacks.append(Attempt(evaluator, system.name, name, trained))
    return plan


def _why_not(attacker: Attacker, system: AttackedSystem, evaluator: str, level: str) -> str:
    """Reason why an attack does not exist; an empty string where it does."""
    encoder, _, backend = evaluator.rpartition("/")
    kind = kind_of(encoder)
    voice = kind.hears == VOICE
    if "enrolment" in system.lacks and (
        attacker.enrolment != ORIGINAL or attacker.evaluator == ALIGNED
    ):
        return "there is no enrolment speech that it protected; it belongs into --external"
    if "training" in system.lacks and attacker.evaluator not in (ORIGINAL, ALIGNED):
        return "there is no training set that it protected; --external NAME=FOLDER,train=FOLDER"
    if attacker.knows_target and system.level != "const":
        has = "only systems of level const have a target to know (--systems const_01)"
        return f"{has}; this one is {system.level}"
    if attacker.evaluator == ALIGNED and not voice:
        return f"{encoder} is not a space of voices that protection could have rotated"
    if attacker.evaluator == BACKEND and not BACKENDS[backend].learns:
        has = " or ".join(f"{encoder}/{one}" for one in kind.backends if BACKENDS[one].learns)
        return f"the back end {backend} has nothing to train; --evaluators {has} has"
    if not kind.trainable and attacker.evaluator in (SCRATCH, *([] if voice else [FINETUNED])):
        head = "a head on it (_finetuned), and " if voice else ""
        return f"it comes trained and cannot be trained here; {head}its back end can (_backend)"
    wanted = _training_level(attacker, system, level)
    if wanted not in ("-", system.level, *system.levels):
        return (
            f"the system is not available at level {wanted}; --informed-level {system.level} may do"
        )
    return ""


def _training_level(attacker: Attacker, system: AttackedSystem, level: str) -> str:
    """Level: the system's own if it is not random, or if the attacker knows the target."""
    if attacker.evaluator in (ORIGINAL, ALIGNED):
        return "-"
    if level == "same" or attacker.knows_target or not system.levels:
        return system.level
    if (level, system.level) == ("spk", "perm"):  # another name for the same
        return system.level
    return level


# ---- Requirements of each VoicePrivacy challenge: conf/protocols/*.yaml.


class Sets(dict[str, list[str]]):
    """Names of averages, and the splits in each."""


class Options(dict[str, str]):
    """Further options of run.sh by their names, with the values that a challenge prescribes."""


LAYOUTS = ("results2020", "summary2022", "rank2024", "rank2026", "rank2026_track2")


@dataclass(frozen=True)
class Privacy:
    """attacker: of the EER that counts. weights: of the splits of a set, in their order; none: all
    equal. averaged: whether the challenge averages the splits of a set at all."""

    attacker: str
    sets: Sets
    weights: tuple[Part, ...] = ()
    averaged: bool = True

    def __post_init__(self) -> None:
        for name, splits in self.sets.items():
            if not isinstance(splits, list) or not all(isinstance(x, str) for x in splits):
                raise ValueError(f"sets: {name}: {splits!r}; a list of names is expected")
            if self.weights and len(self.weights) != len(splits):
                raise ValueError(f"weights: {len(self.weights)} for {len(splits)} splits of {name}")


@dataclass(frozen=True)
class Protocol:
    """Settings of a file of conf/protocols. words, emotions: splits; `a+b`: the words of both
    together, called a. categories: lowest average EERs. genders: of the attacked lists; empty:
    those of the corpus. training: the subset of LibriSpeech that evaluators learn from. layout: of
    its result file (local/report/challenge.py). informed_draws: how often the attacker
    protects the training set; no challenge says more than once."""

    challenge: str
    layout: Annotated[str, OneOf(*LAYOUTS)]
    attackers: str
    evaluators: str
    privacy: Privacy
    words: tuple[str, ...] = ()
    informed_level: str = "utt"
    informed_draws: Count = 1
    emotions: tuple[str, ...] = ()
    categories: tuple[Part, ...] = ()
    genders: str = ""
    training: str = ""
    options: Options = field(default_factory=Options)


def read_protocol(path: Path) -> Protocol:
    """Read a protocol; UserError for an unknown setting, or not one weight for each split."""
    values = read_settings(path)
    privacy = values.get("privacy")
    if not isinstance(privacy, dict) or not isinstance(privacy.get("sets"), dict):
        raise UserError(f"{path}: privacy: attacker and sets are expected")
    named = Sets({str(name): splits for name, splits in privacy["sets"].items()})
    options = values.get("options", {})
    if not isinstance(options, dict) or not all(isinstance(v, str) for v in options.values()):
        raise UserError(f"{path}: options: names of options and words in quotes are expected")
    own = {"privacy": {**privacy, "sets": named}, "options": Options(options)}
    return parse_settings(Protocol, {**values, **own}, path)


# ---- Record of an attack: sets, draws, seeds and models, read from their folders.

Json = dict[str, object]
SHARED_LEVELS = ("perm", "const")  # enrolment and trials share draws by intention


@dataclass(frozen=True)
class AttackSet:
    """Set of an attack. conf: conf.json of a protected one; None for original speech."""

    data: DataDir
    conf: Json | None

    @classmethod
    def read(cls, path: Path) -> "AttackSet":
        """Read a data directory, original or of steps/anonymise.py."""
        data, conf = load_data_dir(path, need=("utt2spk",)), path / "conf.json"
        found = read_json_object(conf, "protect the set again") if is_there(conf) else None
        return cls(data, found)

    def record(self) -> Json:
        """Name, size, and draw of the set."""
        found: Json = {
            "data": str(self.data.path),
            "protected": self.conf is not None,
            "n_speakers": len(self.data.spk2utt),
            "n_utterances": len(self.data.utt2spk),
        }
        if self.conf is not None:
            found |= {k: self.conf.get(k) for k in ("key_level", "is_random", "seed", "draw")}
        return found

    def draws(self) -> dict[str, set[tuple[str, str]]]:
        """Pairs (draw, key) of each speaker's utterances."""
        assert self.conf is not None
        found: dict[str, set[tuple[str, str]]] = {}
        run = str(self.conf.get("draw"))
        keys = read_noted(self.data.path / "pseudo.tsv", ("key",), self.data.utt2spk)
        for utt, (key,) in keys.items():
            found.setdefault(self.data.utt2spk[utt], set()).add((run, key))
        return found


def compare_draws(enrol: AttackSet, trial: AttackSet) -> Json:
    """Whether enrolment and trials of a speaker share their random draws.

    They may at levels perm and const, and where nothing is drawn. UserError where they do
    at utt or spk: the attacker would know more than stated.
    """
    if enrol.conf is None or trial.conf is None:
        return {"draws": "one side is original"}
    if None in (enrol.conf.get("is_random", False), trial.conf.get("is_random", False)):
        return {"draws": "not known: another program made the speech"}
    if not (enrol.conf.get("is_random") or trial.conf.get("is_random")):
        return {"draws": "nothing is drawn: equal"}
    mine, his = enrol.draws(), trial.draws()
    both = sorted(mine.keys() & his)
    sharing = [speaker for speaker in both if mine[speaker] & his[speaker]]
    level = str(trial.conf.get("key_level"))
    if sharing and level not in SHARED_LEVELS:
        raise UserError(
            f"{trial.data.path}: speaker {sharing[0]} has the draw of {enrol.data.path}; at level "
            f"{level} they differ: protect the sets under names of their own (--dataset)"
        )
    return {
        "draws": f"shared (level {level})" if sharing else f"different (level {level})",
        "n_speakers_in_both": len(both),
        "n_speakers_sharing_a_draw": len(sharing),
    }


def describe_encoder(name: str, sides: tuple[AttackSet, AttackSet]) -> Json:
    """Record of an encoder's training in its folder; for a pretrained one its name.

    UserError if its training data has a speaker of enrolment or trials.
    """
    if name == "fused" or kind_of(name).hears != VOICE:
        return {"encoder": name, "trained": "nothing is"}
    path = Path(name) / "encoder.yaml"
    if not is_there(path):
        return {"encoder": name, "trained": "elsewhere; its training speakers are not known here"}
    heard = read_training_speakers(path.parent)
    for side in sides:
        check_apart(set(heard or []), path.parent, set(side.data.spk2utt), side.data.path)
    checked = "not known" if heard is None else "none of enrolment or trials"
    trained = read_settings(path).get("trained")
    return {"encoder": name, "trained": trained, "training_speakers": checked}


def record_attack(
    name: str,
    enrol: Path,
    trial: Path,
    training: Path | None,
    pairs: Path | None,
    encoder: str,
    backend: str,
    asnorm: int = 0,
) -> Json:
    """Make the record of an attack. UserError if the data do not fit the attacker.

    name: of the table of attackers, or unprotected. pairs: the
    protected set of which an aligned attacker also has the original.
    """
    known = {"unprotected": UNPROTECTED, **ATTACKERS}
    if (attacker := known.get(name)) is None:
        raise UserError(f"--attacker: {name} is unknown; known: {' '.join(ATTACKERS)}")
    sides = AttackSet.read(enrol), AttackSet.read(trial)
    for side, wanted in zip(sides, attacker.condition, strict=True):
        if (side.conf is not None) != (wanted == "A"):
            what = "original" if side.conf is None else "protected"
            raise UserError(
                f"{side.data.path}: is {what} speech; {name} is {attacker.condition} (enrolment, "
                "trial; O original, A protected)"
            )
    learnt = None if training is None else AttackSet.read(training)
    taught = {Path(backend): {*(read_training_speakers(Path(backend)) or ())}}  # of models/
    if learnt is not None:
        taught[learnt.data.path] = set(learnt.data.spk2utt)
    for (path, speakers), side in product(taught.items(), sides):
        check_apart(speakers, path, set(side.data.spk2utt), side.data.path)
    if (pairs is not None) != (attacker.evaluator == ALIGNED):
        raise UserError(f"--pairs: only the attacker {ALIGNED} learns from pairs, and needs them")
    return {
        "attacker": name,
        **{part: value for part, value in asdict(attacker).items() if part != "words"},
        "condition": attacker.condition,
        "enrolment_set": sides[0].record(),
        "trial_set": sides[1].record(),
        "comparison": compare_draws(*sides),
        "training_set": learnt and learnt.record(),
        "pairs": None if pairs is None else _pairs(AttackSet.read(pairs), sides[1]),
        "encoder": describe_encoder(encoder, sides),
        "backend": backend,
        "asnorm": asnorm,
    }


N_BOOTSTRAP = 1000


def record_held_out(folder: Path, training: Path) -> Json:
    """Make the record of whether an attacker learnt people, from the scores of those of their
    training set (the data directory) whom they held out; null where it is undefined."""
    from local.metrics.verification import eer_with_interval, find_speakers  # plans need no NumPy
    from utils.trials import join_scores, read_scores, read_trials

    told = read_json_object(folder / "held_out.json", "run steps/score_held_out.py")
    eer, interval, utt2spk = None, None, training / "utt2spk"
    if not told["held_out_why_undefined"]:
        path = folder / "trials"
        trials = read_trials(path)
        score = join_scores(trials, read_scores(folder / "scores"))
        of = {"trials_path": path, "utt2spk_path": utt2spk}
        speakers = find_speakers(trials, read_map(utt2spk), **of)
        eer, interval = eer_with_interval(trials, score, speakers, N_BOOTSTRAP)
    return {"held_out_eer": eer, "held_out_eer_ci": interval, **told}


def _pairs(pairs: AttackSet, trial: AttackSet) -> Json:
    """Record of the pairs: none of their utterances is a trial, or shares the trials' draw."""
    if pairs.conf is None:
        raise UserError(
            f"{pairs.data.path}: is original speech; the pairs are named by their protected set"
        )
    if common := sorted(pairs.data.utt2spk.keys() & trial.data.utt2spk):
        raise UserError(
            f"{pairs.data.path}: utterance {common[0]} is also in {trial.data.path}; the attacker "
            "would know the answer"
        )
    return pairs.record() | {"comparison": compare_draws(pairs, trial)}
