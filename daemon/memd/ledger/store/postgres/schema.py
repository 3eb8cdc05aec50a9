"""The tables on the server, and how an older ledger becomes today's.

Names that come from outside and may be long (paths, session ids) are found by a digest, `key`, since an index
entry is bounded. `ledger` has one row: its version, its lock, and how often something was forgotten.

    machines           who writes here; the tokens say which of its transactions came through last
    events             as in SQLite, with two lanes of numbers; `words` is the index: folded words with their
                       places, and the scope as words that no text can hold (they begin with a full stop)
    workstream_places  the checkouts that a workstream belongs to: one, until another is bound to it

`is_long`: some places of words had no room in `words`, so a phrase has to be looked for in the text.
"""

from __future__ import annotations

from typing import Final

SCHEMA_1: Final = """
create table ledger(
    one int primary key check(one = 1),
    version int not null,
    forgotten bigint not null default 0,
    forget_secret bytea not null default ''
);
create table machines(
    id text primary key,
    host text not null,
    seen_ms bigint not null,
    batch_token text not null default '',
    work_token text not null default ''
);
create table checkouts(
    n bigint primary key,
    key bytea not null unique,
    path text not null
);
create table sessions(
    n bigint primary key,
    key bytea not null unique,
    native_key bytea not null,
    harness text not null,
    native text not null,
    checkout bigint references checkouts(n),
    title text not null,
    title_from text not null check(title_from in ('', 'text', 'native', 'forgotten')),
    started text not null,
    last_activity text not null,
    last_s double precision not null,
    version text not null,
    is_side boolean not null,
    parent text not null,
    forked_from text not null,
    forked_key bytea,
    forked_at bigint not null,
    last_position bigint not null,
    events bigint not null,
    side_events bigint not null
);
create index sessions_native on sessions(native_key);
create index sessions_forks on sessions(forked_key);
create index sessions_activity on sessions(last_s, n);
create index sessions_checkout on sessions(checkout);
create table events(
    n bigint primary key,
    id bytea not null unique,
    kind text not null
        check(kind in ('message', 'tool_call', 'tool_result', 'compaction', 'checkpoint', 'annotation')),
    role text not null,
    occurred_at text not null,
    occurred_s double precision,
    record text not null,
    metadata text not null,
    scope text not null,
    is_long boolean not null,
    words tsvector not null,
    content text not null
);
create index events_words on events using gin(words);
create table session_events(
    session bigint not null references sessions(n),
    position bigint not null,
    is_side boolean not null,
    event bigint not null references events(n),
    at bigint not null,
    primary key(session, position)
);
create index session_events_event on session_events(event);
create index session_events_at on session_events(session, at);
create table losses(
    session bigint not null references sessions(n) on delete cascade,
    what text not null,
    machine text not null,
    source_key bytea not null,
    source bytea not null,
    sentence text not null,
    count bigint not null,
    primary key(session, what, machine, source_key)
);
create index losses_source on losses(machine, source_key);
create table cursors(
    machine text not null,
    source_key bytea not null,
    source bytea not null,
    value bytea not null,
    primary key(machine, source_key)
);
create table forget_ids(hash bytea primary key);
create table forget_rules(
    what text not null check(what in ('session', 'project', 'before')),
    hash bytea not null,
    until text not null,
    primary key(what, hash, until)
);
create table forget_events(event bigint primary key);
create table forget_sessions(session bigint primary key);
create table workstreams(
    n bigint primary key,
    id text not null unique,
    name text not null,
    cwd bytea not null,
    created_ms bigint not null,
    selected_ms bigint not null,
    updated_ms bigint not null,
    last_sequence bigint not null default 0
);
create table workstream_places(
    workstream bigint not null references workstreams(n) on delete cascade,
    machine text not null,
    workspace text not null,
    project text not null,
    repository text not null,
    worktree text not null,
    name text not null,
    bound_ms bigint not null,
    primary key(workstream, machine, worktree),
    unique(machine, workspace, project, repository, worktree, name)
);
create index workstream_places_scope on workstream_places(workspace, project);
create index workstream_places_repository on workstream_places(repository);
create table workstream_sessions(
    workstream bigint not null references workstreams(n) on delete cascade,
    harness text not null,
    native_key bytea not null,
    native text not null,
    flavor text not null,
    is_current boolean not null,
    told bigint not null,
    linked_ms bigint not null,
    primary key(workstream, harness, native_key)
);
create index workstream_sessions_native on workstream_sessions(harness, native_key);
create unique index workstream_sessions_current on workstream_sessions(workstream, harness)
    where is_current;
create table workstream_events(
    workstream bigint not null references workstreams(n) on delete cascade,
    sequence bigint not null,
    event bigint not null references events(n) on delete cascade,
    primary key(workstream, sequence)
);
create unique index workstream_events_event on workstream_events(event, workstream);
create table runs(
    n bigint primary key,
    id text not null unique,
    workstream bigint not null references workstreams(n) on delete cascade,
    machine text not null,
    machine_boot text not null,
    harness text not null,
    flavor text not null,
    state text not null check(state in ('active', 'finished', 'cancelled', 'expired')),
    phase text not null check(phase in ('prepared', 'planned', 'running', 'exited')),
    cwd bytea not null,
    launcher_pid bigint not null,
    launcher_start text not null,
    agent_pid bigint,
    agent_start text not null,
    boot text not null,
    expires_ms bigint not null,
    began_ms bigint not null,
    ended_ms bigint not null,
    expected text not null,
    native text not null,
    made_link boolean not null,
    is_confirmed boolean not null,
    is_passing boolean not null,
    sync_after bigint not null,
    sync_through bigint not null,
    is_told boolean not null,
    exit_code bigint
);
create unique index runs_active on runs(workstream) where state = 'active';
create index runs_workstream on runs(workstream);
create table deliveries(
    run bigint primary key references runs(n) on delete cascade,
    harness text not null,
    native text not null,
    after bigint not null,
    through bigint not null,
    shown bigint not null,
    omitted bigint not null,
    first bigint not null,
    at_ms bigint not null
);
create table handoffs(
    n bigint primary key,
    id text not null unique,
    workspace text not null,
    project text not null,
    cwd bytea not null,
    workstream text not null,
    harness text not null,
    from_harness text not null,
    from_session text not null,
    from_run text not null,
    is_automatic boolean not null,
    summary text not null,
    lists text not null,
    state text not null check(state in ('open', 'accepted', 'cancelled', 'expired', 'replaced')),
    created_ms bigint not null,
    expires_ms bigint not null,
    ended_ms bigint not null,
    taken_harness text not null,
    taken_session text not null,
    taken_run text not null
);
create unique index handoffs_open on handoffs(workspace, project) where state = 'open';
create index handoffs_scope on handoffs(workspace, project);
insert into ledger(one, version) values(1, 1)
"""

MIGRATIONS: Final = (SCHEMA_1,)
"""Step N brings version N to N + 1, and says so in `ledger`. Once released, a step never changes."""

VERSION: Final = len(MIGRATIONS)
