"""Recognisers of emotions by name, their options and output, and its files."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli import UserError
from utils.tables import atomic_write, sort_ids, write_map

# Each takes a data directory, options, and the values for <...>, and returns a Recognised.
RECOGNISERS = {
    "functionals": "steps.emotion.functionals:recognise_by_functionals",
    "hub:<model>": "steps.emotion.hub:recognise_by_hub",
}


@dataclass(frozen=True)
class Asked:
    """Options of a recogniser. features: functionals of the utterances; training: data directories
    with theirs. n_folds, seed: see `functionals.recognise_leaving_out`."""

    features: Path | None
    training: Sequence[tuple[Path, Path]]
    n_folds: int
    seed: int
    device: str
    progress: Callable[[Iterable[str]], Iterator[str]]


@dataclass(frozen=True)
class Recognised:
    """Probability of each of `labels` by utterance; `settings`: of the recogniser.

    The emotion of an utterance is its most probable one, the first of `labels` in a tie.
    """

    labels: Sequence[str]
    posteriors: Mapping[str, Sequence[float]]
    settings: Mapping[str, object] = field(default_factory=dict)

    def emotions(self) -> dict[str, str]:
        """Emotion by utterance."""
        best = (max(range(len(self.labels)), key=p.__getitem__) for p in self.posteriors.values())
        return dict(zip(self.posteriors, (self.labels[i] for i in best), strict=True))


def write_recognised(out: Path, found: Recognised) -> None:
    """Write recogniser.json, posteriors.tsv (a line an utterance), and last `emotions`."""
    if not found.posteriors:
        raise UserError(f"{out}: there is nothing to write; the input has no utterance")
    (out / "emotions").unlink(missing_ok=True)
    with atomic_write(out / "recogniser.json") as stream:
        json.dump({"labels": list(found.labels), **found.settings}, stream, indent=1)
        stream.write("\n")
    with atomic_write(out / "posteriors.tsv") as stream:
        stream.write("\t".join(["#utt", *found.labels]) + "\n")
        for utt in sort_ids(found.posteriors):
            stream.write("\t".join([utt, *(f"{p:.6f}" for p in found.posteriors[utt])]) + "\n")
    write_map(out / "emotions", found.emotions())
