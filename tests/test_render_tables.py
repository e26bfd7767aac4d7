"""Tables of results pages are what their committed data say."""

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
import yaml

from local.render_tables import main
from local.report.frame import read_figures, where
from local.report.marks import Selection
from local.report.select import strongest
from local.report.tables import SPECS, tabulate
from tests.refusals import refuses
from tests.report_rows import metrics_csv
from tests.test_golden_pages import PAGES
from utils.tables import write_file

ROOT = Path(__file__).resolve().parents[1]
DATA = """
test original utility - moonshine OO wer 0.041 0.031 0.052
test b2 utility - moonshine PP wer 0.106 0.077 0.136
test b2 utility - distillmos PP mos_drop 0.85 0.7 1.0
test_f original verification unprotected e/plda OO eer 0.05 0.02 0.08
test_f original verification unprotected e/cosine OO eer 0.04 0.02 0.08
test_f b2 verification ignorant e/plda OA eer 0.3 0.2 0.4
test_f b2 verification lazy_informed e/cosine AA eer 0.12 0.1 0.2
test_f b2 similarity - e/cosine OO-OP-PP deid 0.67 0.5 0.7
"""
PAGE = """# R

<!-- table: use run split=test -->
an old table
<!-- end -->

<!-- table: overview run split=test systems=b2,original -->
<!-- end -->
"""


def mark(words: str) -> str:
    return f"<!-- table: {words} -->\n<!-- end -->\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    write_file(tmp_path / "run/metrics.csv", metrics_csv(DATA))
    (tmp_path / "RESULTS.md").write_text(PAGE)
    return tmp_path / "RESULTS.md"


def rendered(page: Path, *marks: str) -> str:
    page.write_text("".join(map(mark, marks)))
    assert main([str(page)]) == 0
    return page.read_text()


def test_tables_stand_between_their_marks(page: Path) -> None:
    assert main(["--check", str(page)]) == 1
    assert page.read_text() == PAGE
    assert main([str(page)]) == 0
    text = page.read_text()
    assert "an old table" not in text
    assert "| `original` | 4.1 [3.1, 5.2] |  |" in text
    assert "| `b2` | 10.6 [7.7, 13.6] | 0.85 [0.70, 1.00] |" in text
    strongest = "| `b2` | women | 12.0 [10.0, 20.0] | lazy-informed | e/cosine | 4.0 [2.0, 8.0] |"
    assert strongest in text  # without protection: by the same evaluator
    assert "| `original` | women | 4.0 [2.0, 8.0] | unprotected | e/cosine |  |" in text
    assert main(["--check", str(page)]) == 0


TABLES = yaml.safe_load(Path(__file__).with_name("rendered.yaml").read_text())


@pytest.mark.parametrize("name", TABLES)
def test_tables_by_hand(page: Path, name: str) -> None:
    (page.parent / "run/metrics.csv").write_text(metrics_csv(DATA + TABLES[name]["more"]))
    assert TABLES[name]["lines"] in rendered(page, TABLES[name]["words"])


GENERATORS = "generator,figure,value,of,indices,n,evaluator,split\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("use run", r"takes FOLDER\.\.\. split= \["),
        ("use split=test", r"takes FOLDER\.\.\. split="),
        ("use nowhere split=test", "nowhere/metrics.csv"),
        ("use run split=other", "no split other"),
        ("use run split=test systems=b7", "no b7"),
        ("use run split=test gender=f", r"takes FOLDER\.\.\. split="),
        ("attackers run split=test figures=l_w", "the figure l_w; known: eer, d_ece"),
        ("trainings run split=test", "needs evaluators="),
        ("leaders run split=test", "takes .* split= systems="),
        ("zoo run split=test", "zoo is unknown"),
        ("csv t.csv rows=x", "no row begins with x"),
        ("csv t.csv split=x", "takes FILE "),
        ("csv odd.csv", r"odd\.csv:2: not the 2 cells"),
        ("voices .", r"generators\.csv: not a table of generators"),
        ("paper 002:2 run", "this table takes PAPER:TABLE"),
        ("paper 002:2 colour=red", "this table takes PAPER:TABLE"),
        ("paper 009:1", "no published figures of 009; known: 000 001"),
        ("nist run ranks", r"nist takes FOLDER\.\.\. and one of patterns, order"),
    ],
)  # fmt: skip
def test_a_bad_mark_is_one_line_and_the_page_stays(page: Path, words: str, said: str) -> None:
    (page.parent / "t.csv").write_text("a,b\n1,2\n")
    (page.parent / "odd.csv").write_text("a,b\n1\n")
    (page.parent / "generators.csv").write_text(f"{GENERATORS}a,mean_cosine,x,here,keys,3,,\n")
    page.write_text(mark(words))
    refuses(said, main, [str(page)])
    assert page.read_text() == mark(words)


