"""Attackers: the plan, training sets at a level, who may be trained on, records, the strongest."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from local import record_attack as record_program
from local.protocols.attackers import ATTACKERS, System, plan_attacks
from local.report import select, tables
from local.report.words import absent
from steps import anonymise, make_voice_pool, train_backend, train_encoder
from steps.anonymisers.registry import describe_system
from steps.speaker.config import EncoderConfig
from steps.speaker.encoders import load_network
from steps.training.settings import read_config
from tests.making import write_archive
from tests.refusals import refuses
from tests.report_rows import Figure, frame
from tests.report_rows import figure as made_up
from utils.cli import UserError
from utils.datadir import read_training_speakers
from utils.settings import list_settings, read_settings
from utils.tables import read_map

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS = ROOT / "egs/TEMPLATE/conf/systems"
DRAWN = System("b2r", "spk", ("utt", "spk", "perm", "const"))
FIXED = System("b2", "const")


class TestPlan:
    def test_each_attacker_with_each_evaluator_unprotected_speech_first(self) -> None:
        plan = plan_attacks(["ignorant", "semi_informed"], [DRAWN], ["e/plda", "f/plda"], "utt")
        assert [
            (a.evaluator, a.system, a.parts.condition, a.protection, a.parts.evaluator, a.level)
            for a in plan.attacks
        ] == [
            (f"{e}/plda", *rest)
            for e in "ef"
            for rest in (
                ("original", "OO", ("", ""), "original", "-"),
                ("b2r", "OA", ("", "b2r"), "original", "-"),
                ("b2r", "AA", ("b2r", "b2r"), "scratch", "utt"),
            )
        ]
        assert not plan.skipped

    @pytest.mark.parametrize(
        ("name", "system", "evaluator", "why"),
        [
            ("white_box", DRAWN, "e/plda", "only systems of level const"),
            ("semi_informed_backend", DRAWN, "e/cosine", "cosine has nothing to train"),
            ("semi_informed", DRAWN, "hub:a/b/plda", "comes trained"),
            ("semi_informed_finetuned", DRAWN, "resemblyzer/plda", "comes trained"),
            ("semi_informed", System("p", "perm", ("spk", "perm")), "e/plda", "at level utt"),
        ],
    )
    def test_what_does_not_exist_is_skipped_with_why(
        self, name: str, system: System, evaluator: str, why: str
    ) -> None:
        plan = plan_attacks([name], [system], [evaluator], "utt")
        assert [a.attacker for a in plan.attacks] == ["unprotected"]
        (reason,) = plan.skipped
        assert why in reason
        assert reason.startswith(f"{name} on {system.name} with {evaluator}: ")

    def test_the_level_of_the_training_set(self) -> None:
        def levels(system: System, asked: str) -> list[str]:
            names = [n for n in ATTACKERS if n.startswith("semi_informed")]
            plan = plan_attacks(names, [system], ["e/plda"], asked)
            return sorted({a.level for a in plan.attacks if a.attacker != "unprotected"})

        assert levels(DRAWN, "utt") == ["utt"]
        assert levels(DRAWN, "same") == levels(DRAWN, "spk") == ["spk"]
        assert levels(FIXED, "utt") == ["const"]  # it draws nothing, so it knows no other
        assert levels(System("v", "position", ("spk", "utt")), "utt") == ["position"]

    def test_the_aligned_one_trains_nothing(self) -> None:
        plan = plan_attacks(["aligned"], [DRAWN], ["resemblyzer/cosine"], "utt")
        attack = plan.attacks[1]
        assert (attack.parts.evaluator, attack.level) == ("aligned", "-")
        assert attack.protection == ("", "b2r")

    def test_white_box_hears_the_very_target(self) -> None:
        constant = System("c", "const", ("utt", "spk", "perm", "const"))
        plan = plan_attacks(["semi_informed", "white_box"], [constant], ["e/plda"], "utt")
        assert [a.level for a in plan.attacks[1:]] == ["utt", "const"]

    def test_unknown_names_are_told_with_those_known(self) -> None:
        with pytest.raises(
            UserError, match=r"psychic is unknown; known: ignorant aligned lazy_informed "
        ):
            plan_attacks(["psychic"], [], [], "utt")
        refuses(r"const is unknown; known: utt spk same", plan_attacks, [], [], [], "const")


class TestLevels:
    @pytest.mark.parametrize("name", list_settings(SYSTEMS))
    def test_every_system_can_have_the_levels_that_it_says(self, name: str) -> None:
        conf = SYSTEMS / f"{name}.yaml"
        for level in describe_system(conf).levels:
            described = describe_system(conf, level)
            assert described.level == level or "compat" in read_settings(conf)
            assert described.needs == describe_system(conf).needs

    @pytest.mark.parametrize("name", ["b2", "copy", "const_01"])
    def test_a_system_that_draws_nothing_has_none(self, name: str) -> None:
        refuses("known: none: it draws nothing", describe_system, SYSTEMS / f"{name}.yaml", "utt")

    def test_utterances_of_a_training_set_get_draws_of_their_own(self, tmp_path, make_data_dir):
        data = make_data_dir(tmp_path / "train", {"s1": 3, "s2": 3})
        n_draws = {}
        for level in ("utt", "spk"):
            out = tmp_path / level
            words = ["--level", level, str(SYSTEMS / "b2r.yaml"), str(data), str(out)]
            assert anonymise.main([*words, str(out / "wav")]) == 0
            assert json.loads((out / "conf.json").read_text())["key_level"] == level
            with (out / "pseudo.tsv").open() as stream:
                n_draws[level] = len({r["alpha"] for r in csv.DictReader(stream, delimiter="\t")})
        assert n_draws == {"utt": 6, "spk": 2}


TINY = {
    "encoder": "ecapa",
    "network": {
        "channels": [8, 8, 8, 16],
        "kernel_sizes": [5, 3, 3, 1],
        "dilations": [1, 2, 3, 1],
        "embedding": 6,
        "attention_channels": 4,
        "se_channels": 4,
    },
    "features": {"kind": "fbank", "bins": 20},
    "training": {"steps": 8, "batch": 4, "crop_seconds": [0.3, 0.3], "minimum_seconds": 0.1},
}


@pytest.fixture
def trained(tmp_path, make_data_dir) -> tuple[Path, Path, Path]:
    """Settings, data, and an encoder trained with them."""
    conf = tmp_path / "conf.yaml"
    conf.write_text(yaml.safe_dump(TINY))
    data = make_data_dir(tmp_path / "data", {f"s{i}": 2 for i in range(4)}, seconds=0.5)
    out = tmp_path / "encoder"
    assert train_encoder.main(["--workers", "0", str(conf), str(data), str(out)]) == 0
    return conf, data, out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_network(folder)[1].named_parameters())


class TestFineTuning:
    def test_it_starts_from_the_encoder_and_takes_fewer_steps(self, trained, tmp_path):
        conf, data, first = trained
        tuned = tmp_path / "tuned"
        slow = tmp_path / "slow.yaml"
        settings = {**TINY, "fine_tuning": {"steps": 0.5, "learning_rate": 1e-6}}
        settings["training"] = {**TINY["training"], "final_rate": 0.0, "weight_decay": 0.0}
        slow.write_text(yaml.safe_dump(settings))
        words = ["--workers", "0", "--seed", "5", "--init-from", str(first), str(slow), str(data)]
        assert train_encoder.main([*words, str(tuned)]) == 0
        before = weights(first)
        for name, value in weights(tuned).items():  # at that rate nothing moves
            torch.testing.assert_close(value, before[name], atol=1e-4, rtol=1e-3)
        told = yaml.safe_load((tuned / "encoder.yaml").read_text())
        assert told["trained"]["step"] == 4
        assert told["trained"]["init_from"] == str(first)
        assert read_config(EncoderConfig, conf).training.steps == 8

    def test_a_stopped_one_resumes_to_the_same_bits(self, trained, tmp_path):
        conf, data, first = trained
        words = ["--workers", "0", "--init-from", str(first), "--steps", "4", str(conf), str(data)]
        whole, resumed = tmp_path / "whole", tmp_path / "resumed"
        assert train_encoder.main([*words, str(whole)]) == 0
        settings = json.loads(json.dumps(TINY))
        settings["training"]["checkpoint_every"] = 2
        conf.write_text(yaml.safe_dump(settings))
        assert train_encoder.main([*words, str(resumed)]) == 0
        for path in sorted((resumed / "checkpoints").glob("*.pt"))[1:]:
            path.unlink()
        (resumed / "final.pt").unlink()
        assert train_encoder.main([*words, str(resumed)]) == 0
        uninterrupted = weights(whole)
        for name, value in weights(resumed).items():
            assert torch.equal(value, uninterrupted[name])

    def test_another_network_cannot_be_gone_on_from(self, trained, tmp_path):
        conf, data, first = trained
        settings = json.loads(json.dumps(TINY))
        settings["network"]["embedding"] = 5
        conf.write_text(yaml.safe_dump(settings))
        words = ["--init-from", str(first), str(conf), str(data), str(tmp_path / "x")]
        refuses("not those of the settings", train_encoder.main, words)
        assert not (tmp_path / "x/final.pt").exists()

    def test_parts_are_checked(self, tmp_path):
        path = tmp_path / "conf.yaml"
        path.write_text(yaml.safe_dump({**TINY, "fine_tuning": {"steps": 1.5}}))
        refuses(r"fine_tuning\.steps: 1.5; above 0 and at most 1", read_config, EncoderConfig, path)


class TestWhoIsTestedIsNotInTraining:
    @pytest.fixture
    def tested(self, tmp_path, make_data_dir) -> Path:
        return make_data_dir(tmp_path / "tested", {"s3": 1, "z": 1})

    def check(self, program, *words: object) -> None:
        with pytest.raises(UserError, match=r"speaker s3 \(1 in all\) is in .*tested, too"):
            program.main([str(word) for word in words])

    def test_encoder(self, trained, tested, tmp_path):
        conf, data, _ = trained
        self.check(train_encoder, "--not-speakers-of", tested, conf, data, tmp_path / "x")
        assert not (tmp_path / "x").exists()

    def test_an_encoder_given_as_a_folder_was_not_asked(self, trained, tmp_path, make_data_dir):
        conf, _, model = trained
        tested, other = make_data_dir(tmp_path / "tested", {"s3": 2}), tmp_path / "others"
        words = ("--attacker", "unprotected", "--enrol", tested, "--trial", tested)
        words += ("--backend", "cosine", "--encoder")
        self.check(record_program, *words, model, tmp_path / "a.json")
        assert not (tmp_path / "a.json").exists()
        make_data_dir(other, {"y": 2, "z": 2})
        fine = ("--init-from", model, conf, other)
        self.check(train_encoder, "--not-speakers-of", tested, *fine, tmp_path / "x")
        train_encoder.main([*map(str, fine), str(tmp_path / "x")])
        assert set(read_training_speakers(tmp_path / "x")) == {
            "y", "z", *read_training_speakers(model)
        }  # fmt: skip
        (model / "spklist").rename(model / "kept")
        try:
            record_program.main([*map(str, words), str(model), str(tmp_path / "a.json")])
            train_encoder.main([*map(str, fine), str(tmp_path / "x2")])
        finally:
            (model / "kept").rename(model / "spklist")
        record = json.loads((tmp_path / "a.json").read_text())
        assert record["encoder"]["training_speakers"] == "not known"
        assert read_training_speakers(tmp_path / "x2") is None

    def test_back_end_and_pool(self, tested, tmp_path, make_data_dir):
        data = make_data_dir(tmp_path / "data", {"s3": 2, "s4": 2})
        write_archive(
            tmp_path / "xvectors/xvector",
            {
                utt: np.eye(4, dtype=np.float32)[i]
                for i, utt in enumerate(sorted(read_map(data / "utt2spk")))
            },
        )
        words = ("--not-speakers-of", tested, tmp_path / "xvectors", data)
        self.check(train_backend, *words, tmp_path / "out")
        self.check(make_voice_pool, *words, tmp_path / "xvectors", tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.fixture
def protect(tmp_path, make_data_dir):
    """Makes a set that a system protected: `protect("test", level="spk", dataset="test")`."""

    def make(name: str, level: str, dataset: str, speakers=("a", "b")) -> Path:
        data = make_data_dir(tmp_path / f"{name}_original", dict.fromkeys(speakers, 2))
        out = tmp_path / name
        words = ["--level", level, "--dataset", dataset, str(SYSTEMS / "b2r.yaml"), str(data)]
        assert anonymise.main([*words, str(out), str(out / "wav")]) == 0
        return out

    return make


class TestRecord:
    def record(self, out: Path, attacker: str, enrol: Path, trial: Path, *more: str) -> dict:
        words = ["--attacker", attacker, "--enrol", str(enrol), "--trial", str(trial)]
        words += ["--encoder", "resemblyzer", "--backend", "cosine", *more, str(out / "a.json")]
        assert record_program.main(words) == 0
        return json.loads((out / "a.json").read_text())

    def test_draws_differ_and_are_told(self, tmp_path, protect):
        enrol, trial = protect("e", "spk", "e"), protect("t", "spk", "t")
        train = protect("train", "utt", "train", ("x", "y"))
        found = self.record(
            tmp_path, "semi_informed_backend", enrol, trial, "--training", str(train)
        )
        assert found["condition"] == "AA"
        assert found["comparison"] == {
            "draws": "different (level spk)",
            "n_speakers_in_both": 2,
            "n_speakers_sharing_a_draw": 0,
        }
        assert found["training_set"]["key_level"] == "utt"
        assert (found["trial_set"]["seed"], found["trial_set"]["draw"]) == (0, 0)
        assert found["evaluator"] == "backend"

    def test_a_shared_draw_is_an_error_unless_the_level_says_so(self, tmp_path, protect):
        enrol, trial = protect("e", "spk", "same"), protect("t", "spk", "same")
        with pytest.raises(UserError, match=r"speaker a has the draw of .*; at level spk"):
            self.record(tmp_path, "lazy_informed", enrol, trial)
        enrol, trial = protect("pe", "perm", "e"), protect("pt", "perm", "t")
        found = self.record(tmp_path, "lazy_informed", enrol, trial)
        assert found["comparison"]["draws"] == "shared (level perm)"

    def test_the_training_set_has_nobody_of_the_trials(self, tmp_path, protect):
        enrol, trial = protect("e", "spk", "e"), protect("t", "spk", "t")
        train = protect("train", "utt", "train", ("x", "b"))
        with pytest.raises(UserError, match=r"speaker b \(1 in all\) is in "):
            self.record(tmp_path, "semi_informed", enrol, trial, "--training", str(train))

    def test_sets_are_what_the_attacker_is_said_to_have(self, tmp_path, protect):
        trial = protect("t", "spk", "t")
        with pytest.raises(UserError, match="is protected speech; ignorant is OA"):
            self.record(tmp_path, "ignorant", trial, trial)
        refuses("nobody is unknown; known: ignorant", self.record, tmp_path, "nobody", trial, trial)

    def test_pairs_of_the_aligned_attacker(self, tmp_path, protect):
        enrol, trial = tmp_path / "e_original", protect("t", "spk", "t")
        protected, other = protect("e", "spk", "e"), protect("o", "spk", "o", ("x", "y"))
        with pytest.raises(UserError, match=r"utterance a-000 is in .*know the answer"):
            self.record(tmp_path, "aligned", enrol, trial, "--pairs", str(protected))
        found = self.record(tmp_path, "aligned", enrol, trial, "--pairs", str(other))
        assert found["pairs"]["n_utterances"] == 4
        assert found["pairs"]["comparison"]["n_speakers_in_both"] == 0
        refuses("for the attacker aligned", self.record, tmp_path, "aligned", enrol, trial)
        with pytest.raises(UserError, match="is original speech; the pairs"):
            self.record(tmp_path, "aligned", enrol, trial, "--pairs", str(enrol))


def figure(attacker: str, metric: str, value: str, **more: str) -> Figure:
    of = {"system": "b2", "split": "s_f", "condition": "AA", "n_speakers": "4"} | more
    return made_up(of.pop("system"), attacker, metric, value, 0.1, 0.6, **of)


class TestStrongest:
    FIGURES = (
        figure("unprotected", "eer", "0.02", system="original", condition="OO"),
        figure("ignorant", "eer", "0.4"),
        figure("ignorant", "d_ece", "0.05"),
        figure("semi_informed", "eer", "0.25"),
        figure("semi_informed", "d_ece", ""),  # not defined
        figure("semi_informed", "eer", "0.3", evaluator="f"),
        figure("lazy_informed", "d_ece", "0.2", evaluator="f"),
    )

    def test_the_lowest_eer_and_the_highest_disclosure_may_be_of_two(self) -> None:
        (found,) = select.strongest(frame(self.FIGURES))
        assert found.eer is not None and found.d_ece is not None
        assert (found.eer.attacker, found.eer.evaluator) == ("semi_informed", "e")
        assert (found.d_ece.attacker, found.d_ece.evaluator) == ("lazy_informed", "f")
        assert found.eers == 3
        table = tables.strongest_table(frame(self.FIGURES))
        assert table.rows == [
            ["s_f", "b2", "25.0 [10.0, 60.0]", "semi-informed", "e", "0.200 [0.100, 0.600]",
             "lazy-informed", "f", "2.0 [10.0, 60.0]", "3", "4"]
        ]  # fmt: skip

    def test_order_does_not_matter(self) -> None:
        found = (select.strongest(frame(rows)) for rows in (self.FIGURES, self.FIGURES[::-1]))
        assert len({repr(own) for own in found}) == 1

    def test_nothing_defined_is_said(self) -> None:
        (row,) = tables.strongest_table(frame([figure("ignorant", "eer", "")])).rows
        assert row[2:5] == ["not defined", "-", "-"]
        assert tables.strongest_table(frame([])).rows == []

    def test_one_kind_of_an_attacker_is_enough(self) -> None:
        known = ["unprotected", "ignorant", "aligned", "lazy_informed", "semi_informed_backend"]
        assert absent(known) == ["white_box"]
