"""Options that programs of the assessment share, and how they write figures."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from utils.cli import COMMON, UserError, natural
from utils.tables import StrPath, write_file

# ---- What several programs of the assessment are asked.

Figures = Annotated[str, "The JSON file that is written, or - for standard output", "OUT"]
Bootstrap = Annotated[
    int, "The number of times that the speakers are resampled, for 95 % intervals; 0: none", "N",
    natural, COMMON,
]  # fmt: skip
AnotherDraw = Annotated[
    Sequence[Path], "Scores of these trials in a further run of a random system, for the mean of "
    "all runs; may be given again", "SCORES",
]  # fmt: skip
Words = Annotated[
    Path | None, "Scores of the same trials by the words alone, for eer_beside_words: how far the "
    "EER lies above theirs, people resampled alike in both", "SCORES",
]  # fmt: skip
CorpusName = Annotated[str, "The name of the corpus", "NAME"]
EncoderName = Annotated[str, "The name of the encoder", "NAME"]
ResultsFolder = Annotated[Path, "The folder of results", "RESULTS"]
Labelled = Annotated[
    Sequence[tuple[str, str, str, str, str, str, str, str]],
    "A folder of figures and what it speaks of, - for nothing; may be given again",
    "FOLDER SPLIT GENDER SYSTEM FAMILY ATTACKER EVALUATOR CONDITION",
]


# ---- Trials and their scores.


def read_scored(trials_path: Path, *scores_paths: Path) -> tuple[Any, ...]:
    """Trials, and the score of each, (n_trials,), in each score file; UserError names the first
    line at fault."""
    from utils.trials import join_scores, read_scores, read_trials

    trials = read_trials(trials_path)
    return trials, *(
        join_scores(trials, read_scores(path), trials_path=trials_path, scores_path=path)
        for path in scores_paths
    )


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


def write_figures(out: StrPath, figures: Mapping[str, object]) -> None:
    """Write figures to a file, atomically, or to standard output for `-`."""
    text = json.dumps(to_json(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        write_file(out, text)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from error
