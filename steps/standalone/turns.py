"""Who speaks when, what is said and what must not be heard: files of turns, of subtitles and of
transcripts are read as turns, and written from turns alone, so that nothing else of them stays."""

import csv
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape, unescape
from itertools import groupby, zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from steps.standalone.job import plain, same_name
from utils.cli import UserError, refusing
from utils.tables import replacing, write_file


class Turn(NamedTuple):
    """A stretch of speech of a person, from `begin` to `end` in seconds; NEVER where a file says no
    time. person: empty where nobody is named, or REDACT, and then `words` is the kind of what must
    not be heard. channel: from 1 on; 0: any."""

    begin: float
    end: float
    person: str
    words: str = ""
    channel: int = 0


NEVER = math.inf
REDACT = "redact"  # name of a tier, in any case
_KIND = re.compile("[a-z_]+|[A-Z_]+")
_REDACTS = re.compile(rf"{REDACT}(\W.*|\d*)", re.I)  # also of a second tier, or `redact@INT`
_NOTES = re.compile(  # names of tiers that nobody says
    r"(?<![^\W\d])(notes?|comments?|remarks?|memos?|descriptions?|kommentare?|notiz(en)?"
    r"|(be|an)merkung(en)?|beschreibung(en)?|commentaires?|remarques?)(?![^\W\d])", re.I
)  # fmt: skip
NAMED = re.compile(r"<\s*name\b[^>]*>(.*?)<\s*/\s*name\s*>", re.S | re.I)
_MARK = re.compile(r"<\s*/?\s*name\b", re.I)
_POINTS = "(notes at points)"

# ---- Kinds of files, read as they stand.


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    return enumerate(path.read_text("utf-8-sig").split("\n"), 1)


def _seconds(*texts: str) -> list[float]:
    """Times or lengths; ValueError for anything else."""
    found = [float(text.replace(",", ".")) for text in texts]
    if not all(0 <= one < NEVER for one in found):
        raise ValueError
    return found


def _clock(text: str) -> float:
    """Seconds of a time such as 01:02:03,5; ValueError for anything else."""
    parts = _seconds(*text.split(":"))
    if len(parts) > 3:  # frames
        raise ValueError
    return round(sum(part * 60**n for n, part in enumerate(reversed(parts))), 3)


def _rttm(path: Path) -> Iterator[Turn]:
    what = "`SPEAKER <recording> <channel> <begin> <length> <NA> <NA> <person>`, `_` for blanks"
    lines = ((number, line.split()) for number, line in _lines(path))
    rows = [(number, cells) for number, cells in lines if cells[:1] == ["SPEAKER"]]
    if len({cells[1] for _, cells in rows if len(cells) > 1}) > 1:  # of several recordings
        rows = [row for row in rows if row[1][1:2] == [path.stem]]
    for number, cells in rows:
        with refusing(f"{path}:{number}: not {what}", ValueError, IndexError):
            if len(cells) > 10 or cells[7] == "<NA>":  # a blank in a name moves the others
                raise ValueError
            begin, length = _seconds(*cells[3:5])
            channel = int(cells[2]) if cells[2].isdigit() else 0
            turn = Turn(begin, round(begin + length, 6), cells[7], "", channel)
        yield turn


def _table(path: Path) -> Iterator[Turn]:
    time = r"\s*\d+([.,]\d*)?"
    for number, line in _lines(path):
        blanks = re.match(rf"{time}\s{time}(\s|$)", line)
        apart = next((mark for mark in "\t;" if mark in line), None if blanks else ",")
        row = (
            next(csv.reader([line.strip()], delimiter=apart), []) if apart else line.split(None, 2)
        )
        cells = [cell.strip() for cell in row]
        if not line.strip() or (number == 1 and re.match(r"\W*(begin|start|from)\b", line, re.I)):
            continue
        with refusing(f"{path}:{number}: not `<begin> <end> <person>`, in seconds", ValueError):
            begin, end = _seconds(*cells[:2])
            if end < begin:
                raise ValueError
        words = next(filter(None, cells[2:]), "")
        yield Turn(begin, end, words, words)  # a person, or a kind


