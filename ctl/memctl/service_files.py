"""The text of the service files: rendered from templates, and recognised again.

Pure; the templates lie in `systemd/` and `launchd/`. A path may hold any byte but NUL. Where systemd takes
a path as it is, the line names the interpreter itself. systemd refuses quotes, backslashes and control
characters in the name of a program, expands `$` in its arguments and reads UTF-8 only; such a line goes
through `/bin/sh`, which gets every word in octal.

Each file carries a mark, one comment line with the version that wrote it and a checksum over that and all
other lines. While it holds nobody edited the file, and a later install may rewrite it.

source  systemd.syntax(7), systemd.service(5), systemd.exec(5), systemd 252; launchd.plist(5), macOS 14
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

SERVICE = "memd.service"
SOCKET = "memd.socket"
LABEL = "local.memd"
PLIST = LABEL + ".plist"

FileState = Literal[
    "absent",
    "ours",  # as an install left it
    "changed",  # written by an install, edited since
    "foreign",  # not from us, or no regular file (a mask, a link into somebody's dotfiles)
]

RUNTIME_SOCKET = b"%t/memd/memd.sock"  # %t: the user's runtime folder, as the service manager knows it

# Decodes its arguments from octal, exports those before `--`, becomes the program behind it. The dot keeps
# a newline at the end of a word, which `$( )` would drop. No profile is read: the shell is not a login one.
_TRAMPOLINE = (
    'for a; do shift; a=$(printf %b. "$a"); set -- "$@" "${a%.}"; done; '
    'while [ "$1" != -- ]; do export "$1"; shift; done; shift; exec "$@"'
)

_BARE = re.compile(r"[A-Za-z0-9/._+:=@,-]+")
_OCTAL_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+:=@,-")
_MARK = re.compile(
    rb"^(?:# |// |<!-- )written by memd (\S+), unedited while its checksum is ([0-9a-f]{64})(?: -->)?\n", re.M
)


class Installation(NamedTuple):
    """What the templates leave open."""

    interpreter: bytes  # absolute; not resolved, since a virtual environment is found by this very name
    version: str
    flags: tuple[bytes, ...] = (b"-I",)
    environment: Mapping[bytes, bytes] = {}
    socket: bytes = RUNTIME_SOCKET  # or a literal absolute path
    log: bytes = b"/dev/null"  # launchd only


def render_systemd(templates: Mapping[str, str], installation: Installation) -> dict[str, bytes]:
    """The marked text of memd.service and memd.socket; raises ValueError for a relative path or a NUL."""
    early: list[bytes] = []
    late: list[bytes] = []
    for name, value in sorted(installation.environment.items()):
        assignment = name + b"=" + value
        (early if is_plain_text(value) else late).append(assignment)
    program = (installation.interpreter, *installation.flags)
    service = _fill(
        templates[SERVICE],
        {
            "@ENVIRONMENT@": "\n".join("Environment=" + quote(word) for word in early),
            "@EXEC_START@": exec_line((*program, b"-m", b"memd"), late),
            "@EXEC_RELOAD@": exec_line((*program, b"-m", b"memctl", b"reload"), late),
        },
    )
    socket = _fill(templates[SOCKET], {"@LISTEN_STREAM@": _listen_stream(installation.socket)})
    return {
        SERVICE: mark(service, installation.version),
        SOCKET: mark(socket, installation.version),
    }


def render_launchd(templates: Mapping[str, str], installation: Installation) -> dict[str, bytes]:
    """The marked text of the LaunchAgent; raises ValueError for a path that is relative or beyond XML."""
    words = (_absolute(installation.interpreter), *installation.flags, b"-m", b"memd")
    variables = sorted(installation.environment.items())
    text = _fill(
        templates[PLIST],
        {
            "@PROGRAM_ARGUMENTS@": "\n".join(f"\t\t<string>{escape_xml(word)}</string>" for word in words),
            "@ENVIRONMENT@": "\n".join(
                f"\t\t<key>{escape_xml(name)}</key>\n\t\t<string>{escape_xml(value)}</string>"
                for name, value in variables
            ),
            "@LOG@": escape_xml(_absolute(installation.log)),
        },
    )
    return {PLIST: mark(text, installation.version)}


# --------------------------------------------------------------------------- systemd's words


def exec_line(argv: Sequence[bytes], exports: Sequence[bytes] = ()) -> str:
    """The value of an `Exec…=` setting that runs exactly `argv`, with the `NAME=value` of `exports` set."""
    program = _absolute(argv[0])
    direct = not exports and is_plain_text(program) and not re.search(rb"[\"'\\$]", program)
    if direct and all(is_plain_text(word) for word in argv):
        return " ".join([quote(program), *(quote(word, dollar=True) for word in argv[1:])])
    words = [b"/bin/sh", b"-c", _TRAMPOLINE.encode(), b"memd"]
    words += [octal(word) for word in (*exports, b"--", *argv)]
    return " ".join(quote(word, dollar=True) for word in words)


def quote(word: bytes, *, dollar: bool = False) -> str:
    """One word of a unit file, of plain text; `dollar`: in a command line, where `$` would expand."""
    text = word.decode("utf-8").replace("%", "%%")
    if dollar:
        text = text.replace("$", "$$")
    if _BARE.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def octal(word: bytes) -> bytes:
    """`word` for `printf %b`, in nothing but plain ASCII."""
    return b"".join(bytes([byte]) if byte in _OCTAL_PLAIN else b"\\0%03o" % byte for byte in word)


def is_plain_text(value: bytes) -> bool:
    """Whether systemd takes `value` in a unit file: UTF-8 without control or non-characters."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(
        char < " " or char == "\x7f" or "\ufdd0" <= char <= "\ufdef" or ord(char) & 0xFFFE == 0xFFFE
        for char in text
    )


