"""Figures, curves, records and clips of a run, gathered for the folder of results.

`figures.json` has what the pictures need, in the lists `similarity`, `attacks` and `searches`; each
entry holds its `where` (the labels of metrics.csv) and its curves; `prior` holds
the ECE of an attacker who hears nothing. Numbers have six digits: pictures show no more.
"""

import io
import json
import logging
import os
import platform
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import soundfile

from local.metrics import recordings, verification
from local.metrics.intervals import COLUMNS, Key
from local.plan.labels import Family, read_labels
from local.report.frame import COUNTS, METRICS, read_frame, read_somewhere
from local.report.measures import MEASURES
from local.report.results import SETTINGS, Group, Results
from steps.audio import SAMPLE_RATE, read_audio
from utils.arrays import Float64
from utils.cli import LossError, UserError
from utils.datadir import DataDir, load_data_dir
from utils.digests import sha256
from utils.stamps import commit_of_code, provenance, read_stamp
from utils.tables import is_there, read_bytes, read_json_object, read_map, write_file, write_json
from utils.trials import join_scores, read_scores, read_trials

Row = dict[str, str]
Json = dict[str, object]
Missing = dict[str, str]  # what: a folder or file; why
T = TypeVar("T")
logger = logging.getLogger(__name__)


def labelled(folders: Iterable[Path]) -> tuple[dict[Path, Row], list[Missing]]:
    """Labels of each folder of figures (`Labelled` of local/options.py), and the folders that have
    none, each with why."""
    found, missing = usable(
        (folder, partial(lambda at: (at, read_labels(at)._asdict()), folder)) for folder in folders
    )
    return dict(found), missing


def read_figures(folder: Path) -> Json:
    """Read the metrics.json of a folder; UserError where it is missing or not a JSON object."""
    return read_json_object(folder / "metrics.json", "remove it and run stage 9")


def _text(value: object) -> str:
    """A scalar as it stands in the table; nothing for an undefined one."""
    return "" if value is None else str(value)


def _count(figures: Json, name: str) -> object:
    """A count of a metrics.json, or the sum of those of its three matrices or lists."""
    parts = [figures.get(f"{name}_{setting}") for setting in ("oo", "op", "pp", "oa", "aa")]
    whole = [part for part in parts if isinstance(part, int)]
    return sum(whole) if len(whole) == 3 else figures.get(name)


def tabulate(folder: Path, where: Row) -> tuple[list[Row], list[Row]]:
    """The rows of one folder of figures: those with a title in measures.yaml, and figures by
    speaker. where: its labels.

    Matrices, zoo points and other figures stay in the JSON.
    """
    return _rows(read_figures(folder), where | {"settings": _settings(folder)})


def _settings(folder: Path) -> str:
    """Digest of all that made the figures of a folder, as short as git has them."""
    digest = provenance(folder)
    if digest is None:
        raise UserError(f"{folder}: has no stamp, so nobody can say how it was made; run stage 9")
    return digest[:12]


def _rows(figures: Json, where: Row) -> tuple[list[Row], list[Row]]:
    bounds, columns = (own if isinstance(own := figures.get(name), dict) else {}
                       for name in ("intervals", "columns"))  # fmt: skip
    counts = {name: _text(_count(figures, name)) for name in COUNTS}
    rows, speaker_rows = [], []
    for metric, value in figures.items():
        name = metric.removesuffix("_per_speaker")
        of = dict.fromkeys(COLUMNS, "") | {"metric": name, "kind": "value"} | columns.get(name, {})
        if name != metric:  # of single people; null where it is not defined
            people = value if isinstance(value, Mapping) else {}
            speaker_rows += [where | of | {"speaker": s, "value": _text(own)}
                             for s, own in people.items()]  # fmt: skip
        elif not isinstance(value, Mapping) and of["metric"] in MEASURES:  # others are counts
            low, high = (_text(bound) for bound in bounds.get(metric) or (None, None))
            own = {"value": _text(value), "low": low, "high": high}
            rows.append(where | counts | of | own)
    return rows, speaker_rows


def tabulate_all(
    folders: Mapping[Path, Row], corpus: str
) -> tuple[list[Row], list[Row], list[Missing]]:
    """The rows of all folders of figures, and the folders that could not be used, each with why.
    folders: with the labels of each."""
    found, missing = usable(
        (folder, partial(tabulate, folder, {"corpus": corpus} | where))
        for folder, where in folders.items()
    )
    figures, speakers = ([row for own in found for row in own[kind]] for kind in (0, 1))
    return figures, speakers, missing


