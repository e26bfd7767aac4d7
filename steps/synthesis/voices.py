"""Target voices: the pool that they are read from, and how it is made."""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from steps.content.extractors import at_frames
from steps.speaker.vectors import read_xvectors
from steps.synthesis.content import Finder, Stored, write_contents
from steps.synthesis.f0 import (
    F0Stats,
    open_utterances,
    read_f0_stats,
    speaker_f0_stats,
    write_f0_stats,
)
from steps.synthesis.world import HOP, frames_of, silent_frames
from steps.training.audio import load_training_audio
from utils import tables
from utils.archives import ObjectReader, write_archive
from utils.arrays import Float64
from utils.cli import UserError, progress
from utils.datadir import DataDir
from utils.tables import StrPath

# ---- Target voices: speakers with their WORLD frames, x-vectors and F0 statistics, read when
# needed.
#
# A pool is a folder that steps/make_voice_pool.py made. Memory grows with the speech of one speaker
# (0.9 kB a frame, twice while it is read), not of the pool: the speakers used last are kept while
# their frames together are few.

PACKED = "voices.safetensors"  # of a pool to hand on: no frames
MATCH_COEFFICIENTS = slice(1, 25)  # of the envelope code
MATCH_OFFSETS = (-3, 0, 3)  # frames
QUIET_SHARE = 0.15  # of each utterance's frames
_CACHED_FRAMES = 50_000  # of all speakers that are kept, except the last
_SMALLEST_SD = 1e-6
MADE_BY = "make it with steps/make_voice_pool.py"
_CONTENT_BY = f"{MADE_BY} --add-content"


class PoolFrames(NamedTuple):
    """Frames of a voice: envelope (M, 40) raw codes, match (M, d) vectors to find them by."""

    envelope: npt.NDArray[Any]
    match: npt.NDArray[Any]


class VoicePool:
    """Pool of voices with x-vectors and F0 statistics. Open it with `VoicePool.load`."""

    def __init__(
        self,
        folder: Path,
        spk2utt: dict[str, list[str]],
        xvectors: Float64,
        f0: dict[str, F0Stats],
        genders: dict[str, str],
        content: Stored | None = None,
    ) -> None:
        """Tables of a pool, already read; xvectors (S, d) in C order of the speakers, neither
        centred nor scaled. content: matches frames in place of their envelopes."""
        self.folder, self._spk2utt, self._genders = folder, spk2utt, genders
        self.speakers = tuple(tables.sort_ids(spk2utt))
        self.genders = tuple(genders.get(speaker) for speaker in self.speakers)
        self.xvectors, self._f0, self._content = xvectors, f0, content
        self._cache: OrderedDict[str, PoolFrames] = OrderedDict()

    @classmethod
    def load(cls, folder: StrPath, content: str = "") -> "VoicePool":
        """Open the pool in a folder; UserError for a missing file, and for speakers that one file
        lacks. content: of extractors.EXTRACTORS, to match frames by it."""
        path = Path(folder)
        if tables.is_there(path / PACKED):
            return cls(path, *_unpack(path / PACKED))
        tables.need_files((path / "spk2utt", path / "world.scp"), MADE_BY)
        spk2utt = tables.read_id_lists(path / "spk2utt")
        xvectors = read_xvectors(path, "spk_xvector")
        f0 = read_f0_stats(path)
        for name, table in (("spk_xvector.scp", xvectors), ("spk_f0.scp", f0)):
            tables.need_ids(spk2utt, table, path / name, "make the pool again")
        stack = np.stack([xvectors[spk] for spk in tables.sort_ids(spk2utt)]).astype(np.float64)
        genders = path / "spk2gender"
        known = tables.read_map(genders) if tables.is_there(genders) else {}
        stored = None
        if content:
            utts = (utt for utts in spk2utt.values() for utt in utts)
            stored = Stored(path, {"content": content}, utts, _CONTENT_BY)
        return cls(path, spk2utt, stack, f0, known, stored)

    @cached_property
    def _world(self) -> ObjectReader:
        return ObjectReader(self.folder / "world.scp")

    def gender(self, speaker: str) -> str:
        """Gender F or m, in lower case; UserError where the pool does not know it."""
        if speaker not in self._genders:
            raise UserError(
                f"{self.folder / 'spk2gender'}: the gender of {speaker} is not there; add it, or "
                "choose voices without regard to gender"
            )
        return self._genders[speaker]

    def f0(self, speaker: str) -> F0Stats:
        """Log-F0 statistics over all utterances of the speaker."""
        return self._f0[speaker]

    def frames(self, speaker: str) -> PoolFrames:
        """All frames of a speaker except the quiet ones (`loud_frames`), utterances in C order.

        UserError for an utterance without frames.
        """
        if speaker in self._cache:
            self._cache.move_to_end(speaker)
            return self._cache[speaker]
        if not (utts := tables.sort_ids(self._spk2utt[speaker])):
            raise UserError(
                f"{self.folder}: its voices are x-vectors only; frames of a voice need a pool of "
                "steps/make_voice_pool.py"
            )
        frames = PoolFrames(*map(np.concatenate, zip(*map(self._read, utts), strict=True)))
        self._cache[speaker] = frames
        n_cached = sum(len(kept.envelope) for kept in self._cache.values())
        while len(self._cache) > 1 and n_cached > _CACHED_FRAMES:
            n_cached -= len(self._cache.popitem(last=False)[1].envelope)
        return frames

    def check_content(self, digest: str) -> None:
        """Check that the pool's content is from weights of this digest; UserError otherwise."""
        found = self._content.of.digest if self._content is not None else "none"
        if found != digest:
            raise UserError(
                f"{self.folder}: its content is of other weights ({found}) than are here "
                f"({digest}); make the pool again"
            )

    def _read(self, utt: str) -> PoolFrames:
        envelope = frames_of(self._world, utt).envelope
        loud = loud_frames(envelope)
        if self._content is None:
            return PoolFrames(envelope[loud], match_vectors(envelope)[loud])
        match = at_frames(self._content(utt, warped=False), self._content.of, len(envelope), HOP)
        return PoolFrames(envelope[loud], match[loud])


