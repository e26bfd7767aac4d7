#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Words and quality of models/bn beside the speech that the authors of Liu et al. 2025 published.

41 utterances of three speakers of LibriSpeech dev-clean, whom models/bn did not learn from: the
originals, nine systems of the authors, and ours, each file with a pseudo-speaker of its own. The
same recogniser and the same estimator hear all. Three people are too few for an attacker, so there
is none. OUT gets metrics.csv, as local/render_tables.py reads it.
Speech: idmap_samples from $PSEUDOVOX_CORPORA or ../shared/corpora.

  benchmarks/compare_published.py OUT
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import CORPORA, run
from local.compute_utility import main as compute_utility
from local.report.frame import METRICS, write_frame
from steps.decode import main as decode
from steps.estimate_quality import main as estimate_quality
from steps.protect_folder import main as protect_folder
from utils.datadir import write_data_dir
from utils.tables import read_map

SAMPLES = CORPORA / "idmap_samples"
OURS, ORIGINAL = "bn", "Original"
BOOTSTRAP = ("--bootstrap", "1000", "--seed", "0")


def write_sets(folder: Path, out: Path) -> None:
    """OUT/all, and OUT/words: those whose transcript is known. Ids begin with the speaker's."""
    wav = {path.stem: str(path) for path in sorted(folder.glob("*.flac"))}
    text = read_map(SAMPLES / "text", rest_of_line=True)
    for name, utts in (("all", sorted(wav)), ("words", sorted(wav.keys() & text.keys()))):
        tables = {
            "wav.scp": {u: wav[u] for u in utts},
            "utt2spk": {u: u.split("-")[0] for u in utts},
        }
        if name == "words":
            tables["text"] = {u: text[u] for u in utts}
        write_data_dir(out / name, tables)


def measure(system: str, folder: Path, work: Path) -> Iterator[dict[str, str]]:
    """Words and quality of a folder."""
    here, original = work / system, work / ORIGINAL
    write_sets(folder, here)
    run(decode, "moonshine", here / "words", here / "heard")
    run(
        compute_utility, "words", *BOOTSTRAP, here / "words", here / "heard/text", here / "wer.json"
    )
    run(estimate_quality, original / "all", here / "all", here / "quality")
    before = () if system == ORIGINAL else ("--original", original / "quality/quality")
    found = here / "quality/quality"
    run(compute_utility, "quality", *BOOTSTRAP, *before, original / "all", found, here / "mos.json")
    for name, evaluator, metrics in (
        ("wer", "moonshine", ("wer", "cer")),
        ("mos", "distillmos", ("mos", "mos_drop")),
    ):
        figures = json.loads((here / f"{name}.json").read_text())
        for metric in (m for m in metrics if m in figures):
            low, high = figures["intervals"][metric]
            yield dict.fromkeys(METRICS, "") | {
                "corpus": "idmap_samples", "split": "dev_clean",
                "system": "original" if system == ORIGINAL else system, "family": "utility",
                "evaluator": evaluator, "condition": "OO" if system == ORIGINAL else "PP",
                "metric": metric, "kind": "value", "value": str(figures[metric]), "low": str(low),
                "high": str(high), "n_speakers": "3",
            }  # fmt: skip


def main() -> int:
    """Protect, measure, write."""
    if len(sys.argv) != 2 or not (SAMPLES / ORIGINAL).is_dir():
        sys.exit(f"{__doc__}\n{SAMPLES}: needed; set PSEUDOVOX_CORPORA to the folder it is in")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        run(protect_folder, "--key", "published samples", SAMPLES / ORIGINAL, work / "protected")
        theirs = sorted(p.name for p in SAMPLES.iterdir() if p.is_dir() and p.name != ORIGINAL)
        folders = {ORIGINAL: SAMPLES / ORIGINAL, OURS: work / "protected"}
        folders |= {system: SAMPLES / system for system in theirs}
        rows = [f for system, folder in folders.items() for f in measure(system, folder, work)]
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    write_frame(out / "metrics.csv", METRICS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
