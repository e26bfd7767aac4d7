"""The plan of run.sh: what earlier runs measured, the tables and the report, and all steps."""

import os
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from typing import Any

from local.plan.attacks import Attacks, Listed, Utility
from local.plan.evaluators import train_instead
from local.plan.external import take_external
from local.plan.labels import EVERYBODY, ORIGINAL, Family, Labels
from local.plan.needs import (
    MEASURE,
    PREPARE,
    UTILITY,
    Recipe,
    as_protected,
    find_recogniser,
    repeated,
)
from local.plan.options import Asked, options_given
from local.protocols.attackers import ALIGNED, ATTACKERS, CONTROLS, READING, UNPROTECTED
from local.protocols.trials import MIXED
from steps.anonymisers.registry import describe_system
from steps.speaker.kinds import MOONSHINE, kind_of
from utils.cli import UserError, refusing
from utils.recipe import Planned
from utils.settings import is_settings
from utils.stamps import is_current, made_by, read_stamp
from utils.tables import read_json_object

# ---- Options of earlier runs: their figures stay in the report as long as they are up to date.

FILE = Path("exp/plan/options.json")  # of finished runs
LISTS = ("systems", "attackers", "evaluators", "genders", "asr", "emotion")
FLAGS = ("prosody", "quality", "controls")
# Options that change no figure, or only the figures that they name (trainings: evaluators;
# external: systems).
FREE = (
    *LISTS, *FLAGS, "stage", "stop_stage", "nj", "download", "dry_run", "corpus",
    "prepare_options", "also_prepared", "corpus_name", "corpus_note", "report_audio",
    "drop", "command_line", "given", "trainings", "external",
    "external_command", "protocol", "protocol_training",
)  # fmt: skip


def what_counts(asked: Asked) -> dict[str, object]:
    """Remembered part of a run's options."""
    lists = {name: [*asked.words(name)] for name in LISTS}
    lists |= {name: ["true"] if asked.flag(name) else [] for name in FLAGS}
    trainings = asked.number("trainings", 0)
    return {"lists": lists, "trainings": trainings, "common": asked.without(FREE)}


def widen(asked: Asked) -> tuple[Asked, list[str]]:
    """Options to show: those given, merged with those of finished runs that differ only in lists;
    and messages for the log. UserError for a word of --drop that is not remembered, or named."""
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
    known |= {name for name in FLAGS if lists[name]} | {"all", "trainings"}
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
        if kept := sorted(drop & {*mine, *([name] if mine and name in FLAGS else ())}):
            raise UserError(f"--drop: {kept[0]} is in this run (--{name}); take it out of one")
        more = [word for word in lists[name] if word not in mine and not drop & {word, name, "all"}]
        if more:
            wider[name] = " ".join([*mine, *more])
    trainings = earlier.get("trainings", 0)
    if trainings > asked.number("trainings", 0) and not drop & {"trainings", "all"}:
        wider["trainings"] = str(trainings)
    if differ and wider:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in differ)
        return asked, [f"not in the report: what earlier runs measured with another {options}"]
    return asked.changed(wider), []


# ---- Inputs of the tables and the report of run.sh.

DONE = ".done"


