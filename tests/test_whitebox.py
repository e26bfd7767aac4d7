"""The white-box study of constant targets: tables and radars of made-up figures, and the study."""

import csv
import html
import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from local.collect_study import main as collect_study
from local.make_report import main as make_report
from local.report.studies import Targets
from tests.recipes import TEMPLATE, make_corpus_folder, run_recipe, take_systems
from tests.refusals import refuses
from tests.report_rows import Figure, SpeakerFigure, read_table, write_table
from tests.report_rows import results as of_rows
from tests.test_report_many import Made
from tests.test_studies import study
from utils.tables import write_map


def collect(words: list[str]) -> int:
    return collect_study(["whitebox", *words])


NAMES = [f"const_{i:02d}_of_3{kind}" for kind in ("", "_f0") for i in (1, 2, 3)]
BINS = "linkability_bins_50"


def made(folder: Path) -> Made:
    """EER of the targets 10, 20 and 30 %, 40 % more with their pitch; s0 is the worst protected."""
    made_ = Made(folder)
    for i, system in enumerate(("original", *NAMES)):
        attacker = "unprotected" if i == 0 else "white_box_backend"
        of = ("e", "t_f", system, attacker)
        made_.row(of, "OO" if i == 0 else "AA", "eer", 0.05 if i == 0 else 0.1 * ((i - 1) % 3 + 1))
        made_.row(of, "OO" if i == 0 else "AA", "linkability", 0.9 if i == 0 else 0.5)
        if i:
            melody = ("prosody", "t_f", system, "utility")
            made_.row(melody, "OP", "f0_correlation", 0.1 * i)
            made_.speaker(melody, "s0", "f0_correlation", 0.9)
        for j in range(4):
            for metric in ("linkability", BINS):
                value = 1.0 if i == 0 else 0.9 - 0.1 * j - 0.1 * ((i - 1) % 3)
                made_.speaker(of, f"s{j}", metric, value)
    return made_


@pytest.fixture
def targets(tmp_path: Path) -> Targets:
    found = made(tmp_path)
    results = of_rows(found.figures, found.speakers, folder=tmp_path)
    return Targets(results, dict.fromkeys(NAMES, ("", "")))


def test_means_and_deviations_over_targets(targets: Targets) -> None:
    assert list(targets.series.items()) == [
        ("const_NN_of_3", NAMES[:3]),
        ("const_NN_of_3_f0", NAMES[3:]),
    ]
    original, plain, pitched = targets.over_targets().rows
    assert original[2:6] == ["unprotected", "original", "", "5.0 [2.0, 8.0]"]
    assert plain[2:7] == ["white_box_backend", "const_NN_of_3", "3", "20.0 ± 10.0", "0.50 ± 0.00"]
    assert pitched[3] == "const_NN_of_3_f0"
    worst, *others = targets.by_speaker().rows
    assert {row[1] for row in others} == {"e"}  # prosody stood among them, with dashes
    assert worst[3:] == ["const_NN_of_3", "s0", *(["1.00", "0.80 ± 0.10", "0.90"] * 2)]
    pitch = targets.utility().rows[0]
    assert pitch[:5] == ["t_f", "prosody", "const_NN_of_3", "correlation of log F0", "3"]
    assert pitch[5:] == ["0.20 ± 0.10", f"0.10 ({NAMES[0]})", f"0.30 ({NAMES[2]})"]


def write_results(folder: Path) -> list[str]:
    """The folder as local/collect_results.py makes it, and --target options of its targets."""
    found = made(folder)
    write_table(folder / "metrics.csv", Figure, found.figures)
    write_table(folder / "per_speaker.csv", SpeakerFigure, found.speakers)
    for name, value in (("figures", {}), ("clips", []), ("run", {"corpus": "toy"})):
        (folder / f"{name}.json").write_text(json.dumps(value))
    words = []
    for system in NAMES:
        data = folder / system
        data.mkdir()
        (data / "utt2spk").write_text("a-1 a\n")
        (data / "pseudo.tsv").write_text("#utt\tkey\tspeakers\ttarget_gender\na-1\tk\tvoice7\tf\n")
        words += ["--target", system, str(data)]
    return words


