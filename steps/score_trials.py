#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Score a list of trials.

ENROL_XVECTORS is a folder with spk_xvector.scp and num_utts.ark (steps/average_xvectors.py) when
the first column of TRIALS holds speakers, or an .scp/.ark file when it holds utterances.
TRIAL_XVECTORS is a folder with xvector.scp, or such a file. OUT gets `<enrol> <trial> <score>`
lines in C order; the higher the score, the more likely the same speaker.

cosine: of vectors of length 1, less the mean of their side (of the enrolled people, or of the trial
utterances, that TRIALS names), scaled to length 1 again; it needs two people on both sides.
cosine_raw: of the vectors as they are. cosine_scaled: cosine of values that are standardised over
their side first (content, energy). distance: minus the absolute difference of these (level). A
folder of steps/train_backend.py: log-likelihood ratio of the PLDA (natural logarithm, not
calibrated), knowing how many utterances each speaker enrolled; of one with the cohort alone:
cosine.

--enrolled N adds OUT_enrolled_<N>: scores of speakers who enrolled N of their utterances, drawn by
the speaker's name, or all where they have fewer.

A trial whose x-vector is missing is an error that names it; nothing is scored then.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from steps.options import Asnorm, ScoringBackend
from utils.cli import UserError, positive
from utils.commands import program
from utils.options import AllowSelf, OutFile


@program
def main(
    enrol_xvectors: Annotated[Path, "The enrolled speakers' x-vectors"],
    trial_xvectors: Annotated[Path, "The x-vectors of the trial utterances"],
    trial_list: Annotated[Path, "The trials", "TRIALS"],
    out: OutFile, *, backend: ScoringBackend, asnorm: Asnorm = 0,
    enrolled: Annotated[
        Sequence[int], "The number of enrolled utterances; needs --enrol-data; may be given again",
        "N", positive,
    ] = (),
    enrol_data: Annotated[Path | None, "The data of the enrolled speakers", "DATA"] = None,
    allow_self: AllowSelf = False,
) -> None:  # fmt: skip
    from steps.speaker import backends
    from utils.datadir import load_data_dir
    from utils.trials import Scores, check_not_itself, read_trials, write_scores

    if enrolled and enrol_data is None:
        raise UserError("--enrolled needs --enrol-data: it takes the utterances of each speaker")
    scorer = backends.load_normalised(backend, asnorm)
    trials, segments = read_trials(trial_list), backends.read_segments(trial_xvectors)
    models, own = {out: backends.read_enrolment(enrol_xvectors)}, {}
    if enrol_data is not None:
        data = load_data_dir(enrol_data, need=("utt2spk",))
        own = backends.enrolled_utterances(data)
        for n in enrolled:
            few = backends.read_few(enrol_xvectors, data, n)
            models[out.with_name(f"{out.name}_enrolled_{n}")] = few
    check_not_itself(trial_list, trials, allowed=allow_self, enrolled=own)
    for path, enrolment in models.items():
        scores = backends.score_trials(scorer, enrolment, segments, trials)
        write_scores(path, Scores(trials.enrol, trials.trial, scores))
    n_target = int(trials.target.sum())
    print(
        f"read {len(trials)} trials ({n_target} target, {len(trials) - n_target} nontarget) / "
        f"written {len(scores)} / skipped 0"
    )
