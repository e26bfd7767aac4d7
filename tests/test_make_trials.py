"""Enrolment and trial lists: made by the rules, and official ones cut to the audio at hand."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.make_trials import main
from local.protocols.trials import (
    Lists,
    Rules,
    check_lists,
    choose_evaluation,
    cut_lists,
    make_lists,
    read_official,
    with_both,
)
from tests.corpus_trees import table
from tests.refusals import refuses
from utils.datachecks import validate_data_dir
from utils.datadir import Trial, load_data_dir, write_data_dir
from utils.tables import write_map

GENDER = {"f1": "f", "f2": "f", "f3": "f", "m1": "m", "m2": "m"}


def corpus(sizes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, str], dict[str, str]]:
    """utt2spk and utt2session of speakers with sessions of the given sizes."""
    utt2spk, sessions = {}, {}
    for spk, counts in sizes.items():
        for session, count in enumerate(counts):
            for number in range(count):
                utt = f"{spk}-{session}-{number}"
                utt2spk[utt], sessions[utt] = spk, f"{spk}-{session}"
    return utt2spk, sessions


UTT2SPK, SESSIONS = corpus({"f1": (4, 3), "f2": (3, 5), "f3": (6,), "m1": (3, 3), "m2": (1, 4, 2)})
RULES = Rules(enrol_utts=3)


def ruled(seed: int, sessions: Mapping[str, str] = {}) -> Rules:
    return replace(RULES, seed=seed, sessions=sessions)


def test_the_rules_by_hand():
    lists = make_lists(UTT2SPK, GENDER, ruled(0, SESSIONS))
    # f3 has one session: trials only. m2 can only be enrolled with session 1 (4 utterances).
    assert list(lists.trial_only) == ["f3"]
    assert lists.trial_only["f3"].startswith("1 session(s) of 6 utterances, but one of 3 or more")
    sizes = {spk: len(utts) for spk, utts in lists.enrolment.items()}
    assert sizes == dict.fromkeys(("f1", "f2", "m1", "m2"), 3)
    assert {SESSIONS[utt] for utt in lists.enrolment["m2"]} == {"m2-1"}
    trials_m = lists.trials["m"]
    of_m2 = {utt for _, utt, _ in trials_m if utt.startswith("m2")}
    assert of_m2 == {"m2-0-0", "m2-2-0", "m2-2-1"}
    # The full product within the gender, each trial once, with the right label.
    utts_m = lists.trial_utts("m")
    assert len(utts_m) == 3 + 3
    labels = {True: "target", False: "nontarget"}
    product = [(spk, utt, labels[UTT2SPK[utt] == spk]) for spk in ("m1", "m2") for utt in utts_m]
    assert sorted(trials_m) == sorted(product)


@given(
    st.dictionaries(
        st.sampled_from(sorted(GENDER)), st.tuples(*[st.integers(1, 7)] * 3), min_size=1
    ),
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 3),
)
def test_no_utterance_and_no_session_in_both_roles(sizes, enrol_utts, with_sessions, seed):
    utt2spk, sessions = corpus(sizes)
    known = sessions if with_sessions else {}
    lists = make_lists(utt2spk, GENDER, Rules(enrol_utts, seed=seed, sessions=known))
    for speaker, utts in lists.enrolment.items():
        assert len(set(utts)) == enrol_utts
        assert {utt2spk[utt] for utt in utts} == {speaker}
    enrol = {utt for utts in lists.enrolment.values() for utt in utts}
    trial = {utt for rows in lists.trials.values() for _, utt, _ in rows}
    assert not enrol & trial
    if with_sessions:
        assert not {sessions[utt] for utt in enrol} & {sessions[utt] for utt in trial}
    assert lists.enrolment.keys() | lists.trial_only.keys() == set(utt2spk.values())


def test_people_of_another_sex_are_in_mixed_trials_alone():
    utt2spk, _ = corpus({"f1": (9,), "f2": (9,), "o1": (9,), "o2": (2,)})
    gender = {"f1": "f", "f2": "f", "o1": "other", "o2": "other"}
    refuses("o1: the gender is other, but lists are made for f m only", make_lists, utt2spk, gender,
            Rules())  # fmt: skip
    rules = Rules(genders=("f", "mixed"))
    chosen, unable = choose_evaluation(utt2spk, gender, 2, rules)
    assert (chosen, unable) == ({"f1", "f2", "o1"}, ["o2"])
    alone = Rules(genders=("mixed",))  # had people of another sex alone, or nobody
    assert choose_evaluation(utt2spk, gender, 2, alone) == (chosen, unable)
    lists = with_both(make_lists(utt2spk, gender, rules), utt2spk, gender)
    assert lists.trials.keys() == {"f", "mixed"}
    assert {utt2spk[utt] for utt in lists.trial_utts("f")} == {"f1", "f2"}
    assert {utt2spk[utt] for utt in lists.trial_utts("mixed")} == {*gender}
    assert lists.enrolled("mixed") == ["f1", "f2", "o1"]


def test_lists_must_have_both_labels_and_both_genders():
    for sizes, said in (
        ({"f1": (9,), "f2": (9,), "m1": (9,)}, "no nontarget trial of gender m is left"),
        ({"f1": (9,), "f2": (9,)}, r"no target trial of gender m .*0 enrolment speakers"),
    ):
        refuses(said, check_lists, make_lists(corpus(sizes)[0], GENDER, Rules()))
    trials = [("f1", "u", "target"), ("f1", "v", "nontarget")]
    both = Lists({"f1": ["u"]}, dict.fromkeys("fm", trials))
    refuses("u: in the enrolment and in a trial", check_lists, both)


def test_a_table_of_sessions_that_lacks_a_speaker_was_no_rule_for_them(tmp_path, make):
    """Their enrolment and trials shared a session, without a word. Nor may it lack an utterance."""
    for lacking, first in (("f1-0-2", "f1-0-2"), ("f1-", "f1-0-0")):
        part = {utt: of for utt, of in SESSIONS.items() if not utt.startswith(lacking)}
        refuses(f"{first}: has no session", make_lists, UTT2SPK, GENDER, ruled(0, part))
    (tmp_path / "utt2session").write_text("")
    refuses("utt2session: is empty", make, "--sessions", tmp_path / "utt2session")


# The program, on data directories.


def tables_of(utt2spk: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Who says what."""
    genders = {spk: GENDER[spk] for spk in utt2spk.values()}
    text = {utt: f"SPOKEN BY {spk}" for utt, spk in utt2spk.items()}
    return {"utt2spk": dict(utt2spk), "spk2gender": genders, "text": text}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., int]:
    """Runs the program: `make(OPTIONS, data=utt2spk, out="e_test")`."""

    def run(*options: object, data: Mapping[str, str] = UTT2SPK, out: str = "e_test") -> int:
        path, audio = tmp_path / f"of_{len(data)}", {utt: f"/corpus/{utt}.flac" for utt in data}
        own = {"utt2dur": dict.fromkeys(data, 1.5), "wav.scp": audio}
        write_data_dir(path, tables_of(data) | own)
        return main([*map(str, options), str(path), str(tmp_path / out)])

    return run


