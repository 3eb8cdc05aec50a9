"""The entries of a Command Code session file: their fields as they are read, and the words in them.

source  Command Code 1.64.0 (format 3), session files and program read 2026-11
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

VERSION = 3
SILENT = frozenset({"custom", "effort_change", "label", "model_change", "session", "session_info"})
"""Bookkeeping: entry types that nobody would miss in a conversation. `custom` is what mods remember."""

TYPED = frozenset({"user", "steering", "followup"})
"""Sources of what a person typed: at the prompt, while the model was at work, and for when it would be done.
Sessions of older formats that were converted have no source at all."""

RESULTS = "tool"
MODEL = "model"
REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
IMAGES = frozenset({"image", "document"})
PACKET_BYTES = (b"<!-- memd:", b"<!-- ai-memory:managed-workstream-packet")
OPENERS = tuple(
    b'{"type":"%b' % kind
    for kind in (
        b'message"',
        b'compaction"',
        b'branch_summary"',
        b"session",
        b"custom",
        b"model_",
        b"effort_",
    )
)


class Block(msgspec.Struct, gc=False):
    """A piece of a message."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    tool_use_id: str | None = None
    content: list[msgspec.Raw] | None = None
    is_error: bool | None = None


class Piece(msgspec.Struct, gc=False):
    """A piece of a tool's result."""

    type: str = ""
    text: str | None = None


class Meta(msgspec.Struct, gc=False):
    """Where a message comes from. `injected` is what hooks added to it; it is no part of its content."""

    source: str | None = None
    createdAt: Any = None
    isMeta: Any = None
    isAutomated: Any = None
    isSummary: Any = None
    injected: msgspec.Raw = msgspec.Raw(b"")


class Message(msgspec.Struct, gc=False):
    role: str = ""
    content: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    meta: Meta | None = None


class Entry(msgspec.Struct, gc=False):
    """What every entry is read for. What is not named is skipped unread."""

    type: str = ""
    id: str | None = None
    parentId: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp: str | None = None
    message: Message | None = None
    summary: str | None = None
    name: str | None = None


class Attached(msgspec.Struct, gc=False):
    """What a mod put in front of the model."""

    content: str | list[Piece] | None = None


class Header(msgspec.Struct, gc=False):
    """The first line. A fork's names its parent as `id` and itself as `sessionId`; a clone's itself as `id`
    and its parent's file as `parentSession`."""

    type: str = ""
    version: Any = None
    id: str = ""
    sessionId: str | None = None
    timestamp: str = ""
    cwd: str = ""
    parentSession: str | None = None


class Memory(msgspec.Struct):
    """The state between two chunks."""

    session: str = ""
    has_header: bool = False


decode_entry = msgspec.json.Decoder(Entry).decode
decode_block = msgspec.json.Decoder(Block).decode
decode_piece = msgspec.json.Decoder(Piece).decode
decode_attached = msgspec.json.Decoder(Attached).decode
decode_header = msgspec.json.Decoder(Header).decode
decode_memory = msgspec.msgpack.Decoder(Memory).decode
encode_memory = msgspec.msgpack.Encoder().encode


def is_header(header: Header) -> bool:
    """Whether it is one of the format that is known here."""
    is_version = type(header.version) is int and header.version == VERSION
    if header.type != "session" or not is_version or not header.cwd.startswith("/"):
        return False
    try:
        return datetime.fromisoformat(header.timestamp).tzinfo is not None
    except ValueError:
        return False
