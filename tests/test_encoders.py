"""Speaker encoders: the interface, training that resumes to the bit, counted extraction."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
import soundfile
import torch
import yaml

from steps import extract_xvectors, train_encoder
from steps.audio import keep_speech
from steps.speaker import encoders, features
from steps.speaker import network as layers
from steps.speaker.config import AugmentConfig, EncoderConfig, FeatureConfig
from steps.speaker.encoders import NetworkEncoder, TooShortError, load_encoder
from steps.speaker.network import EncoderNetwork
from steps.speaker.training import EncoderTrainer, make_validation_set
from steps.training.audio import TrainingAudio, hold_out, load_training_audio
from steps.training.loop import batches_ahead
from steps.training.settings import read_config
from tests.recipes import ROOT
from tests.refusals import refuses
from tests.waiting import ended, wait_for
from tests.world import HUB_FRONT, NETWORK, assert_same_network, stopped_at
from utils.archives import read_vectors
from utils.cli import LossError
from utils.datadir import load_data_dir
from utils.parts import merge_parts, split_data_dir
from utils.tables import read_map, write_file

CONFS = sorted((ROOT / "egs" / "TEMPLATE" / "conf" / "encoders").glob("*.yaml"))
PRETRAINED = ("ecapa_wavlm", "pyannote_tuned")  # test_hub_front.py, test_tuned.py
OWN = [path for path in CONFS if path.stem not in PRETRAINED]
TINY = f"""
encoder: ecapa
network: {NETWORK}
features: {{kind: fbank, bins: 20}}
training: {{steps: 6, batch: 4, crop_seconds: [0.3, 0.4], valid_every: 3, checkpoint_every: 2,
  minimum_seconds: 0.1}}
