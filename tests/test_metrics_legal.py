"""Singling Out and legal Linkability: by hand, by chance, by loops, and what must not pass."""

import json
import logging
import math
from pathlib import Path

import numpy as np
import pytest
from legal_eval import load_paper_results

from local.compute_metrics import main as compute_metrics
from local.metrics import legal
from local.metrics.intervals import key
from local.metrics.legal import AttackSide, legal_metrics, make_side
from tests.refusals import refuses
from utils.archives import read_vectors
from utils.tables import read_map, write_map


def main(words: list[str]) -> int:
    return compute_metrics(["legal", *words])


LINK, SING = "legal_linkability", "legal_singling_out"


def side(vectors: dict[str, list[np.ndarray]], prefix: str) -> AttackSide:
    """Vectors by speaker as a side; utterance ids are <prefix>-<speaker>-<number>."""
    flat = {
        f"{prefix}-{s}-{k:03}": np.asarray(v, np.float32)
        for s, own in vectors.items()
        for k, v in enumerate(own)
    }
    utt2spk = {utt: utt.split("-")[1] for utt in flat}
    return make_side(flat, utt2spk, vectors_path="x.ark", utt2spk_path="utt2spk")


def people(
    seed: int, n: int, n_utts: int, spread: float, dim: int = 16
) -> tuple[AttackSide, AttackSide]:
    """n random speakers, both sides; spread: standard deviation within a speaker (between: 1)."""
    rng = np.random.default_rng(seed)
    centre = {f"s{i:02}": rng.standard_normal(dim) for i in range(n)}
    drawn = [
        {s: list(c + spread * rng.standard_normal((k, dim))) for s, c in centre.items()}
        for k in (5, n_utts)
    ]
    return side(drawn[0], "e"), side(drawn[1], "t")


def test_hand_computed_case() -> None:
    """Two of a's five utterances sound like b; the means are over speakers, not over utterances."""
    x, y, z = np.eye(3)
    enrol = side({"a": [x], "b": [y, y + 0.2 * z], "c": [z]}, "e")
    trial = side({"a": [x, x, x, y, y], "b": [y] * 10, "c": [z] * 2}, "t")
    figures = legal_metrics(enrol, trial, lengths=[1, 2])
    assert figures["legal_linkability_per_speaker"] == {"a": 0.6, "b": 1.0, "c": 1.0}
    assert figures[LINK] == pytest.approx(2.6 / 3)
    assert figures["chance_legal_linkability"] == pytest.approx(1 / 3)
    # c gives 2 - 1 calibration conversations, so everybody does; with L = 2 it has too few.
    assert figures["n_calibration_legal_singling_out"] == 1
    n = {str(name): name.columns["n_speakers"] for name in figures if hasattr(name, "columns")}
    wanted = {SING: "3", f"{SING}_2_recordings": "2", f"{LINK}_2_recordings": "3"}
    assert {name: n[name] for name in wanted} == wanted


@pytest.mark.parametrize("spread", [1.4, 3.0])
def test_linkability_is_the_definition_in_loops(spread: float) -> None:
    enrol, trial = people(3, 9, 6, spread)
    hits = []
    for speaker, utts in trial.spk2utt.items():
        models = {
            s: np.mean([enrol.vectors[u] for u in own], 0) for s, own in enrol.spk2utt.items()
        }
        for utt in utts:
            x = trial.vectors[utt]
            score = {s: m @ x / math.sqrt(m @ m) for s, m in models.items()}
            hits.append(score[speaker] > max(v for s, v in score.items() if s != speaker))
    assert 0.2 < np.mean(hits) < 1.0
    assert legal_metrics(enrol, trial, lengths=[1])[LINK] == pytest.approx(np.mean(hits))


