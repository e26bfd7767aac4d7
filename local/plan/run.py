# SPDX-License-Identifier: Apache-2.0
"""Plan of run.sh."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from local.plan.attacks import DRAW, Attacks, check_systems
from local.plan.external import take_external
from local.plan.needs import Recipe
from local.plan.options import Asked, given
from local.plan.remembered import what_counts, widen
from local.plan.results import Results
from local.plan.tables import Tables
from local.plan.utility import Utility
from local.protocols.trials import MIXED
from utils.cli import UserError
from utils.stamps import made_by

PREPARE, AUDIO, ENCODERS, XVECTORS, SYSTEMS, PROTECT = 0, 1, 2, 3, 4, 5
LEARN, HEAR, SCORE, MEASURE, UTILITY, RESULTS = 6, 7, 8, 9, 10, 11


@dataclass(frozen=True)
class Planned:
    """Tables of all stages, options to remember after the last one, and messages for the log."""

    tables: Tables
    remembered: dict[str, object]
    notes: list[str]


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
        audio = f"exp/audio/{name}"
        recipe.tables.over("audio", AUDIO, f"data/{name}", audio, "%check_audio", "%data", "%out")
    own = recipe.tables.every_out()
    shown, notes = widen(asked)
    all_attacks, all_utility = attacks, utility
    if shown is not asked:
        try:
            _, all_attacks, all_utility = _plan_all(shown)
        except UserError as error:  # such as missing settings of a system
            notes.append(f"not in the report: what earlier runs measured: {error}")
            shown = asked
    results = Results(all_attacks, all_utility, own)
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
    out = f"data/{recipe.train}"
    sets = dict.fromkeys((*recipe.sets, *asked["also_prepared"].split()))
    also = [word for one in sets if f"data/{one}" != out for word in ("--also", f"data/{one}")]
    for gender in ("f", "m", MIXED):  # also of one not asked for
        one = f"{name}_trials_{gender}"
        if one not in sets:
            also += ["--maybe", f"data/{one}"]
    recipe.tables.add(
        "prepare", PREPARE, out, "%prepare", "--nj", asked["nj"], "--download", asked["download"],
        "--seed", asked["seed"], *(("--corpus", corpus) if corpus else ()), *options, also=also,
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
