# SPDX-License-Identifier: Apache-2.0
"""Protection of a data directory by the user's own program, as a system of a recipe."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steps.anonymisers.external import External, find_speech
from steps.anonymisers.external import Settings as Speech
from steps.anonymisers.registry import Description
from steps.sources import Run
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.settings import Declared
from utils.tables import StrPath

SEED = "{seed}"


@dataclass(frozen=True)
class Settings:
    """command: a program and its words; in them {in} is a data directory (wav.scp, utt2spk, ...),
    {out} the folder to fill with an audio file for each utterance, named by it, and {seed} a number
    that differs between draws (without it the program counts as not random). suffix: follows the
    utterance's id in the names of these files."""

    anonymiser: str
    command: str
    suffix: str = ""

    def __post_init__(self) -> None:
        for place in ("{in}", "{out}"):
            if place not in self.command:
                raise ValueError(f"command: {self.command!r} has no {place}")


class Command(Declared[Settings]):
    """Maker of the system from the program's output (`protect_data`); see `registry.Anonymiser`."""

    kind = Settings

    @classmethod
    def make(cls, settings: Settings, run: Run) -> External:
        """Make from the folder --external, which the program filled."""
        folder = run.folder("external")
        speech = find_speech(folder, settings.suffix)
        made = _Commanded(Speech(settings.anonymiser, str(folder), settings.suffix), speech)
        made.command = settings
        made.is_random = SEED in settings.command
        return made

    @classmethod
    def describe(cls, settings: Settings, path: StrPath) -> Description:  # noqa: ARG003
        """Needs: a folder that is made anew for each set and draw."""
        return Description("utt", ("external:",), ("utt",))


class _Commanded(External):
    """Output of a program, with its command among the settings."""

    command: Settings

    def settings(self) -> dict[str, object]:
        return {
            "anonymiser": self.command.anonymiser,
            "command": self.command.command,
            "suffix": self.command.suffix,
        }


def protect_data(settings: Settings, data: Path, out: Path, utts: Sequence[str], seed: int) -> None:
    """Run the program on a data directory; `out` appears when it has an audio file for each of
    utts. UserError where the program cannot be started, fails, or leaves utterances out.

    Its output goes to the log. seed: of the set and draw, from `seed_of`.
    """
    beside = out.with_name(f"{out.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    places = {"{in}": os.fspath(data), "{out}": os.fspath(beside), SEED: str(seed)}
    words = []
    for word in shlex.split(settings.command):
        for place, value in places.items():
            word = word.replace(place, value)
        words.append(word)
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise UserError(f"command: {words[0]} cannot be started: {error.strerror}") from error
    if status:
        raise UserError(
            f"command: `{shlex.join(words)}` ended with status {status}; its messages are above"
        )
    found = find_speech(beside, settings.suffix)
    if missing := [utt for utt in utts if utt not in found]:
        raise UserError(
            f"command: `{shlex.join(words)}` wrote no audio of {len(missing)} of {len(utts)} "
            f"utterances: {' '.join(missing[:3])}{' ...' if missing[3:] else ''}"
        )
    shutil.rmtree(out, ignore_errors=True)
    beside.rename(out)


def seed_of(seed: int, dataset: str, draw: int) -> int:
    """Value of {seed}: another number for each set and draw."""
    return derive_seed(seed, "command", dataset, str(draw)) % 2**31
