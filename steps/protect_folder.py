#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Protect the speech of any folder, or of one file: no lists, no transcripts, no training.

OUT gets every audio file of IN under the same name in the same sub-folder, at 16 kHz; formats that
are only read, such as m4a, become <name>.wav. SYSTEM is a folder with system.yaml and what that
needs (pool, synthesiser, generator), such as models/bn, or a system's yaml file that needs nothing.
Files of any length are gone through in pieces; silence stays silence. A run that was killed goes on
where it was.

Where IN is a file, OUT is one as well: talk.protected.wav for talk.wav if left out.

Files with the same pseudo-speaker (--per) get the same voice. Which one is decided by the key: who
knows it, and the models, can find out who became whom. Without --key or --key-file a secret is
drawn, and forgotten unless --write-key names a file.

With --turns each person of a recording has a voice of their own, and with --redact spans are
removed (docs/interview.md).

Beside OUT, OUT.account.html and OUT.account.json say what was done with which file, for whoever
must answer for it.

Exit status 3: some files could not be protected; they are named, also in OUT.failed.txt beside
OUT, and the others are done.
"""

import logging
import os
import sys
from collections import deque
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from steps import options
from utils.cli import (
    MMAP_THRESHOLD,
    LossError,
    UserError,
    clock_time,
    positive,
    progress,
    tell_allocator,
)
from utils.commands import program
from utils.tables import write_file


def _check_folders(source: Path, out: Path, key: Path | None) -> None:
    inside, made = source.resolve(), out.resolve()
    if made == inside or made.is_relative_to(inside) or inside.is_relative_to(made):
        raise UserError(
            f"{out}: lies in {source}, or the other way round; choose a separate folder"
        )
    if key is not None and key.resolve().is_relative_to(made):
        raise UserError(
            f"{key}: the key must not lie beside what it protects; choose another place"
        )


def _name_one(source: Path, out: Path | None) -> Path:
    """The file that is made of one; UserError where it would take another's place."""
    from steps.standalone import account, job
    from utils.audiofile import audio_format

    made = job.made_name(Path(source.name))
    out = out or source.with_name(f"{source.stem}.protected{made.suffix}")
    if out.is_dir():
        raise UserError(f"{out}: is a folder, and {source} a file; name a file as OUT")
    if audio_format(out) != audio_format(made):
        raise UserError(f"{out}: {source} becomes {made.suffix}; let the name of OUT end so")
    if out.exists() and (out.samefile(source) or not account.beside(out, "account.json").exists()):
        raise UserError(f"{out}: is there, and was not made here; choose another name as OUT")
    return out


