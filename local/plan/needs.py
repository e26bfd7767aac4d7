"""Needs of evaluators and systems, steps that meet them, and steps that protect speech."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from local.plan.evaluators import (
    FUSED,
    MODELS,
    Evaluator,
    NamedEncoder,
    check_names,
    find_encoder,
    find_evaluators,
    training_options,
)
from local.plan.external import ENROLMENT, Found, folder_for, look_at, settings_of
from local.plan.labels import ORIGINAL, Labels, Words, label_of
from local.plan.options import Asked, Learnt, check_learnt, check_paths, find_learnt, need_conf
from local.protocols.attackers import FINETUNED, SHARED_LEVELS
from local.protocols.trials import MIXED
from steps.anonymisers.registry import Description, describe_system
from steps.asr.recognisers import RECOGNISERS, RecogniserKind
from steps.speaker.kinds import COHORT, PLDA, VOICE
from utils.cli import UserError
from utils.recipe import Tables
from utils.registry import match
from utils.tables import read_json_object

# Stages of run.sh of which a plan asks whether they are run.
PREPARE, MEASURE, UTILITY = 0, 9, 10


@cache
def _describe(conf: str) -> Description:
    return describe_system(conf)


# Tables whose first command can be run for parts of its data; and those that train, on nobody who
# is tested.
CUT = (
    "audio", "xvectors", "heard", "decoded", "f0", "world", "protected", "others",
    "prosody", "quality", "functionals",
)  # fmt: skip
TRAINED = ("encoders", "tfidf", "backends", "pools", "synthesisers", "heads")


# Options that are whole numbers, and the least of each.
WHOLE = {"nj": 1, "lda_dim": 1, "bootstrap": 0, "seed": 0}


DEFAULT = "moonshine"  # recognises what channels are made of where --asr names no network


def as_protected(name: str, system: str) -> str:
    """Name of a set as protected by a system; the set itself as original speech."""
    return name if system in ("", ORIGINAL) else f"{name}_{system}"


def recognise_words(asked: Asked) -> str:
    """Word of --asr for the recogniser that writes down words for channels: the first network, or
    moonshine where it is installed; empty without any."""
    words = [word for word in asked.words("asr") if find_recogniser(word)[0].network]
    there = [DEFAULT] if find_spec(RECOGNISERS[DEFAULT].package) else []
    return next(iter((*words, *there)), "")


def find_recogniser(word: str) -> tuple[RecogniserKind, str]:
    """Kind of recogniser of a word of --asr, and the folder of another model of it; UserError for
    an unknown word."""
    name, _, of = word.partition(":")
    if (own := RECOGNISERS.get(name)) and of and "model" in own.takes:
        if not Path(of).is_dir():
            raise UserError(f"--asr {word}: {of} is not a folder")
        return own, of
    known = [form for form, kind in RECOGNISERS.items() if kind.words]
    if found := match(known, word):
        return RECOGNISERS[found[0]], ""
    forms = [f for form in known for f in (form, f"{form}:<folder>")
             if f == form or "model" in RECOGNISERS[form].takes]  # fmt: skip
    raise UserError(f"--asr: '{word}'; known: {', '.join(forms)}")


def repeated(option: str, values: Iterable[str]) -> list[str]:
    """An option that is given once for each value."""
    return [word for value in values for word in (option, value)]


def say_recogniser(asked: Asked, word: str) -> tuple[str, list[str]]:
    """Recogniser and options of steps/decode.py for a word of --asr, or for phones."""
    if word == "phones":
        return word, []
    kind, model = find_recogniser(word)
    values = {"model": model, "device": asked["device"], "language": asked.get("asr_language")}
    given = [(option, values[option]) for option in kind.takes if values[option]]
    name = word.removesuffix(f":{model}") if model else word
    return name, [w for option, value in given for w in (f"--{option}", value)]


def _hearing(evaluators: Sequence[Evaluator], asked: Asked) -> tuple[list[Evaluator], list[str]]:
    """Evaluators that can hear something here, and notes on the others."""
    why = "nothing recognises words: moonshine is not installed, and --asr names no hub:<model>"
    there = recognise_words(asked)
    kept = [one for one in evaluators if there or one.encoder.kind.made_of != "words"]
    if not kept:
        raise UserError(f"--evaluators: {why}")
    return kept, [f"evaluator left out: {e.word}: {why}" for e in evaluators if e not in kept]


@dataclass
class Recipe:
    """Options of a recipe, its sets, and its planned tables.

    sets: protected and attacked sets, enrolment first. evaluated: the evaluation sets, whose
    speakers must not occur in training. learnt: what informed attackers protect and learn from.
    fused: what the evaluators' scores are fused to, by name. conf_of: settings of a system that a
    study made; else conf/systems/<system>.yaml. labels: what each folder of figures speaks of.
    original: of a protected set the set, and how it was protected. notes: messages for the log.
    """

    asked: Asked
    evaluators: Sequence[Evaluator]
    voice: NamedEncoder
    genders: Words
    sets: Words
    evaluated: Words
    train: str
    pool: str
    learnt: Learnt
    fused: Words = ()
    tables: Tables = field(default_factory=Tables)
    labels: dict[str, Labels] = field(default_factory=dict)
    conf_of: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    original: dict[str, tuple[str, str]] = field(default_factory=dict)
    _found: dict[str, Found] = field(default_factory=dict)
    _made: dict[str, str] = field(default_factory=dict)  # folders of figures by how they are made

    @classmethod
    def make(cls, asked: Asked) -> "Recipe":
        """Recipe from the options that all recipes have; UserError for a wrong one."""
        for option, least in WHOLE.items():
            asked.number(option, least)
        asked.choice("device", "cpu|cuda")
        for name in ("systems", "generators", "asr", "emotion"):
            asked.words(name)
        asked_for = asked.words("evaluators")
        heard = [word for word in asked_for if word not in FUSED]
        evaluators = find_evaluators(heard, int(asked.get("trainings") or 0))
        if not evaluators:
            raise UserError("--evaluators: names none; <encoder>/<back end> is expected")
        own = asked["voice_encoder"]
        found = [find_encoder(own)] if own else [evaluator.encoder for evaluator in evaluators]
        voice = next((encoder for encoder in found if encoder.kind.hears == VOICE), None)
        if voice is None:
            raise UserError(
                f"--voice-encoder: {found[0].word} hears no voice; name an encoder that does, such "
                "as resemblyzer"
            )
        evaluators, notes = _hearing(evaluators, asked)
        encoders = [*(evaluator.encoder for evaluator in evaluators), voice]
        check_names(encoders)
        for encoder in encoders:
            if encoder.given and asked["chunk_seconds"]:
                raise UserError(
                    f"{encoder.word}: given x-vectors cannot be cut; give --chunk-seconds="
                )
        genders = asked.choice("genders", "f|m|mixed")
        name = asked["evaluation"]
        sets = (f"{name}_enrolls", *(f"{name}_trials_{gender}" for gender in genders))
        train = asked["train_set"]
        pool = asked["pool_set"] or train
        made = [train, *asked.get("also_prepared").split()]
        others = [("--distractors", name) for name in asked.words("distractors")]
        for option, name in (("--pool-set", pool), *others):
            if name in sets:
                raise UserError(f"{option}: {name} is evaluated; name a set of other people")
            if not Path("data", name).is_dir() and name not in made:
                raise UserError(
                    f"{option}: data/{name} is missing; link or make it, or name it in "
                    "also_prepared if prepare.sh makes it"
                )
            check_paths(f"{option}: data/{name}", f"data/{name}")
        learnt = find_learnt(asked)
        if asked.get("attacker_train"):
            check_learnt(learnt, made, sets)
        return cls(
            asked, evaluators, voice, genders, sets, sets, train, pool, learnt, notes=notes,
            fused=tuple(word for word in asked_for if word in FUSED),
        )  # fmt: skip

    def step(self, table: str, out: str, name: str = "", **values: Any) -> str:
        """Plan a step, which reads a set where its name is given; returns OUT."""
        values.setdefault("cut", table in CUT)
        if name:
            values["data"] = f"data/{name}"
        if table in TRAINED:
            values["unseen"] = self.unseen
        return self.tables.add(table, out, **values)

    def figures(self, table: str, of: Labels, folder: str = "exp/metrics", **values: Any) -> str:
        """Plan figures of one comparison; returns their folder below `folder`. Without other values
        they are of their family, and of the speakers of the trials of their gender."""
        out = f"{folder}/{of.path}"
        self.labels[out] = of
        common = {
            "kind": of.family,
            "labels": of.words,
            "utt2spk": f"data/{self.trial_set(of.gender)}/utt2spk",
        }
        return self.step(table, out, **common | values)

    def trial_set(self, gender: str) -> str:
        """Set of the trials of a gender."""
        return f"{self.asked['evaluation']}_trials_{gender}"

    def split(self, gender: str) -> str:
        """Name in tables of the trials of a gender, or of all."""
        return as_protected(self.asked["evaluation"], gender)

    def figures_of_encoder(self, table: str, of: Labels, **values: Any) -> None:
        """Plan figures that know no back end: a copy for the second evaluator of one encoder."""
        key = str((table, of.family, of.gender, values))
        first = self._made.setdefault(key, f"exp/metrics/{of.path}")
        if first != f"exp/metrics/{of.path}":
            table, values = "copied", {"figures": f"{first}/metrics.json"}
        self.figures(table, of, **values)

    def need_given(self) -> None:
        """Check that given x-vectors exist or will be made; UserError otherwise."""
        for encoder in (*(evaluator.encoder for evaluator in self.evaluators), self.voice):
            if encoder.given and not Path(encoder.given).is_dir():
                raise UserError(
                    f"{encoder.word}: no such folder; run ./prepare.sh, or give one with"
                    " <set>/xvector.{ark,scp}"
                )

    @property
    def on_device(self) -> Words:
        """Options of programs that also run on a processor; empty there, so that older results stay
        up to date."""
        device = self.asked["device"]
        return () if device == "cpu" else ("--device", device)

    def _seed(self, training: int) -> str:
        """Seed of the n-th repeated training."""
        return str(int(self.asked["seed"]) + training)

    @property
    def set_of(self) -> dict[str, str]:
        """Trial sets that share no utterance, by gender: mixed trials where they are alone."""
        every = {gender: self.trial_set(gender) for gender in self.genders}
        return {gender: name for gender, name in every.items() if gender != MIXED} or every

    @property
    def trials(self) -> Words:
        """Trial sets that share no utterance."""
        return tuple(self.set_of.values())

    @property
    def unseen(self) -> Words:
        """Options that make a training fail if it has a speaker of the evaluation sets. They are
        the same in a study of other sets and for trials of one gender, so that run.sh's models are
        not trained anew."""
        mixed = self.trial_set(MIXED)
        names = [f"{self.asked['evaluation']}_enrolls", *map(self.trial_set, "fm")]
        found = [one for one in names if one in self.evaluated or Path("data", one).is_dir()]
        if found != names and mixed in self.evaluated:  # without lists of both genders beside it
            found.append(mixed)
        return tuple(repeated("--not-speakers-of", (f"data/{one}" for one in found)))

    def conf(self, system: str) -> str:
        """Settings of a system; UserError where they are missing."""
        return self.conf_of.get(system) or settings_of(system) or need_conf("systems", system)

    def describe(self, system: str) -> Description:
        """Description of a system, with its needs."""
        return _describe(self.conf(system))

    def found(self, system: str) -> Found:
        """Externally protected speech found for a system."""
        if system not in self._found:
            self._found[system] = look_at(self.conf(system), self.sets, self.learnt.name)
        return self._found[system]

    def sets_of(self, system: str) -> Words:
        """Sets that a system protects: all, except enrolment that is missing."""
        lacks = len(self.sets) > 1 and ENROLMENT in self.found(system).lacks
        return self.sets[1:] if lacks else self.sets

    def is_random(self, system: str) -> bool:
        """Whether a further run of a system gives other speech; known once its first set is
        protected. Before, a dry run takes it that what has keys draws."""
        path = Path("data", f"{self.sets_of(system)[0]}_{system}", "conf.json")
        if not path.is_file() and self.asked["dry_run"] != "false" and not self.is_given(system):
            return bool(self.describe(system).levels)
        return path.is_file() and read_json_object(path, "make it anew")["is_random"] is True

    def is_given(self, system: str) -> bool:
        """Whether somebody else has made a system's speech."""
        return any(self._externals(system))

    def _externals(self, system: str) -> list[str]:
        """Folders of a system of somebody else; empty ones of a command, which makes the speech."""
        parts = (need.partition(":") for need in self.describe(system).needs)
        return [folder for kind, _, folder in parts if kind == "external"]

    def n_draws(self, system: str) -> int:
        """Runs of a system that are attacked: --draws of a random one, whose speech we make."""
        is_ours = not self._externals(system)
        return int(self.asked.get("draws", "1")) if is_ours and self.is_random(system) else 1

    def shares_voices(self, system: str) -> bool:
        """Whether enrolment and trials share pseudo-voices, as long as both are of one draw."""
        return self.describe(system).level in SHARED_LEVELS

    def drawn_again(self, system: str) -> Iterator[tuple[str, int]]:
        """Sets of each further run, and its number: the trials, and of --draws the enrolment that
        shares their voices, where somebody hears it: of DRAWN in attacks.py the second alone.
        Further runs of a random system are one for calibration, and those of --draws; none where
        every evaluator counts what is said, of which no figure compares runs."""
        is_heard = "lazy_informed" in self.asked.words("attackers")
        compared = any(not evaluator.encoder.kind.counts for evaluator in self.evaluators)
        n = max(2, self.n_draws(system)) if compared and self.is_random(system) else 1
        for draw in range(1, n):
            both = is_heard and self.shares_voices(system) and draw < self.n_draws(system)
            yield from ((name, draw) for name in (self.sets if both else self.sets[1:]))

    # Each of the following methods plans steps and returns the folder that they make.

    def encoder(self, encoder: NamedEncoder) -> str:
        """Plan a speaker encoder, where the recipe trains it."""
        if encoder.conf:
            self.step(
                "encoders", encoder.model, self.train, seed=self._seed(encoder.training), start=(),
                conf=encoder.conf,
            )  # fmt: skip
        return encoder.model

    def xvectors(self, encoder: NamedEncoder, name: str, *, sessions: bool = False) -> str:
        """Plan x-vectors of a set and of its speakers, and counts of each speaker's utterances;
        sessions: of a training set, which is cut into sessions if chunk_seconds is set."""
        out, seconds = f"{encoder.xvectors}/{name}", self.asked["chunk_seconds"]
        cut = ("--chunk-seconds", seconds) if sessions and seconds else ()
        if encoder.head_of:
            before = self.xvectors(encoder.head_of, name, sessions=sessions)
            return self.step("head_xvectors", out, name, head=encoder.model, xvectors=before)
        if encoder.kind.made_of:
            return self._channel(encoder, name, cut if encoder.kind.pieces else ())
        if encoder.given:
            return self.step("given_xvectors", out, name, given=f"{encoder.given}/{name}")
        table = "session_xvectors" if sessions else "xvectors"
        return self.step(
            table, out, name, cut=True, options=(*self.on_device, *cut), encoder=encoder.model
        )

    def _channel(self, encoder: NamedEncoder, name: str, options: Sequence[str]) -> str:
        """Plan the vectors of a set, made of what is recognised in it, whatever protects it; for
        the words of the training set its own text will do."""
        channel, word = encoder.word, encoder.kind.made_of
        if word == "words":
            word = recognise_words(self.asked)
        of, how = self.original.get(name, (name, ORIGINAL))
        source = f"exp/decode/{how}/{label_of(word)}/{of}"
        written = encoder.kind.made_of == "words" and name == self.train
        if written and Path("data", name, "text").is_file():
            source = f"data/{name}"
        else:
            recogniser, more = say_recogniser(self.asked, word)
            self.step("heard", source, name, options=more, recogniser=recogniser)
        out = f"{encoder.xvectors}/{name}"
        return self.step("channels", out, name, options=options, channel=channel, source=source)

    def session_xvectors(self, encoder: NamedEncoder, name: str) -> str:
        """Plan x-vectors of a training set."""
        return self.xvectors(encoder, name, sessions=True)

    def speakers(self, encoder: NamedEncoder, name: str) -> str:
        """Plan x-vectors of the speakers of a training set."""
        xvectors = self.session_xvectors(encoder, name)
        return self.step("averages", f"{xvectors}_speakers", name, xvectors=xvectors)

    def backend(self, encoder: NamedEncoder, name: str, out: str, kind: str = PLDA) -> str:
        """Plan a back end, PLDA, PCA, GAUSSIAN or COHORT, trained on a set's x-vectors."""
        xvectors = self.session_xvectors(encoder, name)
        more: dict[str, Any] = {"lda_dim": "0"} if kind == COHORT else {}
        more["options"] = training_options(encoder, kind)
        table = "tfidf" if encoder.kind.counts else "backends"
        return self.step(table, out, name, xvectors=xvectors, **more)

    def evaluator(self, evaluator: Evaluator) -> None:
        """Plan all that an evaluator needs of original speech."""
        self.encoder(evaluator.encoder)
        for name in self.sets:
            self.xvectors(evaluator.encoder, name)
        if (kind := evaluator.trained) and evaluator.scorer != evaluator.encoder.backend:
            self.backend(evaluator.encoder, self.train, evaluator.scorer, kind)

    def voices(self, content: str = "") -> str:
        """Plan the pool of voices, with x-vectors by the encoder of the voices; with content, by
        that name, in a separate pool."""
        speakers = self.speakers(self.voice, self.pool)
        world = self.step("world", f"exp/world/{self.pool}", self.pool)
        out = f"exp/pools/{self.voice.name}"
        words: Words = ()
        if content:
            out += f".{content.replace(':', '+').replace('/', '+')}"
            words = (*self.on_device, "--add-content", content)
        return self.step("pools", out, self.pool, options=words, world=world, speakers=speakers)

    def generator(self, name: str) -> str:
        """Plan a trained generator, by its settings' name."""
        xvectors = self.session_xvectors(self.voice, self.pool)
        options = self.on_device
        if why := self.asked.get("tested_train_generators"):
            note = "generators are trained on speakers who are also evaluated"
            self.notes.append(f"{note}: {why}")
        else:
            options += self.unseen
        out, conf = f"exp/generators/{self.voice.name}/{name}", f"conf/generators/{name}.yaml"
        return self.step(
            "generators", out, self.pool, options=options, conf=conf, xvectors=xvectors
        )

    def plan_need(self, need: str, name: str, level: str = "", speech: str = "") -> list[str]:
        """Plan a need of a system of some level (`sources.NEEDS`); returns the options of
        steps/anonymise.py that provide it for the speakers of a set. speech: the folder of the
        set's externally protected speech. UserError for a need that no recipe can meet."""
        kind, _, of = need.partition(":")
        voice, folder = self.voice, speech or of
        if kind in ("xvectors", "backend", "pool", "synthesiser", "generator"):
            self.encoder(voice)
        match kind:
            case "xvectors":
                folders = [self.xvectors(voice, one) for one in self.sets]
                pieces = (self.pool,) if self.asked["chunk_seconds"] else ()
                if name in (self.train, self.learnt.name, *pieces):
                    folders = [self.speakers(voice, name)]
                elif level != "perm" or name not in self.sets:  # else one voice in all of them
                    folders = [self.xvectors(voice, name)]
                return repeated("--xvectors", folders)
            case "f0":
                for one in (*self.sets, name):
                    folder = self.step("f0", f"exp/f0/{one}", one)
            case "backend":
                folder = self.backend(voice, self.train, f"exp/backends/{voice.name}")
            case "pool":
                return ["--pool", self.voices(of), *(self.on_device if of else ())]
            case "synthesiser":
                pool, conf = self.voices(), f"conf/synthesisers/{of}.yaml"
                out = f"exp/synthesisers/{voice.name}/{of}"
                folder = self.step("synthesisers", out, self.pool, conf=conf, pool=pool)
            case "generator":
                folder = self.generator(of)
            case "model":
                return ["--model", of if "/" in of else f"{MODELS}/{of}", *self.unseen]
            case "external":
                pass  # is there
            case _:
                raise UserError(f"conf/systems: '{need}' is needed, which no recipe can make")
        return [f"--{kind}", folder]

    def needs(self, system: str, name: str = "", speech: str = "") -> list[str]:
        """Plan all that a system needs to protect a set; returns the options that provide it."""
        description, name = self.describe(system), name or self.sets[0]
        met = (self.plan_need(need, name, description.level, speech) for need in description.needs)
        return [word for words in met for word in words]

    def protect(self, system: str, name: str, how: str, *options: str) -> str:
        """Plan a set, protected by a system: data/<name>_<how>."""
        out = self._protected(name, how)
        speech, more = self._speech(system, name, options)
        return self.step(
            "protected" if name in self.sets else "others", f"data/{out}", name, set=name,
            wav=f"data/{out}/wav", conf=self.conf(system),
            options=(*more, *self.needs(system, name, speech)),
        )  # fmt: skip

    def _protected(self, name: str, how: str) -> str:
        """Name of a set as protected; remembers of which set it is."""
        self.original[f"{name}_{how}"] = name, how
        return f"{name}_{how}"

    def _speech(self, system: str, name: str, options: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Folder of a set's externally protected speech, and the options with its draw: attackers
        have the enrolment of the second draw. A command's speech is planned first."""
        if not self._externals(system):
            return "", options
        conf = self.conf(system)
        train = name if name in (self.train, self.learnt.name) else ""
        first, second = (folder_for(conf, name, train=train, draw=d) for d in ("0", "1"))
        if name == self.sets[0] and len(self.sets) > 1 and first != second:
            options = ("--draw", "1")
        draw = options[1] if options[:1] == ("--draw",) else "0"
        if folder := folder_for(conf, name, train=train, draw=draw):
            return folder, options
        made = f"exp/external/{system}/{name}.{draw}"
        self.step("commanded", made, name, set=name, draw=draw, conf=conf)
        return made, options

    def distractors(self, system: str) -> list[str]:
        """Plan the sets whose people are candidates only, as a system protects them (empty:
        original speech); their names."""
        found = []
        for name in self.asked.words("distractors"):
            if system and self.is_given(system):
                self.notes.append(f"no distractors for {system}: its speech is given")
            elif system and name == self.train:
                level = self.describe(system).level
                found.append(self.protect_training(system, level, name).removeprefix("data/"))
            else:
                found.append(as_protected(name, system))
                if system:
                    self.protect(system, name, system)
        return found

    def protect_training(self, system: str, level: str, name: str, draw: int = 0) -> str:
        """Plan a training set, protected by a system at a level, with all needs. A speaker is never
        their own target."""
        options: Words = ("--draw", str(draw)) if draw else ()
        if level != self.describe(system).level:
            options += ("--level", level)
        how = f"{system}_{level}" + (f"_draw{draw}" if draw else "")
        return self.protect(system, name, how, *options)

    def informed_draws(self, system: str, level: str, encoder: NamedEncoder) -> int:
        """How often an attacker protects the training set: once where a draw changes nothing that
        they hear, and where speech is given; known once the system has protected its first set."""
        asked = int(self.asked.get("informed_draws", "1"))
        moved = encoder.kind.timed and self.describe(system).moves
        alike = level == "const" or (encoder.kind.made_of and not moved)
        return asked if not (alike or self.is_given(system)) and self.is_random(system) else 1

    def training_set(self, system: str, level: str, encoder: NamedEncoder) -> str:
        """Name of an attacker's protected training set; empty for one who does not train."""
        if level == "-":
            return ""
        draws = self.informed_draws(system, level, encoder)
        how = f"{system}_{level}" + (f"_draws{draws}" if draws > 1 else "")
        return self._protected(self.learnt.name, how)

    def protect_training_again(self, system: str, level: str, encoder: NamedEncoder) -> None:
        """Plan an attacker's training set: several draws of it, in one data directory."""
        numbers = range(self.informed_draws(system, level, encoder))
        draws = [self.protect_training(system, level, self.learnt.name, n) for n in numbers]
        if len(draws) > 1:
            self.step("joined", f"data/{self.training_set(system, level, encoder)}", draws=draws)

    def informed_encoder(self, evaluator: Evaluator) -> None:
        """Plan the encoder that an attacker trains, anew or further."""
        encoder, base, training = evaluator.encoder, evaluator.base, evaluator.training
        if base is None or encoder == base:
            return
        if encoder.head_of:
            xvectors = self.session_xvectors(base, training)
            self.step("heads", encoder.model, training, seed=self._seed(0), xvectors=xvectors)
            return
        start = ("--init-from", base.model) if encoder.name.endswith(f".{FINETUNED}") else ()
        self.step(
            "encoders", encoder.model, training, seed=self._seed(base.training), start=start,
            conf=base.conf or f"{base.word}/encoder.yaml",  # of one that was trained elsewhere
        )  # fmt: skip

    def held_out(self, evaluator: Evaluator) -> None:
        """Plan the scores of training people whom an attacker held out, where it learnt people."""
        encoder, base, training = evaluator.encoder, evaluator.base, evaluator.training
        if base is None or not evaluator.learns:
            return
        options: Words = () if encoder == base else ("--own-encoder", encoder.model)
        if encoder.head_of:  # a new head learns from those who are not held out
            encoder, options = base, ("--head",)
        if evaluator.kind == "plda":
            options += training_options(encoder, evaluator.trained)
        xvectors, out = self.session_xvectors(encoder, training), evaluator.held_out
        self.step(
            "held_out", out, training, kind=evaluator.kind, options=options, xvectors=xvectors
        )
