#!/usr/bin/env python3
"""Make the trial sets of the NIST study (Seo et al. 2025, Table 4) from the segments of a set.

DATA is a data directory (utt2spk; spk2gender unless --same-gender false). OUT gets

  trial1/trials  <original> <protected>: the same speaker or another (ordered pairs)
  trial2/trials  <segment> <segment>, both protected in one profile or both original (pairs once)
  cross/trials   <segment>-p1 <segment>-p1 target, <segment>-p1 <segment>-p2 nontarget, of one
                 speaker; cross/utt2spk has their speakers

No segment is compared with itself. The numbers of trials are printed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import boolean
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    data_dir: DataFolder, out: OutFolder, *,
    same_gender: Annotated[
        bool, "Compare speakers of one gender only", "true|false", boolean,
    ] = True,
    sessions: Annotated[
        Path | None, "The table of each segment's session; segments of one session are not "
        "compared", "UTT2SESSION",
    ] = None,
    groups: Annotated[
        Path | None, "The table of each speaker's group, such as age; speakers of one group are "
        "compared", "SPK2GROUP",
    ] = None,
    durations: Annotated[
        Path | None, "The table of each segment's nominal duration; segments of one are compared",
        "UTT2DURATION",
    ] = None,
    training: Annotated[
        Sequence[Path], "A training set none of whose speakers may be among the segments'; may "
        "be given again", "DATA",
    ] = (),
) -> None:  # fmt: skip
    from local.protocols.studies import PROFILES, make_segment_lists
    from utils.datadir import load_data_dir
    from utils.tables import read_map, write_map
    from utils.trials import write_trials

    need = ("utt2spk", "spk2gender") if same_gender else ("utt2spk",)
    data = load_data_dir(data_dir, need=need, not_speakers_of=training)
    tables = [None if path is None else read_map(path) for path in (sessions, groups, durations)]
    lists = make_segment_lists(data.utt2spk, data.spk2gender if same_gender else None, *tables)
    profiled = {f"{utt}-{p}": spk for utt, spk in data.utt2spk.items() for p in PROFILES}
    write_map(out / "cross/utt2spk", profiled)
    print(f"{data_dir}: {len(data.spk2utt)} speakers, {len(data.utt2spk)} segments")
    for name, trials in lists.items():
        write_trials(out / name / "trials", trials)
        n_target = int(trials.target.sum())
        print(f"  {name:<6}  {n_target} target, {len(trials) - n_target} nontarget trials")
