"""Small scored lists and x-vectors for tests of metrics."""

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np

from local.compute_metrics import main
from local.metrics.verification import Speakers, find_speakers
from utils.archives import write_archive
from utils.trials import Trials


def trials_of(rows: Iterable[Sequence[object]]) -> Trials:
    """Trials of rows (enrolment, trial, whether it is a target, ...)."""
    enrol, trial, target, *_ = zip(*rows, strict=True)
    return Trials(list(enrol), list(trial), np.array(target, bool))


def some_of(trials: Trials, rows: Iterable[int]) -> Trials:
    """Trials on these places of a list."""
    return trials_of((trials.enrol[i], trials.trial[i], trials.target[i]) for i in rows)


def people_of(trials: Trials, utt2spk: Mapping[str, str] | None = None) -> Speakers:
    """Speakers of a list; left out: each utterance is of the person of its first letter."""
    known = utt2spk or {utt: utt[0] for utt in trials.trial}
    return find_speakers(trials, known, trials_path="trials", utt2spk_path="utt2spk")


def listed_of(rows: Iterable[Sequence[object]]) -> tuple[Trials, Speakers]:
    """Trials of rows, and their people: utterances begin with the letter of who speaks."""
    trials = trials_of(rows)
    return trials, people_of(trials)


def max_min(t: Sequence[int], n: Sequence[int]) -> list[Fraction]:
    """Isotonic regression of the share of targets, by its max-min formula."""
    size, t_below, n_below = len(t), (0, *accumulate(t)), (0, *accumulate(n))

    def share(a: int, b: int) -> Fraction:
        targets = int(t_below[b + 1] - t_below[a])
        return Fraction(targets, targets + int(n_below[b + 1] - n_below[a]))

    lowest = [[min(share(a, b) for b in range(i, size)) for a in range(i + 1)] for i in range(size)]
    return [max(found) for found in lowest]


def compute(tmp_path: Path, *arguments: object) -> dict:
    """Figures that local/compute_metrics.py writes; arguments: all but OUT."""
    out = tmp_path / "out.json"
    assert main([str(a) for a in (*arguments, out)]) == 0
    report: dict = json.loads(out.read_text())
    return report


def write_lists(folder: Path, targets: list[float], nontargets: list[float]) -> tuple[Path, Path]:
    """A trial list e0 t0, e1 t1, ... in one order and its scores in the other."""
    rows = [("target", s) for s in targets] + [("nontarget", s) for s in nontargets]
    trials = [f"e{i}  t{i}\t{label}\n" for i, (label, _) in enumerate(rows)]
    scores = [f"e{i} t{i} {score}\n" for i, (_, score) in enumerate(rows)]
    (folder / "trials").write_text("".join(trials))
    (folder / "scores").write_text("".join(reversed(scores)))
    return folder / "trials", folder / "scores"


def write_scores(path: Path, trials: Path, scores: Iterable[float]) -> Path:
    """Other scores of the trials in a list, in its order."""
    pairs = [line.rsplit(maxsplit=1)[0] for line in trials.read_text().splitlines()]
    path.write_text("".join(f"{p} {x}\n" for p, x in zip(pairs, scores, strict=True)))
    return path


def xvectors(stem: Path, vectors: Mapping[str, np.ndarray]) -> Path:
    """Write x-vectors to <stem>.ark, and return <stem>.scp."""
    write_archive(stem, {key: vector.astype(np.float32) for key, vector in vectors.items()})
    return stem.with_suffix(".scp")
