"""The data directory tools: problems are found, nothing is lost silently, parts come together."""

import itertools
import os
import re
import shutil
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from tests.refusals import refuses
from utils.archives import read_vectors, write_archive
from utils.datachecks import validate_data_dir
from utils.datadir import load_data_dir, select, write_data_dir
from utils.digests import contents
from utils.parts import merge_parts, split_data_dir
from utils.tables import read_lines, write_map, write_timed

VALIDATE, FIX, SUBSET, COMBINE, COPY, CHECK_AUDIO = (
    f"utils/{name}.py"
    for name in (
        "validate_data_dir", "fix_data_dir", "subset_data_dir", "combine_data_dirs",
        "copy_data_dir", "check_audio",
    )
)  # fmt: skip


@pytest.fixture
def data(make_data_dir, tmp_path: Path) -> Path:
    """s1: s1-000 s1-001; s2: s2-000 s2-001 s2-002, who are enrolled beside it."""
    make_data_dir(tmp_path / "e_enrolls", seconds=0.2)
    return make_data_dir(tmp_path / "e_trials_mixed")


def edit(path: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, path.read_text(), flags=re.M)
    assert count
    path.write_bytes(text.encode())


def read(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.iterdir() if p.is_file()}


def problems(data: Path, **options: object) -> list[str]:
    found = validate_data_dir(data, **options)  # type: ignore[arg-type]
    return [str(problem).removeprefix(f"{data}/") for problem in found if problem.fatal]


def test_a_good_directory_is_valid_and_loads(data, run_program):
    trials = "s1 s1-000 target\ns1 s2-000 nontarget\ns2 s2-000 target\n"
    (data / "trials").write_text(trials)
    done = run_program(VALIDATE, data)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{data}: valid: 0 errors, 0 warnings\n"
    loaded = load_data_dir(data, need=("wav.scp", "spk2gender", "text", "utt2dur"))
    assert loaded.spk2utt == {"s1": ["s1-000", "s1-001"], "s2": ["s2-000", "s2-001", "s2-002"]}
    assert loaded.spk2gender == {"s1": "f", "s2": "m"}
    assert loaded.text and loaded.text["s1-001"] == "words of s1-001"
    assert loaded.utt2dur and loaded.utt2dur["s2-002"] == pytest.approx(0.12)
    assert loaded.trials == [tuple(line.split()) for line in trials.splitlines()]


def test_kaldis_table_of_channels_with_three_fields_was_refused(data):
    utts = load_data_dir(data).utt2spk
    (data / "reco2file_and_channel").write_text(
        "".join(f"{utt} call {'AB1'[i % 3]}\n" for i, utt in enumerate(utts))
    )
    assert not problems(data)
    assert load_data_dir(data).tables["reco2file_and_channel"]["s1-001"] == "call B"


def test_people_of_another_sex_are_kept(data):
    edit(data / "spk2gender", "^s2 .*", "s2 O")
    assert not problems(data)
    assert load_data_dir(data).spk2gender == {"s1": "f", "s2": "other"}


def test_several_directories_are_all_looked_at(make_data_dir, tmp_path, run_program):
    good, bad = make_data_dir(tmp_path / "good"), make_data_dir(tmp_path / "bad")
    (bad / "spk2utt").unlink()
    done = run_program(VALIDATE, bad, good, status=2)
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == ["not valid", "valid"]
    run_program(VALIDATE, good, good, status=0)


# Named after the silent failures of Kaldi's validate_data_dir.sh.
BROKEN = yaml.safe_load(Path(__file__).with_name("broken_data.yaml").read_text())


@pytest.mark.parametrize("name", BROKEN)
def test_each_problem_is_found(data, run_program, name):
    if name.startswith("segments"):  # were compared beside text only
        (data / "text").unlink()
    file, pattern, replacement, found, refused = BROKEN[name]
    (data / file).touch()
    edit(data / file, pattern, replacement)
    assert [text for text in problems(data) if re.match(found, text)]
    assert re.search(found, run_program(VALIDATE, data, status=2).stderr)
    if refused:
        refuses(found if name != "utterance without speaker" else "s1-001", load_data_dir, data)