def isolates(rng: np.random.Generator, enrol: AttackSide, trial: AttackSide, m: int) -> list[bool]:
    """Singling Out in loops, L = 1, one random split: does each predicate hold for exactly one?"""
    order = {s: rng.permutation(utts) for s, utts in trial.spk2utt.items()}
    isolated = []
    for own in enrol.spk2utt.values():
        model = np.mean([enrol.vectors[u] for u in own], 0)
        calibration = sorted(model @ trial.vectors[u] for utts in order.values() for u in utts[1:])
        threshold = (calibration[-m] + calibration[-m - 1]) / 2
        tests = [model @ trial.vectors[utts[0]] for utts in order.values()]
        isolated.append(sum(score > threshold for score in tests) == 1)
    return isolated


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.4, 3.0])
def test_singling_out_is_the_definition_in_loops(spread: float) -> None:
    enrol, trial = people(3, 9, 6, spread)
    rng = np.random.default_rng(5)
    rates = np.mean([isolates(rng, enrol, trial, m=5) for _ in range(600)], axis=0)
    figures = legal_metrics(enrol, trial, lengths=[1], n_folds=600)
    error = math.sqrt(2 * np.sum(rates * (1 - rates)) / 600) / 9
    assert 0.3 < rates.mean() < 0.99
    assert figures[SING] == pytest.approx(rates.mean(), abs=4 * error)


@pytest.mark.slow
def test_vectors_without_speakers_give_the_chance_levels() -> None:
    sides = (people(seed, 20, 12, 1e6) for seed in range(40))
    figures = [legal_metrics(*pair, lengths=[1], n_folds=10) for pair in sides]
    for name in (LINK, SING):
        values = np.array([f[name] for f in figures])
        chance = figures[0][f"chance_{name}"]
        assert abs(values.mean() - chance) < 4 * values.std(ddof=1) / math.sqrt(len(values))
    assert figures[0][f"chance_{LINK}"] == 0.05
    assert figures[0][f"chance_{SING}"] == pytest.approx(math.exp(-1), abs=0.01)


def test_chance_of_singling_out_by_simulation() -> None:
    rng, n, m = np.random.default_rng(22), 13, 9
    calibration = np.sort(rng.random((40_000, m * n)), axis=1)
    threshold = (calibration[:, -m] + calibration[:, -m - 1]) / 2
    isolated = (rng.random((40_000, n)) > threshold[:, None]).sum(axis=1) == 1
    assert legal.chance_of_singling_out(n, m) == pytest.approx(isolated.mean(), abs=4 * 0.0025)


def test_chance_of_singling_out_against_theory_and_the_published_curve() -> None:
    assert legal.chance_of_singling_out(3000, 300) == pytest.approx(math.exp(-1), abs=1e-3)
    # by hand: the mean of 2p(1 − p), three uniform spacings; of xe^−x, x = E₁ + E₂/2
    assert legal.chance_of_singling_out(2, 1) == pytest.approx(5 / 12, abs=1e-3)
    assert legal.chance_of_singling_out(3000, 1) == pytest.approx(5 / 18, abs=1e-3)
    curve = load_paper_results("singling_out")["singling_out"][1]["ignorant"]
    # Points scatter by 0.01, and the last, over all speakers, by more; their mean is told from 1/e.
    expected = np.mean([legal.chance_of_singling_out(n, 9) for n in curve.means])
    assert np.mean(list(curve.means.values())) == pytest.approx(expected, abs=0.006)
    assert math.exp(-1) - expected > 0.015


def test_perfect_separation_is_one_and_its_interval_is_not_invented(caplog):
    enrol, trial = people(0, 8, 12, 0.01)
    figures = legal_metrics(enrol, trial, n_bootstrap=50)
    kinds = legal.LINKABILITY, legal.SINGLING_OUT
    names = [key(kind, recordings=n) for kind in kinds for n in (1, 3)]
    for name in names:
        assert figures[name] == 1.0
        assert f"{name} has no interval: all speakers have the same rate" in caplog.text
    assert figures["intervals"] == dict.fromkeys([*names, "legal_linkability_10_recordings"])


@pytest.mark.slow
def test_stable_pseudo_voices_are_singled_out_but_not_linked() -> None:
    """Singling Out needs no tie between enrolled and protected voice, as its card says."""
    enrols = [people(seed, 10, 2, 1.0)[0] for seed in range(20)]
    trials = [people(seed + 100, 10, 12, 0.001)[1] for seed in range(20)]
    figures = [legal_metrics(*pair, lengths=[1]) for pair in zip(enrols, trials, strict=True)]
    assert np.mean([f[SING] for f in figures]) > 0.95
    assert np.mean([f[LINK] for f in figures]) == pytest.approx(0.1, abs=4 * 0.3 / math.sqrt(200))


