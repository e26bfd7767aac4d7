"""Tables of results pages are what their committed data say."""

from pathlib import Path

import pytest

from local.export_latex import main as export_latex
from local.render_tables import main
from local.report.frame import read_metrics, where
from local.report.tables import LEAKAGE, tabulate
from utils.cli import UserError

ROOT = Path(__file__).resolve().parents[1]
HEADER = (
    "corpus,split,gender,system,family,attacker,evaluator,condition,metric,value,low,high,"
    "n_speakers,n_segments,n_target,n_nontarget,settings"
)
DATA = f"""{HEADER}
c,test,,original,utility,,moonshine,OO,wer,0.041,0.031,0.052,26,241,,,aa
c,test,,b2,utility,,moonshine,PP,wer,0.106,0.077,0.136,26,241,,,aa
c,test,,b2,utility,,distillmos,PP,mos_drop,0.85,0.7,1.0,26,104,,,aa
c,test_f,f,original,verification,unprotected,e/plda,OO,eer,0.05,0.02,0.08,13,120,99,1210,aa
c,test_f,f,original,verification,unprotected,e/cosine,OO,eer,0.04,0.02,0.08,13,120,99,1210,aa
c,test_f,f,b2,verification,ignorant,e/plda,OA,eer,0.3,0.2,0.4,13,120,99,1210,aa
c,test_f,f,b2,verification,lazy_informed,e/cosine,AA,eer,0.12,0.1,0.2,13,120,99,1210,aa
c,test_f,f,b2,similarity,,e/cosine,OO-OP-PP,deid,0.67,0.5,0.7,13,120,,,aa
"""
PAGE = """# R

<!-- table: use run split=test -->
an old table
<!-- end -->

<!-- table: overview run split=test systems=b2,original -->
<!-- end -->
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/metrics.csv").write_text(DATA)
    (tmp_path / "RESULTS.md").write_text(PAGE)
    return tmp_path / "RESULTS.md"


def test_tables_stand_between_their_marks(page: Path) -> None:
    assert main(["--check", str(page)]) == 1
    assert page.read_text() == PAGE
    assert main([str(page)]) == 0
    text = page.read_text()
    assert "an old table" not in text
    assert "| `original` | 4.1 [3.1, 5.2] |  |" in text
    assert "| `b2` | 10.6 [7.7, 13.6] | 0.85 [0.70, 1.00] |" in text
    strongest = (
        "| `b2` | women | 12.0 [10.0, 20.0] | lazy-informed | e/cosine | 4.0 [2.0, 8.0] | 67.0"
    )
    assert strongest in text  # without protection: by the same evaluator
    assert "| `original` | women | 4.0 [2.0, 8.0] | unprotected | e/cosine |  |  |  |" in text
    assert main(["--check", str(page)]) == 0


def test_an_overview_has_the_words_of_the_same_people_beside_privacy(page: Path) -> None:
    women = "c,test_f,f,b2,utility,,moonshine,PP,wer,0.2,0.1,0.3,13,120,,,aa\n"
    data = page.parent / "run/metrics.csv"
    data.write_text(DATA + women)
    page.write_text("<!-- table: overview run split=test systems=b2 -->\n<!-- end -->\n")
    assert main([str(page)]) == 0
    *_, row, _ = page.read_text().splitlines()
    assert row.endswith("| 20.0 [10.0, 30.0] |")  # not the 10.6 of both genders


def test_deid_of_an_overview_was_that_of_an_evaluator_trained_on_protected_speech(
    page: Path,
) -> None:
    informed = "c,test_f,f,b2,similarity,semi_informed,e/cosine,OO-OP-PP,deid,0.99,,,13,120,,,aa"
    (page.parent / "run/metrics.csv").write_text(f"{DATA}{informed}\n")
    assert main([str(page)]) == 0
    assert "| 4.0 [2.0, 8.0] | 67.0 [50.0, 70.0] |" in page.read_text()


def test_who_is_behind_whom_by_hand(page: Path) -> None:
    """b2 errs 12 and loses 20; b3 is better in both; b4 better in words alone."""
    row = "c,test_f,f,{},{},{},{},0.01,0.9,13,120,99,1210,aa\n"
    made = [row.format("b2", "utility,", "moonshine,PP,wer", 0.2)]
    for system, eer, wer in (("b3", 0.13, 0.2), ("b4", 0.01, 0.1)):
        made.append(row.format(system, "verification,ignorant", "e/plda,OA,eer", eer))
        made.append(row.format(system, "utility,", "moonshine,PP,wer", wer))
    (page.parent / "run/metrics.csv").write_text(DATA + "".join(made))
    page.write_text("<!-- table: front run split=test systems=b2,b3,b4 -->\n<!-- end -->\n")
    assert main([str(page)]) == 0
    assert page.read_text().splitlines()[3:-1] == [
        "| women | `b3` | 13.0 | 20.0 | moonshine | **on the front** |",
        "| women | `b2` | 12.0 | 20.0 | moonshine | behind b3 |",
        "| women | `b4` | 1.0 | 10.0 | moonshine | **on the front** |",
    ]


def test_every_attacker_has_a_row(page: Path) -> None:
    page.write_text("<!-- table: attackers run split=test systems=original,b2 -->\n<!-- end -->\n")
    assert main([str(page)]) == 0
    rows = [line.split(" | ")[:4] for line in page.read_text().splitlines()[3:-1]]
    assert rows == [
        ["| `original`", "unprotected", "e/plda", "5.0 [2.0, 8.0]"],
        ["| `original`", "unprotected", "e/cosine", "4.0 [2.0, 8.0]"],
        ["| `b2`", "ignorant", "e/plda", "30.0 [20.0, 40.0]"],
        ["| `b2`", "lazy-informed", "e/cosine", "12.0 [10.0, 20.0]"],
    ]


def test_attackers_have_naming_and_a_search_its_p_value(page: Path) -> None:
    rows = """c,test_f,f,b2,verification,ignorant,e/plda,OA,d_ece,0.0662,,,13,120,99,1210,aa
