"""The utterances of a corpus, and what recognisers said of them."""

import os
import re
import shlex
import subprocess
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from steps.audio import Audio, read_audio, write_wav
from utils.audiofile import AudioError, AudioFile
from utils.cli import LossError, UserError
from utils.datachecks import GENDERS, OTHER, SEXES, AudioInfo, check_name, probe_audio
from utils.datadir import DataDir, describe_difference, load_data_dir
from utils.tables import StrPath, read_lines, read_map, sort_ids, split_fields

# ---- Utterances of a corpus from its prepare.sh, each checked before any is written.
#
# The table is tab-separated with a header line: `utt spk audio`, and `gender`, `age`, `text`,
# `emotion` and `language` where the corpus has them; other columns are ignored. A missing value is
# an empty field: it is reported here with all other faults, so that nothing is lost silently.
#
# A table of people's own has `file speaker sex text` instead, with files from its own folder. Its
# ids are made of speaker and file, unless it also has `utt`.

COLUMNS = ("utt", "spk", "audio")
PEOPLES = {"file": "audio", "speaker": "spk", "sex": "gender"}
_TABLES = {
    "gender": "spk2gender", "text": "text", "emotion": "utt2emotion", "language": "utt2lang",
    "age": "spk2age",
}  # fmt: skip
READ = ("utt", *PEOPLES, *_TABLES)  # columns of people's own

Row = dict[str, str]


@dataclass(frozen=True)
class Fault:
    """Utterance that cannot be used. `kind` groups similar faults; `message` names it."""

    utt: str
    kind: str
    message: str


def read_utterances(path: StrPath) -> list[Row]:
    """Read the rows, sorted by id. UserError for no rows, a ragged row, a column or an id twice."""
    lines = read_lines(path)
    header = next((line.split("\t") for _, line in lines), [])
    if len({PEOPLES.get(name, name) for name in header}) < len(header):
        raise UserError(f"{path}:1: two of the columns {' '.join(header)} say the same; keep one")
    if "utt" not in header or "file" in header:
        lines = iter([*_named(Path(path), header, lines)])
        header = [PEOPLES.get(name, name) for name in dict.fromkeys(("utt", *header))]
    if missing := [name for name in COLUMNS if name not in header]:
        raise UserError(
            f"{path}:1: no column {missing[0]}; the header line is {' '.join(COLUMNS)} ..."
        )
    rows: dict[str, Row] = {}
    for number, line in lines:
        row = _cells(Path(path), number, line, header)
        if row["utt"].split() != [row["utt"]]:
            raise UserError(f"{path}:{number}: {row['utt']!r} is not an utterance id")
        if fault := check_name(row["utt"]):
            raise UserError(f"{path}:{number}: {fault}; call it {_as_id(row['utt']).lstrip('.')}")
        if row["utt"] in rows:
            where = " and ".join(dict.fromkeys((rows[row["utt"]]["audio"], row["audio"])))
            what = "there twice" if " and " in where else "listed twice, with the same audio"
            raise UserError(f"{row['utt']}: is {what}: {where}; keep one of them")
        rows[row["utt"]] = row
    if not rows:
        raise UserError(f"{path}: lists no utterance")
    return [rows[utt] for utt in sort_ids(rows)]


