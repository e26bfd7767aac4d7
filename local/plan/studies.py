"""Plans of the studies beside run.sh: nist.sh, whitebox.sh, generators.sh.

They use corpus and encoders of run.sh, and make missing ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.plan.attacks import (
    DRAW,
    ORIGINAL,
    Listed,
    Utility,
    check_systems,
    list_attack,
)
from local.plan.needs import Recipe
from local.plan.options import (
    SIMILARITY,
    VERIFICATION,
    Asked,
    Evaluator,
    Labels,
    find_evaluator,
    need_folders,
    read_external,
)
from local.protocols.attackers import Attempt
from steps.anonymisers.registry import describe_system
from utils.cli import UserError
from utils.recipe import Planned
from utils.settings import read_settings, write_settings


def _planned(recipe: Recipe) -> Planned:
    return Planned(recipe.tables, {}, recipe.notes)


def _begin(asked: Asked) -> Recipe:
    """Recipe of a study; UserError where run.sh has not made the corpus."""
    recipe = Recipe.make(asked)
    channels = [one.word for one in recipe.evaluators if one.encoder.is_channel]
    for word in (*channels, *recipe.fused):
        raise UserError(f"--evaluators: {word} is for run.sh; this study is of voices")
    recipe.need_given()
    need_folders([f"data/{name}" for name in (recipe.train, *recipe.sets)])
    return recipe


def _write_system(conf: Path, settings: dict[str, object]) -> None:
    """Write the settings of a system. UserError, and no file, for impossible ones."""
    write_settings(conf, settings)
    try:
        describe_system(conf)
    except UserError:
        conf.unlink()
        raise


# nist.sh: Seo et al. 2025.

WITH_PROFILES = ("knn_vc",)  # anonymisers with settings `profiles` and `profile`


def _write_profile(of: str, conf: Path, profile: str, profiles: str) -> int:
    """Write pseudo-profile `profile`, from 1, of a system; returns the number of the draw.

    Systems with profiles get them in their settings; for others a profile is a draw.
    """
    number, n = int(profile), int(profiles)
    if number > n:
        raise UserError(f"--tested {number}: from 1 to {n}")
    settings, draw = read_settings(of), number - 1
    if settings.get("anonymiser") in WITH_PROFILES:
        settings, draw = {**settings, "profiles": n, "profile": number}, 0
    _write_system(conf, settings)
    return draw


@dataclass(frozen=True)
class Studied:
    """System of nist.sh. systems: the name of each existing profile, by its number."""

    name: str
    systems: dict[str, str]


class Nist:
    """Plan of nist.sh: profiles of systems, and of externally protected speech."""

    def __init__(self, asked: Asked) -> None:
        self.tested = asked.numbers("tested")
        self.recipe = recipe = _begin(asked)
        trials = " ".join(f"data/{name}" for name in recipe.trials)
        self.sources = (asked["sources"] or trials).split()
        need_folders(self.sources)
        self.set = f"{asked['evaluation']}_nist"
        recipe.sets = (self.set,)  # the protected set here
        self.out = f"exp/nist/{self.set}"
        self.draws: dict[str, str] = {}
        self.folder_of: dict[str, str] = {}
        own = [self._vary(name) for name in asked.words("systems")]
        self.studied = [*own, *self._external([one.name for one in own])]
        if not self.studied:
            raise UserError("nothing to study: give --systems or --external")
        self.own = own

    def _vary(self, name: str) -> Studied:
        """Profiles of a system. A system that is not random has one."""
        asked, first = self.recipe.asked, self.tested[0]
        check_systems([name])
        systems = {}
        for profile in self.tested:
            system, conf = f"{name}_p{profile}", Path(self.out, "conf", f"{name}_p{profile}.yaml")
            draw = _write_profile(f"conf/systems/{name}.yaml", conf, profile, asked["profiles"])
            self.recipe.conf_of[system], self.draws[system] = str(conf), str(draw)
            protected = Path("data", f"{self.set}_{name}_p{first}", "conf.json")
            if profile == first or self.recipe.is_random(f"{name}_p{first}"):
                systems[profile] = system
            elif protected.is_file():
                self.recipe.notes.append(
                    f"{name} draws nothing, so there is one profile: no profile {profile}, no "
                    "cross-profile trials"
                )
        return Studied(name, systems)

    def _external(self, taken: Sequence[str]) -> list[Studied]:
        """Externally protected speech; UserError for unusable words."""
        studied: list[Studied] = []
        tested = self.recipe.asked["tested"]
        for one in read_external(self.recipe.asked["external"], taken):
            option = f"--external '{one.word}'"
            if one.options:
                raise UserError(f"{option}: <name>=<data directory>[,<data directory>] is expected")
            if len(one.folders) > len(self.tested):
                raise UserError(
                    f'{option}: more directories than profiles tested (--tested "{tested}")'
                )
            systems: dict[str, str] = {}
            for profile, folder in zip(self.tested, one.folders, strict=False):
                if not Path(folder).is_dir():
                    raise UserError(
                        f"{option}: there is no folder '{folder}'; give the data directory of "
                        f"profile {profile}"
                    )
                systems[profile] = f"{one.name}_p{profile}"
                self.folder_of[systems[profile]] = folder
            studied.append(Studied(one.name, systems))
        return studied

    def plan(self) -> Planned:
        """Plan segments and lists; needs; speech; x-vectors; scores and figures; tables."""
        recipe, asked, tables = self.recipe, self.recipe.asked, self.recipe.tables
        data = f"data/{self.set}"
        tables.add("segments", 0, data, sources=self.sources)
        options = ["--same-gender", asked["same_gender"], "--training", f"data/{recipe.train}"]
        if recipe.pool != recipe.train:
            options += ["--training", f"data/{recipe.pool}"]
        for name in ("sessions", "groups", "durations"):
            options += [f"--{name}", asked[name]] if asked[name] else []
        trials = f"{self.out}/trials"
        also = [f"{trials}/{one}" for one in ("trial1", "trial2", "cross")]
        tables.add("trials", 0, trials, also=also, options=options, data=data)
        for evaluator in recipe.evaluators:
            recipe.evaluator(1, evaluator, encoder_stage=1)
        for one in self.own:
            recipe.needs(1, one.systems[self.tested[0]])
            for system in one.systems.values():
                out = f"{self.set}_{system}"
                recipe.protect("protected", 2, system, self.set, out, "--draw", self.draws[system])
        for system, folder in self.folder_of.items():
            out = f"data/{self.set}_{system}"
            tables.add("external", 2, out, data=data, folder=folder)
        folders: list[str] = []
        for evaluator in recipe.evaluators:
            folders += self._evaluate(evaluator)
        tables.add("results", 5, f"{self.out}/results", figures=recipe.given(folders))
        return _planned(recipe)

    def _evaluate(self, evaluator: Evaluator) -> list[str]:
        """Plan all lists with an evaluator; returns the folders of the figures."""
        recipe, name, xvectors = self.recipe, self.set, evaluator.encoder.xvectors
        of_set = f"data/{name}/utt2spk"
        plain = Labels(name, "", ORIGINAL, "trial2", "", evaluator.title, "OO")
        folders = [self._compare(evaluator, plain, of_set, name, name)]
        for one in self.studied:
            joined = []
            for place, (profile, system) in enumerate(one.systems.items(), start=1):
                mine = f"{name}_{system}"
                protected = recipe.xvectors(3, evaluator.encoder, mine)
                joined.append(f"p{place}={protected}")
                of = plain._replace(system=one.name, attacker=f"p{profile}")
                both = [f"{folder}/xvector.scp" for folder in (f"{xvectors}/{name}", protected)]
                folders.append(recipe.figures(
                    "metrics", 4, of._replace(family="leakage", condition="OP"),
                    f"{self.out}/metrics", kind="leakage", utt2spk=of_set, lists=both,
                ))  # fmt: skip
                for trial, condition, enrol in (("trial1", "OP", name), ("trial2", "PP", mine)):
                    of = of._replace(family=trial, condition=condition)
                    folders.append(self._compare(evaluator, of, of_set, enrol, mine))
            if len(joined) > 1:
                pair = f"{name}_{one.name}_cross"
                out = f"{xvectors}/{pair}"
                recipe.tables.add("joined", 3, out, parts=joined[:2])
                speakers = f"{self.out}/trials/cross/utt2spk"
                of = plain._replace(system=one.name, family="cross", condition="PP")
                folders.append(self._compare(evaluator, of, speakers, pair, pair))
        return folders

    def _compare(
        self, evaluator: Evaluator, of: Labels, utt2spk: str, enrol: str, trial: str
    ) -> str:
        """Plan scores and verification figures of a list, which is their family, and a profile,
        their attacker; returns the folder of the figures."""
        recipe, trials = self.recipe, f"{self.out}/trials/{of.family}/trials"
        xvectors, scores = evaluator.encoder.xvectors, f"{self.out}/scores/{of.path}"
        recipe.tables.add(
            "scores", 4, scores, backend=evaluator.scorer, asnorm=evaluator.asnorm,
            enrol=f"{xvectors}/{enrol}/xvector.scp", trial=f"{xvectors}/{trial}/xvector.scp",
            trials=trials,
        )  # fmt: skip
        return recipe.figures(
            "metrics", 4, of, f"{self.out}/metrics", kind=VERIFICATION, utt2spk=utt2spk,
            lists=[trials, f"{scores}/scores"],
        )  # fmt: skip


# whitebox.sh: Champion et al. 2021.

BASES = "const|bn_const"  # conf/systems/<base>_01.yaml is target 1


def _why_untrained(evaluator: Evaluator, how: Sequence[str]) -> str:
    """Reason why an evaluator cannot be trained on a target; empty: there is none."""
    for word in how:
        if word == "backend" and not evaluator.trained:
            return (
                f"--how backend: the back end {evaluator.backend} of {evaluator.word} has nothing "
                "to train"
            )
        if word != "backend" and not evaluator.encoder.conf:
            return (
                f"--how {word}: {evaluator.word} comes trained; its back end can be (--how backend)"
            )
    return ""


def _targets(recipe: Recipe, base: str, out: str, series: Sequence[str]) -> list[str]:
    """Names of systems: target NN of a series, <base>_NN_of_<targets>[_f0]."""
    targets, systems = int(recipe.asked["targets"]), []
    check_systems([f"{base}_01"])
    for kind in series:
        suffix = "" if kind == "none" else "_f0"
        for number in range(1, targets + 1):
            name = f"{base}_{number:0{max(2, len(str(targets)))}}_of_{targets}{suffix}"
            conf = Path(out, "conf", f"{name}.yaml")
            settings = read_settings(f"conf/systems/{base}_01.yaml")
            generator = settings.get("generator")
            settings["generator"] = {
                **(generator if isinstance(generator, dict) else {}),
                "target": number,
                "clusters": (targets + 1) // 2,
            }
            _write_system(conf, {**settings, "f0": kind})
            recipe.conf_of[name] = str(conf)
            systems.append(name)
    return systems


def plan_whitebox(asked: Asked) -> Planned:
    """Plan whitebox.sh: everybody speaks with one constant voice, which the attacker knows."""
    asked.numbers("targets")
    series = asked.choice("f0", "none|linear")
    how = asked.choice("how", "backend|finetuned|scratch")
    (base,) = asked.choice("base", BASES)
    asked.number("bins")
    recipe = _begin(asked)
    left_out = {evaluator.word: _why_untrained(evaluator, how) for evaluator in recipe.evaluators}
    kept = tuple(evaluator for evaluator in recipe.evaluators if not left_out[evaluator.word])
    whys = [why for why in left_out.values() if why]
    if not kept:
        raise UserError(f"no evaluator is left to train: {whys[-1]}")
    recipe.notes += [f"evaluator left out: {why}" for why in whys]
    recipe.evaluators, out = kept, f"exp/whitebox/{asked['evaluation']}_{asked['targets']}"
    out += "" if base == "const" else f"_{base}"
    systems = _targets(recipe, base, out, series)
    utility = Utility(recipe, systems, 6)
    for evaluator in kept:
        recipe.evaluator(0, evaluator, encoder_stage=0)
    for system in systems:
        recipe.needs_for(0, system, recipe.train)
    listed: list[Listed] = []
    for system in systems:
        for name in recipe.sets:
            recipe.protect("protected", 1, system, name, f"{name}_{system}")
        recipe.protect_training(1, system, "const")
    attackers = ["white_box" if word == "scratch" else f"white_box_{word}" for word in how]
    for evaluator in kept:
        for gender in recipe.genders:
            unprotected = Attempt(evaluator.word, ORIGINAL, "unprotected", "-")
            attacks = [Attempt(evaluator.word, s, a, "const") for a in attackers for s in systems]
            listed += [
                list_attack(recipe, attack, evaluator, gender) for attack in (unprotected, *attacks)
            ]
    for one in listed:
        _attack_target(recipe, one, out)
    utility.plan()
    _show_targets(utility, listed, out)
    return _planned(recipe)


def _attack_target(recipe: Recipe, one: Listed, out: str) -> None:
    """Plan stages 2 to 5 of an attack: encoder, x-vectors, back end, scores and figures."""
    if one.attack.system != ORIGINAL:
        recipe.informed_encoder(2, one.hears)
        for name in recipe.sets:
            recipe.xvectors(3, one.hears.encoder, f"{name}_{one.attack.system}")
        if one.hears.trained:
            recipe.session_xvectors(3, one.hears.encoder, one.hears.training)
        recipe.informed_backend(4, one.hears)
    scores = one.score(5, folder=f"{out}/scores")
    recipe.figures(
        "metrics", 5, one.labels(VERIFICATION), f"{out}/metrics",
        utt2spk=f"data/{one.trials}/utt2spk", trials=f"data/{one.trials}/trials",
        scores=f"{scores}/scores",
    )  # fmt: skip


def _show_targets(utility: Utility, listed: Sequence[Listed], out: str) -> None:
    """Plan stage 7: tables, and the radars over targets."""
    recipe, tables, first = utility.recipe, utility.recipe.tables, utility.trials[0]
    gather: list[str] = []
    tell: list[str] = []
    for system in utility.systems:
        protected = f"data/{first}_{system}"
        gather += ["--speech", system, f"data/{first}", protected]
        tell += ["--target", system, protected]
    for one in listed:
        paths = (f"{out}/metrics/{one.path}", f"data/{one.trials}/trials")
        gather += ["--attack", *paths, f"{out}/scores/{one.path}"]
    folders = [f"{out}/metrics/{one.path}" for one in listed]
    if recipe.asked.flag("prosody"):
        folders += [folder for system in utility.systems for folder in utility.prosody_of(system)]
    for word in utility.asr:
        for system in utility.everything:
            made = utility.measured(system, word)
            folders += [folder for folder in made if Path(folder, ".done").is_file()]
    results = tables.add(
        "results", 7, f"{out}/results", options=gather, figures=recipe.given(folders),
        targets=tell,
    )  # fmt: skip
    tables.add("report", 7, f"{out}/report", results=results)


# generators.sh: Liu et al. 2025, without speech.


class Generators:
    """Generators in the space of the encoder of the voices."""

    def __init__(self, asked: Asked) -> None:
        self.names = asked.words("generators")
        check_systems(self.names)
        self.recipe = _begin(asked)
        self.voice = self.recipe.voice

    def make(self, stage: int) -> None:
        """Plan x-vectors, the pool of speakers, and needs of generators."""
        recipe = self.recipe
        recipe.encoder(stage, self.voice)
        for name in recipe.sets:
            recipe.xvectors(stage, self.voice, name)
        recipe.speakers(stage, self.voice, recipe.pool)
        for name in self.names:
            for need in recipe.describe(name).needs:
                if need == "backend" or need.startswith("generator:"):
                    recipe.need(stage, need)

    def sources(self) -> list[str]:
        """Options with the x-vectors of the protected speakers."""
        words = []
        for name in self.recipe.sets:
            words += ["--sources", f"{self.voice.xvectors}/{name}", f"data/{name}"]
        return words

    def resources(self, generator: str) -> list[str]:
        """Options of programs that use a generator without speech."""
        recipe, voice = self.recipe, self.voice
        words = ["--seed", recipe.asked["seed"]]
        words += ["--pool", f"{voice.xvectors}/{recipe.pool}_speakers"]
        words += ["--pool-data", f"data/{recipe.pool}", *self.sources()]
        for need in recipe.describe(generator).needs:
            if need == "backend":
                words += ["--pool-backend", f"exp/backends/{voice.name}"]
            elif need.startswith("generator:"):
                words += ["--generator", self._network(need)]
        return words

    def _network(self, need: str) -> str:
        return f"exp/generators/{self.voice.name}/{need.partition(':')[2]}"

    def network(self, generator: str) -> str:
        """Folder of a generator whose voices depend only on an index; else an empty string."""
        for need in self.recipe.describe(generator).needs:
            if need.startswith(("generator:wgan", "generator:idmap")):
                return self._network(need)
        return ""


def plan_generators(asked: Asked) -> Planned:
    """Plan generators.sh: generators compared in embedding space."""
    sizes = asked.sizes()
    asked.number("vectors")
    study = Generators(asked)
    study.make(0)
    recipe, tables, voice = study.recipe, study.recipe.tables, study.voice
    out = f"exp/generators/{voice.name}"
    cosine = find_evaluator(f"{voice.word}/cosine_raw", asked["cohort_size"])
    lists: list[str] = []
    for gender in recipe.genders:
        trials = f"data/{asked['evaluation']}_trials_{gender}"
        scores = f"exp/scores/original/unprotected.{cosine.label}/OO/{asked['evaluation']}_{gender}"
        tables.add(
            "scores", 1, scores, enrol=f"{voice.xvectors}/{recipe.sets[0]}",
            trial=f"{voice.xvectors}/{asked['evaluation']}_trials_{gender}",
            trials=f"{trials}/trials",
        )  # fmt: skip
        lists += ["--list", f"{trials}/trials", f"{scores}/scores"]
    threshold = f"{out}/threshold/threshold.json"
    tables.add("threshold", 1, f"{out}/threshold", lists=lists)
    how = ["--sizes", *sizes, "--threshold", threshold, "--"]
    real = tables.add(
        "capacity", 2, f"{out}/capacity/real", options=how,
        of=f"{voice.xvectors}/{recipe.pool}_speakers",
    )  # fmt: skip
    gather = ["--encoder", voice.title]
    for name in study.names:
        resources, network, conf = study.resources(name), study.network(name), recipe.conf(name)
        capacity, time = f"{out}/capacity/{name}", f"{out}/time/{name}"
        options = how if network else [*resources, *how]
        tables.add("capacity", 2, capacity, options=options, of=network or conf)
        tables.add("time", 3, time, options=resources, conf=conf)
        gather += ["--generator", name, capacity, time]
        gather += _speech(study, name, out)
    tables.add("results", 4, f"{out}/results", options=gather, threshold=threshold, real=real)
    return _planned(recipe)


def _speech(study: Generators, system: str, out: str) -> list[str]:
    """Plan figures of speech that run.sh has measured; for both genders together, too."""
    recipe, name, words = study.recipe, study.recipe.asked["evaluation"], []
    for evaluator in recipe.evaluators:
        both = Labels(name, "", system, SIMILARITY, "", evaluator.title, "OO-OP-PP")
        found = []
        for gender in recipe.genders:
            own = both._replace(split=f"{name}_{gender}", gender=gender)
            if Path(folder := f"exp/metrics/{own.path}", ".done").is_file():
                recipe.labels[folder] = own
                found.append(folder)
        if {"f", "m"} <= {recipe.labels[folder].gender for folder in found}:
            found.append(_pooled(recipe, evaluator, both, out))
            found += _attacked(recipe, evaluator, system, out)
        words += recipe.given(found, "--attacked")
    return words


def _both(recipe: Recipe, out: str) -> str:
    """Plan one list of the trials within each gender."""
    sets = [f"data/{name}" for name in recipe.trials]
    return recipe.tables.add("segments", 4, f"{out}/pooled/data", sources=sets)


def _attacked(recipe: Recipe, evaluator: Evaluator, system: str, out: str) -> list[str]:
    """Plan figures of each attack on both genders together, where run.sh has the scores of both."""
    name, made = recipe.asked["evaluation"], []
    for folder in sorted(Path("exp/scores", system).glob(f"*.{evaluator.label}/*/{name}_f")):
        attacker = folder.parts[-3].removesuffix(f".{evaluator.label}")
        folders = [folder, folder.with_name(f"{name}_m")]
        is_attack = attacker != "similarity" and not attacker.endswith(DRAW)
        if not (is_attack and all((one / ".done").is_file() for one in folders)):
            continue
        data, (scores, *more) = _both(recipe, out), [f"{one}/scores" for one in folders]
        lists = [word for path in more for word in ("--more-scores", path)]
        of = Labels(name, "", system, VERIFICATION, attacker, evaluator.title, folder.parts[-2])
        made.append(recipe.figures(
            "metrics", 4, of, f"{out}/pooled/metrics", kind=VERIFICATION,
            utt2spk=f"{data}/utt2spk", lists=[*lists, f"{data}/trials", scores],
        ))  # fmt: skip
    return made


def _pooled(recipe: Recipe, evaluator: Evaluator, of: Labels, out: str) -> str:
    """Plan similarity of all voices, over both genders as in Liu et al. 2025, Table II."""
    system, tables, of_encoder = of.system, recipe.tables, f"{out}/pooled/{evaluator.encoder.name}"
    trials, data = recipe.trials, _both(recipe, out)

    def join(of: str, tail: str) -> str:
        parts = [f"{evaluator.encoder.xvectors}/{name}{tail}" for name in trials]
        folder = f"{of_encoder}/{of}"
        return tables.add("joined", 4, folder, parts=parts)

    original, protected = join("original", ""), join(system, f"_{system}")
    pairs: list[str] = []
    for condition, rows, columns in (
        ("OO", original, original),
        ("OP", original, protected),
        ("PP", protected, protected),
    ):
        who = "original" if condition == "OO" else system
        folder = f"{out}/pooled/{who}.{evaluator.label}/{condition}"
        backend, asnorm = evaluator.pairing
        tables.add(
            "similarity", 4, folder, backend=backend, asnorm=asnorm,
            utt2spk=f"{data}/utt2spk", rows=rows, columns=columns,
        )  # fmt: skip
        pairs += [f"{folder}/trials", f"{folder}/scores"]
    return recipe.figures(
        "metrics", 4, of, f"{out}/pooled/metrics", kind=SIMILARITY, utt2spk=f"{data}/utt2spk",
        lists=pairs,
    )  # fmt: skip


STUDIES: dict[str, Callable[[Asked], Planned]] = {
    "nist": lambda asked: Nist(asked).plan(),
    "whitebox": plan_whitebox,
    "generators": plan_generators,
}
