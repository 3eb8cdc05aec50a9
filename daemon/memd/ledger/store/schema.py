"""The tables, and how an older database becomes today's.

`user_version` is the version. Every step of `MIGRATIONS` runs in its own transaction together with the new
number, so that a kill leaves one version or the next. A database of a version above ours is refused before
anything is written, its log included.

    harness sessions   `sessions`; `checkouts` are the directories they began in
    events             one row per origin: `id` decides, the first version stays. Digests are found by their
                       first 8 bytes, so that the index, which grows at random places, is small (`BY_ID`)
    session_events     where events stand: positions are dense per session; `is_side` is beside the main line
    event_text         the index: no text of its own, it reads `events` (external content)
    losses, cursors    per source
    segments           the files; `session_events.segment` says in which one a line stands, and
                       `session_lines` where facts of a session do
    forget_*           what must never come back, and what is still to be taken away
    workstreams        names, each in its place; `workstream_sessions` are linked to them
    workstream_events  their views: sequences are dense but for what was forgotten
    runs, deliveries   launches with their leases, and what each told its session
    handoffs           notes from one session to the next

The index is told to merge its pieces late and many at once; `memd.ledger.store.pieces` says more. Its first
column costs nothing to name, any other two bytes for every word of every event: so the texts come first.

Two partial unique indexes make a lease and an open handoff exclusive, whoever writes.

`events.n` has two lanes. What is old when it comes (a back-fill) counts up from 1, what is fresh from `LIVE`:
so a higher number is a newer event nearly always, which is what a search for the newest hits goes by.
`events.scope` holds the tokens that a filtered search is served by: `h` + harness, `k` + kind, `r` + role
(both shortened, see `memd.ledger.store.scope`), `c` + checkout for every directory whose sessions have the
event. A workstream needs none: its sessions began in a few directories.
"""

from __future__ import annotations

import apsw

from memd.ledger.store.interface import TooNew

LIVE = 1 << 32
"""The first number of the lane of fresh events."""

BY_ID = "iif(typeof(id) = 'blob', substr(id, 1, 8), id) = ? and id = ?"
"""The condition that finds an event by its id; its bindings are `memd.ledger.store.scope.probe`."""

SCHEMA_1 = """
create table meta(
    key text primary key,
    value any not null
) strict, without rowid;

create table checkouts(
    n integer primary key,
    path text not null unique
) strict;

create table sessions(
    n integer primary key,
    harness text not null,
    native text not null,
    checkout integer references checkouts(n),
    title text not null default '',
    title_from text not null default '' check(title_from in ('', 'text', 'native', 'forgotten')),
    started text not null default '',
    last_activity text not null default '',
    version text not null default '',
    is_side integer not null default 0,
    parent text not null default '',
    forked_from text not null default '',
    forked_at integer not null default 0,
    last_position integer not null default 0,
    events integer not null default 0,
    side_events integer not null default 0,
    unique(harness, native)
) strict;
create index sessions_activity on sessions(last_activity);
create index sessions_checkout on sessions(checkout);

create table events(
    n integer primary key,
    id any not null,
    kind text not null
        check(kind in ('message', 'tool_call', 'tool_result', 'compaction', 'checkpoint', 'annotation')),
    role text not null,
    occurred_at text not null,
    metadata text not null,
    scope text not null,
    content text not null
) strict;
create index events_id on events(iif(typeof(id) = 'blob', substr(id, 1, 8), id));

create virtual table event_text using fts5(
    scope, content,
    content='events', content_rowid='n',
    tokenize="unicode61 remove_diacritics 2"
);
insert into event_text(event_text, rank) values('automerge', 64);
insert into event_text(event_text, rank) values('crisismerge', 256);

create table segments(
    n integer primary key,
    harness text not null,
    bytes integer not null,
    state text not null check(state in ('open', 'closed', 'sealed'))
) strict;
create index segments_unsealed on segments(state) where state <> 'sealed';

create table session_events(
    session integer not null references sessions(n),
    position integer not null,
    is_side integer not null,
    event integer not null references events(n),
    at integer not null,
    segment integer not null references segments(n),
    primary key(session, position)
) strict, without rowid;
create index session_events_event on session_events(event);

create table session_lines(
    session integer not null references sessions(n) on delete cascade,
    segment integer not null,
    primary key(session, segment)
) strict, without rowid;

create table losses(
    session integer not null references sessions(n) on delete cascade,
    what text not null,
    source blob not null,
    sentence text not null,
    count integer not null,
    primary key(session, what, source)
) strict, without rowid;
create index losses_source on losses(source);

create table cursors(
    source blob primary key,
    value blob not null
) strict, without rowid;

create table forget_ids(
    hash blob primary key
) strict, without rowid;

create table forget_rules(
    what text not null check(what in ('session', 'project', 'before')),
    hash blob not null,
    until text not null,
    primary key(what, hash, until)
) strict, without rowid;

create table forget_events(
    event integer primary key
) strict;

create table forget_segments(
    segment integer primary key
) strict;

create table forget_sessions(
    session integer primary key
) strict;
"""

