"""Inference, crowds and groups: by hand, by theory, invariant, degenerate, and what is refused."""

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
import pytest
from legal_eval import build_speaker_embeddings, linkability_sweep
from legal_eval.io import ScoreMatrix
from legal_eval.scoring import cosine_similarity_matrix

from local.measure_people import main
from local.metrics.intervals import but, key
from local.metrics.legal import LINKABILITY, AttackSide, legal_metrics
from local.metrics.people import crowd, groups, inference, learn
from local.metrics.verification import Speakers
from local.plan.options import Asked
from local.plan.run import plan_run
from tests.recipes import TEMPLATE, commands, options_of
from tests.refusals import refuses, refuses_words
from tests.test_metrics_legal import people, side
from tests.world import write_people
from utils.tables import write_map
from utils.trials import Scores, Trials, write_scores, write_trials

T = TypeVar("T")


def two_sexes(
    seed: int, n: int, apart: float, prefix: str, dim: int = 8
) -> tuple[AttackSide, dict[str, str]]:
    """n women and n men with two recordings each; the means of the sexes are `apart` standard
    deviations from each other in one of the dimensions, which are 50 from the origin in another, so
    that vectors of length 1 are hardly bent."""
    rng = np.random.default_rng(seed)
    vectors, sex = {}, {}
    for i in range(2 * n):
        who = f"{prefix}{i:04}"
        sex[who] = "fm"[i % 2]
        own = rng.standard_normal((2, dim))
        own[:, 0] += apart / 2 if i % 2 else -apart / 2
        vectors[who] = list(own)
    return side(vectors, prefix), sex


def of(names: str, values: Sequence[T]) -> dict[str, T]:
    return dict(zip(names, values, strict=True))


def found(train: AttackSide, trial: AttackSide, known: Mapping[str, str],
          sought: Mapping[str, str], **more: int) -> dict[str, object]:  # fmt: skip
    return inference(train, trial, {"sex": known}, {"sex": sought}, **more)


def test_weights_are_fishers_discriminant_by_hand() -> None:
    """Means (1, 0) and (-1, 0), covariance the identity: x0 decides, with the weight 2."""
    x = np.array([[2.0, 0], [0, 0], [1, 1], [1, -1]])
    x = np.vstack([x, -x])
    weights, offset = learn(x, np.repeat([0, 1], 4))
    assert weights[:, 0] - weights[:, 1] == pytest.approx([4.0, 0.0])  # cov is half the identity
    assert offset[0] == pytest.approx(offset[1])


def test_weights_are_of_the_shrunk_covariance_within_values() -> None:
    from sklearn.covariance import ledoit_wolf

    rng = np.random.default_rng(0)
    value = np.arange(40) % 2
    x = rng.standard_normal((40, 30)) @ rng.standard_normal((30, 30)) + value[:, None]
    weights, _ = learn(x, value)
    mean = np.stack([x[value == k].mean(axis=0) for k in (0, 1)])
    cov, _ = ledoit_wolf(x - mean[value], assume_centered=True)
    assert weights == pytest.approx(np.linalg.solve(cov, mean.T), rel=1e-6)


def test_accuracy_is_that_of_theory() -> None:
    """Two normal distributions d standard deviations apart: Phi(d/2); of the sum of two recordings
    Phi(d/sqrt 2). Vectors of length 1 lose a part of the distance, in eight dimensions a little."""
    (train, known), (trial, sought) = (two_sexes(i, 4000, 1.5, "ab"[i], dim=40) for i in (0, 1))
    report = found(train, trial, known, sought)
    for length, d in (("1", 1.5), ("all", 1.5 * math.sqrt(2))):
        accuracy = report[key("inferred", recordings=length, attribute="sex")]
        assert accuracy == pytest.approx(NormalDist().cdf(d / 2), abs=0.012)
        risk = report[key("residual_risk", recordings=length, attribute="sex")]
        assert risk == pytest.approx(2 * accuracy - 1)  # type: ignore[operator]


