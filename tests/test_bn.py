"""Speech from a recogniser's content: extractors, training, conversion and its switches."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import soundfile
import torch
from conftest import MakeDataDir
from test_source_filter import N_XVECTOR, pool

from steps.anonymise import main as anonymise
from steps.anonymisers import voice_conversion
from steps.anonymisers.registry import describe_system
from steps.anonymisers.voice_conversion import ConversionSettings, VoiceConversion
from steps.audio import write_wav
from steps.content import extractors
from steps.content.extractors import at_frames, in_windows, load_extractor
from steps.content.units import UnitSettings, load_ear, make_units
from steps.export_system import main as export_system
from steps.generators.training import TrainingVectors, train_generator
from steps.protect_folder import main as protect_folder
from steps.speaker.vectors import read_xvectors
from steps.standalone.export import averages, make_voices
from steps.synthesis import bottleneck
from steps.synthesis import content as bn_content
from steps.synthesis.base import Target, draw_timing, load_synthesiser, pace, tilt
from steps.synthesis.bottleneck import (
    N_OUT,
    BnConfig,
    BnNetwork,
    BnShaping,
    BnSynthesiser,
    BnTraining,
    shaped,
)
from steps.synthesis.content import extract_content
from steps.synthesis.f0 import (
    compute_f0_stats,
    transform_linear,
    transform_quantised,
    write_f0_stats,
)
from steps.synthesis.training import train_synthesiser
from steps.synthesis.voices import PACKED, VoicePool, write_packed
from steps.synthesis.world import WorldFrames, analyse
from steps.train_synthesiser import main as train_program
from steps.training.settings import read_config
from tests.refusals import accepts, refuses, refuses_words
from tests.world import RATE, assert_same_network, audio_of, make_wavlm, needs_wheel, voice
from utils.settings import parse_settings, read_settings, to_plain, write_settings
from utils.tables import read_map, write_map

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "egs/TEMPLATE/conf/synthesisers"
__all__ = ["pool"]  # a fixture
WAVE = voice(1.0, 120, 550)


class Bands:
    """Content without a recogniser: which of eight bands is the strongest; blind to loudness."""

    width, hop, first, digest = 8, 384, 447, "bands"

    def __call__(self, wave: np.ndarray) -> np.ndarray:
        starts = range(0, len(wave) - 894, 384)
        spectra = [np.abs(np.fft.rfft(wave[i : i + 895] * np.hanning(895)))[1:409] for i in starts]
        bands = np.array(spectra).reshape(-1, 8, 51).sum(axis=2) + 1e-9
        return (bands / bands.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(autouse=True)
def no_recogniser(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bottleneck, bn_content):
        monkeypatch.setattr(module, "load_extractor", lambda name, device="cpu": Bands())


def settings(steps: int = 12) -> BnConfig:
    plan = BnTraining(
        steps=steps, batch=3, crop_seconds=0.5, valid_every=6, checkpoint_every=6, valid_speakers=2
    )
    return BnConfig("bn", plan, network=BnNetwork(channels=16, dilations=(1, 2), condition=8))


def train(pool: Path, out: Path, config: BnConfig, seed: int = 0, onto: Path | None = None) -> None:
    given = {"onto": onto} if onto else {}
    train_synthesiser(BnSynthesiser, config, audio_of(pool), pool, out, seed=seed, **given)


@pytest.fixture(scope="module")
def trained(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bn_content, "load_extractor", lambda name, device="cpu": Bands())
        train(pool, out, settings(60))
    return out


def target(seed: int = 0) -> Target:
    x = np.random.default_rng(seed).standard_normal(N_XVECTOR)
    return Target(x, (), np.zeros(0), compute_f0_stats([np.full(50, 200.0)]))


def test_content_stands_at_the_frames_of_world() -> None:
    extractor = Bands()
    ramp = np.repeat(np.arange(5, dtype=np.float32)[:, None], 8, axis=1)
    found = at_frames(ramp, extractor, 20, 160)[:, 0]
    middles = (np.arange(20) * 160 - 447) / 384
    assert np.allclose(found, np.clip(middles, 0, 4), atol=1e-6)
    assert not at_frames(ramp[:0], extractor, 4, 160).any()
    assert (at_frames(ramp[2:3], extractor, 4, 160) == 2).all()


def test_windows_have_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractors, "LONGEST", 8.0)
    monkeypatch.setattr(extractors, "_OVERLAP", 1.0)
    wave = voice(30.3, 120, 500)
    extractor = Bands()
    assert (in_windows(extractor, wave, 384) == extractor(wave)).all()


@needs_wheel
def test_the_recogniser_s_encoder_hears_long_speech_like_short_speech(monkeypatch):
    extractor = load_extractor("moonshine")
    wave = voice(14.0, 120, 500)
    whole = extractor(wave)
    assert whole.shape == ((len(wave) - 895) // 384 + 1, 288)
    monkeypatch.setattr(extractors, "LONGEST", 8.0)
    apart = extractor(wave)
    assert apart.shape == whole.shape
    cosine = (apart * whole).sum(1) / np.linalg.norm(apart, axis=1) / np.linalg.norm(whole, axis=1)
    assert cosine.mean() > 0.95
    assert extractor(np.zeros(100)).shape == (0, 288)


@pytest.mark.slow
def test_a_model_of_the_hub_gives_its_layers(tmp_path: Path) -> None:
    extractor = load_extractor(f"hub:{make_wavlm(tmp_path)}:1")
    assert extractor(voice(1.0, 120, 500)).shape == (49, 16)
    assert (extractor.hop, extractor.width) == (320, 16)
    wave = voice(1.0, 120, 500)
    heard = load_ear(f"hub:{tmp_path}:1")(torch.from_numpy(wave.astype(np.float32))[None])
    assert np.allclose(heard[0].detach(), extractor(wave), atol=1e-5)
    # Large models heard the level: they expect speech of mean 0 and variance 1.
    assert np.allclose(extractor(9 * wave), extractor(99 * wave), atol=1e-3)
    refuses("has 2 layers", load_extractor, f"hub:{tmp_path}:3")
    refuses("cannot be loaded", load_extractor, f"hub:{tmp_path / 'nothing'}:1")
    refuses("no content; known: moonshine, whisper, hub:", load_extractor, "vowels")


def test_content_that_was_found_once_makes_the_same_network(pool, tmp_path, run_program):
    conf, small = tmp_path / "bn.yaml", "{channels: 8, dilations: [1], condition: 4}"
    plan = "{steps: 2, batch: 2, crop_seconds: 0.3}"
    plain = f"synthesiser: bn\ncontent: cepstra\nnetwork: {small}\ntraining: {plan}\n"
    conf.write_text(plain)
    run_program("steps/extract_content.py", conf, pool, tmp_path / "content", status=0)
    program, given = "steps/train_synthesiser.py", ("--content", tmp_path / "content")
    for more, out in (((), "found"), (given, "given")):
        run_program(program, *more, conf, pool, pool, tmp_path / out, status=0)
    assert_same_network(tmp_path / "found", tmp_path / "given")
    assert (tmp_path / "found/spklist").read_text().split() == [f"s{i}" for i in range(6)]
    for options, text, why in (
        (("--not-speakers-of", pool), plain, "must not be in training"),
        (given, f"{plain}augmentation: {{pitch: 0.1}}\n", "content.json: is of {'bend'"),
        (given, "synthesiser: nsf\ntraining: {steps: 2}\n", "takes no content"),
    ):
        conf.write_text(text)
        done = run_program(program, *options, conf, pool, pool, tmp_path / "out")
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr


def test_it_learns(trained: Path) -> None:
    header, *rows = (trained / "training.tsv").read_text().splitlines()
    column = header.lstrip("#").split("\t").index("loss")
    figures = [float(row.split("\t")[column]) for row in rows]
    assert figures[-1] < 0.95 * figures[0]


def test_conversion_keeps_length_silence_and_power_and_draws_nothing(trained: Path) -> None:
    synthesiser = load_synthesiser(trained)
    wave = voice(1.0, 120, 550)
    wave[6000:10000] = 0.0
    made = synthesiser.convert(wave, target(), lambda f0: f0)
    assert made.shape == wave.shape
    assert not made[7000:9000].any()
    assert np.isclose(np.mean(made**2), np.mean(wave**2), rtol=0.05)
    assert (made == synthesiser.convert(wave, target(), lambda f0: f0)).all()
    assert not np.allclose(made, synthesiser.convert(wave, target(1), lambda f0: f0))
    assert not synthesiser.convert(np.zeros(8000), target(), lambda f0: f0).any()
    assert synthesiser.convert(wave[:300], target(), lambda f0: f0).shape == (300,)


def test_faint_speech_is_spoken_whole_and_as_faint_as_it_was(trained: Path) -> None:
    synthesiser, wave = load_synthesiser(trained), voice(1.0, 120, 550)
    wave *= np.sqrt(bottleneck._FAINT / 2) / wave.std() * np.linspace(0.3, 1, len(wave))
    usual, faint = (synthesiser.convert(wave * by, target(), lambda f0: f0) for by in (1, 0.03))
    assert np.allclose(faint / 0.03, usual, atol=1e-3 * usual.std())
    assert not synthesiser.convert(wave * 1e-3, target(), lambda f0: f0).any()  # the last bits


def test_timing_moves_what_is_spoken_within_bounds_and_keeps_the_length(trained: Path) -> None:
    places = draw_timing(np.random.default_rng(0), 300, 0.5)
    assert places[[0, -1]].tolist() == [0, 299]
    rates = np.diff(places)
    assert 0.5 <= rates.min() < 0.9 and 1.1 < rates.max() <= 1.5
    assert 2 < np.abs(places - np.arange(300)).max() <= 15
    assert draw_timing(np.random.default_rng(0), 1, 0.5).tolist() == [0]
    contour = np.array([0.0, 100.0, 200.0, 0.0])
    moved = bottleneck.f0_at(contour, np.array([0.4, 1.5, 2.4, 3.0]))
    assert moved == pytest.approx([0, 150, 200, 0])
    wave, synthesiser = voice(1.0, 120, 550), load_synthesiser(trained, keep=("energy",))
    late = replace(target(), timing=lambda f0: np.maximum(np.arange(len(f0)) - 20.0, 0))
    wave[:4800] = 0.0
    made = synthesiser.convert(wave, late, lambda f0: f0)
    assert made.shape == wave.shape
    assert not made[:7500].any() and made[9000:].any()  # it sounds 0.2 s later


class Largest:
    """A generator whose draws are the upper end."""

    def uniform(self, low: float, high: float) -> float:
        return high


def test_pace_by_hand() -> None:
    """Twice as fast is half as long; a pause doubles but for 80 ms on either side of it, which may
    be sounds without voice, and 0.2 s without voice are no pause."""
    contour = np.repeat([100.0, 0.0, 100.0, 0.0, 100.0], [10, 40, 10, 20, 20])
    fast, same, slow = (
        pace(cast(Any, Largest()), contour, rate, most)
        for rate, most in ((2.0, 0.0), (1.0, 0.0), (1.0, 1.0))
    )
    assert fast == pytest.approx(np.arange(50) * 2 + 0.5)
    assert same == pytest.approx(np.arange(100))
    assert len(slow) == 100 + 40 - 2 * 8
    assert slow[:18] == pytest.approx(np.arange(18))
    assert slow[-58:] == pytest.approx(np.arange(42, 100))
    assert np.diff(slow[19:65]) == pytest.approx(0.5)


def test_a_phrase_is_tilted_around_its_middle() -> None:
    """By hand, 0.5 log Hz a second: two phrases of 0.41 s rise by 0.2 each, over a sound without
    voice too; a pause stays."""
    phrase = np.r_[np.full(20, 100.0), 0.0, np.full(20, 100.0)]
    made = tilt(np.r_[phrase, np.zeros(30), phrase], 0.5)
    first, pause, second = np.split(made, [41, 71])
    assert first == pytest.approx(second)
    assert np.log(first[[0, 19, 21, 40]] / 100) == pytest.approx([-0.1, -0.005, 0.005, 0.1])
    assert not first[20] and not pause.any()


def test_variance_rises_to_the_speaker_s_within_bounds() -> None:
    made = np.zeros((6, N_OUT))
    made[:4] = np.array([1.0, 3.0, 1.0, 3.0])[:, None]  # mean 2, deviation 1
    made[4:] = 50.0  # silence, which does not count
    sounds = np.arange(6) < 4
    wanted = np.full(N_OUT, 4.0)
    wanted[1], wanted[2] = 100.0, 0.01
    given = [torch.from_numpy(x)[None] for x in (made, np.log(wanted), sounds)]
    out = shaped(*given, BnShaping())[0].numpy()
    assert out[:2, 3] == pytest.approx([0.0, 4.0])  # twice the deviation
    assert out[:2, 1] == pytest.approx([-0.5, 4.5])  # 2.5 times, no more
    assert out[:2, 2] == pytest.approx([1.0, 3.0])  # it never falls
    sharp = shaped(*given, BnShaping(variance=4.0, emphasis=1.5))[0].numpy()
    assert sharp[:2, 3] == pytest.approx([0.0, 6.0])
    assert sharp[:2, 1] == pytest.approx([-2.0, 6.0])  # 4 times; the tilt has no emphasis
    for each in (out, sharp):
        assert (each[:, [0, N_OUT - 1]] == made[:, [0, N_OUT - 1]]).all()  # power, aperiodicity


def test_only_what_is_kept_of_the_source_remains(trained: Path) -> None:
    swell = WAVE * np.linspace(0.2, 1.0, len(WAVE))
    contour = analyse(WAVE).f0
    assert isinstance(load_synthesiser(trained), BnSynthesiser)

    def loudness(keep: tuple[str, ...], source: np.ndarray) -> float:
        """Second half against first, in the source's place."""
        made = load_synthesiser(trained, keep=keep).convert(source, target(), lambda _: contour)
        half = RATE // 2
        return float(np.log(np.mean(made[half:] ** 2) / np.mean(made[:half] ** 2)))

    lost = loudness((), swell) - loudness((), WAVE)
    kept = loudness(("energy",), swell) - loudness(("energy",), WAVE)
    assert abs(lost) < 0.05
    assert kept > 1.0


