"""Choices of a recipe: options, who listens, speech of other systems."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from local.protocols import attackers
from steps.anonymisers.external import find_names, find_suffix
from utils.cli import UserError
from utils.settings import is_settings, list_settings, name_settings, read_settings
from utils.tables import read_map, write_json

# ---- What a recipe was asked, checked before anything is made.

N_NEAR = 5  # names that are suggested where one is unknown
A_NUMBER = "a whole number above 0 is expected"


class Asked:
    """The options of a recipe by their names in its block, as the shell has them."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def get(self, name: str, default: str = "") -> str:
        """The value of an option that this recipe may not have."""
        return self._values.get(name, default)

    def without(self, names: Collection[str]) -> dict[str, str]:
        """All options but these."""
        return {name: value for name, value in self._values.items() if name not in names}

    def changed(self, values: dict[str, str]) -> "Asked":
        """The same with other values of some options."""
        return Asked({**self._values, **values})

    def words(self, name: str) -> tuple[str, ...]:
        """The words of an option, each named once."""
        words = tuple(self.get(name).split())
        once(f"--{name.replace('_', '-')}", words)
        return words

    def flag(self, name: str) -> bool:
        """Whether an option is true. UserError for another word, which recipe.conf can have."""
        text = self.get(name, "false")
        if text not in ("true", "false"):
            raise UserError(f"--{name.replace('_', '-')}: '{text}'; true or false is expected")
        return text == "true"

    def choice(self, name: str, known: str, expected: str = "") -> tuple[str, ...]:
        """The words of an option: at least one, each once, each as a regular expression says."""
        option, words = f"--{name.replace('_', '-')}", self.get(name).split()
        expected = expected or f"known: {known.replace('|', ', ')}"
        if not words:
            raise UserError(f"{option}: names none; {expected}")
        for word in words:
            if not re.fullmatch(known, word):
                raise UserError(f"{option}: '{word}'; {expected}")
        once(option, words)
        return tuple(words)

    def numbers(self, name: str) -> tuple[str, ...]:
        """The whole numbers above 0 of an option."""
        return self.choice(name, "[1-9][0-9]*", A_NUMBER)

    def number(self, name: str, least: int = 1) -> int:
        """The one whole number of an option."""
        text, expected = self.get(name), f"a whole number from {least} on is expected"
        if not re.fullmatch("[0-9]+", text) or int(text) < least:
            expected = A_NUMBER if least == 1 else expected
            raise UserError(f"--{name.replace('_', '-')}: '{text}'; {expected}")
        return int(text)

    def runs(self, stage: int) -> bool:
        """Whether a stage is among those to run."""
        return int(self["stage"]) <= stage <= int(self["stop_stage"])

    def sizes(self) -> tuple[str, ...]:
        """The sizes of --sizes."""
        return self.choice("sizes", "[2-9]|[1-9][0-9]+", "a whole number from 2 on is expected")


def given(asked: Asked) -> set[str]:
    """The names of the options of a command, and of its --config."""
    words = (word.partition("=")[0] for word in shlex.split(asked["command_line"]))
    own = {word[2:].replace("-", "_") for word in words if word.startswith("--")}
    return own.union(asked.get("configured").split())


def follow_protocol(asked: Asked) -> Asked:
    """The options as --protocol has them, but for those that the command gives itself."""
    if not (name := asked.get("protocol")):
        return asked
    protocol = attackers.read_protocol(Path(need_conf("protocols", name)))
    values = {
        "attackers": protocol.attackers,
        "evaluators": protocol.evaluators,
        "informed_level": protocol.informed_level,
        "informed_draws": str(protocol.informed_draws),
        "genders": protocol.genders or asked.get("genders"),
        "protocol_training": protocol.training,
        **protocol.options,
    }
    own = given(asked)
    return asked.changed({name: value for name, value in values.items() if name not in own})


def once(option: str, words: Sequence[str]) -> None:
    """UserError where something is named twice: its figures would count twice, or two jobs write
    one folder."""
    for place, word in enumerate(words):
        if word in words[:place]:
            raise UserError(f"{option}: {word} is named twice; once is enough")


def need_conf(folder: str, name: str) -> str:
    """conf/FOLDER/NAME.yaml, or a variant of that name; UserError where it is missing."""
    path = Path("conf", folder, f"{name}.yaml")
    if not is_settings(path):
        near = ", ".join(get_close_matches(name, list_settings(path.parent), N_NEAR, cutoff=0))
        raise UserError(f"{path} is missing; the nearest names are: {near or 'none'}")
    return str(path)


