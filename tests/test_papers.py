"""The papers' printed figures as data, beside ours, and the verdicts on their claims."""

import csv
import json
import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from pandas import concat
from scipy.stats import fisher_exact, kendalltau

from local.keep_results import main as keep
from local.make_report import main as make_report
from local.repeat_paper import main as repeat
from local.report.frame import read_figures
from local.report.gather import KEPT
from local.report.results import load_results
from local.report.studies import Searches
from local.report.tables import FOLDER, VERDICTS, claims, of_table, paper_table, published
from tests.refusals import refuses
from tests.report_rows import frame, metrics_csv
from utils.digests import sha256
from utils.tables import write_file

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("paper", sorted(path.stem for path in FOLDER.glob("00*.tsv")))
def test_every_printed_figure_is_a_number_or_a_tag(paper: str) -> None:
    for row in published(paper).itertuples():
        assert row.metric == "tag" or math.isfinite(row.number), row


def test_printed_figures_come_in_the_units_of_metrics_csv() -> None:
    rows = [r for r in of_table("002", "2").itertuples() if r.metric != "tag"]
    found = {(r.system, r.set, r.metric): r.number for r in rows}
    assert found["B1", "libri_test_trials_f", "deid"] == pytest.approx(0.9785)
    assert found["B1", "libri_test_trials_f", "g_vd"] == -10.45
    refuses(r"002\.tsv: no table 9; known: 2, 3, 4", of_table, "002", "9")


@pytest.mark.parametrize(
    ("paper", "run", "cells"),  # theirs and ours
    [
        ("noe_2020", "egs/vpc2020/results/lists", {"99.54", "99.99 [99.53, 100.00]"}),
        ("noe_2022", "egs/vpc2020/results/lists", {"2.266", "3.979 [3.842, 4.047]"}),
        ("champion_2021", "egs/speechocean/results/white_box", {"12.1 ± 0.6", "26.0 ± 1.6"}),
    ],
)  # fmt: skip
def test_a_repeated_paper_ends_with_its_table_beside_ours(paper, run, cells, tmp_path, capsys):
    assert repeat([paper, str(ROOT / run), str(tmp_path)]) == 0
    for text in (capsys.readouterr().out, (tmp_path / f"{paper}.md").read_text()):
        assert not [cell for cell in cells if cell not in text]
    (tmp_path / "metrics.csv").write_text(metrics_csv("t b2 verification ignorant e OA eer 0.1"))
    refuses("no figures of women or men alone", repeat, [paper, str(tmp_path), str(tmp_path)])


def test_a_white_box_ends_with_the_paper(tmp_path: Path) -> None:
    """Beside other attackers, whose figures do not stand in the paper's table."""
    of = ("original unprotected 0.01", "const_01 ignorant 0.4", "const_01 white_box_backend 0.2")
    lines = [f"t_{g} {system} verification {who} e AA eer {eer}"
             for g, (system, who, eer) in product("fm", map(str.split, of))]  # fmt: skip
    (tmp_path / "metrics.csv").write_text(metrics_csv("\n".join(lines)))
    assert make_report([str(tmp_path), str(tmp_path / "out")]) == 0
    said = (tmp_path / "out/verdicts.txt").read_text()
    assert "12.1 ± 0.6" in said and re.search(r"women +const_01 +20\.0", said)


def test_unprotected_eers_of_seo_stand_under_trial_set_1_alone() -> None:
    """Under trial set 2 the paper has a dash; both of our tables had the figures."""
    study = Searches(frame([]))
    first, second = (
        [cell for row in study.printed("5", trial).values() for cell in row]
        for trial in ("trial1", "trial2")
    )
    assert "3.75" in first and "3.75" not in second
    assert {*of_table("003", "5, unprotected")["attacker"]} == {"unprotected"}


def test_the_attacker_of_liu_fig_9_is_the_semi_informed_one() -> None:
    assert {*of_table("004", "Fig. 9")["attacker"]} == {"semi_informed"}


