#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""WavLM features of target voices, for kNN-VC with features: wavlm (docs/voice_conversion.md).

DATA needs wav.scp, utt2spk and spk2gender. OUT gets wavlm.{ark,scp}: matrices (T, 1024), a row
every 20 ms, of the speech without the silence before and after it; utt2spk, spk2utt, spk2gender;
weights.json, the SHA-256 of the weights; and, where some were lost, skipped.txt (<utterance>
<reason>). Then OUT is a pool: give it to steps/anonymise.py --pool, which takes no other weights
than these. An hour of speech takes 0.74 GB.

The weights are torchaudio's WAVLM_LARGE, 1.3 GB: the file of --wavlm, or that in torch.hub's
folder, or downloaded to it.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_device
from utils.archives import ObjectReader
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths
from utils.progress import progress
from utils.tables import atomic_write, invert, is_there, write_id_lists, write_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--wavlm", metavar="FILE", help="The file of WavLM's weights (wavlm_large.pth)"
    )
    add_allow_loss(parser)
    add_device(parser)
    add_paths(parser, "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    data = load_data_dir(args.data)
    if data.spk2gender is None:
        raise UserError(f"{args.data / 'spk2gender'}: is missing; targets are drawn by gender")
    if is_there(args.out / "world.scp"):
        raise UserError(f"{args.out}: holds a pool of WORLD frames; take another folder")
    from steps.learning.devices import check_device
    from steps.synthesis.extraction import measure_all
    from steps.synthesis.wavlm import WAVLM_URL, WEIGHTS, WavLMFeatures, fetch, trim

    check_device(args.device)
    file = fetch("--wavlm", args.wavlm, WAVLM_URL, None)
    features = WavLMFeatures.load(file.path, args.device)
    result = measure_all(
        data.wav,
        lambda wave: features.extract(trim(wave)).astype(float),
        args.out / "wavlm",
        args.allow_loss,
        progress("extract_wavlm"),
    )
    written = ObjectReader(args.out / "wavlm.scp")
    utt2spk = {utt: spk for utt, spk in data.utt2spk.items() if utt in written}
    write_map(args.out / "utt2spk", utt2spk)
    write_map(args.out / "spk2gender", {s: data.spk2gender[s] for s in set(utt2spk.values())})
    write_id_lists(args.out / "spk2utt", invert(utt2spk))
    with atomic_write(args.out / WEIGHTS) as stream:
        json.dump({"wavlm": file.sha256}, stream)
        stream.write("\n")
    print(f"{file.path}: SHA-256 {file.sha256}")
    print(result.summary("matrices"))
    return 0


if __name__ == "__main__":
    run_program(main)
