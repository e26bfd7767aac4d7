#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Put x-vectors of several sets, or of several runs of one set, into one folder.

Each NAME=FOLDER (with xvector.scp) adds <utterance>-NAME, each FOLDER its utterances as they are
called. OUT/xvector.scp points at the archives of
the folders; nothing is copied.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.options import OutFolder
from utils.tables import read_map, write_map


@program
def main(
    out: OutFolder,
    folders: Annotated[Sequence[str], "The folders of x-vectors", "[NAME=]FOLDER"],
) -> None:  # fmt: skip
    joined: dict[str, str] = {}
    for word in folders:
        name, _, folder = word.rpartition("=")
        if not folder or word.startswith("="):
            raise UserError(f"{word!r}: NAME=FOLDER or FOLDER is expected")
        for utt, place in read_map(Path(folder) / "xvector.scp", rest_of_line=True).items():
            new = f"{utt}-{name}" if name else utt
            if new in joined:
                raise UserError(f"{folder}: {new} is there twice; give each folder a name")
            joined[new] = place
    write_map(out / "xvector.scp", joined)
    print(f"written {len(joined)} x-vectors of {len(folders)} folders")
