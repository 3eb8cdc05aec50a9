"""Ids of workstreams, runs and handoffs: UUIDs of version 7, which sort by the time they were made. Pure."""

from __future__ import annotations

import uuid


def new_id(now_ms: int, noise: bytes) -> str:
    """`noise` is 10 random bytes. RFC 9562, section 5.7."""
    value = (now_ms & ((1 << 48) - 1)) << 80 | int.from_bytes(noise[:10], "big")
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(3 << 62) | 2 << 62
    return str(uuid.UUID(int=value))
