"""Options that programs share; heavy imports stand in the functions, so that --help is quick."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from utils.cli import (
    COMMON,
    BadValue,
    keep_freed_memory,
    natural,
    positive,
    progress,
    user_path,
)
from utils.datadir import DataDir, load_data_dir
from utils.tables import to_number

T = TypeVar("T")


def above_zero(text: str) -> float:
    """Parse a number above 0."""
    if not (value := to_number(text)) > 0:
        raise BadValue(f"expected a number above 0, not {text!r}")
    return value


Settings = Annotated[Path, "The YAML file of settings", "CONF"]
Xvectors = Annotated[Path, "The folder of x-vectors", "XVECTORS"]
Encoder = Annotated[str, "The encoder (see above)", "ENCODER"]
Device = Annotated[Literal["cpu", "cuda"], "The device that computes what a GPU can", COMMON]
Steps = Annotated[
    int | None, "The number of training steps, instead of what CONF says", "N", positive
]
ScoringBackend = Annotated[
    str,
    "The back end that scores: cosine (centred), cosine_scaled, cosine_raw, distance, or a folder "
    "of train_backend.py",
    "cosine|cosine_scaled|cosine_raw|distance|DIR",
]
ChunkSeconds = Annotated[
    float | None, "The length of the pieces that utterances are cut into (see above), in seconds",
    "S", above_zero,
]  # fmt: skip
Asnorm = Annotated[
    int, "The number of nearest training speakers whose scores normalise a score; 0: none", "N"
]
LdaDim = Annotated[
    int, "The number of dimensions that LDA keeps; 0: neither LDA nor PLDA, the cohort alone", "D",
    natural,
]  # fmt: skip
PcaDim = Annotated[
    int, "The number of principal axes that are kept before LDA; 0: all", "D", natural
]  # fmt: skip
Dataset = Annotated[
    str | None,
    "The set's name in keys (left out: that of DATA, or of the set that it is a part of)", "NAME",
]  # fmt: skip
Draw = Annotated[int, "The number of the independent protected run, from 0", "N", natural]
SpeakerXvectors = Annotated[
    Sequence[Path],
    "A folder of the speakers' x-vectors (spk_xvector.scp); may be given again: the first that has "
    "a speaker counts", "DIR",
]  # fmt: skip
GeneratorBackend = Annotated[
    Path | None, "The folder of the generator's PLDA (train_backend.py)", "DIR"
]
Generator = Annotated[Path | None, "The folder of a trained generator (train_generator.py)", "DIR"]
Pool = Annotated[Path | None, "The folder of the pool's x-vectors (spk_xvector.scp)", "XVECTORS"]
PoolData = Annotated[Path | None, "The data directory of the pool's speakers (spk2gender)", "DATA"]


def find_system(text: str) -> Path:
    """Parse the path of a system: the user's, or else the project's, such as models/read."""
    path, ours = user_path(text), _ROOT / text
    return ours if ours.exists() and not path.exists() else path


_ROOT = Path(__file__).resolve().parents[1]
SafeSystem = Annotated[Path, "The system that protects speech", "SYSTEM", find_system]
SAFE_SYSTEM = _ROOT / "models/place"  # the default
LIVE_SYSTEM = SAFE_SYSTEM.with_name("bn")
Per = Annotated[
    Literal["file", "folder", "speaker"], "The unit of a person, who gets one pseudo-speaker: a "
    "file, the files of a sub-folder, or those whose names begin alike (<speaker>-<rest>)",
]  # fmt: skip
SpeakerTable = Annotated[
    Path | None, "The table of lines `<file> <speaker>`, instead of the names of files, for --per "
    "speaker; tabs part its columns where there are more, or names hold blanks, and a first line "
    "may name the columns `file` and `speaker`", "TABLE",
]  # fmt: skip
Cores = Annotated[
    int | None, "The number of processes at a time; left out: as many as there are cores. The "
    "result does not depend on it", "N", positive,
]  # fmt: skip
KeyText = Annotated[str | None, "The key; others may see it in a list of processes", "TEXT"]
KeyFile = Annotated[Path | None, "The file whose first line is the key", "FILE"]
Sources = Annotated[
    Sequence[tuple[Path, Path]],
    "A folder of the sources' x-vectors, and its data directory; may be given again",
    "XVECTORS DATA",
]


def begin_training(
    kind: type[T], conf: Path, steps: int | None, data_dir: Path, not_speakers_of: Sequence[Path],
    *, change: Callable[[T], T] = lambda config: config,
) -> tuple[T, DataDir]:  # fmt: skip
    """Settings of a training, with `change` and --steps applied, and its data. UserError if the
    data hold a tested speaker."""
    from steps.training.settings import read_config, with_steps

    keep_freed_memory()
    config = change(read_config(kind, conf))
    if steps is not None:
        config = with_steps(config, steps)
    need = ("wav.scp", "utt2spk")
    return config, load_data_dir(data_dir, need=need, not_speakers_of=not_speakers_of)


MEASURES = {  # archive -> what makes it of a wave, and the names of its parts in the counts
    "f0": ("steps.synthesis.world:extract_f0", "contours, {} frames"),
    "world": ("steps.synthesis.world:analyse_packed", "matrices, {} frames"),
    "functionals": ("steps.emotion.functionals:functionals", "vectors"),
}


def measure(name: str, data: Path, out: Path, allow_loss: int) -> None:
    """Write a measure of each wave of a set, float32, to <out>/<name>.{ark,scp}, one at a time.

    Utterances that cannot be read or measured go to skipped.txt beside it. LossError beyond
    `allow_loss`; then, as after every error, there is no archive.
    """
    from steps.audio import Losses, read_audio
    from utils.archives import ArchiveWriter
    from utils.registry import load

    target, things = MEASURES[name]
    wav, make = load_data_dir(data).wav, load(target)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.scp").unlink(missing_ok=True)

    def read(utt: str) -> tuple[bool, Any]:
        audio = read_audio(utt, wav[utt])
        return audio.rate != audio.file_rate, make(audio.samples)

    losses, n_frames, n_resampled = Losses(), 0, 0
    with ArchiveWriter(out / name) as writer:
        for utt, (resampled, measured) in losses.each(progress(f"extract_{name}")(wav), read):
            writer.write(utt, measured)
            n_frames += len(measured)
            n_resampled += resampled
        losses.finish(out, len(wav), allow_loss)
    how = f" ({n_resampled} resampled to 16 kHz)" if n_resampled else ""
    print(
        f"read {len(wav)} utterances{how} / written {len(wav) - len(losses.skipped)} "
        f"{things.format(n_frames)} / skipped {len(losses.skipped)}"
    )
