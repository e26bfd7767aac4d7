#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute what attackers learn about people: sex and age, who they are among many, and by group.

DATA are data directories (utt2spk, and spk2gender and spk2age as far as they are known), XVECTORS
folders of steps/extract_xvectors.py. OUT is a JSON file, or - for standard output. Values are
fractions; the cards inference, named and groups of docs/metrics explain every key.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from local.options import Figures, Lists, Resamples, write_figures
from utils.cli import UserError
from utils.commands import commands
from utils.datadir import check_apart, load_data_dir
from utils.options import AllowSelf

Vectors = Annotated[Path, "x-vectors of recordings", "XVECTORS"]
Folder = Annotated[Path, "The data directory of these recordings", "DATA"]
Attacked = Annotated[
    Sequence[tuple[Path, Path]], "Attacked recordings; given again: attacked together with these",
    "XVECTORS DATA",
]  # fmt: skip


def _read_side(pairs: Sequence[tuple[Path, Path]]) -> tuple[Any, list[Any]]:
    """x-vectors of several folders as one side of an attack, and the data directories."""
    from local.metrics.legal import make_side
    from steps.speaker.vectors import read_xvectors, speakers_of

    data = [load_data_dir(path, need=("utt2spk",)) for _, path in pairs]
    sides = [
        make_side(read_xvectors(x), speakers_of(x, one), vectors_path=x, utt2spk_path=path)
        for (x, path), one in zip(pairs, data, strict=True)
    ]
    first = sides[0]
    for side, (_, path) in zip(sides[1:], pairs[1:], strict=True):
        if twice := first.vectors.keys() & side.vectors.keys():
            raise UserError(f"{path}: {min(twice)} is also in another set; name each set once")
        for who, utts in side.spk2utt.items():
            first.spk2utt[who] = [*first.spk2utt.get(who, ()), *utts]
        first.vectors.update(side.vectors)
    return first, data


def _inference(
    xvectors: Vectors, data_dir: Folder, out: Figures, *, trials: Attacked,
    attribute: Annotated[
        Sequence[str], "Another attribute, of tables spk2<NAME>; may be given again", "NAME"
    ] = (),
    resamples: Resamples,
) -> None:  # fmt: skip
    """How well sex and age band are inferred from recordings of people who are not in XVECTORS.

    The attacker learns from XVECTORS and DATA.
    """
    from local.metrics.people import attributes, inference

    train, [learnt] = _read_side([(xvectors, data_dir)])
    attacked, data = _read_side(trials)
    check_apart(set(train.spk2utt), data_dir, set(attacked.spk2utt), data[0].path)
    known, sought = attributes([learnt], attribute), attributes(data, attribute)
    write_figures(out, inference(train, attacked, known, sought, **resamples.words))


def _crowd(
    enrol: Vectors, enrol_data: Folder, out: Figures, *, trials: Attacked,
    other: Annotated[
        Sequence[tuple[Path, Path]], "Recordings of people who are candidates only; may be given "
        "again", "XVECTORS DATA",
    ] = (),
    resamples: Resamples,
) -> None:  # fmt: skip
    """How surely recordings lead to their person among ever more candidates.

    Candidates are of the sex of the attacked, where all of these are of one.
    """
    from local.metrics.people import crowd

    attacked, data = _read_side(trials)
    sexes = {sex for one in data for sex in (one.spk2gender or {}).values()}
    sides: list[tuple[Any, Any]] = []
    for pair in ((enrol, enrol_data), *other):
        side, [own] = _read_side([pair])
        if len(sexes) == 1 and own.spk2gender:
            side = side.only([who for who in side.spk2utt if own.spk2gender[who] in sexes])
        sides.append((pair[1], side))
    write_figures(out, crowd(sides, attacked, **resamples.words))


def _groups(
    out: Figures, *,
    listed: Annotated[
        Sequence[tuple[Path, Path]], "A list of trials and the data directory of its recordings; "
        "given again: attacked together with these", "TRIALS DATA",
    ],
    scores: Annotated[
        Sequence[tuple[str, str, str]], "An attacker, the run of a random system, and the scores "
        "of a list; given again for each", "ATTACKER RUN SCORES",
    ],
    allow_self: AllowSelf = False, resamples: Resamples,
) -> None:  # fmt: skip
    """Which group of people the strongest attacker finds best, and by how much."""
    from local.metrics.people import attributes, groups
    from local.metrics.verification import find_speakers

    lists, folders = zip(*listed, strict=True)
    data = [load_data_dir(path, need=("utt2spk",)) for path in folders]
    runs: dict[tuple[str, str], list[Path]] = {}
    for attacker, run, path in scores:
        runs.setdefault((attacker, run), []).append(Path(path))
    whole, *each = Lists("kaldi", allow_self).read(lists, *runs.values())
    every: dict[str, list[Any]] = {}
    for (attacker, _), score in zip(runs, each, strict=True):
        every.setdefault(attacker, []).append(score)
    utt2spk = {utt: who for one in data for utt, who in one.utt2spk.items()}
    paths = {"trials_path": " + ".join(map(str, lists)), "utt2spk_path": "utt2spk"}
    speakers = find_speakers(whole, utt2spk, **paths)
    found = groups(whole, [*every.values()], speakers, attributes(data), **resamples.words)
    write_figures(out, found)


main = commands(_inference, _crowd, _groups)
