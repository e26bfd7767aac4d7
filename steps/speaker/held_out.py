"""Attackers who train only what comes after an encoder, and whether they learnt people at all.

A head is a small network on the x-vectors of an encoder that is not trained here: two layers,
taught to tell people apart whatever their pseudo-voice, with an additive angular margin (Deng et
al. 2019).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.speaker.backends import Backend
from steps.speaker.vectors import source_of
from steps.training.loop import descend, learning_rate, set_rate
from steps.training.weights import fill_network, load_state
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.datadir import DataDir
from utils.seeds import derive_seed, make_rng
from utils.tables import sort_ids, write_json

WEIGHTS = "head.pt"


@dataclass(frozen=True)
class HeadConfig:
    """Sizes and training of a head; margin: radian, which grows over the first third."""

    hidden: int = 256
    embedding: int = 192
    dropout: float = 0.2
    steps: int = 1000
    batch: int = 256
    margin: float = 0.2
    scale: float = 30.0
    learning_rate: float = 1e-3
    final_rate: float = 1e-5
    warm_up: float = 0.05
    weight_decay: float = 1e-2


class Head(nn.Module):
    """Network of x-vectors (n, D), centred and of equal length first, to (n, embedding)."""

    def __init__(self, dim: int, config: HeadConfig) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.layers = nn.Sequential(
            nn.Linear(dim, config.hidden), nn.BatchNorm1d(config.hidden), nn.ReLU(),
            nn.Dropout(config.dropout), nn.Linear(config.hidden, config.embedding),
        )  # fmt: skip

    def forward(self, vectors: Tensor) -> Tensor:
        centred = functional.normalize(vectors - self.get_buffer("mean"), dim=1)
        return self.layers(centred * vectors.shape[1] ** 0.5)

    @torch.inference_mode()
    def apply_to(self, vectors: Float64 | Float32) -> Float32:
        """X-vectors (n, embedding) of others (n, D)."""
        self.eval()
        rows = torch.from_numpy(np.asarray(vectors, np.float32))
        # One at a time: the last bits of a batch's arithmetic depend on its size.
        return np.concatenate([self(row[None]).numpy() for row in rows])


@dataclass(frozen=True)
class HeadBackend:
    """Back end of the x-vectors that a head makes."""

    head: Head
    base: Backend
    dim = None

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        return self.base.left(self.head.apply_to(vectors).astype(np.float64), counts)

    def right(self, vectors: Float64) -> Float64:
        return self.base.right(self.head.apply_to(vectors).astype(np.float64))


def train_head(
    vectors: Mapping[str, Float32], utt2spk: Mapping[str, str], seed: int = 0,
    config: HeadConfig = HeadConfig(),
) -> Head:  # fmt: skip
    """Train a head on x-vectors (D,) of training speakers; every speaker is drawn equally often."""
    keys = sort_ids(vectors)
    names, classes = np.unique([utt2spk[key] for key in keys], return_inverse=True)
    if len(names) < 2:
        raise UserError(f"{len(names)} training speaker(s); a head needs several")
    torch.set_num_threads(1)
    torch.manual_seed(derive_seed(seed, "head-weights") % 2**63)
    rows = torch.from_numpy(np.stack([vectors[key] for key in keys]).astype(np.float32))
    head = Head(rows.shape[1], config)
    of = [np.flatnonzero(classes == n) for n in range(len(names))]
    head.get_buffer("mean").copy_(rows.mean(dim=0))
    centres = nn.Parameter(torch.randn(len(names), config.embedding))
    parameters = [*head.parameters(), centres]
    optimiser = torch.optim.AdamW(parameters, weight_decay=config.weight_decay)
    rng = make_rng(seed, "head-batches")
    head.train()
    for step in range(config.steps):
        set_rate(optimiser, learning_rate(config, step))
        drawn = rng.integers(len(names), size=config.batch)
        places = [of[n][rng.integers(len(of[n]))] for n in drawn]
        margin = config.margin * min(1.0, 3 * step / config.steps)
        made, target = head(rows[np.array(places)]), torch.from_numpy(drawn)
        descend(_margin_loss(made, centres, target, margin, config.scale), optimiser)
    return head


def _margin_loss(
    made: Tensor, centres: Tensor, target: Tensor, margin: float, scale: float
) -> Tensor:
    """Cross entropy of cosines (B, S), the true one's angle widened by the margin."""
    cosine = functional.normalize(made, dim=1) @ functional.normalize(centres, dim=1).T
    own = torch.arange(len(made)), target
    angle = torch.acos(cosine[own].clamp(-1 + 1e-6, 1 - 1e-6))
    widened = cosine.index_put(own, torch.cos((angle + margin).clamp(max=torch.pi)))
    return functional.cross_entropy(scale * widened, target)


