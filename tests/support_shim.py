"""Between a real process and the system: its wall clock can be set, and calls on its files fail at random.

A small library (`support_shim.c`) is compiled once and preloaded into whatever runs with `variables`. What it
does is changed while those processes run.
"""

from __future__ import annotations

import atexit
import functools
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KINDS = ("open", "write", "short write", "flush", "map", "name", "accept")
SIZE = 16 + 8 * len(KINDS)
DAY_S = 86_400


def why_not() -> str:
    """Why no library can be preloaded here; empty when one can."""
    if not sys.platform.startswith("linux"):
        return "preloads a library for Linux"
    if shutil.which("gcc") is None:
        return "gcc is not installed"
    return "" if _library() else "gcc cannot compile the library here"


@functools.cache
def _library() -> str:
    folder = tempfile.mkdtemp(prefix="memd-shim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = f"{folder}/shim.so"
    source = Path(__file__).with_suffix(".c")
    command = ["gcc", "-O1", "-fPIC", "-shared", "-D_LARGEFILE64_SOURCE", "-o", path, str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return path if done.returncode == 0 else ""


class Shim:
    """What happens to every process that runs with `variables`; its errors meet files below `under`."""

    def __init__(self, folder: Path, under: Path) -> None:
        path = folder / "shim"
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SIZE)
        self.variables = {
            "LD_PRELOAD": _library(),
            "MEMD_SHIM": str(path),
            "MEMD_SHIM_UNDER": os.path.realpath(under),
        }

    def step(self, seconds: float) -> None:
        """Set the wall clock so far from the true one."""
        struct.pack_into("=q", self._map, 0, int(seconds * 1e9))

    def set_to(self, at_s: float) -> None:
        self.step(at_s - time.time())

    @contextmanager
    def failing(self, permille: int) -> Iterator[None]:
        """So many of a thousand calls fail inside the block."""
        struct.pack_into("=i", self._map, 8, permille)
        try:
            yield
        finally:
            struct.pack_into("=i", self._map, 8, 0)

    def hits(self) -> dict[str, int]:
        """How many calls of each kind have failed until now."""
        return dict(zip(KINDS, struct.unpack_from(f"={len(KINDS)}Q", self._map, 16), strict=True))
