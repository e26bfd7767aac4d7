"""The challenges' protocols, averages and result files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from local.plan.options import Asked, follow_protocol
from local.protocols.attackers import read_protocol
from local.report.challenge import averages, category, read_results
from local.report_challenge import main
from steps.anonymisers.external import find_speech
from tests.refusals import refuses
from tests.report_rows import metrics_csv

PROTOCOLS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/protocols"
# As 2024's tools write it, with figures of B2 that the challenge published.
THEIRS = """---- Time: 28-03-24_19:00 ----

---- SER results ----
   dataset split       ser      UAR  ACC_sad
                               mean     mean
0  IEMOCAP   dev      anon  55.6146  32.9580
1  IEMOCAP   dev  original  69.0796  63.6292

---- ASV_eval results ----
  dataset split gender enrollment     trial     EER
0   libri   dev      f   original  original  10.511
---- ASR results ----
  dataset split       asr     WER
0   libri   dev  original   1.807
4   libri   dev      anon  10.482

---- ASV_eval^anon results ----
   dataset split gender enrollment trial     EER  EER-ci_lower  EER-ci_upper
2    libri   dev      f       anon  anon  12.910        12.376        52.489
5    libri   dev      m       anon  anon   2.045         1.244        51.633
8    libri  test      f       anon  anon   7.483         5.484        51.554
11   libri  test      m       anon  anon   1.557         2.009        52.009
"""


@pytest.mark.parametrize("path", sorted(PROTOCOLS.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_protocol_is_whole(path: Path) -> None:
    protocol = read_protocol(path)
    assert protocol.privacy.sets and protocol.words
    assert protocol.privacy.attacker in protocol.attackers.split()
    assert list(protocol.categories) == sorted(protocol.categories)


def test_published_eers_of_2022_give_its_published_averages(tmp_path: Path) -> None:
    """B1.b and B2 of VoicePrivacy 2022, dev and test: 9.928, 9.183 and 6.529, 7.769 %."""
    protocol = read_protocol(PROTOCOLS / "vpc2022.yaml")
    published = {
        "B1.b dev": ([19.03, 5.59, 8.254, 6.005, 9.012, 9.402], 9.928),
        "B1.b test": ([9.489, 7.795, 10.91, 7.52, 15.32, 8.192], 9.183),
        "B2 test": ([7.117, 1.114, 16.92, 7.692, 10.98, 4.802], 7.769),
    }
    for eers, mean in published.values():
        rows = "".join(
            f"{n} {split.rsplit('_', 2)[0]} {' '.join(split.rsplit('_', 2)[1:])} anon anon {eer}\n"
            for n, (split, eer) in enumerate(zip(protocol.privacy.sets["test"], eers, strict=True))
        )
        path = tmp_path / "theirs"
        path.write_text(
            "---- ASV_eval^anon results ----\ndataset split gender enrollment trial EER\n" + rows
        )
        found = averages(read_results(path), protocol.privacy)
        assert 100 * found["test"] == pytest.approx(mean, abs=6e-3)
        assert np.isnan(found["dev"])  # none of it was named


def test_a_result_file_is_read_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "result_for_rank_mcadams"
    path.write_text(THEIRS)
    scores = read_results(path)
    by = {(s.what, s.split, s.protected): s for s in scores}
    assert by["eer", "libri_dev_f", True].value == pytest.approx(0.1291)
    assert by["eer", "libri_dev_f", True].high == pytest.approx(0.52489)
    assert by["uar", "IEMOCAP_dev", True].value == pytest.approx(0.556146)
    words = [str(PROTOCOLS / "vpc2024.yaml"), str(path), "--out", str(tmp_path / "out")]
    assert main([*words, "--of-system", "mcadams"]) == 0
    again = read_results(tmp_path / "out/result_for_rank_mcadams")
    assert {(s.what, s.split, s.protected, round(s.value, 9)) for s in again} == {
        (s.what, s.split, s.protected, round(s.value, 9)) for s in scores
    }
    said = capsys.readouterr().out
    assert "libri_test: average EER 4.520 %, category 0 of 4" in said
    assert "not measured: uar of IEMOCAP_test, wer of libri_test" in said


def test_a_result_file_of_2026_joins_several_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of a run have a number in front or none: those without were shifted by one column."""
    path = tmp_path / "theirs"
    header = "dataset split gender enrollment trial EER"
    path.write_text(
        f"---- ASV_eval results ----\n{header}\n8 libri dev mixed anon anon 11.423\n"
        f"---- ASV_eval^anon results ----\n{header}\n    libri dev mixed anon anon 6.973\n"
        f"---- ASV_eval^anon results ----\n{header}\n17 libri test mixed anon anon 4.713\n"
    )
    assert main([str(PROTOCOLS / "vpc2026.yaml"), str(path)]) == 0
    said = capsys.readouterr().out
    assert "libri_dev: average EER 6.973 %" in said and "libri_test: average EER 4.713 %" in said
    figure = {"what": "eer", "split": "libri_dev_mixed", "protected": True}
    assert figure.items() <= vars(read_results(path)[1]).items()


