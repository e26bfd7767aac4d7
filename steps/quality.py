"""DistillMOS: listeners' opinion of the quality of speech, estimated from the signal alone.

Stahl and Gamper, "Distillation and Pruning for Scalable Self-Supervised Representation-Based Speech
Quality Assessment", ICASSP 2025. Its network takes 7.68 s: longer speech is cut to its middle
(where the package takes the mean of several windows), shorter speech is padded with zeros.
"""

import contextlib
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steps.audio import SAMPLE_RATE, EmptyAudioError, Losses, read_audio
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import write_map

WINDOW = 122880  # samples of the network's window, 7.68 s
SHORTEST = 0.2  # seconds; less is not a syllable
SILENT = -60.0  # dB of full scale: nothing is heard where no frame of 20 ms reaches this level
CLIPPED = 0.01  # share of samples at full scale from which on a file counts as clipped
_FULL_SCALE = 32767 / 32768
_FRAME = SAMPLE_RATE // 50
_HOP = SAMPLE_RATE // 100  # of the network's frames
_AT_ONCE = 32  # frames: the network is prepared anew for each length


@dataclass(frozen=True)
class Quality:
    """Quality of an utterance. mos: estimated mean opinion score, 1 (bad) to 5 (excellent), NaN
    where undefined; problem: the reason (empty, short, silent, clipped)."""

    mos: float
    problem: str = ""


def middle(wave: Float64) -> Float64:
    """Part of a signal (n,) at 16 kHz that is assessed: at most WINDOW samples."""
    start = max(0, (len(wave) - WINDOW) // 2)
    return wave[start : start + WINDOW]


def problem_of(wave: Float64) -> str:
    """Reason why the assessed part of (n,) at 16 kHz, full scale 1, has no score; or empty.

    empty: no samples; short: under 0.2 s; silent: no frame of 20 ms reaches -60 dB of full scale;
    clipped: at least 1 % of the samples are at the full scale of 16 bit.
    """
    if not len(wave):
        return "empty"
    if len(wave) < SHORTEST * SAMPLE_RATE:
        return "short"
    frames = wave[: len(wave) // _FRAME * _FRAME].reshape(-1, _FRAME)
    if np.mean(frames**2, axis=1).max() < 10 ** (SILENT / 10):
        return "silent"
    return "clipped" if np.mean(np.abs(wave) >= _FULL_SCALE) >= CLIPPED else ""


def load_estimator() -> Callable[[Float64], Quality]:
    """DistillMOS with the weights of its package: from a signal (n,) at 16 kHz to its quality.

    One signal at a time, so that no score depends on other signals.
    """
    import torch
    from distillmos import ConvTransformerSQAModel

    with contextlib.redirect_stdout(io.StringIO()):  # it prints the place of its weights
        network = ConvTransformerSQAModel().eval()
    network.cnn.forward = _only_speech(network.cnn)

    def estimate(wave: Float64) -> Quality:
        heard = middle(wave)
        if problem := problem_of(heard):
            return Quality(math.nan, problem)
        with torch.inference_mode():
            return Quality(network(torch.from_numpy(heard).float()[None]).item())

    return estimate


def _only_speech(cnn: Any) -> Callable[[Any], Any]:
    """The forward function of the network's convolutions, which takes what is past the end of the
    speech from silence, where it is the same for all: most of a window is padding.

    Its six layers see 3 frames each, of 20 ms every 10 ms; the last one halves their number.
    """
    import torch

    whole, seen = cnn.forward, 6  # frames on either side of one that a result depends on
    with torch.inference_mode():
        silence = whole(torch.zeros(1, WINDOW))

    def forward(wave: Any) -> Any:
        spoken = (int(wave[0].nonzero()[-1]) + _HOP // 2) // _HOP + 1  # frames
        width = -(-(spoken + 2 * seen + 1) // _AT_ONCE) * _AT_ONCE
        if width * _HOP >= WINDOW:
            return whole(wave)
        known = (width - seen) // 2
        return torch.cat([whole(wave[:, : width * _HOP])[..., :known], silence[..., known:]], -1)

    return forward


def estimate_all(
    wav: Mapping[str, str], progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts
) -> tuple[dict[str, Quality], Losses]:
    """Assess audio files (utterance -> file); also returns those that could not be read.

    progress: wraps the utterances.
    """
    estimate, losses = load_estimator(), Losses()

    def assess(utt: str) -> Quality:
        try:
            return estimate(read_audio(utt, wav[utt]).samples)
        except EmptyAudioError:
            return Quality(math.nan, "empty")

    return dict(losses.each(progress(wav), assess)), losses


def write_quality(folder: Path, found: Mapping[str, Quality]) -> None:
    """Write `quality` to the folder, `<utterance> <score>` a line, or `<utterance> - <reason>`."""
    if not found:
        raise UserError(f"{folder}: there is nothing to write; no utterance could be read")
    lines = {u: f"- {q.problem}" if q.problem else f"{q.mos:.6g}" for u, q in found.items()}
    write_map(folder / "quality", lines)
