"""Figures, curves, records, clips and times of a run, gathered for the folder of results.

`figures.json` has what the pictures need, in the lists `similarity`, `attacks`, `calibrations` and
`searches`; each entry holds its `where` (the labels of metrics.csv) and its curves; `prior` holds
the ECE of an attacker who hears nothing. Numbers have six digits: pictures show no more.
"""

import io
import json
import logging
import os
import platform
import re
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import soundfile

from local.metrics import verification
from local.report.frame import (
    COUNTS,
    LABELS,
    MEASURES,
    METRICS,
    SETTINGS,
    TIMINGS,
    Group,
    Results,
    read_frame,
    read_somewhere,
)
from steps.audio import SAMPLE_RATE, read_audio
from utils.arrays import Bool, Float64
from utils.cli import LossError, UserError
from utils.datadir import DataDir, load_data_dir, read_noted
from utils.digests import sha256
from utils.launching import read_account
from utils.stamps import commit_of_code, provenance, read_stamp
from utils.tables import is_there, read_bytes, read_json_object, read_map, write_file, write_json
from utils.trials import join_scores, read_scores, read_trials

Row = dict[str, str]
Json = dict[str, object]
Missing = dict[str, str]  # what: a folder or file; why
T = TypeVar("T")
logger = logging.getLogger(__name__)


def labelled(lists: Iterable[Sequence[str]]) -> dict[Path, Row]:
    """Subject of each folder of figures; lists: a folder and the words for LABELS, `-` for none
    (`Labelled` of local/options.py)."""
    return {
        Path(folder): dict(zip(LABELS, ("" if w == "-" else w for w in words), strict=True))
        for folder, *words in lists
    }


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
    """The rows of one folder of figures: those with a title in measures.csv, and figures by
    speaker. where: its labels.

    Matrices, zoo points and other figures stay in the JSON.
    """
    digest = provenance(folder)  # of all that made the figures
    if digest is None:
        raise UserError(f"{folder}: has no stamp, so nobody can say how it was made; run stage 9")
    where = where | {"settings": digest[:12]}  # as short as git has them
    figures = read_figures(folder)
    bounds, columns = (own if isinstance(own := figures.get(name), dict) else {}
                       for name in ("intervals", "columns"))  # fmt: skip
    counts = {name: _text(_count(figures, name)) for name in COUNTS}
    rows, speaker_rows = [], []
    for metric, value in figures.items():
        if isinstance(value, Mapping) and metric.endswith("_per_speaker"):
            of = where | {"metric": metric.removesuffix("_per_speaker")}
            speaker_rows += [of | {"speaker": s, "value": _text(own)} for s, own in value.items()]
            continue
        of = {"metric": metric, "kind": "value"} | columns.get(metric, {})
        if of["metric"] in MEASURES:  # others are counts, or of single people
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


def _scores(trials_path: Path, *folders: Path) -> list[Bool | Float64]:
    """Which trials are target trials, and their scores in each folder."""
    trials = read_trials(trials_path)
    if trials.target.all() or not trials.target.any():
        raise UserError(f"{trials_path}:1: target and nontarget trials are both needed")
    paths = [folder / "scores" for folder in folders]
    return [trials.target] + [
        join_scores(trials, read_scores(path), trials_path=trials_path, scores_path=path)
        for path in paths
    ]


def gather(
    folders: Mapping[Path, Row], used: Container[Path],
    attacks: Sequence[Sequence[Path]], runs: Sequence[Sequence[Path]],
) -> tuple[Json, list[Missing]]:  # fmt: skip
    """All that the pictures need, and what of it could not be had.

    folders: with the labels of each; used: those with metrics.json; attacks: (folder of its
    figures, trials, score folder); runs: (folder of their figures, trials, f0, f1).
    """
    if strange := [own[0] for own in (*attacks, *runs) if own[0] not in folders]:
        raise UserError(f"{strange[0]}: no folder of --figures, so its labels are not known")

    def draw(curves: Callable[..., Json], of: Path, trials: Path, *scores: Path) -> Json:
        return _entry(folders[of], curves(*_scores(trials, *scores)))

    attacked, lost = usable((own[2], partial(draw, verification.attack, *own)) for own in attacks)
    ran, also = usable((own[2], partial(draw, verification.calibrations, *own)) for own in runs)
    found = of_metrics({folder: where for folder, where in folders.items() if folder in used})
    found |= {"attacks": attacked, "calibrations": ran}
    return {**found, "prior": shorten(verification.prior_profile())}, [*lost, *also]


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


def loudest(samples: np.ndarray[tuple[int], np.dtype[np.float64]], length: int) -> int:
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


