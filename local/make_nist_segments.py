#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cut sessions into segments of 10, 30 and 60 s of speech in turn (Seo et al. 2025, section 3.1).

DATA is a data directory; UTT2SESSION says of which session each utterance is (of LibriSpeech: its
chapter). The utterances of a session are put together in the order of their ids. OUT becomes a data
directory of segments (WAV_DIR has their audio) with the tables utt2session and utt2duration, which
nist.sh takes: --sources OUT --sessions OUT/utt2session --durations OUT/utt2duration.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir, write_data_dir
from utils.options import add_paths
from utils.tables import invert, read_map, write_map

SKIPPED = 60.0  # seconds at the beginning of a session of at least LONG
LONG = 300.0


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--seconds", type=int, nargs="+", default=[10, 30, 60], metavar="N",
        help="The numbers of seconds of speech that segments hold, in turn",
    )  # fmt: skip
    parser.add_argument(
        "--least-sessions", type=int, default=5, metavar="N",
        help="The number of sessions that a speaker must have; others are left out and counted",
    )  # fmt: skip
    parser.add_argument(
        "--vad", choices=("webrtc", "silero"), default="webrtc",
        help="The detector of speech: WebRTC's, or Silero's network (the package silero-vad)",
    )  # fmt: skip
    add_paths(parser, "data", "utt2session", "out", "wav_dir")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    import numpy as np

    from local.protocols.segments import deal, enough_sessions
    from steps.activity import DETECTORS
    from steps.audio import SAMPLE_RATE, read_audio, write_wav

    detector = DETECTORS[args.vad]
    data = load_data_dir(args.data, need=("wav.scp", "utt2spk"))
    sessions = read_map(args.utt2session)
    if missing := [utt for utt in data.utt2spk if utt not in sessions]:
        raise UserError(f"{args.utt2session}: {missing[0]} has no session; add it")
    utts = invert({utt: sessions[utt] for utt in data.utt2spk})
    for name, own in utts.items():
        if len({data.utt2spk[utt] for utt in own}) > 1:
            raise UserError(f"{args.utt2session}: session {name} has several speakers; split it")
    spk_of = {name: data.utt2spk[own[0]] for name, own in utts.items()}
    kept, few = enough_sessions(spk_of, args.least_sessions)
    wav, utt2spk, utt2session, durations = ({} for _ in range(4))
    for name in kept:
        wave = np.concatenate([read_audio(utt, data.wav[utt]).samples for utt in utts[name]])
        begin = SKIPPED if len(wave) >= LONG * SAMPLE_RATE else 0.0
        frame = detector.frame / SAMPLE_RATE
        found = deal(detector.detect(wave), frame, args.seconds, round(begin / frame))
        for number, one in enumerate(found, start=1):
            utt = f"{spk_of[name]}-{name}-{number:03}"
            path = (args.wav_dir / f"{utt}.wav").absolute()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_wav(path, wave[one.start * detector.frame : one.stop * detector.frame])
            wav[utt], utt2spk[utt] = str(path), spk_of[name]
            utt2session[utt], durations[utt] = name, str(one.nominal)
    if not wav:
        raise UserError(
            f"{args.data}: no session of a speaker with {args.least_sessions} sessions holds "
            f"{min(args.seconds)} s of speech; see --least-sessions and --seconds"
        )
    tables = {"wav.scp": wav, "utt2spk": utt2spk}
    if data.spk2gender:
        tables["spk2gender"] = {who: data.spk2gender[who] for who in utt2spk.values()}
    write_map(args.out / "utt2session", utt2session)
    write_map(args.out / "utt2duration", durations)
    write_data_dir(args.out, tables)
    print(
        f"{args.out}: {len(wav)} segments of {len(set(utt2spk.values()))} speakers, "
        f"{len(kept)} sessions; {len(few)} speakers with fewer than {args.least_sessions} sessions "
        "are left out"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
