#!/usr/bin/env python3
"""Score every enrolment x-vector against every trial x-vector without storing scores.

  prepare      reads x-vectors and makes a plan, a folder
  count        counts the scores of part N of M of plans in histograms; started again after it was
               killed, it goes on and ends with the same counts
  figures      adds the parts and writes the figures as JSON, each with bounds of its exact value
  run          all three, one part after the other

and EER and D_ECE against the number of speakers (Liu et al. 2025, Fig. 9), as in large.sh:

  populations  draws populations of speakers, simulated or real, and plans all pairs of each
  curve        adds the parts of all populations of a system
  collect      puts together the curves of systems: tables and a figure

Target pairs are those of one speaker (utt2spk); a pair of an utterance with itself is no trial.
XVECTORS is an .scp or .ark file or a folder with xvector.scp, DATA a data directory. See
docs/populations.md.
"""

import builtins
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import COMMAND_LOG, Bootstrap, CommandLog, CorpusName, EncoderName
from steps.options import (
    Asnorm,
    Device,
    Generator,
    GeneratorBackend,
    Pool,
    PoolData,
    ScoringBackend,
    Sources,
    load_sampler,
)
from utils.cli import COMMON, BadValue, UserError, natural, positive, progress, run_program
from utils.commands import Program
from utils.options import OutFile, OutFolder, Seed
from utils.tables import is_there

WIDE = 1e-4  # bounds of the EER that are further apart are told

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
    tuple[float, float] | None, "The range of the bins, in scores; left out: -1 1 for cosine, and "
    "by a first pass for others", "LOW HIGH",
]  # fmt: skip
FirstPass = Annotated[bool, "Find the range of cosines, too, by a first pass"]
Bins = Annotated[int, "The number of bins of the histograms", "N", positive]
Groups = Annotated[
    int, "The number of groups of speakers that intervals resample; groups are speakers where "
    "there are no more", "N", positive,
]  # fmt: skip
AllowLoss = Annotated[
    int, "The number of utterances of either side that may be lost; more are an error", "N",
    natural, COMMON,
]  # fmt: skip
Checkpoint = Annotated[float, "The time between two checkpoints, in seconds", "S"]
Parts = Annotated[int, "The number of parts", "M", positive]
Leak = Annotated[float, "The share of the source speaker that protected x-vectors keep", "A"]


def _size(text: str) -> tuple[int, int]:
    """Speakers, and populations of them (0: as many as of the others)."""
    size, _, number = text.partition(":")
    if not size.isdecimal() or (":" in text and not (number.isdecimal() and int(number) > 0)):
        raise BadValue(f"expected N or N:P, such as 10000:1, not {text!r}")
    return int(size), int(number or 0)


def _prepare(
    enrol_xvectors: EnrolXvectors, enrol_data: EnrolData, trial_xvectors: TrialXvectors,
    trial_data: TrialData, plan: Plan, *, backend: ScoringBackend = "cosine", asnorm: Asnorm = 0,
    enrol: Enrol = "each", same_gender: SameGender = False, range: Range = None,
    first_pass: FirstPass = False, bins: Bins = 1 << 16, groups: Groups = 32, seed: Seed = 0,
    allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    """Read x-vectors and make a plan."""
    from steps.populations import tiles
    from steps.populations.plans import make_plan, read_sides
    from steps.speaker.backends import load_normalised

    scorer = load_normalised(backend, asnorm)
    sides = read_sides(
        (enrol_xvectors, enrol_data), (trial_xvectors, trial_data), scorer,
        average=enrol == "mean", allow_loss=allow_loss,
    )  # fmt: skip
    places = None
    if range:
        places = tiles.Bins(*range, bins)
    elif backend == "cosine" and not asnorm and not first_pass:
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
    parts: Parts = 1, device: Device = "cpu", checkpoint_seconds: Checkpoint = 60.0,
) -> None:  # fmt: skip
    """Count the scores of one part of each of some plans."""
    for plan in plans:
        _count_parts(plan, [part], parts, device, checkpoint_seconds)


