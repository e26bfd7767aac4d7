#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Extract once the inputs that several trainings of synthesisers on content share.

CONF and DATA are those of steps/train_synthesiser.py, which finds the same itself where it is not
given OUT by --content. OUT gets content.{ark,scp}: matrices (T, d); where the settings ask for
other voices (augmentation.warped) warped.{ark,scp}: of the same words by another vocal tract and at
another pitch, made with WORLD; fine.{ark,scp}: WORLD's frames of 5 ms, laid out as those of
steps/extract_world.py, with a pitch in all; and, last, content.json: frames, settings, digest of
the encoder. An hour takes 175 MB of either content with moonshine, and 120 MB of frames.
"""

from steps.options import Device, Settings
from utils.commands import program
from utils.options import DataFolder, OutFolder, Seed


@program
def main(
    conf: Settings, data_dir: DataFolder, out: OutFolder, *, seed: Seed = 0, device: Device = "cpu"
) -> None:
    from steps.synthesis.base import find_structure
    from steps.training.settings import read_config
    from utils.cli import progress
    from utils.datadir import load_data_dir

    config = read_config(find_structure(conf, on_content=True).settings, conf)
    data = load_data_dir(data_dir)

    from steps.synthesis.content import Finder, wanted_content, write_contents
    from steps.training.audio import load_training_audio
    from steps.training.weights import check_device

    check_device(device)
    audio = load_training_audio(data.wav, data.utt2spk, cache_gb=0.0, minimum_seconds=0.5)
    finder = Finder(audio, wanted_content(config, seed), device)
    write_contents(finder, out, progress("extract_content")(audio.lengths))
    print(f"{out}: content of {len(audio.lengths)} utterances")