def _textgrid(path: Path) -> Iterator[Turn]:
    from praatio import textgrid

    for tier in textgrid.openTextgrid(str(path), True, "silence", "rename").tiers:
        points = isinstance(tier, textgrid.PointTier)  # (time, label), else (begin, end, label)
        said = [row for row in tier.entries if row[-1].strip()]
        if not said and len(tier.entries) > 1 and _REDACTS.fullmatch(tier.name.strip()):
            raise UserError(f"{path}: no label in tier {tier.name}; label what must not be heard")
        for row in said:
            yield Turn(row[0], row[-2], f"{tier.name} {_POINTS * points}", row[-1])


def _eaf(path: Path) -> Iterator[Turn]:
    root = ElementTree.parse(path).getroot()
    media = [*root.iter("MEDIA_DESCRIPTOR")]
    named = [one for one in media if Path(unquote(one.get("MEDIA_URL", ""))).stem == path.stem]
    if any(int(one.get("TIME_ORIGIN") or 0) for one in named or media):
        raise UserError(f"{path}: its times are not those of the recording, which has an offset "
                        "(TIME_ORIGIN); set it to 0 in ELAN, and save it anew")  # fmt: skip
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in root.iter("TIME_SLOT")}
    tiers = {tier.get("TIER_ID", ""): tier for tier in root.iter("TIER")}
    every = {one.get("ANNOTATION_ID"): one for one in root.findall("TIER/ANNOTATION/*")}

    def person(tier: str) -> str:
        own, above = tiers[tier], tiers[tier].get("PARENT_REF")
        named = f"{tier} {own.get('LINGUISTIC_TYPE_REF', '')}"
        if _REDACTS.fullmatch(label(tier)):
            return tier
        if _NOTES.search(label(named)):
            return named
        return own.get("PARTICIPANT") or (person(above) if above in tiers else tier)

    for tier, own in tiers.items():
        for one in own.findall("ANNOTATION/*"):
            at, words = one, one.findtext("ANNOTATION_VALUE") or ""
            while (above := at.get("ANNOTATION_REF")) in every:
                at = every[above]
            ends = (slots.get(at.get(f"TIME_SLOT_REF{n}")) for n in (1, 2))
            begin, end = (NEVER if x is None else int(x) / 1000 for x in ends)
            yield Turn(begin, end, person(tier), words)


# A person of a subtitle: <v NAME>, or NAME: at the begin of a line, behind dashes, of at most five
# words, before which short ones with a dot (Dr.) may stand. Behind another dash, and behind </v>,
# somebody speaks who is not named.
_DASH, _SHORT, _BLANK = "\u2010-\u2015\u2212-", r"\w{1,4}\.", r"[^\S\n]"
_SPEAKER = re.compile(
    rf"<v(?:\.[^ >]*)? ([^>]+)>|^[>\s{_DASH}]*((?=[^\W\d])(?:(?:{_SHORT}{_BLANK}*)*"
    rf"[^\s:\uff1a.,;!?<>{{}}]+(?:{_BLANK}+|(?=[:\uff1a]))){{0,5}}(?:{_SHORT})?)[:\uff1a]"
    rf"(?!//|\d)(?=\s*\S)\s*|^(?=[{_DASH}]\s*\S)|</v>(?!\s*(?:<v\b|\Z))", re.M
)  # fmt: skip
_STYLE = re.compile(r"\{[^}]*\}")  # such as {\an8}
_TAG = re.compile(r"<(?!\s*/?\s*name\b|/?v\b)[/\w][^<>]*>", re.I)


def _cues(path: Path) -> Iterator[tuple[float, float, str]]:
    """Yield begin, end and text of cues. A cue of WebVTT ends with an empty line, behind which may
    stand notes and the name of the next one; before a cue of SRT stands its number."""
    text = path.read_text("utf-8-sig")
    arrows = [*re.finditer("^(.*)-->(.*)", text, re.M)]
    for arrow, after in zip_longest(arrows, arrows[1:]):
        line = text.count("\n", 0, arrow.start()) + 1
        with refusing(f"{path}:{line}: not `<begin> --> <end>`", ValueError, IndexError):
            begin, end = (_clock(half.split()[0]) for half in arrow.groups())
        said = text[arrow.end() : after.start() if after else None]
        if path.suffix.lower() == ".vtt":
            said, _, apart = said.partition("\n\n")
            if _MARK.search(apart):
                raise UserError(f"{path}:{line}: behind the empty line that ends this cue stands a "
                                "<name>, which would be heard; take the line out")  # fmt: skip
        elif after:
            said = re.sub(r"\n[ \t]*\d+[ \t]*\n\Z", "", said)
        yield begin, end, said


