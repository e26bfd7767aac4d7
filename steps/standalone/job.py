"""A folder of audio through a system: the system's own folder, the plan, and jobs side by side."""

import ctypes
import fcntl
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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, TypeVar

from steps.anonymisers.registry import CPU_SECONDS, Anonymiser, describe_system, load_anonymiser
from steps.anonymisers.voice_conversion import CONF, HELD, MODELS, held
from steps.sources import Resources
from steps.standalone.shards import Shard, part_name, parts_of
from utils.audiofile import audio_format, is_written
from utils.cli import UserError, progress, refusing
from utils.digests import contents, digest_file, digest_json
from utils.orphans import lock
from utils.seeds import Draws
from utils.settings import is_settings, read_settings
from utils.tables import (
    StrPath,
    is_there,
    read_lines,
    remove_unfinished,
    replacing,
    split_fields,
)

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
    """Loaded system. digest: of all that its speech depends on, except the key. pitch: whether it
    asks for that of the speaker. rate: CPU seconds for a second of speech, as measured of its kind;
    0: not measured."""

    anonymiser: Anonymiser
    digest: str
    limits: Sequence[str]
    pitch: bool
    rate: float = 0.0


def load_system(
    path: Path, seed: int, changes: Mapping[str, object] = MappingProxyType({})
) -> LoadedSystem:
    """Load a folder or a yaml file, with some settings instead of its own; UserError for a missing
    one, or one that needs more than a folder of audio."""
    folder = path if path.is_dir() else None
    conf = path if folder is None else folder / CONF
    if not is_settings(conf):
        raise UserError(
            f"{conf}: is missing; a system is a yaml file, or a folder with {CONF}{_near(path)}"
        )
    found = {} if folder is None else held(folder)
    needs = [need.split(":")[0] for need in describe_system(conf).needs]
    for need in needs:
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
    return LoadedSystem(anonymiser, digest, limits, "f0" in needs, CPU_SECONDS.get(kind, 0.0))


def _near(path: Path) -> str:
    """Systems with a name like that of a missing one, in words."""
    root = MODELS.parent
    known = [*MODELS.glob(f"*/{CONF}"), *root.glob("egs/TEMPLATE/conf/systems/*.yaml")]
    names = {one.parent.name if one.name == CONF else one.stem: one for one in reversed(known)}
    found = [names[name] for name in get_close_matches(path.stem, names, 3, 0.6)]
    shown = [str((p.parent if p.name == CONF else p).relative_to(root)) for p in found]
    return f"; did you mean {' or '.join(shown)}?" if shown else ""


# ---- Plan of a folder's protection: its audio files, groups that share a voice, and finished ones.

JOURNAL = ".protected.jsonl"  # in the output: the settings, and the finished files
SHORTEST_KEY = 16  # characters
_LONGEST_KEY = 2**16  # bytes of a line that holds one


def find_audio(folder: Path, out: Path, *, made: bool = False) -> tuple[list[Path], list[Path]]:
    """Find audio files under a folder, relative to it and sorted, and so the other files. made: it
    holds what was protected.

    Hidden files and folders do not count. Linked folders are gone through once, after all others,
    `out` never. A link that leads nowhere and a folder that cannot be listed count as audio, so
    that they are named where it is opened. UserError if there is no audio, or two files that are
    not made yet would have one name.
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
    every = sorted(path.relative_to(folder) for path in {*files, *lost})
    audio = [path for path in every if folder / path in lost or audio_format(path)]
    if not audio:
        raise UserError(f"{folder}: holds no audio file")
    there = set[Path]() if made else {*audio}
    if twice := [path for path in audio if made_name(path) != path and made_name(path) in there]:
        raise UserError(f"{folder / twice[0]}: would become {made_name(twice[0])}, which is there")
    return audio, sorted({*every} - {*audio})


def _identity(folder: StrPath) -> tuple[int, int]:
    found = Path(folder).stat()
    return found.st_dev, found.st_ino


def made_name(path: Path) -> Path:
    """Name of the protected file: that of the source, with .wav behind it where its format is never
    written."""
    name = audio_format(path)
    return path if name is None or is_written(name) else path.with_name(f"{path.name}.wav")


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
def alone_in(out: Path, shard: Shard | None = None) -> Iterator[IO[str]]:
    """Make the folder, and lock it for this run, which removes what killed ones had begun to write,
    or for this shard and others; yields what is locked. UserError where another run writes."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / JOURNAL).open("a") as stream, (out / part_name(JOURNAL, shard)).open("a") as own:
        try:
            kind = fcntl.LOCK_SH if shard else fcntl.LOCK_EX
            mine = lock(stream.fileno(), 0, kind) and (shard is None or lock(own.fileno()))
        except OSError as error:
            advice = "choose a folder of another file system"
            raise UserError(f"{out}: cannot be locked: {error.strerror}; {advice}") from error
        if not mine:
            raise UserError(
                f"{out}: another run writes there; wait for its end, or choose another folder"
            )
        if shard is None:
            remove_unfinished(out)
        yield stream


