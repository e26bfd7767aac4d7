"""People of a recording: whose each moment is, who stays in the clear, and voices far apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from steps.anonymisers.registry import Anonymiser
from steps.audio import SAMPLE_RATE, quietest
from steps.sources import VoiceKey
from steps.standalone.stream import FADE, Loudness, Piece, Recording
from steps.standalone.turns import Turn
from utils.arrays import Float64, Int64
from utils.cli import UserError, clock_time

T = TypeVar("T", int, float)
Span = tuple[int, int]
"""First sample, and the one after the last, at 16 kHz."""
FRAME = SAMPLE_RATE // 100
_BEYOND = 0.05  # seconds by which a span may end after the recording
GUARD = 0.3  # seconds around the turns of protected people, which are never in the clear
_AROUND, _OVERLAP = 0.1, 0.5  # seconds in which a cut is looked for: about a change, and in overlap
_SHORTEST = 0.1  # seconds of a stretch in the clear, and of one that is cut at all
_QUIET = 5  # frames over which it must be quiet
_HALF = round(FADE * SAMPLE_RATE / 2)
REDACTED = 0.25  # seconds on either side of what must not be heard
_SOFT, _HERTZ = 0.1, 440.0  # of tones: share of the largest sample, and pitch


# ---- Whose each moment is.


def of_channel(turns: Sequence[Turn], channel: int | None) -> list[Turn]:
    """Turns in a channel, counted from 0; None: in the mix."""
    return [turn for turn in turns if channel is None or turn.channel in (0, channel + 1)]


def overlap(turns: Sequence[Turn]) -> float:
    """Seconds in which several people speak."""
    marks = sorted((at, step) for t in turns for at, step in ((t.begin, 1), (t.end, -1)))
    speaking, found = 0, 0.0
    for (at, step), (then, _) in pairwise(marks):
        speaking += step
        found += (then - at) * (speaking > 1)
    return found


def union(stretches: Iterable[tuple[T, T]]) -> list[tuple[T, T]]:
    """Stretches in order, of which those that touch are one."""
    found = list[tuple[T, T]]()
    for begin, end in sorted(stretches):
        if found and begin <= found[-1][1]:
            begin, last = found.pop()
            end = max(end, last)
        found.append((begin, end))
    return found


def without(stretches: Iterable[tuple[T, T]], others: Iterable[tuple[T, T]]) -> list[tuple[T, T]]:
    """Parts of stretches outside of others."""
    left = list(stretches)
    for begin, end in others:
        parts = [part for a, b in left for part in ((a, min(b, begin)), (max(a, end), b))]
        left = [(a, b) for a, b in parts if a < b]
    return left


def runs(values: Int64) -> list[Span]:
    """First and last, exclusive, of stretches of one value in (n,)."""
    return [*pairwise([0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)])]


def clear_of(turns: Sequence[Turn], kept: Iterable[str]) -> list[tuple[float, float]]:
    """Stretches in seconds in which only people who are kept speak, GUARD away from all others'
    turns, and from those of nobody named."""
    kept = set(kept)
    others = [(t.begin - GUARD, t.end + GUARD) for t in turns if t.person not in kept]
    whole = union((t.begin, t.end) for t in turns if t.person in kept)
    left = [(a + FADE, b - FADE) for a, b in without(whole, others)]
    return [(a, b) for a, b in left if b - a > _SHORTEST]


def shares(
    turns: Sequence[Turn], clear: Iterable[tuple[float, float]], loudness: Float64
) -> dict[str | None, list[Span]]:
    """Stretches of frames by person, which together are the recording; None's stay in the clear.

    Overlap is of who began; between turns it is cut where it is quietest. clear: see `clear_of`.
    loudness: (n,) of the frames.
    """
    n = len(loudness)
    owner = np.zeros(n, int)
    names = list(dict.fromkeys(turn.person for turn in sorted(turns) if turn.person)) or [""]
    held = list[tuple[float, float, int]]()
    for turn in (turn for turn in sorted(turns) if turn.person):
        who, last = names.index(turn.person), held[-1] if held else (0.0, 0.0, -1)
        if last[2] == who:
            held[-1] = (last[0], max(last[1], turn.end), who)
        elif turn.end - max(turn.begin, last[1]) > _SHORTEST:
            held.append((max(turn.begin, last[1]), turn.end, who))
    for (_, before, _), (after, end, who) in pairwise([(0.0, 0.0, 0), *held]):
        most = _AROUND if after > before else _OVERLAP
        latest = min(max(before, after) + most, end - _SHORTEST / 2)
        a, b = (min(n, max(0, round(at * 100))) for at in (before - _AROUND, latest))
        cut = quietest(loudness, a, b, _QUIET) if b - a > _QUIET else min(n, round(after * 100))
        owner[cut:] = who
    for begin, end in clear:
        owner[min(n, int(np.ceil(begin * 100))) : min(n, int(end * 100))] = -1
    # Stretches that are too short to be faded into their neighbours go to one of them.
    for begin, end in runs(owner):
        near = [owner[at] for at in (begin - 1, end) if 0 <= at < n and owner[at] >= 0]
        if 0 < end - begin < 2 * _QUIET and near and owner[begin] >= 0:
            owner[begin:end] = near[0]
    found = dict[str | None, list[Span]]()
    for begin, end in runs(owner):
        who = owner[begin] if n else 0
        found.setdefault(None if who < 0 else names[who], []).append((begin, end))
    return found


def loudness_of(recording: Recording, channel: int | None) -> Float64:
    """Effective values (n,) of the frames of a channel, of which the last may be shorter."""
    found = [np.zeros(0)]
    for block in recording.blocks(channel):  # whole frames, but for the last
        frames = np.pad(block, (0, -len(block) % FRAME)).reshape(-1, FRAME)
        found.append(np.sqrt(np.mean(frames**2, axis=1)))
    return np.concatenate(found)


def widened(stretches: Iterable[Span], n: int) -> list[Span]:
    """Stretches of a signal (n,), with half a fade more on either side."""
    return [(max(0, a - _HALF), min(n, b + _HALF)) for a, b in stretches]


def put(placed: Float64, stretches: Sequence[Span], parts: Iterable[Float64]) -> None:
    """Add a signal that arrives in parts (m, 1) to one (n,), stretch by stretch, each of which
    fades in and out where the other signal goes on."""
    spans, at = iter(stretches), 0
    begin, end = next(spans, (0, 0))
    for part in parts:
        left = part[:, 0]
        while len(left):
            here, left = left[: end - begin - at], left[end - begin - at :]
            k = np.arange(at, at + len(here)) + 0.5
            rises = k if begin else np.inf
            falls = end - begin - k if end < len(placed) else np.inf
            share = np.clip(np.minimum(rises, falls) / (2 * _HALF), 0.0, 1.0)
            placed[begin + at : begin + at + len(here)] += here * share
            at += len(here)
            if at == end - begin:
                (begin, end), at = next(spans, (end, end)), 0


def hidden(spans: Iterable[Turn], n: int) -> tuple[Span, ...]:
    """Stretches of a signal (n,) that must not be heard, REDACTED longer on either side."""
    ends = ((int((s.begin - REDACTED) * SAMPLE_RATE), int((s.end + REDACTED) * SAMPLE_RATE))
            for s in spans)  # fmt: skip
    return tuple(union((max(0, begin), min(n, end)) for begin, end in ends))


def tone(n: int) -> Float64:
    """Tone (n,) of largest sample 1."""
    k = np.arange(n) + 0.5
    fade = np.clip(np.minimum(k, n - k) / (2 * _HALF), 0.0, 1.0)
    return fade * np.sin(2 * np.pi * _HERTZ * k / SAMPLE_RATE)


def put_tones(placed: Float64, stretches: Iterable[Span], by: str) -> None:
    """Put soft tones, or `silence`, into stretches of a signal (n, c) instead of what is there."""
    loud = _SOFT * (by == "tone") * (float(np.abs(placed).max(initial=0.0)) or 1.0)
    for begin, end in stretches:
        placed[begin:end] = loud * tone(end - begin)[:, None]


def tone_piece(n: int, by: str) -> Piece:
    """Soft tone, or `silence`, as a piece (n, 1) whose level is told as that of a loud one."""
    level = Loudness.of(tone(n))
    return Piece(_SOFT * (by == "tone") * tone(n)[:, None], 0, 0, level, level, n)


def in_order(parts: Iterable["Part"], spans: Sequence[Span]) -> list[tuple[Span, "Part | None"]]:
    """Stretches of people in time, and of spans that must not be heard, where nobody is; what is
    too short to be converted between these counts to them."""
    shortest, found = round(_SHORTEST * SAMPLE_RATE), list[tuple[Span, Part | None]]()
    for part in parts:
        for begin, end in without(part.stretches, spans):
            found.append(((begin, end), part if end - begin >= shortest else None))
    return sorted([*found, *((span, None) for span in spans)], key=lambda one: one[0])


class Part(NamedTuple):
    """Speech of a person in a channel (None: the mix; which is one column, and so is each channel):
    the person (None: in the clear), and stretches of samples."""

    channel: int | None
    person: str | None
    stretches: tuple[Span, ...]

    @property
    def column(self) -> int:
        """Place of the channel in the output."""
        return self.channel or 0


@dataclass(frozen=True)
class Scene:
    """Knowledge of a recording before it is protected: turns, spans that must not be heard, and
    people who stay in the clear. voices: names of pseudo-speakers by person. by: `tone` or
    `silence`, for spans. fault: why nothing may be written of it. sure: share of the speech that is
    clearly of one of the people, where they were found."""

    turns: tuple[Turn, ...] = ()
    spans: tuple[Turn, ...] = ()
    kept: frozenset[str] = frozenset()
    voices: Mapping[str, str] = field(default_factory=dict)
    by: str = "tone"
    fault: str = ""
    sure: float | None = None

    def clear(self, channel: int | None) -> list[tuple[float, float]]:
        """Stretches of a channel that stay in the clear: people are also heard in the channels of
        others."""
        own = [turn for turn in of_channel(self.turns, channel) if turn.person in self.kept]
        others = [turn for turn in self.turns if turn.person not in self.kept]
        return clear_of([*own, *others], self.kept)

    def parts(self, recording: Recording, channel: int | None) -> list[Part]:
        """Parts of a channel of the recording, which together are all of it."""
        turns, n = of_channel(self.turns, channel), len(recording)
        whose: dict[str | None, list[Span]] = {"": [(0, -(-n // FRAME))]}
        if any(turn.person for turn in turns):
            whose = shares(turns, self.clear(channel), loudness_of(recording, channel))
        return [
            Part(channel, who, tuple((a * FRAME, min(n, b * FRAME)) for a, b in frames))
            for who, frames in whose.items()
        ]

    def open(self, path: Path) -> Recording:
        """Open a recording without what must not be heard; UserError for one that cannot be read,
        or that is not what is said of it."""
        recording = Recording.open(path)
        n = recording.seconds + _BEYOND
        late = [f"up to {span.end:.2f} s must not be heard" for span in self.spans if span.end > n]
        late += [f"somebody speaks at {turn.begin:.2f} s" for turn in self.turns if turn.begin > n]
        if self.fault or late:
            where = f"{path}: ends at {recording.seconds:.2f} s"
            raise UserError(self.fault or f"{where}, but {late[0]}; is it the file?")
        return replace(recording, hidden=hidden(self.spans, len(recording)))

    def told(self, *, each: bool) -> dict[str, object]:
        """Row of the account: people, turns, seconds of overlap and in the clear, and spans. each:
        whether channels are protected each by itself, so that people of one do not overlap those of
        another."""
        named, removed = [turn for turn in self.turns if turn.person], dict[str, list[float]]()
        found: dict[str, object] = {}
        if named:
            found |= {"people": len({t.person for t in named}), "turns": len(named)}
            channels = {t.channel for t in named} - {0} if each else ()
            own = (of_channel(named, channel - 1) for channel in channels)
            found["seconds_overlap"] = round(sum(map(overlap, own if channels else [named])), 2)
        if self.sure is not None:
            found["sure"] = round(self.sure, 3)
        if self.kept:
            found["seconds_clear"] = round(sum(end - begin for begin, end in self.clear(None)), 2)
        for span in self.spans:
            removed.setdefault(span.words, []).append(span.end - span.begin)
        if removed:
            texts = (f"{kind}: {len(own)}, {sum(own):.1f} s" for kind, own in removed.items())
            found["removed"] = "; ".join(texts)
        return found


def in_words(told: Iterable[Mapping[str, Any]], shared: bool = False) -> str:
    """People, turns and overlap of rows of the account. shared: whether a person may be in
    several."""
    rows = list(told)
    people, turns, seconds = (
        sum(own.get(name, 0) for own in rows) for name in ("people", "turns", "seconds_overlap")
    )
    counted = ", counted in each recording" if shared else ""
    return f"{people} people{counted}, {turns} turns, {clock_time(seconds)} of overlap in one voice"


# ---- Voices that are apart.

_TRIES = 64


def draw_voices(
    anonymiser: Anonymiser, together: Sequence[Sequence[str]], drawn: Mapping[str, str]
) -> dict[str, str]:
    """Names to draw the voices of people by, where each group is heard together: of _TRIES draws
    the first that is from all voices of their groups at least as far as people are, or the
    farthest. drawn: those of people who have one."""
    beside, found = dict[str, set[str]](), dict(drawn)
    for group in together:
        for who in {*group} - drawn.keys():
            beside.setdefault(who, set()).update(group)
    for who, others in sorted(beside.items()):
        near = [voice_key(found[other]) for other in sorted(others) if other in found]
        best = -1.0
        for number in range(_TRIES if near else 1):
            name = f"{who}\n{number}" if number else who
            apart = min((anonymiser.apart(voice_key(name), key) for key in near), default=1.0)
            if apart > best:
                best, found[who] = apart, name
            if best >= 1.0:
                break
    return found


def voice_key(name: str) -> VoiceKey:
    """Key of the voice of a name."""
    return VoiceKey("spk", ("folder", name), ("folder", name))
