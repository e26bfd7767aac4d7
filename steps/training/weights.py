"""Weights of networks: saved and loaded, of the Hugging Face hub, and where they compute."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file

from utils.cli import UserError
from utils.tables import StrPath, replacing

_KINDS: dict[int, type[np.generic]] = {1: np.float32, 2: np.uint8}  # of a graph's tensors

# ---- Saved weights: the only place that reads them and puts them into networks.


def load_state(path: Path, mend: str = "train it again") -> dict[str, Any]:
    """Read torch's tensors and plain values (no code is run); UserError for anything else.

    Of .safetensors, numbers of half precision become float32.
    """
    try:
        if path.suffix == ".safetensors":
            return {
                name: value.float() if value.dtype == torch.float16 else value
                for name, value in load_file(path).items()
            }
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise UserError(f"{path}: not readable as a saved model; {mend}") from error
    if not isinstance(state, dict):
        raise UserError(f"{path}: holds no weights by name; {mend}")
    return state


def saved_vector(weights: Mapping[str, Any], name: str, path: StrPath) -> torch.Tensor:
    """Vector (d,) among saved weights; UserError if it is absent, empty, or not finite."""
    vector = weights.get(name)
    if (
        not isinstance(vector, torch.Tensor)
        or vector.layout != torch.strided
        or (vector.ndim, vector.dtype) != (1, torch.float32)
        or not len(vector)
        or not torch.isfinite(vector).all()
    ):
        raise UserError(f"{path}: {name}: not a vector of finite numbers; train it again")
    return vector


def fill_network(
    network: torch.nn.Module, weights: Mapping[str, Any], path: StrPath,
    mend: str = "train it again",
) -> None:  # fmt: skip
    """Put saved weights into a network.

    UserError if they belong to another network (other names, shapes or types), or are not finite.
    """
    own = network.state_dict()
    try:
        for name, value in own.items():
            if name not in weights:
                raise ValueError(f"{name} is missing")
            if weights[name].dtype != value.dtype:
                raise TypeError(f"{name} is {weights[name].dtype}, not {value.dtype}")
            if value.is_floating_point() and not torch.isfinite(weights[name]).all():
                raise ValueError(f"{name} holds a value that is not finite")
        network.load_state_dict(dict(weights))
    except (RuntimeError, AttributeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: does not hold the weights that the settings beside it describe ({why}); "
            f"{mend}"
        ) from error


def save_half(path: Path, state: Mapping[str, torch.Tensor]) -> None:
    """Write weights as .safetensors, float32 in half precision; ValueError where that is not enough
    for one."""
    halves = {
        name: value.half() if value.dtype == torch.float32 else value
        for name, value in state.items()
    }
    for name, value in halves.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"{name} is too large for half precision")
    with replacing(path) as beside:
        save_file({name: value.contiguous() for name, value in halves.items()}, beside)
        beside.chmod(0o644)  # such files are readable for their owner alone


def graph_values(model: bytes) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """A graph in onnxruntime's own format, and its tensors of float32 and of bytes by name."""
    import onnxruntime.tools.ort_format_model  # noqa: F401 - it makes the next one known
    from ort_flatbuffers_py.fbs.InferenceSession import InferenceSession

    graph = InferenceSession.GetRootAsInferenceSession(model, 0).Model().Graph()
    found: dict[str, npt.NDArray[Any]] = {}
    for tensor in (graph.Initializers(i) for i in range(graph.InitializersLength())):
        if kind := _KINDS.get(tensor.DataType()):
            shape = [tensor.Dims(i) for i in range(tensor.DimsLength())]
            found[tensor.Name().decode()] = tensor.RawDataAsNumpy().view(kind).reshape(shape)
    return graph, found


# ---- Devices and number formats of networks.


def use_device(device: str) -> None:
    """Compute on one thread of a process; UserError for `cuda` if there is none."""
    torch.set_num_threads(1)
    check_device(device)
    torch.backends.cudnn.benchmark = device == "cuda"  # batches of a training have one size


def check_device(device: str) -> None:
    """Raise a UserError for `cuda` if there is none."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device is visible here; use --device cpu")


def choose_precision(wanted: str, device: str) -> str:
    """float32 or bfloat16; `auto` takes bfloat16 if the processor has instructions for it.

    Elsewhere it is emulated, many times slower than float32.
    """
    if wanted != "auto":
        return wanted
    if device == "cuda":
        fast = torch.cuda.is_bf16_supported()
    else:
        fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if fast else "float32"


# ---- Models of the Hugging Face hub, or in a folder: those that SpeechBrain reads, and those of
# transformers.
#
# Loading one for SpeechBrain runs code in its hyperparams.yaml: only load models that you trust.


def load_hub_model(source: str, device: str, load: Callable[[dict[str, Any]], Any]) -> Any:
    """Load SpeechBrain's model by `load` with arguments of from_hparams, ready for use."""
    from speechbrain.utils.fetching import LocalStrategy

    use_device(device)
    how = {
        "source": source,
        "savedir": None,  # the hub's own cache; nothing is written beside a local model
        "local_strategy": LocalStrategy.NO_LINK,
        "run_opts": {"device": device},
    }
    needs = "; it needs a network, an earlier download, or a folder with hyperparams.yaml"
    failed = f"hub:{source}: cannot be loaded ({{}}){needs}"
    with loading(failed, Exception):  # of many kinds: network, files, YAML, its code
        model = load(how)
        model.eval()
    return model


@contextmanager
def loading(message: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of some kinds into a UserError; in its message {} stands for the error's kind and
    text, in one line of at most 200 characters."""
    try:
        yield
    except kinds as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UserError(message.replace("{}", why)) from error


def load_transformer(source: str, kind: str = "AutoModel") -> Any:
    """Load a model by a class of transformers, ready for use, on the CPU."""
    import transformers

    with loading(f"hub:{source}: cannot be loaded ({{}})", OSError, ValueError):
        model = getattr(transformers, kind).from_pretrained(source)
    return model.eval() if isinstance(model, torch.nn.Module) else model


def hidden_layers(model: Any, signals: torch.Tensor) -> Any:
    """Layers (B, T, d) of WavLM, HuBERT or wav2vec 2.0 for signals (B, n): input, then each one's
    output."""
    # Large models expect speech of mean 0 and variance 1, and say so (do_normalize).
    if getattr(model.config, "feat_extract_norm", "") == "layer":
        signals = torch.nn.functional.layer_norm(signals, signals.shape[-1:])
    return model(signals, output_hidden_states=True).hidden_states


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
