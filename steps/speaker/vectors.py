"""Statistics of x-vectors: means of speakers, LDA, and two-covariance PLDA as in Kaldi."""

import logging
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from kaldiio.matio import read_matrix_or_vector, write_array

from utils.archives import ObjectReader, read_vectors
from utils.arrays import Float32, Float64
from utils.cli import LossError, UserError
from utils.datadir import DataDir, load_data_dir
from utils.tables import StrPath, atomic_write, few, is_there, read_bytes, read_map, sort_ids

# ---- Speaker x-vectors: the plain mean of a speaker's utterances, before any centring or scaling.


def read_xvectors(folder: StrPath, name: str = "xvector") -> dict[str, Float32]:
    """Path of `<name>.scp` in a folder of x-vectors; UserError names the program that makes it."""
    return read_vectors(_find_scp(folder, name))


def open_xvectors(folder: StrPath) -> ObjectReader:
    """Open `xvector.scp` of a folder, to read vectors one by one."""
    return ObjectReader(_find_scp(folder, "xvector"))


def _find_scp(folder: StrPath, name: str) -> Path:
    path = Path(folder) / f"{name}.scp"
    if not path.is_file():
        program = "average_xvectors.py" if name == "spk_xvector" else "extract_xvectors.py"
        raise UserError(f"{path}: is missing; make it with steps/{program}")
    return path


def speakers_of(folder: StrPath, data: DataDir) -> dict[str, str]:
    """Read utt2spk of the x-vectors in a folder: its own if it has chunks, else the data's.

    Speakers of chunks must be speakers of the data.
    """
    path = Path(folder) / "utt2spk"
    if not is_there(path):
        return data.utt2spk
    utt2spk = read_map(path)
    if foreign := sorted(set(utt2spk.values()) - set(data.utt2spk.values())):
        raise UserError(
            f"{path}: {foreign[0]} is not a speaker of {data.path}; make the folder again"
        )
    return utt2spk


def source_of(key: str, utts: Collection[str]) -> str:
    """Utterance of an x-vector, which may be of a piece of it, `<utterance>-c<number>`."""
    return key if key in utts else key.rpartition("-c")[0]


def check_complete(
    vectors: Mapping[str, Float32] | ObjectReader,
    utt2spk: Mapping[str, str],
    where: StrPath,
    allow_loss: int,
    utts: Collection[str] = (),
) -> None:
    """Check that each x-vector has a speaker, and that at most `allow_loss` utterances lack an
    x-vector. utts: the utterances, where x-vectors are of their pieces."""
    if unknown := [utt for utt in vectors if utt not in utt2spk]:
        raise UserError(
            f"{where}: {len(unknown)} x-vectors of utterances without a speaker in utt2spk, the "
            f"first {unknown[0]}"
        )
    heard = {source_of(key, utts) for key in vectors} if utts else ()
    missing = [utt for utt in utt2spk if utt not in vectors]
    missing = missing or [utt for utt in utts if utt not in heard]
    if len(missing) > allow_loss:
        raise LossError(
            f"{where}: {len(missing)} of {len(utts or utt2spk)} utterances have no x-vector "
            f"({few(missing)}); --allow-loss is {allow_loss}"
        )


def read_training(
    folder: Path, data_dir: Path, allow_loss: int, not_speakers_of: Sequence[Path] = ()
) -> tuple[DataDir, dict[str, Float32], dict[str, str]]:
    """Read the data directory of training speakers, their x-vectors in a folder, and the speaker of
    each.

    UserError for a speaker who is in a set of `not_speakers_of`; LossError where x-vectors are
    missing.
    """
    data = load_data_dir(data_dir, need=("utt2spk",), not_speakers_of=not_speakers_of)
    vectors, utt2spk = read_xvectors(folder), speakers_of(folder, data)
    check_complete(vectors, utt2spk, folder, allow_loss, data.utt2spk)
    return data, vectors, utt2spk


