# SPDX-License-Identifier: Apache-2.0
"""Kaldi data directories: checked loading, choice of utterances, atomic writing.

`load_data_dir` stops at the first problem; `utils/validate_data_dir.py` lists them all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from utils.cli import UserError
from utils.datachecks import Problem, validate_data_dir
from utils.datafiles import FILES, LABELS, FileSpec, value_problem
from utils.tables import (
    StrPath,
    atomic_write,
    invert,
    is_there,
    read_headed,
    read_lines,
    read_rows,
    sort_ids,
    split_fields,
    split_key,
    write_id_lists,
    write_map,
)

__all__ = [
    "DataDir",
    "Problem",
    "describe_difference",
    "load_data_dir",
    "other_files",
    "read_noted",
    "read_table",
    "select",
    "validate_data_dir",
    "write_data_dir",
]

Tables = dict[str, dict[str, str]]
Trial = tuple[str, str, str]  # enrolled speaker, utterance, target or nontarget


@dataclass(frozen=True)
class DataDir:
    """Data directory in memory. Tables keep the order of their files.

    tables: file name -> key -> rest of the line, for every known file but spk2utt and trials
    (`utils/datafiles.py`). Properties give the usual ones in their own types; a missing table is
    None (wav: empty).
    """

    path: Path
    tables: Tables
    trials: list[Trial] | None = None

    @property
    def utt2spk(self) -> dict[str, str]:
        """utterance -> speaker."""
        return self.tables["utt2spk"]

    @cached_property
    def spk2utt(self) -> dict[str, list[str]]:
        """speaker -> its utterances, both in C order."""
        return invert(self.utt2spk)

    @property
    def wav(self) -> dict[str, str]:
        """utterance (recording, where there are segments) -> audio file."""
        return self.tables.get("wav.scp", {})

    @property
    def spk2gender(self) -> dict[str, str] | None:
        """speaker -> m or f."""
        return self.tables.get("spk2gender")

    @property
    def text(self) -> dict[str, str] | None:
        """utterance -> transcription."""
        return self.tables.get("text")

    @cached_property
    def utt2dur(self) -> dict[str, float] | None:
        """utterance -> seconds."""
        table = self.tables.get("utt2dur")
        return None if table is None else {utt: float(text) for utt, text in table.items()}

    @property
    def enrolls(self) -> list[str] | None:
        """Enrolment utterances."""
        table = self.tables.get("enrolls")
        return None if table is None else list(table)


def load_data_dir(
    path: StrPath,
    *,
    need: Collection[str] = ("wav.scp", "utt2spk"),
    allow_segments: bool = False,
) -> DataDir:
    """Read every known table of a data directory and check that their ids agree.

    `need` names the required files (utt2spk always is). A directory with `segments` is refused
    unless `allow_segments`: its wav.scp is not keyed by utterance. Raises UserError at the first
    problem, with file and line.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise UserError(f"{path}: no such data directory")
    for name in (*need, "utt2spk"):
        if not is_there(directory / name):
            raise UserError(f"{directory / name}: is missing, and needed here")
    if is_there(directory / "segments") and not allow_segments:
        raise UserError(
            f"{directory / 'segments'}: segments are not read here; cut the audio first"
        )
    tables = {
        name: read_table(directory / name, spec)
        for name, spec in FILES.items()
        if is_there(directory / name)
    }
    spk2utt = tables.pop("spk2utt", None)
    data = DataDir(directory, tables, _read_trial_rows(directory / "trials"))
    _check_ids(data)
    if spk2utt is not None and {
        spk: sort_ids(split_fields(utts)) for spk, utts in spk2utt.items()
    } != (data.spk2utt):
        raise UserError(
            f"{directory / 'spk2utt'}: does not agree with utt2spk; "
            f"make it again with: utils/fix_data_dir.py {path}"
        )
    return data


def read_table(path: StrPath, spec: FileSpec) -> dict[str, str]:
    """Read one table as key -> rest of the line, in file order; UserError with file and line."""
    table: dict[str, str] = {}
    name = Path(path).name
    for number, line in read_lines(path):
        key, value = split_key(line)
        n_fields = len(split_fields(line))
        if n_fields == 0 or not spec.accepts(n_fields):
            raise UserError(f"{path}:{number}: {n_fields} fields where {spec.fields} are expected")
        if key in table:
            raise UserError(f"{path}:{number}: {key} is listed twice; keep one line for it")
        if problem := value_problem(name, value):
            raise UserError(f"{path}:{number}: {key}: {problem}")
        table[key] = value
    if not table:
        raise UserError(f"{path}: is empty; make it again")
    return table


