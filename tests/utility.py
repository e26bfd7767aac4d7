"""The commands of local/compute_utility.py as programs of their own."""

from collections.abc import Sequence

from local.compute_utility import main


def compute_wer(words: Sequence[str]) -> int:
    return main(["words", *words])


def compute_uar(words: Sequence[str]) -> int:
    return main(["emotions", *words])


def compute_quality(words: Sequence[str]) -> int:
    return main(["quality", *words])


def compute_prosody(words: Sequence[str]) -> int:
    return main(["prosody", *words])
