"""The report: gathered from a made-up run, complete or not, and opened in a real browser."""

import csv
import html
import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markupsafe
import numpy as np
import pandas as pd
import pytest
import soundfile

from local.collect_results import main as collect
from local.compute_metrics import main as compute
from local.make_report import main as make_report
from local.metrics.detection import D_ECE_MAX
from local.metrics.intervals import key
from local.metrics.verification import attack, prepare, prior_profile
from local.options import write_figures
from local.plan.labels import Labels, write_labels
from local.report import pictures, tables
from local.report.draw import inline, slug
from local.report.findings import not_measured
from local.report.frame import METRICS, WHERE, with_numbers
from local.report.gather import origin
from local.report.gather import tabulate as tabulate_figures
from local.report.measures import number, percent
from local.report.page import Headings, cell, without_constants
from local.report.results import Results, load_results
from local.report.tables import SPECS, TERMS, cards
from local.report.wording import render
from tests.browser import check_page, opened, unfold
from tests.refusals import accepts, refuses, refuses_words
from tests.report_rows import (
    Figure,
    SpeakerFigure,
    figure,
    named,
    page_of,
    speaker_figure,
    words,
    write_table,
)  # fmt: skip
from tests.report_rows import results as of_rows
from tests.world import write_speech
from utils.archives import ArchiveWriter
from utils.cli import LossError
from utils.tables import write_file

ODD = 'é<i>"q" & $x$_'  # a system that nobody should have named so
SYSTEMS = {"b2": 0.9, ODD: 2.5}  # the noise that it adds to a voice
SPEAKERS = ("s<1>", "s2", "s3", "s4", "s5", "s6", "s7", "s8")
N_UTTS = 7
LABEL = "toy/cosine"
FOLDER = LABEL.replace("/", "+")
Vectors = dict[str, np.ndarray]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


def voices(noise: float, seed: int) -> Vectors:
    """x-vectors of every utterance; the same voices in every call, moved by a system's noise."""
    own, rng = np.random.default_rng(1), np.random.default_rng(seed)
    made = {}
    for speaker in SPEAKERS:
        voice = own.normal(size=10) + noise * rng.normal(size=10)
        for i in range(N_UTTS):
            made[f"{speaker}-{i}"] = voice + 0.7 * rng.normal(size=10)
    return made


def write_scores(folder: Path, enrolments: Vectors, trials: Vectors, *, pairs=False):
    """All comparisons but those of an utterance with itself: `trials` and `scores` in a folder."""
    folder.mkdir(parents=True)
    lists, scores = [], []
    for a, x in enrolments.items():
        for b, y in trials.items():
            if pairs and a == b:
                continue
            same = a.rpartition("-")[0] == b.rpartition("-")[0] if pairs else b.startswith(f"{a}-")
            lists.append(f"{a} {b} {'target' if same else 'nontarget'}\n")
            scores.append(f"{a} {b} {unit(x) @ unit(y):.6f}\n")
    (folder / "trials").write_text("".join(lists))
    (folder / "scores").write_text("".join(scores))
    return folder / "trials", folder / "scores"


def models(vectors: Vectors) -> Vectors:
    return {s: sum(unit(vectors[f"{s}-{i}"]) for i in range(2)) for s in SPEAKERS}


def stamp(folder: Path) -> None:
    done = {"command": ["job", str(folder), "x.py"], "inputs": {}, "code": {}, "host": "here"}
    (folder / ".done").write_text(json.dumps(done))


