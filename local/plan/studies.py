"""Plans of the studies beside run.sh: nist.sh, generators.sh.

They use corpus and encoders of run.sh, and make missing ones.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from local.plan.attacks import matrices, scores_of
from local.plan.evaluators import Evaluator, find_evaluator, is_of_voices
from local.plan.external import Speech, read_external
from local.plan.labels import ORIGINAL, Family, Labels, read_labels
from local.plan.needs import Recipe, as_protected, repeated
from local.plan.options import A_NUMBER, Asked, need_conf, need_folders, options_given
from local.protocols.attackers import ATTACKERS
from steps.anonymisers.registry import describe_system
from steps.speaker.kinds import VOICE
from utils.cli import UserError
from utils.recipe import Planned
from utils.settings import read_settings, write_settings
from utils.stamps import is_current


def _planned(recipe: Recipe) -> Planned:
    return Planned(recipe.tables, {}, [*dict.fromkeys(recipe.notes)])


def _begin(asked: Asked) -> Recipe:
    """Recipe of a study; UserError where run.sh has not made the corpus."""
    if "evaluators" not in options_given(asked):  # the corpus's own, of which run.sh takes all
        voices = [word for word in asked.words("evaluators") if is_of_voices(word)]
        asked = asked.changed({"evaluators": " ".join(voices)})
    recipe = Recipe.make(asked)
    channels = [one.word for one in recipe.evaluators if one.encoder.kind.hears != VOICE]
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


class Nist:
    """Plan of nist.sh: profiles of systems, and of externally protected speech.

    studied: the system of each profile, by its name and number. draws: of the systems that protect
    here; folders: of the speech that others protected.
    """

    def __init__(self, asked: Asked) -> None:
        self.tested = asked.choice("tested", "[1-9][0-9]*", A_NUMBER)
        self.recipe = recipe = _begin(asked)
        self.sources = asked["sources"].split() or [f"data/{name}" for name in recipe.trials]
        need_folders(self.sources)
        self.set = f"{asked['evaluation']}_nist"
        recipe.sets = (self.set,)  # the protected set here
        self.out = f"exp/nist/{self.set}"
        self.draws: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        self.studied = {name: self._vary(name) for name in asked.words("systems")}
        for one in read_external(asked["external"], [*self.studied]):
            self.studied[one.name] = self._take(one)
        if not self.studied:
            raise UserError("nothing to study: give --systems or --external")

    def _vary(self, name: str) -> dict[str, str]:
        """Profiles of a system. Systems with profiles get them in their settings; for others a
        profile is a draw. A system that is not random has one."""
        recipe, n, systems = self.recipe, self.recipe.asked.number("profiles"), dict[str, str]()
        of = need_conf("systems", name)
        for profile in self.tested:
            if int(profile) > n:
                raise UserError(f"--tested {profile}: from 1 to {n}")
            settings, draw = read_settings(of), int(profile) - 1
            if settings.get("anonymiser") in WITH_PROFILES:
                settings, draw = {**settings, "profiles": n, "profile": int(profile)}, 0
            system, first = f"{name}_p{profile}", f"{name}_p{self.tested[0]}"
            conf = Path(self.out, "conf", f"{system}.yaml")
            _write_system(conf, settings)
            recipe.conf_of[system] = str(conf)
            if system == first or recipe.is_random(first):
                systems[profile], self.draws[system] = system, str(draw)
            elif Path("data", f"{self.set}_{first}", "conf.json").is_file():
                recipe.notes.append(
                    f"{name} draws nothing, so there is one profile: no profile {profile}, no "
                    "cross-profile trials"
                )
        return systems

    def _take(self, one: Speech) -> dict[str, str]:
        """Profiles of externally protected speech; UserError for unusable words."""
        option = f"--external '{one.word}'"
        if one.options:
            raise UserError(f"{option}: <name>=<data directory>[,<data directory>] is expected")
        if len(one.folders) > len(self.tested):
            tested = self.recipe.asked["tested"]
            raise UserError(
                f'{option}: more directories than profiles tested (--tested "{tested}")'
            )
        found = dict(zip(self.tested, one.folders, strict=False))
        for profile, folder in found.items():
            if not Path(folder).is_dir():
                raise UserError(
                    f"{option}: there is no folder '{folder}'; give the data directory of "
                    f"profile {profile}"
                )
        self.folders |= {f"{one.name}_p{profile}": folder for profile, folder in found.items()}
        return {profile: f"{one.name}_p{profile}" for profile in found}

    def plan(self) -> Planned:
        """Plan segments and lists; needs; speech; x-vectors; scores and figures; tables."""
        recipe, asked = self.recipe, self.recipe.asked
        recipe.step("segments", f"data/{self.set}", sources=self.sources)
        options = ["--same-gender", asked["same_gender"]]
        for name in dict.fromkeys((recipe.train, recipe.pool)):
            options += ["--training", f"data/{name}"]
        for name in ("sessions", "durations"):
            options += [f"--{name}", asked[name]] if asked[name] else []
        trials = f"{self.out}/trials"
        also = [f"{trials}/{one}" for one in ("trial1", "trial2", "cross")]
        recipe.step("trials", trials, self.set, also=also, options=options)
        for evaluator in recipe.evaluators:
            recipe.evaluator(evaluator)
        for system, draw in self.draws.items():
            recipe.needs(system)
            recipe.protect(system, self.set, system, "--draw", draw)
        for system, folder in self.folders.items():
            recipe.step("external", f"data/{self.set}_{system}", self.set, folder=folder)
        folders = [one for evaluator in recipe.evaluators for one in self._evaluate(evaluator)]
        recipe.step("results", f"{self.out}/results", figures=repeated("--figures", folders))
        return _planned(recipe)

    def _evaluate(self, evaluator: Evaluator) -> list[str]:
        """Plan all lists with an evaluator; returns the folders of the figures."""
        recipe, name, xvectors = self.recipe, self.set, evaluator.encoder.xvectors
        of_set = f"data/{name}/utt2spk"
        plain = Labels(name, "", ORIGINAL, "trial2", "", evaluator.title, "OO")
        folders = [self._compare(evaluator, plain, of_set, name, name)]
        for title, systems in self.studied.items():
            joined = []
            for place, (profile, system) in enumerate(systems.items(), start=1):
                mine = f"{name}_{system}"
                protected = recipe.xvectors(evaluator.encoder, mine)
                joined.append(f"p{place}={protected}")
                of = plain._replace(system=title, attacker=f"p{profile}")
                both = [f"{folder}/xvector.scp" for folder in (f"{xvectors}/{name}", protected)]
                leaks = of._replace(family=Family.LEAKAGE, condition="OP")
                folders.append(self._figures(leaks, of_set, "leakage", both))
                for trial, condition, enrol in (("trial1", "OP", name), ("trial2", "PP", mine)):
                    of = of._replace(family=trial, condition=condition)
                    folders.append(self._compare(evaluator, of, of_set, enrol, mine))
            if len(joined) > 1:
                pair = f"{name}_{title}_cross"
                recipe.step("joined", f"{xvectors}/{pair}", parts=joined[:2])
                speakers = f"{self.out}/trials/cross/utt2spk"
                of = plain._replace(system=title, family="cross", condition="PP")
                folders.append(self._compare(evaluator, of, speakers, pair, pair))
        return folders

    def _compare(
        self, evaluator: Evaluator, of: Labels, utt2spk: str, enrol: str, trial: str
    ) -> str:
        """Plan scores and verification figures of a list, which is their family, and a profile,
        their attacker; returns the folder of the figures."""
        recipe, trials = self.recipe, f"{self.out}/trials/{of.family}/trials"
        xvectors, scores = evaluator.encoder.xvectors, f"{self.out}/scores/{of.path}"
        recipe.step(
            "scores", scores, backend=evaluator.scorer, asnorm=evaluator.asnorm, trials=trials,
            enrol=f"{xvectors}/{enrol}/xvector.scp", trial=f"{xvectors}/{trial}/xvector.scp",
        )  # fmt: skip
        return self._figures(of, utt2spk, Family.VERIFICATION, [trials, f"{scores}/scores"])

    def _figures(self, of: Labels, utt2spk: str, kind: str, lists: Sequence[str]) -> str:
        recipe, folder = self.recipe, f"{self.out}/metrics"
        return recipe.figures("metrics", of, folder, kind=kind, utt2spk=utt2spk, lists=lists)


# generators.sh: Liu et al. 2025, without speech.


class Generators:
    """Generators in the space of the encoder of the voices."""

    def __init__(self, asked: Asked) -> None:
        self.names = asked.words("generators")
        self.recipe = _begin(asked)
        self.voice = self.recipe.voice
        self.out = f"exp/generators/{self.voice.name}"
        self.known: dict[Path, bool] = {}

    def needs(self, generator: str) -> list[str]:
        """Needs of a generator that are made."""
        needs = self.recipe.describe(generator).needs
        return [need for need in needs if need == "backend" or need.startswith("generator:")]

    def plan(self) -> Planned:
        """Plan x-vectors and needs; the threshold; capacities, times, and the results."""
        recipe, voice, out = self.recipe, self.voice, self.out
        from_two = "a whole number from 2 on is expected"
        sizes = recipe.asked.choice("sizes", "[2-9]|[1-9][0-9]+", from_two)
        recipe.asked.number("vectors")
        recipe.encoder(voice)
        for name in recipe.sets:
            recipe.xvectors(voice, name)
        recipe.speakers(voice, recipe.pool)
        for need in (need for name in self.names for need in self.needs(name)):
            recipe.plan_need(need, recipe.train)
        threshold = self._threshold()
        how = ["--sizes", *sizes, "--threshold", threshold, "--"]
        everybody = f"{voice.xvectors}/{recipe.pool}_speakers"
        recipe.step("capacity", f"{out}/capacity/real", options=how, of=everybody)
        gather = ["--encoder", voice.title]
        for name in self.names:
            resources, network, conf = self.resources(name), self.network(name), recipe.conf(name)
            capacity, time = f"{out}/capacity/{name}", f"{out}/time/{name}"
            options = how if network else [*resources, *how]
            recipe.step("capacity", capacity, options=options, of=network or conf)
            recipe.step("time", time, options=resources, conf=conf)
            gather += ["--generator", name, capacity, time, *self._speech(name)]
        recipe.step(
            "results", f"{out}/results", options=gather, threshold=threshold,
            real=f"{out}/capacity/real",
        )  # fmt: skip
        return _planned(recipe)

    def _threshold(self) -> str:
        """Plan the cosine at which the error rates of original speech are equal."""
        recipe, voice = self.recipe, self.voice
        cosine = find_evaluator(f"{voice.word}/cosine_raw")
        lists: list[str] = []
        for gender, name in recipe.set_of.items():
            of = Labels(
                recipe.split(gender),
                gender,
                ORIGINAL,
                Family.VERIFICATION,
                "unprotected",
                cosine.title,
                "OO",
            )
            scores = recipe.step(
                "scores", scores_of(of), enrol=f"{voice.xvectors}/{recipe.sets[0]}",
                trial=f"{voice.xvectors}/{name}", trials=f"data/{name}/trials",
            )  # fmt: skip
            lists += ["--list", f"data/{name}/trials", f"{scores}/scores"]
        return f"{recipe.step('threshold', f'{self.out}/threshold', lists=lists)}/threshold.json"

    def resources(self, generator: str) -> list[str]:
        """Options of programs that use a generator without speech."""
        recipe, voice = self.recipe, self.voice
        words = ["--seed", recipe.asked["seed"]]
        words += ["--pool", f"{voice.xvectors}/{recipe.pool}_speakers"]
        words += ["--pool-data", f"data/{recipe.pool}"]
        for name in (recipe.sets[0], *recipe.trials):
            words += ["--sources", f"{voice.xvectors}/{name}", f"data/{name}"]
        for need in self.needs(generator):
            option, folder = recipe.plan_need(need, recipe.train)
            words += [option.replace("--backend", "--pool-backend"), folder]
        return words

    def network(self, generator: str) -> str:
        """Folder of a generator whose voices depend only on an index; else an empty string."""
        names = [need.partition(":")[2] for need in self.needs(generator)]
        return next((f"{self.out}/{n}" for n in names if n.startswith(("wgan", "idmap"))), "")

    def _speech(self, system: str) -> list[str]:
        """Plan figures of speech that run.sh has measured; also for both genders together."""
        recipe, words = self.recipe, []
        for evaluator in recipe.evaluators:
            split = recipe.split("")
            both = Labels(split, "", system, Family.SIMILARITY, "", evaluator.title, "OO-OP-PP")
            found = []
            for gender in recipe.genders:
                own = both._replace(split=recipe.split(gender), gender=gender)
                if self._has(folder := f"exp/metrics/{own.path}"):
                    recipe.labels[folder] = own
                    found.append(folder)
            if {"f", "m"} <= {recipe.labels[folder].gender for folder in found}:
                sets = [f"data/{name}" for name in recipe.trials]
                data = recipe.step("segments", f"{self.out}/pooled/data", sources=sets)
                found.append(self._pooled(evaluator, both, data))
                found += self._attacked(evaluator, both, data)
            words += repeated("--attacked", found)
        return words

    def _has(self, folder: str) -> bool:
        """Whether run.sh has made a folder, which is up to date; a note tells if it is not."""
        if not Path(folder, ".done").is_file():
            return False
        current = is_current(Path(folder), self.known)
        if not current:
            note = f"out of date, and not shown: {folder}; ./run.sh makes it anew"
            self.recipe.notes.append(note)
        return current

    def _attacked(self, evaluator: Evaluator, both: Labels, data: str) -> list[str]:
        """Plan figures of each attack on both genders together, where run.sh has the scores of
        both."""
        made = []
        for path in sorted(Path("exp/metrics", both.system).glob("*/*/*/labels.json")):
            of = read_labels(path.parent)
            women, men = (
                scores_of(of._replace(gender=gender, split=self.recipe.split(gender)))
                for gender in "fm"
            )
            own = (of.family, of.gender, of.evaluator) == (Family.VERIFICATION, "f", both.evaluator)
            if own and of.attacker in ATTACKERS and self._has(women) and self._has(men):
                lists = ["--more-scores", f"{men}/scores", f"{data}/trials", f"{women}/scores"]
                of = of._replace(split=both.split, gender="")
                made.append(self._figures(of, data, lists))
        return made

    def _pooled(self, evaluator: Evaluator, of: Labels, data: str) -> str:
        """Plan similarity of all voices, over both genders as in Liu et al. 2025, Table II."""
        recipe, system, xvectors = self.recipe, of.system, evaluator.encoder.xvectors
        joined = {}
        for who in (ORIGINAL, system):
            parts = [f"{xvectors}/{as_protected(name, who)}" for name in recipe.trials]
            out = f"{self.out}/pooled/{evaluator.encoder.name}/{who}"
            joined[who] = recipe.step("joined", out, parts=parts)

        def place(of: Labels) -> str:
            return f"{self.out}/pooled/{of.system}.{evaluator.label}/{of.condition}"

        pairs = matrices(recipe, of, evaluator, joined, f"{data}/utt2spk", place)
        return self._figures(of, data, pairs)

    def _figures(self, of: Labels, data: str, lists: list[str]) -> str:
        folder, utt2spk = f"{self.out}/pooled/metrics", f"{data}/utt2spk"
        return self.recipe.figures("metrics", of, folder, utt2spk=utt2spk, lists=lists)


STUDIES: dict[str, Callable[[Asked], Planned]] = {
    "nist": lambda asked: Nist(asked).plan(),
    "generators": lambda asked: Generators(asked).plan(),
}
