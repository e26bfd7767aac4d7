# SPDX-License-Identifier: Apache-2.0
"""Externally protected speech, and external commands: --external, --external-command.

Each becomes a system with settings in exp/external/<name>.yaml, beside those of conf/systems. The
content of its folders is checked before anything is made.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local.plan.options import Asked, once
from steps.anonymisers.external import find_names, find_suffix
from utils.cli import UserError
from utils.settings import is_settings, name_settings, read_settings
from utils.tables import atomic_write, read_map

FOLDER = Path("exp/external")
ENROLMENT, TRAINING = "enrolment", "training"  # parts that may be missing
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OPTIONS = ("train", "suffix")


@dataclass(frozen=True)
class Speech:
    """Word of --external. folders: of the first draw, of the second, ... (of nist.sh: of each
    profile). options: train= and suffix=."""

    word: str
    name: str
    folders: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)


def read_external(text: str, taken: Collection[str]) -> list[Speech]:
    """Words of --external: <name>=<folder>[,<folder>][,train=<folder>][,suffix=<text>].

    taken: names of other systems. UserError for a word of another form.
    """
    found: list[Speech] = []
    for word in text.split():
        name, _, said = word.partition("=")
        parts = [part for part in said.split(",") if part]
        if not name or not parts or _split(parts[0])[0]:
            raise UserError(
                f"--external '{word}': <name>=<folder>[,<folder>][,train=<folder>]"
                "[,suffix=<text>] is expected"
            )
        _check_name(f"--external '{word}'", name, {*taken, *(one.name for one in found)})
        options = dict(
            p.split("=", 1) for p in parts if p.startswith(tuple(f"{o}=" for o in _OPTIONS))
        )
        folders = tuple(part for part in parts if part.partition("=")[0] not in options)
        once(f"--external '{word}'", folders)
        found.append(Speech(word, name, folders, options))
    return found


def _split(part: str) -> tuple[str, str]:
    """Name and value of train=X or suffix=X; a folder has no name."""
    name, equals, value = part.partition("=")
    return (name, value) if equals and name in _OPTIONS else ("", part)


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
    names = [one.name for one in found]
    settings = {one.name: _settings(one) for one in found}
    if command := asked.get("external_command").strip():
        name, _, text = command.partition("=")
        option = f"--external-command '{command}'"
        if not text.strip():
            raise UserError(f"{option}: <name>=<program> ... {{in}} ... {{out}} is expected")
        _check_name(option, name, [*systems, *names])
        settings[name] = {"anonymiser": "command", "command": text.strip()}
    for name, values in settings.items():
        if is_settings(path := f"conf/systems/{name}.yaml"):
            raise UserError(
                f"--external: {name_settings(path)} is another system; choose another name"
            )
        _write(name, values)
        sets = [f"{asked['evaluation']}_enrolls"]
        sets += [f"{asked['evaluation']}_trials_{gender}" for gender in asked["genders"].split()]
        if suffix := look_at(str(_conf(name)), sets, asked["train_set"]).suffix:
            _write(name, {**values, "suffix": suffix})
    return asked.changed({"systems": " ".join([*systems, *settings])})


def _write(name: str, values: Mapping[str, object]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with atomic_write(_conf(name)) as stream:  # JSON is YAML
        json.dump(values, stream, indent=1)
        stream.write("\n")


def _settings(one: Speech) -> dict[str, object]:
    folders = [*one.folders, *([one.options["train"]] if "train" in one.options else [])]
    for folder in folders:
        if not Path(folder).is_dir():
            raise UserError(f"--external '{one.word}': there is no folder '{folder}'")
    first, *more = one.folders
    values: dict[str, object] = {"anonymiser": "external", "folder": first}
    if more[1:]:
        raise UserError(f"--external '{one.word}': more than two draws; two are compared")
    if more:
        values["second_draw"] = more[0]
    if train := one.options.get("train"):
        values["train"] = train
    if suffix := one.options.get("suffix"):
        values["suffix"] = suffix
    return values


def _conf(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


def settings_of(name: str) -> str:
    """Settings of a system from an earlier use of these options; empty where there are none."""
    return str(_conf(name)) if _conf(name).is_file() else ""


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

    Sets that are not prepared yet are not checked. UserError where trials are missing, or only a
    part of the enrolment or of the training set is there.
    """
    values = read_settings(conf)
    if values.get("anonymiser") != "external" or not Path(f"data/{sets[0]}/utt2spk").is_file():
        return Found()
    name, suffix = Path(conf).stem, str(values.get("suffix", ""))
    first = Path(str(values["folder"]))
    second = Path(str(values.get("second_draw", first)))
    folders = {sets[0]: second, **dict.fromkeys(sets[1:], first)}
    folders[train] = Path(str(values.get("train", first)))
    wanted = {one: list(read_map(f"data/{one}/utt2spk")) for one in folders if _there(one)}
    names = {folder: find_names(folder, suffix) for folder in dict.fromkeys(folders.values())}
    every = [utt for utts in wanted.values() for utt in utts]
    notes, lacks = [], []
    behind = suffix or find_suffix(first, names[first], every)
    if behind:
        notes.append(f"{name}: names end in {behind} behind the utterance")
    for folder, stems in names.items():
        known = {stem.removesuffix(behind) for stem in stems}
        for one, utts in wanted.items():
            if folders[one] != folder:
                continue
            missing = [utt for utt in utts if utt not in known]
            may_lack = {sets[0]: ENROLMENT, train: TRAINING}.get(one, "")
            if missing and may_lack and len(missing) == len(utts):
                lacks.append(may_lack)
                notes.append(f"{name}: {folder} has no speech of data/{one}")
            elif missing:
                raise UserError(
                    f"{name}: {folder} lacks {len(missing)} of {len(utts)} utterances of "
                    f"data/{one}: {' '.join(missing[:3])}{' ...' if missing[3:] else ''}; give "
                    "them, or take the system out"
                )
        strange = sorted(known.difference(every))
        if strange:
            notes.append(
                f"{name}: {folder}: {len(strange)} of {len(stems)} files are of no utterance of "
                f"these sets: {' '.join(strange[:3])}{' ...' if strange[3:] else ''}"
            )
    return Found(tuple(lacks), tuple(notes), behind)


def _there(name: str) -> bool:
    return Path(f"data/{name}/utt2spk").is_file()


def folder_for(conf: str, name: str, *, train: str, draw: str) -> str:
    """Folder of a set's speech, for a draw (0 or 1); empty for a command, which makes it."""
    values = read_settings(conf)
    if name == train and "train" in values:
        return str(values["train"])
    key = "second_draw" if draw != "0" and "second_draw" in values else "folder"
    return str(values.get(key, ""))
