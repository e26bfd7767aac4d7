#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute privacy figures from scores or x-vectors and write them as JSON.

Trials are `<enrol> <trial> target|nontarget`, scores `<enrol> <trial> <score>` (higher: more
alike); they are joined by the id pair. x-vectors are .scp or .ark, binary or text. OUT is a file,
or - for standard output. Values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit. An infinite
value is "inf" or "-inf"; an undefined one is null, and a warning says why. The cards in
docs/metrics explain every key.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from local.options import AnotherDraw, Bootstrap, Figures, Words, read_scored, write_figures
from utils.cli import BadValue, UserError, natural, positive
from utils.commands import commands
from utils.options import AllowSelf, Seed, TrialFormat, Utt2spk
from utils.tables import read_map

Trials = Annotated[Path, "A list of trials"]
Scores = Annotated[Path, "The scores of these trials"]
Xvectors = Annotated[Path, "The x-vectors (.scp or .ark)"]


def _omega(text: str) -> tuple[str, float]:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise BadValue(f"expected a positive number, not {text!r}")
    return text, value


def _read_scored(
    kind: str,
    trials_path: Path,
    *scores_paths: Path,
    more: Sequence[Path] = (),
    allow_self: bool | None = False,
) -> tuple[Any, ...]:
    """Read as `read_scored` does; UserError for a list without targets or without nontargets."""
    trials, *scores = read_scored(
        kind, trials_path, *scores_paths, more=more, allow_self=allow_self
    )
    for value, label in ((True, "target"), (False, "nontarget")):
        if not (trials.target == value).any():
            raise UserError(f"{trials_path}:1: no {label} trial; both kinds are needed")
    return trials, *scores


def _find_speakers(trials: Any, path: Path, utt2spk: Path) -> Any:
    from local.metrics.verification import find_speakers

    return find_speakers(trials, read_map(utt2spk), trials_path=path, utt2spk_path=utt2spk)


def _check_bootstrap(bootstrap: int, utt2spk: Path | None) -> None:
    if bootstrap and not utt2spk:
        raise UserError("--bootstrap needs --utt2spk: it resamples speakers")


def _read_enrolled(
    kind: str, trials: Path, enrolled: Sequence[tuple[str, str]], wanted: bool, allow_self: bool
) -> dict[int, Any]:
    """Scores of models of few recordings, by their number. wanted: whether they are of use."""
    if enrolled and not wanted:
        raise UserError("--enrolled is for --recordings; give both")
    few = {
        positive(n): _read_scored(kind, trials, Path(path), allow_self=allow_self)[1]
        for n, path in enrolled
    }
    if len(few) < len(enrolled):
        raise UserError("--enrolled: a number of recordings is given twice; give its scores once")
    return few


