"""Reads the stores of one home through the adapters, the way a ledger does and nothing more.

Walks the folders an adapter names, cuts files into chunks, carries the state over, skips what is longer than
a chunk. Enough to judge an adapter; cursors, rows and segments are the ledger's.
"""

from __future__ import annotations

import fnmatch
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from memd.harness import registry
from memd.harness.model import Adapter, Environment, Event, Parsed, Session, Store
from support_order import arrange, conversation

CHUNK = 16 << 20
HEAD = 8 << 20


class Reading(msgspec.Struct):
    """One source, read to its last whole line."""

    path: bytes
    session: Session
    parts: list[Parsed]
    at: int = 0
    state: bytes = b""
    oversized: int = 0  # records that are longer than a chunk

    @property
    def events(self) -> list[Event]:
        return arrange(self.parts)

    def losses(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for part in self.parts:
            for loss in part.losses:
                counts[loss.what] += loss.count
        if self.oversized:
            counts["oversized"] += self.oversized
        return counts


def read(adapter: Adapter, data: bytes, reading: Reading, chunk: int = CHUNK) -> None:
    """Go on from where `reading` stands; `data` is the whole file."""
    assert adapter.parse is not None
    while reading.at < len(data):
        piece = data[reading.at : reading.at + chunk]
        parsed = adapter.parse(piece, reading.at, reading.state)
        reading.parts.append(parsed)
        reading.state = parsed.state
        reading.at += parsed.consumed
        if parsed.consumed:
            continue
        end = data.find(b"\n", reading.at)
        if len(piece) < chunk or end < 0:
            return
        reading.oversized += 1
        reading.at = end + 1


def open_source(adapter: Adapter, store: Store, path: bytes, data: bytes) -> Reading | None:
    rel = path[len(store.root) + 1 :]
    head = head_of(adapter, store, rel, data)
    session = None if head is None else adapter.identify(rel, head, store.flavor)
    if session is None:
        return None
    told = [Parsed(sessions=[session])] if adapter.beside(rel) else []
    return Reading(path, session, told, state=adapter.begin(session, store.flavor))


def head_of(adapter: Adapter, store: Store, rel: bytes, data: bytes) -> bytes | None:
    """What `identify` is shown: the file's beginning, or all of the file beside it that names the session."""
    beside = adapter.beside(rel)
    if not beside:
        return data[:HEAD]
    try:
        return load(store.root + b"/" + beside)
    except OSError:
        return None


def load(path: bytes) -> bytes:
    with open(path, "rb") as file:
        data = file.read()
    if not path.endswith(b".zst"):
        return data
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def sources(store: Store) -> Iterator[bytes]:
    """Files below the root whose path matches a pattern; the plain form wins over the compressed one."""
    found = set()
    for folder, _folders, names in os.walk(store.root):
        for name in names:
            path = folder + b"/" + name
            parts = os.fsdecode(path[len(store.root) + 1 :]).split("/")
            if any(_matches(parts, pattern.split("/")) for pattern in store.patterns):
                found.add(path)
    yield from sorted(path for path in found if path.removesuffix(b".zst") == path or path[:-4] not in found)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skip:], pattern[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def readings(home: Path, harness: str, chunk: int = CHUNK) -> list[Reading]:
    """Every source of a harness in this home, read to the end."""
    adapter = registry.resolve(harness)
    done = []
    for store in adapter.stores(Environment(home=os.fsencode(home))):
        for path in sources(store):
            instead = adapter.instead(path[len(store.root) + 1 :])
            if instead and os.path.isfile(store.root + b"/" + instead):
                continue
            data = load(path)
            reading = open_source(adapter, store, path, data)
            if reading is not None:
                read(adapter, data, reading, chunk)
                done.append(reading)
    return done


def events_of(found: Iterable[Reading], session: str) -> list[Event]:
    """The main line of one session, from all its sources; that of a fork begins with its parent's."""
    found = list(found)
    events: list[Event] = []
    for reading in sorted(
        (one for one in found if one.session.id == session), key=lambda one: one.session.shift
    ):
        base, end = reading.session.forked_from, reading.session.forked_at
        if base and end:
            events += [event for event in events_of(found, base) if event.at < end]
        events += reading.events
        for turn in (turn for part in reading.parts for turn in part.turns):
            events = [event if not turn.first <= event.at <= turn.last else _aside(event) for event in events]
    return events


def _aside(event: Event) -> Event:
    return msgspec.structs.replace(event, is_side=True)


def messages_of(found: Iterable[Reading], session: str) -> list[list[str]]:
    return conversation(events_of(found, session))


def losses_of(found: Iterable[Reading], session: str) -> Counter[str]:
    """Losses noted for one session, whichever source told."""
    counts: Counter[str] = Counter()
    for reading in found:
        for part in reading.parts:
            for loss in part.losses:
                if (loss.session or reading.session.id) == session:
                    counts[loss.what] += loss.count
        if reading.oversized and reading.session.id == session:
            counts["oversized"] += reading.oversized
    return counts


def offers(home: Path, harness: str, checkout: Path) -> list[str]:
    """Sessions that began in this very directory, newest first, each once."""
    newest = sorted(readings(home, harness), key=lambda one: -os.path.getmtime(one.path))
    here = os.path.realpath(checkout)
    ids = [one.session.id for one in newest if one.session.cwd == here and not one.session.is_side]
    return list(dict.fromkeys(ids))