def _count_parts(
    folder: Path, numbers: Sequence[int], parts: int, device: str, every: float
) -> None:
    from steps.populations.plans import count_part, load_plan, part_path

    plan = load_plan(folder)
    for number in numbers:
        checkpoint = part_path(folder, number, parts)
        how = ", which went on from a checkpoint" if is_there(checkpoint) else ""
        part = count_part(
            plan, plan.part(number, parts), checkpoint=checkpoint, every=every,
            device=device.removeprefix("cpu"), wrap=progress("count", unit="cells"),
        )  # fmt: skip
        print(
            f"{folder}: part {number} of {parts}{how}: {part.counts.places.sum()} pairs counted",
            flush=True,
        )


def _figures(plan: Plan, out: OutFile, *, parts: Parts = 1, bootstrap: Bootstrap = 0) -> None:
    """Add the parts of a plan and write the figures."""
    from local.metrics.large import report, widest
    from local.options import write_figures
    from steps.populations.plans import read_total

    total = read_total(plan, parts)
    made: dict[str, Any] = report(total, n_bootstrap=bootstrap, seed=total.plan.info["seed"])
    if widest(made["bounds"]) > WIDE:
        ends = [min(x) for x in zip(*made["extremes"].values(), strict=True)]
        ends[1] = max(made["extremes"][kind][1] for kind in made["extremes"])
        logger.warning(
            "the EER is only known to be from %.5f to %.5f: the scores, from %.6g to %.6g, fall in "
            "few bins; give prepare a closer --range, or --first-pass",
            *made["bounds"]["eer"], *ends,
        )  # fmt: skip
    write_figures(str(out), made)
    low, high = made["bounds"]["eer"]
    print(f"EER {100 * made['eer']:.4f} % (exactly: from {100 * low:.4f} to {100 * high:.4f})")


def _run(
    enrol_xvectors: EnrolXvectors, enrol_data: EnrolData, trial_xvectors: TrialXvectors,
    trial_data: TrialData, plan: Plan, out: OutFile, *, backend: ScoringBackend = "cosine",
    asnorm: Asnorm = 0, enrol: Enrol = "each", same_gender: SameGender = False,
    range: Range = None, first_pass: FirstPass = False, bins: Bins = 1 << 16, groups: Groups = 32,
    seed: Seed = 0, allow_loss: AllowLoss = 0, device: Device = "cpu",
    checkpoint_seconds: Checkpoint = 60.0, parts: Parts = 1, bootstrap: Bootstrap = 0,
) -> None:  # fmt: skip
    """Prepare, count and write the figures."""
    _prepare(
        enrol_xvectors, enrol_data, trial_xvectors, trial_data, plan, backend=backend,
        asnorm=asnorm, enrol=enrol, same_gender=same_gender, range=range, first_pass=first_pass,
        bins=bins, groups=groups, seed=seed, allow_loss=allow_loss,
    )  # fmt: skip
    _count_parts(plan, [*builtins.range(1, parts + 1)], parts, device, checkpoint_seconds)
    _figures(plan, out, parts=parts, bootstrap=bootstrap)


