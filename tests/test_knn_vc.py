"""kNN-VC: matching, targets by key, profiles, odd signals."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from steps.anonymise import main
from steps.anonymisers.knn_vc import KnnVc
from steps.anonymisers.registry import load_anonymiser
from steps.content.extractors import load_extractor
from steps.extract_world import main as extract_world
from steps.make_voice_pool import main as make_voice_pool
from steps.sources import Resources, SourceSpeaker, VoiceKey, make_keys
from steps.synthesis.f0 import compute_f0_stats, write_f0_stats
from steps.synthesis.matching import (
    METRICS,
    FrameIndex,
    IndexedVoice,
    WorldConverter,
    match_envelope,
)
from steps.synthesis.voices import VoicePool, loud_frames, match_vectors
from steps.synthesis.world import WorldFrames, analyse
from tests.refusals import accepts, refuses
from tests.world import (
    ODD_SIGNALS,
    check_in_parts,
    check_odd_signal,
    pseudo_rows,
    say,
    write_voices,
)
from utils.archives import write_archive
from utils.cli import LossError
from utils.seeds import Draws

SYSTEMS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/systems"
KNN = "anonymiser: knn_vc\n"
GENDERS = {f"{gender}{number:02d}": gender for gender in "fm" for number in range(18)}


def random_frames(seed: int, n: int = 80, f0: float = 150.0) -> WorldFrames:
    """Like WORLD's in size, made without any sound; F0 0 gives an unvoiced voice."""
    rng = np.random.default_rng(seed)
    contour = f0 * np.exp(0.1 * rng.standard_normal(n)) * (np.arange(n) % 10 < 6)
    codes = rng.standard_normal((n, 40)) * np.linspace(2, 0.1, 40)
    codes[:, 0] = rng.uniform(-14, -8, n)
    return WorldFrames(contour, codes, np.full((n, 1), -20.0))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """18 voices of each gender; f00 speaks (it was analysed), the others are random numbers."""
    voices = {s: (g, random_frames(i)) for i, (s, g) in enumerate(GENDERS.items())}
    voices["f00"] = ("f", analyse(say(0, 200.0)))
    return write_voices(tmp_path_factory.mktemp("knn") / "pool", voices)


@pytest.fixture
def load(pool: Path, tmp_path: Path):
    def make(text: str = "", folder: Path = pool, **options: int) -> KnnVc:
        path = tmp_path / "system.yaml"
        path.write_text(KNN + text)
        return load_anonymiser(path, Draws(**options), Resources(folder, f0=folder))

    return make


def source(speaker: str = "s1", gender: str | None = "f", f0: float = 120.0) -> SourceSpeaker:
    contour = f0 * np.exp(np.linspace(-0.2, 0.2, 50))
    return SourceSpeaker(speaker, gender, f0=compute_f0_stats([contour]))


def key(level: str, utt: str = "s1-1", dataset: str = "set") -> VoiceKey:
    return make_keys(level, {utt: utt.split("-")[0]}, dataset)[utt]


class TestMatching:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize(("n", "d"), [(5, 3), (127, 7), (129, 72), (3000, 72)])
    def test_is_what_a_plain_search_finds(self, metric, n, d):
        """Both ways (few frames and groups of frames), nearest first."""
        rng = np.random.default_rng(n)
        frames, queries = rng.standard_normal((n, d)), rng.standard_normal((40, d))
        unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, frames)]
        for k in {1, 4, min(n, 9)}:
            if metric == "cosine":
                distances = 1 - unit[0] @ unit[1].T
            else:
                distances = np.linalg.norm(queries[:, None] - frames, axis=2)
            expected = np.argsort(distances, axis=1)[:, :k]
            assert np.array_equal(FrameIndex(frames, metric).search(queries, k), expected)

    def test_nearly_equal_far_ones_are_told_apart(self):
        """float32 alone cannot: the distances differ by 1e-9, at vectors of length 100."""
        frames = np.full((1000, 2), 1e3)
        frames[[10, 500, 900]] = [[100.0, 3e-9], [100.0, 1e-9], [100.0, 2e-9]]
        for k in (1, 2, 3):
            found = FrameIndex(frames).search(np.array([[100.0, 0.0]]), k).tolist()
            assert found == [[500, 900, 10][:k]]

    def test_ties_go_to_the_first_and_zeros_have_no_direction(self):
        frames = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
        right, by_cosine = np.array([[1.0, 0.0]]), FrameIndex(frames, "cosine")
        assert FrameIndex(frames).search(right, 2).tolist() == [[1, 2]]
        assert by_cosine.search(right, 3).tolist() == [[1, 2, 3]]
        assert by_cosine.search(np.zeros((1, 2)), 1).tolist() == [[0]]

    @pytest.mark.parametrize("k", [0, 4])
    def test_k_within_the_frames(self, k):
        search = FrameIndex(np.zeros((3, 2))).search
        refuses("there are 3 frames", search, np.zeros((1, 2)), k, kind=ValueError)