def test_what_only_make_trials_refuses_was_valid(make_data_dir, tmp_path):
    """Sets of a prepare.sh of one's own: men among women, and enrolment speech in the trials, under
    its own id or another."""
    home, trials = (make_data_dir(tmp_path / f"e_{name}") for name in ("enrolls", "trials_f"))
    (trials / "trials").write_text("s1 s1-000 target\ns1 s1-001 target\ns1 s2-000 nontarget\n")
    (home / "enrolls").write_text("s1-001\n")
    shutil.copy(trials / "wav/s2-000.wav", home / "wav/s1-001.wav")
    same = f"s2-000 is the same recording as s1-001 of {home}/wav.scp"
    assert problems(trials) == [
        "spk2gender:2: speaker s2 is m, but the name of the folder says f; make the set again",
        f"wav.scp:3: {same}; leave one out, or a trial compares it with itself",
        "trials:2: s1-001 is also an enrolment utterance; make the trials again",
    ]


def test_all_problems_in_one_run(data, run_program, monkeypatch):
    monkeypatch.setattr("utils.validate_data_dir.MOST", 2)
    for name in ("utt2spk with three fields", "CRLF", "gender", "audio that is not there"):
        edit(data / BROKEN[name][0], *BROKEN[name][1:3])
    done = run_program(VALIDATE, data)
    for part in ("utt2spk:2: ", "text:1: ", "text:2: ", "spk2gender:1: ", "wav.scp:2: "):
        assert f"error: {data}/{part}" in done.stderr
    assert "text:3:" not in done.stderr
    assert f"{data}/text: 4 more of this kind (CRLF)" in done.stderr
    assert re.search(r"not valid: \d+ errors, 0 warnings", done.stdout)


def test_bad_audio_is_found_and_other_rates_are_counted(data, run_program):
    wav = data / "wav"
    (wav / "s1-000.wav").write_bytes(b"")
    (wav / "s1-001.wav").write_bytes(b"no audio at all")
    soundfile.write(wav / "s2-000.wav", np.zeros(0), 16000)
    soundfile.write(wav / "s2-001.wav", np.zeros((1600, 2)), 16000)
    soundfile.write(wav / "s2-002.wav", np.zeros(960), 8000)
    found = validate_data_dir(data)
    assert [(p.line, p.kind) for p in found if p.fatal] == [(n, "audio") for n in (1, 2, 3, 4)]
    for problem, words in zip(found, (
        "cannot be read as audio", "", "no samples (zero length)", "2 channels",
        "1 of 5 files are sampled at 8000 Hz",
    ), strict=True):  # fmt: skip
        assert words in problem.message
    run_program(VALIDATE, "--no-audio", data, status=0)
    done = run_program(CHECK_AUDIO, data, data / "out", status=2)
    assert done.stderr.count("wav.scp: s") == 4
    assert "4 of 5 audio files cannot be used" in done.stderr
    assert not (data / "out").exists()


def test_durations_and_rates_are_reported(make_data_dir, tmp_path, run_program):
    """A message on a part names the whole, from which the part is made anew."""
    data = make_data_dir(tmp_path / "data/split2/1", {"s1": 3}, rate=8000, seconds=1.0)
    done = run_program(CHECK_AUDIO, data, tmp_path / "out", status=0)
    assert (tmp_path / "out/utt2dur").read_text() == (data / "utt2dur").read_text()
    assert "3 files at 8000 Hz, not 16000 Hz: resampled when read" in done.stdout
    edit(data / "utt2dur", r"^(s1-001) .*", r"\1 5.5")
    done = run_program(CHECK_AUDIO, data, tmp_path / "out", status=2)
    assert "s1-001.wav lasts 1.01 s, but utt2dur says 5.50 s" in done.stderr
    assert f"--allow-drop N {tmp_path}/data\n" in done.stderr


def test_a_mistyped_directory_is_not_made(tmp_path, run_program):
    for program, *arguments in (
        (FIX, "dta"),
        (VALIDATE, "dta"),
        (COPY, "dta", "out"),
    ):
        done = run_program(program, *arguments, cwd=tmp_path, status=2)
        assert done.stderr.startswith(f"{Path(program).name}: dta")
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_fix_refuses_duplicates_with_different_values(data, run_program):
    edit(data / "text", r"^s1-001.*\n", "s1-001 one\ns1-001 other\n")
    before = read(data)
    done = run_program(FIX, "--allow-drop", "9", data, status=2)
    said = f"{data}/text:3: s1-001 is listed twice: a different value stands on line 2"
    assert said in done.stderr
    assert read(data) == before


