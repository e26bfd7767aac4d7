"""A folder of audio through a system: the system's own folder, the files, and their protection."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from steps.anonymisers.registry import Anonymiser, describe_system, load_anonymiser
from steps.anonymisers.voice_conversion import CONF, HELD, held
from steps.audio import SAMPLE_RATE
from steps.sources import Resources, SourceSpeaker, VoiceKey
from steps.standalone.stream import Recording, convert_stream
from steps.synthesis.f0 import F0Stats, compute_f0_stats
from utils.arrays import Float64
from utils.audiofile import audio_format
from utils.cli import UserError
from utils.digests import contents, digest_file, digest_json
from utils.seeds import Draws
from utils.settings import is_settings
from utils.tables import is_there, read_lines, read_map, replacing

# ---- System in its own folder: system.yaml, its needs, and its measured limits.

LIMITS = "limits.txt"
UNMEASURED = Path(__file__).with_name(LIMITS)  # of every system; a folder's own gives figures


@dataclass(frozen=True)
class LoadedSystem:
    """Loaded system. digest: of all that its speech depends on, except the key."""

    anonymiser: Anonymiser
    digest: str
    limits: Sequence[str]


def load_system(path: Path, seed: int) -> LoadedSystem:
    """Load a folder or a yaml file; UserError for a missing one, or one that needs more than a
    folder of audio."""
    folder = path if path.is_dir() else None
    conf = path if folder is None else folder / CONF
    if not is_settings(conf):
        raise UserError(f"{conf}: is missing; a system is a yaml file, or a folder with {CONF}")
    found = {} if folder is None else held(folder)
    for need in (need.split(":")[0] for need in describe_system(conf).needs):
        if need not in ("f0", *HELD):
            raise UserError(
                f"{conf}: this system wants {need} of every speaker, which a folder of audio does "
                "not give; use a recipe (run.sh), or another system"
            )
    # f0 is measured for each group of files; a given one lets a system ask for it.
    given: dict[str, Any] = {"f0": path, **found}
    anonymiser = load_anonymiser(conf, Draws(seed), Resources(**given))
    digest = digest_json(contents(folder, ours=False)) if folder else digest_file(conf)
    told = folder / LIMITS if folder and is_there(folder / LIMITS) else UNMEASURED
    return LoadedSystem(anonymiser, digest, [line.rstrip("\n") for _, line in read_lines(told)])


# ---- Plan of a folder's protection: its audio files, groups that share a voice, and finished ones.

JOURNAL = ".protected.jsonl"  # in the output: the settings, and the finished files


def find_audio(folder: Path) -> tuple[list[Path], int]:
    """Find audio files under a folder, relative to it and sorted, and the number of other files.

    Hidden files and folders do not count. UserError if there is no audio.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: is no folder")
    files = [
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    ]
    audio = [path for path in files if audio_format(path)]
    if not audio:
        raise UserError(f"{folder}: holds no audio file that libsndfile reads")
    return audio, len(files) - len(audio)


def group_files(
    files: Sequence[Path], per: str, speakers: Mapping[str, str] | None = None
) -> dict[str, list[Path]]:
    """Group files by shared pseudo-speaker, in the order of the files.

    per: `file`, `folder`, or `speaker`, whose name is the part before the first `-` or `_` of a
    file's name, or the value of its path in `speakers`. UserError for a file with neither.
    """
    names: dict[str, Callable[[Path], str]] = {
        "file": Path.as_posix,
        "folder": lambda path: path.parent.as_posix(),
        "speaker": lambda path: _speaker(path, speakers),
    }
    groups: dict[str, list[Path]] = {}
    for path in files:
        groups.setdefault(names[per](path), []).append(path)
    return groups


def _speaker(path: Path, speakers: Mapping[str, str] | None) -> str:
    if speakers is not None:
        if path.as_posix() not in speakers:
            raise UserError(f"{path}: the table of speakers does not name it")
        return speakers[path.as_posix()]
    head = path.stem.replace("_", "-").partition("-")
    if not head[0] or not head[1]:
        raise UserError(
            f"{path}: its name does not begin with a speaker (<speaker>-<rest>); "
            "give --speakers TABLE, or --per folder"
        )
    return head[0]