def differences(folders: Mapping[Path, Row], corpus: str) -> list[Row]:
    """Rows of how far the strongest attacker's EER on each system lies above that on each later
    one, on the same list. folders: those that can be used, with their labels."""
    chosen = [
        ({"corpus": corpus} | where, read_figures(folder), _settings(folder))
        for folder, where in folders.items()
        if where["family"] == Family.STRONGEST
    ]
    rows = []
    for (where, own, made), (other, theirs, also) in combinations(chosen, 2):
        if where["split"] == other["split"]:
            found = recordings.differences(own, theirs)
            columns = {name: name.columns | {"group": other["system"]}
                       for name in found if isinstance(name, Key)}  # fmt: skip
            settings = sha256(f"{made} {also}".encode())[:12]
            rows += _rows(found | {"columns": columns}, where | {"settings": settings})[0]
    return rows


# What the pictures need.


def shorten(value: object) -> Any:
    """The same as JSON has it, with six significant digits, infinities as text and NaN as null."""
    odd = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}
    text = json.dumps(value)
    return json.loads(text, parse_float=lambda x: float(f"{float(x):.6g}"), parse_constant=odd.get)


def _entry(where: Row, found: Mapping[str, object]) -> Json:
    return {"where": where, **shorten(found)}


def of_metrics(folders: Mapping[Path, Row]) -> dict[str, list[Json]]:
    """Similarity matrices as lists of rows, with zoo points as lists of pairs, and rank curves."""
    similarity, searches = [], []
    for folder, where in folders.items():
        figures = read_figures(folder)
        oo = figures.get("sim_oo")
        if not where["attacker"] and isinstance(oo, dict):
            found: Json = {"speakers": list(oo)}
            for s in SETTINGS:
                sim, zoo = figures.get(f"sim_{s}"), figures.get(f"zoo_{s}")
                if isinstance(sim, dict) and isinstance(zoo, dict):
                    found[f"sim_{s}"] = [list(row.values()) for row in sim.values()]
                    found[f"zoo_{s}"] = list(zoo.values())
            similarity.append(_entry(where, found))
        if isinstance(curve := figures.get("cmc_curve"), dict):
            searches.append(_entry(where, curve))
    return {"similarity": similarity, "searches": searches}


def gather(
    folders: Mapping[Path, Row], used: Container[Path], attacks: Sequence[Sequence[Path]]
) -> tuple[Json, list[Missing]]:
    """All that the pictures need, and what of it could not be had.

    folders: with the labels of each; used: those with metrics.json; attacks: (folder of its
    figures, trials, score folder).
    """
    if strange := [own[0] for own in attacks if own[0] not in folders]:
        raise UserError(f"{strange[0]}: no folder of --figures, so its labels are not known")

    def draw(of: Path, path: Path, folder: Path) -> Json:
        trials, scores = read_trials(path), folder / "scores"
        if trials.target.all() or not trials.target.any():
            raise UserError(f"{path}:1: target and nontarget trials are both needed")
        score = join_scores(trials, read_scores(scores), trials_path=path, scores_path=scores)
        return _entry(folders[of], verification.attack(trials.target, score))

    attacked, lost = usable((own[2], partial(draw, *own)) for own in attacks)
    found = of_metrics({folder: where for folder, where in folders.items() if folder in used})
    return {**found, "attacks": attacked, "prior": shorten(verification.prior_profile())}, lost


# Short clips of the worst-protected speakers, to be heard beside the figures: the loudest stretch
# of SECONDS of an utterance, the same in the original and in the protected version, at 16 kHz, as
# MP3 (which every browser plays; for listening, not measuring).

SECONDS = 3.0


class ProtectedSet(NamedTuple):
    """A set of a system: original and protected data directory."""

    system: str
    original: DataDir
    protected: DataDir


def load_speech(words: Sequence[Sequence[str]]) -> list[ProtectedSet]:
    """`words`: system, original data directory, protected data directory."""
    return [
        ProtectedSet(system, load_data_dir(Path(original)), load_data_dir(Path(protected)))
        for system, original, protected in words
    ]


def mp3(samples: npt.NDArray[Any]) -> bytes:
    """Samples at 16 kHz as MP3."""
    stream = io.BytesIO()
    soundfile.write(stream, samples, SAMPLE_RATE, format="MP3")
    return stream.getvalue()


