"""Peers that have not said their request yet: accepted in slices, and kept without a task for each.

A peer comes in by the door and leaves in one of three ways: it is *heard* (its request is whole, or can be
none), it *went away*, or it is *let go* (its time is over, or it is the oldest when there is no room). A
task, its stack and its timer would cost more than most requests take; here a peer is a line in a table and a
descriptor in one of two watched sets:

quick   has said nothing yet, or its header line is there: heard as soon as there is more
slow    has said a part of its header line. Nobody who is in a hurry does that: such peers are looked at
        together, some times a second, however many there are and however few bytes each of them sends

Between two slices everybody else in the daemon has a turn, and the door is looked at first.
"""

from __future__ import annotations

import errno
import selectors
import socket
from collections import OrderedDict
from collections.abc import Callable

import structlog
import trio

from memd import wire
from memd.errors import BadRequest

Message = tuple[bytes, bytes] | BadRequest

REQUEST_S = 2.0  # from accept to the last byte of the request
MAX_WAITING = 960  # peers without a whole request; the rest of MAX_CLIENTS is for those being answered
SLICE = 64  # peers that are accepted, heard or let go in one go
SLOW_LOOK_S = 0.02
CLEAN_S = 0.05  # between two looks for peers whose time is over
NO_ROOM_S = 0.1  # before the door is opened again when there are no descriptors left

_PASSING = {errno.ECONNABORTED, errno.EPROTO, errno.EINTR, errno.EPERM}
"""What is wrong with one peer, not with the door; accept(2)."""

log = structlog.get_logger()


class _Waiting:
    """One peer. watched: the set that it is in, None before and after"""

    __slots__ = ("incoming", "sock", "until", "watched")

    def __init__(self, sock: socket.socket, until: float) -> None:
        self.sock = sock
        self.until = until
        self.incoming: wire.Incoming | None = None
        self.watched: selectors.BaseSelector | None = None


