"""Recognisers of emotions by name; who plans them loads none."""

from dataclasses import dataclass

from utils.registry import Kind


@dataclass(frozen=True)
class EmotionKind(Kind):
    """Kind of recogniser. Each takes a data directory, the values for <...>, and as keywords what
    the program was asked: features (functionals of the utterances), training (data directories with
    theirs), device, progress. It returns a Recognised (steps/emotion/functionals.py). learns:
    whether it learns from functionals."""

    learns: bool = False


RECOGNISERS = {
    "functionals": EmotionKind("steps.emotion.functionals:recognise_by_functionals", learns=True),
    "hub:<model>": EmotionKind("steps.emotion.hub:recognise_by_hub"),
}
