"""The ledger on PostgreSQL: implements `interface.Writer`, `interface.Reader` and `engines.Engine`.

A transaction that writes begins by taking the lock of the ledger and writing its own token into the row of
this machine. So when the answer to a commit is lost, the row says whether it came through: then what was
worked out counts, else it is done again. Nothing is done twice, also where the repetition would not be
noticed otherwise (counts of losses, sequences).
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from memd.ledger.store.history import USUAL, Bounds, History
from memd.ledger.store.interface import (
    Appended,
    Batch,
    Filter,
    Forgetting,
    Hit,
    LossRow,
    Report,
    Selection,
    SessionRow,
    Stats,
    StoredEvent,
    T,
    never,
)
from memd.ledger.store.planning import Planner
from memd.ledger.store.postgres import checking, putting
from memd.ledger.store.postgres.connecting import Link, parameters
from memd.ledger.store.postgres.finding import Finder
from memd.ledger.store.postgres.forgetting import Forgetter
from memd.ledger.store.postgres.history_reading import HistoryReading
from memd.ledger.store.postgres.knowing import Forgotten, Known
from memd.ledger.store.postgres.reading import Reading
from memd.ledger.store.postgres.values import cleaned, key_of
from memd.ledger.store.postgres.view import View
from memd.ledger.store.postgres.words import Words
from memd.ledger.store.postgres.workstream_reading import WorkstreamReading
from memd.ledger.store.postgres.workstream_writing import Working
from memd.ledger.store.workstreams import Moment, Work

BOOT: Final = "postgresql"
"""What leases are counted from: the server's clock has no boots."""

_NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"


class Machine:
    """This machine among those that write. id: never that of another one; host: how it is called."""

    def __init__(self, id: str, host: str) -> None:
        self.id = id
        self.host = host


