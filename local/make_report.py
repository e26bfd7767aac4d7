#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write OUT/RESULTS.md, the tables that people read, from RESULTS/metrics.csv.

The last line of exp/cmdline.log, where there is one, is quoted as the command that was run.
"""

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.report.page import render
from local.report.results import read_metrics
from utils.cli import UserError, make_parser, run_program
from utils.tables import atomic_write

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("torch", "speechbrain", "numpy", "scipy", "kaldiio", "resemblyzer")


def _commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "not a git checkout"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} absent"


def origin(command_log: Path, settings: Sequence[str]) -> dict[str, str]:
    """Where the figures came from: command, commit, date, machine, versions, settings."""
    lines = command_log.read_text(encoding="utf-8").splitlines() if command_log.exists() else []
    return {
        "command": f"`{lines[-1].split('  ')[-1].strip()}`" if lines else "not recorded",
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": ", ".join(_version(package) for package in PACKAGES),
        "settings": f"{len(settings)} digests, in the column `settings` of metrics.csv",
    }


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--command-log", type=Path, default=Path("exp/cmdline.log"), metavar="FILE")
    parser.add_argument("results", type=Path, metavar="RESULTS")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    figures = list(read_metrics(args.results / "metrics.csv"))
    if not figures:
        raise UserError(f"{args.results}/metrics.csv: holds no figure; run stages 9 and 11")
    settings = sorted({figure.settings for figure in figures})
    text = render(figures, figures[0].corpus, origin(args.command_log, settings))
    with atomic_write(args.out / "RESULTS.md") as stream:
        stream.write(text)
    print(f"report written to {args.out}/RESULTS.md")
    return 0


if __name__ == "__main__":
    run_program(main)
