"""Result files of the challenges, made from the figures that their repositories publish.

The columns are laid out here by their widths in those files. With `n_chars`, the length of the
published file, a slip in a figure or a column shows.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from local.protocols.attackers import Protocol, read_protocol
from local.report.challenge import (
    averages,
    conclusions,
    parse_rank,
    read_results,
    write_full,
    write_rank,
    write_summary,
)

PROTOCOLS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/protocols"


def protocol(name: str) -> Protocol:
    return read_protocol(PROTOCOLS / f"{name}.yaml")


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
FELT = ("69.0796 63.6292 65.9652 79.7770 66.9476", "71.0618 72.5706 71.6618 72.8246 67.1912")
EMOTIONS = "sad neu ang hap"
# By baseline of 2024, as of 400de3a: time, time, UAR and recalls, WER of dev, test; of protected
# speech EER of dev f, m, test f, m; their averages. (B4 was written by hand, without times.)
OF_2024 = {
    "B1": ("30-03-24_16:47", "30-03-24_16:34",
           "42.7104 0.2564 34.0306 78.8834 57.6706", "42.7792 2.7756 37.9746 72.5130 57.8536",
           "1.807 3.069 1.844 2.911", "10.937 7.454 7.474 4.675", (9.1955, 6.0745)),
    "B2": ("28-03-24_19:00", "28-03-24_21:23",
           "55.6146 32.9580 57.9720 64.4438 67.0860", "53.4914 32.7760 66.2338 56.9720 57.9826",
           "1.807 10.482 1.844 9.994", "12.910 2.045 7.483 1.557", (7.4775, 4.52)),
    "B3": ("29-03-24_11:04", "29-03-24_10:16",
           "38.0880 0.7318 34.4486 70.5388 46.6336", "37.5698 0.6452 41.8290 66.0860 41.7182",
           "1.807 4.288 1.844 4.352", "28.426 22.044 27.920 26.724", (25.235, 27.322)),
    "B4": ("", "",
           "41.9682 9.0332 41.8782 63.2240 53.7358", "42.7800 11.2610 46.6822 61.5376 51.6390",
           "1.805 6.146 1.846 5.899", "34.378 31.056 29.378 31.155", (32.717, 30.2665)),
    "B5": ("28-03-24_23:14", "29-03-24_01:11",
           "38.0806 7.5442 49.1112 62.0502 33.6172", "38.1660 5.0686 55.3002 56.1994 36.0962",
           "1.807 4.731 1.844 4.369", "35.816 32.918 33.946 34.729", (34.367, 34.3375)),
    "B6": ("29-03-24_06:11", "29-03-24_08:11",
           "36.3890 2.5762 15.2514 49.7680 77.9604", "36.1314 1.5924 24.4944 46.7240 71.7136",
           "1.807 9.710 1.844 9.101", "25.141 20.961 21.146 21.137", (23.051, 21.1415)),
}  # fmt: skip
N_CHARS = {"B1": 1272, "B2": 1277, "B3": 1272, "B5": 1272, "B6": 1272}


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
    first, second, dev, test, wers, eers, _ = OF_2024[name]
    original = listed(LIBRI, "original", "10.511 0.931 8.761 0.418", "0 3 6 9")
    blocks = [
        f"---- Time: {first} ----", felt(EMOTIONS, dev, FELT[0], test, FELT[1]),
        table("ASV_eval", "1 8 6 7 11 10 8", LISTS, *original), heard(wers, "0 4 1 5"),
        f"---- Time: {second} ----",
        table("ASV_eval^anon", "2 8 6 7 11 6 8", LISTS, *listed(LIBRI, "anon", eers, "2 5 8 11")),
    ]  # fmt: skip
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("name", OF_2024)
def test_2024s_published_tables_are_read_averaged_and_written_again(
    tmp_path: Path, name: str
) -> None:
    text = made_2024(name)
    assert len(text) == N_CHARS.get(name, len(text))
    path = tmp_path / "result_for_rank"
    path.write_text(text)
    asked = protocol("vpc2024")
    scores = read_results(path, asked)
    found = averages(scores, asked.privacy)
    expected = OF_2024[name][-1]
    assert [100 * found[k] for k in ("libri_dev", "libri_test")] == pytest.approx(expected)
    assert str(parse_rank(path)) == text
    assert write_rank(scores, asked, OF_2024[name][:2]) == text  # from the figures alone


MIXED = ["libri|dev|mixed", "libri|test|mixed"]
IN_2026 = "sad ang hap neu"
FELT_2026 = ("69.0796 63.6292 79.7770 66.9476 65.9652", "71.0618 72.5706 72.8246 67.1912 71.6618")
# By baseline of track 1 in September 2026, as OF_2024; EER of the attacker as given, and tuned.
OF_2026 = {
    "B3": ("38.4738 0.9088 71.6680 48.5806 32.7378", "37.7046 0.6452 65.3920 44.6510 40.1310",
           "1.802 4.163 1.844 4.258", "26.031 19.057", "16.321 14.243", 1, 984),
    "B4": ("41.9682 9.0332 63.2240 53.7358 41.8782", "42.7800 11.2610 61.5376 51.6390 46.6822",
           "1.802 6.161 1.844 5.901", "19.733 14.644", "15.281 11.133", 1, 984),
    "B5": ("38.8284 6.8442 59.8946 36.3336 52.2414", "38.0868 5.7258 57.5190 34.8842 54.2182",
           "1.802 4.821 1.844 4.526", "30.942 25.654", "20.048 17.051", 0, 983),
}  # fmt: skip
TIME_2026 = "31-08-26_12:51"


@pytest.mark.parametrize("name", OF_2026)
def test_W2_of_2026_only_the_fine_tuned_attacker_is_averaged(tmp_path: Path, name: str) -> None:
    dev, test, wers, given, tuned, behind, n_chars = OF_2026[name]
    widths, stamp = "1 8 6 7 11 6 8", f"---- Time: {TIME_2026} ----"
    text = "\n\n".join([
        stamp, felt(IN_2026, dev, FELT_2026[0], test, FELT_2026[1], mean=False),
        table("ASV_eval", widths, LISTS, *listed(MIXED, "anon", given, "0 1")),
        heard(wers, "0 1 2 3"), stamp,
        table("ASV_eval^anon", widths, LISTS, *listed(MIXED, "anon", tuned, "0 1")),
    ]) + "\n" * (1 + behind)  # fmt: skip
    assert len(text) == n_chars
    path = tmp_path / "result_for_rank"
    path.write_text(text)
    asked = protocol("vpc2026")
    scores = read_results(path, asked)
    found = averages(scores, asked.privacy)
    assert [100 * value for value in found.values()] == pytest.approx([*map(float, tuned.split())])
    lazy = averages(scores, asked.privacy, attacker="lazy_informed")
    assert [100 * value for value in lazy.values()] == pytest.approx([*map(float, given.split())])
    assert str(parse_rank(path)) == text
    assert write_rank(scores, asked, [TIME_2026]) == text.rstrip("\n") + "\n"


def test_W2_half_a_file_of_2026_has_no_average(tmp_path: Path) -> None:
    """B2 of March: the attacker as given, and the tuned one on lists of women and men, too."""
    path, asked = tmp_path / "result_for_rank", protocol("vpc2026")
    first = "\n\n".join([
        "---- Time: 03-03-26_05:17 ----",
        felt(IN_2026, "55.6590 33.1350 64.4438 67.0860 57.9720", FELT_2026[0],
             "53.4914 32.7760 56.9720 57.9826 66.2338", FELT_2026[1]),
        table("ASV_eval", "2 8 6 7 11 6 8", LISTS,
              *listed(MIXED, "anon", "11.423 7.220", "8 17")),
        heard("1.802 10.439 1.844 9.959", "0 4 1 5"),
    ]) + "\n"  # fmt: skip
    path.write_text(first)
    half = read_results(path, asked)
    assert all(math.isnan(value) for value in averages(half, asked.privacy).values())
    said = "\n".join(conclusions(half, asked))  # it was passed off as the average that is ranked
    assert "11.423" not in said and "libri_dev: no average EER: not measured" in said
    six = [f"libri|{split}|{who}" for split in ("dev", "test") for who in ("f", "m", "mixed")]
    tuned = listed(six, "anon", "9.833 3.575 6.973 8.029 1.345 4.713", "2 5 8 11 14 17")
    second = "\n---- Time: 03-03-26_05:18 ----\n\n"
    second += table("ASV_eval^anon", "2 8 6 7 11 6 7", LISTS, *tuned) + "\n"
    assert len(first + second) == 1255
    path.write_text(first + second)
    found = averages(read_results(path, asked), asked.privacy)
    assert [100 * value for value in found.values()] == pytest.approx([6.973, 4.713])
    assert str(parse_rank(path)) == first + second


LANGUAGES = ("de", "en", "es", "fr")
# BM1 and BM2 of track 2. EER and words of dev, test by language; numbers of rows; EER tuned.
BM1 = (
    "41.299 41.463 75.090 5.166 43.478", "71.988 75.610 82.310 72.325 57.708",
    "42.630 39.615 70.213 12.830 47.863", "78.904 68.077 90.638 83.396 73.504",
    "8.309 11.494 2.758 5.259 13.189 8.578 9.931 11.199", "8 11 2 5 20 23 14 17",
    "5.246 7.807 5.381 9.381 4.574 7.397 5.455 8.538 "
    "3.788 6.153 3.751 6.211 5.802 12.417 5.134 9.928",
)  # fmt: skip
TUNED = {
    "en": ("06-06-26_05:22", "1.398 3.734"), "de": ("06-06-26_12:31", "1.431 1.750"),
    "es": ("06-06-26_16:17", "1.631 1.830"), "fr": ("06-06-26_19:25", "2.103 2.630"),
}  # fmt: skip


def test_M4_a_file_of_track_2_has_a_section_for_each_language(tmp_path: Path) -> None:
    four = [f"{language}|{split}|mixed" for language in LANGUAGES for split in ("dev", "test")]
    words = [f"{one[:-6]}|{kind}" for one in four for kind in ("original", "anon")]
    numbers = map(str, (2, 10, 3, 11, 0, 8, 1, 9, 6, 14, 7, 15, 4, 12, 5, 13))
    rows = map("|".join, zip(numbers, words, BM1[6].split(), strict=True))
    moved = felt("hap neu ang sad", *BM1[:4], mean=True, widths="1 9 6 10 8 8 8 8 8")
    blocks = [
        "---- Time: 13-06-26_05:45 ----", moved.replace("IEMOCAP", "emodata"),
        table("ASV_eval", "2 8 6 7 11 6 8", LISTS, *listed(four, "anon", BM1[4], BM1[5])),
        table("ASR", "2 8 6 10 8", "|dataset|split|asr|WER", *rows),
    ]  # fmt: skip
    for language, (stamp, eers) in TUNED.items():
        own = [f"{language}|{split}|mixed" for split in ("dev", "test")]
        rows_of = [row.partition("|")[2] for row in listed(own, "anon", eers, "0 0")]
        named = "dataset|split|gender|enrollment|trial|EER"
        # Without a number in front, the first column is to the right, too.
        body = table("ASV_eval^anon", "0 7 6 7 11 6 6", *(f"|{r}" for r in (named, *rows_of)))
        blocks += [f"---- Time: {stamp} ----", body]
    text = "\n\n".join(blocks) + "\n\n"
    assert len(text) == 2332
    path, asked = tmp_path / "result_for_rank_BM1", protocol("vpc2026_track2")
    path.write_text(text)
    assert str(parse_rank(path)) == text
    scores = read_results(path, asked)
    found = averages(scores, asked.privacy)
    assert 100 * found["fr_test"] == pytest.approx(2.63) and len(found) == 8
    stamps = ["13-06-26_05:45", *(stamp for stamp, _ in TUNED.values())]
    assert write_rank(scores, asked, stamps) == text


# BM2 and BM3 of March 2026: time, emotions, EER of the attacker as given, words.
MARCH = {
    "BM2": ("03-03-26_01:10", "27.133 19.106 47.653 23.985 17.787",
            "29.044 20.000 46.383 24.151 25.641",
            "28.044 28.998 12.146 13.655 31.078 27.613 28.068 30.637",
            "27.615 30.500 16.044 18.638 25.079 31.324 51.511 43.504"),
    "BM3": ("03-03-26_03:05", "26.242 14.228 77.617 4.428 8.696",
            "24.843 11.538 71.489 5.660 10.684",
            "48.892 48.334 37.454 37.555 48.296 49.035 47.677 48.539",
            "31.862 32.313 14.128 15.105 17.526 16.765 25.796 23.684"),
}  # fmt: skip


@pytest.mark.parametrize("name", MARCH)
def test_M4_files_of_march_2026_are_read_and_written_again(tmp_path: Path, name: str) -> None:
    """Then lists of women and men stood between the mixed ones, which left their row numbers."""
    stamp, dev, test, given, words = MARCH[name]
    original = ("72.087 75.610 82.310 72.325 58.103", "78.904 68.077 90.638 83.396 73.504")
    said = ["5.881", "5.972", "5.551", "6.570", "4.629", "4.440", "6.673", "5.837"]
    four = [f"{language}|{split}|mixed" for language in LANGUAGES for split in ("dev", "test")]
    heard = [figure for pair in zip(said, words.split(), strict=True) for figure in pair]
    rows = [f"{one[:-6]}|{kind}" for one in four for kind in ("original", "anon")]
    numbers = map(str, (2, 10, 3, 11, 0, 8, 1, 9, 6, 14, 7, 15, 4, 12, 5, 13))
    moved = felt("hap neu ang sad", dev, original[0], test, original[1],
                 widths="1 9 6 10 8 8 8 8 8")  # fmt: skip
    own = listed(four, "anon", given, "26 35 8 17 62 71 44 53")
    text = "\n\n".join([
        f"---- Time: {stamp} ----", moved.replace("IEMOCAP", "emodata"),
        table("ASV_eval", "2 8 6 7 11 6 8", LISTS, *own),
        table("ASR", "2 8 6 10 8", "|dataset|split|asr|WER",
              *map("|".join, zip(numbers, rows, heard, strict=True))),
    ]) + "\n"  # fmt: skip
    assert len(text) == 1543
    path = tmp_path / f"result_for_rank_{name}"
    path.write_text(text)
    assert str(parse_rank(path)) == text
    lazy = {s.split: s.value for s in read_results(path, protocol("vpc2026_track2"))
            if s.attacker == "lazy_informed"}  # fmt: skip
    assert 100 * lazy["fr_test_mixed"] == pytest.approx(float(given.split()[-1]))


# B2 of 2022, summary at 2000eb5: EER of the twelve lists, original and protected, in the order of
# the file; words: errors, words, insertions, deletions, substitutions, path; pitch; G_VD.
ALL = [f"{part}_{split}" for split in ("dev", "test") for part in ("libri", "vctk")]
ORIGINAL_22 = "8.665 1.242 2.864 1.439 2.616 1.425 7.664 1.114 4.887 2.067 2.89 1.13"
PROTECTED_22 = "11.36 1.398 6.682 5.814 6.352 8.832 7.117 1.114 16.92 10.98 7.692 4.802"
WORDS_22 = """
libri_dev_asr 3.82 1518 39783 185 140 1193 asr_eval 13_0.0
libri_test_asr 4.15 1453 35042 174 157 1122 asr_eval 12_1.0
vctk_dev_asr 10.79 9348 86627 993 1354 7001 asr_eval 14_0.5
vctk_test_asr 12.82 11104 86642 1300 1472 8332 asr_eval 14_0.0
libri_dev_asr_anon 4.32 1719 39783 205 150 1364 user_asr_eval_anon 12_0.0
libri_test_asr_anon 4.58 1606 35042 212 147 1247 user_asr_eval_anon 12_0.5
vctk_dev_asr_anon 11.76 10186 86627 1273 1205 7708 user_asr_eval_anon 14_0.0
vctk_test_asr_anon 13.48 11678 86642 1368 1486 8824 user_asr_eval_anon 13_0.0
"""
PITCH_22 = """0.6374 0.1711 0.5291 0.2042 0.6954 0.1444 0.5916 0.1829 0.6437 0.1697 0.5439 0.1889
0.6089 0.1574 0.5419 0.1811 0.6836 0.1469 0.6637 0.1751 0.6511 0.1300 0.6140 0.1691"""
G_VD_22 = """-1.939460000444101 -1.6493264384897122 -1.3215550931156284 -2.1815677494861125
-1.1415902930439583 -1.3246512454922792 -1.7054074286432193 -1.7374127228641643
-1.562397882310541 -1.5615648713693606 -1.5905810649339058 -1.3635334649585955"""
MEANS_22 = """Weighted average EER dev orig: 3.539
Weighted average EER test orig: 3.786
Weighted average EER dev anon: 6.529
Weighted average EER test anon: 7.769
Average WER dev orig: 7.305
Average WER test orig: 8.485
Average WER dev anon: 8.040
Average WER test anon: 9.030
Weighted average pitch correlation dev: 0.608
Weighted average pitch correlation test: 0.620
Weighted average gain of voice distinctiveness dev: -1.721
Weighted average gain of voice distinctiveness test: -1.633
"""


def lists_of_2022(vctk: str) -> list[tuple[str, str]]:
    """Sets, and lists of women and men; vctk: their order for VCTK."""
    return [
        (data, f"{data}_trials_{who}")
        for data in ALL
        for who in (vctk if data.startswith("vctk") else "f m").split()
    ]


def kaldi_line(row: str) -> tuple[str, str]:
    """Set and %WER line of a row of WORDS_22."""
    name, wer, errors, words, ins, dels, subs, model, best = row.split()
    counts = f"[ {errors} / {words}, {ins} ins, {dels} del, {subs} sub ]"
    path = f"exp/models/{model}/decode_{name}_tglarge/wer_{best}"
    return f"ASR-{name}", f"%WER {wer} {counts} {path}"


def summary_2022() -> str:
    plain = lists_of_2022("f m f_common m_common")
    by_name = lists_of_2022("f f_common m m_common")
    lines = [
        f"ASV-{data}_enrolls-{name}  EER: {eer}%"
        for (data, name), eer in zip(plain, ORIGINAL_22.split(), strict=True)
    ]
    lines += [
        f"ASV-{data}_enrolls_anon-{name}_anon  EER: {eer}%"
        for (data, name), eer in zip(by_name, PROTECTED_22.split(), strict=True)
    ]
    lines += ["  ".join(kaldi_line(row)) for row in WORDS_22.strip().splitlines()]
    mean, std = PITCH_22.split()[::2], PITCH_22.split()[1::2]
    lines += [
        f"{name}  Pitch_correlation: mean={m} std={s}"
        for (_, name), m, s in zip(plain, mean, std, strict=True)
    ]
    lines += [
        f"{name}  Gain of voice distinctiveness : {gain}"
        for (_, name), gain in zip(plain, G_VD_22.split(), strict=True)
    ]
    return "\n".join(lines) + "\n" + MEANS_22  # fmt: skip


def test_M1_M2_the_summary_of_2022_is_read_averaged_and_written_again(tmp_path: Path) -> None:
    text = summary_2022()
    assert len(text) == 4762
    path, asked = tmp_path / "results_summary.txt", protocol("vpc2022")
    path.write_text(text)
    scores = read_results(path, asked)
    assert write_summary(scores, asked) == text
    said = "\n".join(conclusions(scores, asked))
    assert "dev: average EER 6.529 %" in said and "not measured" not in said
    assert "Average WER test anon: 9.030" in said
    assert "Weighted average pitch correlation dev: 0.608" in said


# B1 of 2020 as 2022's repository keeps it: EER, Cllr, ROCCH-EER by OO, OA, AA.
LISTS_20 = {
    "libri_dev_trials_f": "8.665 0.304/42.857 8.600 50.28 0.997/146.010 48.860 "
                          "35.09 0.876/15.194 34.205",
    "vctk_dev_trials_m": "1.439 0.052/1.158 1.389 55.33 1.000/166.495 49.989 "
                         "26.1 0.756/18.811 25.996",
    "vctk_test_trials_f_common": "2.89 0.091/0.866 2.749 50 0.995/157.810 48.132 "
                                 "30.92 0.829/9.493 30.111",
}  # fmt: skip
WORDS_20 = """ASR-libri_dev_asr
  %WER 5.25 [ 2089 / 39783, 172 ins, 250 del, 1667 sub ] exp/models/a_tgsmall/wer_12_0.5
  %WER 3.83 [ 1522 / 39783, 187 ins, 139 del, 1196 sub ] exp/models/a_tglarge/wer_13_0.0
