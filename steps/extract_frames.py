#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Extract what the frames of each utterance say of its speaker, for the generator psd.

ENCODER is a folder of steps/train_encoder.py with `network.pooling: xi`; DATA needs wav.scp and
utt2spk. Each frame gives a Gaussian. OUT gets, for each utterance, the mean (xvector.{ark,scp}) and
the variance (variance.{ark,scp}) of the mixture of its frames, num_frames, utt2spk and, where
utterances were lost, skipped.txt. The mean is not the x-vector of steps/extract_xvectors.py, which
weights the frames by their precision.
"""

import logging

from steps.options import Device, Encoder
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder


@program
def main(
    encoder: Encoder, data_dir: DataFolder, out: OutFolder, *, not_speakers_of: NotSpeakersOf = (),
    allow_loss: AllowLoss = 0, device: Device = "cpu",
) -> None:  # fmt: skip
    from utils.cli import progress
    from utils.datadir import load_data_dir
    from utils.tables import write_map

    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    data = load_data_dir(data_dir, not_speakers_of=not_speakers_of)

    from steps.speaker.encoders import FrameEncoder, extract, finish, load_encoder, open_frames

    network = FrameEncoder(load_encoder(encoder, device), encoder)
    show = progress("extract_frames", unit="utterances")
    with open_frames(out) as write:
        result = extract(network, data.wav, data.utt2spk, write, progress=show)
        print(result.summary())
        finish(out, result, allow_loss)
        write_map(out / "utt2spk", result.utt2spk)
