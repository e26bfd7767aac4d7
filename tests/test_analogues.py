"""Open analogues of paper 003's closed systems: noise, ranges, tubes, and who speaks how."""

import math
from pathlib import Path

import numpy as np
import pytest
from test_bn import no_recogniser, settings, train
from test_source_filter import pool

from steps.anonymisers.registry import Anonymiser, load_anonymiser
from steps.anonymisers.vocoder import log_areas, reflections, smoothed, tube_power
from steps.sources import Resources, SourceSpeaker, VoiceKey
from steps.synthesis import bottleneck
from steps.synthesis import content as bn_content
from steps.synthesis.base import ContentChange, Ranges
from steps.synthesis.f0 import compute_f0_stats
from tests.world import voice
from utils.arrays import Float64
from utils.seeds import Draws

__all__ = ["no_recogniser", "pool"]  # fixtures
RASP = (
    "f0: linear\nkeep: [energy]\ncontent: {step: 1.0}\n"
    "ranges: {pitch_shift: 0.15, pitch: [0.7, 1.4], energy: [0.7, 1.3]}\n"
)
VOXLET = "level: const\nf0: none\ncontent: {clip: 2, noise: laplace, epsilon: 5, offset: 0.3}\n"


# --- changes of content, ranges ---


def test_noise_has_the_deviation_of_its_mechanism():
    """Laplace of scale s / epsilon, of values from -clip to clip: deviation √2 s / epsilon."""
    change = ContentChange(clip=1.0, noise="laplace", epsilon=4.0).make(Draws())
    assert change(np.zeros((400, 500))).std() == pytest.approx(math.sqrt(2) / 2, rel=0.02)


def test_content_is_clipped_shifted_and_rounded():
    content = np.array([[-5.0, 0.2], [0.7, 3.0]])
    assert (ContentChange(clip=2.0).make(Draws())(content) == [[-2, 0.2], [0.7, 2]]).all()
    assert (ContentChange(step=1.0).make(Draws())(content) == [[-5, 0], [1, 3]]).all()
    moved = ContentChange(offset=0.5).make(Draws())(content) - content
    assert moved[0] == pytest.approx(moved[1]) and moved.any()
    other = ContentChange(offset=0.5).make(Draws(0, 1))(content) - content
    assert (other != moved).all()  # another profile
    half = ContentChange(centred=0.5).make(Draws())
    assert half(content) == pytest.approx(content - [-1.075, 0.8])
    alike = ContentChange(centred=1.0).make(Draws())
    offset = np.array([3.0, -1.0])  # another speaker's
    assert alike(content + offset) == pytest.approx(alike(content))
    noisy = ContentChange(clip=2.0, noise="laplace").make(Draws())
    assert (noisy(content) == noisy(content)).all()
    assert (noisy(content)[:1] != noisy(content[:1])).all()  # other content, other noise
    assert not ContentChange(clip=2.0, step=1.0).is_random


def test_ranges_stay_within_theirs():
    ranges = Ranges(0.2, (0.5, 2.0), (0.8, 1.2), 0.3)
    drawn = np.array([ranges.draw(np.random.default_rng(i)) for i in range(300)])
    assert (np.abs(drawn[:, 0]) <= 0.2).all() and drawn[:, 0].std() > 0.1
    assert drawn[:, 1].min() > 0.5 and drawn[:, 1].max() < 2.0
    assert np.log(drawn[:, 1]).mean() == pytest.approx(0.0, abs=0.1)
    assert (np.abs(drawn[:, 3]) <= 0.3).all() and drawn[:, 3].std() > 0.1
    stats = compute_f0_stats([np.array([100.0, 200.0])])
    assert stats.spread(2.0).sd == pytest.approx(2 * stats.sd)
    assert stats.spread(2.0).mean == stats.mean
    assert compute_f0_stats([]).spread(2.0).n == 0


# --- tubes ---


def test_reflections_by_hand():
    """r = 1, a, a² is a process of one pole at a: k = -a, 0."""
    found = reflections(np.array([[1.0], [0.6], [0.36]]))
    assert found.ravel() == pytest.approx([-0.6, 0.0], abs=1e-6)


def test_a_tube_s_spectrum_has_its_areas():
    rng = np.random.default_rng(1)
    areas = 0.6 * rng.standard_normal((20, 10))
    power = tube_power(areas, 513)
    assert log_areas(power, 10) == pytest.approx(areas, abs=1e-3)
    assert log_areas(7.0 * power, 10) == pytest.approx(log_areas(power, 10), abs=1e-6)
    silent = log_areas(np.zeros((3, 513)), 10)
    assert np.isfinite(silent).all()


def test_articulators_are_slow():
    times = np.arange(300) / 100
    slow, fast = np.sin(2 * np.pi * 2 * times), np.sin(2 * np.pi * 30 * times)
    found = smoothed((slow + fast)[:, None], 10.0)[:, 0]
    assert np.abs(found - slow)[30:-30].max() < 0.05
    assert (smoothed(np.ones((4, 2)), 10.0) == 1).all()


# --- systems ---


@pytest.fixture(scope="module")
def network(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from test_bn import Bands

    out = tmp_path_factory.mktemp("network")
    with pytest.MonkeyPatch.context() as patch:
        for module in (bottleneck, bn_content):
            patch.setattr(module, "load_extractor", lambda name, device="cpu": Bands())
        train(pool, out, settings())
    return out


def load(path: Path, body: str, pool: Path, network: Path, draw: int = 0) -> Anonymiser:
    if "articulation" not in body:
        body += (
            "anonymiser: voice_conversion\nsynthesiser: bn_mini\n"
            "generator: {name: random, averaged: 1}\ngender: any\n"
        )
    path.write_text(body)
    given = Resources(pool=pool, synthesiser=network, f0=pool)
    return load_anonymiser(path, Draws(0, draw), given)


def say(system: Anonymiser, who: str, wave: Float64) -> Float64:
    source = SourceSpeaker(who, f0=compute_f0_stats([np.linspace(100, 140, 50)]))
    return system.transform(wave, VoiceKey("spk", ("set", who)), source)[0]


@pytest.fixture
def with_f0(pool: Path) -> Path:
    from steps.synthesis.f0 import write_f0_stats

    names = [line.split()[0] for line in (pool / "spk2utt").read_text().splitlines()]
    stats = {n: compute_f0_stats([np.linspace(90 + i, 150 + i, 50)]) for i, n in enumerate(names)}
    write_f0_stats(pool, stats)
    return pool


@pytest.mark.parametrize("body", [VOXLET, RASP, "anonymiser: articulation\n"])
def test_a_profile_is_kept_and_two_differ(body, with_f0, network, tmp_path):
    wave = voice(1.0, 120, 550)
    conf = tmp_path / "conf.yaml"
    first, again = (load(conf, body, with_f0, network) for _ in range(2))
    second = load(conf, body, with_f0, network, draw=1)
    assert first.is_random
    made = say(first, "a", wave)
    assert len(made) == len(wave) and np.isfinite(made).all() and made.any()
    say(again, "b", wave)  # what was said before does not matter
    assert (say(again, "a", wave) == made).all()
    assert np.abs(say(second, "a", wave) - made).max() > 1e-3
    assert not say(first, "a", np.zeros(4000)).any()