def _named(
    path: Path, header: Sequence[str], lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, str]]:
    """Lines of a table of people's own, in our words and with ids. UserError for a missing column,
    a ragged row, or two speakers whose ids are the same."""
    if missing := [name for name in PEOPLES if name not in header]:
        raise UserError(
            f"{path}:1: no column {missing[0]}; a header line with tabs is expected: "
            "file speaker sex text"
        )
    read, home = [(n, _cells(path, n, line, header)) for n, line in lines], path.absolute().parent
    files = {n: home / row["file"].strip() if row["file"].strip() else None for n, row in read}
    above = os.path.commonpath([file.parent for file in files.values() if file] or [home])
    names: dict[str, str] = {}
    for number, row in read:
        file, sex = files[number], row["sex"].strip().lower()
        speaker = unicodedata.normalize("NFC", row["speaker"].strip())  # folders' may be NFD
        spk = _as_id(speaker)
        if names.setdefault(spk, speaker) != speaker:
            both = f"'{names[spk]}' and '{speaker}'"
            raise UserError(
                f"{path}:{number}: speakers {both} would both be called {spk}; rename one"
            )
        made = _as_id("-".join(file.relative_to(above).with_suffix("").parts)) if file else "none"
        utt = f"{spk}-{re.sub(f'^{re.escape(spk)}[-_]+', '', made)}"
        row = {"utt": utt, **row, "file": str(file or ""), "speaker": spk}
        yield number, "\t".join((row | {"sex": SEXES.get(sex, sex)}).values())


def _cells(path: Path, number: int, line: str, header: Sequence[str]) -> Row:
    fields = line.split("\t")
    if len(fields) != len(header):
        raise UserError(
            f"{path}:{number}: {len(fields)} tab-separated fields, but {len(header)} columns"
        )
    return dict(zip(header, fields, strict=True))


def _as_id(text: str) -> str:
    return re.sub(r"[\s/\\\xad\u200b-\u200f\u2060\ufeff]+", "_", text)  # also what nobody sees


def find_faults(
    rows: Sequence[Row], audio: Mapping[str, AudioInfo], genders_from: str = ""
) -> Iterator[Fault]:
    """First fault of each utterance that has one, in the order of the rows.

    audio: utterance -> header of its audio file (`probe_all`). genders_from: source of the genders,
    for messages.
    """
    said: dict[tuple[str, str], set[str]] = {}
    for row, column in product(rows, ("gender", "age")):
        if row.get(column):
            said.setdefault((row["spk"], column), set()).add(row[column])
    heard: dict[str, str] = {}
    where = f" in {genders_from}" if genders_from else ""
    for row in rows:
        utt, spk = row["utt"], row["spk"]
        if not spk or not utt.startswith(spk):
            kind, message = "speaker", f"the speaker {spk!r} does not begin the utterance id"
            message += f"; call it {spk}-{utt}" if spk else f"; name the speaker of {row['audio']}"
        elif not row["audio"]:
            kind, message = "audio", "there is no audio file for it"
        elif several := [name for name in ("gender", "age") if len(said.get((spk, name), ())) > 1]:
            kind, message = several[0], f"speaker {spk} has several {several[0]}s{where}"
        elif "gender" in row and not row["gender"]:
            kind, message = "gender", f"speaker {spk} is not{where or ' given a gender'}"
        elif "gender" in row and row["gender"] not in GENDERS:
            kind = "gender"
            message = (
                f"speaker {spk} has gender {row['gender']!r}{where}; f, m or {OTHER} is expected"
            )
        elif "age" in row and not row["age"].isdigit():
            kind, message = "age", f"speaker {spk} has age {row['age']!r}; whole years are expected"
        elif "text" in row and not row["text"].split():
            kind, message = "transcript", f"there is no transcript for {row['audio']}"
        elif faulty := [
            x for x in ("emotion", "language") if x in row and len(row[x].split()) != 1
        ]:
            kind = faulty[0]
            message = f"its {kind} is {row[kind]!r}; one word is expected"
        elif (first := heard.setdefault(os.path.realpath(row["audio"]), utt)) != utt:
            kind, message = "audio", f"{row['audio']} is already that of {first}"
        elif problem := audio[utt].problem:
            kind, message = "audio", f"{row['audio']} {problem}"
        else:
            continue
        yield Fault(utt, kind, f"{utt}: {message}")


def probe_all(
    rows: Sequence[Row],
    jobs: int,
    progress: Callable[[Iterable[Row]], Iterable[Row]] = lambda rows: rows,
) -> dict[str, AudioInfo]:
    """Probe the audio file of each utterance that has one, `jobs` files at a time.

    progress: wraps the utterances, to show progress.
    """
    with_audio = [row for row in rows if row["audio"]]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        found = pool.map(probe_audio, [Path(row["audio"]) for row in with_audio])
        # A row counts as done when its file has been read.
        return {row["utt"]: info for info, row in zip(found, progress(with_audio), strict=True)}


