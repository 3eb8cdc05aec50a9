"""OpenCode: where its sessions lie and how they are selected.

    <data>/opencode/opencode.db             everything, SQLite in WAL mode; other channels use opencode-*.db
    <data>/opencode/storage/session/**      one JSON file per session, message and part, before the database;
                                            left where it was when a newer version copied it over

What the rows mean is `memd.harness.opencode_rows`. How a change is found: no table has an index on its
`time_updated`, but a session's own row is touched by whatever happens in it, and messages are found by
session and creation. So a read looks at the sessions touched since a day before the cursor, and in them at
the messages created since then; all messages of a session that is younger than that are looked at, because a
fork is made of old ones. A message counts as changed when it, one of its parts, or, while it is incomplete,
the reply after it is newer than the cursor.

Rows are stamped before they are committed and clocks are set back, so the importer starts each read
`overlap_ms` before its cursor, and never in the future. Rows that come twice give the same events and are
not counted as losses again. Only `session`, `message` and `part` are read: other tables hold credentials.

    source  OpenCode 1.18.33, database and program read 2026-11
"""

from __future__ import annotations

from memd.harness.model import MAX_EVENT_BYTES, MAX_RECORD_BYTES, Adapter, Environment, Query, Session, Store
from memd.harness.opencode_files import gather, session_of
from memd.harness.opencode_hooks import HOOKS
from memd.harness.opencode_launch import LAUNCH
from memd.harness.opencode_rows import COLUMNS, UNFINISHED, parse_rows

LOOK_BACK_MS = 24 * 3600 * 1000
OVERLAP_MS = 10_000
MAX_SHORTENED_BYTES = 32 << 20  # a larger part is not even looked into

_SQLITE = b"SQLite format 3\0"

# A value that is no JSON must not end the statement, and the order in which SQLite tests terms is its own:
# each look into JSON is behind a CASE.
_CANDIDATES = f"""
select s.id as session, m.id as message, m.time_created as created, m.time_updated as touched,
       case when json_valid(m.data) then m.data else '{{}}' end as facts
  from session as s cross join message as m on m.session_id = s.id
 where s.time_updated >= :updated - {LOOK_BACK_MS}
   and (m.time_created >= :updated - {LOOK_BACK_MS} or s.time_created >= :updated - {LOOK_BACK_MS})
"""

_FACTS = """
select session, message, created, touched,
       json_extract(facts, '$.role') as role,
       coalesce(json_extract(facts, '$.time.created'), created) as original,
       json_extract(facts, '$.time.completed') as completed,
       case when json_type(facts, '$.error') is not null and json_type(facts, '$.error') <> 'null'
            then coalesce(json_extract(facts, '$.error.name'), 'error') end as failed,
       coalesce(json_type(facts, '$.summary') = 'true', 0) as summary,
       (select max(p.time_updated) from part as p where p.message_id = message) as grown
  from candidate
"""

_SETTLED = """
select fact.*,
       case when role = 'assistant' and completed is null and failed is null then
         (select later.time_created from message as later
           where later.session_id = session and (later.time_created, later.id) > (created, message)
             and json_extract(case when json_valid(later.data) then later.data end, '$.role') = 'assistant'
           order by later.time_created, later.id limit 1) end as settled
  from fact
"""

_CHANGED = """
select settling.*,
       cast(max(created, coalesce(grown, 0), coalesce(settled, 0),
                case when role = 'user' then 0 else touched end) as integer) as updated
  from settling
"""

_KEYS = """
select updated, coalesce(p.id, message) as id, session, message, role, original, completed, failed, summary,
       settled, p.id as part
  from changed left join part as p on p.message_id = message
 where updated >= :updated and (updated, coalesce(p.id, message)) > (:updated, :id) {more}
 order by 1, 2 limit :limit
"""

