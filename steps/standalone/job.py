"""A folder of audio through a system: the system's own folder, the files, and their protection."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from utils.cli import UserError
from utils.digests import contents, digest_file, digest_json
from utils.seeds import Draws
from utils.settings import is_settings
from utils.tables import is_there, read_lines, read_map, replacing, split_key

# ---- System in its own folder: system.yaml, its needs, and its measured limits.

LIMITS = "limits.txt"
# Limits of every system; a folder's limits.txt gives figures.
UNMEASURED = (
    "This hides the voice. It does not hide what is said, names that are spoken, and timing:",
    "whoever knows a speaker by the way of speaking may know them still, and whoever has several",
    "recordings of one person may find out that they belong together.",
    "Whoever has the key and the models can find out which voice became which.",
    "No figures belong to this system: measure it on speech like yours before you rely on it",
    "(docs/recipe.md).",
)


@dataclass(frozen=True)
class System:
    """Loaded system. digest: of all that its speech depends on, except the key."""

    anonymiser: Anonymiser
    digest: str
    limits: Sequence[str]


def load_system(path: Path, seed: int) -> System:
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
    resources = Resources(**given)
    anonymiser = load_anonymiser(conf, Draws(seed), resources)
    if folder is None:
        return System(anonymiser, digest_file(conf), UNMEASURED)
    told = folder / LIMITS
    limits = [line.rstrip("\n") for _, line in read_lines(told)] if is_there(told) else UNMEASURED
    return System(anonymiser, digest_json(contents(folder, ours=False)), limits)


# ---- Plan of a folder's protection: its audio files, groups that share a voice, and finished ones.

PER = ("file", "folder", "speaker")
JOURNAL = ".protected.jsonl"  # in the output: the settings, and the finished files
_ALIASES = {"AIF": "AIFF", "OPUS": "OGG", "OGA": "OGG", "SPH": "NIST", "MP2": "MP3", "SNR": "NIST"}
# Formats of libsndfile that need more than a suffix to be read.
_HEADERLESS = {"RAW"}
_SCRYPT = {"n": 2**14, "r": 8, "p": 1}


def audio_format(path: Path) -> str | None:
    """Format name of libsndfile for a suffix; None for what is no audio."""
    name = path.suffix[1:].upper()
    name = _ALIASES.get(name, name)
    return name if name in soundfile.available_formats() and name not in _HEADERLESS else None


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
    groups: dict[str, list[Path]] = {}
    for path in files:
        name = path.as_posix()
        if per == "folder":
            name = path.parent.as_posix()
        elif per == "speaker":
            name = _speaker(path, speakers)
        groups.setdefault(name, []).append(path)
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


def read_key(path: Path) -> str:
    """Read the secret in the first line of a file; UserError for a file without one."""
    for _, line in read_lines(path):
        if split_key(line)[0]:
            return line.strip()
    raise UserError(f"{path}: holds no key")


def draw_key() -> str:
    """Draw a fresh secret of 128 bits."""
    return secrets.token_hex(16)


def key_number(key: str) -> int:
    """Seed of all draws for a key."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest(), "big")