class PostgresWriter:
    """The one writer of this machine. Belongs to the thread that uses it.

    clock  of the leases, for tests; None: the server's
    """

    def __init__(
        self,
        given: dict[str, Any],
        schema: str,
        machine: Machine,
        *,
        clock: Callable[[], Moment] | None = None,
    ) -> None:
        """Makes the tables if they are not there. raises Unreachable, TooNew, ConfigError"""
        self._machine = machine
        self._clock = clock
        self._link = Link(given, schema, is_writer=True)
        self._words = Words()
        self._forgotten = Forgotten(self._link)
        workstreams = WorkstreamReading(self._link, machine.id)
        workstreams._is_inside = True
        self._forgetter = Forgetter(self._link, self._forgotten, Finder(self._link, self._words, workstreams))
        self._is_settled = False
        self._may_forget = True

    def close(self) -> None:
        self._link.close()

    def settle(self) -> None:
        """Make sure of the tables and of this machine's row, once."""
        if self._is_settled:
            return
        self._link.settle()
        with self._link.saying():
            self._link.run(
                f"insert into machines(id, host, seen_ms) values(%s, %s, {_NOW})"
                " on conflict(id) do update set host = excluded.host",
                self._machine.id,
                self._machine.host,
            )
        self._is_settled = True

    # ----------------------------------------------------------------------------- transactions

    def _write(self, column: str, token: str, do: Callable[[Moment], T]) -> T:
        """What `do` gives, in one transaction, exactly once, whatever becomes of the connection.

        raises  Unreachable when nobody knows whether it came through; then `came_through(token)` will
        """
        self.settle()
        done: list[T] = []
        is_sent = False

        def sent() -> None:
            nonlocal is_sent
            is_sent = True

        def once() -> T:
            nonlocal is_sent
            is_sent = False
            done.clear()
            with self._link.transaction(on_commit=sent):
                forgotten = self._link.value("select forgotten from ledger where one = 1 for update")
                now_ms = self._link.value(
                    f"update machines set {column} = %s, seen_ms = {_NOW} where id = %s returning seen_ms",
                    token,
                    self._machine.id,
                )
                self._forgotten.load(forgotten)
                done.append(do(self._moment(now_ms)))
            return done[0]

        with self._link.saying():
            try:
                return self._link.retried(once)
            except Exception as error:
                self._forgotten.reset()
                if not self._link.is_lost(error):
                    raise
                # the answer is lost: whether it came through stands in this machine's row
                self._link.close()
                if is_sent and self._link.value(*self._came_through(column), self._machine.id) == token:
                    return done[0]
                return self._link.retried(once)

    def _moment(self, now_ms: int) -> Moment:
        return self._clock() if self._clock is not None else Moment(boot=BOOT, ms=now_ms, wall_ms=now_ms)

    def _came_through(self, column: str) -> tuple[str]:
        return (f"select {column} from machines where id = %s",)

    def has_taken(self, token: str) -> bool:
        """Whether the batches of that token were the last that came through."""
        self.settle()
        with self._link.saying():
            found: str = self._link.value(*self._came_through("batch_token"), self._machine.id)
        return found == token

    # -------------------------------------------------------------------------------- appending

    def append(self, batch: Batch) -> Appended:
        return self.append_all((batch,))[0]

    def append_all(
        self, batches: Iterable[Batch], is_awaited: Callable[[], bool] = never, *, token: str = ""
    ) -> list[Appended]:
        """All go in, whoever waits. token: names this group; the same group again under it is put in once"""
        clean = [cleaned(batch) for batch in batches]
        return self._write("batch_token", token or secrets.token_hex(16), lambda _now: self._put(clean))

    def _put(self, batches: Sequence[Batch]) -> list[Appended]:
        known = Known(self._link, self._machine.id)
        planner = Planner(known, self._forgotten)
        view = View(self._link)
        done = []
        for batch in batches:
            known.prepare(batch)
            self._forgotten.look_up(entry.id for entry in batch.entries)
            plan = planner.plan(batch)
            putting.put(self._link, self._words, self._machine.id, batch, plan)
            view.take(batch, plan)
            known.remember(batch, plan)
            done.append(plan.appended)
        return done

    # ------------------------------------------------------------------------------ workstreams

    def work(self, do: Callable[[Work], T]) -> T:
        return self._write(
            "work_token",
            secrets.token_hex(16),
            lambda moment: do(Working(self._link, self._machine.id, moment)),
        )

    # ------------------------------------------------------------------------------ the sources

    def cursor(self, source: bytes) -> bytes:
        self.settle()
        with self._link.saying():
            return Reading(self._link).cursor(self._machine.id, source)

    def drop_source(self, source: bytes) -> None:
        self.settle()
        with self._link.saying():
            self._link.run(
                "delete from cursors where machine = %s and source_key = %s", self._machine.id, key_of(source)
            )

    # ------------------------------------------------------------------------------- forgetting

    def plan_forget(self, selection: Selection) -> Forgetting:
        self.settle()
        with self._link.snapshot():
            return self._forgetter.plan(selection)

    def begin_forget(self, selection: Selection) -> Forgetting:
        while self.forget_step():  # one forgetting at a time
            pass
        self._may_forget = True
        return self._write("work_token", secrets.token_hex(16), lambda _now: self._forgetter.begin(selection))

    def forget_step(self) -> bool:
        self.settle()
        with self._link.saying():
            if not self._forgetter.is_pending():
                return False
        did = self._write("work_token", secrets.token_hex(16), lambda _now: self._forgetter.step())
        self._forgotten.reset()
        with self._link.saying():
            is_pending = self._forgetter.is_pending()
            if not is_pending:
                self._forgetter.clean()
        return did and is_pending

    # ----------------------------------------------------------------------------- housekeeping

    def tidy(self) -> bool:
        """Goes on once with a forgetting that somebody began and did not end."""
        if not self._may_forget:
            return False
        self._may_forget = self.forget_step()
        return self._may_forget

    def repair(self) -> int:
        """Make the counts and the index agree with the rows again; how many problems less there are."""
        self.settle()
        with self._link.snapshot():
            before = checking.check(self._link, self._words).problem_count
        self._write("work_token", secrets.token_hex(16), lambda _now: self._repair())
        with self._link.snapshot():
            return before - checking.check(self._link, self._words).problem_count

    def _repair(self) -> None:
        checking.repair(self._link, self._words)

    def wants_checkpoint(self, *, is_quiet: bool = False) -> bool:
        return False

    def checkpoint(self) -> None:
        """The server's own business."""


