# SPDX-License-Identifier: Apache-2.0
"""A system that is handed on: a trained synthesiser, and pseudo-speakers that are nobody."""

import shutil
from pathlib import Path

import numpy as np

from steps.anonymisers.model import CONF
from steps.synthesis.f0 import mix_f0_stats
from steps.synthesis.trained import trained_files
from steps.synthesis.voice_pool import PACKED, VoicePool, write_packed
from steps.weights import load_state, save_half
from utils.cli import UserError
from utils.seeds import make_rng
from utils.speakers import TRAINING_SPEAKERS


def make_voices(pool: VoicePool, out: Path, *, n: int, averaged: int, seed: int) -> None:
    """n pseudo-speakers, half of each gender: the mean of `averaged` speakers of one gender, of
    length 1, with their mean F0. UserError for a pool that has too few of one."""
    unit = pool.xvectors / np.linalg.norm(pool.xvectors, axis=1, keepdims=True)
    xvectors, f0, genders = {}, {}, {}
    for place in range(n):
        gender, name = "fm"[place % 2], f"pseudo-{place:04d}"
        own = [i for i, who in enumerate(pool.speakers) if pool.gender(who) == gender]
        if len(own) < averaged + 1:
            raise UserError(
                f"{pool.folder}: {len(own)} voices of gender {gender}, and {averaged} of them are "
                "to be averaged"
            )
        chosen = make_rng(seed, "export", name).choice(own, averaged, replace=False)
        mean = unit[chosen].mean(axis=0)
        xvectors[name], genders[name] = mean / np.linalg.norm(mean), gender
        stats = [pool.f0(pool.speakers[i]) for i in chosen]
        f0[name] = mix_f0_stats(stats, [1 / averaged] * averaged)
    write_packed(out / PACKED, xvectors, f0, genders)


def export_system(
    conf: Path, synthesiser: Path, pool: Path, out: Path, *, n: int, averaged: int, seed: int
) -> None:
    """OUT/{system.yaml,synthesiser/,pool/}, in half precision; see `load_system`."""
    settings, weights = trained_files(synthesiser)
    make_voices(VoicePool.load(pool), out / "pool", n=n, averaged=averaged, seed=seed)
    (out / "synthesiser").mkdir(parents=True, exist_ok=True)
    save_half(out / "synthesiser/final.safetensors", load_state(weights))
    shutil.copyfile(settings, out / "synthesiser/synthesiser.yaml")
    shutil.copyfile(conf, out / CONF)
    if (known := synthesiser / TRAINING_SPEAKERS).is_file():
        shutil.copyfile(known, out / TRAINING_SPEAKERS)
