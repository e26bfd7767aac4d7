#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Score all pairs of segments, for voice similarity matrices.

ROW_XVECTORS and COLUMN_XVECTORS are folders with xvector.scp (or .scp/.ark files) of the segments
that --utt2spk lists. The same folder twice (OO, PP): every unordered pair once. Two folders,
original and protected (OP): every ordered pair. A segment is never paired with its own id, and one
whose x-vector is zero with none.
TRIALS_OUT gets `<row> <column> target|nontarget` by utt2spk, SCORES_OUT `<row> <column> <score>`,
both in C order.

Both segments count as one utterance. Scores are those of score_trials.py, to 9 digits. Published
matrices (VoicePAT's and those of Noé et al.) are of cosine_raw or of a PLDA.
"""

from pathlib import Path
from typing import Annotated

from steps.options import Asnorm, ScoringBackend
from utils.cli import UserError
from utils.commands import program
from utils.options import Utt2spk


@program
def main(
    row_xvectors: Annotated[Path, "The folder of the first segments' x-vectors"],
    column_xvectors: Annotated[Path, "The folder of the second segments' x-vectors"],
    trials_out: Annotated[Path, "The trials that are written"],
    scores_out: Annotated[Path, "The scores that are written"],
    *, backend: ScoringBackend, asnorm: Asnorm = 0, utt2spk: Utt2spk,
) -> None:  # fmt: skip
    from steps.speaker import backends
    from utils.tables import read_map

    scorer = backends.load_normalised(backend, asnorm)
    speakers = read_map(utt2spk)
    if len(speakers) < 2:
        raise UserError(f"{utt2spk}: {len(speakers)} segment(s); pairs need two")
    rows, columns = map(backends.read_segments, (row_xvectors, column_xvectors))
    ids = backends.select_utterances((rows, columns), speakers)
    once = row_xvectors.resolve() == column_xvectors.resolve()
    n_target, n_nontarget = backends.write_pairs(
        scorer, rows, columns, ids, speakers, trials_out, scores_out, once=once
    )
    print(
        f"read {len(speakers)} segments / written {n_target + n_nontarget} pairs ({n_target} "
        f"target, {n_nontarget} nontarget, {'unordered' if once else 'ordered'}) / skipped "
        f"{len(speakers) - len(ids)}"
    )
