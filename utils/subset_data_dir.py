#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make a data directory of some of the utterances of another.

Random choices depend on --seed and on each id alone, not on the order or on what else is there.
Trials whose utterance is left out go too.
"""

from collections.abc import Collection, Sequence
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.datadir import DataDir, derive_data_dir, draw, load_source, select
from utils.options import Seed, SourceFolder, TargetFolder
from utils.tables import read_map, sort_ids


def choose(data: DataDir, how: str, value: int | str, seed: int) -> Sequence[str]:
    """The utterances that an option names."""
    utts = sort_ids(data.utt2spk)
    if how == "utt-list":
        return listed(data.utt2spk, str(value), data)
    if how == "spk-list":
        return [utt for spk in listed(data.spk2utt, str(value), data) for utt in data.spk2utt[spk]]
    value = int(value)
    if not 1 <= value <= len(utts) and (how != "per-spk" or value < 1):
        raise UserError(f"{value} utterances are asked for; {data.path} has {len(utts)}")
    if how == "n":
        return draw(utts, value, seed, "utterance")
    if how == "evenly":  # as Kaldi's subset_data_dir.sh does
        return [utts[index * len(utts) // value] for index in range(value)]
    each = (draw(of, min(value, len(of)), seed, "utterance") for of in data.spk2utt.values())
    return [utt for chosen in each for utt in chosen]


def listed(known: Collection[str], path: str, data: DataDir) -> list[str]:
    """Ids in the first column of a file; UserError where the data directory lacks one."""
    ids = list(read_map(path, rest_of_line=True))
    if unknown := [name for name in ids if name not in known]:
        raise UserError(
            f"{path}: {len(unknown)} of {len(ids)} ids are not in {data.path} (first: {unknown[0]})"
        )
    return ids


@program
def main(
    source: SourceFolder, target: TargetFolder, *,
    n: Annotated[int | None, "Take N utterances at random", "N"] = None,
    per_spk: Annotated[
        int | None, "Take N utterances of each speaker at random (all, where a speaker has fewer)",
        "N",
    ] = None,
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
    options = {
        "n": n, "per-spk": per_spk, "evenly": evenly, "utt-list": utt_list, "spk-list": spk_list,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    if len(given) != 1:
        raise UserError(f"give one of {', '.join(f'--{name}' for name in given or options)}")
    data = load_source(source)
    ((how, value),) = given.items()
    tables = select(data, choose(data, how, value, seed))
    notes = derive_data_dir(target, tables, data)
    kept, names = tables["utt2spk"], set(tables["utt2spk"].values())
    print(
        f"{target}: {len(kept)} of {len(data.utt2spk)} utterances, "
        f"{len(names)} of {len(data.spk2utt)} speakers"
        + (f", {len(tables.get('trials', []))} of {len(data.trials)} trials" if data.trials else "")
        + (f" (seed {seed})" if n or per_spk else ""), *notes, sep="\n"
    )  # fmt: skip
