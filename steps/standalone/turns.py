"""Who speaks when, what is said and what must not be heard: files of turns, of subtitles and of
transcripts, read, and written anew with other times, names and words."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from steps.standalone.job import plain, same_name
from utils.cli import UserError, refusing
from utils.tables import replacing, split_fields, write_file


class Turn(NamedTuple):
    """A stretch of speech of a person, from `begin` to `end` in seconds; an end of `NEVER` where a
    file says no time. person: empty where nobody is named, or REDACT, and then `words` is the kind
    of what must not be heard. channel: from 1 on; 0: any."""

    begin: float
    end: float
    person: str
    words: str = ""
    channel: int = 0


NEVER = math.inf
REDACT = "redact"  # name of a tier, in any case
_KIND = re.compile("[a-z_]+|[A-Z_]+")
_REDACTS = re.compile(rf"{REDACT}\W?\d*", re.I)  # also of a second tier of this name
NAMED = re.compile(r"<name\b[^>]*>(.*?)</name\s*>", re.S | re.I)
_MARK = re.compile(r"</?name\b", re.I)
Change = Callable[[Turn], Turn]
"""Fate of a turn where a file is written anew."""


class Target(NamedTuple):
    """Where a file is written anew, and the name of its recording there."""

    path: Path
    name: str


Visit = Callable[[Path, Change, Target | None], None]
"""Reader of a kind of files: path, what is called with every turn of it, and where the file is
written with what that returns."""

# ---- Kinds of files: each is read, and written, in one go, in which every turn may be changed.


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    with refusing(f"{path}: is not text in UTF-8; save it as such", UnicodeDecodeError):
        return list(enumerate(path.read_text("utf-8-sig").split("\n"), 1))


def _seconds(text: str, length: str | None = None) -> tuple[float, float]:
    """Begin and length of a stretch; ValueError for anything else."""
    begin, second = float(text.replace(",", ".")), float((length or "0").replace(",", "."))
    if not (0 <= begin < math.inf and 0 <= second < math.inf):
        raise ValueError(text)
    return begin, second


def _rttm(path: Path, change: Change, target: Target | None) -> None:
    what = "`SPEAKER <recording> <channel> <begin> <length> <NA> <NA> <person>`"
    rows = [(n, line.split()) for n, line in _lines(path)]
    rows = [(n, cells) for n, cells in rows if cells[:1] == ["SPEAKER"]]
    if len({cells[1] for _, cells in rows if len(cells) > 1}) > 1:  # of several recordings
        rows = [row for row in rows if row[1][1:2] == [path.stem]]
    made = list[str]()
    for number, cells in rows:
        with refusing(f"{path}:{number}: not {what}", ValueError, IndexError):
            begin, length = _seconds(cells[3], cells[4])
            channel = int(cells[2]) if cells[2].isdigit() else 0
            new = change(Turn(begin, round(begin + length, 6), cells[7], "", channel))
        made.append(rttm_line(target.name if target else "", new))
    if target:
        write_file(target.path, "".join(made))


def rttm_line(name: str, turn: Turn) -> str:
    """Line of RTTM for a turn in a recording."""
    name, person = (re.sub(r"\s+", "_", text) for text in (name, turn.person))
    times = f"{turn.begin:.3f} {turn.end - turn.begin:.3f}"
    return f"SPEAKER {name} {turn.channel or 1} {times} <NA> <NA> {person} <NA> <NA>\n"


def _table(path: Path, change: Change, target: Target | None) -> None:
    """A table `begin end person`; of what must not be heard `begin end [kind]`, where the name of
    the file ends in `.redact` or a folder is given for it."""
    made = list[str]()
    for number, line in _lines(path):
        cells = re.split(r"\t|;", line) if re.search(r"\t|;", line) else split_fields(line)
        cells = [cell.strip() for cell in cells]
        if not any(cells) or (number == 1 and cells[0].lower() in ("begin", "start", "from")):
            continue
        with refusing(f"{path}:{number}: not `<begin> <end> <person>`, in seconds", ValueError):
            begin, end = _seconds(cells[0], cells[1] if len(cells) > 1 else "")
            if end < begin or len(cells) < 2:
                raise ValueError
        new = change(Turn(begin, end, " ".join(cells[2:])))
        made.append(f"{new.begin:.3f}\t{new.end:.3f}\t{new.person}\n")
    if target:
        write_file(target.path, "".join(made))


def _textgrid(path: Path, change: Change, target: Target | None) -> None:
    from praatio import textgrid

    given = textgrid.openTextgrid(str(path), False, "silence", "rename")
    tiers = list[tuple[str, Sequence[Turn], bool]]()
    for tier in given.tiers:
        points = isinstance(tier, textgrid.PointTier)
        # A point is (time, label), an interval (begin, end, label).
        rows = [(*row[:1], *row) if points else row for row in tier.entries]
        turns = [change(Turn(begin, end, tier.name, label)) for begin, end, label in rows]
        tiers.append((change(Turn(0.0, 0.0, tier.name)).person, turns, points))
    if target:
        end = change(Turn(given.maxTimestamp, given.maxTimestamp, "")).end
        write_textgrid(target.path, tiers, end)


def write_textgrid(
    target: Path, tiers: Iterable[tuple[str, Sequence[Turn], bool]], end: float
) -> None:
    """Write a TextGrid: of each tier its name, its turns, and whether they are points."""
    from praatio import textgrid

    grid = textgrid.Textgrid(0.0, end)
    for name, turns, points in tiers:
        whole = [(min(t.begin, end), min(t.end, end), t.words) for t in turns]
        rows = (
            [(b, w) for b, _, w in whole] if points else [(b, e, w) for b, e, w in whole if e > b]
        )
        kind = textgrid.PointTier if points else textgrid.IntervalTier
        number = sum(name == other.split("#")[0] for other in grid.tierNames)
        grid.addTier(
            kind(f"{name}#{number + 1}" if number else name, rows, 0.0, end), None, "silence"
        )
    grid.save(str(target), "long_textgrid", True, reportingMode="silence")


def _eaf(path: Path, change: Change, target: Target | None) -> None:
    tree = ElementTree.parse(path)
    root = tree.getroot()
    slots = {slot.get("TIME_SLOT_ID"): slot for slot in root.iter("TIME_SLOT")}
    tiers = {tier.get("TIER_ID", ""): tier for tier in root.iter("TIER")}
    times, whose = dict[str | None, tuple[float, float]](), dict[str, str]()

    def person(tier: str) -> str:
        own = tiers[tier]
        above = own.get("PARENT_REF")
        return own.get("PARTICIPANT") or (person(above) if above in tiers else tier)

    def time(slot: str | None) -> float:
        value = slots[slot].get("TIME_VALUE")
        return NEVER if value is None else int(value) / 1000

    for one in root.iter("ALIGNABLE_ANNOTATION"):
        ends = (time(one.get(f"TIME_SLOT_REF{n}")) for n in (1, 2))
        times[one.get("ANNOTATION_ID")] = tuple(ends)  # type: ignore[assignment]
    above = {one.get("ANNOTATION_ID"): one.get("ANNOTATION_REF")
             for one in root.iter("REF_ANNOTATION")}  # fmt: skip
    moved = dict[str | None, float]()
    for tier, own in tiers.items():
        for one in own.findall("ANNOTATION/*"):
            at, value = one.get("ANNOTATION_ID"), one.find("ANNOTATION_VALUE")
            while at in above:
                at = above[at]
            begin, end = times.get(at, (NEVER, NEVER))
            who = tier if _REDACTS.fullmatch(label(tier)) else person(tier)
            words = (value.text or "") if value is not None else ""
            new = change(Turn(begin if end < NEVER else NEVER, end, who, words))
            if value is not None:
                value.text = new.words
            moved[one.get("TIME_SLOT_REF1")], moved[one.get("TIME_SLOT_REF2")] = new.begin, new.end
        whose[tier] = change(Turn(0.0, 0.0, person(tier))).person
    if not target:
        return
    for identity, slot in slots.items():
        if slot.get("TIME_VALUE") and (then := moved.get(identity, NEVER)) < NEVER:
            slot.set("TIME_VALUE", str(round(1000 * then)))
    named = {tier: f"{who}-{n}" if whose[tier] in [*whose.values()][:n] else who
             for n, (tier, who) in enumerate(whose.items())}  # fmt: skip
    for tier, own in tiers.items():
        own.set("TIER_ID", named[tier])
        own.set("PARTICIPANT", whose[tier])
        own.attrib.pop("ANNOTATOR", None)
        if (parent := own.get("PARENT_REF")) in named:
            own.set("PARENT_REF", named[parent])
    root.set("AUTHOR", "")
    for header in root.iter("HEADER"):  # names of files, and of people
        header.clear()
        header.attrib |= {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
        ElementTree.SubElement(header, "MEDIA_DESCRIPTOR", MEDIA_URL=target.name,
                               RELATIVE_MEDIA_URL=target.name, MIME_TYPE="audio/x-wav")  # fmt: skip
    tree.write(target.path, "UTF-8", xml_declaration=True)


# A person of a subtitle: <v NAME>, or NAME: at the begin of a line, behind dashes and changes of
# the font; of at most five words, of which short ones may end with a dot (Dr.).
# Behind another dash, and behind </v>, somebody speaks who is not named.
_SPEAKER = re.compile(
    r"<v(?:\.[^ >]*)? ([^>]+)>|^(?:\{[^}\n]*\}|<(?!/?name\b|v\b)[^>\n]*>|[->–—\s])*"
    r"((?=[^\W\d])(?:[^\s:.,;!?<>{}]+(?:[ \t]+|(?=:))|\w{1,4}\.[ \t]*){1,5}):(?=[\s{<]\s*\S)\s*"
    r"|^[-–—](?=\s*\S)|</v>(?!\s*(?:<v\b|\Z))", re.M
)  # fmt: skip


def _subtitles(path: Path, change: Change, target: Target | None) -> None:
    import pysubs2

    kind = path.suffix.lower()[1:]
    with refusing(f"{path}: is not text in UTF-8; save it as such", UnicodeDecodeError):
        file = pysubs2.SSAFile.load(
            str(path), "utf-8-sig", format_=kind, keep_unknown_html_tags=True
        )
    for cue in file:
        text = cue.text.replace("\\N", "\n")
        begin, end = cue.start / 1000, cue.end / 1000
        marks = [*_SPEAKER.finditer(text)]
        heads = [(0, 0, "")] * (not marks or marks[0].start() > 0)
        heads += [(m.start(), m.end(), found.strip()) if (found := m[1] or m[2]) else
                  (m.start(), m.start(), "") for m in marks]  # fmt: skip
        said = list[str]()
        for (_, start, who), (stop, *_) in zip(heads, [*heads[1:], (len(text),)], strict=True):
            new = change(Turn(begin, end, who, text[start:stop].replace("</v>", "").strip()))
            form = ("<v {}>{}" if kind == "vtt" else "{}: {}") if who else "{}{}"
            said.append(form.format(new.person, new.words))
            cue.start, cue.end = round(1000 * new.begin), round(1000 * new.end)
        cue.text = "\\N".join(said).replace("\n", "\\N")
    if target:
        write_file(target.path, file.to_string(kind))


_BULLET = re.compile(r"\x15(\d+)_(\d+)\x15")
_KEPT = ("UTF8", "Begin", "End", "Languages", "Options")  # headers that name nobody


def _chat(path: Path, change: Change, target: Target | None) -> None:
    text = "\n".join(line.rstrip("\r") for _, line in _lines(path))
    made, people = list[str](), dict[str, str]()
    for block in re.split(r"\n(?=[*@])", text.strip("\n").replace("\n\t", " ")):
        head, _, words = block.partition("\t")
        if not block.startswith("*"):
            made += [block] if head.strip("@:") in _KEPT else []
            continue
        words = words.split("\n")[0]  # without dependent tiers, which comment on people
        times = [int(x) / 1000 for at in _BULLET.finditer(words) for x in at.groups()]
        begin, end = min(times, default=NEVER), max(times, default=NEVER)
        said = _BULLET.sub("", words).strip()
        new = change(Turn(begin, end, head[1:].rstrip(":"), said))
        people[new.person] = ""
        mark = f" \x15{1000 * new.begin:.0f}_{1000 * new.end:.0f}\x15" if new.end < NEVER else ""
        made.append(f"*{new.person}:\t{new.words}{mark}")
    who = [f"@Participants:\t{', '.join(f'{x} Unidentified' for x in people)}"]
    who += [f"@ID:\tund|corpus|{x}|||||Unidentified|||" for x in people]
    place = 1 + max((n for n, line in enumerate(made) if line.startswith("@") and
                     not line.startswith("@End")), default=-1)  # fmt: skip
    if target:
        media = [f"@Media:\t{target.name}, audio"]
        write_file(target.path, "\n".join([*made[:place], *who, *media, *made[place:]]) + "\n")


KINDS: Mapping[str, Visit] = {
    ".rttm": _rttm, ".textgrid": _textgrid, ".eaf": _eaf, ".vtt": _subtitles, ".srt": _subtitles,
    ".cha": _chat, ".tsv": _table, ".csv": _table, ".txt": _table,
}  # fmt: skip
TEXTS = (".srt", ".vtt", ".textgrid", ".eaf", ".cha", ".rttm")  # of words, or of who says them


def visit(path: Path, change: Change, target: Target | None = None) -> None:
    """Call a function with every turn of a file, whose person is a `label` or REDACT, and write the
    file with what that returns, if a target is given. UserError for a file that is not of its
    kind."""
    kind = path.suffix.lower()

    def whole(turn: Turn) -> Turn:
        who = label(turn.person)
        return change(turn._replace(person=REDACT if _REDACTS.fullmatch(who) else who))

    try:
        if target is None:
            KINDS[kind](path, whole, None)
            return
        with replacing(target.path) as beside:
            KINDS[kind](path, whole, target._replace(path=beside))
    except UserError:
        raise
    except Exception as error:  # of classes that libraries do not name
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{path}: cannot be read as {kind[1:]}: {why}") from error


# ---- What the files of a recording say.


def label(person: str) -> str:
    """Name of a person, however it was written: RTTM has `_` for blanks."""
    return " ".join(same_name(person).replace("_", " ").split())


def unnamed(words: str) -> str:
    """Words without what is marked as a name; nothing of them where a mark lacks its end."""
    left = NAMED.sub("[name]", words)
    return "[name]" if _MARK.search(left) else left


def read_turns(path: Path) -> list[Turn]:
    """Turns of people in a file, in order, without those that last no time; where a file says no
    time, or an end before the begin, both are NEVER. UserError for a file that is not of its
    kind."""
    found = list[Turn]()

    def note(turn: Turn) -> Turn:
        if turn.person != REDACT and (turn.begin != turn.end or turn.end == NEVER):
            known = turn.begin < turn.end < NEVER
            found.append(turn if known else turn._replace(begin=NEVER, end=NEVER))
        return turn

    visit(path, note)
    return sorted(found)


def kind_of(text: str) -> str:
    """Kind of a span that accounts and copied texts tell: a word in letters of one case, as names
    hardly are; else `span`.

    >>> [kind_of(text) for text in ("place", "PHONE_NUMBER", "Anna Li", "")]
    ['place', 'PHONE_NUMBER', 'span', 'span']
    """
    return text.strip() if _KIND.fullmatch(text.strip()) else "span"


def read_spans(path: Path, table: bool) -> list[Turn]:
    """Spans that must not be heard, as turns of REDACT, in order. table: whether the file is a
    table. UserError for a file of another kind, and for a span without a time or a length."""
    found = list[Turn]()

    def note(turn: Turn) -> Turn:
        if not turn.end:  # of a tier as a whole
            return turn
        kind = turn.person if table else turn.words
        if table or turn.person == REDACT:
            found.append(Turn(turn.begin, turn.end, REDACT, kind_of(kind)))
        elif _MARK.search(NAMED.sub("", turn.words)):
            raise UserError(f"{path}: <name> without </name> at {turn.begin:g} s; put it there")
        elif NAMED.search(turn.words):
            found.append(Turn(turn.begin, turn.end, REDACT, "name"))
        if found and not found[-1].begin < found[-1].end < NEVER:
            raise UserError(
                f"{path}: a span at {turn.begin:g} s ends where it begins, or has no time"
            )
        return turn

    visit(path, note)
    return sorted(found)


def find(folder: Path, audio: Sequence[Path], kinds: Iterable[str]) -> dict[Path, list[Path]]:
    """Files of some kinds in a folder, by the recording whose place and stem they have. UserError
    where two recordings share a stem that a file has."""
    found, kinds = {path: list[Path]() for path in audio}, tuple(kinds)
    owners = dict[tuple[Path, str], list[Path]]()
    for path in audio:
        owners.setdefault((path.parent, same_name(path.stem)), []).append(path)
    for place in dict.fromkeys(path.parent for path in audio):
        there = sorted((folder / place).iterdir()) if (folder / place).is_dir() else []
        for file in there:
            if file.suffix.lower() not in kinds or file.name.startswith("."):
                continue
            stem = same_name(file.stem)
            own = owners.get((place, stem)) or owners.get((place, stem.removesuffix(f".{REDACT}")))
            if own and len(own) > 1:
                raise UserError(f"{file}: may be of {plain(own[0])} or {plain(own[1])}; rename one")
            if own:
                found[own[0]].append(file)
    return found
