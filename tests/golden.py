#!/usr/bin/env python3
"""Golden figures: what a small run of egs/synth gives, to the bit, while the code is rearranged.

    . ./path.sh
    tests/golden.py run FOLDER [--nj 2 ...]   # run.sh, from nothing, in a new folder
    tests/golden.py check FOLDER              # name what differs from tests/golden.tsv
    tests/golden.py write FOLDER              # make that table; a commit that does so says why

Only run.sh is started and only what it leaves is read: audio, x-vectors, scores, hypotheses and
metrics.csv, whose digests of settings do not count. A line of the table is a kind, a name and a
value: a digest with the number of items, or the columns `value` to `n_nontarget` of a row of
metrics.csv, to 12 significant digits.

The last bits of an encoder that is trained depend on the processor and on the versions of torch
and NumPy, and so do x-vectors, scores and figures. The table names the machine that wrote it. On
another one only metrics.csv is compared, to 1e-6.
"""

import csv
import hashlib
import math
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import kaldiio
import numpy as np
import soundfile

from tests.recipes import TINY, link_recipe
from utils.tables import write_file

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests/golden.tsv"
TOLERANCE = 1e-6
CONF = """\
corpus_name=golden
evaluation=golden
prepare_options="--evaluation golden --eval-speakers 6 --eval-utterances 4 \
--enrol-utterances 2 --train-speakers 8 --train-utterances 4"
evaluators="tiny/plda resemblyzer/cosine_raw"
systems="mcadams b1 bn"
attackers="ignorant lazy_informed semi_informed_backend"
informed_draws=1
genders=mixed
asr=moonshine
prosody=true
quality=true
quality_utterances=1
bootstrap=20
report_audio=false
"""
NAMES = ("split", "gender", "system", "family", "attacker", "evaluator", "condition", "metric",
         "recordings", "enrolled", "candidates", "attribute", "group", "gallery",
         "kind")  # fmt: skip
FIGURES = ("value", "low", "high", "n_speakers", "n_segments", "n_target", "n_nontarget")

Golden = dict[tuple[str, str], str]


def make_folder(folder: Path) -> None:
    """A corpus as egs/synth is, but for conf/recipe.conf and one small encoder."""
    link_recipe(folder, CONF)
    (folder / "prepare.sh").symlink_to(ROOT / "egs/synth/prepare.sh")
    for path in (ROOT / "egs/synth/conf").iterdir():
        if path.name not in ("recipe.conf", "encoders"):
            (folder / "conf" / path.name).symlink_to(path.resolve())
    write_file(folder / "conf/encoders/tiny.yaml", TINY)


def digest(items: Iterable[tuple[str, bytes]]) -> str:
    """The first digits of a SHA-256 of the items in the order of their names, and their number."""
    found, total = hashlib.sha256(), 0
    for name, content in sorted(items):
        found.update(f"{len(name)}:{name}{len(content)}:".encode() + content)
        total += 1
    return f"{found.hexdigest()[:16]} {total}"


def rows_of(path: Path) -> Iterable[tuple[str, str]]:
    """The first word of each line of a table, and the rest."""
    for line in path.read_text().splitlines():
        key, _, rest = line.partition(" ")
        yield key, rest


def audio_digest(folder: Path, wav_scp: Path) -> str:
    """Over utterances: sampling rate and samples as the file's format has them."""

    def read(path: str) -> bytes:
        samples, rate = soundfile.read(folder / path, dtype="int16")
        return f"{rate} {soundfile.info(folder / path).subtype}:".encode() + samples.tobytes()

    return digest((utt, read(path)) for utt, path in rows_of(wav_scp))


def vector_digest(folder: Path, scp: Path) -> str:
    """Over ids: the float32 of each vector."""

    def read(place: str) -> bytes:
        path, _, offset = place.rpartition(":")
        vector = kaldiio.load_mat(f"{folder / path}:{offset}")
        return np.asarray(vector, dtype="<f4").tobytes()

    return digest((name, read(place)) for name, place in rows_of(scp))


def line_digest(path: Path) -> str:
    """Over the lines of a table, in any order."""
    return digest((" ".join(line.split()), b"") for line in path.read_text().splitlines())


def number(text: str) -> float | None:
    """The number that a figure is; none where it is a letter or not defined."""
    try:
        return float(text)
    except ValueError:
        return None


