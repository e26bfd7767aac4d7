#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Measure what attackers who train nothing find in a protected folder: no labels, no lists.

IN is the folder of recordings, OUT its protected version (steps/protect_folder.py, or another
program that keeps names and lengths). Beside OUT, OUT.evidence.html is a page to read and
OUT.evidence.json has its figures.

Recordings are cut in halves, and attackers link the first half of an original with the second half
of what was protected: pyannote and Resemblyzer, where they are installed, ignorant, aligned, and
lazy-informed where OUT was protected with SYSTEM: with a key of their own, drawn from that of OUT
where it is given. Words are compared where Moonshine is installed.

Before that, every file of OUT is compared with every recording: originals that were passed on,
swapped names and copies are named.

Exit status 3: files are not what their names say, or some recordings could not be measured; they
are named, also on the page, and the others are measured.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from steps.options import SAFE_SYSTEM, Cores, KeyFile, Per, SafeSystem, SpeakerTable
from utils.cli import LossError, UserError, progress
from utils.commands import program

EACH = 2.0  # CPU seconds of a recording, however long: of 329 of 6 s, with eight comparisons each
CPU_SECONDS = 0.17  # a second that is heard, one core of ours: 16 recordings of 11 s less 6 of them
FEWEST = 5  # people: centring makes two opposites, whom nobody could mistake for each other


def _made(
    source: Path, out: Path, per: str, speakers: Path | None, turns: str | None,
    key_file: Path | None,
) -> tuple[str | None, dict[str, Any]]:  # fmt: skip
    """The key, and the settings with which OUT was protected; UserError where options do not fit
    these."""
    from steps.standalone import job

    if speakers and per != "speaker":
        raise UserError("--speakers is for --per speaker; add it (with make: PER=speaker)")
    if speakers and turns:
        raise UserError("--speakers: with --turns the turns say who speaks; leave it out")
    if turns == "auto" and per != "file":
        raise UserError(
            f"--per {per}: turns that are found name people of one recording; name the people, "
            "and give them (--turns FOLDER)"
        )
    if not out.is_dir():
        raise UserError(f"{out}: is not a folder; protect {source} first (make protect)")
    key = job.choose_key(None, key_file)[0] if key_file else None
    made = job.made_with(out, key)
    if per == "file" != (made_per := made.get("per", "file")):
        raise UserError(
            f"{out}: was protected with a voice for each {made_per}, so that recordings share a "
            f"person; give --per {made_per} (make: PER={made_per})"
        )
    return key, made


def _tell_lost(out: Path, held: Any) -> None:
    from steps.standalone.job import plain

    for note in held.notes:
        print(f"measure_evidence.py: {plain(out)}/{note}", file=sys.stderr)
    for why in held.left_out.values():
        print(f"measure_evidence.py: left out: {why}", file=sys.stderr)


def _write(out: Path, n: int, told: tuple[Any, ...]) -> None:
    """Write the page and its figures, and print what to decide by; LossError where some of n
    recordings were not measured, or files are not what their names say."""
    from local.evidence import figures as evidence
    from local.options import write_figures
    from steps.standalone.account import beside
    from steps.standalone.job import plain
    from utils.tables import write_file

    found, _, _, held = told
    page, wrong = beside(out, "evidence.html"), held.notes
    write_figures(beside(out, "evidence.json"), evidence.as_data(*told))
    write_file(page, evidence.as_page(*told))
    for name, what in evidence.decide(found, held).items():
        print(f"{name}: {what}.")
    print(found.verdict)
    print(f"{plain(page)}: read it; it names recordings, and plays some unprotected")
    if held.left_out or wrong:
        also = f", and {len(wrong)} files are not what their names say" if wrong else ""
        raise LossError(f"{len(held.left_out)} of {n} recordings were left out{also} (above)")


@program
def main(
    source: Annotated[Path, "The folder of the originals", "IN"],
    out: Annotated[Path, "The folder of their protected versions", "OUT"], *,
    system: SafeSystem = SAFE_SYSTEM,
    per: Per = "file",
    speakers: SpeakerTable = None,
    key_file: KeyFile = None,
    turns: Annotated[
        str | None, "Who speaks when, so that each person is measured by their own turns: as of "
        "steps/protect_folder.py; `auto`: what it found and wrote beside OUT", "FOLDER|beside|auto",
    ] = None,
    nj: Cores = None,
) -> None:  # fmt: skip
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # parallelism is by processes
    logging.getLogger("local").setLevel(logging.ERROR)  # the page also says what is not defined
    from local.evidence import figures as evidence
    from local.evidence.identity import Identity
    from steps.standalone import account, job, protection, scenes

    key, made = _made(source, out, per, speakers, turns, key_file)
    audio, _ = job.find_audio(source, out)
    known = job.read_speakers(speakers, source) if speakers else None
    same = bool(turns) and per == "speaker"  # a label is one person everywhere
    people = {"": audio} if same else job.group_files(audio, per, known)
    if turns == scenes.AUTO:
        turns = str(account.beside(out, "turns"))
    asked = account.read(out) if turns and "asked" in made else {}  # OUT holds no names
    kept = asked.get("kept"), asked.get("only")
    said = scenes.Wishes(turns, None, *kept).read(source, audio) if turns else {}
    loaded = evidence.load_protection(system, out, key, made)
    level, ends, of = made.get("level", "one"), made.get("ends", "keep"), made.get("per", "file")
    judges, missing = evidence.load_judges(loaded.anonymiser if loaded else None, level, ends, of)
    jobs = job.Jobs(min(nj or len(os.sched_getaffinity(0)), len(audio)))
    every = [source / path for path in audio]
    _, lasts = protection.foretell(jobs, every, jobs.nj, CPU_SECONDS, 2 * evidence.MOST, EACH)
    print(f"{source}: {lasts}", file=sys.stderr)
    versions = job.Versions(out, audio, account.beside(out, job.TABLE))
    watch = progress("measure_evidence, which file is which", unit="comparisons")
    moves = loaded is not None and not loaded.anonymiser.keeps_length
    held = Identity.of(
        jobs, source, out, versions, watch, one_end=ends == "one", moves=moves, scenes=said
    )
    pairs = evidence.pair_up(people, versions, held, said)
    seconds = sum(pair.original.seconds for pair in pairs)  # the longest are heard first
    bar = job.Bar("measure_evidence", seconds, len(pairs), "recordings")
    jobs.tick = bar.add
    heard = evidence.hear(judges, pairs, held, bar.count)
    pairs = [pair for pair in pairs if pair.name in heard]
    _tell_lost(out, held)
    if len({pair.person for pair in pairs}) < FEWEST:
        raise UserError(
            f"{source}: {len(pairs)} recordings of fewer than {FEWEST} people can be compared "
            f"with {out}; so few cannot be judged, give recordings of more people"
        )
    watch = progress("measure_evidence, attacks", unit="evaluators")
    found = evidence.assess(pairs, heard, len(held.are("original")), watch)
    about = {
        "source": job.plain(source), "out": job.plain(out), "per": per, "turns": turns,
        **account.origin(), "missing": missing,
        "system": {"path": job.plain(system), "digest": loaded.digest} if loaded else None,
        "limits": account.sentences(loaded.limits) if loaded else [],
        "key": "checked: it is that of the protected recordings" if key else "not given",
    }  # fmt: skip
    _write(out, len(audio), (found, about, pairs, held))
