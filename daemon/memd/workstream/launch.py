"""What a child is started as: which program, what stands after its name, what happens to its environment.

What an argument means is the harness's own affair and stands in its `Launch`. Here the client's words, PATH
and variables come together with it; the daemon's own PATH, directory and variables never take part.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from memd import disk
from memd.errors import DiskError, UsageError
from memd.harness import registry
from memd.harness.arguments import is_usable
from memd.harness.launching import Argv, Intent, Launch, Said
from memd.harness.model import Adapter
from memd.workstream.bare import NoProgram

YOLO, FRESH = "--yolo", "--fresh"
COMMON_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")

PROBE_S = 5.0
MAX_HELP_BYTES = 1 << 20
KNOWN_FOR_S = 86_400.0  # behind the shim of a version manager the program changes and its file does not
DOUBTFUL_FOR_S = 300.0
MAX_KNOWN = 64
MAX_STATE_BYTES = 1 << 20

_SHOWN_PATH_CHARACTERS = 400
_ESCAPES = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b[@-_]")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Whose environment counts: the launcher's.

    cwd        absolute
    path       its PATH; empty: it has none, and the system's usual one is looked through
    variables  its store variables: those of `variables()` that are set there, empty ones included
    """

    cwd: bytes
    home: bytes
    path: bytes
    variables: Mapping[str, bytes] = {}


class Wrapped(msgspec.Struct, frozen=True, kw_only=True):
    """Native arguments without the wrapper's words, and whether those were there."""

    native: tuple[str, ...]
    is_yolo: bool = False
    is_fresh: bool = False


def variables() -> tuple[str, ...]:
    """The names of all variables that a client sends: they decide where harnesses keep what they write."""
    named = {name for launch in _launches().values() for name in launch.variables}
    return (*COMMON_VARIABLES, *sorted(named.difference(COMMON_VARIABLES)))


def chosen(word: str) -> tuple[Adapter, str]:
    """The adapter a launcher word means, and the flavour that the word asks for (empty: none).

    word    a name, a wire name, an alias or a flavour's word, in any case
    raises  UsageError, with the words there are, also for a harness that memd cannot start
    """
    plain = word.strip().casefold().replace("_", "-")
    launches = _launches()
    for name, launch in launches.items():
        for other, flavor in launch.words.items():
            if other.casefold() == plain:
                return registry.adapters()[name], flavor
    known = registry.canonical(plain)
    if known in launches:
        return registry.adapters()[known], ""
    message = f"no harness is called {word!r}" if known is None else f"{known} cannot be started by memd"
    raise UsageError(message, remedy=f"Use one of: {', '.join(launches)}.")


def unwrap(native: Sequence[bytes]) -> Wrapped:
    """Take the wrapper's own words out of what a person typed after the harness's name.

    They are exact words and count wherever they stand before a `--`, also as the value of another option or
    in place of a prompt; behind it everything is native.
    """
    words = [os.fsdecode(word) for word in native]
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word not in (YOLO, FRESH)]
    return Wrapped(native=(*kept, *words[end:]), is_yolo=YOLO in words[:end], is_fresh=FRESH in words[:end])


def compose(adapter: Adapter, said: Said, native: Sequence[str], intent: Intent) -> Argv:
    """What stands after the program's name.

    said    what `adapter.launch.read` says of `native`
    intent  what is wanted of a launch that says nothing itself. A session that a person named goes before it,
            and a utility, help or version gets nothing at all
    raises  UsageError for a harness that memd cannot start
    """
    launch = _launch(adapter)
    if said.is_passing:
        return Argv(arguments=tuple(native))
    if said.has_selector:
        argv = launch.compose(native, replace(intent, session="", new_id=""))
        return replace(argv, session=said.session)
    if intent.session and not is_usable(intent.session):
        notice = f"{adapter.title} begins a new session: the linked one has an id no command line may hold."
        argv = launch.compose(native, replace(intent, session=""))
        return replace(argv, notices=(notice, *argv.notices))
    return launch.compose(native, intent)


def probes(launch: Launch, said: Said, intent: Intent) -> tuple[str, ...]:
    """The words to look for in the program's help before `compose`; none when this launch need not know."""
    is_fresh = not said.has_selector and not intent.session
    matter = [word for word in launch.probes if (intent.is_yolo if word in launch.yolo_probes else is_fresh)]
    return launch.probes if matter and not said.is_passing else ()


def store_variables(said: Said, client: Client) -> dict[str, bytes]:
    """The variables by which the child will find its stores: the client's, with what its arguments overrule.

    Empty ones count as unset. Give these to `Adapter.stores` in place of the client's own.
    """
    found = {name: value for name, value in client.variables.items() if value.strip()}
    for name, folder in said.folders.items():
        found[name] = os.path.join(client.cwd, os.fsencode(folder))
    return found


def blanks(launch: Launch, client: Client) -> tuple[str, ...]:
    """This harness's store variables that are set but empty: the child must not see them, as we do not."""
    names = (*COMMON_VARIABLES[1:], *launch.variables)
    return tuple(name for name in names if not client.variables.get(name, b"-").strip())


# ------------------------------------------------------------------------------ programs


def program(launch: Launch, client: Client, executable: bytes = b"") -> bytes:
    """The absolute path of what is started; a link in it stays a link.

    executable  a person's choice: a path is used as it is, from the client's directory; a bare name is looked
                for in the client's PATH, and without one the harness's own names are
    raises      NoProgram, which says what was looked for and where
    """
    if b"/" in executable:
        path = os.path.join(client.cwd, executable)
        trouble = _trouble(path)
        if trouble:
            raise NoProgram(
                f"{_shown(path)} cannot be started: {trouble}",
                remedy="Name a program behind --executable, or leave it away to look in PATH.",
            )
        return path
    names = (executable,) if executable else tuple(map(os.fsencode, launch.executables))
    found = _find(names, client)
    if found is None:
        told = " or ".join(map(_shown, names))
        raise NoProgram(
            f"no program called {told} was found in PATH ({_shown_path(client)})",
            remedy="Install it, put its folder into PATH, or name the program with --executable.",
        )
    return found


