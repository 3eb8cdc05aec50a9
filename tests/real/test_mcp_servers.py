"""The real programs start memd's MCP server from the entry that `memctl install-mcp` wrote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from real.programs import Program, require
from support_daemon import Home

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

pytestmark = pytest.mark.real


def ask(home: Home, program: Program, words: Sequence[str]) -> str:
    """What the program prints, in a network namespace of its own, so that it can reach nothing."""
    search = os.pathsep.join(str(folder) for folder in program.search)
    done = subprocess.run(
        ["unshare", "--net", *words],
        env={**home.environment, "PATH": f"{search}{os.pathsep}{home.environment['PATH']}", "NO_COLOR": "1"},
        cwd=home.path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("agent", "words", "says"),
    [
        ("claude", ("claude", "mcp", "list"), "Connected"),
        ("codex", ("codex", "mcp", "list"), "enabled"),
        ("opencode", ("opencode", "mcp", "list"), "connected"),
    ],
)
def test_the_entry_is_understood_and_the_server_answers(
    tmp_path: Path, agent: str, words: Sequence[str], says: str
) -> None:
    program = require(agent)
    home = Home(tmp_path / "home", runtime=tmp_path / "run")
    assert home.memctl("install-mcp", "--agent", agent, "--apply").returncode == 0
    printed = ask(home, program, words)
    assert says in printed, printed
    assert "memctl mcp" in printed
