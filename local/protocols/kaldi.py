"""A Kaldi data directory as a table of utterances: its pipes and segments become files."""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from local.protocols.utterances import Row
from steps.audio import Audio, read_audio, write_wav
from utils.cli import UserError
from utils.datadir import DataDir, load_data_dir
from utils.tables import split_fields

OVERSHOOT = 0.5  # s that a segment may end behind its recording, as for Kaldi's extract-segments
_COLUMNS = {"text": "text", "utt2emotion": "emotion"}


def rows_of_kaldi(
    path: Path, out: Path, progress: Callable[[Iterable[str]], Iterable[str]]
) -> Iterator[Row]:
    """Rows `utt speaker sex file`, with `text` and `emotion` where the directory has them, by
    recording. What a command prints, and each segment, becomes <out>/audio/<utt>.flac, and its
    `file` is relative to `out`.

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
    spk, genders = data.utt2spk[utt], data.spk2gender or {}
    tables: Mapping[str, Mapping[str, str]] = data.tables
    more = {
        column: " ".join(split_fields(tables[name][utt]))
        for name, column in _COLUMNS.items()
        if name in tables
    }
    return {"utt": _id_of(data, utt), "speaker": spk, "sex": genders[spk], "file": file, **more}
