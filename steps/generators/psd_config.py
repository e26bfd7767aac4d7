# SPDX-License-Identifier: Apache-2.0
"""Settings of PSD (steps/generators/distribution.py), without what trains its networks."""

from dataclasses import dataclass, field

from steps.generators.affinity import check_distance
from steps.generators.base import require
from steps.generators.clusters import ClusterSettings
from steps.generators.frames import UNCERTAINTIES
from utils.settings import check_sizes, parse_settings
from utils.tables import StrPath

METHODS = ("closed", "network")


@dataclass(frozen=True)
class NetworkSettings:
    """components: K. noise: values of a z. hidden: units. steps, batch (samples a step), rate."""

    steps: int = 300
    components: int = 8
    noise: int = 64
    hidden: int = 256
    batch: int = 64
    learning_rate: float = 1e-3


@dataclass(frozen=True)
class PsdSettings:
    """method: closed or network. scale: tau, of the deviations; 0 gives means, 1 the estimate.

    uncertainty: of frames, within, given or none. distance, clusters, exclude_closest_cluster,
    damping, max_iterations: of the cohort, as for `dense`; all members of the cluster count.
    """

    name: str
    method: str = "closed"
    scale: float = 1.0
    uncertainty: str = "within"
    distance: str = "plda"
    clusters: int = 10
    exclude_closest_cluster: bool = True
    damping: float = 0.5
    max_iterations: int = 1000
    network: NetworkSettings = field(default_factory=NetworkSettings)

    def cohort(self) -> ClusterSettings:
        """Of the generator that chooses the cohort."""
        return ClusterSettings(
            "dense",
            self.distance,
            self.clusters,
            1.0,
            self.exclude_closest_cluster,
            self.damping,
            self.max_iterations,
        )


def parse_psd(values: dict[str, object], path: StrPath) -> PsdSettings:
    """Of the mapping `generator` of the file `path`, checked; UserError names both."""
    settings = parse_settings(PsdSettings, values, path, "generator")
    check_distance(settings.distance, path)
    require(settings.method in METHODS, path, "method", settings.method, " or ".join(METHODS))
    known = ", ".join(UNCERTAINTIES)
    require(settings.uncertainty in UNCERTAINTIES, path, "uncertainty", settings.uncertainty, known)
    require(settings.scale >= 0, path, "scale", settings.scale, "0 or more")
    for name in ("clusters", "max_iterations"):
        require(getattr(settings, name) > 0, path, name, getattr(settings, name), "above 0")
    require(0.5 <= settings.damping < 1, path, "damping", settings.damping, "0.5 to below 1")
    check_sizes(settings.network, path, "generator.network")
    rate = settings.network.learning_rate
    require(rate > 0, path, "network.learning_rate", rate, "a number above 0")
    return settings
