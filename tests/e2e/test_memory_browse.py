"""The browser of topics in a real terminal, with a real daemon behind it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home, eventually

pytest.importorskip("textual", reason="the extra `tui` is not installed")


class Terminal:
    """A tmux of its own, on a socket of its own."""

    def __init__(self, home: Home, socket: Path, *command: str) -> None:
        found = shutil.which("tmux")
        if found is None:
            pytest.skip("tmux is not installed")
        self._tmux = [found, "-S", str(socket), "-f", "/dev/null"]
        self._environment = {**home.environment, "TERM": "xterm-256color"}
        self._run("new-session", "-d", "-s", "t", "-x", "90", "-y", "25", *command)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", "t")

    def press(self, *keys: str) -> None:
        self._run("send-keys", "-t", "t", *keys)

    def lives(self) -> bool:
        return "t:" in self._run("list-sessions")

    def end(self) -> None:
        self._run("kill-server")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def test_a_person_reads_filters_pins_removes_and_undoes_in_a_terminal(home: Home, tmp_path: Path) -> None:
    for name in ("Docker", "Redis", "Große Frage"):
        text = f"the text of {name}"
        assert home.memctl("memory", "write", name, "--summary", "s", stdin=text).returncode == 0
    terminal = Terminal(home, tmp_path / "tmux", sys.executable, "-P", "-m", "memctl", "memory", "browse")
    try:
        eventually(lambda: "the text of Docker" in terminal.screen())
        assert "Große Frage" in terminal.screen()
        terminal.press("/", "r", "e", "d", "i")
        eventually(lambda: "the text of Redis" in terminal.screen())
        assert "Docker" not in terminal.screen()
        terminal.press("Enter", "p")
        eventually(lambda: home.json("memory", "list")["topics"][1]["pinned"])
        terminal.press("d")
        eventually(lambda: "is pinned" in terminal.screen())
        terminal.press("p", "d")
        eventually(lambda: len(home.json("memory", "list")["topics"]) == 2)
        terminal.press("u")
        eventually(lambda: len(home.json("memory", "list")["topics"]) == 3)
        terminal.press("q")
        eventually(lambda: not terminal.lives())
    finally:
        terminal.end()


def test_without_a_terminal_the_way_round_it_is_named(home: Home) -> None:
    done = home.memctl("memory", "browse")
    assert done.returncode == 64
    assert "memctl memory list" in done.stderr
