"""memd and memctl from this checkout, run in a closed world as its user would run them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

from real.namespace import HOME
from real.rig import CHECKOUT, World
from real.running import Finished, RigError

PYTHON_PATH = f"{CHECKOUT}/daemon:{CHECKOUT}/ctl"
MEMCTL = (sys.executable, "-m", "memctl")
_HEAL_S = 10.0  # far above what is promised: that is measured elsewhere


class Memd:
    """The product under test in one world; it dies with the world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ctl(
        self,
        *words: str,
        cwd: str = HOME,
        env: Mapping[str, str] | None = None,
        may_fail: bool = False,
    ) -> Finished:
        """One memctl command, run to its end."""
        return self._world.run(
            *MEMCTL,
            *words,
            cwd=cwd,
            env={"PYTHONPATH": PYTHON_PATH, **(env or {})},
            may_fail=may_fail,
        )

    def up(self) -> None:
        """Start the daemon as a person does; raises RigError with its log when it does not come up.

        Its regular look at everything is set to an hour: what it missed, it must not find by that.
        """
        self._world.put(f"{HOME}/.config/memd/config.toml", "[memory]\nrescan_s = 3600\n")
        done = self.ctl("up", "--quiet", may_fail=True)
        if done.status != 0:
            raise RigError(f"{done}\n--- log\n{self.log()}")

    def pid(self) -> int:
        """The daemon's pid as the world counts it."""
        return int(json.loads(self.ctl("status", "--json").out)["pid"])

    def states(self, cwd: str) -> dict[str, str]:
        """What stands at each login's memory of the work in `cwd`: config home to state."""
        entries = json.loads(self.ctl("where", cwd, "--json").out)["entries"]
        return {entry["config_home"]: entry["state"] for entry in entries}

    def wait_until_linked(self, cwd: str, login: str) -> None:
        """Come back once the daemon, unasked, has linked `login`; raises RigError when it never does."""
        deadline = time.monotonic() + _HEAL_S
        while (states := self.states(cwd)).get(login) != "linked":
            if time.monotonic() > deadline:
                status = self.ctl("status", may_fail=True)
                raise RigError(f"{login} was not linked: {states}\n{status}\n--- log\n{self.log()}")

    def log(self) -> str:
        file = self._world.outside(f"{HOME}/.local/state/memd/memd.log")
        return file.read_text(errors="backslashreplace") if file.exists() else "(none)"
