"""A socket that stands where memd's would, and answers as it is told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Message:
    """One hook message as it came over the wire."""

    harness: str
    event: str
    cwd: str
    run: str
    pid: int
    stdin: dict[str, Any]


def text(told: str, status: bytes = b"0") -> bytes:
    """A rendered answer, framed."""
    body = status + b"\n" + told.encode()
    return b"memd1 t %d\n%b" % (len(body), body)


class Stub:
    """Listens on `path`; each message is kept and answered by `answer`; None leaves the peer hanging.

    silent_s  a peer that says nothing for so long is dropped
    """

    def __init__(self, path: Path, answer: Callable[[Message], bytes | None], *, silent_s: float = 5) -> None:
        self._silent_s = silent_s
        self.messages: list[Message] = []
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(16)
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
        for peer in self._kept:
            peer.close()

    def events(self) -> list[str]:
        return [message.event for message in self.messages]

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            peer.settimeout(self._silent_s)
            try:
                self._serve_one(peer)
            except TimeoutError:
                peer.close()
            except (OSError, ValueError):
                pass  # a peer that was gone before it spoke
            self._kept.append(peer)

    def _serve_one(self, peer: socket.socket) -> None:
        file = peer.makefile("rb")
        kind, length = file.readline().split(b" ")[1:]
        assert kind == b"h"
        harness, event, cwd, run, pid, stdin = file.read(int(length)).split(b"\0", 5)
        message = Message(
            harness.decode(), event.decode(), cwd.decode(), run.decode(), int(pid), json.loads(stdin)
        )
        self.messages.append(message)
        answer = self._answer(message)
        if answer is not None:
            peer.sendall(answer)
            peer.shutdown(socket.SHUT_RDWR)
