#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute the privacy figures of scores or x-vectors and write them as JSON.

Trials are `<enrol> <trial> target|nontarget`, scores `<enrol> <trial> <score>` (higher: more
alike); they are joined by the id pair. x-vectors are .scp or .ark, binary or text. OUT is a file,
or - for standard output. Values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit. An infinite
value is "inf" or "-inf"; an undefined one is null, and a warning says why. The cards in
docs/metrics explain every key.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.output import write_figures
from local.options import add_intervals
from utils.cli import UserError, add_command, make_parser, natural, run_program
from utils.options import add_trial_format, add_utt2spk
from utils.tables import read_map

Report = Mapping[str, object]


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = _add_command(
        commands, _verification, "TRIALS SCORES",
        "Detection, ZEBRA and linkability of a trial list. --bootstrap needs --utt2spk.",
    )  # fmt: skip
    add_utt2spk(command, required=False)
    command.add_argument(
        "--omega", type=_omega, action="append", metavar="X",
        help="The prior odds of a mated pair, which add linkability_omega_<X>; may be given again",
    )  # fmt: skip
    command.add_argument(
        "--bins", type=natural, default=0, metavar="N",
        help="The number of equal bins of linkability_bins_<N>, of all trials and of each enrolled "
        "speaker's alone (the code of Champion et al. 2021: 50); needs --utt2spk; 0: not",
    )  # fmt: skip
    command.add_argument(
        "--more-scores", type=Path, action="append", default=[], metavar="SCORES",
        help="Further scores of the list, such as those of its men; may be given again",
    )  # fmt: skip
    command.add_argument(
        "--unprotected", type=Path, metavar="SCORES",
        help="Scores of the same trials without protection by the same evaluator, which add "
        "eer_rise: how far the EER lies above theirs, people resampled alike in both",
    )  # fmt: skip
    add_intervals(command)
    command = _add_command(
        commands, _calibration, "TRIALS SCORES_F0 SCORES_F1",
        "Whether a calibration learnt on run f0 of a safeguard serves the attacker on "
        "run f1. --utt2spk adds n_speakers and n_segments.",
    )  # fmt: skip
    add_utt2spk(command, required=False)
    command = _add_command(
        commands, _gains, "TRIALS_OO SCORES_OO TRIALS_OA SCORES_OA TRIALS_AA SCORES_AA",
        "Disclosure lost and distinctiveness gained on enrolment-trial lists of original (O) and "
        "protected (A) speech, relative to OO, as in Tables 3 and 4 of Noé et al. 2022. "
        "--utt2spk adds n_speakers; --bootstrap needs it.",
    )  # fmt: skip
    add_utt2spk(command, required=False)
    add_intervals(command)
    similarity = _add_command(
        commands, _similarity, "TRIALS_OO SCORES_OO TRIALS_OP SCORES_OP TRIALS_PP SCORES_PP",
        "Voice similarity matrices, de-identification and voice distinctiveness from the scores "
        "of all pairs of original (O) and protected (P) segments.",
    )  # fmt: skip
    leakage = _add_command(
        commands, _leakage, "ORIGINAL_XVECTORS PROTECTED_XVECTORS",
        "Rank search, canonical correlation and Procrustes alignment of x-vectors.",
    )  # fmt: skip
    for command in (similarity, leakage):
        add_utt2spk(command)
        add_intervals(command)
    return parser


def _add_command(commands: Any, run: Any, files: str, text: str) -> argparse.ArgumentParser:
    command = add_command(commands, run, text)
    if "SCORES" in files:
        add_trial_format(command)
    for file in files.split():
        command.add_argument(file.lower(), type=Path, metavar=file)
    command.add_argument("out", metavar="OUT", help="JSON file, or - for standard output")
    return command


def _omega(text: str) -> tuple[str, float]:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a positive number, not {text!r}")
    return text, value


def _read_utt2spk(path: Path) -> dict[str, str]:
    utt2spk = read_map(path)
    if not utt2spk:
        raise UserError(f"{path}:1: the file is empty")
    return utt2spk


def _read(path: Path, kind: str, what: str) -> Any:
    """Trials or scores in a format of --format; says which, where it is not ours."""
    from utils.trial_formats import EXAMPLES, guess_format, read_any
    from utils.trials import read_scores, read_trials

    if kind == "auto" and (kind := guess_format(path)) != "kaldi":
        print(f"{path}: {kind}, such as: {EXAMPLES[kind]}", file=sys.stderr)
    if kind == "kaldi":
        return read_trials(path) if what == "trials" else read_scores(path)
    found = dict(zip(("trials", "scores"), read_any(path, kind)[1:], strict=True))[what]
    if found is None:
        raise UserError(f"{path}: has no {'labels' if what == 'trials' else 'scores'}")
    return found


