"""A folder of audio through a system: the system's own folder, the plan, and jobs side by side."""

import ctypes
import hashlib
import hmac
import json
import logging
import multiprocessing
import os
import posixpath
import re
import secrets
import signal
import stat
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import soundfile

from steps.anonymisers.registry import CPU_SECONDS, Anonymiser, describe_system, load_anonymiser
from steps.anonymisers.voice_conversion import CONF, HELD, held
from steps.sources import Resources
from utils.audiofile import audio_format
from utils.cli import UserError, refusing
from utils.digests import contents, digest_file, digest_json
from utils.orphans import lock
from utils.seeds import Draws
from utils.settings import is_settings, read_settings
from utils.tables import StrPath, is_there, read_lines, replacing, split_fields

Result = TypeVar("Result")

# ---- System in its own folder: system.yaml, its needs, and its measured limits.

LIMITS = "limits.txt"
UNMEASURED = Path(__file__).with_name(LIMITS)  # of every system; a folder's own gives figures
NO_KEY = (
    "This system takes nothing from the key: it changes all speech by the same rules. Whoever has "
    "the system knows these rules, and can undo the change."
)


@dataclass(frozen=True)
class LoadedSystem:
    """Loaded system. digest: of all that its speech depends on, except the key. rate: CPU seconds
    for a second of speech, as measured of its kind; 0: not measured."""

    anonymiser: Anonymiser
    digest: str
    limits: Sequence[str]
    rate: float = 0.0


def load_system(
    path: Path, seed: int, changes: Mapping[str, object] = MappingProxyType({})
) -> LoadedSystem:
    """Load a folder or a yaml file, with some settings instead of its own; UserError for a missing
    one, or one that needs more than a folder of audio."""
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
    anonymiser = load_anonymiser(conf, Draws(seed), Resources(**given), changes=changes)
    parts = contents(folder, ours=False) if folder else {}
    said = {name: of for name, of in parts.items() if not name.endswith(".md")}  # not its card
    digest = digest_json(said) if folder else digest_file(conf)
    told = folder / LIMITS if folder and is_there(folder / LIMITS) else UNMEASURED
    kind = "model" if folder else str(read_settings(conf).get("anonymiser"))
    limits = [line.rstrip("\n") for _, line in read_lines(told)]
    limits += [] if anonymiser.is_random else [NO_KEY]
    return LoadedSystem(anonymiser, digest, limits, CPU_SECONDS.get(kind, 0.0))


# ---- Plan of a folder's protection: its audio files, groups that share a voice, and finished ones.

JOURNAL = ".protected.jsonl"  # in the output: the settings, and the finished files
SHORTEST_KEY = 16  # characters
_LONGEST_KEY = 2**16  # bytes of a line that holds one


