"""Statements of users on recordings before these are protected: turns, spans, labels of people; and
the texts beside them, copied without names."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize

import numpy as np

from steps.anonymisers.registry import Anonymiser
from steps.standalone import turns
from steps.standalone.hearing import Heard, find_people
from steps.standalone.job import Jobs, Tick, digest_and_mark
from steps.standalone.people import REDACTED, Scene, draw_voices
from steps.standalone.turns import REDACT, Turn
from utils.cli import UserError

BESIDE, AUTO = "beside", "auto"
# Scripts in which other letters stand beside a name: Thai to Burmese, Khmer, Japanese to Korean.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\ud7af]")
_ALIKE = 0.002  # seconds by which two files may differ that say the same
_WHEN = "somebody speaks at a time that is not said, and may be beside who is kept; say the time"
_ELSE = (
    "; write a table `begin end person`, named as the recording, or protect it apart, without turns"
)
_WHERE = "who is kept in which channel? the turns must say it (RTTM); or take --channels mix"


@dataclass(frozen=True)
class Wishes:
    """Options of the program. turns, redact: a folder, BESIDE, or for turns AUTO; None: none. keep,
    protect: labels, between commas, of people who stay in the clear, or of whom all others do.
    people: number of those who are found. each: whether channels are protected each by itself.
    texts: whether they are copied. place: folder of turns that are found."""

    turns: str | None = None
    redact: str | None = None
    keep: str | None = None
    protect: str | None = None
    by: str = "tone"
    people: int | None = None
    each: bool = False
    texts: bool = False
    place: Path | None = None

    def __post_init__(self) -> None:
        """UserError for options that are not for one another, and a folder that is not there."""
        if self.keep and self.protect:
            raise UserError("--keep and --protect: give one of them")
        if (self.keep or self.protect) and not self.given:
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
    def given(self) -> bool:
        """Whether files say who speaks when, which nobody corrects while the program runs."""
        return self.turns not in (None, AUTO)

    @property
    def told(self) -> dict[str, object]:
        """Words of the account on the options."""
        kept, only = (", ".join(sorted(labels_of(own))) for own in (self.keep, self.protect))
        return {
            "turns": "given" if self.given else self.turns, "kept": kept, "only": only,
            "redacted": self.redact and self.by,
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
        UserError for turns or spans of no recording, and a label of nobody."""
        said, spans = dict[Path, list[Path]](), dict[Path, list[Path]]()
        keep, protect = labels_of(self.keep), labels_of(self.protect)
        if place := self._folder(self.turns, source):
            kinds = {*turns.KINDS} - ({".txt"} if self.turns == BESIDE else set())
            said = turns.find(place, audio, kinds)
            if self.given and not any(said.values()):
                raise UserError(
                    f"{source / audio[0]}: {place} has no turns of any recording{_ELSE}"
                )
        if folder := self._folder(self.redact, source):
            spans = self._find_spans(folder, source, audio, said, alone)
        found = dict[Path, Scene]()
        for path in audio:
            files, agreed = said.get(path, []), tuple[Turn, ...]()
            try:
                agreed, untimed = _agreed(files)
                people = {turn.person for turn in agreed} - {""}
                kept = people - protect if protect else people & keep
                if self.given and not people:
                    why = f"{files[0]} names nobody" if files else f"{place} has no turns of it"
                    raise UserError(f"{source / path}: {why}{_ELSE}")
                if kept and self.each and not all(turn.channel for turn in agreed):
                    raise UserError(f"{source / path}: {_WHERE}")
                if kept and untimed - kept:
                    raise UserError(f"{files[0]}: {_WHEN}")
                marks = self._spans(spans.get(path, []), files)
                # Who else is named within what somebody says may say the rest of it.
                agreed += tuple(t._replace(person="") for t in agreed if t.person in kept
                                and re.search(r"\w\s*[:：](?!\d)", t.words))  # fmt: skip
                found[path] = Scene(agreed, marks, frozenset(kept), by=self.by)
            except UserError as error:
                found[path] = Scene(agreed, fault=str(error))
        everybody = {turn.person for scene in found.values() for turn in scene.turns}
        named = keep | protect
        for label in sorted(named - everybody):
            raise UserError(f"--keep, --protect: {label}: nobody is called so in the turns")
        for label in sorted(everybody - named):
            if label.casefold() in {own.casefold() for own in named}:
                raise UserError(f"--keep, --protect: {label}: is this another? write all alike")
        return found

    def _folder(self, name: str | None, source: Path) -> Path | None:
        return {None: None, BESIDE: source, AUTO: self.place}.get(name, Path(name or ""))

    def _find_spans(
        self,
        folder: Path,
        source: Path,
        audio: Sequence[Path],
        said: Mapping[Path, Sequence[Path]],
        alone: bool,
    ) -> dict[Path, list[Path]]:
        """Files of spans by recording; UserError for those that are of none, or of another kind."""
        beside = self.redact == BESIDE
        found = turns.find(folder, audio, {*turns.KINDS} - {".rttm"}, spans=True)
        if beside:
            found = {path: [x for x in own if x.suffix.lower() not in turns.TABLES
                            or turns.is_redact(x)] for path, own in found.items()}  # fmt: skip
        spans = {file for files in found.values() for file in files}
        if alone:
            if not spans:
                raise UserError(f"{folder}: has nothing that must not be heard in {audio[0]}")
            return found
        known = spans | {file for files in said.values() for file in files}
        stems = {file.with_suffix("") for file in spans}
        for file in sorted({*folder.rglob("*")} - known - {source / path for path in audio}):
            if not file.is_file() or file.name.startswith("."):
                continue
            kind = file.suffix.lower()
            ours = kind in turns.KINDS or file.with_suffix("") not in stems
            named = not beside or REDACT in file.name.casefold()
            if ours and (named or (kind in turns.TEXTS and turns.marks_names(file))):
                raise UserError(
                    f"{file}: is of a kind that is not read, or {source} has no recording of "
                    "this name; put it right, or take it away: what it says would be heard"
                )
        return found

    def _spans(self, files: Iterable[Path], said: Sequence[Path]) -> tuple[Turn, ...]:
        found = list[Turn]()
        for file in files:
            found += (own := turns.read_spans(file))
            tiers = file.suffix.lower() in turns.TIERS and self.redact != BESIDE
            if tiers and not own and file not in said:
                raise UserError(
                    f"{file}: marks nothing; call a tier `{REDACT}`, or take the file away"
                )
        return tuple(sorted(found))


