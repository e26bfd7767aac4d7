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
