"""The program: keys, real scores with printed figures, bad input in one line."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from local.compute_metrics import main
from tests.recipes import ROOT, Done, run_words
from tests.refusals import refuses, refuses_words
from tests.scored import compute, write_lists, write_scores, xvectors
from utils.tables import write_map

PROGRAM = "local/compute_metrics.py"
Run = Callable[..., Done]


def test_both_genders_have_one_threshold_by_hand(tmp_path: Path) -> None:
    """Each gender alone is told apart without an error; by one threshold half of all are wrong."""
    trials, women, men = (tmp_path / name for name in ("trials", "women", "men"))
    labels = "a a1 target\na b1 nontarget\nc c1 target\nc d1 nontarget\n"
    trials.write_text(labels)
    women.write_text("a a1 2\na b1 1\n")
    men.write_text("c c1 0\nc d1 -1\n")
    words = ("verification", "--more-scores", men, trials, women)
    found = compute(tmp_path, *words)
    assert (found["eer"], found["n_target"], found["n_nontarget"]) == (0.5, 2, 2)
    for scores, own in ((women, labels[:27]), (men, labels[27:])):
        trials.write_text(own)
        assert compute(tmp_path, "verification", trials, scores)["eer"] == 0
    trials.write_text(labels)
    men.write_text(men.read_text() + "a b1 1\n")
    refuses(r"women \+ .*men:5: a b1 is scored twice", compute, tmp_path, *words)


def test_a_threshold_needs_both_kinds_of_trial_in_all_lists_together(tmp_path: Path) -> None:
    """Not in each: a list of targets beside one of nontargets was refused."""
    lists = []
    for label, scores in (("target", "321"), ("nontarget", "210")):
        trials, own = tmp_path / label, tmp_path / f"{label}.scores"
        trials.write_text("".join(f"a {label}{n} {label}\n" for n in range(3)))
        own.write_text("".join(f"a {label}{n} {score}\n" for n, score in enumerate(scores)))
        lists += ["--list", trials, own]
    found = compute(tmp_path, "threshold", *lists)
    assert (found["n_target"], found["n_nontarget"], found["threshold"]) == (3, 3, 1.5)
    refuses("no nontarget trial; both kinds", compute, tmp_path, "threshold", *lists[:3])


# --- the six conditions of VoicePrivacy 2020 (libri_test, B1) ---


def printed(folder: Path) -> dict[str, float]:
    """Figures that the challenge's own tools printed for these scores."""
    text = "".join((folder / name).read_text() for name in ("EER", "Cllr", "linkability_log"))
    patterns = {
        "eer": r"^EER: ([\d.]+)%",
        "eer_rocch": r"ROCCH-EER: ([\d.]+)%",
        "cllr_min": r"Cllr \(min/act\): ([\d.]+)/",
        "cllr": r"Cllr \(min/act\): [\d.]+/([\d.]+)",
        "linkability": r"linkability: ([\d.]+)",
    }
    return {name: float(re.search(p, text, re.M)[1]) for name, p in patterns.items()}  # type: ignore[index]


def challenge(corpora: Path, gender: str, enrol: str = "", trial: str = "") -> tuple[Path, Path]:
    """Data and scores of a condition of libri_test."""
    vpc, name = corpora / "vpc2020_libri_test", f"libri_test_trials_{gender}{trial}"
    return vpc / "data" / name, vpc / "results" / f"ASV-libri_test_enrolls{enrol}-{name}"


# Sex, condition, D_ECE and l_w: of original speech as 002, Table 2, prints them.
CONDITIONS = [
    ("f", "", "", 0.584, 3.979), ("m", "", "", 0.690, 3.924), ("f", "", "_anon", 0.0046, 0.297),
    ("m", "", "_anon", 0.0003, 0.193), ("f", "_anon", "_anon", 0.1167, 2.009),
    ("m", "_anon", "_anon", 0.0621, 2.102),
]  # fmt: skip


