#!/usr/bin/env python3
"""Extract one vector an utterance from a channel beside the voice.

CHANNEL is words: how often each word and run of letters occurs in SOURCE/text (<utterance> <words>;
a folder of steps/decode.py, or a data directory). DATA needs utt2spk. OUT gets xvector.{ark,scp},
as steps/extract_xvectors.py writes them, so that whatever reads x-vectors reads these.

An utterance in which nothing was recognised has counts of 0; SOURCE must have a line for it.
"""

import sys
from pathlib import Path
from typing import Annotated, Literal

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    channel: Annotated[Literal["words"], "The channel (see above)", "CHANNEL"],
    source: Annotated[Path, "The folder of what was recognised", "SOURCE"],
    data_dir: DataFolder, out: OutFolder,
) -> None:  # fmt: skip
    from steps.channels.recognised import read_channel
    from utils.archives import write_archive
    from utils.datadir import load_data_dir

    utts = load_data_dir(data_dir, need=("utt2spk",)).utt2spk
    vectors = read_channel(channel, source, utts)
    write_archive(out / "xvector", vectors)
    empty = sum(not vector.any() for vector in vectors.values())
    print(
        f"read {len(utts)} utterances, {empty} without {channel} / written {len(vectors)} vectors"
    )
