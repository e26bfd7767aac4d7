# SPDX-License-Identifier: Apache-2.0
"""Model from steps/export_system.py as a system in a recipe, with its own network and voices."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from steps.anonymisers.registry import Anonymiser, Description, System, find_kind
from steps.sources import Run
from steps.synthesis.base import STYLES
from utils.cli import UserError
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath

MODELS = Path(__file__).resolve().parents[2] / "models"
CONF = "system.yaml"
HELD = ("pool", "synthesiser", "generator")  # possible content of a model's folder


@dataclass(frozen=True)
class Settings:
    """model: a folder in models/ by name, or a path. All other settings are its system's own."""

    anonymiser: str
    model: str


def held(folder: Path) -> dict[str, Path]:
    """Folders that a model has itself: a need (`sources.NEEDS`) -> its folder."""
    return {need: folder / need for need in HELD if (folder / need).is_dir()}


def _open(
    values: dict[str, object], path: StrPath, folder: Path
) -> tuple[System, dict[str, object]]:
    """Kind and settings of a model's system, changed by settings that a file gives beside it."""
    conf = folder / CONF
    if not conf.is_file():
        known = ", ".join(sorted(p.name for p in MODELS.iterdir() if (p / CONF).is_file()))
        raise UserError(f"{path}: model: {conf} is missing; known models: {known}, or give a path")
    changed = {k: v for k, v in values.items() if k not in Settings.__annotations__}
    own = read_settings(conf)
    for name in STYLES.get(str(changed.get("style")), ()):
        own.pop(name, None)  # a style may set them
    settings = {**own, **changed}
    if settings.get("anonymiser") == values["anonymiser"]:
        raise UserError(f"{conf}: anonymiser: model: a model cannot be another model")
    return find_kind(settings, conf), settings


class Model:
    """Construction of the system of a model; see `sources.Kind`."""

    @classmethod
    def parse(cls, values: dict[str, object], path: StrPath) -> dict[str, object]:
        """Parse all settings; only the name of the model is checked."""
        known = {k: v for k, v in values.items() if k in Settings.__annotations__}
        return {**values, "model": parse_settings(Settings, known, path).model}

    @classmethod
    def make(cls, settings: dict[str, object], run: Run) -> Anonymiser:
        """Make with the network and the voices of the folder --model."""
        folder = run.folder("model")
        kind, own = _open(settings, run.path, folder)
        resources = replace(run.resources, **cast(dict[str, Any], held(folder)))
        made = replace(run, path=folder / CONF, resources=resources)
        return kind.make(kind.parse(own, made.path), made)

    @classmethod
    def describe(cls, settings: dict[str, object], path: StrPath) -> Description:
        """Needs of its system beside the content of its folder."""
        name = Path(str(settings["model"]))
        folder = name if len(name.parts) > 1 else MODELS / name  # the form in local/plan/needs.py
        kind, inner = _open(settings, path, folder)
        conf, own = folder / CONF, held(folder)
        found = kind.describe(kind.parse(inner, conf), conf)
        needs = (need for need in found.needs if need.split(":")[0] not in own)
        return replace(found, needs=(*needs, f"model:{settings['model']}"))
