# SPDX-License-Identifier: Apache-2.0
"""Hidden layers of WavLM, HuBERT or wav2vec 2.0 in front of a speaker encoder.

A learnt weighted mean of the model's layers takes the place of filter banks, as in the attacker of
VoicePrivacy 2026. The model comes from the Hugging Face hub, or from a folder in its form. A frozen
model is not saved with the encoder, but identified by a digest.
"""

import torch
from torch import Tensor, nn

from steps.learning.hub import digest_of, load_transformer
from steps.speaker.config import FeatureConfig
from steps.speaker.features import subtract_mean


class HubFront(nn.Module):
    """Frames (B, T, width), one every 20 ms, of samples (B, n) at 16 kHz."""

    def __init__(self, config: FeatureConfig) -> None:
        super().__init__()
        model = load_transformer(config.model)
        model.config.layerdrop, model.config.apply_spec_augment = 0.0, False  # in training
        self.width = int(model.config.hidden_size)
        self.mean = config.mean
        self.name = config.model
        # Large models expect speech of mean 0 and variance 1, and say so (do_normalize).
        self.normalised = getattr(model.config, "feat_extract_norm", "") == "layer"
        self.weights = nn.Parameter(torch.zeros(int(model.config.num_hidden_layers)))
        self.part = config.fine_tune
        self.learns = self.part > 0
        if self.learns:
            self.model = model
            model.feature_extractor._freeze_parameters()
        else:
            self._left = (model.requires_grad_(requires_grad=False),)  # no part of saved weights
            own = torch.tensor(list(digest_of(model)), dtype=torch.uint8)
            self.register_buffer("digest", own.clone())
            self.register_load_state_dict_post_hook(  # type: ignore[no-untyped-call]
                lambda *_: self._check(own)
            )

    def parameters_of_model(self) -> list[nn.Parameter]:
        """Parameters that learn more slowly than the rest; none if the model is frozen."""
        return [p for p in self.model.parameters() if p.requires_grad] if self.learns else []

    def _check(self, own: Tensor) -> None:
        """Raise a ValueError if a saved encoder had other weights in front of it."""
        if not torch.equal(self.get_buffer("digest").cpu(), own):
            raise ValueError(f"features.model: {self.name} has other weights than it had then")

    def forward(self, samples: Tensor) -> Tensor:
        """See the class; all signals of a batch have the same length."""
        model = self.model if self.learns else self._left[0].to(samples.device)
        if self.normalised:
            samples = nn.functional.layer_norm(samples, samples.shape[-1:])
        with torch.set_grad_enabled(self.learns and torch.is_grad_enabled()):
            layers = torch.stack(model(samples, output_hidden_states=True).hidden_states[1:])
        frames = torch.einsum("l,lbtd->btd", torch.softmax(self.weights, 0), layers)
        return subtract_mean(frames, self.mean)
