"""The challenges' protocols, averages and result files."""

import math
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from local.plan.options import Asked, follow_protocol
from local.protocols.attackers import Sets, read_protocol
from local.report.challenge import (
    Score,
    averages,
    conclusions,
    read_results,
    scores_of,
    write_results,
)
from local.report.frame import read_figures
from local.report_challenge import main
from steps.anonymisers.external import find_speech
from steps.audio import write_wav
from tests.recipes import link
from tests.refusals import accepts, refuses, refuses_file, refuses_words
from tests.report_rows import metrics_csv
from utils.tables import write_file

PROTOCOLS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/protocols"
VPC22, VPC24, VPC26 = (PROTOCOLS / f"vpc{year}.yaml" for year in (2022, 2024, 2026))
ORIGINAL, TRIED = (
    f"---- ASV_eval{of} results ----\ndataset split gender enrollment trial EER\n"
    for of in ("", "^anon")
)


@pytest.mark.parametrize("path", sorted(PROTOCOLS.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_protocol_is_whole(path: Path) -> None:
    protocol = read_protocol(path)
    assert protocol.privacy.sets and protocol.words
    assert protocol.privacy.attacker in protocol.attackers.split()
    assert list(protocol.categories) == sorted(protocol.categories)
    root = PROTOCOLS.parents[3]
    blocks = [root / "egs/TEMPLATE/run.sh", root / "local/options.sh"]
    known = re.findall(r"^([a-z_]+)=", "".join(b.read_text() for b in blocks), re.MULTILINE)
    assert protocol.options.keys() <= {*known}


def test_W8_nothing_is_from_memory() -> None:
    """2026's attacker starts from weights of several stages; categories have a source or none."""
    pages = [*PROTOCOLS.glob("*.yaml"), PROTOCOLS.parents[3] / "docs/protocols.md"]
    texts = {path.name: path.read_text() for path in pages}
    assert not [name for name, text in texts.items() if "memory" in text]
    assert "in stages on\n# original and voice-converted speech" in texts["vpc2026.yaml"]
    ranked = [p.stem for p in PROTOCOLS.glob("*.yaml") if read_protocol(p).categories]
    assert ranked == ["vpc2024"] and "arXiv 2404.02677" in texts["vpc2024.yaml"]


ROWS = (Path(__file__).parent / "challenges.tsv").read_text().splitlines()[1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition("\t")[0])
def test_what_the_challenges_have_is_tested(row: str) -> None:
    for test in row.split("\t")[3].split():
        path, _, name = test.partition("::")
        assert f"\ndef {name}(" in (Path(__file__).parent / path).read_text()


# Of 2020 run_asv_eval_train.sh, of 2022 config.sh and main_asv_eval_train.sh.
PRESCRIBED = [
    ("W1", "vpc2022", {"attackers": "ignorant lazy_informed semi_informed"}),
    ("W1", "vpc2022", {"informed_level": "utt"}),
    ("W6", "vpc2020", {"lda_dim": "200", "chunk_seconds": ""}),
    ("W6", "vpc2022", {"lda_dim": "200", "chunk_seconds": ""}),
    ("M2", "vpc2022", {"prosody": "true"}),
    ("M4", "vpc2026_track2", {"asr": "hub:openai/whisper-large-v3", "asr_spelling": "vpc2026"}),
    ("M6", "vpc2024", {"asr": "hub:speechbrain/asr-wav2vec2-librispeech"}),
    ("M6", "vpc2024", {"asr_spelling": "vpc2024"}),
    ("W2", "vpc2026", {"attackers": "lazy_informed semi_informed_finetuned"}),
]  # fmt: skip


@pytest.fixture
def recipe(here: Path) -> None:
    """The folder of a recipe is the one where everything happens."""
    link(here / "conf/protocols", PROTOCOLS)


@pytest.mark.usefixtures("recipe")
def test_a_protocol_sets_what_the_challenge_prescribes() -> None:
    corpus = {"lda_dim": "150", "chunk_seconds": "4", "command_line": "./run.sh"}
    for row, protocol, wanted in PRESCRIBED:
        asked = follow_protocol(Asked({**corpus, "protocol": protocol}))
        assert {option: asked[option] for option in wanted} == wanted, row
    mine = {**corpus, "protocol": "vpc2022", "command_line": "./run.sh --lda-dim 150"}
    assert follow_protocol(Asked(mine))["lda_dim"] == "150"


@pytest.mark.parametrize(
    ("name", "eers", "mean"),
    [
        ("B1.b dev", [19.03, 5.59, 8.254, 6.005, 9.012, 9.402], 9.928),
        ("B1.b test", [9.489, 7.795, 10.91, 7.52, 15.32, 8.192], 9.183),
        ("B2 test", [7.117, 1.114, 16.92, 7.692, 10.98, 4.802], 7.769),
    ],
)  # fmt: skip
def test_published_eers_of_2022_give_its_published_averages(name, eers, mean):
    privacy = read_protocol(VPC22).privacy
    scores = [
        Score("eer", split, True, eer / 100, privacy.attacker)
        for split, eer in zip(privacy.sets[name.split()[1]], eers, strict=True)
    ]
    found = averages(scores, privacy)
    assert 100 * found[name.split()[1]] == pytest.approx(mean, abs=6e-3)
    assert sum(map(math.isnan, found.values())) == 1  # the other set was not named


def test_a_result_file_of_2026_joins_several_runs(tmp_path, capsys):
    """Rows of a run have a number in front or none: those without were shifted by one column."""
    (tmp_path / "theirs").write_text(
        f"{ORIGINAL}8 libri dev mixed anon anon 11.423\n"
        f"{TRIED}    libri dev mixed anon anon 6.973\n{TRIED}17 libri test mixed anon anon 4.713\n"
    )
    accepts(main, VPC26, tmp_path / "theirs")
    said = capsys.readouterr().out
    assert "libri_dev: average EER 6.973 %" in said and "libri_test: average EER 4.713 %" in said


def test_a_file_of_unprotected_speech_alone_said_figure_of_None(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text(f"{ORIGINAL}0 libri dev f original original 10.511\n")
    said = "no figure of protected speech that VoicePrivacy 2024 asks for"
    refuses_words(said, main, VPC24, tmp_path / "theirs")


def test_figures_of_a_recipe_become_a_result_file(tmp_path, capsys):
    data = """
    libri_test_f theirs verification semi_informed ecapa_full/cosine_raw AA eer 0.31
    libri_test_m theirs verification semi_informed ecapa_full/cosine_raw AA eer 0.33
    libri_test_m theirs verification ignorant ecapa_full/cosine_raw AA eer 0.5
    libri_test_m theirs verification semi_informed another/cosine AA eer 0.01
    libri_test_f original verification unprotected ecapa_full/cosine_raw AA eer 0.08
    libri_test theirs utility - moonshine AA wer 0.06
    libri_test original utility - moonshine OO wer 0.04
    libri_test b2 utility - moonshine AA wer 0.1
    """
    (tmp_path / "metrics.csv").write_text(metrics_csv(data))
    accepts(main, VPC24, tmp_path, "--of-system", "theirs", "--out", tmp_path)
    said = capsys.readouterr().out
    assert "libri_test: average EER 32.000 %, category 3 of 4 (at least 30 %)" in said
    scores = RANK(tmp_path / "result_for_rank_theirs")
    found = {(s.what, s.split, s.protected): s.value for s in scores}
    assert found == {
        ("eer", "libri_test_f", True): pytest.approx(0.31),
        ("eer", "libri_test_m", True): pytest.approx(0.33),
        ("eer", "libri_test_f", False): pytest.approx(0.08),
        ("wer", "libri_test", True): pytest.approx(0.06),
        ("wer", "libri_test", False): pytest.approx(0.04),
    }
    said = "no figure of b3 that VoicePrivacy 2024 asks for"
    refuses_words(said, main, VPC24, tmp_path, "--of-system", "b3")


def scores(tmp_path: Path, protocol: str, data: str) -> dict[tuple[str, str], Score]:
    """Scores of protected speech, by figure and split, from rows of a recipe."""
    (tmp_path / "metrics.csv").write_text(metrics_csv(data))
    asked = read_protocol(PROTOCOLS / f"{protocol}.yaml")
    figures = read_figures(tmp_path / "metrics.csv")
    found = scores_of(figures, asked, "theirs", asked.evaluators)
    return {(s.what, s.split): s for s in found if s.protected}


def test_W5_the_mean_over_folds_wins_over_the_pooled_recall(tmp_path: Path) -> None:
    rows = """
    IEMOCAP_dev theirs utility - e PP uar 0.5
    IEMOCAP_dev theirs utility - e PP uar_vpc24 0.6
    IEMOCAP_dev theirs utility - e PP recall/group=sad 0.4
    IEMOCAP_dev theirs utility - e PP recall_vpc24/group=sad 0.3
    """
    found = scores(tmp_path, "vpc2024", rows)["uar", "IEMOCAP_dev"]
    assert found.value == 0.6 and found.parts == {"sad": 0.3}
    for more, said in ((rows, False), (rows.splitlines()[1], True)):  # pooled without a word
        own = [*scores(tmp_path, "vpc2024", more).values()]
        told = conclusions(own, read_protocol(VPC24))
        assert ("IEMOCAP_dev: UAR over all utterances" in "".join(told)) is said


@pytest.mark.parametrize(
    ("protocol", "split", "eer"), [("vpc2024", "libri_dev_f", 0.2), ("vpc2022", "libri_dev_f", 0.3)]
)
def test_W11_the_error_rate_is_that_of_the_challenges_tools(tmp_path, protocol, split, eer):
    evaluator = read_protocol(PROTOCOLS / f"{protocol}.yaml").evaluators
    start = f"{split} theirs verification semi_informed {evaluator} AA"
    rows = f"{start} eer 0.1\n{start} eer_speechbrain 0.2\n{start} eer_kaldi 0.3\n"
    assert scores(tmp_path, protocol, rows)["eer", split].value == eer


def test_an_error_rate_that_is_not_the_challenges_is_told(tmp_path: Path) -> None:
    """A run without --protocol has `eer` alone, whose average stood there as the challenge's."""
    asked = read_protocol(VPC24)
    start = f"theirs verification semi_informed {asked.evaluators} AA eer"
    for names, told in ((("", "_speechbrain"), ["libri_test_f"]), (("_speechbrain",) * 2, [])):
        rows = [f"libri_test_{g} {start}{own} 0.2" for g, own in zip("fm", names, strict=True)]
        own = scores(tmp_path, "vpc2024", "\n".join(rows)).values()
        lines = [*conclusions([*own], asked)]
        assert [line.partition(":")[0] for line in lines if "between thresholds" in line] == told
        assert "libri_test: average EER 20.000 %, category 2 of 4 (at least 20 %)" in lines


def words_of(split: str, words: int, errors: int) -> str:
    counts = {"wer": errors / words, "wer_substitutions": errors / words, "wer_insertions": 0,
              "wer_deletions": 0, "n_words": words}  # fmt: skip
    return "".join(f"{split} theirs utility - e PP {n} {v}\n" for n, v in counts.items())


def test_W9_words_of_vctk_are_of_different_and_common_sentences_together(tmp_path: Path) -> None:
    both = words_of("vctk_dev", 300, 30) + words_of("vctk_dev_common", 100, 50)
    found = scores(tmp_path, "vpc2022", both)["wer", "vctk_dev"]
    assert found.value == 80 / 400 and found.parts["substitutions"] == 80
    one = scores(tmp_path, "vpc2022", words_of("vctk_dev", 300, 30))
    assert ("wer", "vctk_dev") not in one  # it is no figure of the challenge


def test_M2_pitch_and_voices_of_a_recipe_are_averaged_as_in_2022(tmp_path: Path) -> None:
    asked = read_protocol(VPC22)
    rows = ""
    for n, split in enumerate(asked.privacy.sets["dev"]):
        rows += f"{split} theirs utility - prosody OP f0_correlation_vpc22 {0.1 * n}\n"
        rows += f"{split} theirs utility - prosody OP f0_correlation_vpc22_std 0.2\n"
        rows += f"{split} theirs similarity - {asked.evaluators} OO-OP-PP g_vd_2020 {-n}\n"
        rows += f"{split} theirs similarity semi_informed {asked.evaluators} OO-OP-PP g_vd_2020 9\n"
        rows += f"{split} theirs similarity - {asked.evaluators} OO-OP-PP deid_2020 0.5\n"
    found = list(scores(tmp_path, "vpc2022", rows).values())
    texts = write_results(found, asked, "x", time.localtime(0))
    summary = texts["results_summary.txt"]
    assert "vctk_dev_trials_m_common  Pitch_correlation: mean=0.5000 std=0.2000" in summary
    # 0.25 (0 + 1) + 0.2 (2 + 3) + 0.05 (4 + 5) = 1.7
    assert "Weighted average pitch correlation dev: 0.170" in summary
    assert "Weighted average gain of voice distinctiveness dev: -1.700" in summary
    assert "test" not in summary  # nobody measured it
    assert not [name for name in texts if "orig" in name]  # nor those attackers
    lazy = Score("eer", "libri_dev_f", True, 0.43, "lazy_informed")
    more = write_results([*found, lazy], asked, "x", time.localtime(0))
    assert "EER: 43%" in more["results.orig/results.txt"] and "43%" not in more["results.txt"]
    assert "libri_dev_trials_f\n  De-Identification : 0.5\n" in texts["results.txt"]


def test_pitch_and_voices_that_nobody_measured_were_not_named(tmp_path, capsys):
    """Of 2022, whose averages just lacked them; a split without counts of words was a traceback."""
    asked = read_protocol(VPC22)
    start = f"theirs verification semi_informed {asked.evaluators} AA eer_kaldi"
    rows = "".join(f"{s} {start} 0.2\n" for s in asked.privacy.sets["dev"])
    rows += words_of("vctk_dev", 300, 30) + "vctk_dev_common theirs utility - e PP wer 0.1\n"
    rows += "".join(
        f"{s} theirs utility - prosody OP f0_correlation_vpc22 0.5\n"
        for s in asked.privacy.sets["dev"]
    )
    (tmp_path / "metrics.csv").write_text(metrics_csv(rows))
    accepts(main, VPC22, tmp_path, "--of-system", "theirs", "--out", tmp_path)
    (said,) = (s for s in capsys.readouterr().out.splitlines() if s.startswith("not measured"))
    assert "f0_correlation_vpc22 of test, g_vd_2020 of dev, g_vd_2020 of test" in said
    assert "wer of vctk_dev" in said and "f0_correlation_vpc22 of dev" not in said


def test_of_two_runs_the_first_one_was_averaged(tmp_path: Path) -> None:
    """Of two files it was the last one."""
    evaluator = read_protocol(VPC24).evaluators
    for run, eer in (("one", 0.1), ("other", 0.5)):
        rows = [f"libri_test_{g} theirs verification semi_informed {evaluator} AA eer {eer}\n"
                for g in "fm"]  # fmt: skip
        write_file(tmp_path / run / "metrics.csv", metrics_csv("".join(rows)))
    said = "other: eer of libri_test_f is 0.5 there, and 0.1 in .*one; give results"
    runs = (tmp_path / "one", tmp_path / "other")
    refuses_words(said, main, VPC24, *runs, "--of-system", "theirs")


def test_W10_common_sentences_in_the_layout_of_2024() -> None:
    """As its tools name them: vctk, dev, f_common."""
    asked = read_protocol(VPC24)
    privacy = replace(asked.privacy, sets=Sets({"dev": ["vctk_dev_common_f"]}))
    asked = replace(asked, privacy=privacy, words=("vctk_dev+vctk_dev_common",))
    found = [Score("eer", "vctk_dev_common_f", True, 0.3, "semi_informed"),
             Score("wer", "vctk_dev", True, 0.1)]  # fmt: skip
    (text,) = write_results(found, asked, "x", time.localtime(0)).values()
    assert "vctk   dev  f_common       anon  anon 30.0" in text.replace("  30.0", " 30.0")
    assert "vctk   dev  anon" in text and "vctk_dev" not in text


def test_an_average_of_40_percent_had_the_category_below(tmp_path, capsys):
    """30.066 and 49.934 %: their mean as a number of 64 bits is less."""
    rows = "libri dev f anon anon 30.066\nlibri dev m anon anon 49.934\n"
    (tmp_path / "theirs").write_text(TRIED + rows)
    accepts(main, VPC24, tmp_path / "theirs")
    assert "40.000 %, category 4 of 4 (at least 40 %)" in capsys.readouterr().out


WORDS = "---- ASR results ----\n"
RANK, SUMMARY = (partial(read_results, protocol=read_protocol(path)) for path in (VPC24, VPC22))
BAD = [
    (RANK, "", "has no line such as '---- ASV_eval results"),
    (SUMMARY, "", "has no line such as 'ASV-"),
    (SUMMARY, "ASV-a_enrolls-b_trials_f  EER: no\n", ":1: no line of a result file: ASV-a"),
    (SUMMARY, "ASV-a_enrolls_x-b_trials_f  EER: 3%\n", ":1: no line of a result file: ASV-a"),
    (SUMMARY, "ASV-a_enrolls-b_trials_f  EER: nan%\n", ":1: no line of a result file: ASV-a"),
    (SUMMARY, "ASR-a_asr  %WER nan [ 0 / 0, 0 ins, 0 del, 0 sub ]\n", ":1: no line of a result"),
    (RANK, f"{TRIED}a b f anon anon nan\n", r":3: no row of a ASV_eval\^anon table"),
    (SUMMARY, "vctk  De-Identification : 1\n", ":1: no line of a result file: vctk"),
    (RANK, "---- ASV results ----\n", ":1: ASV results: not a section of a challenge"),
    (RANK, f"{TRIED}a b f original anon 3\n", r":3: no row of a ASV_eval\^anon table"),
    (RANK, f"{WORDS}dataset split asr WER\n0 libri dev anon x\n", ":3: no row of a ASR"),
    (RANK, f"{WORDS}a b\n0 libri dev\n", ":3: no row of a ASR table: 0 libri dev"),
    (RANK, f"{WORDS}dataset split asr WER\nlibri test anon 3.0 4.0\n", ":3: no row of a ASR"),
]


@pytest.mark.parametrize(("read", "text", "said"), BAD)
def test_bad_result_files_and_protocols(tmp_path, read, text, said):
    refuses_file(said, read, tmp_path / "f.yaml", text)


def test_percent_without_its_sign_was_taken_for_a_share(tmp_path: Path) -> None:
    lines = "ASV-a_enrolls_mine-b_trials_f_mine\n  EER: 8.665\n  ROCCH-EER: 8.6\n"
    (tmp_path / "results.txt").write_text(lines)
    found = {score.what: score for score in SUMMARY(tmp_path / "results.txt")}
    assert found["eer"].value == pytest.approx(0.08665)
    assert found["eer_rocch"].value == pytest.approx(0.086) and found["eer"].protected


@pytest.mark.usefixtures("recipe")
def test_a_protocol_is_followed_but_for_what_the_command_says() -> None:
    values = {"protocol": "vpc2024", "attackers": "ignorant", "evaluators": "e/plda",
              "informed_level": "spk", "informed_draws": "4", "genders": "f m",
              "command_line": "./run.sh --evaluators e/plda"}  # fmt: skip
    asked = follow_protocol(Asked(values))
    assert (asked["attackers"], asked["informed_level"]) == ("semi_informed", "utt")
    assert (asked["evaluators"], asked["genders"]) == ("e/plda", "f m")
    assert asked["informed_draws"] == "1"
    assert follow_protocol(Asked(values | {"protocol": "vpc2026"}))["genders"] == "mixed"
    assert follow_protocol(Asked({"command_line": ""})).get("protocol") == ""
    other = Asked(values | {"protocol": "vpc1999"})
    refuses("vpc1999.yaml is missing; the nearest names are: vpc", follow_protocol, other)


SET = "libri_test_trials_f_anon"


def put(path: Path) -> str:
    write_wav(path, np.full(100, 0.1))
    return str(path)


def test_a_participants_folder_holds_the_originals_too(tmp_path: Path) -> None:
    """The challenges' layout: <set> beside <set>_anon, the same ids in both."""
    for name in ("libri_test_enrolls", "libri_test_trials_f"):
        for suffix in ("", "_anon"):
            put(tmp_path / f"{name}{suffix}/wav/{name}-1.wav")
    refuses("is there twice", find_speech, tmp_path)
    found = find_speech(tmp_path, "_anon")
    assert all("_anon/wav/" in path for path in found.values()) and len(found) == 2


@pytest.mark.parametrize("suffix", ["_anon", ""])
@pytest.mark.parametrize("kind", ["absolute", "relative", "beside a table"])
def test_W13_a_participants_folder_is_taken_as_it_is(tmp_path, kind, suffix):
    root = tmp_path / "data"
    path = put(root / f"{SET}/wav/u1.wav")
    said = f"data/{SET}/wav/u1.wav" if kind == "relative" else path
    (root / f"{SET}/wav.scp").write_text(f"u1 {said}\n")
    if kind == "beside a table":
        put(root / "train-clean-360_anon/wav/u2.wav")
    found = find_speech(root, suffix)
    assert list(found) == ["u1", "u2"][: 2 if kind == "beside a table" else 1]
    assert all(Path(path).is_file() for path in found.values())


def test_W13_what_changes_the_audio_is_no_file(tmp_path: Path) -> None:
    path = put(tmp_path / f"{SET}/wav/u1.wav")
    for told in (f"sox {path} -t wav - speed 1.1 |", f"cat {path} |", "/home/them/u1.wav"):
        (tmp_path / f"{SET}/wav.scp").write_text(f"u1 {told}\n")
        assert find_speech(tmp_path, "_anon") == {"u1": told}  # refused by who reads it
    put(tmp_path / "libri_test_trials_mixed_anon/wav/u1.wav")
    refuses("u1 is there twice", find_speech, tmp_path, "_anon")
