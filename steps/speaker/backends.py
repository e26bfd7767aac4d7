"""X-vectors compared: back ends, and scores of trial lists and of all pairs."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from steps.speaker import kinds
from steps.speaker import vectors as xvectors
from steps.speaker.vectors import Plda
from utils import archives
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.datadir import DataDir
from utils.registry import find
from utils.seeds import make_rng
from utils.tables import StrPath, atomic_write, few, need_files, sort_ids
from utils.trials import Ids, Trials

# ---- Back ends: similarity of two x-vectors. Every score here is an inner product left . right,
#
# so that a block of scores is one matrix product, with cosine as with PLDA.

SCALED = "cosine_scaled"  # in the place of cosine, for vectors of different units
IDF = "idf.vec"
logger = logging.getLogger(__name__)
LEAST_VARIATION = 1e-12  # of the mean square of all x-vectors
LEAST_LENGTH = 1e-6  # of what centring leaves of a vector of length 1; less is rounding of float32


class Backend(Protocol):
    """Scores of x-vectors (n, D): the higher, the more likely the same speaker."""

    @property
    def dim(self) -> int | None:
        """Length D of x-vectors, if it is fixed."""
        ...

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        """Rows (n, k) of enrolled speakers, the mean of `counts` (n,) utterances each."""
        ...

    def right(self, vectors: Float64) -> Float64:
        """Rows (m, k) of single utterances; left @ right.T are the scores (n, m)."""
        ...


@runtime_checkable
class PairBackend(Protocol):
    """Scores of pairs that are not inner products, for lists of trials alone."""

    def rows(self, vectors: Float64) -> Float64:
        """Rows (n, k) of x-vectors (n, D) of either side."""
        ...

    def pairs(self, left: Float64, right: Float64) -> Float64:
        """Scores (n,) of pairs of rows (n, k)."""
        ...


class CosineBackend:
    """Cosine of the raw vectors, neither centred nor scaled first; counts do not matter."""

    dim: int | None = None  # any

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        return self.right(vectors)

    def right(self, vectors: Float64) -> Float64:
        return scale_to_length(vectors, 1.0)


class CentredCosine(CosineBackend):
    """Cosine about the mean of each side: vectors of length 1, less their mean, of length 1 again.

    What all vectors of a side have in common, such as one pseudo-voice or one channel, tells nobody
    apart and hides what does. `left` and `right` take a whole side at once. A vector that is equal
    to the mean tells nothing: its row is zero, and so are its scores. So does one that is zero, as
    the timing of an utterance without phones; it does not count in the mean, and a warning says so.
    """

    def right(self, vectors: Float64) -> Float64:
        some: npt.NDArray[np.bool_] = np.any(vectors, axis=1)
        if some.any() and not some.all():
            logger.warning(
                "%d of %d vectors are zero: there is nothing to compare, and their scores are 0",
                *((~some).sum(), len(some)),
            )
        some |= not some.any()  # an error
        units = np.zeros(vectors.shape)
        units[some] = scale_to_length(vectors[some], 1.0)
        units[some] -= units[some].mean(axis=0)
        norms = np.linalg.norm(units, axis=1, keepdims=True)
        return np.where(norms > LEAST_LENGTH, units / np.maximum(norms, 1e-30), 0.0)


def standardise(vectors: Float64) -> Float64:
    """Vectors (n, D) of a side, each value less its mean over the side, in its deviations there; 0
    where all are equal.

    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    centred = vectors - vectors.mean(axis=0)
    spread = np.sqrt(np.square(centred).mean(axis=0))
    some = spread > LEAST_LENGTH * np.abs(vectors).max(axis=0, initial=0.0)
    return np.where(some, centred / np.where(some, spread, 1.0), 0.0)


class ScaledCosine(CentredCosine):
    """CentredCosine of values of different units: each is standardised over its side first."""

    def right(self, vectors: Float64) -> Float64:
        return super().right(standardise(vectors))