def average_by_speaker(
    vectors: Iterable[tuple[str, Float32]], utt2spk: Mapping[str, str]
) -> tuple[dict[str, Float32], dict[str, int]]:
    """Mean (in float64) and number of the x-vectors of each speaker: (spk -> (d,), spk -> n).

    vectors: (utterance, (d,)), which are added one by one as they come: in C order, as an .scp of
    this project has them, the same x-vectors give the same bytes. As Kaldi's ivector-mean: nothing
    is centred or scaled first. The order matters: averaging vectors of length 1 gives other scores.

    >>> vectors = {"a-1": np.ones(1), "a-2": np.zeros(1)}
    >>> mean, count = average_by_speaker(vectors.items(), {"a-1": "a", "a-2": "a"})
    >>> float(mean["a"][0]), count
    (0.5, {'a': 2})
    """
    sums: dict[str, Float64] = {}
    counts: Counter[str] = Counter()
    for utt, vector in vectors:
        speaker = utt2spk[utt]
        sums[speaker] = sums[speaker] + vector if counts[speaker] else vector.astype(np.float64)
        counts[speaker] += 1
    speakers = sort_ids(sums)
    means = {speaker: (sums[speaker] / counts[speaker]).astype(np.float32) for speaker in speakers}
    return means, {speaker: counts[speaker] for speaker in speakers}


# ---- Linear discriminant analysis as Kaldi's ivector-compute-lda (--total-covariance-factor=0).

COVARIANCE_FLOOR = 1e-6  # of the largest eigenvalue, as Kaldi's --covariance-floor


def class_statistics(
    vectors: Float64, classes: npt.NDArray[np.int64]
) -> tuple[Float64, Float64, Float64]:
    """Class means (S, D), class sizes (S,) and the scatter around the means (D, D).

    vectors: (N, D); classes: (N,) from 0 to S - 1, each with at least one vector.
    """
    counts = np.bincount(classes).astype(np.float64)
    sums = np.zeros((len(counts), vectors.shape[1]))
    np.add.at(sums, classes, vectors)
    means = sums / counts[:, None]
    deviations = vectors - means[classes]
    return means, counts, deviations.T @ deviations


def whitening(covariance: Float64, floor: float = COVARIANCE_FLOOR) -> Float64:
    """Whitening T (D, D), T C T' = I; eigenvalues below `floor` times the largest are raised.

    ZeroDivisionError where nothing varies.
    """
    values, vectors = np.linalg.eigh(covariance)
    if not values[-1] > 0:
        raise ZeroDivisionError("all x-vectors of each speaker are equal")
    values = np.maximum(values, floor * values[-1])
    return (vectors / np.sqrt(values)).T


def clamp_dimension(wanted: int, n_features: int, n_speakers: int, n_vectors: int) -> int:
    """Largest dimension up to `wanted` that the data support; warns when it is smaller.

    Between speakers there are S - 1 directions, and within them N - S degrees of freedom.
    """
    possible = min(wanted, n_features, n_speakers - 1, n_vectors - n_speakers)
    if possible < wanted:
        logging.warning(
            f"LDA: {possible} dimensions instead of {wanted} (vectors of {n_features}, "
            f"{n_speakers} speakers, {n_vectors} x-vectors)"
        )
    return possible


def train_lda(vectors: Float64, classes: npt.NDArray[np.int64], dim: int) -> Float64:
    """Transform (dim, D): within-class covariance I, most spread between classes first.

    vectors: (N, D), centred.
    """
    _, _, scatter = class_statistics(vectors, classes)
    within = scatter / len(vectors)
    total = vectors.T @ vectors / len(vectors)
    white = whitening(within)
    values, directions = np.linalg.eigh(white @ (total - within) @ white.T)
    order = np.argsort(-values, kind="stable")[:dim]
    return directions[:, order].T @ white


# ---- Two-covariance PLDA as Kaldi's (plda.cc; Ioffe 2006): training, scores, and its file.
#
# A vector is x = m + A (y + e), y ~ N(0, Psi) the same for all of a speaker's vectors, e ~ N(0, I)
# new for each, Psi diagonal. `transform` is the inverse of A, so that u = transform (x - m).

