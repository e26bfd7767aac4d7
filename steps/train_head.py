#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train a head on x-vectors of an encoder that comes trained: 512 -> 256 -> 192 for pyannote.

XVECTORS (of steps/extract_xvectors.py, also with --chunk-seconds) and DATA are those of the
training speakers. OUT gets encoder.yaml and head.pt, and no spklist: whom the encoder learnt from
is not known. steps/apply_head.py applies it.
"""

from steps.options import Xvectors
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder, Seed


@program
def main(
    xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *, seed: Seed = 0,
    allow_loss: AllowLoss = 0, not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    from steps.speaker.held_out import train_head, write_head
    from steps.speaker.vectors import read_training

    _, vectors, utt2spk = read_training(xvectors, data_dir, allow_loss, not_speakers_of)
    head = train_head(vectors, utt2spk, seed)
    heard = {utt2spk[key] for key in vectors}
    about = {"xvectors": str(xvectors), "number": len(vectors), "speakers": len(heard)}
    write_head(out, head, about | {"seed": seed})
    print(f"read {len(vectors)} x-vectors of {len(heard)} speakers / written {out}/head.pt")
