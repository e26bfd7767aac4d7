"""What several programs of the assessment are asked, and how they write figures."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

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
COMMAND_LOG = Path("exp/cmdline.log")
ResultsFolder = Annotated[Path, "The folder of results", "RESULTS"]
Labelled = Annotated[
    Sequence[tuple[str, str, str, str, str, str, str, str]],
    "A folder of figures and what it speaks of, - for nothing; may be given again",
    "FOLDER SPLIT GENDER SYSTEM FAMILY ATTACKER EVALUATOR CONDITION",
]
Pages = Annotated[Sequence[Path], "Markdown pages", "PAGE"]


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