def test_tables_by_the_program(tmp_path: Path) -> None:
    words = write_results(tmp_path)
    assert collect([*words, str(tmp_path)]) == 0
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| constant, pitch unchanged | 0.72 ± 0.01 | 12.1 ± 0.6 |" in text
    assert f"| t_f | e | white_box_backend | {NAMES[0]} | voice7 | f | 10.0 [7.0, 13.0] |" in text
    (tmp_path / NAMES[0] / "pseudo.tsv").write_text("#utt\tkey\n")
    refuses(r"pseudo\.tsv: 1 of 1 utterances missing \(a-1\)", collect, [*words, str(tmp_path)])
    other = ["--target", "const_04_of_4", words[5], str(tmp_path)]
    refuses("no figure of const_04_of_4; run stage 5", collect, other)


@pytest.mark.slow
@pytest.mark.usefixtures("empty_pictures")
def test_radars_of_both_series_and_definitions(tmp_path: Path) -> None:
    write_results(tmp_path)
    assert make_report([str(tmp_path), str(tmp_path / "report")]) == 0
    page = words_of(tmp_path / "report/report.html")
    assert set(re.findall(r'id="picture-(targets_[^"]*)"', page)) == {
        f"targets_e_t-f_const-NN-of-3{kind}_{metric}"
        for kind in ("", "-f0")
        for metric in ("linkability", BINS.replace("_", "-"))
    }
    # Of constant targets there are radars; the picture of attackers was empty.
    assert "picture-eer-by-attacker" not in page
    assert "s0 stays most linkable over all targets (mean 0.80), s3 least (0.50)" in page


def words_of(path: Path) -> str:
    return html.unescape(path.read_text(encoding="utf-8"))


def test_the_study_has_eight_stages(tmp_path: Path) -> None:
    make_corpus_folder(tmp_path)
    (tmp_path / "whitebox.sh").symlink_to(TEMPLATE / "whitebox.sh")
    listed = run_recipe(tmp_path, "--list-stages", script="whitebox.sh")
    assert len(listed.stdout.splitlines()) == 8


@pytest.mark.slow
def test_default_evaluators_that_cannot_be_trained_are_left_out_and_said(world, tmp_path):
    study(world, tmp_path, "whitebox.sh", "const_01", "const_01_f0")
    words = ("--dry-run", "--targets", "1", "--stage", "7", "--evaluators")
    both = run_recipe(tmp_path, *words, "tiny/plda resemblyzer/cosine", script="whitebox.sh")
    assert both.stdout.count("evaluator left out: --how backend") == 1
    none = run_recipe(tmp_path, *words, "tiny/cosine", script="whitebox.sh", status=2)
    assert "no evaluator is left to train" in none.stderr


