"""Antigravity CLI: where its conversations lie, and where each was begun.

    <home>/.gemini/antigravity-cli/conversations/<uuid>.db   one SQLite file per conversation
    <home>/.gemini/antigravity-cli/history.jsonl             prompts of all of them (`antigravity_history`)

A conversation's database says in `trajectory_metadata_blob`, in field 1 of field 1 of a protobuf message, the
URI of the directory it was begun in. Everything else there, above all the steps, is in a form that is not
documented, and is never read: prompts come from the list, calls of tools from hooks. One loss says so.

    source  built from descriptions of Antigravity CLI 1.3, read 2026-11; no store of the program was at hand
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from memd.harness import antigravity_history as history
from memd.harness.antigravity_history import HISTORY
from memd.harness.antigravity_hooks import HOOKS
from memd.harness.antigravity_launch import LAUNCH
from memd.harness.losses import CLASSES
from memd.harness.model import Adapter, Environment, Loss, Near, Parsed, Query, Session, Store
from memd.harness.records import FAULTS
from memd.harness.times import rfc3339

CONVERSATION, PROMPTS = "conversation", "prompts"
MAX_BLOB_BYTES = 1 << 20

_NAME = re.compile(rb"conversations/([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.db")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")

METADATA = Query(
    name="metadata",
    sql=f"""
select 1, id, case when octet_length(data) <= {MAX_BLOB_BYTES} then cast(data as blob) end
  from trajectory_metadata_blob where id = 'main' and (1, id) > ( :updated , :id ) order by 1, 2 limit :limit
""",
    columns=("updated", "id", "data"),
    overlap_ms=1,  # the one row is read every time: what it says may come later than it
)


class _Memory(msgspec.Struct, array_like=True):
    """Of a conversation, between two reads.

    is_told     the loss was counted
    is_settled  nothing more will be learnt of its first prompt
    """

    session: str = ""
    cwd: str = ""
    is_told: bool = False
    is_settled: bool = False


_memory = msgspec.msgpack.Decoder(_Memory).decode


def stores(environment: Environment) -> tuple[Store, ...]:
    """No variable moves them."""
    root = environment.home.rstrip(b"/") + b"/.gemini/antigravity-cli"
    return (
        Store(root=root, patterns=("conversations/*.db",), flavor=CONVERSATION, database=True),
        Store(root=root, patterns=(HISTORY.decode(),), flavor=PROMPTS, rewrites=True, is_index=True),
    )


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The conversation of a database, from its name; the list of prompts holds many."""
    named = _NAME.fullmatch(path)
    if named is not None:
        return Session(id=named[1].decode("ascii"))
    return Session(id="") if path == HISTORY else None


def begin(session: Session, flavor: str) -> bytes:
    if not session.id:
        return history.begin()
    return msgspec.msgpack.encode(_Memory(session=session.id))


def parse_rows(name: str, rows: Sequence[Sequence[object]], state: bytes) -> Parsed:
    """What the metadata of one conversation say of it; nothing where they cannot be understood.

    state   names the conversation: without one there is none
    raises  nothing
    """
    memory = _remembered(state)
    if not memory.session:
        return Parsed(consumed=len(rows), state=state)
    for row in rows:
        data = row[2] if len(row) == 3 else None
        cwd = directory(data) if isinstance(data, bytes) else ""
        memory.cwd = memory.cwd or cwd
    if not memory.cwd:
        return Parsed(consumed=len(rows), state=_kept(memory))
    losses = []
    if not memory.is_told:
        losses = [Loss(session=memory.session, what="undecoded", sentence=CLASSES["undecoded"])]
        memory.is_told = True
    return Parsed(
        losses=losses,
        sessions=[Session(id=memory.session, cwd=memory.cwd)],
        consumed=len(rows),
        state=_kept(memory),
    )


def around(state: bytes, near: Near, now_ms: int) -> Parsed:
    """The first prompt of a conversation, which the list has without its id."""
    memory = _remembered(state)
    if not memory.session or not memory.cwd or memory.is_settled:
        return Parsed(state=state)
    born_ms = near.born(f"conversations/{memory.session}.db".encode())
    event, memory.is_settled = history.opener(memory.session, memory.cwd, born_ms, near, now_ms)
    session = Session(id=memory.session, cwd=memory.cwd, started=rfc3339(born_ms))
    return Parsed(
        events=[] if event is None else [event],
        sessions=[session] if born_ms else [],
        state=_kept(memory),
    )


def _remembered(state: bytes) -> _Memory:
    try:
        return _memory(state) if state else _Memory()
    except FAULTS:
        return _Memory()


def _kept(memory: _Memory) -> bytes:
    return msgspec.msgpack.encode(memory)


# ------------------------------------------------------------------------------ the metadata


def directory(blob: bytes) -> str:
    """The directory that the metadata of a conversation name; empty when they do not, or cannot be read."""
    inner = _field_1(blob)
    uri = None if inner is None else _field_1(inner)
    return "" if uri is None else _path(uri)


def _field_1(message: bytes) -> bytes | None:
    """The first length-prefixed field 1 of a protobuf message; None for none, and for anything odd before it.

    source  the public encoding of protocol buffers: a key is field number * 8 + wire type, both varints
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if at < 0 or not key >> 3:
            return None
        if wire == 0:
            _, at = _varint(message, at)
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        elif wire == 2:
            length, at = _varint(message, at)
            if at < 0 or length > len(message) - at:
                return None
            if key >> 3 == 1:
                return message[at : at + length]
            at += length
        else:
            return None
        if at < 0 or at > len(message):
            return None
    return None


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; -1 for one that is cut off, or has no room in 64 bits."""
    value = 0
    for index in range(10):
        if at + index >= len(message):
            return 0, -1
        byte = message[at + index]
        if index == 9 and byte > 1:
            return 0, -1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    return 0, -1


def _path(uri: bytes) -> str:
    """The path of a `file:` URI of this machine. A broken escape stands for itself."""
    if uri[:5].lower() != b"file:":
        return ""
    rest = uri[5:]
    if rest.startswith(b"//"):
        host, slash, rest = rest[2:].partition(b"/")
        if host not in (b"", b"localhost"):
            return ""
        rest = slash + rest
    path = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), rest)
    if not path.startswith(b"/") or b"\0" in path:
        return ""
    return path.decode("utf-8", "replace").rstrip("/") or "/"


ADAPTER = Adapter(
    name="antigravity",
    title="Antigravity",
    aliases=("antigravity-cli", "agy"),
    stores=stores,
    identify=identify,
    begin=begin,
    parse=history.parse,
    queries=(METADATA,),
    parse_rows=parse_rows,
    around=around,
    session_query="select cast('' as blob) from trajectory_metadata_blob where :session <> ''",
    launch=LAUNCH,
    hooks=HOOKS,
)