def test_it_speaks_in_frames_of_5_ms_with_the_source_s_voicing(trained, monkeypatch):
    spoken: list[WorldFrames] = []

    def listen(frames: WorldFrames, n_samples: int) -> np.ndarray:
        spoken.append(frames)
        return np.ones(n_samples)

    monkeypatch.setattr(bottleneck.world, "synthesise", listen)
    wave = np.concatenate((voice(0.5, 120, 550), np.zeros(4000), voice(0.5, 120, 550)))
    contour = analyse(wave).f0
    wanted = np.where(contour > 0, np.linspace(150, 250, len(contour)), 0.0)
    load_synthesiser(trained).convert(wave, target(), lambda _: wanted)
    (frames,) = spoken
    assert len(frames) == 2 * len(contour)
    assert frames.shift == 0.005
    assert frames.f0[::2] == pytest.approx(wanted)
    assert ((frames.f0[1::2] > 0) == (wanted > 0)).all()
    inside = np.flatnonzero((wanted[:-1] > 0) & (wanted[1:] > 0))
    between = (wanted[inside] + wanted[inside + 1]) / 2
    assert frames.f0[1::2][inside] == pytest.approx(between, rel=1e-3)


def test_quantised_f0_has_few_steps_about_the_linear_one() -> None:
    rng = np.random.default_rng(0)
    held = np.repeat(np.exp(4.8 + 0.2 * rng.standard_normal(80)), 25)  # 80 pitches of 250 ms
    contour = np.where(np.arange(2000) % 100 < 10, 0.0, held)
    source = compute_f0_stats([contour])
    wanted = compute_f0_stats([np.exp(5.3 + 0.15 * rng.standard_normal(500))])
    linear = transform_linear(contour, source, wanted)
    made = transform_quantised(contour, source, wanted)
    assert ((made == 0) == (contour == 0)).all()
    assert (made == transform_quantised(contour, source, wanted)).all()
    inside = contour > 0  # where the smoothing over five frames sees one pitch
    for by in (-2, -1, 1, 2):
        inside &= contour == np.roll(contour, by)
    step = wanted.sd / 3
    right = wanted.mean + step * np.rint((np.log(linear[inside]) - wanted.mean) / step)
    # The window has weights of 1, 3, 4, 3 and 1 twelfths, which halve white noise.
    assert np.isclose((np.log(made[inside]) - right).std(), 0.015, rtol=0.15)
    plain = transform_quantised(contour, source, wanted, noise=0)
    assert np.log(plain[inside]) == pytest.approx(right)
    coarse = transform_quantised(contour, source, wanted, step=1, noise=0)
    assert len(np.unique(np.round(coarse[inside], 6))) < 9  # all within four deviations


