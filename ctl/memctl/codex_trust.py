"""Whether Codex trusts our hooks, and telling it to, through Codex's own app server.

    codex app-server       JSON lines on stdin and stdout
      initialize, initialized
      hooks/list {cwds}  {data: [{hooks: [{key, command, sourcePath, trustStatus, currentHash, enabled}]}]}
      config/batchWrite  {edits: [{keyPath: "hooks.state", value: {KEY: {trusted_hash}}, mergeStrategy}]}

Codex skips a hook that nobody trusted, and says nothing of it. The trust is tied to the file, the place in
its lists and the text of the hook. Only Codex computes its hash, and only Codex writes its settings.

source  codex-cli 0.171.0, run 2026-11
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memctl.hooks import command as hook_command
from memd import __version__
from memd.errors import TryAgain, Unavailable

ANSWER_S = 15.0  # for the whole conversation; Codex takes 0.3 s
END_S = 2.0
MAX_LINE_BYTES = 8 << 20
REMEDY = "Start `codex` and trust the hooks there (`/hooks`)."


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """One hook of ours as Codex sees it.

    status      trusted, managed, untrusted or modified
    is_enabled  Codex's own switch for this hook
    """

    key: str
    event: str
    command: str
    status: str
    hash: str
    is_enabled: bool = True

    @property
    def is_running(self) -> bool:
        return self.is_enabled and self.status in ("trusted", "managed")


def status(program: str, hooks_file: bytes, timeout_s: float = ANSWER_S) -> tuple[Trust, ...]:
    """Our hooks in that file; raises Unavailable, TryAgain."""
    with Server(program, hooks_file, timeout_s) as server:
        return server.hooks()


def trust(program: str, hooks_file: bytes, timeout_s: float = ANSWER_S) -> tuple[Trust, ...]:
    """Our hooks in that file after Codex was told to trust them, and no others.

    raises  Unavailable, TryAgain
    """
    with Server(program, hooks_file, timeout_s) as server:
        wanted = [hook for hook in server.hooks() if hook.status not in ("trusted", "managed")]
        if wanted:
            server.accept(wanted)
        return server.hooks()


class Server:
    """One conversation with `codex app-server`, ended with its process whatever happens."""

    def __init__(self, program: str, hooks_file: bytes, timeout_s: float) -> None:
        self._hooks_file = hooks_file
        self._deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._held = b""
        self._last = 0
        home = os.path.dirname(hooks_file)
        try:
            self._child = subprocess.Popen(
                [program, "app-server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(home),
                cwd=home,
                bufsize=0,
                start_new_session=True,  # the program is a wrapper: what it started ends with it
            )
        except OSError as reason:
            raise Unavailable(f"cannot run {program}: {reason.strerror or reason}", remedy=REMEDY) from None

    def __enter__(self) -> Server:
        try:
            me = {"name": "memctl", "title": "memctl", "version": __version__}
            self._ask("initialize", {"clientInfo": me})
            self._say({"method": "initialized"})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # it left first
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                try:
                    os.killpg(self._child.pid, number)
                except ProcessLookupError:
                    pass
            try:
                self._child.wait(END_S)
                return
            except subprocess.TimeoutExpired:
                continue

    def hooks(self) -> tuple[Trust, ...]:
        """Our hooks in the file, as Codex sees them."""
        answer = self._ask("hooks/list", {"cwds": [os.fsdecode(os.path.dirname(self._hooks_file))]})
        found = []
        for one in _hooks(answer):
            own = hook_command.read(one.get("command"))
            where = os.fsencode(str(one.get("sourcePath", "")))
            if own is None or own.kind != "plain" or not _is_same(where, self._hooks_file):
                continue
            found.append(
                Trust(
                    key=str(one.get("key", "")),
                    event=str(one.get("eventName", "")),
                    command=str(one.get("command")),
                    status=str(one.get("trustStatus", "")),
                    hash=str(one.get("currentHash", "")),
                    is_enabled=one.get("enabled") is not False,
                )
            )
        return tuple(found)

    def accept(self, hooks: Sequence[Trust]) -> None:
        """Have Codex note that a person trusts these."""
        state = {hook.key: {"trusted_hash": hook.hash} for hook in hooks}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        self._ask("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})

    # ------------------------------------------------------------------ lines

    def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._last += 1
        self._say({"id": self._last, "method": method, "params": params})
        while True:
            message = self._hear()
            if message.get("id") != self._last or "method" in message:
                continue  # a notification, or a question to us
            if "error" in message:
                said = message["error"]
                text = said.get("message", "") if isinstance(said, dict) else said
                raise Unavailable(f"Codex refused {method}: {text}", remedy=REMEDY)
            return message.get("result")

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
        except OSError:
            raise self._gone() from None

    def _hear(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        while b"\n" not in self._held:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._child.stdout], [], [], left)[0]:
                raise TryAgain(f"Codex gave no answer within {self._timeout_s:.0f} s", remedy=REMEDY)
            more = self._child.stdout.read(65536)
            self._held += more or b""
            if not more or len(self._held) > MAX_LINE_BYTES:
                raise self._gone()
        line, _, self._held = self._held.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            return {}
        return message if isinstance(message, dict) else {}

    def _gone(self) -> Unavailable:
        return Unavailable("Codex ended in the middle of the conversation", remedy=REMEDY)


def _environment(home: bytes) -> dict[bytes, bytes]:
    """Ours, with the Codex home named where it is not the one that Codex would take.

    Not named without need: of a home that is named the links are resolved, which gives hooks other keys.
    """
    usual = os.environb.get(b"CODEX_HOME") or os.environb.get(b"HOME", b"") + b"/.codex"
    named = {} if usual.rstrip(b"/") == home else {b"CODEX_HOME": home}
    return {**os.environb, **named}


def _hooks(answer: Any) -> list[dict[str, Any]]:
    groups = answer.get("data") if isinstance(answer, dict) else None
    found = []
    for group in groups if isinstance(groups, list) else ():
        hooks = group.get("hooks") if isinstance(group, dict) else None
        found += [hook for hook in (hooks if isinstance(hooks, list) else ()) if isinstance(hook, dict)]
    return found


def _is_same(one: bytes, other: bytes) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)
