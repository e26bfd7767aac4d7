# SPDX-License-Identifier: Apache-2.0
"""A system that others publish through torch.hub, so that it can stand beside ours.

Its repository's own code runs here, with all rights of who runs it: so the revision is pinned, and
the licence must be named. Not tested against a published repository: that needs a network.
"""

import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from steps.anonymisers.loudness import AsItIs
from steps.anonymisers.registry import Description
from steps.audio import SAMPLE_RATE
from steps.keys import Key
from steps.sources import Run, Source
from utils.arrays import Float64
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.settings import Declared, parse_settings
from utils.tables import StrPath

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Settings:
    """repository: owner/name on GitHub, or a folder with a hubconf.py. revision: the commit, 40 hex
    digits (of a folder none). entry: of hubconf.py; arguments: given to it. method: of what it
    makes, called with a waveform (1, n); empty: the object itself. rate: Hz, of that waveform.
    licence: of the code and its weights. random: whether another draw gives other speech.
    """

    anonymiser: str
    repository: str
    entry: str
    licence: str
    revision: str = ""
    arguments: dict[str, object] = field(default_factory=dict)
    method: str = ""
    rate: int = SAMPLE_RATE
    random: bool = False

    def __post_init__(self) -> None:
        if not self.licence:
            raise ValueError("licence: none is named; foreign code is run only with one")
        if not Path(self.repository).is_dir() and not _COMMIT.fullmatch(self.revision):
            raise ValueError(
                f"revision: {self.revision!r}; the commit is expected, 40 hex digits, so that "
                "nothing else is run another day"
            )


class TorchHub(Declared[Settings]):
    """One configured system; see `registry.Anonymiser`."""

    kind = Settings
    level, output = "utt", AsItIs()

    def __init__(self, settings: Settings, run: Run) -> None:
        self._settings, self._seed, self._draw = settings, run.seed, run.draw
        self.is_random: bool | None = settings.random
        self._speak = _load(settings, run.path)
        self.notes = [
            f"The code of {settings.repository} {settings.revision} was run (licence: "
            f"{settings.licence})."
        ]

    @classmethod
    def parse(cls, values: object, path: StrPath) -> Settings:
        """Checked settings; what is in `arguments` is for the entry to check."""
        given = dict(values) if isinstance(values, dict) else {}
        arguments = given.pop("arguments", {})
        if not isinstance(arguments, dict):
            raise UserError(f"{path}: arguments: {arguments!r}; names with values are expected")
        return replace(parse_settings(Settings, given, path), arguments=arguments)

    @classmethod
    def make(cls, settings: Settings, run: Run) -> Self:
        """Fetches the repository where it is not there yet."""
        return cls(settings, run)

    @classmethod
    def describe(cls, settings: Settings, path: StrPath) -> Description:  # noqa: ARG003
        """It needs nothing but the speech."""
        return Description("utt", (), ("utt",))

    def settings(self) -> dict[str, object]:
        """All settings, defaults included."""
        return asdict(self._settings)

    def transform(
        self,
        wave: Float64,
        key: Key,
        source: Source,  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """Whatever its method returns for the waveform. UserError for what is no waveform."""
        import torch

        seed = derive_seed(self._seed, "torch_hub", f"draw {self._draw}", *key.names)
        torch.manual_seed(seed % 2**63)
        given = torch.from_numpy(_resample(wave, SAMPLE_RATE, self._settings.rate)).float()
        with torch.inference_mode():
            made = self._speak(given[None])
        samples = np.asarray(torch.as_tensor(made).detach().cpu(), np.float64).squeeze()
        if samples.ndim != 1 or not np.isfinite(samples).all():
            raise UserError(
                f"{key.names[-1]}: {self._settings.repository}: {self._settings.entry} made an "
                f"array of shape {samples.shape}, no waveform of finite numbers"
            )
        return _resample(samples, self._settings.rate, SAMPLE_RATE), {}


def _resample(wave: Float64, rate: int, wanted: int) -> Float64:
    if rate == wanted:
        return wave
    from scipy.signal import resample_poly

    divisor = int(np.gcd(rate, wanted))
    return np.asarray(resample_poly(wave, wanted // divisor, rate // divisor), np.float64)


def _load(settings: Settings, path: StrPath) -> Any:
    """The function of the repository; UserError where it cannot be fetched or has none such."""
    from torch import hub

    load: Any = hub.load  # it has no types
    local = Path(settings.repository).is_dir()
    name = settings.repository if local else f"{settings.repository}:{settings.revision}"
    try:
        made = load(
            name, settings.entry, source="local" if local else "github", trust_repo=True,
            **settings.arguments,
        )  # fmt: skip
        return getattr(made, settings.method) if settings.method else made
    except Exception as error:  # foreign code may raise anything
        text = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: torch.hub: {name} {settings.entry}: {type(error).__name__}: {text}"
        ) from error
