#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""A listening test of protected speech: its page, and the figures of the listeners' answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import Figures, write_figures
from utils.cli import UserError, positive
from utils.commands import commands
from utils.options import OutFolder, Seed
from utils.tables import read_json_object, write_file


def _make(
    out: OutFolder, *,
    speech: Annotated[
        Sequence[tuple[str, str, str]], "A system with the data directories of original and of "
        "protected speech; may be given again", "SYSTEM DATA PROTECTED_DATA",
    ],
    n_pairs: Annotated[int, "The number of pairs of each system", "N", positive] = 12,
    n_quality: Annotated[int, "The number of clips of each system to judge", "N", positive] = 6,
    seed: Seed = 0,
) -> None:  # fmt: skip
    """Make the test: OUT/listening.html, and OUT/key.json for its answers.

    The page opens from disk and loads nothing. It asks whether pairs of clips are of one person,
    and how single clips sound. Original speech, and original speech cut at 3.5 kHz, are among them
    as hidden anchors. The page does not hold the key: pass on the page alone. Originals are real
    voices: ask first. `score` makes figures of the answers.
    """
    from local.report.gather import load_speech
    from local.report.listening import make_test

    page, key = make_test(load_speech(speech), n_pairs=n_pairs, n_quality=n_quality, seed=seed)
    write_file(out / "key.json", key)
    write_file(out / "listening.html", page)
    print(f"{out}/listening.html: {len(page) / 1e6:.1f} MB; its key is {out}/key.json")


def _score(
    key: Annotated[Path, "The key that was made with the page", "KEY"],
    out: Figures, *,
    answers: Annotated[Sequence[Path], "A listener's answers; may be given again", "FILE"],
    seed: Seed = 0,
) -> None:  # fmt: skip
    """Compute figures of a listening test from its key and the listeners' answers, as JSON.

    KEY is key.json of `make`. OUT, a file or - for standard output, gets for each system d_prime
    (0: guessing), accuracy (chance 0.5) with its exact binomial interval, and mos (1 to 5) with an
    interval over listeners. A listener who has fewer than 75 % of the hidden pairs of original
    speech right is left out and named.
    """
    from local.report.listening import read_answers, score

    truth = read_json_object(key, "make the test again")
    if not {"test", "questions"} <= truth.keys():
        raise UserError(f"{key}: is not a key of a listening test; `make` makes one")
    heard = {}
    for path in answers:
        name, own = read_answers(path, truth)
        if name in heard:
            raise UserError(f"{path}: there are answers of {name} already; name listeners apart")
        heard[name] = own
    write_figures(out, score(truth, heard, seed))


main = commands(_make, _score)
