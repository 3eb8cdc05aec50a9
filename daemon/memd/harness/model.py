"""The words every adapter speaks: events, losses, sessions, stores, and what an adapter is.

Pure values. Bytes and rows come in, these go out; who reads the files is `memd.ledger.sources`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from memd.harness.hooking import Hooks
from memd.harness.launching import Launch

Kind = Literal["message", "tool_call", "tool_result", "compaction", "checkpoint", "annotation"]
Role = Literal["user", "assistant", "tool"]  # that events have; a damaged one may have none

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

    session      the harness's own id of the conversation; empty only where a damaged file never names it
    origin       what the event's identity is made of, beside harness, block, kind and content: the record's
                 own id where records keep it when copied; where a harness copies under new ids the original
                 time and role; without any id the session and `at`
    record       the record's own id, empty when it has none
    block        position of the block in its record
    at           file offset or ordinal of the record (and the source's `Session.shift`): file order
    parent       the `record` this one must wait for, because the harness's own chain puts it behind something
                 that has not been placed yet; empty (nearly always): file order is right. See `Link`
    occurred_at  as the harness recorded it, made RFC 3339 in UTC where it was a number
    is_side      belongs to a sub-agent or an abandoned branch: stored, counted, out of the main line
    replaces     `at` of an event of the same session that an earlier chunk gave and that turned out to be
                 this one (a reply that was a compaction's summary); that one leaves the session. -1: none
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
    replaces: int = -1
    metadata: dict[str, str | bool | int] = {}


class Link(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A record that gave no event but that others wait for, or wait behind.

    How to order: go through records by `at`, where a record is a link or all events of one `at`, by `block`.
    One with a `parent` is held until that record is placed; any other is placed at once, and placing a record
    places what was held for it, oldest first, and so on down. A link with an empty `parent` may also say that
    a record will not come: do not wait for it any longer. What is still held after a bounded time, or at a
    flush, is placed by `at`. Every record that an event names as `parent` comes as an event or as a link in
    the end, unless the file stops before.
    """

    session: str
    record: str
    at: int
    parent: str = ""


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A branch was left, or taken up again: events that were given before change sides.

    All events of the session with `first <= at <= last` are from now on beside the main line (`is_side`), or
    in it. Apply turns in the order in which they come, after the events that come with them; a turn only
    names places that lie before it in the file. Events keep their ids and their order.
    """

    session: str
    first: int
    last: int
    is_side: bool


class Loss(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an import left out of a session, and why. Counted per session and `what`; never quotes content.

    session   the session it belongs to, which is the parent's where a sub-agent's file was left out; empty
              where a damaged file never names one: the source's own
    what      a stable short class, one of `memd.harness.losses.CLASSES`
    sentence  for people: what was left out and why
    count     how many times in this chunk; the ledger adds up
    """

    session: str
    what: str
    sentence: str
    count: int = 1


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a transcript says of itself. Empty strings mean it does not say.

    When it comes again, the first `cwd` and `started` stand (a session belongs to where it began) and the
    last `title` does.
    """

    id: str
    cwd: str = ""
    also: tuple[str, ...] = ()  # further directories it works in, where it has several of equal standing
    title: str = ""
    started: str = ""
    version: str = ""
    is_side: bool = False  # a sub-agent's: never offered, never resumed, never what decides a session's time
    parent: str = ""  # the session that spawned this sub-agent
    forked_from: str = ""  # the session whose beginning this one shares
    forked_at: int = 0  # the parent's events with a smaller `at` come first; 0: not said, nothing to stitch
    shift: int = 0  # what this source adds to every `at`, where a session goes on in another file. See `kin`


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """What one chunk gave.

    events    in file order
    links     in file order; few
    turns     in file order; few
    losses    one per session and class
    sessions  what was learnt in this chunk, in file order; merge them as `Session` says
    consumed  bytes of the chunk that were dealt with; ends just past a newline. Of rows: how many
    state     to hand to the next call, at most `MAX_STATE_BYTES`; goes into the cursor
    """

    events: Sequence[Event] = ()
    links: Sequence[Link] = ()
    turns: Sequence[Turn] = ()
    losses: Sequence[Loss] = ()
    sessions: Sequence[Session] = ()
    consumed: int = 0
    state: bytes = b""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What decides where a harness keeps its stores: a home and the named store variables of a client.

    config_homes  Claude Code's logins
    places        directories in which somebody started a harness, for those that keep a store in each
    is_child      of one launch: only what a child that is started in `places` will look into
    """

    home: bytes
    variables: Mapping[str, bytes] = {}
    config_homes: Sequence[bytes] = ()
    places: Sequence[bytes] = ()
    is_child: bool = False


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """One place where sessions lie.

    root      absolute folder; need not exist yet
    patterns  names below the root that are sources, as `fnmatch` parts joined by `/`; `**` any depth
    flavor    which of an adapter's formats this is, handed back to it
    rewrites  whole-prefix check at every read (harnesses known to rewrite in place)
    head      bytes at the start of a file that the harness rewrites in place; no part of a prefix check
    database  the matches are SQLite databases, read through `Adapter.queries`
    documents each match stands for a session in many small files, read through `Adapter.gather`
    is_index  what lies here tells of sessions that live in another store: none is gone on with for its sake
    cwd       where its sessions were begun, for a store whose place alone says that
    shared    further directories whose sessions lie here, among others': those that worked below one of them
    """

    root: bytes
    patterns: tuple[str, ...]
    flavor: str = ""
    rewrites: bool = False
    head: int = 0
    database: bool = False
    documents: bool = False
    is_index: bool = False
    cwd: bytes = b""
    shared: tuple[bytes, ...] = ()