"""


def change(**changes):
    """Small settings with changes; `change(network__embedding=3)`."""
    copy = yaml.safe_load(TINY)
    for name, value in changes.items():
        *path, last = name.split("__")
        place = copy
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return copy


@pytest.fixture
def conf(tmp_path):
    """Writes settings: `conf(training__steps=3)` gives the path of the file."""

    def write(**changes):
        path = tmp_path / "conf.yaml"
        path.write_text(yaml.safe_dump(change(**changes)))
        return path

    return write


TWENTY = {f"s{i:02d}": 2 for i in range(20)}


@pytest.fixture
def data(tmp_path, make_data_dir):
    """Twenty speakers of two utterances of 0.6 s: two can be held out."""
    return make_data_dir(tmp_path / "data", TWENTY, seconds=0.6)


@pytest.fixture
def encoder(conf):
    """Makes an untrained encoder, its normalisation layers away from their neutral state."""

    def make(**changes):
        config = read_config(EncoderConfig, conf(**changes))
        torch.manual_seed(1)
        network = EncoderNetwork(config)
        network.train()
        network(3 * torch.randn(8, 60, config.features.bins))
        return NetworkEncoder(config, network)

    return make


def read_audio_of(data, **options):
    """Training audio of a data directory."""
    wav, utt2spk = read_map(data / "wav.scp"), read_map(data / "utt2spk")
    return load_training_audio(wav, utt2spk, **{"cache_gb": 1.0, "minimum_seconds": 0.1, **options})


def extract(*words):
    return extract_xvectors.main([str(word) for word in words])


def speechlike(n, seed=0):
    rng = np.random.default_rng(seed)
    return 0.1 * rng.standard_normal(n) * (1 + np.sin(np.arange(n) / 900))


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_every_configuration_makes_a_network_that_learns(path):
    config = read_config(EncoderConfig, path)
    torch.set_num_threads(1)
    network, head = EncoderNetwork(config), layers.TrainingHead(config, 5)
    loss = head(network(torch.randn(2, 100, config.features.bins)), torch.tensor([0, 3]), 0.1)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is not None for p in network.parameters())


def run_training(conf_path, data, out, *options):
    return train_encoder.main([*options, str(conf_path), str(data), str(out)])


@pytest.mark.slow
def test_a_stopped_training_ends_like_one_that_was_not(conf, data, tmp_path):
    """Also: the number of worker processes changes nothing."""
    path = conf(training__keep="best")
    run_training(path, data, tmp_path / "whole", "--workers", "2")
    with stopped_at(3, EncoderTrainer):
        run_training(path, data, tmp_path / "stopped")
    assert not (tmp_path / "stopped" / "final.pt").exists()
    run_training(path, data, tmp_path / "stopped", "--workers", "0")
    assert_same_network(tmp_path / "whole", tmp_path / "stopped")
    # People held out for validation were among those of whom it is said to have learnt.
    trained = yaml.safe_load((tmp_path / "whole/encoder.yaml").read_text())["trained"]
    assert trained["speakers"] == 18
    curves = [
        [line.split("\t")[::2] for line in (tmp_path / d / "training.tsv").read_text().splitlines()]
        for d in ("whole", "stopped")
    ]
    assert curves[0] == curves[1]


@pytest.mark.slow
def test_a_killed_training_leaves_nothing_finished_and_no_process(conf, data, tmp_path):
    path = conf(training__steps=100000, training__valid_every=100000)
    command = [sys.executable, ROOT / "steps/train_encoder.py", path, data, tmp_path / "enc"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not list((tmp_path / "enc" / "checkpoints").glob("step-*.pt")):
        assert process.poll() is None
        time.sleep(0.1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "enc" / "final.pt").exists()
    assert not (tmp_path / "enc" / "encoder.yaml").exists()
    wait_for(lambda: all(ended(int(child)) for child in children))


@pytest.mark.parametrize("cache_gb", [1.0, 0.0], ids=["in memory", "on demand"])
def test_speech_protected_anew_left_the_encoder_of_the_old(conf, data, tmp_path, cache_gb):
    """It has the same ids and lengths, so that a finished training had nothing left to do."""
    path, first = conf(training__cache_gb=cache_gb), next(iter(load_data_dir(data).wav.values()))
    run_training(path, data, tmp_path / "enc")
    samples, rate = soundfile.read(first)
    soundfile.write(first, samples[::-1], rate)
    said = "other settings, seed or data; remove"
    refuses(said, run_training, path, data, tmp_path / "enc")


def test_training_with_one_speaker_or_no_gpu_is_refused(conf, tmp_path, make_data_dir, data):
    one = make_data_dir(tmp_path / "one", {"s1": 3}, seconds=0.6)
    refuses("1 training speaker", run_training, conf(), one, tmp_path / "enc")
    if not torch.cuda.is_available():
        refuses("--device cuda", run_training, conf(), data, tmp_path / "enc", "--device", "cuda")
    assert not (tmp_path / "enc" / "final.pt").exists()


def make_audio(n_speakers=3, seconds=(1.0, 3.0)):
    rng = np.random.default_rng(0)
    spk2utt = {f"s{i}": [f"s{i}-{j}" for j in range(len(seconds))] for i in range(n_speakers)}
    long = dict(enumerate(int(16000 * s) for s in seconds))
    lengths = {utt: long[j] for utts in spk2utt.values() for j, utt in enumerate(utts)}
    cache = {u: (3000 * rng.standard_normal(n)).astype(np.int16) for u, n in lengths.items()}
    return TrainingAudio({}, spk2utt, lengths, cache)


def test_a_batch_is_a_function_of_seed_and_step(conf):
    config = read_config(EncoderConfig, conf())
    audio = make_audio()
    make = EncoderTrainer(config, 7, "cpu", audio).batch
    batches = {step: make(step) for step in (5, 0, 3)}
    again = EncoderTrainer(config, 7, "cpu", audio).batch(3)
    for part, same in zip(batches[3], again, strict=True):
        np.testing.assert_array_equal(part, same)
    other = EncoderTrainer(config, 8, "cpu", audio).batch(3)
    assert not np.array_equal(batches[3][0][0], other[0][0])
    for step, ahead in enumerate(batches_ahead(make, range(3, 6), n_workers=2), 3):
        np.testing.assert_array_equal(ahead[0], make(step)[0])


def test_audio_beyond_the_memory_limit_is_read_from_disk(data):
    held, read = read_audio_of(data), read_audio_of(data, cache_gb=5e-5)
    assert len(held.cache) == 40 and 0 < len(read.cache) < 40
    assert held.lengths == read.lengths
    for utt in held.lengths:
        np.testing.assert_array_equal(held.read(utt, 100, 300), read.read(utt, 100, 300))
    wrapped = held.read("s00-000", held.lengths["s00-000"] - 2, 5)
    assert len(wrapped) == 5
    np.testing.assert_array_equal(wrapped[2:], held.read("s00-000", 0, 3))


def test_short_training_utterances_are_counted(data, caplog):
    caplog.set_level("INFO")
    assert len(read_audio_of(data, minimum_seconds=0.605).lengths) == 20
    assert "40 read / 20 used" in caplog.text
    assert "20 skipped (under 0.605 s): s00-000" in caplog.text


def test_held_out_speakers_are_not_trained_on(caplog):
    caplog.set_level("INFO")
    audio = make_audio(40)
    training, held = hold_out(audio, 16, seed=0)
    assert len(held) == 4 and len(training.speakers) == 36  # at most a tenth
    assert not set(held) & set(training.speakers)
    assert hold_out(audio, 16, seed=0)[1] == held
    assert len(hold_out(make_audio(25), 8, seed=0, share=0.2)[1]) == 5
    assert hold_out(make_audio(9), 8, seed=0, share=0.2)[1] == []  # one alone says too little
    valid = make_validation_set(audio, held, seed=0)
    assert valid.speakers.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert "one utterance" not in caplog.text
    single = make_audio(2, seconds=(9.0,))
    valid = make_validation_set(single, ["s0", "s1"], seed=0)
    assert "(2 speakers have one utterance, cut" in caplog.text and len(valid.segments) == 8
    assert make_validation_set(single, [], seed=0) is None


def test_draws_of_one_utterance_passed_for_utterances_of_a_speaker(caplog, monkeypatch):
    """Segments of a speaker had the same words then, and with keep: best these chose the step."""
    caplog.set_level("INFO")
    audio, read = make_audio(2, seconds=(9.0,) * 4), list[tuple[str, int]]()

    def note(_: TrainingAudio, utt: str, start: int, n: int) -> np.ndarray:
        read.append((utt, start))
        return np.zeros(n, np.float32)

    def segments(before: dict[str, str]) -> list[tuple[str, int]]:
        """What is read of the first speaker."""
        read.clear()
        assert make_validation_set(audio, audio.speakers, 0, before) is not None
        return [one for one in read if one[0] in audio.spk2utt["s0"]]

    monkeypatch.setattr(TrainingAudio, "read", note)
    utts = audio.spk2utt["s0"]
    every = [utt for own in audio.spk2utt.values() for utt in own]
    found = segments({utt: utt[:2] for utt in every})  # one utterance, in four draws
    assert found == [(utts[n], n * 36000) for n in range(4)]
    assert "(2 speakers have one utterance, cut" in caplog.text
    found = segments({utt: f"{utt[:2]}{int(utt[-1]) // 2}" for utt in every})
    assert [utt for utt, _ in found] == [utts[0], utts[3]]  # two, each in two draws
    assert len(segments({})) == 4


def test_augmentation_is_what_it_says():
    rng = np.random.default_rng(0)
    tone = np.sin(2 * np.pi * 440 * np.arange(32000) / 16000).astype(np.float32)
    fast = features.change_speed(tone, 1.1, 20000)
    assert len(fast) == 20000
    assert np.argmax(np.abs(np.fft.rfft(fast))) * 16000 / 20000 == pytest.approx(484, abs=1)
    noisy = features.add_at_snr(tone, features.coloured_noise(rng, 32000), 10.0)
    snr = 10 * np.log10(features.power(tone) / features.power(noisy - tone))
    assert snr == pytest.approx(10.0, abs=0.01)
    values = np.ones((50, 40, 30), np.float32)
    features.mask_features(rng, values, AugmentConfig(time_mask_frames=8, band_mask_bins=5))
    assert ((values == 0).all(axis=2).sum(axis=1) <= 8).all()
    assert ((values == 0).all(axis=1).sum(axis=1) <= 5).all()
    assert (values == 0).any()


def test_sliding_mean_is_the_mean_around_each_frame():
    values = torch.randn(2, 50, 3)
    got = features.sliding_mean(values, window=10)
    for t in range(50):
        first = min(max(t - 5, 0), 40)
        torch.testing.assert_close(got[:, t], values[:, first : first + 10].mean(dim=1))
    torch.testing.assert_close(features.sliding_mean(values)[:, 7], values.mean(dim=1))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, make_data_dir):
    """A folder of an encoder of one step, which tests only read."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "conf.yaml").write_text(yaml.safe_dump(change(training__steps=1)))
    data = make_data_dir(folder / "data", TWENTY, seconds=0.6)
    run_training(folder / "conf.yaml", data, folder / "enc")
    return folder / "enc"


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [[], ["--chunk-seconds", "0.7"]], ids=["whole", "chunks"])
def test_x_vectors_depended_on_the_number_of_jobs(trained, data, here, chunks):
    """A batch's size changed the last bits, and archives bore the numbers of jobs."""
    for utt, n in zip(sorted(read_map(data / "utt2spk")), (5000, 9000, 12000), strict=False):
        soundfile.write(data / "wav" / f"{utt}.wav", speechlike(n), 16000)
    found = set()
    for n in (1, 3):
        whole = load_data_dir(data)
        assert split_data_dir(whole, n) == n
        for part in range(1, n + 1):
            extract(*chunks, trained, data / f"split{n}/{part}", f"x/split{n}/{part}")
        merge_parts(Path("x"), n)
        found.add(tuple((p.name, p.read_bytes()) for p in sorted(Path("x").iterdir())))
        shutil.rmtree("x")
    assert len(found) == 1


