#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Goals of interviews: voices told apart, people found, who is kept, words, lengths.

Conversations of two to four people of LibriSpeech (benchmarks/conversations.py) are protected by
models/bn2 with their turns; pyannote hears their turns, and Moonshine the words, also
of each person's turns alone. People are found in --found conversations, with and without their
number. In --kept conversations a system that makes silence protects all but one person, so that
whatever is heard is in the clear. The thresholds were chosen on other people, of test-other and
dev-clean. AMI's excerpts are measured where they hold sound. Speech: $PSEUDOVOX_CORPORA or
../shared/corpora.

  benchmarks/bench_interview.py [--n 3] [--seconds 90] [--found 10] [--kept 100]
"""

import argparse
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import soundfile
from rapidfuzz.distance import Levenshtein
from scipy.optimize import linear_sum_assignment

from benchmarks.conversations import converse, readers
from benchmarks.measuring import CORPORA, LEAST, MOST, ROOT, judge, skip
from local.metrics.detection import eer_speechbrain
from steps.anonymisers.registry import Anonymiser, AsItIs
from steps.asr.recognisers import make_recogniser
from steps.audio import SAMPLE_RATE
from steps.sources import FIRST, NOTHING, SystemRun
from steps.speaker.pyannote import PyannoteEncoder
from steps.standalone import protection, turns
from steps.standalone.hearing import find_people
from steps.standalone.people import Scene, clear_of
from steps.standalone.stream import Recording
from steps.synthesis.f0 import compute_f0_stats
from utils.arrays import Float64

SHORTEST = 1.5  # seconds of a turn that is heard
Known = dict[Path, list[turns.Turn]]


class Mute(Anonymiser):
    """System that makes silence."""

    output = AsItIs()

    def transform(self, wave, key, source):
        return np.zeros(len(wave)), {}


def make(folder: Path, n: int, seconds: float, subset: str = "test-clean") -> Known:
    """Write conversations and their turns; returns the turns."""
    found = {}
    for i in range(n):
        path = folder / f"c{i:03d}.wav"
        people = readers(CORPORA / "librispeech" / subset, 2 + i % 3, 100 + i)
        samples, said = converse(people, seconds, i)
        soundfile.write(path, samples, SAMPLE_RATE)
        path.with_suffix(".rttm").write_text(
            "".join(turns.rttm_line(path.stem, turn) for turn in said)
        )
        found[path] = said
    return found


def protect(source: Path, out: Path, *words: str) -> None:
    """Protect a folder by models/bn2."""
    subprocess.run(
        [ROOT / "steps/protect_folder.py", "--system", ROOT / "models/bn2",
         "--key", "a key of sixteen", *words, source, out],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def alone(said: list[turns.Turn]) -> list[tuple[str, slice]]:
    """Persons and samples of turns in which nobody else speaks."""
    found = []
    for turn in said:
        for begin, end in clear_of([turn, *(t for t in said if t is not turn)], [turn.person]):
            a, b = max(begin, turn.begin), min(end, turn.end)
            if b - a >= SHORTEST:
                found.append((turn.person, slice(int(a * SAMPLE_RATE), int(b * SAMPLE_RATE))))
    return found


def hear_voices(known: Known, folder: Path) -> tuple[Float64, Float64]:
    """Cosines of pairs of turns in a conversation: of one person, and of two."""
    encoder, same, other = PyannoteEncoder(), [], []
    for path, said in known.items():
        samples, parts = soundfile.read(folder / path.name)[0], alone(said)
        who = np.array([person for person, _ in parts])
        vectors = np.stack([encoder.embed(samples[part]) for _, part in parts])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        i, j = np.triu_indices(len(who), 1)
        cosines, one = (vectors @ vectors.T)[i, j], who[i] == who[j]
        same.append(cosines[one])
        other.append(cosines[~one])
    return np.concatenate(same), np.concatenate(other)


def eer(same: Float64, other: Float64) -> float:
    """Equal error rate of cosines."""
    return eer_speechbrain(np.r_[same, other], np.arange(len(same) + len(other)) < len(same))


def words_lost(known: Known, folder: Path) -> tuple[float, float]:
    """Word errors against the original's, in percent: protected in place, and one by one."""
    recogniser, errors, n = make_recogniser("moonshine"), np.zeros(2), 0
    single = folder / "single"
    single.mkdir()
    places = {}
    for path, said in known.items():
        samples = soundfile.read(path)[0]
        for person in {turn.person for turn in said}:
            own = [samples[int(t.begin * SAMPLE_RATE) : int(t.end * SAMPLE_RATE)]
                   for t in said if t.person == person]  # fmt: skip
            name = f"{path.stem}-{person}.wav"
            soundfile.write(single / name, np.concatenate(own), SAMPLE_RATE)
            ends = np.cumsum([0, *map(len, own)])
            places[path, person] = iter([slice(a, b) for a, b in pairwise(ends.tolist())])
    protect(single, folder / "singly")
    for path, said in known.items():
        sides = [soundfile.read(where / path.name)[0] for where in (path.parent, folder / "out")]
        for turn in said:
            part = slice(int(turn.begin * SAMPLE_RATE), int(turn.end * SAMPLE_RATE))
            name, own = f"{path.stem}-{turn.person}.wav", next(places[path, turn.person])
            if any(t is not turn and t.begin < turn.end and turn.begin < t.end for t in said):
                continue
            given = [
                *(side[part] for side in sides),
                soundfile.read(folder / "singly" / name)[0][own],
            ]
            heard = [recogniser.recognise("turn", x) for x in given]
            texts = [str(getattr(x, "words", x)).lower().split() for x in heard]
            errors += [Levenshtein.distance(texts[0], text) for text in texts[1:]]
            n += len(texts[0])
    return tuple(100 * errors / n)