def write_packed(
    path: Path,
    xvectors: Mapping[str, Float64],
    f0: Mapping[str, F0Stats],
    genders: Mapping[str, str],
) -> None:
    """Write x-vectors, F0 statistics and genders of voices to one file, in half precision."""
    names = tables.sort_ids(xvectors)
    told = {"names": "\n".join(names), "genders": "\n".join(genders.get(n, "") for n in names)}
    arrays: dict[str, npt.NDArray[Any]] = {
        "xvectors": np.stack([xvectors[name] for name in names]).astype(np.float16),
        "f0": np.stack([f0[name].vector for name in names]).astype(np.float32),
    }
    with tables.replacing(path) as beside:
        save_file(arrays, beside, told)
        beside.chmod(0o644)  # such files are readable for their owner alone


def _unpack(path: Path) -> tuple[dict[str, list[str]], Float64, dict[str, F0Stats], dict[str, str]]:
    """Tables of VoicePool from a file of `write_packed`; UserError for another file."""
    try:
        with safe_open(path, "numpy") as stream:
            told = stream.metadata()
            xvectors = stream.get_tensor("xvectors").astype(np.float64)
            rows = stream.get_tensor("f0")
        names, genders = told["names"].split("\n"), told["genders"].split("\n")
        f0 = {name: F0Stats.of(row) for name, row, _ in zip(names, rows, xvectors, strict=True)}
        known = {name: gender for name, gender in zip(names, genders, strict=True) if gender}
        order = [names.index(name) for name in tables.sort_ids(names)]
        return {name: [] for name in names}, xvectors[order], f0, known
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: holds no voices ({error}); make it again") from error


