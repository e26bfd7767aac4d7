"""The files of a Kaldi data directory, the audio that they name, and what can be wrong."""

import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from utils.cli import UserError
from utils.tables import (
    StrPath,
    few,
    invert,
    scan_lines,
    sort_ids,
    split_fields,
    split_key,
    to_number,
)

# ---- Audio files: length, sampling rate, and whether they can be used.


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """Length and rate (Hz) of an audio file, 0 if unknown; `problem`: empty for a good file."""

    seconds: float
    rate: int
    problem: str


def probe_audio(path: StrPath) -> AudioInfo:
    """Open one audio file, and count the samples that can be decoded."""
    from utils.audiofile import AudioError, AudioFile  # tables alone need no audio library

    try:
        found = AudioFile.open_mono(path)
    except AudioError as error:
        return AudioInfo(0.0, 0, str(error))
    return AudioInfo(found.seconds, found.rate, "")


# ---- Files of a Kaldi data directory: the form of a line, and what its key and its value may be.

Key = Literal["utterance", "speaker", "recording"]
NOTES = "notes.txt"  # faults, by utterance; absent where there are none
OTHER = "other"  # sex of people who are in no list and no group of women or of men
GENDERS = ("m", "f", OTHER)
LABELS = ("target", "nontarget")
SEXES = {"female": "f", "male": "m"} | dict.fromkeys(
    ("o", "x", "d", "diverse", "divers", "non-binary", "nonbinary"), OTHER
)
EMOTIONS = {  # short names and models' names of the emotions that data directories name in full
    "ang": "anger", "angry": "anger", "hap": "happiness", "happy": "happiness",
    "exc": "happiness", "neu": "neutral", "sad": "sadness", "fea": "fear", "fearful": "fear",
    "dis": "disgust", "bor": "boredom", "sur": "surprise", "surprised": "surprise",
}  # fmt: skip


def _form(right: str, fault: str) -> Callable[[str], str]:
    """Check of a value's form, a regular expression; fault: what is said of another."""
    return lambda value: "" if re.fullmatch(right, value) else fault.format(value)


_gender = _form("|".join(GENDERS), f"the gender is {{!r}}; only m, f and {OTHER} are known")
_age = _form("0*([0-9]{1,2}|1[01][0-9]|120)", "the age is {!r}; whole years are expected")
_frames = _form("0*[1-9][0-9]*", "the number of frames is {!r}; a whole number from 1 is expected")
_side = _form(
    r"[^ \t]+[ \t]+([A-Z]|[0-9]+)", "{!r} is not a file and its channel, such as A, B or 1"
)
_label = _form("|".join(LABELS), "label {!r} is neither target nor nontarget")


def _duration(value: str) -> str:
    return (
        "" if to_number(value) > 0 else f"the duration is {value!r}; seconds above 0 are expected"
    )


def _segment(value: str) -> str:
    _, start, end = split_fields(value)
    if end != "-1" and to_number(start) >= to_number(end) > 0:  # -1: to the end of the recording
        return f"the segment ends ({end}) before it starts ({start})"
    right = to_number(start) >= 0 and (end == "-1" or to_number(end) > 0)
    return "" if right else f"from {start} to {end} is not a time span in seconds"


def check_name(utt: str) -> str:
    """Fault of an utterance id, or an empty string."""
    unfit = "/" in utt or utt.startswith(".") or not utt.isprintable()
    fault = f"utterance {utt!r} cannot name a file: no / or invisible character, no . in front"
    return fault if unfit else ""


@dataclass(frozen=True)
class FileSpec:
    """Table of a data directory: `<key> <value>` lines, sorted by key, each key once.

    `fewest` and `most` bound the number of fields, the key included (`most` None: no bound).
    `complete` tables have a line for every utterance, speaker or recording. `check` returns the
    fault of a value, or an empty string. A key of trials has two fields, and ends with the
    utterance.
    """

    key: Key
    fewest: int = 2
    most: int | None = 2
    complete: bool = True
    check: Callable[[str], str] | None = None

    def noun(self, segmented: bool) -> str:
        """Kind of the keys for a reader: recordings are utterances where there are no segments."""
        return "utterance" if self.key == "recording" and not segmented else self.key

    @property
    def fields(self) -> str:
        """Allowed number of fields in words."""
        return f"{self.fewest}{' or more' if self.most is None else ''}"


