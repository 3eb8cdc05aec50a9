"""Sessions of a checkout that a launch could go on in: the newest of each harness, those to be taken over.

What the ledger knows is looked up in the harness's store before it is offered: transcripts are swept away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

import trio
from msgspec.structs import replace

from memd.errors import TryAgain
from memd.harness.model import Adapter, Environment
from memd.harness.registry import adapters
from memd.ledger import sources
from memd.ledger.search import clean, instant
from memd.ledger.store.interface import Filter, Reader, SessionRow
from memd.service import orders
from memd.service.preflight import Preflight
from memd.service.runs import Records
from memd.workstream import adoption, bare, launch, opening
from memd.workstream.adoption import Candidate
from memd.workstream.bare import Found
from memd.workstream.launch import Client
from memd.workstream.opening import Ask

MAX_GONE = 16  # newest sessions of one harness that may be gone before it counts as having none


class Candidates:
    def __init__(self, records: Records, preflight: Preflight) -> None:
        self._records = records
        self._preflight = preflight

    async def guess(
        self, ask: Ask, client: Client, cwd: str, *, is_caught_up: bool
    ) -> tuple[Ask, dict[str, str]]:
        """The order of a person who named no harness, with the harness of the newest session of the checkout.

        cwd           physical, as harnesses record it
        is_caught_up  whatever stores hold is in the ledger
        returns       with it the newest session of each harness that has one, free to be taken over
        raises        bare.NoProgram, bare.NothingToContinue, TryAgain; what `selection.choose` raises
        """
        pool = [one for one in adapters().values() if one.launch is not None and one.launch.is_pooled]
        names = {adapter.name for adapter in pool}
        installed = await trio.to_thread.run_sync(launch.installed, pool, client)
        linked = await self._records.ask(lambda reader: opening.current_links(reader.workstreams, ask))
        found, troubles = await self._newest(pool, orders.environment(client), cwd)
        known = {one.harness for one in found}
        # in another folder of the checkout nothing may have begun here: the workstream still goes on
        more = [
            Found(harness=one.harness, session=one.session, updated=one.linked_ms / 1000, flavor=one.flavor)
            for one in linked
            if one.harness in names and one.harness not in known
        ]
        last = sorted(linked, key=lambda one: -one.linked_ms)
        unasked = [one.harness for one in last if one.harness not in names]
        try:
            ranked = bare.newest_first(found or more, installed, troubles, unasked)
        except bare.NothingToContinue as reason:
            if is_caught_up:
                raise
            raise TryAgain(
                f"{reason}, but memd is still reading what agents wrote",
                remedy="Try again in a moment, or name the agent: `memctl run claude`, ...",
            ) from None
        available = [one.harness for one in [*ranked, *more] if one.harness in installed]
        made = replace(
            ask,
            harness=ranked[0].harness,
            is_automatic=True,
            available=tuple(dict.fromkeys(available)),
            pool=tuple(sorted(names)),
        )
        return made, await self._records.ask(lambda reader: _free(reader, found))

    async def _newest(
        self, pool: Iterable[Adapter], mine: Environment, cwd: str
    ) -> tuple[list[Found], dict[str, str]]:
        """The newest session of each harness that began in exactly this directory and is still there, and why
        stores of some harnesses could not be looked into."""
        rows = await self._records.ask(lambda reader: reader.sessions(Filter(cwd=cwd)))
        found: list[Found] = []
        troubles: dict[str, str] = {}
        for adapter in pool:
            ground = await _ground(adapter, mine, cwd)
            if ground != cwd:
                here = await self._records.ask(partial(_sessions, Filter(harness=adapter.name, cwd=ground)))
            own = [
                row
                for row in (rows if ground == cwd else here)
                if row.harness == adapter.name and _is_offered(row, ground)
            ]
            for row in own[:MAX_GONE]:
                look = await self._preflight.look(adapter, mine, row.id)
                if look.outcome == "absent":
                    continue
                if look.outcome == "unknown":
                    troubles[adapter.name] = look.reason
                    break
                flavor = look.store.flavor if look.store is not None else ""
                updated = instant(row.last_activity) or 0.0
                flavor = flavor if flavor in _flavors(adapter) else ""
                found.append(Found(harness=adapter.name, session=row.id, updated=updated, flavor=flavor))
                break
        return found, troubles

    async def to_adopt(self, adapter: Adapter, mine: Environment, cwd: str) -> list[Candidate]:
        """The sessions of one harness that a first launch may take over, newest first."""

        cwd = await _ground(adapter, mine, cwd)

        def free(reader: Reader) -> list[SessionRow]:
            rows = [row for row in reader.sessions(Filter(harness=adapter.name, cwd=cwd)) if row.cwd == cwd]
            return [row for row in rows if not reader.workstreams.workstreams_of(adapter.name, row.id)]

        offered: list[SessionRow] = []
        gone = 0
        for row in await self._records.ask(free):
            if len(offered) == adoption.MAX_CANDIDATES or gone == MAX_GONE:
                break
            if not _is_offered(row, cwd):
                continue
            if (await self._preflight.look(adapter, mine, row.id)).outcome == "absent":
                gone += 1
            else:
                offered.append(row)
        return adoption.candidates(offered, cwd, ())


async def _ground(adapter: Adapter, mine: Environment, cwd: str) -> str:
    """Where the sessions that a child goes on in were begun: `cwd`, but for a store of a whole checkout."""
    if adapter.scattered is None:
        return cwd
    found = await trio.to_thread.run_sync(sources.ground, adapter, mine, os.fsencode(cwd))
    return clean(os.fsdecode(found)) if found != os.fsencode(cwd) else cwd


def _sessions(where: Filter, reader: Reader) -> list[SessionRow]:
    return reader.sessions(where)


def _free(reader: Reader, found: Iterable[Found]) -> dict[str, str]:
    """Harness -> session, of those that no workstream has."""
    return {
        one.harness: one.session
        for one in found
        if not reader.workstreams.workstreams_of(one.harness, one.session)
    }


def _is_offered(row: SessionRow, cwd: str) -> bool:
    return row.cwd == cwd and not row.is_side and row.events > 0 and adoption.is_usable(row.id)


def _flavors(adapter: Adapter) -> set[str]:
    return set(adapter.launch.words.values()) if adapter.launch is not None else set()
