"""utils/parse_options.sh: options are text, typos and missing values are errors, nothing is run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recipes import ROOT, Done, run_words
from tests.waiting import LIMIT
from utils.tables import write_file

SCRIPT = f"""#!/usr/bin/env bash
# Does one thing well.
#   ./run.sh    all of it
# shellcheck disable=SC2034  # help showed this line
set -euo pipefail

nj=4             # jobs at a time
                 # (never more than there are processors)
name="a # b"     # whose
value=x number=0 # names that the parser might use itself
dry_run=false    # only say
cpu_cmd=run.py
alpha=           # anything
derived=$((nj))

. {ROOT}/utils/parse_options.sh
later=1
printf '%s|' "$nj" "$name" "$value" "$number" "$dry_run" "$cpu_cmd" "$alpha" "$derived" -- "$@"
"""
DEFAULTS = ["4", "a # b", "x", "0", "false", "run.py", "", "4"]
NAMES = ["nj", "name", "value", "number", "dry_run", "cpu_cmd", "alpha", "derived"]

Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "run.sh").write_text(SCRIPT)

    def call(*arguments: str) -> Done:  # an endless loop is a failure, not a wait
        return run_words(["bash", "run.sh", *arguments], None, cwd=tmp_path, timeout=LIMIT)

    return call


def expect(done: Done, *positionals: str, **values: str) -> None:
    wanted = [values.get(name, default) for name, default in zip(NAMES, DEFAULTS, strict=True)]
    assert done.stderr == ""
    assert done.stdout.split("|")[:-1] == [*wanted, "--", *positionals]


def refused(done: Done, message: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("run.sh: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_a_missing_value_is_an_error_and_no_endless_loop(run):
    refused(run("--nj"), "--nj: the value is missing")
    refused(run("--nj", "--name", "x"), "--nj: the value is missing")
    refused(run("--config"), "--config: the value is missing")
    expect(run("--alpha", "-0.5", "--number=-3"), alpha="-0.5", number="-3")
    expect(run("--alpha=--beta"), alpha="--beta")


@pytest.mark.parametrize(
    "text", ["$(touch pwned)", "`touch pwned`", "x; touch pwned", "$HOME '\"*"]
)
def test_values_are_never_evaluated(run, tmp_path, text):
    expect(
        run("--alpha", text, f"--name={text}", "--value", text), alpha=text, name=text, value=text
    )
    (tmp_path / "c.conf").write_text(f"alpha={text}\n")
    expect(run("--config", "c.conf"), alpha=text)
    # bash evaluates `[[ $nj -ge 1 ]]`, so a number must be one.
    refused(run("--nj", "a[$(touch pwned)]"), "--nj: expected a number")
    refused(run("--$(touch pwned)", "x"), "no such option")
    assert not (tmp_path / "pwned").exists()


def test_a_tilde_that_no_shell_expands_made_a_folder_of_that_name(run, tmp_path, monkeypatch):
    """bash puts the home in --corpus ~/x, and leaves --corpus=~/x and quoted ones as they are."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "c.conf").write_text("alpha=~/a b # all\nvalue=~x\n")
    given = {"alpha": f"{tmp_path}/a b", "value": "~x", "name": str(tmp_path)}
    expect(run("--config=~/c.conf", "--name=~"), **given)


def test_an_option_of_prepare_sh_was_taken_for_a_typo(run, tmp_path):
    """`./run.sh --lists DIR` said: did you mean --list-stages?"""
    (tmp_path / "prepare.sh").write_text("named_sets=  # some\n")
    refused(run("--named-sets", "x"), './run.sh --prepare-options="--named-sets ..."')


def test_typos_are_errors_and_the_near_option_is_named(run):
    refused(run("--dryrun=true"), "--dryrun: no such option; did you mean --dry-run?")
    refused(run("--something-else=1"), "--something-else: no such option; see --help")
    refused(run("-n", "4"), "-n: no such option; options begin with '--'")
    # Variables of the environment, of the shell and of what follows the block are no options.
    for name in ("--PATH", "--home", "--later", "--IFS", "--BASH-ENV"):
        refused(run(name, "x"), "no such option")


