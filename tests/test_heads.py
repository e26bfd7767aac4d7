"""Heads on the x-vectors of an encoder that comes trained."""

import runpy
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from local.protocols.attackers import describe_encoder
from local.report.measures import Value
from steps import apply_head, train_head
from steps.speaker.backends import load_backend
from steps.speaker.held_out import (
    Head,
    HeadBackend,
    HeadConfig,
    _margin_loss,
    read_head,
    write_head,
)
from steps.speaker.held_out import train_head as train
from steps.speaker.vectors import average_by_speaker
from tests.recipes import TEMPLATE
from tests.refusals import accepts, refuses, refuses_words
from utils.archives import read_vectors, write_archive
from utils.datadir import DataDir, write_data_dir
from utils.tables import read_map, write_map

DIM, FEW = 48, HeadConfig(steps=150, batch=128)


def made_up(people: int, voices: int, seed: int = 0) -> dict[str, np.ndarray]:
    """X-vectors that show the pseudo-voice in 40 dimensions, and the person faintly in 8."""
    rng, vectors = np.random.default_rng(seed), {}
    for n in range(people):
        person = rng.normal(size=8)
        for voice in range(voices):
            own = np.concatenate([0.7 * person + 0.2 * rng.normal(size=8), rng.normal(size=40)])
            vectors[f"p{n:02d}-{voice}"] = own.astype(np.float32)
    return vectors


def spk(vectors: dict[str, np.ndarray]) -> dict[str, str]:
    return {key: key.partition("-")[0] for key in vectors}


def found_first(vectors: dict[str, np.ndarray]) -> float:
    """How often the nearest other x-vector is of the same person."""
    rows = np.stack(list(vectors.values())).astype(np.float64)
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ rows.T
    np.fill_diagonal(scores, -np.inf)
    names = np.array(list(spk(vectors).values()))
    return float((names[scores.argmax(axis=1)] == names).mean())


@pytest.fixture(scope="module")
def head() -> Head:
    learnt = made_up(60, 8)
    return train(learnt, spk(learnt), 1, FEW)


class TestHead:
    def test_it_learns_people_and_not_voices(self, head):
        """People whom it never heard are told apart."""
        others = made_up(20, 4, seed=9)
        made = {key: head.apply_to(v[None])[0] for key, v in others.items()}
        assert found_first(made) > found_first(others) + 0.2

    def test_margin_loss_by_hand(self):
        """cos 60 and 120 degrees; with a margin of 60 degrees the true cosine is -0.5."""
        made, centres = torch.tensor([[2.0, 0.0]]), torch.tensor([[1, 3**0.5], [-1, 3**0.5]])
        target = torch.tensor([0])
        for margin, true in ((0.0, 0.5), (torch.pi / 3, -0.5)):
            loss = _margin_loss(made, centres, target, margin, 2.0)
            wanted = np.log(np.exp(2 * true) + np.exp(-1.0)) - 2 * true
            assert loss.item() == pytest.approx(wanted, abs=1e-5)

    def test_one_person_cannot_teach(self):
        one = made_up(1, 3)
        refuses("1 training speaker", train, one, spk(one))

    def test_in_compare_hours_it_heard_the_mean_of_enrolled_recordings(
        self, head, tmp_path, monkeypatch
    ):
        """The recipe averages what it makes of recordings, which attacks better."""
        monkeypatch.setattr(sys, "path", [*sys.path])
        path = TEMPLATE.parents[1] / "benchmarks/compare_hours.py"
        sides_of = runpy.run_path(str(path))["sides_of"]
        vectors, base = made_up(4, 3), load_backend("cosine")
        write_archive(tmp_path / "xvector", vectors)
        data = DataDir(tmp_path, {"utt2spk": spk(vectors)})
        found, people, trial = sides_of(HeadBackend(head, base), (tmp_path, tmp_path), data)
        made = {key: head.apply_to(vector[None])[0] for key, vector in vectors.items()}
        means, counts = average_by_speaker(made.items(), spk(vectors))
        assert found is base
        assert people.counts == counts
        for name, mean in means.items():
            assert np.array_equal(people.vectors[name], mean)
        assert np.array_equal(trial.vectors["p00-1"], made["p00-1"])

    @pytest.mark.slow
    def test_learners_of_several_draws_ended_in_a_traceback(self, here, monkeypatch):
        """Beside the joined draws data/ also has each of them."""
        rng = np.random.default_rng(7)
        person = rng.normal(size=(32, 4))
        trials = [
            (f"p{spk:02d}", f"p{other:02d}-{n}", "target" if spk == other else "nontarget")
            for spk in range(20) for other in range(20) for n in range(3)
        ]  # fmt: skip

        def written(name: str, first: int, end: int, numbers: range, draws: int) -> None:
            uniq = {
                f"p{spk:02d}-{n}{f'-draw{draw}' * bool(draw)}": f"p{spk:02d}-{n}"
                for spk in range(first, end) for n in numbers for draw in range(draws)
            }  # fmt: skip
            tables = {"utt2spk": spk(uniq), "spk2gender": dict.fromkeys(spk(uniq).values(), "f")}
            tables |= {"wav.scp": dict.fromkeys(uniq, "x"), "utt2uniq": uniq}
            lists = trials if name == "trial" else None
            write_data_dir(here / "data" / name, tables, lists)
            own = {u: person[int(u[1:3])] + 0.05 * rng.normal(size=4) for u in uniq}
            at = here / "exp/xvectors/content" / (name if draws > 1 else f"{name}_s")
            write_archive(at / "xvector", {u: x.astype(np.float32) for u, x in own.items()})

        written("enrol", 0, 20, range(3, 6), 1)
        written("trial", 0, 20, range(3), 1)
        written("train", 20, 30, range(3), 1)
        written("other", 30, 32, range(3), 1)
        for name, draws in (("", 1), ("_draw1", 1), ("_draws2", 2)):
            written(f"train+other_s_utt{name}", 20, 32, range(3), draws)
        program = runpy.run_path(str(TEMPLATE.parents[1] / "benchmarks/compare_learners.py"))
        monkeypatch.setattr(sys, "path", [*sys.path])
        words = [str(here), "s", "enrol", "trial", "train+other", "out.csv", "1,2", "10", "22"]
        monkeypatch.setattr(sys, "argv", ["compare_learners.py", *words])
        program["main"]()
        rows = [row.split(",") for row in (here / "out.csv").read_text().splitlines()[1:]]
        assert [row[:3] for row in rows] == [
            [name, people, draws]
            for name in ("content", "fused_learnt") for people in ("10", "22") for draws in "12"
        ]  # fmt: skip
        assert all(float(row[3].strip('"').split()[0]) < 15 for row in rows)
        assert (here / "out.svg").exists()

    def test_learners_by_people_and_draws(self, tmp_path, monkeypatch):
        """A draw more is an utterance's next one; a figure falls where it left the interval of half
        as many."""
        monkeypatch.setattr(sys, "path", [*sys.path])
        program = runpy.run_path(str(TEMPLATE.parents[1] / "benchmarks/compare_learners.py"))
        uniq = {f"{utt}{draw}": utt for draw in "xyz" for utt in ("a-1", "a-2", "b-1")}
        data = DataDir(tmp_path, {"utt2spk": {u: u[0] for u in uniq}, "utt2uniq": uniq})
        assert program["taken"](data, {"a"}, 2) == ["a-1x", "a-2x", "a-1y", "a-2y"]
        table = {
            ("content", people, draws): dict.fromkeys(
                ("1", "all"), Value(eer, eer - 0.02, eer + 0.02)
            )
            for people, draws, eer in ((45, 1, 0.3), (90, 1, 0.29), (45, 2, 0.27), (90, 2, 0.26))
        }
        assert program["falling"](table, ("content", 90, 1)) == ""
        assert program["falling"](table, ("content", 90, 2)) == "draws, from 1; draws, from all"


