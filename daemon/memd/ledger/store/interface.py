"""What the rest of memd may ask of a ledger's store, whatever engine is behind it.

Values only: no SQL, no type of a database library. One writer puts batches in and takes things out for good;
any number of readers look. Both are made by an engine (`memd.ledger.store.sqlite`). A writer belongs to one
thread at a time; a reader too, but for `interrupt`, which any thread may call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from memd.errors import MemdError
from memd.harness.model import Kind, Loss, Session, Turn

if TYPE_CHECKING:
    from memd.ledger.store.history import Bounds, History
    from memd.ledger.store.workstreams import Looking, Work

T = TypeVar("T")

MAX_TEXT_BYTES = 64 * 1024
"""Text of one event, in row, index and segment alike."""

BATCH_EVENTS = 240
BATCH_BYTES = 160 * 1024
"""A batch within both keeps the writer for a few milliseconds: so long urgent work waits at most, and for the
end of the transaction."""

GROUP_EVENTS = 480
GROUP_BYTES = 480 * 1024
"""Batches that the worker sends together: a message that is read in about a millisecond."""

MAX_LIMIT = 1000
"""Hits of one search, rows of one page."""


class Interrupted(MemdError):
    """A query was called off by whoever asked for it."""

    code = "try_again"
    remedy = "Ask again."
    exit_status = 75


class Unreachable(MemdError):
    """The server that keeps the ledger does not answer. What was asked may be asked again."""

    code = "unavailable"
    remedy = "Check the server and the way to it, then try again; `memctl doctor` says more."
    exit_status = 69


class NotTaken(MemdError):
    """The server will not take it, however often it is sent. It is kept on this machine."""

    code = "not_taken"
    remedy = "Report it with what `memctl doctor` says; nothing of it is lost."
    exit_status = 65


class Damaged(MemdError):
    """The database or a segment does not hold what it should."""

    code = "damaged"
    remedy = "Run `memctl ledger check`; it names what disagrees and how to repair it."
    exit_status = 65


class TooNew(MemdError):
    """The database was written by a later memd. Nothing in it was touched."""

    code = "too_new"
    remedy = "Upgrade memd, or start it with another data folder (XDG_DATA_HOME)."
    exit_status = 78


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One event as the ledger keeps it: named by its id, scrubbed, cut to `MAX_TEXT_BYTES`, without NULs.

    at        place in the source, as the adapter gave it: what `replaces` and a fork's `forked_at` refer to
    replaces  `at` of an earlier event of this session that leaves the session when this one comes; -1: none
    """

    id: str
    session: str
    kind: Kind
    role: str
    content: str
    at: int = 0
    occurred_at: str = ""
    record: str = ""
    is_side: bool = False
    replaces: int = -1
    metadata: Mapping[str, str | bool | int] = {}


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What goes in together or not at all.

    source      names one file, or one database, of a harness; empty: no cursor moves
    cursor      what the reader of that source wants to find again; opaque here, replaces the old one
    entries     in the order in which a session shall show them
    losses      what this part of the source left out; added to what was counted for it before
    turns       stretches of sessions that change between the main line and beside it, after the entries
    sessions    what was learnt of sessions; already scrubbed
    is_restart  the source is read from its beginning again: its counted losses start over
    run         what memd itself says of this run: it joins the run's workstream
    """

    harness: str
    source: bytes = b""
    cursor: bytes = b""
    entries: Sequence[Entry] = ()
    losses: Sequence[Loss] = ()
    turns: Sequence[Turn] = ()
    sessions: Sequence[Session] = ()
    is_restart: bool = False
    run: str = ""


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a batch.

    stored      events that were new
    standing    known events that now stand in one more session
    duplicates  events that the session had already: the first version stays
    forgotten   events that a person had forgotten: they stay away
    refused     events whose id is known as another kind: a loss was counted for each
    sessions    the highest position of each session that got something
    """

    stored: int = 0
    standing: int = 0
    duplicates: int = 0
    forgotten: int = 0
    refused: int = 0
    sessions: Mapping[str, int] = {}


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What a listing or a search is narrowed to; the defaults narrow nothing.

    cwd         sessions that began in this directory or below it
    since       RFC 3339; events that say they are older, or say nothing, are left out
    workstream  the id of one; hits then have its sequences
    """

    harness: str = ""
    session: str = ""
    cwd: str = ""
    role: str = ""
    kind: str = ""
    since: str = ""
    workstream: str = ""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One native session as the ledger knows it.

    title   what the harness says, else how the first words of the user begin
    events  in the main line
    losses  how many things were left out, over all classes
    """

    id: str
    harness: str
    cwd: str
    title: str
    started: str
    last_activity: str
    events: int
    side_events: int
    losses: int
    version: str = ""
    is_side: bool = False
    parent: str = ""
    forked_from: str = ""
    forked_at: int = 0


