#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""How far attackers who learn get with more people and more draws of their speech.

EGS is a corpus folder after `./run.sh --systems SYSTEM --evaluators "pyannote/plda_pca content/plda
level/gaussian energy/plda rhythm/gaussian" --attackers "lazy_informed semi_informed_backend"
--informed-draws D --genders mixed`, or with some of these: nothing is protected anew.

  benchmarks/compare_learners.py EGS SYSTEM ENROLS TRIALS TRAIN OUT.csv DRAWS PEOPLE...

ENROLS, TRIALS and TRAIN are sets of data/ before protection, TRAIN also several, SET+SET, which
--attacker-train joined; DRAWS and PEOPLE numbers, DRAWS with commas. The people are nested, and
drawn once. The tested people are two halves, and a trial is of one half. Who attacks one half
learns from people of the first set, then from those of the other half, as they are heard (in one
draw), then from those of the other sets.

OUT.csv gets a row for each evaluator, fused_learnt among them: EER from one and from all recordings
of a person with 95 % intervals over people, and whether the last doubling of people or of draws
lowered it below the interval of half as many: then the figure is "and falling". OUT.svg shows both.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.compare_hours import LDA_DIM, N_BOOTSTRAP, Vectors, percent
from benchmarks.measuring import write
from local.metrics.intervals import key
from local.metrics.recordings import recordings
from local.metrics.verification import find_speakers, fuse, learn_weights
from local.report.measures import Value
from steps.speaker import backends, held_out
from steps.speaker.vectors import average_by_speaker, read_training, read_xvectors
from utils.arrays import Float64
from utils.datadir import DataDir, load_data_dir
from utils.seeds import make_rng
from utils.trials import Ids, Trials, read_trials

ENCODERS = {  # how each learns: scaled to length, principal axes (0: all)
    "pyannote": (True, 100), "content": (True, 100), "level": (False, 0), "energy": (True, 100),
    "rhythm": (False, 0),
}  # fmt: skip
FUSED, LENGTHS = "fused_learnt", ("1", "all")
HEADER = ["evaluator", "people", "draws", *(f"EER from {n} (%)" for n in LENGTHS), "and falling"]
Pairs = Mapping[tuple[str, str], tuple[bool, float]]
Found = dict[str, Value]  # EER by number of recordings


class Sides(NamedTuple):
    """Vectors of those who are attacked, by utterance."""

    enrol: Vectors
    trial: Vectors


@dataclass(frozen=True)
class Attacked:
    """Sets that are attacked, and the half of each person."""

    enrolled: DataDir
    tried: DataDir
    half: Mapping[str, int]
    trials: Trials

    def of_half(self, number: int) -> Trials:
        """Trials whose people are both of a half."""
        spk = self.tried.utt2spk
        rows = zip(self.trials.enrol, self.trials.trial, self.trials.target, strict=True)
        kept = [row for row in rows if self.half[row[0]] == number == self.half.get(spk[row[1]])]
        enrol, trial, target = zip(*kept, strict=True)
        return Trials(Ids.of(enrol), Ids.of(trial), np.array(target))


def learn(way: tuple[bool, int], vectors: Vectors, utt2spk: Mapping[str, str]) -> backends.Backend:
    """Back end of an encoder that learns in this way."""
    scaled, pca = way
    return backends.train_backend(vectors, utt2spk, LDA_DIM, scaled=scaled, pca_dim=pca)


def learnt_pairs(way: tuple[bool, int], vectors: Vectors, data: DataDir) -> Pairs:
    """Pairs of recordings of training people who were held out, and their scores."""
    utt2spk = {utt: data.utt2spk[utt] for utt in vectors}
    found = held_out.attack_held_out(vectors, utt2spk, data, partial(learn, way))
    before = data.tables.get("utt2uniq", {})
    pairs = dict[tuple[str, str], tuple[bool, float]]()
    for (one, other, target), score in zip(found.trials, found.scores, strict=True):
        left, right = sorted((before.get(one, one), before.get(other, other)))
        pairs[left, right] = bool(target), float(score)
    return pairs