def test_inference_by_two_evaluators_is_refused(page: Path) -> None:
    row = "test b2 inference ignorant {} OA inferred/attribute=sex/recordings=1 0.6 0.5 0.7\n"
    figures = DATA + row.format("e/cosine") + row.format("other/cosine")
    (page.parent / "run/metrics.csv").write_text(metrics_csv(figures))
    page.write_text(mark("inference run split=test"))
    refuses("needs evaluators= with one of .*e/cosine.*other/cosine", main, [str(page)])
    assert "| 60.0" in rendered(page, "inference run split=test evaluators=other/cosine")


def test_recordings_by_two_evaluators_had_rows_that_looked_the_same(page: Path) -> None:
    row = "test_f b2 verification ignorant {} OA named/recordings=all {} 0.2 0.4\n"
    figures = DATA + row.format("e/cosine", 0.3) + row.format("other/cosine", 0.25)
    (page.parent / "run/metrics.csv").write_text(metrics_csv(figures))
    asked = "recordings run split=test systems=b2"
    made = rendered(page, asked)
    assert "ignorant | e/cosine | EER" in made and "ignorant | other/cosine | EER" in made
    assert "ignorant | EER" in rendered(page, f"{asked} evaluators=other/cosine")


@pytest.mark.parametrize("who", ["white_box e/plda", "white_box_backend e/cosine"])
def test_targets_of_several_attackers_had_the_last_one(page: Path, who: str) -> None:
    attacker, evaluator = who.split()
    row = "test_f bn_const_1_of_2 verification {} {} AA eer {}\n"
    figures = row.format("white_box_backend", "e/plda", 0.1) + row.format(attacker, evaluator, 0.4)
    (page.parent / "run/metrics.csv").write_text(metrics_csv(figures))
    page.write_text(mark("targets run split=test"))
    told = "one attacker, not white_box.* by e/.*, white_box.* by e/plda"
    refuses(told, main, [str(page)])


def test_shares_of_an_older_version_seemed_sure(page: Path) -> None:
    """Everybody of ten was named: [100, 100] was printed, where 69 % are not ruled out."""
    row = "test_f b2 {} e/plda AA {} {} {} {}\n"
    naming = row.format("verification lazy_informed", "named/recordings=all", 1, 1, 1)
    eer = row.format("verification lazy_informed", "eer", 0, 0, 0)
    (page.parent / "run/metrics.csv").write_text(metrics_csv(naming + eer))
    found = read_figures(page.parent / "run/metrics.csv").set_index("figure")
    assert found["value"].tolist() == [1, 0] and found["tag"].tolist() == ["", ""]
    assert found.loc["named_all_recordings", ["low", "high"]].isna().all()
    assert found.loc["eer", ["low", "high"]].tolist() == [0, 0]


@pytest.mark.slow
def test_the_project_s_pages_are_what_their_data_say() -> None:
    kinds = ("egs/*/*.md", "egs/*/results/**/*.md", "docs/**/*.md", "models/*/*.md")
    pages = [ROOT / "README.md", *(page for kind in kinds for page in ROOT.glob(kind))]
    assert main(["--check", *map(str, pages)]) == 0


@pytest.mark.parametrize(
    "page", [*ROOT.glob("egs/*/RESULTS.md"), *ROOT.glob("models/*/README.md"), ROOT / "README.md"]
)
def test_an_overview_has_the_words_of_the_speech_that_was_attacked(page: Path) -> None:
    """The row of b1 had pyannote's EER on three voices, and the words of eight from a later run."""
    marks = re.findall(r"<!-- table: overview (.*?)(?: columns=\S+)? -->", page.read_text())
    for words in map(str.split, marks):
        block = Selection.read(words, page)
        runs = [read_figures(page.parent / w / "metrics.csv") for w in words if "=" not in w]
        for made, eer in product(block.measured("wer"), strongest(block.shown()).values()):
            assert eer is not None
            at = {"system": eer.system, "split": eer.split}
            by = {"metric": "eer", "attacker": eer.attacker, "evaluator": eer.evaluator}
            own = [run for run in runs if eer.value in {*where(run, **at, **by)["value"]}]
            heard = [where(run, **at, metric="wer", evaluator=made.by)["value"] for run in own]
            shown = block.cell((eer.system, eer.split), made)
            assert not any(map(len, heard)) or shown.split()[0] in {
                f"{100 * value:.1f}" for values in heard for value in values
            }, at


