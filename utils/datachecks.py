"""The files of a Kaldi data directory, the audio that they name, and what can be wrong."""

import math
import os
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Literal

from utils.cli import UserError
from utils.tables import ADVICE_FOR_MARK, StrPath, file_problem, sort_ids, split_fields, split_key

# ---- Headers of audio files: length, sampling rate, and whether the file can be used.

NO_SAMPLES = "has no samples (zero length)"
RATES = (1000, 768000)  # Hz; a higher rate means a damaged header, and resampling would never end
_STREAM_LENGTH = 0x7FFF0000  # bytes; headers of streams of unknown length announce more
_FORMAT = struct.Struct("<HHIIHH")  # code, channels, rate, bytes a second and a frame, bits
_UNPACKED = (1, 3, 0xFFFE)  # whole numbers, floats, extensible
_LONGEST = 1e6  # seconds; a streamed file without a length in its header reports an absurd one


@dataclass(frozen=True)
class AudioInfo:
    """Header of a file. `seconds`, `rate` (Hz): 0 if unknown; `problem`: empty for a good file."""

    seconds: float
    rate: int
    problem: str


def probe_audio(path: StrPath) -> AudioInfo:
    """Open one audio file, read its header, and decode its last sample, to detect a cut file."""
    import soundfile  # here: validating tables alone needs no audio library

    name = os.fspath(path)
    if name.rstrip().endswith("|"):
        return AudioInfo(0.0, 0, "is a pipe; write the audio to a file first")
    if not os.access(name, os.R_OK):
        return AudioInfo(0.0, 0, "is missing or may not be read (from the current directory)")
    if problem := file_problem(name):
        return AudioInfo(0.0, 0, problem)
    try:
        info = soundfile.info(name)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", str(error))
        return AudioInfo(0.0, 0, f"cannot be read as audio: {reason}")
    rate = int(info.samplerate)
    if not RATES[0] <= rate <= RATES[1]:
        return AudioInfo(0.0, 0, f"has a sampling rate of {rate} Hz; damaged?")
    seconds = info.frames / rate
    if not 0 < seconds < _LONGEST:
        problem = NO_SAMPLES if seconds <= 0 else "does not say its length"
        return AudioInfo(0.0, rate, problem)
    if info.channels != 1:
        return AudioInfo(seconds, rate, f"has {info.channels} channels; only mono is read")
    return AudioInfo(seconds, rate, _cut_short(name, info.frames))


def _cut_short(name: str, frames: int) -> str:
    """Whether less is in the file than its header says, which libsndfile hides for WAV."""
    import soundfile

    with Path(name).open("rb") as stream:
        told, fits = _told_by_riff(stream)
        left = os.fstat(stream.fileno()).st_size - stream.tell()
    if not fits:
        return "has a damaged header: its bytes and bits of a sample contradict each other"
    if told > left:
        return f"is truncated: its header tells of {told} bytes of samples, {left} are there"
    try:
        with soundfile.SoundFile(name) as audio:
            audio.seek(frames - 1)
            whole = len(audio.read(1)) == 1
    except (soundfile.LibsndfileError, OSError):
        whole = False
    return "" if whole else f"is truncated or damaged: its last of {frames} samples is not there"


