"""The conversation with a client that has said its first request, on a fake clock and memory streams.

What is before that, and with very many clients, is in `test_lobby.py`.
"""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from memctl import hook
from memd import protocol
from memd.errors import BadRequest, Refused
from memd.service import server as server_module
from memd.service.peer import Peer
from memd.service.server import Answered, Server


async def echo(kind: bytes, body: bytes, peer: Peer) -> Answered:
    return Answered(kind, body)


async def _reply(stream: trio.abc.ReceiveStream) -> bytes:
    data = b""
    async with stream:
        async for chunk in stream:
            data += chunk
    return data


async def test_one_request_gets_one_reply_and_the_end() -> None:
    client, end = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(echo).converse, end, (b"j", b"{}"))
        assert await _reply(client) == b"memd1 j 2\n{}"


async def test_client_that_never_reads_its_answer_is_dropped(autojump_clock: MockClock) -> None:
    class Stuck(trio.abc.Stream):
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            await trio.lowlevel.checkpoint()
            return b""

        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            await trio.sleep_forever()

        async def wait_send_all_might_not_block(self) -> None:
            await trio.sleep_forever()

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()

    began = trio.current_time()
    await Server(echo).converse(Stuck(), (b"j", b"{}"))
    assert trio.current_time() - began == server_module.REPLY_S


async def test_garbage_is_answered_with_a_named_failure() -> None:
    client, end = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(echo).converse, end, BadRequest("that is no message"))
        failure = protocol.decode_reply((await _reply(client)).partition(b"\n")[2])
    assert isinstance(failure, protocol.Failure)
    assert failure.code == "bad_request"


@pytest.mark.parametrize(
    "body", [b"{", b"[" * 10_000, b'{"op":' * 5_000, b"{}", b'{"op":"nope"}', b'{"op":"ping","v":2}', b"\xff"]
)
def test_json_however_broken_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        protocol.decode_request(body)


async def test_a_bug_is_answered_internal_and_the_next_client_is_served() -> None:
    calls = 0

    async def answer(kind: bytes, body: bytes, peer: Peer) -> Answered:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ZeroDivisionError
        return await echo(kind, body, peer)

    server = Server(answer)
    replies = []
    for _ in range(2):
        client, end = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.converse, end, (b"j", b"{}"))
            replies.append(await _reply(client))
    assert b'"code":"internal"' in replies[0]
    assert replies[1] == b"memd1 j 2\n{}"


async def test_a_refusal_keeps_its_code_words_and_remedy() -> None:
    async def answer(kind: bytes, body: bytes, peer: Peer) -> Answered:
        raise Refused("the thing is odd", remedy="Straighten it.")

    client, end = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(answer).converse, end, (b"j", b"{}"))
        failure = protocol.decode_reply((await _reply(client)).partition(b"\n")[2])
    assert isinstance(failure, protocol.Failure)
    assert (failure.code, failure.message, failure.remedy) == (
        "refused",
        "the thing is odd",
        "Straighten it.",
    )


async def test_a_conversation_goes_on_as_long_as_the_answers_say_so(autojump_clock: MockClock) -> None:
    async def count(kind: bytes, body: bytes, peer: Peer) -> Answered:
        return Answered(kind, body, goes_on=body != b"last")

    client, end = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(count).converse, end, (b"j", b"first"))
        assert await client.receive_some() == hook.frame(b"j", b"first")
        await trio.sleep(3600)  # a person thinks; the connection stays
        await client.send_all(hook.frame(b"j", b"last"))
        assert await _reply(client) == hook.frame(b"j", b"last")


async def test_an_open_conversation_does_not_hold_up_the_end(autojump_clock: MockClock) -> None:
    async def on(kind: bytes, body: bytes, peer: Peer) -> Answered:
        return Answered(kind, body, goes_on=True)

    server = Server(on)
    client, end = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.converse, end, (b"j", b"first"))
        assert await client.receive_some() == hook.frame(b"j", b"first")
        await wait_all_tasks_blocked()
        server.release()
        assert await _reply(client) == b""


async def test_a_peer_is_known_to_be_there_until_it_closes() -> None:
    ours, theirs = trio.socket.socketpair()
    stream = trio.SocketStream(ours)
    peer = Peer(stream)
    assert peer.is_there()
    await theirs.send(b"unread")
    assert peer.is_there()
    theirs.shutdown(trio.socket.SHUT_WR)  # it has said all and waits
    assert peer.is_there()
    theirs.close()
    assert not peer.is_there()
    await stream.aclose()
    assert not peer.is_there()
