#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Align x-vectors of protected speech with those of original speech: the aligned attacker.

A rotation is learnt on pairs, x-vectors of the same utterances before and after protection:
--pairs ORIGINAL PROTECTED DATA (folders with xvector.scp, and the data directory with their
speakers). Their utterances must not be among the trials. Then it is applied to the protected trials
(--apply trial), or the opposite one to the original enrolment (--apply enrolment).

ENROL is the folder of the original enrolment (spk_xvector.scp, num_utts.ark), TRIAL that of the
protected trials (xvector.scp), ENROL_DATA and TRIAL_DATA their data directories. OUT/enrol and
OUT/trial are ready for steps/score_trials.py, and OUT/alignment.json says what was learnt from
whom.

Pairs fewer than dimensions: the rotation is learnt in the principal components that the pairs span,
with a warning; --pca keeps fewer.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.output import write_figures
from local.protocols.aligned import SPACES, Pairs, Rotation, Table, Vectors, align, learn_by_group
from steps.speaker.averaging import read_xvectors
from utils.archives import ArchiveWriter, read_counts, write_counts
from utils.cli import UserError, boolean, make_parser, run_program
from utils.datadir import DataDir, load_data_dir


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--pairs", nargs=3, action="append", required=True, type=Path,
        metavar=("ORIGINAL", "PROTECTED", "DATA"),
        help="Folders of x-vectors of the same utterances, and their data directory, to learn "
        "from; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--apply", choices=("trial", "enrolment"), default="trial", help="The side that is rotated"
    )
    parser.add_argument(
        "--per-gender", type=boolean, default=True, metavar="true|false",
        help="Whether each gender has its own rotation (spk2gender of the data directories)",
    )  # fmt: skip
    parser.add_argument(
        "--pca", type=int, metavar="N",
        help="The number of principal components that are kept; left out: all that the pairs span",
    )  # fmt: skip
    parser.add_argument(
        "--space", choices=SPACES, default="centred",
        help="The space that is rotated: centred for the cosine, original for a back end trained "
        "on original x-vectors",
    )  # fmt: skip
    for name in ("enrol", "enrol_data", "trial", "trial_data", "out"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    return parser


def _group(data: DataDir, speaker: str, per_gender: bool) -> str:
    if not per_gender:
        return "all"
    if data.spk2gender is None or speaker not in data.spk2gender:
        raise UserError(
            f"{data.path / 'spk2gender'}: {speaker} has no gender; give it, or --per-gender false"
        )
    return data.spk2gender[speaker]


def read_pairs(folders: Sequence[Sequence[Path]], per_gender: bool) -> Pairs:
    """All pairs; UserError for an utterance on one side only, in two places, or in no table."""
    sides: tuple[Table, Table] = ({}, {})
    groups: dict[str, str] = {}
    speakers: dict[str, str] = {}
    for before, after, path in folders:
        data = load_data_dir(path, need=("utt2spk",))
        found = read_xvectors(before), read_xvectors(after)
        for vectors, here, other, there in zip(
            found, (before, after), found[::-1], (after, before), strict=True
        ):
            if alone := sorted(set(vectors) - set(other)):
                raise UserError(f"{there}: {len(alone)} of {here} are missing, such as {alone[0]}")
        for utt in found[0]:
            if utt in groups:
                raise UserError(f"{before}: {utt} is in the pairs twice")
            if utt not in data.utt2spk:
                raise UserError(f"{before}: {utt} is not in {path / 'utt2spk'}")
            speakers[utt] = data.utt2spk[utt]
            groups[utt] = _group(data, speakers[utt], per_gender)
        for side, vectors in zip(sides, found, strict=True):
            side.update(vectors)
    return Pairs(sides[0], sides[1], groups, speakers)


def check_dimensions(
    pairs: Pairs, enrol: Vectors, trial: Vectors, args: argparse.Namespace
) -> None:
    """UserError where the x-vectors are of different encoders."""
    sides = ((pairs.original, args.pairs[0][0]), (pairs.protected, args.pairs[0][1]))
    sizes = [
        (len(next(iter(vectors.values()))), path)
        for vectors, path in (*sides, (enrol, args.enrol), (trial, args.trial))
    ]
    for size, path in sizes:
        if size != sizes[0][0]:
            raise UserError(
                f"{path}: x-vectors of {size} dimensions, those of {sizes[0][1]} have "
                f"{sizes[0][0]}; extract all with one encoder"
            )


def describe(
    args: argparse.Namespace, pairs: Pairs, rotations: dict[str, Rotation], trial: DataDir
) -> dict[str, object]:
    """What was learnt from whom."""
    known = set(pairs.speakers.values())
    return {
        "apply": args.apply,
        "space": args.space,
        "per_gender": args.per_gender,
        "pca": args.pca,
        "pairs": {group: rotation.n_pairs for group, rotation in rotations.items()},
        "dimensions": {group: rotation.dimensions for group, rotation in rotations.items()},
        "speakers_of_pairs": len(known),
        "trial_speakers": len(trial.spk2utt),
        "trial_speakers_in_pairs": len(known & set(trial.spk2utt)),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if args.pca is not None and args.pca < 1:
        raise UserError(f"--pca {args.pca}: at least one component is needed")
    pairs = read_pairs(args.pairs, args.per_gender)
    enrol_data, trial_data = (
        load_data_dir(path, need=("utt2spk",)) for path in (args.enrol_data, args.trial_data)
    )
    enrol, trial = read_xvectors(args.enrol, "spk_xvector"), read_xvectors(args.trial)
    if both := sorted(set(pairs.groups) & set(trial)):
        raise UserError(
            f"{both[0]}: in the pairs and in the trials ({len(both)} utterances); the attacker "
            "would know the answer"
        )
    check_dimensions(pairs, enrol, trial, args)
    groups = {spk: _group(enrol_data, spk, args.per_gender) for spk in enrol}
    for utt in trial:
        if utt not in trial_data.utt2spk:
            raise UserError(f"{args.trial}: {utt} is not in {args.trial_data / 'utt2spk'}")
        groups[utt] = _group(trial_data, trial_data.utt2spk[utt], args.per_gender)
    to_original = args.apply == "trial"
    rotations = learn_by_group(pairs, to_original=to_original, dimensions=args.pca)
    attack = align(rotations, enrol, trial, groups, to_original=to_original, space=args.space)
    write_counts(args.out / "enrol/num_utts.ark", read_counts(args.enrol / "num_utts.ark"))
    for stem, vectors in (("enrol/spk_xvector", attack.enrol), ("trial/xvector", attack.trial)):
        with ArchiveWriter(args.out / stem) as writer:
            for key, vector in vectors.items():
                writer.write(key, vector)
    described = describe(args, pairs, rotations, trial_data)
    write_figures(str(args.out / "alignment.json"), described)
    print(
        f"{len(pairs.groups)} pairs of {described['speakers_of_pairs']} speakers, dimensions kept: "
        f"{described['dimensions']}; {described['trial_speakers_in_pairs']} of "
        f"{described['trial_speakers']} trial speakers are among the pairs' speakers"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
