#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Take speech that another system protected: check it against the originals.

EXTERNAL is a data directory (wav.scp, utt2spk) with the original utterance and speaker ids, or a
folder with audio that is named by utterance. OUT becomes a data directory with its audio and the
tables of ORIGINAL. An utterance of ORIGINAL that is missing, has another speaker, or has audio that
cannot be used (each file is read) is an error that names it; so is audio that is silent, over twice
or under half as long as the original, or the original itself. Others of EXTERNAL are left out,
counted and named.
"""

from pathlib import Path
from typing import Annotated

from utils.cli import LossError, UserError
from utils.commands import program
from utils.options import OutFolder


@program
def main(
    original_data: Annotated[Path, "The data directory of the originals", "ORIGINAL"],
    external_data: Annotated[Path, "The data directory of the protected speech", "EXTERNAL"],
    out: OutFolder,
) -> None:  # fmt: skip
    from steps.anonymisers.external import check_speech, find_speech
    from steps.audio import read_audio
    from utils.datachecks import probe_audio
    from utils.datadir import load_data_dir, write_data_dir
    from utils.tables import few

    original, speakers = load_data_dir(original_data), dict[str, str]()
    if (external_data / "wav.scp").is_file():
        external = load_data_dir(external_data, need=("wav.scp", "utt2spk"))
        if "segments" in external.tables:
            raise UserError(f"{external_data}: has segments; cut the audio by utterance first")
        speakers = external.utt2spk
    speech = find_speech(external_data)
    if missing := [utt for utt in original.utt2spk if utt not in speech]:
        raise LossError(
            f"{external_data}: {len(missing)} of {len(original.utt2spk)} utterances of "
            f"{original_data} are missing: {few(missing)}"
        )
    for utt, speaker in original.utt2spk.items():
        if speakers.get(utt, speaker) != speaker:  # unknown of what lies in sub-folders
            raise UserError(
                f"{external_data / 'utt2spk'}: {utt} is of {speakers[utt]}, but of "
                f"{speaker} in {original_data}"
            )
    audio = {utt: speech[utt] for utt in original.utt2spk}
    problems = {utt: probe_audio(path).problem for utt, path in audio.items()}
    if unusable := [f"{utt}: {audio[utt]} {what}" for utt, what in problems.items() if what]:
        raise LossError(
            f"{external_data / 'wav.scp'}: {unusable[0]} ({len(unusable)} of {len(audio)} audio "
            "files cannot be used); make them again"
        )
    if "segments" not in original.tables:
        for utt, path in audio.items():
            made, wave = (read_audio(utt, name).samples for name in (path, original.wav[utt]))
            check_speech(f"{external_data / 'wav.scp'}: {utt}: {path}", made, wave)
    extra = [utt for utt in speech if utt not in original.utt2spk]
    other = ("segments", "utt2dur", "trials")
    tables = {k: v for k, v in original.tables.items() if k not in other}
    tables["wav.scp"] = audio
    write_data_dir(out, tables)
    print(
        f"read {len(speech)} / written {len(original.utt2spk)} / left out {len(extra)} that "
        f"{original_data} does not have{': ' * bool(extra)}{few(extra)}"
    )