def test_the_challenges_own_scores_give_the_disclosure_that_002_prints() -> None:
    found = read_figures(ROOT / "egs/vpc2020/results/lists/metrics.csv")
    ours = {(r.split, r.system, r.attacker, r.figure): r.value for r in found.itertuples()}
    for row in of_table("002", "2").itertuples():
        split = row.set.replace("_trials", "")
        if row.system == "original" and split.startswith("libri") and row.metric != "tag":
            value = float(ours[split, "original", "unprotected", row.metric])
            assert round(value, 3) == pytest.approx(row.number, abs=1.1e-3)


def test_ours_stand_beside_the_papers(tmp_path: Path) -> None:
    figure = "own_f mcadams similarity - e/cosine OO-OP-PP deid 0.5 0.4 0.6"
    write_file(tmp_path / "run/metrics.csv", metrics_csv(figure))
    words = "002:2 run sets=libri_test_trials_f:own_f evaluators=e/cosine systems=B1,B2"
    table = paper_table(words.split(), tmp_path / "page.md")
    at = table.header.index("here")
    assert table.header[at - 1] == "DeID (%)"
    rows = {(row[0], str(row[1])): row for row in table.rows}
    assert rows["B2", "`libri_test_trials_f`"][at - 1 : at + 1] == ["45.02", "50.00 [40.00, 60.00]"]
    assert rows["B1", "`libri_test_trials_f`"][at] == ""
    assert table.header.count("here") == 1


def test_a_system_has_a_row_with_ours_of_several_sets_by_another_attacker(tmp_path: Path) -> None:
    data = """
    t_f bn_wgan similarity - e/plda OO-OP-PP deid 0.5 0.4 0.6
    t_m bn_wgan similarity - e/plda OO-OP-PP deid 0.7 0.6 0.8
    t_m wgan similarity - e/plda OO-OP-PP deid 0.1 0.0 0.2
    t_f bn_wgan verification semi_informed_backend e/plda AA eer 0.25 0.2 0.3
    t_f bn_wgan verification semi_informed e/cosine AA eer 0.15 0.1 0.2
    """
    (tmp_path / "metrics.csv").write_text(metrics_csv(data))
    both = "sets=libri_dev_and_libri_test:t_f,libri_dev_and_libri_test:t_m"
    words = [".", "evaluators=e/plda", "prefix=bn_", "systems=RS,GAN_N"]
    table = paper_table(["004:II", *words, both, "rows=systems"], tmp_path / "page.md")
    assert [*table.header[2:]] == ["DeID (%)", "here, t_f", "here, t_m"]
    empty, shown = ([str(cell) for cell in row] for row in table.rows)
    assert empty == ["RS", "−1.684", "98.43", "", ""]
    assert shown[2:] == ["98.93", "50.00 [40.00, 60.00]", "70.00 [60.00, 80.00]"]
    several = r"several sets beside libri_dev_and_.* need rows=systems"
    refuses(several, paper_table, ["004:II", *words, both], tmp_path / "page.md")

    one = ["sets=libri_test_trials_f:t_f", "attackers=semi_informed:semi_informed_backend"]
    table = paper_table(["004:I", *words, *one, "rows=systems"], tmp_path / "page.md")
    at = table.header.index("here")
    assert [str(row[at]) for row in table.rows] == ["", "25.00 [20.00, 30.00]"]


def test_every_claim_has_a_verdict_and_a_reason() -> None:
    found = claims()
    assert {*found["paper"]} == {"000", "001", "002", "003", "004"}
    for claim in found.itertuples():
        assert claim.verdict in VERDICTS and claim.why, claim.claim
        assert claim.verdict == "cannot be run here" or "](" in claim.why, claim.claim


# ---- Verdicts by the rules of docs/papers/README.md, from the committed figures.

LIBRI = ROOT / "egs/librispeech/results"


