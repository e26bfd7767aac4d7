"""Sum of a dry run: how many steps of each stage would be made and why, the time and the disk.

The CPU time of a step is what the same output took before, by the logs of its jobs. Else it is what
is stated of the program (of speech a real-time factor) or of an encoder's network, times how much
longer than that the program took here, for the same model or else for any. Nothing is stated of
another device than a processor. The wall time is that of the longest chain of steps that wait for
each other, or all CPU time over the jobs at a time if that is more; data that can be cut has all
jobs. The disk is that of the same output, or of others of the same program.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from steps.anonymisers.registry import CPU_SECONDS
from utils.launching import read_account
from utils.recipe import Foreseen, dependencies
from utils.settings import is_settings, read_settings
from utils.stamps import read_stamp
from utils.tables import read_map

# Of a program, or of an anonymiser: seconds a second of speech, and seconds of a step of which no
# speech is known; one core, egs/synth, commits 1859086 and aeaeb13 (scores, figures, report).
STATED = {
    "prepare": (0.0, 15.0), "check_audio": (0.0003, 0.2), "train_encoder": (0.0, 0.0),
    "extract_xvectors": (0.02, 12.0), "train_backend": (0.0, 2.0), "anonymise": (0.1, 60.0),
    **{name: (rate, 600 * rate) for name, rate in CPU_SECONDS.items()},
    "align_xvectors": (0.0, 0.2), "score_trials": (0.0, 0.3), "score_pairs": (0.0, 0.2),
    "compute_metrics": (0.0, 1.1), "measure_people": (0.0, 1.2),
    "compare_prosody": (0.015, 8.0), "extract_contours": (0.015, 8.0),
    "estimate_quality": (0.04, 21.0), "decode": (0.06, 60.0), "collect_results": (0.0, 6.0),
    "make_report": (0.0, 16.0), "extract_channel": (0.0, 1.7), "fuse_scores": (0.0, 0.2),
}  # fmt: skip
# Seconds for a weight of an encoder's convolutions and a second of speech, to train it and to use
# it, and beside these: 300 s of training of ecapa_mini, and bench_extract_xvectors.py.
TRAINING, USE, BESIDE = 1.3e-8, 7e-9, 0.003
MOST_REASONS = 3


def _encoder(conf: str, *, tuned: bool = False) -> tuple[float, float] | None:
    """CPU seconds of the training of an encoder, and those that it then takes for a second of
    speech; None for one over another network, of which nothing is stated."""
    from steps.speaker.config import EncoderConfig, fine_tuned
    from steps.training.settings import read_config

    config = read_config(EncoderConfig, Path(conf))
    network, plan = config.network, fine_tuned(config).training if tuned else config.training
    if config.features.kind == "hub":
        return None
    outs, pooling = network.channels, 0
    ins = [config.features.bins, *outs[:-1]]
    if config.encoder == "ecapa":  # its last layer has the others together
        ins[-1], pooling = sum(outs[1:-1]), 4 * outs[-1] * network.attention_channels
    layers = zip(ins, network.kernel_sizes, outs, strict=True)
    weights = pooling + sum(before * size * after for before, size, after in layers)
    crops = plan.steps * plan.batch * fmean(plan.crop_seconds)
    return TRAINING * weights * crops, BESIDE + USE * weights


@dataclass(frozen=True)
class Work:
    """Work of a command. model: the word before its data, such as an encoder. stated: CPU
    seconds; 0: unknown."""

    program: str
    device: str
    model: str
    stated: float

    @property
    def kinds(self) -> list[tuple[str, ...]]:
        """Kinds of work that tell of its time, the nearest first."""
        return [(self.program, self.device, self.model), (self.program, self.device)]


class Speech(dict[str, float]):
    """Seconds of speech in data directories, also in those that are still to be made; 0 where that
    is not known. conf_of: settings of the encoders that commands train."""

    def __init__(self) -> None:
        super().__init__()
        self.conf_of: dict[str, str] = {}

    def __missing__(self, word: str) -> float:
        """Read the durations of a folder."""
        table = Path(word, "utt2dur")
        self[word] = sum(map(float, read_map(table).values())) if table.is_file() else 0.0
        return self[word]

    def work(self, words: Sequence[str], outs: Sequence[str] = ()) -> Work:
        """Work of a command; its outputs get as much speech as its data has."""
        pairs = [("", words[0]), *pairwise(words)]
        program = next((Path(w).stem for w in words if w.endswith((".py", ".sh"))), words[0])
        given = (pair for pair in pairs if not pair[0].startswith("--"))
        data = [pair for pair in given if pair[1].startswith("data/") or self[pair[1]]]
        model, first = next(iter(data), ("", ""))
        speech, device = self[first], "cuda" if "cuda" in words else "cpu"
        new = (out for out in outs if out.startswith("data/") and not self[out])
        self.update(dict.fromkeys(new, sum(self[word] for _, word in data)))
        trains = program == "train_encoder"
        self.conf_of |= dict.fromkeys(outs if trains else (), model)
        how = program
        if program == "anonymise" and is_settings(model):
            how = str(read_settings(model).get("anonymiser"))
        factor, plain = STATED.get(how) or STATED.get(program) or (0.0, 0.0)
        stated, conf = factor * speech or plain, model if trains else self.conf_of.get(model, "")
        if Path(conf).is_file():
            found = _encoder(conf, tuned="--init-from" in words)
            stated = 0.0 if found is None else found[0] if trains else found[1] * speech or plain
        return Work(program, device, model, 0.0 if device == "cuda" else stated)


def spent(out: Path) -> float:
    """CPU seconds of a finished step's jobs, by their logs, else its seconds; 0: unknown."""
    accounts = filter(None, map(read_account, (out / "log").glob("*.log")))
    took = (read_stamp(out) or {}).get("seconds")
    by_stamp = float(took) if isinstance(took, float | int) else 0.0
    return sum(one.seconds * one.threads for one in accounts) or by_stamp


