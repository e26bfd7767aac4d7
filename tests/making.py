"""Small data for tests: archives, voices of pulses, pools of them, trainings that are stopped."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from steps.synthesis.base import Target
from steps.synthesis.f0 import compute_f0_stats
from steps.synthesis.trained import pulse_train
from steps.synthesis.world import analyse, pack
from steps.training.audio import TrainingAudio, load_training_audio
from utils.archives import ArchiveWriter
from utils.arrays import Float64
from utils.tables import read_map, write_id_lists, write_map

RATE = 16000
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


def write_archive(stem: Path | str, table: Mapping[str, np.ndarray]) -> None:
    """Write vectors or matrices to <stem>.ark and <stem>.scp, whose folder is made."""
    with ArchiveWriter(stem) as writer:
        for key, value in table.items():
            writer.write(key, value)


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
        gain = 1 / (1 + ((hz - formant * factor) / 150) ** 2) + 0.3 / (
            1 + ((hz - 2.8 * formant) / 200) ** 2
        )
        vowels.append(np.fft.irfft(spectrum * (gain + 0.01), n))
    mix = 0.5 + 0.5 * np.sin(2 * np.pi * 2 * times)
    wave: Float64 = vowels[0] * mix + vowels[1] * (1 - mix)
    return 0.1 * wave * (0.6 + 0.4 * np.sin(2 * np.pi * 1.3 * times) ** 2)


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


def audio_of(data: Path) -> TrainingAudio:
    """The audio of a data directory, as trainings take it."""
    wav, utt2spk = read_map(data / "wav.scp"), read_map(data / "utt2spk")
    return load_training_audio(wav, utt2spk, cache_gb=1.0, minimum_seconds=0.5)


def some_target(n_values: int, seed: int = 3, pitch: float = 150.0) -> Target:
    """A pseudo-speaker with an x-vector of so many values."""
    xvector = np.random.default_rng(seed).standard_normal(n_values)
    return Target(xvector, ("s1",), np.ones(1), compute_f0_stats([np.full(9, pitch)]))


@contextmanager
def stopped_at(step: int, trainer: type) -> Iterator[None]:
    """What is trained in the block is interrupted before this step."""
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