def read_noted(
    path: StrPath, columns: Sequence[str], utts: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Read columns of a table such as pseudo.tsv, which has a line for each of `utts`."""
    rows = read_headed(path)
    if difference := describe_difference(rows, utts, "utterance"):
        raise UserError(f"{path}: {difference}; make the folder again")
    try:
        return {utt: tuple(row[name] for name in columns) for utt, row in rows.items()}
    except KeyError as error:
        raise UserError(f"{path}:1: no column {error}; make the folder again") from error


def write_data_dir(
    path: StrPath,
    tables: Mapping[str, Mapping[str, object]],
    trials: Sequence[Trial] | None = None,
) -> None:
    """Write tables (file name -> key -> value) and spk2utt, sorted; wav.scp goes first, comes last.

    Known files that are not in `tables` are removed, so that nothing of an older directory remains.
    A killed run leaves no wav.scp.
    """
    directory = Path(path)
    if unknown := [name for name in tables if name not in FILES]:
        raise ValueError(f"not tables of a data directory: {unknown}")
    utt2spk = {utt: str(spk) for utt, spk in tables["utt2spk"].items()}
    if not utt2spk:
        raise UserError(f"{path}: not written: it would hold no utterance")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "wav.scp").unlink(missing_ok=True)
    for name in FILES:
        if name not in tables:
            (directory / name).unlink(missing_ok=True)
    for name, table in tables.items():
        if name not in ("wav.scp", "spk2utt"):
            write_map(directory / name, table)
    write_id_lists(directory / "spk2utt", invert(utt2spk))
    _write_trial_rows(directory / "trials", trials)
    if "wav.scp" in tables:
        write_map(directory / "wav.scp", tables["wav.scp"])


def select(data: DataDir, utts: Collection[str]) -> tuple[Tables, list[Trial] | None]:
    """Cut tables and trials to some utterances, for `write_data_dir`.

    Speakers and recordings without an utterance are dropped, and trials whose utterance is not
    chosen; `enrolls` and `trials` are left out if they become empty.
    """
    chosen = data.utt2spk.keys() & set(utts)
    segments = data.tables.get("segments")
    kept = {
        "utterance": chosen,
        "speaker": {data.utt2spk[utt] for utt in chosen},
        "recording": {split_fields(segments[utt])[0] for utt in chosen} if segments else chosen,
    }
    ordered = {what: sort_ids(keys) for what, keys in kept.items()}
    # Through the chosen keys, not the table: splitting calls this once for each part.
    tables = {
        name: {key: table[key] for key in ordered[FILES[name].key] if key in table}
        for name, table in data.tables.items()
    }
    tables = {name: table for name, table in tables.items() if table or FILES[name].complete}
    trials = [row for row in data.trials or [] if row[1] in chosen]
    return tables, trials or None


def other_files(path: Path) -> list[str]:
    """Names of the visible files that are not known tables; tools that copy leave them behind."""
    known = {*FILES, "trials"}
    return sorted(
        file.name
        for file in path.iterdir()
        if file.is_file() and file.name not in known and not file.name.startswith(".")
    )


def describe_difference(got: Collection[str], expected: Collection[str], what: str) -> str:
    """`3 of 40 utterances missing (a b c), 1 utterance unknown (x)`; empty where the ids agree."""
    missing, unknown = set(expected) - set(got), set(got) - set(expected)
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(expected)} {what}s missing {_examples(missing)}")
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        parts.append(f"{len(unknown)} {what}{plural} unknown {_examples(unknown)}")
    return ", ".join(parts)


def _examples(ids: Collection[str]) -> str:
    first = sort_ids(ids)[:3]
    return f"({' '.join(first)}{' ...' if len(ids) > len(first) else ''})"


def _check_ids(data: DataDir) -> None:
    segments = data.tables.get("segments")
    recordings = {split_fields(line)[0] for line in (segments or {}).values()}
    expected: dict[str, Collection[str]] = {
        "utterance": data.utt2spk,
        "speaker": data.spk2utt,
        "recording": recordings or data.utt2spk,
    }
    for name, table in data.tables.items():
        spec = FILES[name]
        wanted = expected[spec.key]
        if not spec.complete:
            wanted = [key for key in wanted if key in table]
        if difference := describe_difference(table, wanted, spec.noun(segments is not None)):
            raise UserError(
                f"{data.path / name}: compared with utt2spk, {difference}; "
                f"see all problems with: utils/validate_data_dir.py {data.path}"
            )
    for number, (_, utt, label) in enumerate(data.trials or [], start=1):
        if utt not in data.utt2spk or label not in LABELS:
            wrong = f"utterance {utt} is not in utt2spk" if label in LABELS else f"label {label!r}"
            raise UserError(f"{data.path / 'trials'}:{number}: {wrong}")


def _read_trial_rows(path: Path) -> list[Trial] | None:
    if not is_there(path):
        return None
    trials = [(model, utt, label) for _, (model, utt, label) in read_rows(path, 3)]
    if not trials:
        raise UserError(f"{path}: is empty; make it again")
    return trials


def _write_trial_rows(path: Path, trials: Sequence[Trial] | None) -> None:
    if trials is None:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as stream:
        stream.writelines(f"{line}\n" for line in sort_ids(" ".join(row) for row in trials))
