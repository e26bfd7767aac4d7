#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute the unweighted average recall of emotions and write it as JSON.

DATA needs utt2emotion (what was felt, or acted; of the challenges: utt2emo) and utt2spk; EMOTIONS
is a table of the same utterances (<utterance> <emotion>), such as steps/recognise_emotion.py or
anybody's recogniser writes. An emotion that DATA does not have counts as wrong. OUT, a file or -
for standard output, gets uar, accuracy, recall_<emotion>, chance_uar (of a guesser) and the
confusions. Values are fractions. With the folds of a cross-validation, in spk2fold of DATA or by
--utt2fold, there are uar_vpc24 and recall_vpc24_<emotion>, too. docs/metrics/uar.md explains them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import AGAIN, Bootstrap, Figures, write_figures
from utils.cli import UserError
from utils.commands import program
from utils.options import DataFolder, Seed


@program
def main(
    data: DataFolder,
    emotions: Annotated[Path, "The table of recognised emotions"],
    out: Figures, *,
    also: Annotated[Sequence[tuple[Path, Path]], AGAIN, "DATA EMOTIONS"] = (),
    utt2fold: Annotated[
        Path | None, "A table `<utterance> <fold>` of a cross-validation, where DATA has no "
        "spk2fold", "FILE",
    ] = None,
    emotion2vec: Annotated[
        bool, "Whether EMOTIONS are emotion2vec's nine, which count as four as in VoicePrivacy 2026"
    ] = False,
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    from local.metrics.utility import recall_figures
    from local.protocols.utterances import four_emotions, read_folds, read_recognised
    from utils.tables import read_map

    named = [(data, emotions), *also]
    truth, heard, utt2spk = read_recognised(named, "utt2emotion", "recognise them again")
    folds = read_map(utt2fold) if utt2fold else read_folds([of for of, _ in named], utt2spk)
    if folds is not None and (missing := truth.keys() - folds.keys()):
        raise UserError(f"{utt2fold or data}: has no fold of utterance {min(missing)}")
    said = truth, four_emotions(heard) if emotion2vec else heard, utt2spk
    figures = recall_figures(*said, folds=folds, n_bootstrap=bootstrap, seed=seed)
    write_figures(out, figures)