def loudest(samples: Float64, length: int) -> int:
    """Where the loudest stretch of `length` samples begins; 0 if there are no more."""
    if len(samples) <= length:
        return 0
    energy = np.concatenate(([0.0], np.cumsum(np.square(samples, dtype=np.float64))))
    return int(np.argmax(energy[length:] - energy[:-length]))


def _utterance(speech: ProtectedSet, speaker: str) -> str:
    """The first utterance that fills a clip, else the longest; one that was protected too."""
    durations: Mapping[str, float] = speech.original.utt2dur or {}
    own = [u for u in speech.original.spk2utt[speaker] if u in speech.protected.wav]
    if not own:
        raise UserError(f"{speech.protected.path}: no utterance of speaker {speaker}")
    return max(own, key=lambda u: min(durations.get(u, 0.0), SECONDS))


def cut_clips(
    results: Results, speech: Sequence[ProtectedSet], n_worst: int, out: Path
) -> tuple[list[Json], list[Missing]]:
    """Clips of the `n_worst` worst-protected speakers of each system and split; each is written
    once, whichever systems ask for it."""
    made: dict[tuple[str, str], str] = {}
    length = int(SECONDS * SAMPLE_RATE)

    def clip(data: DataDir, utterance: str, start: int) -> str:
        key = str(data.path), utterance
        if key not in made:
            name = f"clips/{len(made):03d}.mp3"
            samples = read_audio(utterance, data.wav[utterance]).samples
            start = max(0, min(start, len(samples) - length))
            write_file(out / name, mp3(np.asarray(samples[start : start + length], np.float32)))
            made[key] = name
        return made[key]

    def pair(group: Group, speaker: str, of: ProtectedSet) -> Json:
        utterance = _utterance(of, speaker)
        samples = read_audio(utterance, of.original.wav[utterance]).samples
        start = loudest(samples, length)
        clips = (clip(data, utterance, start) for data in (of.original, of.protected))
        names = ("system", "evaluator", "split", "speaker", "utterance", "original", "protected")
        return dict(zip(names, (*group, speaker, utterance, *clips), strict=True))

    jobs: list[tuple[object, Callable[[], Json]]] = []
    for worst in results.worst_people(n_worst).values():
        for group, person in worst:
            sets = (s for s in speech if s.system == group[0] and person.name in s.original.spk2utt)
            if of := next(sets, None):
                jobs.append((f"clip of {person.name}", partial(pair, group, person.name, of)))
    return usable(jobs)


# ---- Where the figures came from: command, commit, machine, versions, settings.

PACKAGES = ("torch", "speechbrain", "numpy", "scipy", "kaldiio", "matplotlib", "resemblyzer")


def lacks(what: object, error: UserError) -> Missing:
    """Note, and warn of, what is left out."""
    logger.warning("left out: %s", error)
    return {"what": str(what), "why": str(error)}


def usable(jobs: Iterable[tuple[object, Callable[[], T]]]) -> tuple[list[T], list[Missing]]:
    """Findings of several readers, and the names of those that find nothing, with the reason."""
    found, missing = [], []
    for name, read in jobs:
        try:
            found.append(read())
        except UserError as error:
            missing.append(lacks(name, error))
    return found, missing


def check_losses(missing: Sequence[Missing], allowed: int) -> None:
    """LossError where more is left out than allowed; it names the first."""
    if len(missing) > allowed:
        raise LossError(
            f"{missing[0]['why']} ({len(missing)} left out in all; --allow-loss is {allowed})"
        )


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} absent"


def _command(log: Path) -> str:
    """Command line of the recipe that runs; by hand, the last of exp/cmdline.log.

    Its lines are `<date> <time>  <commit>  <command>`; another recipe may have written the last.
    """
    if told := os.environ.get("PSEUDOVOX_COMMAND"):
        return told.strip()
    lines = read_bytes(log).decode(errors="replace").splitlines() if is_there(log) else []
    return lines[-1].split("  ", 2)[-1].strip() if lines else "not recorded"


def _processors() -> str:
    """Number and model of the processors, as far as the system tells."""
    told = ""
    with suppress(OSError):
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: *(.*)", told, re.M)
    return f"{os.cpu_count()} processors ({model[1] if model else 'model unknown'})"


