"""Whether an attacker learnt people: training people held out, and pseudo-voices told apart."""

import re
from pathlib import Path

import numpy as np
import pytest

from local.metrics.verification import eer_with_interval, verification
from local.protocols.attackers import record_held_out
from steps import score_held_out
from steps.speaker import held_out
from tests.refusals import accepts, refuses
from tests.scored import people_of
from utils.archives import write_archive
from utils.datadir import (
    DataDir,
    read_validation_speakers,
    write_data_dir,
    write_training_speakers,
    write_validation_speakers,
)
from utils.tables import write_json, write_map
from utils.trials import join_scores, read_scores, read_trials

DIM, PIECES, DRAWS = 24, 3, 3


def made_up(
    people: int, utterances: int, *, of_person: float, of_voice: float, draws: int = DRAWS,
    lasting: bool = False,
) -> DataDir:  # fmt: skip
    """Protected utterances, and their x-vectors with so much of person and of pseudo-voice.

    lasting: a person has one pseudo-voice a draw; else each utterance has its own.
    """
    tables: dict[str, dict[str, str]] = {name: {} for name in ("utt2spk", "utt2uniq", "spk2gender")}
    rng, vectors = np.random.default_rng(3), {}
    for n in range(people):
        person = f"p{n:02d}"
        tables["spk2gender"][person] = "fm"[n % 2]
        voice_of_person, first = rng.normal(size=DIM), dict[int, np.ndarray]()
        for u in range(utterances):
            for d in range(draws):
                utt = f"{person}-{u}" + (f"-draw{d}" if d else "")
                tables["utt2spk"][utt], tables["utt2uniq"][utt] = person, f"{person}-{u}"
                voice = rng.normal(size=DIM)
                voice = first.setdefault(d, voice) if lasting else voice
                for piece in range(PIECES):
                    vector = of_person * voice_of_person + of_voice * voice
                    noisy = vector + 0.1 * rng.normal(size=DIM)
                    vectors[f"{utt}-c{piece:04d}"] = noisy.astype(np.float32)
    data = DataDir(Path("made/up"), tables)
    VECTORS[id(data)] = vectors
    return data


VECTORS: dict[int, dict[str, np.ndarray]] = {}


def speakers(vectors: held_out.Vectors) -> dict[str, str]:
    return {key: key.partition("-")[0] for key in vectors}


class Plain:
    """Inner products."""

    dim = None

    def left(self, vectors, counts):
        return vectors

    def right(self, vectors):
        return vectors


def attack(data: DataDir, heard: list[set[str]] | None = None) -> held_out.HeldOut:
    def learn(kept, utt2spk):
        if heard is not None:
            heard.append(set(utt2spk.values()))
        return Plain()

    vectors = VECTORS[id(data)]
    return held_out.attack_held_out(vectors, speakers(vectors), data, learn)


def write(folder: Path, data: DataDir) -> tuple[Path, Path]:
    """Folders of the x-vectors and of the data."""
    vectors = VECTORS[id(data)]
    write_data_dir(folder / "data", data.tables)
    write_archive(folder / "xvectors/xvector", vectors)
    write_map(folder / "xvectors/utt2spk", speakers(vectors))
    return folder / "xvectors", folder / "data"


def run(tmp_path: Path, data: DataDir, *options: str) -> dict:
    """Figures that attacker.json gets."""
    words = [*map(str, write(tmp_path, data)), tmp_path / "out"]
    accepts(score_held_out.main, "--lda-dim", "8", *options, *words)
    return record_held_out(tmp_path / "out", tmp_path / "data")


class TestWhatWasLearnt:
    def test_who_learns_people_finds_those_held_out(self, tmp_path):
        found = run(tmp_path, made_up(12, 4, of_person=1, of_voice=0.3))
        assert found["held_out_eer"] < 0.1 and found["held_out_people"] == 12
        low, high = found["held_out_eer_ci"]
        assert 0 <= low <= found["held_out_eer"] <= high < 0.2
        assert found["pseudo_voice_chance"] == pytest.approx(1 / DRAWS)

    @pytest.mark.parametrize(("level", "draws"), [("spk", 1), ("spk", 2), ("perm", 2)])
    def test_at_level_spk_who_hears_voices_seemed_to_find_people(self, tmp_path, level, draws):
        """A person's pairs had one pseudo-voice, and the attacker passed the control."""
        data = made_up(12, 10, of_person=0, of_voice=1, draws=draws, lasting=True)
        conf = write(tmp_path, data)[1] / "conf.json"
        write_json(conf, {"key_level": level, "is_random": True})
        found = run(tmp_path, data)
        if draws == 1:
            assert "no pairs of two draws" in found["held_out_why_undefined"]
            assert found["held_out_eer"] is None
        else:
            assert found["held_out_eer"] > 0.45  # 40 % of pairs in the same draw, too

    def test_by_hand(self):
        """Inner products 2 < 3, 2 > 0, 1 > 0 and 1 < 3: two of four pieces find their own draw."""
        vectors = {"a-0-c0000": [1, 0], "a-0-c0001": [2, 0], "a-0-draw1-c0000": [0, 1],
                   "a-0-draw1-c0001": [3, 1]}  # fmt: skip
        utts = {"a-0": "a", "a-0-draw1": "a"}
        data = DataDir(Path("x"), {"utt2spk": utts, "utt2uniq": dict.fromkeys(utts, "a-0")})
        rows = {key: np.array(v, np.float32) for key, v in vectors.items()}
        draws, result = held_out.arrange(rows, data)["a"]["a-0"], held_out.HeldOut()
        held_out._find_pseudo_voices(Plain(), rows, draws, result)
        assert (result.found, result.chances) == (2, [0.5] * 4)


