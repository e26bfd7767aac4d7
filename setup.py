"""Packs programs and models into the wheel as pseudovox/tree.tar, where links and modes stay."""

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PARTS = (
    "path.sh",
    "cmd.sh",
    "pyproject.toml",
    "LICENSE",
    "utils",
    "steps",
    "local",
    "models",
    "egs",
)
LEFT_OUT = re.compile(
    r"/(__pycache__|\.[^/]*)$|\.tmp\.|egs/\w+/(data|exp|corpus|downloads|results|RESULTS.md)$"
)


class Build(build_py):
    """Also packs."""

    def run(self) -> None:
        """Build, with Resemblyzer inside: to be installed beside, it asks for a compiler."""
        super().run()
        packed = Path(self.build_lib, "pseudovox/tree.tar")
        with tempfile.TemporaryDirectory() as made, tarfile.open(packed, "w") as tar:
            for part in PARTS:
                tar.add(ROOT / part, part, filter=kept)
            words = [
                "download",
                "--no-deps",
                "--quiet",
                "--dest",
                made,
                "-r",
                "requirements-resemblyzer.txt",
            ]
            subprocess.run([sys.executable, "-m", "pip", *words], check=True, cwd=ROOT)
            zipfile.ZipFile(next(Path(made).glob("*.whl"))).extractall(f"{made}/tree")
            Path(made, "tree/.venv").mkdir()  # for caches
            Path(made, "tree/.commit").write_text(commit())
            tar.add(f"{made}/tree", ".", filter=whoever)


def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file, whoever has it; None for what is left out."""
    return None if LEFT_OUT.search(f"/{member.name}") else whoever(member)


def whoever(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same file in every build: without owner and time."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def commit() -> str:
    """Commit of the checkout, or of the archive."""
    words = [
        "git",
        f"--git-dir={ROOT}/.git",
        f"--work-tree={ROOT}",
        "describe",
        "--always",
        "--dirty",
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else (ROOT / ".commit").read_text()


setup(cmdclass={"build_py": Build})
