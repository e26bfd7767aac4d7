#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Extract one x-vector an utterance.

ENCODER is a folder that steps/train_encoder.py made, resemblyzer (pretrained) or
hub:<model> (SpeechBrain hub, or hub:<folder>). DATA needs wav.scp and utt2spk. OUT gets
xvector.{ark,scp} (float32, neither centred nor scaled) and, where utterances were lost, skipped.txt
(<utterance> <reason>).

With --chunk-seconds S every utterance is cut into equal pieces of S to 2 S seconds, each with an
x-vector of its own, <utterance>-c0000, <utterance>-c0001, ...; OUT/utt2spk gives their speakers.
This stands in for sessions when a back end is trained on speakers of one or few utterances.
"""

from steps.options import ChunkSeconds, Device, Encoder
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(
    encoder: Encoder, data_dir: DataFolder, out: OutFolder, *,
    chunk_seconds: ChunkSeconds = None,
    allow_loss: AllowLoss = 0, device: Device = "cpu",
) -> None:  # fmt: skip
    from utils.archives import ArchiveWriter
    from utils.cli import keep_freed_memory, progress
    from utils.datadir import load_data_dir

    keep_freed_memory()
    data = load_data_dir(data_dir)

    from steps.speaker.encoders import extract, finish, load_encoder

    network = load_encoder(encoder, device)
    with ArchiveWriter(out / "xvector") as writer:
        result = extract(
            network, data.wav, data.utt2spk, writer.write, chunk_seconds=chunk_seconds,
            progress=progress("extract_xvectors"),
        )  # fmt: skip
        print(result.summary())
        finish(out, result, allow_loss)
