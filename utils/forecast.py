"""Sum of a dry run: how many steps of each stage would be made and why, the time and the disk.

The time of a step is what the same output took before; else the mean of what the program took for
others here; else what was measured of it on egs/synth (STATED): of speech that is there yet its
real-time factor, else seconds. It is of one job at a time. The disk is that of the same output, or
of others of the same kind.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from utils.stamps import read_stamp
from utils.tables import read_map

# Of a program: seconds a second of speech, and seconds of a step of which no speech is known; one
# core, egs/synth, commit 1859086.
STATED = {
    "prepare": (0.0, 110.0), "check_audio": (0.0004, 2.0), "train_encoder": (0.0, 600.0),
    "extract_xvectors": (0.02, 12.0), "train_backend": (0.0, 2.0), "anonymise": (0.1, 60.0),
    "align_xvectors": (0.0, 1.0), "score_trials": (0.0, 1.3), "score_pairs": (0.0, 1.2),
    "compute_metrics": (0.0, 4.0), "compute_legal_metrics": (0.0, 3.6), "decode": (0.06, 60.0),
    "compute_reidentification": (0.0, 2.4), "compare_prosody": (0.03, 16.0),
    "estimate_quality": (0.04, 21.0), "collect_results": (0.0, 6.0), "make_report": (0.0, 60.0),
}  # fmt: skip
MOST_REASONS = 3


@dataclass(frozen=True)
class Foreseen:
    """Step of a dry run; reason: why it would be made, nothing where it is up to date."""

    stage: int
    out: Path
    reason: str
    command: list[str]

    @property
    def program(self) -> str:
        """The name of what runs, without its ending."""
        found = (Path(word).stem for word in self.command if word.endswith((".py", ".sh")))
        return next(found, self.command[0])

    @property
    def why(self) -> str:
        """The kind of reason, without the names in it."""
        if self.reason.endswith("is made anew"):
            return "what it is made of is made anew"
        for kind in ("the command", "the code", "not as the step left it", "changed"):
            if kind in self.reason:
                return f"{kind} changed" if kind.startswith("the ") else f"a file {kind}"
        return self.reason


@dataclass
class Cost:
    """Seconds and bytes; unknown: how many steps of which nothing is known."""

    seconds: float = 0.0
    size: int = 0
    unknown: int = 0


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _took(folder: Path) -> float | None:
    seconds = (read_stamp(folder) or {}).get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else None


class Experience:
    """What steps took before in this folder."""

    def __init__(self, steps: Sequence[Foreseen]) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._sizes: dict[str, list[int]] = defaultdict(list)
        for step in steps:
            if step.out.is_dir():
                seconds = _took(step.out)
                self._seconds[step.program] += [] if seconds is None else [seconds]
                self._sizes[step.program].append(_size(step.out))

    def expect(self, step: Foreseen) -> Cost:
        """What a step may take."""
        sizes = self._sizes[step.program] or [0]
        size = _size(step.out) if step.out.is_dir() else round(mean(sizes))
        seconds = _took(step.out)
        if seconds is None and self._seconds[step.program]:
            seconds = mean(self._seconds[step.program])
        if seconds is None and step.program in STATED:
            factor, plain = STATED[step.program]
            seconds = factor * sum(_durations(step)) or plain
        return Cost(seconds or 0.0, size, int(seconds is None))


def _durations(step: Foreseen) -> Iterator[float]:
    """Seconds of speech of the first set that a step names, as far as they are known."""
    for word in step.command:
        table = Path(word, "utt2dur")
        if table.is_file():
            yield from map(float, read_map(table).values())
            return


def sum_up(steps: Sequence[Foreseen]) -> list[str]:
    """A line a stage, and one of all."""
    experience, total, lines = Experience(steps), Cost(), []
    for stage in sorted({step.stage for step in steps}):
        own = [step for step in steps if step.stage == stage]
        made = [step for step in own if step.reason]
        costs = [experience.expect(step) for step in made]
        cost = Cost(
            sum(c.seconds for c in costs), sum(c.size for c in costs), sum(c.unknown for c in costs)
        )
        total = Cost(
            total.seconds + cost.seconds, total.size + cost.size, total.unknown + cost.unknown
        )
        reasons = Counter(step.why for step in made).most_common(MOST_REASONS)
        said = "; ".join(f"{count}: {why}" for why, count in reasons) or "up to date"
        lines.append(f"stage {stage:2}: {len(made)} of {len(own)} steps{_words(cost)} ({said})")
    lines.append(
        f"in all: {sum(bool(s.reason) for s in steps)} of {len(steps)} steps{_words(total)}"
        + (f"; nothing is known of {total.unknown}" if total.unknown else "")
    )
    return lines


def _words(cost: Cost) -> str:
    if not cost.seconds and not cost.size:
        return ""
    minutes = cost.seconds / 60
    time = f"{cost.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min"
    disk = f", {cost.size / 1e6:.0f} MB" if cost.size >= 5e5 else ""
    return f", about {time} of one core{disk}"
