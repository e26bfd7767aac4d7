#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Choose how much a language weighs beside what a trained CTC recogniser hears.

MODEL is a folder of train_recogniser.py, DATA the data directory that it was trained on, LANG a
folder of make_lang.py. The weights that give the fewest wrong words on the speakers whom the
training held out are taken; where it held nobody out, those of MODEL. OUT gets search.yaml, for
decode.py --search, and weights.tsv (what was tried).
"""

import sys
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import Device
from utils.cli import run_program
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    model: Annotated[Path, "The folder of train_recogniser.py"],
    data_dir: DataFolder,
    lang: Annotated[Path, "The folder of make_lang.py"],
    out: OutFolder, *, device: Device = "cpu",
) -> None:  # fmt: skip
    from utils.datadir import load_data_dir

    data = load_data_dir(data_dir, need=("wav.scp", "utt2spk", "text"))
    from steps.asr.choosing import choose_search
    from steps.asr.language import read_language

    print(choose_search(model, data, read_language(lang), out, device))


if __name__ == "__main__":
    run_program(main)
