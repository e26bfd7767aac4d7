"""Nothing leaves the machine: what programs write outside of their places, and whom they call."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from tests.conftest import ROOT
from tests.world import voice

LEFT = re.compile(r"^\d+ +(creat|mkdir|rename|symlink|link)|O_WRONLY|O_RDWR|O_CREAT")
CALLS = re.compile(r"AF_INET6?, SOCK|sa_family=AF_INET")


def traced(words: list[str], tmp_path: Path) -> list[str]:
    """System calls of a program with an empty HOME that write outside of the checkout and
    `tmp_path`, or connect."""
    home, log = tmp_path / "home", tmp_path / "trace"
    home.mkdir(exist_ok=True)
    calls = "trace=openat,creat,mkdir,mkdirat,rename,renameat2,symlink,linkat,connect,socket"
    alone = ["unshare", "-rn"] if subprocess.run(["unshare", "-rn", "true"]).returncode == 0 else []
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmp_path)}
    subprocess.run(
        [*alone, "strace", "-f", "-qq", "-s", "4096", "-e", calls, "-o", str(log), *words],
        env=environment, cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    ours, found = (str(ROOT.resolve()), str(tmp_path), "/dev/", "/proc/"), []
    for line in log.read_text(errors="replace").splitlines():
        places = re.findall(r'"(/[^"]*)"', line) if LEFT.search(line) else []
        # A folder that is there already is not made.
        outside = [p for p in places if not (p.startswith(ours) or Path(p).is_dir())]
        found += [line] if outside or CALLS.search(line) else []
    return found + [str(path) for path in home.rglob("*")]


@pytest.mark.slow
def test_no_program_writes_elsewhere_or_calls_anybody(tmp_path):
    """onnxruntime kept a device id and a queue of events in HOME, and looked up its collector;
    matplotlib kept a list of fonts."""
    if not shutil.which("strace"):
        pytest.skip("needs strace (utils/install_for_tests.sh strace)")
    (tmp_path / "in").mkdir()
    for n in range(5):
        sound = 0.02 * voice(12.0, 100 + 40 * n, 500 + 150 * n, n)
        soundfile.write(tmp_path / f"in/{n}.wav", sound, 16000)
    ends = [str(tmp_path / "in"), str(tmp_path / "out")]
    assert traced(["steps/protect_folder.py", "--nj", "1", *ends], tmp_path) == []
    assert traced(["local/measure_evidence.py", "--nj", "1", *ends], tmp_path) == []
    draws = "import local.report.draw, matplotlib.font_manager, steps.populations.pairs"
    assert traced(["bash", "-c", f'. ./path.sh; python3 -c "{draws}"'], tmp_path) == []


def test_a_library_that_reports_already_is_refused():
    script = "import sys, types; sys.modules['onnxruntime'] = types.ModuleType('o'); import utils"
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    words, options = [sys.executable, "-c", script], {"cwd": ROOT, "capture_output": True}
    refused = subprocess.run(words, env=environment, text=True, **options)
    assert "set ORT_DISABLE_TELEMETRY=1 before you start Python" in refused.stderr
    told = subprocess.run(words, env=environment | {"ORT_DISABLE_TELEMETRY": "1"}, **options)
    assert told.returncode == 0


def test_every_way_in_opts_out():
    """path.sh and `import utils`, each alone."""
    said = {line for line in (ROOT / "utils/environment.sh").read_text().split() if "=1" in line}
    assert "ORT_DISABLE_TELEMETRY=1" in said
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    for words in (
        ["bash", "-c", ". ./path.sh; env"],
        [sys.executable, "-c", "import utils, subprocess; subprocess.run('env')"],
    ):
        shown = subprocess.run(words, env=bare, cwd=ROOT, capture_output=True, text=True)
        assert said <= set(shown.stdout.split())
