"""Identity leakage in embedding space: alignment of spaces, and searches in galleries."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from local.metrics.intervals import (
    Figures,
    Report,
    bootstrap,
    but,
    key,
    number_names,
    warn_undefined,
)
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.datadir import describe_difference
from utils.seeds import make_rng
from utils.tables import StrPath, sort_ids

logger = logging.getLogger(__name__)

# ---- Results of a search of protected segments among original ones, speaker by speaker.

RANKS = (1, 5, 10, 20, 50)  # of cmc_<k>; auc_cmc averages up to the last
FOUND = (*(f"cmc_{k}" for k in RANKS), "auc_cmc", "mean_rank", "mean_rank_all_mates")


@dataclass(frozen=True, eq=False)
class Search:
    """Rank at which each query finds each speaker in the gallery; S speakers.

    best: (n_queries, S) 1 + the number of other people's segments that are as near as the nearest
    one of the speaker or nearer; inf for a speaker without segments. own: (n_queries,) the query's
    speaker; mates: (n_queries,) segments of it in the gallery; mate_ranks: (n_queries,) sum of
    their ranks in the whole gallery, ties at mid-rank; gallery: (n_queries,) segments in it.
    """

    best: Float64
    own: Int64
    mates: Int64
    mate_ranks: Float64
    gallery: Int64


# ---- Permutation tests of a search against chance (identity leakage; Seo et al. 2025, 3.6).
#
# The null hypothesis is that of the clustered chance level: the gallery's clusters stay as they
# are, and the names under which the speakers' protected segments are searched are permuted. Several
# systems are tested side by side, so their p values are corrected (Holm 1979).

_PERMUTATIONS = 9999
TESTED = FOUND[:-1]
_PERMUTED_AT_ONCE = 500
_ROUNDING = 1e-9  # of sums over queries: a smaller difference is a tie, and counts for chance


def permutation_tests(found: Search, n_permutations: int = _PERMUTATIONS, seed: int = 0) -> Figures:
    """P values `p_value_<figure>`: for cmc_<k> and auc_cmc (higher leaks more), mean_rank (lower).

    p = (1 + permutations that leak as much or more) / (1 + permutations), so never 0. The same seed
    gives the same permutations whatever the order of the files. NaN without a query that has a
    mate, or with one speaker, for whom there is nothing to permute.
    """
    names = [key(name, kind="p") for name in TESTED]
    queries = found.mates > 0
    if len(np.unique(found.own[queries])) < 2:
        logger.warning("p_value_* is undefined: a test needs queries of two speakers or more")
        return dict.fromkeys(names, math.nan)
    total = leakage_sums(found)
    places = np.arange(total.shape[1])
    observed = total[:, places, places].sum(axis=1)
    rng = make_rng(seed, "permutation test of speakers")
    as_much, left = np.zeros(len(total)), n_permutations
    while left > 0:
        size = min(left, _PERMUTED_AT_ONCE)
        order = rng.permuted(np.tile(places, (size, 1)), axis=1)
        drawn = np.stack([one[places, order].sum(axis=1) for one in total])
        as_much += (drawn >= observed[:, None] - _ROUNDING).sum(axis=1)
        left -= size
    p = (1.0 + as_much) / (1.0 + n_permutations)
    return dict(zip(names, p.tolist(), strict=True))


def leakage_sums(found: Search) -> Float64:
    """Figures (TESTED, S, S) of the queries of speaker s under the name of speaker t.

    Sums over queries, mean_rank with its sign turned so that more is more leakage in all.
    """
    queries = found.mates > 0
    who, own = np.unique(found.own[queries], return_inverse=True)
    best = found.best[queries][:, who]
    top = int(min(RANKS[-1], found.gallery.min()))
    hits = [(best <= k).astype(np.float64) for k in RANKS]
    under_curve = np.maximum(top + 1 - best, 0.0) / top  # ranks 1..top at which it is a hit
    parts = [*hits, under_curve, -best]
    sums = np.zeros((len(parts), len(who), len(who)))
    for place, part in enumerate(parts):
        np.add.at(sums[place], own, part)
    return sums


# ---- Similarity of two embedding spaces: canonical correlation and Procrustes alignment.
#
# Source: Seo et al. 2025, section 3.6.2 and Table 8. Both fit a map on the very pairs they report
# on, so both rise with the number of dimensions and fall with the number of rows even where nothing
# is shared: read them beside their chance level (the same rows, paired at random).

N_CORRELATIONS = 10
N_PERMUTATIONS = 5
N_FOLDS = 5  # of the speakers, for held-out figures
_LEAST_PULL = 1e-9  # of a map that nothing determines towards the identity, as a share of the rows


def alignment(x: Float64, y: Float64, speaker: Int64 | None = None) -> Report:
    """Figures cca_top10, p_cos, p_mse, what held-out people have of the first two, and the chance
    levels of all, for n paired rows.

    x, y: (n, D), no zero rows. speaker: (n,) of the rows, for held-out figures; None: every row is
    another person. Undefined figures are NaN, with a warning.
    """
    names = ("cca_top10", "cca_top10_held_out", "p_cos", "p_mse", "p_cos_held_out")
    undefined = dict.fromkeys((*names, *(key(name, kind="chance") for name in names)), math.nan)
    report: Report = {"n_paired": len(x), **undefined}
    if len(x) == 0:
        logger.warning("cca_top10, p_cos and p_mse are undefined: no utterance is in both sets")
        return report
    who = np.arange(len(x)) if speaker is None else speaker
    rng = make_rng(0, "chance pairing of x-vectors")
    permutations = [rng.permutation(len(x)) for _ in range(N_PERMUTATIONS)]
    u, v, xn, yn = basis(x), basis(y), unit(x), unit(y)
    measures: dict[str, Callable[[Int64 | slice], float]] = {  # of these rows of y
        "cca_top10": lambda rows: cca_top10(u, v[rows]),
        "cca_top10_held_out": lambda rows: held_out_correlation(x, y[rows], who),
        "p_cos": lambda rows: procrustes_cosine(xn, yn[rows]),
        "p_cos_held_out": lambda rows: held_out_cosine(xn, yn[rows], who),
    }
    if not _check_ranks(u.shape[1], v.shape[1], len(x)):
        del measures["cca_top10"], measures["cca_top10_held_out"]
    if len(np.unique(who)) < 2:
        logger.warning("*_held_out is undefined: there is one speaker, and nobody to hold out")
        measures = {name: one for name, one in measures.items() if "held_out" not in name}
    elif "cca_top10" in measures:
        least = len(x) - max(int(held.sum()) for held in _folds(who))
        # Else correlations of the others are 1 by construction, and their directions arbitrary.
        if u.shape[1] + v.shape[1] >= least:
            logger.warning(
                f"cca_top10_held_out is undefined: {least} segments of the others are too few for "
                f"{u.shape[1]} and {v.shape[1]} dimensions"
            )
            del measures["cca_top10_held_out"]
    found = {name: measure(slice(None)) for name, measure in measures.items()}
    for name, measure in measures.items():
        found[f"chance_{name}"] = float(np.mean([measure(rows) for rows in permutations]))
    warn_undefined(found, "no fifth of the speakers has two segments that differ")
    for kind in ("", "chance_"):  # of unit rows, mean of elements
        found[f"{kind}p_mse"] = 2.0 * (1.0 - found[f"{kind}p_cos"]) / x.shape[1]
    return report | found


def basis(x: Float64) -> Float64:
    """Orthonormal basis of the centred columns, (n, rank), by SVD. x: (n, D).

    Directions below the rounding error of the uncentred data do not count.
    """
    return _decompose(x)[0]


def _decompose(x: Float64) -> tuple[Float64, Float64]:
    """`basis` of x, and what makes it of centred rows: (n, rank), (D, rank)."""
    left, size, right = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    kept = size > max(x.shape) * np.finfo(np.float64).eps * np.linalg.norm(x)
    made = right[kept].T / size[kept]
    return np.asarray(left[:, kept], np.float64), np.asarray(made, np.float64)


def cca_top10(u: Float64, v: Float64) -> float:
    """Mean of the ten largest canonical correlations. u, v: `basis` of either side, (n, rank)."""
    correlations = np.linalg.svd(u.T @ v, compute_uv=False)
    return float(np.minimum(correlations[:N_CORRELATIONS], 1.0).mean())


def canonical_directions(x: Float64, y: Float64) -> tuple[Float64, Float64]:
    """The directions of the ten largest canonical correlations, (D, 10) of either side.

    x, y: (n, D) paired rows.
    """
    (u, of_x), (v, of_y) = _decompose(x), _decompose(y)
    left, _, right = np.linalg.svd(u.T @ v, full_matrices=False)
    return of_x @ left[:, :N_CORRELATIONS], of_y @ right[:N_CORRELATIONS].T


def held_out_correlation(x: Float64, y: Float64, speaker: Int64) -> float:
    """Mean correlation of rows along the canonical directions of other speakers' rows.

    x, y: (n, D); speaker: (n,), two speakers or more. Mean over `_folds`, and in each over ten
    directions but those in which a side does not vary. NaN where that is all.
    """
    found = []
    for held in _folds(speaker):
        first, second = canonical_directions(x[~held], y[~held])
        a, b = (side - side.mean(axis=0) for side in (x[held] @ first, y[held] @ second))
        size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
        if (size > 0).any():
            found.append(np.mean((a * b).sum(axis=0)[size > 0] / size[size > 0]))
    return float(np.mean(found)) if found else math.nan


def _folds(speaker: Int64) -> list[npt.NDArray[np.bool_]]:
    """Who is held out, (n,) each: speakers are dealt in their order, to N_FOLDS at most."""
    _, place = np.unique(speaker, return_inverse=True)
    fold = place % N_FOLDS
    return [fold == number for number in np.unique(fold)]


def procrustes_cosine(x: Float64, y: Float64) -> float:
    """Mean cosine of rows after the best orthogonal map of x onto y, reflections included.

    x, y: (n, D) unit rows. The map is UVᵀ of the SVD of xᵀy, and the sum of the cosines after it
    is the sum of the singular values.
    """
    return float(np.linalg.svd(x.T @ y, compute_uv=False).sum() / len(x))


def held_out_cosine(x: Float64, y: Float64, speaker: Int64) -> float:
    """Mean cosine of rows after the orthogonal map that fits other speakers' rows best.

    x, y: (n, D) unit rows; speaker: (n,), two speakers or more. The map for a fold's rows comes
    from all other folds (`_folds`). Directions that these do not span stay where they are, as far
    as they can: else the map, and the cosine, would hang on the order of the dimensions.
    """
    total, least = 0.0, _LEAST_PULL * len(x) * np.eye(x.shape[1])
    for held in _folds(speaker):
        left, _, right = np.linalg.svd(x[~held].T @ y[~held] + least)
        total += float(np.vecdot(x[held] @ (left @ right), y[held]).sum())
    return total / len(x)


def _check_ranks(rank_x: int, rank_y: int, n: int) -> bool:
    """Warn where canonical correlation has little meaning; False where it has none."""
    least = min(rank_x, rank_y)
    if least == 0:
        logger.warning("cca_top10* is undefined: the x-vectors of one side are all equal")
        return False
    if least < N_CORRELATIONS:
        logger.warning("cca_top10 is over %d correlations: there are no more", least)
    # Subspaces of an (n - 1)-dimensional space share as many dimensions as theirs exceed its.
    if rank_x + rank_y - (n - 1) >= min(N_CORRELATIONS, least):
        logger.warning(
            f"cca_top10 is 1 by construction: {n} paired segments are too few for {rank_x} and "
            f"{rank_y} dimensions"
        )
    return True


# ---- Identity leakage in embedding space: rank search, canonical correlation, Procrustes
# alignment.
#
# Source: Seo et al. 2025, section 3.6. A query is a protected segment, the gallery all original
# segments, both as x-vectors; similarity is the cosine. The paper leaves definitions open; those
# here reproduce its tables where these are consistent (docs/metrics: cmc, mean_rank, chance).

_DECIMALS = 12  # of cosines: a smaller difference is a tie (x-vectors have seven digits)
_QUERIES_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Embeddings:
    """X-vectors of segments. ids: (n,) in C order; x: (n, D); speaker: (n,) positions in names."""

    ids: list[str]
    x: Float64
    speaker: Int64
    names: list[str]


Vectors = Mapping[str, np.ndarray[tuple[int], np.dtype[np.float32]]]


def directed(vectors: Vectors, path: StrPath) -> Vectors:
    """X-vectors without those that are zero, as the timing of an utterance without phones, which
    have no direction; a warning counts these. UserError where that is all."""
    found = {key: vector for key, vector in vectors.items() if vector.any()}
    if vectors and not found:
        raise UserError(f"{path}: all x-vectors are zero, which have no direction; make them again")
    if zero := [key for key in vectors if key not in found]:
        logger.warning(
            "%s: %d of %d x-vectors are zero, such as %s: nothing to compare; left out",
            *(path, len(zero), len(vectors), zero[0]),
        )
    return found


def embeddings(
    vectors: Vectors,
    utt2spk: Mapping[str, str],
    *,
    path: StrPath,
    utt2spk_path: StrPath,
) -> Embeddings:
    """X-vectors with their speakers; UserError names a key without speaker."""
    vectors = directed(vectors, path)
    ids = sort_ids(vectors)
    if not ids:
        raise UserError(f"{path}:1: no x-vectors")
    if missing := [utt for utt in ids if utt not in utt2spk]:
        raise UserError(f"{path}: {missing[0]} is not in {utt2spk_path}")
    names, speaker = number_names(utt2spk[key] for key in ids)
    x = np.stack([vectors[key] for key in ids]).astype(np.float64)
    return Embeddings(ids, x, speaker, names)


def unit(x: Float64) -> Float64:
    """Scale rows to length 1."""
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), np.float64)


def search(original: Embeddings, protected: Embeddings, *, same_utt: bool) -> Search:
    """Search every protected segment among the originals (with its own source, or without).

    Both sides have the same list of names for their speakers; (n, D) with the same D.
    """
    order = np.argsort(original.speaker, kind="stable")  # a speaker's segments side by side
    gallery, speaker = unit(original.x)[order], original.speaker[order]
    # Equal vectors must have equal cosines to the last bit, which matrix products do not promise.
    distinct, copy = np.unique(gallery, axis=0, return_inverse=True)
    column = {original.ids[row]: j for j, row in enumerate(order.tolist())}
    source = np.array([column.get(key, -1) for key in protected.ids])
    queries, parts = unit(protected.x), []
    for at in range(0, len(queries), _QUERIES_AT_ONCE):
        here = slice(at, at + _QUERIES_AT_ONCE)
        cosine = np.round(queries[here] @ distinct.T, _DECIMALS)[:, copy.ravel()]
        if not same_utt:
            rows = np.flatnonzero(source[here] >= 0)
            cosine[rows, source[here][rows]] = -np.inf
        parts.append(_ranks(cosine, speaker, protected.speaker[here], len(original.names)))
    best, mates, mate_ranks = (np.concatenate(part) for part in zip(*parts, strict=True))
    left_out = np.zeros(len(source), np.int64) if same_utt else (source >= 0).astype(np.int64)
    return Search(best, protected.speaker, mates, mate_ranks, len(gallery) - left_out)


def _ranks(
    cosine: Float64, speaker: Int64, own: Int64, n_speakers: int
) -> tuple[Float64, Int64, Float64]:
    """Find `best`, `mates` and `mate_ranks` of some queries. cosine: (q, gallery), -inf for
    excluded segments; speaker: (gallery,) ascending; own: (q,)."""
    start = np.flatnonzero(np.concatenate(([True], speaker[1:] != speaker[:-1])))
    column = np.repeat(np.arange(len(start)), np.diff(start, append=len(speaker)))
    nearest = np.maximum.reduceat(cosine, start, axis=1)
    tied = np.add.reduceat(cosine == nearest[:, column], start, axis=1)
    ordered = np.sort(cosine, axis=1)
    size = cosine.shape[1]
    best = np.full((len(cosine), n_speakers), np.inf)
    mates, mate_ranks = np.zeros(len(cosine), np.int64), np.zeros(len(cosine))
    end = np.append(start[1:], size)
    place = {int(speaker[s]): i for i, s in enumerate(start)}
    for q, row in enumerate(ordered):
        as_near = size - np.searchsorted(row, nearest[q])
        best[q, speaker[start]] = np.where(np.isfinite(nearest[q]), 1 + as_near - tied[q], np.inf)
        i = place[int(own[q])]
        mine = cosine[q, start[i] : end[i]]
        mine = mine[np.isfinite(mine)]
        nearer = size - np.searchsorted(row, mine, side="right")
        mates[q] = len(mine)
        mate_ranks[q] = (0.5 * (nearer + 1 + size - np.searchsorted(row, mine))).sum()
    return best, mates, mate_ranks


def rank_figures(found: Search, drawn: Float64 | None = None) -> Figures | None:
    """Figures cmc_<k>, auc_cmc, mean_rank, mean_rank_all_mates; None if no query has a mate.

    drawn: (S,) how often a resample holds each speaker (its queries; the gallery stays).
    """
    weight = (found.mates > 0).astype(np.float64)
    if drawn is not None:
        weight *= drawn[found.own]
    if not weight.any():
        return None
    rank = found.best[np.arange(len(found.own)), found.own]
    kept, total = weight > 0, weight.sum()
    figures = _cmc_figures(weight @ (rank[:, None] <= _ks()) / total, found)
    figures["mean_rank"] = float(weight[kept] @ rank[kept] / total)
    figures["mean_rank_all_mates"] = float(weight @ found.mate_ranks / (weight @ found.mates))
    return figures


def chance_figures(found: Search) -> Figures:
    """Both chance levels of the search figures, exact expectations instead of simulations.

    `chance_*` permutes the labels of the gallery: m mates fall anywhere among G segments, so
    P(none among the k nearest) = (G−m choose k)/(G choose k). `chance_clustered_*` permutes the
    identities of the queries' speakers and keeps the gallery's clusters: each query is looked for
    under the name of each of these speakers in turn.
    """
    queries = found.mates > 0
    m, size = found.mates[queries], found.gallery[queries]
    best = found.best[queries][:, np.unique(found.own[queries])]
    ranks = {
        "chance": {
            "mean_rank": float((1.0 + (size - m) / (m + 1.0)).mean()),
            "mean_rank_all_mates": float(m @ (0.5 * (size + 1.0)) / m.sum()),
        },
        "chance_clustered": {"mean_rank": float(best[np.isfinite(best)].mean())},
    }
    return {
        key(name, kind=kind): value
        for kind, cmc in chance_curves(found).items()
        for name, value in (_cmc_figures(cmc, found) | ranks[kind]).items()
    }


def chance_curves(found: Search) -> dict[str, Float64]:
    """Both chance levels of the CMC at ranks 1..50, (50,) each; see `chance_figures`."""
    queries = found.mates > 0
    m, size, i = found.mates[queries], found.gallery[queries], _ks() - 1
    others = np.maximum(size[:, None] - m[:, None] - i, 0) / np.maximum(size[:, None] - i, 1)
    best = found.best[queries][:, np.unique(found.own[queries])]
    return {
        "chance": np.asarray((1.0 - np.cumprod(others, axis=1)).mean(axis=0), np.float64),
        "chance_clustered": np.array([(best <= k).mean() for k in _ks()]),
    }


def curves(found: Search) -> dict[str, list[float]] | None:
    """Whole CMC at ranks 1..50 and its two chance levels; None without any mate to find."""
    queries = found.mates > 0
    if not queries.any():
        return None
    rank = found.best[np.arange(len(found.own)), found.own][queries]
    cmc = (rank[:, None] <= _ks()).mean(axis=0)
    every = {"cmc": np.asarray(cmc, np.float64), **chance_curves(found)}
    return {name: curve[: int(found.gallery.min())].tolist() for name, curve in every.items()}


def _ks() -> Int64:
    return np.arange(1, RANKS[-1] + 1)


def _cmc_figures(cmc: Float64, found: Search) -> Figures:
    """Figures cmc_<k>, and auc_cmc: their mean over ranks 1..min(50, gallery). cmc: (50,)."""
    figures = {f"cmc_{k}": float(cmc[k - 1]) for k in RANKS}
    figures["auc_cmc"] = float(cmc[: int(min(RANKS[-1], found.gallery.min()))].mean())
    return figures


def leakage(
    original: Embeddings, protected: Embeddings, *, n_bootstrap: int = 0, seed: int = 0
) -> Report:
    """All figures of two sets of x-vectors (keys of the JSON: docs/metrics).

    Every protected speaker must have original segments (see `check_same_space`).
    """
    asked = np.unique(protected.speaker)
    report: Report = {
        "n_queries": len(protected.ids),
        "n_gallery": len(original.ids),
        "n_speakers": len(asked),
        "n_segments": len(protected.ids),
        "n_dimensions": original.x.shape[1],
    }
    searches = {
        gallery: search(original, protected, same_utt=not gallery)
        for gallery in ("", "no_same_utt")
    }
    for gallery, found in searches.items():
        figures = _figures_or_undefined(found, gallery, protected)
        figures |= permutation_tests(found, seed=seed)
        report |= {but(name, gallery=gallery): value for name, value in figures.items()}
    report |= alignment(*_paired(original, protected))
    report["cmc_curve"] = curves(searches[""])

    def evaluate(drawn: Float64) -> Figures:  # drawn: whose queries; the gallery is fixed
        resampled: Figures = {}
        weight = np.zeros(len(original.names))
        weight[asked] = drawn
        for gallery, found in searches.items():
            figures = rank_figures(found, weight) or dict.fromkeys(FOUND, math.nan)
            resampled |= {but(name, gallery=gallery): value for name, value in figures.items()}
        return resampled

    return report | bootstrap(evaluate, len(asked), n_bootstrap, seed)


def _figures_or_undefined(found: Search, gallery: str, protected: Embeddings) -> Figures:
    suffix = f"_{gallery}" if gallery else ""
    alone = found.mates == 0
    if alone.any():
        names = sort_ids({protected.names[i] for i in found.own[alone].tolist()})
        logger.warning(
            "%d queries have no segment of their own speaker to find and are left out of *%s: %s",
            *(int(alone.sum()), suffix, ", ".join(names)),
        )
    figures = rank_figures(found)
    if figures is not None:
        return figures | chance_figures(found)
    logger.warning("*%s is undefined: no query has a segment of its own speaker to find", suffix)
    kinds = ("value", "chance", "chance_clustered")
    return dict.fromkeys((key(name, kind=kind) for kind in kinds for name in FOUND), math.nan)


def check_same_space(
    original: Embeddings, protected: Embeddings, original_path: StrPath, protected_path: StrPath
) -> tuple[Embeddings, Embeddings]:
    """Give both sides one list of speakers; UserError for different sizes or a speaker without
    original segments."""
    dimensions = (original.x.shape[1], protected.x.shape[1])
    if dimensions[0] != dimensions[1]:
        raise UserError(
            f"{protected_path}: {protected.ids[0]} has {dimensions[1]} dimensions, but "
            f"{original.ids[0]} in {original_path} has {dimensions[0]}"
        )
    strangers = sort_ids(set(protected.names) - set(original.names))
    if strangers:
        raise UserError(
            f"{protected_path}: speaker {strangers[0]} has no segment in {original_path}"
            + (f" (nor have {len(strangers) - 1} more)" if len(strangers) > 1 else "")
        )
    _, place = number_names(protected.names, original.names)
    return original, Embeddings(
        protected.ids, protected.x, place[protected.speaker], original.names
    )


def _paired(original: Embeddings, protected: Embeddings) -> tuple[Float64, Float64, Int64]:
    """Rows of the same utterance ids, (n_pairs, D) each, and their speakers (n_pairs,)."""
    row = {key: i for i, key in enumerate(original.ids)}
    pairs = [(row[key], i) for i, key in enumerate(protected.ids) if key in row]
    if difference := describe_difference(protected.ids, original.ids, "utterance"):
        logger.warning(
            f"protected x-vectors, compared with the original ones: {difference}; CCA and "
            f"Procrustes use the {len(pairs)} utterances of both"
        )
    at = np.array(pairs, np.int64).reshape(-1, 2)
    return original.x[at[:, 0]], protected.x[at[:, 1]], protected.speaker[at[:, 1]]