def _agreed(files: Sequence[Path]) -> tuple[tuple[Turn, ...], set[str]]:
    """Turns that files of one recording say, and who else speaks at times that they do not say;
    UserError where they say different turns."""
    order = sorted(files, key=lambda file: turns.KINDS.index(file.suffix.lower()))  # RTTM first
    read = [(file, turns.read_turns(file)) for file in order]
    untimed = {turn.person for _, own in read for turn in own if turn.end == turns.NEVER}
    found = [(file, [turn for turn in own if turn.end < turns.NEVER]) for file, own in read]
    found = [(file, own) for file, own in found if any(turn.person for turn in own)]
    for file, own in found[1:]:
        (said, one), (first, other) = (
            ([turn.person for turn in each], [turn[:2] for turn in each])
            for each in (own, found[0][1])
        )
        if said != first or not np.allclose(one, other, 0, _ALIKE):
            raise UserError(f"{file}: says other turns than {found[0][0]}; take one of them away")
    same = zip(*(own for _, own in found), strict=True)
    return tuple(x[0]._replace(words="\n".join(turn.words for turn in x)) for x in same), untimed


def find_turns(
    asked: Wishes, jobs: Jobs, source: Path, said: Mapping[Path, Scene]
) -> Iterator[tuple[Path, Scene]]:
    """Yield recordings of which no file in `asked.place` says who speaks, with the turns that are
    heard, which are written there as RTTM and TextGrid; and those that are newer than such a file,
    with a fault. Files that are there stay, as they may have been corrected."""
    place = asked.place or source
    known, todo = turns.find(place, [*said], turns.KINDS), list[Path]()
    stems = Counter(path.with_suffix("") for path in said)
    for stem in (stem for stem, n in stems.items() if n > 1):
        raise UserError(f"{source / stem}: two recordings have this name; rename one")
    for path in said:
        there = min((file.stat().st_mtime for file in known[path]), default=None)
        if there is None:
            todo.append(path)
        elif there < (source / path).stat().st_mtime:
            why = f"is newer than {known[path][0]}; remove that, and its turns are found anew"
            yield path, replace(said[path], fault=f"{source / path}: {why}")
    calls = [(source / path, said[path], asked.each, asked.people) for path in todo]
    for number, heard in jobs.run(_hear, calls):
        path = todo[number]
        if isinstance(heard, UserError):
            yield path, replace(said[path], fault=str(heard))
            continue
        target = place / path.with_suffix(".rttm")
        target.parent.mkdir(parents=True, exist_ok=True)
        turns.write(target, path.stem, heard.turns)
        turns.write_textgrid(target.with_suffix(".TextGrid"), heard.turns, heard.seconds)
        yield path, replace(said[path], turns=heard.turns, sure=heard.sure)