class Distance(ScaledCosine):
    """Minus the sum of the absolute differences of values that are standardised over their side:
    for one or few values, which have no direction."""

    def rows(self, vectors: Float64) -> Float64:
        return standardise(vectors)

    def pairs(self, left: Float64, right: Float64) -> Float64:
        return -np.abs(left - right).sum(axis=1)

    def right(self, vectors: Float64) -> Float64:
        raise UserError("distance scores lists of trials alone; take cosine_raw")


@dataclass(frozen=True)
class PldaBackend:
    """Centring, LDA, length normalisation, PLDA: Kaldi's chain, in this order.

    mean: (D,); transform: (d, D) or, with an offset in the last column, (d, D + 1). kinds: (K,),
    ascending, of the numbers of utterances of all enrolments, if few; a row is then half as long.
    """

    mean: Float64
    transform: Float64
    plda: Plda
    kinds: Float64 | None = None

    @property
    def dim(self) -> int:
        """Length D of x-vectors."""
        return len(self.mean)

    def project(self, vectors: Float64) -> Float64:
        """Project x-vectors (n, D) to (n, d), if the PLDA scales them of length sqrt(d)."""
        dim = len(self.mean)
        projected = (vectors - self.mean) @ self.transform[:, :dim].T
        projected += self.transform[:, dim:].sum(axis=1)
        if not self.plda.scaled:
            return projected
        return scale_to_length(projected, np.sqrt(len(self.transform)))

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        return self.plda.left(self.project(vectors), counts, self.kinds)

    def right(self, vectors: Float64) -> Float64:
        return self.plda.right(self.project(vectors), self.kinds)


def shorten(backend: Backend, counts: Float64) -> Backend:
    """Back end of the same scores by shorter rows, if possible; counts: (n,) of the enrolments."""
    kinds = np.unique(counts)
    if isinstance(backend, PldaBackend) and len(kinds) < len(backend.plda.psi):
        return replace(backend, kinds=kinds)
    return backend


@dataclass(frozen=True)
class NormalisedBackend:
    """Adaptive symmetric score normalisation (Matejka et al. 2017, AS-Norm1) of another back end.

    Each side's scores against a cohort of other speakers have mean mu and deviation sigma over the
    `top` most similar of them; the normalised score is the mean of (s - mu)/sigma of both sides. It
    is an inner product again, of rows twice as long and two more. cohort: (C, D), one x-vector a
    speaker, none of whom is enrolled or tried. A cohort is a side of its own: a centred cosine
    centres it by its own mean, whether it was protected or not.
    """

    base: Backend
    cohort: Float64
    top: int

    @property
    def dim(self) -> int | None:
        """Length of the back end's x-vectors, or of the cohort's where it takes any."""
        return self.base.dim or self.cohort.shape[1]

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        rows = self.base.left(vectors, counts)
        mu, sigma, some = self._statistics(rows, self.base.right(self.cohort))
        return some * np.hstack([rows / sigma, rows, -mu / sigma, -np.ones_like(mu)]) / 2.0

    def right(self, vectors: Float64) -> Float64:
        rows = self.base.right(vectors)
        of_cohort = self.base.left(self.cohort, np.ones(len(self.cohort)))
        mu, sigma, some = self._statistics(rows, of_cohort)
        return some * np.hstack([rows, rows / sigma, np.ones_like(mu), mu / sigma])

    def _statistics(self, rows: Float64, cohort: Float64) -> tuple[Float64, Float64, Float64]:
        """Mean and deviation, (n, 1) each, of the `top` highest scores of rows (n, k) and a cohort
        (C, k), and 0 for a row that is zero, which a cosine tells nothing by; else 1."""
        highest = np.sort(rows @ cohort.T, axis=1)[:, -self.top :]
        mu, sigma = (f(highest, axis=1, keepdims=True) for f in (np.mean, np.std))
        some: npt.NDArray[np.bool_] = np.any(rows, axis=1, keepdims=True)
        if not (sigma[some] > 0).all() or not some.any():
            raise UserError(f"{len(cohort)} cohort speakers: their scores do not differ")
        return mu, np.where(some, sigma, 1.0), np.where(some, 1.0, 0.0)