@dataclass
class Journal:
    """Journal of files finished with the same settings; appended to as files are done.

    Lines of JSON: first the settings, with a salted fingerprint (scrypt) of a given key, then a
    file a line with the size and time of its source. It does not hold the key.
    """

    path: Path
    done: dict[str, object] = field(default_factory=dict)

    @classmethod
    def open(cls, out: Path, settings: Mapping[str, object], key: str | None) -> "Journal":
        """Begin or continue; UserError where OUT has files made with other settings or another key.

        key: None for a fresh one, which no other run shares.
        """
        path = out / JOURNAL
        if not path.exists():
            salt = secrets.token_hex(16)
            journal = cls(path)
            journal._append({"settings": dict(settings), "key": _fingerprint(key, salt)})
            return journal
        head, *rows = [_object(line, path, number) for number, line in read_lines(path)]
        known = head.get("key")
        salt = str(known).partition(":")[0]
        if head.get("settings") != dict(settings) or known != _fingerprint(key, salt):
            what = "another key" if head.get("settings") == dict(settings) else "other settings"
            raise UserError(
                f"{path.parent}: holds speech that was protected with {what}; "
                "choose another output folder"
            )
        return cls(path, {str(row["file"]): row["source"] for row in rows if "file" in row})

    def has(self, name: Path, source: Path, made: Path) -> bool:
        """Whether a file is done, and neither it nor its source has changed or gone since."""
        return made.is_file() and self.done.get(name.as_posix()) == _state(source)

    def add(self, name: Path, source: Path) -> None:
        """Record a finished file."""
        self.done[name.as_posix()] = _state(source)
        self._append({"file": name.as_posix(), "source": self.done[name.as_posix()]})

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
    return (
        f"{salt}:{hashlib.scrypt(key.encode('utf-8'), salt=bytes.fromhex(salt), **_SCRYPT).hex()}"
    )


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
CHANNELS = ("mix", "each")


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
        for path in files:
            try:
                recordings[path] = Recording.open(self.source / path)
            except UserError as error:
                failed[path] = str(error)
        try:
            speaker = SourceSpeaker(name, f0=learn_f0(list(recordings.values())))
        except UserError:  # the file is found below
            speaker = SourceSpeaker(name, f0=compute_f0_stats([]))
        key = VoiceKey("spk", ("folder", name), ("folder", name))

        def convert(samples: Float64) -> Float64:
            return anonymiser.transform(samples, key, speaker)[0]

        for path, recording in recordings.items():
            try:
                self._write(path, recording, convert, tick)
                done(path)
            except UserError as error:
                failed[path] = str(error)
        return failed

    def _write(
        self,
        path: Path,
        recording: Recording,
        convert: Callable[[Float64], Float64],
        tick: Callable[[float], None],
    ) -> None:
        name = audio_format(path)
        wanted = (
            [None]
            if self.channels == "mix" or recording.channels == 1
            else range(recording.channels)
        )
        streams = [convert_stream(recording.blocks(channel), convert) for channel in wanted]
        assert name is not None
        if not soundfile.check_format(name):
            raise UserError(f"{recording.path}: {name} can be read, but not written; convert it")
        try:
            with (
                replacing(self.out / path) as beside,
                soundfile.SoundFile(
                    str(beside), "w", SAMPLE_RATE, len(streams), _subtype(name), format=name
                ) as audio,
            ):
                for parts in zip(*streams, strict=True):
                    audio.write(np.stack(parts, axis=1))
                    tick(len(parts[0]) / SAMPLE_RATE)
        except soundfile.LibsndfileError as error:
            raise UserError(f"{self.out / path}: cannot be written: {error}") from error


def _subtype(name: str) -> str | None:
    """Subtype of 16 bit where the format has it."""
    return "PCM_16" if "PCM_16" in soundfile.available_subtypes(name) else None


def learn_f0(recordings: Sequence[Recording]) -> F0Stats:
    """Pitch of the speaker in the recordings, from stretches spread evenly over them."""
    from steps.synthesis.world import extract_f0

    total = sum(recording.seconds for recording in recordings)
    n = max(1, min(_STRETCHES, int(total / _SECONDS)))
    places = [(i + 0.5) * total / n - _SECONDS / 2 for i in range(n)]
    contours, begins = [], 0.0
    for recording in recordings:
        for place in places:
            inside = place - begins
            if -_SECONDS < inside < recording.seconds:
                start = max(0, int(inside * SAMPLE_RATE))
                stop = min(len(recording), start + round(_SECONDS * SAMPLE_RATE))
                part = recording.read(start, stop)
                contours.append(extract_f0(part) if part.any() else np.zeros(1))
        begins += recording.seconds
    return compute_f0_stats(contours)