class Journal:
    """Journal of files finished with the same settings; appended to as files are done.

    Lines of JSON: first the settings, with a salted fingerprint (scrypt) of a given key, then a
    file a line with a mark of its source. It holds neither the key nor times. Each shard has one.
    """

    def __init__(
        self,
        out: Path,
        settings: Mapping[str, object],
        key: str | None,
        shard: Shard | None = None,
    ) -> None:
        """Begin or continue; UserError where OUT has files made with other settings or another key.

        key: None for a fresh one, which no other run shares.
        """
        self._about, self.path = (out, settings, key), out / JOURNAL
        self.done = _done(self._begin(self.path))
        if shard:
            self.path = out / part_name(JOURNAL, shard)
            self.done |= _done(self._begin(self.path))
        self.salt = ""  # of marks; secret where names are drawn
        self.replaced = list[Path]()  # made files that are no longer what was written

    def _begin(self, path: Path) -> list[dict[str, Any]]:
        """Rows of a journal, after the check of its first, which is written where it is missing."""
        (out, settings, key), rows = self._about, _rows(path)
        head = {
            "settings": dict(settings),
            "key": fingerprint(key, _salt(rows[0]) if rows else "") if key else "fresh",
        }
        if not rows:
            _append(path, head)
        elif not path.read_bytes().endswith(b"\n"):  # else the next row would be lost with it
            with path.open("a") as stream:
                stream.write("\n")
        if rows and rows[0] != head:
            same = rows[0].get("settings") == head["settings"]
            raise UserError(
                f"{out}: holds speech that was protected with "
                f"{'another key' if same else 'other settings'}; choose another output folder"
            )
        return rows

    def take_parts(self) -> None:
        """Take over what shards that have ended recorded; errors as for a run that continues."""
        for part in parts_of(self.path):
            _append(self.path, *(row for row in self._begin(part) if "file" in row))
            part.unlink()
        self.done = _done(_rows(self.path))

    def check(self, made: Mapping[Path, Path]) -> None:
        """UserError where files to be made, by name, would take the place of others: of what no run
        made here, or of each other, where the file system does not tell capitals from others."""
        journal, first = self._about[0] / JOURNAL, dict[str, Path]()
        begun = {row.get("file") for path in (journal, *parts_of(journal)) for row in _rows(path)}
        alike = journal.with_name(JOURNAL.upper()).exists()
        for name, target in made.items():
            there = os.path.lexists(target) and target.is_file()  # names may be too long
            if there and name.as_posix() not in begun:
                raise UserError(f"{target}: is there, and was not made here; choose another folder")
            other = first.setdefault(same_name(target).casefold(), name)
            if alike and other != name:
                raise UserError(f"{target}: would also be that of {other}; rename one")

    def has(self, name: Path, source: Path, made: Path) -> tuple[str, str] | None:
        """SHA-256 of the source and of the file of it, if that is done, and neither has changed or
        gone since."""
        known = self.done.get(name.as_posix())
        if known is None or not made.is_file():
            return None
        digest, mark = digest_and_mark(source, self.salt)
        if known["source"] != mark:
            return None
        found = digest_and_mark(made)[0]
        if known.get("made") != found:
            self.replaced.append(made)
            return None
        return digest, found

    def begin(self, names: Iterable[Path]) -> None:
        """Record, before the sources are read, that files are made anew: any that a killed run
        leaves are no longer valid. The order, by name, reveals nothing about the sources."""
        begun = sorted(name.as_posix() for name in names)
        _append(self.path, *({"file": name, "source": None} for name in begun))
        for name in begun:
            self.done.pop(name, None)

    def add(self, name: Path, mark: str, made: str, told: Mapping[str, object]) -> None:
        """Record a finished file: the mark of its source before it was read, the digest of the
        output, and its row of the account."""
        row = {"file": name.as_posix(), "source": mark, "made": made, "told": told}
        _append(self.path, row)
        self.done[name.as_posix()] = row

    @property
    def made(self) -> list[str]:
        """Digests of all files that are done, in an order that does not tell which is which."""
        return sorted(str(row.get("made")) for row in self.done.values())

    def told(self, name: Path) -> dict[str, object]:
        """Record of a file that is done."""
        return dict(self.done[name.as_posix()].get("told", {}))


