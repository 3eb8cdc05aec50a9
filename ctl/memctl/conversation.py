"""A launcher's two conversations: one connection to the daemon, step by step, and lines for the person."""

from __future__ import annotations

import contextlib
import select
import sys
from typing import TYPE_CHECKING, TypeVar

import msgspec

from memctl import client, hook
from memctl.lines import filled
from memd import protocol
from memd import protocol_runs as runs
from memd.errors import Unavailable
from memd.frame import harmless

if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

A = TypeVar("A", bound=runs.Answer)

ANSWER_S = 60.0
SLOW_S = 1.0  # after which somebody who waits should know what for


def say(line: str) -> None:
    """A line for people. Whoever closed standard error does not want to hear of anything."""
    with contextlib.suppress(OSError, ValueError):
        end = "\r\n" if sys.stderr.isatty() else "\n"  # a program in the foreground may have it raw
        for part in filled(f"memctl: {harmless(line)}", sys.stderr, "  "):
            sys.stderr.write(part + end)
        sys.stderr.flush()


class Broken(Exception):
    """The connection is gone, and with it the answer to the last step."""


class Conversation:
    """Connected or not. Every method may raise Broken, which leaves it unconnected."""

    def __init__(self) -> None:
        self._sock: _socket.socket | None = None

    @property
    def is_open(self) -> bool:
        return self._sock is not None

    def fileno(self) -> int:
        """For whoever waits for something to come; -1: not connected."""
        return -1 if self._sock is None else self._sock.fileno()

    def open(self, *, start: bool, timeout_s: float = ANSWER_S) -> None:
        """Connect.

        start   bring up a daemon where none runs
        raises  Broken; with `start` Unavailable
        """
        self.close()
        try:
            self._sock = hook.dial(hook.find_socket(), timeout_s)
        except hook.Unreachable as reason:
            if not start:
                raise Broken(str(reason)) from None
            client.start_daemon()
            try:
                self._sock = hook.dial(hook.find_socket(), timeout_s)
            except hook.Unreachable as again:
                raise Unavailable(f"memd was started but cannot be reached ({again})") from None

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def say(
        self,
        step: runs.AnyStep,
        expect: type[A],
        *,
        timeout_s: float = ANSWER_S,
        on_slow: Callable[[], None] | None = None,
    ) -> A:
        """The answer to a step; `on_slow` is called once when it takes its time.

        raises  Broken; Rejected with what the daemon refuses
        """
        self.tell(step)
        assert self._sock is not None
        if on_slow is not None and not select.select([self._sock], [], [], SLOW_S)[0]:
            on_slow()
        return self.hear(expect, timeout_s=timeout_s)

    def tell(self, step: runs.AnyStep) -> None:
        """Say a step without waiting for the answer."""
        if self._sock is None:
            raise Broken("not connected")
        try:
            self._sock.settimeout(ANSWER_S)
            self._sock.sendall(hook.frame(b"j", protocol.encode(protocol.Run(step=step))))
        except OSError as reason:
            self._break(reason)

    def hear(self, expect: type[A], *, timeout_s: float = ANSWER_S) -> A:
        """The answer to a step that was told."""
        if self._sock is None:
            raise Broken("not connected")
        try:
            self._sock.settimeout(timeout_s)
            kind, body = hook.read_reply(self._sock)
            if kind != b"j":
                raise hook.Unreachable("memd answered in another form than asked for")
            reply = protocol.decode_reply(body)
        except OSError as reason:
            self._break(reason)
        except msgspec.DecodeError as reason:
            self.close()
            raise Unavailable(
                f"memd answered something this memctl does not understand: {reason}",
                remedy="The daemon and memctl are of different versions: run `memctl up`.",
            ) from None
        if isinstance(reply, protocol.Failure):
            raise client.Rejected(reply)
        if not isinstance(reply, protocol.RunReply) or not isinstance(reply.answer, expect):
            self.close()
            raise Unavailable(f"memd did not answer with {expect.__name__}", remedy="Run `memctl up`.")
        return reply.answer

    def _break(self, reason: OSError) -> None:
        self.close()
        raise Broken(str(reason)) from None
