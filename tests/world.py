"""Small data for tests: speech, x-vectors, voices of pulses, pools of them, stopped trainings."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile
import torch
from scipy.signal import lfilter

from steps.audio import write_wav
from steps.generators.training import TrainingVectors
from steps.sources import Resources, SystemRun
from steps.synthesis.base import Target
from steps.synthesis.f0 import compute_f0_stats, write_f0_stats
from steps.synthesis.trained import pulse_train
from steps.synthesis.world import WorldFrames, analyse, pack
from steps.training.audio import TrainingAudio, load_training_audio
from utils.archives import ArchiveWriter, write_archive
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import write_data_dir
from utils.seeds import Draws
from utils.tables import read_map, write_id_lists, write_map

RATE = 16000
needs_wheel = pytest.mark.skipif(
    find_spec("moonshine_voice") is None, reason="moonshine-voice has no wheel here"
)
NETWORK = """
  {channels: [8, 8, 8, 16], kernel_sizes: [5, 3, 3, 1], dilations: [1, 2, 3, 1], embedding: 6,
  attention_channels: 4, se_channels: 4}
"""  # of a small encoder
HUB_FRONT = """
compute_features: !new:speechbrain.lobes.features.Fbank {n_mels: 20}
mean_var_norm: !new:speechbrain.processing.features.InputNormalization
  {norm_type: sentence, std_norm: False}
modules: {compute_features: !ref <compute_features>, mean_var_norm: !ref <mean_var_norm>,
  embedding_model: !ref <embedding_model>, classifier: !ref <classifier>}
"""  # of a model for SpeechBrain


def run_of(path: Path | str = "x.yaml", seed: int = 0, draw: int = 0, **folders: Any) -> SystemRun:
    """A run of a system, by the options of steps/anonymise.py."""
    return SystemRun(path, Resources(**folders), Draws(seed, draw))


def encoded_by_av(
    samples: Float64, form: str, codec: str | None, rate: int = RATE, *, tracks: int = 1,
    film: bool = False, tags: Mapping[str, str] | None = None, **options: str,
) -> bytes:  # fmt: skip
    """A file of FFmpeg's container and codec, with one channel; film: a second of grey before."""
    out = io.BytesIO()
    with av.open(out, "w", format=form, options=options) as container:
        container.metadata.update(tags or {})
        pictures = [container.add_stream("mpeg4", rate=25)] if film else []
        streams = [container.add_stream(codec, rate=rate, layout="mono") for _ in range(tracks)]
        for stream in streams:
            stream.bit_rate = 12200 if codec == "libopencore_amrnb" else 32000
        for stream in pictures:
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
            for number in range(25):
                picture = av.VideoFrame(64, 64, "yuv420p")
                picture.pts = number
                container.mux(stream.encode(picture))
            container.mux(stream.encode())
        for stream in streams:
            codec_context = stream.codec_context
            if not codec_context.is_open:  # as with a first track
                codec_context.open()
            whole = av.AudioFrame.from_ndarray(samples.astype(np.float32)[None], "fltp", "mono")
            whole.sample_rate, whole.pts = rate, 0
            resampler = av.AudioResampler(
                codec_context.format.name, "mono", codec_context.sample_rate,
                codec_context.frame_size or None,
            )  # fmt: skip
            for frame in [*resampler.resample(whole), *resampler.resample(None), None]:
                container.mux(stream.encode(frame))
    return out.getvalue()