def write_data(folder: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    seconds = {f"{speaker}-0": (n + 1) / 2 for n, speaker in enumerate(SPEAKERS)}
    waves = {utt: 0.1 * rng.standard_normal(int(16000 * s)) for utt, s in seconds.items()}
    write_speech(folder, waves, utt2dur=seconds)
    conf = {"system": {"anonymiser": "toy", "note": "<script>alert(1)</script>"}, "seed": 0}
    (folder / "conf.json").write_text(json.dumps(conf))
    return folder


class Run:
    """A made-up run of a recipe with one split, two systems and a second draw of one of them."""

    def __init__(self, root: Path) -> None:
        self.root, self.words, self.figures = root, [], []  # type: ignore[var-annotated]
        self.original = voices(0.0, 2)
        self.utt2spk = root / "utt2spk"
        self.utt2spk.write_text("".join(f"{u} {u.rpartition('-')[0]}\n" for u in self.original))
        self.attack("original", "unprotected", "OO", self.original, self.original)
        oo = write_scores(root / "oo", self.original, self.original, pairs=True)
        data = write_data(root / "data", 0)
        for n, (system, noise) in enumerate(SYSTEMS.items()):
            vectors = voices(noise, 3 + n)
            self.attack(system, "ignorant", "OA", self.original, vectors)
            self.attack(system, "lazy_informed", "AA", voices(noise, 3 + n), vectors)
            op = write_scores(root / f"op{n}", self.original, vectors, pairs=True)
            pp = write_scores(root / f"pp{n}", vectors, vectors, pairs=True)
            command = ["similarity", *self.of(), *oo, *op, *pp]
            self.metrics(system, "similarity", "OO-OP-PP", command)
            attacks = (
                ("original", "unprotected", "OO"), (system, "ignorant", "OA"),
                (system, "lazy_informed", "AA"),
            )  # fmt: skip
            lists = [self.scores(*of) / name for of in attacks for name in ("trials", "scores")]
            self.metrics(system, "gains", "OO-OA-AA", ["gains", *self.of(), *lists])
            x = [self.archive(f"o{n}", self.original), self.archive(f"p{n}", vectors)]
            self.metrics(system, "leakage", "OP", ["leakage", *self.of(), *x])
            self.words += ["--speech", system, data, write_data(root / f"data{n}", 5)]
        f0, f1 = (self.scores(ODD, name, "OA") for name in ("ignorant", "draw1"))
        trials, _ = write_scores(f1, models(self.original), voices(SYSTEMS[ODD], 9))
        command = ["calibration", "--utt2spk", self.utt2spk, trials, f0 / "scores", f1 / "scores"]
        self.metrics(ODD, "calibration", "OA", command)

    def of(self) -> list[object]:
        return ["--utt2spk", self.utt2spk, "--bootstrap", 30]

    def scores(self, system: str, attacker: str, condition: str) -> Path:
        return self.root / "scores" / system / f"{attacker}.{FOLDER}" / condition / "toy_f"

    def attack(
        self, system: str, attacker: str, condition: str, enrol: Vectors, trial: Vectors
    ) -> None:
        folder = self.scores(system, attacker, condition)
        trials, scores = write_scores(folder, models(enrol), trial)
        (folder / "attacker.json").write_text(json.dumps({"attacker": attacker}))
        command = ["verification", *self.of(), trials, scores]
        figures = self.metrics(system, attacker, condition, command)
        self.words += ["--attack", figures, trials, folder]

    def metrics(self, system: str, who: str, condition: str, command: list[object]) -> Path:
        folder = self.root / "metrics" / system / f"{who}.{FOLDER}" / condition / "toy_f"
        folder.mkdir(parents=True)
        assert compute([str(word) for word in (*command, folder / "metrics.json")]) == 0
        stamp(folder)
        family, attacker = named(who)
        write_labels(folder, Labels("toy_f", "f", system, family, attacker, LABEL, condition))
        self.figures += ["--figures", folder]
        self.words += self.figures[-2:]
        return folder

    def archive(self, name: str, vectors: Vectors) -> Path:
        with ArchiveWriter(self.root / name) as writer:
            for key, vector in sorted(vectors.items(), key=lambda item: item[0].encode()):
                writer.write(key, vector.astype(np.float32))
        return self.root / f"{name}.scp"

    def collect(self, out: Path, *more: object) -> int:
        words = ["--corpus-name", "toy & <co>", *self.words, *more, out]
        return collect([str(word) for word in words])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def results(run: Run) -> Path:
    out = run.root / "results"
    assert run.collect(out) == 0
    return out


@pytest.fixture(scope="module")
def report(results: Path) -> Path:
    out = results.parent / "report"
    assert make_report(["--pdf", str(results), str(out)]) == 0
    return out


def report_of(folder: Path) -> str:
    """The page of a folder of results."""
    out = folder.with_name("report")
    assert make_report([str(folder), str(out)]) == 0
    return (out / "report.html").read_text()


def changed(results: Path, tmp_path: Path) -> Path:
    """The results again, to be changed."""
    return shutil.copytree(results, tmp_path / "results")


class Parser(HTMLParser):
    """Ids, links, tags and visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.tags = [], [], []  # type: ignore[var-annotated]
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found.get("href"))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_pictures_of_one_evaluator_share_their_axes() -> None:
    """Histograms and zoo plots of two systems looked alike, whatever their scores were."""
    similar, attacks = [], []
    for system, size in (("a", 1.0), ("b", 50.0)):
        where = {"system": system, "split": "t_f", "evaluator": "e", "attacker": "ignorant"}
        entry = {"where": where, "speakers": ["x", "y", "z"]}
        for s in ("oo", "op", "pp"):
            points = size * np.arange(6.0).reshape(3, 2)
            entry |= {f"sim_{s}": np.eye(3).tolist(), f"zoo_{s}": points.tolist()}
        similar.append(entry)
        bins = {"edges": [0.0, size], "mated": [1.0], "non_mated": [1.0], "linkability": [0.0]}
        attacks.append({"where": where, "ece": [], "histogram": bins})
    results = Results(Path(), pictures={"similarity": similar, "attacks": attacks})
    entries = results.entries("similarity", "e")
    made: list[Any] = [pictures.similarity(results, entry).canvas.axes for entry in entries]
    (_, zoo_a, *_), (_, zoo_b, *_) = made
    assert zoo_a.get_xlim() == zoo_b.get_xlim() and zoo_a.get_ylim() == zoo_b.get_ylim()
    rows = pictures.ridge(results, "e", "t_f")
    assert rows is not None and len(rows.canvas.axes[0].get_yticks()) == 2


class TestCurves:
    rng = np.random.default_rng(0)
    target = np.repeat([True, False], [80, 400])
    score = rng.normal(size=480) + 1.5 * target

    def test_the_gap_of_the_profiles_is_d_ece(self) -> None:
        """D_ECE is the integral of prior less posterior ECE over the prior π."""
        prior = prior_profile()
        pi = 1 / (1 + np.exp(-np.array(prior["log_odds"])))
        found = attack(self.target, self.score)
        figures = prepare(self.score, self.target).figures()
        gap = np.array(prior["prior"]) - np.array(found["ece"])
        assert figures is not None
        assert np.trapezoid(gap, pi) == pytest.approx(figures["d_ece"], abs=5e-4)
        assert np.trapezoid(prior["prior"], pi) == pytest.approx(D_ECE_MAX, abs=2e-3)
        assert found["ece"][80] == pytest.approx(figures["cllr_min"])  # type: ignore[index]

    def test_the_histogram_is_that_of_linkability(self) -> None:
        found = attack(self.target, self.score)["histogram"]
        figures = prepare(self.score, self.target).figures()
        assert isinstance(found, dict) and figures is not None
        assert len(found["edges"]) == 9
        assert sum(found["mated"]) == pytest.approx(1)
        mean = np.dot(found["mated"], found["linkability"])
        assert mean == pytest.approx(figures["linkability_mean"])

    def test_few_mated_scores_have_no_histogram(self) -> None:
        assert attack(self.target[70:], self.score[70:])["histogram"] is None


@pytest.mark.slow
class TestCollect:
    def test_everything_is_there_and_agrees(self, results: Path) -> None:
        figures = json.loads((results / "figures.json").read_text())
        counts = {kind: len(figures[kind]) for kind in ("similarity", "attacks", "searches")}
        assert counts == {"similarity": 2, "attacks": 5, "searches": 2}

        rows = read_csv(results / "metrics.csv")
        own = (r for r in rows if (r["kind"], r["gallery"]) == ("value", ""))
        table = {(r["system"], r["family"], r["metric"]): r["value"] for r in own}
        sized = [r for r in rows if r["metric"] in ("deid", "c_ece_linear", "g_d_ece_lists")]
        for row in sized:  # counts stand beside every figure
            names = ("n_speakers", "n_segments", "n_target", "n_nontarget")
            assert all(int(row[name]) > 0 for name in names), row["family"]
        assert {row["family"] for row in sized} == {"similarity", "calibration", "gains"}
        for entry in figures["searches"]:
            cmc, system = entry["cmc"], entry["where"]["system"]
            for metric, value in (("cmc_1", cmc[0]), ("auc_cmc", np.mean(cmc))):
                found = float(table[system, "leakage", metric])
                assert value == pytest.approx(found, abs=1e-5)
        assert not any("curve" in metric for _, _, metric in table)
        run = json.loads((results / "run.json").read_text())
        assert set(run["systems"]) == set(SYSTEMS)
        assert run["missing"] == []
        assert len(run["steps"]) == 12
        attackers = {a["attacker"] for a in run["attacks"]}
        assert (LABEL, "toy_f", "b2", "ignorant") in load_results(results).attacks
        assert attackers == {"unprotected", "ignorant", "lazy_informed"}
        assert run["origin"]["command"] == "not recorded"

    def test_both_forms_of_the_gains_are_shown_and_named_apart(self, report: Path) -> None:
        """Only the form of all pairs was shown, which is not that of paper 002's tables."""
        rows = read_csv(report.parent / "results/metrics.csv")
        value = {(r["family"], r["metric"]): r["value"] for r in rows if r["system"] == "b2"}
        text = (report / "RESULTS.md").read_text()
        heading = SPECS["gained"].title
        section = text.split(f"### {heading}")[1].split("###")[0].strip().splitlines()
        header, _, *lines = [[c.strip() for c in line[1:-1].split("|")] for line in section]
        shown = dict(zip(header, next(line for line in lines if "b2" in line), strict=True))
        for title, family, metric in (
            ("gain of D_ECE (dB), lists (the paper's)", "gains", "g_d_ece_lists"),
            ("gain of D_ECE (dB), all pairs", "similarity", "g_d_ece"),
        ):
            assert shown[title].split()[0] == number(float(value[family, metric]))
        bare = (r for r in rows if (r["attacker"], r["metric"]) == ("unprotected", "d_ece"))
        assert value["gains", "d_ece_oo"] == next(bare)["value"]
        assert heading in html.unescape((report / "report.html").read_text())

    def test_clips_are_short_and_of_the_worst(self, results: Path) -> None:
        clips = json.loads((results / "clips.json").read_text())
        assert {c["system"] for c in clips} == set(SYSTEMS)
        assert len(clips) == 2 * len(SPEAKERS)
        for clip in clips:
            for side in ("original", "protected"):
                info = soundfile.info(results / clip[side])
                longest = min(3.0, (SPEAKERS.index(clip["speaker"]) + 1) / 2)
                assert info.duration == pytest.approx(longest, abs=0.15)

    def test_a_folder_without_stamp_is_named_and_left_out(self, run, tmp_path, caplog):
        bad = tmp_path / "bad"
        write_file(bad / "metrics.json", "{}")
        shutil.copy(run.words[1] / "labels.json", bad)
        words = ["--corpus-name", "x", *run.words[:2], "--figures", bad, tmp_path / "out"]
        said = rf"{re.escape(str(bad))}: has no stamp.*\(1 left out in all"
        refuses_words(said, collect, *words, kind=LossError)
        assert not (tmp_path / "out").exists()
        accepts(collect, "--allow-loss", 1, *words)
        missing = json.loads((tmp_path / "out/run.json").read_text())["missing"]
        assert [m["what"] for m in missing] == [str(bad)]
        assert "has no stamp" in caplog.text
        assert "has no stamp" in report_of(tmp_path / "out")

    @pytest.mark.parametrize("how", ["null", "[" * 100_000, "gone", "loop", "folder", "\xff", ""])
    @pytest.mark.parametrize("name", ["conf.json", "attacker.json", "metrics.json", "labels.json"])
    def test_figures_left_out_ended_with_0(self, run, tmp_path, name, how):
        """A warning was all that told of it; a loop as conf.json gave none."""
        data = shutil.copytree(run.root / "data0", tmp_path / "data")
        scores = shutil.copytree(run.words[5], tmp_path / "scores")
        shutil.copytree(run.words[1], scores, dirs_exist_ok=True)
        path = (data if name == "conf.json" else scores) / name
        path.unlink()
        if how == "loop":
            path.symlink_to(path)
        elif how == "folder":
            path.mkdir()
        elif how != "gone":
            path.write_text(how, encoding="latin-1")
        words = ["--corpus-name", "x", "--clips", 0, "--figures", scores]
        words += ["--attack", scores, run.words[4], scores]
        words += ["--speech", "b2", run.root / "data", data, tmp_path / "out"]
        said = rf"{re.escape(str(path))}: .*\(1 left out in all; --allow-loss is 0\)"
        refuses(said, collect, [str(word) for word in words], kind=LossError)
        assert not (tmp_path / "out").exists()

    def test_no_clips_leave_the_settings(self, run: Run, tmp_path: Path) -> None:
        assert run.collect(tmp_path, "--clips", 0) == 0
        assert json.loads((tmp_path / "clips.json").read_text()) == []
        assert not (tmp_path / "clips").exists()
        assert set(json.loads((tmp_path / "run.json").read_text())["systems"]) == set(SYSTEMS)

    def test_missing_scores_and_audio_leave_a_note(self, run: Run, tmp_path: Path) -> None:
        gone, data = tmp_path / "gone", shutil.copytree(run.root / "data0", tmp_path / "data")
        wavs = re.sub(r" .*/", f" {tmp_path}/nowhere/", (data / "wav.scp").read_text())
        (data / "wav.scp").write_text(wavs)
        words = ["--corpus-name", "x", *run.words[:6], "--attack", *run.words[3:5], gone]
        words += run.figures[2:]
        words += ["--speech", "b2", run.root / "data", data, tmp_path / "out"]
        words = ["--allow-loss", 1 + len(SPEAKERS), *words]
        assert collect([str(word) for word in words]) == 0
        words[1] -= 1
        refuses(r"nowhere|cannot be read", collect, [str(word) for word in words], kind=LossError)
        missing = json.loads((tmp_path / "out/run.json").read_text())["missing"]
        assert str(gone) in missing[0]["what"]
        assert all("nowhere" in m["why"] for m in missing[1:])
        assert len(missing) == 1 + len(SPEAKERS)

    def test_an_attack_without_figures_is_a_mistake(self, tmp_path: Path) -> None:
        words = ["--attack", "exp/metrics", "trials", "scores", str(tmp_path / "out")]
        refuses("exp/metrics: no folder of --figures", collect, ["--corpus-name", "x", *words])


@pytest.mark.slow
class TestPage:
    def test_all_pictures_are_there_as_svg_and_pdf(self, report: Path) -> None:
        text = (report / "report.html").read_text()
        pictures = re.findall(r'<figure id="picture-([^"]+)"', text)
        kinds = "actual cmc deid-gvd ece people recordings ridge similarity"
        assert sorted({name.split("_")[0] for name in pictures}) == kinds.split()
        pdfs = {path.stem: path.read_bytes() for path in (report / "figures").iterdir()}
        assert set(pdfs) == set(pictures)
        assert all(data.startswith(b"%PDF") and len(data) > 4000 for data in pdfs.values())

    def test_letters_of_pictures_can_be_read(self, report: Path) -> None:
        """Names beside matrices were 2.3 points high. A picture is 3.5 inches wide, and on a phone
        of 360 pixels 306: 6.8 points are 8 pixels."""
        svgs = re.findall(r"<figure.*?<svg.*?</svg>", (report / "report.html").read_text(), re.S)
        sizes = [*map(float, re.findall(r"font(?:-size)?: ([\d.]+)px", "".join(svgs)))]
        assert len(sizes) > 250
        assert min(sizes) >= 6.8

    def test_it_is_one_file_with_sound_links(self, report: Path) -> None:
        text = (report / "report.html").read_text()
        parser = Parser(text)
        assert len(parser.ids) == len(set(parser.ids))
        assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)
        plain = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
        assert not re.findall(r"https?://", plain)
        assert len(text) < 15e6

    def test_odd_names_are_escaped(self, report: Path) -> None:
        text = (report / "report.html").read_text()
        assert str(markupsafe.escape(ODD)) in text
        assert not [bad for bad in (ODD, "<i>", "<script>alert") if bad in text]
        parser = Parser(text)
        assert "i" not in {tag for tag, _ in parser.tags}
        assert ODD in "".join(parser.words)
        assert any(ODD in word for word in parser.words if word.startswith(ODD))

    def test_figures_of_the_tables_are_those_of_the_csv(self, results: Path, report: Path) -> None:
        text = words((report / "report.html").read_text())
        for row in read_csv(results / "metrics.csv"):
            if (row["attacker"], row["metric"]) in {("lazy_informed", "eer"), ("ignorant", "eer")}:
                low, high = (f"{100 * float(row[b]):.2f}" for b in ("low", "high"))
                assert f"{100 * float(row['value']):.2f} [{low}, {high}]" in text

    def test_the_same_results_give_the_same_page(self, results: Path, tmp_path: Path) -> None:
        path = changed(results, tmp_path) / "figures.json"
        few = {kind: found[:1] if isinstance(found, list) else found
               for kind, found in json.loads(path.read_text()).items()}  # fmt: skip
        path.write_text(json.dumps(few))
        assert report_of(path.parent) == report_of(path.parent)

    @pytest.mark.usefixtures("empty_pictures")
    def test_no_audio_leaves_nobody_to_be_heard(self, results: Path, tmp_path: Path) -> None:
        assert make_report(["--no-audio", str(results), str(tmp_path)]) == 0
        text = (tmp_path / "report.html").read_text()
        assert "<audio" not in text
        assert 'id="clips"' not in text
        assert "audio was left out" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "gone", ["metrics.csv", "per_speaker.csv", "figures.json", "run.json", "clips.json", "clips"]
)
@pytest.mark.parametrize("how", ["missing", "broken"])
@pytest.mark.usefixtures("empty_pictures")
def test_partial_results_give_a_page_that_says_so(results, tmp_path, gone, how):
    folder = changed(results, tmp_path)
    path = folder / gone
    if path.is_dir():
        shutil.rmtree(path)
    elif how == "missing":
        path.unlink()
    else:
        path.write_bytes(b'{"attacks": [\xff')
    assert gone in words(report_of(folder))


