"""The house itself: direction of imports, thin programs, one recipe for all corpora."""

import ast
import graphlib
import re
import subprocess
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from utils.count_code import tokens_of

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("utils", "steps", "local", "egs")
HEAVY = {"torch", "torchaudio", "speechbrain", "matplotlib", "sklearn", "pandas"}
MODULES = sorted(p for floor in FLOORS[:3] for p in (ROOT / floor).rglob("*.py"))
CORPORA = sorted(p.parent for p in (ROOT / "egs").glob("*/run.sh") if p.parent.name != "TEMPLATE")


@pytest.mark.slow
def test_style_and_types() -> None:
    done = subprocess.run(["utils/lint.sh"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(tree(path))]


def named(paths: Iterable[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def modules(nodes: Iterable[ast.AST]) -> set[str]:
    """Modules, and what may be one of a package, that these nodes import."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    return {name.partition(".")[0] for name in modules(nodes)}


def test_a_floor_uses_only_the_floors_below() -> None:
    def above(path: Path) -> set[str]:
        floor = FLOORS.index(path.relative_to(ROOT).parts[0])
        return set(FLOORS[floor + 1 :])

    assert named(p for p in MODULES if imports(nodes(p)) & above(p)) == []


def used_modules(path: Path) -> set[str]:
    """Modules of the project that one imports, wherever in it the import stands."""
    names = modules(nodes(path))
    return {name for name in names if ROOT.joinpath(*name.split(".")).with_suffix(".py").is_file()}


@pytest.mark.parametrize("floor", ["steps", "local"])
def test_a_room_uses_only_the_rooms_before_it(floor: str) -> None:
    """Anonymisers and generators imported each other."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^    {floor}:((?: .*\n)+?)(?=\n|    \w+:)", text, re.M)
    assert found is not None
    rooms = found[1].split()
    wrong = []
    for path in (p for p in MODULES if p.is_relative_to(ROOT / floor)):
        room = path.relative_to(ROOT / floor).parts[0].removesuffix(".py")
        if path.parent == ROOT / floor and room not in rooms:
            room = "programs"
        for name in used_modules(path):
            own, used, *_ = name.split(".")
            before = [*rooms[: rooms.index(room) + 1]] if room in rooms else rooms
            if own == floor and used not in before:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_no_imports_go_round_in_a_circle() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    uses = {name: used_modules(path) - {name} for name, path in names.items()}
    graphlib.TopologicalSorter(uses).prepare()


def test_small_tools_start_without_heavy_packages() -> None:
    tools = [p for p in MODULES if {"utils", "metrics"} & set(p.relative_to(ROOT).parts)]
    assert named(p for p in tools if imports(tree(p).body) & HEAVY) == []


def test_libraries_neither_parse_arguments_nor_print() -> None:
    def parses_or_prints(path: Path) -> bool:
        own = nodes(path)
        calls = {n.func.id for n in own if isinstance(n, ast.Call) and hasattr(n.func, "id")}
        return "print" in calls or "argparse" in imports(own)

    libraries = [p for p in MODULES if len(p.relative_to(ROOT).parts) > 2]
    assert named(filter(parses_or_prints, libraries)) == []


def test_a_public_method_is_documented_by_its_class_or_by_the_one_that_it_follows() -> None:
    """137 docstrings said "See X."; a method whose protocol has the docstring needs none."""
    documented, bare = set(), {}
    for path in MODULES:
        for kind in (node for node in nodes(path) if isinstance(node, ast.ClassDef)):
            said = ast.get_docstring(kind) or ""
            for method in (node for node in kind.body if isinstance(node, ast.FunctionDef)):
                if ast.get_docstring(method) or f"{method.name}:" in said.replace(",", ":"):
                    documented.add(method.name)
                elif not kind.name.startswith("_") and not method.name.startswith("_"):
                    bare[f"{path.relative_to(ROOT)}: {kind.name}.{method.name}"] = method.name
    assert [place for place, name in bare.items() if name not in documented] == []


def test_one_file_says_the_licence_of_every_other() -> None:
    """REUSE 3.3: the last annotation that fits a file holds."""
    found = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))
    licences = {str(one["path"]): one["SPDX-License-Identifier"] for one in found["annotations"]}
    assert found["version"] == 1
    assert licences == {
        "**": "Apache-2.0",
        "['models/bn/**', 'models/bn2/**']": "CC-BY-4.0",
        "docs/clips/**": "CC-BY-4.0",
    }
    assert all(one["SPDX-FileCopyrightText"] for one in found["annotations"])
    said = [p for p in MODULES if "SPDX-License" in p.read_text(encoding="utf-8")[:200]]
    assert said == []
    for name in ("bn", "bn2"):
        card = (ROOT / f"models/{name}/README.md").read_text()
        assert "| licence of the weights | CC BY 4.0" in card


def test_no_file_is_longer_than_a_chapter() -> None:
    """A reader holds a chapter in the head, and looks for it among few."""
    long = {str(p.relative_to(ROOT)): tokens_of(p.read_text(encoding="utf-8")) for p in MODULES}
    assert {name: tokens for name, tokens in long.items() if tokens > 8200} == {}


def test_there_are_corpora() -> None:
    assert {p.name for p in CORPORA} >= {"synth", "librispeech", "an4"}


def check_links(corpus: Path) -> None:
    for name in ("run.sh", "generators.sh", "nist.sh"):
        assert (corpus / name).resolve() == ROOT / "egs/TEMPLATE" / name
    for name in ("steps", "utils", "local", "path.sh", "cmd.sh"):
        assert (corpus / name).is_symlink()
        assert (corpus / name).resolve() == ROOT / name
    for settings in (ROOT / "egs/TEMPLATE/conf").iterdir():
        if settings.name != "recipe.conf":  # a link that was copied as a file held its own target
            assert (corpus / "conf" / settings.name).resolve() == settings


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda p: p.name)
def test_a_corpus_differs_by_prepare_and_conf_only(corpus: Path) -> None:
    check_links(corpus)
    own = {p.name for p in corpus.iterdir() if not p.is_symlink()}
    generated = {"data", "exp", "corpus", "downloads"}
    assert own - generated <= {"prepare.sh", "conf", "README.md", "RESULTS.md", "results"}


def test_conventions_11_no_error_is_hidden() -> None:
    hidden = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for floor in FLOORS
        for path in sorted((ROOT / floor).rglob("*.sh"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if ("2>/dev/null" in line.replace("2> ", "2>") or "&>" in line) and "kill -" not in line
    ]
    assert not hidden  # that a process has ended already, as kill says, is no error


def test_shell_libraries_name_the_variables_that_they_need() -> None:
    """No library asks shellcheck to look away from unassigned variables."""
    for path in ROOT.glob("[elu]*/**/*.sh"):
        assert "SC2154" not in path.read_text(), path