def test_silent_failure_9_lost_utterances_fail_unless_allowed(trained, data, tmp_path, capsys):
    soundfile.write(data / "wav" / "s00-000.wav", speechlike(1600), 16000)
    (data / "wav" / "s05-001.wav").write_bytes(b"no audio")
    command = (trained, data, tmp_path / "x")
    refuses(r"2 of 40 utterances lost, 0 allowed", extract, *command, kind=LossError)
    assert LossError.exit_status == 3
    assert not list((tmp_path / "x").iterdir())
    assert extract("--allow-loss", "2", *command) == 0
    assert "written 38 x-vectors / skipped 2" in capsys.readouterr().out
    skipped = read_map(tmp_path / "x" / "skipped.txt", rest_of_line=True)
    assert "0.10 s long" in skipped["s00-000"] and "cannot be read as audio" in skipped["s05-001"]


def test_silence_got_an_x_vector_and_looked_like_a_hidden_speaker(trained, data, tmp_path):
    soundfile.write(data / "wav" / "s00-000.wav", np.zeros(32000), 16000)
    said = r"1 of 40 utterances lost.*s00-000.*digital silence"
    refuses(said, extract, trained, data, tmp_path / "x", kind=LossError)


def test_chunks_stand_in_for_sessions(trained, data, tmp_path):
    soundfile.write(data / "wav" / "s00-000.wav", speechlike(40000), 16000)
    extract("--chunk-seconds", "0.8", trained, data, tmp_path / "x")
    utt2spk = read_map(tmp_path / "x" / "utt2spk")
    chunks = [key for key in utt2spk if key.startswith("s00-000-")]
    assert chunks == ["s00-000-c0000", "s00-000-c0001", "s00-000-c0002"]
    assert utt2spk.keys() == read_vectors(tmp_path / "x" / "xvector.scp").keys()
    assert utt2spk["s03-001-c0000"] == "s03"
    pieces = encoders.cut(np.arange(40000, dtype=np.float32), 0.8)
    np.testing.assert_array_equal(np.concatenate(pieces), np.arange(40000))


