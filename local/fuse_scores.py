#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Fuse the scores that several evaluators gave the same trials.

Each evaluator's scores are normalised over the candidates of each trial utterance (mean 0,
deviation 1) and added. TRIALS and SCORES are as for compute_metrics.py; each SCORES must have every
trial. OUT gets `scores`, and with --words also `words`: the scores of the words alone, normalised
likewise, so that both can be compared.

Without --learn-from nothing is learnt, and all weigh the same. With it for each of SCORES, in their
order, weights are learnt from pairs of training people whom no evaluator had learnt from (logistic
regression on the pairs that all have), and stand in OUT/weights.json. All weigh the same where such
pairs are not defined; weights.json says why.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import Lists, Words
from utils.cli import UserError
from utils.commands import program
from utils.options import AllowSelf, OutFolder


@program
def main(
    trial_list: Annotated[Path, "The trials", "TRIALS"],
    out: OutFolder,
    scores: Annotated[Sequence[Path], "The scores of each evaluator", "SCORES"], *,
    learn_from: Annotated[
        Sequence[tuple[Path, Path]],
        "A folder that steps/score_held_out.py made, and its people's data directory", "HELD DATA",
    ] = (),
    words: Words = None, allow_self: AllowSelf = False,
) -> None:  # fmt: skip
    from local.metrics.verification import fuse, weigh
    from utils.tables import write_json
    from utils.trials import Scores, write_scores

    if learn_from and len(learn_from) != len(scores):
        raise UserError(
            f"{len(learn_from)} --learn-from for {len(scores)} SCORES; give one for each"
        )
    lists = Lists("kaldi", allow_self)
    trials, *found = lists.read(trial_list, *scores)
    out.mkdir(parents=True, exist_ok=True)
    weights, why = weigh(learn_from) if learn_from else ([], "")
    if learn_from:
        if why:
            logging.warning("%s: all evaluators weigh the same: %s", out, why)
        of = dict(zip(map(str, scores), weights or [1.0] * len(scores), strict=True))
        write_json(out / "weights.json", {"weights": of, "why_equal": why})
    fused = {"scores": fuse(trials, found, weights)}
    if words:
        fused["words"] = fuse(trials, [lists.read(trial_list, words)[1]])
    for name, score in fused.items():
        write_scores(out / name, Scores(trials.enrol, trials.trial, score))
    print(f"read {len(trials)} trials / fused {len(found)} scores of each / skipped 0")
