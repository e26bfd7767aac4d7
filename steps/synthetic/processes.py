# SPDX-License-Identifier: Apache-2.0
"""Run a function on every item, each item in a process of its own, several at a time."""

import multiprocessing
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import TypeVar

from utils.cli import UserError

Item = TypeVar("Item")


def _run(function: Callable[[Item], None], item: Item) -> None:
    """Run a child: the parent's usual treatment of errors, in the child."""
    try:
        function(item)
    except (UserError, OSError) as error:  # an OSError: disk full, not allowed
        sys.stderr.write(f"{error}\n")
        sys.exit(1)


def run_each_apart(
    function: Callable[[Item], None], items: Mapping[str, Item], processes: int
) -> None:
    """Call `function(item)` in a fresh process for each item, at most `processes` at a time.

    `items`: name (for messages) to item. Stops at the first that fails, or was killed, with a
    UserError that names it; the others are ended. A pool of workers would not do: it uses a process
    again, and waits for ever for one that was killed.
    """
    context = multiprocessing.get_context("fork")
    queue = iter(items.items())
    running: dict[str, ForkProcess] = {}
    try:
        while True:
            for name, item in islice(queue, processes - len(running)):
                running[name] = context.Process(target=_run, args=(function, item))
                running[name].start()
            if not running:
                return
            wait([child.sentinel for child in running.values()])
            for name in [name for name, child in running.items() if child.exitcode is not None]:
                if (status := running.pop(name).exitcode) != 0:
                    raise UserError(f"{name}: its process failed with status {status}")
    finally:
        for child in running.values():
            child.terminate()
            child.join()