def _read_scored(
    kind: str, trials_path: Path, *scores_paths: Path, more: Sequence[Path] = ()
) -> tuple[Any, ...]:
    """Trials with targets and nontargets, and the score of each in each score file or in `more`."""
    from utils.trials import join_scores, merge_scores

    trials = _read(trials_path, kind, "trials")
    for value, label in ((True, "target"), (False, "nontarget")):
        if not (trials.target == value).any():
            raise UserError(f"{trials_path}:1: no {label} trial; both kinds are needed")
    return trials, *(
        join_scores(
            trials,
            merge_scores({name: _read(name, kind, "scores") for name in (path, *more)}),
            trials_path=trials_path,
            scores_path=" + ".join(map(str, (path, *more))),
        )
        for path in scores_paths
    )


def _find_speakers(args: argparse.Namespace, trials: Any, path: Path) -> Any:
    from local.metrics.verification import find_speakers

    return find_speakers(
        trials, _read_utt2spk(args.utt2spk), trials_path=path, utt2spk_path=args.utt2spk
    )


def _check_bootstrap(args: argparse.Namespace) -> None:
    if args.bootstrap and not args.utt2spk:
        raise UserError("--bootstrap needs --utt2spk: it resamples speakers")


def _verification(args: argparse.Namespace) -> Report:
    from local.metrics.verification import verification

    _check_bootstrap(args)
    if args.bins and not args.utt2spk:
        raise UserError("--bins needs --utt2spk: it takes each speaker's trials")
    trials, score = _read_scored(args.format, args.trials, args.scores, more=args.more_scores)
    unprotected = None
    if args.unprotected:
        _, unprotected = _read_scored(args.format, args.trials, args.unprotected)
    speakers = None
    if args.utt2spk:
        speakers = _find_speakers(args, trials, args.trials)
    return verification(
        trials, score, omegas=dict(args.omega or []), speakers=speakers, n_bins=args.bins or None,
        unprotected=unprotected, n_bootstrap=args.bootstrap, seed=args.seed,
    )  # fmt: skip


def _calibration(args: argparse.Namespace) -> Report:
    from local.metrics.calibration import calibration

    trials, f0, f1 = _read_scored(args.format, args.trials, args.scores_f0, args.scores_f1)
    figures = calibration(trials.target, f0, f1)
    if not args.utt2spk:
        return figures
    n_speakers = len(_find_speakers(args, trials, args.trials).names)
    return {**figures, "n_speakers": n_speakers, "n_segments": len(set(trials.trial))}


def _gains(args: argparse.Namespace) -> Report:
    from local.metrics.gains import SETTINGS, gains

    _check_bootstrap(args)
    scored, speakers = {}, {}
    for setting in SETTINGS:
        path = getattr(args, f"trials_{setting}")
        scored[setting] = _read_scored(args.format, path, getattr(args, f"scores_{setting}"))
        if args.utt2spk:
            speakers[setting] = _find_speakers(args, scored[setting][0], path)
    return gains(scored, speakers or None, n_bootstrap=args.bootstrap, seed=args.seed)


def _similarity(args: argparse.Namespace) -> Report:
    from local.metrics.pairs import check_cells, common_speakers, segment_pairs
    from local.metrics.similarity import SETTINGS, similarity

    utt2spk, sets, paths = _read_utt2spk(args.utt2spk), {}, {}
    for setting in SETTINGS:
        paths[setting] = getattr(args, f"trials_{setting}")
        trials, score = _read_scored(
            args.format, paths[setting], getattr(args, f"scores_{setting}")
        )
        sets[setting] = segment_pairs(
            trials, score, utt2spk, trials_path=paths[setting], utt2spk_path=args.utt2spk
        )
    names = common_speakers(sets, paths)
    for setting, pairs in sets.items():
        check_cells(pairs, paths[setting], symmetric=setting != "op")
    return similarity(sets, names, n_bootstrap=args.bootstrap, seed=args.seed)


def _leakage(args: argparse.Namespace) -> Report:
    from local.metrics.leakage import check_same_space, embeddings, leakage
    from utils.archives import read_vectors

    utt2spk = _read_utt2spk(args.utt2spk)
    paths = (args.original_xvectors, args.protected_xvectors)
    original, protected = (
        embeddings(read_vectors(path), utt2spk, path=path, utt2spk_path=args.utt2spk)
        for path in paths
    )
    original, protected = check_same_space(original, protected, *paths)
    return leakage(original, protected, n_bootstrap=args.bootstrap, seed=args.seed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    write_figures(args.out, args.run(args))
    return 0


if __name__ == "__main__":
    run_program(main)