def find_audio(folder: Path, out: Path) -> tuple[list[Path], int]:
    """Find audio files under a folder, relative to it and sorted, and the number of other files.

    Hidden files and folders do not count. Linked folders are gone through once, after all others,
    `out` never. A link that leads nowhere and a folder that cannot be listed count as audio, so
    that they are named where it is opened. UserError if there is no audio, or two files would have
    one name.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: is not a folder")
    files, lost = list[Path](), set[Path]()
    places, seen = [folder], {_identity(out)} if out.exists() else set()
    for place in places:
        for root, folders, names in os.walk(place, onerror=lambda e: lost.add(Path(e.filename))):
            if not os.access(root, os.X_OK):
                lost.add(Path(root))
            if Path(root) in lost or _identity(root) in seen:
                folders.clear()
                continue
            seen.add(_identity(root))
            folders[:] = (name for name in folders if not name.startswith("."))
            places += (Path(root, name) for name in folders if Path(root, name).is_symlink())
            files += (Path(root, name) for name in names if not name.startswith("."))
    if folder in lost:
        raise UserError(f"{folder}: may not be read; look at its permissions")
    lost |= {path for path in files if path.is_symlink() and not os.access(path, os.F_OK)}
    audio = sorted(
        path.relative_to(folder) for path in {*files, *lost} if path in lost or audio_format(path)
    )
    if not audio:
        raise UserError(f"{folder}: holds no audio file")
    if twice := [path for path in audio if made_name(path) != path and made_name(path) in audio]:
        raise UserError(f"{folder / twice[0]}: would become {made_name(twice[0])}, which is there")
    return audio, len({*files, *lost}) - len(audio)


def _identity(folder: StrPath) -> tuple[int, int]:
    found = Path(folder).stat()
    return found.st_dev, found.st_ino


def made_name(path: Path) -> Path:
    """Name of the protected file: that of the source, with .wav behind it where its format is never
    written."""
    name = audio_format(path)
    kept = name is None or (name in soundfile.available_formats() and soundfile.check_format(name))
    return path if kept else path.with_name(f"{path.name}.wav")


def plain(text: StrPath) -> str:
    """Name of a file as UTF-8; other bytes (of an old archive) become `\\xe4`."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def same_name(text: StrPath, folder: Path | None = None) -> str:
    """Form of a file's or a person's name that does not depend on how it was written: accents in
    one code point (Macs write two), `/` for `\\`, without `./`; and, of a file, from the folder
    on."""
    name = unicodedata.normalize("NFC", plain(text)).strip()
    if folder is None:
        return name
    name = name.replace("\\", "/")
    for base in (folder.absolute(), folder.resolve()):
        start = same_name(base)
        found = posixpath.relpath(posixpath.join(start, name), start)
        if not found.startswith("../"):
            return found
    return name


def group_files(
    files: Sequence[Path], per: str, speakers: Mapping[str, str] | None = None
) -> dict[str, list[Path]]:
    """Group files by shared pseudo-speaker, in the order of the files.

    per: `file`, `folder`, or `speaker`, whose name is the part before the first `-` or `_` of a
    file's name, or the value of its path in `speakers`. UserError for a file with neither, and for
    two files that a table cannot tell apart.
    """
    named = {path: same_name(path, Path()) for path in files}
    first = dict[str, Path]()
    for path, name in named.items():
        if first.setdefault(name, path) != path and speakers is not None:
            raise UserError(
                f"{first[name]} and {path}: are one name, written in two ways, so that a table "
                "does not tell them apart; rename one"
            )
    names: dict[str, Callable[[Path], str]] = {
        "file": Path.as_posix,
        "folder": lambda path: same_name(path.parent.as_posix()),
        "speaker": lambda path: _speaker(path, named[path], speakers),
    }
    groups: dict[str, list[Path]] = {}
    for path in files:
        lost = audio_format(path) is None  # such as a folder that cannot be listed
        groups.setdefault(plain(path if lost else names[per](path)), []).append(path)
    return groups


def _speaker(path: Path, name: str, speakers: Mapping[str, str] | None) -> str:
    if speakers is not None:
        if name not in speakers:
            raise UserError(f"{path}: the table of speakers does not name it")
        return speakers[name]
    head = Path(name).stem.replace("_", "-").partition("-")
    if not head[0] or not head[1]:
        raise UserError(
            f"{path}: its name does not begin with a speaker (<speaker>-<rest>); "
            "give --speakers TABLE, or --per folder"
        )
    return head[0]


# Names of columns in a first line, as utils/new_corpus.sh knows them.
_FILE, _PERSON = {"file", "audio"}, {"speaker", "spk"}