@dataclass(frozen=True)
class TfidfBackend:
    """Cosine of counts of words or phones, each dampened (1 + ln n) and weighed by how telling it
    is. idf: (D,). An utterance without any scores 0: it has nothing in common with anybody."""

    idf: Float64

    @property
    def dim(self) -> int:
        """Length D of vectors of counts."""
        return len(self.idf)

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        return self.right(vectors * counts[:, None])  # of all of a speaker's utterances

    def right(self, vectors: Float64) -> Float64:
        some = vectors > 0
        weighed = np.where(some, 1 + np.log(np.where(some, vectors, 1.0)), 0.0) * self.idf
        norms = np.linalg.norm(weighed, axis=1, keepdims=True)
        return weighed / np.where(norms > 0, norms, 1.0)


def learn_idf(counts: Float32) -> Float64:
    """Inverse document frequencies (D,) of counts (n, D): ln((1 + n) / (1 + m)) + 1, for what
    occurs in m of n utterances (as scikit-learn smooths it)."""
    return np.log((1 + len(counts)) / (1 + (counts > 0).sum(axis=0))) + 1


def scale_to_length(vectors: Float64, length: float) -> Float64:
    """Scale vectors (n, d) to the given Euclidean length; UserError for a zero vector."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise UserError(f"{(norms <= 0).sum()} x-vectors are zero: there is nothing to compare")
    return vectors * (length / norms)


def train_backend(
    vectors: Mapping[str, Float32], utt2spk: Mapping[str, str], lda_dim: int, *,
    scaled: bool = True, pca_dim: int = 0,
) -> PldaBackend:  # fmt: skip
    """Train global mean, LDA and PLDA on x-vectors of training speakers; scaled: to one length;
    pca_dim: before LDA so many principal axes are kept (0: all), as few x-vectors do not show how
    many values vary within speakers.

    Raises UserError without two speakers, or without a speaker of two x-vectors: the variation
    within speakers cannot be learnt then.
    """
    speakers = [utt2spk[utt] for utt in vectors]
    names, classes = np.unique(speakers, return_inverse=True)
    n_vectors = len(speakers)
    if len(names) < 2:
        raise UserError(f"{len(names)} training speaker(s); a back end needs several")
    if n_vectors == len(names):
        raise UserError(
            "every training speaker has one x-vector, so variation within a speaker cannot be "
            "learnt; cut utterances into sessions with: steps/extract_xvectors.py --chunk-seconds"
        )
    x = np.stack(list(vectors.values())).astype(np.float64)
    mean = x.mean(axis=0)
    _check_varies(x, classes)
    axes = np.eye(x.shape[1])
    if 0 < pca_dim < len(axes):
        axes = np.linalg.eigh(np.cov(x.T))[1][:, : -pca_dim - 1 : -1].T
    dim = xvectors.clamp_dimension(lda_dim, len(axes), len(names), n_vectors)
    transform = xvectors.train_lda((x - mean) @ axes.T, classes, dim) @ axes
    projected = (x - mean) @ transform.T
    if scaled:
        projected = scale_to_length(projected, np.sqrt(dim))
    plda = xvectors.train_plda(projected, classes)
    return PldaBackend(mean, transform, replace(plda, scaled=scaled))


def _check_varies(x: Float64, classes: npt.NDArray[np.int64]) -> None:
    """Raise an ArithmeticError if x-vectors (n, D) differ only by rounding within each speaker."""
    means, _, scatter = xvectors.class_statistics(x, classes)
    if np.trace(scatter) <= LEAST_VARIATION * np.square(x).sum():
        raise ArithmeticError("all x-vectors of each speaker are equal")
    if np.square(means - means.mean(axis=0)).sum() <= LEAST_VARIATION * np.square(means).sum():
        raise ArithmeticError("the mean x-vectors of all speakers are equal")


PARTS = ("mean.vec", "transform.mat", "plda")
UNSCALED = "unscaled"  # an empty file, of a back end that scales nothing to length


def write_backend(folder: Path, backend: PldaBackend) -> None:
    """Write mean.vec (text), transform.mat (d, D + 1) and plda, in Kaldi's formats; plda last."""
    dim = len(backend.mean)
    offset = backend.transform[:, dim:].sum(axis=1, keepdims=True)
    (folder / UNSCALED).unlink(missing_ok=True)
    if not backend.plda.scaled:
        (folder / UNSCALED).touch()
    archives.write_object(folder / "mean.vec", backend.mean)
    archives.write_object(folder / "transform.mat", np.hstack([backend.transform[:, :dim], offset]))
    xvectors.write_plda(folder / "plda", backend.plda)


