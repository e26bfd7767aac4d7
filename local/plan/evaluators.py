"""Evaluators: encoders and back ends, and the folders of their results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from local.plan.labels import label_of
from local.protocols import attackers
from steps.speaker.kinds import (
    BACKENDS,
    ENCODERS,
    GAUSSIAN,
    MOONSHINE,
    PCA,
    PLDA,
    TRAINED,
    VOICE,
    EncoderKind,
    kind_of,
    shipped,
)
from utils.cli import UserError

MODELS = "steps/../models"  # what this project trained and ships, seen from a recipe's folder
COHORT_SIZE = "100"  # training speakers nearest to a voice that its scores are normalised by
FORM = f"<encoder>/<back end> is expected, with {', '.join([*BACKENDS][:-1])} or {[*BACKENDS][-1]}"

# Words of --evaluators that name no encoder, but what the others have said together.
LEARNT = "fused_learnt"  # of those who learnt, by weights that are learnt
FUSED = {
    "fused": (),
    "fused_without_words": ("words",),
    LEARNT: (),
}  # the encoders that are left out


def is_of_voices(word: str) -> bool:
    """Whether an evaluator of --evaluators hears voices."""
    return word not in FUSED and kind_of(word.rpartition("/")[0]).hears == VOICE


@dataclass(frozen=True)
class NamedEncoder:
    """Encoder. word: as --evaluators spells it. title: the word in tables, of a path only the last
    part. name: in its folders. model: name for the steps. xvectors: their folder. conf: settings by
    which the recipe trains it; empty: it comes trained. given: the folder of x-vectors that another
    toolkit made. training: number of the repeated training, which differs in its seed; 0: the
    first. again: the encoder that it is a further training of; empty: none. head_of: the encoder
    whose x-vectors a head turns into others. kind: in ENCODERS of steps/speaker/kinds.py."""

    word: str
    title: str
    model: str
    conf: str = ""
    given: str = ""
    training: int = 0
    again: str = ""
    head_of: "NamedEncoder | None" = None
    kind: EncoderKind = TRAINED

    @property
    def name(self) -> str:
        """Name in the folders of its results."""
        return label_of(self.title)

    @property
    def xvectors(self) -> str:
        """Folder of its x-vectors."""
        return f"exp/xvectors/{self.name}"

    @property
    def backend(self) -> str:
        """Folder of the back end that comes with it, in models/; empty: it has none."""
        own = f"{MODELS}/{self.word}/backend"
        return own if Path(own).is_dir() else ""


def _settings_of(word: str) -> str:
    """Settings of an encoder that the recipe trains; none of one that comes trained."""
    conf = f"conf/encoders/{word}.yaml"
    return conf if Path(conf).is_file() else ""


def check_trainings(words: Sequence[str], trainings: int) -> None:
    """Raise a UserError if there are several trainings, and the recipe trains none of these
    evaluators."""
    if trainings > 1 and not any(_settings_of(word.rpartition("/")[0]) for word in words):
        raise UserError(
            "--trainings: the recipe trains none of --evaluators; name an encoder of "
            "conf/encoders, such as ecapa_mini"
        )


def train_instead(words: Sequence[str]) -> list[str]:
    """Evaluators of --evaluators with ecapa_mini, which the recipe trains, in place of each of
    models/ (--trainings)."""
    return list(dict.fromkeys(
        f"ecapa_mini/{word.rpartition('/')[2]}" if shipped(word.rpartition("/")[0]) else word
        for word in words
    ))  # fmt: skip


def find_encoder(word: str, training: int = 0) -> NamedEncoder:
    """Encoder of a word, in its n-th repeated training; UserError for an unknown one."""
    settings, ours = _settings_of(word), shipped(word)
    if settings and training:
        name = f"{word}_seed{training}"
        return NamedEncoder(name, name, f"exp/encoders/{name}", settings, "", training, word)
    kind = TRAINED if settings else kind_of(word)
    if kind is TRAINED and not settings and not Path(word, "encoder.yaml").is_file():
        there = " ".join(sorted(path.name for path in Path("conf/encoders").glob("*.yaml")))
        raise UserError(
            f"--evaluators, --voice-encoder: '{word}' is not an encoder; known: "
            f"{', '.join([*ENCODERS][:-1])}, a folder with encoder.yaml, and in conf/encoders: "
            f"{there}"
        )
    if kind.package == MOONSHINE and find_spec(MOONSHINE) is None:  # told before hours of work
        raise UserError(
            f"{word}: its network comes in moonshine-voice==0.0.49 for Linux, which is not "
            "installed: utils/setup.sh installs it where it can be; or name --evaluators without it"
        )
    given = word.partition(":")[2] if word.startswith("given:") else ""
    # A folder was trained elsewhere, for example for another corpus.
    name = Path(given or word).name if given or Path(word).is_dir() else word
    title = f"given:{name}" if given else name
    model = f"exp/encoders/{word}" if settings else ours or word
    return NamedEncoder(word, title, model, settings, given, kind=kind)


@dataclass(frozen=True)
class Evaluator:
    """Encoder with a back end. word: as --evaluators spells it. title: the name in tables.
    scorer: a cosine, or the folder of the trained back end. asnorm: cohort size; 0: none.
    training: the protected set on which an attacker trained it; empty: none. base: the encoder that
    the attacker retrained or trained anew."""

    word: str
    encoder: NamedEncoder
    backend: str
    title: str
    scorer: str
    asnorm: str
    training: str = ""
    base: NamedEncoder | None = None

    @property
    def label(self) -> str:
        """The name in paths."""
        return label_of(self.title)

    @property
    def trained(self) -> str:
        """The form in which the back end is trained: PLDA, PCA, GAUSSIAN, COHORT, or nothing."""
        return BACKENDS[self.backend].learns

    @property
    def again(self) -> str:
        """Name in tables of the evaluator that it is a further training of; empty: none."""
        return self.encoder.again and f"{self.encoder.again}/{self.backend}"

    @property
    def kind(self) -> str:
        """Back end that learns people, in the words of steps/score_held_out.py; else cosine."""
        learnt = "" if self.encoder.kind.counts else self.trained
        return {PLDA: "plda", PCA: "plda", GAUSSIAN: "gaussian"}.get(learnt, "cosine")

    @property
    def pairing(self) -> tuple[str, str]:
        """Back end and cohort size of voice similarity matrices, which are defined by PLDA or by
        the raw cosine, whichever cosine attacks."""
        return (self.scorer, self.asnorm) if self.kind == "plda" else ("cosine_raw", "0")

    @property
    def learns(self) -> bool:
        """Whether an attacker has people learnt by it, some of whom can be held out: not words that
        are counted, nor a cohort."""
        learns = self.kind != "cosine" or self.encoder != self.base
        return bool(self.training) and not self.encoder.kind.counts and learns

    @property
    def held_out(self) -> str:
        """Folder of the scores of training people whom the attacker held out."""
        name = self.encoder.name if self.kind == "cosine" else Path(self.scorer).name
        return f"exp/held_out/{name}" + ("" if self.trained == PLDA else f".{self.kind}")


def training_options(encoder: NamedEncoder, kind: str) -> tuple[str, ...]:
    """Options of the training of a back end of a kind. Content always has more values than few
    training people show to vary."""
    if encoder.kind.counts:
        return ()
    if kind == PCA or (kind == PLDA and not encoder.kind.compared):
        return ("--pca-dim", "100")
    return ("--gaussian",) if kind == GAUSSIAN else ()


def find_evaluators(words: Sequence[str], trainings: int = 0) -> list[Evaluator]:
    """Evaluators of --evaluators, each followed by the further trainings of an encoder that the
    recipe trains."""
    return [
        find_evaluator(word, n)
        for word in words
        for n in range(max(trainings, 1) if _settings_of(word.rpartition("/")[0]) else 1)
    ]


def find_evaluator(word: str, training: int = 0) -> Evaluator:
    """Evaluator of <encoder>/<back end>, in its n-th repeated training; UserError for an unknown
    one."""
    name, _, backend = word.rpartition("/")
    if not name or backend not in BACKENDS:
        raise UserError(f"--evaluators: '{word}'; {FORM} as the back end")
    encoder = find_encoder(name, training)
    kind, learns = encoder.kind, BACKENDS[backend].learns
    if backend not in kind.backends:
        taken = ", ".join(f"{name}/{one}" for one in kind.backends)
        raise UserError(f"--evaluators: '{word}'; {name} takes {taken}")
    scorer = f"exp/{learns}/{encoder.name}" if learns else backend
    if backend == "cosine":
        scorer = kind.cosine
    elif learns == PLDA and encoder.backend:
        scorer = encoder.backend
    asnorm = COHORT_SIZE if BACKENDS[backend].normalised else "0"
    word, title = f"{encoder.word}/{backend}", f"{encoder.title}/{backend}"
    return Evaluator(word, encoder, backend, title, scorer, asnorm)


def check_names(encoders: Sequence[NamedEncoder]) -> None:
    """Raise a UserError if two encoders share the folders of their x-vectors and scores."""
    word_of: dict[str, str] = {}
    for encoder in encoders:
        first = word_of.setdefault(encoder.name, encoder.word)
        if first != encoder.word:
            raise UserError(
                f"--evaluators, --voice-encoder: {first} and {encoder.word} would both be called "
                f"{encoder.name}; rename a folder"
            )


def as_trained(
    evaluator: Evaluator, attack: attackers.Attempt, how: str, training: str
) -> Evaluator:
    """Evaluator that an attacker trains from another with a protected training set; unchanged where
    nothing is trained."""
    if attack.level == "-":
        return evaluator
    encoder, name = evaluator.encoder, f"{evaluator.encoder.name}.{training}"
    if how in (attackers.SCRATCH, attackers.FINETUNED):
        name = f"{name}.{how}"
        head = None if encoder.kind.trainable else encoder
        model = f"exp/encoders/{name}"
        encoder = replace(encoder, title=name, model=model, given="", head_of=head)
    return replace(
        evaluator, encoder=encoder, training=training, base=evaluator.encoder,
        scorer=f"exp/{evaluator.trained}/{name}" if evaluator.trained else evaluator.scorer,
    )  # fmt: skip
