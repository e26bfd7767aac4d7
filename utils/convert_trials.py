#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Turn trials or scores of another toolkit into the files that local/compute_metrics.py reads.

  kaldi        <enrol> <trial> target|nontarget, or <enrol> <trial> <score>
  speechbrain  <enrol> <trial> <label> <score>
  voxceleb     <label> <enrol> <trial>, also with <score> behind it
  csv          a header that names the columns, and commas, semicolons or tabs between them

A label is target or nontarget, 1 or 0, true or false, same or different. OUT gets `trials` where
there are labels and `scores` where there are scores (higher: more alike), sorted.
"""

from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.options import OutFolder, TrialFormat


@program
def main(
    file: Annotated[Path, "The trials or scores of another toolkit"],
    out: OutFolder, *, format: TrialFormat = "auto",
) -> None:  # fmt: skip
    from utils.trials import read_any, write_scores, write_trials

    kind, trials, scores = read_any(file, format)
    made = []
    if trials is not None:
        write_trials(out / "trials", trials)
        n = int(trials.target.sum())
        made.append(f"{n} target and {len(trials.target) - n} nontarget trials")
    if scores is not None:
        write_scores(out / "scores", scores)
        made.append(f"{len(scores.score)} scores")
    print(f"{file}: {kind}; {' and '.join(made)} in {out}")