def need_folders(folders: Collection[str]) -> None:
    """UserError where a study lacks what run.sh makes."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise UserError(f"{folder} is missing; make it with ./run.sh --stop-stage 0")


# ---- What informed attackers protect and learn from: --attacker-train.


@dataclass(frozen=True)
class Learnt:
    """Training set of informed attackers. name: in data/. joined: the data directories of which the
    recipe joins it; none where it is a set of this corpus."""

    name: str
    joined: tuple[str, ...] = ()


def find_learnt(asked: Asked) -> Learnt:
    """Training set of --attacker-train, or --train-set where that is empty: names of sets in data/,
    and paths to data directories that other corpora's recipes made."""
    words = asked.words("attacker_train") or (asked["train_set"],)
    paths = [Path(word).resolve() if "/" in word else Path(word) for word in words]
    names = [
        "_".join(part for part in path.parts[-3:] if part not in ("/", "data")) for path in paths
    ]
    once("--attacker-train: a set's name", names)
    joined = tuple(word if "/" in word else f"data/{word}" for word in words)
    return Learnt("+".join(names), () if (words[0],) == tuple(names) else joined)


def check_learnt(learnt: Learnt, made: Collection[str], tested: Collection[str]) -> None:
    """UserError for sets that attackers cannot learn from together: one that is missing (but for
    those that stage 0 makes), has no sexes or not its audio, or a person who is in two of them or
    tested."""
    rival = {spk: f"data/{one}" for one in tested for spk in _speakers_of(f"data/{one}")}
    for folder in learnt.joined or (f"data/{learnt.name}",):
        option, speakers = f"--attacker-train: {folder}", _speakers_of(folder)
        if not speakers and folder.removeprefix("data/") not in made:
            raise UserError(f"{option}: no such data directory; its corpus's run.sh makes it")
        if speakers and not Path(folder, "spk2gender").is_file():
            raise UserError(f"{option}/spk2gender is missing; it says who is f and who is m")
        audio = next(iter(read_map(f"{folder}/wav.scp").values()), "") if speakers else ""
        if audio and not Path(audio).is_file():
            raise UserError(f"{option}/wav.scp: {audio}: no such file, as seen from here")
        if both := sorted(speakers & rival.keys()):
            what = "leave out whom both have, or give those of one other ids, if they are others"
            where = rival[both[0]]
            if where.removeprefix("data/") in tested:
                what = "who is tested must not be in training"
            raise UserError(
                f"{option}: speaker {both[0]} ({len(both)} in all) is also in {where}; {what}"
            )
        rival |= dict.fromkeys(speakers, folder)


def _speakers_of(folder: str) -> set[str]:
    path = Path(folder, "utt2spk")
    return {*read_map(path).values()} if path.is_file() else set()


# ---- What figures speak of, and where they lie.

Family = StrEnum(
    "Family",
    "VERIFICATION SIMILARITY CALIBRATION RECORDINGS REIDENTIFICATION STRONGEST LEGAL LEAKAGE GAINS "
    "INFERENCE CROWD GROUPS UTILITY",
)
PROSODY = "prosody"  # what it measures in place of an evaluator, for utility
ORIGINAL = "original"  # speech, in the place of a system
EVERYBODY = "all"  # evaluator of figures that choose among all
_FOLDERS: dict[str, str] = {Family.VERIFICATION: "", Family.REIDENTIFICATION: "reid"}


def label_of(word: str) -> str:
    """Name such as hub:a/b as a part of a folder's name; tables spell it as the option does."""
    return word.replace("/", "+")


class Labels(NamedTuple):
    """Subject of a folder of figures, as the columns of metrics.csv say it (WHERE of
    local/report/frame.py); empty where it speaks of no one gender or attacker."""

    split: str
    gender: str
    system: str
    family: str
    attacker: str
    evaluator: str
    condition: str

    @property
    def path(self) -> str:
        """Folder below exp/metrics."""
        who = "_".join(filter(None, (_FOLDERS.get(self.family, self.family), self.attacker)))
        return f"{self.system}/{who}.{label_of(self.evaluator)}/{self.condition}/{self.split}"

    def words(self, option: str, folder: str) -> list[str]:
        """The option of a program that collects figures, with the folder and all labels."""
        return [option, folder, *(text or "-" for text in self)]


