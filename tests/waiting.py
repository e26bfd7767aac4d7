"""Waiting for what other processes do, however busy the machine is."""

import time
from collections.abc import Callable
from pathlib import Path

# Seconds after which a test fails that would hang for ever; no machine is that slow.
LIMIT = 600


def wait_for(condition: Callable[[], object], shown: Callable[[], object] = str) -> None:
    """Return as soon as the condition holds; shown: what a failure is told with."""
    limit = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < limit, f"waited in vain: {shown()}"
        time.sleep(0.02)


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody has reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