ASR-libri_dev_asr_anon
  %WER 9.15 [ 3639 / 39783, 288 ins, 529 del, 2822 sub ] exp/models/a_tgsmall/wer_14_0.0
  %WER 6.50 [ 2586 / 39783, 271 ins, 308 del, 2007 sub ] exp/models/a_tglarge/wer_14_0.0
"""


def results_2020() -> str:
    found: dict[str, list[str]] = {}
    for name, figures in LISTS_20.items():
        data, rows = name.partition("_trials")[0], figures.split()
        for n, (enrol, trial) in enumerate((("", ""), ("", "_anon"), ("_anon", "_anon"))):
            eer, cllr, rocch = rows[3 * n : 3 * n + 3]
            found[f"ASV-{data}_enrolls{enrol}-{name}{trial}"] = [
                f"  EER: {eer}%", f"  Cllr (min/act): {cllr}", f"  ROCCH-EER: {rocch}%",
            ]  # fmt: skip
    lines = [line for title in sorted(found) for line in (title, *found[title])]
    return "\n".join(lines) + "\n" + WORDS_20


def test_M1_W14_results_of_2020_are_read_and_written_and_not_averaged(tmp_path: Path) -> None:
    text = results_2020()
    path, asked = tmp_path / "results.txt", protocol("vpc2020")
    path.write_text(text)
    scores = read_results(path, asked)
    assert write_full(scores, asked) == text
    ignorant = [s.value for s in scores if s.what == "eer" and s.attacker == "ignorant"]
    assert ignorant == pytest.approx([0.5028, 0.5533, 0.5])
    said = "\n".join(conclusions(scores, asked))
    assert (
        "average EER" not in said.replace("no average", "") and "libri_dev_f: EER 35.090 %" in said
    )


def test_M1_results_of_2022_have_more_of_each_list_and_of_voices(tmp_path: Path) -> None:
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
    path, asked = tmp_path / "results.txt", protocol("vpc2022")
    path.write_text(text)
    assert write_full(read_results(path, asked), asked) == text


# B2 of 2022, libri_dev, women: EER, Cllr, ROCCH-EER, linkability, ZEBRA by OO, OA, AA, of the
# evaluator trained on original and on protected speech; and words by the latter's recogniser.
BY_BOTH = {
    "results.orig_mcadams": "8.665 0.304/42.857 8.600 0.801426 0.492 3.829 "
    "39.77 0.880/124.371 38.653 0.261006 0.082 2.807 "
    "43.32 0.864/34.972 39.816 0.214581 0.096 1.823",
    "results.anon_mcadams": "14.91 0.466/12.520 14.793 0.661233 0.375 3.452 "
    "17.05 0.509/39.294 16.761 0.625003 0.344 3.416 "
    "11.36 0.368/28.863 11.026 0.741828 0.446 3.799",
}
WORDS_OF_BOTH = """ASR-libri_dev_asr
  %WER 4.19 [ 1666 / 39783, 214 ins, 134 del, 1318 sub ] exp/models/user_asr_eval_anon/a/wer_11_0.0
