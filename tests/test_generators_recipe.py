"""Generators compared: the cosine at the EER, capacity, time of a vector, and the recipe."""

import csv
import json
import re
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import compare_generators, compare_targets
from local.collect_study import main as collect_study
from local.metrics.detection import eer_threshold
from local.metrics.intervals import key
from local.metrics.recordings import TESTED
from local.plan.labels import Labels, write_labels
from local.report import gather
from local.report.studies import REAL, capacity_rows, speech_rows
from steps.measure_capacity import main as measure
from steps.time_generator import main as measure_time
from tests.recipes import TEMPLATE, run_recipe
from tests.refusals import accepts, refuses_words
from tests.test_studies import study
from utils.archives import write_archive
from utils.datadir import write_data_dir
from utils.tables import write_file, write_json, write_map

D = 16


@pytest.mark.parametrize(
    ("nontarget", "target", "expected"),
    [
        ([0.1, 0.2], [0.6, 0.8], 0.4),  # apart: midway
        ([0.0, 0.1, 0.5, 0.6], [0.3, 0.4, 0.8, 0.9], 0.45),  # half of each is wrong at 0.45 ...
        ([1.0], [1.0], 1.0),  # one score only
        ([0.5, 0.7], [0.1, 0.3], 0.4),  # reversed: EER 100 %
    ],
)  # fmt: skip
def test_the_threshold_is_where_both_errors_are_equal(nontarget, target, expected):
    score = np.array([*nontarget, *target])
    truth = np.array([False] * len(nontarget) + [True] * len(target))
    found = eer_threshold(score, truth)
    assert found == pytest.approx(expected)
    if len(set(score)) > 1:
        assert np.mean(score[truth] < found) == np.mean(score[~truth] > found)
    order = np.random.default_rng(0).permutation(len(score))
    assert eer_threshold(score[order], truth[order]) == found


def write_sources(folder: Path, n_speakers: int = 6) -> tuple[Path, Path]:
    """x-vectors of two utterances of each speaker, their means, and a data directory."""
    rng = np.random.default_rng(1)
    data, xvectors = folder / "data", folder / "xvectors"
    utts = {f"s{s}-{u}": f"s{s}" for s in range(n_speakers) for u in range(2)}
    genders = {f"s{s}": "fm"[s % 2] for s in range(n_speakers)}
    tables = {
        "utt2spk": utts, "spk2gender": genders, "utt2dur": dict.fromkeys(utts, "4.0"),
        "wav.scp": {utt: f"{utt}.wav" for utt in utts},
    }  # fmt: skip
    write_data_dir(data, tables)
    for name, keys in (("xvector", utts), ("spk_xvector", genders)):
        made = {key: rng.standard_normal(D).astype(np.float32) for key in keys}
        write_archive(xvectors / name, made)
    return xvectors, data


def test_capacity_of_a_system_that_draws_and_of_one_that_does_not(tmp_path):
    sources, pool = write_sources(tmp_path / "sources"), write_sources(tmp_path / "pool", 8)
    conf, out, threshold = tmp_path / "c.yaml", tmp_path / "out", tmp_path / "threshold.json"
    threshold.write_text('{"threshold": 0.999}')
    given = ("--sources", *sources, "--pool", pool[0], "--pool-data", pool[1])
    asked = ("--sizes", 5, 400, "--threshold", threshold, "--", conf, out)

    conf.write_text("generator: {name: random, averaged: 1}\n")
    accepts(measure, *given, *asked)
    rows = {(r["n"], r["figure"]): r["value"] for r in capacity_rows("random", out)}
    # One of 4 speakers of the source's gender, of whom 8 are there: one pair in 8 is one voice.
    assert rows["400", "share_above_threshold"] == pytest.approx(1 / 8, abs=0.02)
    assert rows["400", "max_cosine"] == pytest.approx(1)
    first = out.read_text()
    accepts(measure, *given, *asked)
    assert out.read_text() == first

    conf.write_text("generator: {name: average, cohort: 2}\n")
    accepts(measure, *given, *asked)
    found = {row["n"] for row in capacity_rows("average", out)}
    assert found == {"5", "12"}  # as many as sources

    accepts(measure, *asked[:-2], pool[0], out)
    assert {(r["indices"], r["n"]) for r in capacity_rows(REAL, out)} == {("real", "8")}