def test_quantised_f0_is_smooth_between_its_steps() -> None:
    slope = np.exp(np.linspace(4.6, 5.0, 400))
    stats = compute_f0_stats([slope])
    made = np.log(transform_quantised(slope, stats, stats, noise=0))
    assert np.abs(np.diff(made)).max() <= stats.sd / 3 * 0.34  # 4 twelfths of a step a frame


def test_cepstra_are_content_without_energy() -> None:
    extractor, wave = load_extractor("cepstra"), voice(0.5, 120, 500)
    found = extractor(wave)
    assert np.allclose(found, extract_content(analyse(wave).envelope, 20).features[:, 1:])
    assert extractor(0.3 * wave) == pytest.approx(found, abs=1e-3)
    assert at_frames(found, extractor, 51, 160) == pytest.approx(found)
    assert extractor(np.zeros(0)).shape == (0, 20)


def test_kmeans_gives_each_frame_its_cluster_s_centre() -> None:
    frames = np.random.default_rng(0).standard_normal((400, 6)).astype(np.float32)
    frames += 9 * (np.arange(400) % 3)[:, None]
    units = make_units(UnitSettings("kmeans", n=3), 6)
    units.fit(frames, seed=0)
    made = units(torch.from_numpy(frames.T[None].copy()))[0].numpy().T
    clusters = [frames[i::3].mean(axis=0) for i in range(3)]
    assert made == pytest.approx(np.array(clusters)[np.arange(400) % 3], abs=0.3)
    assert len(np.unique(made, axis=0)) == 3
    refuses(r"units.n: 3, but there are 2 frames", units.fit, frames[:2], seed=0)


