#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Read a set's transcripts aloud with one synthetic voice: nothing of the speakers but their words.

OUT gets <utterance>.wav (16 kHz, mono, 16 bit). The voice and its seed are the same for every set,
so that an attacker who recognises somebody in these files does so by words alone: the floor of the
words through a voice encoder. A transcript without letters is an error.
"""

from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.options import DataFolder


@program
def main(data_dir: DataFolder, out: Annotated[Path, "The folder of the audio files"]) -> None:
    from steps.synthetic.corpus import read_aloud
    from utils.cli import UserError
    from utils.datadir import load_data_dir

    data = load_data_dir(data_dir)
    if data.text is None:
        raise UserError(f"{data_dir}/text: is missing; what is to be read is not known")
    if silent := [utt for utt in data.wav if not any(map(str.isalpha, data.text[utt]))]:
        raise UserError(f"{data_dir}/text: {silent[0]} has no letters; nothing can be read")
    out.mkdir(parents=True, exist_ok=True)
    read_aloud({utt: data.text[utt] for utt in data.wav}, out)
    print(f"{data_dir}: {len(data.wav)} utterances read aloud")
