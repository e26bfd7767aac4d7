#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Say what the figures of a folder speak of, for the programs that collect them: OUT/labels.json.

It has the columns of metrics.csv that all figures of the folder share; `-` stands for none.
"""

from typing import Annotated

from utils.commands import program
from utils.options import OutFolder


@program
def main(
    split: Annotated[str, "The trials: <evaluation>_<gender>, or all"],
    gender: Annotated[str, "The people: f, m or mixed"],
    system: Annotated[str, "The system, or original"],
    family: Annotated[str, "The kind of figures, such as verification"],
    attacker: Annotated[str, "The attacker"],
    evaluator: Annotated[str, "The evaluator or recogniser, as tables spell it"],
    condition: Annotated[str, "What of enrolment and trials is protected, such as OA"],
    out: OutFolder,
) -> None:
    from local.plan.labels import Labels, write_labels

    words = (split, gender, system, family, attacker, evaluator, condition)
    write_labels(out, Labels(*("" if word == "-" else word for word in words)))