@pytest.mark.corpora
@pytest.mark.parametrize(("gender", "enrol", "trial", "d_ece", "l_w"), CONDITIONS)
def test_printed_figures_of_real_scores(corpora, tmp_path, gender, enrol, trial, d_ece, l_w):
    data, results = challenge(corpora, gender, enrol, trial)
    speakers = ("--utt2spk", data / "utt2spk")
    found = compute(tmp_path, "verification", *speakers, data / "trials", results / "scores")
    expected, digits = printed(results), 1e-4 if trial else 1e-3
    assert 100 * found["eer"] == pytest.approx(expected["eer"], abs=0.25)  # Kaldi's has no line
    shown = found | {"eer_rocch": 100 * found["eer_rocch"]}
    for name in ("eer_rocch", "cllr_min", "cllr"):
        assert f"{shown[name]:.3f}" == f"{expected[name]:.3f}"
    assert found["linkability"] == pytest.approx(expected["linkability"], abs=1e-6)
    assert found["d_ece"] == pytest.approx(d_ece, abs=0.6 * digits)
    assert found["l_w"] == pytest.approx(l_w, abs=6e-4)
    assert len(found["linkability_per_speaker"]) == {"f": 16, "m": 13}[gender]
    if not trial:  # the tag of 002; D_sys and EER of 001, Table 2, row Original
        told = [found["tag"], f"{found['linkability']:.2f}", f"{100 * found['eer']:.2f}"]
        assert told == {"f": ["C", "0.90", "7.66"], "m": ["C", "0.96", "1.11"]}[gender]


# --- keys and forms ---


@pytest.fixture
def lists(tmp_path: Path) -> tuple[Path, Path]:
    """Trials of 40 targets and 90 nontargets that overlap, and their scores."""
    rng = np.random.default_rng(0)
    return write_lists(tmp_path, list(rng.normal(1, 1, 40)), list(rng.normal(0, 1, 90)))


def test_an_omega_is_in_the_name_of_its_linkability(
    tmp_path: Path, lists: tuple[Path, Path]
) -> None:
    found = compute(tmp_path, "verification", "--omega", "0.5", "--omega", "2", *lists)
    assert (found["n_target"], found["n_nontarget"]) == (40, 90)
    assert found["linkability_omega_0.5"] <= found["linkability"] <= found["linkability_omega_2"]


def test_undefined_is_null_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = write_lists(tmp_path, [1.0, 2.0], [0.0])
    found = compute(tmp_path, "verification", *files)
    assert found["linkability"] is None
    assert "linkability is undefined: 2 mated scores where at least 20 are needed" in caplog.text
    assert found["eer"] == 0.0


def test_the_rise_of_the_eer_by_hand(tmp_path: Path) -> None:
    """Perfect before, one of three targets is missed after: a rise by a third. Scores turned round
    tell as much."""
    trials, before = write_lists(tmp_path, [4.0, 5.0, 6.0], [0.0, 1.0])
    after = write_scores(tmp_path / "after", trials, [1, 3, 4, 0, 2])
    found = compute(tmp_path, "verification", "--unprotected", before, trials, after)
    assert found["eer_rise"] == pytest.approx(1 / 3)
    turned = write_scores(tmp_path / "turned", trials, [-1, -3, -4, 0, -2])
    found = compute(tmp_path, "verification", "--unprotected", before, trials, turned)
    assert found["eer"] == pytest.approx(2 / 3) and found["eer_rise"] == pytest.approx(1 / 3)
    assert "eer_rise" not in compute(tmp_path, "verification", trials, after)


def test_a_rise_over_itself_is_nothing_in_every_resample(tmp_path, lists, caplog):
    write_map(tmp_path / "utt2spk", {f"t{i}": f"s{i % 8}" for i in range(130)})
    options = ["--utt2spk", tmp_path / "utt2spk", "--bootstrap", 50, "--unprotected", lists[1]]
    found = compute(tmp_path, "verification", *options, *lists)
    assert found["eer_rise"] == 0.0
    assert found["intervals"]["eer_rise"] == [0.0, 0.0]
    assert found["eer_least_difference"] is None  # it was 0: no list tells the smallest difference
    assert "eer_least_difference is undefined: eer_rise has" in caplog.text, "there was no reason"
    low, high = found["intervals"]["eer"]
    assert low < high
    assert found["n_target_speakers"] <= found["n_speakers"]


