"""Speech protected while it comes in: equal to the whole, as late as stated, on a pipe."""

import inspect
import io
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from steps.anonymisers.mcadams import HOP, McAdams, McAdamsSettings, transform
from steps.anonymisers.registry import AsItIs, OutputLevel
from steps.protect_stream import main
from steps.sources import SourceSpeaker, VoiceKey
from steps.standalone.stream import LiveMcAdams, LiveWindows, make_live, open_pipe, to_bytes
from tests.recipes import ROOT
from tests.refusals import refuses
from tests.waiting import wait_for
from tests.world import run_of, voice
from utils.arrays import Float64

KEY = VoiceKey("spk", ("stream", "speaker"), ("stream", "speaker"))


@pytest.mark.parametrize("size", [1, 100, 160, 161, 640, 3200])
@pytest.mark.parametrize("n", [1, 159, 160, 320, 4001])
def test_mcadams_of_a_stream_is_that_of_the_whole(size, n):
    wave = voice(1.0, 120, 550)[2000 : 2000 + n]
    system = McAdams(McAdamsSettings("mcadams", alpha=0.8), run_of())
    live, parts, late = LiveMcAdams(system, KEY), [], 0
    for start in range(0, n, size):
        parts.append(live.push(wave[start : start + size]))
        late = max(late, min(start + size, n) - sum(map(len, parts)))
    parts.append(live.end())
    assert (np.concatenate(parts) == transform(wave, 0.8).samples).all()
    assert late <= size + 3 * HOP  # a hop is waited for, and two frames are made together


class Turned:
    """A system that hears nothing beyond a sample: windows then are equal to the whole."""

    level = "spk"
    is_random: bool | None = False
    output: OutputLevel | AsItIs = OutputLevel()

    def __init__(self) -> None:
        self.notes: list[str] = []

    def transform(
        self, wave: Float64, key: VoiceKey, source: SourceSpeaker
    ) -> tuple[Float64, dict[str, object]]:
        assert source.f0 is not None and key == KEY
        return -0.5 * wave, {}

    def settings(self) -> dict[str, object]:
        return {}


@pytest.mark.parametrize("size", [700, 3200, 10000])
def test_windows_are_put_together_without_seams(size):
    wave = voice(1.3, 120, 550)
    live = LiveWindows(Turned(), KEY, 0.2, 0.1, 0.5)
    parts = [live.push(wave[start : start + size]) for start in range(0, len(wave), size)]
    assert len(wave) - sum(map(len, parts)) <= live.delay
    made = np.concatenate([*parts, live.end()])
    assert made == pytest.approx(-0.5 * wave)
    assert not len(LiveWindows(Turned(), KEY, 0.2, 0.1, 0.5).end())


def refuses_live(message: str, **asked: float) -> None:
    usual = {"block": 0.2, "look_ahead": 0.1, "context": 1.0}
    refuses(message, make_live, Turned(), KEY, **usual | asked)


def test_bad_sizes_are_refused():
    refuses_live("block: 0.5", block=0.5)
    refuses_live("look-ahead: 0 s", look_ahead=0.0)


@pytest.mark.parametrize("seconds", [np.inf, np.nan, -1.0])
@pytest.mark.parametrize("name", ["look-ahead", "context"])
def test_endless_context_ended_with_a_traceback(name, seconds):
    refuses_live(f"{name}: .* s; a number from 0 on", **{name.replace("-", "_"): seconds})


@pytest.mark.parametrize("name", ["timing", "rate", "pauses", "reads"])
def test_timing_is_refused_where_speech_arrives_block_by_block(monkeypatch, name):
    monkeypatch.setattr(Turned, "settings", lambda _: {name: 0.4})
    refuses_live(f"{name}: speech that arrives block by block")


def test_what_needs_whole_recordings_is_refused_and_is_no_default_of_a_stream(monkeypatch):
    monkeypatch.setattr(Turned, "settings", lambda _: {"content": {"centred": 0.5}})
    refuses_live("content.centred: it needs whole recordings; take models/bn")
    assert inspect.signature(main.functions[0]).parameters["system"].default.name == "bn"


