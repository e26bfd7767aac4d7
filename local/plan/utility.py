# SPDX-License-Identifier: Apache-2.0
"""Utility of protected speech: pitch and level, estimated quality, emotions, words.

exp/prosody/<system>/<set>                                  beside the original
exp/quality_samples/<set>, exp/quality/<system>/<set>       a sample of utterances, and their scores
exp/functionals/<set>, exp/emotions/<system>/<recogniser>/<set>
exp/lang                                                    the language data of recognisers
exp/recognisers/<conf>, <conf>.<protected training set>     models of ctc and ctc_retrained
exp/decode/<system>/<recogniser>/<set>/text                 hypotheses
exp/metrics/<system>/utility.<label>/{OO,PP,OP}/<split>     figures; split: each gender's, and all
"""

import re
from collections.abc import Sequence
from pathlib import Path

from local.plan.attacks import figures, side
from local.plan.evaluators import label_of
from local.plan.needs import Recipe
from local.plan.options import need_conf
from utils.cli import UserError

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

    def split_of(self, name: str) -> str:
        """Name of a trial set in tables."""
        evaluation = self.recipe.asked["evaluation"]
        return f"{evaluation}_{name.removeprefix(f'{evaluation}_trials_')}"

    @property
    def splits(self) -> list[str]:
        """Splits: all trials together, where there are several sets, and each set."""
        own = [self.split_of(name) for name in self.trials]
        return own if len(own) == 1 else [self.recipe.asked["evaluation"], *own]

    def _figures(self, program: str, folder: str, file: str, system: str, *of: str) -> None:
        """Plan figures of recognition, for each trial set and for all together. of: the label, then
        options."""
        label, *options = of
        recipe, path = self.recipe, f"{system}/utility.{label}/{condition_of(system)}"
        found = [(f"data/{name}", f"{folder}/{name}/{file}") for name in self.trials]
        for name, pair in zip(self.trials, found, strict=True):
            figures(
                recipe, self.stage, f"{path}/{self.split_of(name)}", program, *options,
                *recipe.intervals, *pair,
            )  # fmt: skip
        if len(found) > 1:
            more = [word for pair in found[1:] for word in ("--also", *pair)]
            figures(
                recipe, self.stage, f"{path}/{recipe.asked['evaluation']}", program, *options,
                *recipe.intervals, *more, *found[0],
            )  # fmt: skip

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
                out = recipe.tables.over(
                    "prosody", self.stage, f"data/{name}", f"exp/prosody/{system}/{name}",
                    "%compare_prosody", "%data", f"data/{name}_{system}", "%out",
                )  # fmt: skip
                figures(
                    recipe, self.stage, f"{system}/utility.prosody/OP/{self.split_of(name)}",
                    "%compute_prosody", "--utt2spk", f"data/{name}/utt2spk", *recipe.intervals,
                    f"{out}/prosody",
                )  # fmt: skip

    def quality(self) -> None:
        """Plan estimated mean opinion scores of a sample of trials, equal for all systems."""
        recipe = self.recipe
        (most,) = recipe.asked.numbers("quality_utterances")
        for name in self.trials:
            sample = f"exp/quality_samples/{name}"
            recipe.tables.job(
                "quality_samples", self.stage, sample, "%subset_data_dir", "--per-spk", most,
                "--seed", recipe.asked["seed"], f"data/{name}", sample,
            )  # fmt: skip
        for system in self.everything:
            for name in self.trials:
                recipe.tables.over(
                    "quality", self.stage, f"exp/quality_samples/{name}",
                    f"exp/quality/{system}/{name}", "%estimate_quality", "%data",
                    f"data/{side(name, speech_of(system))}", "%out",
                )  # fmt: skip
            before = () if system == ORIGINAL else self.trials
            self._figures(
                "%compute_quality", f"exp/quality/{system}", "quality", system, QUALITY,
                *(f"--original=exp/quality/original/{name}/quality" for name in before),
            )  # fmt: skip

    def _functionals(self, name: str) -> str:
        out = f"exp/functionals/{name}"
        return self.recipe.tables.over(
            "functionals", self.stage, f"data/{name}", out, "%extract_functionals", "%data", "%out"
        )

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
                        recipe.tables.over(
                            "emotions", self.stage, data, out, "%recognise_emotion",
                            "--device", recipe.asked["device"], word, "%data", "%out",
                        )  # fmt: skip
                        continue
                    features = self._functionals(side(name, speech_of(system)))
                    recipe.tables.job(
                        "emotions", self.stage, out, "%recognise_emotion",
                        "--seed", recipe.asked["seed"], "--features", features, *training,
                        "functionals", data, out,
                    )  # fmt: skip
                folder = f"exp/emotions/{system}/{label}"
                self._figures("%compute_uar", folder, "emotions", system, label)

    def words(self) -> None:
        """Plan recognition of words."""
        if any(not word.startswith(("hub:", "moonshine")) for word in self.asr):
            self._language()
        for word in self.asr:
            label = label_of(word)
            for system in self.everything:
                for name in self.trials:
                    self._decode(word, system, name)
                folder, spelling = f"exp/decode/{system}/{label}", self.recipe.asked["asr_spelling"]
                self._figures("%compute_wer", folder, "text", system, label, "--spelling", spelling)

    def _language(self) -> None:
        recipe, lang = self.recipe, self.recipe.asked["asr_lang"]
        options = [word for name in self.trials for word in ("--count", f"data/{name}")]
        if lang == "trigram":
            options += ["--train", f"data/{recipe.train}"]
        recipe.tables.job("lang", self.stage, "exp/lang", "%make_lang", *options, lang, "exp/lang")

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
        recipe.tables.job(
            "recognisers", self.stage, model, "%train_recogniser", "--seed", recipe.asked["seed"],
            *recipe.on_device, *recipe.unseen, need_conf("asr", recipe.asked["asr_model"]),
            f"data/{training}", model,
        )  # fmt: skip
        return ["--lang", "exp/lang", "--model", model, *recipe.on_device]

    def _decode(self, word: str, system: str, name: str) -> None:
        kind, _, of = word.partition(":")
        options: list[str] = []
        if kind == "hub":
            kind, options = word, ["--device", self.recipe.asked["device"]]
            language = self.recipe.asked.get("asr_language")
            options += ["--language", language] if language else []
        elif kind == "moonshine":
            options = ["--model", of] if of else []
        elif kind == "pocketsphinx":
            options = ["--lang", "exp/lang"]
        else:
            kind, options = "ctc", self._ctc(word, system)
        self.recipe.tables.over(
            "decoded", self.stage, f"data/{side(name, speech_of(system))}",
            f"exp/decode/{system}/{label_of(word)}/{name}", "%decode", *options, kind, "%data",
            "%out",
        )  # fmt: skip
