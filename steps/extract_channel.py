#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Extract one vector an utterance from a channel beside the voice.

CHANNEL is words: how often each word and run of letters occurs in SOURCE/text (<utterance> <words>;
a folder of steps/decode.py, or a data directory); sounds: how often each run of phones occurs there
(of `steps/decode.py phones`); timing: how long the phones last, pauses, and the rate; or rhythm:
silences and time of speech of the audio, and length of the text. DATA needs utt2spk, and for rhythm
wav.scp. OUT gets xvector.{ark,scp}, as steps/extract_xvectors.py writes them, so that whatever
reads x-vectors reads these; with --chunk-seconds, pieces (of timing only) and utt2spk, as there.

An utterance in which nothing was recognised has a vector of 0; SOURCE must have a line for it.
"""

from pathlib import Path
from typing import Annotated, Literal

from steps.options import ChunkSeconds
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    channel: Annotated[
        Literal["words", "sounds", "timing", "rhythm"], "The channel (see above)", "CHANNEL"
    ],
    source: Annotated[Path, "The folder of the recognised words or phones", "SOURCE"],
    data_dir: DataFolder, out: OutFolder, *,
    chunk_seconds: ChunkSeconds = None,
) -> None:  # fmt: skip
    from steps.channels.recognised import extract_channel
    from utils.archives import write_archive
    from utils.datadir import load_data_dir
    from utils.tables import write_map

    need = ("utt2spk", "wav.scp") if channel == "rhythm" else ("utt2spk",)
    data = load_data_dir(data_dir, need=need)
    wav, utt2spk = data.tables.get("wav.scp"), data.utt2spk
    vectors, empty = extract_channel(channel, source, utt2spk, chunk_seconds, wav)
    (out / "utt2spk").unlink(missing_ok=True)
    write_archive(out / "xvector", vectors)
    if chunk_seconds is not None:
        write_map(out / "utt2spk", {key: utt2spk[key.rpartition("-c")[0]] for key in vectors})
    print(
        f"read {len(utt2spk)} utterances / written {len(vectors)} vectors, {empty} of them without "
        f"{channel}"
    )
