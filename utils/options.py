"""Options of programs of every floor: one argument or option, one wording."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from utils.cli import COMMON, natural, positive

DataFolder = Annotated[Path, "The data directory", "DATA"]
OutFolder = Annotated[Path, "The folder that is written", "OUT"]
OutFile = Annotated[Path, "The file that is written", "OUT"]
SourceFolder = Annotated[Path, "The data directory that is read", "SRC"]
TargetFolder = Annotated[Path, "The data directory that is made", "DST"]

Seed = Annotated[
    int, "The seed of all that is drawn at random; the same seed gives the same result", "N", COMMON
]
AllowLoss = Annotated[
    int, "The number of utterances that may be lost; more are an error", "N", natural, COMMON
]
Jobs = Annotated[int, "The number of processes at a time", "N", positive, COMMON]
Utt2spk = Annotated[Path, "The table of the utterances' speakers", "F", COMMON]
NotSpeakersOf = Annotated[
    Sequence[Path],
    "An evaluation set none of whose speakers may be in training; may be given again", "DATA",
    COMMON,
]  # fmt: skip
TrialFormat = Annotated[
    Literal["auto", "kaldi", "speechbrain", "voxceleb", "csv"],
    "The format of trials and scores (utils/convert_trials.py has examples); auto: the one that "
    "all lines of a file have",
    COMMON,
]  # fmt: skip
AllowSelf = Annotated[
    bool, "Whether trials of a recording against itself are counted; else they are an error", COMMON
]