def test_a_bug_of_a_picture_was_told_as_a_missing_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(pictures, "scatter", fail)
    refuses("a bug", pictures.draw_all, of_rows(ATTACKED), "e", None, kind=TypeError)


def test_empty_results_give_a_page_and_no_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    text = report_of(tmp_path / "results")
    assert "No attack was measured" in text and "run stage 11" in text
    nothing = (tmp_path / "nothing", tmp_path / "report")
    refuses_words("no such folder of results", make_report, *nothing)


def test_the_origin_is_not_the_command_of_another_recipe_that_began_since(tmp_path, monkeypatch):
    """NIST's results named the white-box study, which was started in the same folder meanwhile."""
    log, began = tmp_path / "cmdline.log", "2026-11-22 07:43:28  73ddc50  ./"
    log.write_text(f"{began}nist.sh\n{began}generators.sh\n")
    monkeypatch.setenv("PSEUDOVOX_COMMAND", "./nist.sh")
    assert origin(log)["command"] == "./nist.sh"
    monkeypatch.delenv("PSEUDOVOX_COMMAND")
    assert origin(log)["command"] == "./generators.sh"
    assert origin(tmp_path / "none")["command"] == "not recorded"


def test_figures_that_are_not_defined_are_named() -> None:
    found = of_rows([figure("a", "similarity", "deid", 0.5), figure("b", "similarity", "g_vd", "")])
    (said,) = [text for text in not_measured(found) if "not defined" in text]
    assert "1 figures are not defined on this data: g_vd (b, t_f)" in said


