"""memctl run: asks the daemon what to start, starts it on this terminal, and tells the daemon how it ended.

Before the child everything is refused rather than done by halves: no daemon, no child. Once it runs nothing
that happens to the daemon disturbs it. The connection stays open for the whole run; when it is lost the run
is taken up again as soon as a daemon answers, with a word to the person if that takes longer than a moment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import NamedTuple

from msgspec.structs import replace

from memctl import client
from memctl.child import Child, Ended, Terminal, endable, watching
from memctl.conversation import Broken, Conversation, say
from memctl.tether import ANSWER_S, Tether
from memd import protocol_runs as runs
from memd.errors import MemdError, TryAgain, Unavailable, UsageError

BUSY_S = 5.0  # for a workstream that somebody else has, unless one waits for it
RETRY_S = 0.25
PREPARES = 3  # with daemons that go away before there is a child
CLOSING_PAUSES_S = (0.25, 0.5, 0.75)
CLOSE_S = 20.0  # for all that is to be told at the end: nobody waits longer for a prompt

INTERRUPTED = "managed run interrupted before the agent started"
NO_START = 69
NO_SIGNAL_STATUS = 1


class Order(NamedTuple):
    """What a person typed. native: what stands after the agent's name, as it came"""

    word: str
    native: tuple[bytes, ...]
    workspace: str = ""
    project: str = ""
    workstream: str = ""
    new: str = ""
    executable: bytes = b""
    is_waiting: bool = False
    carry: bool = False
    is_yolo: bool = False
    is_fresh: bool = False


def launch(order: Order) -> int:
    """The exit status of what was started. raises MemdError before there is a child"""
    line = Conversation()
    with endable():
        try:
            ready, plan = _planned(line, order)
            with watching() as child:
                return _run(line, child, ready, plan)
        except (KeyboardInterrupt, Ended) as reason:
            line.close()  # nothing can be started any more; memd sees us go
            say(INTERRUPTED)
            number = reason.number if isinstance(reason, Ended) else signal.SIGINT
            return 128 + number
        finally:
            line.close()


# ------------------------------------------------------------------------------- before the child


def _planned(line: Conversation, order: Order) -> tuple[runs.Ready, runs.LaunchPlan]:
    """A reserved workstream and what to start; once more with the next daemon if one goes away meanwhile."""
    prepare = None
    for _ in range(PREPARES):
        try:
            line.open(start=True)
            if prepare is None:
                prepare = _prepare_of(order, line.say(runs.Greet(), runs.Greeted).variables)
            return _reserve(line, order, prepare)
        except Broken:
            if prepare is not None:
                prepare = replace(prepare, is_retry=True)
    raise Unavailable("memd went away while the launch was prepared", remedy="See `memctl logs`.")


def _reserve(line: Conversation, order: Order, prepare: runs.Prepare) -> tuple[runs.Ready, runs.LaunchPlan]:
    ready = _prepared(line, order, prepare)
    try:
        _tell(ready)
        _note(ready, prepare.cwd)
        _choose(line, ready)
        plan = line.say(runs.Plan(run=ready.run), runs.LaunchPlan)
    except (KeyboardInterrupt, Ended, MemdError):
        with contextlib.suppress(Broken, MemdError):
            line.say(runs.Cancel(run=ready.run), runs.Noted, timeout_s=2.0)
        raise
    _tell(plan)
    return ready, plan


def _prepare_of(order: Order, names: tuple[str, ...]) -> runs.Prepare:
    try:
        cwd = os.getcwdb()
    except OSError:
        raise UsageError("this directory is gone", remedy="Change to one that exists.") from None
    if sum(len(argument) for argument in order.native) > runs.MAX_ARGUMENTS_BYTES:
        raise UsageError(
            f"the arguments are longer than {runs.MAX_ARGUMENTS_BYTES >> 10} KiB",
            remedy="Give a long text to the agent in a file.",
        )
    environment = os.environb
    return runs.Prepare(
        cwd=cwd,
        word=order.word,
        native=order.native,
        executable=order.executable,
        workspace=order.workspace,
        project=order.project,
        workstream=order.workstream,
        new=order.new,
        is_yolo=order.is_yolo,
        is_fresh=order.is_fresh,
        carry=order.carry,
        variables={name: environment[key] for name in names if (key := os.fsencode(name)) in environment},
        path=environment.get(b"PATH", b""),
        is_terminal=_is_terminal(0) and _is_terminal(2),
    )


def _prepared(line: Conversation, order: Order, prepare: runs.Prepare) -> runs.Ready:
    """The workstream, waited for a moment, or without end if that was said, while somebody else has it."""
    until = time.monotonic() + BUSY_S
    is_told = prepare.is_retry
    while True:
        try:
            if is_told and not line.is_open:
                line.open(start=True)  # whoever waits long outlives a daemon
            return line.say(prepare, runs.Ready)
        except Broken:
            if not is_told:
                raise
        except client.Rejected as reason:
            if client.needs_yes(reason) and prepare.is_terminal and _agrees(str(reason)):
                prepare = replace(prepare, bind=True)
                continue
            if reason.code != "busy" or (not order.is_waiting and time.monotonic() >= until):
                raise
            if not is_told:
                how = "waiting for it to end" if order.is_waiting else "waiting briefly"
                say(f"another launcher owns this workstream; {how} ({reason})")
            is_told, prepare = True, replace(prepare, is_retry=True)
        time.sleep(RETRY_S)


