"""The training loop that all networks share, on a line that is fitted to points."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from steps.training.loop import Trainer, Training, descend, save_atomically, train
from steps.training.settings import LoopSettings, identity
from tests.refusals import refuses
from tests.world import assert_same_network
from utils.seeds import make_rng
from utils.settings import read_settings

PLAN = LoopSettings(12, log_every=5, valid_every=4, checkpoint_every=3)
SETTINGS = {"training": {"steps": 12}}


@dataclass
class Line(Trainer):
    """y = 3 x; `figures`: what validations are to say, in turn."""

    plan: LoopSettings = PLAN
    seed: int = 0
    device: str = "cpu"
    figures: list[float] = field(default_factory=list)
    stop_at: int = -1
    fail_at: int = -1
    best_by = "far"

    def __post_init__(self) -> None:
        torch.manual_seed(self.seed)
        self.network = nn.Linear(1, 1)
        self.optimiser = torch.optim.Adam(self.network.parameters(), 0.1)

    def batch(self, step: int) -> Tensor:
        if step == self.fail_at:
            raise ValueError("no such utterance")
        return torch.from_numpy(make_rng(self.seed, str(step)).standard_normal((8, 1))).float()

    def update(self, step: int, batch: Tensor) -> dict[str, float]:
        if step == self.stop_at:
            raise KeyboardInterrupt
        loss = (self.network(batch) - 3 * batch).square().mean()
        return {"loss": descend(loss, self.optimiser)}

    def validate(self) -> dict[str, float]:
        return {"far": self.figures.pop(0)} if self.figures else {}


def run(out: Path, trainer: Line, n_workers: int = 0, name: str = "a") -> Training:
    return train(trainer, out, identity({**SETTINGS, "name": name}), n_workers)


def table(out: Path) -> list[list[str]]:
    """Without the seconds."""
    rows = [line.split("\t") for line in (out / "training.tsv").read_text().splitlines()]
    return [row[:1] + row[2:] for row in rows]


def test_a_stopped_training_ends_like_one_that_was_not(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(whole, Line(figures=[3.0, 1.0, 2.0])).finish("line.yaml", SETTINGS)
    refuses("^$", run, parts, Line(figures=[3.0, 1.0, 2.0], stop_at=7), kind=KeyboardInterrupt)
    assert not (parts / "final.pt").exists()
    run(parts, Line(figures=[1.0, 2.0]), n_workers=2).finish("line.yaml", SETTINGS)
    assert_same_network(whole, parts)
    assert table(whole) == table(parts)
    assert [row[0] for row in table(whole)] == ["#step", "4", "5", "8", "10", "12"]
    assert [row[2] for row in table(whole)] == ["far", "3", "", "1", "", "2"]
    assert read_settings(whole / "line.yaml")["trained"] == {
        "step": 12,
        "kept": "final",
        "seed": 0,
        "device": "cpu",
        "parameters": 2,
    }


def test_the_best_is_kept_and_patience_ends_early(tmp_path):
    plan = dataclasses.replace(PLAN, steps=40, keep="best")
    best = Line(dataclasses.replace(plan, steps=4), figures=[1.0])
    run(tmp_path / "best", best).finish("line.yaml", SETTINGS)
    patient = Line(dataclasses.replace(plan, patience=2), figures=[1.0, 1.5, 1.0, 0.5, 0.5])
    training = run(tmp_path / "patient", patient)
    training.finish("line.yaml", SETTINGS)
    assert_same_network(tmp_path / "best", tmp_path / "patient")
    known = read_settings(tmp_path / "patient/line.yaml")["trained"]
    assert isinstance(known, dict) and (known["step"], known["kept"]) == (4, "best")
    assert training.step == 12  # 8 and 12 were no better


def test_a_keep_of_best_without_validation_said_best(tmp_path, caplog):
    run(tmp_path, Line(dataclasses.replace(PLAN, keep="best"))).finish("line.yaml", SETTINGS)
    assert "no validation told which is best" in caplog.text
    known = read_settings(tmp_path / "line.yaml")["trained"]
    assert isinstance(known, dict) and known["kept"] == "final"


def test_checkpoints_of_others_are_refused_by_name(tmp_path):
    run(tmp_path, Line())
    refuses(r"step-00000012.pt: of a training with other settings", run, tmp_path, Line(), name="b")
    shorter = Line(dataclasses.replace(PLAN, steps=9))
    refuses("training.steps: 9, but it is at step 12; remove", run, tmp_path, shorter)
    save_atomically(tmp_path / "checkpoints/step-00000013.pt", {"network": {}, "progress": {}})
    refuses(r"13.pt: of a training with other settings", run, tmp_path, Line())


def test_a_worker_that_fails_says_why(tmp_path):
    with pytest.raises(ValueError, match="no such utterance"):  # below the worker's traceback
        run(tmp_path, Line(fail_at=5), n_workers=1)
