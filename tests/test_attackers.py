"""Attackers: the plan, training sets at a level, who may be trained on, and records."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from local import record_attack as record_program
from local.protocols.attackers import ATTACKERS, AttackedSystem, plan_attacks
from steps import anonymise, join_draws, make_voice_pool, train_backend, train_encoder
from steps.anonymisers.registry import describe_system
from tests.refusals import accepts, refuses, refuses_words
from tests.test_encoders import change
from utils.archives import write_archive
from utils.datadir import load_data_dir, read_training_speakers
from utils.tables import read_json_object, read_map, write_json

SYSTEMS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/systems"
DRAWN = AttackedSystem("b2r", "spk", ("utt", "spk", "perm", "const"))
FIXED = AttackedSystem("b2", "const")
PERM = AttackedSystem("p", "perm", ("spk", "perm"))


class TestPlan:
    @pytest.mark.parametrize(
        ("name", "system", "evaluator", "why"),
        [
            ("white_box", DRAWN, "e/plda", "only systems of level const"),
            ("semi_informed_backend", DRAWN, "e/cosine", "cosine has nothing to train"),
            ("semi_informed_backend", DRAWN, "level/distance", "--evaluators level/gaussian has"),
            ("semi_informed_backend", DRAWN, "e/cosine_raw", "cosine_raw has nothing to train"),
            ("semi_informed", DRAWN, "hub:a/b/plda", "comes trained"),
            ("semi_informed", DRAWN, "resemblyzer/plda", r"a head on it (_finetuned), and its"),
            ("semi_informed", PERM, "e/plda", "at level utt"),
        ],
    )
    def test_what_does_not_exist_is_skipped_with_why(self, name, system, evaluator, why):
        plan = plan_attacks([name], [system], [evaluator], "utt")
        assert [a.attacker for a in plan.attacks] == ["unprotected"]
        (reason,) = plan.skipped
        assert why in reason.why
        assert str(reason).startswith(f"{name} on {system.name} with {evaluator}: ")

    def test_the_level_of_the_training_set(self):
        def levels(system: AttackedSystem, asked: str) -> list[str]:
            names = [n for n in ATTACKERS if n.startswith("semi_informed")]
            plan = plan_attacks(names, [system], ["e/plda"], asked)
            return sorted({a.level for a in plan.attacks if a.attacker != "unprotected"})

        assert levels(DRAWN, "utt") == ["utt"]
        assert levels(DRAWN, "same") == levels(DRAWN, "spk") == ["spk"]
        assert levels(FIXED, "utt") == ["const"]  # it draws nothing, so it knows no other


def b2r(data: Path, out: Path, *options: object) -> Path:
    """A set protected by b2r."""
    accepts(anonymise.main, *options, SYSTEMS / "b2r.yaml", data, out, out / "wav")
    return out


@pytest.mark.parametrize("name", ["b2", "copy", "const_01"])
def test_a_system_that_draws_nothing_has_no_level(name):
    refuses("known: none: it draws nothing", describe_system, SYSTEMS / f"{name}.yaml", "utt")


def draw(tmp_path: Path, data: Path, number: int, *words: str) -> Path:
    """A draw of a protected set, each utterance with its own voice."""
    options = ("--level", "utt", "--dataset", "train", "--draw", number)
    return b2r(data, tmp_path / f"draw{number}", *options, *words)


class TestDraws:
    def test_a_person_has_each_utterance_with_several_voices(self, tmp_path, make_data_dir):
        data = make_data_dir(tmp_path / "train", {"s1": 2, "s2": 1})
        draws = [draw(tmp_path, data, number) for number in (0, 1, 2)]
        out = tmp_path / "joined"
        accepts(join_draws.main, out, *draws)
        utts = [
            f"{utt}{of}" for utt in load_data_dir(data).utt2spk for of in ("", "-draw1", "-draw2")
        ]
        joined = load_data_dir(out)
        assert sorted(joined.utt2spk) == sorted(utts) and set(joined.spk2utt) == {"s1", "s2"}
        assert {joined.tables["utt2uniq"][utt] for utt in joined.spk2utt["s2"]} == {"s2-000"}
        assert len({Path(joined.wav[utt]).read_bytes() for utt in utts}) == len(utts)
        conf = read_json_object(out / "conf.json", "")
        assert (conf["draw"], conf["key_level"]) == ([0, 1, 2], "utt")

    def test_what_is_no_other_draw_is_refused(self, tmp_path, make_data_dir):
        data = make_data_dir(tmp_path / "train", {"s1": 2, "s2": 1})
        first, other = draw(tmp_path, data, 0), draw(tmp_path, data, 1, "--seed", "5")
        words = [tmp_path / "joined", first]
        refuses_words("is not a draw of .*: another seed", join_draws.main, *words, other)
        refuses_words("two of the draws have the same number", join_draws.main, *words, first)


def train(*words: object) -> int:
    return train_encoder.main(["--workers", "0", *map(str, words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory, make_data_dir) -> tuple[Path, Path, Path]:
    """Settings, data, and an encoder trained with them, which tests leave as they are."""
    folder = tmp_path_factory.mktemp("trained")
    (conf := folder / "conf.yaml").write_text(yaml.safe_dump(change()))
    data = make_data_dir(folder / "data", {f"s{i}": 2 for i in range(4)}, seconds=0.5)
    assert train(conf, data, folder / "encoder") == 0
    return conf, data, folder / "encoder"


def test_another_network_cannot_be_gone_on_from(trained, tmp_path):
    (conf := tmp_path / "conf.yaml").write_text(yaml.safe_dump(change(network__embedding=5)))
    words = ("--init-from", trained[2], conf, trained[1], tmp_path / "x")
    refuses("not those of the settings", train, *words)
    assert not (tmp_path / "x/final.pt").exists()


class TestWhoIsTestedIsNotInTraining:
    @pytest.fixture
    def tested(self, tmp_path, make_data_dir) -> Path:
        return make_data_dir(tmp_path / "tested", {"s3": 1, "z": 1})

    def check(self, program, *words: object) -> None:
        said = r"speaker s3 \(1 in all\) is also in .*tested"
        refuses_words(said, program.main, *words)

    def test_encoder(self, trained, tested, tmp_path):
        conf, data, _ = trained
        self.check(train_encoder, "--not-speakers-of", tested, conf, data, tmp_path / "x")
        assert not (tmp_path / "x").exists()

    def test_an_encoder_given_as_a_folder_was_not_asked(self, trained, tmp_path, make_data_dir):
        conf, _, model = trained
        tested, other = make_data_dir(tmp_path / "tested", {"s3": 2}), tmp_path / "others"
        sides = ("--attacker", "unprotected", "--enrol", tested, "--trial", tested)
        words = (*sides, "--backend", "cosine", "--encoder", model, tmp_path / "a.json")
        self.check(record_program, *words)
        assert not (tmp_path / "a.json").exists()
        make_data_dir(other, {"y": 2, "z": 2})
        fine = ("--init-from", model, conf, other)
        self.check(train_encoder, "--not-speakers-of", tested, *fine, tmp_path / "x")
        train(*fine, tmp_path / "x")
        heard = {"y", "z", *read_training_speakers(model)}
        assert set(read_training_speakers(tmp_path / "x")) == heard
        bare = shutil.copytree(model, tmp_path / "bare")
        (bare / "spklist").unlink()
        accepts(record_program.main, *sides, "--backend", "cosine", "--encoder", bare, words[-1])
        train("--init-from", bare, conf, other, tmp_path / "x2")
        record = read_json_object(tmp_path / "a.json", "")
        assert record["encoder"]["training_speakers"] == "not known"
        assert read_training_speakers(tmp_path / "x2") is None

    def test_back_end_and_pool(self, tested, tmp_path, make_data_dir):
        data = make_data_dir(tmp_path / "data", {"s3": 2, "s4": 2})
        utts = sorted(read_map(data / "utt2spk"))
        vectors = np.eye(len(utts), dtype=np.float32)
        write_archive(tmp_path / "xvectors/xvector", dict(zip(utts, vectors, strict=True)))
        words = ("--not-speakers-of", tested, tmp_path / "xvectors", data)
        self.check(train_backend, *words, tmp_path / "out")
        self.check(make_voice_pool, *words, tmp_path / "xvectors", tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.fixture
def protect(tmp_path, make_data_dir):
    """Makes a set that a system protected: `protect("test", level="spk", dataset="test")`."""

    def make(name: str, level: str, dataset: str, speakers=("a", "b")) -> Path:
        data = make_data_dir(tmp_path / f"{name}_original", dict.fromkeys(speakers, 2))
        return b2r(data, tmp_path / name, "--level", level, "--dataset", dataset)

    return make


@pytest.fixture
def record(tmp_path):
    """Makes the record of an attack: `record("ignorant", enrolment, trial, OPTIONS)`."""

    def make(attacker: str, enrol: Path, trial: Path, *more: object) -> dict:
        words = ["--attacker", attacker, "--enrol", enrol, "--trial", trial, *more]
        words += ["--encoder", "resemblyzer", "--backend", "cosine", tmp_path / "a.json"]
        accepts(record_program.main, *words)
        return read_json_object(tmp_path / "a.json", "")

    return make


class TestRecord:
    def test_draws_differ_and_are_told(self, record, protect):
        enrol, trial = protect("e", "spk", "e"), protect("t", "spk", "t")
        train = protect("train", "utt", "train", ("x", "y"))
        found = record("semi_informed_backend", enrol, trial, "--training", train)
        assert (found["condition"], found["evaluator"]) == ("AA", "backend")
        draws, both, sharing = found["comparison"].values()
        assert (draws, both, sharing) == ("different (level spk)", 2, 0)
        assert found["training_set"]["key_level"] == "utt"
        assert (found["trial_set"]["seed"], found["trial_set"]["draw"]) == (0, 0)

    def test_held_out_people_of_the_training_set(self, tmp_path, record, protect):
        sides = protect("e", "spk", "e"), protect("t", "spk", "t")
        train, folder = protect("train", "utt", "train", ("x", "y")), tmp_path / "held_out"
        told = {"held_out_people": 0, "pseudo_voice_accuracy": None, "pseudo_voice_chance": None,
                "held_out_why_undefined": "2 training people"}  # fmt: skip
        write_json(folder / "held_out.json", told)
        words = ("semi_informed", *sides, "--training", train, "--held-out", folder)
        told |= {"held_out_eer": None, "held_out_eer_ci": None}
        assert told.items() <= record(*words).items()

    def test_a_shared_draw_is_an_error_unless_the_level_says_so(self, record, protect):
        sides = protect("e", "spk", "same"), protect("t", "spk", "same")
        refuses(r"speaker a has the draw of .*; at level spk", record, "lazy_informed", *sides)
        sides = protect("pe", "perm", "e"), protect("pt", "perm", "t")
        found = record("lazy_informed", *sides)
        assert found["comparison"]["draws"] == "shared (level perm)"

    def test_the_training_set_has_nobody_of_the_trials(self, record, protect):
        words = protect("e", "spk", "e"), protect("t", "spk", "t"), "--training"
        train = protect("train", "utt", "train", ("x", "b"))
        refuses(r"speaker b \(1 in all\) is also in ", record, "semi_informed", *words, train)

    def test_sets_are_what_the_attacker_is_said_to_have(self, record, protect):
        trial = protect("t", "spk", "t")
        refuses("is protected speech; ignorant is OA", record, "ignorant", trial, trial)
        refuses("nobody is unknown; known: ignorant", record, "nobody", trial, trial)

    def test_pairs_of_the_aligned_attacker(self, tmp_path, record, protect):
        enrol, trial = tmp_path / "e_original", protect("t", "spk", "t")
        protected, other = protect("e", "spk", "e"), protect("o", "spk", "o", ("x", "y"))
        words = ("aligned", enrol, trial)
        refuses(
            r"utterance a-000 is also in .*know the answer", record, *words, "--pairs", protected
        )
        found = record(*words, "--pairs", other)
        assert found["pairs"]["n_utterances"] == 4
        assert found["pairs"]["comparison"]["n_speakers_in_both"] == 0
        refuses("only the attacker aligned learns from pairs", record, *words)
        refuses("is original speech; the pairs", record, *words, "--pairs", enrol)