def test_fix_drops_only_what_it_may_and_says_why(data, run_program):
    edit(data / "text", r"^s1-001.*\n", "")
    edit(data / "spk2gender", r"^s2.*\n", "s3 f\n")
    (data / "trials").write_text("s1 s1-000 target\ns1 s2-000 nontarget\n")
    before = read(data)
    done = run_program(FIX, "--allow-drop", "3", data, status=3)
    assert f"{data}: drop s1-001: utterance s1-001 is not in text" in done.stderr
    assert f"{data}: drop s2-000: speaker s2 is not in spk2gender" in done.stderr
    assert "4 of 5 utterances are not complete" in done.stderr
    assert "--allow-drop 4" in done.stderr
    assert read(data) == before
    done = run_program(FIX, "--allow-drop", "4", data, status=2)
    # The nontarget trial went, and that is said, not passed over.
    assert "1 problems remain (no trials)" in done.stderr
    assert "4 utterances dropped" in done.stdout
    assert "1 of 2 trials removed" in done.stdout
    assert "1 lines removed, without utterance: s3" in done.stdout
    assert list(load_data_dir(data).utt2spk) == ["s1-000"]
    assert {name: (data / ".backup" / name).read_bytes() for name in before} == before


def test_fix_mends_the_form_and_loses_nothing(data, run_program):
    good = read(data)
    edit(data / "text", r"$", "\r")
    edit(data / "wav.scp", r"\A(.*\n)(.*\n)", r"\2\1\1")
    edit(data / "utt2dur", r"\n\Z", "")
    edit(data / "spk2utt", r" s2-001", "")
    done = run_program(FIX, data, status=0)
    for part in ("Windows line ends", "1 repeated lines removed", "sorted (LC_ALL=C)", "last line"):
        assert part in done.stdout
    assert read(data) == good
    assert run_program(FIX, data).stdout == f"{data}: nothing to fix\n"


def test_fix_drops_unreadable_audio_when_asked(data, run_program):
    (data / "wav/s1-001.wav").unlink()
    done = run_program(FIX, "--check-audio", data, status=3)
    assert "drop s1-001: audio file" in done.stderr
    run_program(FIX, "--check-audio", "--allow-drop", "1", data, status=0)
    assert problems(data) == []


def test_combine_refuses_equal_ids_in_two_sources(data, tmp_path, run_program):
    """combine_data.sh makes 9 utterances of 18 and logs `kept all 9`."""
    done = run_program(COMBINE, tmp_path / "both", data, data, status=2)
    assert "utterance s1-000 and 4 more: also in" in done.stderr
    assert not (tmp_path / "both").exists()
    other = tmp_path / "other"
    run_program(COPY, "--utt-prefix=x-", "--spk-prefix=x-", data, other, status=0)
    (other / "text").unlink()
    done = run_program(COMBINE, tmp_path / "both", data, other, status=0)
    assert "5 + 5 = 10 utterances, 4 speakers" in done.stdout
    assert f"not carried over from {data}: text" in done.stdout
    assert problems(tmp_path / "both") == []
    edit(other / "spk2gender", "x-s1 f", "x-s1 m")
    run_program(COPY, "--utt-suffix=-b", tmp_path / "both", tmp_path / "b")
    done = run_program(COMBINE, tmp_path / "all", tmp_path / "b", other)
    assert "speaker x-s1: also in" in done.stderr and "with another value" in done.stderr


def test_two_people_of_one_id_were_combined_without_a_word(data, tmp_path, run_program):
    """Speakers 14 and 16 of EmoDB are women, as are LibriSpeech's."""
    run_program(COPY, "--utt-suffix=-b", data, tmp_path / "b", status=0)
    done = run_program(COMBINE, tmp_path / "both", data, tmp_path / "b", status=0)
    assert "both: 2 speakers are in several sources, each as one person: s1 ...\n" in done.stdout