class PostgresReader:
    """A look at the ledger. Belongs to one thread at a time; `interrupt` may come from any."""

    def __init__(self, given: dict[str, Any], schema: str, machine: Machine) -> None:
        self._machine = machine
        self._link = Link(given, schema)
        self._words = Words()
        self._reading = Reading(self._link)
        self._inside = WorkstreamReading(self._link, machine.id)
        self._inside._is_inside = True
        self._finder = Finder(self._link, self._words, self._inside)
        self.workstreams = WorkstreamReading(self._link, machine.id)
        self._history = HistoryReading(self._link, machine.id, self._inside)

    def close(self) -> None:
        self._link.close()

    def interrupt(self) -> None:
        self._link.call_off()

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        self._link.begin_question()
        with self._link.snapshot():
            yield

    def cursors(self, after: bytes = b"", limit: int = -1) -> dict[bytes, bytes]:
        with self._asked():
            return self._reading.cursors(self._machine.id, after, limit)

    def cursor(self, source: bytes) -> bytes:
        with self._asked():
            return self._reading.cursor(self._machine.id, source)

    def sessions(self, where: Filter, limit: int = 0, offset: int = 0) -> list[SessionRow]:
        with self._asked():
            return self._reading.sessions(where, limit, offset)

    def find(self, session: str, harness: str = "") -> list[SessionRow]:
        return self.sessions(Filter(session=session, harness=harness))

    def losses(self, harness: str, session: str) -> list[LossRow]:
        with self._asked():
            return self._reading.losses(harness, session)

    def search(
        self, query: str, where: Filter, limit: int = 20, marks: tuple[str, str] = ("", "")
    ) -> list[Hit]:
        with self._asked():
            return self._finder.search(query, where, limit, marks)

    def export(
        self, harness: str, session: str, *, side: bool = False, after: int = 0
    ) -> Iterator[StoredEvent]:
        self._link.begin_question()
        with self._link.saying():
            yield from self._reading.export(harness, session, side=side, after=after)

    def history(self, since: str = "", bounds: Bounds = USUAL) -> History:
        with self._asked():
            return self._history.history(since, bounds)

    def has_forgotten(self, event_id: str) -> bool:
        with self._asked():
            forgotten = Forgotten(self._link)
            forgotten.load(0)
            return forgotten.has(event_id)

    def check(self) -> Report:
        with self._asked():
            return checking.check(self._link, self._words)

    def stats(self) -> Stats:
        with self._asked():
            return self._reading.stats(self._machine.id)


class PostgresEngine:
    """connection: libpq's words; a password among them is refused."""

    def __init__(
        self,
        connection: str,
        schema: str,
        machine: Machine,
        *,
        clock: Callable[[], Moment] | None = None,
    ) -> None:
        self._given = parameters(connection)
        self._schema = schema
        self._machine = machine
        self._clock = clock

    def writer(self) -> PostgresWriter:
        writer = PostgresWriter(self._given, self._schema, self._machine, clock=self._clock)
        writer.settle()
        return writer

    def lazy_writer(self) -> PostgresWriter:
        """One that goes to the server when it has to."""
        return PostgresWriter(self._given, self._schema, self._machine, clock=self._clock)

    def reader(self) -> PostgresReader:
        return PostgresReader(self._given, self._schema, self._machine)

    def cursors(self, after: bytes, limit: int) -> Mapping[bytes, bytes]:
        reader = self.reader()
        try:
            return reader.cursors(after, limit)
        finally:
            reader.close()
