"""Kaldi data directories: loaded with checks, cut into parts, put together, written atomically."""

import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from utils.cli import LossError, UserError
from utils.datachecks import (
    FILES,
    LABELS,
    NOTES,
    FileSpec,
    value_problem,
)
from utils.tables import (
    StrPath,
    atomic_write,
    invert,
    is_there,
    mark_timed,
    read_headed,
    read_lines,
    read_map,
    read_rows,
    sort_ids,
    split_fields,
    split_key,
    timed_in,
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

    tables: file name -> key -> rest of the line, for every known file but spk2utt and trials
    (`utils/datachecks.py`). Properties give the usual ones in their own types; a missing table is
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


# ---- Separation of speakers: nobody on whom a model is tested may be in its training data.

TRAINING_SPEAKERS = "spklist"  # in the folder of a model whose training speakers are all known


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
            f"{where}: speaker {common[0]} ({len(common)} in all) is in {path}, too; who is "
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
    with atomic_write(model / TRAINING_SPEAKERS) as stream:
        stream.writelines(f"{speaker}\n" for speaker in sort_ids(known))


def read_training_speakers(model: Path) -> list[str] | None:
    """Training speakers of a model; None where it has no list."""
    path = model / TRAINING_SPEAKERS
    return [fields[0] for _, fields in read_rows(path, 1)] if is_there(path) else None


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


def draw_per_speaker(data: DataDir, count: int, seed: int) -> list[str]:
    """Draw at most `count` utterances of each speaker."""
    if count < 1:
        raise UserError(f"{count} utterances a speaker are asked for; at least 1 is possible")
    return [
        utt
        for utts in data.spk2utt.values()
        for utt in draw(utts, min(count, len(utts)), seed, "utterance")
    ]


def evenly(ids: Sequence[str], count: int) -> list[str]:
    """Take `count` ids at even steps through the list, as Kaldi's subset_data_dir.sh does."""
    if not 1 <= count <= len(ids):
        raise UserError(f"{count} utterances are asked for; there are {len(ids)}")
    return [ids[index * len(ids) // count] for index in range(count)]


def shortest(data: DataDir, count: int) -> list[str]:
    """Choose the `count` shortest utterances by utt2dur; ties go to those that sort first."""
    seconds = data.utt2dur
    if seconds is None:
        raise UserError(
            f"{data.path}/utt2dur: is missing, so the shortest are not known; "
            f"make it with: utils/check_audio.py {data.path} {data.path}"
        )
    return sorted(sort_ids(data.utt2spk), key=lambda utt: seconds[utt])[:count]


def utterances_of(data: DataDir, speakers: Collection[str]) -> list[str]:
    """Utterances of some speakers; UserError for an unknown speaker."""
    for spk in speakers:
        if spk not in data.spk2utt:
            raise UserError(f"{data.path}/utt2spk: has no speaker {spk}")
    return [utt for spk in sort_ids(speakers) for utt in data.spk2utt[spk]]


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


def known_utterances(data: DataDir, utts: Sequence[str], source: str) -> Sequence[str]:
    """Return `utts`; UserError if the data directory lacks one."""
    if unknown := [utt for utt in utts if utt not in data.utt2spk]:
        raise UserError(
            f"{source}: {len(unknown)} of {len(utts)} utterances are not in {data.path} "
            f"(first: {unknown[0]})"
        )
    return utts


# ---- Merging the results of parallel jobs in OUT/split<N>/<J>: checked first, then moved.
#
# Nothing in OUT changes before every part has been read and checked. The parts are removed last, by
# one rename, so a killed merge can be run again. The result is the same bytes for every N.

_PIECE = re.compile(r"-c\d+$")
# A part may lack these: they name only some of the utterances.
PARTIAL = ("enrolls", "trials", "skipped.txt", NOTES)


@dataclass
class Merged:
    """Files to write: lines by file name and key, and headers by file name.

    archives: names of the .scp files whose lines point into archives of the parts. settings: JSON
    files, equal in all parts. timed: names of tables of seconds.
    """

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    archives: set[str] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)


def read_parts(out: Path, n: int) -> Merged:
    """Read and check OUT/split<n>/1 ... n; UserError names the wrong part and file."""
    logs = out / "log"
    parts = [out / f"split{n}" / str(number) for number in range(1, n + 1)]
    for part in parts:
        if not part.is_dir() or not _files_of(part):
            raise UserError(f"{part}: this job wrote nothing; see its log in {logs}")
    files = {part: _files_of(part) for part in parts}
    everywhere = sorted(set().union(*files.values()) - set(PARTIAL))
    merged = Merged()
    for part in parts:
        for name in everywhere:
            if name not in files[part]:
                raise UserError(
                    f"{part / name}: is missing, but other jobs wrote it; see the logs in {logs}"
                )
        archives: set[str] = set()
        scps = {name for name in files[part] if name.endswith(".scp")}
        for name in scps:
            archives |= _read_scp(part / name, merged, files[part])
        for name in files[part] - scps - archives:
            _read_part(part / name, merged)
        merged.timed |= timed_in(part)
    if "utt2spk" in merged.tables:
        # Made again from the whole: a speaker may have been split among the jobs.
        merged.tables.pop("spk2utt", None)
    return merged


def _files_of(part: Path) -> set[str]:
    """Names of the visible files of a part; a folder in it is an error, as it would be lost."""
    visible = [path for path in part.iterdir() if not path.name.startswith(".")]
    for path in visible:
        if not path.is_file():
            raise UserError(f"{path}: a folder cannot be merged; write its files elsewhere")
    return {path.name for path in visible if ".tmp." not in path.name}


def _read_scp(path: Path, merged: Merged, files: Collection[str]) -> set[str]:
    """Read a part; return the names of its archives in the table."""
    part, archives = os.path.abspath(path.parent), set()  # noqa: PTH100
    for key, rxfilename in read_map(path, rest_of_line=True).items():
        match = re.fullmatch(r"(.+?\.ark)(:\d+(?:\[.*\])?)?", rxfilename)
        ark = Path(match[1] if match else rxfilename)
        if Path(os.path.abspath(ark)).is_relative_to(part):  # noqa: PTH100
            if match is None or ark.name not in files:
                raise UserError(
                    f"{path}: {key}: {rxfilename} is not there, or would be lost with {path.parent}"
                )
            archives.add(ark.name)
            merged.archives.add(path.name)
        _add(path, merged, key, f"{key} {rxfilename}")
    return archives


def _read_part(path: Path, merged: Merged) -> None:
    if path.suffix == ".json":
        text = path.read_text(encoding="utf-8")
        if merged.settings.setdefault(path.name, text) != text:
            raise UserError(f"{path}: other settings than in the other parts; run all jobs again")
        return
    for number, line in read_lines(path):
        if number == 1 and line.startswith("#"):
            if merged.headers.setdefault(path.name, line) != line:
                raise UserError(f"{path}:1: another header than in the other parts")
            merged.tables.setdefault(path.name, {})
        elif not line.strip():
            raise UserError(f"{path}:{number}: empty line")
        else:
            key = " ".join(line.split()[: 2 if path.name == "trials" else 1])
            _add(path, merged, key, line)


def _add(path: Path, merged: Merged, key: str, line: str) -> None:
    table = merged.tables.setdefault(path.name, {})
    by_utterance = path.name in FILES and FILES[path.name].key == "utterance"
    if key in table and (by_utterance or table[key] != line) and path.name != "spk2utt":
        raise UserError(f"{path}: {key} is in another part too; each job must have its own")
    table[key] = line


def check_parts(
    out: Path, merged: Merged, data: DataDir, allow_loss: int, *, pieces: bool = False
) -> int:
    """Compare the ids of every table with the split data directory; return how many are missing.

    With `pieces` the utterances were cut: ids are <utt>-c<number>, and each utterance needs one.

    Raises LossError naming counts and ids when more than `allow_loss` are missing from a table, and
    UserError for ids that the data directory does not have.
    """
    worst = 0
    for name, listed in sorted(merged.tables.items()):
        table = {_PIECE.sub("", key): line for key, line in listed.items()} if pieces else listed
        expected, what = _expected_ids(out / name, table, data, merged)
        if expected is None:
            continue
        difference = describe_difference(table, expected, what)
        if set(table) - set(expected):
            raise UserError(f"{out / name}: compared with {data.path}, {difference}")
        worst = max(worst, len(expected) - len(table))
        if worst > allow_loss:
            raise LossError(
                f"{out / name}: {difference}; see the logs in {out / 'log'}, "
                f"or accept the loss with --allow-loss {worst}"
            )
    return worst


def _expected_ids(
    path: Path, keys: Collection[str], data: DataDir, merged: Merged
) -> tuple[Collection[str] | None, str]:
    """Ids that a table should have, and their kind; None where they are unknown."""
    by_kind: dict[str, Collection[str]] = {
        "utterance": data.utt2spk,
        "speaker": data.spk2utt,
        "recording": data.wav or data.utt2spk,
    }
    if path.name in PARTIAL:
        kept = merged.tables.get("utt2spk", data.utt2spk)
        if path.name == "enrolls" and data.enrolls is not None:
            return [utt for utt in data.enrolls if utt in kept], "utterance"
        if path.name == "trials" and data.trials is not None:
            return [f"{model} {utt}" for model, utt, _ in data.trials if utt in kept], "trial"
        return None, ""
    if path.name in FILES:
        spec = FILES[path.name]
        return by_kind[spec.key], spec.noun("segments" in data.tables)
    for kind, ids in by_kind.items():
        if any(key in ids for key in keys):
            return ids, kind
    raise UserError(f"{path}: its first column has no utterance and no speaker of {data.path}")


def write_merged(out: Path, n: int, merged: Merged) -> None:
    """Put the archives and tables in place, each .scp after the archives, and remove the parts."""
    for name in merged.archives:
        _write_archive(out / name, merged.tables[name])
    others = merged.tables.keys() - merged.archives
    for name in others:
        if name.endswith(".scp"):
            (out / name).unlink(missing_ok=True)
    for name, text in merged.settings.items():
        with atomic_write(out / name) as stream:
            stream.write(text)
    for name in sorted(others, key=lambda name: (name.endswith(".scp"), name == "wav.scp")):
        if name == "utt2spk":
            utt2spk = {utt: line.split()[1] for utt, line in merged.tables[name].items()}
            write_id_lists(out / "spk2utt", invert(utt2spk))
        with atomic_write(out / name) as stream:
            if name in merged.headers:
                stream.write(f"{merged.headers[name]}\n")
            stream.writelines(f"{line}\n" for line in _sorted_lines(merged.tables[name]))
    for name in merged.timed:
        mark_timed(out / name)
    _remove_leftovers(out, n)


def _sorted_lines(table: dict[str, str]) -> list[str]:
    return [table[key] for key in sort_ids(table)]


def _write_archive(scp: Path, table: dict[str, str]) -> None:
    """Gather all objects of a table's lines in one archive."""
    from utils.archives import ArchiveWriter, read_entries  # load NumPy; audio needs neither

    with ArchiveWriter(scp.with_suffix("")) as writer:
        entries = {key: table[key].partition(" ")[2] for key in sort_ids(table)}
        for key, array in read_entries(scp, entries):
            writer.write(key, array)


def remove_merged_parts(out: Path) -> bool:
    """Finish the removal that a killed merge had begun; returns whether there was one."""
    leftovers = list(out.glob(".merged.*"))
    for path in leftovers:
        shutil.rmtree(path)
    return bool(leftovers)


def _remove_leftovers(out: Path, n: int) -> None:
    """Folders of the parts, and those of interrupted runs with another N."""
    (out / f"split{n}").rename(out / f".merged.{os.getpid()}")
    for path in out.iterdir():
        if re.fullmatch(r"split\d+", path.name) and path.is_dir():
            shutil.rmtree(path)
    remove_merged_parts(out)
