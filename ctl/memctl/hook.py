"""The hook path in one file: where memd's files lie, how to reach its socket, how a message is framed.

It runs as `<interpreter> -I -S hook.py ...` inside other people's agents, so it imports builtins only
(`sys`, `posix`, `_socket`, `time`; a test fails when that grows) and never decodes what it carries.
Everything else that needs a path goes through `memctl.paths`, which re-exports what stands here.

A message is `memd1 KIND LENGTH` and a newline, then LENGTH bytes. Kinds: `j` one JSON Struct of
`memd.protocol`, `h` a hook's header and stdin, `t` a rendered answer (an exit status, a newline, text).

Paths are bytes: a home need not be UTF-8.
"""

import _socket
import posix
import sys
import time

MAX_JSON_BYTES = 1 << 20
MAX_HOOK_BYTES = 16 << 20
MAX_TEXT_BYTES = 64 << 20
HEADER_BYTES = 64  # the longest header line a peer may send, newline included

CONNECT_S = 0.25  # a full backlog answers EAGAIN at once: try again this long
SOCKET_LIMIT = 103 if sys.platform == "darwin" else 107  # bytes in sun_path, less the final NUL


class Unreachable(OSError):
    """No daemon can be talked to: none listens, it does not answer, or its folder is not ours alone."""


def home_dir() -> bytes:
    home = posix.environ.get(b"HOME")
    if home and home.startswith(b"/"):
        return home.rstrip(b"/") or b"/"
    import pwd

    return pwd.getpwuid(posix.getuid()).pw_dir.encode("utf-8", "surrogateescape")


def _base(variable: bytes, linux: bytes, darwin: bytes) -> bytes:
    """An XDG folder of ours, or the usual place below the home."""
    if sys.platform == "darwin":
        return home_dir() + b"/" + darwin
    chosen = posix.environ.get(variable)
    if chosen and chosen.startswith(b"/"):  # the XDG specification: relative values are ignored
        return chosen.rstrip(b"/") + b"/memd"
    return home_dir() + b"/" + linux + b"/memd"


def config_dir() -> bytes:
    return _base(b"XDG_CONFIG_HOME", b".config", b"Library/Application Support/memd/config")


def data_dir() -> bytes:
    return _base(b"XDG_DATA_HOME", b".local/share", b"Library/Application Support/memd/data")


def state_dir() -> bytes:
    return _base(b"XDG_STATE_HOME", b".local/state", b"Library/Application Support/memd/state")


def published_path() -> bytes:
    """The file in which the running daemon says where it listens."""
    return state_dir() + b"/address"


def computed_socket() -> bytes:
    """Where the socket is when nobody says otherwise: the runtime folder, else a short one of our own."""
    runtime = posix.environ.get(b"XDG_RUNTIME_DIR")
    if runtime and runtime.startswith(b"/"):
        path = runtime.rstrip(b"/") + b"/memd/memd.sock"
        if len(path) <= SOCKET_LIMIT:
            return path
    return b"/tmp/memd-%d-%016x/memd.sock" % (posix.getuid(), _fnv(state_dir()))


def _fnv(data: bytes) -> int:
    """FNV-1a, 64 bits: two homes get two folders. hashlib would cost a hook more than its own work."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def computed_address() -> bytes:
    """Where a daemon listens that nobody handed a socket."""
    return posix.environ.get(b"MEMD_SOCKET") or computed_socket()


def find_socket() -> bytes:
    """`MEMD_SOCKET`, else what the daemon published, else the computed place."""
    named = posix.environ.get(b"MEMD_SOCKET")
    if named:
        return named
    try:
        fd = posix.open(published_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
    except OSError:
        return computed_socket()
    try:
        if posix.fstat(fd).st_uid == posix.getuid():
            path = posix.read(fd, 4096)
            if path.startswith(b"/") and b"\0" not in path:
                return path
    except OSError:
        pass
    finally:
        posix.close(fd)
    return computed_socket()


def is_private(folder: bytes) -> bool:
    """Whether `folder` is a real directory that only this user can enter."""
    try:
        facts = posix.lstat(folder)
    except OSError:
        return False
    return facts.st_mode & 0o170077 == 0o040000 and facts.st_uid == posix.getuid()


def dial(path: bytes, timeout_s: float) -> _socket.socket:
    """A connected socket with `timeout_s` set; raises Unreachable."""
    if b"/" in path and not is_private(path[: path.rindex(b"/")]):
        raise Unreachable(f"{_shown(path)}: its folder is missing or open to others")
    deadline = time.monotonic() + min(CONNECT_S, timeout_s)
    while True:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout_s)
            sock.connect(path)
            return sock
        except BlockingIOError:
            sock.close()
            if time.monotonic() >= deadline:
                raise Unreachable(f"{_shown(path)}: too many clients wait") from None
            time.sleep(0.01)
        except OSError as reason:
            sock.close()
            raise Unreachable(f"{_shown(path)}: {reason.strerror or reason}") from None


def frame(kind: bytes, body: bytes) -> bytes:
    return b"memd1 %b %d\n%b" % (kind, len(body), body)


def read_reply(sock: _socket.socket, limit: int = MAX_TEXT_BYTES) -> tuple[bytes, bytes]:
    """The kind and body of one message; raises Unreachable when it is odd, cut or late."""
    held = b""
    try:
        while b"\n" not in held:
            if len(held) > HEADER_BYTES:
                raise Unreachable("memd answered something that is not a reply")
            more = sock.recv(65536)
            if not more:
                raise Unreachable("memd closed the connection without an answer")
            held += more
        line, _, rest = held.partition(b"\n")
        words = line.split(b" ")
        if len(words) != 3 or words[0] != b"memd1" or not words[2].isdigit() or int(words[2]) > limit:
            raise Unreachable("memd answered something that is not a reply")
        length = int(words[2])
        parts = [rest]
        have = len(rest)
        while have < length:
            more = sock.recv(min(1 << 20, length - have))
            if not more:
                raise Unreachable("memd closed the connection in the middle of an answer")
            parts.append(more)
            have += len(more)
    except Unreachable:
        raise
    except OSError as reason:
        raise Unreachable(f"memd does not answer: {reason.strerror or reason}") from None
    return words[1], b"".join(parts)[:length]


def exchange(kind: bytes, body: bytes, timeout_s: float) -> tuple[bytes, bytes]:
    """Send one message to the daemon and return its reply; raises Unreachable."""
    sock = dial(find_socket(), timeout_s)
    try:
        sock.sendall(frame(kind, body))
        return read_reply(sock)
    except Unreachable:
        raise
    except OSError as reason:
        raise Unreachable(f"memd does not answer: {reason.strerror or reason}") from None
    finally:
        sock.close()


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