def test_figures_of_a_recipe_become_a_result_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = """
    libri_test_f theirs verification semi_informed ecapa_full/cosine AA eer 0.31
    libri_test_m theirs verification semi_informed ecapa_full/cosine AA eer 0.33
    libri_test_m theirs verification ignorant ecapa_full/cosine AA eer 0.5
    libri_test_m theirs verification semi_informed another/cosine AA eer 0.01
    libri_test_f original verification unprotected ecapa_full/cosine AA eer 0.08
    libri_test theirs utility - moonshine AA wer 0.06
    libri_test b2 utility - moonshine AA wer 0.1
    """
    (tmp_path / "metrics.csv").write_text(metrics_csv(data))
    words = [str(PROTOCOLS / "vpc2024.yaml"), str(tmp_path), "--of-system", "theirs"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "libri_test: average EER 32.000 %, category 3 of 4 (at least 30 %)" in (
        capsys.readouterr().out
    )
    found = {(s.what, s.split, s.protected): s.value
             for s in read_results(tmp_path / "result_for_rank_theirs")}  # fmt: skip
    assert found == {
        ("eer", "libri_test_f", True): pytest.approx(0.31),
        ("eer", "libri_test_m", True): pytest.approx(0.33),
        ("eer", "libri_test_f", False): pytest.approx(0.08),
        ("wer", "libri_test", True): pytest.approx(0.06),
    }
    asked = [str(PROTOCOLS / "vpc2024.yaml"), str(tmp_path), "--of-system", "b3"]
    refuses("no figure of b3 that VoicePrivacy 2024 asks for", main, asked)


def test_categories() -> None:
    least = (0.1, 0.2, 0.3, 0.4)
    assert [category(eer, least) for eer in (0.05, 0.1, 0.35, 0.5)] == [0, 1, 3, 4]


WHOLE = "challenge: x\nattackers: a\nevaluators: e\n"
ONE = WHOLE + "privacy: {attacker: a, sets: {t: [a]}}\n"
WORDS = "---- ASR results ----\n"
BAD = [
    (read_results, "", "has no section such as"),
    (read_results, f"{WORDS}dataset split asr WER\n0 libri dev anon x\n", ":3: no row of a ASR"),
    (read_results, f"{WORDS}a b\n0 libri dev\n", ":3: no row of a ASR table: libri dev"),
    (read_protocol, WHOLE, "privacy: attacker and sets are expected"),
    (read_protocol, ONE.replace("[a]}", "[a, b]}, weights: [1]"), "weights: 1 for 2 splits"),
    (read_protocol, ONE.replace("[a]}", "[a]}, weights: [2]"), "2; above 0 and at most 1"),
    (read_protocol, ONE.replace("[a]}", "a}"), "sets: t: 'a'; a list of names is expected"),
    (read_protocol, f"{ONE}words: 3\n", "words: 3; a list is expected"),
    (read_protocol, f"{ONE}colour: red\n", "colour"),
]


@pytest.mark.parametrize(("read", "text", "said"), BAD)
def test_bad_result_files_and_protocols(
    tmp_path: Path, read: Callable[[Path], object], text: str, said: str
) -> None:
    (tmp_path / "f.yaml").write_text(text)
    refuses(said, read, tmp_path / "f.yaml")


def test_a_protocol_is_followed_but_for_what_the_command_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/protocols").symlink_to(PROTOCOLS)
    monkeypatch.chdir(tmp_path)
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


def test_a_participants_folder_holds_the_originals_too(tmp_path: Path) -> None:
    """The challenges' layout: <set> beside <set>_anon, the same ids in both."""
    for name in ("libri_test_enrolls", "libri_test_trials_f"):
        for suffix in ("", "_anon"):
            folder = tmp_path / f"{name}{suffix}/wav"
            folder.mkdir(parents=True)
            soundfile.write(folder / f"{name}-1.wav", np.zeros(100), 16000)
    refuses("is there twice", find_speech, tmp_path)
    found = find_speech(tmp_path, "_anon")
    assert all("_anon/wav/" in path for path in found.values()) and len(found) == 2
    (tmp_path / "libri_test_trials_f_anon/wav.scp").write_text(
        f"x {tmp_path}/libri_test_trials_f_anon/wav/libri_test_trials_f-1.wav\n"
    )
    assert list(find_speech(tmp_path, "_anon")) == ["x"]
