"""Recognisers of emotions by name, their output, and its files."""

from pathlib import Path

import pandas as pd

from utils.cli import UserError
from utils.tables import atomic_write, sort_ids, write_json, write_map

# Each takes a data directory, the values for <...>, and as keywords what the program was asked:
# features (functionals of the utterances), training (data directories with theirs), device,
# progress. It returns a Recognised.
RECOGNISERS = {
    "functionals": "steps.emotion.functionals:recognise_by_functionals",
    "hub:<model>": "steps.emotion.hub:recognise_by_hub",
}
Recognised = tuple[pd.DataFrame, dict[str, object]]
"""Probability of each emotion (columns) by utterance (rows), and settings of the recogniser.

The emotion of an utterance is its most probable one, the first in a tie.
"""


def write_recognised(out: Path, posteriors: pd.DataFrame, settings: dict[str, object]) -> None:
    """Write recogniser.json, posteriors.tsv (a line an utterance), and last `emotions`."""
    if posteriors.empty:
        raise UserError(f"{out}: there is nothing to write; the input has no utterance")
    (out / "emotions").unlink(missing_ok=True)
    write_json(out / "recogniser.json", {"labels": list(posteriors.columns), **settings})
    with atomic_write(out / "posteriors.tsv") as stream:
        table = posteriors.loc[sort_ids(posteriors.index)]
        table.to_csv(stream, sep="\t", float_format="%.6f", index_label="#utt")
    write_map(out / "emotions", posteriors.idxmax(axis=1).to_dict())
