"""memd as a LaunchAgent of macOS: what `launchctl` is asked to do, and what it says.

source  launchctl(1), launchd.plist(5), macOS 14
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from memctl import files, service_files
from memctl.paths import home_dir, log_path
from memctl.programs import ASK_S, Answer, Ask, ask, last_line
from memctl.service_files import LABEL, PLIST, Installation
from memctl.services import Running
from memd.errors import Unavailable

LAUNCHCTL = "/bin/launchctl"


class Launchd:
    """The user's own service manager on macOS."""

    name: str = "launchd"
    files: tuple[str, ...] = (PLIST,)

    def __init__(self, environ: Mapping[str, str] = os.environ, ask: Ask = ask) -> None:
        self._environ = dict(environ)
        self._ask = ask
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"

    def folder(self) -> bytes:
        return home_dir() + b"/Library/LaunchAgents"

    def drop_ins(self) -> tuple[bytes, ...]:
        return ()

    def render(self, templates: Mapping[str, str], installation: Installation) -> dict[str, bytes]:
        return service_files.render_launchd(templates, installation)

    def is_reachable(self) -> bool:
        return self._say("print", self._domain).status == 0

    def running(self) -> Running:
        """What launchd says of the agent; all unknown when it is not reachable."""
        answer = self._say("print", self._target)
        if answer.status != 0:
            reachable = self.is_reachable()
            return Running(is_reachable=reachable, trouble="" if reachable else last_line(answer))
        pid = re.search(r"^\s*pid = (\d+)$", answer.out, re.M)
        state = re.search(r"^\s*state = (\w+)", answer.out, re.M)
        code = re.search(r"^\s*last exit code = (-?\d+)", answer.out, re.M)
        failed = code is not None and int(code.group(1)) != 0 and pid is None
        return Running(
            is_reachable=True,
            is_enabled=True,
            is_active=pid is not None and state is not None and state.group(1) == "running",
            pid=int(pid.group(1)) if pid else 0,
            trouble=f"the last run ended with exit status {code.group(1)}" if failed and code else "",
        )

    def activate(self, start: bool, rewritten: frozenset[str]) -> list[str]:
        """Load the agent now when `start`; launchd itself loads it at every login. Raises Unavailable."""
        files.make_folder(os.path.dirname(log_path()))  # launchd makes the log file, not its folder
        if not start:
            return []
        if not self.is_reachable():
            raise Unavailable(
                "the service file is written, but this user has no graphical login, so memd was not started",
                remedy="Log in on the screen; until then `memctl up` runs memd without launchd.",
            )
        if rewritten and self._is_loaded():
            self._must("bootout", self._target)
        self.start()
        return []

    def start(self) -> None:
        """Load or start the agent; raises Unavailable."""
        self._say("enable", self._target)
        if self._is_loaded():
            self._must("kickstart", self._target)
        else:
            self._must("bootstrap", self._domain, os.fsdecode(self.folder() + b"/" + PLIST.encode()))

    def restart(self) -> None:
        if self._is_loaded():
            self._must("kickstart", "-k", self._target)
        else:
            self.start()

    def stop(self) -> None:
        """Unload the agent until the next start or login; raises Unavailable."""
        if self._is_loaded():
            self._must("bootout", self._target)

    def deactivate(self, names: Sequence[str]) -> list[str]:
        self.stop()
        return []

    def forget(self) -> None:
        """Nothing: an unloaded agent without a file is gone."""

    def lingers(self) -> bool | None:
        return None

    def _is_loaded(self) -> bool:
        return self._say("print", self._target).status == 0

    def _must(self, *words: str) -> Answer:
        answer = self._say(*words)
        if answer.status != 0:
            raise Unavailable(
                f"`launchctl {' '.join(words)}` failed: {last_line(answer)}",
                remedy=f"See `launchctl print {self._target}` and `memctl logs`.",
            )
        return answer

    def _say(self, *words: str) -> Answer:
        return self._ask([LAUNCHCTL, *words], self._environ, ASK_S)