def _write_key(path: Path, key: str) -> None:
    """Write a key for its owner alone, and over no other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.touch(0o600, exist_ok=False)
    except FileExistsError as error:
        raise UserError(
            f"{path}: is there, and may hold the key of an earlier run; choose another file"
        ) from error
    path.write_text(f"{key}\n", "utf-8")


class _Bar:
    """A bar of seconds of audio, and how many files are done."""

    def __init__(self, seconds: float, n_files: int) -> None:
        self._seconds, self.files = 0.0, 0
        shown = progress("protect", unit="s", beside=lambda: f"{self.files} of {n_files} files")
        self._bar = iter(shown(range(round(seconds))))

    def add(self, seconds: float) -> None:
        """So much more is done."""
        before, self._seconds = self._seconds, self._seconds + seconds
        deque(islice(self._bar, int(self._seconds) - int(before)), 0)


@program
def main(
    source: Annotated[Path, "The folder, or the file, that is read", "IN"],
    out: Annotated[Path | None, "The folder, or the file, that is written", "[OUT]"] = None, *,
    system: options.SafeSystem = options.SAFE_SYSTEM,
    per: options.Per = "file",
    speakers: options.SpeakerTable = None,
    key: options.KeyText = None, key_file: options.KeyFile = None,
    write_key: Annotated[
        Path | None, "The file that the drawn key is written to, outside of OUT; with it a run "
        "can be repeated", "FILE",
    ] = None,
    channels: Annotated[
        Literal["mix", "each"], "Several channels: they are mixed down, or each "
        "is protected for itself with one voice",
    ] = "mix",
    level: Annotated[
        Literal["one", "source"], "The level of the output: the system's one for all files, "
        "or each source's, which can tell who speaks",
    ] = "one",
    time: Annotated[
        Literal["keep", "map"] | None, "When words that are read anew are said: where they were; "
        "or as long as words usually last, their times in OUT.times; left out: as SYSTEM has it. "
        "Others keep time",
    ] = None,
    ends: Annotated[
        Literal["one", "keep"] | None, "Silence before and after the speech of a recording: one "
        "length for all, or as it was, which can tell who speaks; left out: as SYSTEM has it"
    ] = None,
    rename: Annotated[
        bool, "Whether files get drawn names and no folders; which was whose is written beside "
        "OUT, to OUT.names.tsv, for you alone to read"
    ] = False,
    turns: Annotated[
        str | None, "Who speaks when, so that each person gets one voice: a folder of RTTM, "
        "TextGrid, .eaf, .vtt, .srt, .cha or tables `begin end person` with the names of the "
        "recordings; `beside`: they lie in IN; `auto`: it is found", "FOLDER|beside|auto",
    ] = None,
    people: Annotated[int | None, "The number of people in each recording, for --turns auto", "N",
                      positive] = None,
    turns_only: Annotated[
        bool, "Whether to end when --turns auto has written what it found beside OUT"
    ] = False,
    protect: Annotated[
        str | None, "The people who are protected, by the labels of given turns; all others stay "
        "as they are", "A,B",
    ] = None,
    keep: Annotated[str | None, "The people who stay as they are, all others not", "A,B"] = None,
    redact: Annotated[
        str | None, "What must not be heard: a folder of tables `begin end [kind]`, or of files "
        "with a tier `redact` or <name>...</name> in subtitles; or `beside`", "FOLDER|beside",
    ] = None,
    redact_by: Annotated[Literal["tone", "silence"], "What is heard instead"] = "tone",
    texts: Annotated[
        bool, "Whether subtitles and transcripts of IN are copied, with P1, P2 ... for names"
    ] = False,
    nj: options.Cores = None,
) -> None:  # fmt: skip
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # parallelism is by processes
    # Arrays of 1 MB go back to the system when they are freed: the C library would keep them in
    # pieces, a tenth of a gigabyte in all.
    tell_allocator({MMAP_THRESHOLD: 2**20})
    from steps.standalone import account, job, protection, scenes
    from steps.standalone.people import in_words
    from steps.standalone.stream import Recording
    from steps.standalone.times import TimeMap

    if sum(option is not None for option in (key, key_file, write_key)) > 1:
        raise UserError("--key, --key-file and --write-key: give one of them")
    if one := source.name if source.is_file() else "":
        out = _name_one(source, out)
    elif out is None:
        what = "is a folder; name the one that is written, OUT" if source.is_dir() else "is missing"
        raise UserError(f"{source}: {what}")
    else:
        _check_folders(source, out, write_key or key_file)
    if one and rename:
        raise UserError("--rename is for folders; name the file that is written, OUT")
    if speakers and per != "speaker":
        raise UserError("--speakers is for --per speaker")
    kept, only = scenes.labels_of(keep), scenes.labels_of(protect)
    asked = scenes.Wishes(turns, redact, kept, only, redact_by, people, channels == "each")
    if turns_only and turns != scenes.AUTO:
        raise UserError("--turns-only: is for --turns auto, which finds turns")
    if turns == scenes.AUTO and per != "file":
        raise UserError(
            f"--per {per}: turns that are found name people of one recording; find them "
            "(--turns-only), name the people, and give them back (--turns FOLDER)"
        )
    if turns and speakers:
        raise UserError("--speakers: with --turns the turns say who speaks; leave it out")
    whole, source = source, source.parent if one else source
    audio, n_other = ([Path(one)], 0) if one else job.find_audio(source, out)
    said = asked.read(source, audio, alone=bool(one))
    known = job.read_speakers(speakers, source) if speakers else None
    # A label is one person everywhere.
    same = bool(turns) and per == "speaker"
    groups = {"": audio} if same else job.group_files(audio, per, known)
    if turns == scenes.AUTO:
        place = account.beside(out, "turns")
        finder = job.Jobs(min(nj or len(os.sched_getaffinity(0)), len(audio)))
        logging.getLogger("speechbrain").setLevel(logging.WARNING)
        for path, scene in scenes.find_turns(asked, finder, source, said, place):
            said[path] = scene
            clearly = "" if scene.sure is None else f"; {scene.sure:.0%} of it is clearly of one"
            what = scene.fault or f"{in_words([scene.told])}{clearly}"
            print(f"{job.plain(source / path)}: {what}", file=sys.stderr)
        print(f"{job.plain(place)}: who speaks when, as it was heard; correct it, and give it "
              f"back: --turns {job.plain(place)} (make: TURNS=)", file=sys.stderr)  # fmt: skip
        if turns_only:
            return
    used, fresh = job.choose_key(key, key_file)
    loaded = job.load_system(system, job.key_number(used), {"time": time} if time else {})
    ending, keeps = ends or loaded.anonymiser.ends, loaded.anonymiser.keeps_length
    settings: dict[str, object] = {"system": loaded.digest, "per": per, "channels": channels}
    settings |= {"level": level, **({"time": time} if time else {})}
    settings |= {"ends": ending} if ending != "keep" else {}
    settings |= {"names": "drawn"} if rename else {}
    settings |= asked.settings(said, per)
    if not rename and (like := job.like_people(audio)):
        print(
            f"protect_folder.py: {len(like)} of {len(audio)} names have two words in a row with a "
            f"capital letter, as people's have, such as {job.plain(like[0])}. Protection keeps "
            "names of files and folders; --rename (make: RENAME=true) draws others. Names that are "
            "written otherwise are not noticed", file=sys.stderr,
        )  # fmt: skip
    table = account.beside(out, job.TABLE)
    if rename and fresh and table.is_file() and not (out / job.JOURNAL).is_file():
        raise UserError(f"{table}: is of another {out}, whose names would come again; move it away")
    folder = out.parent if one else out
    with TemporaryDirectory() if one else nullcontext(out) as noted, job.alone_in(Path(noted)):
        journal = job.Journal(Path(noted), settings, None if fresh else used)
        if write_key:
            _write_key(write_key, used)
        begun = fresh and bool(journal.done)
        given = [job.SALT, *audio]
        drawn = job.draw_names(used, given, table, fresh=fresh, begun=begun) if rename else {}
        journal.salt = str(drawn.pop(job.SALT, ""))
        times = account.beside(out, "times") if loaded.anonymiser.tells_words else None
        drawn |= {Path(one): Path(out.name)} if one else {}
        work = protection.Work(
            source, folder, loaded.anonymiser, channels, level, drawn, ending, times
        )
        marks = {path: scenes.digest_of(scene, journal.salt) for path, scene in said.items()}
        ready = [
            path for path in audio
            if journal.has(drawn.get(path, path), source / path, work.target(path))
            and all(own.is_file() for own in work.tables(path))
            and journal.told(drawn.get(path, path)).get("said", "") == marks[path]
        ]  # fmt: skip
        told: dict[Path, dict[str, object]] = {
            path: {"status": "done", **journal.told(drawn.get(path, path))} for path in ready
        }
        keeping = "drawn, and written to a file" if write_key else "drawn, and forgotten"
        timed = keeps or loaded.anonymiser.tells_words  # else nobody knows when what is said
        copied = scenes.Texts.read(source, audio, said, same) if texts and timed else None
        lost = copied.lost if copied else scenes.left_out(source, audio)
        which = {"key": keeping if fresh else "given", "key_digest": job.fingerprint(used)}
        about = {
            "source": job.plain(whole.resolve()), "per": per, "channels": channels,
            "level": level, "ends": ending, "keeps_time": keeps,
            "system": {"path": job.plain(system), "digest": loaded.digest},
            "renamed": rename, "other_files": n_other, **asked.told, "texts": (),
            "times": job.plain(times) if times else None,
        }  # fmt: skip

        def tell(**run: object) -> Path:
            files = {job.plain(path): told[path] for path in sorted(told)}
            return account.write_account(out, which | run, about, files, loaded.limits)

        tell(ended=None)  # what stays of a run that is killed
        todo = list(job.unfinished(groups, ready, fresh=fresh))
        files = [path for _, group in todo for path in group]
        print(f"{whole}: {len(audio)} audio files, {len(audio) - len(files)} done before; "
              f"{n_other} other files are left out", file=sys.stderr)  # fmt: skip
        for made in journal.replaced:
            print(f"protect_folder.py: {job.plain(made)}: is no longer what was written there; it "
                  "is made anew", file=sys.stderr)  # fmt: skip
        journal.begin({drawn.get(path, path): source / path for path in files})
        jobs = job.Jobs(min(nj or len(os.sched_getaffinity(0)), len(files) or 1))
        opened = protection.open_all(
            jobs, source, [path for name, _ in todo for path in groups[name]]
        )
        opened = scenes.checked(opened, said)
        good = [found for path in files if isinstance(found := opened[path], Recording)]
        named = {name: groups[name] for name, _ in todo}
        columns = {own.path.relative_to(source): work.made_of(own) for own in opened.values()
                   if isinstance(own, Recording)}  # fmt: skip
        work.scenes.update(scenes.with_voices(said, named, columns, loaded.anonymiser, source))
        seconds = sum(found.seconds for found in good)
        takes = loaded.rate * max([seconds / jobs.nj, *(found.seconds for found in good)])
        lasts = f"about {clock_time(takes)} on cores like ours" if takes else "unknown time"
        how = f"{len(good)} files, {jobs.nj} at a time: {lasts}"
        print(f"{whole}: {clock_time(seconds)} of audio in {how}", file=sys.stderr)
        bar = _Bar(seconds, len(good))
        jobs.tick = bar.add

        def done(path: Path, made: protection.Made) -> None:
            bar.files += 1
            found = {"warnings": made.remarks, "seconds": lengths[path], **made.told}
            row = found if keeps and ending == "keep" else {"warnings": made.remarks}
            row |= {"said": marks[path]} if marks[path] else {}
            if copied:
                later = made.told.get("seconds_later", 0.0)
                at = next((TimeMap.read(own) for own in work.tables(path)), lambda x: x + later)
                copied.copy(path, work.target(path), said[path], at)
            # In OUT, where other lengths are hidden.
            journal.add(drawn.get(path, path), work.target(path), row)
            told[path] = {"status": "done", **found}
            if made.told.get("seconds_unread"):
                unread.append(path)

        unread = list[Path]()
        lengths = {found.path.relative_to(source): round(found.seconds, 2) for found in good}
        failed = protection.protect_all(jobs, work, todo, groups, opened, done)
        jobs.tick(seconds)
    for note in (f"{found.path}: {note}" for found in good for note in work.notes(found)):
        print(f"protect_folder.py: {job.plain(note)}", file=sys.stderr)
    for path in sorted(unread):
        why = protection.UNREAD.format(f"{told[path]['seconds_unread']:.1f} s")
        print(f"protect_folder.py: {job.plain(source / path)}: {why}", file=sys.stderr)
    for path, row in sorted(told.items()):
        if "heard" in row:
            why = protection.SEVERAL.format(row["heard"])
            print(f"protect_folder.py: {job.plain(source / path)}: {why}", file=sys.stderr)
    if turns:
        print(f"{job.plain(source)}: {in_words(told.values(), per != 'file')}")
    if redact:
        n = sum("removed" in row for row in told.values())
        print(f"{n} of {len(told)} recordings had spans that were removed")
    left = [job.plain(file.relative_to(source)) for file in sorted(lost)]
    about["texts"] = left
    for why in filter(None, lost.values()):
        print(f"protect_folder.py: {job.plain(why)}", file=sys.stderr)
    if left:
        some = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if left[3:] else "")
        print(f"protect_folder.py: {len(left)} subtitles and transcripts are left out: {some}; "
              "--texts (make: TEXTS=true) copies what it can read", file=sys.stderr)  # fmt: skip
    listed = account.beside(out, "failed.txt")
    listed.unlink(missing_ok=True)
    for path in failed:
        told[path] = {"status": "failed", "reason": job.plain(failed[path])}
        told[path] |= {"seconds": lengths[path]} if path in lengths else {}
    page = tell(protected=len(files) - len(failed), failed=len(failed))
    if failed:
        lines = [job.plain(reason) for reason in failed.values()]
        print(*(f"protect_folder.py: {line}" for line in lines), sep="\n", file=sys.stderr)
        write_file(listed, "\n".join(lines) + "\n")
    shown, voices = job.plain(out), {x for own in work.scenes.values() for x in own.voices.values()}
    if tagged := sum(found.audio.tagged for found in good):
        print(f"{tagged} files had tags (title, artist, comment ...), which {shown} does not have")
    print(f"{shown}: {len(files) - len(failed)} files protected now, {len(failed)} failed; "
          f"{max(len(todo), len(voices))} pseudo-speakers")  # fmt: skip
    if rename:
        print(f"{job.plain(table)}: which file is which; keep it apart from {shown}, or remove it")
    if times:
        print(
            f"{job.plain(times)}: when each word was said, and is now; keep it apart from {shown}"
        )
    print("\n".join(loaded.limits))
    print(f"{job.plain(page)}: the account of what was done, to read and to keep")
    if failed:
        raise LossError(
            f"{out}: {len(failed)} of {len(audio)} files are not protected (above, and {listed})"
        )
