#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Decoding by PocketSphinx in parallel jobs against one job.

Goal: the jobs together take at most 1.25 times the CPU time of one job (each loads the model), and
the hypotheses are the same bytes. CPU time is that of the ended processes. Wall-clock time is
printed beside it; it says something on a quiet machine only. Speech: synthetic speakers.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import LEAST, MOST, ROOT, cost_of, judge
from utils.datadir import load_data_dir
from utils.parts import merge_parts, split_data_dir

GOAL = 1.25


def decode(data: Path, out: Path, jobs: int) -> tuple[float, float, bytes]:
    """(CPU seconds, seconds, hypotheses) of decoding in so many jobs, as the recipe does it."""
    parts = split_data_dir(load_data_dir(data), jobs)
    start = time.monotonic()
    cpu, _ = cost_of(
        ROOT / "utils/run.py", f"JOB=1:{parts}", out / "log/decode.JOB.log",
        ROOT / "steps/decode.py", "pocketsphinx",
        f"{data}/split{parts}/JOB", f"{out}/split{parts}/JOB",
    )  # fmt: skip
    seconds = time.monotonic() - start
    merge_parts(out, parts)
    return cpu, seconds, (out / "text").read_bytes()


def main() -> int:
    """Make speech, decode it both ways, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speakers", type=int, default=8, help="5 utterances of each")
    parser.add_argument("--jobs", type=int, default=2, help="compared with one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data"
        cost_of(
            ROOT / "steps/make_synthetic_corpus.py", "--speakers", args.speakers, "--utterances", 5,
            folder / "audio", data,
        )  # fmt: skip
        one, wall_one, text_one = decode(data, folder / "one", 1)
        many, wall_many, text_many = decode(data, folder / "many", args.jobs)
        audio = sum((load_data_dir(data).utt2dur or {}).values())
    same = text_one == text_many
    print(
        f"{audio:.0f} s of speech: one job {one:.1f} CPU-s ({one / audio:.3f} a second of it), "
        f"{args.jobs} jobs {many:.1f}: {many / one:.2f} times; wall clock "
        f"{wall_one:.1f} and {wall_many:.1f} s: {wall_one / wall_many:.2f} times faster; "
        f"hypotheses are {'the same' if same else 'NOT the same'}"
    )
    return judge(
        (f"times the CPU time in {args.jobs} jobs", many / one, MOST, GOAL),
        ("share of hypotheses that are the same", float(same), LEAST, 1),
    )


if __name__ == "__main__":
    sys.exit(main())