def _subtitles(path: Path) -> Iterator[Turn]:
    for begin, end, said in _cues(path):
        shown = re.sub(r"\\[nN]", "\n", _STYLE.sub("", said)).replace(r"\h", " ")
        text = _TAG.sub("", unescape(shown)).strip()
        first, *rest = _SPEAKER.split(text)
        heads = [("", "", first)] * (not rest or bool(first))
        heads += zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        for tag, name, words in heads:
            yield Turn(begin, end, (tag or name or "").strip(), words.replace("</v>", "").strip())


_BULLET = re.compile(r"\x15(\d+)_(\d+)\x15")
_ASIDE = re.compile(r"\[[%=][^\]]*\]")  # what a transcriber says


def _chat(path: Path) -> Iterator[Turn]:
    text = "\n".join(line.rstrip("\r") for _, line in _lines(path)).replace("\n\t", " ")
    for head, words in re.findall(r"^\*([^:\t\n]*)[:\t][ \t]*(.*)", text, re.M):
        times = [int(x) / 1000 for at in _BULLET.finditer(words) for x in at.groups()]
        said = _ASIDE.sub("", _BULLET.sub("", words)).strip()
        yield Turn(min(times, default=NEVER), max(times, default=NEVER), head, said)


# ---- Kinds of files, written: of a recording's name and of turns.


def _as_rttm(name: str, turns: Sequence[Turn]) -> str:
    lines = list[str]()
    for turn in turns:
        talk, person = (re.sub(r"\s+", "_", text) for text in (name, turn.person))
        times = f"{turn.begin:.3f} {turn.end - turn.begin:.3f}"
        lines.append(f"SPEAKER {talk} {turn.channel or 1} {times} <NA> <NA> {person} <NA> <NA>\n")
    return "".join(lines)


