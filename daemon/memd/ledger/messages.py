"""What the daemon and its worker say to each other over the worker's standard input and output.

Frames: four bytes of length, big-endian, then one MessagePack Struct. Both ends are this package's own
version; nothing of it is stored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import msgspec

from memd.harness.model import Environment
from memd.ledger.store.interface import Batch

HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 64 << 20


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What is imported and how it is scrubbed.

    is_enabled   false: nothing is
    harnesses    names; empty means every one
    ignored      absolute directories (and all below them) whose sessions are not imported
    """

    is_enabled: bool = True
    harnesses: tuple[str, ...] = ()
    ignored: tuple[bytes, ...] = ()
    extra_patterns: tuple[str, ...] = ()
    allowlist: tuple[str, ...] = ()


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    pass


class Begin(Command, frozen=True, kw_only=True, tag="begin"):
    """After the cursors: where to look, and what to leave out."""

    environments: tuple[Environment, ...]
    rules: Rules
    scratch: bytes  # a private folder for copies of databases


class Cursors(Command, frozen=True, kw_only=True, tag="cursors"):
    """First of all: where some sources were left."""

    cursors: dict[bytes, bytes]


class Follow(Command, frozen=True, kw_only=True, tag="follow"):
    """Other environments or rules from now on."""

    environments: tuple[Environment, ...]
    rules: Rules


class Look(Command, frozen=True, kw_only=True, tag="look"):
    """Something changed at these paths (files, or folders to be listed again); all: look at everything."""

    paths: tuple[bytes, ...] = ()
    all: bool = False


class Extra(Command, frozen=True, kw_only=True, tag="extra"):
    """Import a store outside the usual places, once."""

    harness: str
    folder: bytes


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody works in this session any more: what was never completed in it is as complete as it gets.

    since_ms  when the work that ended began, wall clock
    """

    harness: str
    session: str
    since_ms: int


class Flush(Command, frozen=True, kw_only=True, tag="flush"):
    """Answer `Flushed` when everything that was visible at this moment has been acknowledged.

    ended     read that session to its end as well, also where its harness never completed it
    since_ms  with much to be read, only what changed since then counts, and goes first; 0: everything
    """

    token: int
    ended: Ended | None = None
    since_ms: int = 0


class Acknowledge(Command, frozen=True, kw_only=True, tag="acknowledge"):
    """The batches of this number are durable."""

    number: int


class Watched(Command, frozen=True, kw_only=True, tag="watched"):
    """Whether hints come: without them everything is looked at every few seconds."""

    is_watched: bool


AnyCommand = Begin | Cursors | Follow | Look | Extra | Flush | Acknowledge | Watched


class News(msgspec.Struct, frozen=True, kw_only=True, tag_field="is"):
    pass


class Read(News, frozen=True, kw_only=True, tag="read"):
    """Batches for the store, to go in together; still packed, see `batches`.

    count, events  how many batches, and how many events in them
    is_live        somebody waits; it goes before back-fill
    is_more        the next ones follow soon
    """

    number: int
    packed: msgspec.Raw
    count: int
    events: int
    is_live: bool = False
    is_more: bool = False


class Folders(News, frozen=True, kw_only=True, tag="folders"):
    """The real folders whose direct children are sources or may hold them: what to watch."""

    folders: tuple[bytes, ...]


class Trouble(msgspec.Struct, frozen=True):
    """A source, a folder or a store that cannot be read. remedy: what a person can do; empty: it passes"""

    path: bytes
    reason: str
    remedy: str = ""


class Progress(News, frozen=True, kw_only=True, tag="progress"):
    """How far the import is. Bytes of sources that are known and not yet dealt with are `left_bytes`.

    unreadable  the first of what cannot be read; `needing`: how many of all need a person
    """

    sources: int
    total_bytes: int
    left_sources: int
    left_bytes: int
    unreadable: tuple[Trouble, ...] = ()
    needing: int = 0


class Flushed(News, frozen=True, kw_only=True, tag="flushed"):
    token: int


class Retiring(News, frozen=True, kw_only=True, tag="retiring"):
    """Everything is done and acknowledged: this worker ends, and the next one begins with little memory."""


AnyNews = Retiring | Read | Folders | Progress | Flushed

_commands = msgspec.msgpack.Decoder(AnyCommand)
_news = msgspec.msgpack.Decoder(AnyNews)
_parts = msgspec.msgpack.Decoder(tuple[msgspec.Raw, ...])
_batch = msgspec.msgpack.Decoder(Batch)


def read(number: int, batches: Sequence[Batch], *, is_live: bool = False, is_more: bool = False) -> Read:
    """The message for these batches."""
    packed = msgspec.Raw(msgspec.msgpack.encode(batches))
    events = sum(len(batch.entries) for batch in batches)
    return Read(
        number=number, packed=packed, count=len(batches), events=events, is_live=is_live, is_more=is_more
    )


def batches(read: Read, skipped: int = 0) -> Iterator[Batch]:
    """What such a message holds, from behind the first so many on.

    One at a time: nothing else runs in a process while something is unpacked.
    """
    return map(_batch.decode, _parts.decode(read.packed)[skipped:])


def pack(message: AnyCommand | AnyNews) -> bytes:
    body = msgspec.msgpack.encode(message)
    return HEADER.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes back into frames."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._end = HEADER.size  # bytes that the header, and then the whole frame, needs

    @property
    def missing(self) -> int:
        """Bytes that the frame under way needs yet."""
        return self._end - self._size

    def feed(self, data: bytes) -> Iterator[memoryview]:
        """The frames completed by these bytes; raises ValueError when the stream is out of step."""
        self._parts.append(data)
        self._size += len(data)
        while self._size >= self._end:
            held = b"".join(self._parts)
            (length,) = HEADER.unpack_from(held)
            if length > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {length} bytes")
            self._parts, self._end = [held], HEADER.size + length
            if self._size < self._end:
                return
            frame = memoryview(held)[HEADER.size : self._end]
            rest = held[self._end :]
            self._parts, self._size, self._end = [rest], len(rest), HEADER.size
            yield frame


def command(frame: memoryview) -> AnyCommand:
    return _commands.decode(frame)


def news(frame: memoryview) -> AnyNews:
    return _news.decode(frame)