def rounded(text: str) -> str:
    """A figure to 12 significant digits."""
    value = number(text)
    return text if value is None else f"{value:.12g}"


def read_golden(folder: Path) -> Golden:
    """(kind, name) -> digest or figure, of what a run has left in `folder`."""
    found: Golden = {}
    for path in folder.glob("data/*/wav.scp"):
        found["audio", path.parent.name] = audio_digest(folder, path)
    for path in folder.glob("exp/xvectors/*/*/*.scp"):
        name = path.relative_to(folder / "exp/xvectors").with_suffix("")
        found["xvectors", str(name)] = vector_digest(folder, path)
    for kind, pattern in (("scores", "scores/**/scores"), ("words", "decode/**/text")):
        for path in folder.glob(f"exp/{pattern}"):
            found[kind, "/".join(path.relative_to(folder / "exp").parts[1:-1])] = line_digest(path)
    with (folder / "exp/results/metrics.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            name = " ".join(row[column] or "-" for column in NAMES)
            assert ("metrics", name) not in found, f"{name}: twice in metrics.csv"
            found["metrics", name] = ",".join(rounded(row[column]) for column in FIGURES)
    return found


def this_machine() -> Golden:
    """Processor and versions, on which the last bits depend."""
    import torch

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    told = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    processor = " ".join(told.get(name, "?") for name in ("model name", "cpu family", "model"))
    found = {
        "processor": f"{platform.machine()} {processor}",
        "flags": hashlib.sha256(told.get("flags", "").encode()).hexdigest()[:16],
        "instructions": torch.backends.cpu.get_cpu_capability(),
        **{name: version(name) for name in ("torch", "numpy", "scipy")},
    }
    return {("machine", name): value for name, value in found.items()}


def write_table(golden: Golden, path: Path = TABLE) -> None:
    """A line of kind, name and value each, sorted; the machine first."""
    rows = sorted(golden.items(), key=lambda row: (row[0][0] != "machine", row))
    path.write_text("".join(f"{kind}\t{name}\t{value}\n" for (kind, name), value in rows))


def read_table(path: Path = TABLE) -> Golden:
    """A table that `write_table` wrote."""
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return {(kind, name): value for kind, name, value in rows}


def only(golden: Golden, *kinds: str) -> Golden:
    """The lines of some kinds."""
    return {key: value for key, value in golden.items() if key[0] in kinds}


def near(wanted: str, found: str) -> bool:
    """Whether figures between commas differ by no more than 1e-6, absolutely or in proportion."""
    for one, other in zip(wanted.split(","), found.split(","), strict=True):
        a, b = number(one), number(other)
        if one != other and (
            a is None or b is None or not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        ):
            return False
    return True


def differences(wanted: Golden, found: Golden, *, exact: bool) -> list[str]:
    """A line for each artifact or figure that is gone, new, or another one."""
    lines = []
    for key in sorted(wanted.keys() | found.keys()):
        before, now = wanted.get(key, "missing"), found.get(key, "missing")
        if before == now or not (exact or "missing" in (before, now) or not near(before, now)):
            continue
        lines.append(f"{key[0]} {key[1]}: {before} was expected, found {now}")
    return lines


def compare(folder: Path, table: Path = TABLE) -> tuple[bool, list[str]]:
    """Whether this machine is the table's, and what differs: of everything, or of metrics only."""
    wanted, found = read_table(table), read_golden(folder)
    same = only(wanted, "machine") == this_machine()
    if same:
        return True, differences(wanted, found | this_machine(), exact=True)
    return False, differences(only(wanted, "metrics"), only(found, "metrics"), exact=False)


def run_recipe(folder: Path, *options: str) -> None:
    """Run the recipe from nothing; CalledProcessError where it fails."""
    make_folder(folder)
    subprocess.run(["./run.sh", *options], cwd=folder, check=True)


def main(command: str, folder: Path, *options: str) -> int:
    """Run the program."""
    if command == "run":
        run_recipe(folder, *options)
    elif command == "write":
        write_table(read_golden(folder) | this_machine())
    elif command == "check":
        same, lines = compare(folder)
        what = (
            "artifacts and figures" if same else "figures (1e-6; another machine wrote the table)"
        )
        print(*lines, f"{len(lines)} {what} differ", sep="\n")
        return int(bool(lines))
    else:
        raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]) if sys.argv[2:] else __doc__)
