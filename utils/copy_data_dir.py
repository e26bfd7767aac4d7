#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Copy a data directory, with other ids if wished: affixes, or utterances named after speakers.

Where utterance ids change, utt2uniq (new id, original id) is written; recording ids stay where
there are segments. Trials are renamed alike, their enrolled speakers with the speakers' affixes. If
speaker ids began their utterance ids before, they must still do so after: --spk-prefix needs the
same --utt-prefix.
"""

from collections.abc import Callable, Mapping
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.datachecks import FILES
from utils.datadir import DataDir, Tables, derive_data_dir, load_source
from utils.options import SourceFolder, TargetFolder

Rename = Callable[[str], str]


def renamed(data: DataDir, utts: Mapping[str, str], speaker: Rename) -> Tables:
    """Tables under other ids: `utts` maps utterances, `speaker` gives a speaker's new id."""
    segmented = "segments" in data.tables

    def key_of(name: str, key: str) -> str:
        kind = FILES[name].key
        if name == "trials":
            model, _, utt = key.partition(" ")
            return f"{speaker(model)} {utts[utt]}"
        if kind == "speaker":
            return speaker(key)
        return key if kind == "recording" and segmented else utts[key]

    tables = {
        name: {key_of(name, key): value for key, value in table.items()}
        for name, table in data.tables.items()
    }
    tables["utt2spk"] = {utts[utt]: speaker(spk) for utt, spk in data.utt2spk.items()}
    if any(new != old for old, new in utts.items()):
        originals = data.tables.get("utt2uniq", {})
        tables["utt2uniq"] = {new: originals.get(old, old) for old, new in utts.items()}
    return tables


def check_names(data: DataDir, tables: Tables) -> None:
    """Raise a UserError where two ids became one, or an utterance's id no longer begins with its
    speaker's."""
    if len(tables["utt2spk"]) != len(data.utt2spk):
        raise UserError(f"{data.path}: two utterances would get the same id")
    if all(utt.startswith(spk) for utt, spk in data.utt2spk.items()):
        for utt, spk in tables["utt2spk"].items():
            if not utt.startswith(spk):
                raise UserError(
                    f"{data.path}: speaker {spk} would not begin its utterance {utt}; give "
                    "--utt-prefix what --spk-prefix has, or use --spk-as-prefix"
                )


@program
def main(
    source: SourceFolder, target: TargetFolder, *,
    utt_prefix: Annotated[str, "The prefix that utterance ids get", "TEXT"] = "",
    utt_suffix: Annotated[str, "The suffix that utterance ids get", "TEXT"] = "",
    spk_prefix: Annotated[str, "The prefix that speaker ids get", "TEXT"] = "",
    spk_as_prefix: Annotated[
        bool, "Put `<speaker>-` before utterance ids that do not begin with their speaker",
    ] = False,
) -> None:  # fmt: skip
    data = load_source(source)

    def speaker(spk: str) -> str:
        return f"{spk_prefix}{spk}"

    utts = {utt: f"{utt_prefix}{utt}{utt_suffix}" for utt in data.utt2spk}
    if spk_as_prefix:
        for utt, spk in data.utt2spk.items():
            if not utts[utt].startswith(speaker(spk)):
                utts[utt] = f"{speaker(spk)}-{utts[utt]}"
    tables = renamed(data, utts, speaker)
    check_names(data, tables)
    notes = derive_data_dir(target, tables, data)
    print(f"{target}: {len(utts)} utterances, {len(data.spk2utt)} speakers", *notes, sep="\n")
