#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Time and memory of bn: protecting with models/bn, training bn_mini, on one core.

Goals: steps/protect_folder.py on one file of five minutes takes at most 0.1 CPU-seconds a second of
speech and 1 GB, all included; training on 52 minutes, the size of models/bn's excerpt, takes at
most 20 CPU-minutes. Training is extrapolated from 40 utterances and 40 steps, the last 20 of them
by ear: content and frames by the second of speech, steps by the step. Its voices are random
vectors, which changes nothing in the time. Speech: LibriSpeech dev-clean from $PSEUDOVOX_CORPORA or
../shared/corpora.

  benchmarks/bench_bn.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile
import yaml

from benchmarks.measuring import CORPORA, MOST, ROOT, cost_of, judge, skip
from steps.audio import SAMPLE_RATE, read_audio
from utils.archives import ArchiveWriter
from utils.datadir import write_data_dir

CONF = ROOT / "egs/TEMPLATE/conf/synthesisers"
FACTOR, GIGABYTES, MINUTES = 0.1, 1.0, 20.0
LONG, N_FILES, N_STEPS, EXCERPT, N_XVECTOR = 300.0, 40, 40, 52 * 60.0, 256


def run(program: str, *words: object) -> tuple[float, float]:
    """CPU seconds of a program of ours, and the most memory that it had, in GB (10^9 bytes)."""
    seconds, kilobytes = cost_of(ROOT / "steps" / program, *words)
    return seconds, kilobytes * 1024 / 1e9


def protect(files: list[Path], work: Path) -> tuple[float, float]:
    """CPU seconds a second of one long file, and memory in GB."""
    speech = np.concatenate([read_audio(path.stem, str(path)).samples for path in files])
    (work / "in").mkdir()
    soundfile.write(work / "in/long.wav", speech[: round(LONG * SAMPLE_RATE)], SAMPLE_RATE)
    seconds, memory = run(
        "protect_folder.py", "--key", "a key of sixteen", work / "in", work / "out"
    )
    return seconds / LONG, memory


def train(files: list[Path], work: Path) -> tuple[float, float, float, float]:
    """CPU seconds of content and frames by the second of speech, of a step, and of one by ear;
    memory in GB."""
    wav = {f"s{i:02d}-{path.stem}": str(path) for i, path in enumerate(files)}
    write_data_dir(work / "data", {"wav.scp": wav, "utt2spk": {utt: utt[:3] for utt in wav}})
    (work / "x").mkdir()
    rng = np.random.default_rng(0)
    with ArchiveWriter(work / "x/spk_xvector") as writer:
        for i in range(len(files)):
            writer.write(f"s{i:02d}", rng.standard_normal(N_XVECTOR).astype(np.float32))
    run("extract_world.py", work / "data", work / "world")
    run("make_voice_pool.py", work / "world", work / "data", work / "x", work / "pool")
    conf = yaml.safe_load((CONF / "bn_mini.yaml").read_text())
    conf["training"] |= {"steps": N_STEPS, "log_every": N_STEPS // 2, "valid_every": N_STEPS}
    conf["hearing"]["steps"] = N_STEPS // 2
    (work / "bn.yaml").write_text(yaml.safe_dump(conf))
    found, memory = run("extract_content.py", work / "bn.yaml", work / "data", work / "content")
    given = ("--content", work / "content", work / "bn.yaml", work / "data", work / "pool")
    _, more = run("train_synthesiser.py", *given, work / "bn")
    header, *rows = (work / "bn/training.tsv").read_text().splitlines()
    column = header.lstrip("#").split("\t").index("cpu_seconds")
    half, whole = (float(row.split("\t")[column]) for row in rows)
    seconds = sum(soundfile.info(path).duration for path in files)
    by_step = (part / (N_STEPS // 2) for part in (half, whole - half))
    return found / seconds, *by_step, max(memory, more)


def main() -> int:
    """Measure, print, and say by the exit status whether the goals were met."""
    files = sorted((CORPORA / "librispeech/dev-clean").rglob("*.flac"))
    if len(files) < N_FILES:
        skip(f"{CORPORA}/librispeech/dev-clean: needed; set PSEUDOVOX_CORPORA")
    with tempfile.TemporaryDirectory() as name:
        factor, memory = protect(files, Path(name))
        found, step, by_ear, more = train(files[:N_FILES], Path(name))
    print(
        f"training: content and frames {found:.4f} CPU-s a second, a step {step:.3f} and one by "
        f"ear {by_ear:.3f} CPU-s, {more:.2f} GB"
    )
    conf = yaml.safe_load((CONF / "bn_mini.yaml").read_text())
    steps, last = conf["training"]["steps"], conf["hearing"]["steps"]
    minutes = (EXCERPT * found + (steps - last) * step + last * by_ear) / 60
    return judge(
        ("CPU-s to protect a second", factor, MOST, FACTOR),
        ("GB to protect", memory, MOST, GIGABYTES),
        (f"CPU-minutes of {steps} steps, {last} by ear, of 52 minutes", minutes, MOST, MINUTES),
    )


if __name__ == "__main__":
    sys.exit(main())