N_ITERATIONS = 10  # Kaldi's --num-em-iters
_PLDA_TEXT = re.compile(rb"<Plda>" + 3 * rb"\s*\[([^\[\]]*)\]" + rb"\s*</Plda>")


@dataclass(frozen=True)
class Plda:
    """mean: (d,); transform: (d, d); psi: (d,) between-speaker variances, largest first. scaled:
    whether vectors get one length; without it this is a Gaussian of people and of their recordings,
    for few values that are lengths or levels, not directions."""

    mean: Float64
    transform: Float64
    psi: Float64
    scaled: bool = True

    def project(self, vectors: Float64, counts: Float64) -> Float64:
        """Project to u (n, d), if `scaled` to the mean length of a mean of `counts` (n,) vectors.

        As Kaldi's TransformIvector with --normalize-length=true: the sum over the dimensions of
        u^2 / (psi + 1/n) becomes d.
        """
        u = (vectors - self.mean) @ self.transform.T
        if not self.scaled:
            return u
        expected = self.psi + 1.0 / counts[:, None]
        return u * np.sqrt(u.shape[1] / np.sum(u**2 / expected, axis=1, keepdims=True))

    def left(self, vectors: Float64, counts: Float64, kinds: Float64 | None = None) -> Float64:
        """(n, k) of means of `counts` vectors; left @ right.T are log-likelihood ratios."""
        return enrolment_terms(self.psi, self.project(vectors, counts), counts, kinds)

    def right(self, vectors: Float64, kinds: Float64 | None = None) -> Float64:
        """(n, k) of single vectors, see `left`."""
        return trial_terms(self.psi, self.project(vectors, np.ones(len(vectors))), kinds)


def enrolment_terms(
    psi: Float64, u: Float64, counts: Float64, kinds: Float64 | None = None
) -> Float64:
    """Coefficients (n, 2d + 1) of the log-likelihood ratio as a quadratic function of the trial v.

    After n vectors of mean u (n, d) the speaker's next is N(m, V), m = n psi u / (n psi + 1) and
    V = 1 + psi / (n psi + 1); a stranger's is N(0, 1 + psi). The coefficients of v, v^2 and 1 in
    log N(v; m, V) - log N(v; 0, 1 + psi) stand side by side; `trial_terms` has v, v^2 and 1.

    kinds: the K values that counts take. The coefficients of v^2 depend on the count alone, so that
    sum over the dimensions is one number for each trial and count, which `trial_terms` has; here a
    1 picks that of the count, and a row has d + 1 + K numbers.
    """
    n = counts[:, None]
    mean = n * psi / (n * psi + 1) * u
    variance = 1 + psi / (n * psi + 1)
    stranger = 1 + psi
    constant = -0.5 * np.sum(np.log(variance / stranger) + mean**2 / variance, axis=1)
    square = -0.5 * (1 / variance - 1 / stranger)
    if kinds is not None:
        return np.hstack([mean / variance, constant[:, None], counts[:, None] == kinds])
    return np.hstack([mean / variance, square, constant[:, None]])


def trial_terms(psi: Float64, v: Float64, kinds: Float64 | None = None) -> Float64:
    """Terms (n, 2d + 1) v, v^2 and 1, or (n, d + 1 + K), see `enrolment_terms`. v: (n, d)."""
    one = np.ones((len(v), 1))
    if kinds is None:
        return np.hstack([v, v**2, one])
    square = enrolment_terms(psi, np.zeros((len(kinds), len(psi))), kinds)[:, len(psi) : -1]
    return np.hstack([v, one, v**2 @ square.T])


def train_plda(
    vectors: Float64, classes: npt.NDArray[np.int64], n_iterations: int = N_ITERATIONS
) -> Plda:
    """Train by expectation-maximisation from unit covariances, as Kaldi's PldaEstimator.

    vectors: (N, d); classes: (N,) from 0 to S - 1. Every speaker counts once in the mean and in
    the between-speaker covariance, however many vectors it has.
    """
    means, counts, scatter = class_statistics(vectors, classes)
    mean = means.mean(axis=0)
    deviations = means - mean
    within = between = np.eye(vectors.shape[1])
    for _ in range(n_iterations):
        within, between = _iterate(within, between, deviations, counts, scatter)
    return _diagonalise(mean, within, between)


