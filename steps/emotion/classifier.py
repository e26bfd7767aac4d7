# SPDX-License-Identifier: Apache-2.0
"""Linear classifier of functionals that never has a recognised speaker in its training data.

Multinomial logistic regression on scaled functionals, every emotion of the same weight. The
regularisation is chosen within the training speakers, by leaving some of them out; nothing is
chosen on the recognised speakers.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from steps.emotion.functionals import NAMES
from steps.emotion.result import Recognised
from utils.arrays import Float32
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.tables import StrPath, sort_ids

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # C, the inverse of the regularisation
INNER_FOLDS = 5  # of the training speakers; fewer if there are not so many


@dataclass(frozen=True)
class Labelled:
    """Training utterances: functionals (D,), speaker and emotion of each, by utterance."""

    functionals: Mapping[str, Float32]
    utt2spk: Mapping[str, str]
    utt2emotion: Mapping[str, str]


def check_functionals(path: StrPath, functionals: Mapping[str, Float32]) -> None:
    """Raise a UserError where a vector is none of `steps.emotion.functionals`."""
    for utt, vector in functionals.items():
        if len(vector) != len(NAMES):
            raise UserError(f"{path}: {utt}: {len(vector)} values, not {len(NAMES)} functionals")


def folds_of(speakers: Sequence[str], n_folds: int, seed: int) -> list[list[str]]:
    """Groups of speakers to leave out together; n_folds 0: each one alone.

    A speaker's fold depends on the seed and the ids, not on any order.
    """
    listed = sorted(set(speakers), key=lambda spk: (derive_seed(seed, "emotion-folds", spk), spk))
    if n_folds < 0 or n_folds > len(listed):
        raise UserError(f"--folds {n_folds}: 0 (a speaker each) to {len(listed)} are possible")
    n_folds = n_folds or len(listed)
    return [sort_ids(listed[start::n_folds]) for start in range(n_folds)]


def recognise_leaving_out(
    functionals: Mapping[str, Float32],
    utt2spk: Mapping[str, str],
    training: Sequence[Labelled],
    *,
    n_folds: int = 0,
    seed: int = 0,
) -> Recognised:
    """Recognise each utterance by a classifier trained without the speakers of its fold.

    functionals: (D,) of the utterances to recognise. Speakers with the same id are the same in all
    sets. Raises UserError where fewer than two training speakers, or one emotion only, are left.
    """
    train = _Training(training)
    labels = sorted(set(train.emotions.tolist()))
    posteriors: dict[str, Sequence[float]] = {}
    told = []
    for left_out in folds_of([utt2spk[utt] for utt in functionals], n_folds, seed):
        model, note = train.fit(left_out)
        own = sort_ids(utt for utt in functionals if utt2spk[utt] in left_out)
        found = model.predict_proba(np.stack([functionals[utt] for utt in own]))
        full = np.zeros((len(own), len(labels)))
        full[:, [labels.index(label) for label in model.classes_]] = found
        posteriors |= zip(own, full.tolist(), strict=True)
        told.append({"left_out": left_out, **note})
    settings = {"recogniser": "functionals", "functionals": list(NAMES), "folds": told}
    return Recognised(labels, posteriors, settings)


class _Training:
    """All training utterances, in C order of their ids."""

    def __init__(self, sets: Sequence[Labelled]) -> None:
        rows: dict[str, tuple[Float32, str, str]] = {}
        for own in sets:
            for utt, vector in own.functionals.items():
                if utt in rows:
                    raise UserError(f"{utt}: is in two training sets; name each set once")
                rows[utt] = vector, own.utt2spk[utt], own.utt2emotion[utt]
        listed = [rows[utt] for utt in sort_ids(rows)]
        self.values = np.stack([row[0] for row in listed])
        self.speakers = np.array([row[1] for row in listed])
        self.emotions = np.array([row[2] for row in listed])

    def fit(self, left_out: Sequence[str]) -> tuple[Pipeline, dict[str, object]]:
        """Fit a classifier of all other speakers, and describe its training data."""
        used = ~np.isin(self.speakers, left_out)
        speakers, emotions = self.speakers[used], self.emotions[used]
        n_speakers = len(set(speakers))
        if n_speakers < 2 or len(set(emotions)) < 2:
            raise UserError(
                f"without {' '.join(left_out)} there are {n_speakers} training speakers with "
                f"{len(set(emotions))} emotions; two of each are the least"
            )
        search = GridSearchCV(
            make_pipeline(
                SimpleImputer(keep_empty_features=True),  # undefined values become the mean
                StandardScaler(),
                LogisticRegression(class_weight="balanced", max_iter=1000),
            ),
            {"logisticregression__C": list(STRENGTHS)},  # among equals the stronger regularisation
            scoring="balanced_accuracy",
            cv=GroupKFold(min(INNER_FOLDS, n_speakers)),
            error_score="raise",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            # A held-out part may lack an emotion; its mean is then over the others.
            warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
            search.fit(self.values[used], emotions, groups=speakers)
        note = {
            "n_train_utts": int(used.sum()),
            "n_train_speakers": n_speakers,
            "C": search.best_params_["logisticregression__C"],
            "uar_within_training": round(float(search.best_score_), 4),
        }
        model: Pipeline = search.best_estimator_
        return model, note
