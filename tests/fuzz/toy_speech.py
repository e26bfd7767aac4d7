#!/usr/bin/env python3
"""Cheap programs of the recipe in test_kills.py, whose jobs are forks of the driver.

toy_speech.py protect ALPHA DATA OUT WAV
toy_speech.py count   ALPHA FIGURES OUT
"""

import hashlib
import sys
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[2])
from utils.tables import atomic_write, read_map, write_map


def digest(*words: object) -> str:
    """Digest of some words."""
    return hashlib.sha256(repr(words).encode()).hexdigest()


def protect(alpha: str, data: str, out: str, wav: str) -> None:
    """Files in OUT, and files in WAV that stand outside it."""
    figures = {}
    for utt in read_map(f"{data}/utt2spk"):
        figures[utt] = digest(utt, alpha)
        with atomic_write(f"{wav}/{utt}.wav") as stream:
            stream.write(figures[utt])
            time.sleep(0.05)
    write_map(f"{out}/figures", figures)


def count(alpha: str, figures: str, out: str) -> None:
    """Figures of all that was protected."""
    wavs = [path.read_text() for path in sorted(Path("exp/protected/wav").iterdir())]
    time.sleep(0.2)
    write_map(out, {"all": digest(alpha, wavs, read_map(figures))})


if __name__ == "__main__":
    {"protect": protect, "count": count}[sys.argv[1]](*sys.argv[2:])
