"""Agents that write their stores all day: sessions of Claude Code, Codex and Pi that begin, grow and rest.

Every text is one of its own, so that nothing that is lost or doubled stays unseen.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from support_pi import Tree
from support_records import assistant, line, message, meta, user

CWD = "/home/dev/proj"
WORDS = [
    "the",
    "lexer",
    "loops",
    "when",
    "the",
    "file",
    "ends",
    "in",
    "a",
    "comment",
    "look",
    "at",
    "the",
    "test",
    "that",
    "fails",
    "and",
    "run",
    "it",
    "again",
    "with",
    "the",
    "flag",
    "from",
    "the",
    "readme",
    "then",
    "change",
    "the",
    "parser",
    "so",
    "that",
    "it",
    "takes",
    "an",
    "empty",
    "line",
    "as",
    "the",
    "end",
    "of",
    "a",
    "block",
]
MOST_EVENTS = 1500  # of one session: then the next begins
AT_ONCE = 4  # sessions of one agent that are written to


class Session:
    """One file that grows. `events` is how many visible ones it holds."""

    def __init__(self, path: Path, head: bytes) -> None:
        self.path = path
        self.events = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(head)

    def append(self, records: bytes, events: int) -> None:
        with self.path.open("ab") as file:
            file.write(records)
        self.events += events


class Agent:
    """A program with some sessions; `write` lets it say that many things more."""

    def __init__(self, name: str, home: Path, seed: int) -> None:
        self.name = name
        self.home = home
        self.events = 0
        self._rng = random.Random(seed)
        self._number = 0
        self._open: list[Session] = []
        self._trees: dict[Path, Tree] = {}
        self._begin, self._say = {
            "claude": (self._begin_claude, self._say_claude),
            "codex": (self._begin_codex, self._say_codex),
            "pi": (self._begin_pi, self._say_pi),
        }[name]

    def write(self, count: int) -> None:
        while count > 0:
            session = self._session()
            some = min(count, self._rng.randint(2, 12), MOST_EVENTS - session.events)
            session.append(b"".join(self._say(session, self._text()) for _ in range(some)), some)
            self.events += some
            count -= some

    def _text(self) -> str:
        self._number += 1
        return f"soak-{self.name}-{self._number} " + " ".join(
            self._rng.choices(WORDS, k=self._rng.randint(4, 40))
        )

    def _session(self) -> Session:
        self._open = [one for one in self._open if one.events < MOST_EVENTS]
        while len(self._open) < AT_ONCE:
            self._open.append(self._begin(self._id()))
        return self._rng.choice(self._open)

    def _id(self) -> str:
        h = self._rng.randbytes(16).hex()
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-8{h[17:20]}-{h[20:]}"

    def _begin_claude(self, session: str) -> Session:
        return Session(self.home / ".claude" / "projects" / "-home-dev-proj" / f"{session}.jsonl", b"")

    def _say_claude(self, session: Session, text: str) -> bytes:
        make: Callable[..., dict[str, object]] = user if self._number % 2 else assistant
        content: object = text if self._number % 2 else [{"type": "text", "text": text}]
        return line({**make(self._id(), content), "sessionId": session.path.stem})

    def _begin_codex(self, session: str) -> Session:
        head = meta()
        head["payload"]["id"] = session
        folder = self.home / ".codex" / "sessions" / "2026" / "02" / "03"
        return Session(folder / f"rollout-2026-02-03T10-00-00-{session}.jsonl", line(head))

    def _say_codex(self, session: Session, text: str) -> bytes:
        return line(message("user" if self._number % 2 else "assistant", text))

    def _begin_pi(self, session: str) -> Session:
        tree = Tree(session, cwd=CWD)
        path = (
            self.home
            / ".pi"
            / "agent"
            / "sessions"
            / "--home-dev-proj--"
            / f"2026-11-30T00-00-00-000Z_{session}.jsonl"
        )
        made = Session(path, tree.data)
        self._trees = {one.path: self._trees[one.path] for one in self._open} | {path: tree}
        return made

    def _say_pi(self, session: Session, text: str) -> bytes:
        tree = self._trees[session.path]
        before = len(tree.data)
        if self._number % 2:
            tree.say(text)
        else:
            tree.answer(text)
        return tree.data[before:]


def hook_payload(session: str) -> bytes:
    return json.dumps({"session_id": session, "cwd": CWD, "source": "startup", "prompt": "go on"}).encode()
