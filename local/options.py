# SPDX-License-Identifier: Apache-2.0
"""What several programs of the assessment are asked."""

import argparse
from pathlib import Path
from typing import Annotated

from utils.cli import natural
from utils.commands import COMMON
from utils.options import add_seed

Figures = Annotated[str, "The JSON file that is written, or - for standard output", "OUT"]
Bootstrap = Annotated[
    int, "The number of times that the speakers are resampled, for 95 % intervals; 0: none", "N",
    natural, COMMON,
]  # fmt: skip
AGAIN = "A further set, counted together with the first; may be given again"
CorpusName = Annotated[str, "The name of the corpus", "NAME"]
EncoderName = Annotated[str, "The name of the encoder", "NAME"]
CommandLog = Annotated[Path, "The log of the recipe's commands", "FILE"]


def add_bootstrap(parser: argparse.ArgumentParser, default: int = 0) -> None:
    """The option --bootstrap."""
    parser.add_argument(
        "--bootstrap", type=natural, default=default, metavar="N",
        help="The number of times that the speakers are resampled, for 95 %% intervals; 0: none",
    )  # fmt: skip


def add_intervals(parser: argparse.ArgumentParser) -> None:
    """The options of a bootstrap over speakers."""
    add_bootstrap(parser)
    add_seed(parser)


def add_figures(parser: argparse.ArgumentParser, *files: str, also: bool = False) -> None:
    """What a program is asked that writes figures with intervals: the files, then OUT.

    also: a further set may be named, by the same files.
    """
    add_intervals(parser)
    if also:
        parser.add_argument(
            "--also", type=Path, nargs=len(files), action="append", default=[], metavar=files,
            help="A further set, counted together with the first; may be given again",
        )  # fmt: skip
    for file in files:
        parser.add_argument(file.lower(), type=Path, metavar=file)
    parser.add_argument("out", metavar="OUT")


def add_collection(parser: argparse.ArgumentParser, *names: str) -> None:
    """What a program is asked that gathers results; names: of things that results
    are of, such as corpus-name."""
    for name in names:
        thing = name.removesuffix("-name")
        parser.add_argument(
            f"--{name}", required=True, metavar="NAME", help=f"The name of the {thing}"
        )
    parser.add_argument(
        "--command-log", type=Path, default=Path("exp/cmdline.log"), metavar="FILE",
        help="The log of the recipe's commands",
    )  # fmt: skip
