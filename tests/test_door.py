"""The ways in: the command, Python, one file, a program as it stands, a wheel; and verification."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import pytest
import soundfile

import pseudovox
from local.measure_evidence import main as measure_evidence
from pseudovox import EvidenceOptions, LossError, ProtectOptions, _programs
from steps.protect_folder import main as protect_folder
from steps.verify_account import main as verify
from tests.recipes import ROOT, run_words
from tests.refusals import refuses, refuses_words
from tests.test_protect_folder import KEY, SYSTEM, speechlike, write

USERS = 'raise SystemExit("this module is the user\'s")\n'


@pytest.fixture
def place(here: Path) -> Path:
    """A folder of a user, who has modules of the floors' names, and is there."""
    for name in ("utils", "steps", "local"):
        (here / f"{name}.py").write_text(USERS)
    write(here / "in/talk.wav", speechlike(1.5))
    write(here / "in/walk.wav", speechlike(1.2, 1))
    return here


def test_a_file_was_not_a_folder(place, run_program):
    """IN=talk.wav ended. It gets the voice that it has in a folder, and nothing else is left."""
    words = ("steps/protect_folder.py", "--system", SYSTEM, "--key", KEY)
    run_program(*words, "in", "out", status=0)
    shutil.copy("in/talk.wav", ".")
    run_program(*words, "talk.wav", status=0)
    made = place / "talk.protected.wav"
    assert made.read_bytes() == (place / "out/talk.wav").read_bytes()
    about = json.loads(made.with_name("talk.protected.wav.account.json").read_text())
    assert (about["source"], list(about["files"])) == (f"{place}/talk.wav", ["talk.wav"])
    run_program(*words, "talk.wav", status=0)  # once more
    assert {path.name for path in place.glob(".*")} == set()
    for path in (f"{made}.account.json", "out.account.json"):
        assert "all as the account says" in run_program("steps/verify_account.py", path).stdout
    for end, said in (
        (["talk.wav"], "is there, and was not made here"),
        (["in"], "is a folder, and talk.wav a file"),
        (["new.flac"], "talk.wav becomes .wav"),
        (["--rename"], "are for folders, and IN is a file"),
    ):
        assert said in run_program(*words, "talk.wav", *end, status=2).stderr
    assert "name the one that is written" in run_program(*words, "in", status=2).stderr
    Path("notes.txt").touch()  # it got an account
    assert "does not end as an audio file's" in run_program(*words, "notes.txt", status=2).stderr
    assert "gone.wav: is missing" in run_program(*words, "gone.wav", status=2).stderr


def test_python_and_the_command_take_no_name_of_the_user(place):
    """`pip install -e .` put utils, steps and local before the user's own modules."""
    script = f"""
import sys, pseudovox
before = set(sys.modules)
made = pseudovox.protect("in", "out", system={str(SYSTEM)!r}, key={KEY!r}, nj=1)
assert not {{"utils", "steps", "local", "numpy"}} & (set(sys.modules) | before)
assert sorted(made.files) == ["talk.wav", "walk.wav"] and made.files["talk.wav"].seconds == 1.5
print(made.path.name, pseudovox.__version__)
"""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "HOME": str(place)}
    done = run_words([sys.executable, "-c", script], 0, cwd=place, env=env)
    assert done.stdout.startswith("out.account.json 0.")
    command = [sys.executable, "-m", "pseudovox"]
    helped = run_words([*command, "protect", "--help"], 0, cwd=place, env=env)
    assert helped.stdout.startswith("usage: pseudovox protect [OPTIONS] IN [OUT]")
    planned = run_words([*command, "recipe", "--help"], 0, cwd=place, env=env)
    assert planned.stderr == f"pseudovox: {ROOT}/egs/synth\n" and "--systems" in planned.stdout
    (line,) = run_words([*command, "recipe", "nowhere"], 2, cwd=place, env=env).stderr.splitlines()
    assert line.startswith("pseudovox: nowhere: no such recipe; known: an4, emodb")


def test_errors_and_progress_in_python(place, caplog):
    Path("in/walk.wav").write_bytes(b"no audio")
    with pytest.raises(LossError, match="1 of 2 files are not protected") as lost:
        pseudovox.protect("in", "out", system=SYSTEM, nj=1)
    assert lost.value.result.files["walk.wav"].status == "failed"
    assert any("walk.wav" in record.message for record in caplog.records)
    with pytest.raises(pseudovox.Error, match="key has 5 characters") as refused:
        pseudovox.protect("in", "new", key="short")
    assert (refused.value.status, Path("new").exists()) == (2, False)
    line = "protect: 120 of 400 s, 3 of 5 files, 0:35 left"
    assert pseudovox._HOW_FAR.match(line).groups() == ("protect", "120", "400", "s")


@pytest.mark.parametrize(
    ("program", "typed"), [(protect_folder, ProtectOptions), (measure_evidence, EvidenceOptions)]
)
def test_python_has_the_options_of_the_program(program, typed):
    asked = [one for one in program.command().params if isinstance(one, click.Option)]
    hints = get_type_hints(typed)
    assert hints.keys() == {str(one.name) for one in asked} | {"key"}
    for one in asked:
        if choices := getattr(one.type, "choices", ()):
            assert get_args(hints[str(one.name)]) == tuple(choices)


