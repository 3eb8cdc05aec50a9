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


async def read_message(stream: trio.abc.ReceiveStream) -> tuple[bytes, bytes] | None:
    """The kind and body of one request; None when the peer went away without a byte.

    raises BadRequest: not our framing, an unknown kind, a body over its kind's limit, or cut in the middle
    """
    held = bytearray()
    while b"\n" not in held:
        if len(held) > HEADER_BYTES:
            raise BadRequest("the message does not begin with a memd1 header line")
        more = await stream.receive_some(CHUNK)
        if not more:
            if held:
                raise BadRequest("the message ends within its header line")
            return None
        held += more
        if not held.startswith(b"memd1 "[: len(held)]):
            raise BadRequest("the message does not begin with a memd1 header line")
    end = held.index(b"\n")
    words = bytes(held[:end]).split(b" ")
    if len(words) != 3 or words[1] not in LIMITS or not words[2].isdigit() or len(words[2]) > 12:
        raise BadRequest("the header line is not `memd1 KIND LENGTH`")
    kind, length = words[1], int(words[2])
    if length > LIMITS[kind]:
        raise BadRequest(f"the message has {length} bytes, more than the {LIMITS[kind]} allowed")
    body = held[end + 1 :]
    while len(body) < length:
        more = await stream.receive_some(min(CHUNK, length - len(body)))
        if not more:
            raise BadRequest(f"the message ends after {len(body)} of {length} bytes")
        body += more
    return kind, bytes(body[:length])


async def send_message(stream: trio.abc.SendStream, kind: bytes, body: bytes) -> None:
    await stream.send_all(frame(kind, body))


def rendered(text: str, exit_status: int = 0) -> bytes:
    """The body of a `t` reply: what the client prints and how it exits."""
    return b"%d\n%b" % (exit_status, text.encode("utf-8", "replace"))