class Glance(Protocol):
    """What an adapter may ask of the disk to find stores whose place only files and folders say.

    Paths are absolute and links are followed. Nothing here raises: what cannot be seen is not there.
    """

    def read(self, path: bytes) -> bytes | None:
        """The content of a regular file of at most 1 MiB; None for anything else."""

    def follow(self, path: bytes) -> bytes | None:
        """The same, of a file whose changes are waited for: there may be other stores then."""

    def owner(self, path: bytes) -> int | None:
        """The uid of the owner of a file or folder; None: there is none; -1: it cannot be examined."""

    def is_folder(self, path: bytes) -> bool: ...

    def real(self, path: bytes) -> bytes:
        """The path without links, as far as it exists."""

    def checkout(self, path: bytes) -> bytes:
        """The top of the checkout that a folder is in; empty outside one."""


class Parse(Protocol):
    def __call__(self, chunk: bytes, base: int, state: bytes) -> Parsed:
        """Turn whole records into events; raises nothing.

        chunk  bytes from file offset `base`, at most 16 MiB, cut anywhere; what follows the last newline is
               an unfinished record and is left alone
        state  what the previous call left; at the start `Adapter.begin(...)`, or nothing at all
        """


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One SELECT for a harness's own database.

    sql         takes the parameters `:updated` and `:id` (the cursor) and `:limit`; orders by exactly these.
                May take `:cwd` (blob) and `:shared` (a JSON array of texts) of its store
    columns     the names of the result's columns, first `updated` (milliseconds) and `id`
    overlap_ms  start each round this far before the cursor (and never in the future), with an empty id: rows
                are stamped before they are committed. What comes twice does no harm
    is_at_rest  no part of an ordinary round: it selects what was never completed, with a cursor of its own.
                Two more parameters: `:until` (rows that changed later are left alone), `:session` (only that
                one, when not empty). Run it when nobody works in the store, or in that session, any more
    """

    name: str
    sql: str
    columns: tuple[str, ...]
    overlap_ms: int = 0
    is_at_rest: bool = False


class ParseRows(Protocol):
    def __call__(self, name: str, rows: Sequence[Sequence[object]], state: bytes) -> Parsed:
        """Turn rows of the query `name` into events; raises nothing."""


class Gather(Protocol):
    def __call__(
        self,
        source: bytes,
        names: Callable[[bytes], Sequence[bytes]],
        read: Callable[[bytes], bytes | None],
    ) -> Iterator[Sequence[object]]:
        """The rows of a session in many files, for `parse_rows` under the name of the first query (or at rest
        of the one that is for that).

        source  the session's match below the store's root, as are all paths here
        names   the names in a folder; none when there is no such folder
        read    a file's content; empty when it is gone, None when it is too large to be read
        """


class Near(Protocol):
    """What lies below a store's root, for an adapter that reads more of it than a source. Raises nothing."""

    def names(self, folder: bytes) -> Sequence[bytes]:
        """The names in a folder; none when there is no such folder."""

    def read(self, path: bytes) -> bytes | None:
        """A file's content; empty when it is gone, None when it is too large to be read."""

    def born(self, path: bytes) -> int:
        """When a file was made, in milliseconds since 1970; 0: the system does not say."""