ASR-libri_dev_asr_anon
  %WER 4.32 [ 1719 / 39783, 205 ins, 150 del, 1364 sub ] exp/models/user_asr_eval_anon/a/wer_12_0.0
"""


def test_the_original_evaluator_of_2022_counted_as_the_semi_informed_one(tmp_path: Path) -> None:
    """results.orig has protected enrolment and trials, too: 43 %, which no attacker who learnt
    left; and results.txt has OA by that attacker, which was taken for the ignorant one's."""
    asked, found = protocol("vpc2022"), {}
    for name, figures in BY_BOTH.items():
        rows, lines = figures.split(), []
        for n, (enrol, trial) in enumerate((("", ""), ("", "_anon"), ("_anon", "_anon"))):
            eer, cllr, rocch, link, d_ece, l_w = rows[6 * n : 6 * n + 6]
            lines += [
                f"ASV-libri_dev_enrolls{enrol}-libri_dev_trials_f{trial}", f"  EER: {eer}%",
                f"  Cllr (min/act): {cllr}", f"  ROCCH-EER: {rocch}%", f"  linkability: {link}",
                f"  Population: {d_ece} bit",
                f"  Individual: {l_w} ({'B' if l_w == '1.823' else 'C'})",
            ]  # fmt: skip
        text = "\n".join(lines) + "\n" + WORDS_OF_BOTH
        (tmp_path / name).write_text(text)
        scores = read_results(tmp_path / name, asked)
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
