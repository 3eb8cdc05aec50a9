"""Taking events out of the ledger for good, in steps that a kill may fall between.

    written   `begin`: the rules, and what is to go, in one transaction. From here on it does go; handoffs are
              gone with it, views of workstreams lose what goes
    rows      events by the slice: hash noted, index entry, places and row deleted, in one transaction each
    sessions  what is left without events goes; the titles of the others are made anew
    segments  one after the other: written anew without the lines, sealed, noted
    index     merged into one piece, by the slice: until then it still knows the words
    pages     the database is written anew: free pages, and the gaps in used ones, still hold text
    log       the write-ahead log is brought in and cut to nothing

The step `pages` alone is long: about a second per 100 MB, in which nothing else is written.

`forget_*` tables hold what is still to do; `meta` has `forget_stage` until the last step is done. A step that
is repeated finds its work done.

An event is found in the segments by `session_events.segment`; these numbers are collected by `begin`, before
the rows go. A title is text too: those of the sessions that lose events are made anew from what is left.
"""

from __future__ import annotations

import time
from typing import Any, Final

import apsw
import msgspec

from memd.errors import DiskError, TryAgain
from memd.ledger import forget, search
from memd.ledger.segments import Codec, Segments
from memd.ledger.store import database, derived, notes, rows
from memd.ledger.store.finding import Finder
from memd.ledger.store.forgotten import Forgotten
from memd.ledger.store.interface import Damaged, Filter, Forgetting, Selection
from memd.ledger.store.planning import title_of
from memd.ledger.store.reading import below
from memd.ledger.store.scope import spelled

SLICE_EVENTS: Final = 100
SLICE_BYTES: Final = 256 * 1024
SLICE_SESSIONS: Final = 100
MERGE_PAGES: Final = 500
MAX_NAMED: Final = 1000

_STAGE = "forget_stage"
_BEGUN, _MERGING, _MERGED = 1, 2, 3


