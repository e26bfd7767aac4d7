# SPDX-License-Identifier: Apache-2.0
"""The tables of a plan: what is made, in which stage, by which arguments of which program."""

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
    """A step. outs: the folders that it makes (`--also` between them). command: its words, where
    %name stands for the program of that name, which the recipe gives; %data, %out and %then are
    those of utils/recipe.sh."""

    stage: int
    outs: tuple[str, ...]
    command: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """As a table has them: stage, outputs, `--`, command."""
        first, *others = self.outs
        return [str(self.stage), first, *others, "--", *self.command]


@dataclass
class Tables:
    """The rows of each table, in the order in which they were planned; each output once."""

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
        """What the steps of a table make."""
        return [row.outs[0] for row in self.rows[table]]

    def every_out(self) -> Collection[str]:
        """What the steps of all tables make."""
        return self._made.keys()

    def write(self, folder: Path) -> None:
        """FOLDER/<table>.tsv of each name, also of a table without rows. UserError for a word that
        a table cannot hold."""
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
