#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Take x-vectors that another toolkit made, for the utterances of a data directory.

XVECTORS is a folder with xvector.ark or, without it, xvector.scp, in Kaldi's format: an x-vector
(any size) for each utterance of DATA (utt2spk) at least. OUT gets those of DATA's utterances as
xvector.{ark,scp}, as steps/extract_xvectors.py leaves them. The .ark is read where there is one,
for paths in a .scp hold only in the folder that it was made for.
"""

from pathlib import Path

from steps.options import Xvectors
from utils.cli import UserError
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder
from utils.tables import is_there


def find_archive(folder: Path) -> Path:
    """xvector.ark of a folder, or else xvector.scp; UserError where it has neither."""
    for name in ("xvector.ark", "xvector.scp"):
        if is_there(folder / name):
            return folder / name
    raise UserError(f"{folder}: has neither xvector.ark nor xvector.scp; give a folder that has")


@program
def main(
    xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0
) -> None:
    from steps.speaker.vectors import check_complete
    from utils.archives import read_vectors, write_archive
    from utils.datadir import load_data_dir

    utt2spk = load_data_dir(data_dir, need=("utt2spk",)).utt2spk
    archive = find_archive(xvectors)
    given = read_vectors(archive)
    vectors = {utt: given[utt] for utt in utt2spk if utt in given}
    check_complete(vectors, utt2spk, archive, allow_loss)
    if not vectors:
        raise UserError(f"{archive}: has no x-vector of an utterance of {data_dir}")
    write_archive(out / "xvector", vectors)
    print(f"read {len(given)} x-vectors / written {len(vectors)} / missing "
          f"{len(utt2spk) - len(vectors)}; {len(given) - len(vectors)} are of no utterance of "
          f"{data_dir}")  # fmt: skip