def trials_in(folder: Path, name: str) -> list[Trial]:
    return sorted(load_data_dir(folder / f"e_test_trials_{name}", need=("trials",)).trials or [])


def write_official(folder: Path) -> Lists:
    """Official lists of all speakers, as they are published: no audio, and no order in `trials`."""
    lists = make_lists(UTT2SPK, GENDER, ruled(99, SESSIONS))
    for name, utts, trials in (
        ("enrolls", [utt for own in lists.enrolment.values() for utt in own], None),
        ("trials_f", lists.trial_utts("f"), lists.trials["f"]),
        ("trials_m", lists.trial_utts("m"), lists.trials["m"]),
    ):
        tables = tables_of({utt: UTT2SPK[utt] for utt in utts})
        if trials is None:
            tables["enrolls"] = dict.fromkeys(utts, "")
        write_data_dir(folder / f"e_test_{name}", tables, trials)
    return lists


def counts(printed: str) -> dict[str, str]:
    """The small table of counts that the program prints."""
    rows = (re.fullmatch(r"  (\D+?)  +(f \d.*)", line) for line in printed.splitlines())
    return {row[1]: " ".join(row[2].split()) for row in rows if row}


def test_program_writes_valid_sets(tmp_path, make, capsys):
    write_map(tmp_path / "utt2session", SESSIONS)
    options = ("--enrol-utts", 3, "--sessions", tmp_path / "utt2session")
    assert make(*options) == 0
    printed = capsys.readouterr().out
    assert "1 speakers are not enrolled and have trials only:\n    f3: 1 session(s)" in printed
    expected = make_lists(UTT2SPK, GENDER, ruled(0, SESSIONS))
    utts = len(expected.trial_utts("f"))
    assert counts(printed) == {
        "enrolment speakers": "f 2 m 2",
        "enrolment utterances": "f 6 m 6",
        "trial speakers": "f 3 m 2",
        "trial utterances": f"f {utts} m 6",
        "target trials": f"f {utts - 6} m 6",
        "nontarget trials": f"f {utts + 6} m 6",
    }
    for name in ("enrolls", "trials_f", "trials_m", "trials_mixed"):
        made = tmp_path / f"e_test_{name}"
        problems = validate_data_dir(made, audio=False)
        assert [str(p) for p in problems if p.fatal and p.kind != "audio"] == []
        assert (made / "utt2dur").exists() and (made / "text").exists()
    enrolled = {utt for utts in expected.enrolment.values() for utt in utts}
    assert set(table(tmp_path / "e_test_enrolls/enrolls")) == enrolled
    assert trials_in(tmp_path, "f") == sorted(expected.trials["f"])
    mixed = trials_in(tmp_path, "mixed")
    assert {*expected.trials["f"], *expected.trials["m"]} < {*mixed}
    assert len({*mixed}) == 4 * (utts + 6)  # every speaker with every utterance


