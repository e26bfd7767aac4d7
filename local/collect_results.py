#!/usr/bin/env python3
"""Gather in OUT all that the report shows, so that it is made from OUT alone.

metrics.csv     one figure a row; values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit; low
                and high bound the 95 % interval over speakers; settings is the digest of everything
                that made the figure (see the folder's .done)
per_speaker.csv figures of one speaker a row
figures.json    what the pictures need: matrices, zoo points, ECE profiles, histograms, rank curves
clips/          short clips of the worst-protected speakers (MP3), listed in clips.json
rtf.csv         real-time factors, a stage of a system a row: seconds of computing (wall time of its
                jobs, added up) a second of audio; read off the logs of the folders of --timed-*
run.json        command, commit, versions, settings of the systems, how each figure was made, what
                each attack was (attacker.json beside its scores), and what is missing

Each FOLDER of --figures has a metrics.json and a stamp; one that has neither, a system without
conf.json, a picture, clip or attack of which something is missing is left out and named in the
report. That is an error beyond --allow-loss.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import add_collection, add_labelled
from utils.cli import make_parser, natural, run_program
from utils.options import add_allow_loss
from utils.tables import atomic_write


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_collection(parser, "corpus-name")
    parser.add_argument(
        "--corpus-note", default="", metavar="TEXT", help="What a reader must know of the speech"
    )
    add_labelled(parser, "--figures")
    _add_list(
        parser, "--attack", ("FOLDER", "TRIALS", "SCORES"),
        "A FOLDER of --figures that is of an attack, with its scores, for its curves; each option "
        "may be given again",
    )  # fmt: skip
    _add_list(
        parser, "--runs", ("FOLDER", "TRIALS", "SCORES_F0", "SCORES_F1"),
        "The score folders of two runs of a random system, for the calibration curves",
    )  # fmt: skip
    _add_list(
        parser, "--speech", ("SYSTEM", "DATA", "PROTECTED_DATA"),
        "The data directories of a system: settings, and the speech that clips are cut from",
    )  # fmt: skip
    for often, text in (
        ("each", "each time that speech is protected"),
        ("once", "once, or by the attacker"),
    ):
        _add_list(
            parser, f"--timed-{often}", ("SYSTEM", "STAGE", "AUDIO", "FOLDER"),
            f"A stage of a system that is done {text}: FOLDER, which a step made with logs, of the "
            "speech whose durations stand in AUDIO/utt2dur; given again, its folders are added up",
        )  # fmt: skip
    parser.add_argument(
        "--clips", type=natural, default=10, metavar="N",
        help="The number of speakers with clips, of each system and split; 0: none",
    )  # fmt: skip
    add_allow_loss(parser, "folders, settings, pictures, attacks and clips")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def _add_list(
    parser: argparse.ArgumentParser, name: str, words: tuple[str, ...], text: str
) -> None:
    parser.add_argument(
        name, nargs=len(words), action="append", metavar=words, default=[], help=text
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    import pandas as pd

    from local.report import gather
    from local.report.frame import METRICS, SPEAKERS, TIMINGS, with_numbers, write_frame
    from local.report.load import Results
    from local.report.origin import attacks as records_of
    from local.report.origin import check_losses, origin, settings_of_systems, steps

    def write_json(name: str, value: object) -> None:
        with atomic_write(args.out / name) as stream:
            json.dump(value, stream, ensure_ascii=False, allow_nan=False)
            stream.write("\n")

    folders = gather.labelled(args.figures)
    figures, speakers, no_figures = gather.tabulate_all(folders, args.corpus_name)
    attacks, runs = (
        [[Path(w) for w in words] for words in lists] for lists in (args.attack, args.runs)
    )
    unused = {lost["what"] for lost in no_figures}
    used = [folder for folder in folders if str(folder) not in unused]
    pictures, no_pictures = gather.gather(folders, used, attacks, runs)
    records, no_records = records_of([scores for *_, scores in attacks])
    systems, no_settings = settings_of_systems(args.speech)
    missing = [*no_figures, *no_pictures, *no_records, *no_settings]
    check_losses(missing, args.allow_loss)  # before anything is written
    people = with_numbers(pd.DataFrame(speakers, columns=[*SPEAKERS], dtype=object))
    speech = gather.load_speech(args.speech)
    clips, no_clips = gather.cut_clips(Results(speakers=people), speech, args.clips, args.out)
    check_losses([*missing, *no_clips], args.allow_loss)
    write_frame(args.out / "per_speaker.csv", SPEAKERS, speakers)
    write_json("figures.json", pictures)
    write_json("clips.json", clips)
    stages = [
        gather.TimedStage(system, name, [Path(audio)], [Path(folder)], protects)
        for protects, lists in ((True, args.timed_each), (False, args.timed_once))
        for system, name, audio, folder in lists
    ]
    times = gather.timings(gather.join_stages(stages), args.corpus_name)
    write_frame(args.out / "rtf.csv", TIMINGS, times)
    run = {
        "corpus": args.corpus_name,
        "corpus_note": args.corpus_note,
        "origin": origin(args.command_log),
        "systems": systems,
        "steps": steps(used),
        "attacks": records,
        "missing": [*missing, *no_clips],
    }
    write_json("run.json", run)
    write_frame(args.out / "metrics.csv", METRICS, figures)
    print(
        f"{len(figures)} figures of {len(used)} comparisons ({len(folders)} read, "
        f"{len(no_figures)} left out) and {len(clips)} pairs of clips written to {args.out}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