def test_people_count_and_not_recordings() -> None:
    """One of three women is taken for a man in her only recording; another has three right ones:
    (1 + 1 + 0)/3 for women and 1 for men."""
    x, y = np.eye(2)
    train = side({s: [x if s in "ab" else y] * 2 for s in "abcd"}, "k")
    trial = side({"e": [x] * 3, "f": [x], "g": [y], "h": [y], "i": [y] * 2}, "t")
    known, sought = of("abcd", "ffmm"), of("efghi", "fffmm")
    report = found(train, trial, known, sought, n_bootstrap=50)
    assert report["inferred_sex"] == pytest.approx((2 / 3 + 1) / 2)
    assert report["residual_risk_sex"] == pytest.approx(2 / 3)
    assert report["inferred_sex_per_speaker"] == of("efghi", [1.0, 1, 0, 1, 1])
    low, high = report["intervals"]["inferred_sex"]  # type: ignore[index]
    assert low < report["inferred_sex"] < high == 1.0


def test_nothing_is_inferred_from_equal_vectors() -> None:
    same = np.ones(4)
    train, trial = (side({f"{p}{i}": [same] * 2 for i in range(4)}, p) for p in "kt")
    known, sought = ({f"{p}{i}": "fm"[i % 2] for i in range(4)} for p in "kt")
    report = found(train, trial, known, sought)
    assert report["inferred_sex"] == 0.5
    assert report["residual_risk_all_recordings_sex"] == 0.0


def test_an_offset_and_a_scale_of_the_protected_side_change_nothing() -> None:
    """The mean of all protected vectors is taken off; lengths do not count."""
    (train, known), (trial, sought) = (two_sexes(i, 30, 2.0, "ab"[i]) for i in (0, 1))
    turned = AttackSide({u: 3.0 * v for u, v in reversed(trial.vectors.items())}, trial.spk2utt)
    assert found(train, turned, known, sought) == found(train, trial, known, sought)


def test_a_value_of_one_person_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    train, known = two_sexes(0, 5, 2.0, "a")
    trial, sought = two_sexes(1, 5, 2.0, "b")
    men = [who for who, sex in sought.items() if sex == "m"]
    report = found(train, trial, known, sought | dict.fromkeys(men[1:], "f"))
    assert [*report] == ["n_speakers", "n_segments"]
    assert "sex: m is left out: 5 people to learn from and 1 attacked" in caplog.text
    caplog.clear()
    assert [*inference(train, trial, {}, {"sex": sought})] == ["n_speakers", "n_segments"]
    assert "nothing is inferred: both sides need spk2gender" in caplog.text  # it was silent


# ---- Crowds.


def test_a_crowd_without_distractors_is_legal_linkability() -> None:
    """Recordings were shuffled by the name of the program: two figures of one name differed."""
    enrol, trial = people(3, 30, 9, 2.0)
    legal, report = legal_metrics(enrol, trial), crowd([("e", enrol)], trial, n_bootstrap=20)
    for length in (1, 3):
        name = key(LINKABILITY, recordings=length)
        assert report[but(name, candidates=30)] == pytest.approx(legal[name], rel=1e-12)
    named: Any = {n: report[key("named", recordings=n, candidates=30)] for n in ("1", "3", "all")}
    assert named["all"] > named["3"] > named["1"]
    assert "named_10_recordings_2_candidates" not in report  # nobody has ten


def test_linkability_with_fewer_candidates_is_the_sweep_of_the_package() -> None:
    """One utterance tested of each of 25 people, so that means over people are those over tests."""
    enrol, trial = people(4, 25, 30, 2.5)
    alone = trial.only([*trial.spk2utt])
    alone = AttackSide(alone.vectors, {s: utts[:1] for s, utts in alone.spk2utt.items()})
    models = build_speaker_embeddings(enrol.spk2utt, enrol.vectors)
    tests = np.array([alone.vectors[utts[0]] for utts in alone.spk2utt.values()])
    cosines = cosine_similarity_matrix(np.array([*models.values()]), tests)
    matrix = ScoreMatrix(cosines, [*models], [*alone.spk2utt], {})
    sweep = linkability_sweep(matrix, [2, 5, 10, 20], estimator="exact").values
    figures: Any = crowd([("e", enrol)], alone)
    for n, (rate,) in sweep.items():
        assert figures[linked(candidates=n)] == pytest.approx(rate)
    assert linked(candidates=50) not in figures
    ten, two = figures[linked(candidates=10)], figures[linked(candidates=2)]
    assert figures[linked(candidates=25)] < ten < two < 1
    assert linked(recordings=10, candidates=2) not in figures
    x, y, z = np.eye(3)
    known = side({"a": [x], "b": [y], "c": [z]}, "e")
    by_hand = crowd([("e", known)], side({"a": [x], "b": [x + 0.5 * y], "c": [z]}, "t"))
    assert by_hand[linked(candidates=3)] == pytest.approx(2 / 3)
    assert by_hand[linked(candidates=2)] == pytest.approx((1 + 0.5 + 1) / 3)  # b by a, or by c


