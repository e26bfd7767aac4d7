"""Hub classifiers of emotions: SpeechBrain's, such as
`speechbrain/emotion-recognition-wav2vec2-IEMOCAP`, and those of transformers for audio.

Loading a model of SpeechBrain also runs its custom_interface.py, where it has one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch

from steps.audio import SAMPLE_RATE, read_audio
from steps.emotion.functionals import Recognised
from steps.training import weights
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.datachecks import EMOTIONS
from utils.datadir import load_data_dir
from utils.tables import sort_ids

_INTERFACE, _CLASS = "custom_interface.py", "CustomEncoderWav2vec2Classifier"


class HubEmotions:
    """Classifier of an utterance's emotion.

    labels: its emotions, as in EMOTIONS (other labels: the model's own).
    """

    def __init__(self, source: str, device: str = "cpu") -> None:
        self._ask, own = _load_any(source, device)
        self._names = [EMOTIONS.get(label.lower(), label.lower()) for label in own]
        self.labels = sorted(set(self._names))

    @torch.inference_mode()
    def recognise(self, samples: Float64) -> list[float]:
        """Probabilities of `labels` for a signal (n,) at 16 kHz, full scale 1."""
        said = self._ask(np.asarray(samples, dtype=np.float32)).reshape(-1).double().cpu()
        # Models give probabilities, their logarithms, or scores before the softmax.
        is_distribution = bool((said >= 0).all()) and abs(float(said.sum()) - 1) < 1e-3
        probabilities = said if is_distribution else torch.softmax(said, 0)
        total = dict.fromkeys(self.labels, 0.0)
        for name, probability in zip(self._names, probabilities.tolist(), strict=True):
            total[name] += probability
        return list(total.values())


def _load_any(source: str, device: str) -> tuple[Callable[[Float32], torch.Tensor], list[str]]:
    """Function for the scores of a signal, and its labels. UserError for another kind."""
    if "emotion2vec" in source.lower():
        raise UserError(
            f"hub:{source}: emotion2vec is read by FunASR, not here; recognise with FunASR, and "
            "give its emotions to local/compute_utility.py emotions (docs/utility.md)"
        )
    config = weights.transformer_config(source)
    if any("Classification" in name for name in getattr(config, "architectures", None) or ()):
        weights.use_device(device)
        model: Any = weights.load_transformer(source, "AutoModelForAudioClassification").to(device)
        prepare = weights.load_transformer(source, "AutoFeatureExtractor")

        def ask(wave: Float32) -> torch.Tensor:
            heard = prepare(wave, sampling_rate=SAMPLE_RATE, return_tensors="pt").to(device)
            return cast("torch.Tensor", model(**heard).logits)

        return ask, [config.id2label[index] for index in sorted(config.id2label)]
    model = weights.load_hub_model(source, device, _load)
    ind2lab: Mapping[int, str] = model.hparams.label_encoder.ind2lab

    def classify(wave: Float32) -> torch.Tensor:
        found = model.classify_batch(torch.from_numpy(wave)[None], torch.ones(1))[0]
        return cast("torch.Tensor", found)

    return classify, [str(ind2lab[index]) for index in sorted(ind2lab)]


def _load(how: dict[str, Any]) -> Any:
    from speechbrain.inference.classifiers import EncoderClassifier
    from speechbrain.inference.interfaces import foreign_class

    source, model = Path(how["source"]), None
    if not source.is_dir() or (source / _INTERFACE).is_file():
        try:
            model = foreign_class(pymodule_file=_INTERFACE, classname=_CLASS, **how)
        except Exception as error:
            if not _is_missing(error):
                raise
    model = model or EncoderClassifier.from_hparams(**how)
    _ = model.hparams.label_encoder.ind2lab  # it must name its classes
    return model


def _is_missing(error: Exception) -> bool:
    """Whether the model exists, but has no interface of its own."""
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    return isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError)


def recognise_by_hub(
    data: Path, source: str, *, features: Path | None = None, training: Sequence[object] = (),
    device: str = "cpu", progress: Callable[[Iterable[str]], Iterable[str]], **_: object,
) -> Recognised:  # fmt: skip
    """Recognise emotions of a data directory by a model. UserError names unreadable audio."""
    if features is not None or training:
        raise UserError(f"hub:{source}: is trained; leave --features and --train out")
    wav, model = load_data_dir(data).wav, HubEmotions(source, device)
    utts = sort_ids(wav)
    found = []
    for utt in progress(utts):
        samples = read_audio(utt, wav[utt]).samples
        with refusing(f"{utt}: {len(samples)} samples: the model fails: {{}}", RuntimeError):
            found.append(model.recognise(samples))
    return pd.DataFrame(found, utts, model.labels), {"recogniser": f"hub:{source}"}