def test_copy_keeps_the_prefix_rule_and_the_original_ids(data, tmp_path, run_program):
    out = tmp_path / "out"
    done = run_program(COPY, "--spk-prefix", "x-", data, out, status=2)
    assert "speaker x-s1 would not begin its utterance s1-000" in done.stderr
    assert not out.exists()
    (data / "trials").write_text("s1 s1-000 target\ns1 s2-000 nontarget\n")
    run_program(COPY, "--utt-suffix=-b", data, out, status=0)
    run_program(COPY, "--utt-suffix=-c", out, tmp_path / "two", status=0)
    two = load_data_dir(tmp_path / "two", need=("wav.scp", "utt2uniq", "text"))
    assert two.tables["utt2uniq"]["s1-000-b-c"] == "s1-000"
    assert two.wav["s2-001-b-c"].endswith("/s2-001.wav")
    assert two.trials == [("s1", "s1-000-b-c", "target"), ("s1", "s2-000-b-c", "nontarget")]
    run_program(COPY, data, data, status=2)


def test_copy_names_utterances_after_their_speakers(data, tmp_path, run_program):
    edit(data / "utt2spk", r"^(s2-\d+) s2", r"\1 anna")
    for name in ("spk2utt", "spk2gender"):
        edit(data / name, r"^s2", "anna")
        (data / name).write_text("".join(sorted((data / name).read_text().splitlines(True))))
    assert problems(data) and load_data_dir(data)
    run_program(COPY, "--spk-as-prefix", data, tmp_path / "out", status=0)
    assert problems(tmp_path / "out") == []
    assert next(iter(load_data_dir(tmp_path / "out").utt2spk)) == "anna-s2-000"


def test_subset_matches_whole_ids(make_data_dir, tmp_path, run_program):
    """grep -Ff matches substrings: p1 selects p10."""
    data = make_data_dir(tmp_path / "data", {"p1": 2, "p10": 2, "p2": 1})
    (tmp_path / "spks").write_text("p1\n")
    run_program(SUBSET, "--spk-list", tmp_path / "spks", data, tmp_path / "out", status=0)
    assert list(load_data_dir(tmp_path / "out").utt2spk) == ["p1-000", "p1-001"]
    assert problems(tmp_path / "out") == []
    for option, ids in (("--spk-list", "p\n"), ("--utt-list", "p1-000\np1-0\n")):
        (tmp_path / "ids").write_text(ids)
        run_program(SUBSET, option, tmp_path / "ids", data, tmp_path / "new", status=2)
    assert not (tmp_path / "new").exists()


def test_subset_choices(make_data_dir, tmp_path, run_program):
    data = make_data_dir(tmp_path / "data", {"a": 4, "b": 1, "c": 5})
    (data / "trials").write_text("a a-000 target\na c-004 nontarget\n")

    def subset(*options: str) -> list[str]:
        done = run_program(SUBSET, *options, data, tmp_path / "out", status=0)
        chosen = load_data_dir(tmp_path / "out")
        assert f"{len(chosen.utt2spk)} of 10 utterances, {len(chosen.spk2utt)} of 3" in done.stdout
        trials = [row for row in load_data_dir(data).trials or [] if row[1] in chosen.utt2spk]
        assert (chosen.trials or []) == trials
        return list(chosen.utt2spk)

    everything = list(load_data_dir(data).utt2spk)
    assert subset("--evenly", "5") == everything[::2]
    assert len(subset("--per-spk", "2")) == 5
    draws = {seed: subset("--n", "4", "--seed", str(seed)) for seed in range(4)}
    assert draws[0] == subset("--n", "4") and len({tuple(draw) for draw in draws.values()}) > 1
    assert "(seed 3)" in run_program(SUBSET, "--n", "4", "--seed", "3", data, tmp_path / "o").stdout
    for options in (["--n", "11"], ["--n", "0"], ["--evenly", "11"], []):
        run_program(SUBSET, *options, data, tmp_path / "new", status=2)
    run_program(SUBSET, "--n", "4", data, data, status=2)
    assert not (tmp_path / "new").exists()


def test_split_keeps_speakers_whole_and_parts_equally_long(make_data_dir, tmp_path):
    data = make_data_dir(tmp_path / "data", {"a": 9, "b": 3, "c": 3, "d": 3, "e": 1})
    (data / "enrolls").write_text("a-000\n")
    (data / "trials").write_text("x b-000 target\nx c-000 nontarget\n")
    assert split_data_dir(load_data_dir(data), 2) == 2
    parts = [load_data_dir(data / "split2" / str(number)) for number in (1, 2)]
    assert [sorted(part.spk2utt) for part in parts] == [["a"], ["b", "c", "d", "e"]]
    assert [part.enrolls for part in parts] == [["a-000"], None]
    assert [len(part.trials or []) for part in parts] == [0, 2]
    assert [problems(part.path) for part in parts] == [[], []]
    assert split_data_dir(load_data_dir(data), 9) == 5  # it has 5 speakers
    assert sorted(p.name for p in (data / "split5").iterdir()) == list("12345")
    assert not [p for p in data.iterdir() if ".tmp." in p.name]


