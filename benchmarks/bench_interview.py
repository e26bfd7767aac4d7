#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Goals of interviews: voices told apart, people found, who is kept, words, lengths.

Conversations of LibriSpeech's people (benchmarks/conversations.py) are protected by models/bn2:

  given     with their turns, and with turns that are found: pyannote hears these, Moonshine the
            words, also of each person alone
  found     people are found, with and without their number; AMI's excerpts where they hold sound
  kept      a system that makes silence protects all but one, so that what is heard is in the clear
  removed   a second of a turn is a name, which is removed
  evidence  `make evidence` with turns, and of the same people one by one

The thresholds were chosen on other people, of test-other and dev-clean. Speech: $PSEUDOVOX_CORPORA
or ../shared/corpora. Ten minutes of three people: --parts given --n 1 --people 3 --seconds 600

  benchmarks/bench_interview.py [--parts given kept] [--n 3] [--people 3] [--seconds 90]
      [--found 10] [--kept 100]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from rapidfuzz.distance import Levenshtein

from benchmarks.conversations import confusion, converse, readers
from benchmarks.measuring import CORPORA, LEAST, MOST, ROOT, Judged, judge, show, skip
from local.evidence import figures as judged
from local.metrics.detection import eer_speechbrain
from steps.anonymisers.registry import Anonymiser, AsItIs
from steps.asr.recognisers import make_recogniser
from steps.audio import SAMPLE_RATE
from steps.sources import FIRST, NOTHING, SystemRun
from steps.speaker.pyannote import PyannoteEncoder
from steps.standalone import protection, turns
from steps.standalone.hearing import find_people
from steps.standalone.people import Scene, clear_of, hidden, tone
from steps.standalone.stream import Recording
from utils.arrays import Float64

SHORTEST = 1.5  # seconds of a turn that is heard
SPEECH = CORPORA / "librispeech/test-clean"
Known = dict[Path, list[turns.Turn]]
Place = tuple[str, slice]  # a person, and the samples of what they say


class Mute(Anonymiser):
    """System that makes silence."""

    output = AsItIs()

    def transform(self, wave: Float64, key: Any, source: Any) -> tuple[Float64, dict[str, Any]]:
        return np.zeros(len(wave)), {}


def make(folder: Path, conversations: Iterable[Mapping[str, Sequence[Float64]]], seconds: float
) -> Known:  # fmt: skip
    """Write conversations of some people each, and their turns; returns the turns."""
    folder.mkdir()
    found = {}
    for i, people in enumerate(conversations):
        path = folder / f"c{i:03d}.wav"
        samples, found[path] = converse(people, seconds, i)
        soundfile.write(path, samples, SAMPLE_RATE)
        turns.write(path.with_suffix(".rttm"), path.stem, found[path])
    return found


def drawn(n: int, people: int = 0) -> Iterator[dict[str, list[Float64]]]:
    """People of n conversations: so many, or two to four."""
    return (readers(SPEECH, people or 2 + i % 3, 100 + i) for i in range(n))


def call(program: str, *words: object) -> None:
    """Run a program with models/bn2."""
    done = subprocess.run([ROOT / program, "--system", ROOT / "models/bn2", *map(str, words)],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)


def protect(source: Path, out: Path, *words: object) -> None:
    """Protect a folder by models/bn2."""
    call("steps/protect_folder.py", "--key", "a key of sixteen", *words, source, out)


def place_of(begin: float, end: float) -> slice:
    """Samples between two seconds."""
    return slice(int(begin * SAMPLE_RATE), int(end * SAMPLE_RATE))


def alone(said: list[turns.Turn]) -> list[Place]:
    """Persons and samples of turns in which nobody else speaks."""
    found = []
    for turn in said:
        for begin, end in clear_of([turn, *(t for t in said if t is not turn)], [turn.person]):
            a, b = max(begin, turn.begin), min(end, turn.end)
            if b - a >= SHORTEST:
                found.append((turn.person, place_of(a, b)))
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


def protect_singly(
    known: Known, folder: Path, places: Callable[[list[turns.Turn]], list[Place]]
) -> Mapping[tuple[Path, str], Iterator[slice]]:
    """Protect what each person says at these places as a recording of its own, in `single` and
    `singly`; returns where each of the places lies in it."""
    (folder / "single").mkdir()
    found = {}
    for path, said in known.items():
        samples, cut = soundfile.read(path)[0], places(said)
        for person in {who for who, _ in cut}:
            own = [samples[place] for who, place in cut if who == person]
            name = folder / f"single/{path.stem}-{person}.wav"
            soundfile.write(name, np.concatenate(own), SAMPLE_RATE)
            ends = np.cumsum([0, *map(len, own)]).tolist()
            found[path, person] = (slice(a, b) for a, b in pairwise(ends))
    protect(folder / "single", folder / "singly")
    return found


