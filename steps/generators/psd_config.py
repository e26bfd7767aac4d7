# SPDX-License-Identifier: Apache-2.0
"""Settings of PSD (steps/generators/distribution.py), without its training code."""

from dataclasses import dataclass, field
from typing import Annotated

from steps.generators.affinity import Distance
from steps.generators.clusters import ClusterSettings, Damping
from steps.generators.frames import UNCERTAINTIES
from utils.bounds import Count, NotNegative, OneOf, Positive, Size

METHODS = ("closed", "network")


@dataclass(frozen=True)
class NetworkSettings:
    """components: K. noise: values of a z. hidden: units. steps, batch (samples a step), rate."""

    steps: Size = 300
    components: Size = 8
    noise: Size = 64
    hidden: Size = 256
    batch: Size = 64
    learning_rate: Positive = 1e-3


@dataclass(frozen=True)
class PsdSettings:
    """method: closed or network. scale: tau, on the deviations; 0 gives means, 1 the estimate.

    uncertainty: of frames, within, given or none. distance, clusters, exclude_closest_cluster,
    damping, max_iterations: of the cohort, as for `dense`; all members of the cluster count.
    """

    name: str
    method: Annotated[str, OneOf(*METHODS)] = "closed"
    scale: NotNegative = 1.0
    uncertainty: Annotated[str, OneOf(*UNCERTAINTIES)] = "within"
    distance: Distance = "plda"
    clusters: Count = 10
    exclude_closest_cluster: bool = True
    damping: Damping = 0.5
    max_iterations: Count = 1000
    network: NetworkSettings = field(default_factory=NetworkSettings)

    def cohort(self) -> ClusterSettings:
        """Settings of the generator that chooses the cohort."""
        return ClusterSettings(
            "dense",
            self.distance,
            self.clusters,
            1.0,
            self.exclude_closest_cluster,
            self.damping,
            self.max_iterations,
        )
