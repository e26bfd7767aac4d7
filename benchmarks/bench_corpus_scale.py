#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""How the tools for data directories grow with the corpus: 10^4, 10^5 and (--full) 10^6 utterances.

Each tool runs as a process of its own on a made-up data directory (100 utterances a speaker), whose
paths all lead to one short audio file. x-vectors have 192 values; what extracts them stands for an
encoder and gives ones. Reference: the same tool on the smallest one. Goals: CPU time by utterance
at most twice the reference's, so nothing is superlinear; peak memory, beyond that of the smallest,
at most 2 kB an utterance, which is what tables take that a tool looks ids up in.
"""

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.measuring import MOST, ROOT, cost_of, judge
from utils.archives import ArchiveWriter
from utils.datadir import write_data_dir

EACH, PARTS, DIM = 100, 40, 192
SIZES = (10_000, 100_000, 1_000_000)
MOST_TIME, MOST_MEMORY = 2.0, 2048.0  # times the reference; bytes an utterance
LOAD = (
    "import sys; from utils.datadir import load_data_dir;"
    "data = load_data_dir(sys.argv[1]); print(len(data.utt2spk))"
)
SPLIT = f"{LOAD}; from utils.parts import *; split_data_dir(data, {PARTS})"
MERGE = f"{LOAD}; from utils.parts import *; merge_parts(Path(sys.argv[2]), {PARTS}, data)"
READ = (
    "import sys; from utils.archives import ObjectReader;"
    "print(sum(1 for _ in ObjectReader(sys.argv[1])))"
)

EXTRACT = f"""
import sys
import numpy as np
from steps.speaker.encoders import extract
from utils.archives import ArchiveWriter
from utils.datadir import load_data_dir

class Ones:
    n_whole = 0

    def embed(self, samples):
        return np.ones({DIM}, np.float32)

data = load_data_dir(sys.argv[1])
with ArchiveWriter(sys.argv[2]) as writer:
    print(extract(Ones(), data.wav, data.utt2spk, writer.write).summary())
"""


def write_corpus(folder: Path, first: int, n: int) -> None:
    """Utterances first to first + n, and an x-vector of each."""
    folder.mkdir(parents=True)
    audio = folder.parent / "a.wav"
    if not audio.exists():
        noise = np.random.default_rng(0).normal(0, 0.01, 1600)  # silence would be refused
        soundfile.write(audio, noise, 16000)
    utts = {f"s{i // EACH:06d}-u{i:08d}": i for i in range(first, first + n)}
    speakers = {utt: utt.partition("-")[0] for utt in utts}
    # As many different names of one file.
    steps = {utt: "".join("/./"[int(b) :] for b in f"{i:020b}") for utt, i in utts.items()}
    tables = {
        "utt2spk": speakers,
        "wav.scp": {utt: f"{folder.parent}/{steps[utt]}a.wav" for utt in utts},
        "text": {
            utt: f"what speaker {speakers[utt]} says in utterance {i}" for utt, i in utts.items()
        },
        "utt2dur": {utt: f"{2 + i % 100 / 10:.2f}" for utt, i in utts.items()},
        "spk2gender": {spk: "fm"[int(spk[1:]) % 2] for spk in speakers.values()},
    }
    write_data_dir(folder, tables)


def apart(function: Callable[..., None], *arguments: object) -> None:
    """Call in a process of its own: what this one holds would count as memory of what it starts."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{function.__name__}: failed")


def write_parts(data: Path, out: Path) -> None:
    """Files that the jobs of a step leave: an archive in each part of the split."""
    for number in range(1, PARTS + 1):
        part = out / f"split{PARTS}" / str(number)
        part.mkdir(parents=True)
        with ArchiveWriter(part / "xvector") as writer:
            for line in (data / f"split{PARTS}/{number}/utt2spk").open():
                writer.write(line.split()[0], np.zeros(DIM, np.float32))


def measure_tools(folder: Path, n: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Every tool on a corpus of n utterances: CPU seconds and peak kB."""
    data, half, other = (folder / name for name in ("data", "half", "other"))
    for part, first, size in ((data, 0, n), (half, 0, n // 2), (other, n // 2, n - n // 2)):
        apart(write_corpus, part, first, size)
    utils, out = ROOT / "utils", folder / "out"
    yield "load (every step)", cost_of("-c", LOAD, data)
    yield "validate", cost_of(utils / "validate_data_dir.py", "--no-audio", data)
    yield f"split into {PARTS}", cost_of("-c", SPLIT, data)
    subset = (utils / "subset_data_dir.py", "--n", n // 2, data, folder / "sub")
    yield "subset, half at random", cost_of(*subset)
    yield "combine two", cost_of(utils / "combine_data_dirs.py", folder / "both", half, other)
    apart(write_parts, data, out)
    yield f"merge {PARTS} parts", cost_of("-c", MERGE, data, out)
    yield "open an .scp", cost_of("-c", READ, out / "xvector.scp")
    yield "extract x-vectors", cost_of("-c", EXTRACT, data, folder / "whole/xvector")
    yield "average x-vectors", cost_of(ROOT / "steps/average_xvectors.py", out, data, out)


def main() -> int:
    """Measure, print, compare with the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 10^6 utterances")
    args = parser.parse_args()
    reference: dict[str, tuple[float, float]] = {}
    times, growths = [0.0], [0.0]
    for n in SIZES if args.full else SIZES[:2]:
        with tempfile.TemporaryDirectory() as name:
            for tool, (seconds, kilobytes) in measure_tools(Path(name), n):
                peak = 1024.0 * kilobytes
                first, least = reference.setdefault(tool, (seconds, peak))
                ratio = seconds / n / (first / SIZES[0])
                growth = (peak - least) / (n - SIZES[0]) if n > SIZES[0] else 0.0
                times.append(ratio)
                growths.append(growth)
                print(
                    f"{tool}: {n} utterances, {seconds:.2f} CPU-s, {1e6 * seconds / n:.1f} us each "
                    f"({ratio:.2f} of the reference), {peak / 1e6:.0f} MB, {growth:.0f} bytes each",
                    flush=True,
                )
    return judge(
        ("times the reference, worst tool", max(times), MOST, MOST_TIME),
        ("bytes an utterance, worst tool", max(growths), MOST, MOST_MEMORY),
    )


if __name__ == "__main__":
    sys.exit(main())