def match_vectors(envelope: Float64) -> Float64:
    """Vectors (T, 72) to compare frames by, from the codes (T, 40) of one utterance.

    Coefficients 1-24, each with mean 0 and variance 1 within the utterance, of frames t-3, t and
    t+3 (beyond the ends: the first and the last). Sources and pool are treated alike, each by
    utterance. Digital silence does not count in mean and variance, for its codes are far from all
    others. A coefficient that does not vary becomes 0.
    """
    part = envelope[:, MATCH_COEFFICIENTS].astype(np.float64)
    sound = part[~silent_frames(envelope)]
    sound = sound if len(sound) else part
    normal = (part - sound.mean(axis=0)) / np.maximum(sound.std(axis=0), _SMALLEST_SD)
    places = np.arange(len(normal))
    return np.hstack([normal[np.clip(places + o, 0, len(normal) - 1)] for o in MATCH_OFFSETS])


def loud_frames(envelope: Float64) -> npt.NDArray[np.intp]:
    """Indices, ascending, of an utterance's frames that may serve as targets.

    Excluded are the 15 % of lowest energy (coefficient 0; the number rounded down, earlier frames
    first among equals), and digital silence.
    """
    order = np.argsort(envelope[:, 0], kind="stable")
    kept = np.sort(order[int(QUIET_SHARE * len(order)) :])
    return kept[~silent_frames(envelope)[kept]]


# ---- Making the folder that `VoicePool` opens; one utterance in memory at a time.


def make_voice_pool(world: Path, data: DataDir, xvectors: Path, out: Path, allow_loss: int) -> str:
    """Write the pool (steps/make_voice_pool.py says which files), spk2utt last; returns counts.

    LossError for more than `allow_loss` utterances without frames; UserError for a speaker without
    an x-vector or with silent frames only, and where no speaker is left.
    """
    scp = world / "world.scp"
    frames, present, n_lost = open_utterances(scp, "extract_world.py", data, allow_loss)
    n_loud = Counter[str]()
    spk2utt = {spk: utts for spk, utts in present.items() if utts}
    vectors = read_xvectors(xvectors, "spk_xvector")
    mend = "average the x-vectors of this data"
    tables.need_ids(spk2utt, vectors, xvectors / "spk_xvector.scp", mend)

    def contour(utt: str) -> Float64:
        found = frames_of(frames, utt)
        n_loud[data.utt2spk[utt]] += len(loud_frames(found.envelope))
        return found.f0

    stats = speaker_f0_stats(spk2utt, contour)
    if silent := [spk for spk in spk2utt if not n_loud[spk]]:
        raise UserError(f"{scp}: all frames of {silent[0]} are silent; leave the speaker out")

    out.mkdir(parents=True, exist_ok=True)
    for name in ("spk2utt", "content.json"):  # until the rest is whole again
        (out / name).unlink(missing_ok=True)
    write_f0_stats(out, stats)
    write_archive(out / "spk_xvector", {spk: vectors[spk] for spk in spk2utt})
    if out.resolve() != world.resolve():
        entries, kept = tables.read_map(scp, rest_of_line=True), chain(*spk2utt.values())
        tables.write_map(out / "world.scp", {utt: entries[utt] for utt in kept})
    (out / "spk2gender").unlink(missing_ok=True)
    if known := {spk: sex for spk, sex in (data.spk2gender or {}).items() if spk in spk2utt}:
        tables.write_map(out / "spk2gender", known)
    tables.write_map(out / "utt2spk", {u: spk for spk, utts in spk2utt.items() for u in utts})
    tables.write_id_lists(out / "spk2utt", spk2utt)
    return (
        f"read {len(data.utt2spk) - n_lost} utterances / written {len(spk2utt)} voices, "
        f"{n_loud.total()} frames that are not quiet / skipped {n_lost} utterances, "
        f"{len(present) - len(spk2utt)} voices"
    )


def add_content(data: DataDir, out: Path, name: str, device: str) -> None:
    """Add the content of all utterances to a pool, by an extractor's name."""
    utt2spk = tables.read_map(out / "utt2spk")
    assert data.wav is not None
    audio = load_training_audio(data.wav, utt2spk, cache_gb=0.0, minimum_seconds=0.0)
    finder = Finder(audio, {"content": name}, device)
    write_contents(finder, out, progress("content")(audio.lengths))
