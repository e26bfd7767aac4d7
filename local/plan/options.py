"""Options of a recipe, checked before anything is made, and the sets that attackers learn from."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from local.plan.labels import Words
from local.protocols import attackers
from utils.cli import UserError
from utils.settings import is_settings, list_settings
from utils.tables import read_map

N_NEAR = 5  # names that are suggested where one is unknown
A_NUMBER = "a whole number above 0 is expected"


class Asked:
    """The options of a recipe by their names in its block, as the shell has them."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def get(self, name: str, default: str = "") -> str:
        """The value of an option that this recipe may not have."""
        return self._values.get(name, default)

    def without(self, names: Collection[str]) -> dict[str, str]:
        """All options but these."""
        return {name: value for name, value in self._values.items() if name not in names}

    def changed(self, values: dict[str, str]) -> "Asked":
        """The same with other values of some options."""
        return Asked({**self._values, **values})

    def words(self, name: str) -> Words:
        """The words of an option, each named once."""
        words = tuple(self.get(name).split())
        once(f"--{name.replace('_', '-')}", words)
        return words

    def flag(self, name: str) -> bool:
        """Whether an option is true. UserError for another word, which recipe.conf can have."""
        text = self.get(name, "false")
        if text not in ("true", "false"):
            raise UserError(f"--{name.replace('_', '-')}: '{text}'; true or false is expected")
        return text == "true"

    def choice(self, name: str, known: str, expected: str = "") -> Words:
        """The words of an option: at least one, each once, each as a regular expression says."""
        option, words = f"--{name.replace('_', '-')}", self.get(name).split()
        expected = expected or f"known: {known.replace('|', ', ')}"
        if not words:
            raise UserError(f"{option}: names none; {expected}")
        for word in words:
            if not re.fullmatch(known, word):
                raise UserError(f"{option}: '{word}'; {expected}")
        once(option, words)
        return tuple(words)

    def number(self, name: str, least: int = 1) -> int:
        """The one whole number of an option."""
        text, expected = self.get(name), f"a whole number from {least} on is expected"
        if not re.fullmatch("[0-9]+", text) or int(text) < least:
            expected = A_NUMBER if least == 1 else expected
            raise UserError(f"--{name.replace('_', '-')}: '{text}'; {expected}")
        return int(text)

    def runs(self, stage: int) -> bool:
        """Whether a stage is among those to run."""
        return int(self["stage"]) <= stage <= int(self["stop_stage"])


def options_given(asked: Asked) -> set[str]:
    """Names of the options set on the command line or in its --config file."""
    return set(asked.get("given").split())


def follow_protocol(asked: Asked) -> Asked:
    """The options as --protocol has them, but for those that the command gives itself."""
    if not (name := asked.get("protocol")):
        return asked
    protocol = attackers.read_protocol(Path(need_conf("protocols", name)))
    values = {
        "attackers": protocol.attackers,
        "evaluators": protocol.evaluators,
        "informed_level": protocol.informed_level,
        "informed_draws": str(protocol.informed_draws),
        "genders": protocol.genders or asked.get("genders"),
        "protocol_training": protocol.training,
        **protocol.options,
    }
    own = options_given(asked)
    return asked.changed({name: value for name, value in values.items() if name not in own})


def once(option: str, words: Sequence[str]) -> None:
    """UserError where something is named twice: its figures would count twice, or two jobs write
    one folder."""
    for place, word in enumerate(words):
        if word in words[:place]:
            raise UserError(f"{option}: {word} is named twice; once is enough")


def need_conf(folder: str, name: str) -> str:
    """conf/FOLDER/NAME.yaml, or a variant of that name; UserError where it is missing."""
    path = Path("conf", folder, f"{name}.yaml")
    if not is_settings(path):
        near = ", ".join(get_close_matches(name, list_settings(path.parent), N_NEAR, cutoff=0))
        raise UserError(f"{path} is missing; the nearest names are: {near or 'none'}")
    return str(path)


def need_folders(folders: Collection[str]) -> None:
    """UserError where a study lacks what run.sh makes."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise UserError(f"{folder} is missing; make it with ./run.sh --stop-stage 0")


# ---- What informed attackers protect and learn from: --attacker-train.


@dataclass(frozen=True)
class Learnt:
    """Training set of informed attackers. name: in data/. joined: the data directories of which the
    recipe joins it; none where it is a set of this corpus."""

    name: str
    joined: Words = ()


def find_learnt(asked: Asked) -> Learnt:
    """Training set of --attacker-train, or --train-set where that is empty: names of sets in data/,
    and paths to data directories that other corpora's recipes made."""
    words = asked.words("attacker_train") or (asked["train_set"],)
    paths = [Path(word).resolve() if "/" in word else Path(word) for word in words]
    names = [
        "_".join(part for part in path.parts[-3:] if part not in ("/", "data")) for path in paths
    ]
    once("--attacker-train: a set's name", names)
    joined = tuple(word if "/" in word else f"data/{word}" for word in words)
    return Learnt("+".join(names), () if (words[0],) == tuple(names) else joined)


def check_learnt(learnt: Learnt, made: Collection[str], tested: Collection[str]) -> None:
    """UserError for sets that attackers cannot learn from together: one that is missing (but for
    those that stage 0 makes), has no sexes or not its audio, or a person who is in two of them or
    tested."""
    rival = {spk: f"data/{one}" for one in tested for spk in _speakers_of(f"data/{one}")}
    for folder in learnt.joined or (f"data/{learnt.name}",):
        option, speakers = f"--attacker-train: {folder}", _speakers_of(folder)
        if not speakers and folder.removeprefix("data/") not in made:
            raise UserError(f"{option}: no such data directory; its corpus's run.sh makes it")
        if speakers and not Path(folder, "spk2gender").is_file():
            raise UserError(f"{option}/spk2gender is missing; it says who is f and who is m")
        check_paths(option, folder)
        if both := sorted(speakers & rival.keys()):
            what = "leave out whom both have, or give those of one other ids, if they are others"
            where = rival[both[0]]
            if where.removeprefix("data/") in tested:
                what = "who is tested must not be in training"
            raise UserError(
                f"{option}: speaker {both[0]} ({len(both)} in all) is also in {where}; {what}"
            )
        rival |= dict.fromkeys(speakers, folder)


def check_paths(option: str, folder: str) -> None:
    """UserError where the audio of another corpus's set would be looked for among this one's."""
    table, ours = Path(folder, "wav.scp"), Path(folder).resolve().parent == Path("data").resolve()
    paths = read_map(table, rest_of_line=True).values() if table.is_file() and not ours else ()
    if (audio := next(iter(paths), "/")) and not (audio[0] == "/" and Path(audio).exists()):
        raise UserError(f"{option}/wav.scp: {audio}: the absolute path of a file is expected")


def _speakers_of(folder: str) -> set[str]:
    path = Path(folder, "utt2spk")
    return {*read_map(path).values()} if path.is_file() else set()
