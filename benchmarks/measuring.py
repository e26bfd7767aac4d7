"""Parts that benchmarks share: speech to measure with, and process CPU time."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

import soundfile

from steps.audio import read_audio
from utils.arrays import Float64

T = TypeVar("T")
LEAST, MOST = "at least", "at most"
Judged = tuple[str, float, str, float]  # what a figure is, its value, LEAST or MOST, its goal
TOLD = {True: "met", False: "MISSED"}
SKIPPED = 77  # exit status, as of Automake's tests
ROOT = Path(__file__).resolve().parents[1]
CORPORA = Path(os.environ.get("PSEUDOVOX_CORPORA", ROOT.parent / "shared/corpora"))
LINKS = ("run.sh", "steps", "utils", "local", "path.sh", "cmd.sh", "prepare.sh", "conf")


def speech_files(n: int, folder: Path) -> tuple[str, list[Path]]:
    """Name of the source, and n files: spread over LibriSpeech, where it is; else of 8 synthetic
    speakers, made in a folder."""
    name, files = "LibriSpeech", sorted((CORPORA / "librispeech").rglob("*.flac"))
    if len(files) < n:
        command = [ROOT / "steps/make_synthetic_corpus.py", "--speakers", 8]
        command += ["--utterances", max(3, -(-n // 8)), folder / "audio", folder / "data"]
        words = [sys.executable, *map(str, command)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        name, files = "synthetic speech", sorted((folder / "audio").rglob("*.wav"))
    return name, files[:: max(1, len(files) // n)][:n]


def fill(source: Path, files: Sequence[Path], seconds: float) -> tuple[float, int]:
    """Make a folder of copies of files that last so long; their seconds and number."""
    source.mkdir()
    lasts, n = 0.0, 0
    while lasts < seconds:
        path = files[n % len(files)]
        shutil.copy(path, source / f"{n:05d}{path.suffix}")
        lasts, n = lasts + soundfile.info(path).duration, n + 1
    return lasts, n


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


def judge(*figures: Judged) -> int:
    """Print a line for each figure with its goal, which run_all.py reads; return the exit status: 1
    where a goal is missed."""
    met = [value >= goal if bound == LEAST else value <= goal for _, value, bound, goal in figures]
    for (what, value, bound, goal), right in zip(figures, met, strict=True):
        print("goal", what, f"{value:.4g}", f"{bound} {goal:.4g}", TOLD[right], sep="\t")
    return int(not all(met))


def skip(why: str) -> NoReturn:
    """End a benchmark that cannot be run here."""
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def cpu_seconds(run: Callable[[], object], times: int = 1) -> float:
    """Process CPU time in seconds, the best of several runs."""
    return timed(run, times)[0]


def cost_of(*words: object) -> tuple[float, float]:
    """CPU seconds of a Python program, with the processes that it waits for, and its peak kB."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, *map(str, words)], stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{words}: failed: {said.read().decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def cost_of_metrics(*arguments: object) -> tuple[float, float]:
    """CPU seconds and peak GB of local/compute_metrics.py."""
    cpu, kilobytes = cost_of(ROOT / "local/compute_metrics.py", *arguments)
    return cpu, kilobytes / 1e6


@contextmanager
def synth_folder() -> Iterator[Path]:
    """A new folder beside egs/synth that is the same corpus; it is removed at the end."""
    work = Path(tempfile.mkdtemp(prefix="bench.", dir=ROOT / "egs"))
    try:
        for name in LINKS:
            (work / name).symlink_to(os.path.relpath((ROOT / "egs/synth" / name).resolve(), work))
        yield work
    finally:
        shutil.rmtree(work)


def run(program: Callable[[Sequence[str]], int], *words: object) -> None:
    """A program's main."""
    if status := program([str(word) for word in words]):
        sys.exit(f"{program.__module__}: exit status {status}")


def write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """A table for the pages."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def show(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Print a table, and write it for the pages."""
    for row in rows:
        print(*row, sep="\t")
    write(path, rows)
