#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Estimating opinion scores: time and memory of steps/estimate_quality.py, against the whole file.

Goals: the sample of the LibriSpeech excerpt (26 speakers, 4 utterances each, original and one
system) takes under 2 minutes of one core; and hearing the middle 7.68 s costs no larger a share of
the CPU time of the same network over whole files than one window is of the windows that the package
cuts a file into, while their mean scores lie within 0.1. Process CPU time. Speech: LibriSpeech from
$PSEUDOVOX_CORPORA or ../shared/corpora.
"""

import contextlib
import io
import math
import random
import sys
import tempfile
import time
from pathlib import Path

import torch
from distillmos import ConvTransformerSQAModel
from distillmos.sqa import MAX_HOP_LEN, SEQ_LEN

from benchmarks.measuring import CORPORA, MOST, ROOT, cost_of, judge, skip
from steps.audio import read_audio
from steps.quality import load_estimator
from utils.datadir import write_data_dir

SECONDS_GOAL, DIFFERENCE_GOAL = 120.0, 0.1
SAMPLE = 26 * 4 * 2  # utterances
N_FILES = 24


def whole_files(waves: list[torch.Tensor]) -> tuple[float, float]:
    """(CPU seconds, mean score) of the package's own way: all windows of a file in one batch."""
    with contextlib.redirect_stdout(io.StringIO()):
        network = ConvTransformerSQAModel().eval()
    start = time.process_time()
    with torch.inference_mode():
        scores = [network(wave[None].float()).item() for wave in waves]
    return time.process_time() - start, sum(scores) / len(scores)


def n_windows(samples: int) -> int:
    """How many windows the package hears of a file."""
    return math.ceil(max(0, samples - SEQ_LEN) / MAX_HOP_LEN) + 1


def middles(waves: list[torch.Tensor]) -> tuple[float, float]:
    """The same as the recipe does it."""
    estimate = load_estimator()
    start = time.process_time()
    scores = [estimate(wave.numpy()).mos for wave in waves]
    return time.process_time() - start, sum(scores) / len(scores)


def program(files: list[Path]) -> tuple[float, float]:
    """(CPU seconds, GB at the peak) of the program on these files, its start included."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        wav = {path.stem: str(path) for path in files}
        write_data_dir(data, {"wav.scp": wav, "utt2spk": {u: u.split("-")[0] for u in wav}})
        cpu, kilobytes = cost_of(ROOT / "steps/estimate_quality.py", data, data, Path(name, "out"))
    return cpu, kilobytes / 1e6


def main() -> int:
    """Measure the program, then both ways of hearing the same files."""
    found = sorted((CORPORA / "librispeech/test-clean").rglob("*.flac"))
    if len(found) < N_FILES:
        skip(f"{CORPORA}/librispeech/test-clean: no LibriSpeech there; set PSEUDOVOX_CORPORA")
    files = random.Random(0).sample(found, N_FILES)
    cpu, gigabytes = program(files)
    waves = [torch.from_numpy(read_audio(path.stem, str(path)).samples) for path in files]
    middle, score = middles(waves)
    whole, reference = whole_files(waves)
    start = max(0.0, cpu - middle)  # imports and reading, once a job
    sample = 4 * start + SAMPLE * middle / N_FILES  # two sets of two conditions, a job each
    ratio, difference = middle / whole, abs(score - reference)
    goal = N_FILES / sum(n_windows(len(wave)) for wave in waves)
    print(
        f"{N_FILES} utterances: {middle / N_FILES:.2f} CPU-s each, {start:.1f} to start, "
        f"{gigabytes:.2f} GB; whole files {whole / N_FILES:.2f} CPU-s each; mean score "
        f"{score:.3f}, of whole files {reference:.3f}"
    )
    return judge(
        (f"CPU-s for the excerpt's {SAMPLE}", sample, MOST, SECONDS_GOAL),
        ("share of whole files' CPU time, one window a file", ratio, MOST, goal),
        ("difference of mean scores", difference, MOST, DIFFERENCE_GOAL),
    )


if __name__ == "__main__":
    sys.exit(main())