def load_normalised(name: str, top: int) -> Backend:
    """Load the back end of an evaluator: normalised over the `top` nearest of its cohort; 0: not
    normalised.

    UserError for a PLDA of one dimension: scaling a number to length leaves only its sign.
    """
    backend = load_backend(name)
    if isinstance(backend, PldaBackend) and backend.plda.scaled and len(backend.transform) == 1:
        raise UserError(
            f"{name}: is of one dimension (trained on two speakers, or with an LDA of 1), of which "
            "scaling to length leaves only the sign, so that nobody is told apart; use cosine"
        )
    if top == 0:
        return backend
    cohort = Path(name) / "cohort.scp"
    if top < 2 or not cohort.is_file():
        raise UserError(
            f"--asnorm {top}: needs 2 speakers or more, and a back end of steps/train_backend.py "
            f"(with cohort.scp), not {name}"
        )
    rows = np.stack(list(archives.read_vectors(cohort).values())).astype(np.float64)
    return NormalisedBackend(backend, rows, min(top, len(rows)))


def load_backend(name: str) -> Backend:
    """Load a back end of kinds.BACKENDS, or SCALED, or a folder of steps/train_backend.py (or
    Kaldi)."""
    others = {SCALED: f"{__name__}:ScaledCosine", "<folder>": f"{__name__}:read_folder"}
    kind, found = find({**kinds.BACKENDS, **others}, name, "back end")
    return kind(*found)


def read_folder(name: str) -> Backend:
    """Read the back end in a folder of steps/train_backend.py; the centred cosine where there is a
    cohort alone."""
    folder = Path(name)
    if (path := folder / IDF).is_file():
        return TfidfBackend(archives.read_object(path, 1))
    if not any((folder / part).is_file() for part in PARTS) and (folder / "cohort.scp").is_file():
        return CentredCosine()
    return read_plda(folder)


def read_plda(folder: Path) -> PldaBackend:
    """Read the PLDA in a folder; UserError for anything else."""
    mend = "a back end is a folder that steps/train_backend.py wrote, cosine or cosine_raw"
    need_files((folder / part for part in PARTS), mend)
    mean = archives.read_object(folder / "mean.vec", 1)
    transform = archives.read_object(folder / "transform.mat", 2)
    scaled = not (folder / UNSCALED).is_file()
    plda = replace(xvectors.read_plda(folder / "plda"), scaled=scaled)
    if transform.shape[1] not in (len(mean), len(mean) + 1) or len(transform) != len(plda.mean):
        raise UserError(
            f"{folder}: mean.vec ({len(mean)}), transform.mat ({transform.shape[0]} x "
            f"{transform.shape[1]}) and plda ({len(plda.mean)}) do not fit; train it again"
        )
    return PldaBackend(mean, transform, plda)


# ---- Scores of enrolment-trial lists and of all pairs of segments. Nothing is skipped.
#
# Everything is joined by id, never by position.

_PAIRS_AT_ONCE = 1 << 14
_ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class VectorTable:
    """X-vectors by id, their origin, and (for speakers) the number of utterances."""

    vectors: Mapping[str, Float32]
    source: str
    counts: Mapping[str, int] | None = None

    def stack(self, ids: Sequence[str]) -> Float64:
        """X-vectors (n, D) of the given ids."""
        return np.stack([self.vectors[key] for key in ids]).astype(np.float64)

    def count(self, ids: Sequence[str]) -> Float64:
        """Numbers (n,) of utterances behind each vector; 1 where each is an utterance."""
        return np.array([1 if self.counts is None else self.counts[key] for key in ids], np.float64)

    @property
    def dim(self) -> int:
        """Dimension D."""
        return len(next(iter(self.vectors.values())))