def weights_of(tables: Sequence[Pairs]) -> list[float]:
    """Weights that pairs of held-out people teach; their sizes add up to 1, as scores of both
    halves are compared with one threshold."""
    common = [pair for pair in tables[0] if all(pair in table for table in tables)]
    left, right = zip(*common, strict=True)
    target = np.array([tables[0][pair][0] for pair in common])
    scores = [np.array([table[pair][1] for pair in common]) for table in tables]
    weights = learn_weights(Trials(left, right, target), scores)
    return [weight / sum(map(abs, weights)) for weight in weights]


def attack(
    taught: Mapping[str, Vectors], data: DataDir, heard: Mapping[str, Sides], sets: Attacked,
    number: int,
) -> dict[str, Float64]:  # fmt: skip
    """Scores of the trials of a half by each evaluator, and fused."""
    trials, found, tables = sets.of_half(number), dict[str, Float64](), []
    for name, vectors in taught.items():
        backend = learn(ENCODERS[name], vectors, {utt: data.utt2spk[utt] for utt in vectors})
        listed = sets.enrolled.enrolls or list(sets.enrolled.utt2spk)
        side = ((utt, heard[name].enrol[utt]) for utt in listed)
        means, counts = average_by_speaker(side, sets.enrolled.utt2spk)
        tables.append(learnt_pairs(ENCODERS[name], vectors, data))
        found[name] = backends.score_trials(
            backend, backends.VectorTable(means, name, counts),
            backends.VectorTable(dict(heard[name].trial), name), trials,
        )  # fmt: skip
    return found | {FUSED: fuse(trials, [*found.values()], weights_of(tables))}


def eers(sets: Attacked, scores: Sequence[Float64]) -> Found:
    """EERs of both halves together, with intervals over people."""
    parts = [sets.of_half(number) for number in range(len(scores))]
    listed = Trials(
        Ids.of([name for one in parts for name in one.enrol]),
        Ids.of([name for one in parts for name in one.trial]),
        np.concatenate([one.target for one in parts]),
    )
    who = find_speakers(listed, sets.tried.utt2spk, trials_path="trials", utt2spk_path="utt2spk")
    found = recordings(listed, np.concatenate(scores), who, n_bootstrap=N_BOOTSTRAP)
    ends = found["intervals"]
    assert isinstance(ends, dict)
    names = [key("eer", recordings=n) for n in LENGTHS]
    values = [Value(float(str(found[name])), *ends.get(name, (np.nan, np.nan))) for name in names]
    return dict(zip(LENGTHS, values, strict=True))