def _populations(
    out: OutFolder, *,
    conf: Annotated[
        Path | None, "The settings of a system with a generator; left out: speech is original",
        "YAML",
    ] = None,
    real: Annotated[bool, "Take the sources themselves"] = False,
    sizes: Annotated[
        tuple[tuple[int, int], ...], "The numbers of speakers, each with P populations instead of "
        "--populations", "N[:P]", _size,
    ] = ((50, 0), (200, 0), (1000, 0)),
    populations: Annotated[int, "The number of populations of each size", "N", positive] = 5,
    voices: Annotated[
        Literal["two", "same"], "The pseudo-speakers of a person: one in enrolment and one in "
        "trials, or the same in both; of a system of level utt each utterance has its own",
    ] = "two",
    leak: Leak = 0.0, backend: ScoringBackend = "cosine", asnorm: Asnorm = 0, seed: Seed = 0,
    sources: Sources, pool: Pool = None, pool_data: PoolData = None,
    pool_backend: GeneratorBackend = None, generator: Generator = None,
) -> None:  # fmt: skip
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
    from steps.populations.plans import make_plan
    from steps.populations.populations import (
        Real,
        Recipe,
        Simulated,
        fit_sources,
        read_real,
        write_table,
    )
    from steps.populations.tiles import Bins
    from steps.speaker.backends import load_normalised

    speakers = [size for size, _ in sizes]
    numbers = [number or populations for _, number in sizes]
    if min(speakers) < 2:
        raise UserError("--sizes from 2 speakers on")
    scorer = load_normalised(backend, asnorm)
    bins = Bins(-1.0, 1.0) if backend == "cosine" and not asnorm else None
    of: Real | Simulated
    if real:
        of = read_real(sources, seed)
    else:
        sampler = None if conf is None else load_sampler(
            conf, sources, seed, pool=pool, pool_data=pool_data, pool_backend=pool_backend,
            generator=generator,
        )  # fmt: skip
        if sampler and sampler.settings.level == "utt" and voices == "same":
            raise UserError(
                f"{conf}: level: utt: every utterance has a pseudo-speaker of its own, so "
                "that none is the same in enrolment and trials; give --voices two"
            )
        recipe = Recipe(sampler, voices, leak, seed)
        of = Simulated(fit_sources(sources), recipe)
    rows = of.rows(speakers, numbers)
    for row in progress("populations", unit="populations")(rows):
        plan = row.plan(out)
        if not is_there(plan / "plan.json"):
            make_plan(*of.sides(row), scorer, folder=plan, bins=bins, seed=seed)
    write_table(out / "populations.tsv", rows)
    print(f"{out}: {len(rows)} populations, up to {rows[-1].speakers} speakers")


def _curve(
    folder: Annotated[Path, "The folder of populations", "FOLDER"], out: OutFile, *,
    parts: Parts = 1, bootstrap: Bootstrap = 1000,
) -> None:  # fmt: skip
    """Measure EER and D_ECE against the number of speakers.

    FOLDER is one of populations, whose plans were counted in --parts parts. OUT is a table, a row
    for each population: what it is, figures, bounds of the exact EER (_least, _most), and 95 %
    intervals (_low, _high) over groups of the speakers of this population.
    """
    from local.metrics.large import report
    from local.report.curves import Point
    from steps.populations.plans import read_total
    from steps.populations.populations import Row, read_table, write_table

    if not bootstrap:
        raise UserError("--bootstrap: from 1 on")
    points = []
    rows = read_table(folder / "populations.tsv", Row)
    for row in progress("curve", unit="populations")(rows):
        total = read_total(row.plan(folder), parts)
        made = report(total, n_bootstrap=bootstrap, seed=total.plan.info["seed"])
        points.append(Point.of(row, made))
        print(f"{row.speakers} speakers, population {row.population}: {points[-1].eer:.6f}")
    write_table(out, points)


def _collect(
    out: OutFolder, *, corpus_name: CorpusName, encoder: EncoderName,
    scorer: Annotated[str, "The name of the back end that scored", "NAME"], leak: Leak = 0.0,
    curve: Annotated[
        Sequence[tuple[str, str]], "A system's name, and what `curve` made of it; may be given "
        "again", "SYSTEM TABLE",
    ],
    command_log: CommandLog = COMMAND_LOG,
) -> None:  # fmt: skip
    """Put together curves of EER and D_ECE against the number of speakers.

    OUT gets large.csv (a population a row), RESULTS.md, large.pdf and large.svg. All speakers but
    those of the curve `real` are simulated, and each of these files says so.
    """
    from local.report import curves

    points = [p for name, path in curve for p in curves.read_points(name, Path(path))]
    curves.Populations.of(points).write(
        out, command_log, corpus=corpus_name, encoder=encoder, scorer=scorer, leak=leak,
    )  # fmt: skip
    print(f"{len(points)} populations of {len(curve)} tables written to {out}")


main = Program(__doc__, _prepare, _count, _figures, _run, _populations, _curve, _collect)

if __name__ == "__main__":
    run_program(main)