@pytest.mark.parametrize("program", ["steps/protect_folder.py", "local/make_trials.py"])
def test_a_program_typed_as_it_stands_found_no_module(program):
    if not (ROOT / ".venv/bin/python3").exists():
        pytest.skip("the project has no .venv; `make setup` makes it")
    python = sys._base_executable  # type: ignore[attr-defined]  # without packages of ours
    env = {"PATH": "/usr/bin:/bin"}
    done = run_words([python, str(ROOT / program), "--help"], 0, cwd="/", env=env)
    assert done.stdout.startswith(f"usage: {Path(program).name}")


def account(place: Path, **more: Any) -> Path:
    """An account of what is in `out`."""
    rows = {
        path.name: {"status": "done", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted((place / "out").glob("[!.]*"))
    }
    told = {"renamed": False, "files": rows | {"bad.wav": {"status": "failed"}}} | more
    (path := place / "out.account.json").write_text(json.dumps(told))
    return path


def test_a_folder_is_still_that_of_its_account(place, capsys):
    Path("in").rename("out")
    Path("out/.protected.jsonl").touch()
    path = account(place)
    assert verify([str(path)]) == 0
    assert capsys.readouterr().out == f"{place}/out: 2 files, all as the account says\n"
    before = Path("out/talk.wav").stat()
    with Path("out/talk.wav").open("r+b") as stream:  # one bit, at the same length and time
        stream.seek(1000)
        bit = stream.read(1)[0] ^ 1
        stream.seek(1000)
        stream.write(bytes([bit]))
    os.utime("out/talk.wav", ns=(before.st_atime_ns, before.st_mtime_ns))
    Path("out/walk.wav").unlink()
    Path("out/bad.wav").touch()
    assert verify([str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    kinds = {"bad": "additional", "talk": "changed", "walk": "missing"}
    assert said == [f"{place}/out/{name}.wav: {kind}" for name, kind in kinds.items()]
    Path("out/bad.wav").unlink()
    digest = json.loads(path.read_text())["files"]["talk.wav"]["sha256"]
    bare = {"talk.wav": {"status": "done"}}
    path = account(place, renamed=True, files=bare, sha256=[digest])
    assert verify([str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [f"SHA-256 {digest}: missing", f"{place}/out/talk.wav: additional"]
    refuses_words("holds no digests", verify, account(place, files=bare))
    refuses_words("is not called OUT.account.json", verify, place / "out/talk.wav")


def test_an_unpacked_wheel_is_there_once(place, monkeypatch):
    """Under a home that can be written, also where two begin at once."""
    import tarfile

    with tarfile.open(place / "tree.tar", "w") as packed:
        for name in ("steps/protect_folder.py", "models/place/pool"):
            packed.add(ROOT / name, name)
    monkeypatch.setattr(_programs, "PACKED", place / "tree.tar")
    monkeypatch.setenv("PSEUDOVOX_HOME", str(place / "home"))
    tree = _programs.find_tree()
    assert tree == _programs.find_tree() and [*(place / "home").iterdir()] == [tree]
    assert os.access(tree / "steps/protect_folder.py", os.X_OK)
    assert (tree / "models/place/pool").readlink() == Path("../bn2/pool")
    monkeypatch.setenv("PSEUDOVOX_HOME", str(place / "utils.py/home"))
    refuses("to a folder that you may write", _programs.find_tree, kind=pseudovox.Error)
    monkeypatch.setenv("PSEUDOVOX_HOME", "~nobody_of_this_name/home")
    refuses("you have no home", _programs.find_tree, kind=pseudovox.Error)


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch):
    text = (ROOT / "docs/python.ipynb").read_text("utf-8")
    assert str(ROOT) not in text and "/tmp/" not in text
    monkeypatch.chdir(ROOT / "docs")
    space: dict[str, Any] = {}
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for cell in cells:  # five of its eight recordings are enough
            exec("".join(cell["source"]).replace("[12]*", "[12]*000[56]"), space)
    assert len(cells) > 4 and space["found"].verdict in said.getvalue()


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_protects_a_file(place):
    """With its packages from here; everything of ours comes out of the wheel."""
    built = subprocess.run([ROOT / "utils/release_check.sh", place / "dist"], capture_output=True)
    if b"release_check:" not in built.stderr and built.returncode:
        pytest.skip(f"no wheel can be built here: {built.stderr[-200:]!r}")
    assert built.returncode == 0, built.stderr
    (wheel,) = (place / "dist").glob("*.whl")
    assert wheel.stat().st_size < 60e6
    run_words([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], 0)
    (site,) = (place / "env").glob("lib/python3*/site-packages")
    (site / "here.pth").write_text(f"{Path(soundfile.__file__).parent}\n")
    uv = shutil.which("uv") or "uv"
    python = str(place / "env/bin/python")
    run_words([uv, "pip", "install", "-q", "--no-deps", "--python", python, str(wheel)], 0)
    Path("in/talk.wav").rename("talk.wav")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home")}
    command = str(place / "env/bin/pseudovox")
    run_words([command, "protect", "--nj", "1", "talk.wav"], 0, cwd=place, env=env)
    assert soundfile.info("talk.protected.wav").duration > 1
    assert all(Path(f"{name}.py").read_text() == USERS for name in ("utils", "steps", "local"))
    (tree,) = (place / "home/.local/share/pseudovox").iterdir()
    assert (tree / "models/place/pool/voices.safetensors").is_file()
    told = json.loads(Path("talk.protected.wav.account.json").read_text())
    assert told["system"]["path"] == f"{tree}/models/place"
    assert "archive" in told["runs"][0]["commit"]
