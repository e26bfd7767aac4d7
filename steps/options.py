# SPDX-License-Identifier: Apache-2.0
"""What several programs are asked; without what they compute with, so that --help is quick."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.arrays import Float64
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths, add_seed
from utils.progress import progress
from utils.speakers import add_not_speakers_of

if TYPE_CHECKING:
    from steps.generators.sampling import Sampler

Measure = Callable[[Float64, tuple[float, float]], Any]


def add_f0_range(parser: argparse.ArgumentParser) -> None:
    """The options --f0-floor and --f0-ceiling, Hz."""
    for end, default, words in (("floor", 60.0, "lowest"), ("ceiling", 400.0, "highest")):
        parser.add_argument(
            f"--f0-{end}", type=float, default=default, metavar="HZ",
            help=f"The {words} F0 that is looked for, in Hz",
        )  # fmt: skip


def f0_range(args: argparse.Namespace) -> tuple[float, float]:
    """What was asked, in Hz; UserError where nothing can be found in it."""
    from steps.synthesis.world import check_f0_range

    asked = (args.f0_floor, args.f0_ceiling)
    check_f0_range(asked, "--f0-floor, --f0-ceiling")
    return asked


def add_measuring(parser: argparse.ArgumentParser, *more: str) -> None:
    """What a program is asked that looks for F0 in all of DATA; more: before OUT."""
    add_f0_range(parser)
    add_allow_loss(parser)
    add_paths(parser, "data", *more, "out")


def measure(args: argparse.Namespace, stem: str, things: str, make: Measure) -> int:
    """What `make` gives of every wave of DATA and the range of F0, in OUT/<stem>.scp."""
    from steps.synthesis.extraction import measure_all

    limits, data = f0_range(args), load_data_dir(args.data)
    show = progress(f"extract_{stem}")
    result = measure_all(
        data.wav, lambda wave: make(wave, limits), args.out / stem, args.allow_loss, show
    )
    print(result.summary(things))
    return 0


def add_device(parser: argparse.ArgumentParser) -> None:
    """The option --device."""
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu",
        help="The device that computes what a GPU can",
    )  # fmt: skip


def add_extraction(parser: argparse.ArgumentParser) -> None:
    """What a program is asked that hears all of DATA with an encoder."""
    add_allow_loss(parser)
    add_device(parser)
    parser.add_argument("encoder", metavar="ENCODER")
    add_paths(parser, "data", "out")


def add_backend(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """The options --backend and --asnorm, which `speaker.backends.load_normalised` takes; without
    a default --backend must be given."""
    parser.add_argument(
        "--backend", required=default is None, default=default, metavar="cosine|DIR",
        help="The back end that scores: cosine, or a folder of train_backend.py",
    )  # fmt: skip
    parser.add_argument(
        "--asnorm", type=int, default=0, metavar="N",
        help="The number of nearest training speakers whose scores normalise a score; 0: not",
    )  # fmt: skip


def add_training(parser: argparse.ArgumentParser) -> None:
    """What a training on a data directory is asked."""
    add_seed(parser)
    add_device(parser)
    parser.add_argument(
        "--steps", type=int, metavar="N",
        help="The number of training steps, instead of what CONF says",
    )  # fmt: skip
    add_not_speakers_of(parser)
    add_paths(parser, "conf", "data", "out")


def add_draws(parser: argparse.ArgumentParser) -> None:
    """What decides which pseudo-speaker a key gets."""
    parser.add_argument(
        "--dataset", metavar="NAME",
        help="The set's name in keys (left out: that of DATA, or of the set that it is a part of)",
    )  # fmt: skip
    add_seed(parser)
    parser.add_argument(
        "--draw", type=int, default=0, metavar="N",
        help="The number of the independent protected run, from 0",
    )  # fmt: skip


def add_trained_generator(parser: argparse.ArgumentParser) -> None:
    """The option --generator."""
    parser.add_argument(
        "--generator", type=Path, metavar="DIR",
        help="The folder of a trained generator (train_generator.py)",
    )  # fmt: skip


def add_of_speakers(parser: argparse.ArgumentParser) -> None:
    """What a generator takes of the source speakers, and its own folders."""
    parser.add_argument(
        "--xvectors", type=Path, action="append", default=[], metavar="DIR",
        help="A folder of the speakers' x-vectors (spk_xvector.scp); may be given again: the first "
        "that has a speaker counts",
    )  # fmt: skip
    parser.add_argument(
        "--backend", type=Path, metavar="DIR",
        help="The folder of the generator's PLDA (train_backend.py)",
    )  # fmt: skip
    add_trained_generator(parser)


def add_pool(parser: argparse.ArgumentParser) -> None:
    """The options --pool and --pool-data."""
    parser.add_argument(
        "--pool", type=Path, metavar="XVECTORS",
        help="The folder of the pool's x-vectors (spk_xvector.scp)",
    )  # fmt: skip
    parser.add_argument(
        "--pool-data", type=Path, metavar="DATA",
        help="The data directory of the pool's speakers (spk2gender)",
    )  # fmt: skip


def add_sampler(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """What `make_sampler` takes; required: whether there must be sources."""
    add_seed(parser)
    parser.add_argument(
        "--sources", type=Path, nargs=2, action="append", required=required,
        default=None if required else [], metavar=("XVECTORS", "DATA"),
        help="A folder of the sources' x-vectors, and its data directory; may be given again",
    )  # fmt: skip
    add_pool(parser)
    parser.add_argument(
        "--pool-backend", type=Path, metavar="DIR",
        help="The folder of the generator's PLDA (train_backend.py)",
    )  # fmt: skip
    add_trained_generator(parser)


def make_sampler(args: argparse.Namespace, conf: Path) -> "Sampler":
    """The generator of the system `conf`, ready to be asked for vectors."""
    from steps.generators.sampling import load_sampler
    from steps.sources import Resources

    sources = [(xvectors, data) for xvectors, data in args.sources]
    resources = Resources(
        xvectors=tuple(xvectors for xvectors, _ in sources),
        backend=args.pool_backend,
        generator=args.generator,
    )
    return load_sampler(
        conf, sources, resources, pool=args.pool, pool_data=args.pool_data, seed=args.seed
    )