ATTACKED = [figure(system, "ignorant", "eer", 0.3) for system in "abc"]


def test_tables_and_people_were_shown_again_for_each_evaluator() -> None:
    """One table has them all; equal rows, as of two back ends on the same x-vectors, stand once."""
    one, two = {"evaluator": "a/plda"}, {"evaluator": "a/cosine"}
    shared = [figure("s", "leakage", "cmc_1", 0.5, **by) for by in (one, two)]
    eers = [figure("s", "ignorant", "eer", eer, **by) for eer, by in ((0.3, one), (0.2, two))]
    metrics = of_rows([*eers, *shared]).metrics
    attacks = tables.tabulate(SPECS["attacks"], metrics).rows
    assert [row[3:5] for row in attacks] == [["a/plda", "30.00"], ["a/cosine", "20.00"]]
    (row,) = tables.tabulate(SPECS["leakage"], metrics).rows
    assert row[2:4] == ["a/plda, a/cosine", "50.0"]
    where = ("c", "t_f", "f", "s", *named("ignorant"))
    people = [
        speaker_figure(*where, by, "X", who, "linkability", value, "digest")
        for by, who, value in (("a", "x", "0.2"), ("b", "x", "0.9"), ("a", "y", "0.5"))
    ]
    found = of_rows(eers, people).worst_people(10)["s", "t_f"]
    assert [(group[1], who.name) for group, who in found] == [("b", "x"), ("a", "y")]