def test_ties_link_nobody() -> None:
    """A system that makes all voices equal; the package by itself would report Linkability 1."""
    same = np.random.default_rng(0).standard_normal(512)
    sides = [side({s: [same] * 12 for s in "abcde"}, name) for name in "et"]
    figures = legal_metrics(*sides, lengths=[1, 3])
    for kind in (legal.LINKABILITY, legal.SINGLING_OUT):
        for length in (1, 3):
            assert figures[key(kind, recordings=length)] == 0.0


def test_figures_do_not_depend_on_any_order() -> None:
    enrol, trial = people(1, 7, 13, 1.5)
    expected = legal_metrics(enrol, trial, n_bootstrap=20, seed=4)

    def turned(one: AttackSide) -> AttackSide:
        vectors = dict(reversed(one.vectors.items()))
        utt2spk = {utt: utt.split("-")[1] for utt in reversed(list(one.vectors))}
        floats = {utt: x.astype(np.float32) for utt, x in vectors.items()}
        return make_side(floats, utt2spk, vectors_path="x", utt2spk_path="y")

    again = legal_metrics(turned(enrol), turned(trial), n_bootstrap=20, seed=4)
    assert json.dumps(expected) == json.dumps(again)
    assert legal_metrics(enrol, trial, seed=5)[SING] != expected[SING]


def test_lone_speakers_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    enrol, trial = people(2, 8, 12, 1.5)
    most = [s for s in enrol.spk2utt if s != "s03"]
    expected = legal_metrics(enrol.only(most), trial.only(most))
    assert not caplog.text
    assert legal_metrics(enrol, trial.only(most)) == expected
    assert "1 speakers without trial utterances are left out" in caplog.text
    assert legal_metrics(enrol.only(most), trial) == expected
    assert "1 speakers without enrolment utterances are left out" in caplog.text


def test_undefined_is_none_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    enrol, trial = people(2, 4, 5, 1.0)
    one = legal_metrics(enrol.only(["s00"]), trial.only(["s00"]), n_bootstrap=10)
    assert one["n_speakers"] == 1
    for name in (LINK, SING, f"chance_{LINK}", f"chance_{SING}"):
        assert one[name] is None
    assert set(one["intervals"].values()) == {None}
    assert f"{LINK} is undefined: one speaker" in caplog.text
    caplog.clear()
    long = legal_metrics(enrol, trial, lengths=[3, 6])
    assert long["legal_linkability_3_recordings"] is not None
    assert long["legal_singling_out_3_recordings"] is None
    assert long["legal_linkability_6_recordings"] is None
    said = "legal_linkability_6_recordings is undefined: no speaker has 6 trial utterances"
    assert said in caplog.text
    assert "legal_singling_out_3_recordings is undefined: 0 speakers have the 6" in caplog.text


def test_few_calibration_conversations_are_told(caplog: pytest.LogCaptureFixture) -> None:
    enrol, trial = people(2, 6, 12, 1.0)
    short = trial.spk2utt | {"s02": trial.spk2utt["s02"][:4]}
    figures = legal_metrics(enrol, AttackSide(trial.vectors, short), lengths=[1])
    assert figures["n_calibration_legal_singling_out"] == 3
    said = "3 calibration conversations a speaker where the method takes 9 (speaker s02"
    assert said in caplog.text


def test_intervals_are_over_speakers() -> None:
    """Many utterances of few people leave the interval as wide as few people warrant."""
    enrol, trial = people(11, 12, 40, 2.0)
    figures = legal_metrics(enrol, trial, lengths=[1], n_bootstrap=400)
    low, high = figures["intervals"][LINK]
    assert low < figures[LINK] < high
    rates = list(figures[f"{LINK}_per_speaker"].values())
    assert (high - low) / 2 == pytest.approx(1.96 * np.std(rates) / math.sqrt(12), rel=0.15)
    assert figures["n_bootstrap"] == 400


def test_test_and_calibration_share_no_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    enrol, trial = people(0, 4, 9, 1.0)
    seen: list[tuple[np.ndarray, list[np.ndarray]]] = []
    score = legal.score_conversations

    def spy(models: object, conversations: dict) -> object:
        seen.extend((c.test, c.calibration) for c in conversations.values())
        return score(models, conversations)

    monkeypatch.setattr(legal, "score_conversations", spy)
    legal_metrics(enrol, trial, lengths=[1], n_folds=20)
    assert len(seen) == 80
    assert {len(calibration) for _, calibration in seen} == {8}
    assert not any((test == c).all() for test, calibration in seen for c in calibration)
    assert len({test.tobytes() for test, _ in seen}) > 20  # folds differ


