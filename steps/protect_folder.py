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

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from steps import options
from steps.standalone.shards import Shard, launch, part_name, parts_of, shared
from utils.cli import (
    MMAP_THRESHOLD,
    LossError,
    UserError,
    positive,
    progress,
    tell_allocator,
)
from utils.commands import program, words_again
from utils.launching import tell_stopped
from utils.tables import write_file

if TYPE_CHECKING:
    from steps.standalone.protection import Made


def _check_folders(source: Path, out: Path, key: Path | None) -> None:
    inside, made = source.resolve(), out.resolve()
    both = {
        "is the same folder as": made == inside, "lies in": made.is_relative_to(inside),
        "holds": inside.is_relative_to(made),
    }  # fmt: skip
    for how in (how for how, holds in both.items() if holds):
        raise UserError(f"OUT, {out}, {how} IN, {source}; choose a separate folder for OUT")
    if key is not None and key.resolve().is_relative_to(made):
        raise UserError(
            f"{key}: the key must not lie beside what it protects; choose another place"
        )


def _name_one(source: Path, out: Path | None) -> Path:
    """The file that is made of one; UserError where it would take another's place."""
    from steps.standalone import account, job
    from utils.audiofile import audio_format

    if audio_format(source) is None:
        raise UserError(f"{source}: its name does not end as an audio file's, such as .wav or .mp3")
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
    path.touch(0o600, exist_ok=False)
    path.write_text(f"{key}\n", "utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


_MOST = 20  # lines on files; the account has all


def _tell(lines: Iterable[str]) -> None:
    """Write lines on files to standard error: the first, and how many there are more."""
    lines = list(lines)
    more = [f"{len(lines) - _MOST} more; the account names them"] * (len(lines) > _MOST)
    for line in [*lines[:_MOST], *more]:
        _say(f"protect_folder.py: {line}")


def _check(given: Any) -> None:
    """UserError for options that are not for one another; names OUT where it is left out."""
    source, apart, auto = given.source, given.shard or given.launcher, given.turns == "auto"
    keys = given.key, given.key_file, given.write_key
    given.one = source.name if source.is_file() else ""
    if given.one:
        given.out = _name_one(source, given.out)
    elif given.out is None:
        what = "is a folder; name the one that is written, OUT" if source.is_dir() else "is missing"
        raise UserError(f"{source}: {what}")
    else:
        _check_folders(source, given.out, given.write_key or given.key_file)
    for holds, what in (
        (sum(option is not None for option in keys) > 1,
         "--key, --key-file and --write-key: give one of them"),
        (given.write_key and os.path.lexists(given.write_key),
         f"{given.write_key}: is there, and may hold the key of an earlier run, which goes on with "
         "it (--key-file); or choose another file"),
        # Else each shard draws its own.
        (apart and (given.key or given.write_key
                    or (given.key_file and not given.key_file.is_file())),
         "--shard, --launcher: the key must be in a file that stays; give --key-file"),
        (apart and given.rename and not given.key_file,
         "--rename: shards draw names by one key; give --key-file (make: KEY_FILE=)"),
        (given.one and given.texts and given.out.resolve().with_suffix("")
         == source.resolve().with_suffix(""),
         f"{given.out}: its texts would take the place of the recording's; rename OUT"),
        (given.one and (given.rename or apart),
         "--rename, --shard and --launcher are for folders, and IN is a file"),
        (given.speakers and given.per != "speaker",
         "--speakers is for --per speaker; add it (with make: PER=speaker)"),
        (given.turns_only and (not auto or given.launcher),
         "--turns-only: is for --turns auto, on this machine"),
        (auto and given.per != "file",
         f"--per {given.per}: turns that are found name people of one recording; find them "
         "(--turns-only), name the people, and give them back (--turns FOLDER)"),
        (given.turns and given.speakers,
         "--speakers: with --turns the turns say who speaks; leave it out"),
    ):  # fmt: skip
        if holds:
            raise UserError(what)


class _Run(SimpleNamespace):
    """A run of the program: its options, and all that it learns, in that order."""

    def begin(self) -> None:
        """Find the recordings, and read what is said of them."""
        from steps.standalone import account, job, scenes

        self.began, one, out = account.now(), self.one, self.out
        self.base = self.source.parent if one else self.source
        self.folder = out.parent if one else out
        self.audio, self.others = ([Path(one)], []) if one else job.find_audio(self.source, out)
        self.asked = scenes.Wishes(
            self.turns, self.redact, self.keep, self.protect, self.redact_by or "tone", self.people,
            self.channels == "each", self.texts, account.beside(out, "turns"),
        )  # fmt: skip
        self.every = self.audio
        self.read_turns()
        self.same = bool(self.turns) and self.per == "speaker"  # a label is a person everywhere
        known = job.read_speakers(self.speakers, self.base) if self.speakers else None
        self.whole_groups = (
            {"": self.audio} if self.same else job.group_files(self.audio, self.per, known)
        )
        of = self.whole_groups.items() if known else ()
        self.whose = {path: name for name, paths in of for path in paths}
        self.groups = self.shard.own(self.whole_groups) if self.shard else self.whole_groups
        self.audio = sorted(path for group in self.groups.values() for path in group)
        self.told = dict[Path, dict[str, Any]]()
        self.warnings, self.voices = dict[Path, list[str]](), set[str]()

    def read_turns(self) -> None:
        """Read what files say of the recordings."""
        self.said = self.asked.read(self.base, self.every, alone=bool(self.one))

    @cached_property
    def copies(self) -> Any:  # scenes.Texts
        """Texts beside recordings, in which the turns name people."""
        from steps.standalone import scenes

        return scenes.Texts.read(
            self.base, self.every, self.said, shared=self.same, wanted=self.texts and self.timed,
            alone=bool(self.one),
        )  # fmt: skip

    def find_turns(self) -> None:
        """Find who speaks when in recordings of which no file says it."""
        from steps.standalone import job, scenes
        from steps.standalone.people import in_words

        jobs = job.Jobs(min(self.nj or len(os.sched_getaffinity(0)), len(self.audio)))
        own = {path: self.said[path] for path in self.audio}
        found, place = dict[Path, Any](), job.plain(str(self.asked.place))
        for path, scene in scenes.find_turns(self.asked, jobs, self.base, own):
            found[path] = scene
            clearly = f"{scene.sure or 0:.0%} of it is clearly of one"
            what = scene.fault or f"{in_words([scene.told(each=self.asked.each)])}; {clearly}"
            _say(f"{job.plain(self.base / path)}: {what}")
        self.read_turns()
        for path, scene in found.items():
            fault = scene.fault or self.said[path].fault
            self.said[path] = replace(self.said[path], sure=scene.sure, fault=fault)
        there = len(own) - len(found)
        _say(f"{place}: who speaks when, as it was heard; {there} of {len(own)} recordings had "
              "turns there, which stay (remove them, and they are found anew); correct them, and "
              f"give them back: --turns {place} (make: TURNS=)")  # fmt: skip

    def load(self) -> None:
        """Load the system, with the key, and choose the voices."""
        from steps.standalone import job, scenes

        self.used, self.fresh = job.choose_key(self.key, self.key_file)
        self.kept = self.used if self.write_key or not self.fresh else None  # for other runs
        self.secret = job.fingerprint(self.kept, "00") if self.kept and self.speakers else ""
        self.key_digest, number = job.fingerprint(self.used), job.key_number(self.used)
        time: str | None = self.time
        self.loaded = job.load_system(self.system, number, {"time": time} if time else {})
        if self.channels == "each" and self.loaded.anonymiser.tells_words:
            if time:
                raise UserError(
                    "--time map: each channel would have a time of its own, and answers would "
                    "precede their questions; take --time keep, or --channels mix"
                )
            time = "keep"
            _say("protect_folder.py: --channels each: words stay where they were (--time keep), "
                  "as the channels of a recording must fit together")  # fmt: skip
            self.loaded = job.load_system(self.system, number, {"time": time})
        anonymiser = self.loaded.anonymiser
        self.kept_ends, self.keeps = self.ends or anonymiser.ends, anonymiser.keeps_length
        self.settings: dict[str, object] = {
            "system": self.loaded.digest, "per": self.per, "channels": self.channels,
            "level": self.level, **({"time": time} if time else {}),
            **({"ends": self.kept_ends} if self.kept_ends != "keep" else {}),
            **({"names": "drawn"} if self.rename else {}),
            **self.asked.settings(self.said, self.per),
        }  # fmt: skip
        self.said = scenes.with_voices(self.said, self.whole_groups, anonymiser)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lock OUT, and open its journal; names are drawn where that was asked for."""
        from steps.standalone import account, job

        shard, table = self.shard, account.beside(self.out, job.TABLE)
        if (
            self.rename
            and self.fresh
            and table.is_file()
            and not (self.out / job.JOURNAL).is_file()
        ):
            raise UserError(
                f"{table}: is of another {self.out}, whose names would come again; move it away"
            )
        with (
            TemporaryDirectory() if self.one else nullcontext(self.out) as noted,
            job.alone_in(Path(noted), shard) as self.held,
        ):
            self.journal = job.Journal(Path(noted), self.settings, self.kept, shard)
            if not shard:
                self.journal.take_parts()
            if self.write_key:
                _write_key(self.write_key, self.used)
            begun, names = self.fresh and bool(self.journal.done), [job.SALT, *self.audio]
            self.drawn = dict[Path, Path]()
            if self.rename and shard:
                self.drawn = {path: job.draw_name(self.used, path) for path in names}
            elif self.rename:
                self.drawn = job.draw_names(self.used, names, table, fresh=self.fresh, begun=begun)
            self.journal.salt = str(self.drawn.pop(job.SALT, ""))
            self.drawn |= {Path(self.one): Path(self.out.name)} if self.one else {}
            yield

    def plan(self) -> None:
        """Look at what is done, and tell what is not."""
        from steps.standalone import account, job, protection

        anonymiser = self.loaded.anonymiser
        self.times = account.beside(self.out, "times") if anonymiser.tells_words else None
        self.work = protection.Work(
            self.base, self.folder, anonymiser, self.channels, self.level, self.drawn,
            self.kept_ends, self.times, self.journal.salt, self.loaded.pitch, self.said,
        )  # fmt: skip
        places = {self.drawn.get(path, path): self.work.target(path) for path in self.audio}
        if not self.one:
            self.journal.check(places)
        # Else nobody knows when what is said.
        self.timed = self.keeps or anonymiser.tells_words
        known = account.told(self.out, "source_sha256")  # which marks in OUT do not tell for sure
        for path in (
            () if self.launcher else progress("protect, what is done", unit="files")(self.audio)
        ):
            name, target = self.drawn.get(path, path), self.work.target(path)
            copies = (target.with_suffix(file.suffix) for file in self.copies.copied(path))
            found = self.journal.has(name, self.base / path, target)
            if (
                found
                and known.get(job.plain(path)) in (None, found[0])
                and self.listed(path)
                and all(own.is_file() for own in (*self.work.tables(path), *copies))
            ):
                self.note(path, *found, self.journal.told(name))
        ready = filter(self.listed, self.audio) if self.launcher else self.told
        self.tell(ended=None)  # what stays of a run that is killed
        self.todo = list(job.unfinished(self.groups, ready, fresh=self.fresh))
        self.files = [path for _, group in self.todo for path in group]
        n, left = len(self.audio), len(self.files)
        _say(f"{self.source}: {n} audio files, {n - left} done before; "
              f"{len(self.others)} other files are left out")  # fmt: skip
        _tell(f"{job.plain(made)}: is no longer what was written there; it is made anew"
              for made in self.journal.replaced)  # fmt: skip
        gone = () if self.shard else sorted({*map(Path, self.journal.done)} - {*places})
        _tell(f"{job.plain(made)}: {self.source} has no recording of it any more; it stays, unless "
              "you remove it" for made in (self.out / job.made_name(name) for name in gone)
              if made.is_file())  # fmt: skip

    def mark(self, path: Path) -> str:
        """Mark of what is said of a recording, by which other turns are noticed."""
        from steps.standalone import scenes

        copies = self.copies
        if person := self.whose.get(path):  # OUT has no name that can be guessed
            person = self.secret + person if self.kept else repr(self.whole_groups[person])
        return scenes.digest_of(
            self.said[path], self.journal.salt, copies.copied(path), copies.names[path], person
        )

    def listed(self, path: Path) -> bool:
        """Whether a file is done, with what is said of it."""
        name = self.drawn.get(path, path)
        done = name.as_posix() in self.journal.done
        return done and self.journal.told(name).get("said", "") == self.mark(path)

    def note(self, path: Path, digest: str, made: str, row: Mapping[str, object]) -> None:
        """Take a file that is done into the account; with drawn names nothing tells which became
        which."""
        self.told[path] = {"status": "done", **row, "source_sha256": digest}
        self.told[path] |= {} if self.rename else {"sha256": made}

    def tell(self, **run: object) -> Path:
        """Write the account; returns its page."""
        from steps.standalone import account, job

        keeping = "drawn, and written to a file" if self.write_key else "drawn, and forgotten"
        words = ["steps/protect_folder.py", *words_again(key="..." if self.key else None)]
        taken = {file for path in self.audio for file in self.copies.copied(path)}
        about: dict[str, Any] = {
            "source": job.plain(self.source.resolve()), "per": self.per,
            "channels": self.channels, "level": self.level, "ends": self.kept_ends,
            "keeps_time": self.keeps,
            "system": {"path": job.plain(self.system), "digest": self.loaded.digest},
            "renamed": self.rename,
            "left_out": [job.plain(x) for x in self.others if self.base / x not in taken],
            "times": job.plain(self.times) if self.times else None, **self.asked.told,
            **({"sha256": self.journal.made} if self.rename else {}),
        }  # fmt: skip
        which = {
            "key": keeping if self.fresh else "given", "key_digest": self.key_digest,
            "command": job.plain(shlex.join(words)), "began": self.began, **run,
        }  # fmt: skip
        files = {job.plain(path): self.told[path] for path in sorted(self.told)}
        return account.write_account(self.out, which, about, files, self.loaded.limits, self.shard)

    def make(self) -> dict[Path, str]:
        """Make the files, here or by a launcher's jobs; returns why some could not be made."""
        from steps.standalone import job, protection

        files = self.files
        cores = len(os.sched_getaffinity(0))
        nj = min(self.nj or cores, len(files) or 1)
        jobs = job.Jobs(min(nj, cores) if self.launcher else nj)
        seconds, lasts = protection.foretell(
            jobs, [self.base / path for path in files], nj, self.loaded.rate
        )
        _say(f"{self.source}: {lasts}")
        if self.launcher:
            return self.launch(nj)
        self.journal.begin(self.drawn.get(path, path) for path in files)
        bar = job.Bar("protect", seconds, len(files))
        jobs.tick = bar.add

        def done(path: Path, made: protection.Made) -> None:
            bar.done += 1
            self.add(path, made)

        failed = protection.protect_all(jobs, self.work, self.todo, self.groups, done)
        jobs.tick(seconds)
        return failed

    def launch(self, nj: int) -> dict[Path, str]:
        """Have a launcher's jobs make the files; returns why some were not made."""
        from steps.standalone import account, job

        words = [str(Path(__file__).resolve())]
        words += words_again(nj=1, launcher=None, system=self.system.resolve())
        logs = account.beside(self.out, "log")
        with shared(self.held):
            stopped = launch(shlex.split(self.launcher), nj, logs, words)
        if stopped:
            left = "its shards were stopped too; the same command goes on"
            sys.exit(tell_stopped("protect_folder.py", stopped, left))
        if not parts_of(self.journal.path):
            raise UserError(f"{self.launcher}: none of its jobs began (see above, and {logs})")
        self.journal.take_parts()
        self.read_turns()  # which the shards may have found
        del self.copies
        reasons = account.told(self.out, "reason")
        missed = f"was not made; {logs} may say why, and the same command tries again"
        return {
            path: reasons.get(job.plain(path), f"{self.base / path}: {missed}")
            for path in self.audio if not self.listed(path)
        }  # fmt: skip

    def add(self, path: Path, made: "Made") -> None:
        """Note a file that was made, and copy its texts."""
        from steps.standalone.times import TimeMap

        found = {"warnings": made.remarks, **made.told}
        row = found if self.keeps and self.kept_ends == "keep" else {"warnings": made.remarks}
        row |= {"said": mark} if (mark := self.mark(path)) else {}
        later = made.told.get("seconds_later", 0.0)
        at = next((TimeMap.read(own) for own in self.work.tables(path)), lambda x: x + later)
        self.copies.copy(path, self.work.target(path), self.said[path], at)
        # In OUT, where other lengths are hidden.
        self.journal.add(self.drawn.get(path, path), made.mark, made.made, row)
        self.note(path, made.source, made.made, found)
        self.warnings[path] = made.remarks
        self.voices |= made.voices

    def finish(self, failed: Mapping[Path, str]) -> None:
        """Tell what was done, and of what not; LossError where files failed."""
        from steps.standalone import account, job
        from steps.standalone.people import in_words

        told, shown = self.told, job.plain(self.out)
        self.remark()
        not_made = account.beside(self.out, part_name("failed.txt", self.shard))
        for old in (not_made, *parts_of(not_made)):
            old.unlink(missing_ok=True)
        for path in failed:
            self.copies.remove(self.work.target(path))
            told[path] = {"status": "failed", "reason": job.plain(failed[path])}
        n_made = len({*self.files} - {*failed})
        page = self.tell(protected=n_made, failed=len(failed))
        if self.launcher:  # whose shards wrote the account
            every = account.read(self.out)["files"]
            told = {path: every[name] for path in self.audio if (name := job.plain(path)) in every}
        rows = [row for row in told.values() if row["status"] == "done"]
        if self.turns:
            print(f"{job.plain(self.base)}: {in_words(rows, self.per != 'file')}")
        if self.redact:
            removed = sum("removed" in row for row in rows)
            print(f"{removed} of {len(rows)} recordings had spans that were removed")
        if failed:
            lines = [*map(job.plain, failed.values())]
            _tell(lines)
            write_file(not_made, "\n".join(lines) + "\n")
        voices = "" if self.launcher else f"; {len(self.voices)} pseudo-speakers"
        print(f"{shown}: {n_made} files protected now, {len(failed)} failed{voices}")
        apart = f"keep it apart from {shown}"
        if self.rename and not self.shard:
            table = account.beside(self.out, job.TABLE)
            print(f"{job.plain(table)}: which file is which; {apart}, or remove it")
        if self.times and not self.shard:
            print(f"{job.plain(self.times)}: when each word was said, and is now; {apart}")
        if self.shard:
            print(f"{shown}: this was shard {self.shard}; one run without --shard ends all")
        else:
            limits = self.loaded.limits
            first, second, *_ = [limits[0], *account.sentences(limits[1:])]
            print(first, second, *({job.NO_KEY} & {*limits}), sep="\n")
            print(f"{job.plain(page)}: the account, to read and to keep: all that this hides and "
                  "does not, and what was done")  # fmt: skip
        if failed:
            n = f"{len(failed)} of {len(self.audio)} files are not protected"
            raise LossError(f"{self.out}: {n} (above, and {not_made})")

    def remark(self) -> None:
        """Tell what was noticed of the files and of texts."""
        from steps.standalone import job, protection

        told, lost, notes = self.told, self.copies.lost, self.copies.notes
        quiet, some = (protection.TAGGED, protection.BECAME), protection.UNREAD.format("some")
        lines = list[str]()
        for path in sorted(self.warnings):
            for what in self.warnings[path]:
                if what == some:  # the account has the seconds
                    what = protection.UNREAD.format(f"{told[path]['seconds_unread']:.1f} s")
                if not what.startswith(quiet):
                    lines.append(f"{job.plain(self.base / path)}: {what}")
        _tell(lines)
        _tell(map(job.plain, filter(None, lost.values())))
        _tell(f"{job.plain(file)}: left out of its copy, as nobody says it: {', '.join(tiers)}"
              for file, tiers in notes.items() if file not in lost)  # fmt: skip
        if names := [job.plain(file.relative_to(self.base)) for file in sorted(lost)]:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
            why = "--texts (make: TEXTS=true) copies what it can read"
            if self.texts and not self.timed:
                why = "this system does not tell when what is said; bn2 and place do"
            _say(f"protect_folder.py: {len(names)} subtitles and transcripts are left out: "
                  f"{shown}; {why}")  # fmt: skip
        if tagged := sum(protection.TAGGED in own for own in self.warnings.values()):
            print(f"{tagged} files had tags (title, artist, comment ...), which "
                  f"{job.plain(self.out)} does not have")  # fmt: skip


def _tell_names(audio: Sequence[Path]) -> None:
    """Tell which names of files look like those of people."""
    from steps.standalone import job

    if like := job.like_people(audio):
        _say(f"protect_folder.py: {len(like)} of {len(audio)} names look like those of people (two "
            "words with a capital letter in a row, or a day). Protection keeps names of files and "
            "folders; --rename (make: RENAME=true) draws others. Names that are written otherwise "
            "are not noticed")  # fmt: skip
        _tell(f"a name like that of a person: {job.plain(path)}" for path in like)


class _Who(NamedTuple):
    """Options on who shares a pseudo-speaker, and on the key that draws them."""

    per: options.Per = "file"
    speakers: options.SpeakerTable = None
    key: options.KeyText = None
    key_file: options.KeyFile = None
    write_key: Annotated[
        Path | None, "The file that the drawn key is written to, outside of OUT; with it a run "
        "can be repeated", "FILE",
    ] = None  # fmt: skip


class _Form(NamedTuple):
    """Options on what is written."""

    channels: Annotated[
        Literal["mix", "each"], "What becomes of several channels: one mix, or "
        "each protected alone, with its own voice",
    ] = "mix"  # fmt: skip
    level: Annotated[
        Literal["one", "source"], "The level of the output: the system's one for all files, "
        "or each source's, which can tell who speaks",
    ] = "one"  # fmt: skip
    time: Annotated[
        Literal["keep", "map"] | None, "When words that are read anew are said: where they were; "
        "or as long as words usually last, their times in OUT.times; left out: as SYSTEM has it. "
        "Others keep time",
    ] = None  # fmt: skip
    ends: Annotated[
        Literal["one", "keep"] | None, "Silence before and after the speech of a recording: one "
        "length for all, or as it was, which can tell who speaks; left out: as SYSTEM has it"
    ] = None  # fmt: skip
    rename: Annotated[
        bool, "Whether files get drawn names and no folders; which was whose is written beside "
        "OUT, to OUT.names.tsv, for you alone to read"
    ] = False  # fmt: skip


class _Said(NamedTuple):
    """Options on the people of a recording, and what they say."""

    turns: Annotated[
        str | None, "Who speaks when, so that each person gets one voice: a folder of RTTM, "
        "TextGrid, .eaf, .vtt, .srt, .cha or tables `begin end person` with the names of the "
        "recordings; `beside`: they lie in IN; `auto`: it is found", "FOLDER|beside|auto",
    ] = None  # fmt: skip
    people: Annotated[
        int | None, "The number of people in each recording, for --turns auto", "N", positive
    ] = None
    turns_only: Annotated[
        bool, "Whether to end when --turns auto has written what it found beside OUT"
    ] = False
    protect: Annotated[
        str | None, "The people who are protected, by the labels of given turns; all others stay "
        "as they are", "A,B",
    ] = None  # fmt: skip
    keep: Annotated[str | None, "The people who stay as they are, all others not", "A,B"] = None
    redact: Annotated[
        str | None, "What must not be heard: a folder of tables `begin end [kind]`, or of files "
        "with a tier `redact` or <name>...</name> in subtitles; or `beside`", "FOLDER|beside",
    ] = None  # fmt: skip
    redact_by: Annotated[
        Literal["tone", "silence"] | None, "What is heard instead; left out: a tone"
    ] = None
    texts: Annotated[
        bool, "Whether subtitles and transcripts of IN are copied, with P1, P2 ... for names"
    ] = False


class _Where(NamedTuple):
    """Options on what runs side by side."""

    nj: options.Cores = None
    launcher: Annotated[
        str | None, "The launcher that runs --nj shards as its jobs, such as utils/slurm.py with "
        "its options; left out: this machine alone", "COMMAND",
    ] = None  # fmt: skip
    shard: Annotated[
        Shard | None, "The shard that is protected here: another run protects each other one of "
        "N, at any time and on any machine; then one without --shard ends what they began", "K/N",
        Shard.parse,
    ] = None  # fmt: skip


@program
def main(
    source: Annotated[Path, "The folder, or the file, that is read", "IN"],
    out: Annotated[Path | None, "The folder, or the file, that is written", "[OUT]"] = None,
    *, system: options.SafeSystem = options.SAFE_SYSTEM,
    who: _Who, form: _Form, said: _Said, where: _Where,
) -> None:  # fmt: skip
    groups = {**who._asdict(), **form._asdict(), **said._asdict(), **where._asdict()}
    run = _Run(source=source, out=out, system=system, **groups)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # parallelism is by processes
    # Arrays of 1 MB go back to the system when they are freed: the C library would keep them in
    # pieces, a tenth of a gigabyte in all.
    tell_allocator({MMAP_THRESHOLD: 2**20})
    _check(run)
    run.begin()
    if run.turns == "auto" and not run.launcher:
        run.find_turns()
    if run.turns_only:
        return
    run.load()
    if not run.rename and not run.shard:
        _tell_names(run.audio)
    with run.opened():
        run.plan()
        failed = run.make()
    run.finish(failed)
