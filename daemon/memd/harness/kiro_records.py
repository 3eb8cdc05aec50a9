"""The session files of Kiro's two engines: one JSON object a line, rewritten in place at times.

    v2   {"version":"v1","kind","data":{"message_id","content":[{"kind","data"}],"meta":{"timestamp"}}}
         kinds: Prompt, AssistantMessage, ToolResults. A record of another version is not read
    v3   {"id","timestamp":"<ISO>","payload":{"type":"user","content":".."}}
         types: user, assistant (`operationType` `Say` is what is seen), tool_call, tool_result, and what the
         engine keeps for itself (`PRIVATE`)

Ids of records are those of the session unless they are UUIDs. A record without one is known by its bytes and
by how many of the same came before it, which a rewrite does not change.

    source  built from descriptions of Kiro CLI 2.16's files, read 2026-11; no file of the program was at hand
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.harness.losses import Losses
from memd.harness.marks import is_utf8, origin_of
from memd.harness.model import MAX_EVENT_BYTES, Event, Kind, Parsed, Session
from memd.harness.packets import is_own
from memd.harness.records import FAULTS, clip, compact, recover, split, whole_halves
from memd.harness.times import rfc3339

V2, V3 = "kiro-v2", "kiro-v3"

PRIVATE = frozenset(
    {
        "ContextualHookInvoked",
        "session_event",
        "session_metadata",
        "session_start",
        "turn_end",
        "turn_start",
        "usage_summary",
    }
)
"""Records of the third engine about itself: left out, and counted."""

IMAGES = frozenset({"image", "document"})
MAX_SAME = 2000  # records without an id that are told apart from equal ones before them
_SAME_BYTES = 8

_OPENERS = (b'{"version":', b'{"id":', b'{"kind":', b'{"payload":')


class _Part(msgspec.Struct, gc=False):
    kind: Any = None
    data: msgspec.Raw = msgspec.Raw(b"")


class _Meta(msgspec.Struct, gc=False):
    timestamp: Any = None


class _Data(msgspec.Struct, gc=False):
    message_id: Any = None
    content: list[_Part] = []
    meta: _Meta | None = None


class _Payload(msgspec.Struct, gc=False):
    type: Any = None
    content: Any = None
    operationType: Any = None
    toolCallId: Any = None
    toolName: Any = None
    args: msgspec.Raw = msgspec.Raw(b"")
    success: Any = None


class _Record(msgspec.Struct, gc=False):
    """A record of either engine; `data` belongs to the second, the rest to the third."""

    version: Any = None
    kind: Any = None
    data: msgspec.Raw = msgspec.Raw(b"")
    id: Any = None
    timestamp: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"")


class _Use(msgspec.Struct, gc=False):
    name: Any = None
    toolName: Any = None
    tool_name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"")
    args: msgspec.Raw = msgspec.Raw(b"")
    arguments: msgspec.Raw = msgspec.Raw(b"")
    tool_use_id: Any = None
    toolUseId: Any = None
    id: Any = None


class _Result(msgspec.Struct, gc=False):
    tool_use_id: Any = None
    toolUseId: Any = None
    id: Any = None
    content: Any = None
    output: Any = None
    text: Any = None
    is_error: Any = None
    isError: Any = None


class Memory(msgspec.Struct, array_like=True):
    """The state between two chunks. same: records without an id, as digests, and how often each was seen."""

    session: str = ""
    flavor: str = ""
    same: dict[bytes, int] = {}


_record = msgspec.json.Decoder(_Record).decode
_data = msgspec.json.Decoder(_Data).decode
_payload = msgspec.json.Decoder(_Payload).decode
_use = msgspec.json.Decoder(_Use).decode
_result = msgspec.json.Decoder(_Result).decode
_string = msgspec.json.Decoder(str).decode
_memory = msgspec.msgpack.Decoder(Memory).decode

About = dict[str, str | bool | int]


class _Place(msgspec.Struct, gc=False):
    """Where the record at hand stands: what all of its events share."""

    at: int
    record: str
    origin: str
    occurred_at: str


class _Reader:
    """Reads the whole lines of one chunk."""

    def __init__(self, memory: Memory) -> None:
        self.session = memory.session
        self.flavor = memory.flavor
        self.same = dict(list(memory.same.items())[-MAX_SAME:])
        self.events: list[Event] = []
        self.losses = Losses()

    def read(self, lines: Sequence[bytes], at: int) -> None:
        for line in lines:
            start = at
            at += len(line) + 1
            if not is_utf8(line):
                self._lose("encoding")
                line = line.decode("utf-8", "replace").encode("utf-8")
            line = whole_halves(line)
            try:
                record = _record(line)
            except FAULTS:
                found = recover(line, _record, _is_record, _OPENERS)
                if found.what:
                    self._lose(found.what)
                if found.record is None:
                    continue
                record, line = found.record, line[found.start :]
                start += min(found.start, at - start - 1)
            if (self.flavor or (V3 if bytes(record.payload) else V2)) == V3:
                self._third(record, line, start)
            else:
                self._second(record, line, start)

    def _lose(self, what: str) -> None:
        self.losses.add(self.session, what)

    def _place(self, line: bytes, at: int, id: object, when: str) -> _Place:
        name = clip(id, 512)[0] if isinstance(id, str) else ""
        if name:
            return _Place(at, name, origin_of(self.session, name), when)
        digest = hashlib.sha256(line)
        mark = digest.digest()[:_SAME_BYTES]
        count = self.same.pop(mark, 0)
        self.same[mark] = count + 1
        if len(self.same) > MAX_SAME:
            del self.same[next(iter(self.same))]
        return _Place(at, digest.hexdigest(), f"{self.session}/{digest.hexdigest()}/{count}", when)

    # ------------------------------------------------------------------------ the second engine

    def _second(self, record: _Record, line: bytes, at: int) -> None:
        if record.version != "v1":
            self._lose("unknown-version")
            return
        if record.kind not in ("Prompt", "AssistantMessage", "ToolResults"):
            self._lose("unknown-type")
            return
        try:
            data = _data(record.data)
        except FAULTS:
            self._lose("unknown-shape")
            return
        when = rfc3339(data.meta.timestamp) if data.meta else ""
        place = self._place(line, at, data.message_id, when)
        for index, part in enumerate(data.content):
            if part.kind == "text" and record.kind != "ToolResults":
                role = "user" if record.kind == "Prompt" else "assistant"
                self._text(place, role, _text_of(part.data), index)
            elif part.kind == "toolUse" and record.kind == "AssistantMessage":
                self._use(place, part.data, index)
            elif part.kind == "toolResult" and record.kind == "ToolResults":
                self._result(place, part.data, index)
            else:
                is_image = isinstance(part.kind, str) and part.kind in IMAGES
                self._lose("image" if is_image else "unknown-block")

    def _use(self, place: _Place, data: msgspec.Raw, index: int) -> None:
        try:
            use = _use(data)
        except FAULTS:
            self._lose("unknown-shape")
            return
        name = _first(use.name, use.toolName, use.tool_name)
        given = next((bytes(raw) for raw in (use.input, use.args, use.arguments) if bytes(raw)), bytes(data))
        self._call(place, name, given, _first(use.tool_use_id, use.toolUseId, use.id), index)

    def _call(self, place: _Place, name: str, given: bytes, call: str, index: int) -> None:
        name = clip(name, 256)[0] or "tool"
        body, is_cut = compact(given, MAX_EVENT_BYTES - 4 * len(name) - 2)
        if is_cut:
            self._lose("shortened")
        about: About = {"tool": name, "tool_call_id": clip(call, 512)[0]}
        self._add(place, "tool_call", "assistant", f"{name}: {body}", index, about)

    def _result(self, place: _Place, data: msgspec.Raw, index: int) -> None:
        try:
            result = _result(data)
        except FAULTS:
            self._lose("unknown-shape")
            return
        texts = []
        for part in result.content if isinstance(result.content, list) else ():
            if isinstance(part, dict) and part.get("kind") == "text" and isinstance(part.get("data"), str):
                texts.append(part["data"])
        said = "\n".join(texts) or _first(result.content, result.output, result.text)
        if not said or said.isspace():
            said, is_cut = compact(data)
            if is_cut:
                self._lose("shortened")
        about: About = {"tool_call_id": clip(_first(result.tool_use_id, result.toolUseId, result.id), 512)[0]}
        is_error = result.isError if result.is_error is None else result.is_error
        if isinstance(is_error, bool):
            about["is_error"] = is_error
        self._outcome(place, said, index, about)

    # ------------------------------------------------------------------------- the third engine

    def _third(self, record: _Record, line: bytes, at: int) -> None:
        try:
            payload = _payload(record.payload)
        except FAULTS:
            self._lose("unknown-shape")
            return
        when = clip(record.timestamp, 64)[0] if isinstance(record.timestamp, str) else ""
        place = self._place(line, at, record.id, when)
        kind = payload.type
        if kind in ("user", "assistant"):
            if kind == "assistant" and payload.operationType != "Say":
                self._lose("reasoning")
            elif isinstance(payload.content, str):
                self._text(place, kind, payload.content, 0)
            else:
                self._lose("unknown-shape")
        elif kind == "tool_call":
            name, call = _first(payload.toolName), _first(payload.toolCallId)
            self._call(place, name, bytes(payload.args) or b"{}", call, 0)
        elif kind == "tool_result":
            if not isinstance(payload.content, str):
                self._lose("unknown-shape")
                return
            about: About = {"tool_call_id": clip(_first(payload.toolCallId), 512)[0]}
            if isinstance(payload.success, bool):
                about["is_error"] = not payload.success
            self._outcome(place, payload.content, 0, about)
        else:
            self._lose("private" if isinstance(kind, str) and kind in PRIVATE else "unknown-type")

    # ------------------------------------------------------------------------------------ both

    def _text(self, place: _Place, role: str, text: str | None, index: int) -> None:
        if text is None:
            self._lose("unknown-shape")
        elif is_own(text):
            self._lose("own-packet")
        elif text and not text.isspace():
            self._add(place, "message", role, text, index, {})

    def _outcome(self, place: _Place, text: str, index: int, about: About) -> None:
        """A tool's result; without text it is kept too: it tells a finished call from an unfinished one."""
        if is_own(text):
            self._lose("own-packet")
        else:
            self._add(place, "tool_result", "tool", text, index, about)

    def _add(self, place: _Place, kind: Kind, role: str, content: str, index: int, about: About) -> None:
        content, is_cut = clip(content)
        if is_cut:
            self._lose("shortened")
        self.events.append(
            Event(
                session=self.session,
                origin=place.origin,
                kind=kind,
                role=role,
                content=content,
                at=place.at,
                record=place.record,
                block=index,
                occurred_at=place.occurred_at,
                metadata=about,
            )
        )


def parse(chunk: bytes, base: int, state: bytes) -> Parsed:
    """Turn whole records of one session file into events.

    state   without one, each record is read as the engine's that it looks like
    raises  nothing: what cannot be read is a loss
    """
    try:
        memory = _memory(state) if state else Memory()
    except FAULTS:
        memory = Memory()
    lines, consumed = split(chunk)
    if not lines:
        return Parsed(state=state)
    reader = _Reader(memory)
    reader.read(lines, base)
    after = Memory(session=reader.session, flavor=reader.flavor, same=reader.same)
    return Parsed(
        events=reader.events,
        losses=reader.losses.done(),
        consumed=consumed,
        state=msgspec.msgpack.encode(after),
    )


def begin(session: Session, flavor: str) -> bytes:
    """The state before the first record."""
    return msgspec.msgpack.encode(Memory(session=session.id, flavor=flavor))


def _is_record(record: _Record) -> bool:
    return (isinstance(record.kind, str) and record.version is not None) or bool(bytes(record.payload))


def _text_of(data: msgspec.Raw) -> str | None:
    try:
        return _string(data)
    except FAULTS:
        return None


def _first(*values: object) -> str:
    """The first of these that is a text with something in it."""
    return next((value for value in values if isinstance(value, str) and value), "")
