#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Protect the speech of a data directory with an anonymiser.

CONF is a YAML file such as conf/systems/b2.yaml (docs/anonymisers.md). DATA needs wav.scp and
utt2spk (audio of another rate is resampled to 16 kHz); it may be a part of a set, data/x/split8/3.
WAV_DIR gets <utterance>.wav, 16 kHz, mono, 16 bit, as long as the original, at the level that CONF
says. OUT becomes a data directory with the same utterance ids, the other tables of DATA, and

  pseudo.tsv   what was drawn for each utterance: its key, what the system says of it (for mcadams,
               alpha), and the seconds that it took
  conf.json    all settings, and is_random: whether another --draw gives other speech
  skipped.txt  <utterance> <reason>, only where some were skipped
  notes.txt    what was asked of the system and could not be had, where there is any: <id> <note>

Some systems need more than the speech: steps/describe_system.py CONF says what. WavLM and its
vocoder compute on --device, all else on the processor.

Equal keys get equal pseudo-speakers. Draws depend on the seed, the draw and the key only: not on
order, number of jobs or machine.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_device, add_draws, add_of_speakers
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths
from utils.progress import progress
from utils.speakers import (
    TRAINING_SPEAKERS,
    add_not_speakers_of,
    check_unseen,
    read_training_speakers,
)


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_draws(parser)
    parser.add_argument(
        "--level", choices=("utt", "spk", "perm", "const"),
        help="The level of the pseudo-speakers, instead of what CONF says: an attacker who trains "
        "on protected speech wants every utterance its own (utt)",
    )  # fmt: skip
    parser.add_argument(
        "--order-from", type=Path, metavar="SET",
        help="The data directory whose order counts, for compat: vpc24, which numbers utterances "
        "(left out: DATA, or the set that it is a part of)",
    )  # fmt: skip
    parser.add_argument(
        "--pool", type=Path, metavar="DIR", help="The folder of the voices (make_voice_pool.py)"
    )
    add_of_speakers(parser)
    parser.add_argument(
        "--f0", type=Path, metavar="DIR",
        help="The folder of the speakers' F0 statistics (compute_f0_stats.py)",
    )  # fmt: skip
    parser.add_argument(
        "--synthesiser", type=Path, metavar="DIR",
        help="The folder of a trained synthesiser (train_synthesiser.py)",
    )  # fmt: skip
    parser.add_argument(
        "--external", type=Path, metavar="DIR",
        help="The data directory of speech that another program protected",
    )  # fmt: skip
    parser.add_argument(
        "--model", type=Path, metavar="DIR",
        help="The folder of a system that was handed on (export_system.py)",
    )  # fmt: skip
    add_not_speakers_of(parser)
    add_device(parser)
    parser.add_argument(
        "--format", choices=("wav", "flac"), default="wav", help="The format of the audio files"
    )
    add_allow_loss(parser)
    add_paths(parser, "conf", "data", "out")
    parser.add_argument("wav_dir", metavar="WAV_DIR")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.anonymisers.protect import check_losses, protect_audio, write_protected
    from steps.anonymisers.registry import load_anonymiser
    from steps.keys import make_keys, read_order, whole_set
    from steps.sources import NEEDS, Resources, read_sources

    if args.draw < 0:
        raise UserError(f"--draw {args.draw}: runs are numbered from 0")
    given = {need: getattr(args, need) for need in NEEDS}
    resources = Resources(**{**given, "xvectors": tuple(args.xvectors)}, device=args.device)
    if args.model is not None:
        learnt_from = read_training_speakers(args.model)
        if learnt_from is None and args.not_speakers_of:
            print(f"{args.model}: no {TRAINING_SPEAKERS}: whom it learnt from is not known")
        check_unseen(learnt_from or [], args.model, args.not_speakers_of)
    anonymiser = load_anonymiser(
        args.conf, seed=args.seed, draw=args.draw, resources=resources, level=args.level
    )
    data = load_data_dir(args.data)
    whole = whole_set(args.data)
    dataset = whole.name if args.dataset is None else args.dataset
    if [dataset] != dataset.split():
        raise UserError(f"--dataset {dataset!r}: a name without blanks is needed")
    order: list[str] = []
    if anonymiser.level == "position":
        order = read_order(args.order_from or whole, data.wav)
    keys = make_keys(anonymiser.level, data.utt2spk, dataset, order)
    speakers = read_sources(data, resources)
    sources = {utt: speakers[spk] for utt, spk in data.utt2spk.items()}

    (args.out / "wav.scp").unlink(missing_ok=True)  # until the audio is whole again
    result = protect_audio(
        data.wav, keys, sources, anonymiser, args.wav_dir, args.format, progress("anonymise")
    )
    for note in anonymiser.notes:
        print(f"{args.conf}: {note}")
    print(f"{args.data}: {result.summary()}")
    check_losses(result, data, args.allow_loss)
    settings = {
        "system": anonymiser.settings(),
        "is_random": anonymiser.is_random,
        "key_level": anonymiser.level,
        "dataset": dataset,
        "seed": args.seed,
        "draw": args.draw,
        "sample_rate": 16000,
        "format": args.format,
    }
    write_protected(args.out, data, result, settings, anonymiser.notes)
    return 0


if __name__ == "__main__":
    run_program(main)
