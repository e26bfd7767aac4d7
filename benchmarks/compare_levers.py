#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""How much each change of models/bn2 and models/place gives: who is found, and which words.

EGS is egs/speechocean after `./prepare.sh`; people are drawn from its data/train, whom no table of
the recipe attacks. WORDS is a folder of LibriSpeech's layout (dev-clean) with native readers.

  benchmarks/compare_levers.py EGS WORDS OUT.csv [PEOPLE RECORDINGS]     48 and 16 if left out

All settings are models/place with some parts that stay the source's (`PARTS`), made as `make
protect` makes files: a voice a file, one level. Of each person four recordings are protected, 2
known and 2 looked for. Two thirds of the people teach whoever attacks the rest, in turn; pairs are
of women and men together. OUT.csv has a row a setting: EERs from one and from all recordings, with
95 % intervals over people, by all that learn (`fused_learnt` of compare_learners.py), by a
recogniser's encoder that learns nothing, by five durations (the text's is that of the transcript)
and by the contour of energy; and WER of native readers by the recogniser that is also in the
system.
"""

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

from benchmarks.compare_hours import Vectors, percent
from benchmarks.compare_learners import ENCODERS, FUSED, LENGTHS, Attacked, Sides, attack, eers
from benchmarks.measuring import write
from local.metrics.utility import error_figures
from steps.anonymisers.registry import AsItIs, Spoken, protect_audio
from steps.anonymisers.voice_conversion import MODELS, VoiceConversion
from steps.asr import engines
from steps.asr.recognisers import make_recogniser
from steps.audio import read_audio
from steps.channels.written import ContentEncoder, EnergyEncoder, LevelEncoder, rhythm_of
from steps.content import reading
from steps.content.extractors import at_frames, at_places
from steps.content.reading import SILENCE, Phone, heard_words, words_of
from steps.sources import SourceSpeaker, make_keys
from steps.speaker import backends
from steps.speaker.vectors import average_by_speaker
from steps.standalone.job import load_system
from steps.synthesis import world
from steps.synthesis.base import Target
from steps.synthesis.f0 import LOWEST_HZ, VOICED_HZ, compute_f0_stats, transform_linear, unbroken
from utils.arrays import Float64
from utils.datadir import DataDir, load_data_dir, select
from utils.seeds import make_rng
from utils.trials import Ids, Trials

TURNS, ENROLLED, TRIED = 3, 2, 2  # thirds of the people; recordings of each
PARTS = ("content", "voicing", "lengths", "pauses", "ends", "melody", "energy", "level")
OF_BN2 = frozenset(PARTS[:5])
UNSURE = "unsure"  # what is unsure on the whole is also read
SHOWN = (FUSED, "content/cosine", "rhythm", "energy")
HEADER = ["speech", *(f"{name}, {n} (%)" for name in SHOWN for n in LENGTHS), "WER (%)"]
Settings = Mapping[str, tuple[str, frozenset[str], Mapping[str, object]]]


def settings() -> Settings:
    """Model, parts that stay the source's, and settings instead of its own, by name."""
    none, own = frozenset[str](), dict[str, object]()
    flat: dict[str, object] = {"ranges": {"energy": [0.5, 0.5]}}
    found = {"original": ("", none, own), "bn2": ("bn2", none, own), "bn_map": ("place", none, own)}
    found["bn_place"] = ("place", none, {"time": "keep"})
    for name in PARTS[:5]:
        found[f"bn2, without the source's {name}"] = ("place", OF_BN2 - {name}, own)
    found["bn2, with half of the energy's range"] = ("place", OF_BN2, flat)
    found["bn_map, nothing as heard"] = ("place", frozenset({UNSURE}), {"doubt": 1.0})
    for name in PARTS:
        if name != "ends":  # nothing of the source is before the first word
            found[f"bn_map, with the source's {name}"] = ("place", frozenset({name}), own)
    for name in PARTS[5:]:
        found[f"bn2, with the source's {name}"] = ("place", OF_BN2 | {name}, own)
    return found


# ---- What depends on the source alone is computed once for all settings.


class Remembered:
    """A function of signals that computes each result once; all else is the function's own."""

    results: ClassVar[dict[tuple[object, ...], Any]] = {}

    def __init__(self, name: str, function: Any, method: str = "__call__") -> None:
        self._name, self._function, self._call = name, function, getattr(function, method)
        setattr(self, method, self)

    def __call__(self, *given: Any) -> Any:
        words = (
            hashlib.sha256(x.tobytes()).digest() if isinstance(x, np.ndarray) else repr(x)
            for x in given
        )  # fmt: skip
        key = self._name, *words
        if key not in self.results:
            self.results[key] = self._call(*given)
        return self.results[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


# ---- Parts of the source in speech that is read.


class Found:
    """Aligner that remembers where the words of the last signal were."""

    def __init__(self, aligner: Any) -> None:
        self._find = Remembered("find", aligner.find)
        self.words, self.n = list[tuple[int, int]](), 0

    def find(self, utt: str, wave: Float64, names: Sequence[Sequence[str]]) -> Any:
        self.words, self.n = self._find(utt, wave, names), 1 + len(wave) * 100 // 16000
        return self.words


def in_time(
    phones: Sequence[Phone], kept: Mapping[int, int], found: Found, of: Collection[str]
) -> tuple[list[Phone], list[tuple[int, int]]]:
    """As `reading.in_time`, with lengths of words or of pauses as they were found."""
    if "lengths" in of:
        kept = {i: end - begin for i, (begin, end) in enumerate(found.words)}
    made, spans = TIMED(phones, kept)
    if "pauses" not in of:
        return made, spans
    placed, at, before = list[Phone](), 0, 0
    moved = list[tuple[int, int]]()
    for word, (first, last), (begin, end) in zip(words_of(made), spans, found.words, strict=True):
        if begin > before:
            placed.append(Phone(SILENCE, lasts=begin - before))
            at += begin - before
        placed += word
        moved.append((at, at + last - first))
        at, before = at + last - first, end
    return [*placed, Phone(SILENCE, lasts=max(1, found.n - before))], moved


TIMED = reading.in_time


def heard(synthesiser: Any, of: Collection[str]) -> Callable[..., Any]:
    """`BnSynthesiser._found`, with content or voicing as they were heard; F0 is the source's."""

    def found(wave: Float64, change: Any) -> Any:
        content, source = synthesiser._hear(wave)
        if not len(content):
            return content, source, {}, ()
        mean, sd = (synthesiser.network.statistic(f"content_{name}") for name in ("mean", "sd"))
        said = synthesiser._repairing.read(wave, (content - mean) / sd, synthesiser.extractor)
        content = synthesiser._changed(content, change)
        if said is None:
            return content, source, {"unread": 1.0}, ()
        contour = unbroken(source.f0)
        if said.places is not None:
            content, source = at_places(content, said.places[0]), source.at(said.places[1])
            contour = contour[np.rint(said.places[1]).astype(int)]
        read = synthesiser._changed(synthesiser._spoken(said.content), change)
        kept = said.heard[:, None]
        shares = kept if "content" not in of else np.ones_like(kept)
        mixed = np.where(shares > 0, shares * content + (1 - shares) * read, read)
        ours = at_frames(kept, synthesiser.extractor, len(said.voiced), world.HOP)[:, 0] < 0.5
        voiced = source.f0 > VOICED_HZ
        voiced = voiced if "voicing" in of else np.where(ours, said.voiced, voiced)
        made = {"f0": voiced * np.maximum(contour, LOWEST_HZ), "sounds": ours | source.sounds}
        return mixed, source.__class__(**{**vars(source), **made}), said.seconds, said.words

    return found


@contextmanager
def changed(system: VoiceConversion, of: Collection[str]) -> Iterator[None]:
    """Let a system keep some parts of the source."""
    made: Any = system._synthesiser
    made.extractor = Remembered("content", made.extractor)
    repairing = made._repairing
    with ExitStack() as stack:
        if "level" in of:
            stack.enter_context(patch.object(system, "transform", at_level(system.transform)))
            system.output = AsItIs()
        if repairing is None:
            yield
            return
        repairing._recogniser = Remembered("words", repairing._recogniser, "recognise")
        repairing._aligner = found = Found(repairing._aligner)
        system.ends = "keep" if "ends" in of else "one"
        if "energy" in of:
            made.keep = ("energy",)
        if "melody" in of:
            made._own_f0 = False
            stack.enter_context(patch.object(system, "_f0_map", lambda _, to: partial(as_own, to)))
        if of:
            made._found = heard(made, of)
            timed = partial(in_time, found=found, of=of)
            stack.enter_context(patch.object(reading, "in_time", timed))
        if UNSURE in of:
            for name in ("_UNREAD", "_ASKED"):
                stack.enter_context(patch.object(reading, name, 0.0))
        yield


def as_own(target: Target, f0: Float64) -> Float64:
    """Melody of the source in the pitch of a pseudo-speaker."""
    return transform_linear(f0, compute_f0_stats([f0]), target.f0)


def at_level(transform: Callable[..., Spoken]) -> Callable[..., Spoken]:
    """Let speech have the power of its source."""

    def levelled(wave: Float64, *given: Any) -> Spoken:
        made, info = transform(wave, *given)
        gain = np.sqrt(np.mean(wave**2) / (np.mean(made**2) or 1.0))
        return made * min(gain, 0.99 / (np.abs(made).max() or 1.0)), info

    return levelled


# ---- Attacks on what was made, and its words.


def listen(wav: Mapping[str, str], people: DataDir) -> dict[str, dict[str, Any]]:
    """Vectors of people's files by evaluator."""
    of: dict[str, Any] = {"content": ContentEncoder("cpu"), "level": LevelEncoder()}
    of["energy"] = EnergyEncoder()
    vectors: dict[str, dict[str, Any]] = {name: {} for name in (*of, "rhythm")}
    for utt, text in (people.text or {}).items():
        samples = read_audio(utt, wav[utt]).samples
        for name, encoder in of.items():
            vectors[name][utt] = encoder.embed(samples)
        vectors["rhythm"][utt] = rhythm_of(samples, text)
    return vectors


def words_lost(wav: Mapping[str, str], readers: DataDir) -> str:
    """WER."""
    recogniser, text = make_recogniser("moonshine"), readers.text or {}
    heard = {utt: heard_words(recogniser, read_audio(utt, wav[utt]).samples)[0] for utt in text}
    found = error_figures(text, heard, readers.utt2spk, n_bootstrap=1000)
    ends = found["intervals"]
    assert isinstance(ends, dict)
    return percent(float(str(found["wer"])), ends["wer"])


def attacked(people: DataDir) -> Attacked:
    """People in thirds, and trials of each recording that is looked for among those of a third."""
    named = sorted(people.spk2utt)
    order = make_rng(0, "thirds").permutation(len(named))
    half = {spk: int(place % TURNS) for spk, place in zip(named, order, strict=True)}
    known = [utt for utts in people.spk2utt.values() for utt in utts[:ENROLLED]]
    rest = [utt for utts in people.spk2utt.values() for utt in utts[ENROLLED:]]
    rows = [(spk, utt) for spk in named for utt in rest if half[spk] == half[people.utt2spk[utt]]]
    enrol, trial = zip(*rows, strict=True)
    target = np.array([people.utt2spk[utt] == spk for spk, utt in rows])
    enrolled, tried = (DataDir(people.path, select(people, utts)) for utts in (known, rest))
    return Attacked(enrolled, tried, half, Trials(Ids.of(enrol), Ids.of(trial), target))


def ignorant(heard: Sides, sets: Attacked, number: int) -> Float64:
    """Scores of a third's trials by the encoder alone."""
    means, counts = average_by_speaker(heard.enrol.items(), sets.enrolled.utt2spk)
    people = backends.VectorTable(means, "known", counts)
    tried = backends.VectorTable(dict(heard.trial), "tried")
    scorer = backends.load_backend("cosine_scaled")
    return backends.score_trials(scorer, people, tried, sets.of_half(number))


def judged(made: Mapping[str, dict[str, Any]], people: DataDir, sets: Attacked) -> list[str]:
    """EERs of SHOWN."""
    sides = sets.enrolled, sets.tried
    heard = {
        name: Sides(*({utt: own[utt] for utt in side.utt2spk} for side in sides))
        for name, own in made.items()
    }
    scores: list[dict[str, Float64]] = []
    for number in range(TURNS):
        others = {utt for utt, spk in people.utt2spk.items() if sets.half[spk] != number}
        taught: dict[str, Vectors] = {
            name: {utt: own[utt] for utt in people.utt2spk if utt in others}
            for name, own in made.items() if name in ENCODERS
        }  # fmt: skip
        scores.append(attack(taught, people, heard, sets, number))
        scores[-1]["content/cosine"] = ignorant(heard["content"], sets, number)
    found = [eers(sets, [one[name] for one in scores]) for name in SHOWN]
    return [percent(x.value, [x.low, x.high]) for of in found for x in of.values()]


def drawn(egs: Path, folder: Path, n_people: int, n_words: int) -> tuple[DataDir, DataDir]:
    """People of the training half, as many women as men, and native readers."""
    train = load_data_dir(egs / "data/train")
    chosen, gender = list[str](), train.spk2gender or {}
    for own in "fm":
        names = sorted(spk for spk, of in gender.items() if of == own)
        order = make_rng(0, "levers", own).permutation(len(names))
        chosen += [names[place] for place in order[: n_people // 2]]
    utts = [utt for spk in sorted(chosen) for utt in train.spk2utt[spk][: ENROLLED + TRIED]]
    lines = [line for path in sorted(folder.rglob("*.trans.txt")) for line in path.open()]
    text = {utt: said.strip() for utt, said in (line.split(" ", 1) for line in lines)}
    audio = {path.stem: str(path) for path in sorted(folder.rglob("*.flac")) if path.stem in text}
    some = [[*audio][i] for i in np.linspace(0, len(audio) - 1, n_words).astype(int)]
    tables = {
        "wav.scp": {utt: audio[utt] for utt in some}, "text": {utt: text[utt] for utt in some},
        "utt2spk": {utt: utt.split("-")[0] for utt in some},
    }  # fmt: skip
    return DataDir(train.path, select(train, utts)), DataDir(folder, tables)


def main() -> None:
    """Print and write the rows."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    egs, folder, out, *sizes = sys.argv[1:]
    people, readers = drawn(Path(egs), Path(folder), *map(int, sizes or ("48", "16")))
    sets, wav = attacked(people), people.wav | readers.wav
    whose = people.utt2spk | readers.utt2spk
    keys = make_keys("utt", whose, "levers")
    who = {utt: SourceSpeaker(spk) for utt, spk in whose.items()}
    world.extract_f0 = Remembered("f0", world.extract_f0)  # type: ignore[assignment]
    engines.foreign = lambda *_: ""  # all speech is English
    rows = [HEADER]
    for name, (model, of, changes) in {
        "original": ("", frozenset[str](), {}),
        **settings(),
    }.items():
        with TemporaryDirectory() as place:
            files: Mapping[str, str] = wav
            if model:
                system: Any = load_system(MODELS / model, 0, changes).anonymiser
                with changed(system, of):
                    files = protect_audio(wav, keys, who, system, place).files
            made, lost = listen(files, people), words_lost(files, readers)
        rows.append([name, *judged(made, people, sets), lost])
        print(*rows[-1], sep="\t", flush=True)
        write(Path(out), rows)


if __name__ == "__main__":
    main()