def confusion(
    known: list[turns.Turn], found: list[turns.Turn], seconds: float
) -> tuple[float, float]:
    """Shares of the time of one speaker: confused, where speech is found; and missed."""
    masks = []
    for said in (known, found):
        names = sorted({turn.person for turn in said})
        mask = np.zeros((len(names), int(100 * seconds) + 1), bool)
        for turn in said:
            mask[names.index(turn.person), int(100 * turn.begin) : int(100 * turn.end)] = True
        masks.append(mask)
    single = masks[0].sum(axis=0) == 1
    both = single & masks[1].any(axis=0)
    shared = (masks[0][:, None] & masks[1][None] & both).sum(axis=2)
    right = shared[linear_sum_assignment(-shared)].sum()
    return 1 - right / max(1, both.sum()), 1 - both.sum() / max(1, single.sum())


def find(known: Known, given: bool) -> tuple[float, float, float]:
    """Mean confused and missed, and the share of recordings whose number of people is right."""
    rows = []
    for path, said in known.items():
        recording, n = Recording.open(path), len({turn.person for turn in said})
        found = find_people(recording, None, n if given else None)
        right = len({turn.person for turn in found.turns}) == n
        rows.append((*confusion(said, list(found.turns), recording.seconds), right))
    return tuple(np.mean(rows, axis=0))


def in_the_clear(known: Known, out: Path) -> tuple[int, int]:
    """Samples of protected people in the clear where all but one are protected, and all others in
    the clear."""
    mute = Mute(None, SystemRun(Path("mute"), NOTHING, FIRST))
    leaked = heard = 0
    with patch.object(protection, "learn_f0", lambda *_: compute_f0_stats([])):
        for path, said in known.items():
            kept = frozenset({said[0].person})
            scenes = {Path(path.name): Scene(tuple(said), kept=kept)}
            work = protection.Work(path.parent, out, mute, scenes=scenes)
            work.protect(path.name, Path(path.name), {None: compute_f0_stats([])}, lambda _: None)
            clear = soundfile.read(out / path.name)[0] != 0
            others = np.zeros(len(clear), bool)
            for turn in said:
                if turn.person not in kept:
                    others[int(turn.begin * SAMPLE_RATE) : int(turn.end * SAMPLE_RATE) + 1] = True
            leaked, heard = (
                leaked + int((clear & others).sum()),
                heard + int((clear & ~others).sum()),
            )
    return leaked, heard


def ami() -> Known:
    """Excerpts of AMI with their turns, where they hold sound."""
    folder, found = CORPORA / "ami_excerpts", {}
    for path in sorted(folder.glob("trn*.flac")):
        if np.abs(soundfile.read(path)[0]).max() > 1e-3:
            rows = (folder / "trn.rttm").read_text("utf-8").splitlines()
            own = [row.split() for row in rows if row.split()[1] == path.stem]
            found[path] = [turns.Turn(float(r[3]), float(r[3]) + float(r[4]), r[7]) for r in own]
    return found


def main() -> int:
    """Run the benchmark; 1 where a goal is missed."""
    parser = argparse.ArgumentParser()
    for name, value in (("--n", 3), ("--seconds", 90.0), ("--found", 10), ("--kept", 100)):
        parser.add_argument(name, type=type(value), default=value)
    asked = parser.parse_args()
    if not (CORPORA / "librispeech").is_dir():
        skip("no LibriSpeech")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("in", "kept", "mute", "found"):
            (folder / name).mkdir()
        known = make(folder / "in", asked.n, asked.seconds)
        print("conversations", asked.n, "seconds", asked.seconds)
        protect(folder / "in", folder / "out", "--turns", "beside", "--texts")
        before, after = (hear_voices(known, own) for own in (folder / "in", folder / "out"))
        leaked, heard = in_the_clear(make(folder / "kept", asked.kept, 60.0), folder / "mute")
        print("seconds of kept people in the clear", heard / SAMPLE_RATE)
        others = make(folder / "found", asked.found, asked.seconds)
        told, free = find(others, True), find(others, False)
        print("missed", told[1], "EER of the originals", eer(*before))
        lost, singly = words_lost(known, folder)
        print("word errors in place, one by one", lost, singly)
        lengths = [soundfile.info(folder / "out" / path.name).frames == soundfile.info(path).frames
                   for path in known]  # fmt: skip
        figures = [
            ("EER of turns, pseudo-voices", eer(*after), MOST, 0.05),
            ("cosine of a person's turns, of the originals'", after[0].mean() / before[0].mean(),
             LEAST, 1.0),
            ("words lost, of one by one", lost / singly, MOST, 1.1),
            ("confused, number given", told[0], MOST, 0.05),
            ("confused, number not given", free[0], MOST, 0.08),
            ("number of people right", free[2], LEAST, 0.8),
            (f"samples in the clear that should not, {asked.kept} conversations", leaked, MOST, 0),
            ("lengths equal", float(all(lengths)), LEAST, 1.0),
        ]  # fmt: skip
        if meetings := ami():
            figures.append(("AMI: confused, number given", find(meetings, True)[0], MOST, 0.08))
        else:
            print("AMI: no excerpt holds sound; not measured")
        return judge(*figures)


if __name__ == "__main__":
    sys.exit(main())
