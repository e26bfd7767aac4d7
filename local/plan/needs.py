"""Needs of evaluators and systems, steps that meet them, and steps that protect speech."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from local.plan.options import (
    COHORT,
    ENROLMENT,
    FUSED,
    MODELS,
    PLDA,
    Asked,
    Evaluator,
    Found,
    Labels,
    NamedEncoder,
    check_names,
    find_encoder,
    find_evaluator,
    folder_for,
    label_of,
    look_at,
    need_conf,
    settings_of,
)
from local.protocols.attackers import FINETUNED
from local.protocols.trials import MIXED
from steps.anonymisers.registry import Description, describe_system
from utils.cli import UserError
from utils.recipe import PIECES, UTTERANCES, Tables
from utils.settings import read_settings
from utils.tables import read_json_object


@cache
def _describe(conf: str) -> Description:
    return describe_system(conf)


def _pool_folder(voice: str, of: str) -> str:
    """Folder of a need pool, pool:wavlm or pool:<content>."""
    if of in ("", "wavlm"):
        return f"exp/pools/{of or voice}"
    return f"exp/pools/{voice}.{of.replace(':', '+').replace('/', '+')}"


def _pools_xi(conf: str) -> bool:
    network = read_settings(conf).get("network")
    return isinstance(network, dict) and network.get("pooling") == "xi"


def recognise_words(asked: Asked) -> str:
    """Word of --asr by which channels have words recognised: one that needs no language data of the
    corpus, or moonshine where it is installed; empty: there is none."""
    words = [word for word in asked.words("asr") if word.startswith(("moonshine", "hub:"))]
    try:
        distribution("moonshine-voice")
    except PackageNotFoundError:
        return words[0] if words else ""
    return words[0] if words else "moonshine"


def say_recogniser(asked: Asked, word: str) -> tuple[str, list[str]]:
    """Recogniser and options of steps/decode.py for such a word."""
    kind, _, of = word.partition(":")
    if kind == "hub":
        language = asked.get("asr_language")
        options = ["--language", language] if language else []
        return word, ["--device", asked["device"], *options]
    return kind, ["--model", of] if of else []


def _hearing(
    evaluators: Sequence[Evaluator], asked: Asked
) -> tuple[tuple[Evaluator, ...], list[str]]:
    """Evaluators that can hear something here, and notes on the others."""
    deaf = "" if recognise_words(asked) else "moonshine is not installed, and --asr names no hub:"
    kept = tuple(one for one in evaluators if one.encoder.word != "words" or not deaf)
    if not kept:
        raise UserError(f"--evaluators: nothing recognises words: {deaf}<model>")
    return kept, [
        f"evaluator left out: {one.word}: nothing recognises words: {deaf}<model>"
        for one in evaluators
        if one not in kept
    ]


@dataclass
class Recipe:
    """Options of a recipe, its sets, and its planned tables.

    sets: protected and attacked sets, enrolment first. evaluated: the evaluation sets, whose
    speakers must not occur in training. fused: what the evaluators' scores are fused to, by name.
    conf_of: settings of a system that a study made; else conf/systems/<system>.yaml. labels: what
    each folder of figures speaks of. notes: messages for the log.
    """

    asked: Asked
    evaluators: tuple[Evaluator, ...]
    voice: NamedEncoder
    genders: tuple[str, ...]
    sets: tuple[str, ...]
    evaluated: tuple[str, ...]
    train: str
    pool: str
    fused: tuple[str, ...] = ()
    tables: Tables = field(default_factory=Tables)
    labels: dict[str, Labels] = field(default_factory=dict)
    conf_of: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _found: dict[str, Found] = field(default_factory=dict)
    _made: dict[str, str] = field(default_factory=dict)  # folders of figures by how they are made

    @classmethod
    def make(cls, asked: Asked) -> "Recipe":
        """Recipe from the options that all recipes have; UserError for a wrong one."""
        asked.numbers("nj")
        asked.number("lda_dim")
        if asked["device"] not in ("cpu", "cuda"):
            raise UserError(f"--device: '{asked['device']}'; known: cpu, cuda")
        for name in ("systems", "generators", "asr", "emotion"):
            asked.words(name)
        asked_for = asked.words("evaluators")
        words, cohort = [word for word in asked_for if word not in FUSED], asked["cohort_size"]
        evaluators = tuple(find_evaluator(word, cohort) for word in words)
        if not evaluators:
            raise UserError("--evaluators: names none; <encoder>/<back end> is expected")
        found = [evaluator.encoder for evaluator in evaluators]
        found = [find_encoder(asked["voice_encoder"])] if asked["voice_encoder"] else found
        voice = next((encoder for encoder in found if not encoder.is_channel), None)
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
        if pool in sets:
            raise UserError(f"--pool-set: {pool} is evaluated; name a set of other people")
        made = [train, *asked.get("also_prepared").split()]
        if not Path("data", pool).is_dir() and pool not in made:
            raise UserError(
                f"--pool-set: data/{pool} is missing; link or make it, or name it in "
                "also_prepared if prepare.sh makes it"
            )
        fused = tuple(word for word in asked_for if word in FUSED)
        for name in fused:
            if len([one for one in evaluators if one.encoder.word not in FUSED[name]]) < 2:
                notes.append(
                    f"nothing is {name.replace('_', ' ')}: it takes two evaluators or more"
                )
        return cls(
            asked, evaluators, voice, genders, sets, sets, train, pool, fused=fused, notes=notes
        )

    def figures(
        self, table: str, stage: int, of: Labels, folder: str = "exp/metrics", **values: Any
    ) -> str:
        """Plan figures of one comparison; returns their folder below `folder`."""
        out = f"{folder}/{of.path}"
        self.labels[out] = of
        return self.tables.add(table, stage, out, **values)

    def figures_of_encoder(self, table: str, stage: int, of: Labels, **values: Any) -> None:
        """Plan figures that know no back end: a copy for the second evaluator of one encoder."""
        first = self._made.setdefault(str((table, values)), f"exp/metrics/{of.path}")
        if first != f"exp/metrics/{of.path}":
            table, values = "copied", {"figures": f"{first}/metrics.json"}
        self.figures(table, stage, of, **values)

    def given(self, folders: Iterable[str], option: str = "--figures") -> list[str]:
        """Options of a program that collects folders of figures, with the labels of each."""
        return [word for folder in folders for word in self.labels[folder].words(option, folder)]

    def need_given(self) -> None:
        """Check that given x-vectors exist or will be made; UserError otherwise."""
        for encoder in (*(evaluator.encoder for evaluator in self.evaluators), self.voice):
            if encoder.given and not Path(encoder.given).is_dir():
                raise UserError(
                    f"{encoder.word}: no such folder; it holds <set>/xvector.{{ark,scp}}"
                )

    @property
    def on_device(self) -> tuple[str, ...]:
        """Options of programs that also run on a processor; empty there, so that older results stay
        up to date."""
        device = self.asked["device"]
        return () if device == "cpu" else ("--device", device)

    def _seed(self, training: int) -> str:
        """Seed of the n-th repeated training."""
        return str(int(self.asked["seed"]) + training)

    @property
    def trials(self) -> tuple[str, ...]:
        """Trial sets that share no utterance: mixed trials where they are alone."""
        mixed = f"{self.asked['evaluation']}_trials_{MIXED}"
        return tuple(name for name in self.sets[1:] if name != mixed) or self.sets[1:]

    @property
    def unseen(self) -> tuple[str, ...]:
        """Options that make a training fail if it has a speaker of the evaluation sets. They are
        the same in a study of other sets and for trials of one gender, so that run.sh's models are
        not trained anew."""
        words: list[str] = []
        for part in ("enrolls", "trials_f", "trials_m"):
            name = f"{self.asked['evaluation']}_{part}"
            if name in self.evaluated or Path("data", name).is_dir():
                words += ["--not-speakers-of", f"data/{name}"]
        return tuple(words)

    def conf(self, system: str) -> str:
        """Settings of a system; UserError where they are missing."""
        return self.conf_of.get(system) or settings_of(system) or need_conf("systems", system)

    def describe(self, system: str) -> Description:
        """Description of a system, with its needs."""
        return _describe(self.conf(system))

    def found(self, system: str) -> Found:
        """Externally protected speech found for a system."""
        if system not in self._found:
            self._found[system] = look_at(self.conf(system), self.sets, self.train)
        return self._found[system]

    def sets_of(self, system: str) -> tuple[str, ...]:
        """Sets that a system protects: all, except enrolment that is missing."""
        lacks = len(self.sets) > 1 and ENROLMENT in self.found(system).lacks
        return self.sets[1:] if lacks else self.sets

    def is_random(self, system: str) -> bool:
        """Whether a further run of a system gives other speech; known once its first set is
        protected."""
        path = Path("data", f"{self.sets_of(system)[0]}_{system}", "conf.json")
        return path.is_file() and read_json_object(path, "make it anew")["is_random"] is True

    def n_draws(self, system: str) -> int:
        """Runs of a system that are attacked: --draws of a random one, whose speech we make."""
        is_ours = not any(need.startswith("external:") for need in self.describe(system).needs)
        return int(self.asked.get("draws", "1")) if is_ours and self.is_random(system) else 1

    def draws_of(self, system: str) -> range:
        """Further runs of a random system, by number: one for calibration, and those of --draws."""
        return range(1, max(2, self.n_draws(system)) if self.is_random(system) else 1)

    # Each of the following methods plans steps in a stage and returns the folder that they make.

    def encoder(self, stage: int, encoder: NamedEncoder) -> str:
        """Plan a speaker encoder, where the recipe trains it."""
        if encoder.conf:
            self.tables.add(
                "encoders", stage, encoder.model, seed=self._seed(encoder.training), start=(),
                unseen=self.unseen, conf=encoder.conf, data=f"data/{self.train}",
            )  # fmt: skip
        return encoder.model

    def xvectors(self, stage: int, encoder: NamedEncoder, name: str) -> str:
        """Plan x-vectors of a set and of its speakers, and counts of each speaker's utterances."""
        data, out = f"data/{name}", f"{encoder.xvectors}/{name}"
        if encoder.head_of:
            return self._by_head(stage, encoder, self.xvectors(stage, encoder.head_of, name), name)
        if encoder.is_recognised:
            return self._channel(stage, encoder, name)
        if encoder.given:
            given = f"{encoder.given}/{name}"
            return self.tables.add("given_xvectors", stage, out, given=given, data=data)
        return self.tables.add(
            "xvectors", stage, out, cut=UTTERANCES, options=self.on_device, encoder=encoder.model,
            data=data,
        )  # fmt: skip

    def _by_head(self, stage: int, encoder: NamedEncoder, before: str, name: str) -> str:
        """Plan x-vectors that a head makes of others."""
        return self.tables.add(
            "head_xvectors", stage, f"{encoder.xvectors}/{name}", head=encoder.model,
            xvectors=before, data=f"data/{name}",
        )  # fmt: skip

    def _channel(
        self, stage: int, encoder: NamedEncoder, name: str, options: Sequence[str] = ()
    ) -> str:
        """Plan the vectors of a set, made of what is recognised in it, whatever protects it; for
        the words of the training set its own text will do."""
        data, word = f"data/{name}", "phones"
        if encoder.word == "words":
            word = recognise_words(self.asked)
        of = max((one for one in (*self.sets, self.train) if name.startswith(one)), key=len)
        source = f"exp/decode/{name[len(of) + 1 :] or 'original'}/{label_of(word)}/{of}"
        if encoder.word == "words" and name == self.train and Path(data, "text").is_file():
            source = data
        else:
            recogniser, more = say_recogniser(self.asked, word)
            self.tables.add(
                "decoded", stage, source, cut=UTTERANCES, options=more, recogniser=recogniser,
                data=data,
            )  # fmt: skip
        return self.tables.add(
            "channels", stage, f"{encoder.xvectors}/{name}", options=options, channel=encoder.word,
            source=source, data=data,
        )  # fmt: skip

    def session_xvectors(self, stage: int, encoder: NamedEncoder, name: str) -> str:
        """Plan x-vectors of a training set, of sessions if chunk_seconds is set."""
        if encoder.head_of:
            before = self.session_xvectors(stage, encoder.head_of, name)
            return self._by_head(stage, encoder, before, name)
        if encoder.given or encoder.is_textual:
            return self.xvectors(stage, encoder, name)
        seconds = self.asked["chunk_seconds"]
        chunks = ("--chunk-seconds", seconds) if seconds else ()
        if encoder.is_recognised:
            return self._channel(stage, encoder, name, chunks)
        return self.tables.add(
            "session_xvectors", stage, f"{encoder.xvectors}/{name}",
            cut=PIECES if seconds else UTTERANCES, options=(*self.on_device, *chunks),
            encoder=encoder.model, data=f"data/{name}",
        )  # fmt: skip

    def speakers(self, stage: int, encoder: NamedEncoder, name: str) -> str:
        """Plan x-vectors of the speakers of a training set."""
        xvectors = self.session_xvectors(stage, encoder, name)
        out = f"{xvectors}_speakers"
        return self.tables.add("averages", stage, out, xvectors=xvectors, data=f"data/{name}")

    def backend(
        self, stage: int, encoder: NamedEncoder, name: str, out: str, kind: str = PLDA
    ) -> str:
        """Plan a back end, PLDA or COHORT, trained on a set's x-vectors."""
        xvectors = self.session_xvectors(stage, encoder, name)
        more = {"lda_dim": "0"} if kind == COHORT else {}
        return self.tables.add(
            "tfidf" if encoder.is_textual else "backends", stage, out, unseen=self.unseen,
            xvectors=xvectors, data=f"data/{name}", **more,
        )  # fmt: skip

    def evaluator(self, stage: int, evaluator: Evaluator, *, encoder_stage: int) -> None:
        """Plan all that an evaluator needs of original speech."""
        self.encoder(encoder_stage, evaluator.encoder)
        for name in self.sets:
            self.xvectors(stage, evaluator.encoder, name)
        if (kind := evaluator.trained) and evaluator.scorer != evaluator.encoder.backend:
            self.backend(stage, evaluator.encoder, self.train, evaluator.scorer, kind)

    def f0(self, stage: int, name: str) -> str:
        """Plan F0 statistics of a set's speakers."""
        return self.tables.add("f0", stage, f"exp/f0/{name}", cut=UTTERANCES, data=f"data/{name}")

    def voices(self, stage: int, content: str = "") -> str:
        """Plan the pool of voices, with x-vectors by the encoder of the voices; with content, by
        that name, in a separate pool."""
        data, name = f"data/{self.pool}", self.voice.name
        speakers = self.speakers(stage, self.voice, self.pool)
        world = self.tables.add("world", stage, f"exp/world/{self.pool}", cut=UTTERANCES, data=data)
        out = _pool_folder(name, content)
        words = (*self.on_device, "--add-content", content) if content else ()
        return self.tables.add(
            "pools", stage, out, options=words, unseen=self.unseen, world=world, data=data,
            speakers=speakers,
        )  # fmt: skip

    def synthesiser(self, stage: int, name: str) -> str:
        """Plan a trained synthesiser, by its settings' name."""
        pool, out = self.voices(stage), f"exp/synthesisers/{self.voice.name}/{name}"
        return self.tables.add(
            "synthesisers", stage, out, unseen=self.unseen, conf=f"conf/synthesisers/{name}.yaml",
            data=f"data/{self.pool}", pool=pool,
        )  # fmt: skip

    def generator(self, stage: int, name: str) -> str:
        """Plan a trained generator, by its settings' name; for psd the frames, where the encoder
        has a distribution for each."""
        xvectors = self.session_xvectors(stage, self.voice, self.pool)
        out, data = f"exp/generators/{self.voice.name}/{name}", f"data/{self.pool}"
        unseen: tuple[str, ...] = ()
        if why := self.asked.get("tested_train_generators"):
            note = f"generators are trained on speakers who are evaluated, too: {why}"
            self.notes += [] if note in self.notes else [note]
        else:
            unseen = self.unseen
        conf = self.voice.conf
        if name == "psd" and conf and _pools_xi(conf):
            return self.tables.add(
                "frames", stage, out, options=(*self.on_device, *unseen), encoder=self.voice.model,
                data=data,
            )  # fmt: skip
        return self.tables.add(
            "generators", stage, out, options=(*self.on_device, *unseen),
            conf=f"conf/generators/{name}.yaml", xvectors=xvectors, data=data,
        )  # fmt: skip

    def need(self, stage: int, need: str) -> None:
        """Plan a need of a system (`sources.NEEDS`). UserError for one that no recipe can meet."""
        kind, _, name = need.partition(":")
        if kind in ("xvectors", "backend", "pool", "synthesiser", "generator") and name != "wavlm":
            self.encoder(stage, self.voice)
        match kind:
            case "xvectors":
                for one in self.sets:
                    self.xvectors(stage, self.voice, one)
            case "backend":
                self.backend(stage, self.voice, self.train, f"exp/backends/{self.voice.name}")
            case "f0":
                for one in self.sets:
                    self.f0(stage, one)
            case "pool" if name == "wavlm":
                self.tables.add(
                    "wavlm", stage, "exp/pools/wavlm", cut=UTTERANCES, options=self.on_device,
                    data=f"data/{self.pool}",
                )  # fmt: skip
            case "pool":
                self.voices(stage, name)
            case "synthesiser":
                self.synthesiser(stage, name)
            case "generator":
                self.generator(stage, name)
            case "model" | "external":
                pass  # is there
            case _:
                raise UserError(f"conf/systems: '{need}' is needed, which no recipe can make")

    def needs(self, stage: int, system: str) -> None:
        """Plan all that a system needs to protect the sets."""
        for need in self.describe(system).needs:
            self.need(stage, need)

    def give(self, system: str, name: str, speech: str = "") -> list[str]:
        """Options of steps/anonymise.py that provide a system's needs for a set's speakers. speech:
        the folder of the set's externally protected speech."""
        description, voice = self.describe(system), self.voice
        words: list[str] = []
        for need in description.needs:
            kind, _, of = need.partition(":")
            match kind:
                case "pool":
                    words += ["--pool", _pool_folder(voice.name, of)]
                    words += self.on_device if of else ()
                case "backend":
                    words += ["--backend", f"exp/backends/{voice.name}"]
                case "f0":
                    words += ["--f0", f"exp/f0/{name}"]
                case "xvectors":
                    for folder in self._xvectors_for(description.level, name):
                        words += ["--xvectors", f"{voice.xvectors}/{folder}"]
                case "synthesiser" | "generator":
                    words += [f"--{kind}", f"exp/{kind}s/{voice.name}/{of}"]
                case "external":
                    words += ["--external", speech or of]
                case "model":
                    folder = of if "/" in of else f"{MODELS}/{of}"
                    words += ["--model", folder, *self.unseen]
        return words

    def _xvectors_for(self, level: str, name: str) -> Sequence[str]:
        """Sets of x-vectors for a system: all sets if speakers keep one voice in all of them."""
        if name == self.train:
            return [f"{name}_speakers"]
        return self.sets if level == "perm" else [name]

    def protect(
        self, table: str, stage: int, system: str, name: str, out: str, *options: str
    ) -> str:
        """Plan a set, protected by a system: data/OUT."""
        data, out = f"data/{name}", f"data/{out}"
        speech, more = self._speech(stage, system, name, options)
        return self.tables.add(
            table, stage, out, cut=UTTERANCES, set=name,
            options=(*more, *self.give(system, name, speech)), conf=self.conf(system), data=data,
            wav=f"{out}/wav",
        )  # fmt: skip

    def _speech(
        self, stage: int, system: str, name: str, options: Sequence[str]
    ) -> tuple[str, Sequence[str]]:
        """Folder of a set's externally protected speech, and the options with its draw: attackers
        have the enrolment of the second draw. A command's speech is planned first."""
        if not any(need.startswith("external:") for need in self.describe(system).needs):
            return "", options
        conf = self.conf(system)
        first, second = (folder_for(conf, name, train=self.train, draw=d) for d in ("0", "1"))
        if name == self.sets[0] and len(self.sets) > 1 and first != second:
            options = ("--draw", "1")
        draw = options[1] if options[:1] == ("--draw",) else "0"
        if folder := folder_for(conf, name, train=self.train, draw=draw):
            return folder, options
        made = f"exp/external/{system}/{name}.{draw}"
        self.tables.add(
            "commanded", stage, made, set=name, draw=draw, conf=conf, data=f"data/{name}"
        )
        return made, options

    def needs_for_training(self, stage: int, system: str) -> None:
        """Plan all that a system needs to protect the training set, too."""
        for need in self.describe(system).needs:
            self.need(stage, need)
            if need == "xvectors":
                self.speakers(stage, self.voice, self.train)
            elif need == "f0":
                self.f0(stage, self.train)

    def protect_training(self, stage: int, system: str, level: str) -> str:
        """Plan the training set, protected by a system at a level, with all needs. A speaker is
        never their own target."""
        self.needs_for_training(stage, system)
        options = () if level == self.describe(system).level else ("--level", level)
        out = f"{self.train}_{system}_{level}"
        return self.protect("protected", stage, system, self.train, out, *options)

    def informed_draws(self, system: str, level: str, encoder: NamedEncoder) -> int:
        """How often an attacker protects the training set: once where a draw changes nothing that
        they hear, and where speech is given; known once the system has protected its first set."""
        asked = int(self.asked.get("informed_draws", "1"))
        given = any(re.match("external:.", need) for need in self.describe(system).needs)
        once = level == "const" or given or encoder.is_recognised
        return asked if not once and self.is_random(system) else 1

    def training_set(self, system: str, level: str, encoder: NamedEncoder) -> str:
        """Name of an attacker's protected training set; empty for one who does not train."""
        if level == "-":
            return ""
        draws = self.informed_draws(system, level, encoder)
        name = f"{self.train}_{system}_{level}"
        return name if draws == 1 else f"{name}_draws{draws}"

    def protect_training_again(
        self, stage: int, system: str, level: str, encoder: NamedEncoder
    ) -> str:
        """Plan an attacker's training set: several draws of it, in one data directory."""
        first = self.protect_training(stage, system, level)
        draws, name = [first], first.removeprefix("data/")
        options = () if level == self.describe(system).level else ("--level", level)
        for n in range(1, self.informed_draws(system, level, encoder)):
            words = ("--draw", str(n), *options)
            out = f"{name}_draw{n}"
            draws.append(self.protect("protected", stage, system, self.train, out, *words))
        if len(draws) == 1:
            return first
        out = f"data/{self.training_set(system, level, encoder)}"
        return self.tables.add("joined", stage, out, draws=draws)

    def informed_encoder(self, stage: int, evaluator: Evaluator) -> None:
        """Plan the encoder that an attacker trains, anew or further."""
        encoder, base = evaluator.encoder, evaluator.base
        if base is None or encoder == base:
            return
        if encoder.head_of:
            self.tables.add(
                "heads", stage, encoder.model, seed=self._seed(0), unseen=self.unseen,
                xvectors=self.session_xvectors(stage, base, evaluator.training),
                data=f"data/{evaluator.training}",
            )  # fmt: skip
            return
        conf = base.conf or f"{base.word}/encoder.yaml"  # one that was trained elsewhere
        start = ("--init-from", base.model) if encoder.name.endswith(f".{FINETUNED}") else ()
        self.tables.add(
            "encoders", stage, encoder.model, seed=self._seed(base.training), start=start,
            unseen=self.unseen, conf=conf, data=f"data/{evaluator.training}",
        )  # fmt: skip

    def informed_backend(self, stage: int, evaluator: Evaluator) -> None:
        """Plan the back end that an attacker trains."""
        if evaluator.base is not None and (kind := evaluator.trained):
            self.backend(stage, evaluator.encoder, evaluator.training, evaluator.scorer, kind)

    def held_out(self, stage: int, evaluator: Evaluator) -> None:
        """Plan the scores of training people whom an attacker held out, where it learnt people: not
        of words that are counted, nor of a cohort."""
        encoder, base = evaluator.encoder, evaluator.base
        learns = evaluator.trained == PLDA or encoder != base
        if base is None or encoder.is_textual or not learns:
            return
        kind = "plda" if evaluator.trained == PLDA else "cosine"
        options: tuple[str, ...] = () if encoder == base else ("--own-encoder", encoder.model)
        if encoder.head_of:  # a new head learns from those who are not held out
            encoder, options = base, ("--head",)
        self.tables.add(
            "held_out", stage, evaluator.held_out, kind=kind, options=options,
            xvectors=self.session_xvectors(stage, encoder, evaluator.training),
            data=f"data/{evaluator.training}",
        )  # fmt: skip
