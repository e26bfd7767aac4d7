# SPDX-License-Identifier: Apache-2.0
"""A system that steps/export_system.py handed on, in a recipe: its own network and voices."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steps.anonymisers.registry import Anonymiser, Description, Kind, find_kind
from steps.sources import Resources
from utils.cli import UserError
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath

MODELS = Path(__file__).resolve().parents[2] / "models"
CONF = "system.yaml"
HELD = ("pool", "synthesiser", "generator")  # what the folder of a model may hold


@dataclass(frozen=True)
class Settings:
    """model: a folder in models/ by name, or a path. All other settings are its system's own."""

    anonymiser: str
    model: str


def held(folder: Path) -> dict[str, Path]:
    """What a model brings itself: a need (`sources.NEEDS`) -> its folder."""
    return {need: folder / need for need in HELD if (folder / need).is_dir()}


def _open(values: dict[str, object], path: StrPath, folder: Path) -> tuple[Kind, dict[str, object]]:
    """The kind and the settings of a model's system, changed by what a file says beside it."""
    conf = folder / CONF
    if not conf.is_file():
        known = ", ".join(sorted(p.name for p in MODELS.iterdir() if (p / CONF).is_file()))
        raise UserError(f"{path}: model: {conf} is missing; known models: {known}, or give a path")
    changed = {k: v for k, v in values.items() if k not in Settings.__annotations__}
    settings = {**read_settings(conf), **changed}
    if settings.get("anonymiser") == values["anonymiser"]:
        raise UserError(f"{conf}: anonymiser: model: a model cannot be another model")
    return find_kind(settings, conf), settings


class Model:
    """Makes the system of a model; see `registry.Kind`."""

    @classmethod
    def from_settings(
        cls,
        values: dict[str, object],
        path: StrPath,
        *,
        seed: int,
        draw: int,
        resources: Resources,
    ) -> Anonymiser:
        """With the network and the voices of the folder --model."""
        cls._name(values, path)
        folder = resources.folder("model", str(path))
        kind, settings = _open(values, path, folder)
        own: dict[str, Any] = held(folder)
        return kind.from_settings(
            settings, folder / CONF, seed=seed, draw=draw, resources=replace(resources, **own)
        )

    @classmethod
    def describe(cls, values: dict[str, object], path: StrPath) -> Description:
        """What its system needs beside what its folder holds."""
        name = cls._name(values, path)
        folder = MODELS / name
        kind, settings = _open(values, path, folder)
        found, own = kind.describe(settings, folder / CONF), held(folder)
        needs = (need for need in found.needs if need.split(":")[0] not in own)
        return replace(found, needs=(*needs, f"model:{name}"))

    @staticmethod
    def _name(values: dict[str, object], path: StrPath) -> str:
        known = {k: v for k, v in values.items() if k in Settings.__annotations__}
        return parse_settings(Settings, known, path).model
