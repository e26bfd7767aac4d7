#!/usr/bin/env python3
"""Compute figures of a listening test from its key and the listeners' answers, as JSON.

KEY is key.json of local/make_listening_test.py. OUT, a file or - for standard output, gets for each
system d_prime (0: guessing), accuracy (chance 0.5) with its exact binomial interval, and mos (1 to
5) with an interval over listeners. A listener who has fewer than 75 % of the hidden pairs of
original speech right is left out and named.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import Figures, write_figures
from utils.cli import UserError
from utils.commands import program
from utils.options import Seed


@program
def main(
    key: Annotated[Path, "The key that was made with the page", "KEY"],
    out: Figures, *,
    answers: Annotated[Sequence[Path], "A listener's answers; may be given again", "FILE"],
    seed: Seed = 0,
) -> None:  # fmt: skip
    from local.report.listening import read_answers, score
    from utils.tables import read_json_object

    truth = read_json_object(key, "make the test again")
    if not {"test", "questions"} <= truth.keys():
        raise UserError(
            f"{key}: is no key of a listening test; local/make_listening_test.py makes one"
        )
    heard = {}
    for path in answers:
        name, own = read_answers(path, truth)
        if name in heard:
            raise UserError(f"{path}: there are answers of {name} already; name listeners apart")
        heard[name] = own
    write_figures(out, score(truth, heard, seed))