def test_acceptance_11_own_frames_give_the_source_back():
    """On the envelope: before the vocoder, so that equal means equal."""
    envelope, rng = random_frames(5, 300).envelope, np.random.default_rng(0)
    frames = np.concatenate([rng.standard_normal((500, 72)), match_vectors(envelope)])
    codes = np.concatenate([rng.standard_normal((500, 40)), envelope])
    out = match_envelope(envelope, [IndexedVoice(FrameIndex(frames), codes)], (1.0,), k=1)
    assert np.array_equal(out[:, 1:], envelope[:, 1:])
    rise = out[:, 0] - envelope[:, 0]  # the energy contour stays, its mean is the voice's
    assert np.ptp(rise) < 1e-12
    loud = np.sort(envelope[:, 0])[45:].mean()
    assert rise[0] == pytest.approx(codes[:, 0].mean() - loud, abs=1e-9)


def test_a_share_of_the_source_alone_has_the_voices_mean_and_deviation():
    """The source's own frames, moved to these; and nothing else changed."""
    source, codes = random_frames(1, 200).envelope, 3 * random_frames(2, 400).envelope + 1
    voice = IndexedVoice(FrameIndex(match_vectors(codes)), codes)
    out = match_envelope(source, [voice], (1.0,), 4, 1.0)
    spoken = out[loud_frames(source), 1:]
    np.testing.assert_allclose(spoken.mean(axis=0), voice.mean[1:])
    np.testing.assert_allclose(spoken.std(axis=0), voice.sd[1:])
    for place in range(1, 40):
        assert np.corrcoef(out[:, place], source[:, place])[0, 1] == pytest.approx(1)


class TestTargets:
    @pytest.mark.parametrize("level", ["utt", "spk", "perm", "const"])
    def test_a_source_in_the_pool_is_never_his_own_target(self, load, level):
        more = "" if level == "utt" else "profiles: 17\nprofile: {}\n"  # all of a gender but one
        for speaker in ("f00", "f07", "f17"):
            drawn = {
                load(f"level: {level}\n{more.format(n)}").choose(
                    key(level, f"{speaker}-{n}"), source(speaker)
                )[0]
                for n in range(1, 18)
            }
            assert speaker not in drawn and (len(drawn) == 17 or level == "utt")

    @pytest.mark.parametrize("speaker", ["s1", "f03"])
    def test_profiles_share_no_voice(self, load, speaker):
        drawn = [
            load(f"level: perm\nprofiles: 8\nprofile: {profile}\n").choose(
                key("perm", f"{speaker}-1"), source(speaker)
            )[0]
            for profile in range(1, 9)
        ]
        assert len({*drawn, speaker}) == 9


