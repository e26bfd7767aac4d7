"""Result files of the challenges, made from the figures that their repositories publish.

The columns are laid out here by their widths in those files. With `n_chars`, the length of the
published file, a slip in a figure or a column shows.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from local.protocols.attackers import Protocol, read_protocol
from local.report.challenge import (
    Score,
    averages,
    conclusions,
    read_results,
    write_full,
    write_rank,
    write_summary,
)

PROTOCOLS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/protocols"


Read = Callable[..., tuple[Protocol, list[Score], dict[str, float]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the text of a file, of so many characters: the protocol, scores, averages in %."""

    def read_text(
        protocol: str, text: str, n_chars: int | None = None, name: str = "theirs"
    ) -> tuple[Protocol, list[Score], dict[str, float]]:
        assert len(text) == n_chars or n_chars is None
        (tmp_path / name).write_text(text)
        asked = read_protocol(PROTOCOLS / f"{protocol}.yaml")
        scores = read_results(tmp_path / name, asked)
        means = averages(scores, asked.privacy)
        return asked, scores, {name: 100 * mean for name, mean in means.items()}

    return read_text


def table(title: str, widths: str, *rows: str) -> str:
    """Rows of cells, the first to the left and the others to the right of columns so wide."""
    first, *others = map(int, widths.split())
    lines = [f"---- {title} results ----"]
    for row in rows:
        number, *cells = row.split("|")
        padded = (cell.rjust(width) for cell, width in zip(cells, others, strict=True))
        lines.append(number.ljust(first) + "".join(padded))
    return "\n".join(lines)


def listed(data: Sequence[str], speech: str, eers: str, numbers: str) -> list[str]:
    """Rows of an ASV table; data: `dataset|split|gender`."""
    return [
        f"{n}|{one}|{speech}|{speech}|{eer}"
        for n, one, eer in zip(numbers.split(), data, eers.split(), strict=True)
    ]


LISTS = "|dataset|split|gender|enrollment|trial|EER"
LIBRI = [f"libri|{split}|{gender}" for split in ("dev", "test") for gender in "fm"]
KNOWN = SimpleNamespace(**yaml.safe_load(Path(__file__).with_name("published.yaml").read_text()))
EMOTIONS = "sad neu ang hap"


def felt(emotions: str, *rows: str, mean: bool = True, widths: str = "1 9 6 10 9 9 9 9 9") -> str:
    """The table of emotions of IEMOCAP: of protected and original speech, dev and test."""
    header = ["|dataset|split|ser|UAR|" + "|".join(f"ACC_{e}" for e in emotions.split())]
    header += ["||||mean|mean|mean|mean|mean"] * mean
    of = [f"IEMOCAP|{split}|{kind}" for split in ("dev", "test") for kind in ("anon", "original")]
    figures = [row.replace(" ", "|") for row in rows]
    return table("SER", widths, *header,
                 *(f"{n}|{of[n]}|{row}" for n, row in enumerate(figures)))  # fmt: skip


def heard(wers: str, numbers: str) -> str:
    """The table of words of LibriSpeech."""
    width = max(map(len, wers.split())) + 2
    of = ["libri|dev|original", "libri|dev|anon", "libri|test|original", "libri|test|anon"]
    rows = zip(numbers.split(), of, wers.split(), strict=True)
    return table("ASR", f"1 8 6 10 {width}", "|dataset|split|asr|WER", *map("|".join, rows))


def made_2024(name: str) -> str:
    first, second, dev, test, wers, eers, _ = KNOWN.OF_2024[name]
    original = listed(LIBRI, "original", "10.511 0.931 8.761 0.418", "0 3 6 9")
    blocks = [
        f"---- Time: {first} ----", felt(EMOTIONS, dev, KNOWN.FELT[0], test, KNOWN.FELT[1]),
        table("ASV_eval", "1 8 6 7 11 10 8", LISTS, *original), heard(wers, "0 4 1 5"),
        f"---- Time: {second} ----",
        table("ASV_eval^anon", "2 8 6 7 11 6 8", LISTS, *listed(LIBRI, "anon", eers, "2 5 8 11")),
    ]  # fmt: skip
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("name", KNOWN.OF_2024)
def test_2024s_published_tables_are_read_averaged_and_written_again(read, name):
    text = made_2024(name)
    asked, scores, found = read("vpc2024", text, KNOWN.N_CHARS.get(name))
    expected = KNOWN.OF_2024[name][-1]
    assert [found[k] for k in ("libri_dev", "libri_test")] == pytest.approx(expected)
    assert write_rank(scores, asked, KNOWN.OF_2024[name][:2]) == text  # from the figures alone


