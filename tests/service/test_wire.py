from __future__ import annotations

import pytest
from trio.testing import memory_stream_pair

from memctl import hook
from memd import wire
from memd.errors import BadRequest

GOLDEN = {
    (b"j", b'{"op":"ping"}'): b'memd1 j 13\n{"op":"ping"}',
    (b"h", b""): b"memd1 h 0\n",
    (b"h", b"claude\0Stop\0\n\xff"): b"memd1 h 14\nclaude\0Stop\0\n\xff",
}


async def _read(*parts: bytes) -> tuple[bytes, bytes] | None:
    client, server = memory_stream_pair()
    for part in parts:
        await client.send_all(part)
    await client.send_eof()
    return await wire.read_message(server)


@pytest.mark.parametrize("message", GOLDEN, ids=lambda m: m[1][:10])
def test_client_frames_golden_bytes(message: tuple[bytes, bytes]) -> None:
    assert hook.frame(*message) == GOLDEN[message]


@pytest.mark.parametrize("message", GOLDEN, ids=lambda m: m[1][:10])
async def test_daemon_reads_golden_bytes_however_they_are_split(message: tuple[bytes, bytes]) -> None:
    golden = GOLDEN[message]
    assert await _read(golden) == message
    assert await _read(*(golden[i : i + 1] for i in range(len(golden)))) == message


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"memd2 j 2\n{}",
        b"memd1 x 2\n{}",
        b"memd1 j -2\n{}",
        b"memd1 j 99999999999999999999\n",
        b"memd1 j 1048577\n",
        b"memd1 h 16777217\n",
        b"memd1 j 5\n{}",
        b"memd1 j",
        b"\0" * 200,
        b"memd1 " + b"j" * 200,
    ],
)
async def test_anything_else_is_refused_by_name(garbage: bytes) -> None:
    with pytest.raises(BadRequest):
        await _read(garbage)


async def test_a_peer_that_leaves_without_a_byte_is_no_error() -> None:
    assert await _read() is None