def linked(recordings: int = 1, candidates: int = 0) -> str:
    return key(LINKABILITY, recordings=recordings, candidates=candidates)


def test_ranks_among_drawn_candidates_by_hand() -> None:
    """b sounds like the distractor d, and a like nobody: of two candidates b is named in two of
    three draws; among all four only a is."""
    e = np.eye(4)
    enrol = side({"a": [e[0]], "b": [e[1]]}, "e")
    others = side({"c": [e[2]], "d": [e[1]]}, "o")
    trial = side({"a": [e[0]], "b": [e[1]]}, "t")
    report = crowd([("e", enrol), ("o", others)], trial)
    assert report["legal_linkability_2_candidates"] == pytest.approx((1 + 2 / 3) / 2)
    assert report["legal_linkability_4_candidates"] == 0.5
    assert report["n_candidates"] == 4
    assert report["n_speakers"] == 2


def test_a_channel_of_the_distractors_makes_naming_no_harder() -> None:
    """Enrolled vectors are 30 from the origin in one dimension; what is heard, and the second
    distractors, as far in another."""
    (enrol, trial), (others, _) = people(3, 30, 4, 0.5), people(4, 60, 1, 0.5)

    def moved(own: AttackSide, k: int, prefix: str = "") -> AttackSide:
        offset = 30.0 * np.eye(18)[k]
        far = {s: [np.append(own.vectors[u] * 4, [0, 0]) + offset for u in utts]
               for s, utts in own.spk2utt.items()}  # fmt: skip
        return side({f"{prefix}{s}": rows for s, rows in far.items()}, f"{prefix}{k}")

    heard = moved(trial, 17)
    alike, other = (
        crowd([("e", moved(enrol, 16)), ("o", moved(others, k, "x"))], heard) for k in (16, 17)
    )
    assert alike["named_20_candidates"] > 0.7  # type: ignore[operator]
    assert other["named_20_candidates"] == pytest.approx(alike["named_20_candidates"], abs=1e-6)


def test_equal_voices_name_nobody_in_a_crowd() -> None:
    enrol, trial = (side({s: [np.ones(3)] * 2 for s in "abc"}, p) for p in "et")
    report = crowd([("e", enrol)], trial, n_bootstrap=9)
    assert report["named_3_candidates"] == report["legal_linkability_2_candidates"] == 0.0
    assert report["intervals"]["named_3_candidates"] is None  # type: ignore[index]


def test_one_person_attacked_is_no_crowd(caplog: pytest.LogCaptureFixture) -> None:
    """The program ended with a ZeroDivisionError, also without intervals."""
    enrol = side({"a": [np.ones(3)], "b": [np.eye(3)[0]]}, "e")
    trial = side({"a": [np.ones(3)]}, "t")
    for n_bootstrap in (0, 9):
        report = crowd([("e", enrol)], trial, n_bootstrap=n_bootstrap)
        assert not [name for name in report if name.startswith(("named", LINKABILITY))]
    assert "fewer than two people have so many" in caplog.text


# ---- Groups.


def hand_made() -> tuple[Trials, np.ndarray, Speakers]:
    """Four people with two recordings; the attacker knows a and b, and takes c and d for each
    other."""
    pairs = [(m, f"{p}{k}") for p in "abcd" for k in "12" for m in "abcd"]
    swap = of("abcd", "abdc")
    score = np.array([float(m == swap[u[0]]) for m, u in pairs])
    trials = Trials([m for m, _ in pairs], [u for _, u in pairs],
                    np.array([m == u[0] for m, u in pairs]))  # fmt: skip
    place = {p: i for i, p in enumerate("abcd")}
    return trials, score, Speakers(
        list("abcd"), np.array([place[m] for m, _ in pairs]),
        np.array([place[u[0]] for _, u in pairs]),
    )  # fmt: skip


