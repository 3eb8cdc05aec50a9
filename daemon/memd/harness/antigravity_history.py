"""Antigravity's list of prompts: what a person typed, of all conversations, one JSON object a line.

    {"display": "fix the parser", "timestamp": 1770000000123, "workspace": "/home/ann/src/app",
     "conversationId": "..", "type": "slash_command"}

Lines name their conversation, all but the first prompt of one: that is written before the conversation has an
id. Such a line is taken for the first prompt of a conversation when its time is within `WINDOW_MS` of the
birth of the conversation's database, in the same directory, and nothing else could be meant: no other such
line, and no other conversation born within that time. It is marked as inferred.

The file is rewritten at times. A line's id is made of its time and its bytes.

    source  built from descriptions of Antigravity CLI 1.3, read 2026-11; no file of the program was at hand
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.harness.losses import Losses
from memd.harness.marks import is_utf8, is_uuid
from memd.harness.model import Event, Near, Parsed, Session
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, clip, split, whole_halves
from memd.harness.times import rfc3339

HISTORY = b"history.jsonl"
WINDOW_MS = 5_000
LARGE_LINE_BYTES = 64 << 10  # a longer one is shortened
MAX_KNOWN = 2_000  # conversations whose directory is remembered

_NAMED = re.compile(rb'"conversationId"\s*:\s*"([0-9a-fA-F-]{36})"')
_KEY_BYTES = 8


class _Line(msgspec.Struct, gc=False):
    display: Any = None
    timestamp: Any = None
    workspace: Any = None
    conversationId: Any = None
    type: Any = None


class _Memory(msgspec.Struct, array_like=True):
    """The state between two chunks. where: conversations and their directories, as digests, oldest first."""

    where: dict[bytes, bytes] = {}


_line = msgspec.json.Decoder(_Line).decode
_memory = msgspec.msgpack.Decoder(_Memory).decode


class _Reader:
    def __init__(self, memory: _Memory) -> None:
        self.where = dict(list(memory.where.items())[-MAX_KNOWN:])
        self.events: list[Event] = []
        self.losses = Losses()
        self.sessions: dict[str, Session] = {}

    def read(self, lines: Sequence[bytes], at: int) -> None:
        for line in lines:
            self._read(line, at)
            at += len(line) + 1

    def _read(self, line: bytes, at: int) -> None:
        found = _decoded(line)
        if found is None:
            named = _NAMED.search(line)
            if named is not None and is_uuid(named[1].decode("ascii")):
                self.losses.add(named[1].decode("ascii"), "malformed")
            return
        session = found.conversationId
        if not isinstance(session, str) or not is_uuid(session):
            return  # the first prompt of some conversation, or no id that memd would use
        if not _is_place(found.workspace):
            self.losses.add(session, "unknown-shape")
            return
        place = _digest(found.workspace)
        if self.where.setdefault(_digest(session), place) != place:
            self.losses.add(session, "elsewhere")
            return
        if len(self.where) > MAX_KNOWN:
            del self.where[next(iter(self.where))]
        self.sessions.setdefault(session, Session(id=session, cwd=found.workspace))
        what = _lost(found)
        if what:
            self.losses.add(session, what)
            return
        event = event_of(session, found.display, found.timestamp, line, at)
        if event is None:
            return
        if is_own(event.content):
            self.losses.add(session, "own-packet")
            return
        if not is_utf8(line):
            self.losses.add(session, "encoding")
        if len(line) > LARGE_LINE_BYTES:
            self.losses.add(session, "shortened")
        self.events.append(event)


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole lines into the prompts of their conversations.

    losses  only of lines that name their conversation
    raises  nothing: what cannot be read is a loss
    """
    try:
        memory = _memory(state) if state else _Memory()
    except FAULTS:
        memory = _Memory()
    lines, consumed = split(chunk)
    if not lines:
        return Parsed(state=state)
    reader = _Reader(memory)
    reader.read(lines, base)
    return Parsed(
        events=reader.events,
        losses=reader.losses.done(),
        sessions=tuple(reader.sessions.values()),
        consumed=consumed,
        state=msgspec.msgpack.encode(_Memory(where=reader.where)),
    )


def begin() -> bytes:
    return msgspec.msgpack.encode(_Memory())


def opener(session: str, cwd: str, born_ms: int, near: Near, now_ms: int) -> tuple[Event | None, bool]:
    """The first prompt of a conversation, if it can be told, and whether that will not change any more.

    near  the folder of the list
    """
    content = near.read(HISTORY)
    if not content or not born_ms:
        return None, not born_ms
    lines, _ = split(content)
    found: list[tuple[_Line, bytes, int]] = []
    at, newest = 0, 0
    for raw in lines:
        line = _decoded(raw)
        moment = 0 if line is None or not _is_moment(line.timestamp) else int(line.timestamp)
        newest = max(newest, moment)
        if line is not None and not line.conversationId and abs(moment - born_ms) <= WINDOW_MS:
            found.append((line, raw, at))
        at += len(raw) + 1
    if max(newest, now_ms) <= born_ms + WINDOW_MS:
        return None, False  # another one may still come
    mine = [one for one in found if one[0].workspace == cwd]
    if len(mine) != 1 or _has_rival(session, int(mine[0][0].timestamp), near):
        return None, True
    line, raw, place = mine[0]
    if _lost(line) or is_own(line.display):
        return None, True
    return event_of(session, line.display, line.timestamp, raw, place, is_inferred=True), True


def _has_rival(session: str, moment: int, near: Near) -> bool:
    """Whether another conversation was born about then, in whatever directory."""
    for name in near.names(b"conversations"):
        stem = name.removesuffix(b".db")
        if stem != name and stem != session.encode():
            born = near.born(b"conversations/" + name)
            if not born or abs(born - moment) <= WINDOW_MS:
                return True
    return False


def event_of(
    session: str, display: str, timestamp: int, line: bytes, at: int, *, is_inferred: bool = False
) -> Event | None:
    """A prompt; None for one that says nothing."""
    if not display or display.isspace():
        return None
    record = f"{timestamp}-{hashlib.sha256(line).hexdigest()}"
    return Event(
        session=session,
        origin=f"{session}/{record}",
        kind="message",
        role="user",
        content=clip(display)[0],
        at=at,
        record=record,
        occurred_at=rfc3339(timestamp),
        metadata={"status": "inferred"} if is_inferred else {},
    )


def _lost(line: _Line) -> str:
    """Why a line is left out; empty when it is a prompt."""
    if line.type in ("slash_command", "shell"):
        return "command"
    if line.type is not None:
        return "unknown-type"
    return "" if isinstance(line.display, str) and _is_moment(line.timestamp) else "unknown-shape"


def _decoded(line: bytes) -> _Line | None:
    try:
        return _line(whole_halves(line))
    except FAULTS:
        pass
    if is_utf8(line):
        return None
    try:
        return _line(whole_halves(line).decode("utf-8", "replace").encode("utf-8"))
    except FAULTS:
        return None


def _is_moment(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 53


def _is_place(path: object) -> bool:
    return isinstance(path, str) and path.startswith("/") and "\0" not in path and len(path) <= 16384


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_KEY_BYTES).digest()