# ---- Evaluators: encoders and back ends, and the folders of their results.

MODELS = "steps/../models"  # what this project trained and ships, seen from a recipe's folder
NORMALISED = "_asnorm"
PLDA, GAUSSIAN, COHORT = "backends", "gaussians", "cohorts"  # what is trained: its folder in exp
TFIDF = "tfidf"
BACKENDS = {
    TFIDF: PLDA, "plda": PLDA, "plda_asnorm": PLDA, "gaussian": GAUSSIAN,
    "cosine": "", "cosine_asnorm": COHORT,
    **dict.fromkeys((*attackers.RHO, "distance"), ""), "cosine_raw": "",
}  # fmt: skip
FORM = f"<encoder>/<back end> is expected, with {', '.join([*BACKENDS][:-1])} or cosine_raw"


# Words of --evaluators that name no encoder, but what the others have said together.
LEARNT = "fused_learnt"  # of those who learnt, by weights that are learnt
FUSED = {
    "fused": (),
    "fused_without_words": ("words",),
    LEARNT: (),
}  # the encoders that are left out


@dataclass(frozen=True)
class NamedEncoder:
    """Encoder. word: as --evaluators spells it. title: the word in tables, of a path only the last
    part. name: in its folders. model: name for the steps. xvectors: their folder. conf: settings by
    which the recipe trains it; empty: it comes trained. given: the folder of x-vectors that another
    toolkit made. training: number of the repeated training (<encoder>_seed<N>), which differs in
    its seed; 0: the first. head_of: the encoder whose x-vectors a head turns into others."""

    word: str
    title: str
    model: str
    conf: str = ""
    given: str = ""
    training: int = 0
    head_of: "NamedEncoder | None" = None

    @property
    def name(self) -> str:
        """Name in the folders of its results."""
        return label_of(self.title)

    @property
    def is_channel(self) -> bool:
        """Whether it hears something else than the voice."""
        return bool(attackers.channel_of(self.word))

    @property
    def is_recognised(self) -> bool:
        """Whether its vectors are made of what is recognised: words, or phones."""
        return self.word in attackers.RECOGNISED

    @property
    def is_textual(self) -> bool:
        """Whether it counts what is said; its vectors are counts then."""
        return self.word in attackers.TEXTUAL

    @property
    def is_compared(self) -> bool:
        """Whether its vectors are compared as those of voices are: legal criteria, similarity,
        leakage, crowds. Of others there are scores alone."""
        return attackers.channel_of(self.word) not in attackers.SCORED

    @property
    def xvectors(self) -> str:
        """Folder of its x-vectors."""
        return f"exp/xvectors/{self.name}"

    @property
    def backend(self) -> str:
        """Folder of the back end that comes with it, in models/; empty: it has none."""
        own = f"{MODELS}/{self.word}/backend"
        return own if Path(own).is_dir() else ""


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
    recipe trains: <encoder>_seed<N>/<back end>, N from 1 to trainings - 1. UserError where it
    trains none."""
    found: list[str] = []
    for word in words:
        encoder, _, backend = word.rpartition("/")
        found.append(word)
        if _settings_of(encoder) == (f"conf/encoders/{encoder}.yaml", 0):
            found += [f"{encoder}_seed{n}/{backend}" for n in range(1, trainings)]
    if trainings > 1 and len(found) == len(words):
        raise UserError(
            "--trainings: the recipe trains none of --evaluators; --train-evaluator true has it "
            "train ecapa_mini in place of those of models/"
        )
    return list(dict.fromkeys(found))


def shipped(word: str) -> str:
    """Encoder of an evaluator of models/, whose back end was trained here; else empty."""
    path = Path(MODELS, word, "evaluator.yaml")
    return str(read_settings(path)["encoder"]) if path.is_file() else ""


def train_instead(words: Sequence[str]) -> list[str]:
    """Evaluators of --evaluators with ecapa_mini, which the recipe trains, in place of each of
    models/ (--train-evaluator)."""
    found = []
    for word in words:
        encoder, _, backend = word.rpartition("/")
        found.append(f"ecapa_mini/{backend}" if shipped(encoder) else word)
    return list(dict.fromkeys(found))


def find_encoder(word: str) -> NamedEncoder:
    """Encoder of a word; UserError for an unknown one."""
    settings, training = _settings_of(word)
    known = any(
        word.startswith(kind) and (word == kind) != kind.endswith(":")
        for kind in attackers.NOT_TRAINABLE
    )
    ours = shipped(word)
    if not (settings or known or ours or Path(word, "encoder.yaml").is_file()):
        there = " ".join(sorted(path.name for path in Path("conf/encoders").glob("*.yaml")))
        raise UserError(
            f"--evaluators, --voice-encoder: '{word}' is not an encoder; known: resemblyzer, "
            f"pyannote, {', '.join(attackers.CHANNELS)}, hub:<model>, given:<folder>, a folder "
            f"with encoder.yaml, and in conf/encoders: {there}"
        )
    hears = (ours or word).startswith("pyannote") or word == "content"
    if hears and find_spec("moonshine_voice") is None:  # told before hours of work
        raise UserError(
            f"{word}: its network comes in moonshine-voice==0.0.49 for Linux, which is not "
            "installed: utils/setup.sh installs it where it can be; or name --evaluators without it"
        )
    given = word.partition(":")[2] if word.startswith("given:") else ""
    # A folder was trained elsewhere, for example for another corpus.
    name = Path(given or word).name if given or Path(word).is_dir() else word
    title = f"given:{name}" if given else name
    model = f"exp/encoders/{word}" if settings else ours or word
    return NamedEncoder(word, title, model, settings, given, training)


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
        """The form in which the back end is trained: PLDA, GAUSSIAN, COHORT, or nothing."""
        return BACKENDS[self.backend]

    @property
    def kind(self) -> str:
        """Back end that learns people, in the words of steps/score_held_out.py; else cosine."""
        return {PLDA: "plda", GAUSSIAN: "gaussian"}.get(self.trained, "cosine")

    @property
    def pairing(self) -> tuple[str, str]:
        """Back end and cohort size of voice similarity matrices, which are defined by PLDA or by
        the raw cosine, whichever cosine attacks."""
        return (self.scorer, self.asnorm) if self.trained == PLDA else ("cosine_raw", "0")

    @property
    def learns(self) -> bool:
        """Whether an attacker has people learnt by it, some of whom can be held out: not words that
        are counted, nor a cohort."""
        learns = self.kind != "cosine" or self.encoder != self.base
        return bool(self.training) and not self.encoder.is_textual and learns

    @property
    def held_out(self) -> str:
        """Folder of the scores of training people whom the attacker held out."""
        name = self.encoder.name if self.kind == "cosine" else Path(self.scorer).name
        return f"exp/held_out/{name}" + ("" if self.kind == "plda" else f".{self.kind}")


def _backends_of(encoder: str) -> tuple[str, ...]:
    """Back ends of an encoder: those of voices, or those of its channel."""
    channel = attackers.channel_of(encoder)
    of_phones = attackers.RHO if channel == "timing" else ()
    return attackers.COMPARED.get(channel, (*attackers.OF_VOICES, *of_phones))


def find_evaluator(word: str, cohort_size: str) -> Evaluator:
    """Evaluator of <encoder>/<back end>; UserError for an unknown one."""
    name, _, backend = word.rpartition("/")
    if not name or backend not in BACKENDS:
        raise UserError(f"--evaluators: '{word}'; {FORM} as the back end")
    encoder = find_encoder(name)
    if backend not in (known := _backends_of(name)):
        taken = ", ".join(f"{name}/{one}" for one in known)
        raise UserError(f"--evaluators: '{word}'; {name} takes {taken}")
    kind, scorer = BACKENDS[backend], backend
    if kind:
        scorer = f"exp/{kind}/{encoder.name}"
    elif attackers.channel_of(name) in attackers.WRITTEN and backend == "cosine":
        scorer = "cosine_scaled"  # its values have different units
    return Evaluator(
        word, encoder, backend, f"{encoder.title}/{backend}",
        encoder.backend if kind == PLDA and encoder.backend else scorer,
        cohort_size if backend.endswith(NORMALISED) else "0",
    )  # fmt: skip


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


def inform(evaluator: Evaluator, attack: attackers.Attempt, how: str, training: str) -> Evaluator:
    """Evaluator that an attacker trains from another with a protected training set; unchanged where
    nothing is trained."""
    if attack.level == "-":
        return evaluator
    encoder, name = evaluator.encoder, f"{evaluator.encoder.name}.{training}"
    if how in (attackers.SCRATCH, attackers.FINETUNED):
        name = f"{name}.{how}"
        head = encoder if attackers.comes_trained(encoder.word) else None
        model = f"exp/encoders/{name}"
        encoder = replace(encoder, title=name, model=model, given="", head_of=head)
    return replace(
        evaluator, encoder=encoder, training=training, base=evaluator.encoder,
        scorer=f"exp/{evaluator.trained}/{name}" if evaluator.trained else evaluator.scorer,
    )  # fmt: skip


# ---- Externally protected speech, and external commands: --external, --external-command.
#
# Each becomes a system with settings in exp/external/<name>.yaml, beside those of conf/systems. The
# content of its folders is checked before anything is made.

FOLDER = Path("exp/external")
ENROLMENT, TRAINING = "enrolment", "training"  # parts that may be missing
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OPTIONS = ("train=", "suffix=")


@dataclass(frozen=True)
class Speech:
    """Word of --external. folders: of the first draw, of the second, ... (of nist.sh: of each
    profile). options: train= and suffix=."""

    word: str
    name: str
    folders: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)


def read_external(text: str, taken: Collection[str]) -> list[Speech]:
    """Words of --external: <name>=<folder>[,<folder>][,train=<folder>][,suffix=<text>]. Blanks in
    a folder's name are its own: a word begins with <name>=.

    taken: names of other systems. UserError for a word of another form.
    """
    found: list[Speech] = []
    for word in re.split(r"\s+(?=[^\s=,/]+=)", text.strip()) if text.strip() else ():
        name, _, said = word.partition("=")
        parts = [part for part in said.split(",") if part]
        options = dict(part.split("=", 1) for part in parts if part.startswith(_OPTIONS))
        folders = [part for part in parts if not part.startswith(_OPTIONS)]
        if not name or not folders:
            raise UserError(
                f"--external '{word}': <name>=<folder>[,<folder>][,train=<folder>]"
                "[,suffix=<text>] is expected"
            )
        _check_name(f"--external '{word}'", name, {*taken, *(one.name for one in found)})
        once(f"--external '{word}'", folders)
        found.append(Speech(word, name, tuple(folders), options))
    return found


def _check_name(option: str, name: str, taken: Collection[str]) -> None:
    if name == "original" or name in taken:
        raise UserError(
            f"{option}: {name} is the name of original speech or of another system; "
            "choose another name"
        )
    if not _NAME.fullmatch(name):
        raise UserError(f"{option}: a name has letters, digits, _ and - only; not '{name}'")


def take_external(asked: Asked) -> Asked:
    """Options with the systems of --external and --external-command among the systems; writes their
    settings. UserError for unusable ones."""
    systems = asked.words("systems")
    found = read_external(asked.get("external"), systems)
    settings = {one.name: _settings(one) for one in found}
    if command := asked.get("external_command").strip():
        name, _, text = command.partition("=")
        option = f"--external-command '{command}'"
        if not text.strip():
            raise UserError(f"{option}: <name>=<program> ... {{in}} ... {{out}} is expected")
        _check_name(option, name, [*systems, *settings])
        settings[name] = {"anonymiser": "command", "command": text.strip()}
    for name, values in settings.items():
        if is_settings(path := f"conf/systems/{name}.yaml"):
            raise UserError(
                f"--external: {name_settings(path)} is another system; choose another name"
            )
        conf = FOLDER / f"{name}.yaml"
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_json(conf, values)  # JSON is YAML
        sets = [f"{asked['evaluation']}_enrolls"]
        sets += [f"{asked['evaluation']}_trials_{gender}" for gender in asked["genders"].split()]
        if suffix := look_at(str(conf), sets, find_learnt(asked).name).suffix:
            write_json(conf, {**values, "suffix": suffix})
    return asked.changed({"systems": " ".join([*systems, *settings])})


def _settings(one: Speech) -> dict[str, str]:
    first, *more = one.folders
    draws = dict(zip(("folder", "second_draw"), one.folders, strict=False))
    options = {name: value for name, value in one.options.items() if value}
    for folder in (*one.folders, options.get("train", first)):
        if not Path(folder).is_dir():
            raise UserError(f"--external '{one.word}': there is no folder '{folder}'")
    if more[1:]:
        raise UserError(f"--external '{one.word}': more than two draws; two are compared")
    return {"anonymiser": "external", **draws, **options}


def settings_of(name: str) -> str:
    """Settings of a system from an earlier use of these options; empty where there are none, or
    where conf/systems has had that system since."""
    conf = FOLDER / f"{name}.yaml"
    return str(conf) if conf.is_file() and not is_settings(f"conf/systems/{name}.yaml") else ""


@dataclass(frozen=True)
class Found:
    """Speech found for a system. lacks: missing parts among ENROLMENT and TRAINING. notes: counts
    of the finds. suffix: appended to ids in names."""

    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    suffix: str = ""


def look_at(conf: str, sets: Sequence[str], train: str) -> Found:
    """Match the speech in a system's settings with the utterances of data/<set>; sets: enrolment
    first.

    Of sets that are not prepared yet, only folders that a participant of a challenge lacks are
    found. UserError where trials are missing, or only a part of the enrolment or of the training
    set is there.
    """
    values = read_settings(conf)
    if values.get("anonymiser") != "external":
        return Found()
    if not Path(f"data/{sets[0]}/utt2spk").is_file():
        return Found(_lacking_folders(values, sets))
    name, suffix = Path(conf).stem, str(values.get("suffix", ""))
    folders = {one: Path(folder_for(conf, one, train=train, draw="0")) for one in (*sets, train)}
    folders[sets[0]] = Path(folder_for(conf, sets[0], train=train, draw="1"))
    first = Path(str(values["folder"]))
    tables = {one: Path(f"data/{one}/utt2spk") for one in folders}
    wanted = {one: list(read_map(path)) for one, path in tables.items() if path.is_file()}
    names = {folder: find_names(folder, suffix) for folder in dict.fromkeys(folders.values())}
    every = [utt for utts in wanted.values() for utt in utts]
    notes, lacks = [], []
    behind = suffix or find_suffix(first, names[first], every)
    if behind:
        notes.append(f"{name}: names end in {behind} behind the utterance")
    known = {at: {stem.removesuffix(behind) for stem in stems} for at, stems in names.items()}
    for one, utts in wanted.items():
        missing = [utt for utt in utts if utt not in known[folders[one]]]
        may_lack = {sets[0]: ENROLMENT, train: TRAINING}.get(one, "")
        if missing and may_lack and len(missing) == len(utts):
            lacks.append(may_lack)
            notes.append(f"{name}: {folders[one]} has no speech of data/{one}")
        elif missing:
            raise UserError(
                f"{name}: {folders[one]} lacks {len(missing)} of {len(utts)} utterances of "
                f"data/{one}: {_some(missing)}; give them, or take the system out"
            )
    for folder, stems in known.items():
        if strange := sorted(stems.difference(every)):
            notes.append(
                f"{name}: {folder}: {len(strange)} of {len(names[folder])} files are of no "
                f"utterance of these sets: {_some(strange)}"
            )
    return Found(tuple(lacks), tuple(notes), behind)


def _some(names: Sequence[str]) -> str:
    return f"{' '.join(names[:3])}{' ...' if names[3:] else ''}"


# Folders of a challenge that hold no training set, with a suffix or none.
_EVALUATED = re.compile(r"(.+_(enrolls|trials_|asr)|IEMOCAP_|emodata_).*")


def _lacking_folders(values: Mapping[str, object], sets: Sequence[str]) -> tuple[str, ...]:
    """Parts that a folder with `<trials><suffix>` in it, as challenges have it, lacks by names."""
    first = Path(str(values["folder"]))
    names = [path.name for path in first.glob(f"*{values.get('suffix', '')}") if path.is_dir()]
    if not any(name.startswith(one) for name in names for one in sets[1:]):
        return ()
    trained = "train" in values or any(not _EVALUATED.fullmatch(name) for name in names)
    enrolled = "second_draw" in values or any(name.startswith(sets[0]) for name in names)
    return (*(() if enrolled else (ENROLMENT,)), *(() if trained else (TRAINING,)))


def folder_for(conf: str, name: str, *, train: str, draw: str) -> str:
    """Folder of a set's speech, for a draw (0 or 1); empty for a command, which makes it."""
    values = read_settings(conf)
    if name == train and "train" in values:
        return str(values["train"])
    key = "second_draw" if draw != "0" and "second_draw" in values else "folder"
    return str(values.get(key, ""))
