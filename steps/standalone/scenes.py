"""Statements of users on recordings before these are protected: turns, spans, labels of people; and
the texts beside them, copied without names."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize

from steps.anonymisers.registry import Anonymiser
from steps.standalone import turns
from steps.standalone.hearing import Heard, find_people
from steps.standalone.job import Jobs, Tick, digest_and_mark
from steps.standalone.people import REDACTED, Scene, draw_voices
from steps.standalone.stream import Recording
from steps.standalone.turns import REDACT, Turn
from utils.cli import UserError
from utils.tables import replacing, write_file

BESIDE, AUTO = "beside", "auto"
_TABLES = (".tsv", ".csv", ".txt")
_ALIKE = 0.002  # seconds by which two files may differ that say the same
_WHEN = "{} speaks at a time that is not said, and may be beside who is kept; say the time"
_WHERE = "who is kept in which channel? the turns must say it (RTTM); or take --channels mix"


@dataclass(frozen=True)
class Wishes:
    """Options of the program. turns, redact: a folder, BESIDE, or for turns AUTO; None: none. keep,
    protect: labels of people who stay in the clear, or of whom all others do. people: number of
    those who are found. each: whether channels are protected each by itself. texts: whether
    they are copied."""

    turns: str | None = None
    redact: str | None = None
    keep: frozenset[str] = frozenset()
    protect: frozenset[str] = frozenset()
    by: str = "tone"
    people: int | None = None
    each: bool = False
    texts: bool = False

    def __post_init__(self) -> None:
        """UserError for options that are not for one another, and a folder that is not there."""
        given = self.turns not in (None, AUTO)
        if self.keep and self.protect:
            raise UserError("--keep and --protect: give one of them")
        if (self.keep or self.protect) and not given:
            raise UserError(
                "--keep, --protect: only where people's turns are given (--turns FOLDER or "
                "beside); found ones may be wrong, and somebody would be heard unprotected"
            )
        for name in (self.turns, self.redact):
            if name not in (None, BESIDE, AUTO) and not Path(str(name)).is_dir():
                raise UserError(f"{name}: is not a folder; give one, or `beside`")
        if self.people and self.turns != AUTO:
            raise UserError("--people: is for --turns auto; given turns name the people")
        if self.redact == AUTO:
            raise UserError("--redact: nothing finds what must not be heard; give a folder")

    @property
    def told(self) -> dict[str, object]:
        """Words of the account on the options."""
        kept = ", ".join(sorted(self.keep)), ", ".join(sorted(self.protect))
        return {
            "turns": self.turns and (AUTO if self.turns == AUTO else "given"),
            "kept": kept[0], "only": kept[1], "redacted": self.redact and self.by,
        }  # fmt: skip

    def settings(self, said: Mapping[Path, Scene], per: str) -> dict[str, object]:
        """Settings that two runs must share, beside those of each recording."""
        people = set[tuple[str, ...]]()
        if self.turns and per != "file":  # voices are apart from those of all others
            people = {tuple(sorted({turn.person for turn in s.turns})) for s in said.values()}
        about = repr((sorted(self.told.items()), self.people, self.texts, sorted(people)))
        plain = not (self.turns or self.redact or self.texts)
        return {} if plain else {"asked": _mark(about)}  # names stay out of OUT

    def read(
        self, source: Path, audio: Sequence[Path], *, alone: bool = False
    ) -> dict[Path, Scene]:
        """Statements of files on recordings. alone: others of the folder are not protected now.
        UserError for spans of no recording, none of one that is alone, and a label of nobody."""
        said, spans = dict[Path, list[Path]](), dict[Path, list[Path]]()
        if self.turns not in (None, AUTO):
            kinds = set(turns.KINDS) - ({".txt"} if self.turns == BESIDE else set())
            said = turns.find(self._folder(self.turns, source), audio, kinds)
        if self.redact:
            folder = self._folder(self.redact, source)
            spans = turns.find(folder, audio, turns.KINDS)
            known = {file for files in spans.values() for file in files}
            stems = {file.with_suffix("") for file in known}
            whole = "*" if self.redact != BESIDE else f"*.{REDACT}.*"
            if alone and not known:
                raise UserError(f"{folder}: has nothing that must not be heard in {audio[0]}")
            for file in () if alone else sorted({*folder.rglob(whole)} - known):
                ours = file.suffix.lower() in turns.KINDS or file.with_suffix("") not in stems
                if ours and file.is_file() and not file.name.startswith("."):
                    raise UserError(
                        f"{file}: is of a kind that is not read, or {source} has no recording of "
                        "this name; put it right, or take it away: what it says would be heard"
                    )
        found = dict[Path, Scene]()
        for path in audio:
            try:
                files = [
                    file for file in said.get(path, []) if not file.stem.endswith(f".{REDACT}")
                ]
                agreed, untimed = _agreed(files)
                scene = Scene(agreed, self._spans(spans.get(path, [])), by=self.by)
                people = {turn.person for turn in scene.turns} - {""}
                kept = people - self.protect if self.protect else people & self.keep
                why = ""
                if kept and self.each and not all(turn.channel for turn in scene.turns):
                    why = f"{source / path}: {_WHERE}"
                if kept and untimed - kept:
                    why = f"{files[0]}: {_WHEN.format(min(untimed - kept) or 'somebody')}"
                found[path] = replace(scene, kept=frozenset(kept), fault=why)
            except UserError as error:
                found[path] = Scene(fault=str(error))
        everybody = {turn.person for scene in found.values() for turn in scene.turns}
        named = self.keep | self.protect
        for label in sorted(named - everybody):
            raise UserError(f"--keep, --protect: {label}: nobody is called so in the turns")
        for label in sorted(everybody - named):
            if label.casefold() in {own.casefold() for own in named}:
                raise UserError(f"--keep, --protect: {label}: is this another? write all alike")
        return found

    def _folder(self, name: str | None, source: Path) -> Path:
        return source if name == BESIDE else Path(str(name))

    def _spans(self, files: Iterable[Path]) -> tuple[Turn, ...]:
        found = list[Turn]()
        for file in files:
            if file.suffix.lower() == ".rttm":
                continue
            table = file.suffix.lower() in _TABLES
            if table and self.redact == BESIDE and not file.stem.endswith(f".{REDACT}"):
                continue
            found += turns.read_spans(file, table)
        return tuple(sorted(found))


def _agreed(files: Sequence[Path]) -> tuple[tuple[Turn, ...], set[str]]:
    """Turns that files of one recording say, and who else speaks at times that they do not say;
    UserError where they say different turns."""
    kinds = list(turns.KINDS)  # RTTM first, which has channels
    order = sorted(files, key=lambda file: kinds.index(file.suffix.lower()))
    read = [(file, turns.read_turns(file)) for file in order]
    untimed = {turn.person for _, own in read for turn in own if turn.end == turns.NEVER}
    found = [(file, [turn for turn in own if turn.end < turns.NEVER]) for file, own in read]
    found = [(file, own) for file, own in found if any(turn.person for turn in own)]
    for file, own in found[1:]:
        same = len(own) == len(found[0][1]) and all(
            abs(a.begin - b.begin) <= _ALIKE and abs(a.end - b.end) <= _ALIKE
            and a.person == b.person
            for a, b in zip(own, found[0][1], strict=True)
        )  # fmt: skip
        if not same:
            raise UserError(f"{file}: says other turns than {found[0][0]}; take one of them away")
    return tuple(found[0][1]) if found else (), untimed


def find_turns(
    asked: Wishes, jobs: Jobs, source: Path, said: Mapping[Path, Scene], folder: Path
) -> Iterator[tuple[Path, Scene]]:
    """Yield recordings and scenes with the turns that are heard, which are written to a folder as
    RTTM and TextGrid; those that are there, and no older than the recording, count instead."""
    known, todo = turns.find(folder, [*said], turns.KINDS), list[tuple[Path, bool, int | None]]()
    stems = Counter(path.with_suffix("") for path in said)
    for stem in (stem for stem, n in stems.items() if n > 1):
        raise UserError(f"{source / stem}: two recordings have this name; rename one")
    for path, scene in said.items():
        own = replace(scene, turns=_agreed(known[path])[0])
        n, at = len({turn.person for turn in own.turns}), (source / path).stat().st_mtime
        if min((x.stat().st_mtime for x in known[path]), default=-1) < at or asked.people not in (
            None, n
        ):  # fmt: skip
            todo.append((source / path, asked.each, asked.people))
        else:
            yield path, own
    for number, heard in jobs.run(_hear, todo):
        path = todo[number][0].relative_to(source)
        if isinstance(heard, UserError):
            yield path, replace(said[path], fault=str(heard))
            continue
        target = folder / path.with_suffix(".rttm")
        target.parent.mkdir(parents=True, exist_ok=True)
        rows = [turns.rttm_line(path.stem, turn) for turn in heard.turns]
        write_file(target, "".join(rows))
        tiers = dict[str, list[Turn]]()
        for turn in heard.turns:
            tiers.setdefault(turn.person, []).append(turn._replace(words=turn.person))
        with replacing(target.with_suffix(".TextGrid")) as beside:
            given = [(name, own, False) for name, own in tiers.items()]
            turns.write_textgrid(beside, given, heard.seconds)
        yield path, replace(said[path], turns=_agreed([target])[0], sure=heard.sure)


def _hear(path: Path, each: bool, n: int | None, tick: Tick) -> Heard:
    with closing(Recording.open(path)) as recording:
        count = recording.audio.channels
        found = list[Heard]()
        for channel in range(count) if each and count > 1 else [None]:
            first = len({turn.person for own in found for turn in own.turns})
            found.append(find_people(recording, channel, n, first))
        tick(recording.seconds)
        said = tuple(sorted(turn for own in found for turn in own.turns))
        return Heard(said, min(own.sure for own in found), recording.seconds)


def labels_of(text: str | None) -> frozenset[str]:
    """Labels between commas."""
    return frozenset(filter(None, map(turns.label, (text or "").split(","))))


def digest_of(scene: Scene, salt: str, texts: Sequence[Path], *, found: bool) -> str:
    """Mark of what is said of a recording, and of its texts, enough to notice others; empty where
    nothing is. found: whether turns are those that are heard, which do not count."""
    said = () if found else scene.turns
    read = [digest_and_mark(file)[0] for file in texts]
    if not (said or scene.spans or read or scene.fault):
        return ""
    about = (salt, said, scene.spans, sorted(scene.kept), scene.by, read, scene.fault)
    return _mark(repr(about))


def _mark(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:4]


def with_voices(
    scenes: Mapping[Path, Scene], groups: Mapping[str, Sequence[Path]], anonymiser: Anonymiser
) -> dict[Path, Scene]:
    """Scenes whose people have voices, which are apart where they are heard together. groups: files
    by name of what shares a person of the same label."""
    keys = {
        path: {turn.person: f"{name}\n{turn.person}" for turn in scenes[path].turns if turn.person}
        for name, paths in groups.items() for path in paths
    }  # fmt: skip
    drawn = draw_voices(anonymiser, [[*own.values()] for own in keys.values()])
    return {
        path: replace(scenes[path], voices={who: drawn[key] for who, key in own.items()})
        for path, own in keys.items()
    }


# ---- Texts beside recordings, copied with other names, times and, of spans, words.


@dataclass(frozen=True)
class Texts:
    """Subtitles and transcripts of recordings, and P1, P2 ... by people's names. lost: why some
    cannot be read."""

    files: Mapping[Path, Sequence[Path]]
    names: Mapping[Path, Mapping[str, str]]
    lost: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls, source: Path, audio: Sequence[Path], scenes: Mapping[Path, Scene], shared: bool
    ) -> "Texts":
        """Find and read them. shared: whether a name is the same person in all recordings."""
        found, lost = turns.find(source, audio, turns.TEXTS), dict[Path, str]()
        names, all_names = dict[Path, dict[str, str]](), dict[str, str]()
        for path in audio:
            own = names[path] = all_names if shared else {}

            def note(turn: Turn, own: dict[str, str] = own) -> Turn:
                if turn.person not in ("", REDACT):
                    own.setdefault(turn.person, f"P{len(own) + 1}")
                return turn

            for turn in scenes[path].turns:
                note(turn)
            for file in found[path]:
                try:
                    turns.visit(file, note)
                except UserError as error:
                    lost[file] = str(error)
        return cls(found, names, lost)

    def remove(self, path: Path, target: Path) -> None:
        """Remove the copies beside a protected version that is not made again."""
        for file in self.files[path]:
            target.with_suffix(file.suffix).unlink(missing_ok=True)

    def copy(self, path: Path, target: Path, scene: Scene, at: Callable[[float], float]) -> None:
        """Write the texts of a recording beside its protected version; at: second of this at which
        is heard what the recording says then."""
        self.remove(path, target)
        for file in (file for file in self.files[path] if file not in self.lost):
            change = _Change(self.names[path], scene.spans, at)
            try:
                turns.visit(
                    file, change, turns.Target(target.with_suffix(file.suffix), target.name)
                )
            except UserError as error:
                self.lost[file] = str(error)


@dataclass(frozen=True)
class _Change:
    names: Mapping[str, str]
    spans: Sequence[Turn]
    at: Callable[[float], float]

    def __call__(self, turn: Turn) -> Turn:
        begin, end = (
            x if x == turns.NEVER else max(0.0, self.at(x)) for x in (turn.begin, turn.end)
        )
        new = turn._replace(begin=begin, end=end)
        if turn.person == REDACT:
            return new
        words = normalize("NFC", turns.unnamed(turn.words))
        marked = turns.NAMED.search(turn.words)
        for span in self.spans:
            own = marked and span == Turn(turn.begin, turn.end, REDACT, "name")
            near = span.begin - REDACTED < turn.end and turn.begin < span.end + REDACTED
            if not own and (near or turn.end == turns.NEVER) and words:
                words = f"[{span.words}]"
                break
        # The longest first; in any case, unless they are as short as many words.
        known = sorted((name for name in self.names if len(name) > 1), key=len, reverse=True)
        form = [(re.escape(name).replace(r"\ ", r"[\s_]+"), len(name) > 2) for name in known]
        if any_of := "|".join(name if long else f"(?-i:{name})" for name, long in form):
            by = {name.casefold(): new for name, new in self.names.items()}
            whole = re.compile(rf"(?<!\w)(?:{any_of})(?!\w)", re.I)
            words = whole.sub(lambda found: by[turns.label(found[0]).casefold()], words)
        return new._replace(person=self.names.get(turn.person, ""), words=words)


def left_out(source: Path, audio: Sequence[Path]) -> dict[Path, str]:
    """Subtitles and transcripts of recordings, which lie beside them."""
    found = turns.find(source, audio, turns.TEXTS)
    return {file: "" for own in found.values() for file in own}