c,test_f,f,b2,reidentification,ignorant,e/plda,OA,reid_top_1,0.25,0.03,0.52,11,99,99,,aa
c,test_f,f,b2,leakage,,e/plda,OP,p_value_cmc_1,0.0148,,,13,119,,,aa
"""
    (page.parent / "run/metrics.csv").write_text(DATA + rows)
    mark = "<!-- table: attackers run split=test systems=b2 evaluators=e/plda figures="
    page.write_text(
        f"{mark}eer,d_ece,reid_top_1 -->\n<!-- end -->\n{mark}p_value_cmc_1 -->\n<!-- end -->\n"
    )
    assert main([str(page)]) == 0
    text = page.read_text()
    assert "| EER, women (%) | EER, men (%) | D_ECE, women (bit) | D_ECE, men (bit) |" in text
    assert "| `b2` | ignorant | e/plda | 30.0 [20.0, 40.0] | not measured | 0.066 |" in text
    assert "| 25.0 [3.0, 52.0] |" in text
    assert "| `b2` | leakage | e/plda | 0.015 | not measured |" in text


def test_targets_stand_by_the_gender_of_speakers_and_of_targets(page: Path) -> None:
    rows = "".join(
        f"c,test_f,f,bn_const_{n}_of_4_f0,verification,white_box_backend,e/plda,AA,eer,"
        f"0.{n},0.05,0.5,13,,,,aa\n"
        for n in range(1, 5)
    )
    words = "c,test_f,f,bn_const_1_of_4_f0,utility,,moonshine,OP,wer,0.1,0.05,0.2,13,,,,aa\n"
    (page.parent / "run/metrics.csv").write_text(DATA + rows + words)
    page.write_text(
        "<!-- table: targets run split=test evaluators=e/plda,moonshine -->\n<!-- end -->\n"
    )
    assert main([str(page)]) == 0
    lines = [line for line in page.read_text().splitlines() if line.startswith("| women")]
    assert lines[:4] == [
        "| women | `original` | 5.0 [2.0, 8.0] | not measured |",
        "| women | `bn_const_NN_of_4_f0`: 4 targets | 25.0 ± 12.9 | 10.0 (3 of 4 not defined) |",
        "| women | `bn_const_NN_of_4_f0`: 2 targets, own gender | 15.0 ± 7.1 "
        "| 10.0 (1 of 2 not defined) |",
        "| women | `bn_const_NN_of_4_f0`: 2 targets, other gender | 35.0 ± 7.1 | – |",
    ]
    assert lines[4] == "| women | `bn_const_1_of_4_f0` | 10.0 [5.0, 50.0] | 10.0 [5.0, 20.0] |"


def test_targets_that_do_not_say_of_how_many_they_are_ended_in_a_traceback(page: Path) -> None:
    rows = "".join(
        f"c,test_f,f,const_0{n},verification,ignorant,e/plda,OA,eer,0.{n},,,13,,,,aa\n"
        for n in (1, 3)
    )
    (page.parent / "run/metrics.csv").write_text(DATA + rows)
    page.write_text("<!-- table: targets run split=test evaluators=e/plda -->\n<!-- end -->\n")
    assert main([str(page)]) == 0
    lines = [line for line in page.read_text().splitlines() if line.startswith("| women")]
    assert lines[1:] == [
        "| women | `const_NN`: 2 targets | 20.0 ± 14.1 |",
        "| women | `const_01` | 10.0 |",
        "| women | `const_03` | 30.0 |",
    ]


def test_trainings_stand_beside_the_interval_over_speakers(page: Path) -> None:
    page.write_text(
        "<!-- table: trainings run split=test evaluators=e/plda,e/cosine -->\n<!-- end -->\n"
    )
    assert main([str(page)]) == 0
    assert (
        "| `b2` | women | not measured | not measured | 5.0 [2.0, 8.0]; 4.0 to 5.0 |"
        in page.read_text()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("use run", "no split="),
        ("use split=test", "no folder"),
        ("use nowhere split=test", "nowhere/metrics.csv"),
        ("use run split=other", "no split other"),
        ("use run split=test systems=b7", "no b7"),
        ("use run split=test gender=f", "gender="),
        ("attackers run split=test figures=l_w", "the figure l_w; known: eer, d_ece"),
        ("trainings run split=test", "needs evaluators="),
        ("zoo run split=test", "zoo is unknown"),
    ],
)
def test_a_bad_mark_is_one_line_and_the_page_stays(page: Path, words: str, said: str) -> None:
    bad = f"<!-- table: {words} -->\n<!-- end -->\n"
    page.write_text(bad)
    with pytest.raises(UserError, match=said):
        main([str(page)])
    assert page.read_text() == bad


def test_the_project_s_pages_are_what_their_data_say() -> None:
    pages = [
        ROOT / "README.md",
        *ROOT.glob("egs/*/*.md"),
        *ROOT.glob("egs/*/results/**/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("models/*/*.md"),
    ]
    assert main(["--check", *map(str, pages)]) == 0


def test_voices_of_generators_by_hand(tmp_path: Path) -> None:
    """The most vectors of each kind; mixed ones are left out, time stands by what is used."""
    page, folder = tmp_path / "page.md", tmp_path / "r"
    folder.mkdir()
    head = "generator,figure,value,of,indices,n,evaluator,split\n"
    rows = [
        "idmap_mlp,cpu_seconds,0.00014,here,,1000,,",
        "idmap_mlp,mean_cosine,0.55,004,,2000000,,",
    ]
    for indices in ("unseen", "calibrated", "mixed"):
        for n in (100, 10000):
            for figure, value in (("mean", n / 1e5), ("min", -0.5), ("max", 0.875)):
                rows.append(f"idmap_mlp,{figure}_cosine,{value},here,{indices},{n},,")
            rows.append(f"idmap_mlp,share_above_threshold,0.0456,here,{indices},{n},,")
    (folder / "generators.csv").write_text(head + "\n".join(rows) + "\n")
    page.write_text("<!-- table: voices r -->\n<!-- end -->\n")
    assert main([str(page)]) == 0
    lines = page.read_text().splitlines()[3:-1]
    assert lines == [
        "| `idmap_mlp` | unseen | 10,000 | 0.100 | −0.500, 0.875 | 4.6 |  |",
        "| `idmap_mlp` | calibrated | 10,000 | 0.100 | −0.500, 0.875 | 4.6 | 0.14 |",
    ]
    (folder / "generators.csv").write_text(head + "a,mean_cosine,x,here,keys,3,,\n")
    with pytest.raises(UserError, match=r"generators\.csv: not a table of generators"):
        main([str(page)])


def test_a_table_that_is_data_already_is_shown_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "t.csv").write_text('system,EER (%)\n`a_b`,"1.0 [0, 2]"\nb c,**3**\n')
    marks = ("t.csv rows=a_b", "t.csv")
    page.write_text("".join(f"<!-- table: csv {mark} -->\n<!-- end -->\n" for mark in marks))
    assert main([str(page)]) == 0
    head = ["| system | EER (%) |", "| --- | --- |"]
    one, other = "| `a_b` | 1.0 [0, 2] |", "| b c | **3** |"
    found = [line for line in page.read_text().splitlines() if line.startswith("|")]
    assert found == [*head, one, *head, one, other]
    for mark, said in (("t.csv rows=x", "no row begins with x"), ("t.csv split=x", "only rows=")):
        page.write_text(f"<!-- table: csv {mark} -->\n<!-- end -->\n")
        with pytest.raises(UserError, match=said):
            main([str(page)])
    (tmp_path / "t.csv").write_text("a,b\n1\n")
    page.write_text("<!-- table: csv t.csv -->\n<!-- end -->\n")
    with pytest.raises(UserError, match=r"t\.csv:2: not the 2 cells"):
        main([str(page)])


def test_every_table_of_a_page_is_had_as_latex(tmp_path: Path) -> None:
    page = tmp_path / "P.md"
    page.write_text(
        "# A & B\n\n| a_1 | EER (%) |\n|---|---|\n| `b2r` | **−1.2** ± 3 |\n| x\\|y |  |\n\n"
        "```\n| no | table |\n|---|---|\n```\n\n## Next\n\n| [c](d.md) |\n| --- |\n| 1 |\n"
    )
    assert export_latex([str(page), str(tmp_path / "tex")]) == 0
    first, second = ((tmp_path / f"tex/P_{n}.tex").read_text() for n in (1, 2))
    assert r"\caption{A \& B}" in first and r"a\_1 & EER (\%) \\" in first
    assert r"\texttt{b2r} & \textbf{$-$1.2} $\pm$ 3 \\" in first and "x|y &  \\\\" in first
    assert "\\midrule\n1 \\\\" in second and r"\caption{Next}" in second and "c \\\\" in second
    assert not (tmp_path / "tex/P_3.tex").exists()


def test_the_committed_pages_can_be_had_as_latex(tmp_path: Path) -> None:
    """LaTeX itself is not installed here: braces balance, and nothing of Markdown is left."""
    page = ROOT / "egs/librispeech/RESULTS.md"
    export_latex([str(page), str(tmp_path)])
    for path in tmp_path.iterdir():
        text = path.read_text()
        assert text.count("{") == text.count("}") and "`" not in text and "](" not in text


def test_a_page_without_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "P.md").write_text("words\n")
    with pytest.raises(UserError, match=r"P\.md: has no table"):
        export_latex([str(tmp_path / "P.md"), str(tmp_path / "out")])


def test_patterns_of_003_are_held_where_intervals_meet_its_ranges(tmp_path: Path) -> None:
    """003: VOXLET 41.95 to 44.29 and 49.9 to 50.6, RASP 5.82 to 12.43 and 8.2 to 11.3."""
    rows = [HEADER]
    for system, attacker, by, metric, *values in (
        ("voxlet_like", "trial2,p1", "a/plda", "eer", 0.40, 0.35, 0.43),
        ("voxlet_like", "trial2,p2", "a/plda", "eer", 0.41, 0.36, 0.44),
        ("voxlet_like", "trial2,p1", "b/plda", "eer", 0.40, 0.35, 0.43),
        ("voxlet_like", "trial2,p2", "b/plda", "eer", 0.30, 0.28, 0.32),  # P2 does not
        ("voxlet_like", "cross,", "a/plda", "eer", 0.48, 0.47, 0.49),
        ("rasp_like", "trial2,p1", "a/plda", "eer", 0.05, 0.04, 0.06),
        ("rasp_like", "trial2,p2", "a/plda", "eer", 0.05, 0.04, 0.06),
        ("rasp_like", "cross,", "a/plda", "eer", 0.60, 0.50, 0.70),  # above VOXLET's
        ("rasp_like", "trial2,p1", "b/plda", "eer", 0.39, 0.36, 0.42),  # overlaps VOXLET's
        ("copy", "leakage,p1", "a/plda", "p_cos", 0.9, "", ""),
        ("copy", "leakage,p1", "a/plda", "chance_p_cos", 0.6, "", ""),
        ("copy", "leakage,p1", "a/plda", "cca_top10", 1.0, "", ""),
        ("copy", "leakage,p1", "a/plda", "chance_cca_top10", 1.0, "", ""),
    ):
        cells = ",".join(map(str, values))
        rows.append(f"c,t,,{system},{attacker},{by},PP,{metric},{cells},26,241,9,9,aa")
    (tmp_path / "metrics.csv").write_text("\n".join(rows) + "\n")
    page = tmp_path / "p.md"
    names = ("patterns", "order", "space")
    page.write_text("".join(f"<!-- table: nist . {name} -->\n<!-- end -->\n" for name in names))
    assert main([str(page)]) == 0
    text = page.read_text()
    beside = "40.0 [35.0, 43.0]; 41.0 [36.0, 44.0] | 40.0 [35.0, 43.0]; 30.0 [28.0, 32.0]"
    assert f"| EER, trial 2 (%) | 42.0 to 44.3 | {beside} | a/plda |" in text
    assert "| EER, cross-profile (%) | 49.9 to 50.6 | 48.0 [47.0, 49.0] | – | none |" in text
    lines = {tuple(line.split(" | ")[:2]): line for line in text.splitlines()}
    assert lines["| EER, trial 2", "a/plda"].endswith(
        "| voxlet_like 40.0, rasp_like 5.0 | 1 | 0 | 0 |"
    )
    assert lines["| EER, trial 2", "b/plda"].endswith("| 0 | 0 | 1 |")
    assert lines["| EER, cross-profile", "a/plda"].endswith("| 0 | 1 | 0 |")
    # Canonical correlation of too few segments is 1 by chance: it is left out.
    assert "CCA" not in text and "| copy | a/plda | P1 | 241 |" in text
    own = where(read_metrics(tmp_path / "metrics.csv"), system="copy")
    told = tabulate(LEAKAGE, own.assign(attacker=""))
    (row,) = told.rows
    assert row[told.header.index("CCA top 10")] == "not defined"
    page.write_text("<!-- table: nist . ranks -->\n<!-- end -->\n")
    with pytest.raises(UserError, match=r"nist takes FOLDER\.\.\. and one of patterns, order"):
        main([str(page)])