def test_of_units_and_a_melody_of_its_own_the_source_s_f0_is_nothing(pool, trained, tmp_path):
    plain = settings(6)
    config = replace(
        plain, units=UnitSettings("kmeans", n=5), network=replace(plain.network, melody=8)
    )
    train(pool, tmp_path, config)
    synthesiser = load_synthesiser(tmp_path, own_f0=True)
    assert isinstance(synthesiser, BnSynthesiser)
    voiced = analyse(WAVE).f0 > 0
    wanted = compute_f0_stats([np.exp(5.3 + 0.15 * np.random.default_rng(0).standard_normal(99))])
    content = at_frames(Bands()(WAVE), Bands(), len(voiced), 160)
    made = synthesiser._predict_f0(content, voiced, wanted)
    again = compute_f0_stats([made])
    assert ((made > 0) == voiced).all()
    assert (again.mean, again.sd) == pytest.approx((wanted.mean, wanted.sd), rel=0.1)

    def never(contour: np.ndarray) -> np.ndarray:
        raise AssertionError("the source's contour was asked for")

    assert synthesiser.convert(WAVE, replace(target(), f0=wanted), never).any()
    refuses("it was trained without network.melody", load_synthesiser, trained, own_f0=True)


def test_a_melody_is_put_onto_a_network_that_stays_as_it_is(pool, trained, tmp_path):
    plain = settings(6)
    config = replace(plain, network=replace(plain.network, melody=8))
    train(pool, tmp_path / "more", config, onto=trained)
    before, after = (torch.load(folder / "final.pt") for folder in (trained, tmp_path / "more"))
    assert all(torch.equal(after[name], part) for name, part in before.items())
    assert {name.partition(".")[0] for name in after.keys() - before.keys()} == {"melody"}
    said, again = (
        load_synthesiser(folder).convert(WAVE, target(), lambda f0: f0)
        for folder in (trained, tmp_path / "more")
    )
    assert (said == again).all()
    assert load_synthesiser(tmp_path / "more", own_f0=True).convert(WAVE, target(), np.copy).any()
    base, told = (
        read_settings(folder / "synthesiser.yaml") for folder in (trained, tmp_path / "more")
    )
    assert told["training"]["steps"] == 6
    assert told["trained"]["onto"] == base
    assert base["training"]["steps"] == base["trained"]["step"] == 60
    for onto, other, why in (
        (tmp_path / "more", config, "onto a network without it.*none would be"),
        (trained, replace(config, network=replace(config.network, channels=8)), "does not hold"),
        (trained, replace(config, shaping=BnShaping(emphasis=1.2)), "emphasis=1.0.*must be"),
    ):
        refuses(why, train, pool, tmp_path / "refused", other, onto=onto)


