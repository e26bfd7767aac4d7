#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Whether leakage in a search and alignment of the spaces order systems alike (Seo et al. 2025).

The paper's conclusion is that the two are decoupled. Kendall's tau between the orders: 1 where they
are the same, -1 where one is the other reversed, 0 where neither tells of the other. p: of how many
assignments of one order to the systems tau is as far from 0 (two-sided; with five systems 2/120 at
the least). OUT gets a row for each pair of figures, of the paper's tables and of the metrics.csv in
NIST, a folder of results of nist.sh. There the search counts above clustered chance, and once as
its distance from it, for a reversed leak is a leak; alignment counts above its chance.

  benchmarks/compare_orders.py NIST OUT.csv
"""

import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from benchmarks.measuring import show
from local.report.frame import read_figures
from local.report.studies import Searches
from local.report.tables import of_table

HEAD = ["figures of", "search", "alignment", "systems", "Kendall's tau", "p"]
SYSTEMS = ("knnvc", "voxlet_like", "rasp_like", "shadow_like", "phortress_like")
Orders = Sequence[tuple[Sequence[float], Sequence[float]]]  # by one evaluator each


def tau(orders: Orders, places: Sequence[int]) -> float:
    """Mean of Kendall's tau-b over evaluators, the second figure of system i being of places[i]."""
    return float(np.mean([kendalltau(a, [b[i] for i in places]).statistic for a, b in orders]))


def row(name: str, search: str, alignment: str, orders: Orders) -> list[str]:
    """A row of OUT; the same assignment for all evaluators."""
    n = len(orders[0][0])
    found = tau(orders, range(n))
    far = [abs(tau(orders, p)) >= abs(found) - 1e-9 for p in permutations(range(n))]
    return [
        name,
        search,
        alignment,
        str(n),
        f"{found:.2f}".replace("-", "−"),
        f"{np.mean(far):.3f}",
    ]


def printed() -> list[list[str]]:
    """Printed figures of Tables 6 to 8."""

    def of(table: str, metric: str) -> dict[str, float]:
        rows = of_table("003", table)
        rows = rows[(rows["metric"] == metric) & (rows["system"] != "Random")]
        return dict(zip(rows["system"], rows["number"], strict=True))

    searches = {"CMC@1": of("7", "cmc_1"), "AUC-CMC": of("6", "auc_cmc")}
    spaces = {"CCA top 10": of("8", "cca_top10"), "P-cosine": of("8", "p_cos")}
    return [
        row("Seo et al. 2025", s, a, [([left[k] for k in left], [right[k] for k in left])])
        for s, left in searches.items()
        for a, right in spaces.items()
    ]


def here(study: Searches) -> list[list[str]]:
    """Figures of the study, mean over profiles; the last rows take all evaluators together."""
    rows = []
    for what, either_way in (("AUC-CMC", False), ("AUC-CMC, either way", True)):
        found = {e: _figures(study, e, either_way) for e in study.evaluators}
        rows += [row(e, what, "P-cosine", [orders]) for e, orders in found.items()]
        rows.append(row("all three", what, "P-cosine", list(found.values())))
    return rows


def _figures(
    study: Searches, evaluator: str, either_way: bool
) -> tuple[Sequence[float], Sequence[float]]:
    searches, spaces = [], []
    for system in SYSTEMS:
        leak = [
            study.value(system, f"leakage_p{p}", evaluator, "auc_cmc").value
            - study.value(system, f"leakage_p{p}", evaluator, "chance_clustered_auc_cmc").value
            for p in study.profiles
        ]
        searches.append(float(np.mean(np.abs(leak) if either_way else leak)))
        above = [
            study.value(system, f"leakage_p{p}", evaluator, "above_p_cos").value
            for p in study.profiles
        ]
        spaces.append(float(np.mean(above)))
    return searches, spaces


def main() -> int:
    """Compute, print, write."""
    if len(sys.argv) != 3:
        sys.exit(f"{__doc__}")
    study = Searches(read_figures(Path(sys.argv[1], "metrics.csv")))
    rows = [HEAD, *printed(), *here(study)]
    show(Path(sys.argv[2]), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