class Around(Protocol):
    def __call__(self, state: bytes, near: Near, now_ms: int) -> Parsed:
        """What other files of the store say of the session of a database, after its rows were read.

        state  what the rows left; what is given back goes into the cursor. raises nothing
        """


class OutputLimit(msgspec.Struct, frozen=True):
    """How much a start hook may print, wrapper included, before the harness shows only a part of it."""

    count: int
    unit: Literal["characters", "bytes"] = "characters"


def _begin(session: Session, flavor: str) -> bytes:
    return b""


def _none(path: bytes) -> bytes:
    return b""


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """All that memd knows about importing one harness. One module each, found by the registry.

    name          the word of event ids and JSON
    aliases       every other word a person or a peer uses for it
    id_prefix     what every id of it begins with, and a person may leave out in a question
    stores        where sessions lie for an environment
    scattered     more stores of it, for a harness that keeps one in every directory it works in
    identify      the session a source belongs to and where it was started, from its path (below the root),
                  its first bytes (at most 8 MiB, decompressed) and the store's flavor; None: no session of
                  this harness, or not yet: ask again when the file has grown. An empty id: the source holds
                  many sessions, and its records name them
    beside        for the path of a source below the root: the small file, below the root too, that says which
                  session it is and where it was started. `identify` is then given that file's content (at
                  most 1 MiB) instead of the source's first bytes, before every read, and without it is not
                  asked at all. Empty: the source says it itself
    instead       for the path of a source below the root: the file that is read in its place where there is
                  one, for a harness that says the same in two logs. Empty: it is the only one
    begin         the state for the first chunk of a source, from what `identify` said and the store's flavor.
                  Always use it: it is how a record grammar knows what only the path says
    kin           for the path of a source below the root: what it has in common with the other files of the
                  same session, empty for a session in one file. Files with the same answer continue each
                  other in the order of their names: each is read to its end before the next is begun
    parse         the record grammar of its files (None for a harness that only has a database)
    queries       SELECTs for its database, with `parse_rows`; one state for all of them
    session_query for a database: a SELECT whose row says where the session `:session` was begun; none: the
                  database does not have it
    around        for databases of one session each: what else the store says of it
    gather        makes rows of the stores that say `documents`
    start_output_limit  what a start hook, or what else takes its place, may tell the model at once
    launch        how it is started; None: memd cannot start it
    hooks         what it calls memd for; None: nothing
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    id_prefix: str = ""
    stores: Callable[[Environment], tuple[Store, ...]]
    scattered: Callable[[Environment, Glance], tuple[Store, ...]] | None = None
    identify: Callable[[bytes, bytes, str], Session | None]
    begin: Callable[[Session, str], bytes] = _begin
    beside: Callable[[bytes], bytes] = _none
    instead: Callable[[bytes], bytes] = _none
    kin: Callable[[bytes], bytes] = _none
    parse: Parse | None = None
    queries: tuple[Query, ...] = ()
    parse_rows: ParseRows | None = None
    session_query: str = ""
    around: Around | None = None
    gather: Gather | None = None
    start_output_limit: OutputLimit = OutputLimit(30_000)
    launch: Launch | None = None
    hooks: Hooks | None = None


def event_id(harness: str, event: Event, content: bytes | None = None) -> str:
    """The deterministic id: the same for every retry, replay and machine, and before any scrubbing.

    content  of the event, in UTF-8 with lone surrogates as three bytes, where the caller has it so
    """
    head = f"{harness}\0{event.origin}\0{event.block}\0{event.kind}\0".encode("utf-8", "surrogatepass")
    if content is None:
        content = event.content.encode("utf-8", "surrogatepass")
    return "native:" + hashlib.sha256(b"%b%b\0" % (head, content)).hexdigest()