def test_a_melody_forgot_whom_the_network_under_it_learnt_from(
    pool: Path, trained: Path, tmp_path: Path, make_data_dir: MakeDataDir
) -> None:
    plain, conf, model = settings(2), tmp_path / "bn.yaml", tmp_path / "model"
    write_settings(conf, to_plain(replace(plain, network=replace(plain.network, melody=8))))
    shutil.copytree(trained, model / "synthesiser")
    (model / "spklist").write_text("bea\n")  # a model has its list beside the network
    seen = make_data_dir(tmp_path / "seen", {"bea": 1})
    beside, words = ("--not-speakers-of", seen), (conf, pool, pool, tmp_path / "out")
    words = ("--onto", model / "synthesiser", *words)
    refuses_words("speaker bea .* is also in .*seen", train_program, *beside, *words)
    accepts(train_program, *words)
    spklist = tmp_path / "out/spklist"
    assert spklist.read_text().split() == ["bea", *(f"s{i}" for i in range(6))]
    (model / "spklist").unlink()
    accepts(train_program, *beside, *words)
    assert not spklist.exists()


def test_a_style_is_a_name_for_f0_and_what_is_kept(tmp_path: Path) -> None:
    conf = tmp_path / "s.yaml"

    def resolved(text: str) -> ConversionSettings:
        conf.write_text(f"{text}\n")
        return VoiceConversion.parse(read_settings(conf), conf).own

    base = "anonymiser: voice_conversion\ngenerator: {name: random}\nsynthesiser: "
    for style, f0, keep in (("source", "linear", ["energy"]), ("reference", "predicted", [])):
        named = resolved(f"{base}bn_mini\nstyle: {style}")
        said = resolved(f"{base}bn_mini\nf0: {f0}\nkeep: {keep}")
        assert replace(named, style=None) == said
    # what models/bn says of F0 gives way to a style
    assert describe_system(ROOT / "egs/TEMPLATE/conf/systems/bn_reference.yaml").needs == (
        "model:bn",
    )


