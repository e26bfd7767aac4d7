# SPDX-License-Identifier: Apache-2.0
"""SpeechBrain classifiers of emotions: of the Hugging Face hub, or in a folder.

Such as `speechbrain/emotion-recognition-wav2vec2-IEMOCAP`. Loading a model runs what its
hyperparams.yaml names, and its custom_interface.py where it has one: only load models that you
trust.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steps.audio import read_audio
from steps.emotion.result import Recognised
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import sort_ids

_INTERFACE, _CLASS = "custom_interface.py", "CustomEncoderWav2vec2Classifier"
LABELS = {  # how models call the emotions that data directories name in full
    "ang": "anger", "angry": "anger", "hap": "happiness", "happy": "happiness",
    "exc": "happiness", "neu": "neutral", "sad": "sadness", "fea": "fear", "fearful": "fear",
    "dis": "disgust", "bor": "boredom", "sur": "surprise", "surprised": "surprise",
}  # fmt: skip


class HubEmotions:
    """A classifier of SpeechBrain that says which emotion an utterance has.

    labels: the emotions that it knows, as in LABELS (a label that is not there: as the model says).
    """

    def __init__(self, source: str, device: str = "cpu") -> None:
        torch.set_num_threads(1)
        if device == "cuda" and not torch.cuda.is_available():
            raise UserError("--device cuda: there is no CUDA device; take --device cpu")
        try:
            self._model = _load(source, device)
            self._model.eval()
            ind2lab: Mapping[int, str] = self._model.hparams.label_encoder.ind2lab
        except Exception as error:  # of many kinds: network, files, YAML, what the YAML runs
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                f"hub:{source}: cannot be loaded ({type(error).__name__}: {reason}); it needs a "
                "network, an earlier download, or a folder with hyperparams.yaml"
            ) from error
        own = [str(ind2lab[index]).lower() for index in sorted(ind2lab)]
        self._names = [LABELS.get(label, label) for label in own]
        self.labels = sorted(set(self._names))

    @torch.inference_mode()
    def recognise(self, samples: Float64) -> list[float]:
        """Probabilities of `labels` for a signal (n,) at 16 kHz, full scale 1."""
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
        said = self._model.classify_batch(wave, torch.ones(1))[0].reshape(-1).double().cpu()
        # Models give probabilities, their logarithms, or scores before the softmax.
        is_distribution = bool((said >= 0).all()) and abs(float(said.sum()) - 1) < 1e-3
        probabilities = said if is_distribution else torch.softmax(said, 0)
        total = dict.fromkeys(self.labels, 0.0)
        for name, probability in zip(self._names, probabilities.tolist(), strict=True):
            total[name] += probability
        return list(total.values())


def _load(source: str, device: str) -> Any:
    from speechbrain.inference.classifiers import EncoderClassifier
    from speechbrain.inference.interfaces import foreign_class
    from speechbrain.utils.fetching import LocalStrategy

    how: dict[str, Any] = {
        "source": source,
        "savedir": None,  # the hub's own cache; nothing is written beside a local model
        "local_strategy": LocalStrategy.NO_LINK,
        "run_opts": {"device": device},
    }
    if Path(source).is_dir() and not (Path(source) / _INTERFACE).is_file():
        return EncoderClassifier.from_hparams(**how)
    try:
        return foreign_class(pymodule_file=_INTERFACE, classname=_CLASS, **how)
    except Exception as error:
        if not _is_missing(error):
            raise
    return EncoderClassifier.from_hparams(**how)


def _is_missing(error: Exception) -> bool:
    """Whether the model is there, but has no interface of its own."""
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    return isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError)


def recognise_all(
    source: str,
    wav: Mapping[str, str],
    device: str,
    progress: Callable[[Iterable[str]], Iterator[str]],
) -> Recognised:
    """Recognise every utterance of a wav.scp. UserError names audio that cannot be read."""
    model = HubEmotions(source, device)
    found: dict[str, Sequence[float]] = {
        utt: model.recognise(read_audio(utt, wav[utt]).samples) for utt in progress(sort_ids(wav))
    }
    return Recognised(model.labels, found, {"recogniser": f"hub:{source}"})
