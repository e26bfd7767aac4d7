# SPDX-License-Identifier: Apache-2.0
"""The recognisers, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

from steps.asr.heard import Heard
from utils.arrays import Float64
from utils.cli import UserError
from utils.registry import find

RECOGNISERS = {
    "moonshine": "steps.asr.moonshine:Moonshine",
    "pocketsphinx": "steps.asr.sphinx:PocketSphinx",
    "ctc": "steps.asr.ctc:CtcRecogniser",
    "hub:<model>": "steps.asr.hub:OfHub",
}


class Recogniser(Protocol):
    """Says what was said. settings: all that its answers hang on, as JSON can hold it."""

    settings: Mapping[str, object]

    def recognise(self, utt: str, samples: Float64) -> str | Heard:
        """The words of a signal (n,) at 16 kHz; what was heard before must not matter."""


@dataclass(frozen=True)
class Asked:
    """What a recogniser may be told. lang: folder of make_lang.py. model: folder of what it hears
    with. language: such as de."""

    lang: Path | None = None
    model: Path | None = None
    language: str | None = None


class Kind(Protocol):
    """What makes a recogniser. takes: what of `Asked` it may be told, beside the device."""

    takes: tuple[str, ...]

    def make(self, *found: str, asked: Asked, device: str) -> Recogniser:
        """found: what stands for <...>; UserError for what does not go together."""


def make_recogniser(name: str, asked: Asked | None = None, device: str = "cpu") -> Recogniser:
    """The recogniser of a name. UserError where there is none, or it does not take what is asked;
    heavy packages are loaded only for the one that is."""
    kind, found = find(RECOGNISERS, name, "recogniser")
    asked = asked or Asked()
    for field in fields(Asked):
        if getattr(asked, field.name) is not None and field.name not in kind.takes:
            raise UserError(f"{name}: takes no --{field.name}; leave it out")
    recogniser: Recogniser = kind.make(*found, asked=asked, device=device)
    return recogniser
