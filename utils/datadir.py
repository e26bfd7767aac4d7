"""Kaldi data directories: loaded with checks, cut into parts, written atomically."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from utils.cli import UserError, refusing
from utils.datachecks import BEARABLE, FILES, OTHER_NAMES, find_problems, read_tables, spoken
from utils.tables import (
    StrPath,
    few,
    invert,
    is_there,
    read_headed,
    read_rows,
    sort_ids,
    split_fields,
    write_id_lists,
    write_map,
)

# ---- Kaldi data directories: checked loading, choice of utterances, atomic writing.
#
# `load_data_dir` stops at the first problem; `utils/validate_data_dir.py` lists them all.

Tables = dict[str, dict[str, str]]
Trial = tuple[str, str, str]  # enrolled speaker, utterance, target or nontarget


@dataclass(frozen=True)
class DataDir:
    """Data directory in memory. Tables keep the order of their files.

    tables: file name -> key -> rest of the line, for every known file but spk2utt
    (`utils/datachecks.py`). Properties give the usual ones in their own types; a missing table is
    None (wav: empty).
    """

    path: Path
    tables: Tables

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
        """speaker -> m, f or other."""
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

    @cached_property
    def trials(self) -> list[Trial] | None:
        """Enrolled speaker, utterance, and target or nontarget."""
        if (table := self.tables.get("trials")) is None:
            return None
        rows = ((key.split(" "), label) for key, label in table.items())
        return [(spk, utt, label) for (spk, utt), label in rows]


def load_data_dir(
    path: StrPath,
    *,
    need: Collection[str] = ("wav.scp", "utt2spk"),
    allow_segments: bool = False,
    not_speakers_of: Sequence[Path] = (),
) -> DataDir:
    """Read every known table of a data directory and check that their ids agree.

    `need` names the required files (utt2spk always is). A directory with `segments` is refused
    unless `allow_segments`: its wav.scp is not keyed by utterance. Raises UserError at the first
    problem, with file and line, and for a speaker who is also in a set of `not_speakers_of`.
    """
    directory = Path(path)
    tables = read_tables(directory)
    if "segments" in tables and not allow_segments:
        raise UserError(
            f"{directory / 'segments'}: segments are not read here; cut the audio first"
        )
    for problem in find_problems(directory, tables, (*need, "utt2spk")):
        if problem.kind not in BEARABLE:
            raise UserError(str(problem))
    data = DataDir(directory, {name: t.rows for name, t in tables.items() if name != "spk2utt"})
    check_unseen(data.utt2spk.values(), directory, not_speakers_of)
    return data


def read_noted(
    path: StrPath, columns: Sequence[str], utts: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Read columns of a table such as pseudo.tsv, which has a line for each of `utts`."""
    rows = read_headed(path)
    if difference := describe_difference(rows, utts, "utterance"):
        raise UserError(f"{path}: {difference}; make the folder again")
    with refusing(f"{path}:1: no column {{}}; make the folder again", KeyError):
        return {utt: tuple(row[name] for name in columns) for utt, row in rows.items()}


def write_data_dir(
    path: StrPath,
    tables: Mapping[str, Mapping[str, object]],
    trials: Iterable[Trial] | None = None,
) -> None:
    """Write tables (file name -> key -> value) and spk2utt, sorted; wav.scp goes first, comes last.

    Known files that are not in `tables` are removed, so that nothing of an older directory remains;
    `trials` are another form of that table. A killed run leaves no wav.scp.
    """
    directory = Path(path)
    if trials is not None:
        tables = {**tables, "trials": {f"{spk} {utt}": label for spk, utt, label in trials}}
    if unknown := [name for name in tables if name not in FILES]:
        raise ValueError(f"not tables of a data directory: {unknown}")
    utt2spk = {utt: str(spk) for utt, spk in tables["utt2spk"].items()}
    if not utt2spk:
        raise UserError(f"{path}: not written: it would hold no utterance")
    (directory / "wav.scp").unlink(missing_ok=True)
    for name in (*FILES, *OTHER_NAMES.values()):
        if name not in tables:
            (directory / name).unlink(missing_ok=True)
    for name, table in tables.items():
        if name not in ("wav.scp", "spk2utt"):
            write_map(directory / name, table, blanks=name == "trials")
    write_id_lists(directory / "spk2utt", invert(utt2spk))
    if "wav.scp" in tables:
        write_map(directory / "wav.scp", tables["wav.scp"])


