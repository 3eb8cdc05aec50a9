"""How events are named and narrowed in the database: ids as they are stored, tokens of `events.scope`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_cut = re.compile(r"[^a-z0-9]+")

_KINDS: Final = {
    "message": "km",
    "tool_call": "kc",
    "tool_result": "kr",
    "compaction": "kz",
    "checkpoint": "kp",
    "annotation": "ka",
}
_ROLES: Final = {"user": "ru", "assistant": "ra", "tool": "rt", "system": "rs"}

Stored = bytes | str


def key(event_id: str) -> Stored:
    """How an id is stored: the bytes of a digest where it is one, else the text."""
    if len(event_id) == 71 and event_id.startswith("native:"):
        try:
            return bytes.fromhex(event_id[7:])
        except ValueError:
            return event_id
    return event_id


def keys(event_ids: Sequence[str]) -> Sequence[Stored]:
    """`key` of many; nearly always all of them are digests."""
    try:
        stored = [bytes.fromhex(one[7:]) for one in event_ids if len(one) == 71 and one.startswith("native:")]
    except ValueError:
        stored = []
    return stored if len(stored) == len(event_ids) else [key(one) for one in event_ids]


def spelled(stored: Stored) -> str:
    return stored if isinstance(stored, str) else "native:" + stored.hex()


def probe(stored: Stored) -> tuple[Stored, Stored]:
    """What `schema.BY_ID` compares with."""
    return (stored if isinstance(stored, str) else stored[:8]), stored


def harness(name: str) -> str:
    return "h" + _cut.sub("", name.lower())


def kind(name: str) -> str:
    """A kind that there is not gets a token that no event has."""
    return _KINDS.get(name, "kx" + _cut.sub("", name.lower()))


def role(name: str) -> str:
    """Any role; those that everybody uses are short."""
    return _ROLES.get(name, "rx" + _cut.sub("", name.lower()))