class Lobby:
    """admit: whether a peer may stay at all; hear: takes over a peer and what it said; left: a peer is gone
    and its socket closed, and whether the daemon wished so."""

    def __init__(
        self,
        admit: Callable[[socket.socket], bool],
        hear: Callable[[socket.socket, Message], None],
        left: Callable[[bool], None],
    ) -> None:
        self._admit, self._hear, self._left = admit, hear, left
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()  # by descriptor, the oldest first
        self._is_open = True
        self._is_watched = False  # the door, that is
        self._opens_again = 0.0  # when there were no descriptors left
        self._slow_at = 0.0
        self._clean_at = 0.0
        self._nap = trio.CancelScope()

    def close(self) -> None:
        """Nobody comes in any more; who is here is still heard."""
        self._is_open = False
        self._nap.cancel()

    async def keep(self, door: socket.socket) -> None:
        """Until it is closed and everybody has left. door: a listening socket"""
        door.setblocking(False)
        with selectors.DefaultSelector() as quick, selectors.DefaultSelector() as slow:
            self._door, self._quick, self._slow = door, quick, slow
            self._watch_door(True)
            try:
                while self._is_open or self._waiting:
                    with trio.move_on_at(self._next_look()) as self._nap:
                        await trio.lowlevel.wait_readable(quick.fileno())
                    await self._look(trio.current_time())
            finally:
                for waiting in list(self._waiting.values()):
                    self._let_go(waiting, is_refused=False)

    def _next_look(self) -> float:
        """When to look although nobody says anything."""
        looks = [self._opens_again or float("inf")]
        if self._waiting:
            looks.append(max(next(iter(self._waiting.values())).until, self._clean_at))
        if self._slow.get_map():
            looks.append(self._slow_at)
        return min(looks)

    async def _look(self, now: float) -> None:
        self._at_the_door(now)
        ready = self._quick.select(0)
        if now >= self._slow_at and self._slow.get_map():
            ready += self._slow.select(0)
            self._slow_at = now + SLOW_LOOK_S
        for number, (key, _) in enumerate(ready, 1):
            waiting: _Waiting | None = key.data
            if waiting is not None and waiting.watched is not None:  # not the door; not let go since
                self._listen(waiting)
            if number % SLICE == 0:
                await trio.lowlevel.checkpoint()
                self._at_the_door(now)
        self._clean(now)

    # -------------------------------------------------------------------------------- coming in

    def _at_the_door(self, now: float) -> None:
        if not self._is_open:
            self._watch_door(False)
            self._opens_again = 0.0
            return
        if now < self._opens_again:
            return
        for _ in range(SLICE):
            try:
                sock, _address = self._door.accept()
            except BlockingIOError:
                break
            except OSError as reason:
                if reason.errno in _PASSING:
                    continue
                if not self._opens_again:
                    log.warning("door.closed", reason=reason.strerror)
                self._opens_again = now + NO_ROOM_S  # what does not go away would be tried without an end
                self._watch_door(False)
                return
            sock.setblocking(False)
            self._enter(sock, now)
        self._opens_again = 0.0
        self._watch_door(True)

    def _watch_door(self, wanted: bool) -> None:
        if wanted and not self._is_watched:
            self._quick.register(self._door, selectors.EVENT_READ)
        elif self._is_watched and not wanted:
            self._quick.unregister(self._door)
        self._is_watched = wanted

    def _enter(self, sock: socket.socket, now: float) -> None:
        if not self._admit(sock):
            sock.close()
            self._left(True)
            return
        waiting = _Waiting(sock, now + REQUEST_S)
        if self._listen(waiting):
            if len(self._waiting) >= MAX_WAITING:
                self._let_go(next(iter(self._waiting.values())), is_refused=True)
            self._waiting[sock.fileno()] = waiting
            self._watch(waiting)

    # ------------------------------------------------------------------------------------ staying

    def _listen(self, waiting: _Waiting) -> bool:
        """Take what a peer has to say. Whether it is still waiting after that."""
        incoming = waiting.incoming
        try:
            more = waiting.sock.recv(wire.CHUNK if incoming is None else incoming.room)
        except BlockingIOError:
            return True
        except OSError:
            more, incoming = b"", None
        if incoming is None:
            if not more:
                self._let_go(waiting, is_refused=False)
                return False
            incoming = waiting.incoming = wire.Incoming()
        message: Message | None
        try:
            if not more:
                incoming.end()
            message = incoming.take(more)
        except BadRequest as reason:
            message = reason
        if message is None:
            if waiting.watched is not None:
                self._watch(waiting)
            return True
        self._forget(waiting)
        self._hear(waiting.sock, message)
        return False

    def _watch(self, waiting: _Waiting) -> None:
        """Put it into the set in which it belongs by what it has said."""
        is_slow = waiting.incoming is not None and not waiting.incoming.has_header
        wanted = self._slow if is_slow else self._quick
        if waiting.watched is not wanted:
            if waiting.watched is not None:
                waiting.watched.unregister(waiting.sock)
            wanted.register(waiting.sock, selectors.EVENT_READ, waiting)
            waiting.watched = wanted

    # ------------------------------------------------------------------------------------ leaving

    def _clean(self, now: float) -> None:
        """Let go whose time is over, a slice at a time."""
        if now < self._clean_at:
            return
        for _ in range(SLICE):
            oldest = next(iter(self._waiting.values()), None)
            if oldest is None or oldest.until > now:
                self._clean_at = now + CLEAN_S
                return
            self._let_go(oldest, is_refused=True)

    def _let_go(self, waiting: _Waiting, *, is_refused: bool) -> None:
        self._forget(waiting)
        waiting.sock.close()
        self._left(is_refused)

    def _forget(self, waiting: _Waiting) -> None:
        if waiting.watched is not None:
            waiting.watched.unregister(waiting.sock)
            waiting.watched = None
            del self._waiting[waiting.sock.fileno()]