def write_head(folder: Path, head: Head, about: Mapping[str, object]) -> None:
    """Write encoder.yaml (what it is and what it was trained on) and, last, the weights."""
    write_json(folder / "encoder.yaml", {"encoder": "head", "trained": dict(about)})
    torch.save(head.state_dict(), folder / WEIGHTS)


def read_head(folder: Path) -> Head:
    """Read a head; UserError where there is none."""
    weights = load_state(folder / WEIGHTS)
    if "mean" not in weights:
        raise UserError(f"{folder / WEIGHTS}: holds no head; train it with steps/train_head.py")
    head = Head(len(weights["mean"]), HeadConfig())
    fill_network(head, weights, folder / WEIGHTS)
    return head


# ---- Whether an attacker learnt people: trials and pseudo-voices of training people held out.
#
# An attacker who hears every utterance with one voice may learn voices and no people, and then
# looks weak against any system. So a part of the people is left out of training and attacked:
# people with two utterances or more, because draws of one utterance share its words. They are left
# out in turns, and the attacker that is used learns from all.

FEWEST_PEOPLE = 10  # with two utterances or more; below, nothing is reported
PEOPLE = 50  # that are enough
TURNS = (2, 5)  # at least and at most; a tenth of the people says how many
UTTERANCES = 10  # of a person, at most

T = TypeVar("T")
Vectors = Mapping[str, Float32]
Learn = Callable[[Vectors, Mapping[str, str]], Backend]  # of x-vectors and their speakers
# person -> utterance before protection -> protected utterances -> pieces in order of time
Spoken = dict[str, dict[str, dict[str, list[str]]]]