def _tiers(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """Turns by person, in tiers within which none overlap."""
    found = dict[str, list[Turn]]()
    for turn in turns:
        name, n = turn.person or "nobody", 1
        while name in found and turn.begin < found[name][-1].end:
            n += 1
            name = f"{turn.person}#{n}"
        found.setdefault(name, []).append(turn)
    return found


def write_textgrid(path: Path, turns: Sequence[Turn], end: float) -> None:
    """Write a TextGrid of a recording that ends at a second, with a tier for each person."""
    from praatio import textgrid

    timed = [turn for turn in turns if turn.begin < turn.end < NEVER]
    end = max([end, *(turn.end for turn in timed)])
    grid = textgrid.Textgrid(0.0, end)
    for name, own in _tiers(timed).items():
        rows = [(turn.begin, turn.end, turn.words or turn.person) for turn in own]
        grid.addTier(textgrid.IntervalTier(name, rows, 0.0, end))
    with replacing(path) as beside:
        grid.save(str(beside), "long_textgrid", True)


def _as_eaf(name: str, turns: Sequence[Turn]) -> str:
    slots, tiers = list[str](), list[str]()
    for tier, own in _tiers(turns).items():
        tiers.append(f"<TIER TIER_ID={quoteattr(tier)} PARTICIPANT={quoteattr(own[0].person)} "
                     'LINGUISTIC_TYPE_REF="said">')  # fmt: skip
        for turn in own:
            n = len(slots)
            for at in turn[:2]:
                time = f' TIME_VALUE="{round(1000 * at)}"' if at < NEVER else ""
                slots.append(f'<TIME_SLOT TIME_SLOT_ID="ts{len(slots)}"{time}/>')
            tiers.append(
                f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{n}" TIME_SLOT_REF1="ts{n}" '
                f'TIME_SLOT_REF2="ts{n + 1}"><ANNOTATION_VALUE>{escape(turn.words, quote=False)}'
                "</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
            )
        tiers.append("</TIER>")
    media = f'<MEDIA_DESCRIPTOR MEDIA_URL={quoteattr(name)} MIME_TYPE="audio/x-wav"/>'
    return "\n".join((
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<ANNOTATION_DOCUMENT FORMAT="3.0" VERSION="3.0" AUTHOR="" '
        'DATE="2000-01-01T00:00:00+00:00">',
        f'<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">{media}</HEADER>',
        "<TIME_ORDER>", *slots, "</TIME_ORDER>", *tiers,
        '<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="said" TIME_ALIGNABLE="true"/>',
        "</ANNOTATION_DOCUMENT>\n",
    ))  # fmt: skip


def _subtitled(kind: str, _: str, turns: Sequence[Turn]) -> str:
    is_vtt = kind == "vtt"
    form, mark = ("<v {}>{}", ".") if is_vtt else ("{}: {}", ",")
    safe = partial(escape, quote=False) if is_vtt else str
    cues = ["WEBVTT\n\n"] * is_vtt
    for n, (times, own) in enumerate(groupby(turns, key=lambda turn: turn[:2]), 1):
        said = [form.format(t.person, safe(t.words)) if t.person else safe(t.words) for t in own]
        clock = (
            f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{mark}{ms % 1000:03}"
            for ms in (round(1000 * at) for at in times)
        )
        text = re.sub(r"\n\s*\n", "\n", "\n".join(said))  # an empty line would end the cue
        cues.append(f"{n}\n{' --> '.join(clock)}\n{text}\n\n")
    return "".join(cues)


def _as_chat(name: str, turns: Sequence[Turn]) -> str:
    people = [*dict.fromkeys(turn.person for turn in turns)]
    made = ["@UTF8", "@Begin", "@Languages:\tund"]
    made += [f"@Participants:\t{', '.join(f'{who} Unidentified' for who in people)}"]
    made += [f"@ID:\tund|corpus|{who}|||||Unidentified|||" for who in people]
    made += [f"@Media:\t{name}, audio"]
    for turn in turns:
        begin, end = (1000 * at for at in turn[:2])
        mark = f" \x15{begin:.0f}_{end:.0f}\x15" if end < NEVER else ""
        made.append(f"*{turn.person}:\t{turn.words}{mark}")
    return "\n".join([*made, "@End\n"])


_READERS: Mapping[str, Callable[[Path], Iterator[Turn]]] = {
    ".rttm": _rttm, ".textgrid": _textgrid, ".eaf": _eaf, ".vtt": _subtitles, ".srt": _subtitles,
    ".cha": _chat, ".tsv": _table, ".csv": _table, ".txt": _table,
}  # fmt: skip
_WRITERS: Mapping[str, Callable[[str, Sequence[Turn]], str]] = {
    ".rttm": _as_rttm, ".eaf": _as_eaf, ".vtt": partial(_subtitled, "vtt"),
    ".srt": partial(_subtitled, "srt"), ".cha": _as_chat,
}  # fmt: skip
KINDS = tuple(_READERS)
TABLES, TIERS = (".tsv", ".csv", ".txt"), (".textgrid", ".eaf")
TEXTS = (".srt", ".vtt", ".textgrid", ".eaf", ".cha", ".rttm")  # of words, or of who says them


def read(path: Path) -> list[Turn]:
    """Turns of a file as they stand there, whose person is a `label` or REDACT. UserError for a
    file that is not of its kind, which repeats nothing of its words."""
    kind = path.suffix.lower()
    try:
        found = [turn._replace(person=label(turn.person)) for turn in _READERS[kind](path)]
    except UserError:
        raise
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not text in UTF-8; save it as such") from error
    except Exception as error:  # of classes that libraries do not name
        raise UserError(
            f"{path}: cannot be read as {kind[1:]} ({type(error).__name__}); save it anew with the "
            "program that wrote it"
        ) from error
    return [turn._replace(person=REDACT) if _REDACTS.fullmatch(turn.person) else turn
            for turn in found]  # fmt: skip


def write(path: Path, name: str, turns: Sequence[Turn]) -> None:
    """Write turns of a recording with this name, as a file of the kind that the path tells."""
    if (kind := path.suffix.lower()) == ".textgrid":
        write_textgrid(path, turns, 0.0)
    else:
        write_file(path, _WRITERS[kind](name, turns))


# ---- What the files of a recording say.


def label(person: str) -> str:
    """Name of a person, however it was written: RTTM has `_` for blanks."""
    return " ".join(same_name(person).replace("_", " ").split())


def is_notes(person: str) -> bool:
    """Whether a tier's name is that of notes, which nobody says.

    >>> [is_notes(name) for name in ("A notes", "Kommentar2", "Anna Notermans")]
    [True, True, False]
    """
    return bool(_NOTES.search(person))


def unnamed(words: str) -> str:
    """Words without what is marked as a name; nothing of them where a mark lacks its end."""
    left = NAMED.sub("[name]", words)
    return "[name]" if _MARK.search(left) else left


def marks_names(path: Path) -> bool:
    """Whether a text has a mark of a name, whoever may read it."""
    return bool(_MARK.search(unescape(path.read_text("utf-8", "replace"))))


def read_turns(path: Path) -> list[Turn]:
    """Turns of people in a file, in order, without those that last no time; where a file says no
    time, or an end before the begin, both are NEVER. Notes are of nobody. UserError for a file that
    is not of its kind."""
    found = list[Turn]()
    for turn in read(path):
        if turn.person != REDACT and (turn.begin != turn.end or turn.end == NEVER):
            known = turn.begin < turn.end < NEVER
            turn = turn if known else turn._replace(begin=NEVER, end=NEVER)
            found.append(turn._replace(person="") if is_notes(turn.person) else turn)
    return sorted(found)


def kind_of(text: str) -> str:
    """Kind of a span that accounts and copied texts tell: a word in letters of one case, as names
    hardly are; else `span`.

    >>> [kind_of(text) for text in ("place", "PHONE_NUMBER", "Anna Li", "")]
    ['place', 'PHONE_NUMBER', 'span', 'span']
    """
    return text.strip() if _KIND.fullmatch(text.strip()) else "span"


def read_spans(path: Path) -> list[Turn]:
    """Spans that must not be heard, as turns of REDACT, in order: rows of a table, a tier, and
    marked names. UserError for a file that is not of its kind, and for a span that lasts no time or
    has none."""
    found, table = list[Turn](), path.suffix.lower() in TABLES
    for turn in read(path):
        if table or turn.person == REDACT:
            kind = kind_of(turn.words)
        elif _MARK.search(NAMED.sub("", turn.words)):
            raise UserError(f"{path}: <name> without </name> at {turn.begin:g} s; put it there")
        elif NAMED.search(turn.words):
            kind = "name"
        else:
            continue
        if not turn.begin < turn.end < NEVER:
            raise UserError(
                f"{path}: a span at {turn.begin:g} s ends where it begins, or has no time"
            )
        found.append(Turn(turn.begin, turn.end, REDACT, kind))
    return sorted(found)


def is_redact(file: Path) -> bool:
    """Whether a file is of spans alone: `<recording>.redact.<kind>`."""
    return file.stem.casefold().endswith(f".{REDACT}")


def find(
    folder: Path, audio: Sequence[Path], kinds: Collection[str], *, spans: bool = False
) -> dict[Path, list[Path]]:
    """Files of some kinds in a folder, by the recording whose place and stem they have. spans: also
    before `.redact`, else without such files. UserError where two recordings share a stem that a
    file has."""
    found = {path: list[Path]() for path in audio}
    owners = dict[tuple[Path, str], list[Path]]()
    for path in audio:
        owners.setdefault((path.parent, same_name(path.stem)), []).append(path)
    for place in dict.fromkeys(path.parent for path in audio):
        there = sorted((folder / place).iterdir()) if (folder / place).is_dir() else []
        for file in there:
            stem, apart = same_name(file.stem), is_redact(file)
            if file.suffix.lower() not in kinds or spans < apart or file.name.startswith("."):
                continue
            short = stem[: -len(REDACT) - 1] if apart else stem
            own = owners.get((place, stem)) or owners.get((place, short), [])
            if len(own) > 1:
                raise UserError(f"{file}: may be of {plain(own[0])} or {plain(own[1])}; rename one")
            if own:
                found[own[0]].append(file)
    return found