def plan_report(own: Recipe, attacks: Attacks, utility: Utility) -> list[str]:
    """Plan tables and report, beside the steps of this run; returns folders of figures that were
    made before and are out of date.

    attacks, utility: those shown, which may be more than this run makes; what it does not make is
    shown where it is up to date.
    """
    shown, made = attacks.recipe, own.tables.every_out()
    rows = {row.out: row for rows in shown.tables.rows.values() for row in rows}
    known: dict[Path, bool] = {}
    stale: list[str] = []

    def keeps(folder: str, of: Labels) -> bool:
        stage, mark = (UTILITY, DONE) if of.family == Family.UTILITY else (MEASURE, "")
        if folder in made:
            return own.asked.runs(stage) or Path(folder, mark).exists()
        if not Path(folder, DONE).is_file():
            return False
        current = is_current(Path(folder), known)
        if of.evaluator == EVERYBODY:  # of all attackers, some of whom --drop may have taken out
            read, row = (read_stamp(Path(folder)) or {}).get("inputs", {}), rows[folder].values
            current = current and read.keys() <= {row["utt2spk"], *row["lists"]}
        stale.extend([] if current else [folder])
        return current

    place = _order(attacks)
    privacy = sorted(item for item in shown.labels.items() if item[1].family != Family.UTILITY)
    every = dict(privacy) | shown.labels
    ordered = sorted(every, key=lambda folder: place(every[folder]))
    figures = dict.fromkeys(folder for folder in ordered if keeps(folder, every[folder]))
    words: list[str] = []
    scored = shown.tables.rows["metrics"]
    for row in sorted(scored, key=lambda row: place(shown.labels[row.out])[0]):
        if shown.labels[row.out].family == Family.VERIFICATION and row.out in figures:
            trials, scores = row.values["lists"][-2:]
            words += ["--attack", row.out, trials, str(Path(scores).parent)]
    has = {ORIGINAL, *(shown.labels[folder].system for folder in figures)}
    has |= {s for s in utility.systems if f"data/{shown.sets[-1]}_{s}" in made}
    systems = [system for system in utility.everything if system in has]
    for system, name in product(systems, shown.sets[1:]):
        protected = f"data/{name}_{system}"  # not of lists that only other systems have
        there = protected in made or Path(protected, "conf.json").is_file()
        if system != ORIGINAL and there:
            words += ["--speech", system, f"data/{name}", protected]
    if not own.asked.flag("report_audio"):
        words += ["--clips", "0"]
    words += [word for one in shown.evaluators if one.again
              for word in ("--trained-again", one.title, one.again)]  # fmt: skip
    results = own.step(
        "results", "exp/results", options=words, figures=repeated("--figures", figures)
    )
    own.step("report", "exp/report", results=results)
    return stale


def _order(attacks: Attacks) -> Callable[[Labels], tuple[int, ...]]:
    """Place of figures among those of the results: of each evaluator and list, then of what is
    fused or chosen, then of utility, as planned."""
    recipe = attacks.recipe
    titles = [evaluator.title for evaluator in recipe.evaluators]
    lists = [*product((*titles, *recipe.fused), recipe.genders)]
    lists += [*product([EVERYBODY], ("", *recipe.genders)), *product(titles, [""])]
    systems = [ORIGINAL, *attacks.systems]

    def place(of: Labels) -> tuple[int, ...]:
        if of.family == Family.UTILITY:
            return (len(lists),)
        at = lists.index((of.evaluator, of.gender))
        return (at, of.family == Family.CALIBRATION, systems.index(of.system))

    return place


# ---- What is measured of people: their attributes, by group, and among ever more candidates.


