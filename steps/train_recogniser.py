#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train a small recogniser of words (CTC) on a data directory.

CONF is a YAML file such as conf/asr/ctc_mini.yaml; DATA needs wav.scp, utt2spk and text (audio of
another rate is resampled to 16 kHz). OUT gets recogniser.yaml (the settings and what was trained
on), training.tsv (losses, and errors on held-out speakers, as shares, against steps), checkpoints/
and, last, final.pt. steps/decode.py hears with it: --model OUT ctc.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped. One thread computes.
"""

from steps.options import Device, Settings, Steps, begin_training
from utils.commands import program
from utils.options import DataFolder, NotSpeakersOf, OutFolder, Seed


@program
def main(
    conf: Settings, data_dir: DataFolder, out: OutFolder, *, seed: Seed = 0, device: Device = "cpu",
    steps: Steps = None, not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    from steps.asr.ctc import CtcConfig, train_ctc
    from steps.training.audio import load_training_audio

    config, data = begin_training(CtcConfig, conf, steps, data_dir, not_speakers_of, "text")
    plan = config.training
    audio = load_training_audio(
        data.wav, data.utt2spk, cache_gb=plan.cache_gb, minimum_seconds=plan.minimum_seconds
    )
    train_ctc(config, audio, data.tables["text"], out, seed=seed, device=device)