def test_a_table_is_read_without_a_second_copy(tmp_path):
    """The whole file, its text and its lines had stood in memory beside the table."""
    path = tmp_path / "text"
    path.write_text("".join(f"s1-{i:06d} {'word ' * 40}\n" for i in range(5000)))
    tracemalloc.start()
    assert sum(1 for _ in read_lines(path)) == 5000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


def test_writing_removes_what_an_older_directory_left(data):
    loaded = load_data_dir(data)
    (data / "trials").write_text("s1 s1-000 target\n")
    tables = select(loaded, ["s1-000"])
    del tables["text"], tables["wav.scp"]
    write_data_dir(data, tables)
    assert sorted(read(data)) == ["spk2gender", "spk2utt", "utt2dur", "utt2spk"]
    refuses("it would hold no utterance", write_data_dir, data, {"utt2spk": {}})


def test_emotions_under_the_challenges_name_outlived_those_of_the_new_set(
    data, tmp_path, run_program
):
    """Tables named utt2emo: stale in a directory that is written again, and beside a mended one."""
    utts = load_data_dir(data).utt2spk
    write_map(data / "utt2emo", dict.fromkeys(utts, "ang"))
    made = run_program(COPY, data, tmp_path / "copy", status=0)
    assert "not carried over" not in made.stdout
    assert set(load_data_dir(tmp_path / "copy").tables["utt2emotion"].values()) == {"anger"}
    run_program(FIX, data, status=0)
    assert "utt2emotion" in read(data) and "utt2emo" not in read(data)
    assert "utt2emo" in read(data / ".backup")
    write_map(data / "utt2emo", dict.fromkeys(utts, "ang"))
    write_data_dir(data, {"utt2spk": utts})
    assert "utt2emotion" not in load_data_dir(data, need=("utt2spk",)).tables


def run_jobs(data: Path, out: Path, n: int) -> None:
    """Write as n jobs do: x-vectors, a copy of the tables, a table with a header."""
    for number in range(1, n + 1):
        part = load_data_dir(data / f"split{n}" / str(number))
        target = out / f"split{n}" / str(number)
        write_data_dir(target, part.tables)
        write_archive(target / "xvector", {u: np.full(3, float(u[-1])) for u in part.utt2spk})
        rows = ((utt, number, "") for utt in part.utt2spk)
        write_timed(target / "pseudo.tsv", ("utt", "job", "note"), rows)
        (target / "settings.json").write_text('{"rate": 16000}\n')


@pytest.fixture
def jobs(make_data_dir, here: Path) -> Path:
    """Three jobs over data/ have written to exp/; the current directory is theirs."""
    make_data_dir(Path("data"), {"s1": 2, "s2": 3, "s3": 1, "s4": 4})
    (here / "data/trials").write_text("s1 s1-000 target\ns1 s2-000 nontarget\n")
    (here / "data/enrolls").write_text("s3-000\n")
    assert split_data_dir(load_data_dir("data"), 3) == 3
    run_jobs(Path("data"), Path("exp"), 3)
    return here / "exp"


def merge() -> None:
    """Put the three parts in exp/ together."""
    merge_parts(Path("exp"), 3)


def test_merge_puts_the_parts_together(jobs):
    (jobs / "split8/1").mkdir(parents=True)
    merge()
    assert sorted(p.name for p in jobs.iterdir()) == sorted([
        ".timed.pseudo.tsv", "enrolls", "pseudo.tsv", "settings.json", "spk2gender", "spk2utt",
        "text", "trials", "utt2dur", "utt2spk", "wav.scp", "xvector.ark", "xvector.scp",
    ])  # fmt: skip
    vectors = read_vectors("exp/xvector.scp")
    assert list(vectors) == list(load_data_dir("data").utt2spk)
    assert all(vector[0] == float(utt[-1]) for utt, vector in vectors.items())
    for name in ("utt2spk", "spk2utt", "wav.scp", "trials", "enrolls", "text"):
        assert (jobs / name).read_bytes() == Path("data", name).read_bytes()
    lines = (jobs / "pseudo.tsv").read_text().splitlines()
    assert lines[0] == "#utt\tjob\tnote" and lines[1:] == sorted(lines[1:])
    assert len(lines) == 11 and lines[1].endswith("\t")


