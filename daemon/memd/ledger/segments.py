"""The ledger's durable form: sanitised events as JSON Lines, from which every row can be derived again.

    <data>/ledger/segments/<harness>/<number>.jsonl       still growing
    <data>/ledger/segments/<harness>/<number>.jsonl.zst   sealed: never appended to, replaced only by `forget`

One segment grows per harness at a time and takes the lines of all its sessions as they come. A file per
session would cost a back-fill of thousands of sessions four flushes each (the file, its name, its sealed
form, that one's name), where this way one batch is one flush. A segment is sealed when it has reached
`SEAL_BYTES`, or when nothing came for a while; it never holds more than that and one batch.

A batch is appended and flushed before its row transaction, which also notes how far the segment now reaches
(`segments.bytes`). So, whatever instant the process dies at, what lies behind that mark is a batch whose rows
are missing. The next start puts it in as if it came again, into a new segment, and closes this one at its
mark. Lines of a file that no row mentions are such a tail as a whole.

A line names the positions that its rows got: what is derived from segments alone has the same sequences.

    segment   the first line: version, harness, number
    event     a new event and where it stands first
    standing  a known event that stands in one more session
    gone      a place in a session that was taken back, because another event replaced what stood there
    turn      places of a session that changed between the main line and beside it
    session   what is known of a session; the last line counts
    loss      the count of one class of loss of one source; the last line counts
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

import msgspec
import zstandard

from memd import disk
from memd.append import append_flushed
from memd.errors import DiskError
from memd.harness.model import Kind
from memd.ledger.store.interface import Damaged

VERSION: Final = 1
SEAL_BYTES: Final = 1 << 20
MAX_SEGMENT_BYTES: Final = 64 << 20
"""What a reader takes at most; a segment is far smaller, unless somebody tampered with it."""

LEVEL: Final = 3

_name = re.compile(rb"(\d{8,})\.jsonl(\.zst)?")
_harness = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    """One line of a segment."""


class HeadLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="segment"):
    v: int
    harness: str
    number: int


class EventLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="event"):
    session: str
    position: int
    id: str
    kind: Kind
    role: str
    at: int = 0
    occurred_at: str = ""
    record: str = ""
    is_side: bool = False
    metadata: Mapping[str, str | bool | int] = {}
    content: str = ""


class StandingLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="standing"):
    session: str
    position: int
    id: str
    at: int = 0
    is_side: bool = False


class GoneLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="gone"):
    session: str
    position: int


class TurnLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="turn"):
    session: str
    is_side: bool
    ranges: Sequence[tuple[int, int]]  # first and last position


class SessionLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="session"):
    session: str
    cwd: str = ""
    title: str = ""
    started: str = ""
    version: str = ""
    is_side: bool = False
    parent: str = ""
    forked_from: str = ""
    forked_at: int = 0


class LossLine(Line, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="loss"):
    session: str
    what: str
    sentence: str
    source: bytes
    count: int


AnyLine = HeadLine | EventLine | StandingLine | GoneLine | TurnLine | SessionLine | LossLine


class Codec:
    """Lines to bytes and back. Not shared between threads."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(AnyLine)
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)

    def encode(self, lines: Iterable[Line]) -> bytes:
        return self._encoder.encode_lines(lines)

    def decode(self, data: bytes) -> list[AnyLine]:
        """All lines of a segment. Raises msgspec.MsgspecError for a line that is none of ours."""
        return self._decoder.decode_lines(data)

    def decode_tail(self, data: bytes) -> list[AnyLine]:
        """The whole lines at the beginning of what a crash left; a torn last one is dropped."""
        kept: list[AnyLine] = []
        for line in data.split(b"\n")[:-1]:
            try:
                kept.append(self._decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeError):
                break
        return kept

    def compress(self, data: bytes) -> bytes:
        return self._compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """Raises zstandard.ZstdError for bytes that are damaged or longer than `MAX_SEGMENT_BYTES`."""
    with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
        plain = reader.read(MAX_SEGMENT_BYTES + 1)
        if len(plain) > MAX_SEGMENT_BYTES:
            raise zstandard.ZstdError("larger than a segment can be")
        return plain