class Earlier:
    """Finished steps of this folder: CPU seconds, and those that are stated, by kind of work."""

    def __init__(self, speech: Speech) -> None:
        self.took: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
        for stamp in (*Path("data").glob("*/.done"), *Path("exp").rglob(".done")):
            words, took = (read_stamp(stamp.parent) or {}).get("command"), spent(stamp.parent)
            work = speech.work(words) if isinstance(words, list) and words and took else None
            for kind in work.kinds if work else ():
                self.took[kind].append((took, work.stated if work else 0.0))

    def seconds(self, work: Work) -> float:
        """CPU seconds of work as it went here, or as stated; 0: nothing is known."""
        for kind in work.kinds:
            pairs = [pair for pair in self.took[kind] if pair[1] or not work.stated]
            if pairs:
                took, stated = map(sum, zip(*pairs, strict=True))
                return work.stated * took / stated if work.stated else took / len(pairs)
        return work.stated


def costs(steps: Sequence[Foreseen]) -> Iterator[tuple[float, float]]:
    """CPU seconds and bytes of each step that would be made; 0: unknown, or up to date."""
    speech, sizes = Speech(), defaultdict(list)
    works = [speech.work(step.command, step.row.outs) for step in steps]
    earlier = Earlier(speech)
    outs = [Path(step.row.out) for step in steps]
    for out, work in zip(outs, works, strict=True):
        if out.is_dir():
            files = (path.stat().st_size for path in out.rglob("*") if path.is_file())
            sizes[work.program].append(sum(files))
            sizes[str(out)].append(sizes[work.program][-1])
    for step, out, work in zip(steps, outs, works, strict=True):
        same = (read_stamp(out) or {}).get("command") or [] if step.reason else []
        is_like = isinstance(same, list) and ("cuda" in same) == (work.device == "cuda")
        took = spent(out) if same and is_like else earlier.seconds(work)
        size = fmean(sizes.get(str(out)) or sizes.get(work.program) or [0])
        yield (took, size) if step.reason else (0.0, 0.0)


def wall(steps: Sequence[Foreseen], seconds: Sequence[float], nj: int) -> float:
    """Seconds until all steps are made by `nj` jobs at a time."""
    needs = dependencies([step.row for step in steps], [step.command for step in steps])
    end: dict[int, float] = {}
    for i in TopologicalSorter(dict(enumerate(needs))).static_order():
        alone = seconds[i] / (nj if steps[i].row.cut else 1)
        end[i] = alone + max((end[need] for need in needs[i]), default=0.0)
    return max(sum(seconds) / nj, *end.values())


def sum_up(steps: Sequence[Foreseen], nj: int) -> list[str]:
    """A line a stage, and one of all."""
    found = [(step, *cost) for step, cost in zip(steps, costs(steps), strict=True)]
    lines = []
    for stage in sorted({step.row.stage for step in steps}):
        own = [one for one in found if one[0].row.stage == stage]
        reasons = Counter(step.why for step, *_ in own if step.why).most_common(MOST_REASONS)
        said = "; ".join(f"{count}: {why}" for why, count in reasons) or "up to date"
        lines.append(f"stage {stage:2}: {_count(own)} ({said})")
    seconds = [took for _, took, _ in found]
    total = f"in all: {_count(found)}"
    if any(seconds):
        total += f"; about {duration(wall(steps, seconds, nj))} with {nj} jobs at a time"
    unknown = sum(bool(step.reason and not took) for step, took, _ in found)
    return [*lines, total + (f", without {unknown} of unknown time" if unknown else "")]


def duration(seconds: float) -> str:
    """Length of a time in words.

    >>> [duration(t) for t in (90, 900, 30_000, 800_000)]
    ['90 s', '15 min', '8 h', '9 days']
    """
    units = (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800), ("days", 86_400, seconds + 1))
    return next(f"{seconds / one:.0f} {unit}" for unit, one, below in units if seconds < below)


def _count(found: Sequence[tuple[Foreseen, float, float]]) -> str:
    """Numbers of steps, with time and disk of those that would be made."""
    made = sum(step.reason != "" for step, _, _ in found)
    seconds, size = sum(took for _, took, _ in found), sum(size for _, _, size in found)
    time = f", about {duration(seconds)} of CPU time" if seconds else ""
    disk = f", {size / 1e6:.0f} MB" if size >= 5e5 else ""
    return f"{made} of {len(found)} steps{time}{disk}"
