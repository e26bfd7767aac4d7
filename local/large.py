#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score every enrolment x-vector against every trial x-vector without storing scores.

  prepare      reads x-vectors and makes a plan, a folder
  count        counts the scores of part N of M of plans in histograms; started again after it was
               killed, it goes on and ends with the same counts
  figures      adds the parts and writes the figures as JSON, each with bounds of its exact value
  run          all three, one part after the other

and EER and D_ECE against the number of speakers (004, Fig. 9), as egs/TEMPLATE/large.sh does:

  populations  draws populations of speakers, simulated or real, and plans all pairs of each
  curve        adds the parts of all populations of a system
  collect      puts together the curves of systems: tables and a figure

Target pairs are those of one speaker (utt2spk); a pair of an utterance with itself is no trial.
XVECTORS is an .scp or .ark file or a folder with xvector.scp, DATA a data directory. See
docs/populations.md.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import add_bootstrap, add_collection
from steps.options import add_backend, add_device, add_sampler, make_sampler
from utils.cli import UserError, add_command, make_parser, positive, run_program
from utils.options import add_allow_loss, add_paths, add_seed
from utils.progress import progress
from utils.tables import is_there

WIDE = 1e-4  # bounds of the EER that are further apart are told

logger = logging.getLogger(__name__)


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run, text, *asked in (
        (_prepare, "Read x-vectors and make a plan.", _add_sides, _add_plan),
        (_count, "Count the scores of one part of each of some plans.", _add_plans, _add_counting),
        (_figures, "Add the parts of a plan and write the figures.", _add_plan, _add_report),
        (
            *(_run, "Prepare, count and write the figures."),
            *(_add_sides, _add_plan, _add_counting, _add_report),
        ),
        (_populations, str(_populations.__doc__), _add_populations),
        (_curve, str(_curve.__doc__), _add_curve),
        (_collect, str(_collect.__doc__), _add_curves),
    ):
        command = add_command(commands, run, text)
        for add in asked:
            add(command)
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


def _add_plan(command: argparse.ArgumentParser) -> None:
    command.add_argument("plan", type=Path, metavar="PLAN", help="folder of the plan")


def _add_plans(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "plans", type=Path, nargs="+", metavar="PLAN", help="folders of plans, one after the other"
    )
    command.add_argument(
        "--part", type=positive, default=1, metavar="N",
        help="The number of the part that is counted, from 1",
    )  # fmt: skip


def _add_parts(command: argparse.ArgumentParser) -> None:
    if all("--parts" not in action.option_strings for action in command._actions):
        command.add_argument(
            "--parts", type=positive, default=1, metavar="M", help="The number of parts"
        )


def _add_counting(command: argparse.ArgumentParser) -> None:
    add_device(command)
    command.add_argument(
        "--checkpoint-seconds", type=float, default=60.0, metavar="S",
        help="The time between two checkpoints, in seconds",
    )  # fmt: skip
    _add_parts(command)


def _add_report(command: argparse.ArgumentParser) -> None:
    _add_parts(command)
    add_bootstrap(command)
    command.add_argument("out", type=Path, metavar="OUT", help="JSON file")


def _add_populations(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--conf", type=Path, metavar="YAML",
        help="The settings of a system with a generator; left out: speech is original",
    )  # fmt: skip
    command.add_argument("--real", action="store_true", help="Take the sources themselves")
    command.add_argument(
        "--sizes", type=_size, nargs="+", default=[(50, 0), (200, 0), (1000, 0)], metavar="N[:P]",
        help="The numbers of speakers, each with P populations instead of --populations",
    )  # fmt: skip
    command.add_argument(
        "--populations", type=positive, default=5, metavar="N",
        help="The number of populations of each size",
    )  # fmt: skip
    command.add_argument(
        "--voices", choices=("two", "same"), default="two",
        help="The pseudo-speakers of a person: one in enrolment and one in trials, or the same in "
        "both; of a system of level utt each utterance has its own",
    )  # fmt: skip
    _add_leak(command)
    add_backend(command, "cosine")
    add_sampler(command)
    command.add_argument("out", type=Path, metavar="OUT")


def _add_leak(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--leak", type=float, default=0.0, metavar="A",
        help="The share of the source speaker that protected x-vectors keep",
    )  # fmt: skip


def _size(text: str) -> tuple[int, int]:
    """Speakers, and populations of them (0: as many as of the others)."""
    size, _, number = text.partition(":")
    if not size.isdecimal() or (":" in text and not (number.isdecimal() and int(number) > 0)):
        raise argparse.ArgumentTypeError(f"expected N or N:P, such as 10000:1, not {text!r}")
    return int(size), int(number or 0)


def _add_curve(command: argparse.ArgumentParser) -> None:
    _add_parts(command)
    add_bootstrap(command, default=1000)
    add_paths(command, "folder", "out")


def _add_curves(command: argparse.ArgumentParser) -> None:
    add_collection(command, "corpus-name", "encoder")
    command.add_argument(
        "--scorer", required=True, metavar="NAME", help="The name of the back end that scored"
    )
    _add_leak(command)
    command.add_argument(
        "--curve", nargs=2, action="append", required=True, metavar=("SYSTEM", "TABLE"),
        help="A system's name, and what `curve` made of it; may be given again",
    )  # fmt: skip
    command.add_argument("out", type=Path, metavar="OUT")