def read_speakers(path: Path, folder: Path) -> dict[str, str]:
    """Read a table of files in a folder and who speaks in them: person by `same_name` of the file.

    Tabs part the columns, or blanks where there are two and no tab. The second is the person, or
    the one that the first line calls `speaker`. UserError for a line without either, a file twice,
    and a first line that is neither.
    """
    lines = [(number, line) for number, line in read_lines(path)]
    tabs = any("\t" in line for _, line in lines)
    rows = [(n, line.split("\t") if tabs else split_fields(line)) for n, line in lines]
    rows = [(number, [same_name(cell) for cell in row]) for number, row in rows]
    file, person, titles = 0, 1, list[str]()
    if rows and audio_format(Path(rows[0][1][0])) is None:
        titles = [cell.lower().removeprefix("#").strip() for cell in rows.pop(0)[1]]
        where = [[i for i, t in enumerate(titles) if t in known] for known in (_FILE, _PERSON)]
        if [len(found) for found in where] != [1, 1]:
            raise UserError(
                f"{path}:1: not `<file> TAB <speaker>` of an audio file, and no header with the "
                "columns `file` and `speaker`"
            )
        (file,), (person,) = where
    found: dict[str, str] = {}
    for number, row in rows:
        if len(row) <= max(file, person) or not (row[file] and row[person]):
            raise UserError(f"{path}:{number}: not `<file> TAB <speaker>`")
        if not tabs and len(row) > max(2, len(titles)):
            raise UserError(
                f"{path}:{number}: {len(row)} words; put tabs between the columns, as names of "
                "files or people may hold blanks"
            )
        name = same_name(row[file], folder)
        if name in found:
            raise UserError(f"{path}:{number}: {row[file]} is there twice; keep one line for it")
        found[name] = " ".join(row[person].split())
    if max(len(row) for _, row in rows or [(0, [])]) > 2:
        logging.info(
            "%s: column %d is the person; only that and the file are read", path, person + 1
        )
    return found


def _read_pairs(path: Path, what: str, fits: Callable[[str], bool]) -> dict[str, str]:
    """Read a table `<file> TAB <what>`; UserError for another line, and for a file twice."""
    found: dict[str, str] = {}
    for number, line in read_lines(path):
        name, _, value = line.rstrip("\r\n").partition("\t")
        if not name or not value.strip() or not fits(value) or name in found:
            raise UserError(f"{path}:{number}: not `<file> TAB <{what}>`, or a file twice")
        found[name] = value
    return found


def choose_key(key: str | None, key_file: Path | None) -> tuple[str, bool]:
    """The key, or the secret in the first line of its file, or a fresh secret of 128 bits; and
    whether it is fresh. The file may be a pipe, which is read once. UserError for a file without a
    key, and for a key that is easily guessed."""
    if key is None and key_file is None:
        return secrets.token_hex(16), True
    if key_file is not None and not (key := _read_key(key_file)):
        raise UserError(f"{key_file}: no key; `openssl rand -hex 16` prints one for its first line")
    assert key is not None
    if len(key) < SHORTEST_KEY:
        raise UserError(
            f"{key_file or '--key'}: the key has {len(key)} characters, and whoever guesses it "
            f"finds out who became whom; give at least {SHORTEST_KEY}, or none, and one is drawn"
        )
    return key, False


def _read_key(path: Path) -> str:
    """First line of a file that is not blank; empty where it has none, or is not there."""
    with (
        suppress(FileNotFoundError),
        refusing(f"{path}: its first line is not a key of text", UnicodeDecodeError),
        refusing(f"{path}: the key cannot be read: {{}}", IsADirectoryError, PermissionError),
        path.open("rb") as stream,
    ):
        while raw := stream.readline(_LONGEST_KEY):
            line = raw.decode("utf-8-sig").strip()
            if len(raw) == _LONGEST_KEY or "\0" in line:
                raise UserError(f"{path}: its first line is not a key of text")
            if line:
                return line
    return ""