def _agrees(question: str) -> bool:
    from memctl import chooser

    return chooser.agree(question)


def _note(ready: runs.Ready, cwd: bytes) -> None:
    """Write down that this checkout was worked in, for `memctl continue`."""
    from memctl import registry

    try:
        registry.note(ready.workspace, ready.project, os.path.realpath(cwd))
    except MemdError as reason:
        say(f"this checkout was not noted for `memctl continue`: {reason}")


def _choose(line: Conversation, ready: runs.Ready) -> None:
    """Ask what there is to be asked. The lease is renewed meanwhile, and again with the answer."""
    if not ready.choices and not ready.carry:
        return
    from memctl import chooser

    def renew() -> None:
        line.say(runs.Choose(run=ready.run), runs.Noted, timeout_s=ANSWER_S)

    session, carry = "", False
    if ready.choices:
        session = chooser.choose(ready.choices, renew)
    else:
        carry = chooser.confirm(ready.carry, renew)
    line.say(
        runs.Choose(run=ready.run, session=session, carry=carry, is_decided=True),
        runs.Noted,
        timeout_s=ANSWER_S,
    )


# ---------------------------------------------------------------------------------- with the child


def _run(line: Conversation, child: Child, ready: runs.Ready, plan: runs.LaunchPlan) -> int:
    if child.was_interrupted:
        raise KeyboardInterrupt
    tether = Tether(line, ready)
    terminal = Terminal()
    try:
        child.start(plan.executable, plan.arguments, plan.cwd, _environment(plan))
    except OSError as reason:
        what = os.fsdecode(plan.executable)
        why = reason.strerror or str(reason)
        _close(tether, None, f"{what}: {why}")
        say(f"{what} cannot be started: {why}")
        return NO_START
    tether.begin(child.pid)
    status = child.wait(tether.descriptors, tether.serve)
    if status < 0:
        terminal.restore()
    _close(tether, status if status >= 0 else 128 - status)
    return status if status >= 0 else NO_SIGNAL_STATUS


def _environment(plan: runs.LaunchPlan) -> dict[bytes, bytes]:
    environment = dict(os.environb)
    _undo_coercion(environment)
    for name in plan.unset:
        environment.pop(os.fsencode(name), None)
    environment.update({os.fsencode(name): value for name, value in plan.set.items()})
    return environment


def _undo_coercion(environment: dict[bytes, bytes]) -> None:
    """In the C locale the interpreter sets `LC_CTYPE` for itself; the child is to have what we were given."""
    if environment.get(b"LC_CTYPE") not in (b"C.UTF-8", b"C.utf8", b"UTF-8"):
        return
    try:
        with open("/proc/self/environ", "rb") as file:
            given = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    except OSError:
        return
    environment.pop(b"LC_CTYPE")
    if b"LC_CTYPE" in given:
        environment[b"LC_CTYPE"] = given[b"LC_CTYPE"]


# ----------------------------------------------------------------------------------------- the end


def _close(tether: Tether, code: int | None, failure: str = "") -> None:
    """Tell how it ended, and what that gave; takes `CLOSE_S` at most.

    Never fails: what is not told now memd finds out by itself.
    """
    until = time.monotonic() + CLOSE_S
    tether.settle()
    if tether.is_over:
        return
    exited = runs.Exited(run=tether.run, code=code, failure=failure)
    try:
        closed = _told(tether, exited, until)
    except MemdError as reason:
        say(f"the run was not closed: {reason}. memd closes it, and reads what was written, by itself")
        return
    except (KeyboardInterrupt, Ended):
        say("memd closes the run by itself")
        return
    _tell(closed)
    if not closed.workstream:
        return
    count = f"{closed.events} new event{'' if closed.events == 1 else 's'}"
    say(f"workstream {closed.workstream!r}: {count}")


def _told(tether: Tether, exited: runs.Exited, until: float) -> runs.Closed:
    """raises MemdError, when nobody answered by then too"""
    line = tether.line

    def left_s(at_most: float) -> float:
        left = until - time.monotonic()
        if left <= 0:
            raise Unavailable(f"memd did not answer within {CLOSE_S:.0f} s")
        return min(left, at_most)

    def on_slow() -> None:
        if _is_terminal(2):
            say("reading what the agent wrote ...")

    before = tether.unsaid()
    for number in range(len(CLOSING_PAUSES_S) + 1):
        try:
            if not line.is_open:
                line.open(start=number == len(CLOSING_PAUSES_S), timeout_s=left_s(ANSWER_S))
                before = [runs.TakeUp(run=tether.run), *before]
            while before:
                line.say(before[0], runs.Noted, timeout_s=left_s(ANSWER_S))
                before.pop(0)
            return line.say(exited, runs.Closed, timeout_s=left_s(CLOSE_S), on_slow=on_slow)
        except Broken:
            before = [step for step in before if not isinstance(step, runs.TakeUp)]
        except client.Rejected as reason:
            if reason.code != TryAgain.code:
                raise
        if number < len(CLOSING_PAUSES_S):
            time.sleep(CLOSING_PAUSES_S[number])
    raise Unavailable("memd cannot be reached", remedy="Start it with `memctl up`.")


def _tell(answer: runs.Answer) -> None:
    for notice in answer.notices:
        say(notice)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False