class TestPrograms:
    def run(self, tmp_path: Path) -> tuple[Path, Path]:
        vectors = made_up(6, 3)
        write_map(tmp_path / "data/utt2spk", spk(vectors))
        pieces = {f"{key}-c0000": vector for key, vector in vectors.items()}
        write_archive(tmp_path / "xvectors/xvector", pieces)
        write_map(tmp_path / "xvectors/utt2spk", spk(pieces))
        xvectors, data, made, out = (tmp_path / x for x in ("xvectors", "data", "head", "out"))
        accepts(train_head.main, "--seed", "3", xvectors, data, made)
        accepts(apply_head.main, made, xvectors, out)
        return made, out

    def test_x_vectors_of_another_encoder_ended_in_a_traceback(self, tmp_path, head):
        write_head(tmp_path / "head", head, {})
        write_archive(tmp_path / "x/xvector", {"a": np.ones(DIM + 1)})
        said = f"x: has x-vectors of {DIM + 1} dimensions, .*head is for {DIM}"
        refuses_words(said, apply_head.main, *(tmp_path / name for name in ("head", "x", "out")))
        assert not (tmp_path / "out/xvector.scp").exists()

    def test_they_train_and_apply_the_same_twice(self, tmp_path, monkeypatch):
        few = partial(train, config=replace(FEW, steps=20))
        monkeypatch.setattr("steps.speaker.held_out.train_head", few)
        (one, first), (_, second) = (self.run(tmp_path / name) for name in "ab")
        assert (first / "xvector.ark").read_bytes() == (second / "xvector.ark").read_bytes()
        made = read_vectors(first / "xvector.scp")
        before = read_vectors(tmp_path / "a/xvectors/xvector.scp")
        assert read_map(first / "utt2spk") == read_map(tmp_path / "a/xvectors/utt2spk")
        for key, vector in before.items():
            assert np.array_equal(read_head(one).apply_to(vector[None])[0], made[key])
        told = describe_encoder(str(one), ())  # type: ignore[arg-type]
        assert told["training_speakers"] == "not known"

    def test_what_is_no_head_is_refused(self, tmp_path):
        torch.save({"a": torch.zeros(1)}, tmp_path / "head.pt")
        refuses("holds no head", read_head, tmp_path)
