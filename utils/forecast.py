"""Sum of a dry run: how many steps of each stage would be made and why, the time and the disk.

The time of a step is what the same output took before; else the mean of what the program took for
others here; else what was measured of it on egs/synth (STATED): of speech that is there yet its
real-time factor, else seconds. It is of one job at a time. The disk is that of the same output, or
of others of the same kind.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from utils.stamps import read_stamp
from utils.tables import read_map

if TYPE_CHECKING:
    from pandas import DataFrame

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
COSTS = ("seconds", "size", "stated")


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

    def cost(self) -> tuple[float | None, float | None, float | None]:
        """Seconds and bytes of an earlier run, and the seconds that are stated; None: unknown."""
        if not self.out.is_dir():
            return None, None, self._stated()
        took = (read_stamp(self.out) or {}).get("seconds")
        size = sum(path.stat().st_size for path in self.out.rglob("*") if path.is_file())
        return took if isinstance(took, int | float) else None, size, self._stated()

    def _stated(self) -> float | None:
        if self.program not in STATED:
            return None
        factor, plain = STATED[self.program]
        tables = (Path(word, "utt2dur") for word in self.command)
        first = next((table for table in tables if table.is_file()), None)
        speech = sum(map(float, read_map(first).values())) if first else 0.0
        return factor * speech or plain


def sum_up(steps: Sequence[Foreseen]) -> list[str]:
    """A line a stage, and one of all."""
    import pandas as pd

    rows = [(step.stage, step.program, step.why, *step.cost()) for step in steps]
    frame = pd.DataFrame(rows, columns=["stage", "program", "why", *COSTS])
    frame = frame.astype(dict.fromkeys(COSTS, float))
    for name in ("seconds", "size"):
        frame[name] = frame[name].fillna(frame.groupby("program")[name].transform("mean"))
    frame["seconds"] = frame["seconds"].fillna(frame["stated"])
    lines = []
    for stage, own in frame.groupby("stage"):
        reasons = Counter(filter(None, own.why)).most_common(MOST_REASONS)
        said = "; ".join(f"{count}: {why}" for why, count in reasons) or "up to date"
        lines.append(f"stage {stage:2}: {_count(own)} ({said})")
    unknown = (frame.seconds.isna() & (frame.why != "")).sum()
    more = f"; nothing is known of {unknown}" if unknown else ""
    return [*lines, f"in all: {_count(frame)}{more}"]


def _count(steps: "DataFrame") -> str:
    """Numbers of steps, with time and disk of those that would be made."""
    made = steps[steps.why != ""]
    seconds, size = made.seconds.sum(), made["size"].sum()
    count = f"{len(made)} of {len(steps)} steps"
    if not seconds and not size:
        return count
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    disk = f", {size / 1e6:.0f} MB" if size >= 5e5 else ""
    return f"{count}, about {time} of one core{disk}"