def _prepare(args: argparse.Namespace) -> None:
    from steps.large.plans import make_plan, read_sides
    from steps.large.tiles import Bins
    from steps.speaker.backends import load_normalised

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
    from steps.large.plans import count_part, load_plan, part_path

    plan = load_plan(folder)
    for number in numbers:
        checkpoint = part_path(folder, number, args.parts)
        how = ", which went on from a checkpoint" if is_there(checkpoint) else ""
        part = count_part(
            plan, plan.part(number, args.parts), checkpoint=checkpoint,
            every=args.checkpoint_seconds, device=args.device.removeprefix("cpu"),
            wrap=progress("count", unit="cells"),
        )  # fmt: skip
        print(
            f"{folder}: part {number} of {args.parts}{how}: {part.counts.places.sum()} pairs "
            "counted",
            flush=True,
        )


def _figures(args: argparse.Namespace) -> None:
    from local.metrics.large import report, widest
    from local.metrics.output import write_figures
    from steps.large.plans import read_total

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


def _populations(args: argparse.Namespace) -> None:
    """Make populations of simulated speakers, and plans of all their pairs.

    The speakers are fitted to the x-vectors of --sources. Every enrolment utterance is to be
    compared with every trial utterance, 10 and 25.8 of a speaker. Without --conf speech is
    original; with it, x-vectors are those of the system's pseudo-speakers and a residual.

    With --real the sources themselves are taken, the first set against all others, and drawn
    subsets of their speakers where a size is smaller than their number. Larger sizes are left out.

    OUT gets plans/<speakers>.<number> for count, and populations.tsv, a row for each, for curve. A
    stopped run goes on when the same command is given again: plans that are whole are not made
    anew.
    """
    from steps.large.plans import make_plan
    from steps.large.populations import Real, Simulated, fit_sources, read_real, write_table
    from steps.large.simulated import Recipe
    from steps.large.tiles import Bins
    from steps.speaker.backends import load_normalised

    sizes = [size for size, _ in args.sizes]
    numbers = [number or args.populations for _, number in args.sizes]
    if min(sizes) < 2:
        raise UserError("--sizes from 2 speakers on")
    backend = load_normalised(args.backend, args.asnorm)
    bins = Bins(-1.0, 1.0) if args.backend == "cosine" and not args.asnorm else None
    of: Real | Simulated
    if args.real:
        of = read_real(args.sources, args.seed)
    else:
        sampler = make_sampler(args, args.conf) if args.conf else None
        if sampler and sampler.settings.level == "utt" and args.voices == "same":
            raise UserError(
                f"{args.conf}: level: utt: every utterance has a pseudo-speaker of its own, so "
                "that none is the same in enrolment and trials; give --voices two"
            )
        recipe = Recipe(sampler, args.voices, args.leak, args.seed)
        of = Simulated(fit_sources(args.sources), recipe)
    rows = of.rows(sizes, numbers)
    for row in progress("populations", unit="populations")(rows):
        plan = row.plan(args.out)
        if not is_there(plan / "plan.json"):
            make_plan(*of.sides(row), backend, folder=plan, bins=bins, seed=args.seed)
    write_table(args.out / "populations.tsv", rows)
    print(f"{args.out}: {len(rows)} populations, up to {rows[-1].speakers} speakers")


def _curve(args: argparse.Namespace) -> None:
    """Measure EER and D_ECE against the number of speakers.

    FOLDER is one of populations, whose plans were counted in --parts parts. OUT is a table, a row
    for each population: what it is, figures, bounds of the exact EER (_least, _most), and 95 %
    intervals (_low, _high) over groups of the speakers of this population.
    """
    from local.metrics.large import report
    from local.report.large import Point
    from steps.large.plans import read_total
    from steps.large.populations import Row, read_table, write_table

    if not args.bootstrap:
        raise UserError("--bootstrap: from 1 on")
    points = []
    rows = read_table(args.folder / "populations.tsv", Row)
    for row in progress("curve", unit="populations")(rows):
        total = read_total(row.plan(args.folder), args.parts)
        made = report(total, n_bootstrap=args.bootstrap, seed=total.plan.info["seed"])
        points.append(Point.of(row, made))
        print(f"{row.speakers} speakers, population {row.population}: {points[-1].eer:.6f}")
    write_table(args.out, points)


def _collect(args: argparse.Namespace) -> None:
    """Put together curves of EER and D_ECE against the number of speakers.

    OUT gets large.csv (a population a row), RESULTS.md, large.pdf and large.svg. All speakers but
    those of the curve `real` are simulated, and each of these files says so.
    """
    from local.report import large as report

    points = [p for name, path in args.curve for p in report.read_points(name, Path(path))]
    report.STUDY.write(
        args.out, report.to_frame(points), args.command_log,
        corpus=args.corpus_name, encoder=args.encoder, scorer=args.scorer, leak=args.leak,
    )  # fmt: skip
    print(f"{len(points)} populations of {len(args.curve)} tables written to {args.out}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    args.run(args)
    return 0


if __name__ == "__main__":
    run_program(main)
