"""A real program on a terminal: what its screen shows, typing into it, its exit status.

The terminal is tmux in control mode, inside the world. One client gives commands on its input; each is
answered between `%begin` and `%end`, and `%output` lines say that something was drawn: so a wait costs
nothing while the screen stands still.

source  tmux 3.3a, control mode, read 2026-11
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Self

from real.namespace import HOME
from real.rig import World
from real.running import RigError

_EXIT = re.compile(r"(?m)^\[exit (\d+)\]\s*$")
_THEN_SAY_STATUS = '"$@"; printf "\\n[exit %d]\\n" $?; exec sleep infinity'
_ANSWER_S = 10.0


def why_no_screen() -> str:
    """Why no terminal can be had here; empty when it can."""
    return "" if shutil.which("tmux") else "not installed: tmux"


class Screen:
    """A terminal with one program in it; a context manager, ending with the world at the latest."""

    def __init__(
        self,
        world: World,
        *argv: str,
        cwd: str = HOME,
        env: Mapping[str, str] | None = None,
        width: int = 150,
        height: int = 50,
    ) -> None:
        inner = shlex.join(["bash", "--norc", "-c", _THEN_SAY_STATUS, "bash", *argv])
        size = ["-x", str(width), "-y", str(height)]
        self._world = world
        self._client = world.start(
            *(
                "tmux",
                "-L",
                "real",
                "-f",
                "/dev/null",
                "-C",
                "new-session",
                "-s",
                "real",
                *size,
                "-c",
                cwd,
                inner,
            ),
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
        )
        self._size = f"{width}x{height}"
        self._held = b""
        self._was_drawn = False

    def __enter__(self) -> Self:
        self._answer()  # to `new-session`
        self._ask(f"refresh-client -C {self._size}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._client.is_alive:
            self._client.send("kill-server\n")
            self._client.finish(_ANSWER_S)

    # ------------------------------------------------------------------ seeing

    def text(self) -> str:
        """What stands on the screen now."""
        return self._ask("capture-pane -p -t real")

    def wait(self, pattern: str, timeout_s: float = 20) -> str:
        """The screen once it matches; raises RigError with the last one when it never does."""
        return self._wait(
            lambda text: re.search(pattern, text) is not None, f"{pattern!r} to come", timeout_s
        )

    def wait_gone(self, pattern: str, timeout_s: float = 20) -> str:
        """The screen once it no longer matches."""
        return self._wait(lambda text: re.search(pattern, text) is None, f"{pattern!r} to go", timeout_s)

    def status(self, timeout_s: float = 20) -> int:
        """The program's exit status, once it has ended."""
        return int(_EXIT.findall(self.wait(_EXIT.pattern, timeout_s))[-1])

    # ------------------------------------------------------------------ typing

    def type(self, text: str) -> None:
        """Type text, without Enter: some programs take both in one read for a paste."""
        self._ask(f"send-keys -t real -l -- {shlex.quote(text)}")

    def key(self, *names: str) -> None:
        """Press keys by their tmux names: Enter, Escape, C-c, Up."""
        for name in names:
            self._ask(f"send-keys -t real {name}")

    def say(self, text: str) -> None:
        """Type a prompt, wait until its end is on the screen, press Enter."""
        self.type(text)
        self.wait(re.escape(text[-20:]))
        self.key("Enter")

    def kill(self, signal_name: str = "KILL") -> None:
        """Send a signal to the program; its shell then shows the status."""
        shell = self._ask("display-message -p -t real '#{pane_pid}'").strip()
        self._world.run("pkill", f"-{signal_name}", "--parent", shell)

    # ------------------------------------------------------------------ the client

    def _wait(self, is_so: Callable[[str], bool], what: str, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while True:
            self._was_drawn = False
            text = self.text()
            if is_so(text):
                return text
            while not self._was_drawn:
                line = self._line(deadline)
                if line is None:
                    raise RigError(f"waited {timeout_s:.0f} s for {what}; the screen:\n{text}")

    def _ask(self, command: str) -> str:
        self._client.send(command + "\n")
        return self._answer()

    def _answer(self) -> str:
        """The next command's answer; raises RigError with what tmux says when it refuses."""
        deadline = time.monotonic() + _ANSWER_S
        lines: list[str] | None = None
        while (line := self._line(deadline)) is not None:
            if lines is None:
                lines = [] if line.startswith("%begin") else None
            elif line.startswith("%error"):
                raise RigError(f"tmux: {' '.join(lines)}")
            elif line.startswith("%end"):
                return "\n".join(lines)
            else:
                lines.append(line)
        raise RigError(f"the terminal does not answer; it said {lines}")

    def _line(self, deadline: float) -> str | None:
        """The client's next line; None when it says nothing more in time. Notes what was drawn."""
        while b"\n" not in self._held:
            more = self._client.receive(deadline - time.monotonic())
            if not more:
                return None
            self._held += more
        line, _, self._held = self._held.partition(b"\n")
        self._was_drawn = self._was_drawn or line.startswith(b"%output")
        return line.decode("utf-8", "replace")
