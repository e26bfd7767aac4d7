# SPDX-License-Identifier: Apache-2.0
"""The weights of a language beside a trained CTC recogniser, as a folder of choose_search.py."""

from dataclasses import asdict
from pathlib import Path

import pandas as pd
import yaml

from steps.asr.ctc import CtcRecogniser
from steps.asr.ctc_weights import best_weights, try_weights
from steps.asr.language import Language
from steps.audio import read_audio
from utils.cli import UserError
from utils.datadir import DataDir
from utils.tables import atomic_write

SEARCH = "search.yaml"


def choose_search(
    model: Path, data: DataDir, language: Language, out: Path, device: str = "cpu"
) -> str:
    """Write search.yaml, and weights.tsv where there was a choice; return what is to be said of it.

    UserError where `data` has not the speakers whom the training of `model` held out.
    """
    recogniser = CtcRecogniser(model, None, device)
    chosen, said = recogniser.search, "nobody was held out from the training: its settings stay"
    out.mkdir(parents=True, exist_ok=True)
    if recogniser.held_out:
        if unknown := [spk for spk in recogniser.held_out if spk not in data.spk2utt]:
            raise UserError(
                f"{data.path}: speaker {unknown[0]} is missing, who was held out from the training "
                f"of {model}; give the data that it was trained on"
            )
        utts = [utt for spk in recogniser.held_out for utt in data.spk2utt[spk]]
        written = {
            utt: recogniser.hear(utt, read_audio(utt, data.wav[utt]).samples) for utt in utts
        }
        trials = try_weights(
            written, data.tables["text"], language, recogniser.units, recogniser.search
        )
        with atomic_write(out / "weights.tsv") as stream:
            pd.DataFrame([asdict(trial) for trial in trials]).to_csv(stream, sep="\t", index=False)
        chosen, best = best_weights(trials, recogniser.search), min(t.errors for t in trials)
        said = (
            f"lm_weight {chosen.lm_weight:g}, word_score {chosen.word_score:g}: {best} errors in "
            f"{trials[0].words} words of {len(utts)} utterances by {len(recogniser.held_out)} "
            f"speakers held out from the training; its settings ({recogniser.search.lm_weight:g}, "
            f"{recogniser.search.word_score:g}) have {trials[0].errors}"
        )
    with atomic_write(out / SEARCH) as stream:
        yaml.safe_dump(asdict(chosen), stream, sort_keys=False)
    return said
