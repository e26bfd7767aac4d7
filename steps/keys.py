# SPDX-License-Identifier: Apache-2.0
"""Keys of pseudo-speakers, from utterance, speaker and data set: equal keys share one.

Systems draw from the key alone and never look at ids. The levels (words of the literature in
brackets):

    utt       every utterance its own (random)
    spk       a speaker keeps one within a data set, and has another in another set (permanent)
    perm      a speaker keeps one in all sets, enrolment and trials alike
    const     one for everything (constant)
    position  the i-th utterance of every set the same; only to repeat the challenge of 2024
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli import UserError
from utils.datadir import load_data_dir

LEVELS = ("utt", "spk", "perm", "const")


@dataclass(frozen=True)
class Key:
    """Key of a draw: the level, and the names that count at this level.

    group: the names for draws that concern a speaker as a whole, even where every utterance has its
    own voice (a candidate set, a cluster, whether the gender changes).
    """

    level: str
    names: tuple[str, ...] = ()
    group: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return "|".join((self.level, *self.names))

    @property
    def parts(self) -> tuple[str, ...]:
        """Level and names, to seed a generator with."""
        return (self.level, *self.names)

    @property
    def group_parts(self) -> tuple[str, ...]:
        """Names as in `parts`, for draws that are made once a speaker."""
        return ("group", *self.group)


def make_keys(
    level: str, utt2spk: Mapping[str, str], dataset: str, order: Sequence[str]
) -> dict[str, Key]:
    """Make the key of each utterance. `order`: all of the data set, for `position` only.

    >>> {utt: str(key) for utt, key in make_keys("spk", {"a-1": "a"}, "test", ["a-1"]).items()}
    {'a-1': 'spk|test|a'}
    """
    if level == "position":
        places = {utt: str(place) for place, utt in enumerate(order)}
        return {utt: Key(level, (places[utt],), (dataset, spk)) for utt, spk in utt2spk.items()}
    keys: dict[str, Key] = {}
    for utt, spk in utt2spk.items():
        names = {"utt": (dataset, utt), "spk": (dataset, spk), "perm": (spk,), "const": ()}[level]
        group = (dataset, spk) if level == "utt" else names
        keys[utt] = Key(level, names, group)
    return keys


def whole_set(path: Path) -> Path:
    """Data directory that `path` is a part of (data/x for data/x/split8/3), or itself."""
    absolute = path.resolve()
    if re.fullmatch(r"split\d+(utt)?", absolute.parent.name):
        return absolute.parent.parent
    return absolute


def read_order(whole: Path, part: Mapping[str, str]) -> list[str]:
    """Utterances of a set in the order of its wav.scp; UserError if it lacks one of the part."""
    order = list(load_data_dir(whole).wav)
    if missing := sorted(set(part) - set(order)):
        raise UserError(
            f"{whole / 'wav.scp'}: {missing[0]} is not in it; the order of the whole set is needed "
            "(--order-from)"
        )
    return order
