"""Records of agents' transcripts, made by hand: one JSON object a line."""

from __future__ import annotations

import json
from typing import Any

from memd.harness import registry
from memd.harness.model import Event, Parsed
from support_order import arrange

SESSION = "0b7c3d1e-0000-4000-8000-000000000001"
CWD = "/home/dev/proj"


def line(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def claude(kind: str, uuid: str, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A record of Claude Code with the common keys."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-02-03T10:00:00.000Z",
        "cwd": CWD,
        "sessionId": SESSION,
        "version": "2.1.197",
        **fields,
    }


def user(uuid: str, content: object, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    return claude("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def assistant(uuid: str, content: object, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    return claude("assistant", uuid, parent, message={"role": "assistant", "content": content}, **fields)


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    """A record of a Codex rollout."""
    return {"timestamp": "2026-02-03T10:00:00.000Z", "type": kind, "payload": payload}


def meta(**fields: Any) -> dict[str, Any]:
    return codex("session_meta", id=SESSION, cwd=CWD, cli_version="0.171.0", **fields)


def message(role: str, *texts: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [{"type": kind, "text": text} for text in texts]
    return codex("response_item", type="message", role=role, content=parts, **fields)


def parse(harness: str, *records: object, state: bytes = b"", base: int = 0) -> Parsed:
    """Whole records through the adapter in one chunk; bytes are lines that stand there as they are."""
    data = b"".join(record if isinstance(record, bytes) else line(record) for record in records)
    adapter = registry.resolve(harness)
    assert adapter.parse is not None
    parsed = adapter.parse(data, base, state)
    assert parsed.consumed == len(data)
    return parsed


def events(harness: str, *records: object) -> list[Event]:
    return arrange([parse(harness, *records)])


def losses(parsed: Parsed) -> dict[str, int]:
    return {loss.what: loss.count for loss in parsed.losses}


def texts(harness: str, *records: object) -> list[tuple[str, str, str]]:
    return [(event.kind, event.role, event.content) for event in events(harness, *records)]