def key_number(key: str) -> int:
    """Seed of all draws for a key."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest(), "big")


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Make the folder, and lock it for this run; UserError where another run writes there."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / JOURNAL).open("a") as stream:
        try:
            mine = lock(stream.fileno())
        except OSError as error:
            advice = "choose a folder of another file system"
            raise UserError(f"{out}: cannot be locked: {error.strerror}; {advice}") from error
        if not mine:
            raise UserError(
                f"{out}: another run writes there; wait for its end, or choose another folder"
            )
        yield


class Journal:
    """Journal of files finished with the same settings; appended to as files are done.

    Lines of JSON: first the settings, with a salted fingerprint (scrypt) of a given key, then a
    file a line with a mark of its source. It holds neither the key nor times.
    """

    def __init__(self, out: Path, settings: Mapping[str, object], key: str | None) -> None:
        """Begin or continue; UserError where OUT has files made with other settings or another key.

        key: None for a fresh one, which no other run shares.
        """
        self.path, rows = out / JOURNAL, _rows(out)
        head = {
            "settings": dict(settings),
            "key": fingerprint(key, _salt(rows[0]) if rows else "") if key else "fresh",
        }
        if not rows:
            self._append(head)
        elif rows[0] != head:
            same = rows[0].get("settings") == head["settings"]
            raise UserError(
                f"{out}: holds speech that was protected with "
                f"{'another key' if same else 'other settings'}; choose another output folder"
            )
        self.salt = ""  # of marks; secret where names are drawn
        self.replaced = list[Path]()  # made files that are no longer what was written
        self._marks = dict[str, str]()
        self.done = _done(rows)

    def has(self, name: Path, source: Path, made: Path) -> bool:
        """Whether a file is done, and neither it nor its source has changed or gone since."""
        known = self.done.get(name.as_posix())
        if known is None or not made.is_file() or known["source"] != _mark(source, self.salt):
            return False
        if changed := known.get("made") != _digest(made):
            self.replaced.append(made)
        return not changed

    def begin(self, sources: Mapping[Path, Path]) -> None:
        """Record, before the sources are read, that files are made anew: any that a killed run
        leaves are no longer valid. The order, by name, reveals nothing about the sources."""
        for name, source in sorted(sources.items()):
            self._marks[name.as_posix()] = _mark(source, self.salt)
            self._append({"file": name.as_posix(), "source": None})

    def add(self, name: Path, made: Path, told: Mapping[str, object]) -> None:
        """Record a finished file: the mark of its source at the start, the digest of the output,
        and its row of the account."""
        row = {"source": self._marks[name.as_posix()], "made": _digest(made), "told": told}
        self._append({"file": name.as_posix(), **row})

    def told(self, name: Path) -> dict[str, object]:
        """Record of a file that is done."""
        return dict(self.done[name.as_posix()].get("told", {}))

    def _append(self, row: Mapping[str, object]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row, sort_keys=True) + "\n")


def made_with(out: Path, key: str | None) -> dict[str, Any]:
    """Settings with which a folder was protected; none for another program's folder. UserError
    where the key was another, or cannot be checked."""
    rows = _rows(out) if is_there(out / JOURNAL) else []
    salt = _salt(rows[0]) if rows else ""
    if key and not salt:
        raise UserError(f"{out}: nothing there can check a key; leave KEY_FILE out")
    if key and rows[0]["key"] != fingerprint(key, salt):
        raise UserError(f"{out}: was protected with another key")
    return dict(rows[0]["settings"]) if rows else {}


class Versions:
    """Protected versions of files in a folder, by their names there, drawn or not; table: of drawn
    ones."""

    def __init__(self, out: Path, paths: Sequence[Path], table: Path) -> None:
        drawn = known_names([SALT, *paths], table)
        self._salt = str(drawn.pop(SALT, ""))
        self._listed = {path: drawn.get(path, path).as_posix() for path in paths}
        self._done = _done(_rows(out)) if is_there(out / JOURNAL) else None
        self.names = {path: drawn.get(path, made_name(path)) for path in paths}

    def made_of(self, path: Path, source: Path, made: Path) -> tuple[bool, bool]:
        """Whether the version of a file was made of it as it is, and is what was written; always
        where another program made it."""
        if self._done is None:
            return True, True
        row = self._done.get(self._listed[path], {})
        return row.get("source") == _mark(source, self._salt), row.get("made") == _digest(made)


def _done(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    last = {str(row["file"]): row for row in rows if "file" in row}
    return {name: row for name, row in last.items() if row["source"] is not None}


def _rows(out: Path) -> list[dict[str, Any]]:
    path = out / JOURNAL
    return [_object(line, path, number) for number, line in read_lines(path)]


def _salt(head: Mapping[str, object]) -> str:
    """Salt of the key in a journal's first line; none of a fresh key."""
    salt, colon, _ = str(head.get("key")).partition(":")
    return salt if colon else ""


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = {}  # the last line of a run that was killed
    if not isinstance(found, dict) or (number == 1 and "settings" not in found):
        raise UserError(f"{path}:{number}: is damaged; remove the file to begin anew")
    return found


