#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""List all that is wrong with data directories, with file, line and advice; exit 2 if anything is.

Checked: fields, encoding, line ends, order (LC_ALL=C), duplicates, values, ids of all files against
utt2spk, spk2utt, speaker ids as beginnings of utterance ids, audio files (there, readable, not
empty, mono, not all the same one), trials (utterances, enrolled speakers, labels, nobody but women
in E_trials_f and men in E_trials_m, no recording that is enrolled) and enrolls.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.datachecks import Problem, validate_data_dir

MOST = 20  # faults of each kind that are shown for a file


def tell(data: str, problems: Sequence[Problem]) -> bool:
    """Print the problems of a data directory, errors first, and return whether it is valid. Of each
    kind in a file at most MOST lines are printed, and how many more there are."""
    groups: dict[tuple[bool, Path, str], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: not problem.fatal):
        groups.setdefault((problem.fatal, problem.path, problem.kind), []).append(problem)
    for (fatal, path, kind), alike in groups.items():
        word = "error" if fatal else "warning"
        for problem in alike[:MOST]:
            print(f"{word}: {problem}", file=sys.stderr)
        if len(alike) > MOST:
            more = f"{len(alike) - MOST} more of this kind ({kind})"
            print(f"{word}: {path}: {more}", file=sys.stderr)
    n_errors = sum(problem.fatal for problem in problems)
    state = "valid" if n_errors == 0 else "not valid"
    print(f"{data}: {state}: {n_errors} errors, {len(problems) - n_errors} warnings")
    return n_errors == 0


@program
def main(
    data: Annotated[Sequence[str], "The data directories", "DATA"],
    *,
    no_wav: Annotated[bool, "There may be no wav.scp"] = False,
    no_audio: Annotated[bool, "Do not open the audio files"] = False,

    models: Annotated[
        str | None, "The data directory of the speakers whom trials may name (left out: "
        "E_enrolls beside E_trials_f and E_trials_m, where it is there)", "DIR",
    ] = None,
) -> int:  # fmt: skip
    wanted = ("wav.scp", "utt2spk", "spk2utt")[no_wav:]
    valid = True
    for path in data:
        problems = validate_data_dir(path, need=wanted, audio=not no_audio, models=models)
        valid = tell(path, problems) and valid
    return 0 if valid else 2
