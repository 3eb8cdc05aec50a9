"""The steps of `memctl setup`: each looks first, says what it would do, and does it once it may.

A step that finds nothing to do says so; done again it changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memctl import asking, client, paths, view
from memctl.paths import shown
from memd import protocol
from memd.errors import MemdError

if TYPE_CHECKING:
    from memctl import services

SIGNS = (b".claude", b".memd", b".instar", b".git", b"CLAUDE.md", b"AGENTS.md")
"""What is found where an agent lives."""

NO_SIGN = "nothing says that an agent lives there; `memctl enroll` does it"


class Plan(NamedTuple):
    """What a step would do.

    says     in words; what holds already when there is nothing to do
    do       does it, and says so; the exit status. None: nothing is to be done
    show     what exactly would change, when that is more than words
    question what a person is asked; what is shown may have pushed `says` off the screen
    usual    what Enter means when a person is asked
    not_unasked  why --yes does not do it; empty: it does
    keep     paths in `says`, not to be broken
    declined what a no leaves behind
    trouble  the exit status of what stands in the way of a part of it
    """

    says: str
    do: Callable[[], int] | None = None
    show: Callable[[], None] | None = None
    question: str = "Do this?"
    usual: bool = True
    not_unasked: str = ""
    keep: Sequence[str] = ()
    trouble: int = 0
    declined: Callable[[], None] | None = None


class Setup(NamedTuple):
    """agent_home: absolute. is_dry: no daemon is started to look"""

    agent_home: bytes
    is_dry: bool


Step = Callable[[Setup], Plan]


# ----------------------------------------------------------------------------------- a daemon that runs


def service(setup: Setup) -> Plan:
    """memd under the system's service manager, else in the background."""
    from memctl import services

    manager = services.service_manager()
    if manager is None or not manager.is_reachable():
        why = "this system has no service manager that memd knows"
        if manager is not None:
            why = f"{manager.name} does not answer in this shell"
        return _detached(why)
    from memctl import service_install

    planned = service_install.install(manager, service_install.this_installation(), dry_run=True)
    state = services.service_state(manager)
    changed = [step for step in planned.steps if step.action in ("create", "update")]
    if not changed and state.is_usable and state.is_active and client.ping() is not None:
        return Plan(f"{manager.name} runs memd already")
    files = [shown(step.file.path) for step in changed]
    writes = f" Writes {', '.join(files)}" if files else ""
    says = f"Let {manager.name} run memd for you, with every login.{writes}"
    return Plan(says, do=lambda: _install_service(manager), keep=files)


def _install_service(manager: services.ServiceManager) -> int:
    from memctl import service_install
    from memctl.commands import daemon

    report = service_install.install(manager, service_install.this_installation())
    for note in report.notes:
        asking.say(note)
    if report.trouble is not None:
        raise report.trouble
    daemon.start()
    asking.say(f"{manager.name} runs memd.")
    return 0


def _detached(why: str) -> Plan:
    from memctl.commands import daemon
    from memd import __version__

    running = client.ping()
    if running is not None and running.version == __version__:
        return Plan(f"memd runs already (pid {running.pid}); {why}")

    def do() -> int:
        daemon.start()
        asking.say("memd runs. `memctl up` starts it again after a restart of the machine.")
        return 0

    return Plan(f"Start memd in the background ({why}).", do=do)


# ------------------------------------------------------------------------------------------- hooks