@pytest.mark.slow
def test_merge_can_be_run_again_after_a_kill_at_any_point(jobs):
    """A child that dies at its k-th change of the file system, for every k, then a second run."""
    shutil.copytree(jobs, "saved")

    def merge_and_die(after: int) -> int:
        """Exit status of a merge that has only `after` changes of the file system to live."""
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left = itertools.count(after, -1)

        def deadly(call):
            def wrapped(*arguments, **options):
                if next(left) <= 0:
                    os._exit(137)
                return call(*arguments, **options)

            return wrapped

        for name in ("replace", "rename", "unlink"):
            setattr(Path, name, deadly(getattr(Path, name)))
        shutil.rmtree = deadly(shutil.rmtree)
        try:
            merge()
            os._exit(0)
        finally:
            os._exit(1)

    for after in range(200):
        shutil.rmtree(jobs)
        shutil.copytree("saved", jobs)
        if (status := merge_and_die(after)) == 0:
            break
        assert status == 137
        if (jobs / "xvector.scp").exists():
            assert len(read_vectors("exp/xvector.scp")) == 10
        if not list(jobs.glob("split*")):  # its next run makes them anew
            run_jobs(Path("data"), jobs, 3)
        merge()
        assert len(read_vectors("exp/xvector.scp")) == 10
        assert not [p for p in jobs.iterdir() if p.name.startswith(("split", ".merged"))]
    assert after > 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shutil.rmtree, r"exp/split3/2: this job wrote nothing; see its log in exp/log"),
        (lambda part: (part / "xvector.scp").unlink(),
         r"exp/split3/2/xvector\.scp: is missing, but other jobs wrote it"),
        (lambda part: (part / "xvector.ark").unlink(), r"2/xvector\.ark: is missing, but other"),
        (lambda part: edit(part / "utt2dur", r"\A", "s1-000 9\n"), "utt2dur: s1-000 is also in "),
        (lambda part: edit(part / "wav.scp", r" .*/", f" {part}/"),
         r"wav\.scp: s\S+: .* would be lost with exp/split3/2"),
    ],
)  # fmt: skip
def test_merge_refuses_what_is_not_whole(jobs, change, message):
    change(Path("exp/split3/2"))
    before = sorted(str(p) for p in jobs.rglob("*"))
    refuses(message, merge)
    assert sorted(str(p) for p in jobs.rglob("*")) == before


def test_ids_that_begin_with_a_hash_were_lost_as_headers(make_data_dir, here):
    data = load_data_dir(make_data_dir(Path("data"), {"#a": 1, "#b": 2, "c": 1}))
    run_jobs(data.path, Path("exp"), split_data_dir(data, 3))
    merge()
    assert load_data_dir("exp").utt2spk == data.utt2spk
    assert len(read_vectors("exp/xvector.scp")) == 4


def test_what_a_killed_run_left_of_splitting_made_a_set_another_one(data, monkeypatch):
    loaded, before = load_data_dir(data), contents(data, ours=True)
    monkeypatch.setattr("utils.parts._alone", lambda _: sys.exit())  # where it is killed
    monkeypatch.setattr("utils.parts.shutil.rmtree", lambda *_, **__: None)
    refuses("^$", split_data_dir, loaded, 2, kind=SystemExit)
    assert contents(data, ours=True) == before


def test_parts_that_are_the_same_stay_as_they_are(data):
    """Jobs of another step may be reading them."""
    part = data / "split2/1/utt2spk"
    assert split_data_dir(load_data_dir(data), 2) == 2
    first = part.stat().st_ino
    assert split_data_dir(load_data_dir(data), 2) == 2
    assert part.stat().st_ino == first
    (data / "split2/1/extra").write_text("of somebody else\n")
    assert split_data_dir(load_data_dir(data), 2) == 2
    assert not (data / "split2/1/extra").exists()
    edit(data / "text", "^s1-000 .*", "s1-000 other words")
    assert split_data_dir(load_data_dir(data), 2) == 2
    texts = [path.read_text() for path in data.glob("split2/*/text")]
    assert "s1-000 other words" in "".join(texts)