def test_unprotected_scores_of_another_list_are_named(tmp_path: Path) -> None:
    files = write_lists(tmp_path, [1.0, 2.0], [0.0])
    (tmp_path / "other").write_text("a b 1\n")
    words = ["verification", "--unprotected", tmp_path / "other", *files]
    refuses(r"other.*no score|no score.*other", compute, tmp_path, *words)


def test_calibration_defines_every_figure(tmp_path: Path, lists: tuple[Path, Path]) -> None:
    f1 = write_scores(tmp_path / "f1", lists[0], np.random.default_rng(1).normal(size=130))
    found = compute(tmp_path, "calibration", *lists, f1)
    assert None not in found.values()
    write_map(tmp_path / "utt2spk", {f"t{i}": f"t{i}" for i in range(130)})
    counted = compute(tmp_path, "calibration", "--utt2spk", tmp_path / "utt2spk", *lists, f1)
    assert counted["n_segments"] == 130 <= counted["n_speakers"]
    assert {name: counted[name] for name in found} == found


def pair_files(folder: Path, speakers: int = 4, segments: int = 3) -> list[Path]:
    """utt2spk, then trials and scores of OO, OP and PP; PP scores are all equal."""
    rng = np.random.default_rng(0)
    utts = [f"s{i}-{j}" for i in range(speakers) for j in range(segments)]
    write_map(folder / "utt2spk", {utt: utt[:2] for utt in utts})
    files = [folder / "utt2spk"]
    for s in ("oo", "op", "pp"):
        trials, scores = "", ""
        for i, a in enumerate(utts):
            for b in utts if s == "op" else utts[i + 1 :]:
                same = a[:2] == b[:2]
                trials += f"{a} {b} {'target' if same else 'nontarget'}\n"
                scores += f"{a} {b} {0.5 if s == 'pp' else rng.normal(2.0 * same * (s == 'oo'))}\n"
        for name, text in (("trials", trials), ("scores", scores)):
            files.append(folder / f"{name}_{s}")
            files[-1].write_text(text)
    return files


def test_similarity_writes_infinity_as_text(tmp_path: Path) -> None:
    utt2spk, *files = pair_files(tmp_path)
    found = compute(tmp_path, "similarity", "--utt2spk", utt2spk, "--bootstrap", 20, *files)
    assert found["g_vd"] == "-inf"
    assert found["g_vd_per_speaker"]["s1"] == "-inf"
    assert found["intervals"]["g_vd"][0] == "-inf"
    assert list(found["sim_op"]) == ["s0", "s1", "s2", "s3"] == list(found["sim_op"]["s2"])
    assert len(found["zoo_oo"]["s3"]) == 2
    assert (found["n_speakers"], found["n_segments"], found["n_target_oo"]) == (4, 12, 12)
    assert (found["n_target_op"], found["n_nontarget_op"]) == (24, 108)


def leakage_files(folder: Path) -> tuple[dict[str, np.ndarray], Path, Path, Path]:
    rng = np.random.default_rng(0)
    utts = [f"s{i % 5}-{i:02d}" for i in range(80)]
    write_map(folder / "utt2spk", {utt: utt[:2] for utt in utts})
    vectors, protected = ({u: rng.normal(size=12) for u in utts} for _ in range(2))
    original = xvectors(folder / "original", vectors)
    return protected, folder / "utt2spk", original, xvectors(folder / "protected", protected)


def test_leakage_without_a_second_segment_has_every_key(tmp_path: Path) -> None:
    """Chance levels without the own utterance were left out where they are undefined."""
    protected, utt2spk, *vectors = leakage_files(tmp_path)
    words = ("leakage", "--utt2spk", utt2spk, *vectors)
    several = compute(tmp_path, *words)
    write_map(utt2spk, {utt: utt for utt in protected})
    found = compute(tmp_path, *words)
    assert found.keys() >= several.keys()
    own = [name for name in found if name.endswith("_no_same_utt")]
    assert {name.removesuffix("_no_same_utt") for name in own} >= {"cmc_1", "chance_cmc_1"}
    assert all(found[name] is None for name in own)


