# SPDX-License-Identifier: Apache-2.0
"""Recognisers, by name."""

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
    """Recogniser of words. settings: all on which its answers depend, as JSON can hold it."""

    settings: Mapping[str, object]

    def recognise(self, utt: str, samples: Float64) -> str | Heard:
        """Words of a signal (n,) at 16 kHz; earlier signals must not matter."""


@dataclass(frozen=True)
class Asked:
    """Options of a recogniser. lang: folder of make_lang.py. model: folder of its trained model.
    language: such as de."""

    lang: Path | None = None
    model: Path | None = None
    language: str | None = None


class Kind(Protocol):
    """Construction of a recogniser. takes: its allowed options of `Asked`, beside the device."""

    takes: tuple[str, ...]

    def make(self, *found: str, asked: Asked, device: str) -> Recogniser:
        """found: values for <...>; UserError for options that conflict."""


def make_recogniser(name: str, asked: Asked | None = None, device: str = "cpu") -> Recogniser:
    """Make the recogniser of a name. UserError for an unknown one, and for options that it does not
    take; heavy packages are loaded only for that one."""
    kind, found = find(RECOGNISERS, name, "recogniser")
    asked = asked or Asked()
    for field in fields(Asked):
        if getattr(asked, field.name) is not None and field.name not in kind.takes:
            raise UserError(f"{name}: takes no --{field.name}; leave it out")
    recogniser: Recogniser = kind.make(*found, asked=asked, device=device)
    return recogniser
