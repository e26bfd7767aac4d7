"""Real-time factors read off hand-made logs: what is not in a log is not measured."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from local.collect_results import main as collect
from local.make_report import main as make_report
from local.report import gather as timing
from local.report.gather import ALL, TimedStage, cost_of, read_stages
from tests.refusals import refuses
from utils.launching import Account, read_account


def timings(stages: Sequence[TimedStage], corpus: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(**row) for row in timing.timings(stages, corpus)]


def write_log(path: Path, seconds: str, part: str = "", code: int = 0, threads: int = 1) -> None:
    """With whole seconds as other launchers write it, else with those of the last line."""
    exact = f", elapsed time {seconds} seconds" if "." in seconds else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"# steps/x.py 'a b' data/s{part} exp/x{part}\n# Started at Sun Nov 22 00:00:00 2026\n#\n"
        f"# Accounting: time=9 threads=9\nsaid by the program itself\n"
        f"# Accounting: time={float(seconds):.0f} threads={threads}\n"
        f"# Ended (code {code}) at Sun 2026{exact}\n"
    )


def say(log: Path, line: str) -> None:
    """Put a line of the program itself into its log."""
    log.write_text(log.read_text().replace("said by the program itself", line))


def write_step(folder: Path, host: str = "here") -> Path:
    """Two jobs of 1.5 s and 2 s, then one of 0.5 s."""
    write_log(folder / "log/x.1.log", "1.50", "/split2/1")
    write_log(folder / "log/x.2.log", "2", "/split2/2", threads=2)
    write_log(folder / "log/y.log", "0.5")
    (folder / ".done").write_text(json.dumps({"host": host}))
    return folder


def write_audio(folder: Path, *seconds: float) -> Path:
    folder.mkdir(parents=True)
    (folder / "utt2dur").write_text("".join(f"u{i} {s}\n" for i, s in enumerate(seconds)))
    return folder


def test_a_step_by_hand(tmp_path: Path) -> None:
    folder = write_step(tmp_path / "x")
    assert read_account(folder / "log/x.2.log") == Account(2.0, 2, 0)
    assert read_account(folder / "log/x.9.log") is None
    found = cost_of(folder)
    assert (found.seconds, found.jobs, found.threads) == (4.0, 2, 2)
    # What an interrupted run with more jobs left counts nothing; nor does a job's first try.
    write_log(folder / "log/x.3.log", "100", "/split4/3")
    (folder / "log/x.1.log.bak").write_text("# Ended (code 1)")
    assert cost_of(folder) == found
    audio = [write_audio(tmp_path / "a", 5, 3), write_audio(tmp_path / "b", 8)]
    other = write_step(tmp_path / "y", "there")
    rows = timings([TimedStage("b2", "f0", audio, [folder, other])], "toy")
    assert [(r.rtf, r.seconds, r.audio_seconds, r.jobs, r.hosts, r.missing) for r in rows] == [
        ("0.5", "8.00", "16.00", "2", "here there", "")
    ]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: (f / "log/y.log").write_text("# y\n# Started\n"), "does not end well"),
        (lambda f: (f / "log/x.1.log").unlink(), "x.1.log: is missing"),
        (lambda f: (f / "log/x.2.log").unlink(), "x.2.log: is missing"),
        (lambda f: write_log(f / "log/x.2.log", "2", "/split2/2", code=1), "does not end well"),
        (lambda f: say(f / "log/y.log", "INFO resumed at step 250"), "goes on from a stopped run"),
        (
            lambda f: say(
                f / "log/y.log", "9 utterances recognised, 4 of them by a run that was ended before"
            ),
            "goes on from a stopped run",
        ),
        (lambda f: (f / ".done").unlink(), "has no stamp"),
        (lambda f: [p.unlink() for p in (f / "log").iterdir()], "holds no log"),
    ],
)
def test_what_no_log_says_is_not_measured(tmp_path: Path, spoil, why: str) -> None:  # type: ignore[no-untyped-def]
    folder, audio = write_step(tmp_path / "x"), write_audio(tmp_path / "a", 5)
    spoil(folder)
    refuses(why, cost_of, folder)
    (row,) = timings([TimedStage("b2", "f0", [audio], [folder])], "toy")
    assert row.rtf == row.seconds == "" and why in row.missing


def test_the_sum_and_the_transformation_alone(tmp_path: Path) -> None:
    audio = write_audio(tmp_path / "a", 4, 4)
    f0, protected, pool, attack, heard = (
        write_step(tmp_path / n) for n in ("f0", "p", "pool", "x", "w")
    )
    (heard / "seconds.tsv").write_text("#utt\tdecoder\tencoder\nu0\t1.5\t0.5\nu1\t0.5\t0.5\n")
    (protected / "pseudo.tsv").write_text("#utt\tkey\tseconds\nu0\tk\t0.25\nu1\tk\t0.75\n")
    stages = [
        TimedStage("b2", "f0", [audio], [f0], protects=True),
        TimedStage("b2", "protection", [audio], [protected], protects=True),
        TimedStage("b2", "pool", [audio], [pool]),
        TimedStage("b2", "attack", [audio], [attack]),
        TimedStage("copy", "protection", [tmp_path / "none"], [protected], protects=True),
        TimedStage("original", "words", [audio], [heard]),
    ]
    rows = {(r.system, r.stage): r for r in timings(stages, "toy")}
    assert next(iter(rows)) == ("original", "words")
    assert {key: row.rtf for key, row in rows.items()} == {
        ("original", "words"): "0.5",
        ("original", "words: encoder alone"): "0.125",
        ("original", "words: decoder alone"): "0.25",
        ("b2", "f0"): "0.5",
        ("b2", "protection"): "0.5",
        ("b2", "protection: transformation alone"): "0.125",
        ("b2", "pool"): "0.5",
        ("b2", "attack"): "0.5",
        ("b2", ALL): "1",
        **dict.fromkeys([("copy", "protection"), ("copy", ALL)], ""),
        ("copy", "protection: transformation alone"): "",
    }
    assert "none/utt2dur" in rows["copy", ALL].missing
    # A part of the sum that was not measured leaves no sum.
    (f0 / ".done").unlink()
    assert {r.rtf for r in timings(stages, "toy") if (r.system, r.stage) == ("b2", ALL)} == {""}


def test_a_folder_that_two_evaluators_share_was_counted_twice(tmp_path: Path) -> None:
    audio, folder = write_audio(tmp_path / "a", 8), write_step(tmp_path / "x")
    (row,) = timings(read_stages([], [("b2", "attack", str(audio), str(folder))] * 2), "toy")
    assert (row.rtf, row.seconds, row.audio_seconds) == ("0.5", "4.00", "8.00")


def test_from_logs_to_the_report(tmp_path: Path) -> None:
    audio, folder = write_audio(tmp_path / "a", 8), write_step(tmp_path / "x")
    words = ["--corpus-name", "toy"]
    words += ["--timed-each", "b2 <i>", "protection", str(audio), str(folder)]
    words += ["--timed-once", "b2 <i>", "pool", str(audio), str(tmp_path / "gone")]
    assert collect([*words, str(tmp_path / "results")]) == 0
    with (tmp_path / "results/rtf.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(r["stage"], r["rtf"]) for r in rows] == [
        ("protection", "0.5"), ("pool", ""), (ALL, "0.5")
    ]  # fmt: skip
    assert make_report([str(tmp_path / "results"), str(tmp_path / "report")]) == 0
    table = (tmp_path / "report/RESULTS.md").read_text()
    assert r"| b2 \<i> | protection | 0.5 | 4.0 | 8.0 | 2 | 2 | here |" in table
    assert rf"| b2 \<i> | pool | not measured: {tmp_path}/gone: has no stamp" in table
    page = (tmp_path / "report/report.html").read_text()
    assert "Real-time factors" in page and "b2 &lt;i&gt;" in page
    # Results of before there were real-time factors.
    (tmp_path / "results/rtf.csv").unlink()
    assert make_report([str(tmp_path / "results"), str(tmp_path / "report")]) == 0
    assert "Real-time factors." in (tmp_path / "report/RESULTS.md").read_text()