def test_only_blanks_and_tabs_separate_fields_of_utt2spk(tmp_path: Path) -> None:
    """An id with a no-break space was good in trials and scores and bad in utt2spk."""
    trials, scores, utt2spk = (tmp_path / name for name in ("trials", "scores", "utt2spk"))
    trials.write_text("m a\u00a0b target\nm c nontarget\n")
    scores.write_text("m a\u00a0b 1\nm c 0\n")
    utt2spk.write_text("a\u00a0b\tm\nc  n\n")
    found = compute(tmp_path, "verification", "--utt2spk", utt2spk, trials, scores)
    assert (found["n_speakers"], found["eer"]) == (2, 0.0)


def test_it_starts_without_heavy_packages(tmp_path: Path) -> None:
    """Start-up stays well under a second: no torch, SpeechBrain, plotting, nor SciPy for scores."""
    trials, scores = write_lists(tmp_path, [1.0] * 30, [0.0] * 30)
    code = (
        "import sys; from local.compute_metrics import main;"
        f"main(['verification', {str(trials)!r}, {str(scores)!r}, '-']);"
        "heavy = {'torch', 'speechbrain', 'matplotlib', 'sklearn', 'pandas', 'scipy', 'kaldiio'};"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    run_words([sys.executable, "-c", code], 0, cwd=ROOT)


# --- bad input ---


@pytest.mark.parametrize("lacks", ["target", "nontarget"])
def test_lists_of_one_label_are_one_error(tmp_path, lacks):
    """With file and line; tests/test_trials.py has what a bad file is."""
    trials, scores = tmp_path / "trials", tmp_path / "scores"
    trials.write_text(f"a b {'target' if lacks == 'nontarget' else 'nontarget'}\n")
    scores.write_text("a b 1\n")
    files = [trials, scores]
    for words in (["verification", *files], ["calibration", *files, scores]):
        refuses(f"^{trials}:1: no {lacks} trial", compute, tmp_path, *words)
        assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("utt2spk", "s1-0 s1\n", "", r"trials_oo:\d+: utterance s1-0 is not in .*utt2spk"),
        ("utt2spk", "s1-0 s1\n", "s1-0 s2\n", r"trials_oo:\d+: .* labelled"),
        ("trials_op", "s1-0 non", "s1-0 ", "trials_op:4: s0-0 s1-0 is labelled target"),
        ("scores_pp", "s0-0 s0-1 0.5\n", "", "trials_pp:1: no score for s0-0 s0-1"),
        ("utt2spk", "s1-0 s1\n", "s1-0\n", "utt2spk:4: 1 fields where 2"),
        ("utt2spk", "s1-0 s1\n", "s1-0 s1\ns1-0 s1\n", "utt2spk:5: s1-0 is listed twice"),
    ],
)  # fmt: skip
def test_bad_pairs(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    utt2spk, *files = pair_files(tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    words = ("similarity", "--utt2spk", utt2spk, *files)
    refuses(f"^{tmp_path}/{message}", compute, tmp_path, *words)
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("key", "vector", "message"),
    [
        ("s0-00", np.full(12, np.nan), r"s0-00.*not finite|s0-00.*NaN|s0-00"),
        ("s0-00", np.ones(5), r"s0-\d+.*5|length 5"),
        ("x-00", np.ones(12), r"x-00 is not in .*utt2spk"),
        ("", np.empty(0), r"s0-00 has 7 dimensions, but s0-00 in .* has 12"),  # two extractors
    ],
)
def test_bad_xvectors_name_the_key(tmp_path, key, vector, message):
    protected, utt2spk, original, _ = leakage_files(tmp_path)
    of_two = {utt: own[:7] for utt, own in protected.items()}
    bad, vectors = tmp_path / "bad.ark", {**protected, key: vector} if key else of_two
    rows = {name: " ".join(repr(float(np.float32(x))) for x in v) for name, v in vectors.items()}
    bad.write_text("".join(f"{name}  [ {row} ]\n" for name, row in rows.items()))
    words = ("leakage", "--utt2spk", utt2spk, original, bad)
    assert "bad.ark" in refuses(message, compute, tmp_path, *words)
    assert not (tmp_path / "out.json").exists()


def test_a_user_error_is_one_line_without_traceback(tmp_path: Path, run_process: Run) -> None:
    """From any directory."""
    (tmp_path / "trials").write_text("a b target\nc d nontarget\n")
    (tmp_path / "scores").write_text("a b 1\n")
    out = tmp_path / "out.json"
    done = run_process(PROGRAM, "verification", "trials", "scores", out, cwd=tmp_path, status=2)
    assert done.stderr == "compute_metrics.py: trials:2: no score for c d in scores\n"
    assert done.stdout == ""
    assert not out.exists()


def test_out_that_cannot_be_written(tmp_path: Path) -> None:
    files = write_lists(tmp_path, [1.0], [0.0])
    for out in (tmp_path, "", "."):  # without a name: a traceback
        refuses_words("cannot be written", main, "verification", *files, out)


@pytest.mark.parametrize(
    "arguments",
    ["--omega 0 t s -", "--omega x t s -", "--omega 1e308 t s -", "--bootstrap -3 t s -",
     "--boot 3 t s -", "t s"],
)  # fmt: skip
def test_usage_errors(arguments: str) -> None:
    refuses("--help says more", main, ["verification", *arguments.split()])


def test_bootstrap_needs_speakers() -> None:
    for command in (["verification"], ["gains", "t", "s", "t", "s"]):
        words = [*command, "--bootstrap", "5", "trials", "scores", "-"]
        refuses("--bootstrap needs --utt2spk", main, words)


def test_the_last_of_two_scores_of_as_many_enrolled_recordings_was_taken(tmp_path: Path) -> None:
    listed, scores = write_lists(tmp_path, [1.0], [0.0])
    write_map(utt2spk := tmp_path / "utt2spk", {"t0": "a", "t1": "b"})
    twice = ("--enrolled", "3", scores) * 2
    options = ("--recordings", "--utt2spk", utt2spk, *twice)
    words = ("verification", *options, listed, scores, "-")
    refuses_words("--enrolled: a number of recordings is given twice", main, *words)
    words = ("verification", "--enrolled", "3", scores, listed, scores, "-")
    refuses_words("--enrolled is for --recordings; give both", main, *words)


def test_the_strongest_of_attackers_whose_draws_are_given(tmp_path: Path) -> None:
    """Two draws of the first attacker are averaged: EERs of 0 and 1/2 give 1/4, as one does."""
    trials = [(m, f"{p}{r}") for p in "abc" for r in range(2) for m in "abc"]
    listed, first, again, other = (tmp_path / name for name in ("t", "s", "again", "other"))
    label = {f"{m} {u}": "target" if m == u[0] else "nontarget" for m, u in trials}
    write_map(listed, label, blanks=True)
    for path, of in ((first, 1), (again, 0), (other, 0)):
        write_map(path, {pair: of * (x == "target") for pair, x in label.items()}, blanks=True)
    write_map(tmp_path / "utt2spk", {utt: utt[0] for _, utt in trials})
    options = ["--utt2spk", tmp_path / "utt2spk", "--another-attacker", other]
    found = compute(tmp_path, "strongest", *options, "--draw-of", first, again, listed, first)
    assert found["eer"] == 0.25 and found["n_attacks"] == 2
    alone = compute(tmp_path, "strongest", *options, listed, first)
    assert alone["eer_all_recordings"] == 0.0
    words = ("strongest", *options, "--draw-of", "x", "y", listed, first, "-")
    refuses_words("--draw-of x: no attacker has these scores", main, *words)