def read_segments(path: Path) -> VectorTable:
    """Read x-vectors of utterances: a folder with xvector.scp, or an .scp or .ark file."""
    vectors = xvectors.read_xvectors(path) if path.is_dir() else archives.read_vectors(path)
    return VectorTable(vectors, str(path))


def read_enrolment(path: Path) -> VectorTable:
    """Read x-vectors of speakers with counts from a folder; of utterances from an .scp or .ark."""
    if not path.is_dir():
        return read_segments(path)
    vectors = xvectors.read_xvectors(path, "spk_xvector")
    return VectorTable(vectors, str(path), archives.read_counts(path / "num_utts.ark"))


def enrolled_utterances(data: DataDir) -> dict[str, list[str]]:
    """Make the table of the utterances that each speaker is enrolled with, sorted."""
    listed = data.utt2spk.keys() if data.enrolls is None else {*data.enrolls}
    return {speaker: sorted(listed & {*utts}) for speaker, utts in data.spk2utt.items()}


def read_few(path: Path, data: DataDir, n: int) -> VectorTable:
    """Read x-vectors of speakers, each the mean of n of their enrolled utterances, which are drawn
    by the speaker's name; of all, where a speaker has fewer."""
    few: set[str] = set()
    for speaker, own in enrolled_utterances(data).items():
        few.update(make_rng(0, "enrolment", speaker).permutation(np.array(own, object))[:n])
    vectors = xvectors.open_xvectors(path).vectors()
    means, counts = xvectors.average_by_speaker(
        (item for item in vectors if item[0] in few), data.utt2spk
    )
    return VectorTable(means, str(path), counts)


