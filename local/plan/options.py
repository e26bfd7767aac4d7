# SPDX-License-Identifier: Apache-2.0
"""What a recipe was asked, checked before anything is made."""

import re
import shlex
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path

from local.protocols.challenge import read_protocol
from utils.cli import UserError
from utils.settings import is_settings, list_settings

NUMBER = "[1-9][0-9]*"
N_NEAR = 5  # names that are told where one is unknown
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

    def words(self, name: str) -> tuple[str, ...]:
        """The words of an option, each named once."""
        words = tuple(self.get(name).split())
        once(f"--{name.replace('_', '-')}", words)
        return words

    def flag(self, name: str) -> bool:
        """Whether an option is true."""
        return self.get(name, "false") == "true"

    def choice(self, name: str, known: str, expected: str = "") -> tuple[str, ...]:
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

    def numbers(self, name: str) -> tuple[str, ...]:
        """The whole numbers above 0 of an option."""
        return self.choice(name, NUMBER, A_NUMBER)

    def number(self, name: str) -> int:
        """The one whole number above 0 of an option."""
        first, *more = self.numbers(name)
        if more:
            raise UserError(f"--{name.replace('_', '-')}: '{self[name]}'; {A_NUMBER}")
        return int(first)

    def sizes(self, follow: str = "", expected: str = "") -> tuple[str, ...]:
        """The sizes of --sizes; follow: expression of what may follow a size."""
        words = self.choice(
            "sizes",
            f"([2-9]|[1-9][0-9]+){follow}",
            f"a whole number from 2 on is expected{expected}",
        )
        once("--sizes", [word.partition(":")[0] for word in words])
        return words


def given(command: str) -> Collection[str]:
    """The names of the options of a command."""
    words = (word.partition("=")[0] for word in shlex.split(command))
    return {word[2:].replace("-", "_") for word in words if word.startswith("--")}


def follow_protocol(asked: Asked) -> Asked:
    """The options as --protocol has them, but for those that the command gives itself."""
    if not (name := asked.get("protocol")):
        return asked
    protocol = read_protocol(Path(need_conf("protocols", name)))
    values = {
        "attackers": protocol.attackers,
        "evaluators": protocol.evaluators,
        "informed_level": protocol.informed_level,
        "genders": protocol.genders or asked.get("genders"),
    }
    own = given(asked["command_line"])
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