class TestSmallPools:
    def test_both_numbers_are_named(self, load):
        refuses(r"18 voices .* 24 are needed \(profiles\)", load, "level: perm\nprofiles: 24\n")
        system = load("profiles: 18\n")  # enough, but not for a source who is one of them
        system.choose(key("spk"), source("s1"))
        said = "17 voices of gender f beside f01, and 18 are needed"
        refuses(said, system.choose, key("spk", "f01-1"), source("f01"))

    def test_a_gender_that_is_missing(self, load, tmp_path):
        women = write_voices(tmp_path / "women", {"a": ("f", random_frames(0))})
        system = load(folder=women)
        assert system.choose(key("spk"), source())[0] == "a"
        said = "0 voices of gender m beside s2, and 1 are needed"
        refuses(said, system.choose, key("spk", "s2-1"), source("s2", "m"))
        refuses("f or m is needed", system.choose, key("spk"), source("s1", None))
        (women / "spk2gender").unlink()
        refuses("gender of a is not there", load, folder=women)

    def test_voices_without_pitch_are_left_out_and_named(self, load, tmp_path):
        voices = {s: ("f", random_frames(i, f0=150.0 * (s != "b"))) for i, s in enumerate("abc")}
        folder = write_voices(tmp_path / "some", voices)
        system = load(folder=folder)
        assert any("1 of 3 voices" in n and "voiced" in n and "b)" in n for n in system.notes)
        assert all(system.choose(key("spk", f"x{n}-1"), source())[0] != "b" for n in range(20))
        assert len(load("f0: none\n", folder).notes) == 1
        refuses(r"2 voices .* 3 are needed", load, "profiles: 3\n", folder)

    def test_fewer_frames_than_k(self, load, tmp_path):
        folder = write_voices(tmp_path / "tiny", {"a": ("f", random_frames(0, 3))})
        system = load(folder=folder)
        refuses("a: 3 frames, and k is 4", system.transform, say(1), key("spk"), source())


class TestSound:
    @pytest.mark.parametrize("name", ODD_SIGNALS)
    def test_odd_signals(self, load, name):
        out, info = load().transform(ODD_SIGNALS[name], key("spk"), source())
        check_odd_signal(ODD_SIGNALS[name], out)
        assert list(info) == ["target", "target_gender", "profile"]

    def test_pitch_goes_to_the_target(self, load, tmp_path):
        voices = {"a": ("f", analyse(say(0, 220.0))), "b": ("f", analyse(say(0, 220.0)))}
        folder, wave = write_voices(tmp_path / "high", voices), say(1, 110.0)
        who = source()._replace(f0=compute_f0_stats([analyse(wave).f0]))
        for settings, expected in (("", 220), ("f0: percentile\n", 220), ("f0: none\n", 110)):
            out, _ = load(settings, folder).transform(wave, key("spk"), who)
            f0 = analyse(out).f0
            assert np.median(f0[f0 > 0]) == pytest.approx(expected, rel=0.08), settings

    def test_a_louder_voice_leaves_digital_silence_silent(self):
        source, target = random_frames(1, 100), random_frames(2, 100)
        envelope = source.envelope.copy()
        envelope[:30, 0] = -36.5
        envelope[30:, 0] -= 10
        voice = IndexedVoice(FrameIndex(match_vectors(target.envelope)), target.envelope)
        out = match_envelope(envelope, [voice], (1.0,), 4)
        assert np.array_equal(out[:30, 0], envelope[:30, 0])
        assert (out[30:, 0] - envelope[30:, 0]).min() > 5


