#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Score every enrolment x-vector against every trial x-vector without storing scores.

Target pairs are those of one speaker (utt2spk); a pair of an utterance with itself is not a trial.
XVECTORS is an .scp or .ark file or a folder with xvector.scp, DATA a data directory. OUT gets the
figures as JSON, each with bounds of its exact value. A killed run goes on by OUT.partial, and ends
with the same figures. See docs/populations.md.
"""

import logging
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from local.options import Resamples, write_figures
from steps.options import Asnorm, ScoringBackend
from utils.cli import UserError, positive, progress
from utils.commands import program
from utils.options import AllowLoss, Jobs, OutFile
from utils.tables import is_there

WIDE = 1e-4  # bounds of the EER that are further apart are reported

logger = logging.getLogger(__name__)


class Compared(NamedTuple):
    """Options that say what is compared."""

    enrol: Annotated[
        Literal["each", "mean"],
        "What is enrolled: each utterance, or a speaker's mean with their number",
    ] = "each"
    same_gender: Annotated[bool, "Compare speakers of one gender only"] = False


class Counted(NamedTuple):
    """Options that say how scores are counted."""

    range: Annotated[
        tuple[float, float] | None, "The range of the bins, in scores; left out: -1 1 for cosines, "
        "and by a first pass for others", "LOW HIGH",
    ] = None  # fmt: skip
    bins: Annotated[int, "The number of bins of the histograms", "N", positive] = 1 << 16
    groups: Annotated[
        int, "The number of groups of speakers that intervals resample; groups are speakers where "
        "there are no more", "N", positive,
    ] = 32  # fmt: skip


@program
def main(
    enrol_xvectors: Annotated[Path, "The x-vectors of the enrolment"],
    enrol_data: Annotated[Path, "The data directory of the enrolment"],
    trial_xvectors: Annotated[Path, "The x-vectors of the trials"],
    trial_data: Annotated[Path, "The data directory of the trials"],
    out: OutFile, *, backend: ScoringBackend = "cosine_raw", asnorm: Asnorm = 0,
    compared: Compared, counted: Counted, resamples: Resamples, allow_loss: AllowLoss = 0,
    nj: Jobs = 1,
) -> None:  # fmt: skip
    from local.metrics.large import report
    from steps.populations import pairs
    from steps.speaker.backends import is_centred, load_normalised

    scorer = load_normalised(backend, asnorm)
    if is_centred(scorer):
        raise UserError(
            f"--backend {backend}: centres whole sides, which are never in memory; give cosine_raw"
        )
    cosines = (-1.0, 1.0) if backend == "cosine_raw" and not asnorm else None
    ends = counted.range or cosines
    plan = pairs.make_plan(
        *pairs.read_sides(
            (enrol_xvectors, enrol_data), (trial_xvectors, trial_data), scorer,
            average=compared.enrol == "mean", allow_loss=allow_loss,
        ),
        scorer, bins=pairs.Bins(*ends, counted.bins) if ends else None, n_bins=counted.bins,
        same_gender=compared.same_gender, n_groups=counted.groups, seed=resamples.seed,
        about={"backend": backend, "asnorm": asnorm, "enrol": compared.enrol},
    )  # fmt: skip
    info, kept = plan.info, out.with_name(f"{out.name}.partial") if str(out) != "-" else None
    how = "; goes on from a killed run" if kept and is_there(kept) else ""
    print(
        f"{info['n_enrol']} enrolments x {info['n_trial']} trials, {info['n_speakers']} speakers: "
        f"{info['n_target']} target and {info['n_nontarget']} nontarget pairs, left out "
        f"{info['n_same_utterance']} of an utterance with itself{how}", flush=True,
    )  # fmt: skip
    total = pairs.count_pairs(plan, checkpoint=kept, nj=nj, wrap=progress("count", unit="cells"))
    made: dict[str, Any] = report(total, **resamples.words)
    low, high = made["bounds"]["eer"]
    if high - low > WIDE:
        found = made["extremes"].values()
        logger.warning(
            "the EER is only known to be from %.5f to %.5f: the scores, from %.6g to %.6g, fall in "
            "few bins; give a closer --range",
            low, high, min(least for least, _ in found), max(most for _, most in found),
        )  # fmt: skip
    write_figures(str(out), made)
    if kept:
        kept.unlink(missing_ok=True)
    print(f"EER {100 * made['eer']:.4f} % (exactly: from {100 * low:.4f} to {100 * high:.4f})")
