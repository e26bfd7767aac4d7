#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train a generator of pseudo-speakers on x-vectors.

CONF is a YAML file of conf/generators (docs/trained_generators.md). XVECTORS is a
folder of steps/extract_xvectors.py (also with --chunk-seconds), DATA the data directory of the
training speakers. OUT gets generator.yaml (the settings, what was trained on, and figures of the
last check), training.tsv (losses and checks against steps), checkpoints/ and, last, final.pt.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped; one that is done goes on where training.steps was
raised. Every check tells how long generated vectors are beside real ones (norm), how much alike
those of new indices are, and how near those of the training speakers' indices come to them. One
thread computes.

With `generator: psd` nothing is trained: OUT gets the x-vectors and their speakers, for psd takes a
pseudo-speaker's distribution from these.
"""

from steps.options import Device, Settings, Xvectors
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder, Seed


@program
def main(
    conf: Settings, xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *, seed: Seed = 0,
    device: Device = "cpu", allow_loss: AllowLoss = 0, not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    from steps.speaker.vectors import read_training
    from utils.datadir import write_training_speakers
    from utils.settings import read_settings

    values = read_settings(conf)
    data, vectors, utt2spk = read_training(xvectors, data_dir, allow_loss, not_speakers_of)

    if values.get("generator") == "psd":
        from steps.generators.frames import write_vectors_as_frames

        write_vectors_as_frames(values, conf, vectors, utt2spk, out)
        return

    from steps.generators.training import make_training_vectors, train_generator

    training = make_training_vectors(vectors, utt2spk)
    train_generator(values, conf, training, out, seed=seed, device=device)
    write_training_speakers(out, data.utt2spk.values())