def fingerprint(key: str, salt: str = "") -> str:
    """Salt and digest of a key: they can confirm a key, and do not reveal it."""
    salt = salt or secrets.token_hex(16)
    hashed = hashlib.scrypt(key.encode("utf-8"), salt=bytes.fromhex(salt), n=2**14, r=8, p=1)
    return f"{salt}:{hashed.hex()}"


def _mark(source: Path, salt: str) -> str:
    """Mark of a file's content, enough to notice another recording; empty for a missing file and
    for anything else, such as a named pipe. Only somebody who has the original and the salt can
    derive it."""
    return _digest(source, salt)[:4]


def _digest(path: Path, salt: str = "") -> str:
    with suppress(OSError):
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb") as stream:
                start = hashlib.sha256(salt.encode("utf-8"))
                return hashlib.file_digest(stream, lambda: start).hexdigest()
    return ""


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


# ---- Names of files: which look like people's, and names that are drawn in their place.

_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BETWEEN = re.compile(r"[ _.,-]+")
TABLE = "names.tsv"  # beside the output
SALT = Path(".salt")  # its row, which is not a recording's, keeps the drawn salt of marks
_DIGITS = 16  # of a drawn name, hexadecimal


def like_people(paths: Iterable[Path]) -> list[Path]:
    """Files in whose name, or that of a folder above, two words in a row begin with a capital
    letter and go on in small ones: `Anna Schmidt`, `Schmidt_Anna-2`. No list of names is asked, so
    others are not found, nor names in scripts without capitals.

    >>> [str(p) for p in like_people(map(Path, ["Anna Li.wav", "anna-1.wav", "REC 01.wav"]))]
    ['Anna Li.wav']
    """
    return [path for path in paths if any(map(_has_pair, path.with_suffix("").parts))]


def _has_pair(text: str) -> bool:
    for one, other in pairwise(_WORDS.finditer(text)):
        capital = all(w[0][0].isupper() and w[0][1:].islower() for w in (one, other))
        if capital and _BETWEEN.fullmatch(text[one.end() : other.start()]):
            return True
    return False


def draw_name(key: str, path: Path) -> Path:
    """Name that a key draws for a file, whatever folder it is in, with the ending of the protected
    file. Only somebody who has the key can derive it from the original name."""
    text = plain(path.as_posix()).encode("utf-8")
    drawn = hmac.new(key.encode("utf-8"), b"name of a file:" + text, "sha256").hexdigest()
    return Path(drawn[:_DIGITS] + made_name(path).suffix)


def draw_names(
    key: str, paths: Sequence[Path], table: Path, *, fresh: bool = False, begun: bool = False
) -> dict[Path, Path]:
    """Names by file, read from the table of an earlier run where there is one; the table, `<before>
    TAB <now>`, is written for its owner alone. UserError for a damaged table, one of another key
    than a given one, and a missing one where a run with a fresh key has begun."""
    if begun and not table.is_file():
        raise UserError(f"{table}: is missing, which says whose names are drawn; put it back")
    known = known_names(paths, table)
    if not fresh and any(name != draw_name(key, path) for path, name in known.items()):
        raise UserError(f"{table}: is of another key, and its names would be lost; move it away")
    found = {path: known.get(path) or draw_name(key, path) for path in paths}
    rows = _read_names(table) | {_cell(path): str(name) for path, name in found.items()}
    if len({*found.values()}) < len(paths) or len({*rows.values()}) < len(rows):
        raise UserError(f"{table}: two files have one name; remove it, or take another key")
    with replacing(table) as beside:
        beside.touch(0o600)
        beside.write_text("".join(f"{a}\t{b}\n" for a, b in sorted(rows.items())), "utf-8")
    return found


