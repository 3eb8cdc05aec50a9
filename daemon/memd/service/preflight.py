"""Before a session is resumed: whether its harness still has it where the child will look.

present    go on in it
absent     a new one begins, and the workstream goes on in that
unknown    the store could not be read, which says nothing: go on in it, and say so
elsewhere  it lies, or has gone on, in a store that this client does not use. A session of Claude Code can be
           copied from one login to another; of the others a new one begins
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import trio

from memctl.paths import shown
from memd.harness.launching import Intent
from memd.harness.model import Adapter, Environment, Store
from memd.ledger import sources
from memd.ledger.lookup import Look, look_for
from memd.ledger.search import clean
from memd.workstream.adoption import shown_id

T = TypeVar("T")

LOOK_S = 5.0
CARRIED = "claude"  # whose logins differ in tokens alone: a session may move between them

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about a linked session.

    session   go on in this one; empty: a new one begins
    path      the file it lies in, when it was begun in another directory than the child's; else empty
    is_usual  it lies where the harness keeps its stores by itself, and the client's variables point elsewhere
    other     the session as it lies in another login, from which it could be copied
    notices   for people, when something is not as they expect
    """

    session: str = ""
    path: bytes = b""
    is_usual: bool = False
    other: Look | None = None
    notices: tuple[str, ...] = ()


class Preflight:
    """Looks into stores, one look at a time, each for at most `LOOK_S`.

    scratch  a private folder for copies of databases
    """

    def __init__(self, scratch: bytes) -> None:
        self._scratch = scratch
        self._one_at_a_time = trio.CapacityLimiter(1)

    async def _run(self, work: Callable[[], T], otherwise: T) -> T:
        with trio.move_on_after(LOOK_S):
            return await trio.to_thread.run_sync(work, limiter=self._one_at_a_time, abandon_on_cancel=True)
        return otherwise

    async def look(self, adapter: Adapter, mine: Environment, session: str) -> Look:
        """Whether the client's own stores have the session."""
        late = Look(outcome="unknown", reason=f"its store was not read within {LOOK_S:.0f} s")
        return await self._run(
            lambda: look_for(adapter, sources.of(adapter, mine), session, self._scratch), late
        )

    async def linked(
        self, adapter: Adapter, session: str, mine: Environment, others: Sequence[Environment], cwd: str
    ) -> Verdict:
        """What becomes of the linked session of a launch.

        mine    the client's environment; `others`: those that other clients had
        cwd     where the child is started, as the harness records it
        """
        late = _doubtful(adapter, session, f"its store was not read within {LOOK_S:.0f} s")
        return await self._run(partial(_judge, adapter, session, mine, others, cwd, self._scratch), late)

    async def named(self, adapter: Adapter, mine: Environment, session: str) -> str:
        """The session that a person's own arguments name, as far as it is certain to be an id; else empty.

        A name, the beginning of an id or a path lead the harness to a session that shows by itself later.
        """
        if not session or _UUID.fullmatch(session):
            return session
        return session if (await self.look(adapter, mine, session)).outcome == "present" else ""


def _judge(
    adapter: Adapter,
    session: str,
    mine: Environment,
    others: Iterable[Environment],
    cwd: str,
    scratch: bytes,
) -> Verdict:
    stores = sources.of(adapter, mine)
    found = look_for(adapter, stores, session, scratch)
    if found.outcome == "unknown":
        return _doubtful(adapter, session, found.reason)
    if found.outcome == "present" and adapter.name != CARRIED:
        return _present(adapter, session, found, mine, cwd)
    known = _roots(stores)
    if adapter.scattered is not None:
        others = ()  # a store in every place there is: not one of them is for this child
    rest = [store for other in others for store in adapter.stores(other)]
    rest = [store for store in rest if os.path.realpath(store.root) not in known]
    there = look_for(adapter, rest, session, scratch)
    if found.outcome == "present" and not _is_further(there, found):
        return _present(adapter, session, found, mine, cwd)
    if there.outcome == "present":
        return Verdict(other=there) if adapter.name == CARRIED else _apart(adapter, session, there)
    return Verdict(
        notices=(
            f"{adapter.title} no longer has session {shown_id(session)}: a new one begins, and the workstream"
            " goes on in that",
        )
    )


def _is_further(there: Look, here: Look) -> bool:
    """Whether a session has gone on in another login since it was copied here."""
    try:
        return there.outcome == "present" and os.path.getsize(there.path) > os.path.getsize(here.path)
    except OSError:
        return False


def _present(adapter: Adapter, session: str, found: Look, mine: Environment, cwd: str) -> Verdict:
    assert adapter.launch is not None
    assert found.store is not None
    begun = clean(found.cwd)
    if adapter.launch.is_bound and begun and begun != cwd:
        return Verdict(
            notices=(
                f"{adapter.title} goes on with session {shown_id(session)} in {_harmless(begun)} only: a"
                " new one begins here, and the workstream goes on in that",
            )
        )
    path = found.path if begun and begun != cwd else b""
    usual = _roots(adapter.stores(Environment(home=mine.home)))
    own = _roots(sources.of(adapter, mine)) - usual
    if not own or found.store.root in own:
        return Verdict(session=session, path=path)
    if not _can_be_led_home(adapter, session):
        return _apart(adapter, session, found)
    return Verdict(session=session, path=path, is_usual=True)


def _can_be_led_home(adapter: Adapter, session: str) -> bool:
    """Whether a launch of this harness can leave the client's variables aside."""
    assert adapter.launch is not None
    compose = adapter.launch.compose
    usual = compose((), Intent(session=session, is_usual=True))
    return usual != compose((), Intent(session=session))


def _doubtful(adapter: Adapter, session: str, reason: str) -> Verdict:
    return Verdict(
        session=session,
        notices=(
            f"whether {adapter.title} still has session {shown_id(session)} could not be told ({reason}): it"
            " is resumed all the same, --fresh begins a new one",
        ),
    )


def _apart(adapter: Adapter, session: str, found: Look) -> Verdict:
    assert found.store is not None
    return Verdict(
        notices=(
            f"session {shown_id(session)} of {adapter.title} lies in {shown(found.store.root)}, which is not"
            " used here: a new one begins, and the workstream goes on in that",
        )
    )


def login_of(found: Look) -> bytes:
    """The config home that a session of Claude Code lies in."""
    assert found.store is not None
    return os.path.dirname(found.store.root)


def _roots(stores: Iterable[Store]) -> set[bytes]:
    return {os.path.realpath(store.root) for store in stores}


def _harmless(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
