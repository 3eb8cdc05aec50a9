"""What the ledger keeps of workstreams, and what may be asked and done about it, whatever engine is behind
it.

Values only, as in `interface`. Everything that changes goes through `Writer.work`, which runs a function over
a `Work`: one transaction, all or nothing, with the clock that leases go by. An engine that several machines
share may have to run the function again, so it must depend on nothing but the `Work` and its own arguments.

The view of a workstream, `(sequence) -> event`, is kept by the store itself. An event gets the next sequence
when it stands in the main line of a linked session for the first time: while it is imported, or all in order
when the session is linked later. It has one sequence per workstream, however many copies of the session are
linked, and keeps it when it leaves the main line (it is only not shown then). What is forgotten leaves a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from memd.errors import MemdError
from memd.ledger.store.interface import StoredEvent

State = Literal["active", "finished", "cancelled", "expired"]
Phase = Literal[
    "prepared",  # the workstream is reserved; no child can exist
    "planned",  # the launcher has its plan; a child may exist
    "running",  # a child was started
    "exited",  # it is gone; what it left is being imported
]
HandoffState = Literal["open", "accepted", "cancelled", "expired", "replaced"]

ESTABLISHING = ("message", "tool_call", "tool_result", "compaction")
"""Kinds of events that make a workstream more than a name."""

UNRESOLVED = "unresolved:"
"""With the id of a run after it: where what memd says of a run stands that was on no known session."""


class RunGone(MemdError):
    """The run is over for good: finished, cancelled, or somebody else has the workstream since."""

    code = "gone"
    remedy = "Start a new one with `memctl run`."
    exit_status = 75


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The present, as the store's clock says it.

    boot     what the clock counts from; leases of another boot are void
    ms       on a clock that is never set and runs through a suspend: what leases are counted on
    wall_ms  for people, and for which selection is the newest
    """

    boot: str
    ms: int
    wall_ms: int


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where workstreams belong: a scope and one checkout of one repository, both as fingerprints."""

    workspace: str
    project: str
    repository: str
    worktree: str


class Workstream(msgspec.Struct, frozen=True, kw_only=True):
    """selected_ms: 0 until a child was started under it; last_sequence: written by the store alone."""

    id: str
    place: Place
    name: str
    cwd: bytes
    created_ms: int
    selected_ms: int = 0
    updated_ms: int = 0
    last_sequence: int = 0


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of one scope, in all its checkouts. events: in the views of its workstreams"""

    workspace: str
    project: str
    workstreams: int
    events: int
    used_ms: int


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """A workstream of the same repository in another checkout.

    machine     the name of the machine that it was last used on; empty: this one
    cwd         where there; used_ms: when that was
    checkpoint  what the last run left of the checkout, as the ledger keeps it; empty: nothing is known
    """

    workstream: Workstream
    machine: str
    cwd: bytes
    used_ms: int
    checkpoint: str = ""


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A native session of a workstream.

    is_current  the one of its harness that the next run resumes
    told        delivery cursor: what has a sequence up to this, the session knows
    flavor      for a harness with more than one launch flavour
    """

    harness: str
    session: str
    is_current: bool
    told: int
    linked_ms: int
    flavor: str = ""


class Process(msgspec.Struct, frozen=True):
    """A process that cannot be taken for another one: its number, and the kernel's word for when it began.

    machine  the name of another machine that it is on; empty: it is on this one
    """

    pid: int
    start: str = ""
    machine: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of one harness, and its lease while `state` is active.

    boot, expires_ms  the lease, on the clock of `Moment`
    expected          the session that the plan puts the child on; empty: not known before it starts
    session           the session it turned out to be on
    made_link         this run linked `session`, which was none of the workstream's before
    is_confirmed      the run's own child has sent its first prompt: the link cannot move any more
    is_passing        a utility (`--version`): links nothing, imports nothing
    sync_after        told to the session before; `sync_through`: what its packet goes up to
    is_told           the start context was claimed, also when nothing was due
    """

    id: str
    workstream: str
    harness: str
    cwd: bytes
    launcher: Process
    boot: str
    expires_ms: int
    began_ms: int
    state: State = "active"
    phase: Phase = "prepared"
    flavor: str = ""
    agent: Process | None = None
    expected: str = ""
    session: str = ""
    made_link: bool = False
    is_confirmed: bool = False
    is_passing: bool = False
    sync_after: int = 0
    sync_through: int = 0
    is_told: bool = False
    ended_ms: int = 0
    exit_code: int | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What one run's packet told, and what it only named.

    after, through  the sequences it stands for; `after` is what the session had been told before
    shown, omitted  events in it, and events that had no room; first: the lowest sequence shown, 0: none
    """

    run: str
    harness: str
    session: str
    after: int
    through: int
    shown: int
    omitted: int
    first: int
    at_ms: int


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """A single-use note from one session to the next. Its texts are scrubbed before they come here.

    workstream, harness  whom it is addressed to; empty: whoever comes next in the scope
    is_automatic         made by a program at the end of a session, not by somebody who said so
    taken_*              who accepted it
    """

    id: str
    workspace: str
    project: str
    cwd: bytes
    created_ms: int
    expires_ms: int
    summary: str
    questions: Sequence[str] = ()
    steps: Sequence[str] = ()
    files: Sequence[str] = ()
    workstream: str = ""
    harness: str = ""
    from_harness: str = ""
    from_session: str = ""
    from_run: str = ""
    is_automatic: bool = False
    state: HandoffState = "open"
    ended_ms: int = 0
    taken_harness: str = ""
    taken_session: str = ""
    taken_run: str = ""


class Untold(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has not seen of a workstream.

    count   how many events
    events  the newest of them, oldest first; contents cut. `sequence` is the workstream's
    """

    count: int
    events: Sequence[StoredEvent] = ()


