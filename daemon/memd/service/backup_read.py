"""Reading a backup: member by member, each held against its sum, nothing trusted before its end was seen."""

from __future__ import annotations

import contextlib
import hashlib
import tarfile
from collections.abc import Callable, Generator, Iterator
from typing import IO, Any, cast

import zstandard

from memctl.paths import shown
from memd import disk
from memd.service import backup_format as form
from memd.service.backup_format import BackupDamaged, Header

CHUNK = 1 << 18
MAX_WINDOW = 1 << 27

Sink = Callable[[bytes, int, Iterator[bytes]], None]
"""Given a member's name, its time in seconds, and its content."""


def header_of(folder: disk.Folder, name: bytes) -> Header:
    """What the first member says. raises BackupDamaged, BackupTooNew, DiskError"""
    with _opened(folder, name, _heed_nothing) as archive:
        return form.parse_header(_first(archive))


def verify(folder: disk.Folder, name: bytes, note: Callable[[int], None]) -> Header:
    """What a backup says of itself, when it is whole.

    note    is told how many bytes of the file were read
    raises  BackupDamaged, BackupTooNew, DiskError
    """
    return read(folder, name, lambda _name, _mtime_s, _chunks: None, note)


def read(folder: disk.Folder, name: bytes, sink: Sink, note: Callable[[int], None]) -> Header:
    """Give every member but the first and the last to `sink`, and compare the sums at the end.

    What `sink` got is worth nothing when this raises: BackupDamaged, BackupTooNew, DiskError.
    """
    with _opened(folder, name, note) as archive:
        raw = _first(archive)
        header = form.parse_header(raw)
        found = {form.HEADER: hashlib.sha256(raw).hexdigest()}
        promised: dict[bytes, str] | None = None
        while (info := archive.next()) is not None:
            if promised is not None:
                raise BackupDamaged(f"the backup goes on behind its {form.SUMS.decode()}")
            member = _name(info)
            if member in found:
                raise BackupDamaged(f"the backup holds {shown(member)} twice")
            if member == form.SUMS:
                promised = form.parse_sums(_whole(archive, info, form.MAX_SUMS_BYTES))
                continue
            digest = hashlib.sha256()
            rest = _chunks(archive, info, digest.update)
            sink(member, int(info.mtime), rest)
            for _ in rest:
                pass
            found[member] = digest.hexdigest()
    _compare(found, promised)
    return header


def _compare(found: dict[bytes, str], promised: dict[bytes, str] | None) -> None:
    if promised is None:
        raise BackupDamaged("the backup is cut short: its end is missing")
    for name in promised.keys() - found.keys():
        raise BackupDamaged(f"the backup lacks {shown(name)}, which it names")
    for name, digest in found.items():
        if name not in promised:
            raise BackupDamaged(f"the backup holds {shown(name)}, of which it says nothing")
        if promised[name] != digest:
            raise BackupDamaged(f"{shown(name)} in the backup is not what it was when it was written")


@contextlib.contextmanager
def _opened(folder: disk.Folder, name: bytes, note: Callable[[int], None]) -> Iterator[tarfile.TarFile]:
    source = _Source(folder.chunks(name), note)
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(
            cast(IO[bytes], source), read_size=CHUNK
        )
        with tarfile.open(
            fileobj=reader, mode="r|", bufsize=CHUNK, encoding="utf-8", errors="surrogateescape"
        ) as archive:
            yield archive
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError, UnicodeError) as reason:
        raise BackupDamaged(f"{shown(folder.at(name))} is not a whole backup: {reason}") from None
    finally:
        source.close()


def _first(archive: tarfile.TarFile) -> bytes:
    info = archive.next()
    if info is None or _name(info) != form.HEADER:
        raise BackupDamaged("the file is no backup of memd")
    return _whole(archive, info, form.MAX_HEADER_BYTES)


def _name(info: tarfile.TarInfo) -> bytes:
    """raises BackupDamaged for what has no place there: a link, a device, a name that leads elsewhere"""
    name = info.name.encode("utf-8", "surrogateescape")
    if not info.isreg() or not form.is_allowed(name):
        raise BackupDamaged(f"the backup holds something that does not belong there: {shown(name)}")
    return name


def _whole(archive: tarfile.TarFile, info: tarfile.TarInfo, limit: int) -> bytes:
    if info.size > limit:
        raise BackupDamaged(f"{info.name} in the backup is larger than it can be")
    return b"".join(_chunks(archive, info, lambda _chunk: None))


def _chunks(
    archive: tarfile.TarFile, info: tarfile.TarInfo, note: Callable[[bytes], Any]
) -> Generator[bytes, None, None]:
    file = archive.extractfile(info)
    assert file is not None
    left = info.size
    while left:
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            raise BackupDamaged(f"the backup is cut short in {info.name!r}")
        left -= len(chunk)
        note(chunk)
        yield chunk


def _heed_nothing(_done: int) -> None:
    pass


class _Source:
    """A file as zstd reads it."""

    def __init__(self, chunks: Generator[bytes, None, None], note: Callable[[int], None]) -> None:
        self._chunks = chunks
        self._note = note
        self._held = b""
        self._done = 0

    def read(self, size: int = -1) -> bytes:
        if not self._held:
            self._held = next(self._chunks, b"")
            self._done += len(self._held)
            self._note(self._done)
        taken, self._held = (self._held, b"") if size < 0 else (self._held[:size], self._held[size:])
        return taken

    def close(self) -> None:
        self._chunks.close()
