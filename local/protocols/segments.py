# SPDX-License-Identifier: Apache-2.0
"""Segments of sessions with a given amount of speech, as in the NIST study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from utils.arrays import Bool
from utils.tables import sort_ids


@dataclass(frozen=True)
class Segment:
    """Frames start ... stop of a session; nominal: least seconds of speech in it."""

    start: int
    stop: int
    nominal: int


def deal(speech: Bool, frame: float, nominal: Sequence[int], begin: int = 0) -> list[Segment]:
    """Cut non-overlapping segments from frame `begin` on, of each nominal duration in turn.

    speech: (T,) frames that hold speech; frame: seconds of one. A segment ends with the frame that
    completes its speech. The rest goes to the first duration, in turn, that fits.
    """
    found, place, turn, tried = [], begin, 0, 0
    total = np.concatenate(([0], np.cumsum(speech)))
    while tried < len(nominal):
        wanted = nominal[turn % len(nominal)]
        goal = total[min(place, len(speech))] + int(np.ceil(wanted / frame - 1e-9))
        stop = int(np.searchsorted(total, goal))
        turn += 1
        if stop > len(speech):
            tried += 1
            continue
        found.append(Segment(place, stop, wanted))
        place, tried = stop, 0
    return found


def enough_sessions(spk_of: Mapping[str, str], least: int) -> tuple[list[str], list[str]]:
    """Sessions of speakers with so many or more, and speakers with fewer. spk_of: by session."""
    speakers = list(spk_of.values())
    few = {who for who in speakers if speakers.count(who) < least}
    return [name for name in sort_ids(spk_of) if spk_of[name] not in few], sort_ids(few)
