"""Where tests put what need not outlive them, and how a run that is ended leaves nothing behind.

`in_memory` is the place for thousands of small trees. `keep` runs a whole suite in a process of its own: this
process only waits, gets every process that the suite leaves without a parent, and at the end kills those,
unmounts what is mounted in the suite's two folders, and removes them. SIGTERM, SIGHUP and Ctrl-C end the
suite as Ctrl-C ends pytest, so that fixtures are taken down first. What a run leaves that was itself killed
the next one takes away: nobody holds the lock of its folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

PREFIX = "memd-run-"
MEMORY = "MEMD_TEST_MEMORY"
PATIENCE_S = 30.0
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # of prctl(2)


def in_memory() -> str | None:
    """A folder that needs no disk, where the system has one; else None, the ordinary place."""
    place = os.environ.get(MEMORY, "/dev/shm")
    return place if os.access(place, os.W_OK) else None


def keep(suite: Callable[[Path], int], places: tuple[str, ...] = ("", "/dev/shm")) -> int:
    """The status of `suite`, which gets a folder of its own; afterwards nothing of it is left.

    When it failed its folder stays until the next run, without mounts and processes.
    """
    roots = [tempfile.gettempdir(), *(place for place in places if place and os.access(place, os.W_OK))]
    for root in roots:
        _remove_abandoned(Path(root))
    with contextlib.ExitStack() as held:
        folders = [held.enter_context(_held(root)) for root in roots]
        _control(_SUBREAPER, 1)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os._exit(_inside(suite, folders))
        status = _awaited(child)
        for folder in folders:
            _unmount_below(folder)
        if status in (0, 2, 130):
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
    return status


def _inside(suite: Callable[[Path], int], folders: list[Path]) -> int:
    os.setpgid(0, 0)  # Ctrl-C reaches the waiting process alone, and this one once, through it
    _control(_DEATH_SIGNAL, signal.SIGINT)
    os.environ["TMPDIR"] = tempfile.tempdir = os.fspath(folders[0])
    if len(folders) > 1:
        os.environ[MEMORY] = os.fspath(folders[1])
    try:
        status = suite(folders[0])
    except KeyboardInterrupt:
        status = 130
    except BaseException:  # noqa: BLE001 - whatever it was, it is told and this process ends
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _awaited(child: int) -> int:
    """Wait for the suite, hand on what is to end it, and end everything that it left running."""
    ended_at = 0.0

    def end(number: int, _: FrameType | None) -> None:
        nonlocal ended_at
        # once: a second one would cut off the taking down; whoever waits too long is killed
        if not ended_at:
            ended_at = time.monotonic()
            os.kill(child, signal.SIGINT)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        elif number == signal.SIGALRM:
            os.kill(child, signal.SIGKILL)

    before = {one: signal.signal(one, end) for one in _ENDING}
    try:
        status = 0
        while True:
            pid, how = os.wait()
            if pid == child:
                status = os.waitstatus_to_exitcode(how)
                break
        _end_children()
        return 130 if ended_at and status == 0 else status if status >= 0 else 128 - status
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


def _end_children() -> None:
    """Kill what the suite left: all of it is a child of this process by now, or becomes one."""
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.wait()


def _children() -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


@contextlib.contextmanager
def _held(root: str) -> Iterator[Path]:
    """A new folder whose lock says that somebody is at work in it."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    folder.chmod(0o711)  # servers below it run as another user
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        os.close(lock)


def _remove_abandoned(root: Path) -> None:
    for folder in root.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _unmount_below(folder)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)


def _unmount_below(folder: Path) -> None:
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    places = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    for place in sorted((one for one in places if one.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", place], capture_output=True, check=False)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
