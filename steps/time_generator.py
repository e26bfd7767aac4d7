#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Measure what a pseudo-speaker costs (Liu et al. 2025, Table III).

CONF is the YAML file of a system with a `generator`, OUT a JSON file: CPU time of this process (one
thread) over --vectors pseudo-speakers that are asked for one by one, each with a key of its own and
a real source; what is done once (reading, clusters) is not in it. rtf is the time of one vector by
the mean duration of the sources' utterances: what a generator costs where every utterance has its
own pseudo-speaker.
"""

import time
from typing import Annotated

from steps.options import Generator, GeneratorBackend, Pool, PoolData, Settings, Sources
from utils.cli import positive
from utils.commands import program
from utils.options import OutFile, Seed
from utils.tables import write_json

WARM_UP = 10  # vectors made before, so that what is loaded at the first one does not count


@program
def main(
    conf: Settings, out: OutFile, *,
    vectors: Annotated[int, "The number of vectors that are timed", "N", positive] = 1000,
    seed: Seed = 0, sources: Sources, pool: Pool = None, pool_data: PoolData = None,
    pool_backend: GeneratorBackend = None, generator: Generator = None,
) -> None:  # fmt: skip
    from steps.generators.sampling import load_sampler

    sampler = load_sampler(
        conf, sources, seed, pool=pool, pool_data=pool_data, pool_backend=pool_backend,
        generator=generator,
    )  # fmt: skip
    for place in range(WARM_UP):
        sampler.vector(vectors + place)
    started = time.process_time()
    for place in range(vectors):
        sampler.vector(place)
    each = (time.process_time() - started) / vectors
    figures = {
        "vectors": vectors,
        "cpu_seconds": each,
        "utterances": len(sampler.sources),
        "utterance_seconds": sampler.seconds,
        "rtf": each / sampler.seconds,
        "notes": sampler.generator.notes,
    }
    write_json(out, figures)
    print(f"{vectors} vectors: {1e3 * each:.3g} ms each, real-time factor {figures['rtf']:.3g}")