def _iterate(
    within: Float64, between: Float64, deviations: Float64, counts: Float64, scatter: Float64
) -> tuple[Float64, Float64]:
    """Take one step: the new (within, between) from the posterior of each speaker's y."""
    n_speakers = len(counts)
    within_inverse, between_inverse = np.linalg.inv(within), np.linalg.inv(between)
    within_sum, between_sum = scatter.copy(), np.zeros_like(scatter)
    for n in np.unique(counts):  # the posterior covariance depends on n only
        m = deviations[counts == n]
        covariance = np.linalg.inv(between_inverse + n * within_inverse)
        y = m @ (n * within_inverse) @ covariance
        between_sum += len(m) * covariance + y.T @ y
        within_sum += n * (len(m) * covariance + (m - y).T @ (m - y))
    # Degrees of freedom: N - S of the scatter, S of the class means.
    return within_sum / counts.sum(), between_sum / n_speakers


def _diagonalise(mean: Float64, within: Float64, between: Float64) -> Plda:
    """Whiten the within-speaker covariance and rotate the between-speaker one to a diagonal."""
    white = np.linalg.inv(np.linalg.cholesky(within))
    psi, rotation = np.linalg.eigh(white @ between @ white.T)
    order = np.argsort(-psi, kind="stable")
    return Plda(mean, rotation[:, order].T @ white, np.maximum(psi[order], 0.0))


def write_plda(path: StrPath, plda: Plda) -> None:
    """Write Kaldi's binary object (doubles), atomically."""
    with atomic_write(path, "wb") as stream:
        stream.write(b"\0B<Plda> ")
        for array in (plda.mean, plda.transform, plda.psi):
            part = BytesIO()
            write_array(part, np.ascontiguousarray(array, np.float64))
            stream.write(part.getvalue()[2:])  # without the mark of a binary file
        stream.write(b"</Plda> ")


def read_plda(path: StrPath) -> Plda:
    """Read Kaldi's object, binary (single or double) or text; UserError for anything else."""
    data = read_bytes(path)
    try:
        mean, transform, psi = (_parse_binary if data.startswith(b"\0B") else _parse_text)(data)
        plda = Plda(mean, transform, psi)
        d = len(plda.mean)
        if plda.transform.shape != (d, d) or plda.psi.shape != (d,) or d == 0:
            raise ValueError("sizes do not agree")
    except (ValueError, AssertionError, struct.error, OverflowError, TypeError) as error:
        why = str(error) or "an array is not whole"
        raise UserError(f"{path}: not a Kaldi PLDA object, or damaged ({why})") from error
    if not all(np.isfinite(a).all() for a in (plda.mean, plda.transform, plda.psi)):
        raise UserError(f"{path}: holds a value that is not a finite number; train it again")
    return plda


def _parse_binary(data: bytes) -> list[Float64]:
    begin, end = b"\0B<Plda> ", b"</Plda> "
    if not (data.startswith(begin) and data.endswith(end)):
        raise ValueError("no <Plda> ... </Plda>")
    rest, arrays = data[len(begin) : -len(end)], []
    for _ in range(3):
        array, size = read_matrix_or_vector(BytesIO(b"\0B" + rest), return_size=True)
        arrays.append(array.astype(np.float64))
        if not 2 < size <= len(rest) + 2:
            raise ValueError("an array is cut off")
        rest = rest[size - 2 :]
    if rest:
        raise ValueError("something stands after the third array")
    return arrays


def _parse_text(data: bytes) -> list[Float64]:
    found = _PLDA_TEXT.fullmatch(data.strip())
    if not found:
        raise ValueError("<Plda>, three arrays in brackets and </Plda> are expected")
    mean, rows, psi = found.groups()
    transform = [[float(x) for x in row.split()] for row in rows.splitlines() if row.strip()]
    return [np.array(part, np.float64) for part in (mean.split(), transform, psi.split())]
