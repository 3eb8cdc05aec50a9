"""A launcher's conversation, step by step: from a prepare to the run's end.

    Prepare   the order is read, the workstream reserved, and what the child is to go on in is settled: the
              linked session as far as its harness still has it, one that may be taken over, or a new one
    Choose    what a person says to that
    Plan      the command line; the session it leads to is noted, and what the harness's hooks cannot tell is
              put before the child
    Started   the child is there: the session is linked, the workstream is the selected one
    Exited    what it wrote is imported, and the run closed

What lies between a prepare and the child's start is kept here and nowhere else: a launcher that meets a new
daemon in that time prepares again. Whatever fails in that time gives the workstream free.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import trio
from msgspec.structs import replace

from memctl.paths import shown
from memd import processes
from memd import protocol_runs as asked
from memd.errors import MemdError, Refused, TryAgain, UsageError
from memd.frame import harmless
from memd.harness.registry import adapters
from memd.ledger.search import clean
from memd.ledger.store.workstreams import Process
from memd.service import orders, work_elsewhere
from memd.service.beside import Beside
from memd.service.candidates import Candidates
from memd.service.clients import Clients
from memd.service.doorways import Doorways
from memd.service.environments import Environments
from memd.service.healer import Healer
from memd.service.orders import Order
from memd.service.places import IGNORE_MARKER, Located, locate
from memd.service.plans import Carry, Going, Plans
from memd.service.preflight import Preflight, Verdict, login_of
from memd.service.runs import Records, Runs
from memd.service.telling import Topics
from memd.workstream import adoption, launch, report
from memd.workstream.launch import Client
from memd.workstream.lease import Busy
from memd.workstream.opening import Ask, Prepared

MAX_TITLE_CHARACTERS = 80
MAX_AWAITED = 256


class Launches:
    """All launchers' conversations. One launcher is known by the pid that the kernel gives for its socket.

    home     of clients that do not say theirs
    state    a folder of memd's own
    address  where this daemon listens
    clients  told what the end of a run needs of its client
    wall_s   the clock for people
    """

    def __init__(
        self,
        *,
        runs: Runs,
        ledger: Records,
        healer: Healer,
        environments: Environments,
        topics: Topics,
        home: bytes,
        state: bytes,
        address: bytes,
        wall_s: Callable[[], float],
        clients: Clients,
        carry: Carry | None = None,
    ) -> None:
        self._runs = runs
        self._records = ledger
        self._environments = environments
        self._home = home
        self._wall_s = wall_s
        self._clients = clients
        self._carry = carry
        self._preflight = Preflight(state + b"/lookup")
        self._candidates = Candidates(ledger, self._preflight)
        self._doorways = Doorways(runs, topics, state + b"/runs")
        self._plans = Plans(
            runs=runs,
            healer=healer,
            preflight=self._preflight,
            doorways=self._doorways,
            programs=state + b"/programs.json",
            address=address,
            carry=carry,
        )
        self._open: dict[str, Going] = {}
        self._beside = Beside()
        self._awaited: dict[Process, str] = {}  # which workstream a launcher waits for, by its name
        self._has_swept = False
        runs.on_over = self._over

    async def step(self, step: asked.AnyStep, pid: int) -> asked.AnyAnswer:
        """pid: the launcher's. raises what the step raises"""
        if not isinstance(step, asked.Greet | asked.Prepare) and step.run in self._beside:
            return self._beside.step(step)
        match step:
            case asked.Greet():
                return asked.Greeted(variables=(*launch.variables(), IGNORE_MARKER))
            case asked.Prepare():
                return await self._prepare(step, pid)
            case asked.Choose():
                return await self._choose(step)
            case asked.Plan(run=run):
                return await self._plan(run)
            case asked.Started(run=run, pid=child):
                return await self._started(run, child)
            case asked.Exited():
                return await self._exited(step)
            case asked.Cancel(run=run):
                await self._runs.cancel(run)
                return asked.Noted()
            case asked.TakeUp(run=run):
                await self._runs.take_up(run, _process(pid))
                return asked.Noted()

    # ------------------------------------------------------------------------------------ prepare

    async def _prepare(self, step: asked.Prepare, pid: int) -> asked.Ready:
        """As `_prepared`; a launcher that has to wait goes on waiting for the same workstream."""
        await self._sweep()
        launcher = _process(pid)
        awaited = self._awaited.pop(launcher, "") if step.is_retry else ""
        try:
            return await self._prepared(step, launcher, awaited)
        except Busy as taken:
            self._awaited[launcher] = taken.workstream
            if len(self._awaited) > MAX_AWAITED:
                del self._awaited[next(iter(self._awaited))]
            raise

    async def _prepared(self, step: asked.Prepare, launcher: Process, awaited: str) -> asked.Ready:
        client = orders.client_of(step, self._home)
        located, cwd = await trio.to_thread.run_sync(partial(_stand, step, client))
        wanted = replace(orders.wanted_of(step), awaited=awaited)
        ask = Ask(place=located.place, cwd=cwd, harness="", launcher=launcher, wanted=wanted)
        if step.workstream:
            await work_elsewhere.offer(
                self._records,
                located.place,
                step.workstream,
                cwd,
                {**step.variables, "PATH": step.path},
                yes=step.bind,
                now_ms=int(self._wall_s() * 1000),
            )
        order: Order | None = None
        newest: dict[str, str] = {}
        if step.word:
            order = await trio.to_thread.run_sync(orders.named, step, client)
            place = b"" if order.adapter.scattered is None else cwd
            self._environments.see({**order.environment().variables, "HOME": client.home}, place)
            try:
                made = await self._runs.prepare(replace(ask, harness=order.adapter.name, flavor=order.flavor))
            except Busy as taken:
                if not order.said.is_passing:
                    raise
                return self._beside.open(order, located, cwd, taken.workstream)
        else:
            orders.check_unnamed(step)
            self._environments.see({**orders.environment(client).variables, "HOME": client.home})
            is_caught_up = await self._runs.catch_up()
            ask, newest = await self._candidates.guess(ask, client, _text(cwd), is_caught_up=is_caught_up)
            made = await self._runs.prepare(ask, is_caught_up=True)
        try:
            if order is None:
                adapter = adapters()[made.run.harness]
                order = await trio.to_thread.run_sync(orders.unnamed, step, adapter, client)
            ready = await self._ready(step, order, made, located, newest)
        except Exception:
            await self._runs.cancel(made.run.id)
            raise
        first = [] if step.is_retry else [located.scope.notice()]
        return replace(ready, notices=tuple(line for line in (*first, *ready.notices) if line))

    async def _ready(
        self, step: asked.Prepare, order: Order, made: Prepared, located: Located, newest: dict[str, str]
    ) -> asked.Ready:
        """What the child goes on in, as far as that is for the daemon to say."""
        run, said, title = made.run, order.said, order.adapter.title
        going = Going(order=order, run=run, workspace=located.scope.workspace, project=located.scope.project)
        notices: list[str] = []
        question = ""
        candidates: list[adoption.Candidate] = []
        may_go_on = not (said.is_passing or said.has_selector or order.is_fresh)
        if may_go_on and made.current is not None:
            verdict = await self._linked(order, made)
            going.session, going.path = verdict.session, verdict.path
            going.is_usual = verdict.is_usual
            going.linked, going.other = made.current.session, verdict.other
            notices += verdict.notices
            question = self._about_carrying(step, going, notices)
        elif may_go_on and not step.word and made.may_adopt and not step.new:
            going.session = newest.get(run.harness, "")
            if going.session:
                notices.append(f"going on in session {adoption.shown_id(going.session)} of {title}")
        elif adoption.may_adopt(
            adoption.Launch(
                is_established=not made.may_adopt,
                has_link=made.current is not None,
                is_new=bool(step.new),
                is_fresh=order.is_fresh,
                is_passing=said.is_passing,
                has_selector=said.has_selector,
                is_batch=said.is_batch,
                is_terminal=step.is_terminal and bool(step.word),
            )
        ):
            try:
                candidates = await self._candidates.to_adopt(
                    order.adapter, order.environment(), _text(run.cwd)
                )
            except MemdError as reason:
                notices.append(f"sessions that were begun here cannot be listed ({reason}): a new one begins")
            going.choices = frozenset(one.session for one in candidates)
        self._open[run.id] = going
        return asked.Ready(
            run=run.id,
            workstream=made.workstream.name,
            workstream_id=made.workstream.id,
            workspace=going.workspace,
            project=going.project,
            harness=run.harness,
            choices=tuple(self._choice(one) for one in candidates),
            carry=question,
            notices=tuple(notices),
        )

    async def _linked(self, order: Order, made: Prepared) -> Verdict:
        """What becomes of the session that the workstream would go on in."""
        assert made.current is not None
        run = made.run
        if made.current.flavor and run.flavor and made.current.flavor != run.flavor:
            name = adoption.shown_id(made.current.session)
            return Verdict(
                notices=(f"session {name} belongs to {made.current.flavor}: {run.flavor} begins a new one",)
            )
        return await self._preflight.linked(
            order.adapter,
            made.current.session,
            order.environment(),
            self._environments.all(),
            _text(run.cwd),
        )

    def _about_carrying(self, step: asked.Prepare, going: Going, notices: list[str]) -> str:
        """What is to be asked about a session that lies in another login; what needs no asking is set."""
        if going.other is None:
            return ""
        session, login = adoption.shown_id(going.linked), shown(login_of(going.other))
        if self._carry is None:
            notices.append(f"session {session} lies in the login {login}: a new one begins here")
        elif step.carry:
            going.is_carried = True
        elif step.is_terminal and not going.order.said.is_batch:
            return f"The session of this workstream lies in the login {login}. Copy it here and go on in it?"
        else:
            notices.append(
                f"session {session} lies in the login {login}: a new one begins here; with --carry it is"
                " copied and goes on"
            )
        return ""

    def _choice(self, candidate: adoption.Candidate) -> asked.Choice:
        title = harmless(" ".join(candidate.title.split()))
        return asked.Choice(
            session=candidate.session,
            title=title if len(title) <= MAX_TITLE_CHARACTERS else title[: MAX_TITLE_CHARACTERS - 1] + "…",
            age=adoption.age(candidate.last_activity, self._wall_s()),
            events=candidate.events,
        )

    async def _choose(self, step: asked.Choose) -> asked.Ready | asked.Noted:
        await self._runs.beat(step.run)
        if step.is_decided:
            going = self._going(step.run)
            if step.session and step.session not in going.choices:
                raise UsageError(f"session {step.session!r} was not offered", remedy="Choose one that was.")
            if step.session:
                going.session, going.path = step.session, b""
            going.is_carried = step.carry and going.other is not None
        return asked.Noted()

    # --------------------------------------------------------------------------------------- plan

    async def _plan(self, run: str) -> asked.LaunchPlan:
        going = self._going(run)
        try:
            plan = await self._plans.make(going)
            await self._clients.note(run, going.order.client)
            return plan
        except Exception:
            self._open.pop(run, None)
            await self._runs.cancel(run)
            raise

    def _going(self, run: str) -> Going:
        going = self._open.get(run)
        if going is None:
            raise TryAgain(f"run {run} is not being prepared here", remedy="Prepare it again.")
        return going

    # ------------------------------------------------------------------------------ child and end

    async def _started(self, run: str, pid: int) -> asked.Noted:
        there = await self._runs.started(run, Process(pid, processes.start_of(pid)))
        self._open.pop(run, None)
        workstream = await self._records.ask(lambda reader: reader.workstreams.workstream(there.workstream))
        if workstream is not None:
            place = workstream.place
            await self._doorways.told(adapters()[there.harness], there, place.workspace, place.project)
        return asked.Noted()

    async def _exited(self, step: asked.Exited) -> asked.Closed:
        losses = []
        if step.code is None:
            reason = harmless(step.failure)
            losses = [f"{report.NOT_STARTED} {reason}".strip()]
        closed = await self._runs.exited(step.run, step.code, losses)
        title = adapters()[closed.run.harness].title
        notices = [f"{loss}" for loss in closed.losses if loss in _WARNINGS]
        if closed.was_untold:
            notices.append(
                f"{title} did not ask for what its session has not seen, so it is told the next time;"
                " `memctl doctor` looks at its hooks"
            )
        return asked.Closed(workstream=closed.name, events=closed.events, notices=tuple(notices))

    def _over(self, run: str) -> None:
        self._open.pop(run, None)
        self._clients.forget(run)
        self._doorways.clear(run)

    async def _sweep(self) -> None:
        """Once: what an earlier daemon left for runs that are over since."""
        if self._has_swept:
            return
        self._has_swept = True
        active = await self._records.ask(lambda reader: reader.workstreams.active_runs())
        self._clients.keep({run.id for run in active})
        await trio.to_thread.run_sync(self._doorways.sweep, {run.id for run in active})


_WARNINGS = frozenset({report.IMPORT_UNFINISHED, report.SESSION_UNKNOWN})


def _stand(step: asked.Prepare, client: Client) -> tuple[Located, bytes]:
    """The place of a launch, and its directory as the system sees it."""
    located = locate(
        step.cwd,
        step.variables,
        home=client.home,
        path=step.path,
        workspace=step.workspace,
        project=step.project,
    )
    return located, os.path.realpath(step.cwd)


def _process(pid: int) -> Process:
    """The launcher. raises Refused where its number cannot be told: a lease needs somebody who holds it"""
    if pid <= 0:
        raise Refused(
            "memd cannot see this process",
            remedy="Run memctl where memd runs: not in another container or PID namespace.",
        )
    return Process(pid, processes.start_of(pid))


def _text(cwd: bytes) -> str:
    """A directory as the ledger writes it."""
    return clean(os.fsdecode(cwd))