def test_an_encoder_that_is_not_there_is_named(tmp_path, data):
    said = r"encoder\.yaml: is missing; an encoder is a folder"
    for name in ("resembleyzer", tmp_path):
        refuses(said, extract, name, data, tmp_path / "x")
    (tmp_path / "encoder.yaml").write_text(TINY)
    (tmp_path / "final.pt").write_bytes(b"damaged")
    refuses(r"final\.pt: not readable", extract, tmp_path, data, tmp_path / "x")


@pytest.mark.corpora
def test_resemblyzer_is_used_as_its_authors_do(corpora):
    resemblyzer = pytest.importorskip("resemblyzer")
    files = sorted((corpora / "librispeech" / "test-clean" / "1089").rglob("*.flac"))[:2]
    encoder = load_encoder("resemblyzer")
    reference = resemblyzer.VoiceEncoder("cpu", verbose=False)
    for path in files:
        samples, rate = soundfile.read(path)
        assert rate == 16000
        expected = reference.embed_utterance(resemblyzer.preprocess_wav(path))
        assert encoder.embed(samples) @ expected > 0.9999


@pytest.mark.slow
def test_resemblyzer_hears_what_is_too_short_without_its_pauses_whole():
    pytest.importorskip("resemblyzer")
    encoder = load_encoder("resemblyzer")
    noise = 0.01 * np.random.default_rng(0).standard_normal(48000).astype(np.float32)
    word = noise[:2400]  # 0.15 s, which its detector of speech takes for a pause
    vector = encoder.embed(word)
    assert encoder.n_whole == 1 and np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert encoder.embed(word / 2) @ vector > 0.9999  # and at the same level
    for samples, said in (
        (noise, r"0\.00 s of speech after its pauses"),  # 3 s without speech are no word
        (noise[:800], r"0\.05 s long"), (0 * word, "digital silence"),
    ):  # fmt: skip
        refuses(said, encoder.embed, samples, kind=TooShortError)


