#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Score every enrolment x-vector against every trial x-vector without storing scores.

  prepare      reads x-vectors and makes a plan, a folder
  count        counts the scores of part N of M of plans in histograms; started again after it was
               killed, it goes on and ends with the same counts
  figures      adds the parts and writes the figures as JSON, each with bounds of its exact value
  run          all three, one part after the other

Target pairs are those of one speaker (utt2spk); a pair of an utterance with itself is no trial.
XVECTORS is an .scp or .ark file or a folder with xvector.scp, DATA a data directory. See
docs/populations.md.
"""

import builtins
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from local.options import Bootstrap
from steps.options import Asnorm, Device, ScoringBackend
from utils.cli import UserError, positive, progress
from utils.commands import commands
from utils.options import AllowLoss, OutFile, Seed
from utils.tables import is_there

WIDE = 1e-4  # bounds of the EER that are further apart are reported

logger = logging.getLogger(__name__)

EnrolXvectors = Annotated[Path, "The x-vectors of the enrolment", "ENROL_XVECTORS"]
EnrolData = Annotated[Path, "The data directory of the enrolment", "ENROL_DATA"]
TrialXvectors = Annotated[Path, "The x-vectors of the trials", "TRIAL_XVECTORS"]
TrialData = Annotated[Path, "The data directory of the trials", "TRIAL_DATA"]
Plan = Annotated[Path, "The folder of the plan", "PLAN"]
Enrol = Annotated[
    Literal["each", "mean"],
    "What is enrolled: each utterance, or the mean of a speaker's with their number",
]
SameGender = Annotated[bool, "Compare speakers of one gender only"]
Range = Annotated[
    tuple[float, float] | None, "The range of the bins, in scores; left out: -1 1 for cosines, and "
    "by a first pass for others", "LOW HIGH",
]  # fmt: skip
FirstPass = Annotated[bool, "Also find the range of cosines, by a first pass"]
Bins = Annotated[int, "The number of bins of the histograms", "N", positive]
Groups = Annotated[
    int, "The number of groups of speakers that intervals resample; groups are speakers where "
    "there are no more", "N", positive,
]  # fmt: skip
Parts = Annotated[int, "The number of parts", "M", positive]


def _prepare(
    enrol_xvectors: EnrolXvectors, enrol_data: EnrolData, trial_xvectors: TrialXvectors,
    trial_data: TrialData, plan: Plan, *, backend: ScoringBackend = "cosine_raw",
    asnorm: Asnorm = 0, enrol: Enrol = "each", same_gender: SameGender = False, range: Range = None,
    first_pass: FirstPass = False, bins: Bins = 1 << 16, groups: Groups = 32, seed: Seed = 0,
    allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    """Read x-vectors and make a plan."""
    from steps.populations import tiles
    from steps.populations.plans import make_plan, read_sides
    from steps.speaker.backends import is_centred, load_normalised

    scorer = load_normalised(backend, asnorm)
    if is_centred(scorer):
        raise UserError(f"--backend {backend}: is centred, which needs a side at once; cosine_raw")
    sides = read_sides(
        (enrol_xvectors, enrol_data), (trial_xvectors, trial_data), scorer,
        average=enrol == "mean", allow_loss=allow_loss,
    )  # fmt: skip
    places = None
    if range:
        places = tiles.Bins(*range, bins)
    elif backend == "cosine_raw" and not asnorm and not first_pass:
        places = tiles.Bins(-1.0, 1.0, bins)
    info = make_plan(
        *sides, scorer, folder=plan, bins=places, n_bins=bins, same_gender=same_gender,
        n_groups=groups, seed=seed, about={"backend": backend, "asnorm": asnorm, "enrol": enrol},
    ).info  # fmt: skip
    print(
        f"{info['n_enrol']} enrolments x {info['n_trial']} trials, {info['n_speakers']} speakers: "
        f"{info['n_target']} target and {info['n_nontarget']} nontarget pairs, left out "
        f"{info['n_same_utterance']} of an utterance with itself"
    )


def _count(
    plans: Annotated[Sequence[Path], "The folders of plans, one after the other", "PLAN"], *,
    part: Annotated[
        int, "The number of the part that is counted, from 1", "N", positive,
    ] = 1,
    parts: Parts = 1, device: Device = "cpu",
) -> None:  # fmt: skip
    """Count the scores of one part of each of some plans."""
    for plan in plans:
        _count_parts(plan, [part], parts, device)


def _count_parts(folder: Path, numbers: Sequence[int], parts: int, device: str) -> None:
    from steps.populations.plans import count_part, load_plan, part_path

    plan = load_plan(folder)
    for number in numbers:
        checkpoint = part_path(folder, number, parts)
        how = ", which went on from a checkpoint" if is_there(checkpoint) else ""
        part = count_part(
            plan, plan.part(number, parts), checkpoint=checkpoint,
            device=device.removeprefix("cpu"), wrap=progress("count", unit="cells"),
        )  # fmt: skip
        print(
            f"{folder}: part {number} of {parts}{how}: {part.counts.places.sum()} pairs counted",
            flush=True,
        )


def _figures(plan: Plan, out: OutFile, *, parts: Parts = 1, bootstrap: Bootstrap = 0) -> None:
    """Add the parts of a plan and write the figures."""
    from local.metrics.large import report
    from local.options import write_figures
    from steps.populations.plans import read_total

    total = read_total(plan, parts)
    made: dict[str, Any] = report(total, n_bootstrap=bootstrap, seed=total.plan.info["seed"])
    low, high = made["bounds"]["eer"]
    if high - low > WIDE:
        ends = [min(x) for x in zip(*made["extremes"].values(), strict=True)]
        ends[1] = max(made["extremes"][kind][1] for kind in made["extremes"])
        logger.warning(
            "the EER is only known to be from %.5f to %.5f: the scores, from %.6g to %.6g, fall in "
            "few bins; give prepare a closer --range, or --first-pass",
            low, high, *ends,
        )  # fmt: skip
    write_figures(str(out), made)
    print(f"EER {100 * made['eer']:.4f} % (exactly: from {100 * low:.4f} to {100 * high:.4f})")


def _run(
    enrol_xvectors: EnrolXvectors, enrol_data: EnrolData, trial_xvectors: TrialXvectors,
    trial_data: TrialData, plan: Plan, out: OutFile, *, backend: ScoringBackend = "cosine_raw",
    asnorm: Asnorm = 0, enrol: Enrol = "each", same_gender: SameGender = False,
    range: Range = None, first_pass: FirstPass = False, bins: Bins = 1 << 16, groups: Groups = 32,
    seed: Seed = 0, allow_loss: AllowLoss = 0, device: Device = "cpu",
    parts: Parts = 1, bootstrap: Bootstrap = 0,
) -> None:  # fmt: skip
    """Prepare, count and write the figures."""
    _prepare(
        enrol_xvectors, enrol_data, trial_xvectors, trial_data, plan, backend=backend,
        asnorm=asnorm, enrol=enrol, same_gender=same_gender, range=range, first_pass=first_pass,
        bins=bins, groups=groups, seed=seed, allow_loss=allow_loss,
    )  # fmt: skip
    _count_parts(plan, [*builtins.range(1, parts + 1)], parts, device)
    _figures(plan, out, parts=parts, bootstrap=bootstrap)


main = commands(_prepare, _count, _figures, _run)
