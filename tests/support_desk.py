"""A checkout in a temporary home, memd in it, and fake agents that are started with `memctl run`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from support_daemon import Home
from support_fake_harness import Fakes
from support_terminal import Terminal

MEMCTL = (sys.executable, "-P", "-m", "memctl")
OF_MEMD = ("HEAD ", "Branch ", "Dirty ", "No repository checkpoint", "- ")
"""How what memd itself says begins: checkpoints and losses."""


class Desk:
    """Everything a person has: a home, a checkout, agents in PATH."""

    def __init__(self, path: Path) -> None:
        self.home = Home(path / "home", runtime=path / "run")
        self.fakes = Fakes(path / "bin", self.home.path)
        self.home.environment["PATH"] = f"{path / 'bin'}:/usr/bin:/bin"
        self._running: list[subprocess.Popen[bytes]] = []
        self._screens: list[Terminal] = []
        self.clear(path)

    def clear(self, path: Path) -> None:
        """Another checkout, below `path`, in which nothing has happened yet; the home stays."""
        self._end()
        self.checkout = path / "proj"
        self.checkout.mkdir()
        subprocess.run(["git", "init", "-q", str(self.checkout)], check=True)
        self.fakes.clear()

    def close(self) -> None:
        self._end()
        self.fakes.go()
        self.home.memctl("down")
        self.home.end_all()

    def _end(self) -> None:
        for child in self._running:
            if child.poll() is None:
                child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()
        self._running.clear()
        for screen in self._screens:
            screen.close()
        self._screens.clear()

    def run(self, *words: str, do: str = "", cwd: Path | None = None, **more: str) -> Any:
        """`memctl run WORDS` to its end."""
        return self.home.memctl("run", *words, cwd=cwd or self.checkout, FAKE_DO=do, **more)

    def ok(self, *words: str, do: str = "", **more: Any) -> dict[str, Any]:
        """A run that must end well; how its program was started."""
        done = self.run(*words, do=do, **more)
        assert done.returncode == 0, done.stderr
        return self.fakes.last()

    def begin(self, *words: str, do: str, **more: str) -> subprocess.Popen[bytes]:
        """`memctl run WORDS`, left running; ended with the desk."""
        child = subprocess.Popen(
            [*MEMCTL, "run", *words],
            env={**self.home.environment, "FAKE_DO": do, **more},
            cwd=self.checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._running.append(child)
        return child

    def screen(self, *words: str, do: str, **more: str) -> Terminal:
        """`memctl run WORDS` on a terminal."""
        return self.terminal([*MEMCTL, "run", *words], FAKE_DO=do, **more)

    def terminal(self, command: Sequence[str], **more: str) -> Terminal:
        made = Terminal(command, {**self.home.environment, **more}, self.checkout)
        self._screens.append(made)
        return made

    def args(self) -> list[str]:
        """The arguments of the last start."""
        found = self.fakes.last()["args"]
        assert isinstance(found, list)
        return found

    def json(self, *words: str, cwd: Path | None = None) -> Any:
        done = self.home.memctl(*words, "--json", cwd=cwd or self.checkout)
        assert done.returncode == 0, done.stderr
        return msgspec.json.decode(done.stdout)

    def workstreams(self) -> list[dict[str, Any]]:
        found = self.json("workstreams")
        assert isinstance(found, list)
        return found

    def said(self, workstream: str = "") -> list[str]:
        """The events of a workstream, oldest first."""
        id = workstream or self.workstreams()[0]["workstream_id"]
        rows = self.json("workstream-search", "--workstream-id", id, "--limit", "100")
        events = rows["events"] if isinstance(rows, dict) else rows
        return [row["content"] for row in reversed(events)]

    def words(self, workstream: str = "") -> list[str]:
        """What was said in it, without what memd adds."""
        return [text for text in self.said(workstream) if not text.startswith(OF_MEMD)]
