"""What is measured: attacks on protected speech, and what the speech is still good for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from local.plan.needs import Recipe, say_recogniser
from local.plan.options import (
    EVERYBODY,
    FUSED,
    PLDA,
    RECORDINGS,
    SIMILARITY,
    STRONGEST,
    VERIFICATION,
    Evaluator,
    Labels,
    NamedEncoder,
    inform,
    label_of,
    need_conf,
    settings_of,
)
from local.protocols.attackers import ALIGNED, AttackedSystem, Attempt, plan_attacks
from utils.cli import UserError
from utils.recipe import UTTERANCES

# ---- Attacks: scores of trial lists and of all pairs, and the figures of both.

DRAW = "draw1"  # the second run of a random system
ENROLLED = ("1", "3")  # recordings of a person that attackers enrol, beside all
DRAWN = ("ignorant", "lazy_informed")  # attackers of all runs of --draws, who train nothing


def side(name: str, system: str) -> str:
    """Name of a set as protected by a system; without one, the set itself."""
    return f"{name}_{system}" if system else name


def _compared(system: str) -> tuple[tuple[str, tuple[str, str, str]], ...]:
    """Folder, condition, and protection of rows and columns of a voice similarity matrix."""
    return (system, ("OP", "", system)), (system, ("PP", system, system))


@dataclass(frozen=True)
class Listed:
    """Attack on the trials of one gender. tells: the original evaluator; hears: the attacker's
    version of it. enrol, trial: the sets. fused: the attacks that one with several evaluators
    consists of; tells and hears are then but names."""

    recipe: Recipe
    attack: Attempt
    tells: Evaluator
    hears: Evaluator
    gender: str
    enrol: str
    trial: str
    name: str = ""  # of the folder, if not the attacker's
    fused: tuple["Listed", ...] = ()

    @property
    def how(self) -> str:
        """Way in which the attacker obtains their evaluator."""
        return self.attack.parts.evaluator

    @property
    def trials(self) -> str:
        """Set of the trial list."""
        return f"{self.recipe.asked['evaluation']}_trials_{self.gender}"

    @property
    def split(self) -> str:
        """Name of the list in tables."""
        return f"{self.recipe.asked['evaluation']}_{self.gender}"

    @property
    def compares(self) -> bool:
        """Whether voice similarity is measured with this attacker's evaluator, too: VoicePAT takes
        G_VD from an evaluator that was trained on protected speech."""
        learnt = self.hears.training and not self.hears.encoder.is_textual
        return bool(learnt) and not self.attack.parts.knows_target

    @property
    def tail(self) -> str:
        """Folder below a system's, after the attacker's name."""
        return f"{self.tells.label}/{self.attack.parts.condition}/{self.split}"

    @property
    def path(self) -> str:
        """Folder in exp/scores and exp/metrics."""
        return f"{self.attack.system}/{self.name or self.attack.attacker}.{self.tail}"

    def score(self, stage: int, *, folder: str = "exp/scores") -> str:
        """Plan the scores, and a record of the attack (attacker.json)."""
        if self.fused:
            return self._fuse(stage, folder)
        hears, xvectors = self.hears, self.hears.encoder.xvectors
        vectors = (f"{xvectors}/{self.enrol}", f"{xvectors}/{self.trial}")
        record = self._record
        if self.how == ALIGNED:
            vectors = self._align(stage)
        if hears.held_out and hears.held_out in self.recipe.tables.every_out():
            record["learnt"] += ("--held-out", hears.held_out)  # a study of targets has none
        return self.recipe.tables.add(
            "scores", stage, f"{folder}/{self.path}", backend=hears.scorer, asnorm=hears.asnorm,
            enrol=vectors[0], trial=vectors[1], trials=f"data/{self.trials}/trials",
            encoder=hears.encoder.model, enrolled=self._few, **record,
        )  # fmt: skip

    @property
    def _few(self) -> tuple[str, ...]:
        """Numbers of enrolled recordings that are scored, too; of an alignment and of further
        draws there are none."""
        words = [word for n in ENROLLED for word in ("--enrolled", n)]
        listed = self.how != ALIGNED and not self.name
        return ("--enrol-data", f"data/{self.enrol}", *words) if listed else ()

    @property
    def _record(self) -> dict[str, Any]:
        """What the record of the attack says of its sets."""
        learnt: tuple[str, ...] = ()
        if self.hears.training:
            learnt = ("--training", f"data/{self.hears.training}")
        if self.how == ALIGNED:
            learnt = ("--pairs", f"data/{side(self.recipe.sets[0], self.attack.system)}")
        return {
            "attacker": self.name or self.attack.attacker, "enrol_data": f"data/{self.enrol}",
            "trial_data": f"data/{self.trial}", "learnt": learnt,
        }  # fmt: skip

    def _fuse(self, stage: int, folder: str) -> str:
        """Plan fused scores; beside them those of the words alone, if these are among them."""
        found = {one.tells.encoder.word: f"{folder}/{one.path}/scores" for one in self.fused}
        words = ("--words", found["words"]) if "words" in found else ()
        return self.recipe.tables.add(
            "fused", stage, f"{folder}/{self.path}", trials=f"data/{self.trials}/trials",
            words=words, scores=[f"{folder}/{one.path}/scores" for one in self.fused],
            parts=" + ".join(one.tells.title for one in self.fused), **self.fused[0]._record,
        )  # fmt: skip

    def _align(self, stage: int) -> tuple[str, str]:
        """Plan x-vectors of the aligned attacker, who has the enrolment before and after
        protection, and rotates the protected trials as these pairs show. For a PLDA trained on
        original x-vectors they stay in that space; for a cosine they are centred."""
        space = "original" if self.hears.trained == PLDA else "centred"
        xvectors, enrol = self.hears.encoder.xvectors, self.recipe.sets[0]
        out = f"exp/aligned/{self.tells.label}/{self.trial}"
        self.recipe.tables.add(
            "aligned", stage, out, also=(f"{out}/enrol", f"{out}/trial"), space=space,
            enrol=f"{xvectors}/{enrol}", enrol_data=f"data/{enrol}",
            protected=f"{xvectors}/{side(enrol, self.attack.system)}",
            trials=f"{xvectors}/{self.trial}", trials_data=f"data/{self.trials}",
        )  # fmt: skip
        return f"{out}/enrol", f"{out}/trial"

    def labels(self, family: str) -> Labels:
        """What figures of a family speak of."""
        return Labels(
            self.split, self.gender, self.attack.system, family, self.attack.attacker,
            self.tells.title, self.attack.parts.condition,
        )  # fmt: skip


def list_attack(recipe: Recipe, attack: Attempt, evaluator: Evaluator, gender: str) -> Listed:
    """Attack of the plan on the trials of a gender."""
    enrol, trial = attack.protection
    training = recipe.training_set(attack.system, attack.level, evaluator.encoder)
    return Listed(
        recipe, attack, evaluator, inform(evaluator, attack, attack.parts.evaluator, training),
        gender, side(recipe.sets[0], enrol),
        side(f"{recipe.asked['evaluation']}_trials_{gender}", trial),
    )  # fmt: skip


class Attacks:
    """Attacks of run.sh on systems, and their figures."""

    def __init__(self, recipe: Recipe, systems: Sequence[str]) -> None:
        self.recipe, self.systems = recipe, systems
        self.attackers = recipe.asked.words("attackers")
        described = [(system, recipe.describe(system)) for system in systems]
        self.plan = plan_attacks(
            self.attackers,
            [
                AttackedSystem(system, of.level, of.levels, recipe.found(system).lacks)
                for system, of in described
            ],
            [evaluator.word for evaluator in recipe.evaluators],
            recipe.asked["informed_level"],
        )

    def of(self, evaluator: Evaluator) -> list[Attempt]:
        """Attacks with an evaluator."""
        return [attack for attack in self.plan.attacks if attack.evaluator == evaluator.word]

    def listed(self, evaluator: Evaluator, gender: str) -> list[Listed]:
        """Attacks with an evaluator on the trials of a gender."""
        return [
            list_attack(self.recipe, attack, evaluator, gender) for attack in self.of(evaluator)
        ]

    def fuse(self, name: str, gender: str) -> list[Listed]:
        """Attacks by which two evaluators or more heard the same trials, fused."""
        found: dict[tuple[str, str], list[Listed]] = {}
        for evaluator in self.recipe.evaluators:
            for one in self.listed(evaluator, gender):
                if evaluator.encoder.word not in FUSED[name]:
                    found.setdefault((one.attack.system, one.attack.attacker), []).append(one)
        tells = Evaluator(name, NamedEncoder(name, name, name), name, name, "", "0")
        return [
            replace(parts[0], tells=tells, hears=tells, fused=tuple(parts))
            for parts in found.values()
            if len(parts) > 1
        ]

    def all_fused(self) -> list[Listed]:
        """Every attack of fused evaluators on every list."""
        names = product(self.recipe.fused, self.recipe.genders)
        return [one for name, gender in names for one in self.fuse(name, gender)]

    def parts(self) -> list[tuple[Evaluator, str]]:
        """Evaluators and genders."""
        return [(e, gender) for e in self.recipe.evaluators for gender in self.recipe.genders]

    def all(self) -> list[Listed]:
        """Every attack on every list."""
        return [one for part in self.parts() for one in self.listed(*part)]

    def two_runs(self, evaluator: Evaluator, gender: str, system: str) -> list[Listed]:
        """Two runs of a system under the ignorant attacker; none for a system that is not random,
        or where words are counted. Calibration across runs (C_ECE) needs two, whoever attacks."""
        if not self.recipe.is_random(system) or evaluator.encoder.is_textual:
            return []
        attack = Attempt(evaluator.word, system, "ignorant", "-")
        first = list_attack(self.recipe, attack, evaluator, gender)
        return [first, replace(first, name=f"ignorant_{DRAW}", trial=f"{first.trial}_{DRAW}")]

    def further(self, one: Listed) -> list[Listed]:
        """An attack on the further runs of --draws; none where the speech is not drawn anew."""
        attacker, system = one.attack.attacker, one.attack.system
        heard = attacker in DRAWN and not one.fused and not one.tells.encoder.is_textual
        return [
            replace(one, name=f"{attacker}_draw{i}", trial=f"{one.trial}_draw{i}")
            for i in range(1, self.recipe.n_draws(system) if heard else 1)
        ]

    # Stages of run.sh.

    def learn(self, stage: int) -> None:
        """Plan informed attackers: their training sets and models."""
        for one in self.all():
            if one.attack.level != "-":
                of = (one.attack.system, one.attack.level, one.tells.encoder)
                self.recipe.protect_training_again(stage, *of)
        for one in self.all():
            self.recipe.informed_encoder(stage, one.hears)
            self.recipe.informed_backend(stage, one.hears)
            self.recipe.held_out(stage, one.hears)

    def hear(self, stage: int) -> None:
        """Plan x-vectors of the protected speech."""
        recipe = self.recipe
        for evaluator in recipe.evaluators:
            for system in self.systems:
                names = [side(name, system) for name in recipe.sets_of(system)]
                for draw in () if evaluator.encoder.is_textual else recipe.draws_of(system):
                    names += [f"{side(name, system)}_draw{draw}" for name in recipe.sets[1:]]
                for name in names:
                    recipe.xvectors(stage, evaluator.encoder, name)
        for one in self.all():
            if one.hears.encoder != one.tells.encoder:
                for name in recipe.sets:
                    recipe.xvectors(stage, one.hears.encoder, side(name, one.attack.system))
                if one.compares:
                    recipe.xvectors(stage, one.hears.encoder, one.trials)

    def score(self, stage: int) -> None:
        """Plan scores of trial lists, and of all pairs of segments."""
        for one in self.all_fused():
            one.score(stage)
        for evaluator, gender in self.parts():
            runs = [run for s in self.systems for run in self.two_runs(evaluator, gender, s)]
            for one in self.listed(evaluator, gender):
                runs += [one, *self.further(one)]
            for one in runs:
                one.score(stage)
            if evaluator.encoder.is_textual:
                continue  # similarity is of voices
            self._pair(stage, evaluator, gender, SIMILARITY, "original", "OO", "", "")
            for system in self.systems:
                for who, of in _compared(system):
                    self._pair(stage, evaluator, gender, SIMILARITY, who, *of)
            for one in self.listed(evaluator, gender):
                system, kind = one.attack.system, f"{SIMILARITY}_{one.attack.attacker}"
                for who, of in ((system, ("OO", "", "")), *_compared(system)):
                    if one.compares:
                        self._pair(stage, one.hears, gender, kind, who, *of)

    def _pair(
        self, stage: int, evaluator: Evaluator, gender: str, *of: str
    ) -> str:  # kind, system, condition, rows, columns
        kind, system, condition, rows, columns = of
        name, recipe = self.recipe.asked["evaluation"], self.recipe
        out = f"exp/scores/{system}/{kind}.{evaluator.label}/{condition}/{name}_{gender}"
        trials, xvectors = f"{name}_trials_{gender}", evaluator.encoder.xvectors
        backend, asnorm = evaluator.pairing
        return recipe.tables.add(
            "similarity", stage, out, backend=backend, asnorm=asnorm,
            utt2spk=f"data/{trials}/utt2spk", rows=f"{xvectors}/{side(trials, rows)}",
            columns=f"{xvectors}/{side(trials, columns)}",
        )  # fmt: skip

    def measure(self, stage: int) -> None:
        """Plan privacy metrics."""
        for one in self.all_fused():
            self._verify(stage, one)
        for evaluator, gender in self.parts():
            for one in self.listed(evaluator, gender):
                self._verify(stage, one)
                if one.compares:
                    system = one.attack.system
                    self._similarity(stage, evaluator, gender, system, one.attack.attacker, system)
            for system in self.systems:
                self._compare(stage, evaluator, gender, system)
        attacks: dict[tuple[str, str], list[Listed]] = {}
        for one in [*self.all(), *self.all_fused()]:
            attacks.setdefault((one.attack.system, one.gender), []).append(one)
        for (system, gender), every in attacks.items():
            if system != ORIGINAL:
                self._choose(stage, system, gender, every)

    def _choose(self, stage: int, system: str, gender: str, every: Sequence[Listed]) -> None:
        """Plan the lowest EER of all attackers whose evaluators know unprotected voices."""
        first, *more = [f"exp/scores/{one.path}/scores" for one in every]
        trials, runs = every[0].trials, [(one, run) for one in every for run in self.further(one)]
        lists = [word for path in more for word in ("--another-attacker", path)]
        for one, run in runs:
            lists += ["--draw-of", *(f"exp/scores/{path}/scores" for path in (one.path, run.path))]
        for one in every:
            bare = f"exp/metrics/{self._unprotected(one)}/metrics.json"
            lists += ["--unprotected", f"exp/scores/{one.path}/scores", bare]
        self.recipe.figures(
            "metrics", stage,
            Labels(every[0].split, gender, system, STRONGEST, "", EVERYBODY, "-"), kind=STRONGEST,
            utt2spk=f"data/{trials}/utt2spk",
            lists=[*lists, f"data/{trials}/trials", first],
        )  # fmt: skip

    def _verify(self, stage: int, one: Listed) -> None:
        recipe, of_trials = self.recipe, f"data/{one.trials}/utt2spk"
        trials, scores = f"data/{one.trials}/trials", f"exp/scores/{one.path}/scores"
        draws = [
            word
            for run in self.further(one)
            for word in ("--another-draw", f"exp/scores/{run.path}/scores")
        ]
        before: tuple[str, ...] = ()
        if one.attack.attacker != "unprotected":
            before = ("--unprotected", f"exp/scores/{self._unprotected(one)}/scores")
        if any(part.tells.encoder.word == "words" for part in one.fused):
            before = (*before, "--words", f"exp/scores/{one.path}/words")
        if recipe.asked.get("protocol"):
            before += ("--challenges",)
        recipe.figures(
            "metrics", stage, one.labels(VERIFICATION), kind=VERIFICATION, utt2spk=of_trials,
            lists=(*before, *draws, trials, scores),
        )  # fmt: skip
        few = [
            word
            for n in (ENROLLED if one._few and not one.fused else ())
            for word in ("--enrolled", n, f"{scores}_enrolled_{n}")
        ]
        recipe.figures(
            "metrics", stage, one.labels(RECORDINGS), kind=RECORDINGS, utt2spk=of_trials,
            lists=(*draws, *few, trials, scores),
        )  # fmt: skip
        recipe.figures(
            "reidentification", stage, one.labels("reidentification"), utt2spk=of_trials,
            trials=trials, scores=scores, draws=draws,
        )  # fmt: skip
        if one.how == ALIGNED or one.hears.encoder.is_textual or one.fused:
            return  # legal criteria need x-vectors of each utterance, which are missing here
        xvectors = one.hears.encoder.xvectors
        recipe.figures(
            "legal", stage, one.labels("legal"),
            enrol_utt2spk=f"data/{recipe.sets[0]}/utt2spk", trial_utt2spk=of_trials,
            enrol=f"{xvectors}/{one.enrol}/xvector.scp",
            trial=f"{xvectors}/{one.trial}/xvector.scp",
        )  # fmt: skip

    @staticmethod
    def _unprotected(one: Listed) -> str:
        """Folder, in exp/scores, of unprotected speech by the same evaluator."""
        return f"original/unprotected.{one.tells.label}/OO/{one.split}"

    def _compare(self, stage: int, evaluator: Evaluator, gender: str, system: str) -> None:
        """Plan figures of a system that depend on no attacker."""
        recipe, name = self.recipe, self.recipe.asked["evaluation"]
        split, trials, label = f"{name}_{gender}", f"{name}_trials_{gender}", evaluator.label
        of_trials, trial_list = f"data/{trials}/utt2spk", f"data/{trials}/trials"
        if not evaluator.encoder.is_textual:
            self._similarity(stage, evaluator, gender, system, "", "original")
        run = {attack.attacker for attack in self.of(evaluator) if attack.system == system}
        if {"ignorant", "lazy_informed"} <= run:
            lists: list[str] = []
            for who, condition in (
                ("original/unprotected", "OO"),
                (f"{system}/ignorant", "OA"),
                (f"{system}/lazy_informed", "AA"),
            ):
                scores = f"exp/scores/{who}.{label}/{condition}/{split}/scores"
                lists += [trial_list, scores]
            of = Labels(split, gender, system, "gains", "", evaluator.title, "OO-OA-AA")
            recipe.figures("metrics", stage, of, kind="gains", utt2spk=of_trials, lists=lists)
        if evaluator.encoder.is_textual:
            return  # all else compares voices
        xvectors = evaluator.encoder.xvectors
        both = [f"{xvectors}/{side(trials, of)}/xvector.scp" for of in ("", system)]
        leaks = Labels(split, gender, system, "leakage", "", evaluator.title, "OP")
        recipe.figures("metrics", stage, leaks, kind="leakage", utt2spk=of_trials, lists=both)
        self.calibrate(stage, evaluator, gender, system)

    def _similarity(
        self, stage: int, evaluator: Evaluator, gender: str, *of: str
    ) -> None:  # system, attacker whose evaluator it is, owner of the folder of OO
        (system, attacker, first), name = of, self.recipe.asked["evaluation"]
        kind = f"{SIMILARITY}_{attacker}" if attacker else SIMILARITY
        pairs: list[str] = []
        for who, condition in ((first, "OO"), (system, "OP"), (system, "PP")):
            folder = f"exp/scores/{who}/{kind}.{evaluator.label}/{condition}/{name}_{gender}"
            pairs += [f"{folder}/trials", f"{folder}/scores"]
        labels = Labels(
            f"{name}_{gender}", gender, system, SIMILARITY, attacker, evaluator.title, "OO-OP-PP"
        )
        self.recipe.figures(
            "metrics", stage, labels, kind=SIMILARITY,
            utt2spk=f"data/{name}_trials_{gender}/utt2spk", lists=pairs,
        )  # fmt: skip

    def calibrate(self, stage: int, evaluator: Evaluator, gender: str, system: str) -> list[str]:
        """Plan calibration distortion where two runs are random; returns the folders of their
        scores. It is undefined for a list without random draws: a small pool can leave no choice
        for one gender."""
        runs = self.two_runs(evaluator, gender, system)
        if not runs:
            return []
        folders = [f"exp/scores/{run.path}" for run in runs]
        files = [Path(folder, "scores") for folder in folders]
        if not all(file.is_file() for file in files):
            first, last = int(self.recipe.asked["stage"]), int(self.recipe.asked["stop_stage"])
            if 8 < first <= 9 <= last and self.recipe.asked["dry_run"] == "false":
                raise UserError(f"{files[0]} or {files[1]} is missing; run stage 8")
        elif files[0].read_bytes() == files[1].read_bytes():
            split = runs[0].split
            self.recipe.notes.append(
                f"both runs of {system} are the same for {split}: C_ECE is not defined"
            )
            return []
        of = Labels(runs[0].split, gender, system, "calibration", "", evaluator.title, "OA")
        self.recipe.figures(
            "calibration", stage, of,
            utt2spk=f"data/{runs[0].trials}/utt2spk", trials=f"data/{runs[0].trials}/trials",
            scores=[str(file) for file in files],
        )  # fmt: skip
        return folders


def check_systems(systems: Sequence[str]) -> None:
    """Check that the settings exist; UserError where they are missing."""
    for system in systems:
        if not settings_of(system):
            need_conf("systems", system)


# ---- Utility of protected speech: pitch and level, estimated quality, emotions, words.
#
# exp/prosody/<system>/<set>                                  beside the original
# exp/quality_samples/<set>, exp/quality/<system>/<set>       a sample of utterances, and their
# scores exp/functionals/<set>, exp/emotions/<system>/<recogniser>/<set> exp/lang
# the language data of recognisers exp/recognisers/<conf>, <conf>.<protected training set>
# models of ctc and ctc_retrained exp/decode/<system>/<recogniser>/<set>/text
# hypotheses exp/metrics/<system>/utility.<label>/{OO,PP,OP}/<split>     figures; split: each
# gender's, and all

ORIGINAL = "original"
ASR = ("moonshine", "moonshine:<folder>", "pocketsphinx", "ctc", "ctc_retrained", "hub:<model>")
EMOTION = ("functionals", "functionals_retrained", "hub:<model>")
QUALITY = "distillmos"


def condition_of(system: str) -> str:
    """Condition: OO for original speech, PP for protected."""
    return "OO" if system == ORIGINAL else "PP"


def speech_of(system: str) -> str:
    """System that protected the speech; an empty string for original speech."""
    return "" if system == ORIGINAL else system


def _check_kind(option: str, word: str, known: Sequence[str]) -> None:
    """Raise a UserError for a word that matches none of known (<...> stands for anything)."""
    if not any(re.fullmatch(re.sub("<.*>", ".+", kind), word) for kind in known):
        raise UserError(f"{option}: '{word}'; known: {', '.join(known)}")


class Utility:
    """Plans of stage 10."""

    def __init__(self, recipe: Recipe, systems: Sequence[str], stage: int) -> None:
        self.recipe, self.systems, self.stage = recipe, systems, stage
        self.trials = recipe.trials
        self.everything = [ORIGINAL, *systems]
        self.asr = recipe.asked.words("asr")
        self.emotion = recipe.asked.words("emotion")
        for word in self.asr:
            self._check_asr(word)
        for word in self.emotion:
            _check_kind("--emotion", word, EMOTION)

    def _check_asr(self, word: str) -> None:
        _check_kind("--asr", word, ASR)
        if word.startswith("moonshine:") and not Path(word.partition(":")[2]).is_dir():
            raise UserError(f"--asr {word}: {word.partition(':')[2]} is no folder")
        if word.startswith("ctc"):
            need_conf("asr", self.recipe.asked["asr_model"])

    def check_transcripts(self) -> None:
        """Check that sets have transcripts if words are to be recognised; UserError otherwise."""
        names = list(self.trials)
        if any(word.startswith("ctc") for word in self.asr):
            names.append(self.recipe.train)
        for name in names if self.asr else ():
            if Path("data", name, "utt2spk").exists() and not Path("data", name, "text").exists():
                raise UserError(
                    f"--asr: data/{name}/text is missing: word error rate needs transcripts; "
                    "give --asr= without them"
                )

    def gender_of(self, name: str) -> str:
        """Gender of a trial set."""
        return name.removeprefix(f"{self.recipe.asked['evaluation']}_trials_")

    @property
    def genders(self) -> list[str]:
        """All trials together (no gender), where there are several sets, and each set's gender."""
        own = [self.gender_of(name) for name in self.trials]
        return own if len(own) == 1 else ["", *own]

    def labels(self, system: str, word: str, gender: str = "", condition: str = "") -> Labels:
        """What figures of a gender, or of all trials together, by a recogniser speak of."""
        split = side(self.recipe.asked["evaluation"], gender)
        condition = condition or condition_of(system)
        return Labels(split, gender, system, "utility", "", word, condition)

    def measured(self, system: str, word: str) -> list[str]:
        """Folders of all figures by a recogniser."""
        return [f"exp/metrics/{self.labels(system, word, of).path}" for of in self.genders]

    def prosody_of(self, system: str) -> list[str]:
        """Folders of figures of pitch, length and level."""
        return [
            f"exp/metrics/{self.labels(system, 'prosody', self.gender_of(name), 'OP').path}"
            for name in self.trials
        ]

    def _figures(
        self, table: str, system: str, word: str, files: str, original: Sequence[str] = ()
    ) -> None:
        """Plan figures of recognition, for each trial set and for all together. files: of what was
        recognised, with {} for the set. original: options with the original's."""
        found = [(f"data/{name}", files.format(name)) for name in self.trials]
        own = zip(map(self.gender_of, self.trials), found, strict=True)
        lists: dict[str, list[str]] = {gender: [*pair] for gender, pair in own}
        if len(found) > 1:
            more = [word for pair in found[1:] for word in ("--also", *pair)]
            lists[""] = [*more, *found[0]]
        for gender, words in lists.items():
            labels = self.labels(system, word, gender)
            self.recipe.figures(table, self.stage, labels, original=original, lists=words)

    def plan(self) -> None:
        """Plan everything that the options ask for."""
        if self.recipe.asked.flag("prosody"):
            self.prosody()
        if self.recipe.asked.flag("quality"):
            self.quality()
        self.emotions()
        self.words()

    def prosody(self) -> None:
        """Plan pitch, length and level of protected trials beside the original."""
        recipe = self.recipe
        for system in self.systems:
            for name in self.trials:
                out = recipe.tables.add(
                    "prosody", self.stage, f"exp/prosody/{system}/{name}", cut=UTTERANCES,
                    data=f"data/{name}", protected=f"data/{name}_{system}",
                )  # fmt: skip
                recipe.figures(
                    "prosody_figures", self.stage,
                    self.labels(system, "prosody", self.gender_of(name), "OP"),
                    utt2spk=f"data/{name}/utt2spk", prosody=f"{out}/prosody",
                )  # fmt: skip

    def quality(self) -> None:
        """Plan estimated mean opinion scores of a sample of trials, equal for all systems."""
        recipe = self.recipe
        recipe.asked.number("quality_utterances")
        for name in self.trials:
            sample = f"exp/quality_samples/{name}"
            recipe.tables.add("quality_samples", self.stage, sample, data=f"data/{name}")
        for system in self.everything:
            for name in self.trials:
                recipe.tables.add(
                    "quality", self.stage, f"exp/quality/{system}/{name}", cut=UTTERANCES,
                    data=f"exp/quality_samples/{name}",
                    protected=f"data/{side(name, speech_of(system))}",
                )  # fmt: skip
            before = () if system == ORIGINAL else self.trials
            self._figures(
                "quality_figures", system, QUALITY, f"exp/quality/{system}/{{}}/quality",
                [f"--original=exp/quality/original/{name}/quality" for name in before],
            )  # fmt: skip

    def _functionals(self, name: str) -> str:
        return self.recipe.tables.add(
            "functionals", self.stage, f"exp/functionals/{name}", cut=UTTERANCES,
            data=f"data/{name}",
        )  # fmt: skip

    def _emotion_training(self, word: str, system: str) -> list[str]:
        """Options with the training sets of a recogniser: original speech, or protected."""
        recipe = self.recipe
        sets = (recipe.sets[0], *self.trials)
        names = [recipe.train, *sets]
        if word == "functionals_retrained" and system != ORIGINAL:
            level = recipe.describe(system).level
            recipe.protect_training(self.stage, system, level)
            names = [f"{recipe.train}_{system}_{level}"]
            names += [f"{name}_{system}" for name in sets]
        return [
            word for name in names for word in ("--train", f"data/{name}", self._functionals(name))
        ]

    def emotions(self) -> None:
        """Plan recognition of emotions."""
        recipe = self.recipe
        for word in self.emotion:
            label, of_hub = label_of(word), word.startswith("hub:")
            for system in self.everything:
                training = [] if of_hub else self._emotion_training(word, system)
                for name in self.trials:
                    data = f"data/{side(name, speech_of(system))}"
                    out = f"exp/emotions/{system}/{label}/{name}"
                    if of_hub:
                        recipe.tables.add(
                            "emotions", self.stage, out, cut=UTTERANCES, recogniser=word, data=data,
                            options=("--device", recipe.asked["device"]),
                        )  # fmt: skip
                        continue
                    features = self._functionals(side(name, speech_of(system)))
                    own = ("--features", features, *training)
                    recipe.tables.add(
                        "emotions", self.stage, out, recogniser="functionals", data=data,
                        options=own,
                    )  # fmt: skip
                files = f"exp/emotions/{system}/{label}/{{}}/emotions"
                self._figures("emotion_figures", system, word, files)

    def words(self) -> None:
        """Plan recognition of words."""
        if any(not word.startswith(("hub:", "moonshine")) for word in self.asr):
            self._language()
        for word in self.asr:
            label = label_of(word)
            for system in self.everything:
                for name in self.trials:
                    self._decode(word, system, name)
                files = f"exp/decode/{system}/{label}/{{}}/text"
                self._figures("word_figures", system, word, files)

    def _language(self) -> None:
        recipe = self.recipe
        options = [word for name in self.trials for word in ("--count", f"data/{name}")]
        if recipe.asked["asr_lang"] == "trigram":
            options += ["--train", f"data/{recipe.train}"]
        recipe.tables.add("lang", self.stage, "exp/lang", options=options)

    def ctc_of(self, word: str, system: str) -> tuple[str, str]:
        """Training set of a ctc recogniser for a system, and the recogniser's folder."""
        model = f"exp/recognisers/{self.recipe.asked['asr_model']}"
        if word == "ctc" or system == ORIGINAL:
            return self.recipe.train, model
        training = f"{self.recipe.train}_{system}_{self.recipe.describe(system).level}"
        return training, f"{model}.{training}"

    def _ctc(self, word: str, system: str) -> list[str]:
        """Options with a ctc recogniser, trained on original speech or on the same protection."""
        recipe, (training, model) = self.recipe, self.ctc_of(word, system)
        if training != recipe.train:
            recipe.protect_training(self.stage, system, recipe.describe(system).level)
        recipe.tables.add(
            "recognisers", self.stage, model, options=(*recipe.on_device, *recipe.unseen),
            conf=need_conf("asr", recipe.asked["asr_model"]), data=f"data/{training}",
        )  # fmt: skip
        return ["--lang", "exp/lang", "--model", model, *recipe.on_device]

    def _decode(self, word: str, system: str, name: str) -> None:
        if word.startswith("ctc"):
            kind, options = "ctc", self._ctc(word, system)
        elif word == "pocketsphinx":
            kind, options = word, ["--lang", "exp/lang"]
        else:
            kind, options = say_recogniser(self.recipe.asked, word)
        self.recipe.tables.add(
            "decoded", self.stage, f"exp/decode/{system}/{label_of(word)}/{name}", cut=UTTERANCES,
            options=options, recogniser=kind, data=f"data/{side(name, speech_of(system))}",
        )  # fmt: skip