def test_voices_of_generators_by_hand(tmp_path: Path) -> None:
    """The most vectors of each kind; mixed ones are left out, time stands by what is used."""
    rows = [
        "idmap_mlp,cpu_seconds,0.00014,here,,1000,,",
        "idmap_mlp,mean_cosine,0.55,004,,2000000,,",
    ]
    for indices in ("unseen", "calibrated", "mixed"):
        for n in (100, 10000):
            for figure, value in (("mean", n / 1e5), ("min", -0.5), ("max", 0.875)):
                rows.append(f"idmap_mlp,{figure}_cosine,{value},here,{indices},{n},,")
            rows.append(f"idmap_mlp,share_above_threshold,0.0456,here,{indices},{n},,")
    (tmp_path / "generators.csv").write_text(GENERATORS + "\n".join(rows) + "\n")
    assert rendered(tmp_path / "page.md", "voices .").splitlines()[3:-1] == [
        "| `idmap_mlp` | unseen | 10,000 | 0.100 | −0.500, 0.875 | 4.6 |  |",
        "| `idmap_mlp` | calibrated | 10,000 | 0.100 | −0.500, 0.875 | 4.6 | 0.14 |",
    ]


def test_a_table_that_is_data_already_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('system,EER (%)\n`a_b`,"1.0 [0, 2]"\nb c,**3**\n')
    text = rendered(tmp_path / "page.md", "csv t.csv rows=a_b", "csv t.csv")
    head = ["| system | EER (%) |", "| --- | --- |"]
    one, other = "| `a_b` | 1.0 [0, 2] |", "| b c | **3** |"
    found = [line for line in text.splitlines() if line.startswith("|")]
    assert found == [*head, one, *head, one, other]
    text = rendered(tmp_path / "page.md", "csv t.csv rows=a_b columns=EER_(")
    assert text.splitlines()[1:-1] == ["| EER (%) |", "| --- |", "| 1.0 [0, 2] |"]
    (tmp_path / "page.md").write_text(mark("csv t.csv columns=system,WER"))
    refuses("csv has not all of columns=system,WER", main, [str(tmp_path / "page.md")])


def test_every_table_of_a_page_is_had_as_latex(tmp_path: Path) -> None:
    page = tmp_path / "P.md"
    page.write_text(
        "# A & B\n\n| a_1 | EER (%) |\n|---|---|\n| `b2r` | **−1.2** ± 3 |\n| x\\|y |  |\n\n"
        "```\n| no | table |\n|---|---|\n```\n\n## Next\n\n| [c](d.md) |\n| --- |\n| [0, ✗] |\n\n"
        "| d |\n| --- |\n| 2 |\n"
    )
    assert main(["--latex", str(tmp_path / "tex"), str(page)]) == 0
    first, second = ((tmp_path / f"tex/P_{n}.tex").read_text() for n in ("A_B", "Next"))
    assert r"\caption{A \& B}" in first and r"a\_1 & EER (\%) \\" in first
    assert r"\texttt{b2r} & \textbf{$-$1.2} $\pm$ 3 \\" in first and "x|y &  \\\\" in first
    wanted = ("\\midrule\n{}[0, $\\times$] \\\\", r"\caption{Next}", "c \\\\")
    assert not [words for words in wanted if words not in second]
    assert {path.stem for path in (tmp_path / "tex").iterdir()} == {"P_A_B", "P_Next", "P_Next_2"}
    page.write_text("words\n")
    refuses(r"P\.md: has no table", main, ["--latex", str(tmp_path / "out"), str(page)])


