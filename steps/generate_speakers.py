#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the x-vectors of pseudo-speakers, without any speech.

CONF is the YAML file of a system with a `generator` (docs/generators.md), such as those with
`anonymiser: voice_conversion`; of the rest only `level` and `gender` count. DATA needs utt2spk, and
spk2gender where the gender counts. OUT gets

  xvector.{ark,scp}  what each utterance's speaker becomes; equal keys have equal vectors
  pseudo.tsv         the key of each utterance, the generator's columns (for idmap_*, the identity
                     index), and the seconds that the vector took
  conf.json          all settings, and what was asked and could not be had

Draws depend on the seed, the draw and the key only.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_draws, add_of_speakers, add_pool
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_paths
from utils.settings import read_settings
from utils.tables import atomic_write


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_draws(parser)
    add_pool(parser)
    add_of_speakers(parser)
    add_paths(parser, "conf", "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.anonymisers.protect import write_pseudo
    from steps.generators.speakers import generate_speakers, load_pool, read_speaker_settings
    from steps.keys import make_keys, whole_set
    from steps.sources import Resources, read_sources
    from utils.archives import ArchiveWriter

    if args.draw < 0:
        raise UserError(f"--draw {args.draw}: runs are numbered from 0")
    settings = read_speaker_settings(read_settings(args.conf), args.conf)
    data = load_data_dir(args.data, need=("utt2spk",))
    resources = Resources(
        pool=args.pool,
        xvectors=tuple(args.xvectors),
        backend=args.backend,
        generator=args.generator,
    )
    sources = read_sources(data, resources)
    generator = settings.load(args.conf, seed=args.seed, draw=args.draw, resources=resources)
    if args.pool is None and "generator" not in generator.needs:
        raise UserError(f"{args.conf}: this generator needs --pool XVECTORS")
    if args.pool is not None:
        generator.fit(*load_pool(args.pool, args.pool_data))
    dataset = whole_set(args.data).name if args.dataset is None else args.dataset
    keys = make_keys(settings.level, data.utt2spk, dataset, [])
    made = generate_speakers(
        generator, settings, keys, data.utt2spk, sources, seed=args.seed, draw=args.draw
    )
    args.out.mkdir(parents=True, exist_ok=True)
    with ArchiveWriter(args.out / "xvector") as writer:
        for utt, vector in made.vectors.items():
            writer.write(utt, vector)
    write_pseudo(args.out / "pseudo.tsv", made.rows)
    conf: dict[str, object] = {"generator": generator.settings(), "level": settings.level}
    conf |= {"gender": settings.gender, "dataset": dataset, "seed": args.seed, "draw": args.draw}
    conf["notes"] = generator.notes
    with atomic_write(args.out / "conf.json") as stream:
        stream.write(json.dumps(conf, indent=2, sort_keys=True) + "\n")
    for note in generator.notes:
        print(f"{args.conf}: {note}")
    print(f"made {made.n_speakers} pseudo-speakers for {len(made.vectors)} utterances / skipped 0")
    return 0


if __name__ == "__main__":
    run_program(main)
