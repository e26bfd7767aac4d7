"""Who speaks when in a recording, as it is heard: speech by Silero, voices by pyannote, people by
clusters of short windows."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.ndimage import binary_closing, binary_opening, uniform_filter1d

from steps.audio import SAMPLE_RATE, SILERO_FRAME, detect_silero
from steps.standalone.people import runs
from steps.standalone.stream import Recording
from steps.standalone.turns import Turn
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError

WINDOW, HOP = round(1.5 * SAMPLE_RATE), round(0.75 * SAMPLE_RATE)  # of voices
FRAME = SILERO_FRAME
_SPOKEN = 0.4  # of a window, to be heard
_CLOSED, _OPENED = 9, 7  # frames of 32 ms: pauses within a turn, and the shortest speech
_MOST = 3000  # windows that are clustered; the others go to the nearest cluster
_LEAST, _FEWEST = 0.04, 3  # share, and number, of the windows of a person
_PAUSE = 1.0  # seconds within a turn
_SMOOTH = 31  # frames over which a voice is heard
APART = 0.84  # mean cosine distance from which on two clusters are two people
_TELLING, _BLOCKS = 20.0, 4  # seconds of a recording whose people are counted, and parts heard
_SEVERAL = 0.89  # mean distance for a remark, which a single reader of two books stays below
_SURE = 0.1  # by which the nearest person must be nearer than the second


class Heard(NamedTuple):
    """Turns that are found, the share of the speech that is clearly of one of the people, and the
    length of the recording."""

    turns: tuple[Turn, ...]
    sure: float
    seconds: float


def listen(
    recording: Recording, channel: int | None, blocks: int | None = None
) -> tuple[Bool, Int64, Float64]:
    """Mask (f,) of frames of 512 samples with speech, and the first samples (w,) of windows of
    voices and their vectors (w, d) of length 1. blocks: only so many of 24 s, spread over the
    recording. UserError where a network is not installed."""
    from steps.speaker.pyannote import PyannoteEncoder

    encoder, n = PyannoteEncoder(), len(recording)
    size = 32 * HOP  # also a multiple of the frame
    speech, starts, vectors = list[Bool](), list[int](), list[Float64]()
    begins = np.arange(0, n, size)
    if blocks and len(begins) > blocks:
        begins = begins[np.linspace(0, len(begins) - 1, blocks).astype(int)]
    for begin in begins.tolist():
        block = recording.read(begin, min(n, begin + size + WINDOW), channel)
        heard = detect_silero(np.pad(block, (0, -len(block) % FRAME)))
        speech.append(heard[: -(-min(size, n - begin) // FRAME)])
        for at in range(0, min(size, max(1, len(block) - WINDOW + 1)), HOP):
            own = heard[at // FRAME : (at + WINDOW) // FRAME]
            if own.mean() >= _SPOKEN and block[at : at + WINDOW].any():
                starts.append(begin + at)
                vectors.append(encoder.embed(block[at : at + WINDOW]).astype(np.float64))
    found = np.stack(vectors) if vectors else np.zeros((0, 1))
    mask = np.concatenate([*speech, np.zeros(0, bool)])
    return mask, np.array(starts, int), found / np.linalg.norm(found, axis=1, keepdims=True)


def count_people(recording: Recording, channels: Sequence[int | None]) -> int:
    """Number of people who are heard in one of the channels, by parts of it; 0 where the recording
    is too short to tell, or a network is not installed."""
    if recording.seconds < _TELLING:
        return 0
    with suppress(UserError):
        found = [listen(recording, channel, _BLOCKS)[2] for channel in channels]
        return max(len(centres_of(vectors, apart=_SEVERAL)) for vectors in found)
    return 0


def find_people(
    recording: Recording, channel: int | None, n: int | None = None, first: int = 0
) -> Heard:
    """Find turns of n people, or of as many as are heard, named P1, P2 ... in the order in which
    they begin, after the `first` ones."""
    speech, starts, vectors = listen(recording, channel)
    speech = binary_opening(binary_closing(speech, np.ones(_CLOSED)), np.ones(_OPENED))
    centres = centres_of(vectors, n)
    if not len(centres) or not speech.any():
        return Heard((), 1.0, recording.seconds)
    # Each frame is heard by all windows around it.
    near = np.zeros((len(speech), len(centres)))
    count = np.full((len(speech), 1), 1e-9)
    for start, own in zip(starts, vectors @ centres.T, strict=True):
        near[start // FRAME : (start + WINDOW) // FRAME] += own
        count[start // FRAME : (start + WINDOW) // FRAME] += 1
    near = uniform_filter1d(near / count, _SMOOTH, axis=0)
    whose = near.argmax(axis=1)
    ranked = np.sort(near[speech], axis=1)
    sure = ranked[:, -1] - ranked[:, -2] > _SURE if len(centres) > 1 else np.ones(1)
    whose = np.where(speech, whose, -1)
    names, found = dict[int, str](), list[Turn]()
    for begin, end in runs(whose):
        if (who := int(whose[begin])) >= 0:
            name = names.setdefault(who, f"P{first + len(names) + 1}")
            start, stop = (round(x * FRAME / SAMPLE_RATE, 3) for x in (begin, end))
            turn = Turn(start, stop, name, "", 0 if channel is None else channel + 1)
            if found and found[-1].person == name and start - found[-1].end < _PAUSE:
                turn = turn._replace(begin=found.pop().begin)
            found.append(turn)
    return Heard(tuple(found), float(sure.mean()), recording.seconds)


def centres_of(vectors: Float64, n: int | None = None, apart: float = APART) -> Float64:
    """Mean vectors (k, d) of length 1 of the people in windows (w, d): clusters of average linkage
    by cosine, n of them or as many as are `apart`, that are not smaller than a person's."""
    some = vectors[:: -(-len(vectors) // _MOST) or 1]
    least = max(_FEWEST, _LEAST * len(some))
    if len(some) < 2 * _FEWEST:
        return _means(some, np.ones(len(some), int), [1][: len(some)])
    tree = linkage(some, "average", "cosine")
    labels = fcluster(tree, apart, "distance")
    for k in range(n or 1, min(len(some), 20 * (n or 0))):
        labels = fcluster(tree, k, "maxclust")
        if np.count_nonzero(np.bincount(labels) >= least) >= (n or 1):
            break
    sizes = np.bincount(labels)
    large = [int(k) for k in np.argsort(-sizes, kind="stable") if sizes[k] >= least][:n]
    centres = _means(some, labels, large or [int(sizes.argmax())])
    for _ in range(3):
        nearest = (some @ centres.T).argmax(axis=1)
        if len({*nearest.tolist()}) < len(centres):
            break
        centres = _means(some, nearest, range(len(centres)))
    return centres


def _means(vectors: Float64, labels: Int64, wanted: Sequence[int]) -> Float64:
    found = [vectors[labels == k].mean(axis=0) for k in wanted]
    return np.array([own / np.linalg.norm(own) for own in found]).reshape(-1, vectors.shape[1])
