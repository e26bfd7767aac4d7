#!/usr/bin/env python3
"""List all that is wrong with data directories, with file, line and advice; exit 2 if anything is.

Checked: fields, encoding, line ends, order (LC_ALL=C), duplicates, values, ids of all files against
utt2spk, spk2utt, speaker ids as beginnings of utterance ids, audio files (there, readable, not
empty, mono, not all the same one), trials (utterances, enrolled speakers, labels) and enrolls.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import run_program
from utils.commands import program
from utils.datachecks import FILES, Problem, validate_data_dir

ALWAYS = ("utt2spk", "spk2utt")


def report(problems: Sequence[Problem], most: int) -> list[str]:
    """One line a problem, errors first; of a kind in one file at most `most` and how many more."""
    groups: dict[tuple[bool, Path, str], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: not problem.fatal):
        groups.setdefault((problem.fatal, problem.path, problem.kind), []).append(problem)
    lines: list[str] = []
    for (fatal, _, kind), alike in groups.items():
        word = "error" if fatal else "warning"
        lines += [f"{word}: {problem}" for problem in alike[:most]]
        if len(alike) > most:
            lines.append(f"{word}: {alike[0].path}: {len(alike) - most} more of this kind ({kind})")
    return lines


def tell(data: str, problems: Sequence[Problem], most: int) -> bool:
    """Tell what is wrong with one; whether it is valid."""
    for line in report(problems, most):
        print(line, file=sys.stderr)
    n_errors = sum(problem.fatal for problem in problems)
    n_warnings = len(problems) - n_errors
    state = "valid" if n_errors == 0 else "not valid"
    print(f"{data}: {state}: {n_errors} errors, {n_warnings} warnings")
    return n_errors == 0


@program
def main(
    data: Annotated[Sequence[str], "The data directories", "DATA"],
    *,
    no_wav: Annotated[bool, "There may be no wav.scp"] = False,
    no_audio: Annotated[bool, "Do not open the audio files"] = False,
    need: Annotated[
        Sequence[str], "A further file that must be there, such as text, spk2gender or trials; may "
        "be given again", "FILE", (*FILES,),
    ] = (),
    models: Annotated[
        str | None, "The data directory of the speakers whom trials may name (left out: "
        "E_enrolls beside E_trials_f and E_trials_m, where it is there)", "DIR",
    ] = None,
    most: Annotated[int, "The number of faults of a kind that are shown of a file", "N"] = 20,
) -> int:  # fmt: skip
    wav = () if no_wav else ("wav.scp",)
    valid = True
    for path in data:
        problems = validate_data_dir(
            path, need=(*wav, *ALWAYS, *need), audio=not no_audio, models=models
        )  # fmt: skip
        valid = tell(path, problems, most) and valid
    return 0 if valid else 2


if __name__ == "__main__":
    run_program(main)
