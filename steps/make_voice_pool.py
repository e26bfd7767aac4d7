#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make a pool of target voices.

WORLD_DIR is a folder of steps/extract_world.py, DATA the data directory of the voices (utt2spk;
spk2gender where voices are to be chosen by gender), XVECTORS a folder of steps/average_xvectors.py.
OUT, which may be WORLD_DIR, gets

  world.scp                  the frames of each utterance; the archives stay in WORLD_DIR
  utt2spk spk2utt spk2gender
  spk_f0.{ark,scp}           F0 statistics, as steps/compute_f0_stats.py makes them
  spk_xvector.{ark,scp}
  content.{ark,scp,json}     with --add-content

Every speaker needs an x-vector and frames that are not silent. Who has no utterance with frames is
left out, and --allow-loss counts the utterances.
"""

from pathlib import Path
from typing import Annotated

from steps.options import Device, Xvectors
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder


@program
def main(
    world_dir: Annotated[Path, "The folder of extract_world.py"],
    data_dir: DataFolder, xvectors: Xvectors, out: OutFolder, *, allow_loss: AllowLoss = 0,
    not_speakers_of: NotSpeakersOf = (), device: Device = "cpu",
    add_content: Annotated[
        str, "The recogniser's content that is added for each frame (conf/systems: features: "
        "content): moonshine, hub:<model>:<layer> or cepstra", "NAME",
    ] = "",
) -> None:  # fmt: skip
    from steps.synthesis.voices import add_content as add
    from steps.synthesis.voices import make_voice_pool
    from utils.datadir import load_data_dir

    data = load_data_dir(data_dir, need=("utt2spk",), not_speakers_of=not_speakers_of)
    made = make_voice_pool(world_dir, data, xvectors, out, allow_loss)
    if add_content:
        add(data, out, add_content, device)
    print(made)