MIXED = ["libri|dev|mixed", "libri|test|mixed"]
IN_2026 = "sad ang hap neu"
TIME_2026 = "31-08-26_12:51"


@pytest.mark.parametrize("name", KNOWN.OF_2026)
def test_W2_of_2026_only_the_fine_tuned_attacker_is_averaged(read, name):
    dev, test, wers, given, tuned, behind, n_chars = KNOWN.OF_2026[name]
    widths, stamp = "1 8 6 7 11 6 8", f"---- Time: {TIME_2026} ----"
    text = "\n\n".join([
        stamp, felt(IN_2026, dev, KNOWN.FELT_2026[0], test, KNOWN.FELT_2026[1], mean=False),
        table("ASV_eval", widths, LISTS, *listed(MIXED, "anon", given, "0 1")),
        heard(wers, "0 1 2 3"), stamp,
        table("ASV_eval^anon", widths, LISTS, *listed(MIXED, "anon", tuned, "0 1")),
    ]) + "\n" * (1 + behind)  # fmt: skip
    asked, scores, found = read("vpc2026", text, n_chars)
    assert [*found.values()] == pytest.approx([*map(float, tuned.split())])
    lazy = averages(scores, asked.privacy, attacker="lazy_informed")
    assert [100 * value for value in lazy.values()] == pytest.approx([*map(float, given.split())])
    assert write_rank(scores, asked, [TIME_2026]) == text.rstrip("\n") + "\n"


def test_W2_half_a_file_of_2026_has_no_average(read):
    """B2 of March: the attacker as given, and the tuned one on lists of women and men, too."""
    first = "\n\n".join([
        "---- Time: 03-03-26_05:17 ----",
        felt(IN_2026, "55.6590 33.1350 64.4438 67.0860 57.9720", KNOWN.FELT_2026[0],
             "53.4914 32.7760 56.9720 57.9826 66.2338", KNOWN.FELT_2026[1]),
        table("ASV_eval", "2 8 6 7 11 6 8", LISTS,
              *listed(MIXED, "anon", "11.423 7.220", "8 17")),
        heard("1.802 10.439 1.844 9.959", "0 4 1 5"),
    ]) + "\n"  # fmt: skip
    asked, half, found = read("vpc2026", first)
    assert all(map(math.isnan, found.values()))
    said = "\n".join(conclusions(half, asked))  # it was passed off as the average that is ranked
    assert "11.423" not in said and "libri_dev: no average EER: not measured" in said
    six = [f"libri|{split}|{who}" for split in ("dev", "test") for who in ("f", "m", "mixed")]
    tuned = listed(six, "anon", "9.833 3.575 6.973 8.029 1.345 4.713", "2 5 8 11 14 17")
    second = "\n---- Time: 03-03-26_05:18 ----\n\n"
    second += table("ASV_eval^anon", "2 8 6 7 11 6 7", LISTS, *tuned) + "\n"
    assert [*read("vpc2026", first + second, 1255)[2].values()] == pytest.approx([6.973, 4.713])


LANGUAGES = ("de", "en", "es", "fr")


FOUR = [f"{language}|{split}|mixed" for language in LANGUAGES for split in ("dev", "test")]


def made_track_2(
    stamp: str, emotions: Sequence[str], eers: str, numbers: str, wers: Sequence[str]
) -> list[str]:
    """The sections of track 2 that stand before those of the tuned attackers."""
    moved = felt("hap neu ang sad", *emotions, widths="1 9 6 10 8 8 8 8 8")
    words = [f"{one[:-6]}|{kind}" for one in FOUR for kind in ("original", "anon")]
    of_words = map(str, (2, 10, 3, 11, 0, 8, 1, 9, 6, 14, 7, 15, 4, 12, 5, 13))
    rows = map("|".join, zip(of_words, words, wers, strict=True))
    return [
        f"---- Time: {stamp} ----", moved.replace("IEMOCAP", "emodata"),
        table("ASV_eval", "2 8 6 7 11 6 8", LISTS, *listed(FOUR, "anon", eers, numbers)),
        table("ASR", "2 8 6 10 8", "|dataset|split|asr|WER", *rows),
    ]  # fmt: skip