@pytest.mark.slow
def test_the_study_on_a_small_corpus(tmp_path: Path) -> None:
    """Three targets, women, back ends: from speech to the radar. For the linkability of a speaker
    the world has too few utterances."""
    make_corpus_folder(tmp_path)
    (tmp_path / "whitebox.sh").symlink_to(TEMPLATE / "whitebox.sh")
    take_systems(tmp_path, "const_01", "const_01_f0")
    conf = tmp_path / "conf/recipe.conf"
    conf.write_text(conf.read_text().replace("--eval-utterances 6", "--eval-utterances 8"))
    run_recipe(tmp_path, "--stop-stage", "0")
    asked = ("--targets", "3", "--f0", "none", "--prosody", "false", "--genders", "f", "--nj", "2")
    run_recipe(tmp_path, *asked, script="whitebox.sh")
    out = tmp_path / "exp/whitebox/small_test_3"
    figures = read_table(out / "results/metrics.csv", Figure)
    rows = [r for r in figures if r.metric == "eer"]
    assert {(r.system, r.attacker, r.condition) for r in rows} == {
        ("original", "unprotected", "OO"),
        *((name, "white_box_backend", "AA") for name in NAMES[:3]),
    }
    costs = {r.value for r in figures if r.metric == "cllr" and r.attacker != "unprotected"}
    assert len(costs) == 3  # of three voices
    path = out / f"scores/{NAMES[1]}/white_box_backend.tiny+plda/AA/small_test_f/attacker.json"
    record = json.loads(path.read_text())
    assert record["training_set"]["data"] == f"data/train_{NAMES[1]}_const"
    assert record["comparison"]["draws"] == "nothing is drawn: equal"
    people = read_table(out / "results/per_speaker.csv", SpeakerFigure)
    own = [row for row in people if row.system in NAMES]
    assert {row.metric for row in own} == {"linkability", BINS}
    means = {
        s: sum(float(r.value) for r in own if (r.speaker, r.metric) == (s, BINS)) / 3
        for s in {row.speaker for row in own}
    }
    page = words_of(out / "report/report.html")
    said = re.findall(r"stays most linkable over all targets \(mean ([\d.]+)\)", page)
    assert any(float(x) == pytest.approx(max(means.values()), abs=0.006) for x in said)
    assert re.search(r'id="picture-targets_[^"]*const-NN-of-3_linkability-bins-50"', page)
    again = run_recipe(tmp_path, *asked, "--stage", "5", "--dry-run", script="whitebox.sh")
    assert "nothing to do: all" in again.stdout


def test_equally_many_women_and_men_were_drawn_alike(tmp_path: Path) -> None:
    """With the same scores in both lists their differences cancelled in every resample. One person
    whom nothing ever linked was unprotected, and a target that lacked made men's women's."""
    rng, people = np.random.default_rng(0), range(12)
    pairs, out = [*product(people, people)], tmp_path / "exp/whitebox/t_4"
    for name in ("original", *(f"const_0{n}_of_4" for n in (1, 2, 3, 4))):
        own = [rng.normal(1.5 * (e == t)) for e, t in pairs]
        how = "unprotected.e/OO" if name == "original" else "white_box_backend.e/AA"
        for g in "fm":
            data, made = tmp_path / f"data/t_trials_{g}", f"{name}/{how}/t_{g}"
            for folder in (data, out / "scores" / made, out / "metrics" / made):
                folder.mkdir(parents=True, exist_ok=True)
            rows = [f"{g}{e} {g}{t}-1" for e, t in pairs]
            kinds = ["target" if e == t else "nontarget" for e, t in pairs]
            write_map(data / "utt2spk", {f"{g}{t}-1": f"{g}{t}" for t in people})
            for path, values in ((data / "trials", kinds), (out / "scores" / made / "scores", own)):
                write_map(path, dict(zip(rows, values, strict=True)), blanks=True)
            linked = {f"{g}{t}": float(t > 0) for t in people}
            found = json.dumps({"linkability_per_speaker": linked})
            (out / "metrics" / made / "metrics.json").write_text(found)
    program = TEMPLATE.parents[1] / "benchmarks/compare_targets.py"
    command = [sys.executable, program, tmp_path, out, tmp_path / "out.csv"]
    assert subprocess.run(command, check=True)
    shown = {row["figure"]: row for row in csv.DictReader((tmp_path / "out.csv").open())}
    value, low, high = map(float, re.findall(r"-?[.\d]+", shown["gender"]["both"]))
    assert low < -5 < value < 5 < high
    deviation, _, most = map(float, re.findall(r"[.\d]+", shown["deviation"]["both"]))
    assert most / deviation == pytest.approx((3 / 0.2158) ** 0.5, rel=0.02)  # of four targets
    assert shown["unprotected"]["women"] == "92"
    (out / "scores/const_04_of_4/white_box_backend.e/AA/t_m/scores").unlink()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == f"{out}: 3 attacks on 4 targets, by m\n"
