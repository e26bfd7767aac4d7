"""Kinds of encoders and of back ends: what plans and programs ask of each, without loading it.

A word of --evaluators is `<encoder>/<back end>`. An encoder of conf/encoders is of the kind
`<folder>`, as it becomes one that the recipe trains.
"""

from dataclasses import dataclass
from pathlib import Path

from utils.registry import Kind, match
from utils.settings import read_settings

MODELS = Path(__file__).resolve().parents[2] / "models"  # what this project trained and ships
MOONSHINE = "moonshine_voice"  # package of the networks of Moonshine and of pyannote

# ---- Back ends. What is trained of one lies in a folder of exp, by this name.

PLDA, PCA, GAUSSIAN, COHORT = "backends", "backends_pca", "gaussians", "cohorts"


@dataclass(frozen=True)
class BackendKind(Kind):
    """Kind of back end. target: the class that scores; empty: the folder of a trained one does.
    learns: the folder in exp of what is trained; empty: nothing is. normalised: whether training
    speakers normalise its scores. voices: whether it compares vectors of all voices."""

    learns: str = ""
    normalised: bool = False
    voices: bool = True


BACKENDS = {
    "plda": BackendKind("", PLDA),
    "plda_asnorm": BackendKind("", PLDA, normalised=True),
    "plda_pca": BackendKind("", PCA),
    "cosine": BackendKind("steps.speaker.backends:CentredCosine"),
    "cosine_asnorm": BackendKind("", COHORT, normalised=True),
    "cosine_raw": BackendKind("steps.speaker.backends:CosineBackend"),
    "tfidf": BackendKind("", PLDA, voices=False),
    "gaussian": BackendKind("", GAUSSIAN, voices=False),
    "distance": BackendKind("steps.speaker.backends:Distance", voices=False),
}
OF_VOICES = tuple(word for word, kind in BACKENDS.items() if kind.voices)

# ---- Encoders.

VOICE = "voice"


@dataclass(frozen=True)
class EncoderKind(Kind):
    """Kind of encoder. target: its class; empty where other steps make its vectors.

    hears: the voice, or a channel beside it. made_of: `words` or `phones`, where its vectors are
    made of what is recognised. counts: whether they are counts of what is said. compared: whether
    they are compared as those of voices: legal criteria, similarity, leakage, crowds; of others
    there are scores alone. timed: whether systems that move speech in time change them. pieces:
    whether utterances can be cut. backends: those that take them. cosine: the one behind `cosine`.
    trainable: whether it can be trained here. strong: whether thousands of real voices have made
    it strong. package: one that it needs and that not every machine has.
    """

    hears: str = VOICE
    made_of: str = ""
    counts: bool = False
    compared: bool = True
    timed: bool = False
    pieces: bool = True
    backends: tuple[str, ...] = OF_VOICES
    cosine: str = "cosine"
    trainable: bool = False
    strong: bool = False
    package: str = ""


def _written(
    target: str, hears: str, *backends: str, package: str = "", made_of: str = "",
    timed: bool = False,
) -> EncoderKind:  # fmt: skip
    """Kind that hears the file as it is written, in values of different units."""
    return EncoderKind(
        target, hears, made_of, compared=False, timed=timed, pieces=not made_of, backends=backends,
        cosine="cosine_scaled", package=package,
    )  # fmt: skip


def _counts(hears: str, made_of: str) -> EncoderKind:
    return EncoderKind(
        "", hears, made_of, counts=True, compared=False, pieces=False, backends=("tfidf",)
    )


_CONTENT = "steps.channels.written:ContentEncoder"
ENCODERS = {  # the first form that fits a word is its kind
    "resemblyzer": EncoderKind(
        "steps.speaker.encoders:ResemblyzerEncoder", package="resemblyzer"
    ),
    "pyannote": EncoderKind(
        "steps.speaker.pyannote:PyannoteEncoder", strong=True, package=MOONSHINE
    ),
    "words": _counts("words", "words"),
    "sounds": _counts("sounds", "phones"),
    "content": _written(_CONTENT, "content", "cosine", "plda", package=MOONSHINE),
    "content:<extractor>": _written(_CONTENT, "content", "cosine", "plda"),
    "level": _written("steps.channels.written:LevelEncoder", "level", "distance", "gaussian"),
    "energy": _written("steps.channels.written:EnergyEncoder", "energy", "cosine", "plda"),
    "rhythm": _written("", "rhythm", "gaussian", made_of="words", timed=True),
    "timing": EncoderKind("", "timing", "phones", timed=True),
    "melody": EncoderKind("steps.channels.recognised:MelodyEncoder", "melody"),
    "hub:<model>": EncoderKind("steps.speaker.encoders:HubEncoder", strong=True),
    "given:<folder>": EncoderKind(""),
    "<folder>": EncoderKind("steps.speaker.encoders:load_trained", trainable=True),
}  # fmt: skip
TRAINED = ENCODERS["<folder>"]
# How names of strong encoders begin, also of those that were tuned from one.
STRONG = tuple(form.partition("<")[0] for form, kind in ENCODERS.items() if kind.strong)


def shipped(word: str) -> str:
    """Encoder of an evaluator of models/, whose back end was trained here; else empty."""
    path = MODELS / word / "evaluator.yaml"
    return str(read_settings(path)["encoder"]) if path.is_file() else ""


def kind_of(word: str) -> EncoderKind:
    """Kind of an encoder, or of the one behind an evaluator of models/."""
    form, _ = match(ENCODERS, shipped(word) or word) or ("<folder>", ())
    return ENCODERS[form]