def test_time_is_by_vector_and_by_second_of_speech(tmp_path):
    sources = write_sources(tmp_path / "sources")
    conf, out = tmp_path / "c.yaml", tmp_path / "time.json"
    conf.write_text("generator: {name: average, cohort: 2}\n")
    given = ("--sources", *sources, "--pool", sources[0], "--pool-data", sources[1])
    accepts(measure_time, "--vectors", 20, *given, conf, out)
    figures = json.loads(out.read_text())
    assert figures["vectors"] == 20 and figures["utterance_seconds"] == 4.0
    assert 0 < figures["rtf"] == pytest.approx(figures["cpu_seconds"] / 4.0)


def test_bad_input_is_one_line(tmp_path):
    sources = write_sources(tmp_path / "sources")
    conf, out, threshold = tmp_path / "c.yaml", tmp_path / "out", tmp_path / "threshold.json"
    conf.write_text("generator: {name: random}\n")
    pool = ("--pool", sources[0], "--pool-data", sources[1])
    threshold.write_text('{"eer": 0.1}')
    for asked, message in (
        (pool, "no source for pseudo-speakers; give --sources"),
        (("--sources", *sources, "--"), "this generator needs --pool XVECTORS"),
        (("--threshold", threshold, "--"), "no JSON file with a `threshold`"),
        (("--threshold", "1.5", "--"), "a cosine, from -1 to 1"),
    ):
        refuses_words(message, measure, *asked, conf, out)
    assert not out.exists()