def origin(command_log: Path = Path("exp/cmdline.log")) -> dict[str, str]:
    """Command, commit, date, machine and versions of this run."""
    return {
        "command": _command(command_log),
        "commit": commit_of_code(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {_processors()}, Python {platform.python_version()}",
        "versions": ", ".join(_version(package) for package in PACKAGES),
    }


def steps(folders: Sequence[Path]) -> list[dict[str, str]]:
    """How each folder of figures was made, from its stamp; folders without one are left out."""
    found = []
    for folder in folders:
        if (digest := provenance(folder)) is None:
            continue
        stamp = read_stamp(folder) or {}
        command = " ".join(stamp.get("command", []))
        made = {"folder": str(folder), "settings": digest[:12], "command": command}
        found.append(made | {name: str(stamp.get(name) or "") for name in ("finished", "host")})
    return found


def attacks(
    folders: Mapping[Path, Row], attacks: Sequence[Sequence[Path]]
) -> tuple[list[Json], list[Missing]]:
    """attacker.json beside the scores of each attack, with its labels, and those that have none
    beside them. The arguments are as for `gather`.

    Of a folder without scores there is nothing to tell; those who need them say that.
    """

    def read(of: Path, path: Path) -> Json:
        return {"where": folders[of], **read_json_object(path, "run stage 8")}

    paths = [(of, at / "attacker.json") for of, _, at in attacks if (at / "scores").is_file()]
    return usable((path, partial(read, of, path)) for of, path in paths)


def settings_of_systems(speech: Sequence[Sequence[str]]) -> tuple[dict[str, Json], list[Missing]]:
    """conf.json (the anonymiser's settings) of each system's protected sets; and what is missing.

    speech: system, original data directory, protected data directory. "remarks" are the lines of
    all its sets' notes.txt, which say what was not done as asked.
    """
    found: dict[str, Json] = {}
    remarks: dict[str, set[str]] = {}

    def read(system: str, path: Path) -> None:
        conf = read_json_object(path, "protect the set again")
        told = conf.get("system", conf)
        if not isinstance(told, dict):
            raise UserError(f"{path}: system: no settings; protect the set again")
        found.setdefault(system, {**told, "seed": conf.get("seed")})
        if is_there(notes := path.with_name("notes.txt")):
            lines = read_map(notes, rest_of_line=True).values()
            remarks.setdefault(system, set()).update(lines)

    paths = [(system, Path(protected) / "conf.json") for system, _, protected in speech]
    _, missing = usable((path, partial(read, system, path)) for system, path in paths)
    for system, remarked in remarks.items():
        found[system]["remarks"] = sorted(remarked)
    return found, missing


KEPT = ("metrics.csv", "generators.csv")  # of collect_results.py and collect_study.py


def keep(results: Path, out: Path, names: dict[str, str], command: str = "") -> str:
    """Copy those of a run's figures that pages read to a folder that is committed, with command.txt
    and origin.json, which also says whose speech it is, and which figures were lost; returns the
    name of the table.

    names: what to write for a path of this machine. UserError where the run has no
    command, or one with an absolute path that has no name: the page would not say what to run.
    """
    run = read_json_object(results / "run.json", "run stage 11")
    origin = run.get("origin")
    told = dict(origin) if isinstance(origin, dict) else {}
    said = str(told.pop("command", ""))
    text, lost = command or said.replace("not recorded", ""), json.dumps(run.get("missing"))
    for path in sorted(names, key=len, reverse=True):
        text, lost = (words.replace(path, names[path]) for words in (text, lost))
    if not text:
        raise UserError(f"{results}/run.json: no command was recorded; give --command")
    if left := [word for word in re.split(r"[\s='\",]+", text) if word.startswith("/")]:
        raise UserError(f"{left[0]}: a path of this machine; give --name {left[0]}=NAME")
    name = next((name for name in KEPT if is_there(results / name)), KEPT[0])
    table = read_bytes(results / name)
    if name == "metrics.csv":
        rows = read_somewhere(read_frame(results / name, METRICS))
        table = rows.to_csv(index=False, lineterminator="\n").encode()
    told[name] = f"sha256:{sha256(table)}"
    told |= {what: run[what] for what in ("corpus", "corpus_note", "trainings") if run.get(what)}
    told |= {"missing": json.loads(lost)} if run.get("missing") else {}
    write_file(out / name, table)
    write_file(out / "command.txt", text + "\n")
    write_json(out / "origin.json", told)
    return name
