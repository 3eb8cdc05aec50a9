"""Making one entry the link it should be, whatever stood there.

A folder, or a link that is not right, is taken over like this: merge it; make the right link under the name
that the old thing will have (`memory.pre-shared`); exchange the two names; merge what was written meanwhile,
until nothing changes. So there is no instant without a memory folder, and nothing that is written at any
time, through whichever name or handle, is lost. What was exchanged is looked at afterwards; when it is not
what was merged, the exchange is undone.
"""

from __future__ import annotations

import contextlib
import errno
import stat

import msgspec

from memd import disk
from memd.disk import Folder
from memd.errors import DiskError
from memd.memory.config_homes import ConfigHome
from memd.memory.decide import Decision, Facts
from memd.memory.journal import TakeOver
from memd.memory.leftovers import clean_links
from memd.memory.look import ENTRY, make_holder, open_holder
from memd.memory.merge import Merge
from memd.memory.names import MAX_NUMBER, aside_name
from memd.memory.owned import inode
from memd.memory.report import counted
from memd.memory.sources import open_real
from memd.memory.work import Work, label
from memd.protocol import Entry


class Changed(Exception):
    """The entry is not what it was when it was looked at: look again."""


def make_link(work: Work, login: ConfigHome, facts: Facts) -> None:
    """A link where nothing is, or the owned folder that a right link leads to. Raises Changed, DiskError."""
    with work.open_owned() as owned, make_holder(login, facts.path) as holder:
        work.know_target(owned)
        if facts.kind == "absent":
            _new_link(work, holder, ENTRY)
            holder.sync()


def replace_link(work: Work, login: ConfigHome, facts: Facts) -> None:
    """A link of ours that leads to where the owned folder was once: there is nothing in it to keep."""
    with work.open_owned() as owned, _opened(login, facts) as holder:
        work.know_target(owned)
        name = disk.temporary_name()
        _new_link(work, holder, name)
        _exchange(holder, facts.ino, name)
        holder.remove(name)
        holder.sync()


def take_over(work: Work, login: ConfigHome, facts: Facts, decision: Decision, entry: Entry) -> Entry:
    """Merge, set aside, link. Raises Changed and DiskError; both leave everything in place."""
    with contextlib.ExitStack() as stack:
        holder = stack.enter_context(_opened(login, facts))
        owned = stack.enter_context(work.open_owned())
        source = None
        if decision.action == "take":
            source = stack.enter_context(holder.folder(ENTRY))
            if source.facts().st_ino != facts.ino:
                raise Changed
        elif decision.action == "merge-target":
            source = stack.enter_context(_target(work, facts))
        is_resumed = facts.path in work.won
        journal = TakeOver(
            path=facts.path,
            config_home=login.path,
            ino=facts.ino,
            aside=_free_aside(work, holder),
            source=source.path if source else b"",
            won=work.won.pop(facts.path, ()),
        )
        return _take_over(work, login, holder, owned, source, journal, entry, is_resumed=is_resumed)


def _take_over(
    work: Work,
    login: ConfigHome,
    holder: Folder,
    owned: Folder,
    source: Folder | None,
    journal: TakeOver,
    entry: Entry,
    *,
    is_resumed: bool,
) -> Entry:
    work.files.write_journal(journal)
    merge = None
    if source:
        merge = work.merge(owned, source, label(login), journal, is_resumed=is_resumed)
        merge.run()
    work.know_target(owned)
    journal = _ahead(work, holder, journal)
    try:
        _exchange(holder, journal.ino, journal.aside)
    except Changed:
        work.files.clear_journal(journal)
        raise
    holder.sync()
    return _finish(work, login, holder, source, merge, journal, entry)


def _finish(
    work: Work,
    login: ConfigHome,
    holder: Folder,
    source: Folder | None,
    merge: Merge | None,
    journal: TakeOver,
    entry: Entry,
) -> Entry:
    """After the exchange: merge what was written meanwhile, and remember."""
    aside = holder.at(journal.aside)
    entry = msgspec.structs.replace(
        entry, outcome="migrated", changed=True, set_aside=aside, healed_at_ms=work.now_ms
    )
    if merge is not None and source is not None:
        merge.run()
        place = aside if journal.source == journal.path else journal.source
        noted = work.note_merged(merge, source, place, journal.path, label(login))
        entry = counted(msgspec.structs.replace(entry, left_behind=noted.left), merge.tally)
    work.save()
    work.files.clear_journal(journal)
    return entry


