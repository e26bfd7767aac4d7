#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Copy a data directory, with other ids if wished: a prefix, or utterances named after speakers.

Where utterance ids change, utt2uniq (new id, original id) is written; recording ids stay where
there are segments. Trials are renamed alike.
"""

from collections.abc import Mapping
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.datachecks import FILES
from utils.datadir import DataDir, Tables, derive_data_dir, load_source
from utils.options import SourceFolder, TargetFolder


def renamed(data: DataDir, utts: Mapping[str, str], prefix: str) -> Tables:
    """Tables under other ids: `utts` maps utterances, speakers get the prefix."""
    segmented = "segments" in data.tables

    def key_of(name: str, key: str) -> str:
        kind = FILES[name].key
        if name == "trials":
            model, _, utt = key.partition(" ")
            return f"{prefix}{model} {utts[utt]}"
        if kind == "speaker":
            return prefix + key
        return key if kind == "recording" and segmented else utts[key]

    tables = {
        name: {key_of(name, key): value for key, value in table.items()}
        for name, table in data.tables.items()
    }
    tables["utt2spk"] = {utts[utt]: prefix + spk for utt, spk in data.utt2spk.items()}
    if any(new != old for old, new in utts.items()):
        originals = data.tables.get("utt2uniq", {})
        tables["utt2uniq"] = {new: originals.get(old, old) for old, new in utts.items()}
    return tables


@program
def main(
    source: SourceFolder, target: TargetFolder, *,
    prefix: Annotated[str, "The prefix that utterance and speaker ids get", "TEXT"] = "",
    spk_as_prefix: Annotated[
        bool, "Put `<speaker>-` before utterance ids that do not begin with their speaker",
    ] = False,
) -> None:  # fmt: skip
    data = load_source(source)
    utts = {
        utt: f"{prefix}{spk}-{utt}" if spk_as_prefix and not utt.startswith(spk) else prefix + utt
        for utt, spk in data.utt2spk.items()
    }
    tables = renamed(data, utts, prefix)
    if len(tables["utt2spk"]) != len(utts):
        raise UserError(f"{source}: two utterances would get the same id")
    notes = derive_data_dir(target, tables, data)
    print(f"{target}: {len(utts)} utterances, {len(data.spk2utt)} speakers", *notes, sep="\n")
