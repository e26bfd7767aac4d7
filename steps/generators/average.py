# SPDX-License-Identifier: Apache-2.0
"""Mean of the 100 speakers of the pool farthest from the source ("Average" of Liu et al. 2025).

Source: section II-A. Unlike `farthest` there is no random half: with the same x the pseudo-speaker
is the same for every key and seed. In a pool of a few hundred speakers the cohorts of different
sources overlap much, and the pseudo-speakers are much alike.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steps.generators.affinity import Distance
from steps.generators.pool import AffinityGenerator
from steps.keys import Key
from utils.arrays import Float64
from utils.bounds import Count


@dataclass(frozen=True)
class AverageSettings:
    """cohort: number of farthest speakers in the average. distance: cosine or plda."""

    name: str
    cohort: Count = 100
    distance: Distance = "cosine"


class AverageSpeakers(AffinityGenerator[AverageSettings]):
    """Unweighted mean of the cohort's raw x-vectors; see the module and `base.Generator`."""

    kind = AverageSettings

    @property
    def is_random(self) -> bool:
        """False: nothing is drawn."""
        return False

    def generate(
        self,
        key: Key,  # noqa: ARG002
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator. Of equally distant speakers the first in C order is taken."""
        left = self.candidates(target_gender, exclude)
        affinities = self._affinity.of_source(self.pool.check_source(x, f"generator {self.name}"))
        of = "" if target_gender is None else f" of gender {target_gender}"
        size = len(self.pool.group(target_gender))
        n = self.limit(
            "cohort", self._settings.cohort, len(left), size, f"speakers{of} in the pool"
        )
        chosen = np.sort(left[np.argsort(affinities[left], kind="stable")[:n]])
        return self.mean(chosen), {
            "speakers": self.ids(chosen),
            "averaged": n,
            "affinity_min": round(float(affinities[chosen].min()), 4),
            "affinity_max": round(float(affinities[chosen].max()), 4),
        }