HUB_MODEL = f"""{HUB_FRONT}
embedding_model: !new:speechbrain.lobes.models.ECAPA_TDNN.ECAPA_TDNN
  {{input_size: 20, channels: [8, 8, 8, 16], kernel_sizes: [5, 3, 3, 1], dilations: [1, 2, 3, 1],
  groups: [1, 1, 1, 1], attention_channels: 4, se_channels: 4, lin_neurons: 6}}
classifier: !new:speechbrain.lobes.models.ECAPA_TDNN.Classifier {{input_size: 6, out_neurons: 3}}
pretrainer: !new:speechbrain.utils.parameter_transfer.Pretrainer
  {{loadables: {{embedding_model: !ref <embedding_model>}}}}
"""


def test_a_speechbrain_model_in_a_folder(tmp_path, data, trained):
    """The path that `hub:<model>` takes, with a model that is here."""
    folder = tmp_path / "model"
    write_file(folder / "hyperparams.yaml", HUB_MODEL)
    config = read_config(EncoderConfig, trained / "encoder.yaml")
    body = EncoderNetwork(config).body.eval()
    torch.save(body.state_dict(), folder / "embedding_model.ckpt")
    before = sorted(folder.iterdir())
    encoder = load_encoder(f"hub:{folder}")
    assert sorted(folder.iterdir()) == before  # nothing is written beside the model
    network = EncoderNetwork(config)
    network.body.load_state_dict(body.state_dict())
    ours = NetworkEncoder(config, network)
    found, wanted = (each.embed(speechlike(16000)) for each in (encoder, ours))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    assert extract(f"hub:{folder}", data, tmp_path / "x") == 0
    assert len(read_vectors(tmp_path / "x" / "xvector.scp")) == 40


def test_a_speed_between_two_hundredths_ended_training_in_a_traceback(conf):
    """It was rounded where crops are changed, and not where they are read: too short."""
    path = conf(augmentation__speeds=[0.955, 1.0])
    refuses("augmentation.speeds: whole hundredths", read_config, EncoderConfig, path)


def test_pauses_are_cut_out_and_noisy_speech_stays_whole():
    rng = np.random.default_rng(0)
    speech = 0.1 * rng.standard_normal(16000)
    pause = 1e-4 * rng.standard_normal(8000)  # 60 dB below
    kept = keep_speech(np.concatenate([pause, speech, pause, speech]))
    assert 32000 <= len(kept) <= 32000 + 4 * 7 * 160
    np.testing.assert_array_equal(
        np.sort(np.abs(kept))[-20000:], np.sort(np.abs(np.r_[speech, speech]))[-20000:]
    )
    noisy = np.concatenate([pause, speech, pause]) + 0.02 * rng.standard_normal(32000)  # 14 dB
    assert len(keep_speech(noisy)) == 32000
    assert len(keep_speech(np.zeros(16000))) in (0, 16000)
    short = speech[:500]
    np.testing.assert_array_equal(keep_speech(short), short)


def test_an_encoder_of_speech_only_does_not_hear_pauses(encoder, data):
    made = encoder(features__speech_only=True)
    quiet = np.zeros(8000)
    signal = np.round(speechlike(16000) * 32768) / 32768
    together = np.concatenate([quiet, signal, quiet])
    one, other = made.embed(keep_speech(together)), made.embed(together)
    np.testing.assert_allclose(one, other, atol=1e-5)
    soundfile.write(data / "wav/s00-000.wav", together, 16000)
    for cache_gb in (1.0, 1e-6):
        audio = read_audio_of(data, cache_gb=cache_gb, speech_only=True)
        assert 16000 <= audio.lengths["s00-000"] < 18000
        assert len(audio.read("s00-000", 100, 3000)) == 3000