def _hear(path: Path, scene: Scene, each: bool, n: int | None, tick: Tick) -> Heard:
    with closing(scene.open(path)) as recording:
        count = recording.audio.channels
        found = list[Heard]()
        for channel in range(count) if each and count > 1 else [None]:
            first = len({turn.person for own in found for turn in own.turns})
            found.append(find_people(recording, channel, n, first))
        tick(recording.seconds)
        said = tuple(sorted(turn for own in found for turn in own.turns))
        return Heard(said, min(own.sure for own in found), recording.seconds)


def labels_of(text: str | None) -> set[str]:
    """Labels between commas."""
    return {*map(turns.label, (text or "").split(","))} - {""}


def digest_of(
    scene: Scene, salt: str, texts: Sequence[Path], people: Mapping[str, str], person: str | None
) -> str:
    """Mark of what is said of a recording, and of its texts, enough to notice others; empty where
    nothing is. people: their names in texts; person: tells that of another speaker apart."""
    read = [(digest_and_mark(file)[0], sorted(people.items())) for file in texts]
    if not (scene.turns or scene.spans or read or scene.fault or person):
        return ""
    about = (salt, scene.turns, scene.spans, sorted(scene.kept), scene.by, read, scene.fault)
    return _mark(repr((*about, person) if person else about))


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
    drawn = draw_voices(anonymiser, [[*own.values()] for own in keys.values()], {})
    return {
        path: replace(scenes[path], voices={who: drawn[key] for who, key in own.items()})
        for path, own in keys.items()
    }


# ---- Texts beside recordings, copied with other names, times and, of spans, words.