def words_lost(known: Known, folder: Path) -> tuple[float, float]:
    """Word errors against the original's, in percent: protected in place, and one by one."""
    recogniser, errors, n = make_recogniser("moonshine"), np.zeros(2), 0
    places = protect_singly(
        known, folder, lambda said: [(t.person, place_of(t.begin, t.end)) for t in said]
    )
    for path, said in known.items():
        sides = [soundfile.read(where / path.name)[0] for where in (path.parent, folder / "out")]
        for turn in said:
            part, own = place_of(turn.begin, turn.end), next(places[path, turn.person])
            if any(t is not turn and t.begin < turn.end and turn.begin < t.end for t in said):
                continue
            single = soundfile.read(folder / f"singly/{path.stem}-{turn.person}.wav")[0][own]
            heard = [recogniser.recognise("turn", x) for x in (*(s[part] for s in sides), single)]
            texts = [str(getattr(x, "words", x)).lower().split() for x in heard]
            errors += [Levenshtein.distance(texts[0], text) for text in texts[1:]]
            n += len(texts[0])
    return tuple(100 * errors / n)


def find(known: Known, given: bool) -> tuple[float, float, float]:
    """Mean confused and missed, and the share of recordings whose number of people is right."""
    rows = []
    for path, said in known.items():
        recording, n = Recording.open(path), len({turn.person for turn in said})
        found = find_people(recording, None, n if given else None)
        right = len({turn.person for turn in found.turns}) == n
        rows.append((*confusion(said, list(found.turns), recording.seconds), right))
    return tuple(np.mean(rows, axis=0))


def ami(folder: Path) -> Known:
    """Excerpts of AMI with their turns, where they hold sound."""
    found = {}
    for path in sorted((CORPORA / "ami_excerpts").glob("trn*.flac")):
        if np.abs(soundfile.read(path)[0]).max() > 1e-3:
            said = folder / f"{path.stem}.rttm"
            shutil.copy(path.with_name("trn.rttm"), said)
            found[path] = turns.read_turns(said)
    return found


def given(folder: Path, asked: Any) -> list[Judged]:
    """Voices, words and lengths where turns are given, and voices where they are found."""
    known = make(folder / "in", drawn(asked.n, asked.people), asked.seconds)
    protect(folder / "in", folder / "out", "--turns", "beside")
    protect(folder / "in", folder / "auto", "--turns", "auto")
    before, after, auto = (hear_voices(known, folder / own) for own in ("in", "out", "auto"))
    lost, singly = words_lost(known, folder)
    print("EER of turns: originals, found ones", eer(*before), eer(*auto))
    print("word errors in place, one by one", lost, singly)
    lengths = [soundfile.info(folder / "out" / path.name).frames == soundfile.info(path).frames
               for path in known]  # fmt: skip
    return [
        ("EER of turns, pseudo-voices", eer(*after), MOST, 0.05),
        ("cosine of a person's turns, of the originals'", after[0].mean() / before[0].mean(),
         LEAST, 1.0),
        ("words lost, of one by one", lost / singly, MOST, 1.1),
        ("lengths equal", float(all(lengths)), LEAST, 1.0),
    ]  # fmt: skip


def found(folder: Path, asked: Any) -> list[Judged]:
    """People who are found."""
    others, meetings = make(folder / "in", drawn(asked.found), asked.seconds), ami(folder)
    told, free = find(others, True), find(others, False)
    print("missed", told[1], "" if meetings else "AMI: no excerpt holds sound; not measured")
    return [
        ("confused, number given", told[0], MOST, 0.05),
        ("confused, number not given", free[0], MOST, 0.08),
        ("number of people right", free[2], LEAST, 0.8),
        *[("AMI: confused, number given", find(meetings, True)[0], MOST, 0.08)] * bool(meetings),
    ]


