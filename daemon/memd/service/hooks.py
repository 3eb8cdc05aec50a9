"""What the hooks of running agents tell, and how they are answered.

    start     the session is linked to its run, the memory of its agent is put right, and what there is to
              tell is told
    link      a session began; what there is to tell is asked for by another event
    prompt    the session is certain now; a run that could not be told anything at its start is told here
    activity  its transcript is looked at
    end       so too; a session that was never asked anything gives back the handoff it had taken

Where the text of a hook stands nowhere else, it goes into the ledger before the hook is answered.

An agent that the agent itself started has the run's id in its environment too: it links nothing and is told
nothing; one that was started inside a session without a run is given no handoff. Any other session without a
run, or with one that is over, gets handoffs and the memory block. Nobody waits long: what cannot be answered
in time is not claimed, and what must be done all the same is done later.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol, TypeVar

import structlog
import trio

from memd import processes
from memd.errors import BadRequest, DiskError, MemdError
from memd.harness import registry
from memd.harness.model import Environment
from memd.ledger.store.interface import Appended, Batch, Reader
from memd.ledger.store.workstreams import Run
from memd.service import hook_calls
from memd.service.environments import Environments
from memd.service.handoffs import Handoffs
from memd.service.healer import now_ms
from memd.service.hook_calls import Call, Session
from memd.service.hook_log import HookLog
from memd.service.hook_texts import HookTexts
from memd.service.hook_view import HooksState, Waiting
from memd.service.lineage import Lineage
from memd.service.runs import Runs
from memd.service.spool import Note, Spool
from memd.service.telling import Telling, Topics, always, start_of
from memd.workstream.delivery import may_have_packet
from memd.workstream.handoff import Receiver
from memd.workstream.linking import UnknownSession

T = TypeVar("T")

START_S = 1.5  # to answer a start; the hook waits for 2 s
SOON_S = 0.15  # to answer anything else; the hook waits for 250 ms
LINK_S = 0.3  # for the memory link of a login
LATER_S = 60.0  # for what is done after the answer
AFTER_S = 0.01  # from a hook to what is done after its answer: the agent waits for that
SPOOL_S = 10.0  # between two looks for notes
SAVE_S = 60.0
MAX_LATER = 1000
MAX_ASKED = 2000  # sessions and runs that had a prompt and are remembered for it
REACH = 64  # events of a workstream among which those of a session that ends are looked for
LARGE = 256 << 10  # a message that is read in a thread
FAILURES = (MemdError, OSError, trio.TooSlowError)

log = structlog.get_logger()


class Records(Protocol):
    """The ledger as hooks use it. `memd.service.ledger.Ledger` is one."""

    async def ask(self, question: Callable[[Reader], T]) -> T: ...

    async def consult(self, question: Callable[[Reader], T]) -> T: ...

    def look(self, paths: Iterable[bytes]) -> None: ...

    async def import_now(self, *, wait: bool) -> None: ...

    async def scrub(self, text: str) -> str: ...

    async def imports(self, harness: str, cwd: bytes) -> bool: ...

    async def append(self, batch: Batch) -> Appended: ...


class Healing(Protocol):
    """The care for memory links as hooks use it. `memd.service.healer.Healer` is one."""

    def see(self, config_dir: bytes) -> None: ...

    def is_in_order(self, cwd: bytes, config_home: bytes) -> bool: ...

    async def ensure(self, cwd: bytes, config_home: bytes) -> None: ...


class HookService:
    """Answers hook messages; `keep` does what is not answered.

    home   the person's
    state  a folder of memd's own
    """

    def __init__(
        self,
        *,
        runs: Runs,
        handoffs: Handoffs,
        ledger: Records,
        healer: Healing,
        topics: Topics,
        environments: Environments,
        home: bytes,
        state: bytes,
        wall_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._runs = runs
        self._handoffs = handoffs
        self._records = ledger
        self._healer = healer
        self._environments = environments
        self._home = home
        self._telling = Telling(runs=runs, records=ledger, topics=topics, home=home)
        self._texts = HookTexts(ledger)
        self._wall_ms = wall_ms
        self._begun: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._log = HookLog(state + b"/hooks.json", wall_ms)
        self._spool = Spool(state + b"/spool")
        self._asked: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._put, self._later = trio.open_memory_channel[tuple[float, Callable[[], Awaitable[None]]]](
            MAX_LATER
        )
        self._lineage = Lineage()
        self._trouble = ""

    # ------------------------------------------------------------------------------------ answering

    async def answer(self, body: bytes, is_there: Callable[[], bool] = always) -> str:
        """What the hook prints.

        is_there  whether the hook still waits for it: nothing is claimed for one that left
        raises    BadRequest for a harness or an event that memd does not listen to: the hook prints what its
                  command carries
        """
        if len(body) > LARGE:
            call = await trio.to_thread.run_sync(hook_calls.read, body)
        else:
            call = hook_calls.read(body)
        session = hook_calls.heard(call)
        self._log.note(session.adapter.name, session.event.name)
        text, is_done, now = "", False, self._wall_ms()
        with trio.move_on_after(START_S if session.event.role == "start" else SOON_S):
            try:
                await self._texts.take(session, now)
                text = await self._heed(session, is_there)
                is_done = True
            except FAILURES as reason:
                log.warning("hook.failed", harness=session.adapter.name, reason=str(reason))
        if not is_done:
            log.info("hook.late", harness=session.adapter.name, role=session.event.role)
            self._do_later(partial(self._link_late, session, now))
        return session.hooks.answer(session.event.name, text)

    async def _heed(self, session: Session, is_there: Callable[[], bool]) -> str:
        heard = session.heard
        if heard.transcript:
            self._do_later(partial(self._look, heard.transcript.encode("utf-8", "surrogatepass")))
        if heard.harness or heard.is_inner or not heard.session:
            return ""  # another harness's session, a sub-agent's, or nobody's
        match session.event.role:
            case "start":
                return await self._start(session, is_there)
            case "link":
                await self._stand(session)
            case "prompt":
                return await self._prompt(session, is_there)
            case "end":
                self._do_later(partial(self._end, session))
        return ""

    async def _start(self, session: Session, is_there: Callable[[], bool]) -> str:
        self._see(session)
        if session.event.is_each_turn:
            self._remember(session.key)
        is_told, run = await self._stand(session)
        if not is_told:
            return ""
        agent = processes.behind_shells(session.call.pid)
        self._lineage.note(agent, session.key)
        is_begun = session.event.is_each_turn and session.key in self._begun
        if is_begun and not (run is not None and may_have_packet(start_of(session, run))):
            return ""
        rendered = await self._telling.render(
            session,
            run,
            has_block=not is_begun,
            is_welcome=lambda: not self._lineage.is_inside(agent, session.key),
            beside=partial(self._is_linked, session),
        )
        if not rendered.is_right:
            await self._link_memory(session)
        told = await self._telling.claim(rendered, is_there)
        if session.event.is_each_turn and is_there():
            _note(self._begun, session.key)
        return told

    async def _prompt(self, session: Session, is_there: Callable[[], bool]) -> str:
        self._remember(session.key)
        _, run = await self._stand(session)
        self._lineage.note(processes.behind_shells(session.call.pid), session.key)
        if run is None:
            return ""
        self._remember(("", run.id))
        if not session.event.may_tell or not may_have_packet(start_of(session, run)):
            return ""
        rendered = await self._telling.render(session, run, has_block=False)
        return await self._telling.claim(rendered, is_there)

    async def _end(self, session: Session) -> None:
        self._lineage.end(session.key)
        run = await self._run_of(session.call)  # one that is over has seen to that itself
        if run is not None and (run.harness, run.session) != session.key:
            return  # an agent inside the run
        if await self._was_asked(session, run):
            return
        workspace, project = await self._telling.scope(session, run)
        receiver = Receiver(
            harness=session.adapter.name,
            cwd=session.cwd,
            session=session.heard.session,
            run=run.id if run is not None else "",
        )
        await self._handoffs.give_back(workspace, project, receiver)

    async def _was_asked(self, session: Session, run: Run | None) -> bool:
        """Whether somebody said anything in that session, or in its run since that began."""
        if session.key in self._asked:
            return True
        if run is not None and (run.is_confirmed or ("", run.id) in self._asked):
            return True
        harness, id = session.key
        if run is None:
            rows = await self._records.ask(lambda reader: reader.find(id, harness))
            return any(row.events for row in rows)
        newest = await self._records.ask(lambda reader: reader.workstreams.tail(run.workstream, limit=REACH))
        since = [event for event in newest if event.sequence > run.sync_through]
        return any((event.harness, event.session) == session.key for event in since)

    def _remember(self, key: tuple[str, str]) -> None:
        """A session, or a run under no harness, had a prompt."""
        _note(self._asked, key)

    # -------------------------------------------------------------------------------------- linking

    async def _stand(self, session: Session) -> tuple[bool, Run | None]:
        """Link the session to its run. Whether it may be told anything, and the run it is told about."""
        run = await self._run_of(session.call)
        if run is None:
            return True, None
        harness, id = session.key
        pid = session.call.pid
        try:
            heard = session.heard
            agent = processes.behind_shells(pid)
            is_next = heard.is_clear or (heard.is_new and self._lineage.is_next(agent, session.key))
            if is_next and run.session != id:
                linked = await self._runs.go_on_in(run.id, harness, id, pid=pid)
            else:
                is_prompt = session.event.role == "prompt" or session.event.is_each_turn
                linked = await self._runs.link(run.id, harness, id, pid=pid, is_prompt=is_prompt)
        except UnknownSession as reason:
            log.warning("hook.unlinked", harness=harness, reason=str(reason))
            return True, None
        return linked is not None, linked

    async def _run_of(self, call: Call) -> Run | None:
        """The active run that the hook belongs to, or that it was started inside of."""
        if not call.run:
            return None
        run = await self._records.ask(lambda reader: reader.workstreams.run(call.run))
        return run if run is not None and run.state == "active" else None

    def _see(self, session: Session) -> None:
        """A place that memd has not followed so far is followed from now on."""
        variables = session.heard.variables
        login = variables.get("CLAUDE_CONFIG_DIR")
        if login:
            self._healer.see(login)
        elif variables:
            stores = session.adapter.stores
            there = Environment(home=self._home, variables=variables)
            if stores(there) != stores(Environment(home=self._home)):
                self._environments.see(variables)

    def _is_linked(self, session: Session) -> bool:
        """Whether the memory link in that login needs no care, or it has none; looks at the disk."""
        login = _login_of(session)
        return not login or self._healer.is_in_order(session.cwd, login)

    async def _link_memory(self, session: Session) -> None:
        """The link in that login, before the agent reads its memory; whatever fails, the agent starts."""
        with trio.move_on_after(LINK_S):
            await self._healer.ensure(session.cwd, _login_of(session))

    # ---------------------------------------------------------------------------------------- later

    def _do_later(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            self._put.send_nowait((trio.current_time() + AFTER_S, work))
        except trio.WouldBlock:
            log.warning("hooks.too_many")

    async def _look(self, transcript: bytes) -> None:
        """Have a transcript read: as it was named, and where links lead."""
        real = await trio.to_thread.run_sync(os.path.realpath, transcript, abandon_on_cancel=True)
        self._records.look({transcript, real})

    async def _link_late(self, session: Session, at_ms: int) -> None:
        await self._texts.take(session, at_ms)
        heard = session.heard
        is_its_own = heard.session and not (heard.harness or heard.is_inner)
        if is_its_own and session.event.role in ("start", "link", "prompt"):
            await self._stand(session)

    async def keep(self) -> None:
        """Do what was put off, take in what hooks left while nobody answered, write the log; for ever."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._work_off)
                nursery.start_soon(self._drain)
                while True:
                    await trio.sleep(SAVE_S)
                    await trio.to_thread.run_sync(self._log.save)
        finally:
            self._log.save()

    async def _work_off(self) -> None:
        async for due, work in self._later:
            await trio.sleep_until(due)
            with trio.move_on_after(LATER_S):
                try:
                    await work()
                except FAILURES as reason:
                    log.info("hooks.undone", reason=str(reason))
                except Exception as bug:  # one hook's: the others go on
                    log.error("hooks.failed", exc_info=bug)

    async def _drain(self) -> None:
        while True:
            try:
                await self._take_in()
                self._trouble = ""
            except FAILURES as reason:
                if str(reason) != self._trouble:
                    log.warning("spool.left", reason=str(reason))
                self._trouble = str(reason)
            await trio.sleep(SPOOL_S)

    async def _take_in(self) -> None:
        """Notes lead to one look at everything; the ledger must be open for that, else they stay."""
        waiting = await trio.to_thread.run_sync(self._spool.waiting)
        if not waiting.count:
            return
        await self._records.ask(lambda _reader: None)
        taken = 0
        later: list[Note] = []
        try:
            while notes := await trio.to_thread.run_sync(self._spool.take, _is_wanted):
                later += notes
                for note in notes:
                    if await self._take(note):
                        later.remove(note)
                taken += len(notes)
        finally:
            for note in later:
                self._spool.give_back(note)
        if taken:
            await self._records.import_now(wait=False)
            log.info("spool.taken", notes=taken)

    async def _take(self, note: Note) -> bool:
        """Do as the note says; False: later again. One with a text goes only when that is kept."""
        payload = hook_calls.payload_of(note.payload)
        run = hook_calls.well_formed(note.run)
        call = Call(
            harness=note.harness, event=note.event, cwd=note.cwd, run=run, pid=note.pid, payload=payload
        )
        try:
            session = hook_calls.heard(call)
        except BadRequest:
            session = None
        if session is not None:
            self._log.note(session.adapter.name, session.event.name, note.at_ms)
            if payload and not await self._is_heeded(session, note.at_ms):
                return False
        await trio.to_thread.run_sync(self._spool.let_go, note)
        return True

    async def _is_heeded(self, session: Session, at_ms: int) -> bool:
        try:
            with trio.fail_after(LATER_S):
                await self._heed_late(session, at_ms)
        except FAILURES as reason:
            log.info("hooks.undone", reason=str(reason))
            return False
        except Exception as bug:  # one hook's: the others go on
            log.error("hooks.failed", exc_info=bug)
        return True

    async def _heed_late(self, session: Session, at_ms: int) -> None:
        """A hook whose text was kept: all but its answer."""
        await self._link_late(session, at_ms)
        if session.event.role in ("activity", "end"):
            await self._heed(session, lambda: False)

    # --------------------------------------------------------------------------------------- telling

    async def state(self) -> HooksState:
        """For status: each event of every harness that was ever heard of, and what waits."""
        fired = self._log.fired()
        shown = {
            name: {event.name: fired[name].get(event.name, 0) for event in adapter.hooks.events}
            for name, adapter in registry.adapters().items()
            if adapter.hooks is not None and name in fired
        }
        trouble, waiting = self._trouble, Waiting()
        try:
            waiting = await trio.to_thread.run_sync(self._spool.waiting, abandon_on_cancel=True)
        except DiskError as reason:
            trouble = str(reason)
        return HooksState(fired=shown, waiting=waiting, trouble=trouble)


def _note(known: OrderedDict[tuple[str, str], None], key: tuple[str, str]) -> None:
    """Keep a key in mind, and the last `MAX_ASKED` of them."""
    known[key] = None
    known.move_to_end(key)
    while len(known) > MAX_ASKED:
        known.popitem(last=False)


def _login_of(session: Session) -> bytes:
    """The login whose memory link the session reads its memory through; empty where there is none."""
    if not (session.hooks.owns_memory and session.cwd):
        return b""
    return session.heard.variables.get("CLAUDE_CONFIG_DIR", b"")


def _is_wanted(note: Note) -> bool:
    """All but a text of a harness that this memd does not know: a later one may."""
    return not note.payload or registry.canonical(note.harness) is not None