class Looking(Protocol):
    """What may be asked. Of a reader, each answer is of its own moment; inside a `Work`, of one.

    is_shared  several machines may write here, and a workstream may belong to several checkouts
    """

    is_shared: bool

    def workstreams(self, place: Place) -> list[Workstream]:
        """The workstreams of one checkout in one scope, last selected first."""

    def in_scope(self, workspace: str, project: str) -> list[Workstream]:
        """The workstreams of all checkouts in one scope, last used first."""

    def scopes(self) -> list[Known]:
        """Every scope that has a workstream, last used first."""

    def workstream(self, workstream: str) -> Workstream | None: ...

    def elsewhere(self, place: Place) -> list[Elsewhere]:
        """The workstreams of the same repository that do not belong to this checkout, last used first."""

    def linked(self, workstream: str) -> list[Linked]:
        """Its native sessions, last linked first."""

    def workstreams_of(self, harness: str, session: str) -> list[str]:
        """The workstreams that a native session is linked to."""

    def is_established(self, workstream: str) -> bool:
        """Whether it has a native session, or any event that somebody said or did."""

    def run(self, run: str) -> Run | None: ...

    def active(self, workstream: str) -> Run | None: ...

    def active_runs(self) -> list[Run]: ...

    def delivery(self, run: str) -> Delivery | None: ...

    def handoff(self, handoff: str) -> Handoff | None: ...

    def handoffs(self, workspace: str, project: str, limit: int = 20) -> list[Handoff]:
        """The handoffs of a scope, newest first; the open one among them, if there is one."""

    def has_open_handoff(self) -> bool:
        """Whether any scope has one; quick."""

    def untold(
        self,
        workstream: str,
        harness: str,
        session: str,
        *,
        after: int,
        through: int,
        limit: int,
        max_characters: int,
    ) -> Untold:
        """Events with `after < sequence <= through` that do not stand in that very session.

        limit           newest events that are given with their contents, each cut to `max_characters`
        """

    def tail(
        self, workstream: str, *, limit: int = 20, before: int = 0, max_characters: int = 0
    ) -> list[StoredEvent]:
        """The newest events of a workstream, newest first; with `before` only those of smaller sequences."""


class Work(Looking, Protocol):
    """One transaction."""

    @property
    def moment(self) -> Moment: ...

    def put_workstream(self, row: Workstream) -> None:
        """Add or change; `last_sequence` is left as it is. The name must be free in its place."""

    def bind(self, workstream: str, place: Place) -> None:
        """Let a workstream belong to one more checkout. The name must be free there.

        raises  Refused by an engine that keeps a workstream in one checkout
        """

    def move_scope(self, old: tuple[str, str], new: tuple[str, str]) -> tuple[int, int]:
        """Give workstreams and handoffs of one scope (workspace, project) to another, which has none.

        How many of each that were.
        """

    def drop_workstream(self, workstream: str) -> None:
        """With its links, runs and view. Events stay."""

    def put_linked(self, workstream: str, row: Linked) -> None:
        """Link a session, or change its link; a current one takes that from the others of its harness.

        What stands in its main line already joins the view, in order, what it shares with the session it was
        forked from first.
        """

    def drop_linked(self, workstream: str, harness: str, session: str) -> None:
        """What has joined the view stays there."""

    def told_further(self, workstream: str, harness: str, session: str, told: int) -> int:
        """The highest cursor that skips nothing but what stands in that very session."""

    def has_spoken(self, workstream: str, harness: str, session: str, after: int) -> bool:
        """Whether something above that sequence was said or done in that very session."""

    def put_run(self, run: Run) -> None:
        """Add or change. At most one run of a workstream is active: the store refuses another as a bug."""

    def put_delivery(self, row: Delivery) -> None:
        """One per run: a second one takes its place."""

    def drop_delivery(self, run: str) -> None: ...

    def put_handoff(self, row: Handoff) -> None:
        """Add or change. At most one handoff of a scope is open: the store refuses another as a bug."""