class People:
    """Figures beside those of each list."""

    def __init__(self, attacks: Attacks) -> None:
        self.attacks, self.recipe = attacks, attacks.recipe

    def plan(self) -> None:
        """Plan everything; after the attacks, whose x-vectors and scores it takes."""
        aged = Path("data", self.recipe.trials[0], "spk2age").is_file()
        if aged or len(self.recipe.genders) > 1 or MIXED in self.recipe.genders:
            self._group()
            self._infer()
        for one in self.attacks.all:
            if self._in_crowd(one):
                self._crowd(one)

    def _figures(self, of: Labels, **values: Any) -> None:
        split = of._replace(split=self.recipe.asked["evaluation"], gender="")
        self.recipe.figures(of.family, split, **values)

    def _group(self) -> None:
        """Plan the strongest attacker on each system by group of people."""
        found: dict[str, dict[str, list[Listed]]] = {}
        for one in self.attacks.every:
            if one.trials in self.recipe.trials:  # not of mixed lists beside those of each sex
                of = found.setdefault(one.attack.system, {})
                of.setdefault(f"data/{one.trials}", []).append(one)
        for system, lists in found.items():
            words = [w for data in lists for w in ("--listed", f"{data}/trials", data)]
            names = [
                {(one.attack.attacker, one.tells.title) for one in own} for own in lists.values()
            ]
            of_each = set.intersection(*names)  # not who earlier attacked one list of several
            for one in chain.from_iterable(lists.values()):
                who = f"{one.attack.attacker}.{one.tells.title}"
                if (one.attack.attacker, one.tells.title) not in of_each:
                    continue
                for n, run in enumerate((one, *self.attacks.further_runs(one))):
                    words += ["--scores", who, str(n), run.scores]
            of_all = Labels("", "", system, Family.GROUPS, "", EVERYBODY, "-")
            self._figures(of_all, lists=words)

    def _infer(self) -> None:
        """Plan inference of sex and age by an attacker who learns from the training set as it is,
        and by one who learns from it as protected by an attacker who trains."""
        recipe, train = self.recipe, self.recipe.train
        for encoder in dict.fromkeys(one.encoder for one in recipe.evaluators):
            made = f"{encoder.xvectors}/{train}" in recipe.tables.every_out()
            costly = encoder.kind.made_of or bool(encoder.given or encoder.backend)
            costly = costly or not encoder.kind.compared
            if encoder.kind.counts or (costly and not made):
                continue  # vectors of the training set that nobody else needs, or are not there
            attacks = [one for one in self.attacks.all if one.tells.encoder == encoder]
            learnt = [(ORIGINAL, "unprotected", train)]
            learnt += [(system, "ignorant", train) for system in self.attacks.systems]
            learnt += [
                (one.attack.system, "semi_informed_backend", one.hears.training)
                for one in attacks
                if one.hears.training and not one.attack.parts.knows_target
            ]
            for system, attacker, training in dict.fromkeys(learnt):
                if system in CONTROLS[1:]:
                    continue
                heard = [as_protected(name, system) for name in recipe.trials]
                condition = ({"unprotected": UNPROTECTED} | ATTACKERS)[attacker].condition
                title, at = attacks[0].tells.title, encoder.xvectors
                self._figures(
                    Labels("", "", system, Family.INFERENCE, attacker, title, condition),
                    xvectors=recipe.session_xvectors(encoder, training), data=f"data/{training}",
                    lists=[w for name in heard
                           for w in ("--trials", f"{at}/{name}", f"data/{name}")],
                )  # fmt: skip

    def _in_crowd(self, one: Listed) -> bool:
        """Whether an attack is also made among the distractors: not by those who have learnt from
        some of these, nor without x-vectors of each recording."""
        names, encoder = self.recipe.asked.words("distractors"), one.tells.encoder
        learnt = encoder.conf and self.recipe.train in names
        drawn = one.attack.level == "-" and one.how != ALIGNED
        return bool(names and drawn and not learnt and encoder.kind.compared)

    def _crowd(self, one: Listed) -> None:
        """Plan legal linkability and naming with the distractors among the candidates."""
        recipe, xvectors = self.recipe, one.tells.encoder.xvectors
        others = recipe.distractors(one.attack.protection[0])
        if not others:
            return
        words = ["--trials", f"{xvectors}/{one.trial}", f"data/{one.trial}"]
        for of, name in zip(recipe.asked.words("distractors"), others, strict=True):
            if of in (recipe.train, recipe.learnt.name):
                recipe.session_xvectors(one.tells.encoder, name)
            elif f"{xvectors}/{name}" not in recipe.tables.every_out():  # as of a pool, by sessions
                recipe.xvectors(one.tells.encoder, name)
            words += ["--other", f"{xvectors}/{name}", f"data/{name}"]
        recipe.figures_of_encoder(
            Family.CROWD, one.labels(Family.CROWD), enrol=f"{xvectors}/{one.enrol}",
            enrol_data=f"data/{one.enrol}", lists=words,
        )  # fmt: skip


