"""The hook path in one file: where memd's files lie, how to reach its socket, what a hook does.

It runs inside other people's agents, as a copy that `memctl.hook_start` loads, so it imports builtins only
(`sys`, `posix`, `time`, `_signal`, `_socket`; a test fails when that grows) and decodes nothing it carries.
Everything else that needs a path goes through `memctl.paths`, which re-exports what stands here.

A message is `memd1 KIND LENGTH` and a newline, then LENGTH bytes. Kinds: `j` one JSON Struct of
`memd.protocol`, `h` a hook's header and stdin, `t` a rendered answer (an exit status, a newline, text).

    HARNESS EVENT [--wait] [--keep] [--else ANSWER]

A hook reads its stdin to the end, tells the daemon, prints what the daemon says, and exits with 0. When there
is no answer within 250 ms, with `--wait` within 2 s, it prints ANSWER, exactly, and leaves a note for the
daemon to look later: which harness, event, directory and run; with `--keep` also what stood on stdin. It says
nothing of that itself: `memctl status` and `memctl doctor` do.

Paths are bytes: a home need not be UTF-8.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
import time

MAX_JSON_BYTES = 1 << 20
MAX_HOOK_BYTES = 16 << 20
MAX_TEXT_BYTES = 64 << 20
MAX_ANSWER_BYTES = 1 << 20  # of a hook
HEADER_BYTES = 64  # the longest header line a peer may send, newline included

HOOK_S = 0.25
WAIT_S = 2.0
STDIN_S = 5.0  # for an agent that never closes our stdin: what came by then counts
STUCK_S = 1.0  # a standard file that is set to not wait, and is not ready
MAX_NOTES = 512  # that wait for a daemon; it looks at everything for the first one
MAX_KEPT_BYTES = 64 << 20  # of all notes, before another one with a stdin is left
NOTE = b"memd-note1"

CONNECT_S = 0.25  # a full backlog answers EAGAIN at once: try again this long
SOCKET_LIMIT = 103 if sys.platform == "darwin" else 107  # bytes in sun_path, less the final NUL


class Unreachable(OSError):
    """No daemon can be talked to: none listens, it does not answer, or its folder is not ours alone."""


class Late(Unreachable):
    """There is a daemon, but it is busy."""


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


def _is_there(path: bytes) -> bool:
    try:
        posix.lstat(path)
    except OSError:
        return False
    return True


def dial(path: bytes, timeout_s: float, busy_s: float = CONNECT_S) -> _socket.socket:
    """A connected socket with `timeout_s` set; raises Unreachable, Late after `busy_s` of a full backlog."""
    if b"/" in path and not is_private(folder := path[: path.rindex(b"/")]):
        why = "is open to others" if _is_there(folder) else "is not there: no daemon has made it yet"
        raise Unreachable(f"{_shown(path)}: its folder {why}")
    deadline = time.monotonic() + min(busy_s, timeout_s)
    while True:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout_s)
            sock.connect(path)
            return sock
        except BlockingIOError:
            sock.close()
            if time.monotonic() >= deadline:
                raise Late(f"{_shown(path)}: too many clients wait") from None
            time.sleep(0.01)
        except OSError as reason:
            sock.close()
            raise Unreachable(f"{_shown(path)}: {reason.strerror or reason}") from None


def frame(kind: bytes, body: bytes) -> bytes:
    return b"memd1 %b %d\n%b" % (kind, len(body), body)


def read_reply(
    sock: _socket.socket, limit: int = MAX_TEXT_BYTES, deadline: float = 0.0
) -> tuple[bytes, bytes]:
    """The kind and body of one message; raises Unreachable when it is odd or cut, Late when it is late.

    deadline  on the monotonic clock, for all of it; 0: each part may take what the socket is set to
    """
    held = b""
    try:
        while b"\n" not in held:
            if len(held) > HEADER_BYTES:
                raise Unreachable("memd answered something that is not a reply")
            _set(sock, deadline)
            more = sock.recv(65536)
            if not more:
                raise Unreachable("memd closed the connection without an answer")
            held += more
        line, _, rest = held.partition(b"\n")
        words = line.split(b" ")
        is_header = len(words) == 3 and words[0] == b"memd1" and words[2].isdigit() and len(words[2]) <= 12
        if not is_header or int(words[2]) > limit:
            raise Unreachable("memd answered something that is not a reply")
        length = int(words[2])
        parts = [rest]
        have = len(rest)
        while have < length:
            _set(sock, deadline)
            more = sock.recv(min(1 << 20, length - have))
            if not more:
                raise Unreachable("memd closed the connection in the middle of an answer")
            parts.append(more)
            have += len(more)
    except Unreachable:
        raise
    except TimeoutError:
        raise Late("memd does not answer: timed out") from None
    except OSError as reason:
        raise Unreachable(f"memd does not answer: {reason.strerror or reason}") from None
    return words[1], b"".join(parts)[:length]


def _set(sock: _socket.socket, deadline: float) -> None:
    if deadline:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))


def exchange(kind: bytes, body: bytes, timeout_s: float) -> tuple[bytes, bytes]:
    """Send one message to the daemon and return its reply; raises Unreachable."""
    return _exchange(dial(find_socket(), timeout_s), kind, body, MAX_TEXT_BYTES, 0.0)


def _exchange(
    sock: _socket.socket, kind: bytes, body: bytes, limit: int, deadline: float
) -> tuple[bytes, bytes]:
    try:
        sock.sendall(frame(kind, body))
        return read_reply(sock, limit, deadline)
    except Unreachable:
        raise
    except TimeoutError:
        raise Late("memd does not answer: timed out") from None
    except OSError as reason:
        raise Unreachable(f"memd does not answer: {reason.strerror or reason}") from None
    finally:
        sock.close()


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


# ------------------------------------------------------------------------------------------------ the hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Known = Callable[[str, str], tuple[bytes, bool, bool]]


def main(words: list[str], known: "Known | None" = None) -> int:
    """Run a hook and return 0, whatever happens.

    words  HARNESS EVENT and the options
    known  gives the answer, `--wait` and `--keep` of an event, for words that do not say them
    """
    answer = otherwise = None
    named: list[str] = []
    try:
        _heed_signals()
        _open_closed()
        named, is_waiting, is_keeping, otherwise = _options(words)
        payload = _read_all()
        if len(named) >= 2:
            answer = _told(named[0], named[1], is_waiting, is_keeping, payload, known)
        else:
            _write(2, b"memd: a hook needs the words HARNESS EVENT\n")
    except BaseException:  # noqa: BLE001, S110  also a signal's: the agent goes on, whatever it was
        pass
    try:
        if answer is None:
            answer = otherwise
        if answer is None and known is not None:
            answer = known(named[0], named[1])[0]
        if answer:
            _write(1, answer)
    except BaseException:  # noqa: BLE001, S110  nobody reads it any more
        pass
    return 0


def _options(words: list[str]) -> "tuple[list[str], bool, bool, bytes | None]":
    """The words that are no options, `--wait`, `--keep`, and what stands behind `--else`."""
    named: list[str] = []
    is_waiting = is_keeping = False
    otherwise = None
    rest = iter(words)
    for word in rest:
        if word == "--else":
            otherwise = _raw(next(rest, ""))
        elif word == "--wait":
            is_waiting = True
        elif word == "--keep":
            is_keeping = True
        else:
            named.append(word)
    return named, is_waiting, is_keeping, otherwise


def _told(
    harness: str, event: str, is_waiting: bool, is_keeping: bool, payload: bytes, known: "Known | None"
) -> "bytes | None":
    """What the daemon says; None when it says nothing that can be printed."""
    environ = posix.environ
    try:
        cwd = posix.getcwdb()
    except OSError:  # removed under our feet
        cwd = b""
    run = environ.get(b"MEMD_RUN_ID", b"")[:64]
    who = (_raw(harness), _raw(event), cwd, run, b"%d" % posix.getppid(), b"")
    body = b"\0".join(who)
    body += payload[: MAX_HOOK_BYTES - len(body)]
    try:
        try:
            kind, reply = _ask(body, WAIT_S if is_waiting else HOOK_S)
        except Late:
            if is_waiting or known is None or not known(harness, event)[1]:
                raise
            kind, reply = _ask(body, WAIT_S - HOOK_S)
    except Unreachable:
        if known is not None:
            is_keeping = is_keeping or known(harness, event)[2]
        leave_note(who, payload if is_keeping else b"")
        return None
    code, newline, text = reply.partition(b"\n")
    return text if kind == b"t" and newline and code == b"0" else None


def _ask(body: bytes, wait_s: float) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + wait_s
    sock = dial(find_socket(), wait_s, wait_s)
    _set(sock, deadline)
    return _exchange(sock, b"h", body, MAX_ANSWER_BYTES, deadline)


def notes_dir() -> bytes:
    """Where hooks that found no daemon leave their notes."""
    return state_dir() + b"/spool"


def leave_note(who: tuple[bytes, ...], payload: bytes) -> None:
    """Leave word of a hook for the daemon to come, whole or not at all; too many of them are not kept."""
    folder = notes_dir()
    names = _listed(folder)
    if len(names) >= MAX_NOTES:
        return
    if payload:
        held = sum(posix.lstat(folder + b"/" + name).st_size for name in names)
        if held + len(payload) > MAX_KEPT_BYTES:
            payload = b""
    now = time.time_ns()
    name = b"%d-%d" % (now // 1000, posix.getpid())
    fresh = folder + b"/." + name
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
    fd = posix.open(fresh, flags, 0o600)
    try:
        _write(fd, b"\0".join((NOTE, *who[:5], b"%d" % (now // 1_000_000), payload)))
        if payload:
            posix.fsync(fd)
    except BaseException:
        posix.unlink(fresh)
        raise
    finally:
        posix.close(fd)
    posix.rename(fresh, folder + b"/" + name)


def _listed(folder: bytes) -> list[bytes]:
    try:
        return posix.listdir(folder)
    except FileNotFoundError:
        pass
    at = folder.find(b"/", 1)
    while at > 0:
        _make(folder[:at])
        at = folder.find(b"/", at + 1)
    _make(folder)
    return []


def _make(folder: bytes) -> None:
    try:
        posix.mkdir(folder, 0o700)
    except OSError:
        pass  # it is there, or the note fails in a moment


def _open_closed() -> None:
    """A standard file that was closed must not become our socket."""
    for fd in (0, 1, 2):
        try:
            posix.fstat(fd)
        except OSError:
            posix.open(b"/dev/null", posix.O_RDWR)


def _heed_signals() -> None:
    """A signal to stop, or an alarm, breaks off what is being waited for; then the hook answers and ends."""
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGALRM):
        _signal.signal(number, _break_off)


def _break_off(number: int, _frame: object) -> None:
    raise TimeoutError if number == _signal.SIGALRM else KeyboardInterrupt


def _read_all() -> bytes:
    """Stdin to its end, of which the first `MAX_HOOK_BYTES` are kept; of a terminal nothing."""
    if posix.isatty(0):
        return b""
    parts: list[bytes] = []
    size = 0
    try:
        _signal.setitimer(_signal.ITIMER_REAL, STDIN_S)
        while True:
            try:
                more = posix.read(0, 65536)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            if not more:
                break
            if size < MAX_HOOK_BYTES:
                parts.append(more)
            size += len(more)
    except OSError:
        pass  # the alarm, or nothing that can be read
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    return b"".join(parts)


def _write(fd: int, data: bytes) -> None:
    give_up = 0.0
    while data:
        try:
            data = data[posix.write(fd, data) :]
        except BlockingIOError:
            give_up = give_up or time.monotonic() + STUCK_S
            if time.monotonic() > give_up:
                raise
            time.sleep(0.005)


def _raw(word: str) -> bytes:
    """A word of the command line as the bytes that it was."""
    return word.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
