#!/usr/bin/env python3
"""Compute the privacy figures of scores or x-vectors and write them as JSON.

Trials are `<enrol> <trial> target|nontarget`, scores `<enrol> <trial> <score>` (higher: more
alike); they are joined by the id pair. x-vectors are .scp or .ark, binary or text. OUT is a file,
or - for standard output. Values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit. An infinite
value is "inf" or "-inf"; an undefined one is null, and a warning says why. The cards in
docs/metrics explain every key.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import Bootstrap, Figures
from utils.cli import BadValue, UserError, natural, run_program
from utils.commands import Program
from utils.options import Seed, TrialFormat, Utt2spk

Trials = Annotated[Path, "A list of trials"]
Scores = Annotated[Path, "The scores of these trials"]
Xvectors = Annotated[Path, "x-vectors, .scp or .ark"]


def _omega(text: str) -> tuple[str, float]:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise BadValue(f"expected a positive number, not {text!r}")
    return text, value


def _read_utt2spk(path: Path) -> dict[str, str]:
    from utils.tables import read_map

    utt2spk = read_map(path)
    if not utt2spk:
        raise UserError(f"{path}:1: the file is empty")
    return utt2spk


def _read(path: Path, kind: str, what: str) -> Any:
    """Trials or scores in a format of --format; says which, where it is not ours."""
    from utils.trials import EXAMPLES, guess_format, read_any, read_scores, read_trials

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


def _find_speakers(trials: Any, path: Path, utt2spk: Path) -> Any:
    from local.metrics.verification import find_speakers

    return find_speakers(trials, _read_utt2spk(utt2spk), trials_path=path, utt2spk_path=utt2spk)


def _write(out: str, figures: Mapping[str, object]) -> None:
    from local.options import write_figures

    write_figures(out, figures)


def _check_bootstrap(bootstrap: int, utt2spk: Path | None) -> None:
    if bootstrap and not utt2spk:
        raise UserError("--bootstrap needs --utt2spk: it resamples speakers")


def _verification(
    trials: Trials, scores: Scores, out: Figures, *, format: TrialFormat = "auto",
    utt2spk: Utt2spk | None = None,
    omega: Annotated[
        Sequence[tuple[str, float]], "The prior odds of a mated pair, which add "
        "linkability_omega_<X>; may be given again", "X", _omega,
    ] = (),
    bins: Annotated[
        int, "The number of equal bins of linkability_bins_<N>, of all trials and of each enrolled "
        "speaker's alone (the code of Champion et al. 2021: 50); needs --utt2spk; 0: not", "N",
        natural,
    ] = 0,
    more_scores: Annotated[
        Sequence[Path], "Further scores of the list, such as those of its men; may be given again",
        "SCORES",
    ] = (),
    unprotected: Annotated[
        Path | None, "Scores of the same trials without protection by the same evaluator, which "
        "add eer_rise: how far the EER lies above theirs, people resampled alike in both", "SCORES",
    ] = None,
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Detection, ZEBRA and linkability of a trial list. --bootstrap needs --utt2spk."""
    from local.metrics.verification import verification

    _check_bootstrap(bootstrap, utt2spk)
    if bins and not utt2spk:
        raise UserError("--bins needs --utt2spk: it takes each speaker's trials")
    listed, score = _read_scored(format, trials, scores, more=more_scores)
    before = None
    if unprotected:
        _, before = _read_scored(format, trials, unprotected)
    speakers = _find_speakers(listed, trials, utt2spk) if utt2spk else None
    _write(out, verification(
        listed, score, omegas=dict(omega), speakers=speakers, n_bins=bins or None,
        unprotected=before, n_bootstrap=bootstrap, seed=seed,
    ))  # fmt: skip


def _calibration(
    trials: Trials, scores_f0: Scores, scores_f1: Scores, out: Figures, *,
    format: TrialFormat = "auto", utt2spk: Utt2spk | None = None,
) -> None:  # fmt: skip
    """Whether a calibration learnt on run f0 of a safeguard serves the attacker on run f1.

    --utt2spk adds n_speakers and n_segments.
    """
    from local.metrics.verification import calibration

    listed, f0, f1 = _read_scored(format, trials, scores_f0, scores_f1)
    figures = dict(calibration(listed.target, f0, f1))
    if utt2spk:
        figures["n_speakers"] = len(_find_speakers(listed, trials, utt2spk).names)
        figures["n_segments"] = len(set(listed.trial))
    _write(out, figures)


def _gains(
    trials_oo: Trials, scores_oo: Scores, trials_oa: Trials, scores_oa: Scores, trials_aa: Trials,
    scores_aa: Scores, out: Figures, *, format: TrialFormat = "auto",
    utt2spk: Utt2spk | None = None, bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Disclosure lost and distinctiveness gained by protection.

    On enrolment-trial lists of original (O) and protected (A) speech, relative to OO, as in Tables
    3 and 4 of Noé et al. 2022. --utt2spk adds n_speakers; --bootstrap needs it.
    """
    from local.metrics.similarity import gains

    _check_bootstrap(bootstrap, utt2spk)
    paths = {
        "oo": (trials_oo, scores_oo),
        "oa": (trials_oa, scores_oa),
        "aa": (trials_aa, scores_aa),
    }
    scored = {setting: _read_scored(format, *files) for setting, files in paths.items()}
    speakers = None
    if utt2spk:
        speakers = {
            setting: _find_speakers(trials, paths[setting][0], utt2spk)
            for setting, (trials, _) in scored.items()
        }
    _write(out, gains(scored, speakers, n_bootstrap=bootstrap, seed=seed))


def _similarity(
    trials_oo: Trials, scores_oo: Scores, trials_op: Trials, scores_op: Scores, trials_pp: Trials,
    scores_pp: Scores, out: Figures, *, format: TrialFormat = "auto", utt2spk: Utt2spk,
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Voice similarity matrices, de-identification and voice distinctiveness.

    From the scores of all pairs of original (O) and protected (P) segments.
    """
    from local.metrics.similarity import check_cells, common_speakers, segment_pairs, similarity

    files = {"oo": scores_oo, "op": scores_op, "pp": scores_pp}
    paths = {"oo": trials_oo, "op": trials_op, "pp": trials_pp}
    speaker_of, sets = _read_utt2spk(utt2spk), {}
    for setting, path in paths.items():
        trials, score = _read_scored(format, path, files[setting])
        sets[setting] = segment_pairs(
            trials, score, speaker_of, trials_path=path, utt2spk_path=utt2spk
        )
    names = common_speakers(sets, paths)
    for setting, pairs in sets.items():
        check_cells(pairs, paths[setting], symmetric=setting != "op")
    _write(out, similarity(sets, names, n_bootstrap=bootstrap, seed=seed))


def _leakage(
    original_xvectors: Xvectors, protected_xvectors: Xvectors, out: Figures, *, utt2spk: Utt2spk,
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Rank search, canonical correlation and Procrustes alignment of x-vectors."""
    from local.metrics.leakage import check_same_space, embeddings, leakage
    from utils.archives import read_vectors

    speaker_of, paths = _read_utt2spk(utt2spk), (original_xvectors, protected_xvectors)
    original, protected = (
        embeddings(read_vectors(path), speaker_of, path=path, utt2spk_path=utt2spk)
        for path in paths
    )
    original, protected = check_same_space(original, protected, *paths)
    _write(out, leakage(original, protected, n_bootstrap=bootstrap, seed=seed))


main = Program(__doc__, _verification, _calibration, _gains, _similarity, _leakage)

if __name__ == "__main__":
    run_program(main)