_SHORTENED = f"""
json_object(
  'type', json_extract(p.data, '$.type'),
  'text', substr(json_extract(p.data, '$.text'), 1, {MAX_EVENT_BYTES + 1}),
  'summary', substr(json_extract(p.data, '$.summary'), 1, {MAX_EVENT_BYTES + 1}),
  'synthetic', json(json_extract(p.data, '$.synthetic') = 1),
  'ignored', json(json_extract(p.data, '$.ignored') = 1),
  'time', json(json_extract(p.data, '$.time')),
  'tool', json_extract(p.data, '$.tool'),
  'callID', json_extract(p.data, '$.callID'),
  'state', case when json_type(p.data, '$.state') = 'object' then json_object(
    'status', json_extract(p.data, '$.state.status'),
    'input', substr(json_extract(p.data, '$.state.input'), 1, {MAX_EVENT_BYTES + 1}),
    'output', substr(json_extract(p.data, '$.state.output'), 1, {MAX_EVENT_BYTES + 1}),
    'error', substr(json_extract(p.data, '$.state.error'), 1, {MAX_EVENT_BYTES + 1}),
    'time', json(json_extract(p.data, '$.state.time')),
    'metadata', json_object('exit', json_extract(p.data, '$.state.metadata.exit'))) end)
"""

_ROWS = f"""
select k.updated, k.id, k.session, k.message, s.parent_id, cast(s.directory as blob), cast(s.title as blob),
       s.version, s.time_created, k.role, k.original, k.completed, k.failed, k.summary, k.settled,
       (select count(*) from part as q where q.message_id = k.message and q.id < k.part),
       octet_length(p.data),
       case when octet_length(p.data) <= {MAX_RECORD_BYTES} then cast(p.data as blob)
            when octet_length(p.data) <= {MAX_SHORTENED_BYTES} and json_valid(p.data)
            then cast({_SHORTENED} as blob) end
  from key as k cross join session as s on s.id = k.session left join part as p on p.id = k.part
"""


def _select(more: str) -> str:
    """The statement: each step reads the one before, and only the last touches the large column.

    What looks at other rows or into JSON is kept, or SQLite would do it again for each use.
    """
    once, inline = "materialized", "not materialized"
    steps = (
        ("candidate", inline, _CANDIDATES),
        ("fact", once, _FACTS),
        ("settling", once, _SETTLED),
        ("changed", inline, _CHANGED),
        ("key", inline, _KEYS.format(more=more)),
    )
    named = ",\n".join(f"{name} as {how} ({body})" for name, how, body in steps)
    return f"with {named}\n{_ROWS}"


MESSAGES = Query(name="messages", sql=_select(""), columns=COLUMNS, overlap_ms=OVERLAP_MS)

AT_REST = Query(
    name=UNFINISHED,
    sql=_select(
        "and role = 'assistant' and completed is null and failed is null and settled is null"
        " and updated <= :until and (:session = '' or session = :session)"
    ),
    columns=COLUMNS,
    is_at_rest=True,
)


def stores(environment: Environment) -> tuple[Store, ...]:
    """The database and the older files of one data folder; `OPENCODE_DB` may name another database."""
    data = environment.variables.get("XDG_DATA_HOME") or environment.home + b"/.local/share"
    root = data.rstrip(b"/") + b"/opencode"
    places = [Store(root=root, patterns=("opencode.db", "opencode-*.db"), flavor="sqlite", database=True)]
    named = environment.variables.get("OPENCODE_DB", b"")
    if named and named != b":memory:":
        path = named if named.startswith(b"/") else root + b"/" + named
        folder, _, name = path.rpartition(b"/")
        pattern = "".join(f"[{c}]" if c in "*?[" else c for c in name.decode("utf-8", "surrogateescape"))
        places.insert(0, Store(root=folder or b"/", patterns=(pattern,), flavor="sqlite", database=True))
    places.append(
        Store(root=root + b"/storage", patterns=("session/*/*.json",), flavor="files", documents=True)
    )
    return tuple(places)


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """A database holds many sessions and names none here: what it says comes with its rows."""
    if flavor == "files":
        return session_of(path, head)
    return Session(id="") if head.startswith(_SQLITE) else None


ADAPTER = Adapter(
    name="opencode",
    title="OpenCode",
    aliases=("open-code",),
    stores=stores,
    identify=identify,
    queries=(MESSAGES, AT_REST),
    session_query="select cast(directory as blob) from session where id = :session",
    parse_rows=parse_rows,
    gather=gather,
    launch=LAUNCH,
    hooks=HOOKS,
)