class TestContent:
    """Frames of a voice are found by content; cepstra need no recogniser."""

    CONF = "features: content\ncontent: cepstra\nk: 1\nf0: none\ngender: other\n"

    @pytest.fixture
    def voices(self, tmp_path: Path, make_data_dir) -> Path:  # type: ignore[no-untyped-def]
        data = make_data_dir(tmp_path / "data", {"a": 1, "b": 1})
        for seed, name in enumerate("ab"):
            soundfile.write(data / f"wav/{name}-000.wav", say(seed, 150.0), 16000, "PCM_16")
        accepts(extract_world, data, tmp_path / "world")
        write_archive(tmp_path / "spk_xvector", dict.fromkeys("ab", np.ones(3)))
        words = (tmp_path / "world", data, tmp_path, tmp_path / "pool")
        accepts(make_voice_pool, "--add-content", "cepstra", *words)
        return tmp_path / "pool"

    def test_speech_of_the_voice_itself_finds_its_own_frames(self, load, voices):
        wave, _ = soundfile.read(voices.parent / "data/wav/a-000.wav")
        pool = VoicePool.load(voices, "cepstra")
        extractor = load_extractor("cepstra")
        system = WorldConverter(pool, 1, "none", 0.0, extractor)
        envelope, voice = analyse(wave).envelope, system._voice("a")
        found = match_envelope(envelope, [voice], (1.0,), 1, 0.0, extractor(wave))
        loud = loud_frames(envelope)
        np.testing.assert_allclose(found[loud, 1:], envelope[loud, 1:], atol=1e-3)
        out, told = load(self.CONF, voices).transform(wave, key("spk"), source("a"))
        assert told["target"] == "b"
        assert len(out) == len(wave)
        assert np.abs(out).max() > 0

    def test_a_pool_that_was_made_again_kept_its_older_content(self, load, voices):
        words = (voices.parent / "world", voices.parent / "data", voices.parent, voices)
        accepts(make_voice_pool, *words)
        refuses(r"content\.json: .* make it with .*make_voice_pool", load, self.CONF, voices)

    def test_a_pool_of_other_content_is_refused(self, load, voices, pool):
        refuses(r"content\.json: .* make it with .*make_voice_pool", load, self.CONF, pool)
        told = json.loads((voices / "content.json").read_text())
        told["frames"]["digest"] = "another"
        (voices / "content.json").write_text(json.dumps(told))
        refuses(r"other weights \(another\).*make the pool again", load, self.CONF, voices)


def run(conf: Path, data: Path, out: Path, pool: Path, *options: object) -> dict[str, list[str]]:
    folders = ("--pool", pool, "--f0", pool.parent / "f0", *options)
    accepts(main, *folders, conf, data, out, out / "wav")
    return pseudo_rows(out, "key", "target", "target_gender", "profile")


def make_set(make_data_dir, pool: Path, path: Path) -> Path:
    data = make_data_dir(path, {"s1": 2, "s2": 2}, seconds=0.3)
    for wav in sorted((data / "wav").iterdir()):
        soundfile.write(wav, say(sum(wav.stem.encode()), seconds=0.6), 16000)
    write_f0_stats(pool.parent / "f0", dict.fromkeys(("s1", "s2"), source().f0))
    return data


def test_same_bits_whatever_the_order_and_the_parts(make_data_dir, pool, tmp_path):
    data = make_set(make_data_dir, pool, tmp_path / "set")
    conf = tmp_path / "knn.yaml"
    conf.write_text(KNN + "level: utt\n")
    check_in_parts(lambda part, out: run(conf, part, out, pool), data, tmp_path)
    settings = json.loads((tmp_path / "whole/conf.json").read_text())["system"]
    assert "stand-in" in settings["note"]
    assert settings["k"] == 4
    assert settings["f0"] == "linear"


@pytest.mark.parametrize(
    ("text", "is_random"), [("", False), ("gender: other\n", False), ("gender: random\n", True)]
)
def test_a_pool_of_one_voice_a_gender_is_no_draw(load, tmp_path, text, is_random):
    """Run 1 was run 0, and the system said that it was random."""
    one = {"f00": ("f", random_frames(0)), "m00": ("m", random_frames(1))}
    two = {**one, "f01": ("f", random_frames(2)), "m01": ("m", random_frames(3))}
    small, larger = (write_voices(tmp_path / f"{len(v)}", v) for v in (one, two))
    assert load(text, larger).is_random is True
    assert load(text, small).is_random is is_random
    if not is_random:
        refuses("draws nothing", load, text, small, draw=1)


def test_what_a_pool_cannot_give_is_a_loss_by_name(make_data_dir, tmp_path):
    women = write_voices(tmp_path / "women/pool", {"a": ("f", random_frames(0))})
    data = make_set(make_data_dir, women, tmp_path / "set")
    said, words = r"2 of 4 .* 0 voices of gender m beside s2, and 1 are", (data, tmp_path / "out")
    refuses(said, run, SYSTEMS / "knnvc.yaml", *words, women, kind=LossError)
    assert not (tmp_path / "out/wav.scp").exists()