def kept(folder: Path, asked: Any) -> list[Judged]:
    """Who is heard in the clear where all but one are protected."""
    mute, leaked, heard = Mute(None, SystemRun(Path("mute"), NOTHING, FIRST)), 0, 0
    for path, said in make(folder / "in", drawn(asked.kept), 60.0).items():
        stays, name = frozenset({said[0].person}), Path(path.name)
        scenes = {name: Scene(tuple(said), kept=stays)}
        work = protection.Work(path.parent, folder / "out", mute, pitch=False, scenes=scenes)
        work.protect(path.name, name, None, lambda _: None)
        clear = soundfile.read(folder / "out" / name)[0] != 0
        others = np.zeros(len(clear), bool)
        for turn in (turn for turn in said if turn.person not in stays):
            others[place_of(turn.begin, turn.end + 1 / SAMPLE_RATE)] = True
        leaked += int(np.count_nonzero(clear & others))
        heard += int(np.count_nonzero(clear & ~others))
    print("seconds of kept people in the clear", heard / SAMPLE_RATE)
    return [(f"samples in the clear that should not, of {asked.kept}", leaked, MOST, 0)]


def removed(folder: Path, asked: Any) -> list[Judged]:
    """Judge how like a tone a removed name is, and whether subtitles are in step."""
    known, tones, fit = make(folder / "in", drawn(asked.n), 60.0), [], []
    for path, said in known.items():
        begin, cues = said[1].begin + 0.5, [t._replace(words=f"it is {t.person}") for t in said]
        path.with_suffix(".redact.tsv").write_text(f"{begin}\t{begin + 1}\tname\n")
        turns.write(path.with_suffix(".srt"), path.stem, cues)
    protect(folder / "in", folder / "out", "--turns", "beside", "--redact", "beside", "--texts")
    for path, said in known.items():
        made, text = (folder / "out" / path.with_suffix(kind).name for kind in (".wav", ".srt"))
        samples, cues = soundfile.read(made)[0], turns.read_turns(text)
        ((begin, end),) = hidden(turns.read_spans(path.with_suffix(".redact.tsv")), len(samples))
        tones.append(np.corrcoef(samples[begin:end], tone(end - begin))[0, 1])
        fit.append(np.allclose([t[:2] for t in cues], [t[:2] for t in said], 0, 0.001)
                   and cues[1].words == "[name]"
                   and not any(t.person in text.read_text("utf-8") for t in said))  # fmt: skip
    return [
        ("a name that is removed: likeness to a tone", min(tones), LEAST, 0.99),
        ("its subtitles in step, without names", float(all(fit)), LEAST, 1.0),
    ]


def evidence(folder: Path, asked: Any) -> list[Judged]:
    """Who is found: with turns, and one by one."""
    people = readers(SPEECH, 24)
    groups = np.array_split(sorted(people), 9)
    parts = ({name: people[name] for name in own.tolist()} for own in groups)
    known, told = make(folder / "in", parts, asked.seconds), []
    protect(folder / "in", folder / "out", "--turns", "beside")
    protect_singly(known, folder, alone)
    for source, out, words in (("in", "out", ["--turns", "beside"]), ("single", "singly", [])):
        call("local/measure_evidence.py", *words, folder / source, folder / out)
        found = json.loads((folder / f"{out}.evidence.json").read_text("utf-8"))["attacks"]
        told.append({(own["attacker"], own["encoder"]): own["linking"] for own in found})
    apart, rows = 0, [["attacker", "encoder", "EER with turns", "one by one", "difference"]]
    for name in told[1]:
        both = [own[name] for own in told]
        turned, single = (judged.value(report, "eer") for report in both)
        apart += turned.apart(single)
        rise = f"{100 * (turned.value - single.value):+.1f}"
        rows.append([*name, *(judged.said(report, "eer") for report in both), rise])
    show(ROOT / "docs/interview_evidence.csv", rows)
    return [("attackers whose EERs with turns and one by one are apart", apart, MOST, 0)]


PARTS = {part.__name__: part for part in (given, found, kept, removed, evidence)}


def main() -> int:
    """Run the benchmark; 1 where a goal is missed."""
    parser = argparse.ArgumentParser()
    for name, n in (
        ("--n", 3),
        ("--seconds", 90.0),
        ("--people", 0),
        ("--found", 10),
        ("--kept", 100),
    ):
        parser.add_argument(name, type=type(n), default=n)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    asked, figures = parser.parse_args(), list[Judged]()
    if not SPEECH.is_dir():
        skip("no LibriSpeech")
    for part in asked.parts:
        with tempfile.TemporaryDirectory() as folder:
            figures += PARTS[part](Path(folder), asked)
    return judge(*figures)


if __name__ == "__main__":
    sys.exit(main())
