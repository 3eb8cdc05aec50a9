"""Two logins of Claude Code, with a session in one of them that is carried to the other."""

from __future__ import annotations

from pathlib import Path

from memd.workstream import carry as rules
from memd.workstream import carrying

ID = "2a8d3c1e-0000-4000-8000-000000000001"
KEY = "-home-dev-proj"
ONE = b'{"type":"user","uuid":"1"}\n'
TWO = b'{"type":"assistant","uuid":"2"}\n'
THREE = b'{"type":"user","uuid":"3"}\n'


class Logins:
    """Two logins, `old` with a session in it, `new` empty."""

    def __init__(self, home: Path) -> None:
        self.old, self.new = home / ".claude", home / ".claude-work"
        self.write(self.old, ONE + TWO)
        self.inner(self.old, "subagents/agent-1.jsonl", ONE)
        self.inner(self.old, "tool-results/b1.txt", b"big\n")
        self.new.mkdir(mode=0o700)

    def transcript(self, login: Path, key: str = KEY) -> Path:
        return login / "projects" / key / f"{ID}.jsonl"

    def write(self, login: Path, text: bytes, key: str = KEY) -> Path:
        path = self.transcript(login, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        return path

    def inner(self, login: Path, name: str, text: bytes) -> Path:
        path = login / "projects" / KEY / ID / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        return path

    def carry(self, session: str = ID, **more: object) -> rules.Plan:
        logins = [bytes(self.old), bytes(self.new)]
        return carrying.carry(session, logins, bytes(self.new), **more)  # type: ignore[arg-type]


def tree(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()
    }
