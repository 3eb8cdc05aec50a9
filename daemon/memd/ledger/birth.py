"""When a file was made. Python tells on macOS; on Linux the kernel is asked itself.

source  statx(2), Linux 4.11 and glibc 2.28
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_SIZE = 256
_MASK = struct.Struct("=I")  # at 0: which fields were filled in
_BIRTH = struct.Struct("=qI")  # at 80: seconds, nanoseconds
_BIRTH_AT = 80


def born_ms(path: bytes) -> int:
    """Milliseconds since 1970, links not followed; 0: there is no such file, or its system does not say."""
    if b"\0" in path:
        return 0
    try:
        facts = os.lstat(path)
    except OSError:
        return 0
    seconds = getattr(facts, "st_birthtime", None)
    if seconds is not None:
        return max(0, int(seconds * 1000))
    statx = _statx()
    if statx is None:
        return 0
    buffer = bytearray(_SIZE)
    if statx(path, buffer) != 0:
        return 0
    if not _MASK.unpack_from(buffer, 0)[0] & _STATX_BTIME:
        return 0
    whole, nanoseconds = _BIRTH.unpack_from(buffer, _BIRTH_AT)
    return max(0, int(whole) * 1000 + int(nanoseconds) // 1_000_000)


@functools.cache
def _statx() -> Callable[[bytes, bytearray], int] | None:
    import ctypes  # a megabyte, for the few who need it

    try:
        call = ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
    room = ctypes.c_char * _SIZE
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)

    def ask(path: bytes, buffer: bytearray) -> int:
        status: int = call(_AT_FDCWD, path, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, room.from_buffer(buffer))
        return status

    return ask
