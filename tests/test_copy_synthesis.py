"""Copy synthesis as a system: nothing but the vocoder, for all kinds of input and real speech."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from steps.anonymise import main
from steps.anonymisers.registry import describe_system, load_anonymiser
from steps.audio import read_audio
from steps.sources import SourceSpeaker, VoiceKey
from steps.synthesis.world import extract_f0
from tests.refusals import refuses
from utils.seeds import Draws

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "egs/TEMPLATE/conf/systems/copy.yaml"
RATE = 16000


def conf(folder: Path, text: str) -> Path:
    path = folder / "system.yaml"
    path.write_text(f"anonymiser: copy_synthesis\n{text}")
    return path


def signals() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    n = RATE // 5  # 0.2 s
    buzz = np.sign(np.sin(2 * np.pi * 140 * np.arange(n) / RATE))
    return {
        "s1-000": 0.1 * np.diff(rng.standard_normal(n + 1)),  # as of a fricative
        "s1-001": np.zeros(n),
        "s1-002": buzz,  # at full scale throughout
        "s1-003": np.concatenate((np.zeros(1601), 0.3 * buzz)),
        "s1-004": 0.2 * buzz[:1],
    }


def test_the_program_on_hard_input(make_data_dir, tmp_path: Path) -> None:
    data, out = make_data_dir(tmp_path / "set", {"s1": 5}), tmp_path / "out"
    for utt, wave in signals().items():
        soundfile.write(data / f"wav/{utt}.wav", wave, RATE, subtype="PCM_16")
    assert main([str(COPY), str(data), str(out), str(out / "wav")]) == 0
    rows = [line.split("\t") for line in (out / "pseudo.tsv").read_text().splitlines()]
    assert rows[0][:4] == ["#utt", "key", "frames", "voiced"]
    assert {row[1] for row in rows[1:]} == {"const"}
    voiced = {row[0]: int(row[3]) / int(row[2]) for row in rows[1:]}
    assert voiced["s1-000"] < 0.4
    assert voiced["s1-001"] == 0
    assert voiced["s1-002"] > 0.8
    for utt, wave in signals().items():
        samples = soundfile.read(out / f"wav/{utt}.wav", dtype="int16")[0]
        assert len(samples) == len(wave)
        peak = int(np.max(np.abs(samples.astype(int))))
        assert peak == (31130 if utt not in ("s1-001", "s1-004") else 0)  # 0.95 of full scale
    late = soundfile.read(out / "wav/s1-003.wav", dtype="int16")[0]
    assert not late[:1200].any()


def test_it_draws_nothing_and_needs_nothing(tmp_path: Path) -> None:
    assert describe_system(COPY).needs == ()
    system = load_anonymiser(COPY, Draws(5))
    assert system.is_random is False
    assert system.settings() == {
        "anonymiser": "copy_synthesis",
        "fine": False,
        "f0_range": (60.0, 400.0),
        "output": {"peak": 0.95, "full_scale": 32768, "truncate": False},
    }
    wave = signals()["s1-003"]
    first, _ = system.transform(wave, VoiceKey("const"), SourceSpeaker("a"))
    again, _ = load_anonymiser(COPY, Draws(6)).transform(
        wave, VoiceKey("utt", ("b",)), SourceSpeaker("b")
    )
    assert first.tobytes() == again.tobytes()
    refuses("draws nothing at random", load_anonymiser, COPY, Draws(0, 1))


def test_its_settings(tmp_path: Path) -> None:
    system = load_anonymiser(conf(tmp_path, "f0_range: [60, 600]\npeak: 0.5\n"))
    assert system.settings()["f0_range"] == (60.0, 600.0)
    assert system.output.peak == 0.5
    t = np.arange(8000) / RATE
    high = 0.1 * sum(np.sin(2 * np.pi * 480 * k * t) / k for k in range(1, 10))
    _, info = system.transform(high, VoiceKey("const"), SourceSpeaker("a"))
    assert info["voiced"] > 40
    _, info = load_anonymiser(conf(tmp_path, "fine: true\n")).transform(
        signals()["s1-003"], VoiceKey("const"), SourceSpeaker("a")
    )
    assert info == {"frames": 61, "voiced": 61}  # twice as many, a pitch in all


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f0_range: [30, 400]", r"system.yaml: f0_range: 30 to 400 Hz"),
        ("f0_range: [200, 300]", r"f0_range: 200 to 300 Hz"),
        ("peak: 1.5", r"system.yaml: peak: 1.5"),
        ("level: spk", r"system.yaml: level"),
    ],
)
def test_settings_that_cannot_be(text: str, message: str, tmp_path: Path) -> None:
    refuses(message, load_anonymiser, conf(tmp_path, f"{text}\n"))
    refuses(message, describe_system, conf(tmp_path, f"{text}\n"))


@pytest.mark.corpora
@pytest.mark.slow
def test_real_speech_keeps_its_length_and_its_pitch(corpora: Path) -> None:
    """A dozen speakers; pitch of the copy against pitch of the original, where both are voiced."""
    system = load_anonymiser(COPY)
    files = sorted((corpora / "librispeech/test-clean").rglob("*.flac"))[::9][:12]
    correlations, agree, n_frames = [], 0, 0
    for path in files:
        wave = read_audio(path.stem, str(path)).samples[: 5 * RATE]
        out, _ = system.transform(wave, VoiceKey("const"), SourceSpeaker("a"))
        assert len(out) == len(wave)
        pcm = system.output.to_pcm16(out) / 32768
        before, after = extract_f0(wave), extract_f0(pcm)
        both = (before > 0) & (after > 0)
        agree += int(np.sum((before > 0) == (after > 0)))
        n_frames += len(both)
        correlations.append(np.corrcoef(before[both], after[both])[0, 1])
    print(np.round(correlations, 3), agree / n_frames)
    assert len(files) == 12
    assert np.median(correlations) > 0.97
    assert min(correlations) > 0.9
    assert agree / n_frames > 0.9
