"""Recordings as people have them: each kind that went wrong, one test named after it."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.making import voice
from tests.recipes import ROOT

RATE = 16000


def documented() -> list[str]:
    """Commands of docs/protect.md on folders and streams, in order."""
    page = (ROOT / "docs/protect.md").read_text().partition("\n## A model")[0]
    return [line for block in re.findall(r"```\n(.*?)```", page, re.S) for line in block.split("\n")]


@pytest.mark.slow
def test_the_documented_stream_command_put_a_line_before_the_audio(tmp_path: Path) -> None:
    """Documented commands run as they stand, in a checkout with the files that they name."""
    for path in ROOT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    wave = voice(1.0, 120, 550)[:RATE]
    (tmp_path / "recordings").mkdir()
    for name in ("speech.wav", "recordings/anna-1.wav"):
        soundfile.write(tmp_path / name, wave, RATE)
    (tmp_path / "key").write_text("a key of sixteen or more\n")
    (tmp_path / "bin").mkdir()
    for tool, line in (("arecord", "tail -c +45 speech.wav"), ("aplay", "exec cat >played.raw")):
        (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / tool).chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    lines = [line for line in documented() if line and "PER=" not in line]
    assert len(lines) == 4
    for line in lines:
        words = ["bash", "-c", f". ./path.sh && {line}"]
        subprocess.run(words, check=True, cwd=tmp_path, env=os.environ | {"PATH": path})
    assert (tmp_path / "protected.wav").read_bytes()[:4] == b"RIFF"
    assert soundfile.info(tmp_path / "protected.wav").frames == RATE
    assert (tmp_path / "played.raw").stat().st_size == 2 * RATE
    made = np.frombuffer((tmp_path / "played.raw").read_bytes(), "<i2") / 32768
    assert made.any() and np.abs(made[:RATE] - wave).max() > 0.01
    assert soundfile.info(tmp_path / "protected/anna-1.wav").frames == RATE
