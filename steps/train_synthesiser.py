#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train a synthesiser on the voices of a pool.

CONF is a YAML file such as conf/synthesisers/bn_mini.yaml, whose `synthesiser` is bn,
bn_hifigan or nsf (docs/source_filter.md); DATA needs wav.scp and utt2spk; POOL is a folder of
steps/make_voice_pool.py with the WORLD frames of these utterances and the x-vectors of
these speakers. OUT gets synthesiser.yaml (the settings and what was trained on), training.tsv
(losses, and the distance on held-out speakers, against steps), checkpoints/ and, last,
final.pt.

With --onto, a network that was trained without network.melody or network.reader is taken as it is,
and only that part is trained, which takes minutes (docs/content.md). A reader needs DATA/text.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped.
"""

import logging
from pathlib import Path
from typing import Annotated, Any

from steps.options import Device, Settings, begin_training
from utils.cli import UserError
from utils.commands import program
from utils.options import DataFolder, NotSpeakersOf, OutFolder, Seed


@program
def main(
    conf: Settings, data_dir: DataFolder,
    pool: Annotated[Path, "The folder of make_voice_pool.py"],
    out: OutFolder, *, seed: Seed = 0, device: Device = "cpu",
    content: Annotated[
        Path | None, "A folder of steps/extract_content.py; without it content is found while "
        "training", "DIR",
    ] = None,
    onto: Annotated[
        Path | None, "A folder of this program or of a model (models/bn/synthesiser): it stays "
        "as it is, and only a part that it lacks is trained", "SYNTHESISER",
    ] = None,
    not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    from steps.synthesis.base import find_structure
    from utils import datadir

    asked = {"content": content, "onto": onto}
    given: dict[str, Any] = {name: path for name, path in asked.items() if path}
    structure = find_structure(conf, on_content=bool(given))
    config, data = begin_training(structure.settings, conf, None, data_dir, not_speakers_of)
    if onto and config.synthesiser != "bn":
        raise UserError(f"{conf}: synthesiser: --onto works with bn alone; leave it out")
    below = None  # the folder that knows whom the network of --onto learnt from
    if onto:
        below = onto if (onto / datadir.TRAINING_SPEAKERS).is_file() else onto.parent  # its model
        if (before := datadir.read_training_speakers(below)) is None:
            logging.warning("%s: no spklist: whom it learnt from is not known", onto)
        datadir.check_unseen(before or [], below, not_speakers_of)

    from steps.synthesis.training import train_synthesiser
    from steps.training.audio import load_training_audio

    audio = load_training_audio(
        data.wav, data.utt2spk, cache_gb=config.training.cache_gb, minimum_seconds=0.5
    )
    if onto:
        given |= {"texts": data.text}
    train_synthesiser(structure, config, audio, pool, out, seed=seed, device=device, **given)
    datadir.write_training_speakers(out, data.utt2spk.values(), below)