def score_trials(
    backend: Backend, enrol: VectorTable, trial: VectorTable, trials: Trials
) -> Float64:
    """Compute one score a trial, in the order of the list. A centred back end takes the mean of the
    enrolled people, and of the trial utterances, that the list names.

    Raises UserError naming all ids that have no x-vector (or no count), and different dimensions.
    """
    left_ids, right_ids = Ids.of(trials.enrol), Ids.of(trials.trial)
    problems = [
        _missing("enrolment", left_ids.names, enrol.vectors, enrol.source),
        _missing("trial", right_ids.names, trial.vectors, trial.source),
    ]
    if enrol.counts is not None:
        counted = [key for key in left_ids.names if key in enrol.vectors]
        problems.append(_missing("enrolment", counted, enrol.counts, f"num_utts of {enrol.source}"))
    if found := [problem for problem in problems if problem]:
        raise UserError(f"not all trials can be scored: {'; '.join(found)}")
    check_dimensions(backend, enrol, trial)
    if is_centred(backend):
        _check_people(len(left_ids.names), "enrolled")
        who, what = (np.unique(ids.codes[trials.target]) for ids in (left_ids, right_ids))
        others = len(what) < len(right_ids.names)  # utterances of people who are not enrolled
        _check_people(len(who) + others, "tried")
    compare, left, right = _inner, enrol.stack(left_ids.names), trial.stack(right_ids.names)
    if isinstance(backend, PairBackend):
        compare, left, right = backend.pairs, backend.rows(left), backend.rows(right)
    else:
        with refusing(f"{enrol.source}: {{}}", UserError):
            left = backend.left(left, enrol.count(left_ids.names))
        with refusing(f"{trial.source}: {{}}", UserError):
            right = backend.right(right)
    scores = np.empty(len(trials))
    for start in range(0, len(trials), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        scores[part] = compare(left[left_ids.codes[part]], right[right_ids.codes[part]])
    return scores


def _inner(left: Float64, right: Float64) -> Float64:
    return np.einsum("nk,nk->n", left, right)


def is_centred(backend: Backend) -> bool:
    """Whether scores depend on the mean of each side, so that it takes all of a side at once."""
    base = backend.base if isinstance(backend, NormalisedBackend) else backend
    return isinstance(base, CentredCosine)


def _check_people(n_people: int, what: str) -> None:
    """Raise a UserError if one person's vectors would be centred: only noise would be left, which
    looks like a voice that is hidden."""
    if n_people < 2:
        raise UserError(
            f"{n_people} person is {what}: a cosine that is centred on the mean of each side needs "
            "two on both; use cosine_raw"
        )


def _missing(what: str, ids: Sequence[str], known: Collection[str], source: str) -> str:
    missing = [key for key in ids if key not in known]
    if not missing:
        return ""
    return f"{len(missing)} of {len(ids)} {what} ids are not in {source} ({few(missing)})"


def check_dimensions(backend: Backend, left: VectorTable, right: VectorTable) -> None:
    """Raise a UserError if x-vectors are of different encoders, or the back end is another's."""
    if left.dim != right.dim:
        raise UserError(
            f"{left.source} has x-vectors of {left.dim} dimensions, {right.source} of {right.dim}; "
            "extract both with one encoder"
        )
    if backend.dim is not None and backend.dim != left.dim:
        raise UserError(
            f"{left.source} has x-vectors of {left.dim} dimensions, the back end is for "
            f"{backend.dim}; it was trained with another encoder"
        )


def select_utterances(tables: Sequence[VectorTable], utt2spk: Mapping[str, str]) -> list[str]:
    """Utterances of utt2spk in C order, without those whose x-vector is zero in a table, as the
    timing of an utterance without phones; UserError names those without an x-vector."""
    ids = sort_ids(utt2spk)
    for table in tables:
        if problem := _missing("segment", ids, table.vectors, table.source):
            raise UserError(f"not all pairs can be scored: {problem}")
        if more := len(table.vectors) - len(ids):
            why = "x-vectors are of utterances that utt2spk does not list"
            logger.warning("%s: %d %s; left out", table.source, more, why)
    found = [utt for utt in ids if all(table.vectors[utt].any() for table in tables)]
    if zero := len(ids) - len(found):
        where = " or ".join(dict.fromkeys(table.source for table in tables))
        logger.warning("%s: %d of %d x-vectors are zero; left out", where, zero, len(ids))
    return found or ids  # all zero is an error


def write_pairs(
    backend: Backend, rows: VectorTable, columns: VectorTable, ids: Sequence[str],
    utt2spk: Mapping[str, str], trials_path: StrPath, scores_path: StrPath, *, once: bool,
) -> tuple[int, int]:  # fmt: skip
    """Score all pairs of `ids`, of the row table with the column table, but none with itself.

    `once`: each unordered pair once (the first id before the second), for equal tables. Writes
    `<row> <column> target|nontarget` and `<row> <column> <score>`; returns both counts. Scores have
    9 significant digits. Both files are in C order when the ids are; both are atomic, scores last.
    """
    check_dimensions(backend, rows, columns)
    if is_centred(backend):
        _check_people(len({utt2spk[utt] for utt in ids}), "compared")
    left = backend.left(rows.stack(ids), np.ones(len(ids)))
    right = backend.right(columns.stack(ids))
    names, places = np.array(ids, dtype=object), np.arange(len(ids))
    speakers = np.array([utt2spk[utt] for utt in ids])
    n_target = n_pairs = 0
    with atomic_write(scores_path) as scores, atomic_write(trials_path) as trials:
        for place, row in enumerate(ids):
            if place % _ROWS_AT_ONCE == 0:
                block = left[place : place + _ROWS_AT_ONCE] @ right.T
                if not np.isfinite(block).all():
                    raise UserError(f"{scores_path}: a score of {row} ... is not finite")
            wanted = places > place if once else places != place
            others, values = names[wanted].tolist(), block[place % _ROWS_AT_ONCE][wanted].tolist()
            target = (speakers[wanted] == utt2spk[row]).tolist()
            kinds = ("target" if same else "nontarget" for same in target)
            trials.writelines(f"{row} {o} {kind}\n" for o, kind in zip(others, kinds, strict=True))
            scores.writelines(f"{row} {o} {s:.9g}\n" for o, s in zip(others, values, strict=True))
            n_target += sum(target)
            n_pairs += len(others)
    return n_target, n_pairs - n_target
