"""Fixtures that tests share: real corpora where they are, small data directories, programs."""

import ast
import contextlib
import gc
import importlib
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import hypothesis
import numpy as np
import pytest
import soundfile
from xdist.scheduler import LoadFileScheduling

from tests.browser import chromium
from tests.recipes import make_world, run_words, shared_folder
from tests.slurm_cluster import local_slurm
from tests.waiting import LIMIT
from utils import cli
from utils.datadir import write_data_dir

ROOT = Path(__file__).resolve().parents[1]

# No test may depend on time or chance: the first example may import something slow, on a busy
# machine.
hypothesis.settings.register_profile(
    "pseudovox",
    deadline=None,
    derandomize=True,
    max_examples=100 if os.environ.get("CI") else 25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("pseudovox")

# Files with tests that take a minute or more, the longest first.
LONGEST = (
    "test_recipe.py", "test_golden.py", "test_channels.py", "test_generators_recipe.py",
    "test_studies.py", "fuzz/test_kills.py", "test_prepare.py",
)  # fmt: skip

MakeDataDir = Callable[..., Path]
RunProgram = Callable[..., subprocess.CompletedProcess[str]]


def _drop_lazy_modules() -> None:
    """Hypothesis looks at every loaded module, and SpeechBrain's lazy ones fail at a look."""
    if "speechbrain" not in sys.modules:
        return
    for name, module in list(sys.modules.items()):
        if type(module).__name__ in ("LazyModule", "DeprecatedModuleRedirect"):
            del sys.modules[name]


@cache
def _alone(name: str) -> frozenset[str]:
    """Slow tests of a file that share no fixture with another one of it."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if 'scope="module"' in text or "from test_" in text:
        return frozenset()
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    slow = "pytest.mark.slow"
    return frozenset(f.name for f in found if slow in map(ast.unparse, f.decorator_list))


class FilesOrTests(LoadFileScheduling):
    """A worker takes a file as a whole, but for slow tests that stand alone: each by itself.

    `--dist loadgroup` has no effect here: pytest 9.2 does not read the names that pytest-xdist 3.8
    gives the tests of a group.
    """

    def _split_scope(self, nodeid: str) -> str:
        name, _, test = nodeid.partition("::")
        return nodeid if test.partition("[")[0] in _alone(name) else name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesOrTests:
    return FilesOrTests(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before Hypothesis's own hook. Slow files first, lest one of two workers ends with them."""
    longest = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    _drop_lazy_modules()
    for item in items:
        for needed in {"browser", "slurm"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(needed)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, longest.get(item.path, len(longest))))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What tests import stays: Python need not look through all of it for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze(), gc.enable()


@pytest.fixture(autouse=True)
def whatever_ran_before(request: pytest.FixtureRequest) -> None:
    """Each test draws the same numbers; SpeechBrain, which another one loaded, fails no look."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
    if getattr(request.function, "is_hypothesis_test", False):
        _drop_lazy_modules()


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora: $PSEUDOVOX_CORPORA, or ../shared/corpora beside the project."""
    path = Path(os.environ.get("PSEUDOVOX_CORPORA", ROOT.parent / "shared" / "corpora"))
    if not path.is_dir():
        pytest.skip(f"no real corpora at {path} (set PSEUDOVOX_CORPORA)")
    return path


@pytest.fixture(scope="session")
def make_data_dir() -> MakeDataDir:
    """Makes a valid data directory with audio: `make_data_dir(path, {"s1": 2, "s2": 1})`.

    Speakers alternate between f and m; utterances are <speaker>-000 ...; every file has its own
    noise, of `seconds` seconds for each utterance and 0.01 s more from one to the next.
    """

    def make(
        path: Path,
        speakers: Mapping[str, int] = {"s1": 2, "s2": 3},
        *,
        rate: int = 16000,
        seconds: float = 0.1,
    ) -> Path:
        names = ("wav.scp", "utt2spk", "text", "utt2dur", "spk2gender")
        tables: dict[str, dict[str, str]] = {name: {} for name in names}
        rng = np.random.default_rng(0)
        (path / "wav").mkdir(parents=True)
        for index, (spk, n_utts) in enumerate(sorted(speakers.items())):
            tables["spk2gender"][spk] = "fm"[index % 2]
            for number in range(n_utts):
                utt, length = f"{spk}-{number:03d}", int((seconds + number / 100) * rate)
                wav = path / "wav" / f"{utt}.wav"
                soundfile.write(wav, 0.1 * rng.standard_normal(length), rate, subtype="PCM_16")
                row = (str(wav), spk, f"words of {utt}", f"{length / rate:.6f}")
                for name, value in zip(names, row, strict=False):
                    tables[name][utt] = value
        write_data_dir(path, tables)
        return path

    return make


@contextlib.contextmanager
def _as_a_program(words: Sequence[str], out: IO[str], err: IO[str]) -> Iterator[None]:
    """Command line, standard streams (also of children), log and warnings of a fresh process."""
    root, argv, streams = logging.getLogger(), sys.argv, (sys.stdout, sys.stderr)
    handlers, level, saved = root.handlers, root.level, (os.dup(1), os.dup(2))
    sys.stdout.flush(), sys.stderr.flush()
    try:
        os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
        sys.argv, sys.stdout, sys.stderr, root.handlers = list(words), out, err, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # such as of a fork beside threads
            warnings.showwarning = lambda *told: err.write(warnings.formatwarning(*told[:4]))
            yield
    finally:
        out.flush(), err.flush()
        sys.argv, (sys.stdout, sys.stderr), root.handlers = argv, streams, handlers
        root.setLevel(level)
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number), os.close(copy)


@pytest.fixture(scope="session")
def run_program() -> RunProgram:
    """Runs a program of the project: `run_program("utils/x.py", "--option", path, cwd=...)`.

    In this process, for a new one takes longer than most programs; see `run_process`. It must end
    with `status`, where this is given.
    """

    def run(
        program: str, *arguments: object, cwd: Path | None = None, status: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = [str(ROOT / program), *map(str, arguments)]
        main = importlib.import_module(program.removesuffix(".py").replace("/", ".")).main
        place = contextlib.chdir(cwd) if cwd else contextlib.nullcontext()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            with place, _as_a_program(words, out, err), pytest.raises(SystemExit) as ended:
                cli.run_program(main)
            out.seek(0), err.seek(0)
            told = out.read(), err.read()
        done = subprocess.CompletedProcess(words, int(ended.value.code or 0), *told)
        assert status in (None, done.returncode), done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def run_process() -> RunProgram:
    """As `run_program`, in a process of its own, whose environment can be added to."""

    def run(
        program: str,
        *arguments: object,
        cwd: Path | None = None,
        status: int | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, str(ROOT / program), *map(str, arguments)]
        return run_words(words, status, cwd=cwd, env={**os.environ, **environment}, timeout=LIMIT)

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made of the figures as ever, but not rendered, which is what takes long."""

    def savefig(canvas: object, stream: IO[Any], *, format: str, metadata: object) -> None:
        stream.write(b"%PDF" if format == "pdf" else "<svg></svg>")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", savefig)


@pytest.fixture
def few_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generators are calibrated by 200 voices instead of 4096, where none is judged."""
    training = importlib.import_module("steps.generators.training")
    monkeypatch.setattr(training, "INDICES", training.INDICES[-200:])


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus's folder with data, encoder, x-vectors and back end: `copy_world(world, folder)`."""
    return make_world(shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a real Slurm of one node, which ends with the session."""
    with local_slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running headless Chromium."""
    with chromium() as running:
        yield running
