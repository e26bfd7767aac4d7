"""Recipes and launchers killed with SIGKILL at seeded random moments: equal digests, no orphans."""

import hashlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KILLS = 20
RECIPE = f"""#!/usr/bin/env bash
set -euo pipefail
stage=0 stop_stage=9 nj=2 alpha=1 dry_run=false list_stages=false
. {ROOT}/path.sh
. {ROOT}/cmd.sh
. utils/parse_options.sh
. {ROOT}/utils/recipe.sh
recipe_start "$command_line"
all=exp/protected
count() {{ step "exp/$1" -- job "exp/$1" ./count.py "$alpha" "$all/figures" "exp/$1/figures"; }}
if in_stage 1 "parts, with files that stand outside them"; then
  step "$all" -- over data/set "$all" ./protect.py "$alpha" %data %out "$all/wav"
fi
if in_stage 2 "side by side"; then
  along count left
  along count right
  steps_wait
fi
if in_stage 3 "all together"; then
  step exp/results -- job exp/results ./count.py "$alpha" exp/left/figures exp/results/figures
fi
recipe_end
"""
HEAD = f"""#!/usr/bin/env python3
import hashlib, sys, time
from pathlib import Path
sys.path.insert(0, "{ROOT}")
from utils.tables import atomic_write, read_map, write_map
def digest(*words): return hashlib.sha256(repr(words).encode()).hexdigest()
"""
PROTECT = """
alpha, data, out, wav = sys.argv[1:]
figures = {}
for utt in read_map(f"{data}/utt2spk"):
    figures[utt] = digest(utt, alpha)
    with atomic_write(f"{wav}/{utt}.wav") as stream:
        stream.write(figures[utt])
        time.sleep(0.05)
write_map(f"{out}/figures", figures)
"""
COUNT = """
alpha, figures, out = sys.argv[1:]
wavs = [path.read_text() for path in sorted(Path("exp/protected/wav").iterdir())]
time.sleep(0.2)
write_map(out, {"all": digest(alpha, wavs, read_map(figures))})
"""


class Folder:
    """A corpus's folder with a cheap recipe, whose processes are known by their environment."""

    def __init__(self, path: Path) -> None:
        self.path, self.mark = path, f"KILLED_IN={path}"
        (path / "data/set").mkdir(parents=True)
        (path / "utils").symlink_to(ROOT / "utils")
        for name, text in (
            ("run.sh", RECIPE),
            ("protect.py", HEAD + PROTECT),
            ("count.py", HEAD + COUNT),
        ):
            (path / name).write_text(text)
            (path / name).chmod(0o755)
        utts = [f"s{speaker}-{number}" for speaker in range(4) for number in range(4)]
        for name, of in (("utt2spk", lambda u: u[:2]), ("wav.scp", lambda u: f"/{u}.wav")):
            (path / "data/set" / name).write_text("".join(f"{u} {of(u)}\n" for u in utts))
        spk2utt = [f"s{n} {' '.join(u for u in utts if u[1] == str(n))}\n" for n in range(4)]
        (path / "data/set/spk2utt").write_text("".join(spk2utt))

    def start(self, alpha: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["./run.sh", "--alpha", str(alpha)],
            cwd=self.path,
            env={**os.environ, "KILLED_IN": str(self.path)},
            stdout=subprocess.DEVNULL,
            stderr=(self.path / "errors").open("wb"),
            start_new_session=True,
        )

    def run(self, alpha: int) -> dict[str, str]:
        """To the end; the digests of all that it made, but for logs and stamps.

        What a killed run with the other option had begun may stand beside what is finished again
        (`.results.unfinished`), for that option's next run. Nothing else that is hidden may.
        """
        assert self.start(alpha).wait(120) == 0, (self.path / "errors").read_text()
        exp = self.path / "exp"
        files = [p for p in exp.rglob("*") if p.is_file() and "log" not in p.parts[-2:]]
        shown = [p for p in files if not any(x.startswith(".") for x in p.relative_to(exp).parts)]
        for left in ("partial.*", "*.old"):
            assert not list(exp.glob(f".{left}"))
        return {
            str(p.relative_to(self.path)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(shown)
            if p.name != "cmdline.log"
        }

    def living(self) -> dict[int, str]:
        """Id and command of all processes that descend from a run of this folder."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(process.name)] = command
            except OSError:
                continue  # it has just ended
        return found

    def wait_until_all_have_ended(self) -> None:
        deadline = time.monotonic() + 60
        while living := self.living():
            assert time.monotonic() < deadline, f"orphans: {living}"
            time.sleep(0.05)

    def kill(self, rng: random.Random, alpha: int) -> bool:
        """Start a run and kill it, or a launcher of it, somewhere; False where it ended before."""
        run = self.start(alpha)
        time.sleep(rng.uniform(0.1, 2.5))
        pids = [run.pid]
        if rng.random() < 0.5:
            pids = [pid for pid, command in self.living().items() if "run.py" in command] or pids
        if rng.random() < 0.3:
            for pid, command in self.living().items():
                if "protect.py" in command and "run" not in command:
                    os.kill(pid, signal.SIGSTOP)  # it would go on whenever somebody lets it
        ended = run.poll() is not None
        if not ended:
            os.kill(rng.choice(pids), signal.SIGKILL)
        status = run.wait(60)
        self.wait_until_all_have_ended()
        return not ended and status != 0


@pytest.mark.slow
def test_twenty_kills_leave_no_orphan_and_equal_digests(tmp_path: Path) -> None:
    """Of 12 kills 7 had left 1 to 3 jobs, which wrote into the next run's folder."""
    rng = random.Random(18)
    whole = {alpha: Folder(tmp_path / f"whole{alpha}").run(alpha) for alpha in (1, 2)}
    assert len(whole[1]) == 16 + 4
    assert whole[1].keys() == whole[2].keys()
    assert not set(whole[1].values()) & set(whole[2].values())
    folder = Folder(tmp_path / "killed")
    kills, alpha = 0, 1
    while kills < KILLS:
        kills += folder.kill(rng, alpha)
        if rng.random() < 0.25:
            assert folder.run(alpha) == whole[alpha]
            alpha = 3 - alpha
        elif rng.random() < 0.3:
            alpha = 3 - alpha  # over what a killed run with another option left
    assert folder.run(alpha) == whole[alpha]
    folder.wait_until_all_have_ended()
