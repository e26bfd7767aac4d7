"""Export of a system: a trained synthesiser, and pseudo-speakers that are nobody."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from steps.anonymisers.voice_conversion import CONF, R, nearest_voices
from steps.generators.base import Wanted, load_generator, units
from steps.generators.training import load_trained
from steps.sources import Resources, SystemRun, VoiceKey
from steps.synthesis.base import trained_files
from steps.synthesis.f0 import F0Stats, mix_f0_stats
from steps.synthesis.voices import PACKED, VoicePool, write_packed
from steps.training.weights import load_state, save_half
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import write_training_speakers
from utils.seeds import Draws, make_rng
from utils.settings import settings_text

_DRAWS = 100
_TRIES = 20 * _DRAWS  # of a generator whose voices have no gender to choose


Drawn = Iterator[tuple[Float64, F0Stats]]
Candidates = Callable[[str, str], Drawn]
"""Draws of x-vectors (d,) and their F0, to choose from, by a pseudo-speaker's name and gender."""


def make_voices(pool: VoicePool, out: Path, draws: Candidates, n: int) -> int:
    """Make n pseudo-speakers, half of each gender, who are nobody; x-vectors have length 1.

    The first of _DRAWS draws counts that is no nearer to a real speaker of the pool than 99 of 100
    real speakers are to another one, else the least near. Returns how many are nearer.
    """
    unit = units(pool.xvectors)
    among = unit @ unit.T
    np.fill_diagonal(among, -1.0)
    limit = float(np.quantile(among.max(axis=1), 0.99))
    xvectors, f0, genders, near = {}, {}, {}, 0
    for place in range(n):
        gender, name = "fm"[place % 2], f"pseudo-{place:04d}"
        found: list[tuple[float, Float64, F0Stats]] = []
        for drawn, stats in islice(draws(name, gender), _DRAWS):
            vector = drawn / np.linalg.norm(drawn)
            found.append((float((unit @ vector).max()), vector, stats))
            if found[-1][0] <= limit:
                break
        if not found:
            raise UserError(f"{pool.folder}: no voice of gender {gender} came out for {name}")
        nearest, xvectors[name], f0[name] = min(found, key=lambda draw: draw[0])
        near += nearest > limit
        genders[name] = gender
    write_packed(out / PACKED, xvectors, f0, genders)
    return near


def averages(pool: VoicePool, averaged: int, seed: int) -> Candidates:
    """Means of `averaged` speakers of a gender, as far apart as people are.

    The deviation from all of that gender is made sqrt(averaged) times as large, to undo the
    averaging; the mean of log F0 moves alike. UserError for too few speakers of a gender, and for
    one, whose voice it would be.
    """
    if averaged < 2:
        raise UserError(f"--averaged {averaged}: the voice of a real speaker; average 2 or more")
    unit, grown = units(pool.xvectors), np.sqrt(averaged)

    def draws(name: str, gender: str) -> Drawn:
        own = [i for i, who in enumerate(pool.speakers) if pool.gender(who) == gender]
        if len(own) < averaged + 1:
            raise UserError(
                f"{pool.folder}: {len(own)} voices of gender {gender}, and {averaged} of them are "
                "to be averaged"
            )
        rng, centre = make_rng(seed, "export", name), unit[own].mean(axis=0)
        centre_f0 = _mean_f0(pool, own)
        while True:
            chosen = rng.choice(own, averaged, replace=False).tolist()
            mixed = _mean_f0(pool, chosen)
            yield (
                centre + grown * (unit[chosen].mean(axis=0) - centre),
                mixed.shifted((grown - 1) * (mixed.mean - centre_f0.mean)),
            )

    return draws


def generated(pool: VoicePool, folder: Path, seed: int) -> Candidates:
    """Voices of a trained generator, with pitch and gender of the pool's nearest voices, as in a
    system of voice conversion."""
    conf = folder / "generator.yaml"
    named = {"name": load_trained(folder).name}
    generator = load_generator(named, SystemRun(conf, Resources(generator=folder), Draws(seed)))
    genders = [pool.gender(who) for who in pool.speakers]
    generator.fit(pool.xvectors, pool.speakers, genders)
    centre = pool.xvectors.mean(axis=0)

    def draws(name: str, gender: str) -> Drawn:
        for attempt in range(_TRIES):
            y, _ = generator.generate(Wanted(VoiceKey("export", (name, str(attempt)))))
            voices, weights = nearest_voices(y - centre, pool.speakers, pool.xvectors - centre, R)
            of_gender = [pool.gender(voice) == gender for voice in voices]
            if weights @ of_gender > 0.5:
                yield y, mix_f0_stats([pool.f0(voice) for voice in voices], weights.tolist())

    return draws


def _mean_f0(pool: VoicePool, places: Sequence[int]) -> F0Stats:
    """F0 statistics of some of the pool's speakers."""
    n = len(places)
    return mix_f0_stats([pool.f0(pool.speakers[i]) for i in places], [1 / n] * n)


def export_system(
    conf: Path, synthesiser: Path, pool: Path, out: Path, *,
    n: int, averaged: int, generator: Path | None, seed: int,
) -> int:  # fmt: skip
    """Write OUT/{system.yaml,spklist,synthesiser/,pool/}, in half precision; see `load_system`.

    Pseudo-speakers are those of a trained generator, else averages. spklist names the speakers of
    the pool and the training speakers of synthesiser and generator; there is none if some are
    unknown. Returns how many are near to a real one (`make_voices`).
    """
    settings, weights = trained_files(synthesiser)
    voices = VoicePool.load(pool)
    made = generated(voices, generator, seed) if generator else averages(voices, averaged, seed)
    near = make_voices(voices, out / "pool", made, n)
    (out / "synthesiser").mkdir(parents=True, exist_ok=True)
    save_half(out / "synthesiser/final.safetensors", load_state(weights))
    shutil.copyfile(settings, out / "synthesiser/synthesiser.yaml")
    (out / CONF).write_bytes(settings_text(conf))
    write_training_speakers(out, voices.speakers, synthesiser, generator)
    return near
