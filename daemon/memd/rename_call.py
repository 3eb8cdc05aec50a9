"""The system call behind the renames that Python's `os` lacks. For `memd.disk` alone."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable


@functools.cache
def rename_function() -> tuple[Callable[..., int] | None, Callable[[], int]]:
    """The call (two folders and names, and flags) and what gives its error number; None where it is missing.

    source  renameat2(2), Linux 3.15; renameatx_np(2), macOS 10.12
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    call = getattr(libc, "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        call.restype = ctypes.c_int
    return call, ctypes.get_errno