def test_M4_a_file_of_track_2_has_a_section_for_each_language(read):
    first = "13-06-26_05:45"
    blocks = made_track_2(first, KNOWN.BM1[:4], *KNOWN.BM1[4:6], KNOWN.BM1[6].split())
    for language, (stamp, eers) in KNOWN.TUNED.items():
        own = [f"{language}|{split}|mixed" for split in ("dev", "test")]
        rows_of = [row.partition("|")[2] for row in listed(own, "anon", eers, "0 0")]
        named = "dataset|split|gender|enrollment|trial|EER"
        # Without a number in front, the first column is also to the right.
        body = table("ASV_eval^anon", "0 7 6 7 11 6 6", *(f"|{r}" for r in (named, *rows_of)))
        blocks += [f"---- Time: {stamp} ----", body]
    text = "\n\n".join(blocks) + "\n\n"
    asked, scores, found = read("vpc2026_track2", text, 2332)
    assert found["fr_test"] == pytest.approx(2.63) and len(found) == 8
    stamps = [first, *(stamp for stamp, _ in KNOWN.TUNED.values())]
    assert write_rank(scores, asked, stamps) == text


@pytest.mark.parametrize("name", KNOWN.MARCH)
def test_M4_files_of_march_2026_are_read_and_written_again(read, name):
    """Then lists of women and men stood between the mixed ones, which left their row numbers."""
    stamp, dev, test, given, words = KNOWN.MARCH[name]
    original = ("72.087 75.610 82.310 72.325 58.103", "78.904 68.077 90.638 83.396 73.504")
    said = ["5.881", "5.972", "5.551", "6.570", "4.629", "4.440", "6.673", "5.837"]
    heard = [figure for pair in zip(said, words.split(), strict=True) for figure in pair]
    emotions, numbers = (dev, original[0], test, original[1]), "26 35 8 17 62 71 44 53"
    text = "\n\n".join(made_track_2(stamp, emotions, given, numbers, heard)) + "\n"
    _, scores, _ = read("vpc2026_track2", text, 1543)
    lazy = {s.split: s.value for s in scores if s.attacker == "lazy_informed"}
    assert 100 * lazy["fr_test_mixed"] == pytest.approx(float(given.split()[-1]))


# B2 of 2022, summary at 2000eb5: EER of the twelve lists, original and protected, in the order of
# the file; words: errors, words, insertions, deletions, substitutions, path; pitch; G_VD.
ALL = [f"{part}_{split}" for split in ("dev", "test") for part in ("libri", "vctk")]


def lists_of_2022(vctk: str) -> list[tuple[str, str]]:
    """Sets, and lists of women and men; vctk: their order for VCTK."""
    return [
        (data, f"{data}_trials_{who}")
        for data in ALL
        for who in (vctk if data.startswith("vctk") else "f m").split()
    ]


def kaldi_line(row: str) -> tuple[str, str]:
    """Set and %WER line of a row of KNOWN.WORDS_22."""
    name, wer, errors, words, ins, dels, subs, model, best = row.split()
    counts = f"[ {errors} / {words}, {ins} ins, {dels} del, {subs} sub ]"
    path = f"exp/models/{model}/decode_{name}_tglarge/wer_{best}"
    return f"ASR-{name}", f"%WER {wer} {counts} {path}"


def summary_2022() -> str:
    plain = lists_of_2022("f m f_common m_common")
    by_name = lists_of_2022("f f_common m m_common")
    lines = [
        f"ASV-{data}_enrolls-{name}  EER: {eer}%"
        for (data, name), eer in zip(plain, KNOWN.ORIGINAL_22.split(), strict=True)
    ]
    lines += [
        f"ASV-{data}_enrolls_anon-{name}_anon  EER: {eer}%"
        for (data, name), eer in zip(by_name, KNOWN.PROTECTED_22.split(), strict=True)
    ]
    lines += ["  ".join(kaldi_line(row)) for row in KNOWN.WORDS_22.strip().splitlines()]
    mean, std = KNOWN.PITCH_22.split()[::2], KNOWN.PITCH_22.split()[1::2]
    lines += [
        f"{name}  Pitch_correlation: mean={m} std={s}"
        for (_, name), m, s in zip(plain, mean, std, strict=True)
    ]
    lines += [
        f"{name}  Gain of voice distinctiveness : {gain}"
        for (_, name), gain in zip(plain, KNOWN.G_VD_22.split(), strict=True)
    ]
    return "\n".join(lines) + "\n" + KNOWN.MEANS_22  # fmt: skip


def test_M1_M2_the_summary_of_2022_is_read_averaged_and_written_again(read):
    text = summary_2022()
    asked, scores, _ = read("vpc2022", text, 4762)
    assert write_summary(scores, asked) == text
    said = "\n".join(conclusions(scores, asked))
    assert "dev: average EER 6.529 %" in said and "not measured" not in said
    assert "Average WER test anon: 9.030" in said
    assert "Weighted average pitch correlation dev: 0.608" in said


