#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Write what an attack was beside its scores: who knows what, sets, seeds, draws, levels, models.

OUT is a JSON file. All is read from what was made (conf.json, pseudo.tsv, encoder.yaml). It is an
error if the sets are not what the attacker is said to have, if enrolment and trials share a draw
that they must not, or if the attacker's training set has a speaker of theirs.
"""

from pathlib import Path
from typing import Annotated

from local.options import write_figures
from steps.options import Asnorm, ScoringBackend
from utils.commands import program
from utils.options import OutFile


@program
def main(
    out: OutFile, *,
    attacker: Annotated[str, "The attacker's name, as in docs/attackers.md", "NAME"],
    enrol: Annotated[Path, "The data directory of the enrolment", "DATA"],
    trial: Annotated[Path, "The data directory of the trials", "DATA"],
    training: Annotated[
        Path | None, "The protected set that the attacker was trained on", "DATA",
    ] = None,
    pairs: Annotated[
        Path | None, "The protected set whose originals the attacker also has", "DATA",
    ] = None,
    held_out: Annotated[
        Path | None, "Scores of people of that set whom the attacker held out, by "
        "steps/score_held_out.py", "DIR",
    ] = None,
    encoder: Annotated[str, "The name of the encoder", "ENCODER"],
    backend: ScoringBackend, asnorm: Asnorm = 0,
) -> None:  # fmt: skip
    from local.protocols import attackers

    record = attackers.record_attack(
        attacker, enrol, trial, training, pairs, encoder, backend, asnorm
    )
    if held_out and training:
        record |= attackers.record_held_out(held_out, training)
    write_figures(out, record)
