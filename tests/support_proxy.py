"""A way to a server that a test can cut: forwards bytes on loopback, until it is told to do worse."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path


class Proxy:
    """Between clients on loopback and a server's socket.

    lose_answer   the answer to the next client message that holds these bytes is lost with the connection
    cut_at        the connection ends before that many further pieces of the client get through; -1: never
    on_piece      called with each piece of the client, before it goes on
    is_refusing   new connections are closed at once
    """

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lose_answer = b""
        self.cut_at = -1
        self.is_refusing = False
        self.pieces = 0
        self.on_piece: Callable[[bytes], None] = lambda _piece: None
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_refusing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(timeout=10)

    def words(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user=memd dbname={database} sslmode=disable"

    def cut(self) -> None:
        """End every connection that is open."""
        for one in self._open:
            _end(one)
        self._open.clear()

    def _start(self, work: Callable[..., None], *words: object) -> None:
        thread = threading.Thread(target=work, args=words, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            if self.is_refusing:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                client.close()
                server.close()
                continue
            self._open += [client, server]
            lost = threading.Event()
            self._start(self._to_server, client, server, lost)
            self._start(self._to_client, client, server, lost)

    def _to_server(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        while piece := _read(client):
            self.pieces += 1
            self.on_piece(piece)
            if self.cut_at >= 0:
                self.cut_at -= 1
                if self.cut_at < 0:
                    break
            if self.lose_answer and self.lose_answer in piece:
                self.lose_answer = b""
                lost.set()
            try:
                server.sendall(piece)
            except OSError:
                break
        if not lost.is_set():
            _end(server)
            _end(client)

    def _to_client(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        while piece := _read(server):
            if lost.is_set():
                break
            try:
                client.sendall(piece)
            except OSError:
                break
        _end(client)
        _end(server)


def _read(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 16)
    except OSError:
        return b""


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
