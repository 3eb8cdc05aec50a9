"""Giving a login its own memory folder back, so that nothing in it depends on memd any more.

A copy of the owned folder is put together beside the entry and exchanged with the link; then what was written
meanwhile is copied, too. A link of ours is taken away after that; one that somebody made is set aside. The
owned folder stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

import msgspec

from memctl.paths import shown
from memd import disk
from memd.disk import Folder
from memd.errors import DiskError, MemdError, Refused
from memd.memory import takeover
from memd.memory.acting import Won
from memd.memory.config_homes import ConfigHome
from memd.memory.journal import GiveBack, TakeOver
from memd.memory.leftovers import clean_tree
from memd.memory.look import ENTRY, open_holder
from memd.memory.merge import Merge
from memd.memory.names import MAX_NUMBER, OWNED_LABEL, aside_name
from memd.memory.owned import inode
from memd.memory.plan import Plan
from memd.memory.report import failed, left_behind
from memd.memory.sources import open_real
from memd.memory.work import Work
from memd.protocol import Entry, LeftBehind


def leave(work: Work, blanks: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Whatever has to be done to the entries of an agent; trouble is told in the results.

    Our own links come first: a link that somebody made from one login to another is left alone when it leads
    to a login's own folder after that.
    """
    first = sorted(blanks, key=lambda blank: not _says_owned(work, blank.path))
    results = {blank.path: _leave(work, blank) for blank in first}
    return tuple(results[blank.path] for blank in blanks)


def _leave(work: Work, entry: Entry) -> Entry:
    login = work.around.login(entry.config_home)
    if login is None:
        return entry
    try:
        for journal in work.files.journals():
            if journal.path == entry.path:
                if isinstance(journal, GiveBack):
                    return resume(work, login, journal, entry)
                if isinstance(journal, TakeOver):
                    takeover.resume(work, login, journal, entry)
                work.files.clear_journal(journal)
        if not _leads_to_owned(work, entry.path):
            return msgspec.structs.replace(entry, reason="it does not lead to the agent's memory")
        return give_back(work, login, entry)
    except MemdError as reason:
        return failed(entry, reason)


def _says_owned(work: Work, path: bytes) -> bool:
    try:
        return os.readlink(path) == work.enrolment.owned
    except OSError:
        return False


def _leads_to_owned(work: Work, path: bytes) -> bool:
    here = disk.look(path)
    if here is None or not stat.S_ISLNK(here.st_mode):
        return False
    behind, owned = disk.follow(path), disk.look(work.enrolment.owned)
    if behind is None or owned is None:  # with the owned folder gone the link hangs, and is ours all the same
        return behind is None and _says_owned(work, path)
    return (behind.st_dev, behind.st_ino) == (owned.st_dev, owned.st_ino)


def give_back(work: Work, login: ConfigHome, entry: Entry) -> Entry:
    """Turn the entry, a link to the owned folder, into a folder with a copy of it; raises DiskError."""
    holder = open_holder(login, entry.path)
    if holder is None:
        return entry
    with holder:
        journal = GiveBack(path=entry.path, config_home=login.path, copy=disk.temporary_name())
        work.files.write_journal(journal)
        return _give_back(work, holder, journal, entry)


def resume(work: Work, login: ConfigHome, journal: GiveBack, entry: Entry) -> Entry:
    """Finish what was begun; raises DiskError."""
    holder = open_holder(login, journal.path)
    if holder is None:
        work.files.clear_journal(journal)
        return entry
    with holder:
        here, copy = holder.look(ENTRY), holder.look(journal.copy)
        if here is None and copy is not None and stat.S_ISLNK(copy.st_mode):
            holder.move(journal.copy, holder, ENTRY)  # cut off between the renames of an exchange
            here, copy = copy, None
        if here is not None and stat.S_ISLNK(here.st_mode):
            return _give_back(work, holder, journal, entry)
        if here is not None and copy is not None and stat.S_ISLNK(copy.st_mode):
            with holder.folder(ENTRY) as given:
                return _finish(work, holder, None, given, journal, entry)
        work.files.clear_journal(journal)
        return entry


def _give_back(work: Work, holder: Folder, journal: GiveBack, entry: Entry) -> Entry:
    link = inode(holder, ENTRY)
    holder.ensure_folder(journal.copy)
    with holder.folder(journal.copy) as copy, contextlib.ExitStack() as stack:
        owned = open_real(work.enrolment.owned)
        merge = None
        if owned is not None:
            stack.enter_context(owned)
            clean_tree(copy)  # of what a crash left in it
            merge = _merge(work, copy, owned, journal)
            merge.run()
            _refuse_incomplete(owned, merge)
        copy.sync()
        holder.swap(ENTRY, holder, journal.copy)
        if inode(holder, journal.copy) != link:
            holder.swap(journal.copy, holder, ENTRY)
            raise DiskError("exchange", holder.at(ENTRY), OSError(errno.EBUSY, "it changed meanwhile"))
        holder.sync()
        return _finish(work, holder, merge, copy, journal, entry)


def _refuse_incomplete(owned: Folder, merge: Merge) -> None:
    for left in merge.left:
        if left.is_trouble:
            raise Refused(
                f"{shown(owned.at(left.rel))} is not in the copy: {left.reason}", remedy=left.remedy
            )


def _merge(work: Work, copy: Folder, owned: Folder, journal: GiveBack) -> Merge:
    def before_acting(plan: Plan, won: tuple[Won, ...]) -> None:
        work.files.write_journal(msgspec.structs.replace(journal, won=won, steps=plan.steps))

    return Merge(
        copy,
        owned,
        label=OWNED_LABEL,
        folding=work.folding(),
        won=journal.won,
        is_resumed=True,
        is_plain_copy=True,
        before_acting=before_acting,
    )


def _finish(
    work: Work, holder: Folder, merge: Merge | None, given: Folder, journal: GiveBack, entry: Entry
) -> Entry:
    """After the exchange: copy what was written meanwhile, and take the link away."""
    left: tuple[LeftBehind, ...] = ()
    if merge is not None:
        merge.run()
    else:
        owned = open_real(work.enrolment.owned)
        if owned is not None:
            with owned:
                clean_tree(given)
                merge = _merge(work, given, owned, journal)
                merge.run()
    if merge is not None:
        left = left_behind(work.enrolment.owned, merge.left)
    _take_away(work, holder, journal.copy)
    holder.sync()
    work.files.clear_journal(journal)
    return msgspec.structs.replace(
        entry,
        outcome="returned",
        changed=True,
        reason=f"it has {merge.tally.added if merge else 0} notes of its own now",
        left_behind=left,
        healed_at_ms=work.now_ms,
    )


def _take_away(work: Work, holder: Folder, name: bytes) -> None:
    text = holder.read_link(name)
    if text == work.enrolment.owned or text in work.around.targets:
        holder.remove(name)
        return
    for attempt in range(MAX_NUMBER):
        try:
            holder.move(name, holder, aside_name(work.now_ms, attempt))
            return
        except DiskError as reason:
            if reason.errno != errno.EEXIST:
                raise
