#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Learn how telling each counted part of speech is: its inverse document frequency.

COUNTS is a folder of steps/extract_channel.py (words, sounds), DATA the data directory of the
training speakers. OUT gets idf.vec: ln((1 + n) / (1 + m)) + 1 for a part that occurs in m of n
utterances.
"""

from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.options import DataFolder, NotSpeakersOf, OutFolder


@program
def main(
    counts: Annotated[Path, "The folder of counts", "COUNTS"],
    data_dir: DataFolder, out: OutFolder, *, not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    import numpy as np

    from steps.speaker.backends import IDF, learn_idf
    from steps.speaker.vectors import check_complete, read_xvectors
    from utils.archives import write_object
    from utils.datadir import load_data_dir

    data = load_data_dir(data_dir, need=("utt2spk",), not_speakers_of=not_speakers_of)
    vectors = read_xvectors(counts)
    check_complete(vectors, data.utt2spk, counts, 0)
    write_object(out / IDF, learn_idf(np.stack(list(vectors.values()))))
    print(f"read counts of {len(vectors)} utterances / written {out}/{IDF} / skipped 0")
