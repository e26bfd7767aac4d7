# SPDX-License-Identifier: Apache-2.0
"""Return of memory by the C library."""

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # malloc.h of glibc
_MAXIMUM = 32 * 2**20  # limit for memory that is mapped on its own


def keep_freed_memory() -> bool:
    """Have the C library keep freed memory; returns whether it does.

    A training frees its large arrays after each step and takes them again. Given back to the system
    in between, each of their pages is mapped anew, which took a twentieth of a training of
    `ecapa_mini`. Only glibc has the option.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = ((_TRIM_THRESHOLD, 2**30), (_MMAP_THRESHOLD, _MAXIMUM), (_TOP_PAD, 2**27))
    told = [mallopt(name, value) for name, value in wanted]
    return all(told)
