"""The life of a run on the daemon's side, whoever speaks for the launcher.

    prepared --plan--> planned --started--> running --exited--> exited --> finished
        |                 |                    |
        +-----cancel------+                    +-- launcher and agent gone: closed by the daemon

A conversation with a launcher, a hook and the watch over processes all end up in these steps; each may be
said again after a lost answer, and any of them may find the run over (`RunGone`). What is true is in the
ledger's store: a daemon that was started anew goes on with the runs it finds there.

While a run is active its lease is renewed as long as the launcher or the agent is seen. When both are known
to be gone, the daemon imports what they left and closes the run itself, at once.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import structlog
import trio
from msgspec.structs import replace

from memd import processes
from memd.errors import MemdError
from memd.harness.registry import adapters
from memd.ledger.messages import Ended
from memd.ledger.search import clean
from memd.ledger.store.interface import Appended, Batch, Filter, Reader, SessionRow, Unreachable
from memd.ledger.store.workstreams import Process, Run, RunGone, Work
from memd.workstream import closing, delivery, lease, linking, opening, report
from memd.workstream.adoption import is_usable
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.closing import Closed
from memd.workstream.delivery import Claimed, Offer, Start
from memd.workstream.ids import new_id
from memd.workstream.lease import BEAT_S, Seen
from memd.workstream.opening import Ask, Prepared
from memd.workstream.room import Room

T = TypeVar("T")

WATCH_S = 1.0  # between two looks at the processes of active runs
CATCH_UP_S = 2.0  # for what the linked stores hold already, before a run is prepared
TAIL_S = 20.0  # for what a run left, before it is closed
DISCOVERY_SLACK_S = 2.0
SLACK_MS = 60_000  # between this clock and that of the file system a store lies on
RECENT_MS = 24 * 3600 * 1000  # what one waits for before a run while a long back-fill goes on
KEPT_OVER = 1000  # runs of which is remembered that they are over
UNREACHABLE_S = 5.0  # between two tries to look after a run while the ledger's server is away

log = structlog.get_logger()


class Records(Protocol):
    """The ledger as runs use it. `memd.service.ledger.Ledger` is one."""

    async def work(self, do: Callable[[Work], T]) -> T: ...

    async def append(self, batch: Batch) -> Appended: ...

    async def ask(self, question: Callable[[Reader], T]) -> T: ...

    async def import_now(self, *, wait: bool, ended: Ended | None = None, since_ms: int = 0) -> None: ...

    async def scrub(self, text: str) -> str: ...

    async def imports(self, harness: str, cwd: bytes) -> bool: ...


def see(process: Process) -> Seen:
    """Whether a holder's process lives, as the system says; of another machine nothing is known."""
    if process.machine:
        return "unknown"
    return processes.presence(process.pid, process.start)