def verdict_on(start: str) -> str:
    [verdict] = {c.verdict for c in claims().itertuples() if c.claim.startswith(start)}
    return verdict


def interval_of(text: str) -> tuple[float, float, float]:
    """Value, low and high of a committed cell, such as −0.1 [−0.2, 0.0]."""
    value, low, high = map(float, re.findall(r"-?[\d.]+", text.replace("−", "-")))
    return value, low, high


def nist_eers() -> dict[str, list[tuple[str, float, float]]]:
    """(system, low, high) of the EERs of nist.sh, by family, for each evaluator and profile."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    new = read_figures(LIBRI / "nist/metrics.csv")
    for f in new[new["metric"] == "eer"].itertuples():
        found.setdefault(f.family, []).append((f.system, f.low, f.high))
    with (LIBRI / "tables/nist.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            of = row["figure"].removeprefix("EER of ").removesuffix(" (%)")
            of = of.removesuffix("-profile").replace(" ", "")
            for name, place in product(("b1", "b2r", "idmap_mlp", "knnvc"), "12"):
                if (cell := row[f"`{name}` P{place}"]) and of in found:
                    _, low, high = interval_of(cell)
                    found[of].append((name, low / 100, high / 100))
    return found


def test_alike_is_decided_by_differences_of_women_and_men_together() -> None:
    with (LIBRI / "tables/b2r_draws.csv").open(encoding="utf-8", newline="") as file:
        own = [r["difference"] for r in csv.DictReader(file) if r["figure"] == "D_ECE (bit)"]
    (a, a0, a1), (b, b0, b1) = map(interval_of, own)
    first, second = ((3.92 / width) ** 2 for width in (a1 - a0, b1 - b0))
    mean, half = (first * a + second * b) / (first + second), 1.96 / (first + second) ** 0.5
    assert (mean, half) == pytest.approx((-0.063, 0.044), abs=1e-3)
    assert verdict_on("The ECE profiles of B2 and B2r") == "not decided here"  # two of six sets


def test_patterns_of_voices_hold_for_most_evaluators() -> None:
    eers = nist_eers()
    below: dict[str, list[bool]] = {}
    for system, low, high in eers["trial1"]:
        assert low <= 0.5
        below.setdefault(system, []).append(high < 0.5)
    del below["copy"]
    found = {name for name, own in below.items() if 2 * sum(own) > len(own)}
    assert below.keys() - found == {"rasp_like", "shadow_like"} and len(below) == 8
    assert verdict_on("Most systems do not hide people fully") == "holds in kind"

    of = {t: [e for e in eers[t] if e[0] == "knnvc"] for t in ("trial1", "trial2", "cross")}
    assert max(high for *_, high in of["trial2"]) < min(low for _, low, _ in of["trial1"])
    assert verdict_on("kNN-VC keeps one voice in a profile") == "holds in kind"
    border = (11.3 + 33.6) / 200  # RASP's and SHADOW's in the paper
    assert 2 * sum(high < border for *_, high in of["cross"]) > len(of["cross"])
    assert all(low < border for _, low, _ in of["cross"])
    assert verdict_on("Two profiles of kNN-VC are two voices") == "holds in kind"


def test_search_and_alignment_are_at_most_weakly_coupled() -> None:
    """Fieller, Hartley and Pearson (1957): arctanh(tau) has a variance of 0.437/(n - 4)."""
    runs = [read_figures(path) for path in sorted(LIBRI.glob("*/metrics.csv"))]
    every = concat([r[(r["family"] == "leakage") & (r["figure"].isin(["auc_cmc", "p_cos"]))
                      & (r["evaluator"] == "resemblyzer/cosine_raw")] for r in runs])  # fmt: skip
    for split, wanted in (("libri_test_f", (-0.04, 0.46)), ("libri_test_m", (-0.25, 0.28))):
        own = every[(every["split"] == split) & ~every["system"].str.startswith("copy")]
        both = own.drop_duplicates(["system", "metric"]).pivot(
            index="system", columns="metric", values="value"
        )
        z = np.arctanh(kendalltau(both["auc_cmc"], both["p_cos"]).statistic)
        half = 1.96 * (0.437 / (len(both) - 4)) ** 0.5
        assert len(both) == 27
        assert tuple(np.tanh([z - half, z + half])) == pytest.approx(wanted, abs=0.006)
    assert verdict_on("Leakage in the search and alignment") == "not decided here"


def run_folder(tmp_path: Path, command: str) -> Path:
    (tmp_path / "metrics.csv").write_text(metrics_csv(""))
    told = {
        "origin": {"command": command, "commit": "abc", "date": "2026-01-01"},
        "corpus": "fsdd", "corpus_note": "Real people read digits",
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(told))
    return tmp_path


@pytest.mark.parametrize("table", KEPT)
def test_a_run_is_kept_with_its_command_and_origin(tmp_path: Path, table: str) -> None:
    run = run_folder(tmp_path, "./run.sh --corpus /data/x/LibriSpeech --nj 2")
    (run / "metrics.csv").rename(run / table)
    assert keep(["--name", "/data/x/LibriSpeech=LIBRISPEECH", str(run), str(tmp_path / "o")]) == 0
    assert (tmp_path / "o/command.txt").read_text() == "./run.sh --corpus LIBRISPEECH --nj 2\n"
    origin = json.loads((tmp_path / "o/origin.json").read_text())
    kept = (tmp_path / "o" / table).read_bytes()
    assert origin["commit"] == "abc" and origin[table] == f"sha256:{sha256(kept)}"
    shown = load_results(tmp_path / "o")
    assert shown.run["corpus_note"] == "Real people read digits"
    assert shown.origin["command"] == "./run.sh --corpus LIBRISPEECH --nj 2"


def test_a_kept_run_forgot_which_figures_were_lost(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "./run.sh --corpus /data/x --allow-loss 1")
    told = json.loads((run / "run.json").read_text())
    lost = {"what": "exp/metrics/b2", "why": "/data/x/a.wav: is truncated"}
    (run / "run.json").write_text(json.dumps(told | {"missing": [lost]}))
    assert keep(["--name", "/data/x=X", str(run), str(tmp_path / "o")]) == 0
    assert ("exp/metrics/b2", "X/a.wav: is truncated") in load_results(tmp_path / "o").missing


@pytest.mark.parametrize(
    ("command", "message"),
    [("./run.sh --corpus /data/x", "/data/x: a path of this machine"),
     ("./nist.sh --external 'x=P1,/data/p2'", "/data/p2: a path of this machine"),
     ("not recorded", "no command was recorded; give --command")],
)  # fmt: skip
def test_a_run_that_nobody_could_repeat_is_not_kept(tmp_path, command, message):
    refuses(message, keep, [str(run_folder(tmp_path, command)), str(tmp_path / "o")])
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "table",
    sorted(p for name in KEPT for p in ROOT.glob(f"egs/*/results/**/{name}")),
    ids=lambda p: str(p.parent.name),
)
def test_committed_figures_say_where_they_came_from(table: Path) -> None:
    assert (table.parent / "command.txt").read_text().strip()
    origin = json.loads((table.parent / "origin.json").read_text())
    assert origin["commit"] and origin["date"]
    assert origin[table.name] == f"sha256:{sha256(table.read_bytes())}"


def test_no_voice_of_bn_is_unintelligible() -> None:
    with (LIBRI / "tables/bn_voices.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 120
    assert max(int(r["errors"]) / int(r["words"]) for r in rows) <= 0.4
    drawn = 105  # different ones of the pool's 1,000
    assert fisher_exact([[0, drawn], [4, 136]]).pvalue == pytest.approx(0.137, abs=0.001)
    assert verdict_on("A few targets give unintelligible speech") == "not decided here"