# ---- Plan of run.sh.

SETS = "--sets"  # of a prepare.sh that can make some sets alone


def plan_run(asked: Asked) -> Planned:
    """Plan run.sh with these options."""
    asked, lacking = take_available(take_external(asked))
    shown, notes = widen(asked)
    before: list[Listed] = []
    if shown is not asked:
        try:
            _, all_attacks, all_utility = _plan_all(shown)
            before = [*all_attacks.all, *all_attacks.fused]
        except UserError as error:  # such as missing settings of a system
            notes.append(f"not in the report: what earlier runs measured: {error}")
            shown = asked
    recipe, attacks, utility = _plan_all(asked, before)
    if shown is asked:
        all_attacks, all_utility = attacks, utility
    recipe.notes += lacking
    if asked.get("protocol") and attacks.plan.skipped:
        raise UserError(f"--protocol {asked['protocol']}: cannot run {attacks.plan.skipped[0]}")
    if asked.runs(UTILITY):
        utility.check_transcripts()
    if not asked.runs(PREPARE):
        recipe.need_given()
    if joined := recipe.learnt.joined:
        recipe.step("joined_sets", f"data/{recipe.learnt.name}", sources=joined)
    lacking = [*_prepare(recipe), *_no_attack(asked, attacks)]
    made = {name for row in recipe.tables.rows["prepare"] for name in row.outs}
    for name in dict.fromkeys((recipe.train, recipe.pool, recipe.learnt.name, *recipe.sets)):
        if name != recipe.train or f"data/{name}" in made:
            recipe.step("audio", f"exp/audio/{name}", name)
    stale = plan_report(recipe, all_attacks, all_utility)
    notes += [
        f"not in the report: {folder}, made before, is out of date; name what makes it"
        for folder in dict.fromkeys(stale)
    ]
    alike = defaultdict(list)  # what is the same of several systems is said once
    for one in attacks.plan.skipped:
        alike[one._replace(system="")].append(one.system)
    every = (one._replace(system=", ".join(systems)) for one, systems in alike.items())
    notes += [f"attack skipped: {one}" for one in every]
    said = [*dict.fromkeys((*recipe.notes, *notes))]
    return Planned(recipe.tables, what_counts(shown), said, lacking)


def _no_attack(asked: Asked, attacks: Attacks) -> list[str]:
    """Attacks that the command names and that no evaluator can make, each with the reason for one.
    UserError where an attacker could attack no system at all."""
    if options_given(asked).isdisjoint(("attackers", "protocol")):
        return []
    run = {(attack.attacker, attack.system) for attack in attacks.plan.attacks}
    lacking: dict[str, list[str]] = {}
    systems = asked.words("systems")  # and not the controls
    for name, system in product(attacks.attackers, systems):
        if (name, system) not in run:
            why = next(one for one in attacks.plan.skipped if one[:2] == (name, system))
            lacking.setdefault(name, []).append(f"--attackers: {why}")
    nowhere = [whys[0] for whys in lacking.values() if len(whys) == len(systems)]
    if nowhere:
        raise UserError("\n".join(nowhere))
    return [why for whys in lacking.values() for why in whys]


def take_available(asked: Asked) -> tuple[Asked, list[str]]:
    """Options without what a corpus's defaults name and what needs a package that is not installed,
    and a message for each; what the command or a protocol names stays. ecapa_mini takes the place
    of an evaluator of models/."""
    kept, notes = {}, []
    own = {*options_given(asked), *(("evaluators",) if asked.get("protocol") else ())}
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
        return MOONSHINE if any(need.startswith("model:") for need in needs) else ""  # its content
    if option == "asr":
        kind, model = find_recogniser(word)
        return "" if model else kind.package
    return kind_of(word.rpartition("/")[0]).package


