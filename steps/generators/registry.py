# SPDX-License-Identifier: Apache-2.0
"""Generators of pseudo-speakers by name, and their construction from the settings of a system."""

from typing import Any

from steps.generators.base import Generator
from steps.sources import Kind, Resources, Run
from utils.cli import UserError
from utils.registry import choose, load
from utils.tables import StrPath

Makes = Kind[Generator, tuple[str, ...]]

# Loaded on demand: some need packages that take seconds to load.
GENERATORS = {
    "random": "steps.generators.pool:RandomSpeakers",
    "farthest": "steps.generators.pool:RankedSpeakers",
    "nearest": "steps.generators.pool:RankedSpeakers",
    "dense": "steps.generators.clusters:ClusteredSpeakers",
    "sparse": "steps.generators.clusters:ClusteredSpeakers",
    "constant": "steps.generators.targets:ConstantTarget",
    "average": "steps.generators.average:AverageSpeakers",
    "psd": "steps.generators.distribution:PseudoSpeakerDistribution",
    "wgan": "steps.generators.wgan_speakers:WganSpeakers",
    "idmap_mlp": "steps.generators.idmap_speakers:IdMapGenerator",
    "idmap_diff": "steps.generators.idmap_speakers:IdMapGenerator",
}


def load_generator(
    values: object, path: StrPath, *, seed: int, draw: int, resources: Resources
) -> Generator:
    """Make the generator that the mapping `generator` of the file `path` describes; not fitted yet.

    draw: number of the independent run, from 0. UserError for an unknown name or setting, a value
    out of range, and a missing folder that is needed.
    """
    kind, settings = _find(values, path)
    return kind.make(settings, Run(path, resources, seed, draw))


def describe_generator(values: object, path: StrPath) -> tuple[str, ...]:
    """Needs beside the pool (of `sources.NEEDS`); errors as in `load_generator`."""
    kind, settings = _find(values, path)
    return kind.describe(settings, path)


def _find(values: object, path: StrPath) -> tuple[Makes, Any]:
    if not isinstance(values, dict):
        raise UserError(f"{path}: generator: settings are expected, one `name: value` a line")
    kind: Makes = load(choose(GENERATORS, values.get("name"), path, "generator.name"))
    return kind, kind.parse(values, path)
