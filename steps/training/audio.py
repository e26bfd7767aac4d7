"""Training audio: held in memory as 16-bit samples if it fits, else read on demand."""

import dataclasses
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile

from steps.audio import SAMPLE_RATE, keep_speech, read_audio
from utils.arrays import Float32, Int16
from utils.cli import UserError
from utils.datachecks import probe_audio
from utils.seeds import make_rng
from utils.tables import invert, sort_ids

_FULL_SCALE = 32768.0


@dataclass
class TrainingAudio:
    """Utterances of several speakers. `lengths`: samples at 16 kHz; `cache`: those in memory.
    `content`: digest of what was read, by which checkpoints know their speech again."""

    wav: Mapping[str, str]
    spk2utt: dict[str, list[str]]
    lengths: dict[str, int]
    cache: dict[str, Int16] = field(default_factory=dict)
    speech_only: bool = False
    content: bytes = b""

    @property
    def speakers(self) -> list[str]:
        """Speaker ids in C order; the position is the class."""
        return list(self.spk2utt)

    @property
    def seconds(self) -> float:
        """Duration of all utterances."""
        utts = (utt for utts in self.spk2utt.values() for utt in utts)
        return sum(self.lengths[utt] for utt in utts) / SAMPLE_RATE

    def subset(self, speakers: Sequence[str]) -> "TrainingAudio":
        """Restrict the audio to some speakers."""
        spk2utt = {spk: self.spk2utt[spk] for spk in sort_ids(speakers)}
        return dataclasses.replace(self, spk2utt=spk2utt)

    def read(self, utt: str, start: int, n_samples: int) -> Float32:
        """Read `n_samples` of an utterance from `start` on; it begins again after its end."""
        stop = start + n_samples
        samples = self.cache.get(utt)
        if samples is None and stop <= self.lengths[utt] and not self.speech_only:
            part = _read_part(self.wav[utt], start, n_samples)
            if part is not None:
                return part.astype(np.float32) / _FULL_SCALE
        if samples is None:
            samples = _decode(utt, self.wav[utt], self.speech_only)
        if stop > len(samples):
            samples, start = samples[np.arange(start, stop) % len(samples)], 0
        return samples[start : start + n_samples].astype(np.float32) / _FULL_SCALE


def _read_part(path: str, start: int, n_samples: int) -> Int16 | None:
    """Read a stretch of a 16-bit file at 16 kHz; None where the whole must be read for it."""
    try:
        stream = soundfile.SoundFile(path)
    except soundfile.LibsndfileError:  # such as of what PyAV reads
        return None
    with stream:
        whole = start + n_samples <= stream.frames  # as far as its header tells
        if stream.samplerate != SAMPLE_RATE or stream.subtype != "PCM_16" or not whole:
            return None
        stream.seek(start)
        return stream.read(n_samples, dtype="int16")


def _decode(utt: str, path: str, speech_only: bool) -> Int16:
    samples = read_audio(utt, path).samples
    kept = keep_speech(samples) if speech_only else samples
    return np.clip(np.rint(kept * _FULL_SCALE), -32768, 32767).astype(np.int16)


def load_training_audio(
    wav: Mapping[str, str],
    utt2spk: Mapping[str, str],
    *,
    cache_gb: float,
    minimum_seconds: float,
    speech_only: bool = False,
) -> TrainingAudio:
    """Open every utterance; leave out, counted and named, those that are too short.

    Raises UserError for audio that cannot be read and when fewer than two speakers remain.
    """
    lengths: dict[str, int] = {}
    cache: dict[str, Int16] = {}
    room = cache_gb * 1e9
    short, content = [], hashlib.sha256()
    for utt in utt2spk:
        if room > 0 or speech_only:
            samples = _decode(utt, wav[utt], speech_only)
            n_samples = len(samples)
            content.update(samples.tobytes())
            room -= samples.nbytes
            if room > 0:
                cache[utt] = samples
        else:
            info = probe_audio(wav[utt])
            if info.problem:
                raise UserError(f"{utt}: {wav[utt]}: {info.problem}")
            n_samples, file = int(info.seconds * SAMPLE_RATE), Path(wav[utt]).stat()
            content.update(f"{file.st_size} {file.st_mtime_ns} ".encode())
        if n_samples < minimum_seconds * SAMPLE_RATE:
            short.append(utt)
            cache.pop(utt, None)
        else:
            lengths[utt] = n_samples
    hours = sum(lengths.values()) / SAMPLE_RATE / 3600
    logging.info(
        f"audio: {len(utt2spk)} read / {len(lengths)} used ({hours:.2f} h, {len(cache)} of them in "
        f"memory) / {len(short)} skipped (under {minimum_seconds:g} s)"
        + (f": {' '.join(short[:10])}" if short else "")
    )
    spk2utt = invert({utt: spk for utt, spk in utt2spk.items() if utt in lengths})
    if len(spk2utt) < 2:
        raise UserError(
            f"{len(spk2utt)} training speaker(s) with usable audio; at least 2 are needed"
        )
    return TrainingAudio(wav, spk2utt, lengths, cache, speech_only, content.digest())


def hold_out(
    audio: TrainingAudio, n_speakers: int, seed: int, *, share: float = 0.1
) -> tuple[TrainingAudio, list[str]]:
    """Split `n_speakers` speakers drawn from `seed` off the audio; returns it, and these speakers.

    At most that share of the speakers is held out, and two at least or none: a tenth of fewer than
    20 speakers is none. The log reports it.
    """
    order = make_rng(seed, "encoder-held-out").permutation(len(audio.speakers))
    n_held = min(n_speakers, int(share * len(audio.speakers) + 1e-9))
    n_held = n_held if n_held >= 2 else 0
    held = sort_ids(audio.speakers[i] for i in order[:n_held])
    training = audio.subset([spk for spk in audio.speakers if spk not in set(held)])
    others = " ".join(held) or "none, there are too few speakers to hold any out"
    logging.info(
        f"training on {len(training.speakers)} speakers, {training.seconds / 3600:.2f} h; "
        f"validation on {len(held)} others: {others}"
    )
    return training, held