def _plan_all(asked: Asked, before: Sequence[Listed] = ()) -> tuple[Recipe, Attacks, Utility]:
    """Plan stages 2 to 10. before: attacks of earlier runs."""
    recipe = Recipe.make(asked)
    asked.number("draws")
    asked.number("informed_draws")
    named = asked.words("systems")
    systems = [*dict.fromkeys((*named, *_controls(recipe)))]
    attacks = Attacks(recipe, systems, before)
    utility = Utility(recipe, named)
    for evaluator in recipe.evaluators:
        recipe.encoder(evaluator.encoder)
        recipe.evaluator(evaluator)
    for system in systems:
        recipe.needs(system)
        recipe.notes += recipe.found(system).notes
        for name in recipe.sets_of(system):
            recipe.protect(system, name, system)
        for name, draw in recipe.drawn_again(system):
            recipe.protect(system, name, f"{system}_draw{draw}", "--draw", str(draw))
    attacks.learn()
    attacks.hear()
    attacks.measure()
    People(attacks).plan()
    utility.plan()
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
    sets = [*recipe.sets]
    may = dict.fromkeys((*(recipe.trial_set(gender) for gender in ("f", "m", MIXED)), *also))
    program = Path("prepare.sh")
    text = program.read_text(encoding="utf-8") if program.is_file() else ""
    text, _, does = text.partition("parse_options.sh")  # above it stand its options
    options += _training_of_protocol(asked, corpus, options, text)
    words = [*(("--corpus", corpus) if corpus else ()), *options]
    parts = {"": [recipe.train, *sets]}
    if re.search("^sets=", text, re.MULTILINE):
        parts = {"evaluation": sets, **({"train": [recipe.train]} if _trains(recipe) else {})}
    for part, (first, *more) in parts.items():
        maybe = [one for one in may if one not in sets] if part != "train" else []
        recipe.step(
            "prepare", f"data/{first}", also=[f"data/{one}" for one in more],
            maybe=[f"data/{one}" for one in maybe],  # of one not asked for
            options=[*words, *((SETS, part) if part else ())],
        )  # fmt: skip
    looks = asked.get("dry_run", "false") != "false" and not asked.flag("download")
    can = re.search("^(make_work|end_of_look)$", does, re.MULTILINE)
    return _look(words) if can and looks and asked.runs(PREPARE) else []


def _look(options: Sequence[str]) -> list[str]:
    """Have prepare.sh look at the corpus; returns what it says of a wrong one."""
    words, looks = ["./prepare.sh", *options], {**os.environ, "LOOK_ONLY": "true"}
    done = subprocess.run(words, env=looks, stderr=subprocess.PIPE, text=True)  # no step of a plan
    return done.stderr.splitlines()[-1:] if done.returncode else []


def _trains(recipe: Recipe) -> bool:
    """Whether the training set is read by a planned step, or was asked for: by its name, or as
    nothing but the corpus is to be made."""
    every = recipe.tables.rows.values()
    values = (value for rows in every for row in rows for value in row.values.values())
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
    made = asked.flag("download") or not asked.runs(PREPARE)
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
    with refusing("--prepare-options: {}; quotes stand in pairs", ValueError):
        corpus, options = asked["corpus"], shlex.split(asked["prepare_options"])
    named = options_given(asked)
    sets = (Path("data", name) for name in (recipe.sets[0], recipe.train))
    words = next(filter(None, map(made_by, sets)), [])[3:]  # after ./prepare.sh --seed SEED
    words = words[:-2] if SETS in words[-2:-1] else words
    known, words = (words[1], words[2:]) if words[:1] == ["--corpus"] else ("", words)
    told = []
    if not corpus and "corpus" not in named and known:
        corpus = known
        told += ["--corpus", shlex.quote(corpus)]
    if corpus == known and not options and "prepare_options" not in named and words:
        options = words
        told.append(f"--prepare-options={shlex.quote(shlex.join(words))}")
    if told and asked.runs(PREPARE):
        recipe.notes.append(f"as stage 0 was finished before: {' '.join(told)}")
    return corpus, options
