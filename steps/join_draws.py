#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Join several draws of one protected set into one data directory, for attackers who train.

Each DRAW is a folder of steps/anonymise.py. The first keeps its utterance ids; those of the n-th
further one end in -draw<n>. utt2uniq gives what each utterance was called before protection, and
conf.json is that of the first, with the draws of all.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.datachecks import FILES
from utils.datadir import load_data_dir, write_data_dir
from utils.options import OutFolder
from utils.tables import read_json_object, write_json

# Of one draw only; what all draws of a set share:
SAME = ("system", "key_level", "dataset", "seed")


@program
def main(
    out: OutFolder, draws: Annotated[Sequence[Path], "The draws, the first first", "DRAW"]
) -> None:
    tables: dict[str, dict[str, str]] = {"utt2uniq": {}}
    confs = [read_json_object(path / "conf.json", "protect the set again") for path in draws]
    for n, (path, conf) in enumerate(zip(draws, confs, strict=True)):
        if differ := [name for name in SAME if conf.get(name) != confs[0].get(name)]:
            raise UserError(f"{path}: is not a draw of {draws[0]}: another {differ[0]}")
        data = load_data_dir(path)
        suffix = f"-draw{n}" if n else ""
        for name, table in data.tables.items():
            own = "" if FILES[name].key == "speaker" else suffix
            new = {f"{key}{own}": value for key, value in table.items()}
            tables.setdefault(name, {}).update(new)
        tables["utt2uniq"] |= {f"{utt}{suffix}": utt for utt in data.utt2spk}
    numbers = [conf.get("draw") for conf in confs]
    if len(set(map(str, numbers))) < len(numbers):
        raise UserError(f"{out}: two of the draws have the same number: {numbers}")
    write_json(out / "conf.json", confs[0] | {"draw": numbers}, indent=2, sort_keys=True)
    write_data_dir(out, tables)
    utts = tables["utt2spk"]
    print(
        f"{out}: {len(utts)} utterances of {len(set(utts.values()))} speakers, {len(draws)} draws"
    )