def select(data: DataDir, utts: Collection[str]) -> Tables:
    """Cut tables to some utterances, for `write_data_dir`.

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
    if trials := data.tables.get("trials"):
        tables["trials"] = {key: trials[key] for key in trials if spoken(key) in chosen}
    return {name: table for name, table in tables.items() if table or FILES[name].complete}


def load_source(path: StrPath) -> DataDir:
    """Read a data directory of which another is made; it may lack audio, or have segments."""
    return load_data_dir(path, need=("utt2spk",), allow_segments=True)


def derive_data_dir(target: Path, tables: Tables, *sources: DataDir) -> list[str]:
    """Write the data directory that was made of `sources`; returns, in a line for each of them,
    which of its files are left behind. UserError if it is one of them."""
    if any(source.path.resolve() == target.resolve() for source in sources):
        raise UserError(f"{target}: is the source itself; give another folder")
    write_data_dir(target, tables)
    notes = []
    for source in sources:
        files = {path.name for path in source.path.glob("[!.]*") if path.is_file()}
        carried = {"spk2utt", *tables, *(OTHER_NAMES.get(name, name) for name in tables)}
        if left := sort_ids(files - carried):
            notes.append(f"{target}: not carried over from {source.path}: {' '.join(left)}")
    return notes


def describe_difference(got: Collection[str], expected: Collection[str], what: str) -> str:
    """`3 of 40 utterances missing (a b c), 1 utterance unknown (x)`; empty where the ids agree."""
    missing = sort_ids(set(expected) - set(got))
    unknown = sort_ids(set(got) - set(expected))
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(expected)} {what}s missing ({few(missing)})")
    if unknown:
        what += "s" * (len(unknown) > 1)
        parts.append(f"{len(unknown)} {what} unknown ({few(unknown)})")
    return ", ".join(parts)


# ---- Separation of speakers: nobody on whom a model is tested may be in its training data.

TRAINING_SPEAKERS = "spklist"  # in the folder of a model whose training speakers are all known
VALIDATION_SPEAKERS = "validlist"  # those of them whom no weight was learnt from


def check_unseen(speakers: Iterable[str], where: Path, tested: Sequence[Path]) -> None:
    """Raise a UserError that names the first of `speakers` (of `where`) in a set of `tested`."""
    training = set(speakers)
    for path in tested:
        found = load_data_dir(path, need=("utt2spk",)).utt2spk.values()
        check_apart(training, where, set(found), path)


def check_apart(
    training: AbstractSet[str], where: Path, tested: AbstractSet[str], path: Path
) -> None:
    """Raise a UserError for the first training speaker (in `where`) who is tested (in `path`)."""
    if common := sort_ids(training & tested):
        raise UserError(
            f"{where}: speaker {common[0]} ({len(common)} in all) is also in {path}; who is "
            "tested must not be in training: take the speaker out of one of them"
        )


def write_training_speakers(model: Path, speakers: Iterable[str], *before: Path | None) -> None:
    """Write spklist: training speakers of a model, and of the models `before` behind it.

    There is no list if one of these has unknown training speakers.
    """
    known = set(speakers)
    for found in (read_training_speakers(path) for path in before if path is not None):
        if found is None:
            (model / TRAINING_SPEAKERS).unlink(missing_ok=True)
            return
        known.update(found)
    write_map(model / TRAINING_SPEAKERS, dict.fromkeys(known, ""))


def read_training_speakers(model: Path, name: str = TRAINING_SPEAKERS) -> list[str] | None:
    """Training speakers of a model; None where it has no list."""
    path = model / name
    return [fields[0] for _, fields in read_rows(path, 1)] if is_there(path) else None


def write_validation_speakers(model: Path, speakers: Iterable[str], before: Path | None) -> None:
    """Write validlist: speakers held out of a model's training, and of that of the model `before`
    it, which may have learnt from them."""
    known = set(speakers)
    if before is not None:
        heard = read_training_speakers(before) or []
        known -= {*heard}.difference(read_validation_speakers(before))
    write_map(model / VALIDATION_SPEAKERS, dict.fromkeys(known, ""))


def read_validation_speakers(model: Path) -> list[str]:
    """Speakers from whom no weight of a model was learnt; none if the model has no list."""
    return read_training_speakers(model, VALIDATION_SPEAKERS) or []


# ---- Choice and division of the utterances of a data directory, independent of order and machine.


def draw(ids: Iterable[str], count: int, seed: int, purpose: str) -> list[str]:
    """Draw `count` ids at random without replacement, in C order.

    An id is drawn by the rank of its own hash, so one more id in the data changes at most one drawn
    id. Raises UserError when there are fewer than `count`.
    """
    from utils.seeds import derive_seed  # hashlib takes long to load

    ranked = sorted(sort_ids(ids), key=lambda name: derive_seed(seed, "subset", purpose, name))
    if not 1 <= count <= len(ranked):
        raise UserError(f"{count} {purpose}s are asked for; there are {len(ranked)}")
    return sort_ids(ranked[:count])


def divide(
    groups: Mapping[str, Sequence[str]], weights: Mapping[str, float], n: int
) -> list[set[str]]:
    """Divide groups of utterances into at most n parts of about equal weight, groups kept whole.

    The heaviest group first, each into the part that is lightest so far; ties go by id and by
    number of the part. There are never more parts than groups, so no part is empty.
    """
    parts: list[set[str]] = [set() for _ in range(min(n, len(groups)))]
    loads = [0.0] * len(parts)
    weight = {name: sum(weights[utt] for utt in utts) for name, utts in groups.items()}
    for name in sorted(sort_ids(groups), key=lambda name: -weight[name]):
        lightest = min(
            range(len(parts)), key=lambda index: (loads[index], len(parts[index]), index)
        )
        parts[lightest].update(groups[name])
        loads[lightest] += weight[name]
    return parts
