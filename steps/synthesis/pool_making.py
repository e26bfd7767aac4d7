# SPDX-License-Identifier: Apache-2.0
"""Making the folder that `voice_pool.VoicePool` opens; one utterance in memory at a time."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steps.learning.audio import load_training_audio
from steps.speaker.averaging import read_xvectors
from steps.synthesis.bn_content import Finder, PlainContent, write_contents
from steps.synthesis.f0 import speaker_f0_stats, write_f0_stats
from steps.synthesis.voice_pool import loud_frames
from steps.synthesis.world import unpack
from utils.archives import ArchiveWriter, ObjectReader
from utils.cli import LossError, UserError
from utils.datadir import DataDir
from utils.progress import progress
from utils.tables import read_map, write_id_lists, write_map


@dataclass
class _Frames:
    """Reader of F0 contours of WORLD frames that counts the usable target frames by utterance."""

    world: ObjectReader
    n_loud: dict[str, int]

    def contour(self, utt: str) -> npt.NDArray[np.float64]:
        try:
            frames = unpack(self.world.matrix(utt))
        except UserError as error:
            where = f"{self.world.path}: {utt}"
            raise UserError(str(error) if where in str(error) else f"{where}: {error}") from error
        self.n_loud[utt] = len(loud_frames(frames.envelope))
        return frames.f0


@dataclass(frozen=True)
class PoolCounts:
    """Contents of a pool; lost: utterances without frames, and speakers who have no others."""

    n_utterances: int
    n_speakers: int
    n_frames: int
    n_lost: int
    n_lost_speakers: int

    def summary(self) -> str:
        """Counts in one line."""
        return (
            f"read {self.n_utterances} utterances / written {self.n_speakers} voices, "
            f"{self.n_frames} frames that are not quiet / skipped {self.n_lost} utterances, "
            f"{self.n_lost_speakers} voices"
        )


def make_voice_pool(
    world: Path, data: DataDir, xvectors: Path, out: Path, allow_loss: int
) -> PoolCounts:
    """Write the pool (steps/make_voice_pool.py says which files); spk2utt last.

    LossError for more than `allow_loss` utterances without frames; UserError for a speaker without
    an x-vector or with silent frames only, and where no speaker is left.
    """
    scp = world / "world.scp"
    if not scp.is_file():
        raise UserError(f"{scp}: is missing; make it with steps/extract_world.py")
    frames = _Frames(ObjectReader(scp), {})
    lost = [utt for utt in data.utt2spk if utt not in frames.world]
    if len(lost) > allow_loss or len(lost) == len(data.utt2spk):
        raise LossError(
            f"{scp}: {len(lost)} of {len(data.utt2spk)} utterances of {data.path} are not in it "
            f"(the first: {lost[0]}); --allow-loss is {allow_loss}"
        )
    present = {spk: [u for u in utts if u in frames.world] for spk, utts in data.spk2utt.items()}
    spk2utt = {spk: utts for spk, utts in present.items() if utts}
    vectors = read_xvectors(xvectors, "spk_xvector")
    if missing := [spk for spk in spk2utt if spk not in vectors]:
        raise UserError(f"{xvectors / 'spk_xvector.scp'}: speaker {missing[0]} is not in it")
    stats = speaker_f0_stats(spk2utt, frames.contour)
    for spk, utts in spk2utt.items():
        if not sum(frames.n_loud[utt] for utt in utts):
            raise UserError(f"{scp}: all frames of {spk} are silent; leave the speaker out")

    out.mkdir(parents=True, exist_ok=True)
    (out / "spk2utt").unlink(missing_ok=True)  # until the rest is whole again
    write_f0_stats(out, stats)
    with ArchiveWriter(out / "spk_xvector") as writer:
        for spk in spk2utt:
            writer.write(spk, vectors[spk])
    _write_tables(scp, data, spk2utt, out)
    n_frames = sum(frames.n_loud.values())
    return PoolCounts(
        len(frames.n_loud), len(spk2utt), n_frames, len(lost), len(present) - len(spk2utt)
    )


def add_content(data: DataDir, out: Path, name: str, device: str) -> None:
    """Add the content of all utterances to a pool, by an extractor's name."""
    utt2spk = read_map(out / "utt2spk")
    assert data.wav is not None
    audio = load_training_audio(data.wav, utt2spk, cache_gb=0.0, minimum_seconds=0.0)
    finder = Finder(audio, PlainContent(name), 0, device)
    write_contents(finder, audio.lengths, out, PlainContent(name), 0, progress("content"))


def _write_tables(scp: Path, data: DataDir, spk2utt: dict[str, list[str]], out: Path) -> None:
    if out.resolve() != scp.parent.resolve():
        entries = read_map(scp, rest_of_line=True)
        write_map(out / "world.scp", {u: entries[u] for utts in spk2utt.values() for u in utts})
    genders = data.spk2gender or {}
    (out / "spk2gender").unlink(missing_ok=True)
    if known := {spk: genders[spk] for spk in spk2utt if spk in genders}:
        write_map(out / "spk2gender", known)
    write_map(out / "utt2spk", {utt: spk for spk, utts in spk2utt.items() for utt in utts})
    write_id_lists(out / "spk2utt", spk2utt)
