"""Clients that have not said their request yet, one and very many: a real socket and a fake clock."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from memctl import hook
from memd import protocol
from memd.service import lobby
from memd.service import server as server_module
from memd.service.peer import Peer
from memd.service.server import Answered, Server

WORD = hook.frame(b"j", b"{}")


async def echo(kind: bytes, body: bytes, peer: Peer) -> Answered:
    return Answered(kind, body)


class Served:
    """A server at a socket. `stop` is what the daemon does when it ends: no more are accepted."""

    def __init__(self, server: Server, path: Path, accepting: trio.CancelScope) -> None:
        self.server = server
        self._path = path
        self.stop = accepting.cancel

    async def dial(self) -> trio.SocketStream:
        return await trio.open_unix_socket(self._path)

    @property
    def clients(self) -> int:
        return self.server.traffic.clients


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    server = Server(echo)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen(1024)
        async with trio.open_nursery() as requests:

            async def accept(*, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
                async with trio.open_nursery() as accepting:
                    await accepting.start(server.serve, door, requests)
                    task_status.started(accepting.cancel_scope)

            yield Served(server, tmp_path / "door", await requests.start(accept))
            requests.cancel_scope.cancel()


async def said(stream: trio.SocketStream, *parts: bytes) -> bytes:
    """All that comes back for what is said in these parts."""
    for part in parts:
        await stream.send_all(part)
        await wait_all_tasks_blocked()
    return await to_the_end(stream)


async def to_the_end(stream: trio.SocketStream) -> bytes:
    got = b""
    with contextlib.suppress(trio.BrokenResourceError):
        while more := await stream.receive_some():
            got += more
    return got


async def test_a_request_is_heard_however_it_is_split(served: Served, autojump_clock: MockClock) -> None:
    assert await said(await served.dial(), WORD) == WORD
    assert await said(await served.dial(), *(WORD[at : at + 1] for at in range(len(WORD)))) == WORD
    long = hook.frame(b"h", b"x" * 1_000_000)
    stream = await served.dial()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, long)
        assert await to_the_end(stream) == long
    assert served.clients == 0


async def test_a_silent_client_is_let_go_in_time(served: Served, autojump_clock: MockClock) -> None:
    stream = await served.dial()
    began = trio.current_time()
    assert await to_the_end(stream) == b""
    assert lobby.REQUEST_S <= trio.current_time() - began <= lobby.REQUEST_S + lobby.CLEAN_S
    assert (served.clients, served.server.traffic.refused) == (0, 1)


@pytest.mark.parametrize("before", [b"", b"memd1 j 100\n"], ids=["header", "body"])
async def test_a_client_that_sends_a_byte_a_second_is_let_go_in_time(
    served: Served, autojump_clock: MockClock, before: bytes
) -> None:
    stream = await served.dial()
    began = trio.current_time()

    async def drip() -> None:
        for byte in before, *(bytes([byte]) for byte in WORD):
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(byte)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drip)
        assert await to_the_end(stream) == b""
        assert trio.current_time() - began <= lobby.REQUEST_S + lobby.CLEAN_S
        nursery.cancel_scope.cancel()


async def test_garbage_is_answered_with_a_named_failure(served: Served) -> None:
    for words in ((b"\xff\xfe not a message \n",), (b"memd1 ", b"no\n"), (b"memd1 j 9999999999\n",)):
        reply = protocol.decode_reply((await said(await served.dial(), *words)).partition(b"\n")[2])
        assert isinstance(reply, protocol.Failure)
        assert reply.code == "bad_request"


@pytest.mark.parametrize("part", [b"memd1", WORD[:-1]], ids=["header", "body"])
async def test_a_request_that_is_cut_is_answered_with_a_named_failure(served: Served, part: bytes) -> None:
    stream = await served.dial()
    await stream.send_all(part)
    await stream.send_eof()
    assert b'"code":"bad_request"' in await to_the_end(stream)


async def test_a_client_that_goes_away_without_a_word_is_forgotten(served: Served) -> None:
    stream = await served.dial()
    await wait_all_tasks_blocked()
    assert served.clients == 1
    await stream.aclose()
    await wait_all_tasks_blocked()
    assert (served.clients, served.server.traffic.refused) == (0, 0)


async def test_at_the_cap_the_oldest_silent_client_makes_room(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "MAX_WAITING", 3)
    idle = []
    for _ in range(4):
        idle.append(await served.dial())
        await wait_all_tasks_blocked()
    assert await to_the_end(idle[0]) == b""
    assert served.clients == 3
    assert await said(await served.dial(), WORD) == WORD
    assert await said(idle[-1], WORD) == WORD


async def test_above_the_number_of_clients_the_next_is_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CLIENTS", 2)
    idle = [await served.dial(), await served.dial()]
    await wait_all_tasks_blocked()
    assert await to_the_end(await served.dial()) == b""
    assert (served.clients, served.server.traffic.refused) == (2, 1)
    assert await said(idle[0], WORD) == WORD


async def test_nobody_waits_behind_silent_and_slow_clients(served: Served, autojump_clock: MockClock) -> None:
    began = trio.current_time()
    others = [await served.dial() for _ in range(300)]
    for stream in others[::2]:
        await stream.send_all(b"m")
    assert await said(await served.dial(), WORD) == WORD
    assert trio.current_time() == began


async def test_slow_clients_are_looked_at_together(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = lobby.Lobby._look

    async def counted(self: lobby.Lobby, now: float) -> None:
        nonlocal looks
        looks += 1
        await look(self, now)

    monkeypatch.setattr(lobby.Lobby, "_look", counted)
    slow = [await served.dial() for _ in range(50)]
    for stream in slow:
        await stream.send_all(b"m")
    await wait_all_tasks_blocked()
    monkeypatch.setattr(lobby, "SLOW_LOOK_S", 3600.0)
    await wait_all_tasks_blocked(0.05)  # the look that was due
    looks = 0
    for byte in b"emd1":
        for stream in slow:
            await stream.send_all(bytes([byte]))
            await wait_all_tasks_blocked()
    assert looks == 0


async def test_who_is_there_when_the_daemon_ends_is_still_heard(served: Served) -> None:
    begun = await served.dial()
    await begun.send_all(WORD[:3])
    await wait_all_tasks_blocked()
    served.stop()
    await wait_all_tasks_blocked()
    late = await served.dial()
    assert await said(begun, WORD[3:]) == WORD
    assert served.clients == 0
    with trio.move_on_after(0.05) as nobody:
        await late.receive_some()
    assert nobody.cancelled_caught


async def test_without_descriptors_the_door_is_tried_again(
    served: Served, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def accept(self: socket.socket) -> tuple[socket.socket, object]:
        nonlocal tries
        tries += 1
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched, structlog.testing.capture_logs() as said:
        patched.setattr(socket.socket, "accept", accept)
        stream = await served.dial()
        await stream.send_all(WORD)
        await trio.sleep(10 * lobby.NO_ROOM_S + 0.01)
    assert 5 <= tries <= 11
    assert [line["event"] for line in said] == ["door.closed"]  # once, not with each try
    assert await to_the_end(stream) == WORD


async def test_what_is_wrong_with_one_client_closes_no_door(
    served: Served, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, is_first = socket.socket.accept, True

    def once_wrong(self: socket.socket) -> tuple[socket.socket, object]:
        nonlocal is_first
        if is_first:
            is_first = False
            raise OSError(errno.ECONNABORTED, "it went away while it waited")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", once_wrong)
    began = trio.current_time()
    assert await said(await served.dial(), WORD) == WORD
    assert trio.current_time() == began
