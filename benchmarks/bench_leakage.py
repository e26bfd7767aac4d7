#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Cost of `leakage` on the size of Seo et al. 2025: 2,983 segments of 223 speakers, 192 dimensions.

Goal: under 10 s of CPU from the x-vector files, all figures, both chance levels and 1,000 resamples
for the intervals included. Shown beside it: the rank search alone, in memory, against a plain loop
that sorts the gallery for each query and walks down to the first segment of the speaker. Process
CPU time, best of several.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measuring import LEAST, MOST, cost_of_metrics, judge, timed
from local.metrics.leakage import Embeddings, search, unit
from utils.archives import ArchiveWriter
from utils.arrays import Float64

GOAL_SECONDS = 10.0
N_SEGMENTS, N_SPEAKERS, N_DIMENSIONS, N_BOOTSTRAP = 2983, 223, 192, 1000


def sides() -> tuple[Embeddings, Embeddings]:
    """Originals in clusters, protected ones that still lean towards them."""
    rng = np.random.default_rng(0)
    spk = np.sort(np.concatenate([np.arange(223), rng.integers(0, 223, N_SEGMENTS - 223)]))
    voice = rng.normal(size=(N_SPEAKERS, N_DIMENSIONS))[spk]
    names = [f"s{i:03d}" for i in range(N_SPEAKERS)]
    ids = [f"s{s:03d}-{i:04d}" for i, s in enumerate(spk.tolist())]
    shape = (N_SEGMENTS, N_DIMENSIONS)
    x = (voice + rng.normal(size=shape)).astype(np.float32).astype(float)
    y = (0.2 * voice + rng.normal(size=shape)).astype(np.float32).astype(float)
    return Embeddings(ids, x, spk, names), Embeddings(ids, y, spk, names)


def write(side: Embeddings, stem: Path) -> Path:
    """An archive of the x-vectors."""
    with ArchiveWriter(stem) as writer:
        for key, vector in zip(side.ids, side.x, strict=True):
            writer.write(key, vector.astype(np.float32))
    return stem.with_suffix(".scp")


def loop_ranks(original: Embeddings, protected: Embeddings) -> Float64:
    """Rank of the first segment of the query's speaker, a query at a time."""
    gallery, ranks = unit(original.x), []
    for query, own in zip(unit(protected.x), protected.speaker.tolist(), strict=True):
        cosine = gallery @ query
        nearest = sorted(zip((-cosine).tolist(), original.speaker.tolist(), strict=True))
        for rank, (_, speaker) in enumerate(nearest, start=1):
            if speaker == own:
                ranks.append(rank)
                break
    return np.array(ranks, float)


def main() -> int:
    """Measure and print."""
    original, protected = sides()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write(original, folder / "original"), write(protected, folder / "protected")
        (folder / "utt2spk").write_text("".join(f"{u} {u.split('-')[0]}\n" for u in original.ids))
        options = ("--utt2spk", folder / "utt2spk", "--bootstrap", N_BOOTSTRAP)
        cpu, memory = cost_of_metrics("leakage", *options, *files, "-")
    print(
        f"leakage of {N_SEGMENTS} x {N_DIMENSIONS} from the files, {N_BOOTSTRAP} resamples: "
        f"{cpu:.2f} CPU-s, {memory:.2f} GB"
    )
    fast, found = timed(lambda: search(original, protected, same_utt=True), 3)
    slow, ranks = timed(lambda: loop_ranks(original, protected), 1)
    same = (found.best[np.arange(N_SEGMENTS), found.own] == ranks).all()
    print(
        f"rank search in memory: {slow:.2f} s by a loop over queries, {fast:.2f} s here (ranks of "
        f"every speaker, not of the own one only): {slow / fast:.1f} times; same ranks: {same}"
    )
    return judge(
        ("CPU-s from the files", cpu, MOST, GOAL_SECONDS),
        ("share of ranks that are the same", float(same), LEAST, 1),
    )


if __name__ == "__main__":
    sys.exit(main())
