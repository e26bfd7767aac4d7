# SPDX-License-Identifier: Apache-2.0
"""Inputs of the tables and the report of run.sh."""

from collections.abc import Collection, Iterable
from pathlib import Path

from local.plan.attacks import Attacks
from local.plan.evaluators import Evaluator, label_of
from local.plan.remembered import Kept
from local.plan.tables import Tables
from local.plan.utility import ORIGINAL, QUALITY, Utility, condition_of, speech_of

DONE = ".done"


class Results:
    """Plans of stage 11: folders of figures, and options of local/collect_results.py.

    attacks, utility: those shown, which may be more than this run makes. own: folders that it
    makes; others are shown where they are up to date.
    """

    def __init__(self, attacks: Attacks, utility: Utility, own: Collection[str]) -> None:
        self.recipe, self.attacks, self.utility = attacks.recipe, attacks, utility
        self.own, self._is_current = own, Kept()
        asked = self.recipe.asked
        note = asked["corpus_note"]
        self.words = ["--corpus-name", asked["corpus_name"]]
        self.words += ["--corpus-note", note] if note else ["--corpus-note="]
        self.folders: list[str] = []
        self.stale: list[str] = []

    def plan(self, tables: Tables, stage: int) -> None:
        """Plan tables and report."""
        for evaluator, gender in self.attacks.parts():
            self._privacy(evaluator, gender)
        self._utility()
        shown = [system for system in self.utility.everything if self._shows(system)]
        for system in filter(speech_of, shown):
            for name in self.recipe.sets[1:]:
                protected = f"data/{name}_{system}"  # not of lists that only other systems have
                if protected in self.own or Path(protected, "conf.json").is_file():
                    self.words += ["--speech", system, f"data/{name}", protected]
        if self.recipe.asked["report_audio"] != "true":
            self.words += ["--clips", "0"]
        for system in shown:
            if speech_of(system):
                self._time_protection(system)
            self._time_evaluators(system)
            self._time_recognition(system)
        results = tables.job(
            "results", stage, "exp/results", "%collect_results", *self.words, "exp/results",
            *self.folders,
        )  # fmt: skip
        pdf = ["--pdf"] if self.recipe.asked["report_pdf"] == "true" else []
        tables.job("report", stage, "exp/report", "%make_report", *pdf, results, "exp/report")

    def _keeps(self, folder: str) -> bool:
        """Whether figures that this run may not make are shown."""
        if folder in self.own:
            return True
        if self._is_current(folder):
            return True
        if Path(folder, DONE).is_file():
            self.stale.append(folder)
        return False

    def _shows(self, system: str) -> bool:
        """Whether a system is this run's, or has a figure that is shown."""
        if f"data/{self.recipe.sets[-1]}_{system}" in self.own or not speech_of(system):
            return True
        return any(folder.startswith(f"exp/metrics/{system}/") for folder in self.folders)

    def _privacy(self, evaluator: Evaluator, gender: str) -> None:
        attacks, name = self.attacks, self.recipe.asked["evaluation"]
        tail = (f".{evaluator.label}", f"{name}_{gender}")
        planned = [
            folder
            for folder in self.recipe.tables.outs("metrics")
            if folder.endswith(f"/{tail[1]}") and Path(folder).parts[-3].endswith(tail[0])
        ]
        for system in self.utility.everything:
            self.folders += sorted(
                folder
                for folder in planned
                if folder.startswith(f"exp/metrics/{system}/")
                and not Path(folder).parts[-3].startswith("calibration.")
                and Path(folder).is_dir()
                and self._keeps(folder)
            )
        for one in attacks.listed(evaluator, gender):
            if self._keeps(f"exp/metrics/{one.path}"):
                self.words += ["--attack", f"data/{one.trials}/trials", f"exp/scores/{one.path}"]
        for system in attacks.systems:
            path = f"exp/metrics/{system}/calibration{tail[0]}/OA/{tail[1]}"
            runs = attacks.calibrate(0, evaluator, gender, system)
            if runs and self._keeps(path):
                self.words += ["--runs", f"data/{name}_trials_{gender}/trials", *runs]
                self.folders.append(path)

    def _utility(self) -> None:
        asked, utility = self.recipe.asked, self.utility
        if asked.flag("prosody"):
            for system in utility.systems:
                paths = (f"utility.prosody/OP/{utility.split_of(name)}" for name in utility.trials)
                folders = (f"exp/metrics/{system}/{path}" for path in paths)
                self.folders += [folder for folder in folders if self._keeps(folder)]
        labels = [QUALITY] if asked.flag("quality") else []
        for label in (*labels, *map(label_of, (*utility.emotion, *utility.asr))):
            for system in utility.everything:
                for split in utility.splits:
                    path = f"exp/metrics/{system}/utility.{label}/{condition_of(system)}/{split}"
                    if Path(path, DONE).is_file() and self._keeps(path):
                        self.folders.append(path)

    # Folders whose logs hold the time of each stage of a system (docs/utility.md).

    def _time(self, how: str, system: str, stage: str, names: Iterable[str], folder: str) -> None:
        """Add each set's time; folder: with {} for its name. how: each (for all new speech that is
        protected) or once."""
        for name in names:
            words = (system, stage, f"exp/audio/{name}", folder.format(name))
            self.words += [f"--timed-{how}", *words]

    def _time_training(self, system: str, stage: str, folder: str, name: str = "") -> None:
        audio = f"exp/audio/{name or self.recipe.train}"
        self.words += ["--timed-once", system, stage, audio, folder]

    def _time_protection(self, system: str) -> None:
        recipe = self.recipe
        voice, pool, sets = recipe.voice, recipe.pool, recipe.sets_of(system)
        for need in recipe.describe(system).needs:
            kind, _, name = need.partition(":")
            match kind:
                case "f0":
                    self._time("each", system, "pitch", sets, "exp/f0/{}")
                case "xvectors" if not voice.given:
                    stage = "x-vectors of the voices"
                    self._time("each", system, stage, sets, f"{voice.xvectors}/{{}}")
                case "pool" if name:
                    self._time_training(system, "pool: WavLM frames", "exp/pools/wavlm", pool)
                case "pool":
                    self._time_training(system, "pool: WORLD frames", f"exp/world/{pool}", pool)
                case "synthesiser" | "generator":
                    folder = f"exp/{kind}s/{voice.name}/{name}"
                    self._time_training(system, f"training: {name}", folder, pool)
        self._time("each", system, "protection", sets, f"data/{{}}_{system}")

    def _time_evaluators(self, system: str) -> None:
        recipe = self.recipe
        for evaluator in recipe.evaluators:
            encoder = evaluator.encoder
            if system == ORIGINAL:
                if encoder.conf:
                    stage = f"attack: training of {encoder.title}"
                    self._time_training(system, stage, encoder.model)
                continue
            if not encoder.given:
                stage = f"attack: x-vectors by {encoder.title}"
                sets = recipe.sets_of(system)
                self._time("once", system, stage, sets, f"{encoder.xvectors}/{{}}_{system}")
            for one in self.attacks.listed(evaluator, recipe.genders[0]):
                made = one.hears.encoder
                if one.attack.system == system and made != encoder:
                    self._time_training(system, f"attack: training of {made.title}", made.model)

    def _time_recognition(self, system: str) -> None:
        utility = self.utility
        for word in utility.asr:
            if word == "ctc_retrained" or (word == "ctc" and system == ORIGINAL):
                _, model = utility.ctc_of(word, system)
                self._time_training(system, f"words: training of {Path(model).name}", model)
            folder = f"exp/decode/{system}/{label_of(word)}/{{}}"
            self._time("once", system, f"words by {word}", utility.trials, folder)
        for word in utility.emotion:
            if not word.startswith("hub:"):
                tail = f"_{system}" if speech_of(system) else ""
                folder = f"exp/functionals/{{}}{tail}"
                self._time("once", system, "emotions: functionals", utility.trials, folder)
            folder = f"exp/emotions/{system}/{label_of(word)}/{{}}"
            self._time("once", system, f"emotions by {word}", utility.trials, folder)
