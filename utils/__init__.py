"""Files and jobs: Kaldi tables, data directories, options, launchers, stamps. No speech."""

import os

# One thread a process, before NumPy or PyTorch start their pools: two threads were 20 to 200 times
# slower on small shared machines. Parallelism is by processes (`--nj`).
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