def installed(adapters: Iterable[Adapter], client: Client) -> frozenset[str]:
    """The names of those harnesses whose program is in the client's PATH."""
    return frozenset(
        adapter.name
        for adapter in adapters
        if adapter.launch is not None
        and _find(tuple(map(os.fsencode, adapter.launch.executables)), client) is not None
    )


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of a program was seen to print. `until`: seconds since the epoch"""

    asked: frozenset[str]
    known: frozenset[str]
    until: float


class Probes:
    """Which words the `--help` of installed programs knows, learnt once for each version of a program.

    A version is a file: its real path, size and time. Answers are kept in a small file, where any trouble
    only costs that the program is asked again. Calls block for up to `PROBE_S`; several may run at once.
    """

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._kept: dict[str, _Known] | None = None

    def known(self, program: bytes, probes: tuple[str, ...], client: Client) -> frozenset[str]:
        """Those of `probes` that stand as words in what `PROGRAM --help` prints.

        None at all of a program that hangs, fails or says nothing; it is asked again a little later.
        """
        if not probes:
            return frozenset()
        try:
            facts = os.stat(program)
            version = f"{os.fsencode(os.path.realpath(program)).hex()}:{facts.st_size}:{facts.st_mtime_ns}"
        except (OSError, ValueError):
            return frozenset()
        now = time.time()
        with self._lock:
            if self._kept is None:
                self._kept = _load(self._path)
            kept = self._kept.get(version)
        if kept is not None and kept.asked.issuperset(probes) and now < kept.until <= now + KNOWN_FOR_S:
            return kept.known.intersection(probes)
        text = _help(program, client)
        known = frozenset(probe for probe in probes if _has_word(text, probe))
        lasts_s = KNOWN_FOR_S if text else DOUBTFUL_FOR_S
        self._keep(version, _Known(asked=frozenset(probes), known=known, until=now + lasts_s), now)
        return known

    def _keep(self, version: str, fresh: _Known, now: float) -> None:
        with self._lock:
            kept = {key: one for key, one in (self._kept or {}).items() if now < one.until}
            kept.pop(version, None)
            kept[version] = fresh
            self._kept = dict(list(kept.items())[-MAX_KNOWN:])
            with contextlib.suppress(DiskError):  # asked again by the next daemon
                disk.replace_file(self._path, msgspec.json.encode(self._kept))


def _launches() -> dict[str, Launch]:
    return {name: one.launch for name, one in registry.adapters().items() if one.launch is not None}


def _launch(adapter: Adapter) -> Launch:
    if adapter.launch is None:
        raise UsageError(f"{adapter.title} cannot be started by memd", remedy="Start it by its own name.")
    return adapter.launch


def _find(names: Collection[bytes], client: Client) -> bytes | None:
    """The first of the names that the PATH has anywhere; an empty entry is the client's directory."""
    folders = (client.path or os.fsencode(os.defpath)).split(b":")
    for name in names:
        for folder in folders:
            path = os.path.join(client.cwd, folder, name)
            if not _trouble(path):
                return path
    return None


def _trouble(path: bytes) -> str:
    """Why it is no program; empty when it is one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "it is not a file"
        return "" if os.access(path, os.X_OK) else "it may not be executed"
    except ValueError:
        return "no path holds a NUL"
    except OSError as reason:
        return reason.strerror or "it is not there"


def _shown(name: bytes) -> str:
    return repr(os.fsdecode(name).encode("utf-8", "backslashreplace").decode())


def _shown_path(client: Client) -> str:
    text = (client.path or os.fsencode(os.defpath)).decode("utf-8", "backslashreplace")
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= _SHOWN_PATH_CHARACTERS else text[:_SHOWN_PATH_CHARACTERS] + "…"


def _load(path: bytes) -> dict[str, _Known]:
    try:
        text = disk.read_file(path, MAX_STATE_BYTES)
        return msgspec.json.decode(text, type=dict[str, _Known]) if text else {}
    except (DiskError, msgspec.DecodeError):
        return {}


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def _help(program: bytes, client: Client) -> str:
    """What `PROGRAM --help` prints on either output; empty when it fails, hangs, or prints too much."""
    # with its store variables: some make their folders even for a help, and must not make others than usual
    environment = {os.fsencode(name): value for name, value in client.variables.items() if value.strip()}
    environment |= {b"PATH": client.path or os.fsencode(os.defpath), b"HOME": client.home, b"LC_ALL": b"C"}
    try:
        process = subprocess.Popen(
            [program, b"--help"],
            cwd=client.cwd,  # a version manager decides by the directory what its shim starts
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    until = time.monotonic() + PROBE_S
    try:
        text = _read(process, until)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until - time.monotonic()))
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # with whatever it started
        status = process.wait()
    return _ESCAPES.sub("", text.decode("utf-8", "replace")) if status == 0 else ""


def _read(process: subprocess.Popen[bytes], until: float) -> bytes:
    assert process.stdout is not None
    text = b""
    with process.stdout as stdout:
        while len(text) <= MAX_HELP_BYTES:
            left = until - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                return b""
            chunk = os.read(stdout.fileno(), 1 << 16)
            if not chunk:
                return text
            text += chunk
    return b""
