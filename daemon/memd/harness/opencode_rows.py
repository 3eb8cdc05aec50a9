"""OpenCode's messages and parts, one row a part: the grammar, and what must wait until it is complete.

OpenCode writes a part when it begins and again as it grows. A row is read when it can no longer change:

    the message is complete     `time.completed` or an error is there, a later reply follows in the session,
                                or the reader was told that the store is at rest
    a text, a reasoning         its message is complete, or it has its own `time.end`
    a tool                      its message is complete, or its status is `completed` or `error`
    what a user typed           at once

Within a message nothing is read past the first part that must wait, so its order holds. A tool that never
finished in a complete message gives a call with the status `unfinished` and no result.

A fork copies messages under new ids, with the old time and content, and names no source. So an event's
origin is the message's time and role and the part's own start or call id, all of which are copied.

    source  OpenCode 1.18.33, database and program read 2026-11
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.harness.losses import Losses
from memd.harness.model import MAX_EVENT_BYTES, MAX_RECORD_BYTES, Event, Kind, Parsed, Session
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, clip, compact, whole_halves
from memd.harness.times import milliseconds, rfc3339

COLUMNS = (
    "updated",  # the newest change of the message or one of its parts, milliseconds
    "id",  # the part's, or the message's when it has none
    "session",
    "message",
    "parent",  # the session that spawned this one
    "directory",
    "title",
    "version",
    "started",  # the session's creation
    "role",
    "created",  # the message's, kept by forks
    "completed",
    "failed",  # the name of the message's error
    "summary",  # 1: the reply is the summary of a compaction
    "settled",  # not null: a later reply follows in the session
    "ordinal",  # how many parts of the message come before
    "size",  # bytes of the part as stored
    "data",  # the part; shortened, with the same shape, when it is large; null when it is too large for that
)
UNFINISHED = "unfinished"
"""The query whose rows are taken as they are."""

SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "subtask"})
"""Bookkeeping. A mention (`agent`) stands in the user's text, a `subtask` in the call of the task tool."""

MAX_WAITING = 256  # messages
MAX_COUNTED = 6_000  # losses remembered so that a row that is read again is not counted again
_HASH_BYTES = 8
_AT_STEP = 1000  # parts of one message that can be told apart by `at`


class _Time(msgspec.Struct, gc=False):
    start: Any = None
    end: Any = None


class _Outcome(msgspec.Struct, gc=False):
    exit: Any = None


class _State(msgspec.Struct, gc=False):
    status: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")
    output: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")
    metadata: _Outcome | None = None
    time: _Time | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    summary: str | None = None
    content: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    time: _Time | None = None
    tool: str | None = None
    callID: str | None = None
    state: _State | None = None


class _Memory(msgspec.Struct, array_like=True):
    """The state between two reads, ids as hashes.

    waiting  messages whose rest is left alone until they change, and when they last had
    counted  losses that were counted, oldest first
    """

    waiting: dict[bytes, int] = {}
    counted: bytes = b""


_part = msgspec.json.Decoder(_Part).decode
_string = msgspec.json.Decoder(str).decode
_memory = msgspec.msgpack.Decoder(_Memory).decode


class _Row(msgspec.Struct, gc=False):
    """One row, every value made what it should be."""

    updated: int
    id: str
    session: str
    message: str
    parent: str
    role: str
    created: int
    is_complete: bool
    failed: str
    is_summary: bool
    ordinal: int
    size: int
    data: bytes | None