def test_an_eer_stood_beside_the_number_of_those_who_were_to_be_named() -> None:
    """In metrics.csv those figures stand first, and are of people with target trials alone."""
    sought = {"n_speakers": "11", "n_segments": "99"}
    named_first = figure("s", "ignorant", "named_by_recording/recordings=1", 0.5, **sought)
    metrics = of_rows([named_first, figure("s", "ignorant", "eer", 0.3, n_speakers="13")]).metrics
    counts = [tables.tabulate(SPECS[name], metrics).rows[0] for name in ("attacks", "reid")]
    assert [counts[0][-4], *counts[1][-2:]] == ["13", "11", "99"]


def test_groups_whose_eers_are_not_defined_broke_the_report() -> None:
    of_sex = [figure("s", "groups", f"eer/attribute=sex/recordings=1/{of}", "nan")
              for of in ("group=f", "group=m", "kind=gap")]  # fmt: skip
    (row,) = tables.group_table(of_rows(of_sex).metrics).rows
    assert row[2:] == ["women: not defined; men: not defined", "–", "not defined"]


@pytest.mark.slow
def test_a_dash_stays_last_when_a_column_is_sorted(tmp_path: Path, browser: Any) -> None:
    by = {"evaluator": "moonshine"}
    heard = [figure(s, "utility", "wer", x, **by) for s, x in (("b", 0.2), ("c", 0.1))]
    path = tmp_path / "report.html"
    path.write_text(page_of(of_rows([*ATTACKED, *heard])))
    with opened(browser, path) as (shown, complaints):
        unfold(shown)
        table = shown.locator('table[aria-label="By group of people"]')
        for order in ("cba", "bca"):
            table.get_by_role("button", name="WER by moonshine (%)").click()
            names = table.locator("tbody tr > :first-child").all_inner_texts()
            assert names == [*order]
        assert complaints == []


