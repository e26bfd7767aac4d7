#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Fuse the scores that several evaluators gave the same trials.

Each evaluator's scores are normalised over the candidates of each trial utterance (mean 0,
deviation 1) and added. Nothing is learnt, and all weigh the same. TRIALS and SCORES are as for
compute_metrics.py; each SCORES must have every trial. OUT gets `scores`, and with --words `words`,
too: the scores of the words alone, normalised likewise, so that both can be compared.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import Words, read_scored
from utils.commands import program
from utils.options import AllowSelf, OutFolder


@program
def main(
    trial_list: Annotated[Path, "The trials", "TRIALS"],
    out: OutFolder,
    scores: Annotated[Sequence[Path], "The scores of each evaluator", "SCORES"], *,
    words: Words = None, allow_self: AllowSelf = False,
) -> None:  # fmt: skip
    from local.metrics.verification import fuse
    from utils.trials import Scores, write_scores

    trials, *found = read_scored("kaldi", trial_list, *scores, allow_self=allow_self)
    out.mkdir(parents=True, exist_ok=True)
    fused = {"scores": found}
    if words:
        fused["words"] = [*read_scored("kaldi", trial_list, words, allow_self=allow_self)[1:]]
    for name, several in fused.items():
        score = fuse(trials, several)
        write_scores(out / name, Scores(trials.enrol, trials.trial, score))
    print(f"read {len(trials)} trials / fused {len(found)} scores of each / skipped 0")
