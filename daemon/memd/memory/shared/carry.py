"""Carrying the topics of one folder over into a store: reads the one, fills the other.

Copies first, then the lines, all at once, then the mark that says it is done; so at whatever point it ends,
the next run knows its own copies by their bytes and goes on. The source stays as it is. Nothing is copied
through a link, and nothing that is no regular file.
"""

from __future__ import annotations

import errno
import stat

import msgspec

from memctl.paths import shown
from memd import disk
from memd.errors import DiskError, Refused, TryAgain
from memd.memory.shared.carrying import Carry, Incoming, Plan, Standing, has_anything, only, plan
from memd.memory.shared.claude_index import index_of_claude
from memd.memory.shared.index import entries_of, parse_line
from memd.memory.shared.record import MAX_CARRIED, Carried, Record
from memd.memory.shared.slugs import EXTENSION, INDEX
from memd.memory.shared.store import Store, digest_of
from memd.memory.shared.work import Work
from memd.protocol_memory import CarriedTopic, Unlisted

SENTINEL = b".shared-dir-migrated"

UNREADABLE = "Make it readable for you, and carry over again."
MISNAMED = "Rename it, and carry over again."


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A folder to be carried over, as it was read."""

    incoming: Incoming
    problems: tuple[Unlisted, ...] = ()  # topics that could not be read: these may be carried later

    def has_anything(self) -> bool:
        return has_anything(self.incoming) or self.may_improve()

    def may_improve(self) -> bool:
        """Whether a later look may find more than this one."""
        return any(problem.remedy == UNREADABLE for problem in self.problems)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    carried: tuple[CarriedTopic, ...]
    left: tuple[Unlisted, ...]


def read_source(store: Store) -> Source:
    """raises DiskError, Refused (its index is no regular file)"""
    topics: dict[bytes, str] = {}
    problems: list[Unlisted] = []
    for name in store.names():
        if not name.endswith(EXTENSION) or name == INDEX or name.startswith(b"."):
            continue
        facts = store.folder.look(name)
        if facts is None:
            continue
        if not stat.S_ISREG(facts.st_mode):
            kind = "a link" if stat.S_ISLNK(facts.st_mode) else "no regular file"
            problems.append(Unlisted(file=name, reason=f"it is {kind}"))
            continue
        try:
            content = store.topic(name)
        except (DiskError, Refused) as reason:
            problems.append(Unlisted(file=name, reason=f"it cannot be read: {reason}", remedy=UNREADABLE))
            continue
        if content is not None:
            topics[name] = digest_of(content)
    incoming = Incoming(index=store.index(), topics=topics, removed=store.removed())
    return Source(incoming=incoming, problems=tuple(problems))


def claude_source(store: Store) -> Source:
    """The same for a memory folder of Claude Code, whose index is written otherwise."""
    found = read_source(store)
    changed_ns = {name: store.folder.look(name) for name in found.incoming.topics}
    times = {name: facts.st_mtime_ns for name, facts in changed_ns.items() if facts is not None}
    index = index_of_claude(found.incoming.index, times)
    return msgspec.structs.replace(found, incoming=msgspec.structs.replace(found.incoming, index=index))


def is_done(store: Store) -> bool:
    return store.folder.look(SENTINEL) is not None


def mark_done(store: Store) -> None:
    store.folder.create(SENTINEL, b"")


def standing_of(store: Store) -> Standing:
    return Standing(
        index=store.index(),
        names=[name for name in store.names() if not disk.is_temporary(name)],
        digests=store.digest,
        removed=store.removed(),
    )


def planned(source: Store, found: Source, standing: Standing, record: Record, origin: bytes = b"") -> Plan:
    """What carrying over would do. With an `origin` topics that came from there once are left out."""
    result = plan(found.incoming, standing, lambda file: source.topic(file) or b"")
    if not origin:
        return result
    once = {(c.file, c.digest) for c in record.carried if c.source == origin}
    digests = found.incoming.topics
    fresh = [c.file for c in result.carries if not c.is_copied or (c.file, digests[c.file]) not in once]
    return only(result, fresh)


def carry(source: Store, found: Source, work: Work, todo: Plan, *, origin: bytes = b"") -> Result:
    """Do what was planned. raises DiskError, Refused, TryAgain (something changed meanwhile)"""
    for step in todo.carries:
        if step.is_copied:
            _copy(source, found, work.store, step)
    work.add_lines([step.line for step in todo.carries if step.line])
    if origin:
        _remember(work, found, todo, origin)
    return Result(carried=rows(work.store.index(), todo), left=left(found, todo))


def _copy(source: Store, found: Source, into: Store, step: Carry) -> None:
    content = source.topic(step.file)
    if content is None or digest_of(content) != found.incoming.topics[step.file]:
        raise TryAgain(f"{shown(step.file)} changed while it was carried over")
    try:
        is_new = into.create(step.to, content)
    except DiskError as reason:
        if reason.errno != errno.ENAMETOOLONG:
            raise
        raise Refused(f"{shown(step.to)} is too long a name", remedy=MISNAMED) from None
    if not is_new:
        raise TryAgain(f"{shown(step.to)} appeared while topics were carried over")


def _remember(work: Work, found: Source, todo: Plan, origin: bytes) -> None:
    known = work.record.carried
    fresh = [Carried(source=origin, file=c.file, digest=found.incoming.topics[c.file]) for c in todo.carries]
    news = tuple(c for c in fresh if c not in known)
    if news:
        work.remember(msgspec.structs.replace(work.record, carried=(*known, *news)[-MAX_CARRIED:]))


def rows(index: bytes, todo: Plan) -> tuple[CarriedTopic, ...]:
    names = {entry.file: entry.name for entry in entries_of(index)}
    out = []
    for step in todo.carries:
        entry = parse_line(step.line)
        name = entry.name if entry is not None else names.get(step.to, "")
        out.append(
            CarriedTopic(
                file=step.file.decode("utf-8", "replace"),
                to=step.to.decode("utf-8", "replace"),
                name=name.encode("utf-8", "replace").decode("utf-8"),
                is_copied=step.is_copied,
                is_listed=bool(step.line),
            )
        )
    return tuple(out)


def left(found: Source, todo: Plan) -> tuple[Unlisted, ...]:
    troubled = {problem.file for problem in found.problems}
    skipped = (s for s in todo.skipped if s.file not in troubled)
    return (
        *found.problems,
        *(
            Unlisted(file=s.file, reason=s.reason, remedy=MISNAMED if "name" in s.reason else "")
            for s in skipped
        ),
    )