def test_official_lists_of_2026_have_mixed_trials_alone(tmp_path, make):
    """A challenge draws them; they stay as they are, and those of a gender are read off them."""
    official = tmp_path / "official"
    lists = write_official(official)
    drawn = [*lists.trials["f"], *lists.trials["m"], ("m1", lists.trial_utts("f")[0], "nontarget")]
    tables = tables_of({utt: UTT2SPK[utt] for _, utt, _ in drawn})
    write_data_dir(official / "e_test_trials_mixed", tables, drawn)
    for name in ("", "trials_f", "trials_m"):  # beside those of each gender; then without
        if name:
            shutil.rmtree(official / f"e_test_{name}")
        assert make("--official", official) == 0
        for kind, expected in (*lists.trials.items(), ("mixed", drawn)):
            assert trials_in(tmp_path, kind) == sorted(expected)
    write_official(official)
    tables["spk2gender"]["x"], tables["utt2spk"]["x-1"], tables["text"]["x-1"] = "f", "x", "X"
    write_data_dir(official / "e_test_trials_mixed", tables, drawn)
    refuses("speaker x is in the mixed trials, but not in those of a", make, "--official", official)


def write_mixed(official: Path, rows: Sequence[Trial], lower: bool = True) -> None:
    """Enrolment, and a mixed list in the order of its rows, as a challenge gives them."""
    write_official(official)
    folder = official / "e_test_trials_mixed"
    write_data_dir(folder, tables_of({utt: UTT2SPK[utt] for _, utt, _ in rows}))
    (folder / "trials").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    for path in official.glob("e_test_*/spk2gender") if not lower else ():
        rows_of = [line.split() for line in path.read_text().splitlines()]
        path.write_text("".join(f"{spk} {gender.upper()}\n" for spk, gender in rows_of))
    for kind in "fm":
        shutil.rmtree(official / f"e_test_trials_{kind}")


def test_W3_the_mixed_list_of_2026_before_september_is_refused_by_name(tmp_path):
    """Its script paired women's utterances with women, and drew from enrolment utterances."""
    lists = write_official(tmp_path)
    own = [*lists.trials["f"], *lists.trials["m"]]
    swapped = [(spk, utt, "nontarget") for spk, utt, _ in own[::2]]
    write_mixed(tmp_path, [*swapped, *own])
    said = "before 1 September 2026, made with women and men interchanged: .* labels are wrong"
    refuses(said, read_official, tmp_path, "e_test")


@pytest.mark.parametrize("lower", [True, False], ids=["W3", "M4"])
def test_the_mixed_lists_since_september_are_taken(tmp_path, lower):
    """As drawn: as many speakers of the other gender; MLS writes F and M."""
    lists = write_official(tmp_path)
    own = [*lists.trials["f"], *lists.trials["m"]]
    crossing = [("m1", utt, "nontarget") for utt in lists.trial_utts("f")]
    write_mixed(tmp_path, [*crossing, *own], lower)
    found, _, genders = read_official(tmp_path, "e_test")
    assert sorted(found.trials["mixed"]) == sorted([*crossing, *own])
    assert set(genders.values()) == {"f", "m"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [("f1 nobody target", "nobody is not in"), ("f1 f1-1-0", ":1: not 3 fields")],
)  # fmt: skip
def test_wrong_lists_in_the_form_of_the_organisers_server(tmp_path, rows, said):
    """One folder with the files enrolls, trials_f and trials_m (test_prepare.py: right ones)."""
    write_data_dir(tmp_path / "e_test", {"utt2spk": UTT2SPK, "spk2gender": GENDER})
    (tmp_path / "e_test/enrolls").write_text("f1-0-0\n")
    (tmp_path / "e_test/trials_f").write_text(f"{rows}\n")
    refuses(said, read_official, tmp_path, "e_test")