def _cut(data: DataDir, utterance: str, start: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    samples = read_audio(utterance, data.wav[utterance]).samples
    length = int(SECONDS * SAMPLE_RATE)
    start = max(0, min(start, len(samples) - length))
    return np.asarray(samples[start : start + length], np.float32)


def cut_clips(
    results: Results, speech: Sequence[ProtectedSet], n_worst: int, out: Path
) -> tuple[list[Json], list[Missing]]:
    """Clips of the `n_worst` worst-protected speakers of each system, evaluator and split; each is
    written once, whichever systems and evaluators ask for it."""
    made: dict[tuple[str, str], str] = {}

    def clip(data: DataDir, utterance: str, start: int) -> str:
        key = (str(data.path), utterance)
        if key not in made:
            name = f"clips/{len(made):03d}.mp3"
            write_file(out / name, mp3(_cut(data, utterance, start)))
            made[key] = name
        return made[key]

    def pair(group: Group, speaker: str, of: ProtectedSet) -> Json:
        utterance = _utterance(of, speaker)
        samples = read_audio(utterance, of.original.wav[utterance]).samples
        start = loudest(np.asarray(samples, np.float64), int(SECONDS * SAMPLE_RATE))
        clips = (clip(data, utterance, start) for data in (of.original, of.protected))
        names = ("system", "evaluator", "split", "speaker", "utterance", "original", "protected")
        return dict(zip(names, (*group, speaker, utterance, *clips), strict=True))

    jobs: list[tuple[object, Callable[[], Json]]] = []
    for group in results.groups():
        for person in results.people[group][:n_worst]:
            sets = (s for s in speech if s.system == group[0] and person.name in s.original.spk2utt)
            if of := next(sets, None):
                jobs.append((f"clip of {person.name}", partial(pair, group, person.name, of)))
    return usable(jobs)


# Real-time factors: seconds of computing a second of audio, read off the logs of a run. Only what a
# log says is a measurement. A stage of which any log is missing, failed, belongs to another run, or
# goes on from a stopped one is not measured, and the reason is given.

# Tables of seconds by utterance that a stage may have made: their columns, and what these are.
PARTS = {
    "pseudo.tsv": {"seconds": "transformation alone"},
    "seconds.tsv": {"encoder": "encoder alone", "decoder": "decoder alone"},
}
ALL = "all that protects"  # the sum of the stages that whoever protects speech needs
_LOG = re.compile(r"(?P<program>.+?)(?:\.(?P<job>\d+))?\.log")
_RESUMED = re.compile(
    rb"\bresumed at step [1-9]|\b[1-9]\d* of them by a run that was ended before$", re.M
)
_PART = re.compile(r"\A# .*/split(\d+)/1\b")


class TimedStage(NamedTuple):
    """A stage of a system. audio: folders with utt2dur, folders: what it made, one each.

    protects: whether it is repeated for all new speech that is protected.
    """

    system: str
    name: str
    audio: list[Path]
    folders: list[Path]
    protects: bool = False


def read_stages(each: Sequence[Sequence[str]], once: Sequence[Sequence[str]]) -> list[TimedStage]:
    """Stages from lists of system, stage, audio and folder, those that protect first. What one
    system and name has is one stage, of all its folders.

    A folder that is named twice, for two evaluators with one encoder, counts once.
    """
    found: dict[tuple[str, str], TimedStage] = {}
    for i, (system, name, audio, folder) in enumerate([*each, *once]):
        protects = i < len(each)
        stage = found.setdefault((system, name), TimedStage(system, name, [], [], protects))
        if Path(folder) not in stage.folders:
            stage.audio.append(Path(audio))
            stage.folders.append(Path(folder))
    return [*found.values()]


class TimeSpent(NamedTuple):
    """seconds: wall time of all jobs added up; jobs: side by side; threads: of a job, at most."""

    seconds: float
    jobs: int
    threads: int
    hosts: frozenset[str]


def _together(costs: Iterable[TimeSpent]) -> TimeSpent:
    """All of them, one after the other."""
    seconds, jobs, threads, hosts = zip(*costs, strict=True)
    return TimeSpent(sum(seconds), max(jobs), max(threads), frozenset().union(*hosts))


def cost_of(folder: Path) -> TimeSpent:
    """Time that a finished step took, by its logs. UserError where it is not finished, has no logs,
    or went on from a stopped run, whose time is not in them."""
    costs, hosts = [], frozenset({_host(folder)})
    logs: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in sorted((folder / "log").glob("*.log")):
        if match := _LOG.fullmatch(path.name):
            logs[match["program"]][int(match["job"] or 0)] = path
    if not logs:
        raise UserError(f"{folder}/log: holds no log")
    for program, found in sorted(logs.items()):
        # The first says how many there are: an interrupted run with more may have left some.
        first = found.get(0) or found.get(1)
        jobs = _PART.search(first.read_text(errors="replace")) if first and 0 not in found else None
        numbers = range(1, int(jobs[1]) + 1) if jobs else [0 if 0 in found else 1]
        if lost := [number for number in numbers if number not in found]:
            raise UserError(f"{folder}/log/{program}.{lost[0]}.log: is missing")
        for log in (found[number] for number in numbers):
            account = read_account(log)
            if account is None or account.code != 0:
                raise UserError(f"{log}: does not end well")
            if _RESUMED.search(log.read_bytes()):
                raise UserError(f"{log}: goes on from a stopped run, whose time is not in it")
            costs.append(TimeSpent(account.seconds, len(numbers), account.threads, hosts))
    return _together(costs)


def _host(folder: Path) -> str:
    stamp = read_stamp(folder)
    if stamp is None or "host" not in stamp:
        raise UserError(f"{folder}: has no stamp of a finished step")
    return str(stamp["host"])


def seconds_of(folders: Iterable[Path]) -> float:
    """Seconds of speech: the sum over the tables utt2dur of some folders."""
    tables = [folder / "utt2dur" for folder in folders]
    total = sum(float(text) for table in tables for text in read_map(table).values())
    if total <= 0:
        raise UserError("no audio: its duration is 0 s")
    return total


def _noted_seconds(stage: TimedStage, table: str, column: str) -> float:
    """Seconds of a part of a stage, which its program notes for each utterance of its audio."""
    total = 0.0
    for audio, folder in zip(stage.audio, stage.folders, strict=True):
        rows = read_noted(folder / table, (column,), read_map(audio / "utt2dur"))
        total += sum(float(text) for (text,) in rows.values())
    return total


def measure(stage: TimedStage, corpus: str, part: tuple[str, str] | None = None) -> Row:
    """A row of the table; where it is not measured, with the reason.

    part: table and column of a part of the stage, without what is around it: start of programs,
    reading, writing.
    """
    name = f"{stage.name}: {PARTS[part[0]][part[1]]}" if part else stage.name
    row = dict.fromkeys(TIMINGS, "") | {"corpus": corpus, "system": stage.system, "stage": name}
    try:
        audio = seconds_of(stage.audio)
        seconds = _noted_seconds(stage, *part) if part else 0.0
        costs = [cost_of(folder) for folder in stage.folders]
    except UserError as error:
        return row | {"missing": str(error)}
    cost = _together(costs)
    if part:
        cost = cost._replace(seconds=seconds, threads=1)
    return row | {
        "rtf": f"{cost.seconds / audio:.6g}", "seconds": f"{cost.seconds:.2f}",
        "audio_seconds": f"{audio:.2f}", "jobs": str(cost.jobs), "threads": str(cost.threads),
        "hosts": " ".join(sorted(cost.hosts)),
    }  # fmt: skip


def timings(stages: Sequence[TimedStage], corpus: str) -> list[Row]:
    """All rows, of the original speech first, then system by system; after each system's stages the
    sum of those that protect."""
    rows = []
    systems = dict.fromkeys(stage.system for stage in stages)
    for system in sorted(systems, key=lambda name: name != "original"):
        own = [stage for stage in stages if stage.system == system]
        for stage in own:
            rows.append(measure(stage, corpus))
            for table, columns in PARTS.items():
                if all(is_there(folder / table) for folder in stage.folders):
                    rows += [measure(stage, corpus, (table, column)) for column in columns]
        protecting = [stage for stage in own if stage.protects]
        if protecting:
            folders = [folder for stage in protecting for folder in stage.folders]
            rows.append(measure(TimedStage(system, ALL, protecting[0].audio, folders), corpus))
    return rows


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


def _processors(info: Path = Path("/proc/cpuinfo")) -> str:
    """Number and model of the processors, as far as the system tells."""
    try:
        models = re.findall(r"^model name\s*: *(.*)", info.read_text(encoding="utf-8"), re.M)
    except OSError:
        models = []
    count = os.cpu_count() or len(models)
    return f"{count} processors ({models[0] if models else 'model unknown'})"


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
        command = stamp.get("command")
        words = [str(word) for word in command] if isinstance(command, list) else []
        if words[:1] == ["job"]:  # the recipe's own wrapper: `job OUT PROGRAM ...`
            words = words[2:]
        made = {"folder": str(folder), "settings": digest[:12], "command": " ".join(words)}
        found.append(made | {name: str(stamp.get(name) or "") for name in ("finished", "host")})
    return found


def attacks(scores: Sequence[Path]) -> tuple[list[Json], list[Missing]]:
    """attacker.json beside the scores of each attack, and those that have none beside them.

    Of a folder without scores there is nothing to tell; those who need them say that.
    """

    def read(path: Path) -> Json:
        return {"scores": str(path.parent), **read_json_object(path, "run stage 8")}

    paths = [folder / "attacker.json" for folder in scores if (folder / "scores").is_file()]
    return usable((path, partial(read, path)) for path in paths)


def settings_of_systems(speech: Sequence[Sequence[str]]) -> tuple[dict[str, Json], list[Missing]]:
    """conf.json of each system's protected sets: what the anonymiser was told; and what is missing.

    speech: system, original data directory, protected data directory. "remarks" are the lines of
    all its sets' notes.txt: what could not be had as it was asked for.
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
    told |= {what: run[what] for what in ("corpus", "corpus_note") if run.get(what)}
    told |= {"missing": json.loads(lost)} if run.get("missing") else {}
    write_file(out / name, table)
    write_file(out / "command.txt", text + "\n")
    write_json(out / "origin.json", told)
    return name