AGES = {"age": {"a": "under_18", "b": "under_18", "c": "18_to_59", "d": "18_to_59"}}


def test_the_worst_group_and_its_gap_by_hand() -> None:
    """c and d: all targets score 0, a third of the nontargets 1, so that P_miss = 1 - t meets
    P_fa = 1/3 + 2t/3 at 0.6, which is folded to 0.4; nobody of them is named."""
    trials, score, speakers = hand_made()
    report = groups(trials, [[score]], speakers, AGES, n_bootstrap=20)
    assert report["eer_age_under_18"] == 0.0
    adults = report["eer_age_18_to_59"]
    assert adults == pytest.approx(0.4)
    assert report["gap_eer_age"] == pytest.approx(adults)
    assert report["named_all_recordings_age_under_18"] == 1.0
    assert report["gap_named_all_recordings_age"] == 1.0
    n = {str(name): name.columns.get("n_speakers") for name in report if hasattr(name, "columns")}
    assert n["eer_age_18_to_59"] == "2"


def test_the_strongest_attacker_of_each_group_counts() -> None:
    trials, score, speakers = hand_made()
    other = np.zeros(len(score))
    both = groups(trials, [[other], [score]], speakers, AGES)
    one = groups(trials, [[score]], speakers, AGES)
    assert both == one | {"n_attacks": both["n_attacks"]}


def test_a_group_of_one_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    trials, score, speakers = hand_made()
    report = groups(trials, [[score]], speakers, {"age": AGES["age"] | {"a": "from_60"}})
    assert not [key for key in report if key.startswith("eer")]
    assert "age from_60: left out: 1 people" in caplog.text


# ---- The program.


def folder(path: Path, own: AttackSide, **tables: Mapping[str, str]) -> tuple[str, str]:
    of = {utt: who for who, utts in own.spk2utt.items() for utt in utts}
    return write_people(path, own.vectors, of, **tables)


def test_the_program_infers_and_refuses_its_own_people(tmp_path: Path) -> None:
    (train, known), (trial, sought) = (two_sexes(i, 6, 4.0, "ab"[i]) for i in (0, 1))
    learnt = folder(tmp_path / "train", train, spk2gender=known)
    tried = folder(tmp_path / "trial", trial, spk2gender=sought)
    words = ["inference", "--bootstrap", "20", "--trials", *tried, *learnt, str(tmp_path / "o")]
    assert main(words) == 0
    report = json.loads((tmp_path / "o").read_text())
    assert report["inferred_all_recordings_sex"] > 0.8
    assert report["chance_inferred_sex"] == 0.5
    refuses_words("is also in .*", main, "inference", "--trials", *learnt, *learnt, "-")
    counted_twice = ["inference", "--trials", *tried, "--trials", *tried, *learnt, "-"]
    refuses_words("b0000.* is also in another set; name each set once", main, *counted_twice)
    words[1:1] = ["--attribute", "native"]
    refuses_words("spk2native", main, *words)
    for path, own in ((tmp_path / "train", known), (tmp_path / "trial", sought)):
        write_map(path / "spk2native", {who: {"f": "yes", "m": "no"}[v] for who, v in own.items()})
    assert main(words) == 0
    told = json.loads((tmp_path / "o").read_text())
    assert told["inferred_native"] == report["inferred_sex"]


