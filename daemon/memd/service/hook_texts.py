"""Texts that only hooks carry, on their way into the ledger: judged, scrubbed, cut, put in.

What is said in a directory that is kept out of the import is dropped here too. The same text told again, by
another event or by a note that a hook left, has the same id and is put in once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memd import seldom
from memd.harness.model import Event, Parsed, event_id
from memd.ledger.store.interface import BATCH_EVENTS, MAX_TEXT_BYTES, Appended, Batch, Entry
from memd.service.hook_calls import Session

if TYPE_CHECKING:
    from memd.ledger import sanitiser
else:
    sanitiser = seldom.module("memd.ledger.sanitiser")  # loaded by then: a text is cut after it was scrubbed

MAX_METADATA_BYTES = 512


class Keeping(Protocol):
    """The ledger as far as it takes texts. `memd.service.ledger.Ledger` is one."""

    async def scrub(self, text: str) -> str: ...

    async def imports(self, harness: str, cwd: bytes) -> bool: ...

    async def append(self, batch: Batch) -> Appended: ...


class HookTexts:
    def __init__(self, records: Keeping) -> None:
        self._records = records

    async def take(self, session: Session, at_ms: int) -> int:
        """Put in what the payload of a hook says; how many events of it are new.

        at_ms   when the hook called
        raises  MemdError: the same may be tried again
        """
        events_of = session.hooks.events_of
        if events_of is None or not session.call.payload:
            return 0
        parsed = events_of(session.event.name, session.call.payload, at_ms)
        if not (parsed.events or parsed.losses) or not await self._is_wanted(session, parsed):
            return 0
        harness = session.adapter.name
        entries = [await self._entry(harness, event) for event in parsed.events[:BATCH_EVENTS]]
        put = await self._records.append(Batch(harness=harness, entries=entries, sessions=parsed.sessions))
        if parsed.losses and (put.stored or not entries):  # else they were counted when it came first
            await self._records.append(Batch(harness=harness, losses=parsed.losses))
        return put.stored

    async def _is_wanted(self, session: Session, parsed: Parsed) -> bool:
        places: Sequence[str] = [place for one in parsed.sessions for place in (one.cwd, *one.also) if place]
        named = [place.encode("utf-8", "surrogatepass") for place in places]
        for place in named or [session.cwd]:
            if not place or not await self._records.imports(session.adapter.name, place):
                return False
        return True

    async def _entry(self, harness: str, event: Event) -> Entry:
        """The event as the ledger keeps it. The id is made of what was said before it is scrubbed."""
        content = await self._records.scrub(event.content.replace("\0", ""))
        metadata = {
            name: sanitiser.cut(await self._records.scrub(value), MAX_METADATA_BYTES)
            if isinstance(value, str)
            else value
            for name, value in event.metadata.items()
        }
        return Entry(
            id=event_id(harness, event),
            session=event.session,
            kind=event.kind,
            role=event.role,
            content=sanitiser.cut(content, MAX_TEXT_BYTES),
            at=event.at,
            occurred_at=event.occurred_at,
            record=sanitiser.cut(await self._records.scrub(event.record), MAX_METADATA_BYTES),
            is_side=event.is_side,
            metadata=metadata,
        )