def test_several_runs_stand_beside_each_other(tmp_path: Path) -> None:
    """A row for each system and run, the best first; who was attacked by fewer is named."""
    folders = [tmp_path / name / "exp/results" for name in ("one", "two")]
    more = figure("a", "lazy_informed", "eer", 0.2, 0.1, 0.25)
    for folder, rows in zip(folders, ([*ATTACKED[:2]], [ATTACKED[0], more]), strict=True):
        write_table(folder / "metrics.csv", Figure, rows)
    out = tmp_path / "out"
    assert make_report([*map(str, folders), str(out)]) == 0
    page = (out / "report.html").read_text()
    assert re.findall(r'href="(\w+)/report.html">(\w+)</a><small>(\w+)<', page) == [
        ("one", "a", "one"), ("one", "b", "one"), ("two", "a", "two")
    ]  # fmt: skip
    assert all((out / name / "report.html").is_file() for name in ("one", "two"))
    text = (out / "RESULTS.md").read_text()
    assert "| two | a | women | " in text and "one lacks lazy-informed." in text
    refuses("is given twice", make_report, [str(folders[0]), str(folders[0]), str(out)])


def test_figures_tabulated_in_memory_lacked_columns_and_a_row_of_people_was_of_all(tmp_path):
    """A study looked for `eer` and found `eer_nan_enrolled_nan_recordings`."""
    (tmp_path / ".done").write_text("{}")
    found = {
        key("eer", recordings="1"): 0.25, "deid": 0.5, "n_speakers": 4,
        key("legal_linkability", recordings="3"): math.nan,
        "legal_linkability_3_recordings_per_speaker": None, "deid_per_speaker": {"a": 0.5},
    }  # fmt: skip
    write_figures(tmp_path / "metrics.json", found)
    found_rows, people = tabulate_figures(tmp_path, dict.fromkeys(WHERE, ""))
    table = with_numbers(pd.DataFrame(found_rows, columns=[*METRICS]))
    assert table["figure"].tolist() == ["eer", "deid", "legal_linkability_3_recordings"]
    assert table["recordings"].tolist() == ["1", "", "3"]
    assert [row["speaker"] for row in people] == ["a"]


