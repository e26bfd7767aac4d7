# SPDX-License-Identifier: Apache-2.0
"""What several programs of the assessment are asked."""

import argparse
from pathlib import Path
from typing import Annotated

from utils.cli import COMMON, natural

Figures = Annotated[str, "The JSON file that is written, or - for standard output", "OUT"]
Bootstrap = Annotated[
    int, "The number of times that the speakers are resampled, for 95 % intervals; 0: none", "N",
    natural, COMMON,
]  # fmt: skip
AGAIN = "A further set, counted together with the first; may be given again"
CorpusName = Annotated[str, "The name of the corpus", "NAME"]
EncoderName = Annotated[str, "The name of the encoder", "NAME"]
CommandLog = Annotated[Path, "The log of the recipe's commands", "FILE"]


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
