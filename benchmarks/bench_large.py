#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of all pairs without stored scores, against this machine's own float32 matrix product.

Goal: end to end (x-vectors from ark and scp, counts, figures) at least half as fast as the product
of the same matrices alone, in CPU time, and under 2 GB. `--full`: 100,000 x 300,000 x 192, 3e10
pairs, under 2 minutes on 2 cores. Without: 10,000 x 30,000. The reference is measured in the same
run, before and after: as many processes at once as jobs, each `numpy.matmul` into a prepared array,
without anything else.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measuring import LEAST, MOST, ROOT, Judged, cost_of, judge
from steps.speaker.backends import train_backend, write_backend
from utils.archives import ArchiveWriter

DIM = 192
GOAL, MOST_MEMORY, MOST_SECONDS = 0.5, 2.0, 120.0  # share of the product's rate, GB, wall seconds


def write_side(folder: Path, means: np.ndarray, n: int, rng: np.random.Generator) -> None:
    """n x-vectors of simulated speakers, utt2spk and spk2gender."""
    folder.mkdir()
    with ArchiveWriter(folder / "xvector") as writer, (folder / "utt2spk").open("w") as utt2spk:
        for i in range(n):
            spk = i * len(means) // n
            writer.write(f"{folder.name}{spk:05d}-{i:06d}", means[spk] + rng.standard_normal(DIM))
            utt2spk.write(f"{folder.name}{spk:05d}-{i:06d} spk{spk:05d}\n")


def multiply(seconds: float) -> tuple[float, int]:
    """CPU time and number of products of rows of one process."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, DIM)).astype(np.float32) for n in (2048, 8192))
    out = np.empty((len(a), len(b)), np.float32)
    np.matmul(a, b.T, out=out)
    start, pairs = time.process_time(), 0
    while time.process_time() - start < seconds:
        np.matmul(a, b.T, out=out)
        pairs += out.size
    return time.process_time() - start, pairs


def product_rate(jobs: int, seconds: float) -> float:
    """Pairs a CPU-second."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        found = pool.map(multiply, [seconds] * jobs)
    return sum(pairs for _, pairs in found) / sum(cpu for cpu, _ in found)


def measure(folder: Path, jobs: int, backend: str) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak memory in GB of the program; figures in metrics.json."""
    sides = [str(folder / side) for side in ("enrol", "enrol", "trial", "trial")]
    command = ["--nj", str(jobs), "--backend", backend, *sides, str(folder / "metrics.json")]
    start = time.monotonic()
    seconds, kilobytes = cost_of(ROOT / "local/large.py", *command)
    return seconds, time.monotonic() - start, kilobytes / 1e6


def train(folder: Path, means: np.ndarray, rng: np.random.Generator) -> str:
    """A PLDA of the simulated speakers, LDA to 150 dimensions."""
    some = means[: min(len(means), 1000)]
    vectors, utt2spk = {}, {}
    for spk, mean in enumerate(some):
        for i in range(10):
            vectors[f"{spk}-{i}"] = (mean + rng.standard_normal(DIM)).astype(np.float32)
            utt2spk[f"{spk}-{i}"] = str(spk)
    write_backend(folder / "backend", train_backend(vectors, utt2spk, 150))
    return str(folder / "backend")


def main() -> int:
    """Measure, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="3e10 pairs")
    parser.add_argument("--sizes", type=int, nargs=2, metavar=("N", "M"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plda", action="store_true", help="PLDA instead of cosine")
    args = parser.parse_args()
    n, m = args.sizes or ((100_000, 300_000) if args.full else (10_000, 30_000))
    rng = np.random.default_rng(0)
    means = 0.6 * rng.standard_normal((max(n // 10, 2), DIM))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, size in (("enrol", n), ("trial", m)):
            write_side(folder / side, means, size, rng)
        backend = train(folder, means, rng) if args.plda else "cosine_raw"
        # Not timed: what Numba compiles is kept for the next time.
        before = product_rate(args.jobs, 3.0)
        cpu, wall, memory = measure(folder, args.jobs, backend)
        after = product_rate(args.jobs, 3.0)
        eer = json.loads((folder / "metrics.json").read_text())["eer"]
    pairs, reference = n * m, (before + after) / 2
    print(f"{n} x {m} x {DIM}, {backend}, {args.jobs} jobs: {pairs:.3g} pairs, EER {eer:.4f}")
    print(f"product alone: {before:.3g} and {after:.3g} pairs a CPU-second")
    ratio = pairs / cpu / reference
    print(f"end to end: {wall:.1f} s, {ratio:.2f} of the product, {memory:.2f} GB")
    if not args.full:
        print("speed is not judged, so short a run is mostly the start of programs; --full")
    speed: list[Judged] = [
        ("share of the product's rate", ratio, LEAST, GOAL),
        ("s of wall time", wall, MOST, MOST_SECONDS),
    ]
    return judge(("GB", memory, MOST, MOST_MEMORY), *(speed if args.full else []))


if __name__ == "__main__":
    sys.exit(main())