def _verification(
    trials: Trials, scores: Scores, out: Figures, *, format: TrialFormat = "auto",
    allow_self: AllowSelf = False, utt2spk: Utt2spk | None = None,
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
    words: Words = None,
    challenges: Annotated[
        bool, "Whether eer_speechbrain and eer_kaldi are added, which the VoicePrivacy challenges "
        "report"
    ] = False,
    recordings: Annotated[
        bool, "Also measure what an attacker finds out who has 1, 3, 10, 30 or all recordings of "
        "one person, and whether it may be chance; needs --utt2spk"
    ] = False,
    enrolled: Annotated[
        Sequence[tuple[str, str]], "With --recordings: the number of recordings that each model "
        "was made of, and the scores of these models (score_trials.py --enrolled); may be given "
        "again", "N SCORES",
    ] = (),
    another_draw: AnotherDraw = (), bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Detection, ZEBRA and linkability of a trial list. --bootstrap needs --utt2spk."""
    from local.metrics.verification import verification

    _check_bootstrap(bootstrap, utt2spk)
    for option, given in (("bins", bins), ("recordings", recordings)):
        if given and not utt2spk:
            raise UserError(f"--{option} needs --utt2spk: it takes each speaker's trials")
    few = _read_enrolled(format, trials, enrolled, recordings, allow_self)
    listed, score = _read_scored(format, trials, scores, more=more_scores, allow_self=allow_self)
    beside = {
        name: _read_scored(format, trials, path, allow_self=allow_self)[1]
        for name, path in (("eer_rise", unprotected), ("eer_beside_words", words))
        if path
    }
    draws = (
        _read_scored(format, trials, *another_draw, allow_self=allow_self)[1:]
        if another_draw
        else ()
    )
    speakers = _find_speakers(listed, trials, utt2spk) if utt2spk else None
    found = verification(
        listed, score, omegas=dict(omega), speakers=speakers, n_bins=bins or None,
        beside=beside, draws=draws, challenges=challenges, n_bootstrap=bootstrap, seed=seed,
    )  # fmt: skip
    if recordings and speakers:
        from local.metrics.intervals import both
        from local.metrics.recordings import recordings as by_length

        several = by_length(
            listed, score, speakers, draws=draws, enrolled=few, n_bootstrap=bootstrap, seed=seed
        )
        found = both(found, several)
    write_figures(out, found)


def _strongest(
    trials: Trials, scores: Scores, out: Figures, *, format: TrialFormat = "auto",
    allow_self: AllowSelf = False, utt2spk: Utt2spk,
    another_attacker: Annotated[
        Sequence[Path], "The scores of a further attacker on these trials; may be given again",
        "SCORES",
    ] = (),
    draw_of: Annotated[
        Sequence[tuple[Path, Path]], "The scores of an attacker, and those of the same in "
        "a further run of a random system; may be given again", "SCORES SCORES",
    ] = (),
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """The lowest EER of several attackers on one list; its interval covers their choice."""
    from local.metrics.recordings import strongest

    runs = {path: [path] for path in (scores, *another_attacker)}
    for path, another in draw_of:
        if path not in runs:
            raise UserError(f"--draw-of {path}: no attacker has these scores")
        runs[path].append(another)
    listed, *every = _read_scored(
        format, trials, *(path for own in runs.values() for path in own), allow_self=allow_self
    )
    found = iter(every)
    attackers = [[next(found) for _ in own] for own in runs.values()]
    speakers = _find_speakers(listed, trials, utt2spk)
    write_figures(out, strongest(listed, attackers, speakers, n_bootstrap=bootstrap, seed=seed))


def _calibration(
    trials: Trials, scores_f0: Scores, scores_f1: Scores, out: Figures, *,
    format: TrialFormat = "auto", allow_self: AllowSelf = False, utt2spk: Utt2spk | None = None,
) -> None:  # fmt: skip
    """Whether a calibration learnt on run f0 of a safeguard serves the attacker on run f1.

    --utt2spk adds n_speakers and n_segments.
    """
    from local.metrics.verification import calibration

    listed, f0, f1 = _read_scored(format, trials, scores_f0, scores_f1, allow_self=allow_self)
    figures = dict(calibration(listed.target, f0, f1))
    if utt2spk:
        figures["n_speakers"] = len(_find_speakers(listed, trials, utt2spk).names)
        figures["n_segments"] = len(set(listed.trial))
    write_figures(out, figures)


def _gains(
    trials_oo: Trials, scores_oo: Scores, trials_oa: Trials, scores_oa: Scores, trials_aa: Trials,
    scores_aa: Scores, out: Figures, *, format: TrialFormat = "auto",
    allow_self: AllowSelf = False, utt2spk: Utt2spk | None = None, bootstrap: Bootstrap = 0,
    seed: Seed = 0,
) -> None:  # fmt: skip
    """Disclosure lost and distinctiveness gained by protection.

    On enrolment-trial lists of original (O) and protected (A) speech, relative to OO, as in Tables
    3 and 4 of Noé et al. 2022. --utt2spk adds n_speakers; --bootstrap needs it.
    """
    from local.metrics.similarity import gains

    _check_bootstrap(bootstrap, utt2spk)
    files = {
        "oo": (trials_oo, scores_oo),
        "oa": (trials_oa, scores_oa),
        "aa": (trials_aa, scores_aa),
    }
    scored = {
        setting: _read_scored(format, *paths, allow_self=allow_self)
        for setting, paths in files.items()
    }
    speakers = {
        setting: _find_speakers(trials, files[setting][0], utt2spk)
        for setting, (trials, _) in scored.items()
        if utt2spk
    }
    write_figures(out, gains(scored, speakers or None, n_bootstrap=bootstrap, seed=seed))


def _similarity(
    trials_oo: Trials, scores_oo: Scores, trials_op: Trials, scores_op: Scores, trials_pp: Trials,
    scores_pp: Scores, out: Figures, *, format: TrialFormat = "auto", utt2spk: Utt2spk,
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Voice similarity matrices, de-identification and voice distinctiveness.

    From the scores of all pairs of original (O) and protected (P) segments.
    """
    from local.metrics.similarity import check_cells, common_speakers, segment_pairs, similarity

    paths, speaker_of, sets = {}, read_map(utt2spk), {}
    for setting, path, scores in (
        ("oo", trials_oo, scores_oo), ("op", trials_op, scores_op), ("pp", trials_pp, scores_pp),
    ):  # fmt: skip
        listed, score = _read_scored(format, path, scores, allow_self=None)
        paths[setting], where = path, {"trials_path": path, "utt2spk_path": utt2spk}
        sets[setting] = segment_pairs(listed, score, speaker_of, **where)
    names = common_speakers(sets, paths)
    for setting, pairs in sets.items():
        check_cells(pairs, paths[setting], symmetric=setting != "op")
    write_figures(out, similarity(sets, names, n_bootstrap=bootstrap, seed=seed))


def _leakage(
    original_xvectors: Xvectors, protected_xvectors: Xvectors, out: Figures, *, utt2spk: Utt2spk,
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Rank search, canonical correlation and Procrustes alignment of x-vectors."""
    from local.metrics.leakage import check_same_space, embeddings, leakage
    from utils.archives import read_vectors

    speaker_of, paths = read_map(utt2spk), (original_xvectors, protected_xvectors)
    original, protected = (
        embeddings(read_vectors(path), speaker_of, path=path, utt2spk_path=utt2spk)
        for path in paths
    )
    original, protected = check_same_space(original, protected, *paths)
    write_figures(out, leakage(original, protected, n_bootstrap=bootstrap, seed=seed))


def _legal(
    enrol_xvectors: Annotated[Path, "The x-vectors that the attacker enrols"],
    trial_xvectors: Annotated[Path, "The x-vectors of the trials"],
    out: Figures, *,
    utt2spk_enrol: Annotated[Path, "The table of the enrol utterances' speakers", "F"],
    utt2spk_trial: Annotated[Path, "The table of the trial utterances' speakers", "F"],
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    """Singling Out and legal Linkability (Vauquier et al. 2025), which is not D_sys.

    One x-vector an utterance, both sets from one encoder and without a common utterance: original
    or protected, as the attacker would hold them (OO, OA, AA). Speakers on one side only are left
    out with a warning.
    """
    from local.metrics.legal import check_sides, legal_metrics, make_side
    from utils.archives import read_vectors

    enrol, trial = (
        make_side(read_vectors(path), read_map(table), vectors_path=path, utt2spk_path=table)
        for path, table in ((enrol_xvectors, utt2spk_enrol), (trial_xvectors, utt2spk_trial))
    )
    check_sides(enrol, trial, enrol_path=enrol_xvectors, trial_path=trial_xvectors)
    write_figures(out, legal_metrics(enrol, trial, n_bootstrap=bootstrap, seed=seed))


def _threshold(
    out: Figures, *,
    list: Annotated[
        Sequence[tuple[Path, Path]], "A trial list and its scores; may be given again",
        "TRIALS SCORES",
    ],
    allow_self: AllowSelf = False,
) -> None:  # fmt: skip
    """The score at which as many errors of both kinds are made, the trials of all lists together.

    `threshold` is midway between the two scores around it; `eer` is linear between points of the
    ROC.
    """
    import numpy as np

    from local.metrics.detection import eer, eer_threshold, rank
    from local.metrics.intervals import count_labels

    scored = [read_scored("kaldi", *paths, allow_self=allow_self) for paths in list]
    score = np.concatenate([score for _, score in scored])
    target = np.concatenate([trials.target for trials, _ in scored])
    if target.all() or not target.any():
        raise UserError(f"{list[0][0]}: target and nontarget trials are both needed")
    figures = {"threshold": eer_threshold(score, target), "eer": eer(*rank(score, target).counts())}
    write_figures(out, {**figures, **count_labels(target)})


main = commands(
    _verification, _strongest, _calibration, _gains, _similarity, _leakage, _legal, _threshold,
)  # fmt: skip