SCHEMA_2 = """
create table workstreams(
    n integer primary key,
    id text not null unique,
    workspace text not null,
    project text not null,
    repository text not null,
    worktree text not null,
    name text not null,
    cwd blob not null,
    created_ms integer not null,
    selected_ms integer not null,
    updated_ms integer not null,
    last_sequence integer not null default 0,
    unique(workspace, project, repository, worktree, name)
) strict;

create table workstream_sessions(
    workstream integer not null references workstreams(n) on delete cascade,
    harness text not null,
    native text not null,
    flavor text not null,
    is_current integer not null,
    told integer not null,
    linked_ms integer not null,
    primary key(workstream, harness, native)
) strict, without rowid;
create index workstream_sessions_native on workstream_sessions(harness, native);
create unique index workstream_sessions_current on workstream_sessions(workstream, harness)
    where is_current = 1;

create table workstream_events(
    workstream integer not null references workstreams(n) on delete cascade,
    sequence integer not null,
    event integer not null references events(n) on delete cascade,
    primary key(workstream, sequence)
) strict, without rowid;
create unique index workstream_events_event on workstream_events(event, workstream);

create table runs(
    n integer primary key,
    id text not null unique,
    workstream integer not null references workstreams(n) on delete cascade,
    harness text not null,
    flavor text not null,
    state text not null check(state in ('active', 'finished', 'cancelled', 'expired')),
    phase text not null check(phase in ('prepared', 'planned', 'running', 'exited')),
    cwd blob not null,
    launcher_pid integer not null,
    launcher_start text not null,
    agent_pid integer,
    agent_start text not null,
    boot text not null,
    expires_ms integer not null,
    began_ms integer not null,
    ended_ms integer not null,
    expected text not null,
    native text not null,
    made_link integer not null,
    is_confirmed integer not null,
    is_passing integer not null,
    sync_after integer not null,
    sync_through integer not null,
    is_told integer not null,
    exit_code integer
) strict;
create unique index runs_active on runs(workstream) where state = 'active';
create index runs_workstream on runs(workstream);

create table deliveries(
    run integer primary key references runs(n) on delete cascade,
    harness text not null,
    native text not null,
    after integer not null,
    through integer not null,
    shown integer not null,
    omitted integer not null,
    first integer not null,
    at_ms integer not null
) strict;

create table handoffs(
    n integer primary key,
    id text not null unique,
    workspace text not null,
    project text not null,
    cwd blob not null,
    workstream text not null,
    harness text not null,
    from_harness text not null,
    from_session text not null,
    from_run text not null,
    is_automatic integer not null,
    summary text not null,
    lists text not null,
    state text not null check(state in ('open', 'accepted', 'cancelled', 'expired', 'replaced')),
    created_ms integer not null,
    expires_ms integer not null,
    ended_ms integer not null,
    taken_harness text not null,
    taken_session text not null,
    taken_run text not null
) strict;
create unique index handoffs_open on handoffs(workspace, project) where state = 'open';
create index handoffs_scope on handoffs(workspace, project);
"""

SCHEMA_3 = """
drop table event_text;
create virtual table event_text using fts5(
    content, scope,
    content='events', content_rowid='n',
    tokenize="unicode61 remove_diacritics 2"
);
insert into event_text(event_text, rank) values('automerge', 64);
insert into event_text(event_text, rank) values('crisismerge', 256);
insert into event_text(event_text) values('rebuild');
"""

MIGRATIONS: tuple[str, ...] = (SCHEMA_1, SCHEMA_2, SCHEMA_3)
"""Step N brings version N to N + 1. Once released, a step never changes."""

VERSION = len(MIGRATIONS)


def version(connection: apsw.Connection) -> int:
    found = connection.pragma("user_version")
    return found if isinstance(found, int) else 0


def refuse_newer(connection: apsw.Connection, path: str) -> None:
    """Raises TooNew for a database that a later memd wrote."""
    found = version(connection)
    if found > VERSION:
        raise TooNew(f"{path} has ledger version {found}; this memd knows versions up to {VERSION}")


def migrate(connection: apsw.Connection) -> int:
    """Bring the database to `VERSION`; gives the version it had."""
    began = version(connection)
    for step in range(began, VERSION):
        with connection:
            connection.execute(MIGRATIONS[step])
            connection.pragma("user_version", step + 1)
    return began
