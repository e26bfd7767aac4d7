#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Recognise the words of each utterance of a data directory.

RECOGNISER is `moonshine`, a network that writes English (--model: another size or language of it);
`whisper`, one of 99 languages (--language; else it guesses; --model: another size, in CTranslate2's
form); `pocketsphinx`, an older recogniser of English; `phones`, the same of English phones
(OUT/text then has `<phone>:<frames of 10 ms> ...`); or `hub:<model>`, a Whisper (--language) or a
SpeechBrain model of the Hugging Face hub, or a folder of one (SpeechBrain runs the code that its
settings name). DATA needs wav.scp and utt2spk. OUT gets `text` (<utterance> <words>, as the
recogniser spells them; nothing after the utterance where nothing was recognised) and
recogniser.json (how it was made); moonshine also writes seconds.tsv (of encoder and decoder);
moonshine and whisper write notes.txt (<utterance> <note>: hypotheses that came to no end and were
cut), where there are any. Only models of the hub
compute on --device. A killed run goes on where it was, from text.partial in OUT.
"""

from pathlib import Path
from typing import Annotated

from steps.options import Device
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    recogniser: Annotated[str, "The recogniser (see above)"],
    data_dir: DataFolder, out: OutFolder, *,
    model: Annotated[Path | None, "The folder of another moonshine or whisper", "DIR"] = None,
    language: Annotated[
        str | None, "Language of the speech for Whisper, such as de; else it guesses", "CODE",
    ] = None,
    device: Device = "cpu",
) -> None:  # fmt: skip
    from steps.asr.recognisers import decode_all, make_recogniser
    from utils.cli import progress
    from utils.datadir import load_data_dir

    data = load_data_dir(data_dir)
    made = make_recogniser(recogniser, device, model=model, language=language)
    n_kept, notes = decode_all(made, data.wav, out, progress("decode"))
    for utt, note in notes.items():
        print(f"{utt}: {note}")
    if notes:
        print(f"{data_dir}: {len(notes)} of {len(data.wav)} hypotheses were cut")
    kept = f", {n_kept} of them by a run that was ended before" if n_kept else ""
    print(f"{data_dir}: {len(data.wav)} utterances recognised{kept}")
