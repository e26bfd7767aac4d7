"""Small corpora on disk for the tests of prepare.sh, and a recipe folder to run it in."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from tests.recipes import LINKS, Done, run_words
from utils.seeds import make_rng

ROOT = Path(__file__).resolve().parents[1]
RATE = 16000


def make_recipe(folder: Path, corpus: str) -> Path:
    """A recipe folder like egs/<corpus>, without data: prepare.sh, conf and the links."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "egs" / corpus / "prepare.sh", folder)
    shutil.copytree(ROOT / "egs" / corpus / "conf", folder / "conf", symlinks=True)
    for name in LINKS:
        (folder / name).symlink_to(ROOT / name)
    return folder


def prepare(recipe: Path, *options: object, status: int = 0) -> Done:
    """Output of prepare.sh in its folder, which must end with this status."""
    return run_words(["./prepare.sh", *map(str, options)], status, cwd=recipe)


def write_audio(path: Path, seconds: float = 0.2) -> None:
    """A short burst of noise, mono 16 kHz 16 bit, in the format of the file's suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = 0.1 * make_rng(0, "noise", path.name).standard_normal(int(seconds * RATE))
    form, kind = {".sph": ("NIST", "PCM_16"), ".opus": ("OGG", "OPUS")}.get(
        path.suffix, (None, "PCM_16")
    )
    soundfile.write(path, np.clip(samples, -1, 1), RATE, subtype=kind, format=form)


def table(path: Path) -> dict[str, str]:
    """A Kaldi table: key -> rest of the line."""
    rows = (line.split(maxsplit=1) for line in path.read_text().splitlines())
    return {row[0]: row[1] if len(row) == 2 else "" for row in rows}


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def serving(handler: Callable[..., Any]) -> Iterator[str]:
    """Address of an HTTP server on this machine while the block runs."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:  # else a test that fails would leave a thread that Python waits for
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
