"""Parts that benchmarks share: speech to measure with, and process CPU time."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from steps.audio import read_audio
from utils.arrays import Float64

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]


def speech_files(n: int, folder: Path) -> tuple[str, list[Path]]:
    """Name of the source, and n files: spread over LibriSpeech, where it is; else of 8 synthetic
    speakers, made in a folder."""
    corpora = Path(os.environ.get("PSEUDOVOX_CORPORA", ROOT.parent / "shared" / "corpora"))
    name, files = "LibriSpeech", sorted((corpora / "librispeech").rglob("*.flac"))
    if len(files) < n:
        command = [ROOT / "steps/make_synthetic_corpus.py", "--speakers", 8]
        command += ["--utterances", max(3, -(-n // 8)), folder / "audio", folder / "data"]
        words = [sys.executable, *map(str, command)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        name, files = "synthetic speech", sorted((folder / "audio").rglob("*.wav"))
    return name, files[:: max(1, len(files) // n)][:n]


def load_speech(n: int) -> tuple[str, list[Float64]]:
    """Name of the source, and the samples of n files at 16 kHz."""
    with tempfile.TemporaryDirectory() as folder:
        name, files = speech_files(n, Path(folder))
        return name, [read_audio(path.stem, str(path)).samples for path in files]


def timed(run: Callable[[], T], times: int) -> tuple[float, T]:
    """Process CPU time in seconds, the best of several runs, and the result."""
    found = []
    for _ in range(times):
        start = time.process_time()
        result = run()
        found.append(time.process_time() - start)
    return min(found), result


def cpu_seconds(run: Callable[[], object], times: int = 1) -> float:
    """Process CPU time in seconds, the best of several runs."""
    return timed(run, times)[0]


def cost_of_metrics(*arguments: object) -> tuple[float, float]:
    """CPU seconds and peak GB of local/compute_metrics.py in a process of its own."""
    program = [sys.executable, str(ROOT / "local/compute_metrics.py"), *map(str, arguments)]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(program)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6
