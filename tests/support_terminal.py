"""A terminal with a program on it: typed into, read from, and hung up."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE_S = 20.0
KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP)
_ESCAPES = re.compile(
    rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_].*?\x1b\\|\x1b."
)


class Terminal:
    """The program leads a session of its own, with this terminal as the controlling one."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: Path, columns: int = 100
    ) -> None:
        self.seen = b""
        self.status: int | None = None
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            for number in KEYS:  # whoever runs the tests may have had them ignored
                signal.signal(number, signal.SIG_DFL)
            os.chdir(cwd)
            os.execvpe(command[0], list(command), {"TERM": "xterm-256color", **environment})
        self.resize(columns)

    def resize(self, columns: int, rows: int = 40) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def text(self) -> str:
        """All that was shown so far, without what moves and colours."""
        return _ESCAPES.sub(b"", self.seen).decode("utf-8", "replace").replace("\r", "")

    def until(self, text: str, within_s: float = PATIENCE_S) -> str:
        """What was shown when that text had come."""
        end = time.monotonic() + within_s
        while text not in self.text():
            left = end - time.monotonic()
            assert left > 0 and self._read(left), f"{text!r} never came: {self.text()[-2000:]}"
        return self.text()

    def forget(self) -> None:
        self.seen = b""

    def _read(self, within_s: float) -> bool:
        """False when nothing came, or the program's end of the terminal is closed."""
        if not select.select([self._fd], [], [], within_s)[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """The exit status once it has ended, negative for a signal; reads what is still shown."""
        end = time.monotonic() + within_s
        while self.status is None:
            if self._fd < 0 or not self._read(0.02):
                select.select([], [], [], 0.01)
            pid, word = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(word)
            assert self.status is not None or time.monotonic() < end, self.text()[-2000:]
        while self._fd >= 0 and self._read(0.05):
            pass
        return self.status

    def hang_up(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        if self.status is None:
            pid, word = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                os.kill(self.pid, signal.SIGKILL)
                pid, word = os.waitpid(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(word)
        self.hang_up()