def make_tables(
    rows: Sequence[Row], audio: Mapping[str, AudioInfo]
) -> dict[str, dict[str, object]]:
    """Tables of a data directory: file name -> key -> value."""
    tables: dict[str, dict[str, object]] = {
        "utt2spk": {row["utt"]: row["spk"] for row in rows},
        "wav.scp": {row["utt"]: row["audio"] for row in rows},
        "utt2dur": {row["utt"]: f"{audio[row['utt']].seconds:.4f}" for row in rows},
    }
    for column, table in _TABLES.items():
        if column in rows[0]:
            key = "spk" if table.startswith("spk") else "utt"
            tables[table] = {row[key]: " ".join(row[column].split()) for row in rows}
    return tables


# ---- Output of a recogniser for the utterances of data directories, beside the truth.


def read_recognised(
    sets: Iterable[tuple[Path, Path]], table: str, again: str, *, rest_of_line: bool = False
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Join all sets, pairs of a data directory and a table of the output: the truth, the output and
    the speaker of each utterance.

    table: file of the data directory with the truth. again: remedy for missing utterances
    (LossError). UserError: an utterance that is not in the data, or in two sets.
    """
    truth: dict[str, str] = {}
    output: dict[str, str] = {}
    utt2spk: dict[str, str] = {}
    for data, path in sets:
        found = load_data_dir(data, need=("utt2spk", table), allow_segments=True)
        said = read_map(path, rest_of_line=rest_of_line)
        if difference := describe_difference(said, found.utt2spk, "utterance"):
            difference = f"{path}: compared with {data}, {difference}"
            if found.utt2spk.keys() - said.keys():
                raise LossError(f"{difference}; {again}")
            raise UserError(difference)
        if twice := found.utt2spk.keys() & utt2spk.keys():
            raise UserError(f"{data}: {min(twice)} is also in another set; name each set once")
        truth |= found.tables[table]
        output |= said
        utt2spk |= found.utt2spk
    return truth, output, utt2spk


def read_folds(sets: Iterable[Path], utt2spk: Mapping[str, str]) -> dict[str, str] | None:
    """Fold of each utterance by its speaker's, from spk2fold of the data directories; None where
    none has it."""
    folds: dict[str, str] = {}
    for data in sets:
        folds |= load_data_dir(data, need=("utt2spk",), allow_segments=True).tables.get(
            "spk2fold", {}
        )
    return {utt: folds[spk] for utt, spk in utt2spk.items() if spk in folds} if folds else None


# The nine labels of emotion2vec as VoicePrivacy 2026, track 2, counts them (emotion2vec_ser.py).
_FOUR = {
    "angry": "anger", "disgusted": "anger", "fearful": "sadness", "sad": "sadness",
    "happy": "happiness", "neutral": "neutral", "other": "neutral", "surprised": "neutral",
    "unknown": "neutral",
}  # fmt: skip


def four_emotions(heard: Mapping[str, str]) -> dict[str, str]:
    """The four emotions of labels of emotion2vec, by utterance; of a label in two languages the
    second part counts, `<unk>` is unknown. UserError for another label."""
    found: dict[str, str] = {}
    for utt, said in heard.items():
        label = said.rpartition("/")[2].strip("<>").lower()
        label = "unknown" if label == "unk" else label
        if label not in _FOUR:
            raise UserError(f"{utt}: {said!r} is not a label of emotion2vec: {', '.join(_FOUR)}")
        found[utt] = _FOUR[label]
    return found


# ---- A Kaldi data directory as utterances.


OVERSHOOT = 0.5  # s that a segment may end behind its recording, as for Kaldi's extract-segments


def rows_of_kaldi(
    path: Path, out: Path, progress: Callable[[Iterable[str]], Iterable[str]]
) -> Iterator[Row]:
    """Rows `utt speaker sex file`, with what else of READ the directory has, by recording.

    What a command prints, and each segment, becomes <out>/audio/<utt>.flac, and its `file` is
    relative to `out`.

    Paths and commands of wav.scp are those of the current folder, paths of any above the directory,
    too. UserError: a command that fails, a recording that cannot be read, a segment outside of it.
    """
    data = load_data_dir(path, need=("wav.scp", "utt2spk", "spk2gender"), allow_segments=True)
    segments = {utt: split_fields(row) for utt, row in data.tables.get("segments", {}).items()}
    parts: dict[str, list[str]] = {}
    for utt in data.utt2spk:
        parts.setdefault(segments[utt][0] if segments else utt, []).append(utt)
    for recording in progress(list(parts)):
        said = data.wav[recording]
        file = _find(path, said)
        _check_mono(path, recording, file)
        if segments or said.endswith("|"):
            audio = _listen(path, recording, said, file, out)
            for utt in parts[recording]:
                made = f"audio/{_id_of(data, utt)}.flac"
                whole = (recording, "0", "-1")
                cut = _cut(path, utt, segments.get(utt, whole)[1:], audio)
                write_wav(out / made, np.clip(cut, -1, 1), audio.rate)
                yield _row(data, utt, made)
        else:
            yield _row(data, recording, str(file))


def _find(data: Path, said: str) -> Path:
    bases = (Path.cwd(), *data.absolute().parents)
    return next((base / said for base in bases if (base / said).is_file()), Path(said).absolute())


def _check_mono(data: Path, recording: str, file: Path) -> None:
    with suppress(AudioError):  # of a command, or of a file that is refused when it is read
        if (n := AudioFile.open(file).channels) > 1:
            name = shlex.quote(str(file))
            raise UserError(
                f"{data / 'wav.scp'}: {recording}: {file} has {n} channels; only mono is read. "
                f"Write a line for each, with its own id: <id> sox {name} -t wav - remix 1 | (or: "
                f"<id> ffmpeg -v error -i {name} -af 'pan=mono|c0=c0' -f wav - |); remix 2 and "
                "c0=c1 are the second channel"
            )


def _listen(data: Path, recording: str, said: str, file: Path, out: Path) -> Audio:
    """Audio of a recording, by its command where it has one."""
    (out / "audio").mkdir(parents=True, exist_ok=True)
    if not said.endswith("|"):
        return read_audio(recording, str(file))
    place = out / "audio" / ".piped"
    with place.open("wb") as stream:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", said[:-1]], stdout=stream, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    try:
        if done.returncode:
            why = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise UserError(
                f"{data / 'wav.scp'}: {recording}: its command ended with status "
                f"{done.returncode}: {why or said}; run this where the command works"
            )
        return read_audio(recording, str(place))
    finally:
        place.unlink()


def _cut(data: Path, utt: str, times: Iterable[str], audio: Audio) -> np.ndarray:
    begin, end = map(float, times)
    end = audio.seconds if end == -1 else end
    if begin >= audio.seconds or end > audio.seconds + OVERSHOOT:
        raise UserError(
            f"{data / 'segments'}: {utt} is from {begin:g} to {end:g} s, and its recording lasts "
            f"{audio.seconds:.2f} s; correct the line"
        )
    return audio.samples[round(begin * audio.rate) : round(end * audio.rate)]


def _id_of(data: DataDir, utt: str) -> str:
    """Id that begins with its speaker."""
    spk = data.utt2spk[utt]
    return utt if utt.startswith(spk) else f"{spk}-{utt}"


def _row(data: DataDir, utt: str, file: str) -> Row:
    spk, tables = data.utt2spk[utt], data.tables
    said = {
        column: " ".join(split_fields(tables[name][spk if name.startswith("spk") else utt]))
        for column, name in _TABLES.items()
        if name in tables
    }
    own = {"utt": _id_of(data, utt), "speaker": spk, "sex": said.pop("gender"), "file": file}
    return own | said
