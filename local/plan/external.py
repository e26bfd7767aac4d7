"""Externally protected speech, and external commands: --external, --external-command.

Each becomes a system with settings in exp/external/<name>.yaml, beside those of conf/systems. The
content of its folders is checked before anything is made.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local.plan.labels import Words
from local.plan.options import Asked, find_learnt, once
from steps.anonymisers.external import find_names, find_suffix
from utils.cli import UserError
from utils.settings import is_settings, name_settings, read_settings
from utils.tables import few, read_map, write_json

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
    folders: Words
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

    lacks: Words = ()
    notes: Words = ()
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
                f"data/{one}: {few(missing)}; give them, or take the system out"
            )
    for folder, stems in known.items():
        if strange := sorted(stems.difference(every)):
            notes.append(
                f"{name}: {folder}: {len(strange)} of {len(names[folder])} files are of no "
                f"utterance of these sets: {few(strange)}"
            )
    return Found(tuple(lacks), tuple(notes), behind)


# Folders of a challenge that hold no training set, with a suffix or none.
_EVALUATED = re.compile(r"(.+_(enrolls|trials_|asr)|IEMOCAP_|emodata_).*")


def _lacking_folders(values: Mapping[str, object], sets: Sequence[str]) -> Words:
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