def test_the_file_of_models_bn_tells_of_both_of_its_trainings() -> None:
    path = ROOT / "models/bn/synthesiser/synthesiser.yaml"
    melody, base = read_settings(path), read_settings(path)["trained"]["onto"]
    assert (melody["training"]["steps"], base["training"]["steps"]) == (1500, 1600)
    assert base["hearing"] == {"weight": 3.0, "steps": 400, "batch": 5, "crop_seconds": 3.2}
    trained = base.pop("trained")
    assert parse_settings(BnConfig, base, path) == read_config(BnConfig, CONF / "bn_mini.yaml")
    assert trained["content_digest"] == melody["trained"]["content_digest"]


def test_the_settings_of_models_bn2_are_those_of_the_recipe() -> None:
    path = ROOT / "models/bn2/synthesiser/synthesiser.yaml"
    told: Any = read_settings(path)["trained"]["onto"]
    assert read_config(BnConfig, path) == read_config(BnConfig, CONF / "bn_reader.yaml")
    assert told.pop("trained")["device"] == "cuda"
    assert parse_settings(BnConfig, told, path) == read_config(BnConfig, CONF / "bn_base.yaml")
    learnt = set((ROOT / "models/bn2/spklist").read_text().split())
    assert learnt > set((ROOT / "models/bn/spklist").read_text().split()) and len(learnt) == 258


@pytest.mark.parametrize("name", sorted({p.stem for p in CONF.glob("bn_*.yaml")} - {"bn_hifigan"}))
def test_the_settings_of_the_recipes_are_read(name: str) -> None:
    assert read_config(BnConfig, CONF / f"{name}.yaml").content == "moonshine"


def test_content_of_other_weights_is_refused(trained, monkeypatch):
    other = Bands()
    other.digest = "others"
    monkeypatch.setattr(bottleneck, "load_extractor", lambda name, device="cpu": other)
    refuses("other weights", load_synthesiser, trained)


@pytest.fixture
def exported(trained: Path, pool: Path, tmp_path: Path) -> Path:
    """A system of the tiny network and twelve pseudo-speakers."""
    whole = tmp_path / "pool"
    shutil.copytree(pool, whole)
    names = [f"s{i}" for i in range(6)]
    stats = {n: compute_f0_stats([np.linspace(90 + i, 130 + i, 50)]) for i, n in enumerate(names)}
    write_f0_stats(whole, stats)
    write_map(whole / "spk2gender", {n: "fm"[i % 2] for i, n in enumerate(names)})
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        "anonymiser: voice_conversion\nsynthesiser: bn_mini\n"
        "generator: {name: random, averaged: 1}\nlevel: spk\ngender: any\nf0: quantised\n"
    )
    told = ["--voices", 12, "--averaged", 2, conf, trained, whole, tmp_path / "model"]
    accepts(export_system, *told)
    return tmp_path / "model"


