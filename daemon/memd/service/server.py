"""The socket's conversation: one request, one reply, for this user only, within bounds of time and number.

On accept: the peer's uid, then the number of clients, then its request. Until that is whole the peer waits in
the lobby, and from then on it has a task of its own. Nobody queues behind anybody: at the cap the oldest peer
that has not yet sent a whole request makes room. A request that fails with a bug is answered `internal`; the
daemon lives on.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec
import structlog
import trio

from memd import wire
from memd.errors import BadRequest, MemdError
from memd.protocol import Failure, encode
from memd.service.lobby import Lobby, Message
from memd.service.peer import Peer, is_same_user


class Traffic(msgspec.Struct):
    """What the socket has seen."""

    clients: int = 0
    served: int = 0
    refused: int = 0


class Answered(NamedTuple):
    """goes_on: the peer may say more on the same connection."""

    kind: bytes
    body: bytes
    goes_on: bool = False


Answer = Callable[[bytes, bytes, Peer], Awaitable[Answered]]
"""From kind, body and peer to the reply."""

REPLY_S = 10.0  # for a peer to take its answer
MAX_CLIENTS = 1024
MAX_HELD = 256  # conversations that stay open between two steps

log = structlog.get_logger()


class Server:
    """Converses with every accepted peer; holds the count of them."""

    def __init__(self, answer: Answer, traffic: Traffic | None = None) -> None:
        self._answer = answer
        self._held: set[trio.CancelScope] = set()
        self.traffic = traffic or Traffic()

    async def serve(
        self,
        door: socket.socket,
        requests: trio.Nursery,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept until cancelled; conversations run in `requests` and outlive the accepting."""

        def hear(sock: socket.socket, message: Message) -> None:
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
            requests.start_soon(self.converse, stream, message)

        lobby = Lobby(self._admit, hear, self._left)
        requests.start_soon(lobby.keep, door)
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            lobby.close()

    def _admit(self, sock: socket.socket) -> bool:
        self.traffic.clients += 1
        return is_same_user(sock) and self.traffic.clients <= MAX_CLIENTS

    def _left(self, is_refused: bool) -> None:
        self.traffic.clients -= 1
        self.traffic.refused += is_refused

    async def converse(self, stream: trio.abc.Stream, first: Message) -> None:
        """Answer what a peer said first, and what it says after that."""
        try:
            await self._conversation(stream, first)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer went away: its business
        finally:
            self.traffic.clients -= 1
            await trio.aclose_forcefully(stream)  # without waiting for a peer that does not read

    async def _conversation(self, stream: trio.abc.Stream, first: Message) -> None:
        peer = Peer(stream)
        message: Message | None = first
        while message is not None:
            answered = await self._answered(message, peer)
            self.traffic.served += 1
            with trio.move_on_after(REPLY_S) as scope:
                await wire.send_message(stream, answered.kind, answered.body)
            if scope.cancelled_caught or not answered.goes_on:
                return
            message = await self._next_one(stream)

    async def _answered(self, message: Message, peer: Peer) -> Answered:
        if isinstance(message, BadRequest):
            self.traffic.refused += 1
            return Answered(b"j", encode(failure(message)))
        try:
            return await self._answer(*message, peer)
        except MemdError as reason:
            return Answered(b"j", encode(failure(reason)))
        except Exception as bug:  # one client's conversation: a bug here must not end the daemon
            log.error("request.failed", exc_info=bug)
            return Answered(b"j", encode(failure(MemdError(f"memd met a bug: {type(bug).__name__}"))))

    async def _next_one(self, stream: trio.abc.Stream) -> Message | None:
        """What comes next in a conversation that was kept open; None when it ends."""
        if len(self._held) >= MAX_HELD:
            return None
        with trio.CancelScope() as scope:
            self._held.add(scope)
            try:
                return await _read(stream)
            finally:
                self._held.discard(scope)
        return None

    def release(self) -> None:
        """End the conversations in which it is the peer's turn to speak."""
        for scope in list(self._held):
            scope.cancel()


async def _read(stream: trio.abc.Stream) -> Message | None:
    try:
        return await wire.read_message(stream)
    except BadRequest as reason:
        return reason


def failure(reason: MemdError) -> Failure:
    return Failure(
        code=reason.code,
        message=str(reason),
        remedy=reason.remedy,
        exit_status=reason.exit_status,
        path=getattr(reason, "path", b""),
    )