@pytest.mark.slow
def test_tables_stand_beside_the_papers_and_say_what_was_not_run(tmp_path):
    """Of folders as the recipe's stages leave them."""
    odd, real, threshold = (tmp_path / name for name in ("odd|name", "real", "threshold.json"))
    for folder in (real, odd):
        write_file(
            folder / "capacity.tsv",
            "#indices\tn\tmean\tmin\tmax\tpairs\tabove_threshold\n"
            "unseen\t100\t0.25\t-0.5\t0.9\t4950\t1.0e-02\n",
        )
        write_json(folder / "time.json", {"vectors": 10, "cpu_seconds": 0.004, "rtf": 0.001})
    write_json(threshold, {"threshold": 0.5, "eer": 0.1, "n_target": 10, "n_nontarget": 20})
    heads = ("generators", "--corpus-name", "small", "--encoder", "tiny")
    asked = (*heads, "--generator", "idmap_mlp", odd, odd, threshold, real, tmp_path / "out")
    accepts(collect_study, *asked)
    text = (tmp_path / "out/RESULTS.md").read_text()
    assert "Time (Liu et al. 2025, Table III)" in (tmp_path / "out/paper.txt").read_text()
    assert "| idmap_mlp | unseen | 100 | 0.250 | −0.500 | 0.900 | 4,950 | 1 % |" in text
    assert "| idmap_mlp | *Liu et al. 2025* | 2,000,000 | 0.550 | −0.350 | 0.980 |  |  |" in text
    assert "| idmap_mlp |  | not run | 99.49 | not run | 0.412 |" in text
    assert "| idmap_mlp | 4 | 0.001 | 0.000642 |" in text
    assert json.loads((tmp_path / "out/run.json").read_text())["origin"]["commit"]
    with (tmp_path / "out/generators.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    of = {(r["generator"], r["of"]) for r in rows}
    assert of == {("real", "here"), ("idmap_mlp", "here"), ("idmap_mlp", "004")}
    pictures = [(tmp_path / f"out/capacity.{kind}").read_bytes() for kind in ("pdf", "svg")]
    assert all(len(picture) > 5000 for picture in pictures)
    assert b"mathdefault" not in pictures[1]  # numbers are written as such
    accepts(collect_study, *asked)
    assert [(tmp_path / f"out/capacity.{k}").read_bytes() for k in ("pdf", "svg")] == pictures


def test_the_eer_of_a_generator_is_of_single_recordings(tmp_path, monkeypatch):
    """EERs from all recordings of a person, and p values, stood under the same heading."""
    monkeypatch.setattr(gather, "provenance", lambda folder: "made by a test")
    names = key("eer", recordings="1"), key("eer", recordings="all"), TESTED[0]
    found = dict(zip(names, (0.4, 0.2, 0.01), strict=True))
    columns = {name: name.columns for name in names}
    write_json(tmp_path / "metrics.json", found | {"columns": columns})
    of = Labels("t", "", "wgan", "verification", "lazy_informed", "e/cosine", "AA")
    write_labels(tmp_path, of)
    rows = [(row["figure"], row["value"]) for row in speech_rows([tmp_path])]
    assert rows == [("eer_lazy_informed", 0.4)]


@pytest.mark.slow
def test_the_recipe_on_a_small_corpus(world, tmp_path):
    study(world, tmp_path, "generators.sh", "random", "idmap_mlp")
    text = (TEMPLATE / "conf/generators/idmap_mlp.yaml").read_text()
    text = re.sub(r"\bsteps: \d+", "steps: 60", text)
    write_file(tmp_path / "conf/generators/idmap_mlp.yaml", text)
    asked = ("--generators", "random idmap_mlp", "--sizes", "50 200", "--vectors", "30")
    run_recipe(tmp_path, *asked, script="generators.sh")
    with (tmp_path / "exp/generators/tiny/results/generators.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    measured = {(r["generator"], r["indices"], r["n"]) for r in rows if r["figure"] == "pairs"}
    assert measured >= {
        ("real", "real", "12"), ("random", "keys", "200"), ("idmap_mlp", "unseen", "200"),
        ("idmap_mlp", "seen", "12"), ("idmap_mlp", "mixed", "50"),
    }  # fmt: skip
    timed = {r["generator"] for r in rows if r["figure"] == "rtf" and r["of"] == "here"}
    assert timed == {"random", "idmap_mlp"}
    again = run_recipe(tmp_path, *asked, "--stage", "1", script="generators.sh")
    assert "nothing to do: all" in again.stdout


def test_generators_are_compared_on_the_same_people(tmp_path, monkeypatch):
    """Each tells people apart the better, the later it stands in the paper's order."""
    rng, scores = np.random.default_rng(0), tmp_path / "exp/scores"
    systems = {"original": 6.0}  # how far apart people are
    systems |= {f"bn_{name}": 1.4 + 0.6 * n for n, name in enumerate(compare_generators.SYSTEMS)}
    for gender in "fm":
        people = [f"{gender}{i}" for i in range(6)]
        heard = {f"{who}-{i}": who for who in people for i in range(6)}
        data = tmp_path / f"data/t_trials_{gender}"
        write_map(data / "utt2spk", heard)
        for kind, listed in (("", product(people, heard)), ("pairs", combinations(heard, 2))):
            same = {f"{a} {b}": heard.get(a, a) == heard[b] for a, b in listed}
            trials = {pair: "target" if told else "nontarget" for pair, told in same.items()}
            write_map(data / f"trials{kind}", trials, blanks=True)
            for system, apart in systems.items():
                told = apart * np.array([*same.values()]) + rng.standard_normal(len(same))
                attack = "semi_informed_backend.e+plda/AA"  # of original speech nobody reads it
                if kind:
                    attack = f"similarity.e+plda/{'OO' if system == 'original' else 'PP'}"
                at = scores / system / attack / f"t_{gender}"
                write_map(at / "trials", trials, blanks=True)
                write_map(at / "scores", dict(zip(trials, told.round(4), strict=True)), blanks=True)
    for module in (compare_generators, compare_targets):
        monkeypatch.setattr(module, "N_BOOTSTRAP", 100)
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "t", "e", str(tmp_path / "out.csv")])
    assert compare_generators.main() == 0
    shown = {row["figure"]: row for row in csv.DictReader((tmp_path / "out.csv").open())}
    eers = [float(shown["eer"][f"bn_{name}"].split()[0]) for name in compare_generators.SYSTEMS]
    assert eers == sorted(eers, reverse=True)
    lead = shown["eer: bn_idmap_diff less each"]["bn_average"]
    value, low, high = map(float, re.findall(r"-?[.\d]+", lead))
    assert value == pytest.approx(eers[0] - eers[-1], abs=0.11) and 0 < low < value < high
    assert shown["g_vd: bn_idmap_diff less each"]["bn_average"].startswith("-")
    assert "tau 1.00" in [*shown][-1] and "reversed: none" in [*shown][-1]
