"""Recognisers of emotions by name, and one of functionals of pitch, energy and spectrum."""

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from steps.audio import SAMPLE_RATE
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.world import FRAME_SHIFT, HOP, extract_f0
from utils.archives import read_vectors
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.datadir import describe_difference, load_data_dir
from utils.tables import atomic_write, invert, need_files, sort_ids, write_json, write_map

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


# ---- Output of a recogniser, and its files.

Recognised = tuple[pd.DataFrame, dict[str, object]]
"""Probability of each emotion (columns) by utterance (rows), and settings of the recogniser.

The emotion of an utterance is its most probable one, the first in a tie.
"""


def write_recognised(out: Path, posteriors: pd.DataFrame, settings: dict[str, object]) -> None:
    """Write recogniser.json, posteriors.tsv (a line an utterance), and last `emotions`."""
    if posteriors.empty:
        raise UserError(f"{out}: there is nothing to write; the input has no utterance")
    (out / "emotions").unlink(missing_ok=True)
    write_json(out / "recogniser.json", {"labels": list(posteriors.columns), **settings})
    with atomic_write(out / "posteriors.tsv") as stream:
        table = posteriors.loc[sort_ids(posteriors.index)]
        table.to_csv(stream, sep="\t", float_format="%.6f", index_label="#utt")
    write_map(out / "emotions", posteriors.idxmax(axis=1).to_dict())


# ---- Functionals: course of pitch, energy and spectrum of an utterance, as one vector.
#
# Frames every 10 ms: log F0 (WORLD's DIO and StoneMask), energy, balance of the spectrum, cepstra.
# Functionals are their means, spreads and speeds, after the usual sets of the field (GeMAPS, Eyben
# et al. 2016), but not the same: figures are not comparable with theirs. The level is left out,
# because anonymisers set it themselves.

F0_RANGE = (60.0, 600.0)  # Hz; an angry woman's voice exceeds the 400 of read speech
SPEECH_DB = 40.0  # frames so far below the loudest one are pauses
_WINDOW, _FFT = 400, 512
_FLOOR = 1e-10  # power of a frame; below 16-bit rounding
_CEPSTRA = 13  # the zeroth is a level, and excluded

STATISTICS = ("mean", "sd", "p10", "p50", "p90", "speed")  # speed: mean size of the change a frame
PITCH = tuple(f"log_f0_{name}" for name in (*STATISTICS, "slope"))
VOICING = ("voiced_share", "voiced_runs_a_second", "voiced_run_seconds")
ENERGY = tuple(f"energy_{name}" for name in STATISTICS)
BALANCE = ("alpha_ratio", "hammarberg", "centroid", "flux")
SHORT = ("mean", "sd", "speed")
MELODY = (*PITCH, *VOICING, *ENERGY)
NAMES = (
    *MELODY,
    *(f"{what}_{name}" for what in BALANCE for name in SHORT),
    *(f"mfcc{number}_{name}" for number in range(1, _CEPSTRA) for name in SHORT),
)


def functionals(samples: Float64) -> Float64:
    """Functionals (D,) of a signal (n,) at 16 kHz, in the order of NAMES.

    NaN: not defined, such as pitch where no frame is voiced. UserError for digital silence, and
    for less than two frames of speech (`SPEECH_DB` below the loudest frame ends it).
    """
    power = _power_spectrum(samples)
    energy, speech = _energy(power)
    cepstra = _cepstra(samples)[: len(energy), 1:]
    tracks = np.column_stack([_balance(power), cepstra])
    short = [np.stack(_statistics(track, speech))[[0, 1, 5]] for track in tracks.T]
    return np.concatenate([_melody(samples, energy, speech), *short])


def melody(samples: Float64) -> Float64:
    """Functionals MELODY (16,) of a signal; NaN and UserError as in `functionals`."""
    return _melody(samples, *_energy(_power_spectrum(samples)))


def _melody(samples: Float64, energy: Float64, speech: npt.NDArray[np.bool_]) -> Float64:
    course = _statistics(energy - energy.max(), speech)
    return np.concatenate([_pitch(extract_f0(samples, F0_RANGE)), course])


