#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train a speaker encoder on a data directory.

CONF is a YAML file such as conf/encoders/ecapa_mini.yaml; DATA needs wav.scp and utt2spk (audio of
another rate is resampled to 16 kHz). OUT gets encoder.yaml (the settings and what was trained on),
training.tsv (loss and validation EER in percent against steps), checkpoints/ and, last, final.pt.

With --init-from MODEL (another such OUT, of the same network) the training goes on from MODEL's
network instead of random weights, with a new classifier, for fewer steps and at a lower rate: the
section fine_tuning of CONF.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped. One thread computes and --workers processes
prepare the crops.
"""

import logging
from pathlib import Path
from typing import Annotated

from steps.options import Device, Settings, Steps, begin_training
from utils.cli import natural
from utils.commands import program
from utils.options import DataFolder, NotSpeakersOf, OutFolder, Seed


@program
def main(
    conf: Settings, data_dir: DataFolder, out: OutFolder, *, seed: Seed = 0, device: Device = "cpu",
    steps: Steps = None, not_speakers_of: NotSpeakersOf = (),
    workers: Annotated[
        int, "The number of processes that prepare crops; the result is the same", natural,
    ] = 1,
    init_from: Annotated[
        Path | None, "The folder of the encoder that is fine-tuned (see above)", "MODEL",
    ] = None,
) -> None:  # fmt: skip
    from steps.speaker.config import EncoderConfig, fine_tuned
    from utils.datadir import check_unseen, read_training_speakers

    change = fine_tuned if init_from else lambda config: config
    config, data = begin_training(
        EncoderConfig, conf, steps, data_dir, not_speakers_of, change=change
    )
    if init_from is not None:
        before = read_training_speakers(init_from)
        if before is None:
            logging.warning("%s: no spklist: whom it learnt from is not known", init_from)
        check_unseen(before or [], init_from, not_speakers_of)

    from steps.speaker.training import train_encoder
    from steps.training.audio import load_training_audio

    plan, features = config.training, config.features
    audio = load_training_audio(
        data.wav, data.utt2spk, cache_gb=plan.cache_gb, minimum_seconds=plan.minimum_seconds,
        speech_only=features.speech_only,
    )  # fmt: skip
    train_encoder(
        config, audio, out, seed=seed, device=device, n_workers=workers, init_from=init_from,
        before=data.tables.get("utt2uniq", {}),
    )  # fmt: skip