def test_the_worst_protected_come_first() -> None:
    def of(speaker: str, attacker: str, metric: str, value: object) -> SpeakerFigure:
        where = ("c", "t_f", "f", "b2", *named(attacker), "e", "X")
        return speaker_figure(*where, speaker, metric, str(value), "digest")

    table = [
        *(of("hidden", a, "linkability", v) for a, v in (("ignorant", 0.1), ("lazy_informed", 0))),
        *(of("found", a, "linkability", v) for a, v in (("ignorant", 0.1), ("lazy_informed", 1))),
        of("found2", "ignorant", "linkability", 1.0),
        of("found", "similarity", "deid", 0.9),
        of("found2", "similarity", "deid", -0.2),
        of("alone", "similarity", "deid", 0.1),
        of("undefined", "ignorant", "linkability", ""),
    ]
    other = replace(of("man", "ignorant", "linkability", 1.0), split="t_m")
    found = of_rows(speakers=[*table, other]).people["b2", "e", "t_f"]
    assert [s.name for s in found] == ["found2", "found", "hidden", "alone", "undefined"]
    assert found[1].attacker == "lazy_informed"
    assert found[2].linkability == 0.1


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.001, "0.00"), (-1.5, "−1.50"), (float("inf"), "∞"), (float("nan"), "not defined")],
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text
    assert percent(0.125) == "12.5 %"


def test_svg_changes_tags_and_leaves_names_alone() -> None:
    svg = '<svg width="1pt" height="2pt" viewBox="0"><path id="a" style="fill: #1c2126"/>'
    svg += '<use xlink:href="#a"/><text id="b" style="font-size: 7px; font-family: x">#1c2126'
    svg += "</text></svg>"
    found = inline(svg, "n")
    kept = ('id="n-a"', 'href="#n-a"', "fill: var(--ink)", ">#1c2126</text>")
    assert [text for text in kept if text not in found] == [] and 'id="b"' not in found
    assert slug("a.b", "c_d/e") == "a.b_c-d+e"
    assert slug("../b", "<é>").startswith("+b_x_")
    assert len({slug(name) for name in ("<é>", "<è>", "a_b", "a-b", "a b", "_", "")}) == 7


def sheet(header: list[str], rows_: list[list[str]]) -> str:
    """The table as the page has it."""
    given = {"header": header, "rows": rows_, "contents": Headings(), "tables": tables}
    return render("tests/sheet.html.jinja", cell=cell, without_constants=without_constants, **given)


