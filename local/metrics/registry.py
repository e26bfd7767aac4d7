"""Measures and families of figures, as measures.yaml has them."""

from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast, if it was built


def read_table(path: Path) -> dict[str, Any]:
    """Contents of a table of the project in YAML."""
    return dict(yaml.load(path.read_text(encoding="utf-8"), _LOADER))


KNOWN = read_table(Path(__file__).with_name("measures.yaml"))


def families(of: str) -> dict[str, str]:
    """Families of figures that one function computes of `vectors` or of `scores`, and what they
    are."""
    every = KNOWN["tables"].values()
    return {own["family"]: f"{own['title']}." for own in every if own.get("of") == of}


def compute(family: str, *of: Any, **words: Any) -> dict[str, object]:
    """Figures of a family by the function of its name in the module of its name, local/metrics."""
    module = import_module(f"local.metrics.{family}")
    return dict(getattr(module, family)(*of, **words))