class Runs:
    """All runs of this daemon.

    checkpoint  the state of a run's checkout
    wall_ms     the clock for people
    on_over     told of each run that is over, by its id
    ground      where the sessions that a run goes on in were begun; None: where it was started
    """

    def __init__(
        self,
        records: Records,
        *,
        checkpoint: Callable[[Run], Awaitable[Checkpoint]],
        wall_ms: Callable[[], int],
        see: Callable[[Process], Seen] = see,
        noise: Callable[[int], bytes] = os.urandom,
        ground: Callable[[Run], bytes] | None = None,
    ) -> None:
        self._records = records
        self._checkpoint = checkpoint
        self._wall_ms = wall_ms
        self._see = see
        self._noise = noise
        self._ground = ground
        self._active: dict[str, Run] = {}
        self._beaten: dict[str, float] = {}
        self._again_at: dict[str, float] = {}
        self._left: dict[str, tuple[int | None, tuple[str, ...]]] = {}  # what launchers said meanwhile
        self._closing: dict[str, trio.Event] = {}
        self._over: dict[str, None] = {}  # the latest of them, by id
        self._has_active = trio.Event()
        self.on_over: Callable[[str], None] = lambda _run: None

    # ------------------------------------------------------------------------------- before the child

    async def catch_up(self) -> bool:
        """Import what stores hold; whether that could be done within `CATCH_UP_S`."""
        return await self._import(CATCH_UP_S, self._wall_ms() - RECENT_MS)

    async def prepare(self, ask: Ask, *, is_caught_up: bool = False) -> Prepared:
        """Reserve a workstream; raises what `opening.prepare` raises, what is certain of it at once.

        What stores hold is imported first, as far as that takes no longer than `CATCH_UP_S`, and runs whose
        holders are gone are closed.

        is_caught_up  that was done just now
        """
        for withdrawn in await self._records.work(lambda work: opening.look_ahead(work, ask, self._see)):
            self._forget(withdrawn)
        is_caught_up = is_caught_up or await self.catch_up()
        for other in await self._records.ask(lambda reader: reader.workstreams.active_runs()):
            if lease.evidence(other, self._see) == "gone":
                await self._close_gone(other, is_imported=is_caught_up)
        workstream, run = (new_id(self._wall_ms(), self._noise(10)) for _ in range(2))
        made = await self._records.work(lambda work: opening.prepare(work, ask, workstream, run, self._see))
        for withdrawn in made.withdrawn:
            self._forget(withdrawn)
        if made.superseded is not None:
            self._forget(made.superseded.id)
            log.info("run.superseded", harness=made.superseded.harness)
        self._note(made.run)
        log.info("run.prepared", harness=made.run.harness)
        return made

    async def plan(self, run: str, *, expected: str = "", flavor: str = "", is_passing: bool = False) -> Run:
        """Note what the child will be; raises RunGone, Refused, UnknownSession."""
        if expected:
            await self._check(expected)
        return self._note(
            await self._records.work(
                lambda work: opening.plan(work, run, expected=expected, flavor=flavor, is_passing=is_passing)
            )
        )

    async def started(self, run: str, agent: Process | None) -> Run:
        """The child is there; raises RunGone."""
        return self._note(await self._records.work(lambda work: opening.start(work, run, agent)))

    async def cancel(self, run: str) -> None:
        """Give the workstream up, whatever became of the run."""
        await self._records.work(lambda work: opening.cancel(work, run))
        self._forget(run)

    async def beat(self, run: str) -> Run:
        """Renew the lease; raises RunGone."""
        return self._note(await self._records.work(lambda work: opening.beat(work, run)))

    async def take_up(self, run: str, launcher: Process) -> Run:
        """The run again, for the launcher that lost its connection; raises RunGone, Refused."""
        return self._note(await self._records.work(lambda work: opening.take_up(work, run, launcher)))

    def active(self) -> list[Run]:
        """The runs that are watched, oldest first, as far as this daemon has heard of them."""
        return sorted(self._active.values(), key=lambda run: run.began_ms)

    # ------------------------------------------------------------------------------- while it is there

    async def link(
        self, run: str, harness: str, session: str, *, pid: int = 0, is_prompt: bool = False
    ) -> Run | None:
        """A hook says which session the run is on; None when it is not the run's own to say.

        pid     the hook's process, or the one that called it; 0: not known
        raises  UnknownSession
        """
        await self._check(session)
        is_own = await self._is_own(run, pid)
        linked = await self._records.work(
            lambda work: linking.link(work, run, harness, session, is_own=is_own, is_prompt=is_prompt)
        )
        return None if linked is None else self._note(linked)

    async def go_on_in(self, run: str, harness: str, session: str, *, pid: int) -> Run | None:
        """The run's own child began a new conversation; None when it is not the run's own to say."""
        await self._check(session)
        if not await self._is_own(run, pid):
            return None
        linked = await self._records.work(lambda work: linking.go_on_in(work, run, harness, session))
        return None if linked is None else self._note(linked)

    async def _is_own(self, run: str, pid: int) -> bool | None:
        known = self._active.get(run) or await self._records.ask(lambda reader: reader.workstreams.run(run))
        if not pid or known is None or known.agent is None:
            return None
        return processes.is_below(pid, known.agent.pid)

    async def _check(self, session: str) -> None:
        scrubbed = session if linking.is_plain(session) else await self._records.scrub(session)
        linking.check_id(session, lambda _text: scrubbed)

    async def offer(self, start: Start, room: Room) -> Offer:
        """What a starting session would be told; consumes nothing and may be asked again."""
        return self.compose(await self._records.ask(partial(gather, start)), room)

    def compose(self, material: delivery.Material, room: Room) -> Offer:
        """What a session would be told of what was gathered."""
        return delivery.compose(material, room, self._wall_ms())

    async def claim(self, offer: Offer) -> Claimed:
        """Consume what was offered; only what comes back may be shown."""
        claimed = await self._records.work(lambda work: delivery.claim(work, offer))
        if claimed.packet:
            log.info("packet.told", harness=offer.start.harness)
        return claimed

    # ------------------------------------------------------------------------------------------ the end

    async def exited(self, run: str, exit_code: int | None, losses: Sequence[str] = ()) -> Closed:
        """The child is gone, or never came to be: import what it left, then finish.

        losses  what the launcher could not do, in sentences
        raises  RunGone; Unreachable, and then it is finished with this once the ledger's server is back. A
                failed import is a loss, not a failure
        """
        try:
            return await self._once(run, partial(self._finish, run, exit_code, losses, TAIL_S))
        except Unreachable:
            self._left[run] = (exit_code, tuple(losses))
            raise

    async def _close_gone(self, run: Run, *, is_imported: bool) -> None:
        """End a run whose launcher and agent are gone."""
        log.info("run.abandoned", harness=run.harness, phase=run.phase)
        try:
            if run.phase in ("prepared", "planned"):
                await self.cancel(run.id)
                return
            unsaid = () if run.phase == "exited" else (report.ABANDONED,)
            exit_code, losses = self._left.get(run.id, (run.exit_code, unsaid))
            wait_s = 0.0 if is_imported else TAIL_S
            await self._once(run.id, partial(self._finish, run.id, exit_code, losses, wait_s))
        except RunGone:
            self._forget(run.id)

    async def _once(self, run: str, finish: Callable[[], Awaitable[Closed]]) -> Closed:
        """One at a time for a run: whoever comes second finds it finished, or tries again what failed."""
        while run in self._closing:
            await self._closing[run].wait()
        self._closing[run] = done = trio.Event()
        try:
            closed = await finish()
            self._forget(run)
            return closed
        finally:
            del self._closing[run]
            done.set()

    async def _finish(self, id: str, exit_code: int | None, losses: Sequence[str], wait_s: float) -> Closed:
        found = await self._records.ask(lambda reader: reader.workstreams.run(id))
        if found is not None and found.state == "finished":
            return await self._records.work(lambda work: closing.close(work, id, is_imported=False))
        has_child = found is not None and found.phase not in ("prepared", "planned")
        run = await self._records.work(lambda work: closing.leave(work, id, exit_code))
        told = list(losses)
        is_imported = await self._records.imports(run.harness, run.cwd)
        if has_child and not run.is_passing:
            if wait_s and not await self._import(wait_s, run.began_ms - SLACK_MS):
                told.append(report.IMPORT_UNFINISHED)
                is_imported = False
            run = await self._settle_session(run)
            if not run.session and is_imported:
                told.append(report.SESSION_UNKNOWN)
            if run.session and not await self._read_to_its_end(run):
                told.append(report.IMPORT_UNFINISHED)
                is_imported = False
        checkpoint = await self._checkpoint(run)
        await self._report(run, checkpoint, told)
        closed = await self._records.work(lambda work: closing.close(work, id, is_imported=is_imported))
        log.info("run.finished", harness=run.harness, events=closed.events)
        return replace(closed, was_untold=closed.was_untold and has_child, losses=tuple(told))

    async def _read_to_its_end(self, run: Run) -> bool:
        """Take in what the harness never completed, since nobody will; whether all of it came in."""
        queries = adapters()[run.harness].queries if run.harness in adapters() else ()
        if not any(query.is_at_rest for query in queries):
            return True
        since_ms = run.began_ms - int(DISCOVERY_SLACK_S * 1000)
        ended = Ended(harness=run.harness, session=run.session, since_ms=since_ms)
        return await self._import(TAIL_S, run.began_ms - SLACK_MS, ended)

    async def _settle_session(self, run: Run) -> Run:
        """Set aside what belongs to another checkout; find what nobody named."""
        ground = run.cwd
        if self._ground is not None:
            ground = await trio.to_thread.run_sync(self._ground, run)
        cwd = clean(os.fsdecode(ground))
        if run.session:
            rows = await self._records.ask(lambda reader: reader.find(run.session, run.harness))
            is_sure = run.is_confirmed or run.session == run.expected
            if is_sure or all(row.cwd in ("", cwd) for row in rows):
                return run
            run = await self._records.work(lambda work: closing.set_aside(work, run.id))
        session = await self._records.ask(partial(_discover, run, cwd))
        if not session:
            return run
        return await self._records.work(lambda work: closing.find(work, run.id, session))

    async def _report(self, run: Run, checkpoint: Checkpoint, losses: Sequence[str]) -> None:
        """What memd itself says at the end of a run."""
        written = [await self._records.scrub(text) for text in report.texts(checkpoint, losses)]
        await self._records.append(report.batch(run, written, len(losses), self._wall_ms()))

    # ---------------------------------------------------------------------------------------- watching

    async def keep(self) -> None:
        """Renew the leases of runs whose holders live, close those whose holders are gone; for ever."""
        await self._take_stock()
        while True:
            await self._has_active.wait()
            for run in list(self._active.values()):
                if trio.current_time() < self._again_at.get(run.id, 0.0):
                    continue
                try:
                    await self._look_after(run)
                    self._again_at.pop(run.id, None)
                except Unreachable as reason:  # perhaps for days: nothing is lost by asking less often
                    if run.id not in self._again_at:
                        log.warning("run.unattended", reason=str(reason), harness=run.harness)
                    self._again_at[run.id] = trio.current_time() + UNREACHABLE_S
                except MemdError as reason:
                    log.warning("run.unattended", reason=str(reason), harness=run.harness)
            await trio.sleep(WATCH_S)

    async def _take_stock(self) -> None:
        """The runs that an earlier daemon left active; their leases are renewed with the first look."""
        while True:
            try:
                found = await self._records.ask(lambda reader: reader.workstreams.active_runs())
            except (MemdError, trio.TooSlowError):
                await trio.sleep(WATCH_S)
                continue
            for run in found:
                if run.id not in self._active and not run.launcher.machine:
                    self._note(run)
                    self._beaten[run.id] = -BEAT_S
            return

    async def _look_after(self, run: Run) -> None:
        if run.id in self._closing:
            return
        seen = lease.evidence(run, self._see)
        if seen == "gone":
            await self._close_gone(run, is_imported=False)
        elif seen == "alive" and trio.current_time() - self._beaten[run.id] >= BEAT_S:
            try:
                await self.beat(run.id)
            except RunGone:
                self._forget(run.id)
        elif seen == "unknown" and self._see(run.launcher) == "gone":
            await self._drop_lapsed(run)

    async def _drop_lapsed(self, run: Run) -> None:
        """The launcher died between plan and start: whether a child is there shows within one lease."""

        def drop(work: Work) -> bool:
            now = work.run(run.id)
            if now is None or now.state != "active":
                return True
            if lease.standing(now, work.moment) == "held":
                return False
            opening.cancel(work, run.id)
            return True

        if await self._records.work(drop):
            self._forget(run.id)

    def _note(self, run: Run) -> Run:
        """Watch it as it is now; what was asked before another one ended it comes too late."""
        if run.id in self._over:
            return run
        self._active[run.id] = run
        self._beaten[run.id] = trio.current_time()
        self._has_active.set()
        return run

    def _forget(self, run: str) -> None:
        self._active.pop(run, None)
        self._beaten.pop(run, None)
        self._again_at.pop(run, None)
        self._left.pop(run, None)
        self._over[run] = None
        while len(self._over) > KEPT_OVER:
            del self._over[next(iter(self._over))]
        self.on_over(run)
        if not self._active:
            self._has_active = trio.Event()

    async def _import(self, wait_s: float, since_ms: int, ended: Ended | None = None) -> bool:
        """Whether what is visible now came in within that time; with much to be read, what is newer alone."""
        with trio.move_on_after(wait_s):
            try:
                await self._records.import_now(wait=True, ended=ended, since_ms=since_ms)
            except MemdError as reason:
                log.warning("run.import_failed", reason=str(reason))
                return False
            return True
        return False