def _energy(power: Float64) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Energy (T,) in dB, and which frames are speech."""
    energy = 10 * np.log10(np.maximum(power.sum(axis=1), _FLOOR))
    speech = energy > energy.max() - SPEECH_DB
    if energy.max() <= 10 * np.log10(_FLOOR) or speech.sum() < 2:
        raise UserError("there is no speech in it: digital silence, or shorter than two frames")
    return energy, speech


def _pitch(f0: Float64) -> Float64:
    """Functionals PITCH and VOICING of a contour (T,) in Hz."""
    voiced = f0 > VOICED_HZ
    log_f0 = np.where(voiced, np.log(np.where(voiced, f0, 1.0)), 0.0)
    seconds = len(f0) * FRAME_SHIFT
    starts = int((np.diff(np.r_[False, voiced].astype(int)) == 1).sum())
    slope = np.nan
    if voiced.sum() >= 2:
        slope = np.polyfit(np.flatnonzero(voiced) * FRAME_SHIFT, log_f0[voiced], 1)[0]
    voicing = [
        voiced.mean(),
        starts / seconds,
        voiced.sum() * FRAME_SHIFT / starts if starts else np.nan,
    ]
    return np.array([*_statistics(log_f0, voiced), slope, *voicing])


def _statistics(track: Float64, where: npt.NDArray[np.bool_]) -> list[float]:
    """Functionals STATISTICS of a track (T,) over the frames that count; NaN where there are none.

    speed: over pairs of neighbours that both count.
    """
    values = track[where]
    if not len(values):
        return [np.nan] * len(STATISTICS)
    steps = np.abs(np.diff(track))[where[1:] & where[:-1]]
    p10, p50, p90 = np.percentile(values, (10, 50, 90))
    speed = steps.mean() if len(steps) else np.nan
    return [values.mean(), values.std(), p10, p50, p90, speed]


def _power_spectrum(samples: Float64) -> Float64:
    """Power (T, 257) of frames of 25 ms around t · 160, T = 1 + n // 160; zeros beyond the ends."""
    padded = np.pad(np.asarray(samples, dtype=np.float64), _WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP]
    spectrum = np.fft.rfft(frames * np.hamming(_WINDOW), _FFT)
    return np.abs(spectrum) ** 2 / _WINDOW


def _balance(power: Float64) -> Float64:
    """BALANCE (T, 4): two ratios of bands in dB, centre in octaves above 1 kHz, and flux.

    alpha_ratio: 50 to 1000 Hz over 1 to 5 kHz; hammarberg: the strongest bin below 2 kHz over the
    strongest of 2 to 5 kHz (Eyben et al. 2016); flux: Euclidean change of the spectrum's shape
    from the frame before.
    """
    power = np.maximum(power, _FLOOR / power.shape[1])
    hertz = np.arange(power.shape[1]) * SAMPLE_RATE / _FFT

    def band(low: float, high: float) -> Float64:
        return power[:, (hertz >= low) & (hertz < high)]

    alpha = band(50, 1000).sum(axis=1) / band(1000, 5000).sum(axis=1)
    hammarberg = band(0, 2000).max(axis=1) / band(2000, 5000).max(axis=1)
    shape = power / power.sum(axis=1, keepdims=True)
    flux = np.linalg.norm(np.diff(np.sqrt(shape), axis=0, prepend=np.sqrt(shape[:1])), axis=1)
    centre = np.log2(np.maximum(shape @ hertz, 1.0) / 1000)
    return np.column_stack([10 * np.log10(alpha), 10 * np.log10(hammarberg), centre, flux])


@cache
def _features() -> Any:
    from steps.speaker.config import FeatureConfig
    from steps.speaker.features import Features

    return Features(FeatureConfig(kind="mfcc", bins=_CEPSTRA, mean="none")).eval()


def _cepstra(samples: Float64) -> Float64:
    """Cepstra (T, 13) of the frames of `_power_spectrum`."""
    import torch  # takes seconds, and the names above are useful without it

    wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
    return _features()(wave)[0].numpy().astype(np.float64)


# ---- Linear classifier of functionals that never has a recognised speaker in its training data.
#
# Multinomial logistic regression on scaled functionals, every emotion of the same weight. The
# regularisation is chosen within the training speakers, by leaving some of them out; nothing is
# chosen on the recognised speakers.

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # C, the inverse of the regularisation
INNER_FOLDS = 5  # of the training speakers; fewer if there are not so many


