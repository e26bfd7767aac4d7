#!/usr/bin/env python3
"""Make a listening test of protected speech: OUT/listening.html, and OUT/key.json for its answers.

The page opens from disk and loads nothing. It asks whether pairs of clips are of one person, and
how single clips sound. Original speech, and original speech cut at 3.5 kHz, are among them as
hidden anchors. The page does not hold the key: pass on the page alone. Originals are real voices:
ask first. local/score_listening.py makes figures of the answers.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import positive
from utils.commands import program
from utils.options import OutFolder, Seed


@program
def main(
    out: OutFolder, *,
    speech: Annotated[
        Sequence[tuple[str, str, str]], "A system with the data directories of original and of "
        "protected speech; may be given again", "SYSTEM DATA PROTECTED_DATA",
    ],
    n_pairs: Annotated[int, "The number of pairs of each system", "N", positive] = 12,
    n_quality: Annotated[int, "The number of clips of each system to judge", "N", positive] = 6,
    seed: Seed = 0,
) -> None:  # fmt: skip
    from local.report.gather import load_speech
    from local.report.listening import make_test
    from utils.tables import write_file

    page, key = make_test(load_speech(speech), n_pairs=n_pairs, n_quality=n_quality, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / "key.json", key)
    write_file(out / "listening.html", page)
    print(f"{out}/listening.html: {len(page) / 1e6:.1f} MB; its key is {out}/key.json")