class Forgetter:
    def __init__(
        self, connection: apsw.Connection, segments: Segments, codec: Codec, forgotten: Forgotten
    ) -> None:
        self._connection = connection
        self._segments = segments
        self._codec = codec
        self._forgotten = forgotten
        self._finder = Finder(connection)
        self._sealed: set[int] = set()
        connection.create_scalar_function("memd_instant", _instant, 1, deterministic=True)

    def has_sealed(self, number: int) -> bool:
        """Whether a step has sealed that segment, so that nothing may be appended to it."""
        return number in self._sealed

    # ------------------------------------------------------------------------- planning

    def plan(self, selection: Selection) -> Forgetting:
        return self._select(forget.checked(selection))

    def begin(self, selection: Selection) -> Forgetting:
        """Expects that no forgetting is under way: the tables hold one."""
        chosen = forget.checked(selection)
        connection = self._connection
        with database.transaction(connection):
            found = self._select(chosen)
            connection.execute("insert or ignore into forget_events select event from temp.chosen")
            self._forgotten.make_secret()
            for rule in forget.rules(chosen, time.time()):
                connection.execute(
                    "insert or ignore into forget_rules(what, hash, until) values(?, ?, ?)",
                    (rule.what, self._forgotten.hash_of(rule.what, *rule.parts), rule.until),
                )
            connection.execute(
                "insert or ignore into forget_sessions select distinct session from session_events"
                " where event in (select event from forget_events)"
            )
            if not chosen.matching and not chosen.before:
                condition, bindings = self._sessions(chosen)
                connection.execute(
                    f"insert or ignore into forget_sessions select s.n from sessions s"
                    f" left join checkouts c on c.n = s.checkout where {condition}",
                    bindings,
                )
            for note in notes.selected(connection, chosen, self._expression(chosen)):
                connection.execute("delete from handoffs where n = ?", (note,))
            connection.execute(
                "insert or ignore into forget_segments select distinct segment from session_events"
                " where event in (select event from forget_events) union"
                " select distinct segment from session_lines"
                " where session in (select session from forget_sessions)"
            )
            connection.execute("insert or replace into meta values(?, ?)", (_STAGE, _BEGUN))
        self._forgotten.load()
        return found

    def _sessions(self, chosen: Selection) -> tuple[str, list[object]]:
        conditions, bindings = ["1"], list[object]()
        if chosen.harness:
            conditions.append("harness = ?")
            bindings.append(chosen.harness)
        if chosen.session:
            conditions.append("native = ?")
            bindings.append(chosen.session)
        if chosen.project:
            condition, paths = below(chosen.project)
            conditions.append(condition)
            bindings.extend(paths)
        return " and ".join(conditions), bindings

    def _expression(self, chosen: Selection) -> str:
        """The query as the index takes it; one that finds nothing where it holds no word."""
        return self._finder.match(chosen.matching, Filter()) or '""'

    def _select(self, chosen: Selection) -> Forgetting:
        """Fill the temporary table `chosen`, which is in memory."""
        connection = self._connection
        condition, bindings = self._sessions(chosen)
        connection.execute("create temp table if not exists chosen(event integer primary key)")
        connection.execute("delete from temp.chosen")
        sql = (
            "insert into temp.chosen select distinct event from session_events e"
            " join sessions s on s.n = e.session left join checkouts c on c.n = s.checkout"
            f" where {condition}"
        )
        if chosen.matching:
            sql += " and event in (select rowid from event_text where event_text match ?)"
            bindings.append(self._expression(chosen))
        if chosen.before:
            moment = search.instant(chosen.before)
            sql += " and (select memd_instant(occurred_at) from events where n = event) < ?"
            bindings.append(moment)
        connection.execute(sql, bindings)
        events, segments = connection.execute(
            "select (select count(*) from temp.chosen), (select count(distinct segment)"
            " from session_events where event in (select event from temp.chosen))"
        ).get
        named = list(
            database.fetch(
                connection,
                "select distinct harness, native from session_events e join sessions s on s.n = e.session"
                " where event in (select event from temp.chosen) order by harness, native",
            )
        )
        elsewhere = connection.execute(
            "select count(*) from temp.chosen f where exists(select 1 from session_events e"
            " join sessions s on s.n = e.session left join checkouts c on c.n = s.checkout"
            f" where e.event = f.event and not ({condition}))",
            self._sessions(chosen)[1],
        ).get
        return Forgetting(
            events=events,
            session_count=len(named),
            segments=segments,
            sessions=[(harness, native) for harness, native in named[:MAX_NAMED]],
            elsewhere=elsewhere,
            handoffs=len(notes.selected(connection, chosen, self._expression(chosen))),
        )

    # ---------------------------------------------------------------------------- doing

    def is_pending(self) -> bool:
        """Whether there is a forgetting to go on with."""
        return self._stage() is not None

    def _stage(self) -> int | None:
        found: int | None = self._connection.execute("select value from meta where key = ?", (_STAGE,)).get
        return found

    def step(self) -> bool:
        stage = self._stage()
        if stage is None:
            return False
        if self._drop_events() or self._settle_sessions() or self._rewrite_one():
            return True
        if stage != _MERGED:
            self._merge(is_first=stage == _BEGUN)
            return True
        self._connection.execute("vacuum")
        self._empty_log()
        with database.transaction(self._connection):
            self._connection.execute("delete from meta where key = ?", (_STAGE,))
        self._sealed.clear()
        return False

    def _drop_events(self) -> bool:
        connection = self._connection
        chosen: list[tuple[int, str]] = []
        room = SLICE_BYTES
        for n, stored, size in database.fetch(
            connection,
            "select f.event, id, length(content) from forget_events f left join events on n = f.event"
            " order by f.event limit ?",
            (SLICE_EVENTS,),
        ):
            chosen.append((n, "" if stored is None else spelled(stored)))
            room -= size or 0
            if room <= 0:
                break
        if not chosen:
            return False
        with database.transaction(connection):
            for n, event_id in chosen:
                if event_id:
                    connection.execute(
                        "insert or ignore into forget_ids values(?)",
                        (self._forgotten.hash_of("event", event_id),),
                    )
                for session, side in connection.execute(
                    "select session, is_side from session_events where event = ?", (n,)
                ).fetchall():
                    column = "side_events" if side else "events"
                    connection.execute(f"update sessions set {column} = {column} - 1 where n = ?", (session,))
                connection.execute("delete from session_events where event = ?", (n,))
                rows.drop_event(connection, n)
                connection.execute("delete from forget_events where event = ?", (n,))
        self._forgotten.load()
        return True

    def _settle_sessions(self) -> bool:
        connection = self._connection
        chosen = connection.execute(
            "select session from forget_sessions limit ?", (SLICE_SESSIONS,)
        ).fetchall()
        if not chosen:
            return False
        with database.transaction(connection):
            for (session,) in chosen:
                has_events = "select exists(select 1 from session_events where session = ?)"
                if connection.execute(has_events, (session,)).get:
                    first = connection.execute(
                        "select content from session_events join events on events.n = event"
                        " where session = ? and is_side = 0 and role = 'user' and kind = 'message'"
                        " order by position limit 1",
                        (session,),
                    ).get
                    connection.execute(
                        "update sessions set title = ?, title_from = 'forgotten' where n = ?",
                        (title_of(first or ""), session),
                    )
                else:
                    connection.execute("delete from sessions where n = ?", (session,))
                connection.execute("delete from forget_sessions where session = ?", (session,))
        return True

    def _rewrite_one(self) -> bool:
        connection = self._connection
        row = connection.execute(
            "select f.segment, harness, bytes, state from forget_segments f"
            " left join segments on n = f.segment limit 1"
        ).fetchone()
        if row is None:
            return False
        number, harness, size, state = row
        if harness is not None:
            data = self._rewritten(harness, number, size, state)
            self._sealed.add(number)
            self._segments.seal(harness, number, self._codec.compress(data))
            size = len(data)
        with database.transaction(connection):
            connection.execute("update segments set bytes = ?, state = 'sealed' where n = ?", (size, number))
            connection.execute("delete from forget_segments where segment = ?", (number,))
        if harness is not None:
            self._segments.drop_plain(harness, number)
        return True

    def _rewritten(self, harness: str, number: int, size: int, state: str) -> bytes:
        """What stays of a segment. One that cannot be read is made anew from its rows."""
        try:
            if state == "sealed":
                # the size is not asked for: this may be the second time, after a kill
                data = self._segments.read_sealed(harness, number)
            else:
                data = self._segments.read(harness, number, size, is_sealed=False)
            lines = self._codec.decode(data)
        except (Damaged, DiskError, msgspec.MsgspecError):
            return self._codec.encode(derived.lines(self._connection, harness, number))
        sessions: dict[str, tuple[bool, bool]] = {}

        def known(native: str) -> tuple[bool, bool]:
            if native not in sessions:
                title_from = self._connection.execute(
                    "select title_from from sessions where harness = ? and native = ?", (harness, native)
                ).get
                sessions[native] = (title_from is not None, title_from != "forgotten")
            return sessions[native]

        kept = forget.staying(
            lines,
            self._forgotten.is_id,
            lambda native: known(native)[0],
            lambda native: known(native)[1],
        )
        return self._codec.encode(kept)

    def _merge(self, *, is_first: bool) -> None:
        """Merge the index some more: the first time all pieces are chosen, then that is gone on with."""
        connection = self._connection
        before = connection.total_changes()
        with database.transaction(connection):
            connection.execute(
                "insert into event_text(event_text, rank) values('merge', ?)",
                (-MERGE_PAGES if is_first else MERGE_PAGES,),
            )
            is_done = not is_first and connection.total_changes() - before < 2
            connection.execute(
                "update meta set value = ? where key = ?", (_MERGED if is_done else _MERGING, _STAGE)
            )

    def _empty_log(self) -> None:
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError as busy:
            raise TryAgain(
                "somebody still reads what was forgotten; its last traces go with the next step"
            ) from busy


def _instant(*values: Any) -> float | None:
    return search.instant(str(values[0]))
