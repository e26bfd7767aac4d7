#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Align x-vectors of protected speech with those of original speech: the aligned attacker.

A rotation is learnt on pairs, x-vectors of the same utterances before and after protection:
--pairs ORIGINAL PROTECTED DATA (folders with xvector.scp, and the data directory with their
speakers). Their utterances must not be among the trials. Each gender has a rotation of its own
(spk2gender of the data directories), but both have one where a list in TRIAL_DATA compares them.
Then it is applied to the protected trials.

ENROL is the folder of the original enrolment (spk_xvector.scp, num_utts.ark), TRIAL that of the
protected trials (xvector.scp), ENROL_DATA and TRIAL_DATA their data directories. OUT/enrol and
OUT/trial are ready for steps/score_trials.py, and OUT/alignment.json says what was learnt from
whom.

Pairs fewer than dimensions: the rotation is learnt in the principal components that the pairs span,
with a warning.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from local.protocols.studies import SPACES, Pairs, Vectors, align, learn_by_group
from steps.speaker.vectors import check_complete, read_xvectors
from utils.cli import UserError
from utils.commands import program
from utils.datadir import DataDir, describe_difference, load_source
from utils.options import OutFolder
from utils.tables import need_ids, write_map


def _speakers(vectors: Vectors, folder: Path, data: DataDir) -> dict[str, str]:
    check_complete(vectors, data.utt2spk, folder, len(data.utt2spk))
    return {utt: data.utt2spk[utt] for utt in vectors}


def _genders(speaker_of: Mapping[str, str], data: DataDir) -> dict[str, str]:
    genders = data.spk2gender or {}
    need_ids(speaker_of.values(), genders, data.path / "spk2gender", "give the gender")
    return {key: genders[speaker] for key, speaker in speaker_of.items()}


def read_pairs(before: Path, after: Path, path: Path) -> Pairs:
    """The pairs; UserError for an utterance on one side only, or in no table."""
    data = load_source(path)
    original, protected = read_xvectors(before), read_xvectors(after)
    if difference := describe_difference(protected, original, "x-vector"):
        raise UserError(f"{after}: beside {before}: {difference}")
    speakers = _speakers(original, before, data)
    return Pairs(original, protected, _genders(speakers, data), speakers)


@program
def main(
    enrol_dir: Annotated[Path, "The folder of the original enrolment", "ENROL"],
    enrol_data_dir: Annotated[Path, "The data directory of the enrolment", "ENROL_DATA"],
    trial_dir: Annotated[Path, "The folder of the protected trials", "TRIAL"],
    trial_data_dir: Annotated[Path, "The data directory of the trials", "TRIAL_DATA"],
    out: OutFolder, *,
    pairs: Annotated[
        tuple[Path, Path, Path], "Folders of x-vectors of the same utterances, and their data "
        "directory, to learn from", "ORIGINAL PROTECTED DATA",
    ],
    space: Annotated[
        str, "The space that is rotated: centred for the cosine, original for a back end trained "
        "on original x-vectors", SPACES,
    ] = "centred",
) -> None:  # fmt: skip
    from local.options import write_figures
    from utils.archives import read_counts, write_archive

    learnt = read_pairs(*pairs)
    enrol_data, trial_data = map(load_source, (enrol_data_dir, trial_data_dir))
    enrol, trial = read_xvectors(enrol_dir, "spk_xvector"), read_xvectors(trial_dir)
    if both := sorted(learnt.groups.keys() & trial):
        raise UserError(
            f"{both[0]}: in the pairs and in the trials ({len(both)} utterances); the attacker "
            "would know the answer"
        )
    sources = (learnt.original, learnt.protected, enrol, trial)
    sizes = [len(next(iter(vectors.values()))) for vectors in sources]
    for size, path in zip(sizes, (*pairs[:2], enrol_dir, trial_dir), strict=True):
        if size != sizes[0]:
            raise UserError(
                f"{path}: x-vectors of {size} dimensions, those of {pairs[0]} have {sizes[0]}; "
                "extract all with one encoder"
            )
    groups = _genders({speaker: speaker for speaker in enrol}, enrol_data)
    groups |= _genders(_speakers(trial, trial_dir, trial_data), trial_data)
    if any(groups.get(model) != groups.get(utt) for model, utt, _ in trial_data.trials or ()):
        for table in (groups, learnt.groups):  # the gender of who is tried would be an answer
            table.update(dict.fromkeys(table, "both"))
    rotations = learn_by_group(learnt)
    sides = align(rotations, enrol, trial, groups, space=space)
    write_map(out / "enrol/num_utts.ark", read_counts(enrol_dir / "num_utts.ark"))
    for stem, vectors in zip(("enrol/spk_xvector", "trial/xvector"), sides, strict=True):
        write_archive(out / stem, vectors)
    known, tried = set(learnt.speakers.values()), set(trial_data.spk2utt)
    described = {
        "space": space,
        "pairs": {group: rotation.n_pairs for group, rotation in rotations.items()},
        "dimensions": {group: rotation.dimensions for group, rotation in rotations.items()},
        "speakers_of_pairs": len(known),
        "trial_speakers": len(tried),
        "trial_speakers_in_pairs": len(known & tried),
    }
    write_figures(str(out / "alignment.json"), described)
    print(
        f"{len(learnt.groups)} pairs of {len(known)} speakers, dimensions kept: "
        f"{described['dimensions']}; {len(known & tried)} of {len(tried)} trial speakers are theirs"
    )
