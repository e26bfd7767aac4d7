# SPDX-License-Identifier: Apache-2.0
"""Tables of a plan: each output with its stage, program and arguments."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli import UserError
from utils.tables import atomic_write

TABLES = (
    "prepare", "audio", "encoders", "xvectors", "informed_xvectors", "averages", "backends", "f0",
    "world", "wavlm", "pools", "synthesisers", "generators", "commanded", "protected",
    "drawn_again",
    "aligned", "scores", "similarity", "metrics", "prosody", "quality_samples", "quality",
    "functionals", "emotions", "lang", "recognisers", "decoded", "results", "report",
    "trials", "external", "joined", "threshold", "capacity", "time", "curves",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Step. outs: its output folders (`--also` between them). command: its words; %name stands for
    the program of that name, given by the recipe; %data, %out and %then are those of
    utils/recipe.sh."""

    stage: int
    outs: tuple[str, ...]
    command: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Fields of the row in a table: stage, outputs, `--`, command."""
        first, *others = self.outs
        return [str(self.stage), first, *others, "--", *self.command]


@dataclass
class Tables:
    """Rows of each table, in the order in which they were planned; each output once."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    _made: dict[str, Row] = field(default_factory=dict)

    def add(self, table: str, stage: int, out: str, *command: str, also: Iterable[str] = ()) -> str:
        """Plan a step, unless it is planned already; returns OUT. also: further words between OUT
        and `--`, such as `--also FOLDER`. RuntimeError for two commands that make one output."""
        row = Row(stage, (out, *also), command)
        before = self._made.setdefault(out, row)
        if before is row:
            self.rows[table].append(row)
        elif before.command != command:
            raise RuntimeError(f"{out} is planned twice: {before.command}, {command}")
        return out

    def job(self, table: str, stage: int, out: str, *command: str) -> str:
        """Plan a step of one job."""
        return self.add(table, stage, out, "job", out, *command)

    def over(self, table: str, stage: int, data: str, out: str, *command: str) -> str:
        """Plan a step of jobs over the parts of a data directory."""
        return self.add(table, stage, out, "over", data, out, *command)

    def outs(self, table: str) -> list[str]:
        """Outputs of the steps in a table."""
        return [row.outs[0] for row in self.rows[table]]

    def every_out(self) -> Collection[str]:
        """Outputs of the steps in all tables."""
        return self._made.keys()

    def write(self, folder: Path) -> None:
        """Write FOLDER/<table>.tsv for each name, also for a table without rows. UserError for a
        word that a table cannot hold."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in self.rows.items():
            with atomic_write(folder / f"{name}.tsv") as stream:
                for row in rows:
                    for word in row.words:
                        if not word or "\t" in word or "\n" in word:
                            raise UserError(
                                f"{row.outs[0]}: {word!r} in its command; an option may be neither "
                                "empty nor hold a tab or a line break"
                            )
                    stream.write("\t".join(row.words) + "\n")