def test_tables_of_a_page_of_the_same_name_were_overwritten(page: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = page.rename(tmp_path / "other" / page.name)
    page.write_text("| a |\n|---|\n| 1 |\n")
    asked = ["--latex", str(tmp_path / "out"), str(page), str(other)]
    refuses("another page is also called RESULTS", main, asked)
    assert not (tmp_path / "out").exists()


def test_the_committed_pages_can_be_had_as_latex(tmp_path: Path) -> None:
    """Braces balance, nothing of Markdown is left, and LaTeX makes pages of them."""
    pages = [ROOT / "egs/librispeech/RESULTS.md", PAGES / "verdicts.md"]
    main(["--latex", str(tmp_path), *map(str, pages)])
    for path in tmp_path.iterdir():
        text = path.read_text()
        assert text.count("{") == text.count("}") and "`" not in text and "](" not in text
        assert not re.search(r"[^\x00-\xff]|\\\\\s*[\[*]", text)  # letters that LaTeX knows
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex on the PATH: the tables were not compiled")
    packages = r"\usepackage[T1]{fontenc}\usepackage{booktabs,graphicx}"
    inputs = "".join(rf"\input{{{path.stem}}}\clearpage" for path in sorted(tmp_path.iterdir()))
    lines = (r"\documentclass[twocolumn]{article}", packages, r"\begin{document}", inputs)
    (tmp_path / "all.tex").write_text("\n".join((*lines, r"\end{document}")))
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert r"Overfull \hbox" not in done.stdout  # 91 of 126 were wider than the page


def test_patterns_of_seo_are_held_where_intervals_meet_its_ranges(tmp_path: Path) -> None:
    """Printed: VOXLET 41.95 to 44.29 and 49.9 to 50.6, RASP 5.82 to 12.43 and 8.2 to 11.3.

    P2 of b/plda is below VOXLET's range; RASP's cross-profile EER is above VOXLET's, and its trial
    2 by b/plda overlaps VOXLET's.
    """
    data = """
    t voxlet_like trial2 p1 a/plda PP eer 0.40 0.35 0.43
    t voxlet_like trial2 p2 a/plda PP eer 0.41 0.36 0.44
    t voxlet_like trial2 p1 b/plda PP eer 0.40 0.35 0.43
    t voxlet_like trial2 p2 b/plda PP eer 0.30 0.28 0.32
    t voxlet_like cross - a/plda PP eer 0.48 0.47 0.49
    t rasp_like trial2 p1 a/plda PP eer 0.05 0.04 0.06
    t rasp_like trial2 p2 a/plda PP eer 0.05 0.04 0.06
    t rasp_like cross - a/plda PP eer 0.60 0.50 0.70
    t rasp_like trial2 p1 b/plda PP eer 0.39 0.36 0.42
    t copy leakage p1 a/plda PP p_cos 0.9
    t copy leakage p1 a/plda PP chance_p_cos 0.6
    t copy leakage p1 a/plda PP cca_top10 1.0
    t copy leakage p1 a/plda PP chance_cca_top10 1.0
    """
    (tmp_path / "metrics.csv").write_text(metrics_csv(data))
    text = rendered(tmp_path / "p.md", "nist . patterns", "nist . order", "nist . space")
    beside = "40.0 [35.0, 43.0]; 41.0 [36.0, 44.0] | 40.0 [35.0, 43.0]; 30.0 [28.0, 32.0]"
    assert f"| EER, trial 2 (%) | 42.0 to 44.3 | {beside} | a/plda |" in text
    assert "| EER, cross-profile (%) | 49.9 to 50.6 | 48.0 [47.0, 49.0] | – | none |" in text
    lines = {tuple(line.split(" | ")[:2]): line for line in text.splitlines()}
    ordered = "| voxlet_like 40.0, rasp_like 5.0 | 1 | 0 | 0 |"
    assert lines["| EER, trial 2", "a/plda"].endswith(ordered)
    assert lines["| EER, trial 2", "b/plda"].endswith("| 0 | 0 | 1 |")
    assert lines["| EER, cross-profile", "a/plda"].endswith("| 0 | 1 | 0 |")
    # Canonical correlation of too few segments is 1 by chance: it is left out.
    assert "CCA" not in text and "| copy | a/plda | P1 | 120 |" in text
    own = where(read_figures(tmp_path / "metrics.csv"), system="copy")
    told = tabulate(SPECS["leakage"], own.assign(attacker=""))
    (row,) = told.rows
    assert row[told.header.index("CCA top 10")] == "not defined"