def test_the_program_takes_distractors_of_one_sex(tmp_path: Path) -> None:
    women, sex = two_sexes(0, 4, 1.0, "a")
    women = women.only([who for who in sex if sex[who] == "f"])
    enrol = side({s: [women.vectors[u[0]]] for s, u in women.spk2utt.items()}, "e")
    trial = side({s: [women.vectors[u[1]]] for s, u in women.spk2utt.items()}, "t")
    others, sexes = two_sexes(1, 5, 1.0, "b")
    mine = dict.fromkeys(women.spk2utt, "f")
    words = ["crowd", "--trials", *folder(tmp_path / "t", trial, spk2gender=mine)]
    words += ["--other", *folder(tmp_path / "o", others, spk2gender=sexes)]
    man = {"man": [np.ones(8)]}
    both = side({**{s: [enrol.vectors[u[0]]] for s, u in enrol.spk2utt.items()}, **man}, "e")
    enrolled = folder(tmp_path / "e", both, spk2gender=mine | {"man": "m"})
    assert main([*words, *enrolled, str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out").read_text())["n_candidates"] == 4 + 5
    words = ["crowd", "--trials", *enrolled, "--other", *enrolled, *enrolled, "-"]
    refuses_words("is also enrolled", main, *words)


def test_distractors_of_the_other_sex_alone_were_a_traceback(caplog) -> None:
    """The sex of those attacked leaves nobody of them."""
    enrol, trial = people(2, 4, 4, 2.0)
    sides = [("e", enrol), ("o", enrol.only([]))]
    alone, among = (crowd(sides[:n], trial) for n in (1, 2))
    assert among == alone and "o: has nobody of the sex" in caplog.text
    refuses("no attacked speaker is enrolled", crowd, [("e", enrol)], trial.only([]))


def test_the_program_joins_the_lists_of_both_sexes(tmp_path: Path) -> None:
    """a and b are women of one list, c and d men of another; nobody of these is named."""
    trials, score, _ = hand_made()
    words: list[str] = []
    for sex, own in (("f", "ab"), ("m", "cd")):
        kept = [i for i, (m, u) in enumerate(zip(trials.enrol, trials.trial, strict=True))
                if m in own and u[0] in own]  # fmt: skip
        enrol, trial = ([side[i] for i in kept] for side in (trials.enrol, trials.trial))
        data = tmp_path / sex
        write_trials(data / "trials", Trials(enrol, trial, trials.target[kept]))
        write_scores(data / "scores", Scores(enrol, trial, score[kept]))
        write_map(data / "utt2spk", {f"{who}{k}": who for who in own for k in "12"})
        (data / "spk2utt").write_text("".join(f"{who} {who}1 {who}2\n" for who in own))
        write_map(data / "spk2gender", dict.fromkeys(own, sex))
        words += ["--listed", f"{data}/trials", str(data)]
        words += ["--scores", "ignorant", "0", f"{data}/scores"]
    assert main(["groups", "--bootstrap", "9", *words, str(tmp_path / "out")]) == 0
    report = json.loads((tmp_path / "out").read_text())
    assert report["named_sex_f"] == 1.0
    assert report["gap_named_sex"] == 1.0
    assert report["eer_sex_m"] == 0.0  # all scores are reversed, which is folded
    assert report["n_speakers"] == 4
    again = shutil.copy(tmp_path / "f/trials", tmp_path / "again")
    twice = [*words, "--listed", f"{again}", f"{tmp_path}/f"]
    refuses_words("a1 is listed twice", main, "groups", *twice, "-")


# ---- The plan and the report.


@pytest.fixture
def planned(here: Path) -> Callable[..., dict[str, str]]:
    """Commands of run.sh by folder and options, in a corpus whose sets are there."""
    shutil.copytree(TEMPLATE / "conf", here / "conf")
    for name in ("train", "more", "e_enrolls", "e_trials_f", "e_trials_m"):
        (here / "data" / name).mkdir(parents=True)
    own = {"evaluators": "resemblyzer/cosine resemblyzer/plda", "systems": "b2 b2r"}
    asked = options_of(TEMPLATE / "run.sh") | own
    return lambda **options: commands(plan_run(Asked(asked | options)))


def test_nothing_is_inferred_of_controls(planned):
    made = planned(systems="bn bn_perm", attackers="ignorant semi_informed_backend")
    inferred = [path for path in made if "/inference_" in path]
    assert any("/bn/" in path for path in inferred)
    assert not [path for path in inferred if "/bn_perm/" in path]


def test_distractors_are_protected_as_the_enrolment_is(planned):
    made = planned(attackers="ignorant lazy_informed", distractors="train more")
    tail = "resemblyzer+cosine/{}/e_f"
    bare = made[f"exp/metrics/b2/crowd_ignorant.{tail.format('OA')}"]
    assert "--other exp/xvectors/resemblyzer/train data/train" in bare
    both = made[f"exp/metrics/b2r/crowd_lazy_informed.{tail.format('AA')}"]
    for name in ("train_b2r_spk", "more_b2r"):
        assert f"--other exp/xvectors/resemblyzer/{name} data/{name}" in both
        assert f"data/{name}" in made
