"""The daemon as human commands see it: typed requests and replies, errors as errors, and starting it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import BinaryIO, TypeVar

import msgspec

from memctl import hook, paths
from memd import protocol
from memd.errors import CannotCreate, DiskError, MemdError, NeedsConfirmation, Unavailable

R = TypeVar("R")

ANSWER_S = 600.0  # a first merge of a large folder takes its time; the daemon itself bounds everything else
START_S = 15.0

KEPT_VARIABLES = frozenset(
    {
        "HOME",
        "USER",
        "LOGNAME",
        "PATH",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "PYTHONPATH",
        "VIRTUAL_ENV",
    }
)


class Rejected(MemdError):
    """The daemon's refusal, with its own code, words, remedy and exit status."""

    def __init__(self, failure: protocol.Failure) -> None:
        super().__init__(failure.message, remedy=failure.remedy)
        self.code = failure.code
        self.exit_status = failure.exit_status
        self.path = failure.path


def ask(
    request: protocol.AnyRequest, expect: type[R], *, start: bool = True, timeout_s: float = ANSWER_S
) -> R:
    """The daemon's reply; starts a daemon first where none runs.

    raises Unavailable, Rejected
    """
    try:
        body = _exchange(request, timeout_s)
    except hook.Unreachable as reason:
        if not start:
            raise Unavailable(f"memd is not running ({reason})") from None
        start_daemon()
        try:
            body = _exchange(request, timeout_s)
        except hook.Unreachable as again:
            raise Unavailable(f"memd was started but does not answer ({again})") from None
    try:
        reply = protocol.decode_reply(body)
    except msgspec.DecodeError as reason:
        raise Unavailable(
            f"memd answered something this memctl does not understand: {reason}",
            remedy="The daemon and memctl are of different versions: run `memctl up`.",
        ) from None
    if isinstance(reply, protocol.Failure):
        raise Rejected(reply)
    if not isinstance(reply, expect):
        raise Unavailable(f"memd answered {type(reply).__name__} where {expect.__name__} was due")
    return reply


def ask_text(
    request: protocol.AnyRequest, *, start: bool = True, timeout_s: float = ANSWER_S
) -> tuple[int, bytes]:
    """The daemon's rendered answer: an exit status and what to print; starts a daemon where none runs.

    raises Unavailable, Rejected
    """
    try:
        kind, body = hook.exchange(b"j", protocol.encode(request), timeout_s)
    except hook.Unreachable as gone:
        if not start:
            raise Unavailable(f"memd is not running ({gone})") from None
        start_daemon()
        try:
            kind, body = hook.exchange(b"j", protocol.encode(request), timeout_s)
        except hook.Unreachable as reason:
            raise Unavailable(f"memd was started but does not answer ({reason})") from None
    if kind == b"t":
        code, _, text = body.partition(b"\n")
        return int(code), text
    reply = protocol.decode_reply(body)
    if isinstance(reply, protocol.Failure):
        raise Rejected(reply)
    raise Unavailable(f"memd answered {type(reply).__name__} where text was due")


def _exchange(request: protocol.AnyRequest, timeout_s: float) -> bytes:
    kind, body = hook.exchange(b"j", protocol.encode(request), timeout_s)
    if kind != b"j":
        raise hook.Unreachable("memd answered in another form than asked for")
    return body


def client_config_dir() -> bytes:
    """This shell's CLAUDE_CONFIG_DIR, absolute; empty when unset."""
    chosen = os.environb.get(b"CLAUDE_CONFIG_DIR", b"")
    return os.path.abspath(chosen) if chosen else b""


def ping() -> protocol.Pong | None:
    """The running daemon's answer, or None."""
    try:
        return ask(protocol.Ping(), protocol.Pong, start=False, timeout_s=5.0)
    except MemdError:
        return None


def needs_yes(reason: MemdError) -> bool:
    return reason.code == NeedsConfirmation.code


# ----------------------------------------------------------------------------- starting


def start_daemon() -> protocol.Pong:
    """A daemon that answers: by the service where one is installed, else detached from this terminal.

    raises Unavailable with what the daemon said when it did not come up
    """
    from memctl import services

    if services.service_state().is_usable:
        services.start_service()
        return _wait_for_answer(None)
    return _start_detached()


def _start_detached() -> protocol.Pong:
    with _start_log() as stderr:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "memd", "--detached"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd="/",
            env=_daemon_environment(),
            start_new_session=True,
        )
    return _wait_for_answer(child)


def _start_log() -> BinaryIO:
    """Where a daemon says why it does not start. raises CannotCreate"""
    from memctl.files import make_folder

    path = paths.state_dir() + b"/start.log"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        make_folder(paths.state_dir(), 0o700)
        return os.fdopen(os.open(path, flags, 0o600), "wb")
    except DiskError as reason:
        raise CannotCreate(f"memd cannot start: {reason}", remedy=paths.WRITABLE) from reason
    except OSError as reason:
        raise CannotCreate(
            f"memd cannot start: cannot write {paths.shown(path)}: {reason.strerror or reason}",
            remedy=paths.WRITABLE,
        ) from reason


def _daemon_environment() -> dict[str, str]:
    """What the daemon may know of this shell: places and language, none of its tokens."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith(("XDG_", "MEMD_"))
    }


def _wait_for_answer(child: subprocess.Popen[bytes] | None) -> protocol.Pong:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        answer = ping()
        if answer is not None:
            return answer
        if child is not None and child.poll() is not None:
            break
        time.sleep(0.02)
    answer = ping()  # another starter may have won while ours left
    if answer is not None:
        return answer
    said = _complaint() if child is not None else ""
    raise Unavailable(
        "memd did not start" + (f": {said}" if said else ""),
        remedy="Run `memd` in a terminal to see what it says, or `memctl doctor`.",
    )


def _complaint() -> str:
    try:
        with open(paths.state_dir() + b"/start.log", "rb") as file:
            return file.read()[-2000:].decode("utf-8", "replace").strip().removeprefix("memd: ")
    except OSError:
        return ""
