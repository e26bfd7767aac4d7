"""Options of programs: full sentences with a subject, and one wording for one option."""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import click
import pytest

from tests.refusals import accepts, refuses, refuses_words
from utils.commands import Program

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = [
    path.relative_to(ROOT)
    for floor in ("utils", "steps", "local")
    for path in sorted((ROOT / floor).glob("*.py"))
    if re.search("^(@program|main = commands)", path.read_text("utf-8"), re.M)
]
# Names that stand for things of different kinds in different programs, and how many.
KINDS = {
    "--level": 2,  # of what is written; of pseudo-speakers
    "--nj": 2,  # of a recipe; of a folder, where all cores are meant
    "--backend": 2,  # what scores; what a generator takes
    "--bins": 2,
    "--check": 2,
    "--enrol": 2,
    "--enrolled": 3,  # numbers; numbers with scores; data
    "--generator": 3,  # one that is used; whose pseudo-speakers are exported; those compared
    "--model": 2,
    "--no-audio": 2,
    "--turns": 2,  # given or found; of evidence, given ones
    "--pairs": 2,
    "--pool": 2,  # x-vectors; voices
    "--sessions": 2,
    "--speakers": 3,
    "--speech": 2,
    "--training": 2,
}


class Asked(NamedTuple):
    """An option of a program."""

    name: str
    help: str
    metavar: str


def options(program: Path, words: Sequence[str] = ()) -> Iterator[Asked]:
    """Options of a program, or of those of its commands that stand among some words."""
    module = import_module(".".join(program.with_suffix("").parts))
    command = module.main.command()
    inside = command.commands if isinstance(command, click.Group) else {"": command}
    for one in [inside[word] for word in words if word in inside] or inside.values():
        for option in one.params:
            if isinstance(option, click.Option):
                yield Asked(*option.opts, str(option.help), str(option.metavar))


def wordings() -> dict[str, dict[str, set[str]]]:
    """Option -> words -> programs; what is lost is counted in things of several kinds."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in PROGRAMS:
        for option in options(path):
            words = option.help
            if option.name == "--allow-loss":
                words = re.sub(r"^The number of [\w, ]+ that may be lost", "LOST", words)
            found.setdefault(option.name, {}).setdefault(words, set()).add(str(path))
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
        for option in options(path):
            counts = option.metavar == "N" and option.name != "--seed"
            if counts and not re.match(r"The numbers? of |Take ", option.help):
                wrong.append(f"{path} {option.name}: {option.help}")
            seconds = option.metavar in ("S", "SECONDS", "HZ")
            if seconds and not re.search(r", in (seconds|Hz)", option.help):
                wrong.append(f"{path} {option.name}: {option.help}")
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--block"], "'--block' requires an argument"),
        (["--blo", "50"], "No such option '--blo'"),
        (["--block", "low"], "'--block': 'low' is not a valid float"),
        (["--block", "--help"], "'--block': a value is expected, not '--help'"),
        (["more"], "unexpected extra argument"),
    ],
)  # fmt: skip
def test_usage_errors_are_one_line(words: list[str], said: str) -> None:
    from steps.protect_stream import main

    refuses(re.escape(said), main, words)


def test_a_tilde_was_a_folder_of_that_name(tmp_path, monkeypatch, capsys):
    """OUT='~/x', and every unquoted OUT=~/x where the shell is not bash."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def main(source: Path, *, out: Path | None = None, key: str = "") -> None:
        print(source, out, key)

    made = Program("", main)
    assert made(["~", "--out=~/a b", "--key=~/x"]) == 0 == made(["./~", "--out=~x/y"])
    assert capsys.readouterr().out == f"{tmp_path} {tmp_path}/a b ~/x\n~ ~x/y \n"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    refuses_words("~/x: you have no home", made, "~/x")


def test_commands_stand_in_the_program_s_order_and_one_must_be_named(capsys) -> None:
    """No word at all ended in a traceback."""
    from local.compute_metrics import main

    for words, said in ([], "Missing command"), (["nope"], "No such command 'nope'"):
        refuses(said, main, words)
    accepts(main, "--help")
    told = capsys.readouterr().out.partition("Commands:")[2]
    assert told.index("verification") < told.index("strongest") < told.index("calibration")


def test_an_option_of_several_words_ends_at_the_next_option() -> None:
    """argparse knows `--sizes 1 2`, click does not."""
    found: list[object] = []

    def main(out: str, *, sizes: Annotated[tuple[int, ...], ""] = (9,), flag: bool = False) -> None:
        found.append((out, sizes, flag))

    program = Program("Try.", main)
    for words in ("o", "o --sizes 1 2 --flag", "--flag o --sizes 7", "--sizes 1 2 -- o"):
        assert program(words.split()) == 0
    assert found == [
        ("o", (9,), False), ("o", (1, 2), True), ("o", (7,), True), ("o", (1, 2), False),
    ]  # fmt: skip
    refuses("'--sizes': a value is expected, not '--flag'", program, ["o", "--sizes", "--flag"])


def test_help_has_arguments_in_order_then_common_options_then_others(capsys) -> None:
    from steps.extract_xvectors import main

    accepts(main, "--help")
    told = capsys.readouterr().out
    places = [
        told.index(words)
        for words in (
            "usage: ", " [OPTIONS] ENCODER DATA OUT\n", "Extract one", "  DATA", "  OUT",
            "Common options:\n  --allow-loss N", "[default: 0]", "Options:\n  --chunk-seconds S",
        )
    ]  # fmt: skip
    assert places == sorted(places)
