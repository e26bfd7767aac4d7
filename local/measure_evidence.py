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
from typing import Annotated

from steps.options import SAFE_SYSTEM, Cores, KeyFile, Per, SafeSystem, SpeakerTable
from utils.cli import LossError, UserError, progress
from utils.commands import program

CPU_SECONDS = 0.17  # a second that is heard, one core of ours: 16 recordings of 11 s less 6 of them
FEWEST = 5  # people: centring makes two opposites, whom nobody could mistake for each other


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
    from local.options import write_figures
    from steps.standalone import account, job, protection, scenes
    from steps.standalone.times import TimeMap, table_of
    from utils.tables import write_file

    if speakers and per != "speaker":
        raise UserError("--speakers is for --per speaker")
    if not out.is_dir():
        raise UserError(f"{out}: is not a folder; protect {source} first (make protect)")
    audio, _ = job.find_audio(source, out)
    known = job.read_speakers(speakers, source) if speakers else None
    same = bool(turns) and per == "speaker"  # a label is one person everywhere
    people = {"": audio} if same else job.group_files(audio, per, known)
    key = job.choose_key(None, key_file)[0] if key_file else None
    made = job.made_with(out, key)
    if per == "file" != (made_per := made.get("per", "file")):
        raise UserError(
            f"{out}: was protected with a voice for each {made_per}, so that recordings share a "
            f"person; give --per {made_per} (make: PER={made_per})"
        )
    if turns == scenes.AUTO:
        turns = str(account.beside(out, "turns"))
    asked = account.read(out) if turns and "asked" in made else {}  # OUT holds no names
    kept, only = (scenes.labels_of(asked.get(name)) for name in ("kept", "only"))
    said = scenes.Wishes(turns, None, kept, only).read(source, audio) if turns else {}
    number = job.key_number(f"the attacker's own, {key}")  # voices that nobody has in OUT
    changes = {"time": made["time"]} if "time" in made else {}
    loaded = job.load_system(system, number, changes) if made else None
    if loaded and loaded.digest != made["system"]:
        raise UserError(f"{system}: is not what {out} was protected with; give SYSTEM=")
    moves = loaded is not None and not loaded.anonymiser.keeps_length
    if loaded and moves and not loaded.anonymiser.tells_words:
        raise UserError(
            f"{system}: changes how long speech is (rate, pauses, reads), and does not tell when "
            "what is said; measure it by a recipe (run.sh)"
        )
    level, ends = made.get("level", "one"), made.get("ends", "keep")
    judges, missing = evidence.load_judges(loaded.anonymiser if loaded else None, level, ends)
    jobs = job.Jobs(min(nj or len(os.sched_getaffinity(0)), len(audio)))
    every = [source / path for path in audio]
    _, lasts = protection.foretell(jobs, every, jobs.nj, CPU_SECONDS, 2 * evidence.MOST)
    print(f"{source}: {lasts}", file=sys.stderr)
    versions = job.Versions(out, audio, account.beside(out, job.TABLE))
    watch = progress("measure_evidence, which file is which", unit="comparisons")
    cuts = account.cuts(out) if ends == "one" else {}  # recordings are compared second by second
    held = Identity(jobs, source, out, watch, cuts={
        source / path: (round(-16000 * own[0]), round(16000 * own[1]))
        for path in audio if (own := cuts.get(job.plain(path)))
    })  # fmt: skip
    for version in versions.names.values() if moves else ():
        try:
            held.times[version] = TimeMap.read(table_of(account.beside(out, "times"), version))
        except UserError as error:
            held.unread[out / version] = str(error)
    held.identify(versions.names)
    pairs, left_out = evidence.pair_up(people, versions, held, said), held.left_out
    heard = dict[str, evidence.Heard]()
    order = sorted(pairs, key=lambda pair: -pair.original.seconds)  # no long one is begun last
    results = jobs.run(judges.hear, [(pair,) for pair in order])
    for _ in progress("measure_evidence", unit="recordings")(pairs):
        n, result = next(results)
        pair = order[n]
        if isinstance(result, UserError):
            left_out[pair.name] = job.plain(job.with_name(pair.original.path, result))
        else:
            heard[pair.name] = result
    pairs = [pair for pair in pairs if pair.name in heard]
    wrong = held.notes
    for note in wrong:
        print(f"measure_evidence.py: {job.plain(out)}/{note}", file=sys.stderr)
    for why in left_out.values():
        print(f"measure_evidence.py: left out: {why}", file=sys.stderr)
    if len({pair.person for pair in pairs}) < FEWEST:
        raise UserError(
            f"{source}: {len(pairs)} recordings of fewer than {FEWEST} people can be compared "
            f"with {out}; so few cannot be judged, give recordings of more people"
        )
    found = evidence.assess(pairs, heard, len(held.are("original")))
    about = {
        "source": job.plain(source), "out": job.plain(out), "per": per, "turns": turns,
        **account.origin(),
        "system": {"path": job.plain(system), "digest": loaded.digest} if loaded else None,
        "missing": missing,
        "limits": account.sentences(loaded.limits) if loaded else [],
        "key": "checked: it is that of the protected recordings" if key else "not given",
    }  # fmt: skip
    page = account.beside(out, "evidence.html")
    told = (found, about, pairs, held)
    write_figures(account.beside(out, "evidence.json"), evidence.as_data(*told))
    write_file(page, evidence.as_page(*told))
    for name, what in evidence.decide(found, held).items():
        print(f"{name}: {what}.")
    print(found.verdict)
    print(f"{job.plain(page)}: read it; it names recordings, and plays some unprotected")
    if left_out or wrong:
        also = f", and {len(wrong)} files are not what their names say" if wrong else ""
        raise LossError(f"{len(left_out)} of {len(audio)} recordings were left out{also} (above)")
