#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make x-vectors of x-vectors, by a head of steps/train_head.py.

OUT gets xvector.{ark,scp} with the ids of XVECTORS and, where these are of chunks, their utt2spk.
"""

from pathlib import Path
from typing import Annotated

from steps.options import Xvectors
from utils.commands import program
from utils.options import OutFolder


@program
def main(
    head_dir: Annotated[Path, "The folder of the head", "HEAD"], xvectors: Xvectors, out: OutFolder
) -> None:
    from steps.speaker.held_out import read_head
    from steps.speaker.vectors import open_xvectors
    from utils.archives import ArchiveWriter
    from utils.cli import UserError
    from utils.tables import is_there, read_map, write_map

    head, vectors = read_head(head_dir), open_xvectors(xvectors)
    dim = len(head.get_buffer("mean"))
    (out / "utt2spk").unlink(missing_ok=True)
    if is_there(xvectors / "utt2spk"):
        write_map(out / "utt2spk", read_map(xvectors / "utt2spk"))
    with ArchiveWriter(out / "xvector") as writer:
        for key, vector in vectors.vectors():
            if len(vector) != dim:
                raise UserError(
                    f"{xvectors}: has x-vectors of {len(vector)} dimensions, {head_dir} is for "
                    f"{dim}; it was trained with another encoder"
                )
            writer.write(key, head.apply_to(vector[None])[0])
    print(f"written {len(list(vectors))} x-vectors")
