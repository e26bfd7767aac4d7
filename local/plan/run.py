"""The plan of run.sh: what earlier runs measured, the tables and the report, and all steps."""

import shlex
from collections.abc import Collection, Iterable
from pathlib import Path

from local.plan.attacks import (
    DRAW,
    ORIGINAL,
    QUALITY,
    Attacks,
    Utility,
    check_systems,
    speech_of,
)
from local.plan.needs import Recipe
from local.plan.options import Asked, Evaluator, Labels, given, label_of, take_external
from local.protocols.trials import MIXED
from utils.cli import UserError
from utils.digests import remembering
from utils.recipe import UTTERANCES, Planned, Tables
from utils.stamps import MEMORY, is_current, made_by
from utils.tables import read_json_object

# ---- Options of earlier runs: their figures stay in the report as long as they are up to date.

FILE = Path("exp/plan/options.json")  # of finished runs
LISTS = ("systems", "attackers", "evaluators", "genders", "asr", "emotion")
FLAGS = ("prosody", "quality")
# Options that change no figure, or only the figures that they name (trainings: evaluators;
# external: systems).
FREE = (
    *LISTS, *FLAGS, "stage", "stop_stage", "nj", "download", "dry_run", "list_stages", "corpus",
    "prepare_options", "also_prepared", "corpus_name", "corpus_note", "report_audio", "report_pdf",
    "drop", "command_line", "trainings", "external", "external_command",
    "protocol",
)  # fmt: skip


def what_counts(asked: Asked) -> dict[str, object]:
    """Remembered part of a run's options."""
    lists = {name: [*asked.words(name)] for name in LISTS}
    lists |= {name: ["true"] if asked.flag(name) else [] for name in FLAGS}
    return {"lists": lists, "common": asked.without(FREE)}


def widen(asked: Asked) -> tuple[Asked, list[str]]:
    """Options to show: those given, merged with those of finished runs that differ only in lists;
    and messages for the log. UserError for a word of --drop that is not remembered."""
    drop = {*asked.words("drop")}
    if not FILE.is_file():
        if drop:
            raise UserError(
                f"--drop: {FILE} is missing: no run was finished, nothing is remembered"
            )
        if Path("exp/results/.done").is_file():
            return asked, ["earlier runs recorded no options; the report has what this run names"]
        return asked, []
    earlier = read_json_object(FILE, "remove it; the report then has what this run names")
    lists, common = earlier["lists"], earlier["common"]
    known = {word for words in lists.values() for word in words if word != "true"}
    known |= {name for name in FLAGS if lists[name]} | {"all"}
    if drop - known:
        word = sorted(drop - known)[0]
        raise UserError(f"--drop: {word} is not remembered; there are: {' '.join(sorted(known))}")
    own = what_counts(asked)
    differ = sorted(
        name for name, value in asked.without(FREE).items() if common.get(name, "") != value
    )
    wider: dict[str, str] = {}
    for name in (*LISTS, *FLAGS):
        mine = own["lists"][name]  # type: ignore[index]
        more = [word for word in lists[name] if word not in mine and not drop & {word, name, "all"}]
        if more:
            wider[name] = " ".join([*mine, *more])
    if differ and wider:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in differ)
        return asked, [f"not in the report: what earlier runs measured with another {options}"]
    return asked.changed(wider), []


# ---- Inputs of the tables and the report of run.sh.

DONE = ".done"


class ReportInputs:
    """Plans of stage 11: folders of figures, and options of local/collect_results.py.

    attacks, utility: those shown, which may be more than this run makes. own: folders that it
    makes; others are shown where they are up to date.
    """

    def __init__(self, attacks: Attacks, utility: Utility, own: Collection[str]) -> None:
        self.recipe, self.attacks, self.utility = attacks.recipe, attacks, utility
        self.own = own
        self._known: dict[Path, bool] = {}  # whether folders are up to date
        self.words: list[str] = []
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
        results = tables.add(
            "results",
            stage,
            "exp/results",
            options=self.words,
            figures=self.recipe.given(self.folders),
        )
        pdf = ["--pdf"] if self.recipe.asked["report_pdf"] == "true" else []
        tables.add("report", stage, "exp/report", options=pdf, results=results)

    def _keeps(self, folder: str) -> bool:
        """Whether figures that this run may not make are shown."""
        if folder in self.own or not Path(folder, DONE).is_file():
            return folder in self.own
        with remembering(MEMORY):
            current = is_current(Path(folder), self._known)
        self.stale += [] if current else [folder]
        return current

    def _shows(self, system: str) -> bool:
        """Whether a system is this run's, or has a figure that is shown."""
        if f"data/{self.recipe.sets[-1]}_{system}" in self.own or not speech_of(system):
            return True
        return any(folder.startswith(f"exp/metrics/{system}/") for folder in self.folders)

    def _privacy(self, evaluator: Evaluator, gender: str) -> None:
        attacks, name = self.attacks, self.recipe.asked["evaluation"]
        labels, trials = self.recipe.labels, f"data/{name}_trials_{gender}/trials"
        for system in self.utility.everything:
            self.folders += sorted(
                folder
                for folder, of in labels.items()
                if (of.system, of.evaluator, of.gender) == (system, evaluator.title, gender)
                and of.family != "calibration"
                and Path(folder).is_dir()
                and self._keeps(folder)
            )
        for one in attacks.listed(evaluator, gender):
            if (folder := f"exp/metrics/{one.path}") in self.folders:
                self.words += ["--attack", folder, trials, f"exp/scores/{one.path}"]
        of = Labels(f"{name}_{gender}", gender, "", "calibration", "", evaluator.title, "OA")
        for system in attacks.systems:
            runs = attacks.calibrate(0, evaluator, gender, system)
            folder = f"exp/metrics/{of._replace(system=system).path}"
            if runs and self._keeps(folder):
                self.words += ["--runs", folder, trials, *runs]
                self.folders.append(folder)

    def _utility(self) -> None:
        asked, utility = self.recipe.asked, self.utility
        if asked.flag("prosody"):
            for system in utility.systems:
                self.folders += filter(self._keeps, utility.prosody_of(system))
        words = [QUALITY] if asked.flag("quality") else []
        for word in (*words, *utility.emotion, *utility.asr):
            for system in utility.everything:
                for folder in utility.measured(system, word):
                    if Path(folder, DONE).is_file() and self._keeps(folder):
                        self.folders.append(folder)

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


