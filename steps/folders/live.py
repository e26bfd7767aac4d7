# SPDX-License-Identifier: Apache-2.0
"""Protection of speech as it arrives, block by block, with a stated look-ahead.

McAdams needs a hop more than it gives out, and its samples are those of the whole recording. Other
systems convert a window of context, block and look-ahead each time; they normalise level, envelope
range and the source's pitch over the window, or over the speech so far, so their samples are not
those of the whole recording.
"""

from typing import Protocol

import numpy as np

from steps.anonymisers.formants import EPSILON, HOP, warp_frames
from steps.anonymisers.mcadams import McAdams
from steps.anonymisers.registry import Anonymiser
from steps.audio import SAMPLE_RATE
from steps.folders.stream import FADE
from steps.keys import Key
from steps.sources import Source
from steps.synthesis.f0 import VOICED_HZ, compute_f0_stats
from utils.arrays import Float64
from utils.cli import UserError

LONGEST_BLOCK, SHORTEST_BLOCK = 0.2, 0.04  # seconds
_HEARD = 6000  # voiced frames whose pitch is kept: a minute


class Live(Protocol):
    """delay: samples by which the output is behind the input, without computing time.

    step: best number of samples to push at once.
    """

    delay: int
    step: int

    def push(self, samples: Float64) -> Float64:
        """Take more of the input (n,) at 16 kHz; returns the finished output (m,)."""
        ...

    def end(self) -> Float64:
        """Return the rest: all outputs together are as long as the input."""
        ...


class LiveMcAdams:
    """McAdams stream, equal to `formants.transform` of the whole to the last bit; look-ahead HOP.

    Digital silence is an exception: in a recording of nothing else the samples are below 1e-6, not
    0, as the future is unknown.
    """

    def __init__(self, system: McAdams, key: Key, block: float = 0.02) -> None:
        """block: length of one push, in seconds.

        UserError for settings of the challenges, whose edges need the whole recording.
        """
        options = system.frames
        if not options.pad_edges or options.skip_first_frame:
            raise UserError(
                "compat: the challenges' McAdams treats the edges of a recording apart; "
                "use one without compat for a stream"
            )
        self._alpha, self._options = system.coefficient(key), options
        self._rows = np.zeros((1, HOP)) + EPSILON  # the last two used ones, and new ones
        self._n_old = 0  # number of these that precede the last used one
        self._tail, self._rest = np.zeros(HOP), np.zeros(0)
        self.step = round(block * SAMPLE_RATE / HOP) * HOP
        self.delay = self.step + HOP
        self._first = True
        self._n_in = self._n_out = 0

    def push(self, samples: Float64) -> Float64:
        """See Live."""
        self._n_in += len(samples)
        self._rest = np.concatenate((self._rest, samples))
        n = len(self._rest) // HOP
        rows, self._rest = self._rest[: n * HOP].reshape(n, HOP), self._rest[n * HOP :]
        self._rows = np.concatenate((self._rows, rows + EPSILON))
        return self._made()

    def end(self) -> Float64:
        """See Live."""
        n = -len(self._rest) % HOP + HOP
        rest = np.concatenate((self._rest, np.zeros(n))).reshape(-1, HOP)
        self._rows, self._rest = np.concatenate((self._rows, rest + EPSILON)), np.zeros(0)
        left = self._n_in - self._n_out
        return self._made()[:left]

    def _made(self) -> Float64:
        """Process all frames with complete rows; the last half of the last frame waits."""
        n_frames = len(self._rows) - 1 - self._n_old
        # One frame alone would give other bits: the one before is made again, or waited for.
        if n_frames < 1 or len(self._rows) < 3:
            return np.zeros(0)
        frames = warp_frames(self._rows, self._alpha, self._options)[0][:, self._n_old :]
        out = frames[:HOP].T.copy()
        out[0] += self._tail
        out[1:] += frames[HOP:, :-1].T
        self._tail = frames[HOP:, -1].copy()
        self._rows, self._n_old = self._rows[-2:], 1
        made = out[1:] if self._first else out  # before the first row is padding
        self._first = False
        self._n_out += made.size
        return made.ravel()


class LiveWindows:
    """Stream of any system, by windows; neighbouring blocks overlap with a fade of FADE seconds."""

    def __init__(
        self, system: Anonymiser, key: Key, block: float, look_ahead: float, context: float
    ) -> None:
        """Durations are in seconds; the look-ahead holds the fade, too."""
        self._system, self._key = system, key
        self._block, self._ahead, self._context = (
            round(part * SAMPLE_RATE) for part in (block, look_ahead, context)
        )
        self._fade = round(FADE * SAMPLE_RATE)
        if self._ahead < self._fade:
            raise UserError(f"look-ahead: {look_ahead:g} s; the fade alone takes {FADE:g} s")
        self.delay, self.step = self._block + self._ahead, self._fade
        self._before, self._waiting = np.zeros(0), np.zeros(0)
        self._tail, self._pitch = np.zeros(0), np.zeros(0)

    def push(self, samples: Float64) -> Float64:
        """See Live."""
        self._waiting = np.concatenate((self._waiting, samples))
        made = [np.zeros(0)]
        while len(self._waiting) >= self._block + self._ahead:
            made.append(self._say(self._block))
        return np.concatenate(made)

    def end(self) -> Float64:
        """See Live."""
        made = [np.zeros(0)]
        while len(self._waiting):
            made.append(self._say(min(self._block, len(self._waiting))))
        return np.concatenate(made)

    def _say(self, size: int) -> Float64:
        window = np.concatenate((self._before, self._waiting[: size + self._ahead]))
        begin = len(self._before)
        made = self._convert(window, slice(begin, begin + size))
        out, after = made[begin : begin + size].copy(), made[begin + size :][: self._fade]
        n = min(len(self._tail), size)
        if n:
            rising = (np.arange(n) + 0.5) / len(self._tail)
            out[:n] = out[:n] * rising + self._tail[:n] * (1 - rising)
        self._tail = after.copy()
        self._before = window[: begin + size][-self._context :] if self._context else np.zeros(0)
        self._waiting = self._waiting[size:]
        return out

    def _convert(self, window: Float64, own: slice) -> Float64:
        """Convert the window; the source's pitch is that of the blocks so far and this one."""
        if not window.any():
            return np.zeros(len(window))
        from steps.synthesis.world import HOP as FRAME
        from steps.synthesis.world import extract_f0

        contour = extract_f0(window)[own.start // FRAME : own.stop // FRAME + 1]
        heard = np.concatenate((self._pitch, contour[contour > VOICED_HZ]))
        self._pitch = heard[-_HEARD:]
        source = Source(self._key.names[-1], f0=compute_f0_stats([self._pitch]))
        return self._system.transform(window, self._key, source)[0]


def make_live(
    system: Anonymiser, key: Key, *, block: float, look_ahead: float, context: float
) -> Live:
    """Make the stream of a system. block, look_ahead, context: in seconds; McAdams has its own.
    UserError for a block that is too long or too short, or a system that cannot do it."""
    if not SHORTEST_BLOCK <= block <= LONGEST_BLOCK:
        raise UserError(f"block: {block:g} s; {SHORTEST_BLOCK:g} to {LONGEST_BLOCK:g} s are known")
    if isinstance(system, McAdams):
        return LiveMcAdams(system, key, block)
    return LiveWindows(system, key, block, look_ahead, context)
