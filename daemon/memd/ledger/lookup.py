"""Whether a harness still has a session, and where: asked of its own stores, right before it is resumed.

Three answers, never two: a store that could not be read does not say that the session is gone. Only sources
that bear the id in their path are opened; what lies beside them (folders of attachments, lists of ids, other
sessions) proves nothing. A database is asked, and a file that holds many sessions is searched for the id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from memctl.paths import shown
from memd.harness.model import Adapter, Store
from memd.ledger import snapshot, sources
from memd.ledger.reading import Reader, Unreadable
from memd.ledger.sources import Source

if TYPE_CHECKING:
    import apsw

MAX_SEARCHED_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20
DATABASE_S = 2.0

Outcome = Literal["present", "absent", "unknown"]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Of a session that is there: `store` it lies in, `path` of the file or database, `cwd` where it was
    begun (empty: not said). Of one that may be there: `reason`."""

    outcome: Outcome
    store: Store | None = None
    path: bytes = b""
    cwd: str = ""
    reason: str = ""


ABSENT = Look(outcome="absent")


def look_for(adapter: Adapter, stores: Iterable[Store], session: str, scratch: bytes) -> Look:
    """The session in the first of the stores that has it. Blocks while it reads.

    scratch  a private folder for copies of databases
    """
    name = session.encode("utf-8", "surrogateescape")
    unknown: Look | None = None
    for store in stores:
        if store.is_index:
            continue
        real = msgspec.structs.replace(store, root=os.path.realpath(store.root))
        walk = sources.walk(adapter, real)
        reader = Reader({adapter.name: adapter})
        try:
            for source in walk.sources:
                found = _look_at(adapter, source, session, name, reader, scratch)
                if found.outcome == "present":
                    return found
                unknown = found if found.outcome == "unknown" else unknown
        finally:
            reader.close()
        linked = next((link for link in walk.links if _may_lead_to(link, name)), b"")
        if linked:
            unknown = Look(outcome="unknown", reason=f"{shown(linked)} is a link, which memd does not follow")
        elif walk.blind or walk.is_cut:
            why = "not all of its folders can be read" if walk.blind else "it holds too many files"
            unknown = Look(outcome="unknown", reason=f"{shown(real.root)}: {why}")
    return unknown or ABSENT


def _look_at(
    adapter: Adapter, source: Source, session: str, name: bytes, reader: Reader, scratch: bytes
) -> Look:
    if source.store.database:
        named = adapter.identify(source.rel, b"", source.store.flavor)
        if named is not None and named.id not in ("", session):
            return ABSENT  # a database of one session, and of another one
        return _ask(adapter, source, session, scratch)
    if name not in source.rel:
        return _search(adapter, source, name) if _holds_many(adapter, source) else ABSENT
    try:
        found = reader.session_of(source)
    except Unreadable as reason:
        return Look(outcome="unknown", reason=f"{shown(source.path)}: {reason}")
    if found is None or found.id != session or found.is_side:
        return ABSENT
    return Look(outcome="present", store=source.store, path=source.path, cwd=found.cwd)


def _ask(adapter: Adapter, source: Source, session: str, scratch: bytes) -> Look:
    def question(connection: apsw.Connection) -> tuple[object, ...] | None:
        row: tuple[object, ...] | None = connection.execute(
            adapter.session_query, {"session": session}
        ).fetchone()
        return row

    if not adapter.session_query:
        return Look(outcome="unknown", reason=f"{shown(source.path)}: memd cannot ask it for a session")
    row = snapshot.read_snapshot(source.path, scratch, question, seconds=DATABASE_S)
    if isinstance(row, snapshot.Unreadable):
        return ABSENT if row.reason == "missing" else Look(outcome="unknown", reason=row.sentence)
    if row is None:
        return ABSENT
    where = row[0] if row else ""
    cwd = os.fsdecode(where) if isinstance(where, bytes | str) else ""
    return Look(outcome="present", store=source.store, path=source.path, cwd=cwd)


def _may_lead_to(link: bytes, name: bytes) -> bool:
    if name in os.path.basename(link):
        return True
    try:
        return any(name in entry for entry in os.listdir(link))
    except OSError:
        return False


def _holds_many(adapter: Adapter, source: Source) -> bool:
    """Whether a file is no session's own: its path alone says so."""
    if source.store.documents or adapter.beside(source.rel):
        return False
    found = adapter.identify(source.rel, b"", source.store.flavor)
    return found is not None and not found.id


def _search(adapter: Adapter, source: Source, name: bytes) -> Look:
    """Whether the id stands anywhere in a file."""
    try:
        with open(source.path, "rb") as file:
            held, left = b"", MAX_SEARCHED_BYTES
            while left > 0 and (chunk := file.read(CHUNK_BYTES)):
                held = held[-len(name) :] + chunk
                if name in held:
                    return Look(outcome="present", store=source.store, path=source.path)
                left -= len(chunk)
    except OSError as reason:
        return Look(outcome="unknown", reason=f"{shown(source.path)}: {reason.strerror}")
    if left <= 0:
        return Look(outcome="unknown", reason=f"{shown(source.path)}: it is too long to be searched")
    return ABSENT
