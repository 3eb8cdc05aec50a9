"""The words every adapter speaks: events, losses, sessions, stores, and what an adapter is.

Pure values. Bytes and rows come in, these go out; who reads the files is `memd.ledger.sources`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

Kind = Literal["message", "tool_call", "tool_result", "compaction", "checkpoint", "annotation"]

MAX_EVENT_BYTES = 128 * 1024  # one event as an adapter gives it; the ledger scrubs, then cuts to 64 KiB
MAX_RECORD_BYTES = 1 << 20  # a longer record is shortened by its adapter, never lost
MAX_STATE_BYTES = 64 * 1024  # what an adapter may remember between two chunks

METADATA_KEYS = frozenset(
    {
        "tool",
        "tool_call_id",
        "tool_use_id",
        "parent_id",
        "summary_type",
        "status",
        "is_error",
        "exit_code",
        "loss_count",
    }
)
"""Strings of at most 512 bytes, but `is_error` (bool), `exit_code` (32 bits) and `loss_count` (unsigned)."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One visible thing in a native session, before it is scrubbed.

    session      the harness's own id of the conversation
    origin       what the event's identity is made of, beside harness, block, kind and content: the record's
                 own id where records keep it when copied; where a harness copies under new ids the original
                 time and role; without any id the session and `at`
    record       the record's own id, empty when it has none
    block        position of the block in its record
    at           file offset or ordinal of the record: file order
    parent       the `record` this one follows in the harness's own chain, empty when it says nothing
    occurred_at  as the harness recorded it, made RFC 3339 in UTC where it was a number
    is_side      belongs to a sub-agent or an abandoned branch: stored, counted, out of the main line
    """

    session: str
    origin: str
    kind: Kind
    role: str
    content: str
    at: int
    record: str = ""
    block: int = 0
    parent: str = ""
    occurred_at: str = ""
    is_side: bool = False
    metadata: dict[str, str | bool | int] = {}


class Loss(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an import left out of a session, and why. Counted per session and `what`; never quotes content."""

    session: str
    what: (
        str  # a stable short class: reasoning, system-prompt, malformed, oversized, unknown-type, image, ...
    )
    sentence: str  # for people: what was left out and why
    count: int = 1


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a transcript says of itself. Empty strings mean it does not say."""

    id: str
    cwd: str = ""
    title: str = ""
    started: str = ""
    version: str = ""
    parent: str = ""  # the session that spawned this sub-agent
    forked_from: str = ""  # the session whose beginning this one shares
    forked_at: int = 0  # how many records (or ordinals) of it, where the harness says so


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """What one chunk gave. `consumed` ends just past a newline; `state` goes into the cursor."""

    events: Sequence[Event] = ()
    losses: Sequence[Loss] = ()
    sessions: Sequence[Session] = ()
    consumed: int = 0
    state: bytes = b""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What decides where a harness keeps its stores: a home and the named store variables of a client."""

    home: bytes
    variables: Mapping[str, bytes] = {}
    config_homes: Sequence[bytes] = ()  # Claude Code's logins


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """One place where sessions lie.

    root      absolute folder; need not exist yet
    patterns  names below the root that are sources, as `fnmatch` parts joined by `/`; `**` any depth
    flavor    which of an adapter's formats this is, handed back to it
    rewrites  whole-prefix check at every read (harnesses known to rewrite in place)
    database  the matches are SQLite databases, read through `Adapter.queries`
    """

    root: bytes
    patterns: tuple[str, ...]
    flavor: str = ""
    rewrites: bool = False
    database: bool = False


class Parse(Protocol):
    def __call__(self, chunk: bytes, base: int, state: bytes) -> Parsed:
        """Turn whole records into events; raises nothing. `chunk` starts at file offset `base`."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One SELECT for a harness's own database.

    sql      takes the parameters `:updated` and `:id` (the cursor) and `:limit`; orders by exactly these
    columns  the names of the result's columns, first `updated` and `id`
    """

    name: str
    sql: str
    columns: tuple[str, ...]


class ParseRows(Protocol):
    def __call__(self, name: str, rows: Sequence[Sequence[object]], state: bytes) -> Parsed:
        """Turn rows of the query `name` into events; raises nothing."""


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """All that memd knows about importing one harness. One module each, found by the registry.

    stores        where sessions lie for an environment
    identify      the session a source belongs to and where it was started, from its path (below the root)
                  and its first bytes (at most 8 MiB); None: not a session of this harness
    parse         the record grammar of its files (None for a harness that only has a database)
    queries       SELECTs for its database, with `parse_rows`
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    stores: Callable[[Environment], tuple[Store, ...]]
    identify: Callable[[bytes, bytes, str], Session | None]
    parse: Parse | None = None
    queries: tuple[Query, ...] = ()
    parse_rows: ParseRows | None = None


def event_id(harness: str, event: Event) -> str:
    """The deterministic id: the same for every retry, replay and machine, and before any scrubbing."""
    digest = hashlib.sha256()
    for part in (harness, event.origin, str(event.block), event.kind, event.content):
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return "native:" + digest.hexdigest()