def test_booleans(run):
    for arguments in (["--dry-run"], ["--dry-run", "true"], ["--dry-run=true"]):
        expect(run(*arguments), dry_run="true")
    expect(run("--dry-run", "--nj", "2"), dry_run="true", nj="2")
    expect(run("--dry-run", "false", "p"), "p", dry_run="false")
    expect(run("--dry-run", "p"), "p", dry_run="true")
    for value in ("False", "TRUE", "yes", "no", "Off"):  # `--dry-run False` was true, and a word
        refused(run("--dry-run", value), f"--dry-run: expected true or false, not '{value}'")
        refused(run(f"--dry-run={value}"), f"--dry-run: expected true or false, not '{value}'")


def test_an_option_after_a_positional_is_not_left_unread(run):
    refused(run("p", "--nj", "5"), "--nj: options go before 'p'")
    expect(run("--nj", "2", "--", "p", "--nj", "5"), "p", "--nj", "5", nj="2")
    expect(run("-5", "-"), "-5", "-")


def test_config_files_are_read_not_run_and_the_command_line_wins(run, tmp_path):
    (tmp_path / "c.conf").write_text(
        '# comment\n\nnj=7   # jobs\nname="p # q"  # c\n'
        "value='it is'\r\n\r\nalpha=two words  \r\ncpu-cmd=x"
    )
    wanted = {"name": "p # q", "value": "it is", "alpha": "two words", "cpu_cmd": "x"}
    expect(run("--config", "c.conf"), nj="7", **wanted)
    for arguments in (["--nj=1", "--config", "c.conf"], ["--config=c.conf", "--nj", "1"]):
        expect(run(*arguments), nj="1", **wanted)
    for text, message in (
        ("nj=3\nnjj=3\n", "bad.conf:2: njj: no such option; did you mean --nj?"),
        ("touch pwned\n", "bad.conf:1: not a name=value line"),
        ("dry_run=1\n", "bad.conf:1: dry_run: expected true or false"),
    ):
        (tmp_path / "bad.conf").write_text(text)
        refused(run("--config", "bad.conf"), message)
    refused(run("--config", "gone.conf"), "--config gone.conf: cannot be read")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--nj", "9", "--help", "p"]])
def test_help_is_made_from_the_comments_of_the_block(run, arguments):
    done = run(*arguments)
    assert done.returncode == 0
    assert done.stderr == ""
    for line in (
        "Does one thing well.",
        "  ./run.sh    all of it",
        "  --nj 4            jobs at a time (never more than there are processors)",
        "  --name a # b      whose",
        "  --dry-run false   only say",
        "  --number 0        names that the parser might use itself",
    ):
        assert line in done.stdout.splitlines()
    assert "later" not in done.stdout
    assert "shellcheck" not in done.stdout


def test_options_that_scripts_share_stand_in_a_file_of_their_own(run, tmp_path):
    write_file(
        tmp_path / "local/options.sh",
        "# Shared.\nnj=4 # jobs at a time\n. ./defaults\nseed=0 # of all\n",
    )
    (tmp_path / "defaults").write_text("seed=7 hidden=1\n")
    (tmp_path / "run.sh").write_text(
        f"# Own.\nset -eu\nstage=0 # first\n. local/options.sh\n. {ROOT}/utils/parse_options.sh\n"
        'echo "$stage $nj $seed"\n'
    )
    assert run("--nj", "2", "--seed=3", "--stage", "1").stdout == "1 2 3\n"
    refused(run("--hidden", "2"), "--hidden: no such option")
    refused(run("--nj", "x"), "--nj: expected a number")
    lines = run("--help").stdout.splitlines()
    options = [line.split() for line in lines if line.startswith("  --")]
    assert [words[0] for words in options[:3]] == ["--stage", "--nj", "--seed"]
    assert options[1] == ["--nj", "4", "jobs", "at", "a", "time"]
    assert "Own." in lines and "Shared." not in lines


def test_an_empty_command_is_refused(run):
    refused(run("--cpu-cmd", ""), "--cpu-cmd: the value is empty")


def test_help_was_lines_of_400_characters_and_a_script_ran_in_its_folder_alone(tmp_path):
    """run.sh was found by its path, but not what stands beside it."""
    done = run_words(["egs/synth/run.sh", "--help"], 0, cwd=ROOT)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    titles = [line for line, above in zip(lines[1:], lines, strict=False) if not above]
    assert {"What protects:", "Who attacks:", "The report:"} <= {*titles}
    for name in ("nist.sh", "generators.sh"):
        told = run_words([f"{ROOT}/egs/synth/{name}", "--help"], 0, cwd=tmp_path).stdout
        assert "--systems" in told