def test_official_lists_are_cut_to_the_audio_with_counts(tmp_path, make, capsys):
    lists = write_official(tmp_path / "official")
    gone = {lists.enrolment["f1"][0], *lists.enrolment["f2"], lists.trial_utts("f")[-1]}
    there = {utt: spk for utt, spk in UTT2SPK.items() if utt not in gone}
    assert make("--official", tmp_path / "official", data=there) == 0
    printed = capsys.readouterr().out
    n = len(lists.trial_utts("f"))
    targets = sum(utt.startswith("f1") for utt in lists.trial_utts("f")[:-1])
    assert counts(printed) == {
        "enrolment speakers": "f 2 -> 1 m 2 -> 2",
        "enrolment utterances": "f 6 -> 2 m 6 -> 6",
        "trial speakers": "f 3 -> 3 m 2 -> 2",
        "trial utterances": f"f {n} -> {n - 1} m 6 -> 6",
        "target trials": f"f {n - 6} -> {targets} m 6 -> 6",
        "nontarget trials": f"f {n + 6} -> {n - 1 - targets} m 6 -> 6",
    }
    assert len(table(tmp_path / "e_test_enrolls/enrolls")) == 2 + 6
    cut = trials_in(tmp_path, "f")
    assert len(cut) == n - 1
    assert {spk for spk, _, _ in cut} == {"f1"}
    assert cut_lists(lists, UTT2SPK) == lists


def test_official_lists_that_do_not_fit(tmp_path, make):
    lists = write_official(tmp_path / "official")
    options = ("--official", tmp_path / "official")
    women = {u: s for u, s in UTT2SPK.items() if GENDER[s] == "f"}
    refuses("no target trial of gender m is left", make, *options, data=women)
    said = r"gender f is left \(0 enrolment speakers"
    refuses(said, make, *options, data={"f1-9-9": "f1"})
    utt = lists.trial_utts("f")[0]
    wrong = {**UTT2SPK, utt: "f3" if utt[:2] != "f3" else "f2"}
    refuses(rf"{utt}: the speaker is f.*lists of this corpus\?", make, *options, data=wrong)
    said = r"other_enrolls: no such folder; .* has e_test_enrolls"
    refuses(said, make, *options, out="other")
    assert not list(tmp_path.glob("e_test*"))  # nothing was written by any of these


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" target", " nontarget", "trials:1: .* but .* is spoken by"),
        ("f1 ", "f3 ", "trials:1: .*speaker f3 has no enrolment utterance"),
        ("f1 ", "m1 ", "trials:1: .*: m1 is m, in the trials of f"),
    ],
)  # fmt: skip
def test_official_trials_that_contradict_themselves(tmp_path, old, new, message):
    write_official(tmp_path)
    path = tmp_path / "e_test_trials_f/trials"
    lines = path.read_text().splitlines()
    first = next(line for line in lines if line.startswith("f1 ") and line.endswith(" target"))
    lines.remove(first)
    path.write_text("\n".join([first.replace(old, new, 1), *lines]) + "\n")
    refuses(message, read_official, tmp_path, "e_test")


def test_evaluation_speakers_and_the_rest(tmp_path, make, capsys):
    options = ("--rest", tmp_path / "train", "--enrol-utts", 2, "--speakers")
    assert make(*options, 2) == 0
    train = load_data_dir(tmp_path / "train", need=("wav.scp", "spk2gender", "text", "utt2dur"))
    assert len(train.spk2utt) == 1
    assert train.trials is None and train.enrolls is None
    tried = {s for g in "fm" for s in table(tmp_path / f"e_test_trials_{g}/utt2spk").values()}
    assert tried == GENDER.keys() - train.spk2utt.keys()
    assert f"{tmp_path}/train: 1 speakers" in capsys.readouterr().out
    refuses("4 speakers of gender f are wanted, but only 3", make, *options, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--speakers 2", "--speakers and --rest go together"),
        ("--official x --sessions x", "leave out the options"),
        ("--enrolled x --sessions x", "--enrolled says who is enrolled"),
    ],
)  # fmt: skip
def test_options_that_contradict(tmp_path, options, message):
    refuses(message, main, [*options.split(), str(tmp_path), str(tmp_path / "e")])


def test_the_enrolment_of_another_evaluation(tmp_path, make):
    """The same enrolment with other trials: VCTK's common sentences beside its different ones."""
    assert make("--enrol-utts", "2", out="e") == 0
    enrolled = ("--enrolled", tmp_path / "e_enrolls")
    assert make(*enrolled, out="again") == 0
    for name in ("enrolls", "trials_f", "trials_m"):
        for path in (tmp_path / f"e_{name}").iterdir():
            assert (tmp_path / f"again_{name}" / path.name).read_text() == path.read_text()
    utt = next(iter(table(tmp_path / "e_enrolls/utt2spk")))
    less = {u: s for u, s in UTT2SPK.items() if u != utt}
    refuses(f"{utt}: enrolled for f1, but not in the data", make, *enrolled, data=less, out="no")
