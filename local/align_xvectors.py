#!/usr/bin/env python3
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

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.protocols.studies import SPACES, Pairs, Rotation, Table, Vectors, align, learn_by_group
from steps.speaker.vectors import read_xvectors
from utils.cli import UserError, boolean, run_program
from utils.commands import program
from utils.datadir import DataDir, load_data_dir
from utils.options import OutFolder


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


def check_dimensions(*found: tuple[Vectors, Path]) -> None:
    """UserError where the x-vectors, and the folders they are in, are of different encoders."""
    sizes = [(len(next(iter(vectors.values()))), path) for vectors, path in found]
    for size, path in sizes:
        if size != sizes[0][0]:
            raise UserError(
                f"{path}: x-vectors of {size} dimensions, those of {sizes[0][1]} have "
                f"{sizes[0][0]}; extract all with one encoder"
            )


def describe(
    pairs: Pairs, rotations: dict[str, Rotation], trial: DataDir, **settings: object
) -> dict[str, object]:
    """The settings, and what was learnt from whom."""
    known = set(pairs.speakers.values())
    return {
        **settings,
        "pairs": {group: rotation.n_pairs for group, rotation in rotations.items()},
        "dimensions": {group: rotation.dimensions for group, rotation in rotations.items()},
        "speakers_of_pairs": len(known),
        "trial_speakers": len(trial.spk2utt),
        "trial_speakers_in_pairs": len(known & set(trial.spk2utt)),
    }


@program
def main(
    enrol_dir: Annotated[Path, "The folder of the original enrolment", "ENROL"],
    enrol_data_dir: Annotated[Path, "The data directory of the enrolment", "ENROL_DATA"],
    trial_dir: Annotated[Path, "The folder of the protected trials", "TRIAL"],
    trial_data_dir: Annotated[Path, "The data directory of the trials", "TRIAL_DATA"],
    out: OutFolder, *,
    pairs: Annotated[
        Sequence[tuple[Path, Path, Path]], "Folders of x-vectors of the same utterances, and "
        "their data directory, to learn from; may be given again", "ORIGINAL PROTECTED DATA",
    ],
    apply: Annotated[Literal["trial", "enrolment"], "The side that is rotated"] = "trial",
    per_gender: Annotated[
        bool, "Whether each gender has its own rotation (spk2gender of the data directories)",
        "true|false", boolean,
    ] = True,
    pca: Annotated[
        int | None, "The number of principal components that are kept; left out: all that the "
        "pairs span", "N",
    ] = None,
    space: Annotated[
        str, "The space that is rotated: centred for the cosine, original for a back end trained "
        "on original x-vectors", SPACES,
    ] = "centred",
) -> None:  # fmt: skip
    from local.options import write_figures
    from utils.archives import ArchiveWriter, read_counts
    from utils.tables import write_map

    if pca is not None and pca < 1:
        raise UserError(f"--pca {pca}: at least one component is needed")
    learnt = read_pairs(pairs, per_gender)
    enrol_data, trial_data = (
        load_data_dir(path, need=("utt2spk",)) for path in (enrol_data_dir, trial_data_dir)
    )
    enrol, trial = read_xvectors(enrol_dir, "spk_xvector"), read_xvectors(trial_dir)
    if both := sorted(set(learnt.groups) & set(trial)):
        raise UserError(
            f"{both[0]}: in the pairs and in the trials ({len(both)} utterances); the attacker "
            "would know the answer"
        )
    before, after, _ = pairs[0]
    check_dimensions(
        (learnt.original, before), (learnt.protected, after), (enrol, enrol_dir), (trial, trial_dir)
    )
    groups = {spk: _group(enrol_data, spk, per_gender) for spk in enrol}
    for utt in trial:
        if utt not in trial_data.utt2spk:
            raise UserError(f"{trial_dir}: {utt} is not in {trial_data_dir}/utt2spk")
        groups[utt] = _group(trial_data, trial_data.utt2spk[utt], per_gender)
    to_original = apply == "trial"
    rotations = learn_by_group(learnt, to_original=to_original, dimensions=pca)
    attack = align(rotations, enrol, trial, groups, to_original=to_original, space=space)
    write_map(out / "enrol/num_utts.ark", read_counts(enrol_dir / "num_utts.ark"))
    for stem, vectors in (("enrol/spk_xvector", attack.enrol), ("trial/xvector", attack.trial)):
        with ArchiveWriter(out / stem) as writer:
            for key, vector in vectors.items():
                writer.write(key, vector)
    described = describe(
        learnt, rotations, trial_data, apply=apply, space=space, per_gender=per_gender, pca=pca
    )
    write_figures(str(out / "alignment.json"), described)
    print(
        f"{len(learnt.groups)} pairs of {described['speakers_of_pairs']} speakers, dimensions "
        f"kept: {described['dimensions']}; {described['trial_speakers_in_pairs']} of "
        f"{described['trial_speakers']} trial speakers are among the pairs' speakers"
    )


if __name__ == "__main__":
    run_program(main)
