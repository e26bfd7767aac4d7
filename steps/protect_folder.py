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
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

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
    try:
        path.touch(0o600, exist_ok=False)
    except FileExistsError as error:
        raise UserError(
            f"{path}: is there, and may hold the key of an earlier run; choose another file"
        ) from error
    path.write_text(f"{key}\n", "utf-8")


def _check_sharing(
    key: str | None, key_file: Path | None, write_key: Path | None, rename: bool
) -> None:
    """Whether shards can know the key: it must stand in a file, or each draws its own."""
    if key or write_key or (key_file and not key_file.is_file()):
        raise UserError(
            "--shard, --launcher: the key must be in a file that stays; give --key-file"
        )
    if rename and not key_file:
        raise UserError("--rename: shards draw names by one key; give --key-file (make: KEY_FILE=)")


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


_MOST = 20  # lines on files; the account has all


def _tell(lines: Iterable[str]) -> None:
    """Write lines on files to standard error: the first, and how many there are more."""
    lines = list(lines)
    more = [f"{len(lines) - _MOST} more; the account names them"] * (len(lines) > _MOST)
    for line in [*lines[:_MOST], *more]:
        print(f"protect_folder.py: {line}", file=sys.stderr)


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
        Literal["mix", "each"], "What becomes of several channels: one mix, or "
        "each protected alone, with its own voice",
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
    redact_by: Annotated[
        Literal["tone", "silence"] | None, "What is heard instead; left out: a tone"
    ] = None,
    texts: Annotated[
        bool, "Whether subtitles and transcripts of IN are copied, with P1, P2 ... for names"
    ] = False,
    nj: options.Cores = None,
    launcher: Annotated[
        str | None, "The launcher that runs --nj shards as its jobs, such as utils/slurm.py with "
        "its options; left out: this machine alone", "COMMAND",
    ] = None,
    shard: Annotated[
        Shard | None, "The shard that is protected here: another run protects each other one of N, "
        "at any time and on any machine; then one without --shard ends what they began", "K/N",
        Shard.parse,
    ] = None,
) -> None:  # fmt: skip
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # parallelism is by processes
    # Arrays of 1 MB go back to the system when they are freed: the C library would keep them in
    # pieces, a tenth of a gigabyte in all.
    tell_allocator({MMAP_THRESHOLD: 2**20})
    from steps.standalone import account, job, protection, scenes
    from steps.standalone.people import in_words
    from steps.standalone.times import TimeMap

    if sum(option is not None for option in (key, key_file, write_key)) > 1:
        raise UserError("--key, --key-file and --write-key: give one of them")
    if shard or launcher:
        _check_sharing(key, key_file, write_key, rename)
    if one := source.name if source.is_file() else "":
        out = _name_one(source, out)
    elif out is None:
        what = "is a folder; name the one that is written, OUT" if source.is_dir() else "is missing"
        raise UserError(f"{source}: {what}")
    else:
        _check_folders(source, out, write_key or key_file)
    if one and texts and out.resolve().with_suffix("") == source.resolve().with_suffix(""):
        raise UserError(f"{out}: its texts would take the place of the recording's; rename OUT")
    if one and (rename or shard or launcher):
        raise UserError("--rename, --shard and --launcher are for folders, and IN is a file")
    if speakers and per != "speaker":
        raise UserError("--speakers is for --per speaker")
    kept, only = scenes.labels_of(keep), scenes.labels_of(protect)
    asked = scenes.Wishes(
        turns, redact, kept, only, redact_by or "tone", people, channels == "each", texts
    )
    if turns_only and (turns != scenes.AUTO or launcher):
        raise UserError("--turns-only: is for --turns auto, on this machine")
    if turns == scenes.AUTO and per != "file":
        raise UserError(
            f"--per {per}: turns that are found name people of one recording; find them "
            "(--turns-only), name the people, and give them back (--turns FOLDER)"
        )
    if turns and speakers:
        raise UserError("--speakers: with --turns the turns say who speaks; leave it out")
    began = account.now()
    whole, source = source, source.parent if one else source
    audio, others = ([Path(one)], []) if one else job.find_audio(source, out)
    said = asked.read(source, audio, alone=bool(one))
    same, every = bool(turns) and per == "speaker", audio  # a label is one person everywhere
    known = job.read_speakers(speakers, source) if speakers else None
    whole_groups = groups = {"": audio} if same else job.group_files(audio, per, known)
    if shard:
        groups = shard.own(groups)
        audio = sorted(path for group in groups.values() for path in group)
    if turns == scenes.AUTO and not launcher:
        place = account.beside(out, "turns")
        finder = job.Jobs(min(nj or len(os.sched_getaffinity(0)), len(audio)))
        todo_here = {path: said[path] for path in audio}
        for path, scene in scenes.find_turns(asked, finder, source, todo_here, place):
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
    if channels == "each" and loaded.anonymiser.tells_words:
        if time:
            raise UserError(
                "--time map: each channel would have a time of its own, and answers would precede "
                "their questions; take --time keep, or --channels mix"
            )
        time = "keep"
        print("protect_folder.py: --channels each: words stay where they were (--time keep), as "
              "the channels of a recording must fit together", file=sys.stderr)  # fmt: skip
        loaded = job.load_system(system, job.key_number(used), {"time": time})
    ending, keeps = ends or loaded.anonymiser.ends, loaded.anonymiser.keeps_length
    settings: dict[str, object] = {"system": loaded.digest, "per": per, "channels": channels}
    settings |= {"level": level, **({"time": time} if time else {})}
    settings |= {"ends": ending} if ending != "keep" else {}
    settings |= {"names": "drawn"} if rename else {}
    settings |= asked.settings(said, per)
    said = scenes.with_voices(said, whole_groups, loaded.anonymiser)
    if not rename and not shard and (like := job.like_people(audio)):
        print(
            f"protect_folder.py: {len(like)} of {len(audio)} names look like those of people (two "
            "words with a capital letter in a row, or a day). Protection keeps names of files and "
            "folders; --rename (make: RENAME=true) draws others. Names that are written otherwise "
            "are not noticed", file=sys.stderr,
        )  # fmt: skip
        _tell(f"a name like that of a person: {job.plain(path)}" for path in like)
    table = account.beside(out, job.TABLE)
    if rename and fresh and table.is_file() and not (out / job.JOURNAL).is_file():
        raise UserError(f"{table}: is of another {out}, whose names would come again; move it away")
    folder = out.parent if one else out
    with (
        TemporaryDirectory() if one else nullcontext(out) as noted,
        job.alone_in(Path(noted), shard) as held,
    ):
        journal = job.Journal(Path(noted), settings, None if fresh else used, shard)
        if not shard:
            journal.take_parts()
        if write_key:
            _write_key(write_key, used)
        begun = fresh and bool(journal.done)
        given = [job.SALT, *audio]
        drawn = dict[Path, Path]()
        if rename and shard:
            drawn = {path: job.draw_name(used, path) for path in given}
        elif rename:
            drawn = job.draw_names(used, given, table, fresh=fresh, begun=begun)
        journal.salt = str(drawn.pop(job.SALT, ""))
        times = account.beside(out, "times") if loaded.anonymiser.tells_words else None
        drawn |= {Path(one): Path(out.name)} if one else {}
        work = protection.Work(
            source, folder, loaded.anonymiser, channels, level, drawn, ending, times, journal.salt,
            loaded.pitch, said,
        )  # fmt: skip
        timed = keeps or loaded.anonymiser.tells_words  # else nobody knows when what is said
        copied = scenes.Texts.read(source, every, said, same) if texts and timed else None
        lost = copied.lost if copied else scenes.left_out(source, audio)
        marks = {
            path: scenes.digest_of(scene, journal.salt, copied.files[path] if copied else (),
                                   found=turns == scenes.AUTO)
            for path, scene in said.items()
        }  # fmt: skip
        told = dict[Path, dict[str, Any]]()

        def note(path: Path, digest: str, made: str, row: Mapping[str, object]) -> None:
            # With drawn names nothing tells which file became which.
            told[path] = {"status": "done", **row, "source_sha256": digest}
            told[path] |= {} if rename else {"sha256": made}

        def listed(path: Path) -> bool:
            name = drawn.get(path, path)
            done = name.as_posix() in journal.done
            return done and journal.told(name).get("said", "") == marks[path]

        for path in () if launcher else progress("protect, what is done", unit="files")(audio):
            name = drawn.get(path, path)
            found = journal.has(name, source / path, work.target(path))
            if found and listed(path) and all(own.is_file() for own in work.tables(path)):
                note(path, *found, journal.told(name))
        ready = [path for path in audio if listed(path)] if launcher else [*told]
        taken = {file for own in copied.files.values() for file in own} if copied else set()
        taken -= lost.keys()
        keeping = "drawn, and written to a file" if write_key else "drawn, and forgotten"
        which = {"key": keeping if fresh else "given", "key_digest": job.fingerprint(used)}
        words = ["steps/protect_folder.py", *words_again(key="..." if key else None)]
        which |= {"command": job.plain(shlex.join(words)), "began": began}
        about = {
            "source": job.plain(whole.resolve()), "per": per, "channels": channels,
            "level": level, "ends": ending, "keeps_time": keeps,
            "system": {"path": job.plain(system), "digest": loaded.digest},
            "renamed": rename,
            "left_out": [job.plain(path) for path in others if source / path not in taken],
            "times": job.plain(times) if times else None, **asked.told,
        }  # fmt: skip

        def tell(**run: object) -> Path:
            files = {job.plain(path): told[path] for path in sorted(told)}
            made = {"sha256": journal.made} if rename else {}
            return account.write_account(
                out, which | run, about | made, files, loaded.limits, shard
            )

        tell(ended=None)  # what stays of a run that is killed
        todo = list(job.unfinished(groups, ready, fresh=fresh))
        files = [path for _, group in todo for path in group]
        print(f"{whole}: {len(audio)} audio files, {len(audio) - len(files)} done before; "
              f"{len(others)} other files are left out", file=sys.stderr)  # fmt: skip
        for made in journal.replaced:
            print(f"protect_folder.py: {job.plain(made)}: is no longer what was written there; it "
                  "is made anew", file=sys.stderr)  # fmt: skip
        nj = min(nj or len(os.sched_getaffinity(0)), len(files) or 1)
        jobs = job.Jobs(min(nj, len(os.sched_getaffinity(0))) if launcher else nj)
        whole_files = [source / path for path in files]
        seconds, lasts = protection.foretell(jobs, whole_files, nj, loaded.rate)
        print(f"{whole}: {lasts}", file=sys.stderr)
        if launcher:
            again = words_again(nj=1, launcher=None, system=system.resolve())
            with shared(held):
                program_words = [str(Path(__file__).resolve()), *again]
                logs = account.beside(out, "log")
                stopped = launch(shlex.split(launcher), nj, logs, program_words)
            if stopped:
                left = "its shards were stopped too; the same command goes on"
                sys.exit(tell_stopped("protect_folder.py", stopped, left))
            if not parts_of(journal.path):
                raise UserError(f"{launcher}: none of its jobs began (see above, and {logs})")
            journal.take_parts()
        else:
            journal.begin(drawn.get(path, path) for path in files)
        bar = _Bar(seconds, len(files))
        jobs.tick = bar.add

        def done(path: Path, made: protection.Made) -> None:
            bar.files += 1
            found = {"warnings": made.remarks, **made.told}
            row = found if keeps and ending == "keep" else {"warnings": made.remarks}
            row |= {"said": marks[path]} if marks[path] else {}
            if copied:
                later = made.told.get("seconds_later", 0.0)
                at = next((TimeMap.read(own) for own in work.tables(path)), lambda x: x + later)
                copied.copy(path, work.target(path), said[path], at)
            # In OUT, where other lengths are hidden.
            journal.add(drawn.get(path, path), made.mark, made.made, row)
            note(path, made.source, made.made, found)
            warnings[path] = made.remarks

        warnings = dict[Path, list[str]]()
        if launcher:
            reasons = account.reasons_of_shards(out)
            missed = f"was not made; {logs} may say why, and the same command tries again"
            failed = {
                path: reasons.get(job.plain(path), f"{source / path}: {missed}")
                for path in audio if not listed(path)
            }  # fmt: skip
        else:
            failed = protection.protect_all(jobs, work, todo, groups, done)
            jobs.tick(seconds)
    remarks = [(path, remark) for path in sorted(warnings) for remark in warnings[path]]
    quiet, some = (protection.TAGGED, protection.BECAME), protection.UNREAD.format("some")
    for n, (path, remark) in enumerate(remarks):
        if remark == some:  # the account has the seconds
            remarks[n] = path, protection.UNREAD.format(f"{told[path]['seconds_unread']:.1f} s")
    _tell(f"{job.plain(source / p)}: {what}" for p, what in remarks if not what.startswith(quiet))
    _tell(map(job.plain, filter(None, lost.values())))
    if turns and not launcher:
        print(f"{job.plain(source)}: {in_words(told.values(), per != 'file')}")
    if redact:
        n = sum("removed" in row for row in told.values())
        print(f"{n} of {len(told)} recordings had spans that were removed")
    if names := [job.plain(file.relative_to(source)) for file in sorted(lost)]:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
        print(f"protect_folder.py: {len(names)} subtitles and transcripts are left out: {shown}; "
              "--texts (make: TEXTS=true) copies what it can read", file=sys.stderr)  # fmt: skip
    not_made = account.beside(out, part_name("failed.txt", shard))
    for old in (not_made, *parts_of(not_made)):
        old.unlink(missing_ok=True)
    for path in failed:
        if copied:
            copied.remove(path, work.target(path))
        told[path] = {"status": "failed", "reason": job.plain(failed[path])}
    n_made = len({*files} - {*failed})
    page = tell(protected=n_made, failed=len(failed))
    if failed:
        lines = [job.plain(reason) for reason in failed.values()]
        _tell(lines)
        write_file(not_made, "\n".join(lines) + "\n")
    shown = job.plain(out)
    if tagged := sum(remark == protection.TAGGED for _, remark in remarks):
        print(f"{tagged} files had tags (title, artist, comment ...), which {shown} does not have")
    made_now = [[path for path in group if path not in failed] for _, group in todo]
    n_voices = max(sum(map(bool, made_now)), len(
        {voice for own in made_now for path in own for voice in said[path].voices.values()}
    ))  # fmt: skip
    print(
        f"{shown}: {n_made} files protected now, {len(failed)} failed; {n_voices} pseudo-speakers"
    )
    if rename and not shard:
        print(f"{job.plain(table)}: which file is which; keep it apart from {shown}, or remove it")
    if times and not shard:
        print(
            f"{job.plain(times)}: when each word was said, and is now; keep it apart from {shown}"
        )
    if shard:
        print(f"{shown}: this was shard {shard}; one run without --shard ends all")
    else:
        first, second, *_ = [loaded.limits[0], *account.sentences(loaded.limits[1:])]
        print(first, second, *({job.NO_KEY} & {*loaded.limits}), sep="\n")
        print(f"{job.plain(page)}: the account, to read and to keep: all that this hides and does "
              "not, and what was done")  # fmt: skip
    if failed:
        raise LossError(
            f"{out}: {len(failed)} of {len(audio)} files are not protected (above, and {not_made})"
        )
