# SPDX-License-Identifier: Apache-2.0
"""Evaluators: encoders and back ends, and the folders of their results."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from local.protocols.attackers import FINETUNED, NOT_TRAINABLE, SCRATCH, Attack
from utils.cli import UserError

TRAINED, NORMALISED = "trained", "_asnorm"
BACKENDS = {"plda": TRAINED, "plda_asnorm": TRAINED, "cosine": ""}  # kind of each
FORM = f"<encoder>/<back end> is expected, with {', '.join([*BACKENDS][:-1])} or cosine"


def label_of(word: str) -> str:
    """Name such as hub:a/b as a part of a folder's name; tables spell it as the option does
    (local.report.gather.where_is)."""
    return word.replace("/", "+")


@dataclass(frozen=True)
class Encoder:
    """Encoder. word: as --evaluators spells it. title: the word in tables, of a path only the last
    part. name: in its folders. model: name for the steps. xvectors: their folder. conf: settings by
    which the recipe trains it; empty: it comes trained. given: the folder of x-vectors that another
    toolkit made. training: number of the repeated training (<encoder>_seed<N>), which differs in
    its seed; 0: the first."""

    word: str
    title: str
    model: str
    conf: str = ""
    given: str = ""
    training: int = 0

    @property
    def name(self) -> str:
        """Name in the folders of its results."""
        return label_of(self.title)

    @property
    def xvectors(self) -> str:
        """Folder of its x-vectors."""
        return f"exp/xvectors/{self.name}"


_AGAIN = re.compile(r"(?P<of>.+)_seed(?P<number>[1-9][0-9]*)")


def _settings_of(word: str) -> tuple[str, int]:
    """Settings of an encoder that the recipe trains, and the number of the training in its word; no
    settings for an encoder that comes trained."""
    conf = "conf/encoders/{}.yaml"
    if Path(conf.format(word)).is_file():
        return conf.format(word), 0
    again = _AGAIN.fullmatch(word)
    if again and Path(conf.format(again["of"])).is_file():
        return conf.format(again["of"]), int(again["number"])
    return "", 0


def train_again(words: Sequence[str], trainings: int) -> list[str]:
    """Evaluators of --evaluators, each followed by the further trainings of an encoder that the
    recipe trains: <encoder>_seed<N>/<back end>, N from 1 to trainings - 1."""
    found: list[str] = []
    for word in words:
        encoder, _, backend = word.rpartition("/")
        found.append(word)
        if _settings_of(encoder) == (f"conf/encoders/{encoder}.yaml", 0):
            found += [f"{encoder}_seed{n}/{backend}" for n in range(1, trainings)]
    return list(dict.fromkeys(found))


def find_encoder(word: str) -> Encoder:
    """Encoder of a word; UserError for an unknown one."""
    settings, training = _settings_of(word)
    known = any(
        word.startswith(kind) and (word == kind) != kind.endswith(":") for kind in NOT_TRAINABLE
    )
    if not (settings or known or Path(word, "encoder.yaml").is_file()):
        there = " ".join(sorted(path.name for path in Path("conf/encoders").glob("*.yaml")))
        raise UserError(
            f"--evaluators, --voice-encoder: '{word}' is no encoder; known: resemblyzer, "
            "hub:<model>, given:<folder>, a folder with encoder.yaml, and in conf/encoders: "
            f"{there}"
        )
    given = word.partition(":")[2] if word.startswith("given:") else ""
    title = word
    if given:
        title = f"given:{Path(given).name}"
    elif Path(word).is_dir():  # trained elsewhere, for example for another corpus
        title = Path(word).name
    model = f"exp/encoders/{word}" if settings else word
    return Encoder(word, title, model, settings, given, training)


@dataclass(frozen=True)
class Evaluator:
    """Encoder with a back end. word: as --evaluators spells it. label: the name in paths and
    tables. scorer: cosine, or the folder of the trained back end. asnorm: cohort size; 0: none.
    training: the protected set on which an attacker trained it; empty: none. base: the encoder that
    the attacker retrained or trained anew."""

    word: str
    encoder: Encoder
    backend: str
    label: str
    scorer: str
    asnorm: str
    training: str = ""
    base: Encoder | None = None

    @property
    def is_trained(self) -> bool:
        """Whether the back end is trained."""
        return BACKENDS[self.backend] == TRAINED


def find_evaluator(word: str, cohort_size: str) -> Evaluator:
    """Evaluator of <encoder>/<back end>; UserError for an unknown one."""
    name, _, backend = word.rpartition("/")
    if not name or backend not in BACKENDS:
        raise UserError(f"--evaluators: '{word}'; {FORM} as the back end")
    encoder = find_encoder(name)
    return Evaluator(
        word, encoder, backend, label_of(f"{encoder.title}/{backend}"),
        f"exp/backends/{encoder.name}" if BACKENDS[backend] else backend,
        cohort_size if backend.endswith(NORMALISED) else "0",
    )  # fmt: skip


def check_names(encoders: Sequence[Encoder]) -> None:
    """Raise a UserError if two encoders share the folders of their x-vectors and scores."""
    word_of: dict[str, str] = {}
    for encoder in encoders:
        first = word_of.setdefault(encoder.name, encoder.word)
        if first != encoder.word:
            raise UserError(
                f"--evaluators, --voice-encoder: {first} and {encoder.word} would both be called "
                f"{encoder.name}; rename a folder"
            )


def inform(evaluator: Evaluator, attack: Attack, how: str, train_set: str) -> Evaluator:
    """Evaluator that an attacker trains from another with the training set, protected by the system
    at the attack's level; unchanged where nothing is trained."""
    if attack.level == "-":
        return evaluator
    training = f"{train_set}_{attack.system}_{attack.level}"
    encoder, name = evaluator.encoder, f"{evaluator.encoder.name}.{training}"
    if how in (SCRATCH, FINETUNED):
        name = f"{name}.{how}"
        encoder = replace(encoder, title=name, model=f"exp/encoders/{name}")
    return replace(
        evaluator, encoder=encoder, training=training, base=evaluator.encoder,
        scorer=f"exp/backends/{name}" if evaluator.is_trained else evaluator.scorer,
    )  # fmt: skip