class TestWhoIsHeldOut:
    def test_nobody_who_taught_the_attacker(self):
        heard: list[set[str]] = []
        data = made_up(23, 3, of_person=1, of_voice=1)
        result = attack(data, heard=heard)
        people = {f"p{n:02d}" for n in range(23)}
        assert len(heard) == 2 and heard[0] | heard[1] == people
        assert set(result.people) == people and not (heard[0] & heard[1])
        utts = data.tables["utt2uniq"]
        gender = data.tables["spk2gender"]
        for enrol, trial, target in result.trials:
            one, other = data.utt2spk[enrol], data.utt2spk[trial]
            assert utts[enrol] != utts[trial] and target == (one == other)
            assert gender[one] == gender[other]
            assert any({one, other}.isdisjoint(taught) for taught in heard)

    def test_a_woman_alone_among_men_is_not_compared_with_herself(self):
        data = made_up(11, 3, of_person=1, of_voice=1)
        data.tables["spk2gender"].update({f"p{n:02d}": "fm"[n > 0] for n in range(11)})
        compared = {data.utt2spk[utt] for one in attack(data).trials for utt in one[:2]}
        assert compared == {f"p{n:02d}" for n in range(1, 11)}

    def test_pieces_of_a_draw_that_the_data_lack_ended_in_a_traceback(self):
        data = made_up(12, 3, of_person=1, of_voice=1)
        del data.tables["utt2spk"]["p03-1-draw2"]
        refuses("p03-1-draw2-c0000: belongs to no utterance in made/up", attack, data)

    def test_x_vectors_that_are_all_equal_ended_in_a_traceback(self, tmp_path):
        data = made_up(12, 3, of_person=0, of_voice=0)
        VECTORS[id(data)] = {key: np.ones(DIM, np.float32) for key in VECTORS[id(data)]}
        refuses("xvectors: all x-vectors of each speaker are equal", run, tmp_path, data)

    def test_fifty_are_enough(self):
        heard: list[set[str]] = []
        result = attack(made_up(260, 2, of_person=1, of_voice=1), heard=heard)
        assert len(result.people) == 50 and [len(one) for one in heard] == [210]

    @pytest.mark.parametrize(
        ("people", "utterances", "unheard", "why"),
        [
            (9, 3, None, "9 training people with two utterances or more; 10 are needed"),
            (20, 1, None, "0 training people with two utterances"),
            (20, 2, ["p01", "p02"], "2 training people .* whom the encoder did not learn from"),
        ],
    )
    def test_too_few_is_undefined_and_says_so(self, people, utterances, unheard, why, tmp_path):
        data = made_up(people, utterances, of_person=1, of_voice=1)
        model = tmp_path / "model"
        write_validation_speakers(model, unheard or [], None)
        found = run(tmp_path, data, *(["--own-encoder", str(model)] if unheard else []))
        assert found["held_out_eer"] is None and found["held_out_people"] == 0
        assert re.match(why, found["held_out_why_undefined"])
        assert not (tmp_path / "out/trials").exists()

    def test_one_draw_has_no_accuracy_of_pseudo_voices(self, tmp_path):
        data = made_up(12, 4, of_person=1, of_voice=0.3)
        kept = {utt: spk for utt, spk in data.utt2spk.items() if "draw" not in utt}
        one = DataDir(data.path, {"utt2spk": kept, "spk2gender": data.tables["spk2gender"]})
        VECTORS[id(one)] = {k: v for k, v in VECTORS[id(data)].items() if "draw" not in k}
        found = run(tmp_path, one)
        assert found["pseudo_voice_accuracy"] is None and found["held_out_eer"] < 0.1


def test_people_of_validation_count_unless_the_encoder_before_learnt_from_them(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    write_training_speakers(before, ["a", "b", "c"])
    write_validation_speakers(before, ["b"], None)
    write_validation_speakers(after, ["a", "b", "z"], before)
    assert read_validation_speakers(after) == ["b", "z"]
    assert read_validation_speakers(tmp_path) == []


def test_the_interval_is_that_of_all_figures(tmp_path):
    data = made_up(12, 4, of_person=0.4, of_voice=1)
    run(tmp_path, data)
    trials = read_trials(tmp_path / "out/trials")
    score = join_scores(trials, read_scores(tmp_path / "out/scores"))
    who = people_of(trials, data.utt2spk)
    eer, interval = eer_with_interval(trials, score, who, 40)
    report = verification(trials, score, speakers=who, n_bootstrap=40, seed=0)
    assert (eer, interval) == (report["eer"], report["intervals"]["eer"])