class Segments:
    """The files. Numbers are given out by the store; no two segments share one, whatever their harness."""

    FOLDER: ClassVar[bytes] = b"segments"

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._folders: dict[str, disk.Folder] = {}

    def close(self) -> None:
        for folder in self._folders.values():
            folder.close()
        self._folders.clear()

    def _folder(self, harness: str) -> disk.Folder:
        folder = self._folders.get(harness)
        if folder is None:
            if not _harness.fullmatch(harness):
                raise ValueError(f"not the name of a harness: {harness!r}")
            path = os.path.join(self._root, self.FOLDER, harness.encode("ascii"))
            folder = self._folders[harness] = disk.make_folders(path)
        return folder

    def path(self, harness: str, number: int) -> str:
        """How messages name a segment."""
        return f"{self.FOLDER.decode()}/{harness}/{number:08d}.jsonl"

    # -------------------------------------------------------------------------- growing

    def append(self, harness: str, number: int, at: int, data: bytes) -> None:
        """Put flushed bytes at the end of a segment of `at` bytes; 0 makes it. Raises DiskError.

        After an error nothing may be appended to this segment any more: what the disk has of it beyond `at`
        is not known.
        """
        append_flushed(self._folder(harness), _plain(number), data, at)

    def size(self, harness: str, number: int) -> int:
        """Bytes of a growing segment; -1 when there is no such file."""
        facts = self._folder(harness).look(_plain(number))
        return -1 if facts is None else facts.st_size

    def growing(self) -> Iterator[tuple[str, int]]:
        """Harness and number of every file that is not sealed, known to the store or not."""
        root = os.path.join(self._root, self.FOLDER)
        if disk.look(root) is None:
            return
        with disk.open_folder(root) as folder:
            names = folder.names()
        for name in names:
            harness = os.fsdecode(name)
            if not _harness.fullmatch(harness):
                continue
            for file in self._folder(harness).names():
                match = _name.fullmatch(file)
                if match and not match[2]:
                    yield harness, int(match[1])

    # -------------------------------------------------------------------------- reading

    def read_plain(self, harness: str, number: int, start: int = 0) -> bytes:
        """Bytes of a growing segment from `start` on. Raises DiskError."""
        return self._folder(harness).read(_plain(number), MAX_SEGMENT_BYTES)[start:]

    def read(self, harness: str, number: int, size: int, *, is_sealed: bool) -> bytes:
        """The lines of a segment as far as the store counts them.

        is_sealed  as the reader knows it: one that has been sealed since is found, too
        raises     Damaged when bytes are missing or do not decompress, DiskError when it cannot be read
        """
        if is_sealed:
            data = self.read_sealed(harness, number)
        else:
            try:
                data = self.read_plain(harness, number)[:size]
            except DiskError:
                if self._folder(harness).look(_sealed(number)) is None:
                    raise
                data = self.read_sealed(harness, number)
        if len(data) != size:
            raise Damaged(f"{self.path(harness, number)} has {len(data)} of its {size} bytes")
        return data

    def sealed_bytes(self, harness: str, number: int) -> bytes:
        """A sealed segment as it lies on the disk. Raises DiskError."""
        return self._folder(harness).read(_sealed(number), MAX_SEGMENT_BYTES)

    def read_sealed(self, harness: str, number: int) -> bytes:
        """All lines of a sealed segment. Raises Damaged or DiskError."""
        try:
            return decompress(self.sealed_bytes(harness, number))
        except zstandard.ZstdError as reason:
            raise Damaged(f"{self.path(harness, number)}.zst is damaged: {reason}") from reason

    # -------------------------------------------------------------------------- sealing

    def seal(self, harness: str, number: int, compressed: bytes) -> None:
        """Write the sealed form; the growing one stays until the store has noted it."""
        self._folder(harness).replace(_sealed(number), compressed)

    def drop_plain(self, harness: str, number: int) -> None:
        """Take the growing form away. Nothing happens when it is gone."""
        folder = self._folder(harness)
        if folder.look(_plain(number)) is not None:
            folder.remove(_plain(number))
            folder.sync()

    def total_bytes(self) -> int:
        """What all segments take on the disk."""
        total = 0
        root = os.path.join(self._root, self.FOLDER)
        if disk.look(root) is None:
            return 0
        with disk.open_folder(root) as folder:
            for name in folder.names():
                try:
                    below = folder.folder(name)
                except DiskError:
                    continue
                with below:
                    facts = (below.look(file) for file in below.names())
                    total += sum(fact.st_size for fact in facts if fact is not None)
        return total


def _plain(number: int) -> bytes:
    return b"%08d.jsonl" % number


def _sealed(number: int) -> bytes:
    return b"%08d.jsonl.zst" % number