def test_a_system_that_is_handed_on_holds_nobody_and_protects(exported, pool, trained, tmp_path):
    voices = VoicePool.load(exported / "pool")
    assert len(voices.speakers) == 12
    assert {voices.gender(name) for name in voices.speakers} == {"f", "m"}
    assert voices.f0(voices.speakers[0]).n > 0
    real = read_xvectors(pool, "spk_xvector")
    unit = np.stack([x / np.linalg.norm(x) for x in real.values()])
    assert np.allclose(np.linalg.norm(voices.xvectors, axis=1), 1, atol=1e-3)
    assert (voices.xvectors @ unit.T).max() < 0.999
    refuses("x-vectors only", voices.frames, voices.speakers[0])
    half, full = load_synthesiser(exported / "synthesiser"), load_synthesiser(trained)
    made = half.convert(WAVE, target(), lambda f0: f0)
    right = full.convert(WAVE, target(), lambda f0: f0)
    assert np.corrcoef(made, right)[0, 1] > 0.95
    write_wav(tmp_path / "in/a.wav", WAVE)
    words = ["--system", exported, "--key", "a key of sixteen", tmp_path / "in", tmp_path / "out"]
    accepts(protect_folder, *words)
    assert len(soundfile.read(tmp_path / "out/a.wav")[0]) == len(WAVE)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> VoicePool:
    """120 of two genders, who differ in voice and pitch."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("people")
    names = [f"s{i:03d}" for i in range(120)]
    sides = rng.standard_normal((2, 64))
    real = {n: 3 + sides[i % 2] + rng.standard_normal(64) for i, n in enumerate(names)}
    log_f0 = {
        n: 4.7 + 0.4 * (i % 2 == 0) + 0.1 * rng.standard_normal() for i, n in enumerate(names)
    }
    stats = {
        n: compute_f0_stats([np.exp(x + np.linspace(-0.1, 0.1, 9))]) for n, x in log_f0.items()
    }
    write_packed(folder / PACKED, real, stats, {n: "fm"[i % 2] for i, n in enumerate(names)})
    return VoicePool.load(folder)


def mean_cosine(vectors: np.ndarray) -> float:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return float((unit @ unit.T)[np.triu_indices(len(unit), 2)].mean())


def pitches(voices: VoicePool, gender: str) -> list[float]:
    return [voices.f0(who).mean for who in voices.speakers if voices.gender(who) == gender]


def test_pseudo_speakers_are_nobody_and_as_far_apart_as_people(people, tmp_path):
    """They were means, and so nearer to each other and to their parts than people are."""
    near = make_voices(people, tmp_path, averages(people, 4, seed=0), 200)
    made = VoicePool.load(tmp_path)
    assert near < 20
    assert np.isclose(mean_cosine(made.xvectors), mean_cosine(people.xvectors), atol=0.01)
    for gender in "fm":
        means, wanted = pitches(made, gender), pitches(people, gender)
        assert np.isclose(np.mean(means), np.mean(wanted), atol=0.05)
        assert np.isclose(np.std(means), np.std(wanted), rtol=0.25)


def test_a_pseudo_speaker_averaged_of_one_was_that_person(people: VoicePool) -> None:
    refuses("--averaged 1: the voice of a real speaker", averages, people, 1, seed=0)


@pytest.mark.slow
def test_pseudo_speakers_of_a_generator_have_the_pitch_of_voices_like_theirs(
    people: VoicePool, trained: Path, exported: Path, tmp_path: Path
) -> None:
    noise = 0.3 * np.random.default_rng(1).standard_normal((240, 64))
    vectors = (np.repeat(people.xvectors, 2, axis=0) + noise).astype(np.float32)
    data = TrainingVectors(people.speakers, vectors, np.repeat(np.arange(120), 2))
    small = {"network": {"identity": 128, "width": 64}, "training": {"steps": 600}}
    generator, synthesiser = tmp_path / "generator", tmp_path / "bn"
    train_generator({"generator": "idmap_mlp", **small}, "conf", data, generator, seed=0)
    shutil.copytree(trained, synthesiser)
    (synthesiser / "spklist").write_text("ann\n")
    (generator / "spklist").write_text("bea\n")

    def export(out: Path) -> VoicePool:
        given = ["--voices", 30, "--generator", generator, exported / "system.yaml"]
        accepts(export_system, *given, synthesiser, people.folder, out)
        return VoicePool.load(out / "pool")

    made = export(tmp_path / "out")
    assert abs(mean_cosine(made.xvectors) - mean_cosine(people.xvectors)) < 0.05
    assert len(pitches(made, "f")) == len(pitches(made, "m")) == 15
    assert min(pitches(made, "f")) > max(pitches(made, "m"))
    known = (tmp_path / "out/spklist").read_text().split()
    assert known == ["ann", "bea", *people.speakers]  # whose voices are also in it
    (generator / "spklist").unlink()
    again = export(tmp_path / "out")
    assert (again.xvectors == made.xvectors).all()
    assert not (tmp_path / "out/spklist").exists()  # whom the generator learnt from is not known


def test_a_recipe_runs_a_model_as_it_is_but_not_on_its_training_speakers(
    exported: Path, tmp_path: Path, make_data_dir: MakeDataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice_conversion, "MODELS", exported.parent)
    conf = tmp_path / "system.yaml"
    conf.write_text("anonymiser: model\nmodel: model\n")
    found = describe_system(conf)
    assert (found.level, found.needs) == ("spk", ("f0", "model:model"))
    f0 = tmp_path / "f0"
    write_f0_stats(f0, {"ann": compute_f0_stats([np.linspace(100, 140, 50)])})
    (exported / "spklist").write_text("bea\ncem\n")
    data = make_data_dir(tmp_path / "data", {"ann": 1}, seconds=0.4)
    words = ["--model", exported, "--f0", f0, conf, data, tmp_path / "out", tmp_path / "wav"]
    seen = make_data_dir(tmp_path / "seen", {"bea": 1})
    said = r"speaker bea \(1 in all\) is also in .*seen"
    refuses_words(said, anonymise, "--not-speakers-of", seen, *words)
    accepts(anonymise, "--not-speakers-of", data, *words)
    settings = json.loads((tmp_path / "out/conf.json").read_text())["system"]
    assert (settings["f0"], settings["gender"]) == ("quantised", "any")
    conf.write_text("anonymiser: model\nmodel: model\nlevel: utt\nf0: none\n")
    assert describe_system(conf).level == "utt"
    assert describe_system(conf).needs == ("model:model",)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "egs").mkdir()
    monkeypatch.chdir(tmp_path / "egs")  # a path was taken as relative to models/
    conf.write_text("anonymiser: model\nmodel: ../model\n")
    assert describe_system(conf).needs == ("f0", "model:../model")
    conf.write_text("anonymiser: model\nmodel: nobody\n")
    refuses(r"nobody/system.yaml is missing; known models: model", describe_system, conf)


def test_the_length_follows_rate_and_pauses(
    exported: Path, tmp_path: Path, make_data_dir: MakeDataDir
) -> None:
    """In a data directory and in a folder, whose pieces follow one another; equal keys, equal
    lengths. The shorter channel is padded: they were refused."""
    with (exported / "system.yaml").open("a") as stream:
        stream.write("rate: 0.5\npauses: 0.9\n")
    wave = np.concatenate([voice(11.0, 120, 550), 1e-4 * voice(1.0, 90, 500)] * 2)
    write_wav(tmp_path / "in/a.wav", wave)
    words = ["--system", exported, "--key", "a key of sixteen", tmp_path / "in"]
    for out in ("out", "again"):
        accepts(protect_folder, *words, tmp_path / out)
    made, again = (soundfile.read(tmp_path / out / "a.wav")[0] for out in ("out", "again"))
    assert (made == again).all()
    assert 0.05 < abs(len(made) / len(wave) - 1) < 0.6
    assert np.abs(made).max() == pytest.approx(0.95, abs=1e-3)  # at nobody's level
    short = wave[:64000]
    soundfile.write(tmp_path / "in/a.wav", np.stack([short, short[::-1]], axis=1), RATE)
    accepts(protect_folder, "--channels", "each", *words, tmp_path / "two")
    both = soundfile.read(tmp_path / "two/a.wav")[0]
    assert both.shape[1] == 2 and all(channel.any() for channel in both.T)
    data, conf = make_data_dir(tmp_path / "data", {"ann": 2}, seconds=1.0), tmp_path / "s.yaml"
    write_map(data / "utt2dur", dict.fromkeys(read_map(data / "utt2spk"), 1.0))
    conf.write_text("anonymiser: model\nmodel: model\nf0: none\n")
    accepts(anonymise, "--model", exported, conf, data, tmp_path / "paced", tmp_path / "wav")
    for utt, seconds in read_map(tmp_path / "paced/utt2dur").items():
        length = len(soundfile.read(tmp_path / f"wav/{utt}.wav")[0]) / RATE
        assert float(seconds) == pytest.approx(length, abs=1e-4)
        assert abs(float(seconds) - 1) > 0.02


def test_damaged_voices_are_one_line(exported: Path) -> None:
    path = exported / "pool/voices.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    refuses(r"voices.safetensors: holds no voices", VoicePool.load, exported / "pool")
