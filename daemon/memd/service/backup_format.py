"""What a backup is: one file that `tar` and `zstd` read, too, and that says of every part what it must be.

    backup.json                               the first member: versions, and when it was made
    data/ledger/ledger.sqlite3                the ledger's database as it was at one moment
    data/ledger/segments/<harness>/<file>     the segments that this database names
    data/..., config/..., state/...           small files, as they lie in memd's folders
    SHA256SUMS                                the last member: a sum for each of the others, as sha256sum(1)
                                              writes them; what is not named there is not in the backup

A later memd may add members; then it counts `VERSION` up, and this one refuses it by the first member alone.
"""

from __future__ import annotations

import re
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from memd.errors import MemdError
from memd.ledger import segments
from memd.ledger.store import schema

VERSION: Final = 1
FORMAT: Final = "memd-backup"
HEADER: Final = b"backup.json"
SUMS: Final = b"SHA256SUMS"
DATABASE: Final = b"data/ledger/ledger.sqlite3"
SEGMENTS: Final = b"data/ledger/segments"
MAX_HEADER_BYTES: Final = 64 << 10
MAX_SUMS_BYTES: Final = 256 << 20
BLOCK: Final = 512

FILES: Final = (
    b"data/agents.json",
    b"data/projects.json",
    b"data/hook/installed.json",
    b"config/config.toml",
    b"config/memory.jsonc",
    b"state/environments.json",
    b"state/hooks-declined.json",
)
"""Small files. What is not here is made anew or tells only of this machine's present: sockets, locks, logs,
notes of hooks that wait, records of what was merged, caches, the hook's own file."""

TREES: Final = (b"data/memory", b"data/memory-kept")
"""The local store of topics, and what was set aside of it."""

ONLY_IF_MISSING: Final = frozenset({b"data/hook/installed.json"})
"""It tells of other programs' settings, which a restore does not change: what is known now is right."""

_segment = re.compile(rb"data/ledger/segments/[a-z0-9][a-z0-9-]{0,63}/\d{8,}\.jsonl(\.zst)?")


class BackupDamaged(MemdError):
    """The file is no backup, is cut short, or does not say what it said when it was written."""

    code = "damaged"
    remedy = "Use another backup; this one cannot be restored, and nothing was changed."
    exit_status = 65


class BackupTooNew(MemdError):
    """A later memd made it. Nothing was changed."""

    code = "too_new"
    remedy = "Upgrade memd on this machine, then restore it; nothing was changed."
    exit_status = 78


class Header(msgspec.Struct, kw_only=True):
    """The first member. ledger, segments: versions of the database and of the segments' lines"""

    format: str
    version: int
    memd: str = ""
    made_ms: int = 0
    ledger: int = 0
    segments: int = 0


class Sum(NamedTuple):
    name: bytes
    digest: str


def header(memd: str, ledger: int, made_ms: int) -> Header:
    return Header(
        format=FORMAT,
        version=VERSION,
        memd=memd,
        made_ms=made_ms,
        ledger=ledger,
        segments=segments.VERSION,
    )


def parse_header(data: bytes) -> Header:
    """raises BackupDamaged for what is none, BackupTooNew for one of a later memd"""
    try:
        found = msgspec.json.decode(data, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:
        raise BackupDamaged(f"the backup's {HEADER.decode()} is not understood: {reason}") from None
    if found.format != FORMAT:
        raise BackupDamaged(f"the file is no backup of memd but {found.format!r}")
    for what, has, known in (
        ("backup format", found.version, VERSION),
        ("ledger", found.ledger, schema.VERSION),
        ("segment", found.segments, segments.VERSION),
    ):
        if has > known:
            by = f", made by memd {found.memd}" if found.memd else ""
            raise BackupTooNew(
                f"the backup has {what} version {has}{by}; this memd knows versions up to {known}"
            )
    return found


def default_name(now_s: float) -> bytes:
    return time.strftime("memd-backup-%Y%m%dT%H%M%SZ.tar.zst", time.gmtime(now_s)).encode()


# ------------------------------------------------------------------------------- names and sums


def is_allowed(name: bytes) -> bool:
    """Whether a member of that name belongs into a backup: nothing else is ever written anywhere."""
    if name in (HEADER, SUMS, DATABASE, *FILES) or _segment.fullmatch(name):
        return True
    return any(name.startswith(tree + b"/") for tree in TREES) and is_plain(name)


def is_plain(name: bytes) -> bool:
    """Whether every part of a path is an ordinary name."""
    return b"\0" not in name and not {b"", b".", b".."} & set(name.split(b"/"))


def render_sums(sums: Mapping[bytes, str]) -> bytes:
    return b"".join(_sum_line(name, digest) for name, digest in sums.items())


def _sum_line(name: bytes, digest: str) -> bytes:
    """source  sha256sum of GNU coreutils 9: a leading backslash says that the name is escaped"""
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return b"%s%s  %s\n" % (b"\\" if escaped != name else b"", digest.encode(), escaped)


_line = re.compile(rb"(\\?)([0-9a-f]{64})  ([^\n]+)\n")
_escape = re.compile(rb"\\([\\nr])")


def parse_sums(data: bytes) -> dict[bytes, str]:
    """raises BackupDamaged"""
    found: dict[bytes, str] = {}
    at = 0
    while at < len(data):
        line = _line.match(data, at)
        if line is None:
            raise BackupDamaged(f"the backup's {SUMS.decode()} is not understood")
        name = _escape.sub(lambda one: {b"n": b"\n", b"r": b"\r"}.get(one[1], b"\\"), line[3])
        found[name if line[1] else line[3]] = line[2].decode()
        at = line.end()
    return found


# ----------------------------------------------------------------------------------- the archive


def member(name: bytes, size: int, mtime_s: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """One file of the archive: its head, its content, and what fills the last block."""
    info = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    info.size, info.mtime, info.mode = size, mtime_s, 0o600
    yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    yield from chunks
    yield bytes(-size % BLOCK)


def end() -> bytes:
    return bytes(2 * BLOCK)
