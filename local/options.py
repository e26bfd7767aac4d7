"""Options that programs of the assessment share, and how they write figures."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from utils.cli import COMMON, UserError, natural, refusing
from utils.options import AllowSelf, Seed, TrialFormat
from utils.tables import StrPath, write_file

# ---- What several programs of the assessment are asked.

Figures = Annotated[str, "The JSON file that is written, or - for standard output", "OUT"]


class Resamples(NamedTuple):
    """Options of intervals over speakers."""

    bootstrap: Annotated[
        int, "The number of times that the speakers are resampled, for 95 % intervals; 0: none",
        "N", natural, COMMON,
    ] = 0  # fmt: skip
    seed: Seed = 0

    @property
    def words(self) -> dict[str, Any]:
        """Keywords of the functions of local/metrics."""
        return {"n_bootstrap": self.bootstrap, "seed": self.seed}


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
    Sequence[Path], "A folder of figures, with its labels.json; may be given again", "FOLDER"
]


# ---- Trials and their scores, in the formats of --format.


Files = Path | Sequence[Path]


class Lists(NamedTuple):
    """Options of trial lists. allow_self None takes trials of a recording against itself without a
    warning."""

    format: TrialFormat = "auto"
    allow_self: AllowSelf | None = False

    def read(self, lists: Files, *scores: Files) -> Any:
        """Trials of a list or of several together, and the score of each, (n_trials,), in each of
        `scores`; UserError names the first line at fault, or the kind of trials that is missing."""
        from utils.trials import check_not_itself, join_scores, merge

        parts = {path: _read(path, self.format, "trials") for path in _each(lists)}
        if (allowed := self.allow_self) is not None:
            for path, own in parts.items():
                check_not_itself(path, own, allowed=allowed)
        trials, named = merge(parts), " + ".join(map(str, parts))
        found = [
            join_scores(
                trials,
                merge({path: _read(path, self.format, "scores") for path in _each(own)}),
                trials_path=named,
                scores_path=" + ".join(map(str, _each(own))),
            )
            for own in scores
        ]
        for value, label in ((True, "target"), (False, "nontarget")):
            if not (trials.target == value).any():
                raise UserError(f"{named}:1: no {label} trial; both kinds are needed")
        return trials, *found


def _each(files: Files) -> Sequence[Path]:
    return [files] if isinstance(files, Path) else files


def _read(path: Path, kind: str, what: str) -> Any:
    from utils.trials import EXAMPLES, guess_format, read_any, read_scores, read_trials

    if kind == "auto" and (kind := guess_format(path)) != "kaldi":
        print(f"{path}: {kind}, such as: {EXAMPLES[kind]}", file=sys.stderr)
    if kind == "kaldi":
        return read_trials(path) if what == "trials" else read_scores(path)
    found = dict(zip(("trials", "scores"), read_any(path, kind)[1:], strict=True))[what]
    if found is None:
        raise UserError(f"{path}: has no {'labels' if what == 'trials' else 'scores'}")
    return found


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
    """Write figures to a file, atomically, or to standard output for `-`. `columns` says of what
    those are whose name is a `Key` of local/metrics/intervals.py."""
    columns = {name: name.columns for name in figures if hasattr(name, "columns")}
    figures = {**figures, **({"columns": columns} if columns else {})}
    text = json.dumps(to_json(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if out == "-":
        sys.stdout.write(text)
        return
    with refusing(f"{Path(out)}: cannot be written: {{}}", OSError):
        write_file(out, text)
