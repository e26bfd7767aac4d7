#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Pack a trained synthesiser and pseudo-speakers into a folder that protect_folder.py takes.

CONF is the system's yaml file, SYNTHESISER a folder of steps/train_synthesiser.py, POOL one of
steps/make_voice_pool.py. OUT gets system.yaml, synthesiser/ (half precision) and pool/: voices that
are nobody's, as far apart as people are, each with a pitch, and no speech of anybody. They are made
of several real speakers of one gender each, or by a trained generator.
"""

from pathlib import Path
from typing import Annotated

from steps.options import Settings
from utils.cli import positive
from utils.commands import program
from utils.options import OutFolder, Seed


@program
def main(
    conf: Settings,
    synthesiser: Annotated[Path, "The folder of train_synthesiser.py"],
    pool: Annotated[Path, "The folder of make_voice_pool.py"],
    out: OutFolder, *,
    voices: Annotated[int, "The number of pseudo-speakers", "N", positive] = 1000,
    averaged: Annotated[
        int, "The number of real speakers in each pseudo-speaker", "N", positive,
    ] = 4,
    generator: Annotated[
        Path | None, "Take the pseudo-speakers of this trained generator "
        "(steps/train_generator.py, on x-vectors of the encoder that made POOL's), not averages",
        "DIR",
    ] = None,
    seed: Seed = 0,
) -> None:  # fmt: skip
    from steps.standalone.export import export_system

    near = export_system(
        conf, synthesiser, pool, out,
        n=voices, averaged=averaged, generator=generator, seed=seed,
    )  # fmt: skip
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(
        f"{out}: {voices} pseudo-speakers, {size / 1e6:.1f} MB; {near} are nearer "
        "to a speaker of POOL than 99 of 100 speakers there are to another one"
    )
