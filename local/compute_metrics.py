#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute privacy figures from scores or x-vectors and write them as JSON.

Trials are `<enrol> <trial> target|nontarget`, scores `<enrol> <trial> <score>` (higher: more
alike); they are joined by the id pair. x-vectors are .scp or .ark, binary or text. OUT is a file,
or - for standard output. Values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit. An infinite
value is "inf" or "-inf"; an undefined one is null, and a warning says why. The cards in
docs/metrics explain every key.
"""

from collections.abc import Callable, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from local.metrics.registry import compute, families
from local.options import AnotherDraw, Figures, Lists, Resamples, Words, write_figures
from utils.cli import BadValue, UserError, natural, positive
from utils.commands import commands
from utils.options import AllowSelf, TrialFormat, Utt2spk
from utils.tables import read_map, to_number

Trials = Annotated[Path, "A list of trials"]
Scores = Annotated[Path, "The scores of these trials"]
Xvectors = Annotated[Path, "The x-vectors (.scp or .ark)"]


def _omega(text: str) -> tuple[str, float]:
    if not 0.0 < (value := to_number(text)) < 1e200:
        raise BadValue(f"expected a positive number below 1e200, not {text!r}")
    return text, value


def _find_speakers(trials: Any, path: Path, utt2spk: Path) -> Any:
    from local.metrics.verification import find_speakers

    return find_speakers(trials, read_map(utt2spk), trials_path=path, utt2spk_path=utt2spk)


def _check_bootstrap(bootstrap: int, utt2spk: Path | None) -> None:
    if bootstrap and not utt2spk:
        raise UserError("--bootstrap needs --utt2spk: it resamples speakers")


class Extras(NamedTuple):
    """Options of further figures of a trial list."""

    omega: Annotated[
        Sequence[tuple[str, float]], "The prior odds of a mated pair, which add "
        "linkability_omega_<X>; may be given again", "X", _omega,
    ] = ()  # fmt: skip
    bins: Annotated[
        int, "The number of equal bins of linkability_bins_<N>, of all trials and of each enrolled "
        "speaker's alone (the code of Champion et al. 2021: 50); needs --utt2spk; 0: none", "N",
        natural,
    ] = 0  # fmt: skip
    unprotected: Annotated[
        Path | None, "Scores of the same trials without protection by the same evaluator, which "
        "add eer_rise: how far the EER lies above theirs, people resampled alike in both", "SCORES",
    ] = None  # fmt: skip
    words: Words = None
    challenges: Annotated[
        bool, "Whether eer_speechbrain and eer_kaldi are added, which the VoicePrivacy challenges "
        "report"
    ] = False  # fmt: skip
    recordings: Annotated[
        bool, "Also measure what an attacker finds out who has 1, 3, 10, 30 or all recordings of "
        "one person, and whether it may be chance; needs --utt2spk"
    ] = False  # fmt: skip
    enrolled: Annotated[
        Sequence[tuple[str, str]], "With --recordings: the number of recordings that each model "
        "was made of, and the scores of these models (score_trials.py --enrolled); may be given "
        "again", "N SCORES",
    ] = ()  # fmt: skip

    def check(self, utt2spk: Path | None) -> None:
        """Raise a UserError for options that need another."""
        for option in ("bins", "recordings"):
            if getattr(self, option) and not utt2spk:
                raise UserError(f"--{option} needs --utt2spk: it takes each speaker's trials")
        if self.enrolled and not self.recordings:
            raise UserError("--enrolled is for --recordings; give both")
        if len(self.enrolled) > len({positive(n) for n, _ in self.enrolled}):
            raise UserError(
                "--enrolled: a number of recordings is given twice; give its scores once"
            )


def _verification(
    trials: Trials, scores: Scores, out: Figures, *, lists: Lists, utt2spk: Utt2spk | None = None,
    more_scores: Annotated[
        Sequence[Path], "Further scores of the list, such as those of its men; may be given again",
        "SCORES",
    ] = (),
    extras: Extras, another_draw: AnotherDraw = (), resamples: Resamples,
) -> None:  # fmt: skip
    """Detection, ZEBRA and linkability of a trial list. --bootstrap needs --utt2spk."""
    from local.metrics.intervals import both
    from local.metrics.verification import verification

    _check_bootstrap(resamples.bootstrap, utt2spk)
    extras.check(utt2spk)
    listed, score = lists.read(trials, [scores, *more_scores])
    beside = {"eer_rise": extras.unprotected, "eer_beside_words": extras.words}
    speakers = _find_speakers(listed, trials, utt2spk) if utt2spk else None
    own = {"draws": lists.read(trials, *another_draw)[1:], **resamples.words}
    found = verification(
        listed, score, omegas=dict(extras.omega), speakers=speakers, n_bins=extras.bins,
        beside={name: lists.read(trials, path)[1] for name, path in beside.items() if path},
        challenges=extras.challenges, **own,
    )  # fmt: skip
    if extras.recordings and speakers:
        from local.metrics.recordings import recordings

        few = {int(n): lists.read(trials, Path(path))[1] for n, path in extras.enrolled}
        found = both(found, recordings(listed, score, speakers, enrolled=few, **own))
    write_figures(out, found)


def _strongest(
    trials: Trials, scores: Scores, out: Figures, *, lists: Lists, utt2spk: Utt2spk,
    another_attacker: Annotated[
        Sequence[Path], "The scores of a further attacker on these trials; may be given again",
        "SCORES",
    ] = (),
    draw_of: Annotated[
        Sequence[tuple[Path, Path]], "The scores of an attacker, and those of the same in "
        "a further run of a random system; may be given again", "SCORES SCORES",
    ] = (),
    resamples: Resamples,
) -> None:  # fmt: skip
    """The lowest EER of several attackers on one list; its interval covers their choice."""
    from local.metrics.recordings import strongest

    runs = {path: [path] for path in (scores, *another_attacker)}
    for path, another in draw_of:
        if path not in runs:
            raise UserError(f"--draw-of {path}: no attacker has these scores")
        runs[path].append(another)
    listed, *every = lists.read(trials, *chain.from_iterable(runs.values()))
    found = iter(every)
    attackers = [[next(found) for _ in own] for own in runs.values()]
    speakers = _find_speakers(listed, trials, utt2spk)
    write_figures(out, strongest(listed, attackers, speakers, **resamples.words))


def _calibration(
    trials: Trials, scores_f0: Scores, scores_f1: Scores, out: Figures, *,
    lists: Lists, utt2spk: Utt2spk | None = None,
) -> None:  # fmt: skip
    """Whether a calibration learnt on run f0 of a safeguard serves the attacker on run f1.

    --utt2spk adds n_speakers and n_segments.
    """
    from local.metrics.verification import calibration

    listed, f0, f1 = lists.read(trials, scores_f0, scores_f1)
    figures = dict(calibration(listed.target, f0, f1))
    if utt2spk:
        figures["n_speakers"] = len(_find_speakers(listed, trials, utt2spk).names)
        figures["n_segments"] = len(set(listed.trial))
    write_figures(out, figures)


def _gains(
    trials_oo: Trials, scores_oo: Scores, trials_oa: Trials, scores_oa: Scores, trials_aa: Trials,
    scores_aa: Scores, out: Figures, *, lists: Lists, utt2spk: Utt2spk | None = None,
    resamples: Resamples,
) -> None:  # fmt: skip
    """Disclosure lost and distinctiveness gained by protection.

    On enrolment-trial lists of original (O) and protected (A) speech, relative to OO, as in Tables
    3 and 4 of Noé et al. 2022. --utt2spk adds n_speakers; --bootstrap needs it.
    """
    from local.metrics.similarity import gains

    _check_bootstrap(resamples.bootstrap, utt2spk)
    files = {
        "oo": (trials_oo, scores_oo),
        "oa": (trials_oa, scores_oa),
        "aa": (trials_aa, scores_aa),
    }
    scored = {setting: lists.read(*paths) for setting, paths in files.items()}
    speakers = {
        setting: _find_speakers(trials, files[setting][0], utt2spk)
        for setting, (trials, _) in scored.items()
        if utt2spk
    }
    write_figures(out, gains(scored, speakers or None, **resamples.words))


def _similarity(
    trials_oo: Trials, scores_oo: Scores, trials_op: Trials, scores_op: Scores, trials_pp: Trials,
    scores_pp: Scores, out: Figures, *, format: TrialFormat = "auto", utt2spk: Utt2spk,
    resamples: Resamples,
) -> None:  # fmt: skip
    """Voice similarity matrices, de-identification and voice distinctiveness.

    From the scores of all pairs of original (O) and protected (P) segments.
    """
    from local.metrics.similarity import check_cells, common_speakers, segment_pairs, similarity

    paths, speaker_of, sets = {}, read_map(utt2spk), {}
    for setting, path, scores in (
        ("oo", trials_oo, scores_oo), ("op", trials_op, scores_op), ("pp", trials_pp, scores_pp),
    ):  # fmt: skip
        listed, score = Lists(format, None).read(path, scores)
        paths[setting], where = path, {"trials_path": path, "utt2spk_path": utt2spk}
        sets[setting] = segment_pairs(listed, score, speaker_of, **where)
    names = common_speakers(sets, paths)
    for setting, pairs in sets.items():
        check_cells(pairs, paths[setting], symmetric=setting != "op")
    write_figures(out, similarity(sets, names, **resamples.words))


def _of_vectors(family: str, title: str) -> Callable[..., None]:
    def command(
        original_xvectors: Xvectors, protected_xvectors: Xvectors, out: Figures, *,
        utt2spk: Utt2spk, resamples: Resamples,
    ) -> None:  # fmt: skip
        from local.metrics.leakage import check_same_space, embeddings
        from utils.archives import read_vectors

        speaker_of, paths = read_map(utt2spk), (original_xvectors, protected_xvectors)
        original, protected = (
            embeddings(read_vectors(path), speaker_of, path=path, utt2spk_path=utt2spk)
            for path in paths
        )
        sides = check_same_space(original, protected, *paths)
        write_figures(out, compute(family, *sides, **resamples.words))

    command.__name__, command.__doc__ = family, title
    return command


def _of_scores(family: str, title: str) -> Callable[..., None]:
    def command(
        trials: Trials, scores: Scores, out: Figures, *, lists: Lists, utt2spk: Utt2spk,
        resamples: Resamples,
    ) -> None:  # fmt: skip
        listed, score = lists.read(trials, scores)
        speakers = _find_speakers(listed, trials, utt2spk)
        write_figures(out, compute(family, listed, score, speakers, **resamples.words))

    command.__name__, command.__doc__ = family, title
    return command


def _legal(
    enrol_xvectors: Annotated[Path, "The x-vectors that the attacker enrols"],
    trial_xvectors: Annotated[Path, "The x-vectors of the trials"],
    out: Figures, *,
    utt2spk_enrol: Annotated[Path, "The table of the enrol utterances' speakers", "F"],
    utt2spk_trial: Annotated[Path, "The table of the trial utterances' speakers", "F"],
    resamples: Resamples,
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
    write_figures(out, legal_metrics(enrol, trial, **resamples.words))


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
    from local.metrics.detection import eer, eer_threshold, rank
    from local.metrics.intervals import count_labels

    trials, score = Lists("kaldi", allow_self).read(*zip(*list, strict=True))
    target = trials.target
    figures = {"threshold": eer_threshold(score, target), "eer": eer(*rank(score, target).counts())}
    write_figures(out, {**figures, **count_labels(target)})


main = commands(
    _verification, _strongest, _calibration, _gains, _similarity,
    *starmap(_of_vectors, families("vectors").items()),
    *starmap(_of_scores, families("scores").items()),
    _legal, _threshold,
)  # fmt: skip
