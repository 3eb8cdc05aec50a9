"""What the allocator holds of freed memory: kept while there is work, given back when it is done.

glibc can be told to return memory as it is freed. Then every large value comes in pages that the kernel has
to clear first, and an import takes a quarter longer. Left alone, it keeps what a back-fill needed for good,
once for every thread. So: one heap, generous bounds, and all that is free returned at rest. Other allocators
are not touched.

    source  mallopt(3), malloc_trim(3) of glibc 2.36
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

KEPT_BYTES = 4 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


@functools.cache
def _libc() -> Any:
    """The C library of this process where it is glibc; None elsewhere."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") else None  # musl has none


def settle() -> None:
    """To be called at the start of a process, before it has threads."""
    libc = _libc()
    if libc is not None:
        for parameter, value in (
            (_ARENA_MAX, 1),
            (_MMAP_THRESHOLD, KEPT_BYTES),
            (_TRIM_THRESHOLD, KEPT_BYTES),
        ):
            libc.mallopt(parameter, value)


def give_back() -> None:
    """Return what is free to the system: some milliseconds, so only when nobody waits."""
    libc = _libc()
    if libc is not None:
        libc.malloc_trim(0)