class Labelled(NamedTuple):
    """Utterances: functionals (D,), speaker and, for training, emotion of each."""

    functionals: Mapping[str, Float32]
    utt2spk: Mapping[str, str]
    utt2emotion: Mapping[str, str]


def recognise_leaving_out(
    functionals: Mapping[str, Float32], utt2spk: Mapping[str, str], training: Sequence[Labelled]
) -> Recognised:
    """Recognise each utterance by a classifier trained without its speaker.

    functionals: (D,) of the utterances to recognise. Speakers with the same id are the same in all
    sets. Raises UserError where fewer than two training speakers, or one emotion only, are left.
    """
    train = _join(training)
    found, folds = [], []
    for speaker, utts in invert({utt: utt2spk[utt] for utt in functionals}).items():
        model, note = _fit(train[train.speaker != speaker], speaker)
        posteriors = model.predict_proba(np.stack([functionals[utt] for utt in utts]))
        found.append(pd.DataFrame(posteriors, utts, model.classes_))
        folds.append({"left_out": speaker, **note})
    settings: dict[str, object] = {"recogniser": "functionals", "functionals": list(NAMES)}
    settings["folds"] = folds
    return pd.concat(found).reindex(columns=sorted(set(train.emotion))).fillna(0.0), settings


def _join(sets: Sequence[Labelled]) -> pd.DataFrame:
    """Functionals (0, 1, ...), speaker and emotion of all utterances, in C order of their ids."""
    tables = [
        pd.DataFrame(np.stack(list(own.functionals.values())), list(own.functionals)).assign(
            speaker=own.utt2spk, emotion=own.utt2emotion
        )
        for own in sets
    ]
    table = pd.concat(tables)
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()][0]
        raise UserError(f"{twice}: is in two training sets; name each set once")
    return table.loc[sort_ids(table.index)]


def _fit(train: pd.DataFrame, left_out: str) -> "tuple[Pipeline, dict[str, object]]":
    """Fit a classifier, and describe its training data."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n_speakers, n_emotions = train.speaker.nunique(), train.emotion.nunique()
    if n_speakers < 2 or n_emotions < 2:
        raise UserError(
            f"without {left_out} there are {n_speakers} training speakers with "
            f"{n_emotions} emotions; two of each are the least"
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
    values = np.ascontiguousarray(train[list(range(len(NAMES)))])
    why = f"without {left_out}, the training speakers are too few, or too unlike: {{}}"
    with refusing(why, ValueError, ConvergenceWarning), warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        # A held-out part may lack an emotion; its mean is then over the others.
        warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
        search.fit(values, train.emotion.to_numpy(str), groups=train.speaker.to_numpy(str))
    note = {
        "n_train_utts": len(train),
        "n_train_speakers": n_speakers,
        "C": search.best_params_["logisticregression__C"],
        "uar_within_training": round(float(search.best_score_), 4),
    }
    model: Pipeline = search.best_estimator_
    return model, note


# ---- Data directories and their functionals, checked to have the same utterances.


def read_labelled(data: Path, folder: Path, *more: str) -> Labelled:
    """A data directory with the table `utt2emotion`, if that is named, and its functionals;
    UserError for a mismatch."""
    found = load_data_dir(data, need=("utt2spk", *more), allow_segments=True)
    path = folder / "functionals.scp"
    need_files([path], "make it with steps/extract_functionals.py")
    vectors = read_vectors(path, check_finite=False)
    if difference := describe_difference(vectors, found.utt2spk, "utterance"):
        raise UserError(f"{path}: compared with {data}, {difference}; extract them again")
    return Labelled(vectors, found.utt2spk, found.tables.get("utt2emotion", {}))


def recognise_by_functionals(
    data: Path, *, features: Path | None = None, training: Sequence[tuple[Path, Path]] = (),
    **_: object,
) -> Recognised:  # fmt: skip
    """Recognise emotions of a data directory by a classifier of the given training sets."""
    if features is None or not training:
        raise UserError("functionals: --features DIR and --train DATA DIR are needed")
    own = read_labelled(data, features)
    sets = [read_labelled(one, folder, "utt2emotion") for one, folder in training]
    return recognise_leaving_out(own.functionals, own.utt2spk, sets)
