"""Crush: how its messages are selected. `crush_store` says where they lie, `crush_rows` what is in them.

    <data folder>/crush.db     SQLite: sessions, messages, files (what was edited), read_files

No session says where it was started: the place of the database does. In a database that lies outside of a
project a session is the project's when it, or a session it spawned, edited a file there; having read one is
no sign. A session that comes to be a project's only later is read from its beginning then (the second query).

Times are seconds or milliseconds, stamped by triggers when a row is changed; a session's own row is touched
with every message that is added, so a read looks at the sessions touched since a day before the cursor, and
in them at the messages that changed, or that a changed one follows. A message is given once it is complete
(`crush_rows`).

    source  descriptions of Crush up to 0.96 and its published schema, read 2026-11; no store was at hand
"""

from __future__ import annotations

from memd.harness.crush_launch import LAUNCH
from memd.harness.crush_rows import COLUMNS, parse_rows
from memd.harness.crush_store import stores as scattered
from memd.harness.model import Adapter, Environment, Query, Session, Store

LOOK_BACK_MS = 24 * 3600 * 1000
OVERLAP_MS = 10_000
EVIDENCE_OVERLAP = 200  # edits; their numbers are given again when the newest sessions were deleted
MAX_PARTS_BYTES = 16 << 20  # of one message

_SECONDS_BELOW = 100_000_000_000


def _ms(column: str) -> str:
    return f"(case when {column} < {_SECONDS_BELOW} then {column} * 1000 else {column} end)"


# Which session everything under a session belongs to, and which of the sharing projects it worked in. Both
# are empty, and cost nothing, for a database that one project has to itself.
_TREE = """
tree(top, id) as (
  select s.id, s.id from sessions as s
   where coalesce(s.parent_session_id, '') = '' and :shared <> '[]'
   union
  select tree.top, s.id from tree join sessions as s on s.parent_session_id = tree.id
),
belonging(id, top) as materialized (select id, min(top) from tree group by id),
worked(top, place, first) as materialized (
  select b.top, p.value, min(f.rowid)
    from json_each(:shared) as p cross join belonging as b cross join files as f on f.session_id = b.id
   where substr(f.path, 1, length(p.value) + 1) = p.value || '/'
   group by b.top, p.value
)
"""

_CWD = """
coalesce((select cast(w.place as blob) from worked as w
           where w.top = coalesce((select top from belonging as b where b.id = s.id), s.id)
           order by length(w.place) desc limit 1), :cwd)
"""

_FACTS = f"""
select m.rowid as place, m.id as id, m.session_id as session, m.role as role,
       {_ms("m.updated_at")} as touched,
       case when m.role = 'assistant' then
         (select {_ms("n.updated_at")} from messages as n
           where n.session_id = m.session_id and n.rowid > m.rowid order by n.rowid limit 1) end as later
"""

_IS_FINISHED = """
exists (select 1 from json_each(case when json_valid(m.parts) then m.parts else '[]' end) as part
         where part.type = 'object' and json_extract(part.value, '$.type') = 'finish')
"""

_IS_COMPLETE = f"(k.role <> 'assistant' or k.later is not null or not json_valid(m.parts) or {_IS_FINISHED})"

_ROWS = f"""
select k.updated, k.id, k.session, s.parent_session_id, {_CWD}, cast(s.title as blob), s.created_at, k.role,
       m.is_summary_message, k.place, k.touched, octet_length(m.parts),
       case when octet_length(m.parts) <= {MAX_PARTS_BYTES} then cast(m.parts as blob) end
  from key as k cross join messages as m on m.rowid = k.place cross join sessions as s on s.id = k.session
"""

_PAST = "where (k.updated, k.id) > (:updated, :id)"

MESSAGES = Query(
    name="messages",
    sql=f"""
with recursive {_TREE},
fact as materialized ({_FACTS}
  from sessions as s cross join messages as m on m.session_id = s.id
 where {_ms("s.updated_at")} >= :updated - {LOOK_BACK_MS}),
key as (select fact.*, max(touched, coalesce(later, 0)) as updated from fact)
{_ROWS} {_PAST} and {_IS_COMPLETE} and {_CWD} <> x''
 order by 1, 2 limit :limit
""",
    columns=COLUMNS,
    overlap_ms=OVERLAP_MS,
)

CLAIMED = Query(
    name="claimed",
    sql=f"""
with recursive {_TREE},
claim(session, updated) as (
  select b.id, min(w.first) from worked as w cross join belonging as b on b.top = w.top
   group by b.id having min(w.first) >= :updated),
fact as materialized ({_FACTS}, c.updated as updated
  from claim as c cross join messages as m on m.session_id = c.session),
key as (select * from fact)
{_ROWS} {_PAST} and {_IS_COMPLETE}
 order by 1, 2 limit :limit
""",
    columns=COLUMNS,
    overlap_ms=EVIDENCE_OVERLAP,
)

# Only the last message of a session can have been left without an end.
AT_REST = Query(
    name="unfinished",
    sql=f"""
with recursive {_TREE},
fact as materialized ({_FACTS}
  from sessions as s
 cross join messages as m on m.rowid = (select max(n.rowid) from messages as n where n.session_id = s.id)
 where {_ms("s.updated_at")} >= :updated - {LOOK_BACK_MS} and (:session = '' or s.id = :session)),
key as (select fact.*, touched as updated from fact)
{_ROWS} {_PAST} and not {_IS_COMPLETE} and k.updated <= :until and {_CWD} <> x''
 order by 1, 2 limit :limit
""",
    columns=COLUMNS,
    is_at_rest=True,
)


def stores(environment: Environment) -> tuple[Store, ...]:
    """None that could be told without looking: every directory has its own."""
    return ()


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """A database holds many sessions and names none here: what it says comes with its rows."""
    return Session(id="")


ADAPTER = Adapter(
    name="crush",
    title="Crush",
    stores=stores,
    scattered=scattered,
    identify=identify,
    queries=(MESSAGES, CLAIMED, AT_REST),
    parse_rows=parse_rows,
    session_query="select cast('' as blob) from sessions where id = :session",
    launch=LAUNCH,
)