def _append(path: Path, *rows: Mapping[str, object]) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, sort_keys=True) + "\n" for row in rows)


def made_with(out: Path, key: str | None) -> dict[str, Any]:
    """Settings with which a folder was protected; none for another program's folder. UserError
    where the key was another, or cannot be checked."""
    if parts_of(out / JOURNAL):
        raise UserError(f"{out}: was made in shards; end it by protecting it once without --shard")
    rows = _rows(out / JOURNAL)
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
        rows = _rows(out / JOURNAL)
        self._done = _done(rows) if rows else None
        self.names = {path: drawn.get(path, made_name(path)) for path in paths}

    def made_of(self, path: Path, source: Path, made: Path) -> tuple[bool, bool]:
        """Whether the version of a file was made of it as it is, and is what was written; always
        where another program made it."""
        if self._done is None:
            return True, True
        row = self._done.get(self._listed[path], {})
        mark = digest_and_mark(source, self._salt)[1]
        return row.get("source") == mark, row.get("made") == digest_and_mark(made)[0]


def _done(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    last = {str(row["file"]): row for row in rows if "file" in row}
    return {name: row for name, row in last.items() if row["source"] is not None}


def _rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a journal; none of one that is not there."""
    rows = list[dict[str, Any]]()
    for number, line in read_lines(path) if is_there(path) else ():
        row: object = {}
        with suppress(ValueError):  # the last line of a run that was killed
            row = json.loads(line)
        if not isinstance(row, dict) or (number == 1 and "settings" not in row):
            raise UserError(f"{path}:{number}: is damaged; choose another output folder")
        rows.append(row)
    return rows


def _salt(head: Mapping[str, object]) -> str:
    """Salt of the key in a journal's first line; none of a fresh key."""
    salt, colon, _ = str(head.get("key")).partition(":")
    return salt if colon else ""


def fingerprint(key: str, salt: str = "") -> str:
    """Salt and digest of a key: they can confirm a key, and do not reveal it."""
    salt = salt or secrets.token_hex(16)
    hashed = hashlib.scrypt(key.encode("utf-8"), salt=bytes.fromhex(salt), n=2**14, r=8, p=1)
    return f"{salt}:{hashed.hex()}"


def digest_and_mark(path: Path, salt: str = "") -> tuple[str, str]:
    """SHA-256 of a file's content, and its mark, enough to notice another recording; empty for a
    missing file and for anything else, such as a named pipe. Only somebody who has the original and
    the salt can derive the mark."""
    both = hashlib.sha256(), hashlib.sha256(salt.encode("utf-8"))
    with suppress(OSError):
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb") as stream:
                while block := stream.read(2**20):
                    for one in both[: 1 + bool(salt)]:
                        one.update(block)
            return both[0].hexdigest(), both[bool(salt)].hexdigest()[:4]
    return "", ""


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where that is not known."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


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
_DAY = re.compile(  # 1980-03-12, 19800312, 12.3.1980
    r"(?<!\d)((19|20)\d\d([-_. ]?)(0[1-9]|1[0-2])\3(0[1-9]|[12]\d|3[01])"
    r"|(0?[1-9]|[12]\d|3[01])[-_. ](0?[1-9]|1[0-2])[-_. ](19|20)\d\d)(?!\d)"
)
_BETWEEN = re.compile(r"[ _.,-]+")
TABLE = "names.tsv"  # beside the output
SALT = Path(".salt")  # its row, which is not a recording's, keeps the drawn salt of marks
_DIGITS = 16  # of a drawn name, hexadecimal


def like_people(paths: Iterable[Path]) -> list[Path]:
    """Files in whose name, or that of a folder above, two words in a row begin with a capital
    letter, `Anna Schmidt`, `SCHMIDT_Anna-2`, `AnnaSchmidt`, or a day is written, as of a birth:
    `1980-03-12`. No list of names is asked, so others are not found, nor names in scripts without
    capitals.

    >>> [str(p) for p in like_people(map(Path, ["Anna Li.wav", "anna-1.wav", "REC 01.wav"]))]
    ['Anna Li.wav']
    """
    return [
        path for path in paths if any(map(_has_pair, Path(same_name(path)).with_suffix("").parts))
    ]


def _has_pair(text: str) -> bool:
    if _DAY.search(text):
        return True
    apart = (" " * (a.islower() and b.isupper()) + b for a, b in pairwise(f" {text}"))
    text = "".join(apart)
    for one, other in pairwise(_WORDS.finditer(text)):
        words = one[0], other[0]
        capital = all(word.istitle() or (word.isupper() and len(word) > 2) for word in words)
        capital &= any(len(word) > 1 and word.istitle() for word in words)
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
    """Rows of a table `<file> TAB <name>`; UserError for another line, and for a file twice."""
    found: dict[str, str] = {}
    for number, line in read_lines(table) if table.is_file() else ():
        before, _, name = line.rstrip("\r\n").partition("\t")
        if (
            not (before and name.strip())
            or name != Path(name).name
            or "\t" in name
            or before in found
        ):
            raise UserError(f"{table}:{number}: not `<file> TAB <name>`, or a file twice")
        found[before] = name
    return found


def with_name(path: Path, error: Exception, made: Path | None = None) -> str:
    """Message of an error, with the name of the file, unless it has that of what is made of it."""
    said = str(error)
    return said if str(path) in said or str(made or path) in said else f"{path}: {said}"


# ---- Side by side: a task for each file, in processes that share the loaded system.

Tick = Callable[[float], None]
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_AHEAD = 4  # calls for each process that are under way or wait for it
_shared: list[Any] = []  # of a process: how many seconds are done


class Bar:
    """A bar of seconds of audio, and how many of its files are done, of n."""

    def __init__(self, name: str, seconds: float, n: int, what: str = "files") -> None:
        self._seconds, self.done = 0.0, 0
        shown = progress(name, unit="s", beside=lambda: f"{self.done} of {n} {what}")
        self._bar = iter(shown(range(round(seconds))))

    def add(self, seconds: float) -> None:
        """So much more is done."""
        before, self._seconds = self._seconds, self._seconds + seconds
        deque(islice(self._bar, int(self._seconds) - int(before)), 0)

    def count(self, done: Iterable[Result]) -> Iterator[Result]:
        """Yield what is done, and count it."""
        for item in done:
            self.done += 1
            yield item


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
            numbers, waiting = dict[Future[Any], int](), iter([*calls.items()])
            try:
                while True:
                    with suppress(BrokenProcessPool):  # few at a time: all are looked at each time
                        for n, call in islice(waiting, _AHEAD * nj - len(numbers)):
                            numbers[pool.submit(_in_process, *call)] = n
                    if not numbers:
                        return
                    ended, _ = wait(numbers, 0.5, FIRST_COMPLETED)
                    self.tick(seconds.value - told)
                    told = seconds.value
                    for future in ended:
                        n = numbers.pop(future)
                        if not isinstance(future.exception(), BrokenProcessPool):
                            yield n, future.result()
            finally:
                for process in multiprocessing.active_children() if numbers else ():
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
