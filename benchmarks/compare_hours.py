#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""How far attackers who learn from protected speech get with more hours and people to learn from.

EGS is a corpus folder after `./run.sh --systems SYSTEM --evaluators "ENCODER/plda ENCODER/cosine"
--attackers "lazy_informed semi_informed_backend" --attacker-train "SET SET ..."`, so that x-vectors
of the joined set, protected by several draws, are there. Back ends and heads learn from parts of
its people, and attack the trials that the recipe attacks.

  benchmarks/compare_hours.py EGS SYSTEM ENCODER ENROLS TRIALS JOINED OUT.csv PART...

ENROLS, TRIALS and JOINED are sets of data/ before protection, the last protected by draws. A PART
is NAME:PEOPLE, with a file of the people's ids, a line each. OUT.csv gets a row for each part and
way to learn: EER from one, three and all recordings of a person with 95 % intervals over people,
and the EER on protected people who were held out of training.
"""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measuring import write
from local.metrics.intervals import key
from local.metrics.recordings import recordings
from local.metrics.verification import eer_with_interval, find_speakers
from steps.speaker import backends, held_out
from steps.speaker.vectors import average_by_speaker, read_training, read_xvectors
from utils.arrays import Float32
from utils.datadir import DataDir, load_data_dir
from utils.tables import read_map
from utils.trials import Ids, Trials, read_trials

LDA_DIM = 100
WAYS = ("nothing: cosine", "back end: PLDA", "head: cosine", "head: PLDA")
LENGTHS = ("1", "3", "all")
N_BOOTSTRAP = 1000
Vectors = Mapping[str, Float32]


def learn(vectors: Vectors, utt2spk: Mapping[str, str], way: str) -> backends.Backend:
    """Return the back end that training speech makes."""
    if way == WAYS[0]:
        return backends.load_backend("cosine")
    if way == WAYS[1]:
        return backends.train_backend(vectors, utt2spk, LDA_DIM)
    head = held_out.train_head(vectors, utt2spk)
    if way == WAYS[2]:
        return held_out.HeadBackend(head, backends.load_backend("cosine"))
    made = dict(zip(vectors, head.apply_to(np.stack(list(vectors.values()))), strict=True))
    return held_out.HeadBackend(head, backends.train_backend(made, utt2spk, LDA_DIM))


def percent(value: float, ends: object) -> str:
    """A fraction with its interval, in per cent."""
    low, high = ends if isinstance(ends, list) else (np.nan, np.nan)
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def sides_of(
    backend: backends.Backend, folders: tuple[Path, Path], enrolled: DataDir
) -> tuple[backends.Backend, backends.VectorTable, backends.VectorTable]:
    """Return what compares x-vectors, and those of the people and of the trials. As in the recipe,
    a head hears recordings, and people are means of what it makes of them."""
    enrol, trial = (read_xvectors(folder) for folder in folders)
    if isinstance(backend, held_out.HeadBackend):
        enrol, trial = (
            dict(zip(one, backend.head.apply_to(np.stack(list(one.values()))), strict=True))
            for one in (enrol, trial)
        )
        backend = backend.base
    heard = enrolled.enrolls or list(enrolled.utt2spk)
    means, counts = average_by_speaker(((utt, enrol[utt]) for utt in heard), enrolled.utt2spk)
    people = backends.VectorTable(means, str(folders[0]), counts)
    return backend, people, backends.VectorTable(trial, str(folders[1]))


def attacked(
    backend: backends.Backend, folders: tuple[Path, Path], enrolled: DataDir, data: Path
) -> list[str]:
    """EERs of the trials in a data directory by number of recordings."""
    backend, enrol, trial = sides_of(backend, folders, enrolled)
    listed, spk = read_trials(data / "trials"), read_map(data / "utt2spk")
    who = find_speakers(listed, spk, trials_path=data / "trials", utt2spk_path=data / "utt2spk")
    score = backends.score_trials(backend, enrol, trial, listed)
    found = recordings(listed, score, who, n_bootstrap=N_BOOTSTRAP)
    ends = found["intervals"]
    assert isinstance(ends, dict)
    names = [key("eer", recordings=length) for length in LENGTHS]
    return [percent(float(str(found[name])), ends.get(name)) for name in names]


def held(way: str, vectors: Vectors, utt2spk: Mapping[str, str], data: DataDir) -> str:
    """EER on people held out of training."""
    found = held_out.attack_held_out(vectors, utt2spk, data, partial(learn, way=way))
    if found.why:
        return found.why
    enrol, trial, target = zip(*found.trials, strict=True)
    listed = Trials(Ids.of(enrol), Ids.of(trial), np.array(target))
    who = find_speakers(listed, data.utt2spk, trials_path="trials", utt2spk_path="utt2spk")
    return percent(*eer_with_interval(listed, np.array(found.scores), who, N_BOOTSTRAP))


def main() -> None:
    """Print and write the rows."""
    if len(sys.argv) < 9:
        sys.exit(__doc__)
    egs, system, encoder, enrols, trials, joined, out, *parts = sys.argv[1:]
    table = Path(out).resolve()
    os.chdir(egs)
    folder = Path("exp/xvectors") / encoder
    folders = folder / f"{enrols}_{system}", folder / f"{trials}_{system}"
    enrolled = load_data_dir(Path("data") / enrols)
    (protected,) = Path("data").glob(f"{joined}_{system}_utt_draws*")
    data, every, whose = read_training(folder / protected.name, protected, 0)
    assert data.utt2dur is not None
    rows = [["part", "people", "hours", "learns", "held out", *(f"L = {n}" for n in LENGTHS)]]
    for name, people in [part.split(":") for part in parts]:
        chosen = set(Path(people).read_text().split())
        vectors = {key: vector for key, vector in every.items() if whose[key] in chosen}
        utt2spk = {key: whose[key] for key in vectors}
        draws = len({utt for utt in data.utt2spk if data.utt2spk[utt] in chosen})
        one = len({u for utt, u in data.tables["utt2uniq"].items() if data.utt2spk[utt] in chosen})
        seconds = sum(s for utt, s in data.utt2dur.items() if data.utt2spk[utt] in chosen)
        hours = f"{seconds * one / draws / 3600:.2f}"
        for way in WAYS if name == parts[0].split(":")[0] else WAYS[1:]:
            backend = learn(vectors, utt2spk, way)
            eers = attacked(backend, folders, enrolled, Path("data") / trials)
            rows.append([name, str(len(chosen)), hours, way,
                         held(way, vectors, utt2spk, data), *eers])  # fmt: skip
            print(*rows[-1], sep="\t", flush=True)
    write(table, rows)


if __name__ == "__main__":
    main()