@dataclass(frozen=True)
class Texts:
    """Subtitles and transcripts of recordings, and P1, P2 ... by people's names. kinds: those of
    which copies may lie in the output. lost: those that are not copied, and why they cannot be
    read; notes: tiers that are left out, by file."""

    files: Mapping[Path, Sequence[Path]]
    names: Mapping[Path, dict[str, str]]
    kinds: Collection[str] = ()
    lost: dict[Path, str] = field(default_factory=dict)
    notes: dict[Path, list[str]] = field(default_factory=dict)

    @classmethod
    def read(
        cls, source: Path, audio: Sequence[Path], scenes: Mapping[Path, Scene], *, shared: bool,
        wanted: bool, alone: bool = False,
    ) -> "Texts":  # fmt: skip
        """Find and read them. shared: whether a name is the same person in all recordings. wanted:
        whether they are copied at all. alone: others lie where they are copied to."""
        files, every = turns.find(source, audio, turns.TEXTS), dict[str, str]()
        kinds = {file.suffix for own in files.values() for file in own}
        kinds |= set() if alone else {*turns.TEXTS, ".TextGrid"}  # of texts that are gone
        kinds = kinds if wanted else set()
        made = cls(files, {path: every if shared else {} for path in files}, kinds)
        for path, own in files.items():
            people = [turn.person for turn in scenes[path].turns]
            for file in own:
                try:
                    said = [turn.person for turn in turns.read(file)] if wanted else []
                except UserError as error:
                    made.lost[file] = str(error)
                    continue
                # Where the turns name people of these tiers, others are of nobody.
                tiers = file.suffix.lower() in turns.TIERS and {*said} & {*people} - {""}
                left = [who for who in dict.fromkeys(said) if turns.is_notes(who)
                        or (tiers and who not in people)]  # fmt: skip
                if left := [who for who in left if who not in ("", REDACT)]:
                    made.notes[file] = left
                people += [who for who in said if who not in left]
                if not wanted:
                    made.lost[file] = ""
            names = made.names[path]
            for who in people:
                if who not in ("", REDACT):
                    names.setdefault(who, f"P{len(names) + 1}")
        return made

    def remove(self, target: Path) -> None:
        """Remove the copies beside a protected version."""
        for copy in filter(os.path.lexists, map(target.with_suffix, self.kinds)):
            copy.unlink()

    def copied(self, path: Path) -> list[Path]:
        """Texts of a recording that are copied."""
        return [file for file in self.files[path] if file not in self.lost]

    def copy(self, path: Path, target: Path, scene: Scene, at: Callable[[float], float]) -> None:
        """Write the texts of a recording beside its protected version; at: second of this at which
        is heard what the recording says then."""
        self.remove(target)
        for file in self.copied(path):
            left = self.notes.get(file, ())
            try:
                said = [turn for turn in turns.read(file) if turn.person not in left]
                new = _changed(said, self.names[path], scene.spans, at)
                turns.write(target.with_suffix(file.suffix), target.name, new)
            except UserError as error:
                self.lost[file] = str(error)


def _changed(
    said: Iterable[Turn], names: Mapping[str, str], spans: Sequence[Turn],
    at: Callable[[float], float],
) -> list[Turn]:  # fmt: skip
    """Turns with P1, P2 ... for names, also in words; a kind for what must not be heard; and the
    times of the protected version."""
    # The longest first; in any case, unless they are as short as many words; also Annas.
    known = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
    form = ((re.escape(name).replace(r"\ ", r"[\s_]+"), name) for name in known)
    any_of = "|".join(
        f"({text})" if _UNSPACED.search(name)
        else rf"(?<!\w)({text})(?=s?(?!\w))" if len(name) > 2
        else rf"(?<!\w)((?-i:{text}))(?!\w)" for text, name in form
    )  # fmt: skip
    whole = re.compile(any_of or "(?!)", re.I)
    made = list[Turn]()
    for turn in said:
        words, marked = normalize("NFC", turns.unnamed(turn.words)), turns.NAMED.search(turn.words)
        for span in spans:
            own = marked and span == Turn(turn.begin, turn.end, REDACT, "name")
            near = span.begin - REDACTED < turn.end and turn.begin < span.end + REDACTED
            if not own and (near or turn.end == turns.NEVER) and words:
                words = f"[{span.words}]"
                break
        # By the name that matched: folded to one case, some letters become others (Turkish i).
        words = whole.sub(lambda found: names[known[(found.lastindex or 1) - 1]], words)
        who = names.get(turn.person, "")
        if turn.person == REDACT:
            who, words = REDACT, turns.kind_of(turn.words)
        begin, end = (x if x == turns.NEVER else max(0.0, at(x)) for x in turn[:2])
        made.append(Turn(begin, end, who, words, turn.channel))
    return made