SPOKEN = {"t1": "007", "t2": "NA", "t3": "007", "t4": "NA"}
TRIAL = {"t1": "1 0.1", "t2": "0 2", "t3": "3 1", "t4": "0.1 1"}


def files(tmp_path: Path, trial: dict[str, str] = TRIAL, spoken: dict[str, str] = SPOKEN) -> list:
    """Arguments for two sides of text archives; the enrolment is good."""
    arguments = []
    for name, vectors, utt2spk in (
        ("enrol", {"e1": "1 0", "e2": "0 1"}, {"e1": "007", "e2": "NA"}),
        ("trial", trial, spoken),
    ):
        lines = [f"{utt}  [ {text} ]\n" for utt, text in vectors.items()]
        (tmp_path / f"{name}.ark").write_text("".join(lines))
        write_map(tmp_path / f"{name}.utt2spk", utt2spk)
        arguments += [f"--utt2spk-{name}", str(tmp_path / f"{name}.utt2spk")]
    return [*arguments, *(str(tmp_path / f"{name}.ark") for name in ("enrol", "trial"))]


def test_program_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--bootstrap", "10", *files(tmp_path)]
    assert main([*arguments, str(tmp_path / "out/legal.json")]) == 0
    assert main([*arguments, "-"]) == 0
    text = (tmp_path / "out/legal.json").read_text()
    assert text == capsys.readouterr().out
    figures = json.loads(text)
    assert figures["legal_linkability_per_speaker"] == {"007": 1.0, "NA": 1.0}
    assert figures["legal_design"]["package"] == "voice-anonymization-legal-eval 2.1.0"
    refuses("number from 0, not '-1'", main, ["--bootstrap", "-1", *arguments[2:], "-"])


BAD = {  # message: vectors of the trials, and their speakers
    "utterance t4 is not in": (TRIAL, {k: v for k, v in SPOKEN.items() if k != "t4"}),
    "utterance t5 has no vector in": (TRIAL, SPOKEN | {"t5": "NA"}),
    "t2: holds a value that is not a finite number": (TRIAL | {"t2": "nan 1"}, SPOKEN),
    "all x-vectors are zero, which have no direction": (dict.fromkeys(TRIAL, "0 0"), SPOKEN),
    "t3": (TRIAL | {"t3": "1 2 3"}, SPOKEN),
    "vectors of 3 values, but of 2 in": ({k: f"{v} 1" for k, v in TRIAL.items()}, SPOKEN),
    "keep the sets apart": (TRIAL | {"e1": "1 1"}, SPOKEN | {"e1": "NA"}),
    "no speaker of": (TRIAL, dict.fromkeys(SPOKEN, "7")),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path: Path, message: str) -> None:
    arguments = [*files(tmp_path, *BAD[message]), str(tmp_path / "out.json")]
    assert str(tmp_path) in refuses(message, main, arguments)
    assert not (tmp_path / "out.json").exists()


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize(
    ("gender", "n", "linked"),
    [("f", 16, {"OO": 0.895, "OA": 0.061, "AA": 0.424}),
     ("m", 13, {"OO": 0.947, "OA": 0.078, "AA": 0.451})],
)  # fmt: skip
def test_real_xvectors_of_b1(corpora, gender, n, linked, caplog):
    """B1 defeats the ignorant attacker, not the one who protects the enrolment too."""
    caplog.set_level(logging.ERROR)
    root = corpora / "vpc2020_libri_test"
    for condition, expected in linked.items():
        sides = []
        for name, letter in zip(("enrolls", f"trials_{gender}"), condition, strict=True):
            own = f"libri_test_{name}{'_anon' if letter == 'A' else ''}"
            vectors = read_vectors(root / f"xvectors/{own}/xvector.ark")
            utt2spk = read_map(root / f"data/{own}/utt2spk")
            sides.append(make_side(vectors, utt2spk, vectors_path=own, utt2spk_path=own))
        figures = legal_metrics(*sides)
        assert figures["n_speakers"] == n
        assert figures[LINK] == pytest.approx(expected, abs=0.001)
        chance = figures[f"chance_{SING}"]
        if condition == "OO":
            assert figures[SING] > 0.8
        elif condition == "OA":
            assert figures[SING] == pytest.approx(chance, abs=0.06)
        else:
            assert chance < figures[SING] < 0.6
