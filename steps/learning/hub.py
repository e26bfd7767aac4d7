# SPDX-License-Identifier: Apache-2.0
"""Models of the Hugging Face hub, or in a folder: those that SpeechBrain reads, and those of
transformers.

Loading one for SpeechBrain runs code in its hyperparams.yaml: only load models that you trust.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from steps.learning.devices import check_device
from utils.cli import UserError


def load_hub_model(source: str, device: str, load: Callable[[dict[str, Any]], Any]) -> Any:
    """Load SpeechBrain's model by `load` with arguments of from_hparams, ready for use."""
    from speechbrain.utils.fetching import LocalStrategy

    torch.set_num_threads(1)
    check_device(device)
    how = {
        "source": source,
        "savedir": None,  # the hub's own cache; nothing is written beside a local model
        "local_strategy": LocalStrategy.NO_LINK,
        "run_opts": {"device": device},
    }
    try:
        model = load(how)
        model.eval()
    except Exception as error:  # of many kinds: network, files, YAML, code in the YAML
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"hub:{source}: cannot be loaded ({type(error).__name__}: {reason}); it needs a "
            "network, an earlier download, or a folder with hyperparams.yaml"
        ) from error
    return model


def load_transformer(source: str, kind: str = "AutoModel") -> Any:
    """Load a model by a class of transformers, ready for use, on the CPU."""
    import transformers

    try:
        model = getattr(transformers, kind).from_pretrained(source)
        return model.eval() if isinstance(model, torch.nn.Module) else model
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"hub:{source}: cannot be loaded: {reason}") from error


def transformer_config(source: str) -> Any:
    """Settings of a model of transformers; None where there is none, or another kind."""
    from transformers import AutoConfig

    if Path(source).is_dir() and not (Path(source) / "config.json").is_file():
        return None
    try:
        return AutoConfig.from_pretrained(source)
    except (OSError, ValueError):
        return None


def digest_of(model: torch.nn.Module) -> bytes:
    """Digest of all its weights."""
    digest, state = hashlib.sha256(), model.state_dict()
    for name in sorted(state):
        digest.update(state[name].cpu().contiguous().numpy().tobytes())
    return digest.digest()
