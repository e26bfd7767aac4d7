#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Recognise the emotion of each utterance of a data directory.

RECOGNISER is `functionals`, a linear classifier that is trained here on the sets of --train, for
each speaker of DATA without that speaker; or `hub:<model>`, a model of the Hugging Face hub for
SpeechBrain (which runs the code that comes with it) or transformers, or a folder of one. DATA needs
utt2spk, for a model of the hub wav.scp. The sets of --train need utt2emotion. OUT gets `emotions`
(<utterance> <emotion>), posteriors.tsv (a probability for each emotion) and recogniser.json (how it
was made).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from steps.options import Device
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    recogniser: Annotated[str, "The recogniser (see above)"],
    data: DataFolder, out: OutFolder, *,
    features: Annotated[
        Path | None, "The folder of DATA's functionals (extract_functionals.py)", "DIR",
    ] = None,
    train: Annotated[
        Sequence[tuple[Path, Path]], "A training set and its functionals; may be given again",
        "DATA DIR",
    ] = (),
    device: Device = "cpu",
) -> None:  # fmt: skip
    from steps.emotion.functionals import write_recognised
    from steps.emotion.recognisers import RECOGNISERS
    from utils.cli import progress
    from utils.registry import find

    recognise, named = find(RECOGNISERS, recogniser, "recogniser")
    found, settings = recognise(
        data, *named, features=features, training=train, device=device,
        progress=progress("emotions"),
    )  # fmt: skip
    write_recognised(out, found, settings)
    print(f"{data}: {len(found)} utterances, {len(found.columns)} emotions")