def test_columns_with_one_value_are_told_above_a_wide_table() -> None:
    header = ["split", "system", "EER (%)", "a", "b", "chance", "speakers", "segments"]
    rows_ = [["f", "b2", "1.0 [0.5, 2.0]", "x", "y<", "7.7", "13", "1"],
             ["m", "b2", "2.0", "x", "z", "7.7", "13", "2"]]  # fmt: skip
    text = sheet(header, rows_)
    assert "In all rows: system: b2; a: x; speakers: 13." in text  # chance stays with its figure
    parser = Parser(text)
    assert [t for t, _ in parser.tags].count("th") == 5 + 2
    assert '<td class="n">1.0 <span>[0.5, 2.0]</span></td>' in text and "y&lt;" in text
    assert parser.links == ["#card-eer", "#card-chance"]
    assert "In all rows" not in sheet(header[:7], [r[:7] for r in rows_])


def test_every_term_has_its_card() -> None:
    found = {card.name: card for card in cards()}
    assert set(found) == set(TERMS.values())
    assert found["eer"].title == "equal error rate"
    assert all(len(card.paragraphs[0]) > 30 for card in found.values())
    assert not re.search(r"\]\(|`", "".join("".join(card.paragraphs) for card in found.values()))


class TestBrowser:
    """Checks that only a browser can make: headless Chromium on the page of the made-up run."""

    @pytest.mark.slow
    def test_the_page_works(self, report: Path, results: Path, browser: Any) -> None:
        path = report / "report.html"
        assert check_page(browser, path) == len(list((report / "figures").iterdir()))
        with opened(browser, path) as (page, complaints):
            self.folding(page)
            self.sorting(page)
            self.audio(page, results)
            self.keyboard(page)
            assert complaints == []

    @staticmethod
    def folding(page: Any) -> None:
        """A link into the details opens them, and paper has what was open."""
        details = page.locator(".specialists")
        anchor = page.locator("nav a").last.get_attribute("href")
        page.evaluate("hash => { location.hash = hash; }", anchor)
        page.wait_for_function("document.querySelector('.specialists').open")
        assert page.locator(anchor).is_visible()
        details.evaluate("d => { d.open = false; }")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert not details.evaluate("d => d.open")
        details.evaluate("d => { d.open = true; }")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator(".specialists details:not([open])").count() == 0

    @staticmethod
    def sorting(page: Any) -> None:
        table = page.locator('table[aria-label="Attacks on the enrolment-trial lists"]')
        heads = table.locator("thead th").all_inner_texts()
        column = next(i for i, text in enumerate(heads) if text.startswith("EER"))

        def shown() -> list[float]:
            cells = table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
            return [float(text.split()[0].replace("−", "-")) for text in cells]

        button = table.locator("thead button").nth(column)
        button.click()
        assert shown() == sorted(shown())
        assert len(set(shown())) > 2
        assert table.locator('th[aria-sort="ascending"]').count() == 1
        button.press("Enter")
        assert shown() == sorted(shown(), reverse=True)
        assert table.locator('th[aria-sort="descending"]').count() == 1

    @staticmethod
    def audio(page: Any, results: Path) -> None:
        """Each player has its clip once it is in view, and not before."""
        players = page.locator("audio")
        assert players.count() == 4 * len(SPEAKERS) + 2
        assert page.evaluate("document.querySelector('audio').src") == ""
        told = "a => [a.duration, a.error, a.src, a.getAttribute('aria-label')]"
        for player in players.all():
            player.scroll_into_view_if_needed()
            handle = player.element_handle()
            page.wait_for_function("a => a.readyState >= 1", arg=handle)
            duration, error, source, text = handle.evaluate(told)
            assert 0.4 < duration < 3.2 and error is None
            assert source.startswith("data:audio/mpeg;base64,") and "speech of" in text
        played = page.evaluate(
            "async () => { const a = Array.from(document.querySelectorAll('audio')).pop();"
            " a.muted = true;"
            " await a.play(); for (let i = 0; i < 100 && a.currentTime === 0; i++)"
            " { await new Promise(r => setTimeout(r, 50)); }"
            " a.pause(); return a.currentTime; }"
        )
        assert played > 0

    @staticmethod
    def keyboard(page: Any) -> None:
        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.blur()")
        reachable: Mapping[str, int] = page.evaluate(
            "() => ({unnamed: Array.from(document.querySelectorAll("
            "'.scroll, audio, svg[role], nav')).filter(e => !e.getAttribute('aria-label')).length,"
            " unreachable: Array.from(document.querySelectorAll('.scroll'))"
            ".filter(e => e.tabIndex < 0).length})"
        )
        assert reachable == {"unnamed": 0, "unreachable": 0}
