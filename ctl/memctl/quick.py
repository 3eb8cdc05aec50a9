"""`memctl status` and `memctl hook` without argparse, json or the protocol's types.

The daemon renders, this prints. What installed hooks run is `memctl.hook_start`, which costs less still.
"""

import posix
import sys

from memctl import hook

TYPE_CHECKING = False  # `typing` would cost more than all else here
if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 10.0
NOT_RUNNING = 69


def status(words: list[str], or_else: "Callable[[], int | None] | None" = None) -> int | None:
    """Print the status and return the exit status; None when these words need the long way.

    or_else  does it instead where no daemon answers; otherwise that is said
    """
    as_json = words == ["--json"]
    if words and not as_json:
        return None
    from memd import __version__

    request = b'{"op":"status","form":"%b","color":%b,"width":%d,"installed":"%b","config_dir":"%b"}' % (
        b"json" if as_json else b"text",
        b"true" if wants_color() else b"false",
        columns(),
        __version__.encode(),
        config_dir_base64(),
    )
    try:
        kind, body = hook.exchange(b"j", request, TIMEOUT_S)
    except hook.Unreachable as reason:
        return _not_running(reason, as_json) if or_else is None else or_else()
    if kind != b"t":  # a failure, or a daemon that speaks otherwise: the long way explains it
        return None
    code, _, text = body.partition(b"\n")
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
    return int(code)


def _not_running(reason: OSError, as_json: bool) -> int:
    if as_json:
        sys.stdout.write('{"health":"down","health_line":"memd is not running"}\n')
    sys.stderr.write(f"memctl: memd is not running ({reason})\nStart it with `memctl up`.\n")
    return NOT_RUNNING


def wants_color(descriptor: int = 1) -> bool:
    """A terminal that has not been told otherwise (https://no-color.org)."""
    if posix.environ.get(b"NO_COLOR") or posix.environ.get(b"TERM") == b"dumb":
        return False
    return posix.isatty(descriptor)


def columns() -> int:
    try:
        return posix.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def config_dir_base64() -> bytes:
    """This shell's CLAUDE_CONFIG_DIR as the protocol carries bytes; empty when unset or relative."""
    chosen = posix.environ.get(b"CLAUDE_CONFIG_DIR", b"")
    if not chosen.startswith(b"/"):
        return b""
    import binascii

    return binascii.b2a_base64(chosen, newline=False)


def known_event(harness: str, event: str) -> tuple[bytes, bool, bool]:
    """The harmless answer of an event, whether it may wait, whether its text is kept: for hooks by hand."""
    from memd.harness.registry import resolve

    hooks = resolve(harness).hooks
    known = hooks.event(event) if hooks is not None else None
    if known is None:
        return b"", False, False
    return known.harmless.encode(), known.matters, known.keeps