def results_2020() -> str:
    found: dict[str, list[str]] = {}
    for name, figures in KNOWN.LISTS_20.items():
        data, rows = name.partition("_trials")[0], figures.split()
        for n, (enrol, trial) in enumerate((("", ""), ("", "_anon"), ("_anon", "_anon"))):
            eer, cllr, rocch = rows[3 * n : 3 * n + 3]
            found[f"ASV-{data}_enrolls{enrol}-{name}{trial}"] = [
                f"  EER: {eer}%", f"  Cllr (min/act): {cllr}", f"  ROCCH-EER: {rocch}%",
            ]  # fmt: skip
    lines = [line for title in sorted(found) for line in (title, *found[title])]
    return "\n".join(lines) + "\n" + KNOWN.WORDS_20


def test_M1_W14_results_of_2020_are_read_and_written_and_not_averaged(read):
    text = results_2020()
    asked, scores, _ = read("vpc2020", text)
    assert write_full(scores, asked) == text
    ignorant = [s.value for s in scores if s.what == "eer" and s.attacker == "ignorant"]
    assert ignorant == pytest.approx([0.5028, 0.5533, 0.5])
    said = "\n".join(conclusions(scores, asked))
    assert (
        "average EER" not in said.replace("no average", "") and "libri_dev_f: EER 35.090 %" in said
    )


def test_M1_results_of_2022_have_more_of_each_list_and_of_voices(read):
    """Linkability, ZEBRA, pitch and DeID of B2; and ZEBRA's least figures, which were 0.000."""
    text = """ASV-libri_dev_enrolls_anon-libri_dev_trials_m_anon
  EER: 1.398%
  Cllr (min/act): 0.044/6.961
  ROCCH-EER: 1.250%
  linkability: 0.965361
  Population: 0.688 bit
  Individual: 4.035 (D)
ASV-vctk_dev_enrolls-vctk_dev_trials_m_anon
  EER: 54.69%
  Population: 8e-05 bit
  Individual: 2e-04 (A)
ASV-vctk_dev_enrolls-vctk_dev_trials_m_common_anon
  EER: 53.56%
  Population: 5e-04 bit
  Individual: 0.001 (A)
ASV-vctk_test_enrolls-vctk_test_trials_m_anon
  EER: 54.25%
  Population: 0 bit
  Individual: 2e-04 (A)
libri_dev_trials_m  Pitch_correlation: mean=0.5291 std=0.2042
libri_dev_trials_m
  De-Identification : 0.8604107607623659
  Gain of voice distinctiveness : -1.6493264384897122
"""
    asked, scores, _ = read("vpc2022", text)
    assert write_full(scores, asked) == text


def test_the_original_evaluator_of_2022_counted_as_the_semi_informed_one(read):
    """results.orig has protected enrolment and trials, too: 43 %, which no attacker who learnt
    left; and results.txt has OA by that attacker, which was taken for the ignorant one's."""
    found = {}
    for name, figures in KNOWN.BY_BOTH.items():
        rows, lines = figures.split(), []
        for n, (enrol, trial) in enumerate((("", ""), ("", "_anon"), ("_anon", "_anon"))):
            eer, cllr, rocch, link, d_ece, l_w = rows[6 * n : 6 * n + 6]
            lines += [
                f"ASV-libri_dev_enrolls{enrol}-libri_dev_trials_f{trial}", f"  EER: {eer}%",
                f"  Cllr (min/act): {cllr}", f"  ROCCH-EER: {rocch}%", f"  linkability: {link}",
                f"  Population: {d_ece} bit",
                f"  Individual: {l_w} ({'B' if l_w == '1.823' else 'C'})",
            ]  # fmt: skip
        text = "\n".join(lines) + "\n" + KNOWN.WORDS_OF_BOTH
        asked, scores, _ = read("vpc2022", text, name=name)
        assert write_full(scores, asked, original="orig" in name) == text
        found[name] = {s.attacker: round(100 * s.value, 3) for s in scores if s.what == "eer"}
        # The words of original speech are not by the original recogniser.
        assert "Average WER dev orig" not in "".join(conclusions(scores, asked))
    assert found["results.orig_mcadams"] == {
        "unprotected": 8.665, "ignorant": 39.77, "lazy_informed": 43.32,
    }  # fmt: skip
    assert found["results.anon_mcadams"] == {
        "semi_informed_OO": 14.91, "semi_informed_OA": 17.05, "semi_informed": 11.36,
    }  # fmt: skip