def _told_by_riff(stream: IO[bytes]) -> tuple[int, bool]:
    """Bytes of samples that a RIFF header announces from here on, 0 for other formats and for a
    stream of unknown length; and whether a sample's bits fill its bytes."""
    head, fits = stream.read(12), True
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return 0, fits
    while len(chunk := stream.read(8)) == 8:
        kind, size = struct.unpack("<4sI", chunk)
        if kind == b"data":
            return (0 if size >= _STREAM_LENGTH else size), fits
        start = stream.tell()
        if kind == b"fmt " and len(told := stream.read(_FORMAT.size)) == _FORMAT.size:
            code, channels, _, _, frame, bits = _FORMAT.unpack(told)
            fits = code not in _UNPACKED or frame == channels * -(-bits // 8)
        stream.seek(start + size + size % 2)
    return 0, fits


# ---- Files of a Kaldi data directory: the keys of each, and the number of fields in a line.

Key = Literal["utterance", "speaker", "recording"]
NOTES = "notes.txt"  # faults, by utterance; absent where there are none


@dataclass(frozen=True)
class FileSpec:
    """Table of a data directory: `<key> <value>` lines, sorted by key, each key once.

    `fewest` and `most` bound the number of fields, the key included (`most` None: no bound).
    `complete` tables have a line for every utterance, speaker or recording.
    """

    key: Key
    fewest: int = 2
    most: int | None = 2
    complete: bool = True

    def noun(self, segmented: bool) -> str:
        """Kind of the keys for a reader: recordings are utterances where there are no segments."""
        return "utterance" if self.key == "recording" and not segmented else self.key

    def accepts(self, n_fields: int) -> bool:
        """Whether a line of that many fields is well formed."""
        return self.fewest <= n_fields and (self.most is None or n_fields <= self.most)

    @property
    def fields(self) -> str:
        """Allowed number of fields in words."""
        if self.most == self.fewest:
            return str(self.fewest)
        return f"{self.fewest} or more" if self.most is None else f"{self.fewest} to {self.most}"


# A recording is an utterance where there is no `segments`.
FILES: dict[str, FileSpec] = {
    "utt2spk": FileSpec("utterance"),
    "spk2utt": FileSpec("speaker", most=None),
    "wav.scp": FileSpec("recording", most=None),
    "segments": FileSpec("utterance", fewest=4, most=4),
    "text": FileSpec("utterance", fewest=1, most=None),
    "spk2gender": FileSpec("speaker"),
    "utt2dur": FileSpec("utterance"),
    "reco2dur": FileSpec("recording"),
    "utt2num_frames": FileSpec("utterance"),
    "feats.scp": FileSpec("utterance", most=None),
    "vad.scp": FileSpec("utterance", most=None),
    "cmvn.scp": FileSpec("speaker", most=None),
    "utt2uniq": FileSpec("utterance"),
    "utt2lang": FileSpec("utterance"),
    "utt2emotion": FileSpec("utterance"),
    "utt2warp": FileSpec("utterance"),
    "spk2warp": FileSpec("speaker"),
    "reco2file_and_channel": FileSpec("recording", fewest=4, most=4),
    "enrolls": FileSpec("utterance", fewest=1, most=None, complete=False),
}
GENDERS = ("m", "f")
LABELS = ("target", "nontarget")


def value_problem(name: str, value: str) -> str:
    """Fault of a line's value in the file `name`, or an empty string."""
    if name == "spk2gender" and value not in GENDERS:
        return f"the gender is {value!r}; only m and f are known"
    if name in ("utt2dur", "reco2dur") and not _is_positive(value):
        return f"the duration is {value!r}; seconds above 0 are expected"
    if name == "utt2num_frames" and not (value.isascii() and value.isdigit() and value.strip("0")):
        return f"the number of frames is {value!r}; a whole number from 1 is expected"
    if name == "segments":
        _, start, end = (part for part in value.replace("\t", " ").split(" ") if part)
        # -1 means: to the end of the recording.
        if not _is_number(start) or float(start) < 0 or not (end == "-1" or _is_positive(end)):
            return f"from {start} to {end} is no time span in seconds"
        if end != "-1" and float(end) <= float(start):
            return f"the segment ends ({end}) before it starts ({start})"
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_positive(text: str) -> bool:
    return _is_number(text) and float(text) > 0


# ---- All faults of a Kaldi data directory, in one go: file, line and advice.

SAMPLE_RATE = 16000


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


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    key: str
    value: str


_Rows = dict[str, list[_Row]]


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
    if not directory.is_dir():
        raise UserError(f"{path}: no such data directory")
    fix = f"fix it with: utils/fix_data_dir.py {path}"
    problems = [
        Problem(directory / name, None, "missing", "is missing", _advice_for_missing(name, path))
        for name in need
        if not os.path.lexists(directory / name)
    ]
    rows: _Rows = {}
    for name in FILES:
        if os.path.lexists(directory / name):
            rows[name] = []
            problems += _scan(directory / name, rows[name], fix)
    problems += _check_ids(directory, rows, fix)
    problems += _check_spk2utt(directory, rows, fix)
    problems += _check_speaker_order(directory, rows)
    problems += _check_audio(directory, rows, audio)
    if os.path.lexists(directory / "trials"):
        problems += _check_trials(directory, rows, models)
    return problems


def _advice_for_missing(name: str, path: StrPath) -> str:
    if name == "spk2utt":
        return f"make it with: utils/fix_data_dir.py {path}"
    if name == "utt2dur":
        return f"make it with: utils/check_audio.py {path} {path}"
    return f"write it: {FILES[name].fields} fields a line" if name in FILES else "write it"


def _scan(path: Path, rows: list[_Row], fix: str) -> Iterator[Problem]:
    """Read one file leniently into `rows`; yield the faults of its lines."""
    if problem := file_problem(path):
        yield Problem(path, None, "unreadable", problem, "correct or remove it")
        return
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        yield Problem(path, None, "unreadable", f"cannot be read as UTF-8 text: {error}")
        return
    if not text:
        yield Problem(path, None, "empty", "is empty", "make it again")
        return
    if "\0" in text:
        yield Problem(path, None, "unreadable", "is not a text file (it holds a NUL byte)")
        return
    if text.startswith("\ufeff"):
        yield Problem(path, 1, "mark", ADVICE_FOR_MARK)
    if not text.endswith("\n"):
        yield Problem(path, text.count("\n") + 1, "end", "the last line has no line end", fix)
    for number, line in enumerate(text.rstrip(" \t\n").split("\n"), start=1):
        if line.endswith("\r"):
            yield Problem(path, number, "CRLF", "Windows line end (CR LF)", fix)
        yield from _scan_line(path, number, line, rows)
    yield from _check_order(path, rows, fix)


def _scan_line(path: Path, number: int, line: str, rows: list[_Row]) -> Iterator[Problem]:
    spec, fields = FILES[path.name], split_fields(line.removesuffix("\r"))
    if not fields or not spec.accepts(len(fields)):
        message = f"{len(fields)} fields where {spec.fields} are expected"
        yield Problem(path, number, "fields", message, "correct the line")
    if not fields:
        return
    row = _Row(number, *split_key(line.removesuffix("\r")))
    rows.append(row)
    if spec.accepts(len(fields)) and (message := value_problem(path.name, row.value)):
        yield Problem(path, number, "value", f"{row.key}: {message}", "correct the line")


def _check_order(path: Path, rows: list[_Row], fix: str) -> Iterator[Problem]:
    seen: dict[str, _Row] = {}
    for row in rows:
        first = seen.setdefault(row.key, row)
        if first is not row:
            same = "the same line" if first.value == row.value else "a different value"
            message = f"{row.key} is listed twice: {same} stands on line {first.line}"
            yield Problem(path, row.line, "duplicate", message, "keep the right line")
    for before, row in pairwise(rows):
        if row.key.encode() < before.key.encode():
            message = f"not sorted (LC_ALL=C): {row.key} follows {before.key}"
            yield Problem(path, row.line, "order", message, fix)


def _check_ids(directory: Path, rows: _Rows, fix: str) -> Iterator[Problem]:
    """Check each table against the utterances, speakers and recordings of utt2spk and segments."""
    if "utt2spk" not in rows:
        return
    utts = {row.key: row for row in rows["utt2spk"]}
    recordings = {split_fields(row.value)[0] for row in rows.get("segments", []) if row.value}
    expected: dict[Key, Collection[str]] = {
        "utterance": utts,
        "speaker": {row.value for row in utts.values()},
        "recording": recordings if "segments" in rows else utts,
    }
    for name, table in rows.items():
        spec = FILES[name]
        wanted, what = expected[spec.key], spec.noun("segments" in rows)
        for row in table:
            if row.key not in wanted:
                message = f"{what} {row.key} is not in {_origin(spec.key, rows)}"
                yield Problem(directory / name, row.line, "unknown id", message, fix)
        missing = set(wanted) - {row.key for row in table} if spec.complete else set()
        for key in sort_ids(missing):
            message = f"{what} {key} of {_origin(spec.key, rows)} has no line"
            advice = f"add its line, or: utils/fix_data_dir.py --allow-drop N {directory}"
            yield Problem(directory / name, None, "missing id", message, advice)


def _origin(key: Key, rows: _Rows) -> str:
    return "segments" if key == "recording" and "segments" in rows else "utt2spk"


def _check_spk2utt(directory: Path, rows: _Rows, fix: str) -> Iterator[Problem]:
    if "utt2spk" not in rows:
        return
    utts_of: dict[str, set[str]] = {}
    for row in rows["utt2spk"]:
        utts_of.setdefault(row.value, set()).add(row.key)
    for row in rows.get("spk2utt", []):
        own = utts_of.get(row.key, set())
        listed = Counter(split_fields(row.value))
        wrong = sort_ids((set(listed) ^ own) | {utt for utt, n in listed.items() if n > 1})
        if wrong:
            message = f"{row.key}: does not agree with utt2spk on {_few(wrong)}"
            yield Problem(directory / "spk2utt", row.line, "spk2utt", message, fix)


def _few(ids: list[str]) -> str:
    return " ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _check_speaker_order(directory: Path, rows: _Rows) -> Iterator[Problem]:
    path, table = directory / "utt2spk", rows.get("utt2spk", [])
    wrong = [row for row in table if not row.key.startswith(row.value)]
    advice = "name utterances <speaker>-<rest> (utils/copy_data_dir.py --spk-as-prefix)"
    for row in wrong:
        message = f"speaker {row.value} is not the beginning of its utterance {row.key}"
        yield Problem(path, row.line, "prefix", message, advice)
    ordered = sorted(table, key=lambda row: row.key.encode())
    for before, row in pairwise(ordered):
        if not wrong and row.value.encode() < before.value.encode():
            message = (
                f"sorted by utterance, speaker {row.value} ({row.key}) follows {before.value} "
                f"({before.key})"
            )
            advice = "separate speaker and rest with '-', which sorts below letters and digits"
            yield Problem(path, row.line, "speaker order", message, advice)


def _check_audio(directory: Path, rows: _Rows, opened: bool) -> Iterator[Problem]:
    path, table = directory / "wav.scp", rows.get("wav.scp", [])
    by_file: dict[str, list[_Row]] = {}
    for row in table:
        by_file.setdefault(row.value, []).append(row)
    for name, group in by_file.items():
        if len(group) > 1:
            ids = _few([row.key for row in group])
            every = len(group) == len(table)
            message = f"{'all ids have' if every else f'{ids} have'} the same audio file {name}"
            yield Problem(path, group[0].line, "same file", message, "check the paths", every)
    rates: Counter[int] = Counter()
    for row in table:
        yield from _check_audio_file(path, row, opened, rates)
    for rate, count in rates.items():
        if rate != SAMPLE_RATE:
            message = f"{count} of {len(table)} files are sampled at {rate} Hz, not {SAMPLE_RATE}"
            yield Problem(path, None, "rate", message, "they will be resampled", fatal=False)


def _check_audio_file(
    path: Path, row: _Row, opened: bool, rates: Counter[int]
) -> Iterator[Problem]:
    if not row.value:
        return  # reported as a wrong number of fields
    if not opened and not row.value.endswith("|") and os.access(row.value, os.R_OK):
        return
    info = probe_audio(row.value)
    if info.rate:
        rates[info.rate] += 1
    if info.problem:
        message = f"{row.key}: audio file {row.value} {info.problem}"
        yield Problem(path, row.line, "audio", message, "replace the file or drop the utterance")


def _check_trials(directory: Path, rows: _Rows, models: StrPath | None) -> Iterator[Problem]:
    path = directory / "trials"
    utt2spk = {row.key: row.value for row in rows.get("utt2spk", [])}
    enrolled = _enrolled_speakers(directory, models)
    seen: dict[tuple[str, str], int] = {}
    labels: Counter[str] = Counter()
    if problem := file_problem(path):
        yield Problem(path, None, "unreadable", problem, "correct or remove it")
        return
    text = path.read_text("utf-8", errors="replace")
    if text.startswith("\ufeff"):
        yield Problem(path, 1, "mark", ADVICE_FOR_MARK)
    for number, line in enumerate(text.rstrip(" \t\n").split("\n"), start=1):
        fields = split_fields(line)
        if len(fields) != 3 or fields[2] not in LABELS:
            message = f"{line!r} is not `<enrolled speaker> <utterance> target|nontarget`"
            yield Problem(path, number, "fields", message, "correct the line")
            continue
        model, utt, label = fields
        labels[label] += 1
        first = seen.setdefault((model, utt), number)
        if first != number:
            message = f"{model} {utt} is listed twice, first on line {first}"
            yield Problem(path, number, "duplicate", message, "keep the right line")
        for message in _trial_problems(model, utt, label, utt2spk, enrolled):
            yield Problem(path, number, "trial", message, "make the trials again")
    for label in LABELS:
        if not labels[label]:
            message = f"has no {label} trial, so no error rate can be computed"
            yield Problem(path, None, "no trials", message, "make the trials again")


def _trial_problems(
    model: str, utt: str, label: str, utt2spk: dict[str, str], enrolled: set[str] | None
) -> Iterator[str]:
    if utt not in utt2spk:
        yield f"utterance {utt} is not in utt2spk"
    if enrolled is not None and model not in enrolled:
        yield f"speaker {model} is not enrolled"
    same = utt2spk.get(utt) == model
    if (
        enrolled is not None
        and model in enrolled
        and utt in utt2spk
        and same != (label == "target")
    ):
        yield f"{label}, but {utt} is spoken by {utt2spk[utt]} and {model} is enrolled"


def _enrolled_speakers(directory: Path, models: StrPath | None) -> set[str] | None:
    """Speakers that trials may name; None where they are not known."""
    if models is None:
        match = re.fullmatch(r"(.+)_trials(?:_[fm])?(_.+)?", directory.name)
        names = [f"{match[1]}_enrolls{match[2] or ''}", f"{match[1]}_enrolls"] if match else []
        beside = [directory.parent / name for name in names]
        models = next((path for path in beside if (path / "utt2spk").is_file()), None)
        if models is None:
            return None
    path = Path(models) / "utt2spk"
    if not path.is_file():
        raise UserError(f"{path}: is missing; it names the enrolled speakers")
    return {
        fields[1]
        for line in path.read_text("utf-8").splitlines()
        if len(fields := line.split()) > 1
    }