OTHER_NAMES = {"utt2emotion": "utt2emo"}  # of the VoicePrivacy challenges
# A recording is an utterance where there is no `segments`.
FILES: dict[str, FileSpec] = {
    "utt2spk": FileSpec("utterance"),
    "spk2utt": FileSpec("speaker", most=None),
    "wav.scp": FileSpec("recording", most=None),
    "segments": FileSpec("utterance", 4, 4, check=_segment),
    "text": FileSpec("utterance", 1, None),
    "spk2gender": FileSpec("speaker", check=_gender),
    "spk2age": FileSpec("speaker", check=_age),
    "utt2dur": FileSpec("utterance", check=_duration),
    "reco2dur": FileSpec("recording", check=_duration),
    "utt2num_frames": FileSpec("utterance", check=_frames),
    "feats.scp": FileSpec("utterance", most=None),
    "vad.scp": FileSpec("utterance", most=None),
    "cmvn.scp": FileSpec("speaker", most=None),
    "utt2uniq": FileSpec("utterance"),
    "utt2lang": FileSpec("utterance"),
    "utt2emotion": FileSpec("utterance"),
    "spk2fold": FileSpec("speaker", complete=False),
    "utt2warp": FileSpec("utterance"),
    "spk2warp": FileSpec("speaker"),
    "reco2file_and_channel": FileSpec("recording", 3, 3, check=_side),
    "enrolls": FileSpec("utterance", 1, None, complete=False),
    "trials": FileSpec("utterance", 3, 3, complete=False, check=_label),
}


def spoken(key: str) -> str:
    """Id in a key: its own, but of a trial the utterance."""
    return key.rpartition(" ")[2]


# ---- What is wrong with a data directory: file, line and advice. The same is found for `load`,
# which stops at the first problem that is not BEARABLE, for `validate`, which lists all, and for
# `fix`, which mends those in MENDED.

SAMPLE_RATE = 16000
BEARABLE = ("end", "order")  # for who reads a table
MENDED = {
    "mark": "byte-order mark removed",
    "CRLF": "Windows line ends (CR LF) made plain",
    "end": "line end added to the last line",
    "blank": "empty lines removed",
    "repeated": "repeated lines removed",
    "order": "sorted (LC_ALL=C)",
}


@dataclass(frozen=True)
class Problem:
    """Finding. `kind` groups similar ones of a file; one that is not `fatal` is a warning."""

    path: Path
    line: int | None
    kind: str
    message: str
    advice: str = ""
    fatal: bool = True

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else f"{self.path}"
        return f"{place}: {self.message}" + (f"; {self.advice}" if self.advice else "")


