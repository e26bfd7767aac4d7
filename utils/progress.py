# SPDX-License-Identifier: Apache-2.0
"""Progress of a long stage: a bar on a terminal, a plain line now and then in a log.

Programs make a wrapper with `progress(NAME)`, and the library wraps its iterables with it;
libraries themselves report nothing. Output goes to standard error.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TextIO, TypeVar

Item = TypeVar("Item")
APART = 10.0  # seconds between two lines, at least
SHARE = 0.1  # of the work between two lines, at least, unless they are LONG seconds apart
LONG = 60.0


def progress(
    name: str,
    *,
    unit: str = "utterances",
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[Iterable[Item]], Iterator[Item]]:
    """Make a wrapper of an iterable that yields its items unchanged and shows how many are done.

    On a terminal: a tqdm bar. Elsewhere lines such as `anonymise: 120 of 400 utterances, 0:35
    left`, at least 10 s apart, and then only where 10 % more is done or a minute has gone; a stage
    of less than 10 s writes nothing. The time left assumes that the rest goes as fast.
    """

    def wrapped(items: Iterable[Item]) -> Iterator[Item]:
        out = sys.stderr if stream is None else stream
        total = len(items) if isinstance(items, Sized) else None
        if out.isatty():
            from tqdm import tqdm

            return iter(tqdm(items, name, total, unit=f" {unit}", file=out, dynamic_ncols=True))
        return _told(items, total, name, unit, out, clock)

    return wrapped


def _told(
    items: Iterable[Item],
    total: int | None,
    name: str,
    unit: str,
    out: TextIO,
    clock: Callable[[], float],
) -> Iterator[Item]:
    started = last = clock()
    told = 0
    for done, item in enumerate(items):
        now = clock()
        more = total is not None and done - told >= SHARE * total
        if now - last >= APART and (more or now - last >= LONG):
            out.write(f"{name}: {_how_far(done, total, unit, now - started)}\n")
            out.flush()
            last, told = now, done
        yield item


def _how_far(done: int, total: int | None, unit: str, seconds: float) -> str:
    if total is None:
        return f"{done} {unit} in {clock_time(seconds)}"
    left = clock_time(seconds * (total - done) / done) if done else "unknown time"
    return f"{done} of {total} {unit}, {left} left"


def clock_time(seconds: float) -> str:
    """Format seconds for people.

    >>> [clock_time(s) for s in (0.4, 35, 754.6, 7265)]
    ['0:00', '0:35', '12:35', '2:01:05']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
