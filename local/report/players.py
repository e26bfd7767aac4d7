# SPDX-License-Identifier: Apache-2.0
"""Players for the clips of the results: each clip stands in the page once, as far as they fit."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from local.report import html
from local.report.load import Results, note
from local.report.speakers import Speaker, groups_of, worst_first

SIDES = ("original", "protected")
N_WORST = 10
Group = tuple[str, str, str]  # system, evaluator, split


class Players:
    """Clips of the worst-protected speakers, the worst of every group first, up to a budget.

    budget: bytes that the clips may take in the page. An original is shared by all systems and
    evaluators. left_out: pairs of clips that did not fit, by group.
    """

    def __init__(self, results: Results, budget: int) -> None:
        self.left_out: dict[Group, int] = {}
        self.data: dict[str, str] = {}  # base64, by the name of the file
        self._results, self._room = results, budget
        self._broken: set[str] = set()
        self._fits: set[tuple[Group, str]] = set()
        self._clips = {
            (*(str(c.get(k)) for k in ("system", "evaluator", "split", "speaker")),): c
            for c in results.clips
        }
        for group, speaker in _by_need(results):
            self._add(group, speaker)

    def _add(self, group: Group, speaker: str) -> None:
        clip = self._clips.get((*group, speaker))
        if clip is None:
            return
        found = {name: self._read(name) for name in (str(clip.get(side)) for side in SIDES)}
        new = {name: data for name, data in found.items() if data and name not in self.data}
        size = sum(map(len, new.values()))
        if size > self._room:
            self.left_out[group] = self.left_out.get(group, 0) + 1
            return
        self._room -= size
        self.data |= new
        self._fits.add((group, speaker))

    def _read(self, name: str) -> str:
        """A file as base64; empty, and named among what is missing, where it cannot be had."""
        if name in self.data or name in self._broken:
            return self.data.get(name, "")
        try:
            if not re.fullmatch(r"clips/\d+\.mp3", name):
                raise OSError(0, "not the name of a clip")
            raw = (self._results.folder / name).read_bytes()
            return base64.b64encode(raw).decode("ascii")
        except OSError as error:
            note(self._results, name, f"{name}: cannot be read: {error.strerror}; run stage 11")
            self._broken.add(name)
            return ""

    def worst(self) -> tuple[Group, Speaker] | None:
        """Who of all that can be heard is protected worst, and in which group."""
        found = []
        for group in dict.fromkeys(group for group, _ in self._fits):
            own = worst_first(self._results.speakers, *group)
            found += [(group, one) for one in own[:N_WORST] if (group, one.name) in self._fits]
        return min(found, key=lambda pair: (pair[1].order(), pair[0]), default=None)

    def players(self, group: Group, speaker: Speaker) -> list[str]:
        """Two players: the original and its protected version."""
        return [self._player(self._clips[(*group, speaker.name)], side, group[0]) for side in SIDES]

    def cells(self, group: Group, speaker: Speaker) -> list[str]:
        """Two cells of a table: the original and its protected version."""
        clip = self._clips.get((*group, speaker.name))
        if clip is None:
            return [html.plain("no clip")] * 2
        if (group, speaker.name) not in self._fits:
            return [html.plain("left out")] * 2
        return [html.cell(player) for player in self.players(group, speaker)]

    def _player(self, clip: Mapping[str, Any], side: str, system: str) -> str:
        name = str(clip.get(side))
        if name not in self.data:
            return "missing"
        by = "" if side == "original" else f" by {system}"
        text = f"{side.capitalize()} speech of {clip['speaker']}{by}, utterance {clip['utterance']}"
        return html.audio(name, text)

    def store(self) -> str:
        """The clips themselves, for the end of the page; its script gives them to the players."""
        return html.raw(
            "script", json.dumps(self.data, sort_keys=True), type="application/json", id="clips"
        )


def _by_need(results: Results) -> Iterable[tuple[Group, str]]:
    """Groups with their speakers: the worst of every group, then the second worst, ..."""
    worst = {
        group: worst_first(results.speakers, *group)[:N_WORST]
        for group in groups_of(results.speakers)
    }
    for rank in range(N_WORST):
        for group, speakers in worst.items():
            if rank < len(speakers):
                yield group, speakers[rank].name