class LossRow(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    sentence: str
    count: int


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event at its place in a session. Field names are those of `memctl export`.

    session  where it stands: of a fork's shared beginning the session it was forked from
    """

    sequence: int
    event_id: str
    harness: str
    session: str
    kind: str
    role: str
    content: str
    occurred_at: str
    metadata: Mapping[str, str | bool | int]
    at: int = 0
    is_side: bool = False


class Hit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event that was found. Field names are those of `memctl search --json`."""

    harness: str
    session: str
    cwd: str
    sequence: int
    event_id: str
    kind: str
    role: str
    occurred_at: str
    snippet: str
    content: str


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, for `memctl status`."""

    events: int
    sessions: int
    losses: int
    sources: int
    segments: int
    unsealed: int
    database_bytes: int
    log_bytes: int
    segment_bytes: int


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be forgotten; all that is given must apply.

    session   one native session, with `harness` where two harnesses share the id
    project   sessions that began in this directory or below it
    before    RFC 3339: events that occurred before that
    matching  a query, as in a search
    """

    harness: str = ""
    session: str = ""
    project: str = ""
    before: str = ""
    matching: str = ""


class Forgetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a selection takes away, found before anything is touched.

    sessions  `(harness, session)` that lose something, at most 1,000 named
    elsewhere how many of the events also stand in sessions that the selection does not name (copies, forks)
    handoffs  notes from one session to the next that go with them
    """

    events: int
    session_count: int
    segments: int
    sessions: Sequence[tuple[str, str]] = ()
    elsewhere: int = 0
    handoffs: int = 0


class Problem(msgspec.Struct, frozen=True):
    """One thing that does not agree. `where` is a table, a segment or an event; content is never quoted."""

    what: str
    where: str
    sentence: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found. `problems` holds the first 1,000; `problem_count` all."""

    events: int
    standings: int
    segments: int
    problem_count: int
    problems: Sequence[Problem] = ()


class Reader(Protocol):
    def cursors(self, after: bytes = b"", limit: int = -1) -> dict[bytes, bytes]:
        """What the last batch of every source left, in the order of their names; a page from `after`."""

    def cursor(self, source: bytes) -> bytes:
        """What the last batch of that source left; empty when there was none."""

    def sessions(self, where: Filter, limit: int = 0, offset: int = 0) -> list[SessionRow]:
        """Sessions with something in them, newest activity first; a `limit` of 0 is no limit."""

    def losses(self, harness: str, session: str) -> list[LossRow]:
        """What imports left out of one session, per class."""

    def find(self, session: str, harness: str = "") -> list[SessionRow]:
        """The sessions of that id, one per harness that has it."""

    def search(
        self, query: str, where: Filter, limit: int = 20, marks: tuple[str, str] = ("", "")
    ) -> list[Hit]:
        """The best hits first; see `memd.ledger.search` for the language and the ranking.

        marks   put round the found words in a snippet
        raises  Interrupted; no query is a syntax error
        """

    def export(
        self, harness: str, session: str, *, side: bool = False, after: int = 0
    ) -> Iterator[StoredEvent]:
        """A session from its beginning, stitched to the session it was forked from where it says how.

        Sequences go on through the seam, so the first own event of a fork follows the last one it shares;
        `after` leaves out what comes up to that sequence. `side`: also what is beside the main line.
        """

    def history(self, since: str = "", bounds: Bounds = ...) -> History:
        """What there was since an RFC 3339 time, of one moment; empty, or no time: from the beginning.

        At most what the bounds say, the newest of it, and how much there is beyond. Raises Interrupted.
        """

    def has_forgotten(self, event_id: str) -> bool: ...

    @property
    def workstreams(self) -> Looking:
        """What there is to know of workstreams."""

    def check(self) -> Report:
        """Derive rows and index from the segments again and compare; reads everything, changes nothing."""

    def stats(self) -> Stats: ...

    def interrupt(self) -> None:
        """Call off what the reader is doing, from any thread: it raises Interrupted."""

    def close(self) -> None: ...


def never() -> bool:
    return False


class Writer(Protocol):
    def append(self, batch: Batch) -> Appended:
        """Put a batch in: segment first, then rows, index, losses and cursor in one transaction.

        raises  DiskError; nothing of the batch is in then, and the same batch may come again. RunGone for a
                batch of a run that is not active
        """

    def append_all(self, batches: Iterable[Batch], is_awaited: Callable[[], bool] = never) -> list[Appended]:
        """Put several in, in this order, all or none: one flush and one transaction for all of them, or,
        where a server is far, for each group of them.

        is_awaited  asked after each, or each group: whether somebody needs the writer. Then only those so far
                    go in: as many as answers are returned
        """

    def work(self, do: Callable[[Work], T]) -> T:
        """What `do` gives, run in one transaction; whatever it raises, nothing of what it did is in then."""

    def cursor(self, source: bytes) -> bytes: ...

    def drop_source(self, source: bytes) -> None:
        """Forget where a source that is gone was; what was imported from it stays."""

    def plan_forget(self, selection: Selection) -> Forgetting:
        """What `forget` would take away; changes nothing. Raises UsageError for an empty selection."""

    def begin_forget(self, selection: Selection) -> Forgetting:
        """Write down durably what is to go and must never come back; `forget_step` then does it."""

    def forget_step(self) -> bool:
        """One bounded step of what is written down; False when nothing is left to do."""

    def tidy(self) -> bool:
        """One bounded step of housekeeping; False when there is none.

        Goes on with a forgetting that a kill cut off, seals segments, merges the index.
        """

    def repair(self) -> int:
        """Make segments, rows and index agree again; how many problems less a check finds now.

        Nothing else can be written meanwhile. Never done by itself.
        """

    def wants_checkpoint(self, *, is_quiet: bool = False) -> bool:
        """Whether the log is so long that `checkpoint` is due; at rest that is sooner."""

    def checkpoint(self) -> None:
        """Bring the log into the database, as far as readers allow.

        Does not hold up a transaction: to be called in another thread than the writer's, one at a time.
        """

    def close(self) -> None: ...
