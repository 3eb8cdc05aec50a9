"""The daemon's side of the framing: `memd1 KIND LENGTH`, a newline, LENGTH bytes.

The client's side, which the hook path speaks too, is in `memctl.hook`; golden bytes test both.
"""

from __future__ import annotations

from typing import Literal

import trio

from memctl.paths import HEADER_BYTES, MAX_HOOK_BYTES, MAX_JSON_BYTES, frame
from memd.errors import BadRequest

Kind = Literal["j", "h", "t"]

LIMITS = {b"j": MAX_JSON_BYTES, b"h": MAX_HOOK_BYTES}
CHUNK = 65536


class Incoming:
    """One message as it comes in, in whatever pieces."""

    __slots__ = ("_held", "_kind", "_length")

    def __init__(self) -> None:
        self._held = bytearray()  # of the header line, then of the body
        self._kind = b""
        self._length = -1

    @property
    def has_header(self) -> bool:
        return self._length >= 0

    @property
    def room(self) -> int:
        """How many bytes to read next at most."""
        return min(CHUNK, self._length - len(self._held)) if self.has_header else CHUNK

    def take(self, more: bytes | bytearray) -> tuple[bytes, bytes] | None:
        """The kind and body of the message, as soon as it is whole. What follows it is left out.

        raises BadRequest: not our framing, an unknown kind, or a body over its kind's limit
        """
        held = self._held
        held += more
        if not self.has_header:
            if not held.startswith(b"memd1 "[: len(held)]):
                raise BadRequest("the message does not begin with a memd1 header line")
            end = held.find(b"\n")
            if end < 0:
                if len(held) > HEADER_BYTES:
                    raise BadRequest("the message does not begin with a memd1 header line")
                return None
            self._kind, self._length = _header(bytes(held[:end]))
            del held[: end + 1]
        return (self._kind, bytes(held[: self._length])) if len(held) >= self._length else None

    def end(self) -> None:
        """The peer says no more, and the message is not whole. raises BadRequest unless nothing was said"""
        if self.has_header:
            raise BadRequest(f"the message ends after {len(self._held)} of {self._length} bytes")
        if self._held:
            raise BadRequest("the message ends within its header line")


def _header(line: bytes) -> tuple[bytes, int]:
    words = line.split(b" ")
    if len(words) != 3 or words[1] not in LIMITS or not words[2].isdigit() or len(words[2]) > 12:
        raise BadRequest("the header line is not `memd1 KIND LENGTH`")
    kind, length = words[1], int(words[2])
    if length > LIMITS[kind]:
        raise BadRequest(f"the message has {length} bytes, more than the {LIMITS[kind]} allowed")
    return kind, length


async def read_message(stream: trio.abc.ReceiveStream) -> tuple[bytes, bytes] | None:
    """The kind and body of one request; None when the peer went away without a byte.

    raises BadRequest: not our framing, an unknown kind, a body over its kind's limit, or cut in the middle
    """
    incoming = Incoming()
    while more := await stream.receive_some(incoming.room):
        message = incoming.take(more)
        if message is not None:
            return message
    incoming.end()
    return None


async def send_message(stream: trio.abc.SendStream, kind: bytes, body: bytes) -> None:
    await stream.send_all(frame(kind, body))


def rendered(text: str, exit_status: int = 0) -> bytes:
    """The body of a `t` reply: what the client prints and how it exits."""
    return b"%d\n%b" % (exit_status, text.encode("utf-8", "replace"))
