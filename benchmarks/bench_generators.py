#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of the IDMap generators beside `average`, and of many vectors at a time.

Goals, on one core and 512 dimensions: a vector of IDMap-MLP in at most 3 times, one of IDMap-Diff
(5 steps) in at most 12 times the time of `average` over a pool of 247 speakers (004: 3.0 and 11.5
times), all asked for one by one; 100,000 vectors of MLP under 20 s, of Diff under 3 minutes; a
training of MLP on 250 speakers under 3 CPU-minutes (--train; the steps are timed and multiplied);
--capacity: Fig. 11 up to 2,000,000 vectors of MLP under 10 minutes and 4 GB. Process CPU time, best
of several; the weights are random, which costs the same.
"""

import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.measuring import MOST, Judged, cpu_seconds, judge
from steps.generators.base import Wanted, load_generator
from steps.generators.identity import measure_capacity
from steps.generators.idmap import MlpTrainer
from steps.generators.idmap_diff import DiffTrainer
from steps.generators.sampling import IdMapGenerator, IdMapSettings
from steps.generators.training import IndexModel, TrainedFolder, TrainingVectors
from steps.sources import FIRST, NOTHING, SystemRun, VoiceKey

D, SPEAKERS, UTTERANCES = 512, 247, 8
ONE_BY_ONE, MANY, RUNS = 100, 10_000, 7
GOALS = {"idmap_mlp": (3.0, 20.0), "idmap_diff": (12.0, 180.0)}  # times `average`; s for 100,000
TRAINERS = {"idmap_mlp": MlpTrainer, "idmap_diff": DiffTrainer}
CONF = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/generators"


def training_vectors() -> TrainingVectors:
    """Random ones."""
    rng = np.random.default_rng(0)
    vectors = 1.0 + rng.standard_normal((SPEAKERS * UTTERANCES, D), dtype=np.float32)
    names = tuple(f"s{place:03d}" for place in range(SPEAKERS))
    return TrainingVectors(names, vectors, np.repeat(np.arange(SPEAKERS), UTTERANCES))


def time_average(data: TrainingVectors) -> float:
    """Seconds a vector."""
    values = {"name": "average"}
    made = load_generator(values, SystemRun("bench", NOTHING, FIRST))
    pool = data.means.astype(np.float64)
    made.fit(pool, data.speakers, ["f"] * SPEAKERS)
    sources = np.random.default_rng(1).standard_normal((ONE_BY_ONE, D))
    keys = [VoiceKey("utt", ("bench", str(place))) for place in range(ONE_BY_ONE)]

    def run() -> None:
        for key, x in zip(keys, sources, strict=True):
            made.generate(Wanted(key, x, None, {"nobody"}))

    return cpu_seconds(run, RUNS) / ONE_BY_ONE


def time_one_by_one(name: str, model: IndexModel) -> float:
    """Seconds a vector, the index of the key included."""
    folder = TrainedFolder(name, model, 1.0, same_person=2.0)  # nobody is nearer
    model.norm_limits = (0.0, float("inf"))
    run_of = SystemRun("bench", replace(NOTHING, generator=Path()), FIRST)
    with patch("steps.generators.training.load_trained", return_value=folder):
        made = IdMapGenerator(IdMapSettings(name), run_of)
    keys = [VoiceKey("utt", ("bench", str(place))) for place in range(ONE_BY_ONE)]

    def run() -> None:
        for key in keys:
            made.generate(Wanted(key))

    return cpu_seconds(run, RUNS) / ONE_BY_ONE


def report(name: str, data: TrainingVectors, average: float) -> list[Judged]:
    """Print the figures of a generator; those that have a goal."""
    from utils.settings import read_settings

    values = read_settings(CONF / f"{name}.yaml")
    trainer = TRAINERS[name].from_settings(values, "bench", data, seed=0, device="cpu")
    model = trainer.finished()
    one = time_one_by_one(name, model)
    indices = np.arange(MANY, dtype=np.int64) + 2**62
    many = cpu_seconds(lambda: model.vectors(indices), 2) / MANY
    most, longest = GOALS[name]
    print(f"{name}: {1e6 * one:.0f} us a vector; {MANY} timed at a time")
    found: list[Judged] = [
        (f"{name}: times `average`", one / average, MOST, most),
        (f"{name}: s for 100,000 at a time", 1e5 * many, MOST, longest),
    ]
    if name == "idmap_mlp" and "--capacity" in sys.argv:
        report_capacity(model)
    if "--train" in sys.argv:
        started = time.process_time()
        for step in range(20):
            trainer.learn(step)
        seconds = (time.process_time() - started) / 20 * trainer.plan.steps
        print(f"{name}: {seconds:.0f} CPU-s to train {trainer.plan.steps} steps (20 timed)")
        if name == "idmap_mlp":
            found.append((f"{name}: CPU-s to train", seconds, MOST, 180))
    return found


def report_capacity(model: IndexModel) -> None:
    """Time and memory of Fig. 11."""
    started = time.process_time()
    blocks = (
        model.vectors(np.arange(at, at + 4096, dtype=np.int64)) for at in range(0, 2**22, 4096)
    )
    sizes = [100, 1_000, 10_000, 100_000, 1_000_000, 2_000_000]
    for row in measure_capacity(blocks, sizes, threshold=0.5):
        print(f"capacity: {row}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"capacity: {time.process_time() - started:.0f} CPU-s, peak {peak:.2f} GB (goal: 4)")


def main() -> int:
    """Measure in turn, print figures, and say by the exit status whether the goals were met."""
    torch.set_num_threads(1)
    data = training_vectors()
    average = time_average(data)
    print(f"average: {1e6 * average:.0f} us a vector; {SPEAKERS} speakers of {D} dimensions")
    return judge(*(one for name in GOALS for one in report(name, data, average)))


if __name__ == "__main__":
    sys.exit(main())
