"""Systems of others: speech that they protected, their commands, and models of torch.hub."""

import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from steps.anonymisers.registry import Anonymiser, AsItIs, Description, Spoken
from steps.audio import SAMPLE_RATE, read_audio
from steps.sources import SourceSpeaker, SystemRun, VoiceKey
from utils import settings as rule
from utils.arrays import Float64
from utils.audiofile import audio_format
from utils.cli import UserError, refusing
from utils.seeds import Draws, derive_seed
from utils.tables import StrPath, read_map

# ---- Externally protected speech, taken as it is, to be measured beside ours.

NOTE = (
    "Speech that another program made, as it is: what it draws, for whom, and how it was made is "
    "not known here."
)
_SAME_LENGTH = 0.01  # least part of the original's length
_FRAME = 400  # samples: 25 ms
_OTHER_LENGTH = 2.0  # factor of length, up or down, beyond which the utterance is another one


@dataclass(frozen=True)
class SpeechSettings:
    """folder: holds the audio, or data directories. suffix: follows the utterance's id in the name
    of a file, or in an id of wav.scp (such as _anon). second_draw: the same speech, protected once
    more, for the enrolment that attackers protect themselves. train: the protected training set.
    Recipes give the folder that a set needs."""

    anonymiser: str
    folder: str
    suffix: str = ""
    second_draw: str = ""
    train: str = ""

    @property
    def draws_anew(self) -> bool | None:
        """Whether a further run gives other speech; None: unknown."""
        return True if self.second_draw else None


def find_speech(folder: Path, suffix: str = "") -> dict[str, str]:
    """Audio by utterance: by wav.scp of a folder and its sub-folders, else all audio in it.

    UserError for a missing folder, one without audio, and a duplicate utterance.
    """
    return _once(
        folder,
        ((name.removesuffix(suffix), path) for name, path in find_names(folder, suffix).items())
    )  # fmt: skip


def find_names(folder: Path, suffix: str = "") -> dict[str, str]:
    """Audio files by their names in the folder, suffix included. Where sub-folders end in the
    suffix (libri_test_enrolls_anon), others are not searched."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; it holds the speech of an external system")
    if found := _once(folder, _named(folder, suffix)):
        return found
    raise UserError(f"{folder}: holds neither audio nor a wav.scp")


def _once(folder: Path, named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Audio by name. UserError for a name that is there twice, with two files."""
    found: dict[str, str] = {}
    for name, path in named:
        if found.setdefault(name, path) != path:
            raise UserError(
                f"{folder}: {name} is there twice: {found[name]} and {path}; remove one"
            )
    return found


def find_suffix(folder: Path, names: Iterable[str], utts: Iterable[str]) -> str:
    """Suffix of utterances in most names, such as _anon; empty where names are utterances.

    UserError where no name begins with an utterance, or an utterance has two suffixes, of which one
    may be the original: it names both.
    """
    known = set(utts)
    behind: Counter[str] = Counter()
    seen: dict[str, str] = {}
    for name in names:
        ends = (end for end in range(len(name), 0, -1) if name[:end] in known)
        if end := next(ends, 0):  # the longest: spk-10_anon does not belong to spk-1
            behind[name[end:]] += 1
            if seen.setdefault(name[:end], name) != name:
                raise UserError(
                    f"{folder}: {name[:end]} is there as {seen[name[:end]]} and as {name}; say "
                    "which is meant by suffix=, such as suffix=_anon"
                )
    if not behind:
        theirs = next(iter(names), "none")
        raise UserError(
            f"{folder}: no name begins with an utterance's id: found {theirs}, expected such as "
            f"{min(known, default='none')}"
        )
    return behind.most_common(1)[0][0]


