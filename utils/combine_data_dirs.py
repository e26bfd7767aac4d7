#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Combine data directories into a new one: DST first, then the sources, as in Kaldi.

An utterance (or recording) that two sources have is an error, as is a speaker whose gender differs.
Other speakers of one id in several sources are one person; they are counted.
A table that one of the sources lacks is left out, and named; enrolls and trials are joined as they
are.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.datachecks import FILES
from utils.datadir import DataDir, Tables, derive_data_dir, load_source
from utils.options import TargetFolder
from utils.tables import few, sort_ids


def combine(sources: Sequence[DataDir]) -> Tables:
    """Joined tables of all sources; UserError where two of them disagree or overlap."""
    names = set().union(*(source.tables for source in sources))
    everywhere = {name for name in names if all(name in source.tables for source in sources)}
    if "segments" in names - everywhere:
        raise UserError("some sources have segments and some have not; cut the audio first")
    tables: Tables = {}
    for name in sorted(everywhere | (names & {"enrolls", "trials"})):
        tables[name] = {}
        for source in sources:
            _join(name, tables[name], source, sources)
    return tables


def _join(name: str, table: dict[str, str], source: DataDir, sources: Sequence[DataDir]) -> None:
    new = source.tables.get(name, {})
    common = sort_ids(key for key in new if key in table)
    if FILES[name].key == "speaker":
        common = [key for key in common if table[key] != new[key]]
    if common:
        first = next(other for other in sources if common[0] in other.tables.get(name, {}))
        what = f"{FILES[name].noun('segments' in source.tables)} {few(common, 1)}"
        why = " with another value"
        if FILES[name].key != "speaker":
            why = "; give one source other ids with utils/copy_data_dir.py"
        raise UserError(f"{source.path / name}: {what}: also in {first.path}{why}")
    table.update(new)


@program
def main(
    target: TargetFolder,
    source_dirs: Annotated[Sequence[str], "The data directories that are read", "SRC"],
) -> None:  # fmt: skip
    sources = [load_source(path) for path in source_dirs]
    tables = combine(sources)
    notes = derive_data_dir(target, tables, *sources)
    sizes = " + ".join(str(len(source.utt2spk)) for source in sources)
    seen = Counter(spk for source in sources for spk in source.spk2utt)
    if shared := [spk for spk, count in seen.items() if count > 1]:
        notes.insert(
            0,
            f"{target}: {len(shared)} speakers are in several sources, each as one person: "
            f"{min(shared)} ...",
        )
    print(
        f"{target}: {sizes} = {len(tables['utt2spk'])} utterances, {len(seen)} speakers",
        *notes,
        sep="\n",
    )