def _listen_stream(path: bytes) -> str:
    if path == RUNTIME_SOCKET:
        return path.decode("ascii")
    if not is_plain_text(path) or path != path.strip():
        raise ValueError("the socket path holds characters that a unit file cannot")
    return _absolute(path).decode("utf-8").replace("%", "%%")


def _absolute(path: bytes) -> bytes:
    if not path.startswith(b"/") or b"\0" in path:
        raise ValueError(f"not an absolute path: {path!r}")
    return path


# ------------------------------------------------------------------------------------- XML


def escape_xml(value: bytes) -> str:
    """`value` as the text of an element; raises ValueError when XML 1.0 has no way to write it."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as reason:
        raise ValueError(f"not UTF-8, which a property list requires: {value!r}") from reason
    if re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text):
        raise ValueError(f"holds a character that a property list cannot: {value!r}")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # a bare one would be read back as a newline


# ---------------------------------------------------------------------------------- the mark


def mark(text: str, version: str, lead: str = "# ") -> bytes:
    """`text` with the mark: as its first line, a comment, or behind the XML declaration."""
    body = text.encode("utf-8")
    words = b"written by memd %b, unedited while its checksum is %b" % (
        version.encode("ascii"),
        _checksum(version, body),
    )
    if body.startswith(b"<?xml"):
        first, _, rest = body.partition(b"\n")
        return b"%b\n<!-- %b -->\n%b" % (first, words, rest)
    return b"%b%b\n%b" % (lead.encode("ascii"), words, body)


def judge(found: bytes | None) -> FileState:
    """What became of a regular file of that name; None when there is none."""
    if found is None:
        return "absent"
    version, body = unmark(found)
    if not version:
        return "foreign"
    at = _MARK.search(found)
    return "ours" if at and at.group(2) == _checksum(version, body) else "changed"


def unmark(text: bytes) -> tuple[str, bytes]:
    """The version in the mark (empty without one) and all other lines."""
    at = _MARK.search(text)
    if at is None:
        return "", text
    return at.group(1).decode("ascii", "replace"), text[: at.start()] + text[at.end() :]


def _checksum(version: str, body: bytes) -> bytes:
    return hashlib.sha256(version.encode() + b"\0" + body).hexdigest().encode("ascii")


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each placeholder once; one alone on its line takes the line with it when its value is empty."""
    lines = []
    for line in template.splitlines():
        for name, value in values.items():
            if line == name and not value:
                break
            if name in line:
                lines.append(line.replace(name, value))  # the value is never searched again
                break
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
