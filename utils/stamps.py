#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Whether what a step made is still what the step would make, and why not.

A finished step leaves OUT/.done (JSON): its command, the digests of its inputs (every word of the
command that names a file or folder, also after a `:` or `=` in it, and the files that a `command`
in its settings names), of the code it runs (the program and the project modules that it imports,
and tables beside these, comments and docstrings left out) and of the files it wrote, with the audio
that they name. A folder counts with all that it holds, by content
(utils/digests.py); exp/.digests remembers the digests of files that have not changed. Because the
digest of a stamped folder also holds how it was made, digests chain: audio that was protected anew
at the same place makes its x-vectors, scores and figures stale.

A step that begins sets aside what is finished, clears what an interrupted run of another command
left, keeps what one of the same command left, and marks OUT as started. Finished, it is stamped,
and what was set aside goes; abandoned, after it failed, what was set aside is put back, and what it
had made is kept for its next run. The next run also does so after one that was killed.

As a program, `stamps.py OUT COMMAND... [&& COMMAND...]` makes OUT, unless it is up to date.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, groupby, takewhile
from pathlib import Path
from textwrap import shorten
from typing import Any

from utils import digests
from utils.cli import UserError, run_program
from utils.orphans import refuse_living_job
from utils.tables import StrPath, few, read_json_object, timed_in, write_json

ROOT = Path(__file__).resolve().parents[1]
DONE = ".done"
NEUTRAL_OPTIONS = ("--nj", "--download", "--parts")
MOST_SHOWN = 300  # characters of a command that changed
_TEMPLATE = re.compile(r"\blocal/report/[\w/]+(?:\.\w+)?\.(?:jinja|csv|yaml|mplstyle)\b")
_BESIDE = re.compile(r'Path\(__file__\)\.with_name\("([\w.]+)"\)')  # a table of a module
MEMORY = Path("exp/.digests")  # of files that have not changed


def names_in(word: str) -> list[str]:
    """Possible names of files or folders in a word: FOLDER, hub:FOLDER, NAME=FOLDER."""
    return [text for text in (word, *re.split("[:=]", word, maxsplit=1)[1:]) if text]


def _path_in(word: str) -> Path | None:
    """The file or folder that a word of a command names."""
    named = (Path(text) for text in names_in(word))
    there = os.path.exists  # Path.exists refuses a long word
    return next((path for path in named if there(path) or digests.is_variant(path)), None)


