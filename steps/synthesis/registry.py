"""Trained synthesisers, by name."""

from dataclasses import dataclass
from pathlib import Path

from steps.synthesis.base import Synthesiser
from utils.cli import UserError
from utils.registry import choose, load
from utils.settings import read_settings
from utils.tables import StrPath


@dataclass(frozen=True)
class Structure:
    """Entry of a synthesiser. synthesiser: a class with `load(folder)`, which may have options.
    config: its settings. train: makes a folder from settings, audio, and a pool. on_content: on a
    recogniser's content."""

    synthesiser: str
    config: str
    train: str
    on_content: bool = False


STRUCTURES = {
    "nsf": Structure(
        "steps.synthesis.trained:NsfSynthesiser",
        "steps.synthesis.trained:NsfConfig",
        "steps.synthesis.training:train_nsf",
    ),
    "b1b": Structure(
        "steps.synthesis.b1b:B1bSynthesiser",
        "steps.synthesis.b1b:B1bConfig",
        "steps.synthesis.training:train_b1b",
    ),
    "bn": Structure(
        "steps.synthesis.bottleneck:BnSynthesiser",
        "steps.synthesis.bottleneck:BnConfig",
        "steps.synthesis.bottleneck_training:train_bn",
        on_content=True,
    ),
    "bn_hifigan": Structure(
        "steps.synthesis.hifigan:HifiganSynthesiser",
        "steps.synthesis.hifigan:HifiganConfig",
        "steps.synthesis.hifigan:train_hifigan",
        on_content=True,
    ),
}


def find_structure(path: StrPath) -> Structure:
    """Entry of the `synthesiser` in a settings file; UserError for an unknown one."""
    return choose(STRUCTURES, read_settings(path).get("synthesiser"), path, "synthesiser")


def find_content_structure(path: StrPath) -> Structure:
    """Entry as from `find`; UserError for a synthesiser that is not on a recogniser's content."""
    structure = find_structure(path)
    if not structure.on_content:
        raise UserError(f"{path}: synthesiser: this one takes no content of a recogniser")
    return structure


def load_synthesiser(folder: StrPath, **options: object) -> Synthesiser:
    """Load the synthesiser of whatever structure synthesiser.yaml names; UserError for other
    folders.

    options: for that structure's `load`.
    """
    from steps.synthesis.trained import trained_files  # loads torch

    settings, _ = trained_files(Path(folder))
    kind = load(find_structure(settings).synthesiser)
    found: Synthesiser = kind.load(folder, **options)
    return found
