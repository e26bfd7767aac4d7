"""The level of the output: one for all recordings, whatever the source's, and the recipe's."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import soundfile

from steps.anonymisers.registry import (
    ENDS,
    Anonymiser,
    AsItIs,
    OutputLevel,
    protect_audio,
    speech_of,
    with_ends,
)
from steps.sources import SourceSpeaker, VoiceKey
from steps.standalone.job import key_number, load_system
from steps.standalone.protection import Work, _Pieces
from steps.standalone.stream import LONGEST, Loudness, Piece, one_level
from steps.synthesis.f0 import compute_f0_stats
from tests.recipes import ROOT
from tests.refusals import refuses
from tests.test_protect_folder import KEY, SYSTEM, run, samples, speechlike, write
from tests.test_reading import Heard
from tests.world import needs_wheel, voice
from utils.arrays import Float64
from utils.tables import read_json_object

NO_PITCH = {channel: compute_f0_stats([np.zeros(1)]) for channel in (None, 0, 1)}
SYSTEMS = [pytest.param(SYSTEM, id="mcadams")]
SYSTEMS += [
    pytest.param(ROOT / "models" / name, id=name, marks=needs_wheel)
    for name in ("bn2", "read", "place")
]


@pytest.fixture
def system(request: pytest.FixtureRequest) -> Anonymiser:
    """A system; the words of one that reads are given, as pulses say none."""
    found = load_system(request.param, key_number(KEY)).anonymiser
    if request.param.name in ("read", "place"):
        cast(Any, found)._synthesiser._recogniser = Heard("Nobody knew why the old man was there.")
    return found


Make = Callable[..., Float64]


@pytest.fixture
def make(system: Anonymiser, tmp_path: Path) -> Make:
    """Protect a signal, written with a kind of samples."""

    def made(wave: Float64, kind: str = "PCM_16", level: str = "one", form: str = "wav") -> Float64:
        path = Path(f"a.{form}")
        (tmp_path / "in").mkdir(exist_ok=True)
        soundfile.write(tmp_path / "in" / path, wave, 16000, kind)
        work = Work(tmp_path / "in", tmp_path / "out", system, "each", level)
        work.protect("who", path, NO_PITCH, lambda _: None)
        assert soundfile.info(tmp_path / "out" / path).subtype == kind
        return samples(tmp_path / "out" / path)

    return made


def db(wave: Float64) -> float:
    return float(10 * np.log10(np.var(wave)))


SPEECH = voice(3.0, 120, 550) * np.repeat(np.tile([1.0, 0.01], 5), 4800)
SPEECH = np.rint(SPEECH * 2**15) / 2**15


@pytest.mark.parametrize("system", SYSTEMS, indirect=True)
def test_the_level_of_a_file_told_that_of_the_recording(make, system):
    """And so who speaks: it was that of the source, piece by piece, whatever the system. bn2's
    largest sample differs by some dB with the last bits of the source."""
    loud, soft = (make(SPEECH * 5 * 10 ** (level / 20)) for level in (-6, -40))
    assert abs(db(loud) - db(soft)) < (1.5 if system.raised and not system.words_alone else 0.5)
    assert np.abs(loud).max() == pytest.approx(0.95, abs=1e-3)
    quiet = np.concatenate((np.zeros(5 * 16000), SPEECH))
    later = make(quiet)
    begins = max(0, len(later) - len(make(SPEECH)))
    assert abs(db(later[begins:]) - db(make(SPEECH))) < 0.5
    assert not make(np.zeros(16000)).any()


@pytest.mark.parametrize("system", SYSTEMS[2:3], indirect=True)
def test_only_words_of_a_recording_that_is_read_counted(make: Make, system: Anonymiser) -> None:
    """The silence before them, the cuts of a long one, and the length of one without words were
    those of the source."""
    recogniser = cast(Any, system)._synthesiser
    whole, silence = "Nobody knew why. The old man was there.", np.zeros(16000)
    recogniser._recogniser = Heard(whole)
    made = make(SPEECH)
    assert (made == make(np.concatenate((*[silence] * 5, 0.1 * SPEECH, *[silence] * 30)))).all()
    recogniser._recogniser = InTurn("Nobody knew", "why. The old", "man was there.")
    assert (made == make(np.concatenate((np.tile(SPEECH, 12), *[silence] * 9)))).all()
    recogniser._recogniser = Heard("")
    nothing = [make(x) for x in (SPEECH, np.tile(SPEECH, 8), silence, np.tile(silence, 40))]
    assert {(len(x), x.any()) for x in nothing} == {(8000, False)}


class InTurn:
    """Recogniser of these words, one after another."""

    def __init__(self, *words: str) -> None:
        self._words = iter(words)

    def recognise(self, utt: str, samples: Float64) -> str:
        return next(self._words)


LONG = np.tile(SPEECH, 7)  # longer than a piece


@pytest.mark.parametrize("system", SYSTEMS[:2], indirect=True)  # what is read has no noise
def test_pieces_of_a_long_recording_and_their_level(make, system):
    """Where a system makes its own level, that of a softer piece is not passed on; but no piece of
    mere noise is as loud as speech."""
    made = make(np.concatenate((LONG, LONG / 100, 0.4 * LONG)))
    parts = [made[i * len(LONG) + 80000 : (i + 1) * len(LONG) - 80000] for i in range(3)]
    softer = [db(part) - db(parts[0]) for part in parts[1:]]
    if system.raised is None:
        assert softer == pytest.approx([-40, -8], abs=1)
    else:
        assert softer == pytest.approx([-34, -2], abs=2)
    noise = np.random.default_rng(0).standard_normal(3 * len(LONG)) * LONG.std() / 100
    whole = make(np.concatenate((LONG, noise, LONG)))
    pause = whole[len(LONG) + 80000 : 4 * len(LONG) - 80000]
    assert db(pause) - db(whole[: len(LONG)]) < -40 + 6
    assert np.abs(whole).max() <= 0.951


@pytest.mark.parametrize("system", SYSTEMS[2:3], indirect=True)
def test_pieces_that_are_read_anew_have_one_level(make):
    assert LONGEST > 15
    made = make(np.concatenate((LONG, LONG / 100, LONG)))
    thirds = [db(part) for part in np.array_split(made, 3)]
    assert max(thirds) - min(thirds) < 2


@pytest.mark.parametrize("system", [*SYSTEMS[:2], SYSTEMS[3]], indirect=True)
def test_users_and_the_recipes_attackers_get_the_same_samples(system, make, tmp_path):
    """There was another level on either side, so that attackers did not hear what users get."""
    found = make(SPEECH)
    key = VoiceKey("spk", ("folder", "who"), ("folder", "who"))
    source = SourceSpeaker("who", f0=NO_PITCH[None])
    given = {"a": str(tmp_path / "in/a.wav")}
    protect_audio(given, {"a": key}, {"a": source}, system, tmp_path)
    assert (found == samples(tmp_path / "a.wav")).all()


@pytest.mark.parametrize("system", SYSTEMS[:1], indirect=True)
def test_the_level_of_the_source_may_be_asked_for(make):
    long = np.concatenate((LONG, LONG / 10))
    made = make(long, level="source")
    for part in (slice(0, 300000), slice(-300000, None)):
        assert db(made[part]) == pytest.approx(db(long[part]), abs=0.5)
    assert np.abs(make(long * 30, "FLOAT", "source")).max() < 1


@pytest.mark.parametrize("system", SYSTEMS[:1], indirect=True)
@pytest.mark.parametrize(
    ("kind", "form", "step"),
    [("PCM_24", "wav", 2**-23), ("PCM_24", "flac", 2**-23), ("FLOAT", "wav", 0),
     ("DOUBLE", "aiff", 0), ("PCM_16", "wav", 2**-15)],
)  # fmt: skip
def test_24_bit_and_floats_became_16_bit(make, kind, form, step):
    made = make(SPEECH, kind, form=form)
    assert np.abs(made).max() == pytest.approx(0.95, abs=1e-4)
    assert np.abs(made - make(SPEECH)).max() < 2**-14
    if step:
        assert (made / step == np.rint(made / step)).all()
    assert (made * 2**15 == np.rint(made * 2**15)).all() == (kind == "PCM_16")


def test_a_long_recording_stays_out_of_memory(tmp_path):
    """Its pieces wait in a file without a name until their level is known."""
    silence = Loudness(0, 0, 0, 0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    pieces = _Pieces(tmp_path)
    for number in range(20):
        pieces.add(Piece(np.full((300000, 1), float(number)), 0, 0, silence, silence))
    assert tracemalloc.get_traced_memory()[0] - before < 8e6  # of 48 MB
    tracemalloc.stop()
    assert [float(piece.samples[-1, 0]) for piece in pieces] == [*range(20)]
    assert not [*tmp_path.iterdir()]
    pieces.close()


def test_ends_by_hand() -> None:
    """Speech is found across parts, and gets one length of silence, whatever was there before."""
    speech = np.tile([0.5, -0.5], 800)
    for lead, rest in ((4800, 320), (0, 0), (1000, 9000), (1920, 1920)):
        noise = np.full(lead, 1e-3), np.full(rest, -1e-3)
        whole = np.concatenate((noise[0], speech, noise[1]))
        for parts in ([whole], np.split(whole, [700, 900, 2000]), [whole[:, None] * [1.0, 0.5]]):
            begin, end = speech_of(parts, 0.5) or (0, 0)
            assert lead - 160 < begin <= lead and lead + 1600 <= end < lead + 1760
            made = np.concatenate(list(with_ends(parts, (begin, end))))
            assert len(made) == 2 * ENDS + end - begin
            kept = made if made.ndim == 1 else made[:, 0]
            assert (kept[ENDS + lead - begin :][:1600] == speech).all()
            assert not kept[: ENDS - 480].any() and not kept[len(kept) - ENDS + 480 :].any()
    assert speech_of([np.zeros(1000)], 1.0) is None


def test_ends_told_how_long_somebody_waits(tmp_path: Path) -> None:
    """And the account says by how much a recording moved; a run with other ends is refused."""
    silence = np.zeros(16000)
    for name, before, after in (("a", 1, 0), ("b", 2, 3)):
        parts = [*[silence] * before, speechlike(2.0, 1), *[silence] * after]
        write(tmp_path / f"in/{name}.wav", np.concatenate(parts))
    words = ("--key", KEY, tmp_path / "in", tmp_path / "out")
    assert run("--ends", "one", *words) == 0
    a, b = (samples(tmp_path / f"out/{name}.wav") for name in "ab")
    assert abs(len(a) - len(b)) < 640 and len(a) < 2.3 * 16000
    told = read_json_object(tmp_path / "out.account.json", "")["files"]
    later = [told[f"{name}.wav"]["seconds_later"] for name in "ab"]
    assert later[0] - later[1] == pytest.approx(1, abs=0.05)
    assert later[0] < -0.8
    assert "speech begins later by" in (tmp_path / "out.account.html").read_text()
    refuses("with other settings", run, *words)
    refuses("time", run, "--time", "keep", *words)


def test_levels_by_hand() -> None:
    """The rule on a loud, a softer and a faint piece, and on one that became silence."""
    source = [Loudness(0, power, 0, 0) for power in (1.0, 0.5, 0.01, 0.1)]
    made = [Loudness(0, power, 0, 0) for power in (4.0, 1.0, 1.0, 0.0)]
    levels = list(zip(source, made, strict=True))
    assert one_level(levels, None) == [1, 1, 1, 1]
    guarded = np.array(one_level(levels, 10.0)) ** 2
    assert guarded.tolist() == pytest.approx([1, 4, 0.4, 1])
    assert np.array(one_level(levels, np.inf)) ** 2 == pytest.approx([1, 4, 4, 1])


def test_samples_of_24_bit_and_floats_at_a_rule():
    wave = np.array([0.0, 0.2, -0.5])
    rule = OutputLevel()
    assert (rule.written(wave, 0.5, "PCM_24") >> 8).tolist() == [0, 3187671, -7969178]
    assert rule.written(wave, 0.5, "FLOAT") == pytest.approx([0, 0.38, -0.95])
    assert AsItIs().written(2 * wave[2:], 1.0, "PCM_32").tolist() == [-(2**31)]
    assert AsItIs().written(-2 * wave[2:], 1.0, "PCM_32").tolist() == [2**31 - 1]


def test_the_level_is_a_setting_that_a_run_goes_on_with(tmp_path):
    write(tmp_path / "in/a.wav", speechlike(1.0))
    words = ("--key", KEY, tmp_path / "in", tmp_path / "out")
    assert run("--level", "source", *words) == 0
    assert db(samples(tmp_path / "out/a.wav")) == pytest.approx(db(speechlike(1.0)), abs=0.1)
    refuses("with other settings", run, *words)
    page = (tmp_path / "out.account.html").read_text()
    assert "which may tell who speaks" in page