# --------------------------------------------------------------------- after a crash


def resume(work: Work, login: ConfigHome, journal: TakeOver, entry: Entry) -> Entry | None:
    """Finish what a journal says; None when the entry has to be looked at anew. Raises DiskError."""
    holder = open_holder(login, journal.path)
    if holder is None:
        work.files.clear_journal(journal)
        return None
    with contextlib.ExitStack() as stack:
        stack.enter_context(holder)
        clean_links(holder, (work.enrolment.owned,))
        owned = stack.enter_context(work.open_owned())
        name = _where_is(holder, journal)
        if name is None or name == ENTRY:  # not exchanged: what was merged so far will be found merged
            _take_back(work, holder, journal.aside)
            work.won[journal.path] = journal.won
            return None
        if holder.look(ENTRY) is None:
            _new_link(work, holder, ENTRY)
        holder.sync()
        journal = msgspec.structs.replace(journal, aside=name)
        source = None
        if journal.source == journal.path:
            source = stack.enter_context(holder.folder(name))
        elif journal.source and (opened := open_real(journal.source)) is not None:
            source = stack.enter_context(opened)
        merge = None
        if source:
            merge = work.merge(owned, source, label(login), journal, is_resumed=True)
            merge.run()
        return _finish(work, login, holder, source, merge, journal, entry)


def _where_is(holder: Folder, journal: TakeOver) -> bytes | None:
    """The name beside the entry, or of it, that the old thing has now."""
    for name in (ENTRY, journal.aside):
        if inode(holder, name) == journal.ino:
            return name
    for name in holder.names():
        if name.startswith(ENTRY) and inode(holder, name) == journal.ino:
            return name
    return None


def _take_back(work: Work, holder: Folder, aside: bytes) -> None:
    """Remove the link that was made ahead for an exchange."""
    facts = holder.look(aside)
    if facts is not None and stat.S_ISLNK(facts.st_mode) and holder.read_link(aside) == work.enrolment.owned:
        holder.remove(aside)


# -------------------------------------------------------------------------- the steps


def _opened(login: ConfigHome, facts: Facts) -> Folder:
    holder = open_holder(login, facts.path)
    if holder is None:
        raise Changed
    if inode(holder, ENTRY) != facts.ino:
        holder.close()
        raise Changed
    return holder


def _target(work: Work, facts: Facts) -> Folder:
    """The folder in the agent home that a link leads to, opened without following anything."""
    top = work.enrolment.home
    with disk.open_folder(top) as opened:
        return opened.below(facts.target[len(top) :].strip(b"/").split(b"/"))


def _new_link(work: Work, holder: Folder, name: bytes) -> None:
    try:
        holder.make_link(work.enrolment.owned, name)
    except DiskError as reason:
        if reason.errno == errno.EEXIST:
            raise Changed from reason
        raise


def _free_aside(work: Work, holder: Folder) -> bytes:
    for attempt in range(MAX_NUMBER):
        name = aside_name(work.now_ms, attempt)
        if holder.look(name) is None:
            return name
    raise Changed


def _ahead(work: Work, holder: Folder, journal: TakeOver) -> TakeOver:
    """Make the link under the name that the old thing will have; that name is in the journal first."""
    while True:
        try:
            _new_link(work, holder, journal.aside)
            return journal
        except Changed:
            journal = msgspec.structs.replace(journal, aside=_free_aside(work, holder))
            work.files.write_journal(journal)


def _exchange(holder: Folder, ino: int, name: bytes) -> None:
    """Exchange the entry, which should be `ino`, with the link of ours called `name`."""
    ours = inode(holder, name)
    try:
        holder.swap(ENTRY, holder, name)
    except DiskError as reason:
        if inode(holder, name) == ours:
            holder.remove(name)
        if reason.errno == errno.ENOENT:
            raise Changed from reason
        raise
    if inode(holder, name) == ino:
        return
    if inode(holder, ENTRY) == ours:
        holder.swap(name, holder, ENTRY)
        holder.remove(name)
    raise Changed