def read_speakers(path: Path) -> dict[str, str]:
    """Read a table `<file> <speaker>`, files relative to the folder; UserError for another line. A
    tab may separate them, where names of files hold blanks."""
    if not any("\t" in line for _, line in read_lines(path)):
        return read_map(path)
    found: dict[str, str] = {}
    for number, line in read_lines(path):
        name, _, speaker = line.rstrip().partition("\t")
        if not name or not speaker or name in found:
            raise UserError(f"{path}:{number}: not `<file> TAB <speaker>`, or a file twice")
        found[name] = speaker
    return found


def choose_key(key: str | None, key_file: Path | None) -> tuple[str, bool]:
    """The key, or the secret in the first line of its file, or a fresh secret of 128 bits; and
    whether it is fresh. UserError for a file without one."""
    if key is None and key_file is None:
        return secrets.token_hex(16), True
    if key_file is not None:
        key = next((line.strip() for _, line in read_lines(key_file) if line.strip()), None)
    if key is None:
        raise UserError(f"{key_file}: holds no key")
    return key, False


def key_number(key: str) -> int:
    """Seed of all draws for a key."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest(), "big")


class Journal:
    """Journal of files finished with the same settings; appended to as files are done.

    Lines of JSON: first the settings, with a salted fingerprint (scrypt) of a given key, then a
    file a line with the size and time of its source. It does not hold the key.
    """

    def __init__(self, out: Path, settings: Mapping[str, object], key: str | None) -> None:
        """Begin or continue; UserError where OUT has files made with other settings or another key.

        key: None for a fresh one, which no other run shares.
        """
        self.path = path = out / JOURNAL
        rows = []
        if path.exists():
            rows = [_object(line, path, number) for number, line in read_lines(path)]
        salt, colon, _ = str(rows[0].get("key")).partition(":") if rows else ("", "", "")
        head = {
            "settings": dict(settings),
            "key": _fingerprint(key, salt if colon else secrets.token_hex(16)),
        }
        if not rows:
            self._append(head)
        elif rows[0] != head:
            same = rows[0].get("settings") == head["settings"]
            raise UserError(
                f"{out}: holds speech that was protected with "
                f"{'another key' if same else 'other settings'}; choose another output folder"
            )
        self.done = {str(row["file"]): row["source"] for row in rows if "file" in row}

    def has(self, name: Path, source: Path, made: Path) -> bool:
        """Whether a file is done, and neither it nor its source has changed or gone since."""
        return made.is_file() and self.done.get(name.as_posix()) == _state(source)

    def add(self, name: Path, source: Path) -> None:
        """Record a finished file."""
        self._append({"file": name.as_posix(), "source": _state(source)})

    def _append(self, row: Mapping[str, object]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row, sort_keys=True) + "\n")


def _object(line: str, path: Path, number: int) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        found = {}  # the last line of a run that was killed
    if not isinstance(found, dict) or (number == 1 and "settings" not in found):
        raise UserError(f"{path}:{number}: is damaged; remove the file to begin anew")
    return found


def _fingerprint(key: str | None, salt: str) -> str:
    if key is None:
        return "fresh"
    hashed = hashlib.scrypt(key.encode("utf-8"), salt=bytes.fromhex(salt), n=2**14, r=8, p=1)
    return f"{salt}:{hashed.hex()}"


def _state(source: Path) -> list[int]:
    found = source.stat()
    return [found.st_size, found.st_mtime_ns]


def unfinished(
    groups: Mapping[str, Sequence[Path]], ready: Iterable[Path], *, fresh: bool
) -> Iterator[tuple[str, list[Path]]]:
    """Select groups and their files to make.

    fresh: the key is new, so that a group with any file missing is made anew as a whole.
    """
    there = set(ready)
    for name, files in groups.items():
        missing = [path for path in files if path not in there]
        if missing:
            yield name, list(files) if fresh else missing


# ---- Protection of a folder's files by an anonymiser; data on the speaker come from the files.

# The speaker's pitch is measured in so many stretches, spread over their files.
_STRETCHES, _SECONDS = 12, 5.0


@dataclass(frozen=True)
class Work:
    """Making of files. channels: mixed down, or each by itself with one pseudo-speaker."""

    source: Path
    out: Path
    channels: str = "mix"

    def protect_group(
        self,
        name: str,
        files: Sequence[Path],
        anonymiser: Anonymiser,
        done: Callable[[Path], None] = lambda _: None,
        tick: Callable[[float], None] = lambda _: None,
    ) -> dict[Path, str]:
        """Make the files that share a pseudo-speaker; returns the failed ones, with reasons.

        done: called with each complete file. tick: called with processed seconds.
        """
        failed: dict[Path, str] = {}
        recordings: dict[Path, Recording] = {}

        @contextmanager
        def noting(path: Path) -> Iterator[None]:
            try:
                yield
            except UserError as error:
                failed[path] = str(error)

        for path in files:
            with noting(path):
                recordings[path] = Recording.open(self.source / path)
        f0 = compute_f0_stats([])
        with suppress(UserError):  # the file is found below
            f0 = learn_f0(list(recordings.values()))
        speaker = SourceSpeaker(name, f0=f0)
        key = VoiceKey("spk", ("folder", name), ("folder", name))

        def convert(samples: Float64) -> Float64:
            return anonymiser.transform(samples, key, speaker)[0]

        for path, recording in recordings.items():
            with noting(path):
                self._write(path, recording, convert, tick)
                done(path)
        return failed

    def _write(
        self,
        path: Path,
        recording: Recording,
        convert: Callable[[Float64], Float64],
        tick: Callable[[float], None],
    ) -> None:
        apart = self.channels == "each" and recording.channels > 1
        wanted = range(recording.channels) if apart else [None]
        streams = [convert_stream(recording.blocks(channel), convert) for channel in wanted]
        name = audio_format(path)
        assert name is not None
        if not soundfile.check_format(name):
            raise UserError(f"{recording.path}: {name} can be read, but not written; convert it")
        # 16 bit where the format has it, else the codec of the source, such as Opus.
        known = soundfile.available_subtypes(name)
        subtype = next(
            (kind for kind in ("PCM_16", recording.audio.subtype) if kind in known), None
        )
        form = (SAMPLE_RATE, len(streams), subtype)
        try:
            with (
                closing(recording),
                replacing(self.out / path) as beside,
                soundfile.SoundFile(str(beside), "w", *form, format=name) as audio,
            ):
                for parts in zip(*streams, strict=True):
                    audio.write(np.stack(parts, axis=1))
                    tick(len(parts[0]) / SAMPLE_RATE)
        except soundfile.LibsndfileError as error:
            raise UserError(f"{self.out / path}: cannot be written: {error}") from error


def learn_f0(recordings: Sequence[Recording]) -> F0Stats:
    """Pitch of the speaker in the recordings, from stretches spread evenly over them."""
    from steps.synthesis.world import extract_f0

    total = sum(recording.seconds for recording in recordings)
    n = max(1, min(_STRETCHES, int(total / _SECONDS)))
    places = [(i + 0.5) * total / n - _SECONDS / 2 for i in range(n)]
    contours, begins = [], 0.0
    for recording in recordings:
        for place in places:  # in order, so that the file is gone through once
            inside = place - begins
            if -_SECONDS < inside < recording.seconds:
                start = max(0, int(inside * SAMPLE_RATE))
                stop = min(len(recording), start + round(_SECONDS * SAMPLE_RATE))
                part = recording.read(start, stop)
                contours.append(extract_f0(part) if part.any() else np.zeros(1))
        begins += recording.seconds
        recording.close()
    return compute_f0_stats(contours)
