# SPDX-License-Identifier: Apache-2.0
"""A system that is handed on: a trained synthesiser, and pseudo-speakers that are nobody."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steps.anonymisers.model import CONF
from steps.synthesis.f0 import F0Stats, mix_f0_stats
from steps.synthesis.trained import trained_files
from steps.synthesis.voice_pool import PACKED, VoicePool, write_packed
from steps.weights import load_state, save_half
from utils.arrays import Float64
from utils.cli import UserError
from utils.seeds import make_rng
from utils.speakers import TRAINING_SPEAKERS

_DRAWS = 100


def make_voices(pool: VoicePool, out: Path, *, n: int, averaged: int, seed: int) -> int:
    """n pseudo-speakers, half of each gender, who are nobody and as far apart as people are.

    Each is the mean of `averaged` speakers of one gender, whose deviation from all of that gender
    is made sqrt(averaged) times as large, as averaging had made it smaller; x-vectors get length 1,
    and the mean of log F0 moves alike. Of _DRAWS draws the first counts that is no nearer to a real
    speaker than 99 of 100 real speakers are to another one, else the least near.
    Returns how many are nearer. UserError for a pool that has too few speakers of a gender.
    """
    unit = pool.xvectors / np.linalg.norm(pool.xvectors, axis=1, keepdims=True)
    among = unit @ unit.T
    np.fill_diagonal(among, -1.0)
    limit, grown = float(np.quantile(among.max(axis=1), 0.99)), np.sqrt(averaged)
    xvectors, f0, genders, near = {}, {}, {}, 0
    for place in range(n):
        gender, name = "fm"[place % 2], f"pseudo-{place:04d}"
        own = [i for i, who in enumerate(pool.speakers) if pool.gender(who) == gender]
        if len(own) < averaged + 1:
            raise UserError(
                f"{pool.folder}: {len(own)} voices of gender {gender}, and {averaged} of them are "
                "to be averaged"
            )
        rng, centre = make_rng(seed, "export", name), unit[own].mean(axis=0)
        found: list[tuple[float, list[int], Float64]] = []
        while len(found) < _DRAWS and (not found or found[-1][0] > limit):
            chosen = rng.choice(own, averaged, replace=False).tolist()
            vector = centre + grown * (unit[chosen].mean(axis=0) - centre)
            vector /= np.linalg.norm(vector)
            found.append((float((unit @ vector).max()), chosen, vector))
        nearest, chosen, xvectors[name] = min(found, key=lambda draw: draw[0])
        near += nearest > limit
        genders[name] = gender
        centre_f0, mixed = (_mean_f0(pool, places) for places in (own, chosen))
        f0[name] = mixed.shifted((grown - 1) * (mixed.mean - centre_f0.mean))
    write_packed(out / PACKED, xvectors, f0, genders)
    return near


def _mean_f0(pool: VoicePool, places: Sequence[int]) -> F0Stats:
    """Of some of the pool's speakers."""
    return mix_f0_stats(
        [pool.f0(pool.speakers[i]) for i in places], [1 / len(places)] * len(places)
    )


def export_system(
    conf: Path, synthesiser: Path, pool: Path, out: Path, *, n: int, averaged: int, seed: int
) -> int:
    """OUT/{system.yaml,spklist,synthesiser/,pool/}, in half precision; see `load_system`.

    Returns how many pseudo-speakers are near to a real one (`make_voices`).
    """
    settings, weights = trained_files(synthesiser)
    near = make_voices(VoicePool.load(pool), out / "pool", n=n, averaged=averaged, seed=seed)
    (out / "synthesiser").mkdir(parents=True, exist_ok=True)
    save_half(out / "synthesiser/final.safetensors", load_state(weights))
    shutil.copyfile(settings, out / "synthesiser/synthesiser.yaml")
    shutil.copyfile(conf, out / CONF)
    if (known := synthesiser / TRAINING_SPEAKERS).is_file():
        shutil.copyfile(known, out / TRAINING_SPEAKERS)
    return near
