"""The cards: every example runs, every part is there, and every key of the JSON has a card."""

import doctest
import json
import re
from pathlib import Path

import pytest

from local.compute_metrics import main
from local.report.measures import MEASURES
from tests.scored import write_lists
from tests.test_compute_metrics import leakage_files, pair_files

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "metrics"
CARDS = sorted(FOLDER.glob("*.md"))
# Scalars that no table, picture or page reads, and that have no row in metrics.csv.
UNTITLED = re.compile(r"n_|linkability_(mean_)?omega_|cllr_uncalibrated$|d_diag_2020_")
ALL = "".join(card.read_text(encoding="utf-8") for card in CARDS)
OWN = [card for card in CARDS if card.name != "README.md"]


@pytest.mark.parametrize("card", OWN, ids=lambda card: card.stem)
def test_the_example_of_a_card_runs(card: Path) -> None:
    result = doctest.testfile(str(card), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("card", [card for card in OWN if card.stem != "legal"])  # two criteria
def test_a_card_has_all_its_parts(card: Path) -> None:
    text = card.read_text(encoding="utf-8")
    for part in ("# `", "**Question.**", "**Formula.**", "**Hides.**", "**Source.**", "## Example"):
        assert part in text, part
    assert "**Range and direction.**" in text or card.stem == "chance"


# Cards of what other programs write.
ELSEWHERE = {"eer_challenges", "inference", "intervals", "quality", "uar", "wer"}


def test_every_key_is_in_a_card_and_every_measure_that_has_one_is_written(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("lists", "pairs", "vectors")]
    for folder in folders:
        folder.mkdir()
    lists = write_lists(folders[0], [float(i) for i in range(30)], [i - 9.0 for i in range(30)])
    speakers = folders[0] / "utt2spk"
    speakers.write_text("".join(f"t{i} s{i % 9}\n" for i in range(60)))
    utt2spk, *pairs = pair_files(folders[1])
    _, of_vectors, original, protected = leakage_files(folders[2])
    resampled = ("--utt2spk", speakers, "--bootstrap", 2)
    only, compared = ("--enrolled", 1, lists[1]), ("--unprotected", lists[1])
    commands = (
        ["verification", *resampled, "--recordings", *only, "--omega", 2, *compared, *lists],
        ["strongest", *resampled, "--another-attacker", lists[1], *lists],
        ["calibration", *lists, lists[1]],
        ["gains", *resampled, *lists, *lists, *lists],
        ["similarity", "--utt2spk", utt2spk, "--bootstrap", 2, *pairs],
        ["leakage", "--utt2spk", of_vectors, "--bootstrap", 2, original, protected],
    )
    # By --words and --bins, and of two systems.
    written = {"eer_beside_words", "linkability_bins", "eer_difference"}
    for command in commands:
        assert main([str(a) for a in (*command, tmp_path / "out")]) == 0
        found = json.loads((tmp_path / "out").read_text())
        for key, value in found.items():
            plain = found.get("columns", {}).get(key, {}).get("metric", key)
            written.add(plain)
            of_one = isinstance(value, dict | list) or key.endswith("_per_speaker")
            assert of_one or plain in MEASURES or UNTITLED.match(key), f"{key}: has no title"
            plain = re.sub(r"_per_speaker$|(?<=2020)_(oo|op|pp)$", "", plain)
            plain = re.sub(r"^n_(non)?target_(oo|op|pp|oa|aa)$", r"n_\1target", plain)
            plain = re.sub(r"^cmc_\d+$", "cmc_<k>", plain)
            plain = re.sub(r"_omega_2$", "", plain)
            plain = re.sub(r"^(d_ece|cllr_min)_[oap]{2}$", r"\1_<condition>", plain)
            assert plain == "columns" or re.search(rf"`{plain}(`|_\*)", ALL), key
    assert {name for name, own in MEASURES.items() if {own.card} - {*ELSEWHERE, ""}} <= written


@pytest.mark.parametrize("card", OWN, ids=lambda card: card.stem)
def test_a_card_links_the_functions_that_compute_it(card: Path) -> None:
    links = re.findall(r"\[((?:`\w+`(?:, )?)+)\]\(([^)]*\.py)\)", card.read_text(encoding="utf-8"))
    assert links
    for names, path in links:
        code = (FOLDER / path).read_text(encoding="utf-8")
        assert "/local/metrics/" in str((FOLDER / path).resolve())
        for name in re.findall(r"\w+", names):
            assert f"def {name}(" in code, name


def test_a_measure_has_its_card() -> None:
    for name, own in MEASURES.items():
        assert not own.card or (FOLDER / f"{own.card}.md").is_file(), name