def _discover(run: Run, cwd: str, reader: Reader) -> str:
    """The session that the run was most likely on; none that another workstream has. Empty: not found."""
    rows = reader.sessions(Filter(harness=run.harness, cwd=cwd))
    since_s = run.began_ms / 1000 - DISCOVERY_SLACK_S
    found = [
        session
        for session in report.discovered(rows, cwd, since_s)
        if is_usable(session)
        and not set(reader.workstreams.workstreams_of(run.harness, session)) - {run.workstream}
    ]
    adapter = adapters().get(run.harness)
    if adapter is not None and adapter.hooks is None:  # nothing ever says which: only one will do
        linked = [one for one in found if reader.workstreams.workstreams_of(run.harness, one)]
        found = report.only(rows, found, since_s, linked)
    return next(iter(found), "")


def gather(start: Start, reader: Reader) -> delivery.Material:
    """What there is to tell, and when the writer of the open handoff was last active."""
    rows = reader.workstreams.handoffs(start.workspace, start.project, 1)
    activity_ms = 0
    if rows and rows[0].from_session:
        sessions: list[SessionRow] = reader.find(rows[0].from_session, rows[0].from_harness)
        activity_ms = max((report.instant_ms(row.last_activity) for row in sessions), default=0)
    return delivery.gather(reader.workstreams, start, activity_ms)
