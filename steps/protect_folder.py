#!/usr/bin/env python3
"""Protect the speech of any folder: no lists, no transcripts, no training.

OUT gets every audio file of IN that libsndfile reads, under the same name in the same sub-folder,
at 16 kHz. SYSTEM is a folder with system.yaml and what that needs (pool, synthesiser, generator),
such as models/bn, or a system's yaml file that needs nothing. Files of any length are gone through
in pieces; silence stays silence. A run that was killed goes on where it was.

Files with the same pseudo-speaker (--per) get the same voice. Which one is decided by the key: who
knows it, and the models, can find out who became whom. Without --key or --key-file a secret is
drawn, and forgotten unless --write-key names a file.

Exit status 3: some files could not be protected; they are named, and the others are done.
"""

import contextlib
import ctypes
import sys
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import SAFE_SYSTEM, KeyFile, KeyText, SafeSystem
from utils.cli import LossError, UserError, progress
from utils.commands import program
from utils.options import OutFolder
from utils.tables import write_file

SHOWN = 10  # files that failed
_M_MMAP_THRESHOLD = -3  # of glibc's mallopt


def _return_large_arrays() -> None:
    """Have arrays of 1 MB go back to the system when they are freed: the C library would keep them
    in pieces, a tenth of a gigabyte in all."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def _check_folders(source: Path, out: Path, key: Path | None) -> None:
    inside, made = source.resolve(), out.resolve()
    if made == inside or made.is_relative_to(inside) or inside.is_relative_to(made):
        raise UserError(f"{out}: lies in {source}, or the other way round; choose a folder apart")
    if key is not None and key.resolve().is_relative_to(made):
        raise UserError(
            f"{key}: the key must not lie beside what it protects; choose another place"
        )


class _Bar:
    """A bar of seconds of audio."""

    def __init__(self, seconds: float) -> None:
        self._seconds = 0.0
        self._bar = iter(progress("protect", unit="seconds of audio")(range(round(seconds))))

    def add(self, seconds: float) -> None:
        """So much more is done."""
        before, self._seconds = self._seconds, self._seconds + seconds
        deque(islice(self._bar, int(self._seconds) - int(before)), 0)


@program
def main(
    source: Annotated[Path, "The folder that is read", "IN"],
    out: OutFolder, *,
    system: SafeSystem = SAFE_SYSTEM,
    per: Annotated[
        Literal["file", "folder", "speaker"], "What shares a pseudo-speaker: nothing, the files "
        "of a sub-folder, or those whose names begin alike (<speaker>-<rest>)",
    ] = "file",
    speakers: Annotated[
        Path | None, "The table of lines `<file> <speaker>`, instead of the names of files, for "
        "--per speaker; a tab stands between them where file names hold blanks", "TABLE",
    ] = None,
    key: KeyText = None, key_file: KeyFile = None,
    write_key: Annotated[
        Path | None, "The file that the drawn key is written to, outside of OUT; with it a run "
        "can be repeated", "FILE",
    ] = None,
    channels: Annotated[
        Literal["mix", "each"], "What becomes of several channels: they are mixed down, or each "
        "is protected for itself with one voice",
    ] = "mix",
) -> None:  # fmt: skip
    _return_large_arrays()
    from steps.standalone import job
    from steps.standalone.stream import Recording

    if sum(option is not None for option in (key, key_file, write_key)) > 1:
        raise UserError("--key, --key-file and --write-key: give one of them")
    _check_folders(source, out, write_key)
    if speakers and per != "speaker":
        raise UserError("--speakers is for --per speaker")
    audio, n_other = job.find_audio(source)
    groups = job.group_files(audio, per, job.read_speakers(speakers) if speakers else None)
    used, fresh = job.choose_key(key, key_file)
    loaded = job.load_system(system, job.key_number(used))
    settings = {"system": loaded.digest, "per": per, "channels": channels}
    journal = job.Journal(out, settings, None if fresh else used)
    if write_key:
        write_file(write_key, f"{used}\n")
        write_key.chmod(0o600)
    ready = [p for p in audio if journal.has(p, source / p, out / p)]
    todo = list(job.unfinished(groups, ready, fresh=fresh))
    files = [path for _, group in todo for path in group]
    print(f"{source}: {len(audio)} audio files, {len(audio) - len(files)} done before; "
          f"{n_other} other files are left out", file=sys.stderr)  # fmt: skip
    seconds = 0.0
    for path in files:
        with contextlib.suppress(UserError):  # said when its turn comes
            seconds += Recording.open(source / path).seconds
    bar = _Bar(seconds)
    work = job.Work(source, out, channels)
    failed: dict[Path, str] = {}
    for name, group in todo:
        failed |= work.protect_group(
            name, group, loaded.anonymiser,
            lambda path: journal.add(path, source / path), bar.add,
        )  # fmt: skip
    bar.add(seconds)
    for reason in list(failed.values())[:SHOWN]:
        print(f"protect_folder.py: {reason}", file=sys.stderr)
    print(f"{out}: {len(files) - len(failed)} files protected now, {len(failed)} failed; "
          f"{len({name for name, _ in todo})} pseudo-speakers")  # fmt: skip
    print("\n".join(loaded.limits))
    if failed:
        raise LossError(f"{out}: {len(failed)} of {len(audio)} files are not protected (above)")