def _named(folder: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """Audio of a data directory, or of those in the folder: each by its wav.scp, or all in it."""
    own = [path for path in sorted(folder.glob(f"*{suffix}")) if suffix and path.is_dir()]
    places = own or [folder, *(path for path in sorted(folder.glob("*")) if path.is_dir())]
    tables = {place: place / "wav.scp" for place in places if (place / "wav.scp").is_file()}
    for table in tables.values():
        yield from _listed(table)
    if folder in tables:
        return  # its audio is in its sub-folders
    if not own and not tables:
        places = [folder]
    for place in places:
        if place == folder and tables:
            yield from _audio(place.glob("*"))
        elif place not in tables:
            yield from _audio(place.rglob("*"))


def _audio(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for path in sorted(paths):
        if audio_format(path) and path.is_file():
            yield path.stem, str(path)


def _listed(table: Path) -> Iterator[tuple[str, str]]:
    """Names and audio of a wav.scp, whose paths may be relative to a folder above it."""
    bases = table.absolute().parents
    for name, file in read_map(table, rest_of_line=True).items():
        found = next((base / file for base in bases if (base / file).exists()), file)
        yield name, str(found)


class External(Anonymiser):
    """One configured system, from the folder --external; see `registry.Anonymiser`."""

    kind: Any = SpeechSettings
    level, output = "utt", AsItIs()

    def __init__(self, settings: Any, run: SystemRun) -> None:
        """A draw from 1 on has another folder. Unknown facts stand among the settings."""
        super().__init__(settings, run)
        self._folder = run.folder("external")
        self._speech = find_speech(self._folder, settings.suffix)
        self.is_random = settings.draws_anew

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> Description:
        """Needs of the system: its folder, or one that a command fills for each set and draw. It
        takes the user's word that a training set is protected at level utt, and its draws may move
        speech in time."""
        return Description(
            "utt", (f"external:{getattr(settings, 'folder', '')}",), ("utt",), moves=True
        )

    def settings(self) -> dict[str, object]:
        """Settings of the file; the rest is unknown."""
        return {**super().settings(), "note": NOTE}

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Audio of the key's utterance at 16 kHz. UserError if there is none, or if it is the
        original itself."""
        utt = key.names[-1]
        if utt not in self._speech:
            raise UserError(f"{self._folder}: has no audio of utterance {utt}")
        path = self._speech[utt]
        audio = read_audio(utt, path)
        made = audio.samples
        check_speech(f"{utt}: {path}", made, wave, getattr(self.given, "longer", _OTHER_LENGTH))
        longer = len(made) / len(wave) - 1
        if abs(longer) > _SAME_LENGTH:
            self.notes[:] = ["Some utterances are longer or shorter than the original by over 1 %"]
        return made, {
            "longer": f"{longer:.4f}",
            "rate": audio.file_rate,
            "silence": f"{_silence(made):.3f}",
            "silence_before": f"{_silence(wave):.3f}",
        }


def check_speech(where: str, made: Float64, wave: Float64, longer: float = _OTHER_LENGTH) -> None:
    """Raise a UserError if external speech (at 16 kHz) is the original itself, digital silence, or
    longer or shorter by a factor above `longer`, which must be another utterance."""
    if wave.any() and np.array_equal(made, wave):
        raise UserError(f"{where} is the original speech, not protected")
    if wave.any() and not made.any():
        raise UserError(f"{where} is digital silence, but the original is speech")
    if not 1 / longer <= len(made) / len(wave) <= longer:
        raise UserError(
            f"{where} is {len(made) / SAMPLE_RATE:.1f} s long, the original "
            f"{len(wave) / SAMPLE_RATE:.1f} s; give the protected speech of this utterance"
        )


def _silence(wave: Float64) -> float:
    """Share of frames of 25 ms that lie more than 40 dB below the loudest one."""
    n = len(wave) // _FRAME
    if not n:
        return 0.0
    energy = (wave[: n * _FRAME].reshape(n, _FRAME) ** 2).sum(axis=1)
    return float((energy < 1e-4 * energy.max()).mean())


# ---- Protection of a data directory by the user's own program, as a system of a recipe.

SEED = "{seed}"


@dataclass(frozen=True)
class CommandSettings:
    """command: a program and its words; in them {in} is a data directory (wav.scp, utt2spk, ...),
    {out} the folder to fill with an audio file for each utterance, named by it, and {seed} a number
    that differs between draws (without it the program counts as not random). suffix: follows the
    utterance's id in the names of these files. longer: factor of length, up or down, beyond which
    audio is another utterance's."""

    anonymiser: str
    command: str
    suffix: str = ""
    longer: Annotated[float, rule.Number(least=1)] = _OTHER_LENGTH

    def __post_init__(self) -> None:
        for place in ("{in}", "{out}"):
            if place not in self.command:
                raise ValueError(f"command: {self.command!r} has no {place}")
        try:
            shlex.split(self.command)
        except ValueError as error:  # a quotation without end
            raise ValueError(f"command: {self.command!r}: {error}") from error

    @property
    def draws_anew(self) -> bool:
        """Whether the program is given a seed."""
        return SEED in self.command


class Command(External):
    """System of the program's output (`protect_data`), in the folder --external."""

    kind = CommandSettings

    def settings(self) -> dict[str, object]:
        return asdict(self.given)


def protect_data(
    settings: CommandSettings, data: Path, out: Path, utts: Sequence[str], seed: int
) -> None:
    """Run the program on a data directory; `out` appears when it has an audio file for each of
    utts. UserError where the program cannot be started, fails, or leaves utterances out.

    Its output goes to the log. seed: of the set and draw, from `seed_of`.
    """
    beside = out.with_name(f"{out.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    places = {"{in}": os.fspath(data), "{out}": os.fspath(beside), SEED: str(seed)}
    words = [
        re.sub("|".join(places), lambda place: places[place[0]], word)
        for word in shlex.split(settings.command)
    ]
    with refusing(f"command: {words[0]} cannot be started: {{}}", OSError):
        status = subprocess.run(words, check=False).returncode
    if status:
        raise UserError(
            f"command: `{shlex.join(words)}` ended with status {status}; its messages are above"
        )
    found = find_speech(beside, settings.suffix)
    if missing := [utt for utt in utts if utt not in found]:
        raise UserError(
            f"command: `{shlex.join(words)}` wrote no audio of {len(missing)} of {len(utts)} "
            f"utterances: {' '.join(missing[:3])}{' ...' if missing[3:] else ''}"
        )
    shutil.rmtree(out, ignore_errors=True)
    beside.rename(out)


def seed_of(draws: Draws, dataset: str) -> int:
    """Value of {seed}: another number for each set and draw."""
    return derive_seed(draws.seed, "command", dataset, str(draws.draw)) % 2**31
