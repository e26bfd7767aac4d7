#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Wall time of make protect on one and on two cores: at least 0.85 of linear, and equal bytes.

models/bn2 protects a folder of copies of LibriSpeech's utterances, so many minutes in all, by
steps/protect_folder.py --nj 1 and --nj 2, starts included. The machine must be quiet: the time is
that of a clock. Speech: $PSEUDOVOX_CORPORA or ../shared/corpora (benchmarks/measuring.py).

  benchmarks/bench_protect.py [MINUTES]      20 if left out
"""

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import LEAST, ROOT, fill, judge, speech_files

GOAL, N_FILES = 0.85, 60


def protect(source: Path, out: Path, nj: int) -> tuple[float, dict[str, str]]:
    """Seconds of a clock, and the digest of each file made."""
    words = ["--key", "a key of sixteen", "--nj", str(nj), str(source), str(out)]
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, str(ROOT / "steps/protect_folder.py"), *words], check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    took = time.monotonic() - begun
    made = sorted(path for path in out.rglob("[!.]*") if path.is_file())
    return took, {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


def main() -> int:
    """Run the benchmark; 1 where the goal is missed."""
    minutes = float(sys.argv[1]) if sys.argv[1:] else 20.0
    with tempfile.TemporaryDirectory() as folder:
        said, files = speech_files(N_FILES, Path(folder, "speech"))
        seconds, n = fill(source := Path(folder, "in"), files, 60 * minutes)
        alone, first = protect(source, Path(folder, "one"), 1)
        both, again = protect(source, Path(folder, "two"), 2)
    share = alone / (2 * both)
    print(f"{said}: {seconds:.0f} s in {n} files: {alone:.1f} s on one core, {both:.1f} s on two: "
          f"{share:.2f} of linear; bytes {'equal' if first == again else 'DIFFER'}")  # fmt: skip
    return judge(
        ("share of linear, two cores", share, LEAST, GOAL),
        ("whether bytes are equal", float(first == again), LEAST, 1),
    )


if __name__ == "__main__":
    sys.exit(main())
