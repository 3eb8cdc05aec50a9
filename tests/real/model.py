"""A model server for real agent programs, answering from a script: loopback only, standard library only.

It speaks Anthropic Messages, OpenAI Responses and Chat Completions, whole and as server-sent events.
Every request goes into a log, one JSON object a line, `{at, seq, method, path, reply, headers, body}`:
bodies in full, credentials masked. A line is complete before the answer to its request begins.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO

from real.dialect_chat import CHAT
from real.dialect_messages import MESSAGES
from real.dialect_responses import RESPONSES
from real.dialects import Answer, Dialect, Frame, Pause, as_json
from real.script import SENTINEL, Json, Reply, decide

PORT = 8377
MODELS = ("scripted-model", "scripted-small", "claude-sonnet-4-5", "gpt-5")
_MASKED = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization"})
_DIALECTS = {"/messages": MESSAGES, "/responses": RESPONSES, "/chat/completions": CHAT}


class Journal:
    """The request log and the words that held replies wait for."""

    def __init__(self, log: BinaryIO, announce: Callable[[int], None] = lambda seq: None) -> None:
        self._log = log
        self._announce = announce
        self._lock = threading.Lock()
        self._seq = 0
        self._released: dict[str, threading.Event] = {}

    def record(self, entry: Json) -> int:
        """Write one request and return its number, counted from 1."""
        with self._lock:
            self._seq += 1
            line = as_json({"at": time.time(), "seq": self._seq, **entry})
            self._log.write(line.encode("utf-8", "surrogatepass") + b"\n")
            self._log.flush()
            self._announce(self._seq)
            return self._seq

    def release(self, word: str) -> None:
        """Let every reply go on that is held, or will be, by `word`."""
        self._gate(word).set()

    def wait(self, reply: Reply) -> None:
        """Come back when a slow or held reply may go on."""
        if reply.hold:
            self._gate(reply.hold).wait()
        elif reply.stall_s:
            threading.Event().wait(reply.stall_s)

    def _gate(self, word: str) -> threading.Event:
        with self._lock:
            return self._released.setdefault(word, threading.Event())


class Model(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, journal: Journal, port: int = PORT) -> None:
        self.journal = journal
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the journal is the log."""

    def do_HEAD(self) -> None:
        self._record(None, "ok")
        self._send({})

    def do_GET(self) -> None:
        if self._route().endswith("/models"):
            self._record(None, "models")
            listed = [
                {"id": name, "object": "model", "type": "model", "created": 1, "display_name": name,
                 "owned_by": "script", "context_length": 200_000}
                for name in MODELS
            ]  # fmt: skip
            # `models`, empty, satisfies Codex's catalogue reader; `data` everybody else
            self._send({"object": "list", "models": [], "data": listed, "has_more": False})
        elif self._route() in ("", "/health"):
            self._record(None, "ok")
            self._send({})
        else:
            self._not_found(None)

    def do_POST(self) -> None:
        body = self._read_body()
        route = self._route()
        try:
            if route.endswith("/count_tokens"):
                self._record(body, "count")
                self._send({"input_tokens": len(as_json(body)) // 4})
            elif route.endswith("/responses/compact"):
                seen = " ".join(sorted(set(SENTINEL.findall(as_json(body)))))
                self._record(body, "compact")
                self._send({"output": [{"type": "compaction", "encrypted_content": f"SUMMARY {seen}"}]})
            elif dialect := next((d for end, d in _DIALECTS.items() if route.endswith(end)), None):
                self._answer(dialect, body)
            else:
                self._not_found(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the program was killed or has had enough

    def _answer(self, dialect: Dialect, body: Json) -> None:
        turn = dialect.read(body)
        reply = decide(turn)
        seq = self._record(
            body,
            {
                "dialect": dialect.name,
                "prompt": turn.prompt[-400:],
                "step": turn.step,
                "text": reply.text[:400],
                "calls": [call.tool for call in reply.calls],
                "status": reply.status,
                "is_turn": reply.is_turn,
            },
        )
        if reply.status != 200:
            error = {
                "type": "api_error",
                "code": "scripted_error",
                "message": f"scripted failure {reply.status}",
            }
            self._send({"type": "error", "error": error}, reply.status)
            return
        answer = Answer(
            body,
            reply,
            tag=hashlib.sha256(f"{seq}:{turn.raw}".encode("utf-8", "surrogatepass")).hexdigest()[:20],
            tokens_in=reply.claimed_tokens or max(1, len(turn.raw) // 4),
            tokens_out=max(1, len(reply.text) // 4),
        )
        if not body.get("stream"):
            self.server.journal.wait(reply)
            self._send(dialect.whole(answer))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for part in dialect.stream(answer):
            if isinstance(part, Pause):
                self.server.journal.wait(reply)
            else:
                self._send_frame(part)

    def _route(self) -> str:
        return self.path.split("?")[0].rstrip("/")

    def _read_body(self) -> Json:
        raw = self._read_raw()
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        return body if isinstance(body, dict) else {"_raw": raw.decode("utf-8", "replace")}

    def _read_raw(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b"\n", b""):
            pass  # trailers
        return b"".join(parts)

    def _record(self, body: Json | None, reply: object) -> int:
        lowered = ((name.lower(), value) for name, value in self.headers.items())
        headers = {name: "***" if name in _MASKED else value for name, value in lowered}
        entry: Json = {
            "method": self.command,
            "path": self.path,
            "reply": reply,
            "headers": headers,
            "body": body,
        }
        return self.server.journal.record(entry)

    def _not_found(self, body: Json | None) -> None:
        self._record(body, "not found")
        self._send({"error": {"type": "not_found_error", "message": "the script has no such path"}}, 404)

    def _send(self, value: Json, status: int = 200) -> None:
        data = as_json(value).encode("utf-8", "surrogatepass")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_frame(self, frame: Frame) -> None:
        head = f"event: {frame.event}\n" if frame.event else ""
        text = frame.data if isinstance(frame.data, str) else as_json(frame.data)
        self.wfile.write(f"{head}data: {text}\n\n".encode("utf-8", "surrogatepass"))
        self.wfile.flush()
