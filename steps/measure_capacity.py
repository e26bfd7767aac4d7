#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Measure how many pseudo-speakers can be told apart (Liu et al. 2025, Fig. 11).

OUT is a table: for growing numbers of vectors the mean cosine over all pairs, the smallest and
largest, and, with --threshold, the share of pairs above it, that is, of pseudo-speakers that an
evaluator with this threshold takes for one. Up to 20,000 vectors all pairs are looked at; every
later vector is compared with the first 1,000 (the column `pairs`); the mean is of all pairs always.

VOICES is one of three, and the column `indices` says of what the vectors are:

  a folder of steps/train_generator.py with a network: `unseen`, indices from the number of training
    speakers on, as the network makes them; `calibrated`, the same as systems use them; `seen`,
    those of the training speakers, all of them; `mixed`, from 0 on, seen ones first. For new
    indices, which are independent, the mean cannot depend on their number; where seen and new ones
    are mixed it does.
  the YAML file of a system with a generator: `keys`, made-up keys, each with an utterance of
    --sources in turn. Where nothing is drawn there are as many as utterances, and no larger number.
  a folder with spk_xvector.scp: `real`, all of its speakers, to compare with.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from steps.options import Generator, GeneratorBackend, Pool, PoolData, Sources
from utils.cli import UserError, refusing
from utils.commands import program
from utils.options import OutFile, Seed
from utils.tables import is_there, read_json_object, write_file

if TYPE_CHECKING:
    from steps.generators.identity import Capacity
    from steps.generators.sampling import Sampler
    from utils.arrays import Float32

# Rows of the table: a word for `indices`, blocks of vectors, and how many of the first to count.
Part = tuple[str, "Iterator[Float32]", Sequence[int]]
HEADER = "#indices\tn\tmean\tmin\tmax\tpairs\tabove_threshold\n"


def _threshold(text: str) -> float:
    """--threshold: a number, or what is in a file."""
    value: object = text
    if Path(text).is_file():
        with refusing(f"{text}: no JSON file with a `threshold`", KeyError):
            value = read_json_object(text, "give a cosine")["threshold"]
    with refusing(f"--threshold {text}: neither a cosine nor a file that has one", ValueError):
        number = float(str(value))
    if not -1 <= number <= 1:
        raise UserError(f"--threshold {text}: a cosine, from -1 to 1, is needed")
    return number


def _of_network(folder: Path, sizes: Sequence[int]) -> list[Part]:
    import numpy as np

    from steps.generators.training import load_trained

    model = load_trained(folder).model

    def blocks(start: int) -> "Iterator[Float32]":
        while True:
            yield model.vectors(np.arange(start, start + 4096, dtype=np.int64))
            start += 4096

    used = (model.calibrate(block) for block in blocks(model.n_seen))
    parts: list[Part] = [("unseen", blocks(model.n_seen), sizes), ("calibrated", used, sizes)]
    if model.n_seen > 1:
        parts += [("seen", blocks(0), [model.n_seen]), ("mixed", blocks(0), sizes)]
    return parts


def _of_system(sampler: "Sampler", conf: Path, sizes: Sequence[int]) -> list[Part]:
    limit = sampler.limit
    if limit is not None and limit < max(sizes):
        print(f"{conf}: nothing is drawn: {limit} pseudo-speakers, one for each source")
        sizes = [*(size for size in sizes if size < limit), limit]
    return [("keys", sampler.blocks(), sizes)]


def _of_real(folder: Path) -> list[Part]:
    import numpy as np

    from steps.generators.sampling import load_pool

    vectors, _, _ = load_pool(folder, None)
    return [("real", iter([vectors.astype(np.float32)]), [len(vectors)])]


def _row(name: str, row: "Capacity") -> str:
    above = "" if row.above is None else f"{row.above:.3e}"
    figures = f"{row.mean:.5f}\t{row.minimum:.4f}\t{row.maximum:.4f}\t{row.pairs}"
    return f"{name}\t{row.n}\t{figures}\t{above}\n"


@program
def main(
    voices: Annotated[Path, "What gives the vectors (see above)"],
    out: OutFile, *,
    sizes: Annotated[
        tuple[int, ...], "The numbers of vectors, ascending (Liu et al. 2025: to 2000000)", "N",
    ] = (100, 1000, 10000),
    threshold: Annotated[
        str | None, "The cosine from which on two voices count as one, such as an evaluator's at "
        "its EER, or a JSON file that has it as `threshold`", "C|FILE",
    ] = None,
    seed: Seed = 0, sources: Sources = (), pool: Pool = None, pool_data: PoolData = None,
    pool_backend: GeneratorBackend = None, generator: Generator = None,
) -> None:  # fmt: skip
    from steps.generators.identity import measure_capacity
    from steps.generators.sampling import load_sampler

    limit = None if threshold is None else _threshold(threshold)
    if voices.is_file():
        sampler = load_sampler(
            voices, sources, seed, pool=pool, pool_data=pool_data, pool_backend=pool_backend,
            generator=generator,
        )  # fmt: skip
        parts = _of_system(sampler, voices, sizes)
    elif is_there(voices / "spk_xvector.scp"):
        parts = _of_real(voices)
    else:
        parts = _of_network(voices, sizes)
    rows = []
    for indices, blocks, numbers in parts:
        for row in measure_capacity(blocks, numbers, threshold=limit):
            rows.append(_row(indices, row))
            print(rows[-1], end="", flush=True)
    write_file(out, HEADER + "".join(rows))