def falling(table: Mapping[tuple[str, int, int], Found], at: tuple[str, int, int]) -> str:
    """By how many of what the EER was lowered below the interval of half as many."""
    name, people, draws = at
    halved = {"people": (name, people // 2, draws), "draws": (name, people, draws // 2)}
    told = [
        f"{what}, from {n}"
        for (what, before), n in product(halved.items(), LENGTHS)
        if before in table and table[at][n].value < table[before][n].low
    ]
    return "; ".join(told)


def row_of(table: Mapping[tuple[str, int, int], Found], at: tuple[str, int, int]) -> list[str]:
    """A row of OUT.csv."""
    eers = [percent(value.value, [value.low, value.high]) for value in table[at].values()]
    return [*map(str, at), *eers, falling(table, at)]


def draw(table: Mapping[tuple[str, int, int], Found], path: Path) -> None:
    """Write a panel an evaluator: EER from all recordings by people, a line a number of draws."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(name for name, *_ in table))
    figure, panels = plt.subplots(1, len(names), figsize=(2.4 * len(names), 2.6), sharey=True)
    for panel, name in zip(np.atleast_1d(panels), names, strict=True):
        for draws in sorted({d for _, _, d in table}):
            people = sorted(n for of, n, d in table if (of, d) == (name, draws))
            own = [100 * table[name, n, draws]["all"].value for n in people]
            panel.plot(people, own, marker="o", label=f"{draws} draws")
        panel.set(title=name, xlabel="people", xscale="log")
    np.atleast_1d(panels)[0].set_ylabel("EER from all recordings (%)")
    np.atleast_1d(panels)[-1].legend()
    figure.tight_layout()
    figure.savefig(path)


def taken(data: DataDir, people: set[str], draws: int) -> list[str]:
    """Utterances of some people, of so many draws."""
    before, times = data.tables.get("utt2uniq", {}), dict[str, int]()
    found = []
    for utt in data.utt2spk:
        one = before.get(utt, utt)
        times[one] = times.get(one, 0) + 1
        if data.utt2spk[utt] in people and times[one] <= draws:
            found.append(utt)
    return found


def people_of(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """People of the first of some sets, and of the others, each in an order that is drawn."""
    found: tuple[list[str], list[str]] = [], []
    for number, name in enumerate(names):
        own = sorted({*load_data_dir(Path("data") / name).utt2spk.values()})
        order = make_rng(0, "people").permutation(len(own))
        found[number > 0].extend(own[place] for place in order)
    return found


def joined(data: DataDir, sets: Attacked) -> DataDir:
    """Training and tested people as one set."""
    tables = {"utt2uniq": data.tables.get("utt2uniq", {})}
    for name in ("utt2spk", "spk2gender"):
        tables[name] = sets.enrolled.tables[name] | sets.tried.tables[name] | data.tables[name]
    return DataDir(data.path, tables)


def main() -> None:
    """Print and write the rows, and the picture."""
    if len(sys.argv) < 9:
        sys.exit(__doc__)
    egs, system, enrols, trials, train, out, draws, *people = sys.argv[1:]
    path = Path(out).resolve()
    os.chdir(egs)
    joint = Path("data").glob(f"{train}_{system}_utt_draws*")  # else one draw
    of_one = Path("data") / f"{train}_{system}_utt"
    protected = max(joint, key=lambda at: int(at.name.rpartition("draws")[2]), default=of_one)
    of = {name: Path("exp/xvectors") / name for name in ENCODERS}
    needed = [Path(name, "xvector.scp")
              for name in (protected.name, f"{enrols}_{system}", f"{trials}_{system}")]  # fmt: skip
    of = {name: at for name, at in of.items() if all((at / own).is_file() for own in needed)}
    learnt = {name: read_training(at / protected.name, protected, 0)[1] for name, at in of.items()}
    heard = {
        name: Sides(*(read_xvectors(at / f"{one}_{system}") for one in (enrols, trials)))
        for name, at in of.items()
    }
    enrolled, tried = (load_data_dir(Path("data") / name) for name in (enrols, trials))
    tested = sorted({*enrolled.utt2spk.values()})
    order = make_rng(0, "halves").permutation(len(tested))
    half = {spk: int(place % 2) for spk, place in zip(tested, order, strict=True)}
    sets = Attacked(enrolled, tried, half, read_trials(Path("data") / trials / "trials"))
    data = load_data_dir(protected)
    every, own, more = joined(data, sets), *people_of(train.split("+"))
    table = dict[tuple[str, int, int], Found]()
    for n, d in product(map(int, people), map(int, draws.split(","))):
        scores = list[dict[str, Float64]]()
        for number in (0, 1):
            others = [spk for spk in tested if half[spk] != number][: max(0, n - len(own))]
            rest = more[: max(0, n - len(own) - len(others))]
            utts = taken(data, {*own[:n], *rest}, d)
            taught = {name: {utt: learnt[name][utt] for utt in utts} for name in learnt}
            for name, vectors in taught.items():
                for one in heard[name]:
                    vectors |= {utt: x for utt, x in one.items() if every.utt2spk[utt] in others}
            scores.append(attack(taught, every, heard, sets, number))
        for name in scores[0]:
            table[name, n, d] = eers(sets, [one[name] for one in scores])
            print(*row_of(table, (name, n, d)), sep="\t", flush=True)
    write(path, [HEADER, *(row_of(table, at) for at in sorted(table))])
    draw(table, path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
