"""B1: pseudo-speakers by key, the voices near them, their F0, and frames mixed by WORLD."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from steps.anonymise import main
from steps.anonymisers import voice_conversion
from steps.anonymisers.registry import Description, load_anonymiser
from steps.anonymisers.voice_conversion import (
    ConversionSettings,
    Parsed,
    VoiceConversion,
    nearest_voices,
)
from steps.generators.base import Wanted
from steps.sources import Resources, SourceSpeaker, make_keys
from steps.synthesis.base import ContentChange, Target
from steps.synthesis.f0 import F0Stats, compute_f0_stats, mix_f0_stats
from steps.synthesis.matching import WorldSynthesiser
from steps.synthesis.voices import VoicePool, match_vectors
from steps.synthesis.world import analyse, synthesise
from tests.refusals import accepts, refuses, refuses_file
from tests.world import (
    ODD_SIGNALS,
    RATE,
    check_in_parts,
    check_odd_signal,
    pseudo_rows,
    run_of,
    say,
    write_voices,
)
from utils.archives import read_vectors, write_archive
from utils.seeds import Draws

RANDOM = "anonymiser: voice_conversion\ngenerator: {name: random, averaged: 2}\n"
FARTHEST = (
    "anonymiser: voice_conversion\n"
    "generator: {name: farthest, distance: cosine, candidates: 3, averaged: 2}\n"
)
GENDERS = {f"{gender}{number}": gender for gender in "fm" for number in range(5)}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five voices a gender, with x-vectors (6,) that differ by gender and speaker."""
    voices = {
        speaker: (gender, analyse(say(i, 95 + 9 * (i % 5) + 100 * (gender == "f"))))
        for i, (speaker, gender) in enumerate(GENDERS.items())
    }
    return write_voices(tmp_path_factory.mktemp("pool"), voices, 6)


@pytest.fixture
def load(pool: Path, tmp_path: Path):
    """A system of a text, with the pool and an F0 folder that is not read here."""

    def make(text: str, folder: Path = pool, **options: int):
        path = tmp_path / "system.yaml"
        path.write_text(text)
        return load_anonymiser(path, Draws(**options), Resources(folder, (folder,), f0=folder))

    return make


def source(name: str = "s1", gender: str | None = "f", **other: object) -> SourceSpeaker:
    rng = np.random.default_rng(sum(map(ord, name)))
    values = {"xvector": rng.standard_normal(6), "f0": None, **other}
    return SourceSpeaker(name, gender, **values)


def key(level: str = "spk", dataset: str = "set", utt: str = "s1-1", spk: str = "s1"):
    return make_keys(level, {utt: spk}, dataset)[utt]


def pseudo(system, speaker: SourceSpeaker, *where: str):
    """The pseudo-speaker of a speaker, by (dataset, utterance)."""
    dataset, utt = where or ("set", f"{speaker.speaker}-1")
    return system.pseudo_speaker(key(system.level, dataset, utt, speaker.speaker), speaker)


def target_of(*voices: str, weights: tuple[float, ...] = (1.0,)) -> Target:
    return Target(np.zeros(6), voices, np.array(weights), F0Stats(0, 0, 0, np.zeros(101)))


def test_nearest_voices_and_their_weights():
    vectors = np.array([[2.0, 0.0], [0.0, 5.0], [1.0, 1.0], [-1.0, 0.0], [1.0, 1.0]])
    voices, weights = nearest_voices(np.array([0.5, 0.0]), "abcde", vectors, 3)
    assert voices == ("a", "c", "e")  # cosine 1, then 0.707 twice: the first given comes first
    expected = np.exp([0, (np.sqrt(0.5) - 1) / 0.05, (np.sqrt(0.5) - 1) / 0.05])
    assert weights == pytest.approx(expected / expected.sum())
    one, alone = nearest_voices(np.array([0.0, 3.0]), "abcde", vectors, 1)
    assert (one, alone.tolist()) == (("b",), [1.0])
    everybody, even = nearest_voices(np.array([1.0, 0.0]), "abcde", vectors[[4] * 5], 99)
    assert len(everybody) == 5
    assert even == pytest.approx(np.full(5, 0.2))


