"""The C library keeps freed memory."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAULTS = """
import resource, sys
import numpy as np
from utils.cli import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
for step in range(22):
    if step == 2:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**20, np.float32) for _ in range(8)]  # 4 MiB each
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_pages_are_not_mapped_anew_at_each_step():
    given_back, kept = (
        int(subprocess.check_output([sys.executable, "-c", FAULTS, how], cwd=ROOT))
        for how in ("given back", "kept")
    )
    assert kept < given_back / 10
