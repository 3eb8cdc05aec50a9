"""Every failure a user may see: a stable code, what happened to which thing, what to do next.

A bug is none of these. It keeps its traceback in the log, and the request that met it is answered
with `internal` while the daemon lives on.
"""

from __future__ import annotations

import errno


class MemdError(Exception):
    """The base: `code` goes over the wire and never changes; `remedy` is one sentence in the imperative."""

    code = "internal"
    remedy = "Run `memctl doctor` and attach its output to a bug report."
    exit_status = 70

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy


class UsageError(MemdError):
    """The words of a command are off."""

    code = "usage"
    remedy = "Run the command with --help to see what it takes."
    exit_status = 64


class BadRequest(MemdError):
    """What came over the socket is not a request of this version."""

    code = "bad_request"
    remedy = "Use the memctl that belongs to this memd; `memctl up` restarts a daemon of another version."
    exit_status = 65


class NotFound(MemdError):
    """What was named is not there."""

    code = "not_found"
    remedy = "Check the name."
    exit_status = 65


class Unavailable(MemdError):
    """No daemon answers."""

    code = "unavailable"
    remedy = "Start it with `memctl up`."
    exit_status = 69


class CannotCreate(MemdError):
    """A file or folder memd needs cannot be made."""

    code = "cannot_create"
    remedy = "Check who owns the folder and whether it is writable."
    exit_status = 73


NO_ROOM = "Free some space on the disk that holds it; what waits for that goes in by itself."


class DiskError(MemdError):
    """The system refused to read or write a file: says the verb, the path and the reason."""

    code = "io"
    remedy = "Check free space and permissions, then try again."
    exit_status = 74

    def __init__(self, verb: str, path: str | bytes, reason: OSError, *, remedy: str | None = None) -> None:
        shown = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
        if remedy is None and reason.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = NO_ROOM
        super().__init__(f"cannot {verb} {shown}: {reason.strerror or reason}", remedy=remedy)
        self.errno = reason.errno


class TryAgain(MemdError):
    """Somebody else holds what is needed, or the daemon is busy or going down."""

    code = "try_again"
    remedy = "Retry in a moment."
    exit_status = 75


class Refused(MemdError):
    """memd will not do this, because it could cost the user something."""

    code = "refused"
    remedy = "See `memctl doctor` for what stands in the way."
    exit_status = 77


class ConfigError(MemdError):
    """The configuration says something memd does not understand."""

    code = "config"
    remedy = "Correct the file; `memctl config --show` lists every key."
    exit_status = 78


class AlreadyRunning(MemdError):
    """Another memd serves this user."""

    code = "already_running"
    remedy = "Use it, or stop it with `memctl down`."
    exit_status = 75


class NeedsConfirmation(MemdError):
    """The request goes further than its words: somebody must say yes. `path` is what it would act on."""

    code = "needs_confirmation"
    remedy = "Say yes when asked, or repeat the command with --yes."
    exit_status = 77

    def __init__(self, message: str, path: bytes) -> None:
        super().__init__(message)
        self.path = path