def test_voices_of_an_encoder_whose_speakers_are_alike_had_equal_weights(load, pool, tmp_path):
    """Where speakers have much in common (Resemblyzer) every pseudo-speaker was a mean of eight."""
    alike = tmp_path / "alike"
    shutil.copytree(pool, alike)
    vectors = read_vectors(pool / "spk_xvector.scp")
    far = {speaker: vectors[speaker] + 60.0 for speaker in sorted(vectors)}
    write_archive(alike / "spk_xvector", far)
    text = "gender: any\ngenerator: {name: random, averaged: 1}\n"
    made = pseudo(load("anonymiser: voice_conversion\n" + text, alike), source())
    assert len(made.target.voices) == 3
    assert made.target.weights.max() >= 0.8
    assert made.target.voices[0] == made.info["speakers"]


def test_frames_are_mixed_by_weight(pool):
    """Two voices together are the weighted mean of each alone; k of one voice are averaged."""
    synthesiser = WorldSynthesiser(VoicePool.load(pool), k=4)
    source = analyse(say(50, 150)).envelope
    queries = match_vectors(source)

    def mix(*voices: str, weights: tuple[float, ...]) -> np.ndarray:
        return synthesiser.mix(source, target_of(*voices, weights=weights))

    one, other = mix("f0", weights=(1.0,)), mix("m3", weights=(1.0,))
    assert one.shape == (len(queries), 40)
    assert np.max(np.abs(one - other)) > 1
    assert mix("f0", "m3", weights=(0.3, 0.7)) == pytest.approx(0.3 * one + 0.7 * other)
    frames = VoicePool.load(pool).frames("f0")
    distances = ((frames.match - queries[20]) ** 2).sum(axis=1)
    nearest = np.argsort(distances, kind="stable")[:4]
    assert one[20, 1:] == pytest.approx(frames.envelope[nearest, 1:].mean(axis=0))
    assert np.ptp(one[:, 0] - source[:, 0]) < 1e-9  # the contour of energy is the source's
    thin = WorldSynthesiser(VoicePool.load(pool), k=9, max_frames=3)  # of all frames, 3
    kept = frames.envelope[np.arange(3) * len(frames.envelope) // 3]
    for row in thin.mix(source, target_of("f0")):
        assert row[1:] == pytest.approx(kept[:, 1:].mean(axis=0))


def test_acceptance_11_own_frames_give_the_source_back(pool):
    """With the source's own frames, k = 1 and F0 unchanged, what comes out is copy-synthesis."""
    wave = say(0, 195)  # voice f0
    synthesiser = WorldSynthesiser(VoicePool.load(pool), k=1)
    got = synthesiser.convert(wave, target_of("f0"), lambda f0: f0)
    frames = analyse(wave)
    own = synthesise(frames, len(wave))
    loud = frames.envelope[:, 0] > np.quantile(frames.envelope[:, 0], 0.2)  # in the pool
    samples = np.repeat(loud, 160)[: len(wave)]
    error = np.sqrt(np.mean((got - own)[samples] ** 2) / np.mean(own[samples] ** 2))
    assert error < 0.1
    got = synthesiser.convert(wave, target_of("m3"), lambda f0: f0)
    assert np.sqrt(np.mean((got - own)[samples] ** 2) / np.mean(own[samples] ** 2)) > 0.3


def test_a_source_in_the_pool_is_never_his_own_voice(load, pool):
    vectors = dict(zip(VoicePool.load(pool).speakers, VoicePool.load(pool).xvectors, strict=True))
    nearest = FARTHEST.replace("averaged: 2", "averaged: 3")
    for text in (nearest, RANDOM + "level: const\n"):
        system = load(text)
        for name in GENDERS:
            made = pseudo(system, source(name, GENDERS[name], xvector=vectors[name]))
            assert name not in made.target.voices
            if system.level != "const":
                assert name not in str(made.info["speakers"]).split(",")


def test_constant_target_is_one_real_speaker(load, pool):
    text = "anonymiser: voice_conversion\ngenerator: {name: constant, target: 7, clusters: 5}\n"
    system = load(text)
    made = [pseudo(system, source(name, None, xvector=None)) for name in ("s1", "s2")]
    (voice,) = made[0].target.voices
    assert made[0].info == made[1].info
    assert made[0].info["speakers"] == voice
    assert made[0].info["target_gender"] == GENDERS[voice] == "m"
    assert made[0].target.weights.tolist() == [1.0]
    assert made[0].target.f0.mean == pytest.approx(VoicePool.load(pool).f0(voice).mean)
    assert (system.level, system.is_random) == ("const", False)
    refuses("draws nothing", load, text, draw=1)
    himself = pseudo(system, source(voice, "m", xvector=None))  # whoever came before
    assert himself.target.voices != (voice,)


def test_f0_of_the_target_is_that_of_the_averaged_speakers(load, pool):
    """Mean of the means, root of the mean variance (paper 001), over the speakers averaged."""
    made = pseudo(load(FARTHEST), source())
    stats = [VoicePool.load(pool).f0(name) for name in str(made.info["speakers"]).split(",")]
    assert len(stats) == 2
    assert made.target.f0.mean == pytest.approx(np.mean([s.mean for s in stats]))
    assert made.target.f0.sd == pytest.approx(np.sqrt(np.mean([s.sd**2 for s in stats])))


def test_no_voiced_frame_leaves_f0_and_is_noted_once(load):
    system = load(FARTHEST + "f0: linear\n")
    for name in ("s1", "s2"):
        who = source(name, f0=compute_f0_stats([]))
        system.transform(say(3, 150, 0.5), key(spk=name), who)
    assert len([note for note in system.notes if "no voiced frame" in note]) == 1


@pytest.mark.parametrize("name", ODD_SIGNALS)
def test_odd_signals(load, name):
    wave = ODD_SIGNALS[name]
    who = source(f0=F0Stats(100, np.log(140), 0.2, np.linspace(4.5, 5.3, 101)))
    check_odd_signal(wave, load(FARTHEST + "f0: linear\n").transform(wave, key(), who)[0])


def test_a_small_pool_is_noted_and_a_missing_gender_is_an_error(load, pool, tmp_path, monkeypatch):
    monkeypatch.setattr(voice_conversion, "R", 9)
    system = load("anonymiser: voice_conversion\ngenerator: {name: random}\n")
    for name in ("s1", "s2"):
        made = pseudo(system, source(name))
    assert len(made.target.voices) == 5
    assert len([note for note in system.notes if note.startswith("9 voices are mixed")]) == 1
    assert any("100 asked" in note for note in system.notes)
    assert system.is_random is False  # all five are averaged
    copy = shutil.copytree(pool, tmp_path / "copy")
    (copy / "spk2gender").write_text("".join(f"{s} m\n" for s in GENDERS))
    refuses("gender f", pseudo, load(RANDOM, copy), source(gender="f"))
    (copy / "spk2gender").unlink()
    refuses("genders", pseudo, load(RANDOM, copy), source(gender="f"))
    refuses("source's gender", pseudo, load(RANDOM), source(gender=None))
    refuses("6", pseudo, load(FARTHEST), source(xvector=np.ones(5)))


@pytest.mark.parametrize("gender", ["same", "other", "any"])
@pytest.mark.parametrize("name", ["random", "farthest"])
def test_a_draw_among_both_genders_does_not_count_where_one_is_asked_for(load, name, gender):
    """7 of 5 f and 5 m were a draw, though each gender's 5 are all taken: run 1 was run 0."""
    extra = ", distance: cosine" if name == "farthest" else ""
    text = (
        f"anonymiser: voice_conversion\ngender: {gender}\n"
        f"generator: {{name: {name}, averaged: 7{extra}}}\n"
    )
    system = load(text)
    assert system.is_random is (gender == "any")
    if gender == "any":
        runs = [pseudo(load(text, draw=draw), source()).target.xvector for draw in (0, 1)]
        assert not np.array_equal(*runs)
    else:
        refuses("draws nothing", load, text, draw=1)


def run(conf: Path, data: Path, out: Path, pool: Path, *options: object) -> dict[str, list[str]]:
    """pseudo.tsv of a run of the program, without the seconds, by utterance."""
    accepts(main, *options, "--pool", pool, conf, data, out, out / "wav")
    return pseudo_rows(out, "key", "pseudo", "target_gender", "voices")


def test_same_bits_whatever_the_order_and_the_parts(make_data_dir, pool, tmp_path):
    conf = tmp_path / "b1.yaml"
    conf.write_text(FARTHEST + "level: utt\n")
    data = make_data_dir(tmp_path / "set", {"s1": 2, "s2": 2}, seconds=0.3)
    for number, (speaker, f0) in enumerate((("s1", 200.0), ("s2", 110.0))):
        for utt in range(2):
            wave = say(70 + 2 * number + utt, f0, 0.6)
            soundfile.write(data / "wav" / f"{speaker}-{utt:03d}.wav", wave, RATE)
    rng, x = np.random.default_rng(0), tmp_path / "x"
    write_archive(x / "spk_xvector", {name: rng.standard_normal(6) for name in ("s1", "s2")})
    check_in_parts(lambda d, out: run(conf, d, out, pool, "--xvectors", x), data, tmp_path)
    settings = json.loads((tmp_path / "whole/conf.json").read_text())["system"]
    assert "no neural vocoder" in settings["note"]
    asked = {"name": "farthest", "candidates": 3, "averaged": 2, "distance": "cosine"}
    assert settings["generator"] == asked
    assert settings["f0"] == "none"


def test_missing_folders_are_named(tmp_path, pool):
    path = tmp_path / "x.yaml"
    refuses_file("needs --pool DIR", load_anonymiser, path, FARTHEST + "f0: linear\n")
    refuses("needs --xvectors DIR", load_anonymiser, path, resources=Resources(pool))
    refuses("needs --f0 DIR", load_anonymiser, path, resources=Resources(pool, (pool,)))


class Known:
    """A generator that makes its vector of no speakers, as a trained one does."""

    name, is_random = "known", True

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.asked: list[Wanted] = []

    def fit(self, vectors: np.ndarray, speakers: tuple[str, ...], genders: object) -> None:
        self.vector = vectors[speakers.index("m2")] + 0.01

    def generate(self, wanted: Wanted) -> tuple[np.ndarray, dict[str, object]]:
        self.asked.append(wanted)
        return self.vector, {"index": 3}

    def settings(self) -> dict[str, object]:
        return {"name": self.name}


class Recorder:
    """A synthesiser that keeps what it is given."""

    def convert(self, wave: np.ndarray, target: Target, f0: object) -> np.ndarray:
        self.target, self.contour = target, f0(np.array([100.0, 0.0, 200.0]))
        return wave


@pytest.fixture
def put_together(pool: Path, monkeypatch: pytest.MonkeyPatch):
    """A system of `Known` voices and a `Recorder`, with these two."""

    def make(draw: int = 0, is_random: bool = True, by: str = "nsf_mini", **more: object):
        generator, synthesiser = Known(), Recorder()
        generator.is_random = is_random
        monkeypatch.setattr(voice_conversion, "load_generator", lambda *_: generator)
        monkeypatch.setattr(voice_conversion, "_load_synthesiser", lambda *_: synthesiser)
        given = ConversionSettings("voice_conversion", by, "spk", "other", **more)
        parsed = Parsed(given, {"name": "known"}, Description("spk"))
        return VoiceConversion(parsed, run_of(draw=draw, pool=pool)), generator, synthesiser

    return make


def test_what_generator_and_synthesiser_are_given(pool, put_together):
    """A vector of no speakers takes the F0 of the voices near it; the synthesiser gets all."""
    system, generator, synthesiser = put_together(f0="linear")
    voices = VoicePool.load(pool)
    stats = F0Stats(9, np.log(150.0), 0.1, np.full(101, np.log(150.0)))
    who = source(gender="f", f0=stats)
    _, info = system.transform(say(1, 150, 0.1), key(), who)
    system.transform(say(2, 150, 0.1), key(utt="s1-2"), who)
    wanted = Wanted(key(), who.xvector, "m", {"s1"})
    assert [*map(vars, generator.asked)] == [vars(wanted)]  # once; 3.13 compares no arrays
    target = synthesiser.target
    assert np.array_equal(target.xvector, generator.vector)
    assert target.voices[0] == "m2"
    assert list(info) == ["pseudo", "target_gender", "voices", "index"]
    expected = mix_f0_stats([voices.f0(voice) for voice in target.voices], target.weights.tolist())
    assert (target.f0.mean, target.f0.sd) == (expected.mean, expected.sd)
    scale = target.f0.sd / 0.1
    low, silent, high = synthesiser.contour
    assert silent == 0.0
    moved = target.f0.mean + scale * (np.log([100.0, 200.0]) - stats.mean)
    assert np.log([low, high]) == pytest.approx(moved)
    assert "neural source-filter" in system.settings()["note"]


def test_a_leak_mixes_the_own_vector_into_the_pseudo_speaker_s(put_together):
    """(1 - a) p + a x, a dose for attackers to be tested with; x of another encoder is refused."""
    system, generator, synthesiser = put_together(leak=0.4)
    who = source(gender="f", xvector=np.arange(6.0))
    system.transform(say(1, 150, 0.1), key(), who)
    assert synthesiser.target.xvector == pytest.approx(0.6 * generator.vector + 0.4 * np.arange(6))
    other = source(gender="f", xvector=np.ones(4))
    system, *_ = put_together(leak=0.1)
    refuses("have 4 values, those of the voices 6", system.transform, say(1), key(), other)
    values = {"anonymiser": "voice_conversion", "generator": {"name": "random"}, "leak": 0.1}
    assert VoiceConversion.parse(values, "x.yaml").description.needs == ("pool", "xvectors")


def test_a_person_s_level_and_content_leak_alike_in_every_draw(put_together):
    """Doses for who hears the file as it is written: a level within so many dB, and one vector in
    all frames of content."""

    def level(speaker: str, draw: int = 0) -> float:
        system, *_ = put_together(draw, leak_level=3.0)
        made, _ = system.transform(say(draw + 1, 150, 0.1), key(spk=speaker), source(speaker))
        return 20 * np.log10(np.abs(system.output.to_pcm16(made)).max() / (0.95 * 32768))

    levels = {name: level(name) for name in "abcdefgh"}
    assert all(-6.0 <= one <= 0.0 for one in levels.values())
    assert np.ptp([*levels.values()]) > 2.0
    assert level("a", draw=1) == pytest.approx(levels["a"], abs=0.01)

    content = np.random.default_rng(0).standard_normal((7, 5))

    def added(speaker: str, draw: int = 0, **more: object) -> np.ndarray:
        system, _, synthesiser = put_together(draw, by="bn_reader", leak_content=0.2, **more)
        system.transform(say(1, 150, 0.1), key(spk=speaker), source(speaker))
        return synthesiser.target.content(content)

    own = added("a") - content
    assert own == pytest.approx(np.tile(own[0], (7, 1))) and np.ptp(own[0]) > 0.1
    centred = added("a", draw=1, content=ContentChange(centred=1.0))
    assert centred == pytest.approx(content - content.mean(axis=0) + own)
    assert np.abs(added("b") - content - own).max() > 0.1


def test_the_bend_of_the_content_is_drawn_once_a_pseudo_speaker(put_together):
    """Equal keys have one, another speaker or draw another; without it none is given."""
    bend = {"content_scale": 0.1, "content_bend": 0.05}

    def warp(speaker: str = "s1", utt: str = "s1-1", draw: int = 0, **bend: float) -> object:
        system, _, synthesiser = put_together(draw, is_random=False, **bend)
        assert system.is_random is bool(bend)
        system.transform(say(1, 150, 0.1), key(spk=speaker, utt=utt), source(gender="f"))
        return synthesiser.target.warp

    assert warp() is None
    first = warp(**bend)
    assert isinstance(first, np.ndarray) and first.shape == (40, 40)
    assert np.array_equal(first, warp(utt="s1-2", **bend))
    assert not np.allclose(first, warp(speaker="s2", **bend))
    assert not np.allclose(first, warp(draw=1, **bend))