class _Reader:
    def __init__(self, name: str, memory: _Memory) -> None:
        self.is_at_rest = name == UNFINISHED
        self.waiting = {
            mark[:_HASH_BYTES]: memory.waiting[mark] for mark in list(memory.waiting)[:MAX_WAITING]
        }
        self.counted = memory.counted[: len(memory.counted) // _HASH_BYTES * _HASH_BYTES]
        self.events: list[Event] = []
        self.losses = Losses()
        self.sessions: dict[tuple[str, str], Session] = {}

    def read(self, values: Sequence[object]) -> None:
        if len(values) != len(COLUMNS):
            return
        row = self._row(values)
        if not row.session:
            return
        self._learn(row, values)
        if row.role not in ("user", "assistant"):
            self._lose(row, "role", row.message)
            return
        if row.failed and row.failed != "MessageAbortedError":
            self._lose(row, "api-error", row.message)
        if self.waiting:
            mark = _mark(row.message)
            if not self.is_at_rest and self.waiting.get(mark) == row.updated:
                return
            self.waiting.pop(mark, None)
        if row.data is None:
            if row.size:
                self._lose(row, "oversized", row.id)
            return
        part = self._decoded(row, row.data)
        if part is None:
            return
        if not _is_final(row, part):
            self.waiting[_mark(row.message)] = row.updated
            if len(self.waiting) > MAX_WAITING:
                del self.waiting[next(iter(self.waiting))]
            return
        if row.size > MAX_RECORD_BYTES:
            self._lose(row, "shortened", row.id)
        self._part(row, part)

    def _row(self, values: Sequence[object]) -> _Row:
        (updated, id_, session, message, parent, _, _, _, _, role) = values[:10]
        (created, completed, failed, summary, settled, ordinal, size, data) = values[10:]
        is_complete = (
            self.is_at_rest
            or word(role) == "user"
            or completed is not None
            or failed is not None
            or settled is not None
        )
        return _Row(
            updated=whole(updated),
            id=word(id_),
            session=word(session),
            message=word(message),
            parent=word(parent),
            role=word(role),
            created=milliseconds(created),
            is_complete=is_complete,
            failed=word(failed),
            is_summary=whole(summary) == 1,
            ordinal=whole(ordinal),
            size=whole(size),
            data=data if isinstance(data, bytes) else text_of(data).encode("utf-8") or None,
        )

    def _learn(self, row: _Row, values: Sequence[object]) -> None:
        if (row.session, row.parent) in self.sessions:
            return
        self.sessions[row.session, row.parent] = Session(
            id=row.session,
            cwd=text_of(values[5]),
            title=clip(text_of(values[6]), 512)[0],
            started=rfc3339(values[8]),
            version=word(values[7]),
            is_side=bool(row.parent),
            parent=row.parent,
        )
        if row.parent:
            self._count(row.parent, "sub-agent", row.session)

    def _decoded(self, row: _Row, data: bytes) -> _Part | None:
        try:
            return _part(data)
        except FAULTS:
            pass
        repaired = whole_halves(data).decode("utf-8", "replace").encode("utf-8")
        try:
            part = _part(repaired)
        except msgspec.ValidationError:
            self._lose(row, "unknown-shape", row.id)
            return None
        except FAULTS:
            self._lose(row, "malformed", row.id)
            return None
        if b"\xef\xbf\xbd" in repaired and not _is_utf8(data):
            self._lose(row, "encoding", row.id)
        return part

    # ---------------------------------------------------------------------------- the parts

    def _part(self, row: _Row, part: _Part) -> None:
        kind = part.type
        if kind == "text":
            self._text(row, part, part.text or "")
        elif kind == "tool":
            self._tool(row, part)
        elif kind == "reasoning":
            self._lose(row, "reasoning", row.id)
        elif kind == "file":
            self._lose(row, "image", row.id)
        elif kind == "compaction":
            summary = part.summary or part.text or part.content or ""
            if summary.strip():
                self._add(row, part, "compaction", "assistant", summary, {})
        elif kind not in SILENT:
            self._lose(row, "unknown-type", row.id)

    def _text(self, row: _Row, part: _Part, text: str) -> None:
        if not text or text.isspace():
            return
        if is_own(text):
            self._lose(row, "own-packet", row.id)
        elif part.synthetic or part.ignored:
            self._lose(row, "synthetic", row.id)
        elif row.is_summary:
            self._add(row, part, "compaction", "assistant", text, {"summary_type": "compaction"})
        elif row.role == "user":
            self._add(row, part, "message", "user", unquoted(text), {})
        else:
            status = self._status(row, part)
            self._add(row, part, "message", "assistant", text, {"status": status} if status else {})

    def _status(self, row: _Row, part: _Part) -> str:
        """Empty for a reply that was written to its end."""
        if row.failed:
            return "aborted" if row.failed == "MessageAbortedError" else "error"
        return "unfinished" if part.time is not None and part.time.end is None else ""

    def _tool(self, row: _Row, part: _Part) -> None:
        state = part.state or _State()
        is_done = state.status in ("completed", "error")
        name = clip(part.tool or "tool", 256)[0]
        about: dict[str, str | bool | int] = {
            "tool": name,
            "tool_call_id": clip(part.callID or "", 512)[0],
            "status": state.status if is_done else "unfinished",
        }
        body, is_cut = flat(state.input, MAX_EVENT_BYTES - 4 * len(name) - 2)
        if is_cut:
            self._lose(row, "shortened", row.id)
        start = state.time.start if state.time else None
        self._add(row, part, "tool_call", "assistant", f"{name}: {body}", about, when=start)
        if not is_done:
            return
        is_error = state.status == "error"
        result, is_cut = flat(state.error if is_error else state.output, 2 * MAX_EVENT_BYTES)
        if is_own(result):
            self._lose(row, "own-packet", row.id)
            return
        about["is_error"] = is_error
        status = state.metadata.exit if state.metadata else None
        if isinstance(status, int) and not isinstance(status, bool) and -(1 << 31) <= status < 1 << 31:
            about["exit_code"] = status
        end = state.time.end if state.time else None
        self._add(row, part, "tool_result", "tool", result, about, block=1, when=end)

    def _add(
        self,
        row: _Row,
        part: _Part,
        kind: Kind,
        role: str,
        content: str,
        about: dict[str, str | bool | int] | dict[str, str],
        *,
        block: int = 0,
        when: object = None,
    ) -> None:
        content, is_cut = clip(content)
        if is_cut and row.size <= MAX_RECORD_BYTES:
            self._lose(row, "shortened", row.id)
        start = part.time.start if part.time else None
        own = part.callID or (milliseconds(start) or "")
        self.events.append(
            Event(
                session=row.session,
                origin=f"{row.created}/{row.role}/{own}" if row.created else f"{row.session}/{row.id}",
                kind=kind,
                role=role,
                content=content,
                at=row.created * _AT_STEP + min(row.ordinal, _AT_STEP - 1),
                record=row.id,
                block=block,
                occurred_at=rfc3339(when) or rfc3339(start) or rfc3339(row.created),
                is_side=bool(row.parent),
                metadata={**about},
            )
        )

    # --------------------------------------------------------------------------- losses

    def _lose(self, row: _Row, what: str, which: str) -> None:
        self._count(row.session, what, f"{row.session}/{which}")

    def _count(self, session: str, what: str, which: str) -> None:
        """Count a loss, unless the same one was counted in an earlier read of the row."""
        mark = _mark(f"{what}/{which}")
        found = self.counted.find(mark)
        while found >= 0 and found % _HASH_BYTES:
            found = self.counted.find(mark, found + 1)
        if found < 0:
            self.counted = (self.counted + mark)[-MAX_COUNTED * _HASH_BYTES :]
            self.losses.add(session, what)


def parse_rows(name: str, rows: Sequence[Sequence[object]], state: bytes) -> Parsed:
    """Turn rows (`COLUMNS`) into events.

    name      `UNFINISHED` for rows of messages that will not change any more, complete or not
    events    `record` is the part's id; `at` is the message's time and the part's place in it, so that it
              orders a session also when its rows come in several reads, and is the same after a fork
    consumed  the number of rows: all of them, since what must wait comes again when it has changed
    raises    nothing: what cannot be read is a loss
    """
    try:
        memory = _memory(state) if state else _Memory()
    except FAULTS:
        memory = _Memory()
    reader = _Reader(name, memory)
    for row in rows:
        reader.read(row)
    reader.events.sort(key=lambda event: (event.at, event.block))
    return Parsed(
        events=reader.events,
        losses=reader.losses.done(),
        sessions=tuple(reader.sessions.values()),
        consumed=len(rows),
        state=msgspec.msgpack.encode(_Memory(waiting=reader.waiting, counted=reader.counted)),
    )


def _is_final(row: _Row, part: _Part) -> bool:
    if row.is_complete:
        return True
    if part.type == "tool":
        return part.state is not None and part.state.status in ("completed", "error")
    if part.type in ("text", "reasoning"):
        return part.time is not None and part.time.end is not None
    return True


def unquoted(text: str) -> str:
    """What a person typed behind `opencode run`, which stores a prompt with a space in it in double quotes.

    Only a text that is one such prompt as a whole is changed: quotes at both ends, every quote inside with a
    backslash. A fork copies the text and not how it was given, so nothing else may decide.
    """
    if len(text) < 3 or text[0] != '"' or text[-1] != '"' or " " not in text:
        return text
    inner = text[1:-1]
    if '"' in inner.replace('\\"', "") or inner.endswith("\\"):
        return text
    return inner.replace('\\"', '"')


def flat(raw: msgspec.Raw, limit: int) -> tuple[str, bool]:
    """A JSON value as text within `limit` bytes: a string is itself, anything else compact JSON."""
    data = bytes(raw)
    if not data or data == b"null":
        return "", False
    if data[:1] == b'"':
        try:
            return clip(_string(data), limit)
        except FAULTS:
            pass
    return compact(data, limit)


def word(value: object) -> str:
    """An id, a role or a version: text of at most 512 bytes, else empty."""
    text = text_of(value)
    return text if len(text) <= 512 else ""


def text_of(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return ""


def whole(value: object) -> int:
    """A count or a time in milliseconds, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -(1 << 62) < value < 1 << 62:
        return 0
    return int(value)


def _mark(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_HASH_BYTES).digest()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
