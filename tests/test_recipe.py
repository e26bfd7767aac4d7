"""The whole recipe on a small synthetic corpus: from nothing to the tables; what is redone when."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import soundfile

from tests.browser import check_page
from tests.recipes import (
    ROOT,
    Done,
    copy_world,
    made,
    make_corpus_folder,
    run_recipe,
    run_words,
    take_systems,
)
from tests.waiting import wait_for
from utils.tables import read_map, write_file

Run = Callable[..., Done]


@pytest.fixture(scope="module")
def recipe(world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    folder = copy_world(world, tmp_path_factory.mktemp("small"))
    return folder, partial(run_recipe, folder)


@pytest.mark.slow
class TestRecipe:
    """In this order: each test goes on from the one before."""

    def test_a_killed_run_resumes(self, recipe: tuple[Path, Run]) -> None:
        """And trains the same encoder to the bit: what was made by it is up to date."""
        folder, run = recipe
        shutil.rmtree(folder / "exp/encoders/tiny")
        how = {"stdout": subprocess.DEVNULL, "start_new_session": True}
        with subprocess.Popen(["./run.sh"], cwd=folder, **how) as killed:
            started = folder / "exp/encoders/.tiny.started"
            wait_for(lambda: started.exists() or killed.poll() is not None)
            os.killpg(killed.pid, signal.SIGKILL)
        assert not (folder / "exp/encoders/tiny/.done").exists()
        done = run()
        assert "up to date: data/train" in done.stdout
        assert "up to date: exp/xvectors/tiny/train" in done.stdout
        assert "making exp/encoders/tiny (interrupted before)" in done.stdout
        assert "the others were up to date" in done.stdout
        *_, verdicts, report = done.stdout.splitlines()
        assert "men: " in verdicts and "b2r" in verdicts
        assert f"report: {folder}/exp/report/report.html" in report

    def test_the_figures_are_there_and_say_what_they_are(self, recipe: tuple[Path, Run]) -> None:
        """The golden run has all of two sexes together; here each has its own, and all of both."""
        folder, _ = recipe
        with (folder / "exp/results/metrics.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert {r["system"] for r in rows if r["attacker"] == "aligned"} == {"b2", "b2r"}
        of_all = {r["family"] for r in rows if r["split"] == "small_test"}
        assert of_all == {"groups", "inference"}
        assert {r["split"] for r in rows} == {"small_test", "small_test_f", "small_test_m"}
        eer = next(r for r in rows if r["metric"] == "eer" and r["condition"] == "AA")
        assert float(eer["low"]) <= float(eer["value"]) <= float(eer["high"])
        assert (eer["n_speakers"], eer["n_target"], eer["n_nontarget"]) == ("4", "16", "48")
        assert all(len(r["settings"]) == 12 for r in rows)

    def test_the_report_opens_in_a_browser(self, recipe: tuple[Path, Run], browser: Any) -> None:
        folder, run = recipe
        page = folder / "exp/report/report.html"
        assert page.exists() or run()  # `make test-browser` has run no test before
        assert check_page(browser, page) == page.read_text().count("<figure") > 2

    def test_a_changed_alpha_redoes_what_follows_and_nothing_else(self, recipe):
        folder, run = recipe
        conf = folder / "conf/systems/b2.yaml"
        conf.write_text(conf.read_text().replace("0.8", "0.75"))
        one = ("--genders", "f")  # half the time
        remade = made(run(*one, "--dry-run", "full"))
        assert remade == made(run(*one))
        assert {"data/small_test_enrolls_b2", "exp/results", "exp/report"} <= remade
        steps = remade - {"exp/results", "exp/report"}
        assert all(re.search("_b2(?!r)|/b2/", path) for path in steps)

    def test_a_run_with_fewer_systems_hid_the_others(self, recipe: tuple[Path, Run]) -> None:
        """Systems that are up to date stay in the report; --drop takes out what nobody wants."""
        folder, run = recipe
        fewer = ("--systems", "b2r", "--genders", "f")
        assert not made(run(*fewer, "--stop-stage", "10"))
        report = folder / "exp/report/RESULTS.md"
        run(*fewer)
        assert "| b2 |" in report.read_text() and "| b2r |" in report.read_text()
        assert made(run(*fewer, "--drop", "b2")) == {"exp/results", "exp/report"}
        assert "| b2 |" not in report.read_text() and "| b2r |" in report.read_text()

    def test_systems_that_need_voices_get_them(self, recipe: tuple[Path, Run]) -> None:
        """kNN-VC, B1 with a network, a constant target; the same files whatever --nj."""
        folder, run = recipe
        nsf = (ROOT / "egs/TEMPLATE/conf/synthesisers/nsf_mini.yaml").read_text()
        short = re.sub(r"steps: \d+", "steps: 2", nsf)
        write_file(folder / "conf/synthesisers/nsf_mini.yaml", short)
        systems = ("knnvc", "b1_nsf", "const_01")
        take_systems(folder, *systems)
        options = ("--genders", "f", "--stop-stage", "5")
        run("--systems", " ".join(systems), *options)
        original = folder / "data/small_test_trials_f"
        durations = read_map(original / "utt2dur")
        for system in systems:
            protected = folder / f"data/small_test_trials_f_{system}"
            assert (protected / "utt2spk").read_text() == (original / "utt2spk").read_text()
            wavs = read_map(protected / "wav.scp")
            for utt, path in wavs.items():
                info = soundfile.info(folder / path)
                assert info.duration == pytest.approx(float(durations[utt]), abs=0.01)
            assert json.loads((protected / "conf.json").read_text())["system"]
        knn = folder / "data/small_test_trials_f_knnvc"
        before = {path.name: path.read_bytes() for path in (knn / "wav").iterdir()}
        shutil.rmtree(knn)
        done = run("--systems", "knnvc", *options, "--nj", "3")
        assert str(knn.relative_to(folder)) in made(done)
        assert {path.name: path.read_bytes() for path in (knn / "wav").iterdir()} == before

    def test_speech_of_others_has_the_figures_of_who_made_it(self, recipe):
        """Taken from a folder, and made by a command: both are b2's speech."""
        folder, run = recipe
        write_file(folder / "theirs/nobody_x.wav", b"")
        for name in ("enrolls", "trials_f"):
            for path in (folder / f"data/small_test_{name}_b2/wav").iterdir():
                shutil.copy(path, folder / f"theirs/{path.stem}_x.wav")
        command = "mine=sh -c 'cp {in}_b2/wav/*.wav {out}'"
        done = run("--systems", "b2", "--genders", "f", "--external", "theirs=theirs",
                   "--external-command", command, "--stop-stage", "9")  # fmt: skip
        assert "theirs: names end in _x behind the utterance" in done.stdout
        assert re.search(r"1 of \d+ files are of no utterance .*: nobody", done.stdout)
        metrics = folder / "exp/metrics"
        figures = [*(metrics / "b2").glob("*/*/small_test_f/metrics.json")]
        assert len(figures) == 9
        for path, system in product(figures, ("theirs", "mine")):
            same = metrics / system / path.relative_to(metrics / "b2")
            assert same.read_bytes() == path.read_bytes(), same
        told = json.loads((folder / "data/small_test_trials_f_theirs/conf.json").read_text())
        assert told["system"]["anonymiser"] == "external"

    def test_attackers_learn_from_two_sets_joined(self, recipe: tuple[Path, Run]) -> None:
        folder, run = recipe
        prefix = ("--spk-prefix", "x", "--utt-prefix", "x")
        words = ("utils/copy_data_dir.py", *prefix, "data/train", "other/data/train")
        run_words(words, 0, cwd=folder)
        table = folder / "other/data/train/wav.scp"
        table.write_text(table.read_text().replace(" corpus/", f" {folder}/corpus/"))
        run("--systems", "b2r", "--genders", "f", "--attackers", "semi_informed_backend",
            "--attacker-train", "train other/data/train", "--informed-draws", "2",
            "--stop-stage", "8")  # fmt: skip
        scores = folder / "exp/scores/b2r/semi_informed_backend.tiny+plda/AA/small_test_f"
        told = json.loads((scores / "attacker.json").read_text())["training_set"]
        assert told["data"] == "data/train+other_train_b2r_utt_draws2"
        assert (told["n_speakers"], told["n_utterances"]) == (24, 24 * 6 * 2)


def test_an_unknown_system_is_named(tmp_path: Path) -> None:
    """Refused before anything is made; tests/test_plan.py has what else is."""
    make_corpus_folder(tmp_path)
    done = run_recipe(tmp_path, "--systems", "b3", status=2)
    assert done.stderr.endswith("conf/systems/b3.yaml is missing; the nearest names are: b2, b2r\n")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert not (tmp_path / "data").exists()
