"""What programs are asked: full sentences with a subject, and one wording for one option."""

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = [
    path.relative_to(ROOT)
    for floor in ("utils", "steps", "local")
    for path in sorted((ROOT / floor).glob("*.py"))
    if "def get_parser()" in path.read_text(encoding="utf-8")
]
# Names that stand for things of different kinds in different programs, and how many.
KINDS = {
    "--also": 2,
    "--backend": 2,  # what scores; what a generator takes
    "--bins": 2,
    "--check": 2,
    "--enrol": 2,
    "--first": 2,
    "--folds": 2,
    "--format": 2,
    "--generator": 3,  # one that is used; whose pseudo-speakers are exported; those compared
    "--model": 2,
    "--no-audio": 2,
    "--pairs": 2,
    "--pool": 2,  # x-vectors; voices
    "--groups": 2,
    "--sessions": 2,
    "--sizes": 2,
    "--speakers": 4,
    "--train": 2,
    "--training": 2,
    "--voices": 2,
}


def options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from options(command)
        elif action.option_strings and action.dest != "help":
            yield action


def wordings() -> dict[str, dict[str, set[str]]]:
    """Option -> words -> programs; what is lost is counted in things of several kinds."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in PROGRAMS:
        module = import_module(".".join(path.with_suffix("").parts))
        for action in options(module.get_parser()):
            (name,) = action.option_strings
            words = str(action.help)
            if name == "--allow-loss":
                words = re.sub(r"^The number of [\w, ]+ that may be lost", "LOST", words)
            found.setdefault(name, {}).setdefault(words, set()).add(str(path))
    return found


def test_an_option_has_one_wording_everywhere() -> None:
    found = wordings()
    assert len(found) > 120
    different = {name: texts for name, texts in found.items() if len(texts) > 1}
    assert {name: len(texts) for name, texts in different.items()} == KINDS, different


def test_an_option_says_what_it_is_in_a_sentence_with_a_subject() -> None:
    """Helps were `of all draws` and `how many`."""
    wrong = [
        f"{sorted(programs)[0]} {name}: {words}"
        for name, texts in wordings().items()
        for words, programs in texts.items()
        if not re.match(r"[A-Z]", words) or words.startswith(("Of ", "For ")) or words[-1] in ".:"
    ]
    assert wrong == []


def test_a_number_says_of_what_it_is_the_number_or_its_unit() -> None:
    wrong = []
    for path in PROGRAMS:
        module = import_module(".".join(path.with_suffix("").parts))
        for action in options(module.get_parser()):
            counts = action.metavar == "N" and action.dest != "seed"
            if counts and not re.match(r"The numbers? of |Take ", str(action.help)):
                wrong.append(f"{path} {action.dest}: {action.help}")
            seconds = action.metavar in ("S", "SECONDS", "HZ")
            if seconds and not re.search(r", in (seconds|Hz)", str(action.help)):
                wrong.append(f"{path} {action.dest}: {action.help}")
    assert wrong == []
