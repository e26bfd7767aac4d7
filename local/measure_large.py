#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure EER and D_ECE against the number of speakers (004, Fig. 9), with simulated speakers.

The speakers are simulated: fitted to the x-vectors of --sources (steps/speaker/population.py).
Every enrolment utterance is compared with every trial utterance, 10 and 25.8 of a speaker.
Without --conf speech is original; with it, x-vectors are those of the system's pseudo-speakers and
a residual (steps/generators/populations.py). OUT is a table, a row for each population.

With --real the sources themselves are measured, the first set against all others, and drawn
subsets of their speakers where a size is smaller than their number. Larger sizes are left out.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
import numpy as np
import numpy.typing as npt

from local.metrics.histograms import report
from steps.anonymisers.source import Resources
from steps.generators.populations import SAME, TWO, Recipe, make_population
from steps.generators.sampling import load_sampler
from steps.speaker.averaging import read_xvectors
from steps.speaker.backends import Backend, load_normalised
from steps.speaker.large import Side, count_part, make_plan, merge_parts
from steps.speaker.population import Population, fit_population
from steps.speaker.scoring import read_segments
from steps.speaker.tiles import Bins
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.progress import progress
from utils.seeds import make_rng
from utils.tables import atomic_write, sort_ids

Float32 = npt.NDArray[np.float32]
COLUMNS = (
    *("speakers", "population", "voices", "n_enrol", "n_trial", "n_target", "n_nontarget"),
    *("eer", "eer_least", "eer_most", "d_ece", "fit_speakers", "fit_rank"),
)


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--conf", type=Path, metavar="YAML", help="system with a generator")
    parser.add_argument("--real", action="store_true", help="measure the sources themselves")
    parser.add_argument(
        "--sources", type=Path, nargs=2, action="append", required=True,
        metavar=("XVECTORS", "DATA"), help="real x-vectors; the first set is enrolled with --real",
    )  # fmt: skip
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000], metavar="N")
    parser.add_argument("--populations", type=int, default=5, metavar="N", help="of each size")
    parser.add_argument(
        "--voices", choices=(TWO, SAME), default=TWO,
        help="pseudo-speakers of a person: one in enrolment and one in trials, or the same in both",
    )  # fmt: skip
    parser.add_argument(
        "--leak", type=float, default=0.0, metavar="A", help="part of the speaker that speech keeps"
    )
    parser.add_argument("--backend", default="cosine", metavar="cosine|DIR", help="what scores")
    parser.add_argument("--asnorm", type=int, default=0, metavar="N", help="as score_trials.py")
    parser.add_argument("--pool", type=Path, metavar="XVECTORS", help="folder with spk_xvector.scp")
    parser.add_argument("--pool-data", type=Path, metavar="DATA", help="spk2gender of the pool")
    parser.add_argument("--pool-backend", type=Path, metavar="DIR", help="PLDA of the generator")
    parser.add_argument("--generator", type=Path, metavar="DIR", help="(train_generator.py)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all draws")
    parser.add_argument("--device", default="", metavar="cuda", help="as score_large.py")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if min(args.sizes) < 2 or args.populations < 1:
        raise UserError("--sizes from 2 speakers on, --populations from 1 on")
    backend = load_normalised(args.backend, args.asnorm)
    rows = []
    sides = _of_real(args) if args.real else _of_simulated(args)
    for values, enrol, trial in sides:
        rows.append(
            "\t".join(map(str, (*values[:3], *_measure(args, backend, enrol, trial), *values[3:])))
        )
        print(rows[-1], flush=True)
    if not rows:
        raise UserError("no size is within the number of speakers of --sources; give a smaller one")
    with atomic_write(args.out) as stream:
        stream.write("#" + "\t".join(COLUMNS) + "\n" + "".join(f"{row}\n" for row in rows))
    return 0


def _measure(
    args: argparse.Namespace, backend: Backend, enrol: Side, trial: Side
) -> tuple[object, ...]:
    bins = Bins(-1.0, 1.0) if args.backend == "cosine" and not args.asnorm else None
    plan = make_plan(enrol, trial, backend, bins=bins, seed=args.seed)
    wrap = progress("count", unit="cells")
    part = count_part(plan, plan.part(1, 1), device=args.device, wrap=wrap)
    made = report(merge_parts(plan, [part]))
    bounds = made["bounds"]
    assert isinstance(bounds, dict)
    counted = (len(enrol), len(trial), made["n_target"], made["n_nontarget"])
    return (*counted, *(f"{x:.6f}" for x in (made["eer"], *bounds["eer"], made["d_ece"])))  # type: ignore[str-format]


def _of_simulated(args: argparse.Namespace) -> Iterator[tuple[tuple[object, ...], Side, Side]]:
    population = _fit(args)
    sampler = None
    if args.conf:
        resources = Resources(
            xvectors=tuple(xvectors for xvectors, _ in args.sources),
            backend=args.pool_backend,
            generator=args.generator,
        )
        sampler = load_sampler(
            args.conf, args.sources, resources, pool=args.pool, pool_data=args.pool_data,
            seed=args.seed,
        )  # fmt: skip
    recipe = Recipe(sampler, args.voices, args.leak, args.seed)
    voices = args.voices if args.conf else "-"
    for size in args.sizes:
        for number in range(args.populations):
            sides = make_population(population, recipe, size, number)
            yield (size, number, voices, population.n_speakers, population.rank), *sides


def _fit(args: argparse.Namespace) -> Population:
    vectors: dict[str, Float32] = {}
    utt2spk: dict[str, str] = {}
    genders: dict[str, str] = {}
    known = True
    for xvectors, data in args.sources:
        loaded = load_data_dir(data, need=("utt2spk",))
        for utt, vector in read_xvectors(xvectors).items():
            if utt not in loaded.utt2spk:
                raise UserError(f"{data}/utt2spk: utterance {utt} of {xvectors} is not in it")
            vectors[utt], utt2spk[utt] = vector, loaded.utt2spk[utt]
        known = known and loaded.spk2gender is not None
        genders |= loaded.spk2gender or {}
    return fit_population(vectors, utt2spk, genders if known else None)


def _of_real(args: argparse.Namespace) -> Iterator[tuple[tuple[object, ...], Side, Side]]:
    parts: list[list[tuple[str, str, object]]] = [[], []]
    for place, (xvectors, data) in enumerate(args.sources):
        utt2spk = load_data_dir(data, need=("utt2spk",)).utt2spk
        for utt, vector in read_segments(xvectors).vectors.items():
            if utt not in utt2spk:
                raise UserError(f"{data}/utt2spk: utterance {utt} of {xvectors} is not in it")
            parts[min(place, 1)].append((utt, utt2spk[utt], vector))
    if not parts[1]:
        raise UserError("--real: two sets of --sources are needed, enrolled and tried")
    both = sort_ids({p[1] for p in parts[0]} & {p[1] for p in parts[1]})
    for size in sorted({*(size for size in args.sizes if size < len(both)), len(both)}):
        for number in range(args.populations if size < len(both) else 1):
            rng = make_rng(args.seed, "large real", str(size), str(number))
            drawn = {both[i] for i in rng.permutation(len(both))[:size]}
            yield (size, number, "-", len(both), ""), _side(parts[0], drawn), _side(parts[1], drawn)


def _side(part: Sequence[tuple[str, str, object]], speakers: set[str]) -> Side:
    utts, spks, vectors = zip(*(p for p in part if p[1] in speakers), strict=True)
    return Side(utts, spks, np.stack(vectors), np.ones(len(utts)))


if __name__ == "__main__":
    run_program(main)
