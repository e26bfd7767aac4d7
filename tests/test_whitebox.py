"""Constant targets: radars of made-up figures, and how they are compared."""

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

from local.make_report import main as make_report
from tests.recipes import TEMPLATE
from tests.refusals import accepts
from tests.report_rows import Figure, SpeakerFigure, write_table
from tests.test_report_many import Made
from utils.tables import write_map

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
            for metric in ("linkability", "linkability_bins/group=50"):
                value = 1.0 if i == 0 else 0.9 - 0.1 * j - 0.1 * ((i - 1) % 3)
                made_.speaker(of, f"s{j}", metric, value)
    return made_


def write_results(folder: Path) -> None:
    """The folder as local/collect_results.py makes it."""
    found = made(folder)
    write_table(folder / "metrics.csv", Figure, found.figures)
    write_table(folder / "per_speaker.csv", SpeakerFigure, found.speakers)
    for name, value in (("figures", {}), ("clips", []), ("run", {"corpus": "toy"})):
        (folder / f"{name}.json").write_text(json.dumps(value))


@pytest.mark.slow
@pytest.mark.usefixtures("empty_pictures")
def test_radars_of_both_series_and_definitions(tmp_path: Path) -> None:
    write_results(tmp_path)
    accepts(make_report, tmp_path, tmp_path / "report")
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


def test_equally_many_women_and_men_were_drawn_alike(tmp_path: Path) -> None:
    """With the same scores in both lists their differences cancelled in every resample. One person
    whom nothing ever linked was unprotected, and a target that lacked made men's women's."""
    rng, people = np.random.default_rng(0), range(12)
    pairs, out = [*product(people, people)], tmp_path / "exp"
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
    command = [sys.executable, program, tmp_path, "t", "const", tmp_path / "out.csv"]
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
