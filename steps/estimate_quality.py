#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Estimate listeners' opinion of the quality of speech, from 1 (bad) to 5 (excellent).

The utterances of DATA are looked up in SPEECH (a data directory that may hold more: the original
or a protected set) and heard by DistillMOS, each by itself, at most 7.68 s from its middle. OUT
gets `quality`, a line an utterance: its estimated mean opinion score, or `-` and why there is none
(empty, short: under 0.2 s, silent, clipped). What could not be read is in OUT/skipped.txt.
"""

from pathlib import Path
from typing import Annotated

from utils.cli import UserError, progress
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(
    data: DataFolder,
    speech: Annotated[Path, "The data directory of the speech to be judged"],
    out: OutFolder, *, allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    from steps.quality import estimate_all, write_quality
    from utils.datadir import load_data_dir

    wav = load_data_dir(speech).wav
    utts = load_data_dir(data, need=("utt2spk",)).utt2spk
    if missing := [utt for utt in utts if utt not in wav]:
        raise UserError(f"{speech}/wav.scp: has no {missing[0]}, which {data} names")
    found, losses = estimate_all({utt: wav[utt] for utt in utts}, progress("estimate_quality"))
    losses.finish(out, len(utts), allow_loss)
    write_quality(out, found)
    undefined = {utt: q.problem for utt, q in found.items() if q.problem}
    for utt, problem in undefined.items():
        print(f"{utt}: not defined, its audio is {problem}: {wav[utt]}")
    print(
        f"read {len(utts)} utterances / written {len(found)} / not defined {len(undefined)} / "
        f"skipped {len(losses.skipped)}"
    )