class FileTable:
    """File of a data directory as it is: rows (key -> rest of the line) in its order, the first of
    each key, the line of each, and the problems of its lines."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path, self.spec, self.rows = path, FILES[name or path.name], dict[str, str]()
        self.problems: list[Problem] = []
        self._numbers, self._repeated = array("L"), list[tuple[int, str, str]]()
        try:
            for number, line in scan_lines(path, self._tell):
                self._add(number, line)
        except UserError as error:
            reason = str(error).removeprefix(f"{path}: ")
            self._tell(None, "unreadable", reason, "correct or remove it")
        if not self.rows and not self.problems:
            self._tell(None, "empty", "is empty", "make it again")
        self._check_keys()

    @cached_property
    def lines(self) -> dict[str, int]:
        """Number of the line of each key."""
        return dict(zip(self.rows, self._numbers, strict=True))

    @property
    def fix(self) -> str:
        """Advice for what the program mends."""
        return f"fix it with: utils/fix_data_dir.py {self.path.parent}"

    def problem(
        self, key: str, kind: str, message: str, advice: str, fatal: bool = True
    ) -> Problem:
        """Problem of a row."""
        return Problem(self.path, self.lines[key], kind, message, advice, fatal)

    def _tell(self, line: int | None, kind: str, message: str, advice: str = "") -> None:
        self.problems.append(Problem(self.path, line, kind, message, advice))

    def _add(self, number: int, line: str) -> None:
        fields, spec = split_fields(line), self.spec
        right = fields and spec.fewest <= len(fields) <= (spec.most or len(fields))
        if not right:
            kind, advice = ("fields", "correct the line") if fields else ("blank", self.fix)
            message = f"{len(fields)} fields where {spec.fields} are expected"
            self._tell(number, kind, message, advice)
            if not fields:
                return
        if self.path.name == "trials":
            key, value = " ".join(fields[:2]), " ".join(fields[2:])
        else:
            key, value = split_key(line)
        if self.path.name == "spk2gender":
            value = SEXES.get(value.lower(), value.lower())  # MLS and IEMOCAP have F and M
        elif self.path.name == OTHER_NAMES["utt2emotion"]:
            value = EMOTIONS.get(value.lower(), value)
        if key in self.rows:
            self._repeated.append((number, key, value))
            return
        self.rows[key] = value
        self._numbers.append(number)
        if self.path.name == "utt2spk" and (message := check_name(key)):
            self._tell(number, "name", message, "rename it in all files of the folder")
        if right and spec.check and (message := spec.check(value)):
            self._tell(number, "value", f"{key}: {message}", "correct the line")

    def _check_keys(self) -> None:
        for number, key, value in self._repeated:
            same = self.rows[key] == value
            kind, what = (
                ("repeated", "the same line") if same else ("duplicate", "a different value")
            )
            message = f"{key} is listed twice: {what} stands on line {self.lines[key]}"
            self._tell(number, kind, message, "keep the right line")
        for before, key in pairwise(self.rows):
            if key < before and self.path.name != "trials":
                message = f"not sorted (LC_ALL=C): {key} follows {before}"
                self._tell(self.lines[key], "order", message, self.fix)


def read_tables(directory: Path) -> dict[str, FileTable]:
    """Known files of a data directory by name, with the problems of each. UserError without it."""
    if not directory.is_dir():
        raise UserError(f"{directory}: no such data directory")
    found = {}
    for name in FILES:
        for called in (name, OTHER_NAMES.get(name, name)):
            if name not in found and os.path.lexists(directory / called):
                found[name] = FileTable(directory / called, name)
    return found


def validate_data_dir(
    path: StrPath,
    *,
    need: Collection[str] = ("wav.scp", "utt2spk", "spk2utt"),
    audio: bool = True,
    models: StrPath | None = None,
) -> list[Problem]:
    """Every problem of a data directory, in the order of its files.

    need: names of files that must be there.
    audio: open each audio file (existence is always checked).
    models: data directory of the enrolled speakers that `trials` names; by default
    `<E>_enrolls<system>` beside `<E>_trials_{f,m}<system>` where it exists.
    """
    directory = Path(path)
    tables = read_tables(directory)
    return [
        *find_problems(directory, tables, need),
        *_check_speaker_order(tables),
        *_check_audio(tables, audio),
        *_check_trials(directory, tables, models),
    ]


def find_problems(
    directory: Path, tables: Mapping[str, FileTable], need: Collection[str]
) -> Iterator[Problem]:
    """Missing files, and the problems of lines and of ids."""
    for name in need:
        if name not in tables:
            makers = {"spk2utt": "fix_data_dir.py", "utt2dur": f"check_audio.py {directory}"}
            advice = f"write it: {FILES[name].fields} fields a line"
            if name in makers:
                advice = f"make it with: utils/{makers[name]} {directory}"
            yield Problem(directory / name, None, "missing", "is missing", advice)
    for table in tables.values():
        yield from table.problems
    if "utt2spk" in tables:
        yield from _check_ids(tables, tables["utt2spk"].rows)


def _check_ids(tables: Mapping[str, FileTable], utt2spk: Mapping[str, str]) -> Iterator[Problem]:
    """Check each table against the utterances, speakers and recordings of utt2spk and segments."""
    segments, spk2utt = tables.get("segments"), invert(utt2spk)
    recordings = {split_fields(row)[0] for row in segments.rows.values() if row} if segments else {}
    expected: dict[Key, Collection[str]] = {
        "utterance": utt2spk, "speaker": spk2utt, "recording": recordings or utt2spk,
    }  # fmt: skip
    for table in tables.values():
        wanted, what = expected[table.spec.key], table.spec.noun(segments is not None)
        origin = "segments" if what == "recording" else "utt2spk"
        for key in table.rows:
            if key not in wanted and spoken(key) not in wanted:
                message = f"{what} {spoken(key)} is not in {origin}"
                yield table.problem(key, "unknown id", message, table.fix)
        missing = [key for key in wanted if key not in table.rows] if table.spec.complete else ()
        for key in sort_ids(missing):
            message = f"{what} {key} of {origin} has no line"
            advice = f"add its line, or: utils/fix_data_dir.py --allow-drop N {table.path.parent}"
            yield Problem(table.path, None, "missing id", message, advice)
    if "spk2utt" in tables:
        yield from _check_spk2utt(tables["spk2utt"], spk2utt)


def _check_spk2utt(table: FileTable, spk2utt: Mapping[str, list[str]]) -> Iterator[Problem]:
    for spk, row in table.rows.items():
        listed, own = split_fields(row), spk2utt.get(spk, [])
        if sort_ids(listed) != own:
            wrong = (Counter(listed) - Counter(own)) | (Counter(own) - Counter(listed))
            message = f"{spk}: does not agree with utt2spk on {few(sort_ids(wrong))}"
            yield table.problem(spk, "spk2utt", message, table.fix)


def _check_speaker_order(tables: Mapping[str, FileTable]) -> Iterator[Problem]:
    if (table := tables.get("utt2spk")) is None:
        return
    for utt, spk in table.rows.items():
        if not utt.startswith(spk):
            message = f"speaker {spk} is not the beginning of its utterance {utt}"
            advice = "name utterances <speaker>-<rest> (utils/copy_data_dir.py --spk-as-prefix)"
            yield table.problem(utt, "prefix", message, advice)


def _check_audio(tables: Mapping[str, FileTable], opened: bool) -> Iterator[Problem]:
    if (table := tables.get("wav.scp")) is None:
        return
    files = {key: os.path.realpath(name) for key, name in table.rows.items()}
    for keys in invert(files).values():
        if len(keys) > 1:
            every = len(keys) == len(table.rows)
            whose = "all ids have" if every else f"{few(keys)} have"
            message = f"{whose} the same audio file {table.rows[keys[0]]}"
            yield table.problem(keys[0], "same file", message, "check the paths", every)
    rates = Counter[int]()
    for key, name in table.rows.items():
        if not name or not (opened or name.endswith("|") or not os.access(name, os.R_OK)):
            continue  # without a name it has a wrong number of fields
        info = probe_audio(name)
        rates[info.rate] += 1
        if info.problem:
            message = f"{key}: audio file {name} {info.problem}"
            yield table.problem(key, "audio", message, "replace the file or drop the utterance")
    for rate, count in rates.items():
        if rate not in (0, SAMPLE_RATE):
            message = (
                f"{count} of {len(table.rows)} files are sampled at {rate} Hz, not {SAMPLE_RATE}"
            )
            yield Problem(table.path, None, "rate", message, "they will be resampled", fatal=False)


def _check_trials(
    directory: Path, tables: Mapping[str, FileTable], models: StrPath | None
) -> Iterator[Problem]:
    if (table := tables.get("trials")) is None:
        return
    utt2spk = tables["utt2spk"].rows if "utt2spk" in tables else {}
    home = _enrolment(directory, models)
    enrolled = {*home["utt2spk"].rows.values()} if home else ()
    heard = home["enrolls"].rows if "enrolls" in home else ()
    sexes, of = tables.get("spk2gender"), re.search("_trials_([fm])(_|$)", directory.name)
    if sexes and of:
        for spk, sex in sexes.rows.items():
            if sex != of[1]:
                message = f"speaker {spk} is {sex}, but the name of the folder says {of[1]}"
                yield sexes.problem(spk, "sex", message, "make the set again")
    wav, other = tables.get("wav.scp"), home.get("wav.scp")
    if wav and other and "segments" not in tables:
        yield from _check_apart(wav, other, heard or other.rows)
    for key, label in table.rows.items():
        model, _, utt = key.partition(" ")
        message = ""
        if home and model not in enrolled:
            message = f"speaker {model} is not enrolled"
        elif enrolled and utt in utt2spk and (utt2spk[utt] == model) != (label == "target"):
            message = f"{label}, but {utt} is spoken by {utt2spk[utt]} and {model} is enrolled"
        elif utt in heard:
            message = f"{utt} is also an enrolment utterance"
        if message:
            yield table.problem(key, "trial", message, "make the trials again")
    for label in LABELS:
        if label not in table.rows.values():
            message = f"has no {label} trial, so no error rate can be computed"
            yield Problem(table.path, None, "no trials", message, "make the trials again")


def _check_apart(
    table: FileTable, other: FileTable, enrolled: Collection[str]
) -> Iterator[Problem]:
    """Check that no file is enrolled under another id, by the content of those of one size."""
    from utils.digests import digest_file  # few tables need it

    def size(name: str) -> int:
        return os.access(name, os.R_OK) and os.path.getsize(name)  # noqa: PTH202

    files = {name: utt for utt, name in other.rows.items() if utt in enrolled and size(name)}
    sizes, known = {*map(size, files)}, {digest_file(name): files[name] for name in files}
    for utt, name in table.rows.items():
        if size(name) in sizes and (first := known.get(digest_file(name))):
            message = f"{utt} is the same recording as {first} of {other.path}"
            advice = "leave one out, or a trial compares it with itself"
            yield table.problem(utt, "same recording", message, advice)


def _enrolment(directory: Path, models: StrPath | None) -> Mapping[str, FileTable]:
    """Tables of the speakers that trials may name; none where they are not known."""
    if models is None:
        match = re.fullmatch(r"(.+)_trials(?:_[fm])?(_.+)?", directory.name)
        names = [f"{match[1]}_enrolls{match[2] or ''}", f"{match[1]}_enrolls"] if match else []
        folders = map(directory.with_name, names)
        models = next((path for path in folders if (path / "utt2spk").is_file()), None)
        if models is None:
            return {}
    if not (path := Path(models) / "utt2spk").is_file():
        raise UserError(f"{path}: is missing; it names the enrolled speakers")
    return read_tables(path.parent)