@pytest.mark.parametrize("conf", ["ecapa_mini", "xvector_full"])
def test_the_faster_layers_give_what_speechbrains_give(conf, monkeypatch):
    config = read_config(EncoderConfig, ROOT / f"egs/TEMPLATE/conf/encoders/{conf}.yaml")
    monkeypatch.setattr(layers, "_LARGE", 1)
    ours = EncoderNetwork(config)
    monkeypatch.setattr(layers, "use_faster_layers", lambda body: None)
    torch.manual_seed(0)
    theirs = EncoderNetwork(config)
    assert all(map(torch.equal, ours.state_dict().values(), theirs.state_dict().values()))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = torch.randn(4, 90, config.features.bins)
    for mode in (True, False):
        found, wanted = (net.train(mode)(x) for net in (ours, theirs))
        assert torch.allclose(found, wanted, atol=1e-4)
        slopes = [
            torch.cat([g.flatten() for g in torch.autograd.grad(out[0].sum(), net.parameters())])
            for out, net in ((found, ours), (wanted, theirs))
        ]
        assert torch.linalg.norm(slopes[0] - slopes[1]) < 1e-3 * torch.linalg.norm(slopes[1])
    for name, value in theirs.named_buffers():  # running means and variances
        assert torch.allclose(ours.get_buffer(name), value, rtol=1e-4, atol=1e-5), name


def test_attended_statistics_and_their_slopes_by_hand():
    x = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    heard = torch.randn(2, 3, 7, dtype=torch.float64)
    heard[1, :, 4:] = -torch.inf
    for given in (heard, heard[:, :1]):
        weights = given.softmax(dim=2)
        mean = (weights * x).sum(dim=2)
        deviation = (weights * (x - mean[:, :, None]) ** 2).sum(dim=2).sqrt()
        found = layers._Statistics.apply(x, given, 1e-12)
        assert torch.allclose(found, torch.cat((mean, deviation), dim=1))
    wholly = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layers._Statistics.apply, (x, wholly, 1e-12))
    shared = torch.zeros(2, 1, 7, dtype=torch.float64, requires_grad=True)
    refuses("no slope", layers._Statistics.apply, x, shared, 1e-12, kind=ValueError)
    # Where nothing varies the deviation is held at its least, and has no slope.
    flat = torch.ones(1, 2, 5, dtype=torch.float64, requires_grad=True)
    out = layers._Statistics.apply(flat, torch.zeros(1, 1, 5, dtype=torch.float64), 1e-4)
    assert out.flatten().tolist() == pytest.approx([1, 1, 0.01, 0.01])
    assert torch.equal(torch.autograd.grad(out[0, 2:].sum(), flat)[0], torch.zeros(1, 2, 5))


def test_a_batch_normalisation_with_an_offset_loses_no_variance(monkeypatch):
    monkeypatch.setattr(layers, "_LARGE", 1)
    x = 30 + torch.randn(16, 4, 200)
    norm = layers.FastBatchNorm(4)
    assert torch.allclose(norm(x), torch.nn.BatchNorm1d(4)(x), atol=2e-3)


@pytest.mark.parametrize("kind", ["fbank", "mfcc"])
def test_features_are_those_of_speechbrain(kind):
    ours = features.Features(FeatureConfig(kind=kind, mean="none"))
    samples = torch.from_numpy(np.stack([speechlike(16000), speechlike(16000)[::-1].copy()]))
    assert torch.equal(ours(samples.float()), ours.compute(samples.float()))


def test_the_filter_of_the_speeds_is_scipys():
    signal = speechlike(16000).astype(np.float32)
    for speed, ratio in ((0.9, (10, 9)), (1.1, (10, 11)), (0.97, (100, 97)), (2.0, (1, 2))):
        found = features.change_speed(signal, speed, 99999)
        assert found.dtype == np.float32
        wanted = scipy.signal.resample_poly(signal.astype(float), *ratio)
        assert len(found) == len(wanted)
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(signal).max())