def wav(samples: np.ndarray, rate: int = 16000) -> bytes:
    body = samples.astype("<i2").tobytes()
    shape = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    extra = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    chunks = b"WAVEfmt " + struct.pack("<I", 16) + shape + extra
    chunks += b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def test_pipes():
    samples = np.arange(-500, 501)
    for whole in (samples.astype("<i2").tobytes(), wav(samples)):
        head, blocks = open_pipe(io.BytesIO(whole), 300)
        found = list(blocks)
        assert [len(block) for block in found] == [300, 300, 300, 101]
        assert (np.concatenate(found) * 32768 == samples).all()
        assert bool(head) == (whole[:4] == b"RIFF") and len(head) in (0, 44)
    assert to_bytes(np.array([0.5, 1.5, -1.0]))[1] == 1

    def read(data: bytes) -> None:
        list(open_pipe(io.BytesIO(data), 10)[1])

    for bad, message in (
        (wav(samples, 8000), "8000 Hz, 1 channels, 16 bit"), (b"abc", "ends within a sample"),
        (2 * wav(samples), "another WAV file follows"),  # which was dropped in silence
        (b"RIFF1234WAVE", "without samples"), (b"RIFF1234AVI ", "not a WAV file"),
    ):  # fmt: skip
        refuses(message, read, bad)


@pytest.mark.parametrize(
    ("n", "told"), [(1600, "3.000 s a block of 0.2 s; real-time factor 30.000"),
                    (8000, "0.250 s a block of 0.2 s; real-time factor 7.000"), (0, "factor 0.000")]
)  # fmt: skip
def test_the_last_blocks_of_a_stream_took_no_time(monkeypatch, capsys, n, told):
    """What is shorter than a block is spoken at the end alone, and had a real-time factor of 0."""
    clock = [0.0]

    class Slow(LiveWindows):
        def push(self, samples: Float64) -> Float64:
            made = super().push(samples)
            clock[0] += 0.25 * (len(made) > 0)
            return made

        def end(self) -> Float64:
            clock[0] += 3.0 * (len(self._waiting) > 0)
            return super().end()

    made = Slow(Turned(), KEY, 0.2, 0.1, 0.5)
    monkeypatch.setattr("steps.standalone.stream.make_live", lambda *_, **__: made)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    speech = np.rint(32768 * voice(1.3, 120, 550)[:n]).astype("<i2").tobytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(speech)))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO()))
    main(["--system", str(ROOT / "egs/TEMPLATE/conf/systems/mcadams.yaml")])
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_the_program_on_a_pipe(tmp_path):
    conf = tmp_path / "conf.yaml"
    conf.write_text("anonymiser: mcadams\nalpha_range: [0.7, 0.9]\n")
    samples = np.rint(32768 * voice(1.0, 120, 550)).astype("<i2")

    def run(*words: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(ROOT / "steps/protect_stream.py"), *words]
        return subprocess.run(command, input=given, capture_output=True, check=False)

    asked = ("--system", str(conf), "--key", "a key of sixteen", "--block", "0.1")
    done = run(*asked, given=samples.tobytes())
    assert done.returncode == 0
    assert b"1.0 s of speech; 0.110 s behind it by design" in done.stderr
    whole = run(*asked[:4], given=wav(samples)).stdout
    assert whole[44:] == done.stdout and len(done.stdout) == 2 * len(samples)
    assert done.stdout != samples.tobytes()
    refused = run(*asked, given=wav(samples, 8000))
    assert refused.returncode == 2 and refused.stderr.count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("heard", [0, 16001])
def test_ctrl_c_lost_what_was_heard_and_the_closing_line(how, heard):
    """It ended with `interrupted`, within a block."""
    words = ["--system", str(ROOT / "egs/TEMPLATE/conf/systems/mcadams.yaml")]
    program = [sys.executable, str(ROOT / "steps/protect_stream.py"), *words]
    pipe = subprocess.PIPE
    given = np.rint(32768 * voice(1.3, 120, 550)).astype("<i2").tobytes()[: 2 * heard]
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe) as run:
        assert run.stdin and run.stdout and run.stderr
        run.stdin.write(given)
        run.stdin.flush()
        made = run.stdout.read(2 * 12000) if heard else b""  # the rest waits for more
        status = Path(f"/proc/{run.pid}/status")
        wait_for(lambda: catches(status.read_text(), signal.SIGTERM))  # Python itself does not
        run.send_signal(how)
        made += run.stdout.read()
        said = run.stderr.read().decode()
    assert run.returncode == 128 + how
    assert len(made) // 2 in range(heard - 2 * 3200, heard + 1)  # what was not read is not heard
    assert re.search(r"\d s of speech; .* samples cut at full scale", said)
    assert "Traceback" not in said


def catches(status: str, number: int) -> bool:
    """Whether a process handles a signal, by its /proc/<pid>/status."""
    (mask,) = re.findall(r"SigCgt:\s*(\w+)", status)
    return bool(int(mask, 16) >> number - 1 & 1)
