"""Recipe: tables of rows with named values, and the commands that its script runs over each."""

import glob
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from pathlib import Path

from utils.cli import UserError
from utils.stamps import names_in
from utils.tables import atomic_write

MARK = "\x1f"  # between fields of a line of utils/recipe.sh
_COLUMN = re.compile(r"\{(\w+)\}")

Value = str | Sequence[str]  # word, or several, or none


def fill(template: str, values: Mapping[str, Value], *, expand: bool = False) -> list[str]:
    """Words of a command, with values for the {columns} of its template.

    expand: whether `*` in the template stands for files that are there. UserError for a column
    without a value.

    >>> fill("score {options} {out}/scores", {"options": ["--n", "2"], "out": "exp/a"})
    ['score', '--n', '2', 'exp/a/scores']
    """
    words: list[str] = []
    for word in shlex.split(template):
        for name in _COLUMN.findall(word):
            if name not in values:
                raise UserError(f"{template}: there is no column {name}")
        whole = _COLUMN.fullmatch(word)
        value = values[whole[1]] if whole else ""
        if not isinstance(value, str):
            words += value
            continue
        filled = _COLUMN.sub(lambda match: str(values[match[1]]), word)
        words += sorted(glob.glob(filled)) if expand and "*" in word else [filled]  # noqa: PTH207
    return words


@dataclass(frozen=True)
class Row:
    """Step of a plan. outs: its output folders. maybe: those that it may make or not. values: by
    column, also `out`. cut: whether the first command can be run for parts of its {data}. stage:
    as `Script.arrange` finds it."""

    table: str
    outs: tuple[str, ...]
    maybe: tuple[str, ...]
    values: Mapping[str, Value]
    cut: bool = False
    stage: int = 0

    @property
    def out(self) -> str:
        """The first output, by which the step is known."""
        return self.outs[0]


@dataclass
class Tables:
    """Rows of each table, in the order in which they were planned; each output once."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    _made: dict[str, Row] = field(default_factory=dict)

    def add(
        self,
        table: str,
        out: str,
        *,
        also: Sequence[str] = (),
        maybe: Sequence[str] = (),
        cut: bool = False,
        **values: Value,
    ) -> str:
        """Plan a step, unless it is planned already; returns OUT. UserError for two steps that
        make one output, as where a system is called like another one's second draw."""
        row = Row(table, (out, *also), tuple(maybe), {**values, "out": out}, cut)
        before = self._made.setdefault(out, row)
        if before is row:
            self.rows[table].append(row)
        elif before.values != row.values:
            raise UserError(f"{out} would be made in two ways; give a system or set another name")
        return out

    def every_out(self) -> Collection[str]:
        """Outputs of the steps in all tables."""
        return self._made.keys()


@dataclass(frozen=True)
class Planned:
    """Tables of all stages, options to remember after the last one, and messages for the log.
    lacking: requested parts that are missing; a dry run then ends as an error."""

    tables: Tables
    remembered: dict[str, object]
    notes: list[str]
    lacking: Sequence[str] = ()


@dataclass(frozen=True)
class Foreseen:
    """Step of a dry run; reason: why it would be made, empty where it is up to date."""

    row: Row
    reason: str
    command: list[str]

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
class Script:
    """Contents of a recipe's script. titles: by stage. stages: by table, in their order. again:
    stages after which it is planned anew. programs: templates of the commands by table.
    job_options: options of launchers by program. last: the last stage; results: what is said after
    it, and above that the text of a file."""

    titles: dict[int, str] = field(default_factory=dict)
    stages: dict[str, int] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    programs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    job_options: dict[str, str] = field(default_factory=dict)
    last: int = 0
    results: str = ""
    file: str = ""

    def commands(self, row: Row, options: Mapping[str, str]) -> list[list[str]]:
        """Commands of a step."""
        values = {**options, **row.values}
        return [fill(template, values) for template in self.programs[row.table]]

    def words(self, row: Row, options: Mapping[str, str]) -> list[str]:
        """All words of a step's commands, with && between them, as in its stamp."""
        commands = self.commands(row, options)
        return [word for one in commands for word in ("&&", *one)][1:]

    def arrange(self, tables: Tables, options: Mapping[str, str]) -> list[Row]:
        """All steps in the order of their stages, each behind what it reads. A step belongs to the
        stage of its table, or to the one that makes what it reads, if that is later. RuntimeError
        for a table without commands."""
        if strange := tables.rows.keys() - self.stages.keys():
            raise RuntimeError(f"no stage makes {min(strange)} of its plan")
        rows = [row for table in self.stages for row in tables.rows.get(table, ())]
        needs = dependencies(rows, [self.words(row, options) for row in rows])
        at: dict[int, tuple[int, int]] = {}  # stage, and steps of it before this one
        for place in TopologicalSorter(dict(enumerate(needs))).static_order():
            before = [at[need] for need in needs[place]]
            stage, depth = max([(self.stages[rows[place].table], -1), *before])
            at[place] = stage, depth + 1
        order = sorted(range(len(rows)), key=at.__getitem__)
        return [replace(rows[place], stage=at[place][0]) for place in order]


def dependencies(rows: Sequence[Row], commands: Sequence[Sequence[str]]) -> list[set[int]]:
    """For each row the others whose outputs, or files in these, its command names."""
    made = {out: place for place, row in enumerate(rows) for out in (*row.outs, *row.maybe)}
    found = []
    for place, words in enumerate(commands):
        own: set[int] = set()
        for name in (name for word in words for name in names_in(word)):
            while name and name not in made:
                name = name.rpartition("/")[0]
            own |= {made[name]} if name else set()
        found.append(own - {place})
    return found


def read_script(lines: Sequence[str]) -> Script:
    """Read the lines of utils/recipe.sh. UserError for a table without commands, or named twice."""
    script, stage = Script(), 0
    for line in lines:
        kind, *words = line.split(MARK)
        match kind:
            case "stage":
                stage = int(words[0])
                script.titles[stage] = words[1]
            case "each":
                table, *templates = words
                if not templates or table in script.stages:
                    raise UserError(f"stage {stage}: each {table}: what are its commands?")
                script.programs[table], script.stages[table] = tuple(templates), stage
            case "plan_again":
                script.again.append(stage)
            case "job_options":
                script.job_options[words[0]] = words[1]
            case "end":
                script.last, script.results = int(words[0]), words[1]
                script.file = "".join(words[2:])
    return script


def write_plan(
    folder: Path, script: Script, rows: Sequence[Row], options: Mapping[str, str]
) -> None:
    """Write FOLDER/<table>.tsv: the stage, output and commands of each step."""
    for old in folder.glob("*.tsv"):
        old.unlink()
    for table in dict.fromkeys(row.table for row in rows):
        with atomic_write(folder / f"{table}.tsv") as stream:
            for row in rows:
                if row.table == table:
                    line = " && ".join(map(shlex.join, script.commands(row, options)))
                    stream.write(f"{row.stage}\t{row.out}\t{line}\n")