@dataclass
class HeldOut:
    """Trials (one protected utterance, another, target) with scores, and of all queries for a
    pseudo-voice the number that found it, and the chance of each. why: nothing is defined."""

    people: list[str] = field(default_factory=list)
    trials: list[tuple[str, str, bool]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    found: int = 0
    chances: list[float] = field(default_factory=list)
    why: str = ""

    def figures(self) -> dict[str, object]:
        """Values of the JSON: those of pseudo-voices are null where no utterance has two draws of
        two pieces."""
        n = len(self.chances)
        return {
            "held_out_people": len(self.people),
            "pseudo_voice_accuracy": self.found / n if n else None,
            "pseudo_voice_chance": float(np.mean(self.chances)) if n else None,
            "held_out_why_undefined": self.why,
        }


def arrange(keys: Collection[str], data: DataDir) -> Spoken:
    """Arrange x-vectors, of utterances or of their pieces `<utterance>-c<number>`, by person, by
    utterance before protection (utt2uniq) and after it."""
    before = data.tables.get("utt2uniq", {})
    spoken: Spoken = {}
    for key in sort_ids(keys):
        if (utt := source_of(key, data.utt2spk)) not in data.utt2spk:
            raise UserError(
                f"{key}: belongs to no utterance in {data.path}; give the data directory of these "
                "x-vectors"
            )
        own = spoken.setdefault(data.utt2spk[utt], {}).setdefault(before.get(utt, utt), {})
        own.setdefault(utt, []).append(key)
    return spoken


def attack_held_out(
    vectors: Vectors, utt2spk: Mapping[str, str], data: DataDir, learn: Learn,
    unheard: Collection[str] | None = None, *, lasting: bool = False,
) -> HeldOut:  # fmt: skip
    """Attack people who were left out of what `learn` is given.

    vectors, utt2spk: of pieces or utterances of a protected training set. unheard: the people of
    whom the encoder learnt nothing; None: nobody taught it. lasting: whether a person has one
    pseudo-voice in all of a draw; then a person's pairs are of two draws, or voices would be found.
    """
    spoken, result = arrange(vectors, data), HeldOut()
    people = [
        person
        for person, utts in spoken.items()
        if len(utts) > 1 and (unheard is None or person in unheard)
    ]
    if len(people) < FEWEST_PEOPLE:
        result.why = (
            f"{len(people)} training people with two utterances or more"
            f"{'' if unheard is None else ' whom the encoder did not learn from'}; "
            f"{FEWEST_PEOPLE} are needed"
        )
        return result
    n_turns = min(max(len(people) // FEWEST_PEOPLE, TURNS[0]), TURNS[1])
    for turn in range(n_turns):
        left_out = people[turn::n_turns][:PEOPLE]
        kept = {key: v for key, v in vectors.items() if utt2spk[key] not in set(left_out)}
        backend = learn(kept, {key: utt2spk[key] for key in kept})
        result.people += left_out
        for group in _by_gender(left_out, data.spk2gender or {}):
            if len(group) > 1:  # a cosine may centre the vectors, and one person's would be noise
                mine = {person: spoken[person] for person in group}
                _score_pairs(backend, vectors, mine, result, lasting=lasting)
        for person in left_out:
            for draws in _some(list(spoken[person].values())):
                _find_pseudo_voices(backend, vectors, draws, result)
        if len(result.people) >= PEOPLE:
            break
    if len({target for *_, target in result.trials}) < 2:
        in_two = " of two draws (level spk or perm)" if lasting else ""
        return HeldOut(why=f"the people held out give no pairs{in_two}, or only of one person")
    return result


def _by_gender(people: Sequence[str], gender: Mapping[str, str]) -> list[list[str]]:
    """Divide people as trial lists do: a woman among men would be found by her pitch."""
    kinds = sort_ids({gender.get(person, "") for person in people})
    return [[p for p in people if gender.get(p, "") == kind] for kind in kinds]


def _some(items: Sequence[T]) -> list[T]:
    """At most UTTERANCES of them, evenly spread."""
    places = np.linspace(0, len(items) - 1, min(len(items), UTTERANCES)).round().astype(int)
    return [items[place] for place in places]


def _score_pairs(
    backend: Backend, vectors: Vectors, spoken: Spoken, result: HeldOut, *, lasting: bool
) -> None:
    """Add all pairs of different utterances, each in one draw, its pieces averaged; if `lasting`,
    none of a person in one draw."""
    ids, owners, voices, rows = [], [], [], []
    for person, utts in spoken.items():
        for number, (before, draws) in enumerate(_some(list(utts.items()))):
            utt = list(draws)[number % len(draws)]
            ids.append(utt)
            owners.append(person)
            voices.append((person, utt.removeprefix(before)))  # the name of the draw
            rows.append(np.mean([vectors[key] for key in draws[utt]], axis=0, dtype=np.float64))
    scores = _compare(backend, np.stack(rows))
    for i, j in zip(*np.triu_indices(len(ids), k=1), strict=True):
        if lasting and voices[i] == voices[j]:
            continue
        result.trials.append((ids[i], ids[j], owners[i] == owners[j]))
        result.scores.append(float(scores[i, j]))


def _find_pseudo_voices(
    backend: Backend, vectors: Vectors, draws: Mapping[str, Sequence[str]], result: HeldOut
) -> None:
    """Add one query a piece of an utterance: of the other pieces of all its draws, is the nearest
    one of the same draw? No candidate has the query's words."""
    pieces = [(utt, n, key) for utt, keys in draws.items() for n, key in enumerate(keys)]
    if len(draws) < 2 or min(map(len, draws.values())) < 2:
        return
    scores = _compare(backend, np.stack([vectors[key] for *_, key in pieces]).astype(np.float64))
    voices, places = np.array([utt for utt, *_ in pieces]), np.array([n for _, n, _ in pieces])
    for row, (utt, n, _) in enumerate(pieces):
        others = np.flatnonzero(places != n)
        best = others[np.argmax(scores[row, others])]
        result.found += int(voices[best] == utt)
        result.chances.append(float((voices[others] == utt).mean()))


def _compare(backend: Backend, rows: Float64) -> Float64:
    """Scores (n, n) of x-vectors (n, D), each of one utterance."""
    return backend.left(rows, np.ones(len(rows))) @ backend.right(rows).T