def hooks(setup: Setup) -> Plan:
    """memd's hooks in the settings of every agent that is here."""
    from memctl.commands import daemon
    from memctl.hooks import offer as hook_offer
    from memctl.hooks import places as hook_places

    found = hook_offer.unwired(start=not setup.is_dry)
    refused = [change for change in found if change.state == "refused"]
    changes = [change for change in found if change.state != "refused"]
    for change in refused:
        asking.say(change.error, "  ", [shown(change.path)])
        asking.say(change.remedy, "  -> ")
    trouble = max((change.exit_status for change in refused), default=0)
    if not changes:
        is_any = any(map(hook_places.program, hook_places.resolve(()))) or bool(refused)
        none = "all other agents" if refused else "all agents"
        return Plan(
            f"{none} here have memd's hooks already" if is_any else "no agent was found here",
            trouble=trouble,
        )

    def do() -> int:
        daemon.renew_hook()
        return hook_offer.install(changes)

    return Plan(
        f"Install hooks into {hook_offer.names(changes)}. {hook_offer.WHAT_FOR}",
        do=do,
        show=lambda: hook_offer.show(changes),
        question="Install these hooks?",
        usual=False,
        declined=lambda: hook_offer.decline(changes),
        trouble=trouble,
    )


# --------------------------------------------------------------------------------------- enrolment


def enrolment(setup: Setup) -> Plan:
    """One memory, in all logins, for the agent that lives where setup was started."""
    from memd.checkout import project_root

    root = project_root(setup.agent_home)
    if root in (os.path.realpath(paths.home_dir()), b"/"):
        says = f"{shown(root)} is not an agent's own directory; run `memctl enroll` in the one that is"
        return Plan(says, keep=[shown(root)])
    found = _where(root, start=not setup.is_dry)
    if found is not None and found.owned:
        owned = shown(found.owned)
        says = f"the agent in {shown(root)} has one memory in all logins already: {owned}"
        return Plan(says, keep=[owned, shown(root)])
    logins = [] if found is None else [place for place in found.entries if place.state == "folder"]
    there = f" Memory of it is in {len(logins)} of them; it is merged, and a copy stays." if logins else ""
    return Plan(
        f"Give the agent that lives in {shown(root)} one memory in all logins of Claude Code.{there}",
        do=lambda: _enroll(root),
        usual=bool(logins),
        not_unasked="" if logins or _is_a_home(root) else NO_SIGN,
        keep=(shown(root),),
    )


def _is_a_home(root: bytes) -> bool:
    return any(os.path.lexists(os.path.join(root, name)) for name in SIGNS)


def _where(root: bytes, *, start: bool) -> protocol.WhereReply | None:
    request = protocol.Where(path=root, config_dir=client.client_config_dir())
    try:
        return client.ask(request, protocol.WhereReply, start=start)
    except MemdError:
        if start:
            raise
        return None


def _enroll(root: bytes) -> int:
    from memctl import view

    done = client.ask(
        protocol.Enroll(path=root, confirmed=True, config_dir=client.client_config_dir()), protocol.Enrolled
    )
    for entry in done.entries:
        why = f": {entry.reason}" if entry.reason else ""
        asking.say(f"{shown(entry.config_home)}: {entry.outcome}{why}", keep=[shown(entry.config_home)])
        if entry.remedy:
            asking.say(entry.remedy, "  -> ")
    home, owned = shown(done.agent.home), shown(done.agent.owned)
    asking.say(f"{home} is enrolled; its memory is {owned}", keep=[owned, home])
    return view.worst(done.entries)


# ------------------------------------------------------------------------------------ first import


def first_import(setup: Setup) -> Plan:
    """All that agents said before."""
    return Plan(
        "Read the sessions of all agents here into the ledger. Nothing of theirs is changed.", do=_import
    )


def _import() -> int:
    from memctl import first_import
    from memctl.commands import sessions

    is_whole = first_import.follow(
        protocol.Import(
            wait=True, variables=sessions.store_variables(), config_dir=client.client_config_dir()
        )
    )
    now = first_import.ledger()
    more = "" if is_whole else " so far"
    events = view.count(now["events"], "event")
    asking.say(f"The ledger has {events} of {view.count(now['sessions'], 'session')}{more}.")
    return 0


STEPS: Sequence[tuple[str, Step]] = (
    ("service", service),
    ("hooks", hooks),
    ("enroll", enrolment),
    ("import", first_import),
)
