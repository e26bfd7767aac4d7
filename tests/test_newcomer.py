"""Programs run in a newcomer's fresh shell, and the commands of the pages can be parsed."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes import ROOT, Done, run_words
from tests.test_options import options
from utils.tables import write_file

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "egs/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "egs").glob("*/README.md")),
]


def help_in_a_fresh_shell(program: Path, status: int) -> Done:
    return run_words([str(program), "--help"], status, cwd="/", env={"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("program", ["local/align_xvectors.py", "utils/subset_data_dir.py"])
def test_a_program_finds_the_project_in_a_fresh_shell(program, tmp_path):
    """Without `. ./path.sh` it ended with ModuleNotFoundError: No module named 'numpy'."""
    if not (ROOT / ".venv/bin/python3").exists():
        pytest.skip("the project has no .venv; `make setup` makes it")
    done = help_in_a_fresh_shell(ROOT / program, 0)
    assert not done.stderr and done.stdout.startswith(f"usage: {Path(program).name}")
    (tmp_path / "by a link").symlink_to(ROOT / program)
    help_in_a_fresh_shell(tmp_path / "by a link", 0)


def test_without_packages_one_line_says_what_to_do(tmp_path):
    """A .venv without a Python, or with one that cannot be run; the other has no packages."""
    for floor in ("local", "steps", "utils"):
        for path in (ROOT / floor).rglob("*.py"):
            copy = tmp_path / path.relative_to(ROOT)
            write_file(copy, path.read_bytes())
    for name in ("path.sh", "utils/environment.sh"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "utils/seeds.py").write_text("import a_package_that_nobody_has\n")
    (program := tmp_path / "local/make_trials.py").chmod(0o755)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for linked in (False, True):
        if linked:  # as to another's pyenv
            (tmp_path / ".venv/bin/python3").symlink_to("/root/away/python3")
        (line,) = help_in_a_fresh_shell(program, 1).stderr.splitlines()
        assert re.match(r"make_trials.py: the Python package \w+ is not installed; run `make", line)


def commands() -> Iterator[tuple[str, str]]:
    """(page, command) of every block of commands, comments and continuations joined."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:sh)?\n(.*?)^```$", text, re.S | re.M):
            for line in re.sub(r"\\\n", " ", block).splitlines():
                for part in re.split(r"\s&&\s|\s%then\s", line):
                    yield str(page.relative_to(ROOT)), part


def words_of(command: str) -> list[str]:
    """Its words; usage brackets and comments taken off."""
    return shlex.split(re.sub(r"\]\.\.\.|[][]", "", command), comments=True)


PROGRAMS, RECIPES = (
    [
        pytest.param(page, command, id=f"{page}: {command[:50]}")
        for page, command in commands()
        if re.match(begin, command)
    ]
    for begin in (r"(\$cpu_cmd \S+ \S+ )?(local|steps|utils)/\w+\.py ", r"\./\w+\.sh")
)


def test_the_pages_have_commands():
    assert len(PROGRAMS) > 25
    assert len(RECIPES) > 35


@pytest.mark.parametrize(("page", "command"), PROGRAMS)
def test_a_program_of_the_pages_exists_and_knows_its_options(page, command):
    words = words_of(command)
    program = next(word for word in words if word.endswith(".py"))
    assert (ROOT / program).is_file(), page
    known = {"--help", *(option.name for option in options(Path(program), words))}
    for word in words:
        assert not word.startswith("--") or word.partition("=")[0] in known, page


@pytest.mark.parametrize(("page", "command"), RECIPES)
def test_a_script_of_the_pages_exists_and_knows_its_options(page, command):
    words = words_of(command)
    folder = ROOT / (Path(page).parent if re.match(r"egs/\w+/", page) else "egs/librispeech")
    script = folder / words[0]
    assert script.is_file(), page
    sources = [script, *(ROOT / "local").glob("*.sh"), ROOT / "utils/parse_options.sh"]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    for word in words[1:]:
        if word.startswith("--"):
            name = word[2:].partition("=")[0]
            option = rf"^{name.replace('-', '_')}=|--{name}\b"
            assert re.search(option, text, re.M), f"{page}: {word}"