# ---- Plan of run.sh.

PREPARE, AUDIO, ENCODERS, XVECTORS, SYSTEMS, PROTECT = 0, 1, 2, 3, 4, 5
LEARN, HEAR, SCORE, MEASURE, UTILITY, RESULTS = 6, 7, 8, 9, 10, 11


def plan_run(asked: Asked) -> Planned:
    """Plan run.sh with these options."""
    asked = take_external(asked)
    recipe, attacks, utility = _plan_all(asked)
    if int(asked["stage"]) <= UTILITY <= int(asked["stop_stage"]):
        utility.check_transcripts()
    if int(asked["stage"]) > PREPARE:
        recipe.need_given()
    _prepare(recipe)
    for name in dict.fromkeys((recipe.train, recipe.pool, *recipe.sets)):
        recipe.tables.add("audio", AUDIO, f"exp/audio/{name}", cut=UTTERANCES, data=f"data/{name}")
    own = recipe.tables.every_out()
    shown, notes = widen(asked)
    all_attacks, all_utility = attacks, utility
    if shown is not asked:
        try:
            _, all_attacks, all_utility = _plan_all(shown)
        except UserError as error:  # such as missing settings of a system
            notes.append(f"not in the report: what earlier runs measured: {error}")
            shown = asked
    results = ReportInputs(all_attacks, all_utility, own)
    results.plan(recipe.tables, RESULTS)
    for folder in dict.fromkeys(results.stale):
        notes.append(
            f"not in the report: {folder}, made before, is out of date; name what makes it"
        )
    notes += [f"attack skipped: {reason}" for reason in attacks.plan.skipped]
    said = [*dict.fromkeys((*recipe.notes, *notes))]
    return Planned(recipe.tables, what_counts(shown), said)


def _plan_all(asked: Asked) -> tuple[Recipe, Attacks, Utility]:
    """Plan stages 2 to 10."""
    recipe = Recipe.make(asked)
    asked.number("informed_draws")
    systems = asked.words("systems")
    check_systems(systems)
    attacks = Attacks(recipe, systems)
    utility = Utility(recipe, systems, UTILITY)
    for evaluator in recipe.evaluators:
        recipe.evaluator(XVECTORS, evaluator, encoder_stage=ENCODERS)
    for system in systems:
        recipe.needs(SYSTEMS, system)
        recipe.notes += recipe.found(system).notes
        for name in recipe.sets_of(system):
            recipe.protect("protected", PROTECT, system, name, f"{name}_{system}")
        for name in recipe.sets[1:] if recipe.is_random(system) else ():
            out = f"{name}_{system}_{DRAW}"
            recipe.protect("drawn_again", PROTECT, system, name, out, "--draw", "1")
    attacks.learn(LEARN)
    attacks.hear(HEAR)
    attacks.score(SCORE)
    attacks.measure(MEASURE)
    utility.plan()
    return recipe, attacks, utility


def _prepare(recipe: Recipe) -> None:
    """Plan stage 0: the corpus's own program makes the sets of every list, and further ones."""
    asked, name = recipe.asked, recipe.asked["evaluation"]
    corpus, options = _remember(recipe)
    sets = dict.fromkeys((*recipe.sets, *asked["also_prepared"].split()))
    of_genders = [f"{name}_trials_{gender}" for gender in ("f", "m", MIXED)]
    recipe.tables.add(
        "prepare", PREPARE, f"data/{recipe.train}",
        also=[f"data/{one}" for one in sets if one != recipe.train],
        maybe=[f"data/{one}" for one in of_genders if one not in sets],  # of one not asked for
        options=[*(("--corpus", corpus) if corpus else ()), *options],
    )  # fmt: skip


def _remember(recipe: Recipe) -> tuple[str, list[str]]:
    """Take corpus and options of prepare.sh from a finished stage 0 where this command lacks them,
    and log it. Options of another corpus are left alone."""
    asked = recipe.asked
    corpus, options = asked["corpus"], asked["prepare_options"].split()
    named = given(asked["command_line"])
    words = made_by(Path("data", recipe.train))[3:]  # after ./prepare.sh --seed SEED
    known = words[1] if words[:1] == ["--corpus"] else ""
    words = words[2:] if known else words
    told = []
    if not corpus and "corpus" not in named and known:
        corpus = known
        told += ["--corpus", shlex.quote(corpus)]
    if corpus == known and not options and "prepare_options" not in named and words:
        options = words
        told.append(f"--prepare-options={shlex.quote(' '.join(words))}")
    if told and int(asked["stage"]) == PREPARE:
        recipe.notes.append(f"as stage 0 was finished before: {' '.join(told)}")
    return corpus, options