def commit_of_code() -> str:
    """Commit of this checkout, with -dirty where files differ from it, or of the archive that it
    was unpacked from.

    A repository around the project is not its own. Named outright, the project's own also counts
    where somebody else owns it, and whatever a git hook has in its environment.
    """
    if not (ROOT / ".git").exists():  # a file in worktrees and submodules
        with suppress(OSError):
            commit = (ROOT / ".commit").read_text("utf-8").strip()
            if "$" not in commit:  # git archive wrote it
                return f"{commit} (an archive of it)"
        return "not a git checkout"
    words = ["git", f"--git-dir={ROOT}/.git", f"--work-tree={ROOT}", "describe", "--always"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    with suppress(OSError):  # without git
        done = subprocess.run(
            [*words, "--dirty"], cwd=ROOT, env=env, capture_output=True, text=True
        )
        if done.returncode == 0:
            return done.stdout.strip()
    return "unknown: git cannot read .git"


def provenance(folder: Path) -> str | None:
    """Digest of how a stamped folder was made (command, inputs, code); None without a stamp."""
    stamp = read_stamp(folder)
    return None if stamp is None else digests.digest_json(_key_of(stamp))


def digest_path(path: Path) -> str:
    """Digest of an input: a file's content, or all that a folder holds and how it was made.

    A folder that no step made and that is not a data directory is a corpus or a model: everything
    in it counts. An .scp only says where things are: what it names counts, and how the folder was
    made in which it stands.
    """
    if path.is_file() or digests.is_variant(path):
        if path.suffix != ".scp":
            return digests.digest_file(path)
        return digests.digest_json([digests.digest_scp(path), provenance(path.parent)])
    if not path.is_dir():
        return digests.ABSENT
    made = provenance(path)
    ours = made is not None or (path / "utt2spk").exists()
    files = digests.contents(path, ours=ours)
    if ours:
        timed = timed_in(path)
        files = {name: digest for name, digest in files.items() if name not in timed}
    return digests.digest_json({"files": files, "made": made})


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _project_imports(tree: ast.Module) -> set[Path]:
    """Files of the project that a module may import, wherever in it the import stands; some of
    them need not be there.

    A registry names modules in strings ("steps.anonymisers.mcadams:McAdams"), to import them when
    asked for.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"(steps|local)(\.\w+)+(:\w+)?", node.value):
                names.add(node.value.partition(":")[0])
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    found: set[Path] = set()
    for name in names:
        if name.split(".")[0] in ("utils", "steps", "local"):
            stem = ROOT.joinpath(*name.split("."))
            found |= {stem.with_suffix(".py"), stem / "__init__.py"}
    return found


def digest_code(program: Path) -> str:
    """Digest of a program and the project modules it imports (or calls, from a shell script).

    Comments and docstrings of Python do not count.
    """
    return digests.digest_json(code_of(program))


def code_of(program: Path) -> dict[str, str]:
    """Digests of the files, as seen from the root, that `digest_code` counts."""
    first = program.resolve()
    todo = {str(first.relative_to(ROOT) if first.is_relative_to(ROOT) else first)}
    seen = set(todo)
    parts: dict[str, str] = {}
    while todo:
        name = todo.pop()
        path = ROOT / name
        parts[name], named = json.loads(digests.remembered("code", path, partial(_read_code, path)))
        new = set(named) - seen  # looked for once: a program has a hundred modules
        seen |= new
        todo |= {module for module in new if os.access(f"{ROOT}/{module}", os.F_OK)}
    return parts


def _read_code(path: Path) -> str:
    """JSON: digest of what a file of code does, and the files of the project that it names."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = _TEMPLATE.findall(text)  # the words of a page
    found += [os.path.relpath(path.with_name(name), ROOT) for name in _BESIDE.findall(text)]
    if path.suffix == ".py":
        with suppress(SyntaxError, ValueError):  # another's program, for another Python
            tree = ast.parse(text)
            found += sorted(str(p.relative_to(ROOT)) for p in _project_imports(tree))
            text = ast.dump(_without_docstrings(tree))
    else:
        found += re.findall(r"\b(?:utils|steps|local)/[\w/]+\.py\b", text)
    return json.dumps([digests.sha256(text.encode()), found])


def strip_neutral(command: Sequence[str]) -> list[str]:
    """The command without the options that cannot change a result, nor their values."""
    words, skip = [], False
    for word in command:
        if skip:
            skip = False
        elif word in NEUTRAL_OPTIONS:
            skip = True
        elif not word.startswith(tuple(f"{option}=" for option in NEUTRAL_OPTIONS)):
            words.append(word)
    return words


def _programs_in(word: str) -> list[str]:
    """Files that the command in a system's settings names; not what these read besides."""
    from utils.settings import is_settings, read_settings, settings_text  # most steps have none

    with suppress(UserError, ValueError):  # the step itself says what is wrong with them
        if word.endswith(".yaml") and is_settings(word) and b"command" in settings_text(word):
            command = shlex.split(str(read_settings(word).get("command", "")))
            named = chain.from_iterable(map(names_in, command))  # also --settings=FILE
            return [name for name in named if os.path.isfile(name)]  # noqa: PTH113 - a long word
    return []


def _digest_words(
    outs: Sequence[Path], words: Sequence[str], known: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of the inputs and of the code that words name, but for those that are known."""
    own = [out.resolve() for out in outs]
    inputs: dict[str, str] = {}
    code: dict[str, str] = {}
    for word in dict.fromkeys(chain(words, *map(_programs_in, words))):
        path = None if word in known else _path_in(word)
        if path is None:
            continue
        if any(path.resolve().is_relative_to(out) for out in own):
            continue
        if path.suffix in (".py", ".sh") and path.is_file():
            code[word] = digest_code(path)
        else:
            inputs[word] = digest_path(path)
    return inputs, code


def read_stamp(folder: Path) -> dict[str, Any] | None:
    """The stamp of a folder; None where it is not finished, or its stamp cannot be read."""
    return _read_stamp(folder / DONE)


def _read_stamp(path: Path) -> dict[str, Any] | None:
    try:
        return read_json_object(path, "")
    except UserError:
        return None


def _key_of(stamp: dict[str, Any]) -> dict[str, Any]:
    return {name: stamp.get(name) for name in ("command", "inputs", "code")}


def _n_common(old: Iterable[str], new: Iterable[str]) -> int:
    """How many words two commands share at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _changed_words(old: list[str], new: list[str]) -> str:
    """In words, what stands between the common beginning and the common end of two commands.

    Commands that gather results have hundreds of words, of which few change.
    """
    start = _n_common(old, new)
    end = _n_common(reversed(old[start:]), reversed(new[start:]))
    if start and old[start - 1].startswith("--"):
        start -= 1  # the option whose value changed
    before, after = (
        shorten(" ".join(words[start : len(words) - end]), MOST_SHOWN, placeholder=" ...")
        for words in (old, new)
    )
    if before and after:
        return f"the command changed from: {before} to: {after}"
    return f"the command has no longer: {before}" if before else f"the command now has: {after}"


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first thing in which two keys differ, in words."""
    if old["command"] != new["command"]:
        return _changed_words(old["command"] or [], new["command"])
    for name, what in (("code", "the code of {} changed"), ("inputs", "{} changed")):
        before, after = old[name] or {}, new[name]
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                return what.format(path)
    return "the stamp is from another version"


def _aside(out: Path, what: str) -> Path:
    """A name beside OUT, so that OUT may be replaced as a whole."""
    return out.with_name(f".{out.name}.{what}")


def _started(out: Path) -> Path:
    """The mark of a run that has begun."""
    return _aside(out, "started")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_living_jobs(outs: Sequence[Path]) -> None:
    for out in outs:
        for log in sorted((out / "log").glob("*.log")):
            refuse_living_job(log)


def made_by(out: Path) -> list[str]:
    """Command that made OUT, without the options that cannot change a result; empty where OUT is
    not finished."""
    stamp = read_stamp(out) or _read_stamp(_aside(out, "old") / DONE)
    return [] if stamp is None else [*stamp.get("command", [])]


def is_current(folder: Path, known: dict[Path, bool]) -> bool:
    """Whether a step finished a folder, and its content, inputs and code are still the same; and so
    for every finished folder among the inputs. `known` keeps what was found."""
    if folder not in known:
        stamp = read_stamp(folder) or {}
        then = stamp.get("inputs", {}) | stamp.get("code", {})
        with digests.remembering(MEMORY):
            inputs, code = _digest_words([folder], list(then))
            known[folder] = (
                "outputs" in stamp
                and inputs | code == then
                and digests.contents(folder, ours=True) == stamp["outputs"]
            )
        known[folder] = known[folder] and all(is_current(home, known) for home in _homes(inputs))
    return known[folder]


def _homes(words: Iterable[str]) -> Iterator[Path]:
    """The finished folders that words name, or that hold the files that they name."""
    for path in filter(None, map(_path_in, words)):
        home = path if path.is_dir() else path.parent
        if (home / DONE).exists():
            yield home


class Step:
    """Outputs of a command, of which those of `maybe` may be made or not.

    The command's words that name files and folders are its inputs; options that cannot change a
    result do not count.
    """

    def __init__(
        self, outs: Sequence[StrPath], command: Sequence[str], maybe: Sequence[StrPath] = ()
    ) -> None:
        self.outs, self.maybe = [*map(Path, outs)], [*map(Path, maybe)]
        self.words, self._command = strip_neutral(command), command
        self._known: dict[str, Any] = {}

    def _there(self) -> list[Path]:
        found = [out for out in self.maybe if out.exists() or _aside(out, "old").exists()]
        return [*self.outs, *found]

    def _now(self) -> dict[str, Any]:
        """Command, and digests of inputs and code as they are; found once between `why` and
        `begin`, for an input may be a corpus of a million files."""
        if not self._known:
            inputs, code = _digest_words(self._there(), self.words)
            self._known = {"command": self.words, "inputs": inputs, "code": code}
        return self._known

    def why(self, remade: Collection[str] = ()) -> str | None:
        """Why the command must run; None when all that it made is up to date."""
        missing = next((out for out in self._there() if read_stamp(out) is None), None)
        if missing is not None:
            return self._why(missing)
        for word in self._command if remade else ():
            for path in map(Path, names_in(word)):
                if any(str(part) in remade for part in (path, *path.parents)):
                    return f"{word} is made anew"
        self._known = {}
        with digests.remembering(MEMORY):
            return next(filter(None, map(self._why, self._there())), None)

    def _why(self, out: Path) -> str | None:
        stamp = read_stamp(out)
        if stamp is None:
            return "interrupted before" if _started(out).exists() else "not made yet"
        if _key_of(stamp) != self._now():
            return _difference(_key_of(stamp), self._now())
        was, now = stamp.get("outputs", {}), digests.contents(out, ours=True)
        if "outputs" in stamp and was == now:
            return None
        names = sorted(n for n in was.keys() | now.keys() if was.get(n) != now.get(n))
        return f"{out}: {few(names)} not as the step left it"

    def settle(self) -> list[Path]:
        """Put finished content back that a killed run, or a command that failed, has set aside and
        not replaced; returns whose.

        What the step had made by then stands beside it until its next run. The first output is set
        aside first, and put back or stamped last: whether it is finished says whether all are.
        """
        outs = self._there()
        whole = (outs[0] / DONE).exists()
        if not whole:
            _refuse_living_jobs([out for out in outs if _aside(out, "old").exists()])
        restored = []
        for out in reversed(outs):
            old, unfinished = _aside(out, "old"), _aside(out, "unfinished")
            if old.exists() and whole:
                _remove(old)
            elif old.exists():
                if out.exists():
                    _remove(unfinished)
                    (out / DONE).unlink(missing_ok=True)
                    out.rename(unfinished)
                old.rename(out)
                if not unfinished.exists():
                    _started(out).unlink(missing_ok=True)
                restored.append(out)
        return restored

    def begin(self) -> None:
        """Set finished outputs aside, clear unfinished ones unless a run of this very command left
        them, and mark all as started.

        Raises UserError for a folder with files in it that no step of a recipe made, and for one
        with a job at work.
        """
        outs = self._there()
        _refuse_living_jobs(outs)
        with digests.remembering(MEMORY):
            now = self._now()
        self.settle()
        for out in outs:
            ours = (out / DONE).exists() or _started(out).exists()
            if out.exists() and not ours and not (out.is_dir() and not any(out.iterdir())):
                raise UserError(
                    f"{out}: exists and was not made by a recipe; move it away to go on"
                )
        for out in outs:
            old, unfinished = _aside(out, "old"), _aside(out, "unfinished")
            started = _read_stamp(_started(out))
            if started is not None and _key_of(started) == now:
                if unfinished.exists():
                    if out.exists():
                        out.rename(old)
                    unfinished.rename(out)
                (out / DONE).unlink(missing_ok=True)
                continue
            _remove(unfinished)
            if (out / DONE).exists():
                out.rename(old)
            _remove(out)
            write_json(_started(out), {**now, "since": time.time()}, indent=None)

    def finish(self) -> None:
        """Stamp the outputs, and those of `maybe` that were made, and remove what they replace.

        Inputs count as they were at the start, so that a later change shows, and those that
        appeared since then as they are now.
        """
        started = _read_stamp(_started(self.outs[0]))
        lacking = [out for out in self.outs if not out.is_dir()]
        if started is None or lacking:
            out = [*lacking, self.outs[0]][0]
            raise UserError(f"{out}: cannot be stamped: it was not made; run the step again")
        inputs, code = started.get("inputs", {}), started.get("code", {})
        made = [*(out for out in self.maybe if out.is_dir()), *reversed(self.outs)]
        since = started.get("since")
        with digests.remembering(MEMORY):
            appeared = _digest_words(made, self.words, {*inputs, *code})[0]
            stamp = {
                "command": self.words,
                "inputs": inputs | appeared,
                "code": code,
                "seconds": round(time.time() - since, 1) if isinstance(since, float) else None,
                "host": os.uname().nodename,
                "finished": time.strftime("%Y-%m-%d %H:%M:%S"),
            }
            for out in made:
                write_json(out / DONE, {**stamp, "outputs": digests.contents(out, ours=True)})
        for out in [*self.outs, *self.maybe]:
            for what in ("old", "unfinished", "started"):
                _remove(_aside(out, what))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = [*(sys.argv[1:] if argv is None else argv)]
    if len(words) < 2 or words[0].startswith("-"):  # --help made a file of that name
        raise UserError("usage: stamps.py OUT COMMAND...: COMMAND makes OUT, where it is stale")
    out, *command = words
    step, status = Step([out], command), 0
    step.settle()
    if step.why() is not None:
        step.begin()
        Path(out).mkdir(parents=True, exist_ok=True)
        commands = (list(one) for is_one, one in groupby(command, "&&".__ne__) if is_one)
        codes = (subprocess.run(one, check=False).returncode for one in commands)
        status = next(filter(None, codes), 0)
        step.settle() if status else step.finish()
    return status


if __name__ == "__main__":
    run_program(main)
