"""What several programs of the assessment are asked, and how they write figures."""

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from utils.cli import COMMON, UserError, natural
from utils.tables import atomic_write

# ---- What several programs of the assessment are asked.

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


def add_labelled(parser: argparse.ArgumentParser, name: str, **more: Any) -> None:
    """An option with a folder of figures and what it speaks of (local/report/gather.py)."""
    words = ("FOLDER", "SPLIT", "GENDER", "SYSTEM", "FAMILY", "ATTACKER", "EVALUATOR", "CONDITION")
    parser.add_argument(
        name, nargs=len(words), action="append", metavar=words, default=[], **more,
        help="A folder of figures and what it speaks of, - for nothing; may be given again",
    )  # fmt: skip


# ---- Figures as a JSON file: infinities as text, undefined figures as null.


def to_json(value: object) -> object:
    """Convert to values that JSON can hold: infinities as text, undefined (NaN) as null."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def write_figures(out: str, figures: Mapping[str, object]) -> None:
    """Write figures to a file, atomically, or to standard output for `-`."""
    text = json.dumps(to_json(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        with atomic_write(out) as stream:
            stream.write(text)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from error
