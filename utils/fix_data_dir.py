#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Fix a data directory: line ends, order, identical duplicates, spk2utt; drop what is incomplete.

An utterance goes when a file that should have it lacks it (wav.scp, text, utt2dur, the gender of
its speaker ...). What goes is printed with the reason, and more than --allow-drop utterances are
not dropped: then nothing is changed and the exit status is 3. A key with two different values is
an error. The files as they were are kept in DATA/.backup. Problems that remain are counted, and the
exit status is 2.
"""

import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from utils.cli import LossError, UserError, natural
from utils.commands import program
from utils.datachecks import FILES, MENDED, OTHER_NAMES, probe_audio, read_tables, validate_data_dir
from utils.datadir import DataDir, Tables, select, write_data_dir
from utils.options import DataFolder
from utils.tables import sort_ids, split_fields


def incomplete_utterances(data: DataDir, *, audio: bool) -> dict[str, str]:
    """utterance -> why it cannot stay, over all utterances that any file names."""
    segments = data.tables.get("segments")
    reasons: dict[str, str] = {}
    tables = {name: table for name, table in data.tables.items() if FILES[name].complete}
    nouns = {name: FILES[name].noun(segments is not None) for name in tables}
    named = set().union(*(tables[name] for name, noun in nouns.items() if noun == "utterance"))
    for utt in sort_ids(named):
        spk = data.utt2spk.get(utt, "")
        recording = (split_fields(segments.get(utt, "")) or [""])[0] if segments else utt
        for name, table in tables.items():
            key = {"utterance": utt, "speaker": spk, "recording": recording}[FILES[name].key]
            if key not in table:
                reasons.setdefault(utt, f"{nouns[name]} {key or '?'} is not in {name}")
        if audio and utt not in reasons and (path := data.wav.get(recording)) is not None:
            info = probe_audio(path)
            if info.problem:
                reasons[utt] = f"audio file {path} {info.problem}"
    return reasons


def drop(data: DataDir, reasons: dict[str, str]) -> tuple[Tables, list[str]]:
    """Tables without the utterances that cannot stay; notes what else is removed with them."""
    kept = [utt for utt in data.utt2spk if utt not in reasons]
    if not kept:
        raise UserError(f"{data.path}: no utterance is complete; see utils/validate_data_dir.py")
    tables, notes = select(data, kept), []
    for name, table in data.tables.items():
        gone = sort_ids(table.keys() - tables.get(name, {}).keys() - reasons.keys())
        if gone and name == "trials":
            notes.append(f"{data.path / name}: {len(gone)} of {len(table)} trials removed")
        elif gone:
            notes.append(
                f"{data.path / name}: {len(gone)} lines removed, without utterance: {gone[0]} ..."
            )
    return tables, notes


def replace_files(path: Path, tables: Tables) -> list[str]:
    """Put the mended files in place and the old ones in .backup; return the names of changed
    files."""
    beside, backup = path / f".fix.tmp.{os.getpid()}", path / ".backup"
    try:
        write_data_dir(beside, tables)
        names = (*FILES, *OTHER_NAMES.values())
        changed = [name for name in names if _content(path / name) != _content(beside / name)]
        for name in changed:
            if (path / name).exists():
                backup.mkdir(exist_ok=True)
                shutil.copy2(path / name, backup / name)
        for name in changed:
            if (beside / name).exists():
                (beside / name).replace(path / name)
            else:
                (path / name).unlink()
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return changed


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _report(path: Path, notes: list[str], changed: list[str], reasons: dict[str, str]) -> None:
    for note in notes:
        print(note)
    if changed:
        print(f"{path}: changed {' '.join(changed)} (as they were: {path / '.backup'})")
    else:
        print(f"{path}: nothing to fix")
    if reasons:
        print(f"{path}: {len(reasons)} utterances dropped")
    left = validate_data_dir(path, need=("utt2spk", "spk2utt"), audio=False)
    kinds = Counter(problem.kind for problem in left if problem.fatal)
    if kinds:
        raise UserError(
            f"{path}: {kinds.total()} problems remain ({', '.join(kinds)}); "
            f"list them with: utils/validate_data_dir.py {path}"
        )


@program
def main(
    data_dir: DataFolder, *,
    allow_drop: Annotated[
        int, "The number of utterances that may be dropped; if there are more, nothing changes",
        "N", natural,
    ] = 0,
    check_audio: Annotated[bool, "Also drop what has unusable audio"] = False,
) -> None:  # fmt: skip
    if not (data_dir / "utt2spk").is_file():
        raise UserError(f"{data_dir}/utt2spk: is missing; is {data_dir} a data directory?")
    read = {name: table for name, table in read_tables(data_dir).items() if name != "spk2utt"}
    mended = Counter[tuple[Path, str]]()
    for table in read.values():
        for problem in table.problems:
            if problem.kind not in MENDED:
                raise UserError(str(problem))
            mended[problem.path, MENDED[problem.kind]] += 1
    data = DataDir(data_dir, {name: table.rows for name, table in read.items()})
    reasons = incomplete_utterances(data, audio=check_audio)
    for utt, reason in reasons.items():
        print(f"{data_dir}: drop {utt}: {reason}", file=sys.stderr)
    if len(reasons) > allow_drop:
        total = len({*data.utt2spk, *reasons})
        raise LossError(
            f"{data_dir}: {len(reasons)} of {total} utterances are not complete (listed above); "
            f"correct the files, or drop them with --allow-drop {len(reasons)}; nothing was changed"
        )
    tables, notes = drop(data, reasons)
    changed = replace_files(data_dir, tables)
    notes = [*(f"{path}: {count} {what}" for (path, what), count in mended.items()), *notes]
    _report(data_dir, notes, changed, reasons)
