"""Crush's messages, one row each: the grammar of `parts`.

    [{"type": "text", "data": {"text": ".."}}, {"type": "tool_call", "data": {..}}, {"type": "finish", ..}]

A row is written when its message begins and again as it grows, so only complete messages are read: those of a
person or a tool, those with a `finish` part, those that another message follows, and at rest whatever there
is. The queries see to that (`memd.harness.crush`); here every row is taken as it is.

    source  descriptions of Crush up to 0.96 and its published schema, read 2026-11; no store was at hand
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memd.harness.losses import Losses
from memd.harness.marks import Counted, is_utf8, origin_of
from memd.harness.model import MAX_EVENT_BYTES, MAX_RECORD_BYTES, Event, Kind, Parsed, Session
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, clip, compact, whole_halves
from memd.harness.times import rfc3339

COLUMNS = (
    "updated",  # when the message was last changed, or followed by another: milliseconds
    "id",  # the message's
    "session",
    "parent",  # the session that spawned this one
    "cwd",  # the directory it belongs to
    "title",
    "started",  # the session's creation
    "role",
    "summary",  # 1: it is the summary of a compaction
    "place",  # of the message among all
    "touched",  # when it was last changed
    "size",  # bytes of the parts as stored
    "parts",  # null when they are too large to be read
)

SILENT = frozenset({"finish"})
_AT_STEP = 1000  # parts of one message that can be told apart by `at`
_MAX_PLACE = 1 << 50


class _Part(msgspec.Struct, gc=False):
    type: Any = None
    data: msgspec.Raw = msgspec.Raw(b"")


class _Data(msgspec.Struct, gc=False):
    text: Any = None
    content: msgspec.Raw = msgspec.Raw(b"")
    id: Any = None
    tool_call_id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"")
    data: msgspec.Raw = msgspec.Raw(b"")
    finished: Any = None
    is_error: Any = None


class _Object(msgspec.Struct, gc=False):
    text: Any = None
    content: Any = None
    output: Any = None


_parts = msgspec.json.Decoder(list[_Part]).decode
_data = msgspec.json.Decoder(_Data).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_object = msgspec.json.Decoder(_Object).decode
_string = msgspec.json.Decoder(str).decode

About = dict[str, str | bool | int]


class _Row(msgspec.Struct, gc=False):
    """One row, every value made what it should be."""

    id: str
    session: str
    parent: str
    role: str
    is_summary: bool
    place: int
    touched: str
    size: int
    parts: bytes | None


class _Reader:
    def __init__(self, state: bytes) -> None:
        self.counted = Counted(state)
        self.events: list[Event] = []
        self.losses = Losses()
        self.sessions: dict[tuple[str, str], Session] = {}

    def read(self, values: Sequence[object]) -> None:
        if len(values) != len(COLUMNS):
            return
        (_, id_, session, parent, cwd, title, started, role, summary, place, touched, size, parts) = values
        row = _Row(
            id=_word(id_),
            session=_word(session),
            parent=_word(parent),
            role=_word(role),
            is_summary=_whole(summary) != 0,
            place=_whole(place),
            touched=rfc3339(touched),
            size=_whole(size),
            parts=parts if isinstance(parts, bytes) else _text_of(parts).encode("utf-8") or None,
        )
        if not row.session or not row.id:
            return
        self._learn(row, _text_of(cwd), _text_of(title), rfc3339(started))
        if row.parts is None:
            self._lose(row, "oversized" if row.size else "unknown-shape")
            return
        if row.size > MAX_RECORD_BYTES:
            self._lose(row, "shortened")
        for index, part in enumerate(self._decoded(row, row.parts)):
            self._part(row, part, index)

    def _learn(self, row: _Row, cwd: str, title: str, started: str) -> None:
        if (row.session, row.parent) in self.sessions:
            return
        self.sessions[row.session, row.parent] = Session(
            id=row.session,
            cwd=cwd,
            title=clip(title, 512)[0],
            started=started,
            is_side=bool(row.parent),
            parent=row.parent,
        )
        if row.parent and self.counted.is_new(f"{row.parent}/{row.session}"):
            self.losses.add(row.parent, "sub-agent")

    def _decoded(self, row: _Row, stored: bytes) -> list[_Part]:
        if not is_utf8(stored):
            self._lose(row, "encoding")
            stored = stored.decode("utf-8", "replace").encode("utf-8")
        try:
            return _parts(whole_halves(stored))
        except msgspec.ValidationError:
            self._lose(row, "unknown-shape")
        except FAULTS:
            self._lose(row, "malformed")
        return []

    # ------------------------------------------------------------------------------ the parts

    def _part(self, row: _Row, part: _Part, index: int) -> None:
        kind = part.type if isinstance(part.type, str) else ""
        if kind in SILENT:
            return
        if kind == "reasoning":
            self._lose(row, "reasoning", index)
            return
        if kind in ("binary", "image_url"):
            self._lose(row, "image", index)
            return
        if kind not in ("text", "tool_call", "tool_result"):
            self._lose(row, "unknown-block", index)
            return
        try:
            data = _data(part.data)
        except FAULTS:
            self._lose(row, "unknown-shape", index)
            return
        if kind == "text":
            self._text(row, data, index)
        elif kind == "tool_call":
            self._call(row, data, index)
        else:
            self._result(row, data, index)

    def _text(self, row: _Row, data: _Data, index: int) -> None:
        text = data.text if isinstance(data.text, str) else visible(data.content)
        if not text or text.isspace():
            return
        if row.role not in ("user", "assistant"):
            self._lose(row, "role", index)
        elif is_own(text):
            self._lose(row, "own-packet", index)
        elif row.is_summary:
            self._add(row, "compaction", "assistant", text, index, {"summary_type": "compaction"})
        else:
            self._add(row, "message", row.role, text, index, {})

    def _call(self, row: _Row, data: _Data, index: int) -> None:
        if data.finished is False:
            self._lose(row, "unfinished", index)
            return
        name = clip(data.name, 256)[0] if isinstance(data.name, str) and data.name else "tool"
        about: About = {"tool": name}
        if isinstance(data.id, str) and data.id:
            about["tool_call_id"] = clip(data.id, 512)[0]
        self._add(row, "tool_call", "assistant", f"{name}: {visible(data.input)}", index, about)

    def _result(self, row: _Row, data: _Data, index: int) -> None:
        text = visible(data.content) or visible(data.data)
        if is_own(text):
            self._lose(row, "own-packet", index)
            return
        about: About = {}
        if isinstance(data.name, str) and data.name:
            about["tool"] = clip(data.name, 256)[0]
        if isinstance(data.tool_call_id, str) and data.tool_call_id:
            about["tool_call_id"] = clip(data.tool_call_id, 512)[0]
        if isinstance(data.is_error, bool):
            about["is_error"] = data.is_error
        self._add(row, "tool_result", "tool", text, index, about)

    def _add(self, row: _Row, kind: Kind, role: str, content: str, index: int, about: About) -> None:
        content, is_cut = clip(content)
        if is_cut and row.size <= MAX_RECORD_BYTES:
            self._lose(row, "shortened", index)
        self.events.append(
            Event(
                session=row.session,
                origin=origin_of(row.session, row.id),
                kind=kind,
                role=role,
                content=content,
                at=row.place * _AT_STEP + min(index, _AT_STEP - 1),
                record=row.id,
                block=index,
                occurred_at=row.touched,
                is_side=bool(row.parent),
                metadata=about,
            )
        )

    def _lose(self, row: _Row, what: str, index: int = -1) -> None:
        """Count a loss, unless the same one was counted in an earlier read of the row."""
        if self.counted.is_new(f"{what}/{row.session}/{row.id}/{index}"):
            self.losses.add(row.session, what)


def parse_rows(name: str, rows: Sequence[Sequence[object]], state: bytes) -> Parsed:
    """Turn rows (`COLUMNS`) into events.

    events    `record` is the message's id, `block` the part's place in it; `at` orders a session
    consumed  the number of rows
    raises    nothing: what cannot be read is a loss
    """
    reader = _Reader(state)
    for row in rows:
        reader.read(row)
    reader.events.sort(key=lambda event: (event.at, event.block))
    return Parsed(
        events=reader.events,
        losses=reader.losses.done(),
        sessions=tuple(reader.sessions.values()),
        consumed=len(rows),
        state=reader.counted.state,
    )


def visible(raw: msgspec.Raw | bytes, depth: int = 8) -> str:
    """What a JSON value says: a string itself; of an array what its items say, a line each; of an object its
    text, content or output where that is a string; anything else as compact JSON. At most what an event
    holds.
    """
    data = bytes(raw).strip()
    if not data or data == b"null":
        return ""
    try:
        if data[:1] == b'"':
            return _string(data)
        if data[:1] == b"[" and depth:
            found = (visible(item, depth - 1) for item in _items(data))
            return "\n".join(text for text in found if text)
        if data[:1] == b"{":
            object_ = _object(data)
            for value in (object_.text, object_.content, object_.output):
                if isinstance(value, str):
                    return value
    except FAULTS:
        pass
    return compact(data, MAX_EVENT_BYTES + 1)[0]


def _word(value: object) -> str:
    """An id, a role: text of at most 512 bytes, else empty."""
    text = _text_of(value)
    return text if len(text.encode("utf-8")) <= 512 else ""


def _text_of(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return ""


def _whole(value: object) -> int:
    """A count or a place, else 0."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < _MAX_PLACE else 0  # type: ignore[operator, return-value]
