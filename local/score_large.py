#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score every enrolment x-vector against every trial x-vector without storing scores.

  prepare   reads x-vectors and makes a plan, a folder
  count     counts the scores of part N of M of plans in histograms; started again after it was
            killed, it goes on and ends with the same counts
  figures   adds the parts and writes the figures as JSON, each with bounds of its exact value
  run       all three, one part after the other

Target pairs are those of one speaker (utt2spk); a pair of an utterance with itself is no trial.
XVECTORS is an .scp or .ark file or a folder with xvector.scp, DATA a data directory. See
docs/large.md.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import add_bootstrap
from steps.options import add_backend
from utils.cli import make_parser, positive, run_program
from utils.options import add_allow_loss, add_seed
from utils.progress import progress
from utils.tables import is_there

WIDE = 1e-4  # bounds of the EER that are further apart are told

logger = logging.getLogger(__name__)


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    prepare, count, figures, run = (
        commands.add_parser(
            command.__name__.lstrip("_"), help=text, description=text, allow_abbrev=False,
            formatter_class=make_parser("").formatter_class,
        )
        for command, text in (
            (_prepare, "Read x-vectors and make a plan."),
            (_count, "Count the scores of one part of each of some plans."),
            (_figures, "Add the parts of a plan and write the figures."),
            (_run, "Prepare, count and write the figures."),
        )
    )  # fmt: skip
    for command, function in zip(
        (prepare, count, figures, run), (_prepare, _count, _figures, _run), strict=True
    ):
        command.set_defaults(run=function)
    for command in (prepare, run):
        _add_sides(command)
    for command in (prepare, figures, run):
        command.add_argument("plan", type=Path, metavar="PLAN", help="folder of the plan")
    count.add_argument(
        "plans", type=Path, nargs="+", metavar="PLAN", help="folders of plans, one after the other"
    )
    count.add_argument(
        "--part", type=positive, default=1, metavar="N",
        help="The number of the part that is counted, from 1",
    )  # fmt: skip
    for command in (count, run):
        _add_counting(command)
    for command in (count, figures, run):
        command.add_argument(
            "--parts", type=positive, default=1, metavar="M", help="The number of parts"
        )
    for command in (figures, run):
        add_bootstrap(command)
        command.add_argument("out", type=Path, metavar="OUT", help="JSON file")
    return parser


def _add_sides(command: argparse.ArgumentParser) -> None:
    for side in ("enrol", "trial"):
        command.add_argument(f"{side}_xvectors", type=Path, metavar=f"{side.upper()}_XVECTORS")
        command.add_argument(f"{side}_data", type=Path, metavar=f"{side.upper()}_DATA")
    add_backend(command, "cosine")
    command.add_argument(
        "--enrol", choices=("each", "mean"), default="each",
        help="What is enrolled: each utterance, or the mean of a speaker's with their number",
    )  # fmt: skip
    command.add_argument(
        "--same-gender", action="store_true", help="Compare speakers of one gender only"
    )
    command.add_argument(
        "--range", type=float, nargs=2, metavar=("LOW", "HIGH"),
        help="The range of the bins, in scores; left out: -1 1 for cosine, and by a first pass for "
        "others",
    )  # fmt: skip
    command.add_argument(
        "--first-pass", action="store_true", help="Find the range of cosines, too, by a first pass"
    )
    command.add_argument(
        "--bins", type=positive, default=1 << 16, metavar="N",
        help="The number of bins of the histograms",
    )  # fmt: skip
    command.add_argument(
        "--groups", type=positive, default=32, metavar="N",
        help="The number of groups of speakers that intervals resample; groups are speakers where "
        "there are no more",
    )  # fmt: skip
    add_seed(command)
    add_allow_loss(command, "utterances of either side")


def _add_counting(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--device", default="", metavar="cuda",
        help="The device of torch that scores; left out: NumPy on the processor",
    )  # fmt: skip
    command.add_argument(
        "--checkpoint-seconds", type=float, default=60.0, metavar="S",
        help="The time between two checkpoints, in seconds",
    )  # fmt: skip


def _prepare(args: argparse.Namespace) -> None:
    from steps.speaker.backends import load_normalised
    from steps.speaker.large import make_plan, read_sides
    from steps.speaker.tiles import Bins

    backend = load_normalised(args.backend, args.asnorm)
    enrol, trial = read_sides(
        (args.enrol_xvectors, args.enrol_data), (args.trial_xvectors, args.trial_data),
        backend, average=args.enrol == "mean", allow_loss=args.allow_loss,
    )  # fmt: skip
    bins = None
    if args.range:
        low, high = args.range
        bins = Bins(low, high, args.bins)
    elif args.backend == "cosine" and not args.asnorm and not args.first_pass:
        bins = Bins(-1.0, 1.0, args.bins)
    about = {"backend": args.backend, "asnorm": args.asnorm, "enrol": args.enrol}
    info = make_plan(
        enrol, trial, backend, folder=args.plan, bins=bins, n_bins=args.bins,
        same_gender=args.same_gender, n_groups=args.groups, seed=args.seed, about=about,
    ).info  # fmt: skip
    print(
        f"{info['n_enrol']} enrolments x {info['n_trial']} trials, {info['n_speakers']} speakers: "
        f"{info['n_target']} target and {info['n_nontarget']} nontarget pairs, left out "
        f"{info['n_same_utterance']} of an utterance with itself"
    )


def _count(args: argparse.Namespace) -> None:
    for plan in args.plans:
        _count_parts(args, plan, [args.part])


def _count_parts(args: argparse.Namespace, folder: Path, numbers: Sequence[int]) -> None:
    from steps.speaker.large import count_part, load_plan, part_path

    plan = load_plan(folder)
    for number in numbers:
        checkpoint = part_path(folder, number, args.parts)
        how = ", which went on from a checkpoint" if is_there(checkpoint) else ""
        part = count_part(
            plan, plan.part(number, args.parts), checkpoint=checkpoint,
            every=args.checkpoint_seconds, device=args.device,
            wrap=progress("count", unit="cells"),
        )  # fmt: skip
        print(
            f"{folder}: part {number} of {args.parts}{how}: {part.counts.places.sum()} pairs "
            "counted",
            flush=True,
        )


def _figures(args: argparse.Namespace) -> None:
    from local.metrics.histograms import report, widest
    from local.metrics.output import write_figures
    from steps.speaker.large import read_total

    total = read_total(args.plan, args.parts)
    made: dict[str, Any] = report(total, n_bootstrap=args.bootstrap, seed=total.plan.info["seed"])
    if widest(made["bounds"]) > WIDE:
        ends = [min(x) for x in zip(*made["extremes"].values(), strict=True)]
        ends[1] = max(made["extremes"][kind][1] for kind in made["extremes"])
        logger.warning(
            "the EER is only known to be from %.5f to %.5f: the scores, from %.6g to %.6g, fall in "
            "few bins; give prepare a closer --range, or --first-pass",
            *made["bounds"]["eer"], *ends,
        )  # fmt: skip
    write_figures(str(args.out), made)
    low, high = made["bounds"]["eer"]
    print(f"EER {100 * made['eer']:.4f} % (exactly: from {100 * low:.4f} to {100 * high:.4f})")


def _run(args: argparse.Namespace) -> None:
    _prepare(args)
    _count_parts(args, args.plan, range(1, args.parts + 1))
    _figures(args)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    args.run(args)
    return 0


if __name__ == "__main__":
    run_program(main)
