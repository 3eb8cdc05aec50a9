"""Plug-ins of `hooks/` run by Node in a small harness, with a stub where memd would listen."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hooks.stub import Message, Stub, text
from support_daemon import eventually

ROOT = Path(__file__).resolve().parents[2]
HOOKS = ROOT / "hooks"
FILES = {"pi": "pi.ts", "omp": "omp.ts", "opencode": "opencode.ts", "opencode2": "opencode.ts"}
KINDS = tuple(FILES)
HOST = Path(__file__).with_name("host.mjs")
PATIENCE_S = 30.0

Step = dict[str, Any]


def why_no_node() -> str:
    """Why no plug-in can be run here; empty when they can."""
    node = shutil.which("node")
    if node is None:
        return "not installed: node"
    said = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    found = re.match(r"v(\d+)\.", said.stdout)
    return "" if found and int(found.group(1)) >= 18 else f"node is too old: {said.stdout.strip()}"


needs_node = pytest.mark.skipif(bool(why_no_node()), reason=why_no_node() or "there is one")


@dataclass(frozen=True)
class Played:
    """What each step gave, and what was written where a person would see it."""

    results: list[Any]
    said: list[str]


class Desk:
    """One home and one runtime folder, and the harness that runs there."""

    def __init__(self, path: Path) -> None:
        self.home = path / "home"
        self.runtime = path / "run"
        self.folder = self.runtime / "memd"
        self.socket = self.folder / "memd.sock"
        self.context_ms = 2000  # how long a plug-in waits for what there is to tell
        self.home.mkdir(parents=True)
        self.folder.mkdir(parents=True, mode=0o700)
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", ""),
            "XDG_RUNTIME_DIR": str(self.runtime),
        }

    def stub(self, answer: Callable[[Message], bytes | None] | None = None, **more: Any) -> Stub:
        """A memd that answers; by default with `packet for SESSION` to the question for a context."""
        return Stub(self.socket, answer or packets, **more)

    def start(
        self, kind: str, steps: Sequence[Step], *, file: str = "", **variables: str
    ) -> subprocess.Popen[str]:
        """The harness at its steps with its own plug-in, or that of another; the caller ends it."""
        name = FILES[file or kind]
        plugin = self.home / f"{name}.mjs"  # Node of any age runs it as what it is: plain JavaScript
        limit = "const CONTEXT_MS = {};"
        source = (HOOKS / name).read_text()
        assert limit.format(2000) in source
        plugin.write_text(source.replace(limit.format(2000), limit.format(self.context_ms)))
        return subprocess.Popen(
            ["node", str(HOST), str(plugin), kind, json.dumps(steps)],
            env={**self.environment, **variables},
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def play(self, kind: str, *steps: Step, file: str = "", **variables: str) -> Played:
        """The steps played to their end, and the process ended by itself."""
        return read(self.start(kind, steps, file=file, **variables))

    def play_until(self, stub: Stub, count: int, kind: str, *steps: Step, **variables: str) -> Played:
        """As `play`, but the process stays until the stub has so many messages."""
        process = self.start(kind, [*steps, {"do": "hold"}], **variables)
        try:
            eventually(lambda: len(stub.messages) >= count or process.poll() is not None)
        except AssertionError:
            process.kill()
            process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"{count} messages wanted, there are {stub.events()}") from None
        return read(process)


def read(process: subprocess.Popen[str]) -> Played:
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("the harness did not end by itself") from None
    assert process.returncode == 0, err
    lines = [json.loads(line[1:]) for line in out.splitlines() if line.startswith("@")]
    stray = [line for line in out.splitlines() if not line.startswith("@")]
    return Played(lines[:-1], [*lines[-1]["said"], *stray, *err.splitlines()])


def packets(message: Message) -> bytes:
    return text(f"packet for {message.stdin['session_id']}" if message.event == "context" else "")


def prompt(kind: str, session: str, **more: Any) -> Step:
    """The step in which the harness is about to call its model."""
    name = {"pi": "before_agent_start", "omp": "before_agent_start", "opencode": "chat.message"}
    return {"do": name.get(kind, "context"), "session": session, **more}


def told(kind: str, result: Any) -> list[str]:
    """What the step of a prompt put before the model."""
    if kind in ("pi", "omp"):
        return [one["message"]["content"] for one in result["results"] if one]
    if kind == "opencode":
        return [part["text"] for part in result["parts"] if part.get("synthetic")]
    return [part["text"] for part in result["system"]]
