"""Files and jobs: Kaldi tables, data directories, options, launchers, stamps. No speech."""

import os
import sys
from pathlib import Path
from types import TracebackType

# One thread a process, before NumPy or PyTorch start their pools: two threads were 20 to 200 times
# slower on small shared machines. Parallelism is by processes (`--nj`).
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

_ROOT = Path(__file__).resolve().parents[1]
_LISTENS = "ORT_DISABLE_TELEMETRY"

if "onnxruntime" in sys.modules and os.environ.get(_LISTENS) != "1":
    raise ImportError(
        "onnxruntime was loaded before pseudovox, and reports to its maker what you run: set "
        f"{_LISTENS}=1 before you start Python, or import pseudovox first"
    )
# As path.sh does, for whoever did not pass it: before any library is loaded that reads these.
for _line in Path(__file__).with_name("environment.sh").read_text("utf-8").splitlines():
    if not _line.startswith("#"):
        _variable, _, os.environ[_variable] = _line.partition("=")


def _keep_caches_here() -> None:
    """Give libraries that cache in the user's home a place in .venv, or one that goes at the end,
    where that cannot be written."""
    own = {"MPLCONFIGDIR", "NUMBA_CACHE_DIR"} - os.environ.keys()
    caches = _ROOT / ".venv" / "cache"
    if own and not os.access(_ROOT / ".venv", os.W_OK):
        import atexit  # most starts are quicker without
        import shutil
        import tempfile

        caches, pid = Path(tempfile.mkdtemp(prefix="pseudovox-")), os.getpid()

        @atexit.register
        def _remove() -> None:
            if os.getpid() == pid:  # and not that of a fork
                shutil.rmtree(caches, ignore_errors=True)

    os.environ.update({name: str(caches / name.lower()) for name in own})


_keep_caches_here()


def _name_what_is_missing(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if not isinstance(error, ModuleNotFoundError):
        sys.__excepthook__(kind, error, trace)
        return
    name = Path(sys.argv[0]).name
    print(
        f"{name}: the Python package {error.name} is not installed; run `make setup` in {_ROOT}, "
        "or activate an environment that has it",
        file=sys.stderr,
    )


# Of a program of this project, for which path.sh found no .venv, or one with a Python that may not
# be run, and took the system's.
_usable = os.access(_ROOT / ".venv/bin/python3", os.X_OK)
if not _usable and _ROOT in Path(sys.argv[0]).resolve().parents:
    sys.excepthook = _name_what_is_missing
