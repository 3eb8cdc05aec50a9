"""The Python that installed hooks are run by: one that outlives the environment memctl was installed in."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

from memctl.paths import shown
from memd.errors import CannotCreate

CHECK_S = 10.0
_CHECK = "import sys, posix, _socket, time; sys.exit(sys.version_info < (3, 11))"
# Homebrew keeps each version in a folder of its own and drops it at the next; `opt` leads to the present one
_cellar = re.compile(rb"(?P<prefix>.*)/Cellar/(?P<name>[^/]+)/[^/]+/(?P<rest>.*)")


def current() -> bytes:
    """The real interpreter behind the one that runs this; raises CannotCreate when it cannot be named."""
    named = os.fsencode(getattr(sys, "_base_executable", "") or sys.executable)
    real = os.path.realpath(named)
    if found := _cellar.fullmatch(real):
        stable = b"%b/opt/%b/%b" % (found["prefix"], found["name"], found["rest"])
        if os.path.realpath(stable) == real:
            real = stable
    if not os.path.isfile(real) or not os.access(real, os.X_OK):
        raise CannotCreate(
            f"the Python that hooks would be run by is not there: {shown(real)}",
            remedy="Install memd again with a Python that stays, then repeat the command.",
        )
    return real


@functools.cache
def runs(interpreter: str) -> bool:
    """Whether that is a Python which can run the hook."""
    if not interpreter.startswith("/"):
        return False
    try:
        done = subprocess.run(
            [interpreter, "-I", "-S", "-c", _CHECK],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=CHECK_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
