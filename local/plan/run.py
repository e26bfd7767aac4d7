"""The plan of run.sh: what earlier runs measured, the tables and the report, and all steps."""

import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from local.plan.attacks import ORIGINAL, QUALITY, Attacks, Listed, Utility, check_systems, speech_of
from local.plan.needs import Recipe
from local.plan.options import (
    CROWD,
    EVERYBODY,
    GROUPS,
    INFERENCE,
    VERIFICATION,
    Asked,
    Evaluator,
    Labels,
    NamedEncoder,
    given,
    label_of,
    shipped,
    take_external,
    train_instead,
)
from local.protocols.attackers import ALIGNED, ATTACKERS, CONTROLS, READING, UNPROTECTED
from local.protocols.trials import MIXED
from steps.anonymisers.registry import describe_system
from utils.cli import UserError
from utils.digests import remembering
from utils.recipe import Planned
from utils.settings import is_settings
from utils.stamps import MEMORY, is_current, made_by
from utils.tables import read_json_object

# ---- Options of earlier runs: their figures stay in the report as long as they are up to date.

FILE = Path("exp/plan/options.json")  # of finished runs
LISTS = ("systems", "attackers", "evaluators", "genders", "asr", "emotion")
FLAGS = ("prosody", "quality", "controls")
# Options that change no figure, or only the figures that they name (trainings: evaluators;
# external: systems).
FREE = (
    *LISTS, *FLAGS, "stage", "stop_stage", "nj", "download", "dry_run", "list_stages", "corpus",
    "prepare_options", "also_prepared", "corpus_name", "corpus_note", "report_audio", "report_pdf",
    "drop", "command_line", "trainings", "train_evaluator", "external", "external_command",
    "protocol", "protocol_training",
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
    # An earlier version may not have had an option.
    lists, common = defaultdict(list, earlier["lists"]), earlier["common"]
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

    def plan(self, own: Recipe) -> None:
        """Plan tables and report, beside the steps of this run."""
        recipe, asked = self.recipe, self.recipe.asked
        for evaluator, gender in self.attacks.parts():
            self._privacy(evaluator.title, gender, self.attacks.listed(evaluator, gender))
            self._calibration(evaluator, gender)
        for name, gender in product(recipe.fused, recipe.genders):
            self._privacy(name, gender, self.attacks.fuse(name, gender))
        for gender in ("", *recipe.genders):
            self._privacy(EVERYBODY, gender, [])
        for evaluator in recipe.evaluators:
            self._privacy(evaluator.title, "", [])
        self._utility()
        shown = [system for system in self.utility.everything if self._shows(system)]
        protecting = [system for system in shown if system != ORIGINAL]
        for system, name in product(protecting, recipe.sets[1:]):
            protected = f"data/{name}_{system}"  # not of lists that only other systems have
            if protected in self.own or Path(protected, "conf.json").is_file():
                self.words += ["--speech", system, f"data/{name}", protected]
        if asked["report_audio"] != "true":
            self.words += ["--clips", "0"]
        for system in shown:
            if system in protecting:
                self._time_protection(system)
            self._time_evaluators(system)
            self._time_recognition(system)
        figures = recipe.given(self.folders)
        results = own.step("results", "exp/results", options=self.words, figures=figures)
        pdf = ["--pdf"] if asked["report_pdf"] == "true" else []
        own.step("report", "exp/report", options=pdf, results=results)

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
        if f"data/{self.recipe.sets[-1]}_{system}" in self.own or system == ORIGINAL:
            return True
        return any(folder.startswith(f"exp/metrics/{system}/") for folder in self.folders)

    def _privacy(self, evaluator: str, gender: str, listed: Sequence[Listed]) -> None:
        labels = self.recipe.labels
        for system in (ORIGINAL, *self.attacks.systems):
            self.folders += sorted(
                folder
                for folder, of in labels.items()
                if (of.system, of.evaluator, of.gender) == (system, evaluator, gender)
                and of.family != "calibration"
                and Path(folder).is_dir()
                and self._keeps(folder)
            )
        for one in listed:
            if (folder := f"exp/metrics/{one.path}") in self.folders:
                trials = f"data/{one.trials}/trials"
                self.words += ["--attack", folder, trials, f"exp/scores/{one.path}"]

    def _calibration(self, evaluator: Evaluator, gender: str) -> None:
        trials, split = f"data/{self.recipe.trial_set(gender)}/trials", self.recipe.split(gender)
        for system in self.attacks.systems:
            runs = self.attacks.calibrate(evaluator, gender, system)
            of = Labels(split, gender, system, "calibration", "", evaluator.title, "OA")
            folder = f"exp/metrics/{of.path}"
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

    def _time_protection(self, system: str) -> None:
        recipe = self.recipe
        voice, pool, sets = recipe.voice, [recipe.pool], recipe.sets_of(system)
        for need in recipe.describe(system).needs:
            kind, _, name = need.partition(":")
            match kind:
                case "f0":
                    self._time("each", system, "pitch", sets, "exp/f0/{}")
                case "xvectors" if not voice.given:
                    stage = "x-vectors of the voices"
                    self._time("each", system, stage, sets, f"{voice.xvectors}/{{}}")
                case "pool" if name:
                    self._time("once", system, "pool: WavLM frames", pool, "exp/pools/wavlm")
                case "pool":
                    self._time("once", system, "pool: WORLD frames", pool, "exp/world/{}")
                case "synthesiser" | "generator":
                    folder = f"exp/{kind}s/{voice.name}/{name}"
                    self._time("once", system, f"training: {name}", pool, folder)
        self._time("each", system, "protection", sets, f"data/{{}}_{system}")

    def _time_evaluators(self, system: str) -> None:
        recipe, training = self.recipe, [self.recipe.train]
        stage = "attack: training of {}"
        for evaluator in recipe.evaluators:
            encoder = evaluator.encoder
            if system == ORIGINAL:
                if encoder.conf:
                    self._time("once", system, stage.format(encoder.title), training, encoder.model)
                continue
            if not encoder.given:
                sets, folder = recipe.sets_of(system), f"{encoder.xvectors}/{{}}_{system}"
                self._time("once", system, f"attack: x-vectors by {encoder.title}", sets, folder)
            for one in self.attacks.listed(evaluator, recipe.genders[0]):
                made = one.hears.encoder
                if one.attack.system == system and made != encoder:
                    learnt = [recipe.learnt.name]
                    self._time("once", system, stage.format(made.title), learnt, made.model)

    def _time_recognition(self, system: str) -> None:
        utility, sets = self.utility, self.utility.trials
        for word in utility.asr:
            if word == "ctc_retrained" or (word == "ctc" and system == ORIGINAL):
                _, model = utility.ctc_of(word, system)
                stage = f"words: training of {Path(model).name}"
                self._time("once", system, stage, [self.recipe.train], model)
            folder = f"exp/decode/{system}/{label_of(word)}/{{}}"
            self._time("once", system, f"words by {word}", sets, folder)
        for word in utility.emotion:
            if not word.startswith("hub:"):
                folder = f"exp/functionals/{speech_of(system, '{}')}"
                self._time("once", system, "emotions: functionals", sets, folder)
            folder = f"exp/emotions/{system}/{label_of(word)}/{{}}"
            self._time("once", system, f"emotions by {word}", sets, folder)


# ---- What is measured of people: their attributes, by group, and among ever more candidates.


class People:
    """Figures beside those of each list."""

    def __init__(self, attacks: Attacks) -> None:
        self.attacks, self.recipe = attacks, attacks.recipe

    def plan(self) -> None:
        """Plan everything; after the attacks, whose x-vectors and scores it takes."""
        if self._differ():
            self._group()
            self._infer()
        for one in self.attacks.all():
            if self._in_crowd(one):
                self._crowd(one)

    def _differ(self) -> bool:
        """Whether the attacked differ in sex, or may in age."""
        aged = Path("data", self.recipe.trials[0], "spk2age").is_file()
        return aged or len(self.recipe.genders) > 1 or MIXED in self.recipe.genders

    def _figures(self, of: Labels, **values: Any) -> None:
        split = of._replace(split=self.recipe.asked["evaluation"], gender="")
        self.recipe.at(MEASURE).figures(of.family, split, **values)

    def _group(self) -> None:
        """Plan the strongest attacker on each system by group of people."""
        found: dict[str, dict[str, list[Listed]]] = {}
        for one in [*self.attacks.all(), *self.attacks.all_fused()]:
            if one.trials in self.recipe.trials:  # not of mixed lists beside those of each sex
                of = found.setdefault(one.attack.system, {})
                of.setdefault(f"data/{one.trials}", []).append(one)
        for system, lists in found.items():
            words = [w for data in lists for w in ("--listed", f"{data}/trials", data)]
            for one in [one for every in lists.values() for one in every]:
                who = one.labels(VERIFICATION)
                for n, run in enumerate((one, *self.attacks.further(one))):
                    path = f"exp/scores/{run.path}/scores"
                    words += ["--scores", f"{who.attacker}.{who.evaluator}", str(n), path]
            of_all = Labels("", "", system, GROUPS, "", EVERYBODY, "-")
            self._figures(of_all, lists=words)

    def _infer(self) -> None:
        """Plan inference of sex and age by an attacker who learns from the training set as it is,
        and by one who learns from it as protected by an attacker who trains."""
        recipe, train = self.recipe, self.recipe.train
        encoders: dict[NamedEncoder, list[Evaluator]] = {}
        for one in recipe.evaluators:
            encoders.setdefault(one.encoder, []).append(one)
        for encoder, (evaluator, *others) in encoders.items():
            made = f"{encoder.xvectors}/{train}" in recipe.tables.every_out()
            costly = encoder.is_recognised or encoder.given or encoder.backend
            if encoder.is_textual or (costly and not made):
                continue  # vectors of the training set that nobody else needs, or are not there
            recipe.at(XVECTORS).session_xvectors(encoder, train)
            self._infer_from(evaluator, ORIGINAL, "unprotected", train)
            for system in self.attacks.systems:
                if system not in CONTROLS[1:]:
                    self._infer_from(evaluator, system, "ignorant", train)
            of = [
                one.attack
                for by in (evaluator, *others)
                for one in self.attacks.listed(by, recipe.genders[0])
            ]
            for system, level in dict.fromkeys(
                (a.system, a.level)
                for a in of
                if a.level != "-" and not a.parts.knows_target and a.system not in CONTROLS[1:]
            ):
                learnt = recipe.training_set(system, level, encoder)
                recipe.at(LEARN).session_xvectors(encoder, learnt)
                self._infer_from(evaluator, system, "semi_informed_backend", learnt)

    def _infer_from(self, evaluator: Evaluator, system: str, attacker: str, training: str) -> None:
        xvectors = evaluator.encoder.xvectors
        heard = [speech_of(system, name) for name in self.recipe.trials]
        condition = ({"unprotected": UNPROTECTED} | ATTACKERS)[attacker].condition
        self._figures(
            Labels("", "", system, INFERENCE, attacker, evaluator.title, condition),
            xvectors=f"{xvectors}/{training}", data=f"data/{training}",
            lists=[w for name in heard for w in ("--trials", f"{xvectors}/{name}", f"data/{name}")],
        )  # fmt: skip

    def _in_crowd(self, one: Listed) -> bool:
        """Whether an attack is also made among the distractors: not by those who have learnt from
        some of these, nor without x-vectors of each recording."""
        names, encoder = self.recipe.asked.words("distractors"), one.tells.encoder
        learnt = encoder.conf and self.recipe.train in names
        drawn = one.attack.level == "-" and one.how != ALIGNED
        return bool(names and drawn and not learnt and not encoder.is_textual)

    def _crowd(self, one: Listed) -> None:
        """Plan legal linkability and naming with the distractors among the candidates."""
        recipe, xvectors = self.recipe, one.tells.encoder.xvectors
        others = recipe.at(LEARN).distractors(one.attack.protection[0])
        if not others:
            return
        words = ["--trials", f"{xvectors}/{one.trial}", f"data/{one.trial}"]
        for of, name in zip(recipe.asked.words("distractors"), others, strict=True):
            if of in (recipe.train, recipe.learnt.name):
                recipe.at(LEARN).session_xvectors(one.tells.encoder, name)
            else:
                recipe.at(HEAR).xvectors(one.tells.encoder, name)
            words += ["--other", f"{xvectors}/{name}", f"data/{name}"]
        recipe.at(MEASURE).figures_of_encoder(
            CROWD, one.labels(CROWD), enrol=f"{xvectors}/{one.enrol}",
            enrol_data=f"data/{one.enrol}", lists=words,
        )  # fmt: skip


# ---- Plan of run.sh.

PREPARE, AUDIO, ENCODERS, XVECTORS, SYSTEMS, PROTECT = 0, 1, 2, 3, 4, 5
LEARN, HEAR, SCORE, MEASURE, UTILITY, RESULTS = 6, 7, 8, 9, 10, 11
SETS = "--sets"  # of a prepare.sh that can make some sets alone


def plan_run(asked: Asked) -> Planned:
    """Plan run.sh with these options."""
    asked, lacking = take_available(take_external(asked))
    recipe, attacks, utility = _plan_all(asked)
    recipe.notes += lacking
    if asked.get("protocol") and attacks.plan.skipped:
        raise UserError(f"--protocol {asked['protocol']}: cannot run {attacks.plan.skipped[0]}")
    if int(asked["stage"]) <= UTILITY <= int(asked["stop_stage"]):
        utility.check_transcripts()
    if int(asked["stage"]) > PREPARE:
        recipe.need_given()
    if joined := recipe.learnt.joined:
        recipe.at(AUDIO).step("joined_sets", f"data/{recipe.learnt.name}", sources=joined)
    lacking = [*_prepare(recipe), *_no_attack(asked, attacks)]
    made = {name for row in recipe.tables.rows["prepare"] for name in row.outs}
    for name in dict.fromkeys((recipe.train, recipe.pool, recipe.learnt.name, *recipe.sets)):
        if name != recipe.train or f"data/{name}" in made:
            recipe.at(AUDIO).step("audio", f"exp/audio/{name}", name)
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
    results.plan(recipe.at(RESULTS))
    notes += [
        f"not in the report: {folder}, made before, is out of date; name what makes it"
        for folder in dict.fromkeys(results.stale)
    ]
    notes += [f"attack skipped: {reason}" for reason in attacks.plan.skipped]
    said = [*dict.fromkeys((*recipe.notes, *notes))]
    return Planned(recipe.tables, what_counts(shown), said, lacking)


def _no_attack(asked: Asked, attacks: Attacks) -> list[str]:
    """Attacks that the command names and that no evaluator can make, each with the reason for one.
    UserError where an attacker could attack no system at all."""
    if not {"attackers", "protocol"} & {*given(asked["command_line"])}:
        return []
    run = {(attack.attacker, attack.system) for attack in attacks.plan.attacks}
    lacking: dict[str, list[str]] = {}
    systems = asked.words("systems")  # and not the controls
    for name, system in product(attacks.attackers, systems):
        if (name, system) not in run:
            of = f"{name} on {system} with "
            why = next(why for why in attacks.plan.skipped if why.startswith(of))
            lacking.setdefault(name, []).append(f"--attackers: {why}")
    nowhere = [whys[0] for whys in lacking.values() if len(whys) == len(systems)]
    if nowhere:
        raise UserError("\n".join(nowhere))
    return [why for whys in lacking.values() for why in whys]


MOONSHINE = "moonshine_voice"  # also the network of pyannote, and the content of models/bn


def take_available(asked: Asked) -> tuple[Asked, list[str]]:
    """Options without what a corpus's defaults name and what needs a package that is not installed,
    and a message for each; what the command or a protocol names stays. ecapa_mini takes the place
    of an evaluator of models/."""
    kept, notes = {}, []
    own = {*given(asked["command_line"]), *(("evaluators",) if asked.get("protocol") else ())}
    for option in (name for name in ("systems", "evaluators", "asr") if name not in own):
        words = {word: _package_of(option, word) for word in asked.words(option)}
        lost = {w: name for w, name in words.items() if name and find_spec(name) is None}
        left = [w for word in words for w in (train_instead([word]) if word in lost else [word])]
        kept[option] = " ".join(w for w in dict.fromkeys(left) if w not in lost)
        notes += [f"left out: {w}: the package {name} is not installed" for w, name in lost.items()]
    return asked.changed(kept), notes


def _package_of(option: str, word: str) -> str:
    """Package that a word of an option needs and that not every machine can have; else empty."""
    if option == "systems":
        conf = f"conf/systems/{word}.yaml"
        needs = describe_system(conf).needs if is_settings(conf) else ()
        return MOONSHINE if any(need.startswith("model:") for need in needs) else ""
    name = word.partition("/")[0]
    name = shipped(name) or name
    return {"moonshine": MOONSHINE, "pyannote": MOONSHINE, "resemblyzer": name}.get(name, "")


def _plan_all(asked: Asked) -> tuple[Recipe, Attacks, Utility]:
    """Plan stages 2 to 10."""
    recipe = Recipe.make(asked)
    asked.number("draws")
    asked.number("informed_draws")
    named = asked.words("systems")
    systems = [*dict.fromkeys((*named, *_controls(recipe)))]
    check_systems(systems)
    attacks = Attacks(recipe, systems)
    utility = Utility(recipe, named)
    for evaluator in recipe.evaluators:
        recipe.at(ENCODERS).encoder(evaluator.encoder)
        recipe.at(XVECTORS).evaluator(evaluator)
    for system in systems:
        recipe.at(SYSTEMS).needs(system)
        recipe.notes += recipe.found(system).notes
        for name in recipe.sets_of(system):
            recipe.at(PROTECT).protect("protected", system, name, f"{name}_{system}")
        for draw, name in product(recipe.draws_of(system), recipe.sets[1:]):
            out = f"{name}_{system}_draw{draw}"
            recipe.protect("drawn_again", system, name, out, "--draw", str(draw))
    for stage, plan in (
        (LEARN, attacks.learn), (HEAR, attacks.hear), (SCORE, attacks.score),
        (MEASURE, attacks.measure), (MEASURE, People(attacks).plan), (UTILITY, utility.plan),
    ):  # fmt: skip
        recipe.at(stage)
        plan()
    return recipe, attacks, utility


def _controls(recipe: Recipe) -> list[str]:
    """Controls that are asked for; none that reads transcripts where there are none."""
    name = recipe.sets[0]
    found = [*CONTROLS] if recipe.asked.flag("controls") else []
    if found and Path("data", name).is_dir() and not Path("data", name, "text").is_file():
        found.remove(READING)
        recipe.notes.append(f"no control {READING}: data/{name}/text is missing")
    return found


def _prepare(recipe: Recipe) -> list[str]:
    """Plan stage 0: the corpus's own program makes the sets of every list, and further ones; where
    it can leave it out, the training set only if a step of these stages reads it. Returns why the
    corpus is missing."""
    asked = recipe.asked
    corpus, options = _remember(recipe)
    also = [one for one in asked["also_prepared"].split() if one != recipe.train]
    sets = [*dict.fromkeys((*recipe.sets, *also))]
    of_genders = [recipe.trial_set(gender) for gender in ("f", "m", MIXED)]
    program = Path("prepare.sh")
    text = program.read_text(encoding="utf-8") if program.is_file() else ""
    options += _training_of_protocol(asked, corpus, options, text)
    parts = {"": [recipe.train, *sets]}
    if re.search("^sets=", text, re.MULTILINE):
        parts = {"evaluation": sets, **({"train": [recipe.train]} if _trains(recipe) else {})}
    for part, (first, *more) in parts.items():
        maybe = [one for one in of_genders if one not in sets] if part != "train" else []
        recipe.at(PREPARE).step(
            "prepare", f"data/{first}", also=[f"data/{one}" for one in more],
            maybe=[f"data/{one}" for one in maybe],  # of one not asked for
            options=[
                *(("--corpus", corpus) if corpus else ()), *options,
                *((SETS, part) if part else ()),
            ],
        )  # fmt: skip
    # Where prepare.sh has a folder of its own for it, it makes the corpus.
    is_given = re.search(r"^corpus=($|\s)", text, re.MULTILINE) and not asked.flag("download")
    if not is_given or int(asked["stage"]) > PREPARE or Path(corpus or "/nowhere").is_dir():
        return []
    what = f"--corpus {corpus}: no such folder" if corpus else "--corpus is missing"
    return [f"{what}; README.md says which one it is"]


def _trains(recipe: Recipe) -> bool:
    """Whether the training set is read by a planned step, or was asked for: by its name, or as
    nothing but the corpus is to be made."""
    rows = (row for rows in recipe.tables.rows.values() for row in rows)
    values = (value for row in rows for value in row.values.values())
    data, asked = f"data/{recipe.train}", recipe.asked
    return (
        recipe.train in asked["also_prepared"].split()
        or int(asked["stop_stage"]) == PREPARE
        or any(data in ([value] if isinstance(value, str) else value) for value in values)
    )


def _training_of_protocol(
    asked: Asked, corpus: str, options: Sequence[str], program: str
) -> list[str]:
    """Option of prepare.sh with the protocol's training set, where a corpus has several subsets and
    none is named. UserError where the corpus lacks it."""
    training, option = asked.get("protocol_training"), "--train-subsets"
    named = any(word.startswith(option) for word in options)
    if not training or named or not re.search(r"^train_subsets=", program, re.MULTILINE):
        return []
    made = asked.flag("download") or int(asked["stage"]) > PREPARE
    if not made and Path(corpus or "/nowhere").is_dir() and not Path(corpus, training).is_dir():
        raise UserError(
            f"--protocol {asked['protocol']}: {corpus} lacks {training}, which the attacker learns "
            f"from; get it, or name other subsets: --prepare-options='{option} NAME'"
        )
    return [option, training]


def _remember(recipe: Recipe) -> tuple[str, list[str]]:
    """Take corpus and options of prepare.sh from a finished stage 0 where this command lacks them,
    and log it. Options of another corpus are left alone."""
    asked = recipe.asked
    corpus, options = asked["corpus"], asked["prepare_options"].split()
    named = given(asked["command_line"])
    sets = (Path("data", name) for name in (recipe.sets[0], recipe.train))
    words = next(filter(None, map(made_by, sets)), [])[3:]  # after ./prepare.sh --seed SEED
    words = words[:-2] if SETS in words[-2:-1] else words
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
