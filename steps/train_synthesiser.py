#!/usr/bin/env python3
"""Train a synthesiser on the voices of a pool.

CONF is a YAML file such as conf/synthesisers/bn_mini.yaml, whose `synthesiser` is bn, nsf or b1b
(docs/source_filter.md); DATA needs wav.scp and utt2spk; POOL is a folder of
steps/make_voice_pool.py with the WORLD frames of these utterances and the x-vectors of
these speakers. OUT gets synthesiser.yaml (the settings and what was trained on), training.tsv
(losses, and the distance on held-out speakers, against steps), checkpoints/ and, last,
final.pt.

With --onto, a network that was trained without network.melody is taken as it is, and only the
melody is trained, which takes minutes (docs/content_training.md).

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped.
"""

import logging
import sys
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import Device, Settings
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
        Path | None, "A folder of this program or of a model (models/bn/synthesiser); it stays "
        "as it is, and only the melody is trained", "SYNTHESISER",
    ] = None,
    not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    from steps.synthesis.base import find_structure
    from steps.training.settings import read_config
    from utils.cli import keep_freed_memory
    from utils.datadir import check_unseen, load_data_dir, write_training_speakers

    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    keep_freed_memory()
    asked = {"content": content, "onto": onto}
    given = {name: path for name, path in asked.items() if path}
    structure = find_structure(conf, on_content=bool(given))
    config = read_config(structure.settings, conf)
    if onto and config.synthesiser != "bn":
        raise UserError(f"{conf}: synthesiser: --onto is of bn alone; leave it out")
    data = load_data_dir(data_dir)
    check_unseen(data.utt2spk.values(), data_dir, not_speakers_of)

    from steps.synthesis.training import train_synthesiser
    from steps.training.audio import load_training_audio

    audio = load_training_audio(
        data.wav, data.utt2spk, cache_gb=config.training.cache_gb, minimum_seconds=0.5
    )
    train_synthesiser(structure, config, audio, pool, out, seed=seed, device=device, **given)
    write_training_speakers(out, data.utt2spk.values())
