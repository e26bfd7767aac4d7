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
_ENTERED = "_PSEUDOVOX_ENTERED"  # set once for the process that follows, never for its children


def _enter_environment() -> None:
    """Start a program of this project again in its environment, which path.sh describes, when it
    was started in another: in a fresh shell the system's Python lacks its packages."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    entered, venv = os.environ.pop(_ENTERED, ""), _ROOT / ".venv"
    if program is None or _ROOT not in Path(program).resolve().parents:
        return  # a notebook, a test
    if not (venv / "bin/python3").exists():
        sys.excepthook = _name_what_is_missing
    elif not entered and not venv.samefile(sys.prefix):
        os.environ[_ENTERED] = "yes"
        enter = '. "$0" && exec python3 "$@"'
        os.execvp("bash", ["bash", "-c", enter, str(_ROOT / "path.sh"), *sys.orig_argv[1:]])


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


_enter_environment()
