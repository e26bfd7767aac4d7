#!/usr/bin/env python3
"""Make a data directory of some of the utterances of another.

Random choices depend on --seed and on each id alone, not on the order or on what else is there.
Trials whose utterance is left out go too.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils import datadir
from utils.cli import UserError, run_program
from utils.commands import program
from utils.datadir import DataDir, load_data_dir, other_files, select, write_data_dir
from utils.options import Seed, SourceFolder, TargetFolder
from utils.tables import read_map, sort_ids


def choose(data: DataDir, how: str, count: int, seed: int) -> Sequence[str]:
    """The utterances that an option of a number names."""
    utts = sort_ids(data.utt2spk)
    if how == "n":
        return datadir.draw(utts, count, seed, "utterance")
    if how == "per-spk":
        return datadir.draw_per_speaker(data, count, seed)
    if how == "speakers":
        speakers = datadir.draw(data.spk2utt, count, seed, "speaker")
        return datadir.utterances_of(data, speakers)
    if how == "evenly":
        return datadir.evenly(utts, count)
    if not 1 <= count <= len(utts):
        raise UserError(f"{count} utterances are asked for; {data.path} has {len(utts)}")
    if how == "shortest":
        return datadir.shortest(data, count)
    return utts[:count] if how == "first" else utts[-count:]


def only(options: Mapping[str, object]) -> str:
    """The option that was given; UserError where it is none, or several."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        raise UserError(f"give one of {', '.join(f'--{name}' for name in given or options)}")
    return given[0]


@program
def main(
    source: SourceFolder, target: TargetFolder, *,
    n: Annotated[int | None, "Take N utterances at random", "N"] = None,
    per_spk: Annotated[
        int | None, "Take N utterances of each speaker at random (all, where a speaker has fewer)",
        "N",
    ] = None,
    speakers: Annotated[int | None, "Take all utterances of N speakers at random", "N"] = None,
    first: Annotated[int | None, "Take the first N utterances (C order)", "N"] = None,
    last: Annotated[int | None, "Take the last N utterances (C order)", "N"] = None,
    shortest: Annotated[int | None, "Take the N shortest utterances (needs utt2dur)", "N"] = None,
    evenly: Annotated[
        int | None, "Take N utterances at even steps through the list, as Kaldi's own tool does",
        "N",
    ] = None,
    utt_list: Annotated[
        str | None, "The file whose first column names the utterances", "FILE",
    ] = None,
    spk_list: Annotated[
        str | None, "The file whose first column names the speakers", "FILE",
    ] = None,
    seed: Seed = 0,
) -> None:  # fmt: skip
    counts = {
        "n": n, "per-spk": per_spk, "speakers": speakers, "first": first, "last": last,
        "shortest": shortest, "evenly": evenly,
    }  # fmt: skip
    how = only({**counts, "utt-list": utt_list, "spk-list": spk_list})
    data = load_data_dir(source, need=("utt2spk",), allow_segments=True)
    if target.resolve() == data.path.resolve():
        raise UserError(f"{target}: is the source itself; give another folder")
    chosen: Sequence[str]
    if spk_list is not None:
        chosen = datadir.utterances_of(data, read_map(spk_list, rest_of_line=True))
    elif utt_list is not None:
        chosen = datadir.known_utterances(
            data, list(read_map(utt_list, rest_of_line=True)), utt_list
        )
    else:
        chosen = choose(data, how, counts[how] or 0, seed)
    tables = select(data, chosen)
    write_data_dir(target, tables)
    kept, names = tables["utt2spk"], set(tables["utt2spk"].values())
    print(
        f"{target}: {len(kept)} of {len(data.utt2spk)} utterances, "
        f"{len(names)} of {len(data.spk2utt)} speakers"
        + (f", {len(tables.get('trials', []))} of {len(data.trials)} trials" if data.trials else "")
        + (f" (seed {seed})" if n or per_spk or speakers else "")
    )
    if others := other_files(data.path):
        print(f"{target}: not carried over: {' '.join(others)}")


if __name__ == "__main__":
    run_program(main)
