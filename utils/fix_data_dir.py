#!/usr/bin/env python3
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

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import LossError, UserError, natural, run_program
from utils.commands import program
from utils.datachecks import FILES, LABELS, probe_audio, validate_data_dir, value_problem
from utils.datadir import DataDir, Tables, Trial, select, write_data_dir
from utils.options import DataFolder
from utils.tables import BYTE_ORDER_MARK, is_there, read_bytes, sort_ids, split_fields, split_key

KNOWN = (*FILES, "trials")


def read_lines_leniently(path: Path, notes: list[str]) -> list[tuple[int, str]]:
    """The lines that are not empty, with their numbers; notes which line ends were mended."""
    try:
        content = read_bytes(path)
        text = content.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8; convert it with: iconv -t utf-8") from error
    if content.startswith(BYTE_ORDER_MARK):
        notes.append(f"{path}: byte-order mark removed")
    if "\r" in text:
        notes.append(f"{path}: {text.count(chr(13))} Windows line ends (CR LF) made plain")
    if text and not text.endswith("\n"):
        notes.append(f"{path}: line end added to the last line")
    lines = text.replace("\r\n", "\n").split("\n")
    stripped = [(number, line.strip(" \t\r")) for number, line in enumerate(lines, start=1)]
    rows = [(number, line) for number, line in stripped if line]
    if (n_empty := len(lines) - 1 - len(rows)) > 0:
        notes.append(f"{path}: {n_empty} empty lines removed")
    return rows


def read_table_leniently(path: Path, notes: list[str]) -> dict[str, str]:
    """One table, sorted, without repeated lines; UserError for what cannot be mended by a rule."""
    table: dict[str, str] = {}
    first: dict[str, int] = {}
    n_repeated = 0
    for number, line in read_lines_leniently(path, notes):
        key, value = split_key(line)
        if not FILES[path.name].accepts(n_fields := len(split_fields(line))):
            expected = FILES[path.name].fields
            raise UserError(f"{path}:{number}: {n_fields} fields where {expected} are expected")
        if problem := value_problem(path.name, value):
            raise UserError(f"{path}:{number}: {key}: {problem}")
        if table.get(key, value) != value:
            raise UserError(
                f"{path}:{number}: {key} has another value on line {first[key]}; keep the right one"
            )
        n_repeated += key in table
        table[key] = value
        first.setdefault(key, number)
    if n_repeated:
        notes.append(f"{path}: {n_repeated} repeated lines removed")
    if list(table) != sort_ids(table):
        notes.append(f"{path}: sorted (LC_ALL=C)")
    return {key: table[key] for key in sort_ids(table)}


def read_trials_leniently(path: Path, notes: list[str]) -> list[Trial] | None:
    """The trials, sorted, without repeated lines; None where there is no such file."""
    if not is_there(path):
        return None
    labels: dict[tuple[str, str], str] = {}
    rows = read_lines_leniently(path, notes)
    for number, line in rows:
        fields = split_fields(line)
        if len(fields) != 3 or fields[2] not in LABELS:
            wanted = "`<enrolled speaker> <utterance> target|nontarget`"
            raise UserError(f"{path}:{number}: {line!r} is not {wanted}")
        if labels.setdefault((fields[0], fields[1]), fields[2]) != fields[2]:
            raise UserError(f"{path}:{number}: {fields[0]} {fields[1]} has both labels")
    if len(labels) < len(rows):
        notes.append(f"{path}: {len(rows) - len(labels)} repeated lines removed")
    return [(model, utt, label) for (model, utt), label in labels.items()]


def incomplete_utterances(data: DataDir, *, audio: bool) -> dict[str, str]:
    """utterance -> why it cannot stay, over all utterances that any file names."""
    segments = data.tables.get("segments")
    reasons: dict[str, str] = {}
    tables = {name: table for name, table in data.tables.items() if FILES[name].complete}
    named = set().union(*(table for name, table in tables.items() if _has_utterances(name, data)))
    for utt in sort_ids(named):
        spk = data.utt2spk.get(utt, "")
        recording = (split_fields(segments.get(utt, "")) or [""])[0] if segments else utt
        for name, table in tables.items():
            key = {"utterance": utt, "speaker": spk, "recording": recording}[FILES[name].key]
            if key not in table:
                what = FILES[name].noun(segments is not None)
                reasons.setdefault(utt, f"{what} {key or '?'} is not in {name}")
        if audio and utt not in reasons and (path := data.wav.get(recording)) is not None:
            info = probe_audio(path)
            if info.problem:
                reasons[utt] = f"audio file {path} {info.problem}"
    return reasons


def _has_utterances(name: str, data: DataDir) -> bool:
    kind = FILES[name].key
    return kind == "utterance" or (kind == "recording" and "segments" not in data.tables)


def drop(
    data: DataDir, reasons: dict[str, str], notes: list[str]
) -> tuple[Tables, list[Trial] | None]:
    """The tables without the utterances that cannot stay; notes what else goes with them."""
    kept = [utt for utt in data.utt2spk if utt not in reasons]
    if not kept:
        raise UserError(f"{data.path}: no utterance is complete; see utils/validate_data_dir.py")
    tables, trials = select(data, kept)
    for name, table in data.tables.items():
        gone = sort_ids(set(table) - set(tables.get(name, {})) - set(reasons))
        if gone:
            notes.append(
                f"{data.path / name}: {len(gone)} lines removed, without utterance: {gone[0]} ..."
            )
    if data.trials and len(trials or []) < len(data.trials):
        n_gone = len(data.trials) - len(trials or [])
        notes.append(f"{data.path / 'trials'}: {n_gone} of {len(data.trials)} trials removed")
    return tables, trials


def replace_files(path: Path, tables: Tables, trials: list[Trial] | None) -> list[str]:
    """Put the mended files in place, the old ones in .backup; the names of those that changed."""
    beside, backup = path / f".fix.tmp.{os.getpid()}", path / ".backup"
    try:
        write_data_dir(beside, tables, trials)
        changed = [name for name in KNOWN if _content(path / name) != _content(beside / name)]
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


@program
def main(
    data_dir: DataFolder, *,
    allow_drop: Annotated[
        int, "The number of utterances that may be dropped; with more nothing is changed",
        "N", natural,
    ] = 0,
    check_audio: Annotated[bool, "Drop what has unusable audio, too"] = False,
) -> None:  # fmt: skip
    if not (data_dir / "utt2spk").is_file():
        raise UserError(f"{data_dir}/utt2spk: is missing; is {data_dir} a data directory?")
    notes: list[str] = []
    tables = {
        name: read_table_leniently(data_dir / name, notes)
        for name in FILES
        if name != "spk2utt" and is_there(data_dir / name)
    }
    data = DataDir(data_dir, tables, read_trials_leniently(data_dir / "trials", notes))
    reasons = incomplete_utterances(data, audio=check_audio)
    for utt, reason in reasons.items():
        print(f"{data_dir}: drop {utt}: {reason}", file=sys.stderr)
    if len(reasons) > allow_drop:
        total = len(set(data.utt2spk) | set(reasons))
        raise LossError(
            f"{data_dir}: {len(reasons)} of {total} utterances are not complete (listed above); "
            f"correct the files, or drop them with --allow-drop {len(reasons)}; nothing was changed"
        )
    mended = drop(data, reasons, notes)
    changed = replace_files(data_dir, *mended)
    _report(data_dir, notes, changed, reasons)


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


if __name__ == "__main__":
    run_program(main)