def voice(seconds: float, pitch: float, formant: float, seed: int = 0) -> Float64:
    """Vibrato pulses through two resonances that move, and some noise: a vowel, roughly."""
    n = int(seconds * RATE)
    times = np.arange(n) / RATE
    frames = np.arange(2 + n // 160)
    f0 = pitch * (1 + 0.05 * np.sin(2 * np.pi * 3 * frames * 0.01))
    source = pulse_train(f0, n) + 0.05 * np.random.default_rng(seed).standard_normal(n)
    spectrum = np.fft.rfft(source)
    hz = np.fft.rfftfreq(n, 1 / RATE)
    vowels = []
    for factor in (1.0, 1.4):
        low, high = ((hz - formant * factor) / 150) ** 2, ((hz - 2.8 * formant) / 200) ** 2
        gain = 1 / (1 + low) + 0.3 / (1 + high)
        vowels.append(np.fft.irfft(spectrum * (gain + 0.01), n))
    mix = 0.5 + 0.5 * np.sin(2 * np.pi * 2 * times)
    wave: Float64 = vowels[0] * mix + vowels[1] * (1 - mix)
    return 0.1 * wave * (0.6 + 0.4 * np.sin(2 * np.pi * 1.3 * times) ** 2)


def say(seed: int, f0: float = 120.0, seconds: float = 1.0) -> Float64:
    """Vowels that glide, of a pitch that moves by 20 %, with pauses of breath between."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    time = np.arange(n) / RATE
    pitch = f0 * np.exp(0.1 * np.sin(2 * np.pi * 1.5 * time + seed))
    pulses = (np.diff(np.floor(np.cumsum(pitch / RATE)), prepend=0) > 0).astype(float)
    out = np.zeros(n)
    for start in range(0, n, 1600):  # a new vowel every 0.1 s
        part = slice(start, min(start + 1600, n))
        wave = pulses[part] + 0.003 * rng.standard_normal(part.stop - part.start)
        for low, high in ((300, 900), (900, 2300), (2400, 3400)):
            angle = 2 * np.pi * rng.uniform(low, high) / RATE
            wave = lfilter([1.0], [1.0, -1.9 * np.cos(angle), 0.9025], wave)
        out[part] = wave
    out *= 0.1 + np.abs(np.sin(2 * np.pi * 1.1 * time))
    return 0.3 * out / np.max(np.abs(out))


ODD_SIGNALS = {
    "0.2 s": say(1, seconds=0.2),
    "unvoiced": 0.1 * np.random.default_rng(0).standard_normal(8000),
    "silence": np.zeros(8000),
    "clipped": np.clip(8 * say(2, 210, 0.6), -1, 1),
    "silence around": np.concatenate([np.zeros(6000), say(4, 130, 0.5), np.zeros(6000)]),
    "7 samples": say(5, 130, 0.2)[:7],
}


def check_odd_signal(wave: Float64, out: Float64) -> None:
    """Protected speech is as long and finite; silence stays silence, a frame off the speech."""
    assert out.shape == wave.shape and np.isfinite(out).all()
    assert bool(out.any()) == bool(wave.any())
    if len(wave) > 15000:
        assert not out[:5000].any() and not out[-5000:].any()


def pseudo_rows(out: Path, *columns: str) -> dict[str, list[str]]:
    """pseudo.tsv, which begins with such columns, by utterance; without the seconds at its end."""
    header, *lines = (out / "pseudo.tsv").read_text().splitlines()
    names = header.split("\t")
    assert names[: len(columns) + 1] == ["#utt", *columns] and names[-1] == "seconds"
    assert all(float(line.split("\t")[-1]) >= 0 for line in lines)
    return {line.split("\t")[0]: line.split("\t")[1:-1] for line in lines}


def check_in_parts(
    protect: Callable[[Path, Path], dict[str, list[str]]], data: Path, folder: Path
) -> dict[str, list[str]]:
    """Rows of a protected set, which are the same, to the bit of the audio, in parts of a speaker
    each that are taken backwards. protect: of a data directory, into a folder."""
    whole, parts = protect(data, folder / "whole"), {}
    speakers = sorted(set(read_map(data / "utt2spk").values()), reverse=True)
    for number, speaker in enumerate(speakers):
        part = data / "split2" / str(number + 1)  # keys name the set, not the part
        part.mkdir(parents=True)
        for path in (path for path in data.iterdir() if path.is_file()):
            rows = [r for r in path.read_text().splitlines(True) if r.startswith(speaker)]
            (part / path.name).write_text("".join(rows))
        parts |= protect(part, folder / "parts")
    assert parts == whole
    for utt in whole:
        one, other = (folder / name / f"wav/{utt}.wav" for name in ("whole", "parts"))
        assert one.read_bytes() == other.read_bytes()
    return whole


def write_voices(
    folder: Path, voices: Mapping[str, tuple[str, WorldFrames]], n_values: int = 3, seed: int = 7
) -> Path:
    """A pool of target voices: gender and frames of each; x-vectors also differ by gender."""
    rng, stats = np.random.default_rng(seed), {}
    with ArchiveWriter(folder / "world") as world, ArchiveWriter(folder / "spk_xvector") as vectors:
        for speaker, (gender, frames) in voices.items():
            world.write(f"{speaker}-1", pack(frames))
            vectors.write(speaker, rng.standard_normal(n_values) + 2.0 * (gender == "f"))
            stats[speaker] = compute_f0_stats([frames.f0])
    write_f0_stats(folder, stats)
    write_map(folder / "utt2spk", {f"{speaker}-1": speaker for speaker in voices})
    write_map(folder / "spk2utt", {speaker: f"{speaker}-1" for speaker in voices})
    write_map(folder / "spk2gender", {speaker: gender for speaker, (gender, _) in voices.items()})
    return folder


def write_pool(
    folder: Path, waves: Sequence[Float64], rng: np.random.Generator, n_values: int
) -> Path:
    """A data directory and a pool in one folder: a voice s0, s1, ... of each wave."""
    with ArchiveWriter(folder / "world") as world, ArchiveWriter(folder / "spk_xvector") as vectors:
        for i, wave in enumerate(waves):
            soundfile.write(folder / f"s{i}.wav", wave, RATE, subtype="PCM_16")
            world.write(f"s{i}-1", pack(analyse(wave)))
            vectors.write(f"s{i}", rng.standard_normal(n_values))
    names = [f"s{i}" for i in range(len(waves))]
    write_map(folder / "wav.scp", {f"{name}-1": folder / f"{name}.wav" for name in names})
    write_map(folder / "utt2spk", {f"{name}-1": name for name in names})
    write_id_lists(folder / "spk2utt", {name: [f"{name}-1"] for name in names})
    return folder


def write_speech(folder: Path, waves: Mapping[str, Float64], **tables: Any) -> Path:
    """A data directory with audio, of utterances <speaker>-<number>, and its other tables."""
    wav = {utt: str(folder / "wav" / f"{utt}.wav") for utt in waves}
    for utt, wave in waves.items():
        write_wav(wav[utt], wave)
    utt2spk = {utt: utt.partition("-")[0] for utt in waves}
    write_data_dir(folder, {"wav.scp": wav, "utt2spk": utt2spk, **tables})
    return folder


def write_people(
    folder: Path, vectors: Mapping[str, Any], utt2spk: Mapping[str, str], **tables: Any
) -> tuple[str, str]:
    """x-vectors and a data directory without audio in one folder, which is named twice."""
    made = {utt: np.asarray(vectors[utt], np.float32) for utt in vectors}
    write_archive(folder / "xvector", made)
    write_data_dir(folder, {"utt2spk": utt2spk, **tables})
    return str(folder), str(folder)


def around(
    voices: Float64, each: int, rng: np.random.Generator, within: Float64 | float
) -> TrainingVectors:
    """x-vectors of speakers s00, s01 ...: `each` around each of their voices (S, d)."""
    n, d = voices.shape
    vectors = voices[:, None] + within * rng.standard_normal((n, each, d))
    flat = vectors.reshape(-1, d).astype(np.float32)
    return TrainingVectors(tuple(f"s{i:02d}" for i in range(n)), flat, np.arange(n).repeat(each))


def training_vectors(n_speakers: int = 12, each: int = 5, d: int = 16) -> TrainingVectors:
    """x-vectors of speakers who are far apart."""
    rng = np.random.default_rng(0)
    return around(4.0 * rng.standard_normal((n_speakers, d)) + 1.0, each, rng, 0.5)


def audio_of(data: Path) -> TrainingAudio:
    """The audio of a data directory, as trainings take it."""
    wav, utt2spk = read_map(data / "wav.scp"), read_map(data / "utt2spk")
    return load_training_audio(wav, utt2spk, cache_gb=1.0, minimum_seconds=0.5)


def make_wavlm(folder: Path, seed: int = 0) -> Path:
    """A small WavLM of two layers of 16 values in the form of the hub, not trained."""
    from transformers import WavLMConfig, WavLMModel

    torch.manual_seed(seed)
    config = WavLMConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, conv_dim=[8] * 7,
        feat_extract_norm="layer",
    )  # fmt: skip
    WavLMModel(config).save_pretrained(folder)
    return folder


def some_target(n_values: int, seed: int = 3, pitch: float = 150.0) -> Target:
    """A pseudo-speaker with an x-vector of so many values."""
    xvector = np.random.default_rng(seed).standard_normal(n_values)
    return Target(xvector, ("s1",), np.ones(1), compute_f0_stats([np.full(9, pitch)]))


def or_skip(kind: Callable[[], Any]) -> Any:
    """One of a kind; the test is skipped where its package is not installed."""
    try:
        return kind()
    except UserError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise


@contextmanager
def stopped_at(step: int, trainer: type) -> Iterator[None]:
    """Interrupt the training in the block before this step."""
    plain = trainer.update

    def update(self: object, number: int, batch: object) -> object:
        if number == step:
            raise KeyboardInterrupt
        return plain(self, number, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "update", update)
        with pytest.raises(KeyboardInterrupt):
            yield


def assert_same_network(one: Path, other: Path) -> None:
    """Two trainings left the same weights, to the bit."""
    first, second = (torch.load(out / "final.pt", weights_only=True) for out in (one, other))
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name
