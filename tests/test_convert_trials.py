"""Trials and scores of other toolkits."""

import json

import pytest

from local.compute_metrics import main as compute_metrics
from tests.refusals import accepts, refuses_words
from utils.convert_trials import main

TRIALS = "a a-1 target\na b-1 nontarget\n"
SCORES = "a a-1 0.5\na b-1 -1.0\n"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (TRIALS, {"trials": TRIALS}),
        (SCORES, {"scores": SCORES}),
        ("a b-1 0 -1\na a-1 1 0.5\n", {"trials": TRIALS, "scores": SCORES}),  # speechbrain
        ("1 a a-1\n0 a b-1\n", {"trials": TRIALS}),  # voxceleb
        ("1 a a-1 .5\n0 a b-1 -1e0\n", {"trials": TRIALS, "scores": SCORES}),
        ("score,Test,enroll\n0.5,a-1,a\n-1,b-1,a\n", {"scores": SCORES}),
        ("model;probe;same;note\na;a-1;True;\n\na;b-1;False;x\n", {"trials": TRIALS}),
        ("ref\ttest\tlabel\na\ta-1\tsame\na\tb-1\tdifferent\n", {"trials": TRIALS}),
    ],
)
def test_every_format_is_recognised(tmp_path, text, made):
    (tmp_path / "theirs").write_text(text)
    accepts(main, tmp_path / "theirs", tmp_path / "out")
    assert {p.name: p.read_text() for p in (tmp_path / "out").iterdir()} == made


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", [], ":1: the file is empty"),
        ("a b\n", [], "is in no format that is known; give --format .*voxceleb: 1 ann ann-01"),
        ("1 a 0\n0 b 1\n", [], "may be kaldi or voxceleb; give --format"),
        ("a b target\na b 1\n", ["--format", "kaldi"], ":2: 'a b 1' is not as in kaldi"),
        ("a b nan\n", [], "is in no format"),
        ("a b 1 x\n", ["--format", "speechbrain"], ":1: 'a b 1 x' is not as in speechbrain"),
        ("enrol,trial,score\na,b,1\nc,d\n", [], ":3: 'c,d' is not as in csv"),
        ("enrol,trial\na,b\n", [], ":1: the header names no enrol, trial and label or score"),
        ("a b 1\na b 2\n", ["--format", "kaldi"], "a b is scored twice"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(tmp_path, text, options, said):
    (tmp_path / "theirs").write_text(text)
    refuses_words(said, main, *options, tmp_path / "theirs", tmp_path / "out")


@pytest.mark.parametrize(
    ("trials", "scores", "said"),
    [
        ("1 a a-1\n0 a b-1\n", SCORES, "voxceleb, such as: 1 ann ann-01"),
        (TRIALS, "a b-1 0 -1\na a-1 1 0.5\n", "speechbrain, such as: ann ann-01 1 0.73"),
        ("a b-1 0 -1\na a-1 1 0.5\n", None, "speechbrain"),  # one file has both
        (TRIALS, "test,enroll,score\na-1,a,0.5\nb-1,a,-1\n", "csv"),
    ],
)
def test_metrics_take_lists_of_other_toolkits(tmp_path, trials, scores, said, capsys):
    paths = [tmp_path / "trials", tmp_path / "scores"]
    for path, text in zip(paths, (trials, scores or trials), strict=True):
        path.write_text(text)
    figures = []
    for options in ([], ["--format", "kaldi"]):
        out = tmp_path / "out.json"
        if options:  # what the formats stand for
            for path, text in zip(paths, (TRIALS, SCORES), strict=True):
                path.write_text(text)
        accepts(compute_metrics, "verification", *options, *paths, out)
        figures.append(out.read_text())
        assert options or said in capsys.readouterr().err
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("trials", "line"),
    [
        ("a b target\na c nontarget\na a target\n", 3),
        ("1 a b\n0 a c\n1 a a\n", 3),
        ("a b 1 0.3\na c 0 0.1\na a 1 1\n", 3),
        ("enrol,trial,label\na,b,1\na,c,0\na,a,1\n", 4),
    ],
)
def test_recordings_compared_with_themselves_were_counted(tmp_path, trials, line, caplog):
    listed, scores, out = paths = [tmp_path / name for name in ("trials", "scores", "out")]
    listed.write_text(trials)
    scores.write_text("a b 0.3\na c 0.1\na a 1\n")
    message = rf"trials:{line}: recording a is compared with itself \(1 of 3 .*--allow-self"
    refuses_words(message, compute_metrics, "verification", *paths)
    assert not out.exists()
    accepts(compute_metrics, "verification", "--allow-self", *paths)
    assert json.loads(out.read_text())["n_target"] == 2
    assert "they are counted" in caplog.text


def test_scores_without_labels_are_no_trials(tmp_path):
    path = tmp_path / "list"
    path.write_text("enrol,trial,score\na,b,1\n")
    refuses_words("list: has no labels", compute_metrics, "verification", path, path, "-")


def test_a_fault_in_a_csv_was_told_as_one_of_kaldis_format(tmp_path):
    (tmp_path / "trials").write_text("a a-1 target\na b-1 nontarget\n")
    (tmp_path / "s.csv").write_text("enrol,trial,score\na,a-1,0.9\na,b-1,x0.1\n")
    words = ("verification", tmp_path / "trials", tmp_path / "s.csv", "-")
    refuses_words(r"s\.csv:3: 'a,b-1,x0\.1' is not as in csv", compute_metrics, *words)


def test_lines_of_a_table_were_counted_from_behind_its_header(tmp_path):
    table, scores, utt2spk = (tmp_path / name for name in ("t.csv", "scores", "utt2spk"))
    scores.write_text(SCORES)
    utt2spk.write_text("a-1 a\n")
    words = ["verification", "--utt2spk", utt2spk, table, scores, "-"]
    for text, said in (
        ("a,a-1,1\n\na,c-1,0\n", r"t\.csv:4: no score for a c-1"),
        ("a,a-1,1\na,a-1,0\n", r"t\.csv:3: a a-1 is listed twice \(first on line 2\)"),
        ("a,a-1,1\na,b-1,0\n", r"t\.csv:3: utterance b-1 is not in"),
    ):
        table.write_text(f"enrol,trial,label\n{text}")
        refuses_words(said, compute_metrics, *words)


@pytest.mark.parametrize("header", ["model,test,label,score,llr", "model,utt1,utt2"])
def test_the_last_of_two_columns_of_one_meaning_was_taken(tmp_path, header):
    """Raw scores beside calibrated ones, say; of a list without labels nothing was written."""
    (tmp_path / "s.csv").write_text(f"{header}\na,b,1,0.5,2\n")
    said = r"s\.csv:1: the header names \w+ twice"
    refuses_words(said, main, tmp_path / "s.csv", tmp_path / "out")
