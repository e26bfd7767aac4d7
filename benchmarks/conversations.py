"""Conversations made of people who read, by a seed: who speaks when is known to the sample."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import soundfile
from scipy.optimize import linear_sum_assignment

from steps.audio import SAMPLE_RATE
from steps.standalone.turns import Turn
from utils.arrays import Float64

OVERLAP = 0.1  # share of turns that begin before the last one ends
_EDGE = 0.02  # seconds left at both ends of an utterance


def converse(
    people: Mapping[str, Sequence[Float64]], seconds: float, seed: int
) -> tuple[Float64, list[Turn]]:
    """Samples of a conversation, and its turns: people take turns in a drawn order, each with the
    next of their utterances, at levels and after pauses that are drawn."""
    rng = np.random.default_rng(seed)
    n, names = round(seconds * SAMPLE_RATE), sorted(people)
    found, turns = 1e-4 * rng.standard_normal(n), list[Turn]()
    loud = {name: rng.uniform(0.03, 0.08) for name in names}
    places, last, at = dict.fromkeys(names, 0), "", round(rng.uniform(0.3, 1) * SAMPLE_RATE)
    while True:
        who = str(rng.choice([name for name in names if name != last or len(names) == 1]))
        samples = _trimmed(people[who][places[who] % len(people[who])])
        if at + len(samples) > n:
            return found, turns
        found[at : at + len(samples)] += samples * (loud[who] / np.sqrt(np.mean(samples**2)))
        end = at + len(samples)
        turns.append(Turn(at / SAMPLE_RATE, end / SAMPLE_RATE, who))
        places[who], last = places[who] + 1, who
        early = rng.random() < OVERLAP
        at = end + round(
            (rng.uniform(-1.0, -0.2) if early else rng.uniform(0.1, 1.2)) * SAMPLE_RATE
        )


def _trimmed(samples: Float64) -> Float64:
    """An utterance without silence at its ends."""
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    edge = round(_EDGE * SAMPLE_RATE)
    return samples[max(0, loud[0] - edge) : loud[-1] + edge]


def readers(folder: Path, n: int, seed: int = 0) -> dict[str, list[Float64]]:
    """Utterances of n people, drawn from a folder of LibriSpeech's."""
    found = dict[str, list[Path]]()
    for path in sorted(folder.rglob("*.flac")):
        found.setdefault(path.name.split("-")[0], []).append(path)
    who = np.random.default_rng(seed).choice(sorted(found), n, replace=False)
    return {str(one): [soundfile.read(path)[0] for path in found[one]] for one in who}


def confusion(known: Sequence[Turn], found: Sequence[Turn], seconds: float) -> tuple[float, float]:
    """Shares of the time of one speaker: confused, where speech is found; and missed."""
    masks = []
    for said in (known, found):
        names = sorted({turn.person for turn in said})
        mask = np.zeros((len(names), int(100 * seconds) + 1), bool)
        for turn in said:
            mask[names.index(turn.person), int(100 * turn.begin) : int(100 * turn.end)] = True
        masks.append(mask)
    single = masks[0].sum(axis=0) == 1
    both = single & masks[1].any(axis=0)
    shared = (masks[0][:, None] & masks[1][None] & both).sum(axis=2)
    right = shared[linear_sum_assignment(-shared)].sum()
    return 1 - right / max(1, both.sum()), 1 - both.sum() / max(1, single.sum())