def known_names(paths: Iterable[Path], table: Path) -> dict[Path, Path]:
    """Names by file in a table; none where there is no table."""
    known = _read_names(table)
    return {path: Path(known[_cell(path)]) for path in paths if _cell(path) in known}


def _cell(path: StrPath) -> str:
    """Name of a file as a cell of a table."""
    return plain(path).replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _read_names(table: Path) -> dict[str, str]:
    if not table.is_file():
        return {}
    return _read_pairs(table, "name", lambda name: name == Path(name).name and "\t" not in name)


def with_name(path: Path, error: Exception) -> str:
    """Message of an error, with the name of the file."""
    return str(error) if str(path) in str(error) else f"{path}: {error}"


# ---- Side by side: a task for each file, in processes that share the loaded system.

Tick = Callable[[float], None]
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_shared: list[Any] = []  # of a process: how many seconds are done


@dataclass
class Jobs:
    """Calls of functions, nj at a time, each in a process of its own, or in this process if nj is
    1."""

    nj: int
    tick: Tick = lambda _: None

    def run(
        self, function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Result | UserError]]:
        """Yield the number of each call and its result, or its error, as they come. The last
        argument of a function is a callback for the seconds that are done.
        """
        if self.nj == 1:
            yield from ((n, result_of(function, *call, self.tick)) for n, call in enumerate(calls))
            return
        left, nj = dict(enumerate(calls)), self.nj
        while left:
            for n, result in self._side_by_side(nj, function, left):
                del left[n]
                yield n, result
            # A process was ended. One after the other shows by which call, which is the first.
            if left and nj == 1:
                n = next(iter(left))
                del left[n]
                yield n, UserError("its process was killed, perhaps for lack of memory; try --nj 1")
            nj = 1 if nj > 1 else self.nj

    def _side_by_side(
        self, nj: int, function: Callable[..., Result], calls: Mapping[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Result | UserError]]:
        """Yield results of numbered calls, until a process is ended."""
        context = multiprocessing.get_context("fork")
        seconds, told = context.Value("d", 0.0), 0.0
        with ProcessPoolExecutor(nj, context, _begin, (seconds, function)) as pool:
            numbers = dict[Future[Any], int]()
            with suppress(BrokenProcessPool):
                for n, call in calls.items():
                    numbers[pool.submit(_in_process, *call)] = n
            left = set(numbers)
            try:
                while left:
                    ended, left = wait(left, 0.5, FIRST_COMPLETED)
                    self.tick(seconds.value - told)
                    told = seconds.value
                    for future in ended:
                        if not isinstance(future.exception(), BrokenProcessPool):
                            yield numbers[future], future.result()
            finally:
                for process in multiprocessing.active_children() if left else ():
                    process.terminate()


def _begin(*shared: Any) -> None:
    """Begin a process: it ends with the one that began it, and silently where it is interrupted."""
    _shared[:] = shared
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _in_process(*call: Any) -> Any:
    seconds, function = _shared

    def tick(more: float) -> None:
        with seconds.get_lock():
            seconds.value += more

    return result_of(function, *call, tick)


def result_of(function: Callable[..., Result], *call: Any) -> Result | UserError:
    """Result of a call, or its error. A fault of this program also counts as an error of one
    file."""
    try:
        return function(*call)
    except UserError as error:
        return error
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
        told = " ".join(str(error).split())
        return UserError(f"a fault of this program, please report it: {kind}: {told}")
