# SPDX-License-Identifier: Apache-2.0
"""Results of a search of protected segments among original ones, speaker by speaker."""

from dataclasses import dataclass

from utils.arrays import Float64, Int64

RANKS = (1, 5, 10, 20, 50)  # of cmc_<k>; auc_cmc averages up to the last


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
