# SPDX-License-Identifier: Apache-2.0
"""Training batches, each a function of (seed, step) alone, made ahead by worker processes.

So a run that was stopped and resumed sees the same batches as one that was not, and their order
does not depend on the number of workers.
"""

import multiprocessing
import os
import queue
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import torch

_AHEAD = 4  # batches a worker makes ahead
_PATIENCE = 5.0  # seconds between checks whether the other process still lives


@dataclass(frozen=True)
class _Failure:
    """Message of a worker before it ends."""

    traceback: str


def _work(make: Callable[[int], Any], steps: range, outbox: Any, parent: int) -> None:
    torch.set_num_threads(1)
    try:
        for step in steps:
            _put(outbox, make(step), parent)
    except Exception:
        _put(outbox, _Failure(traceback.format_exc()), parent)
    while os.getppid() == parent:  # tensors are fetched from the process that made them
        time.sleep(_PATIENCE)


def _put(outbox: Any, item: object, parent: int) -> None:
    while os.getppid() == parent:
        try:
            outbox.put(item, timeout=_PATIENCE)
            return
        except queue.Full:
            continue
    os._exit(1)  # the training was killed; nobody will read


class Prefetcher:
    """Batches of some steps in order, made by `n_workers` processes (0: in this one)."""

    def __init__(self, make: Callable[[int], Any], steps: range, n_workers: int = 1) -> None:
        self._make = make
        self._steps = steps
        # fork: the workers share the decoded audio with this process instead of copying it
        context = multiprocessing.get_context("fork")
        self._boxes = [context.Queue(_AHEAD) for _ in range(n_workers)]
        self._workers = [
            context.Process(
                target=_work,
                args=(make, steps[i::n_workers], box, os.getpid()),
                daemon=True,
            )
            for i, box in enumerate(self._boxes)
        ]

    def __enter__(self) -> Self:
        for worker in self._workers:
            worker.start()
        return self

    def get(self, step: int) -> Any:
        """Batch of the next step; steps must be requested in order."""
        if not self._workers:
            return self._make(step)
        place = (step - self._steps.start) % len(self._workers)
        while True:
            try:
                item = self._boxes[place].get(timeout=_PATIENCE)
                break
            except queue.Empty:
                if not self._workers[place].is_alive():
                    raise RuntimeError("the process that makes batches died") from None
        if isinstance(item, _Failure):
            raise RuntimeError(f"the process that makes batches failed:\n{item.traceback}")
        return item

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.terminate()
            worker.join()
