# SPDX-License-Identifier: Apache-2.0
"""What several programs are asked; without what they compute with, so that --help is quick."""

import argparse
from pathlib import Path

from utils.speakers import add_not_speakers_of


def add_f0_range(parser: argparse.ArgumentParser) -> None:
    """The options --f0-floor and --f0-ceiling, Hz."""
    parser.add_argument("--f0-floor", type=float, default=60.0, metavar="HZ", help="lowest F0")
    parser.add_argument("--f0-ceiling", type=float, default=400.0, metavar="HZ", help="highest F0")


def f0_range(args: argparse.Namespace) -> tuple[float, float]:
    """What was asked, in Hz; UserError where nothing can be found in it."""
    from steps.synthesis.world import check_f0_range

    asked = (args.f0_floor, args.f0_ceiling)
    check_f0_range(asked, "--f0-floor, --f0-ceiling")
    return asked


def add_backend(parser: argparse.ArgumentParser) -> None:
    """The options --backend and --asnorm, which `speaker.backends.load_normalised` takes."""
    parser.add_argument("--backend", required=True, metavar="cosine|DIR", help="what scores")
    parser.add_argument(
        "--asnorm",
        type=int,
        default=0,
        metavar="N",
        help="normalise scores by those of the N nearest training speakers; 0: not",
    )


def add_training(parser: argparse.ArgumentParser, seeded: str) -> None:
    """What a training on a data directory is asked; seeded: what --seed is of."""
    parser.add_argument("--seed", type=int, default=0, help=f"of {seeded}")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to train")
    parser.add_argument(
        "--steps", type=int, metavar="N", help="training steps, instead of what CONF says"
    )
    add_not_speakers_of(parser)
    parser.add_argument("conf", type=Path, metavar="CONF")
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("out", type=Path, metavar="OUT")
