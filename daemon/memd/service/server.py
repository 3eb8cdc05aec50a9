"""The socket's conversation: one request, one reply, for this user only, within bounds of time and number.

On accept: the peer's uid, then the number of clients, then its request. Nobody queues behind anybody: at
the cap the oldest peer that has not yet sent a whole request makes room. A request that fails with a bug is
answered `internal`; the daemon lives on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

import structlog
import trio

from memd import wire
from memd.errors import BadRequest, MemdError, TryAgain
from memd.protocol import Failure, encode
from memd.service.peer import is_same_user

Answer = Callable[[bytes, bytes], Awaitable[tuple[bytes, bytes]]]

REQUEST_S = 2.0  # from accept to the last byte of the request
REPLY_S = 10.0  # for a peer to take its answer
MAX_CLIENTS = 1024
MAX_WAITING = 960  # peers without a whole request; the rest of MAX_CLIENTS is for those being answered

log = structlog.get_logger()


class Server:
    """Converses with every accepted stream; holds the count and the queue of peers that have not spoken."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._waiting: OrderedDict[int, trio.CancelScope] = OrderedDict()
        self._next = 0
        self.clients = 0
        self.served = 0
        self.refused = 0

    async def serve(
        self,
        listener: trio.SocketListener,
        requests: trio.Nursery,
        *,
        task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept until cancelled; conversations run in `requests` and outlive the accepting."""
        await trio.serve_listeners(
            self.converse, [listener], handler_nursery=requests, task_status=task_status
        )

    async def converse(self, stream: trio.abc.Stream) -> None:
        self.clients += 1
        try:
            if self._may_speak(stream):
                await self._one_request(stream)
            else:
                self.refused += 1
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer went away: its business
        finally:
            self.clients -= 1
            await trio.aclose_forcefully(stream)  # without waiting for a peer that does not read

    def _may_speak(self, stream: trio.abc.Stream) -> bool:
        if isinstance(stream, trio.SocketStream) and not is_same_user(stream.socket):
            return False
        return self.clients <= MAX_CLIENTS

    async def _one_request(self, stream: trio.abc.Stream) -> None:
        try:
            message = await self._receive(stream)
        except BadRequest as reason:
            self.refused += 1
            await self._send(stream, b"j", encode(failure(reason)))
            return
        if message is None:
            return
        try:
            kind, body = await self._answer(*message)
        except MemdError as reason:
            kind, body = b"j", encode(failure(reason))
        except Exception as bug:  # one client's conversation: a bug here must not end the daemon
            log.error("request.failed", exc_info=bug)
            kind, body = b"j", encode(failure(MemdError(f"memd met a bug: {type(bug).__name__}")))
        self.served += 1
        await self._send(stream, kind, body)

    async def _receive(self, stream: trio.abc.Stream) -> tuple[bytes, bytes] | None:
        ticket = self._next
        self._next += 1
        if len(self._waiting) >= MAX_WAITING:
            _, oldest = self._waiting.popitem(last=False)
            oldest.cancel()
        with trio.move_on_after(REQUEST_S) as scope:
            self._waiting[ticket] = scope
            try:
                return await wire.read_message(stream)
            finally:
                self._waiting.pop(ticket, None)
        self.refused += 1
        return None

    async def _send(self, stream: trio.abc.Stream, kind: bytes, body: bytes) -> None:
        with trio.move_on_after(REPLY_S):
            await wire.send_message(stream, kind, body)


def failure(reason: MemdError) -> Failure:
    return Failure(
        code=reason.code,
        message=str(reason),
        remedy=reason.remedy,
        exit_status=reason.exit_status,
        path=getattr(reason, "path", b""),
    )


def going_down() -> TryAgain:
    return TryAgain("memd is shutting down", remedy="Start it again with `memctl up`.")
