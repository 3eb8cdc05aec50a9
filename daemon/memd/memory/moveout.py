"""Bringing the owned folder home, when it is a link into a login: data that lives in a login dies with it.

The content is put together in a new folder beside the link, then the two are exchanged, and what was written
meanwhile is merged. The link is set aside. What the login has stays there: where it is an entry of that
login, it is healed like any other.
"""

from __future__ import annotations

import errno
import os
import stat

import msgspec

from memctl.paths import shown
from memd import disk
from memd.disk import Folder
from memd.errors import DiskError, Refused
from memd.memory import home
from memd.memory.acting import Won
from memd.memory.journal import MoveOut
from memd.memory.leftovers import clean_tree
from memd.memory.merge import Merge
from memd.memory.names import MAX_NUMBER, aside_name, label_of
from memd.memory.owned import inode
from memd.memory.plan import Plan
from memd.memory.sources import open_real
from memd.memory.work import Work


def move_out(work: Work) -> None:
    """Make the owned folder a real one; raises DiskError."""
    enrolment = work.enrolment
    place = home.inspect(enrolment.home, enrolment.owned, work.around.logins)
    if place.state != "in-login":
        return
    journal = MoveOut(path=enrolment.owned, copy=disk.temporary_name(), source=place.target)
    work.files.write_journal(journal)
    with home.open_parent(enrolment.home, enrolment.owned) as holder:
        _move_out(work, holder, journal)


def resume_move_out(work: Work, journal: MoveOut) -> None:
    """Finish what was begun; raises DiskError."""
    name = os.path.basename(journal.path)
    with home.open_parent(work.enrolment.home, work.enrolment.owned) as holder:
        here, copy = holder.look(name), holder.look(journal.copy)
        if here is None and copy is not None and stat.S_ISLNK(copy.st_mode):
            holder.move(journal.copy, holder, name)  # cut off between the renames of an exchange
            here, copy = copy, None
        if here is not None and stat.S_ISLNK(here.st_mode):
            _move_out(work, holder, journal)
        elif copy is not None and stat.S_ISLNK(copy.st_mode):
            with holder.folder(name) as owned:
                _finish(work, holder, _merge(work, owned, journal), owned, journal)
        else:
            work.files.clear_journal(journal)


def _move_out(work: Work, holder: Folder, journal: MoveOut) -> None:
    name = os.path.basename(journal.path)
    link = inode(holder, name)
    holder.ensure_folder(journal.copy)
    with holder.folder(journal.copy) as copy:
        clean_tree(copy)  # of what a crash left in it
        merge = _merge(work, copy, journal)
        holder.swap(name, holder, journal.copy)
        if inode(holder, journal.copy) != link:
            holder.swap(journal.copy, holder, name)
            raise DiskError("exchange", holder.at(name), OSError(errno.EBUSY, "it changed meanwhile"))
        holder.sync()
        _finish(work, holder, merge, copy, journal)


def _merge(work: Work, copy: Folder, journal: MoveOut) -> Merge | None:
    """Copy what the login has; None when that is gone."""
    source = open_real(journal.source) if journal.source else None
    if source is None:
        return None

    def before_acting(plan: Plan, won: tuple[Won, ...]) -> None:
        work.files.write_journal(msgspec.structs.replace(journal, won=won, steps=plan.steps))

    with source:
        merge = Merge(
            copy, source, label=label_of(source.path), folding=work.folding(), before_acting=before_acting
        )
        merge.run()
        for left in merge.left:
            if left.is_trouble:
                raise Refused(f"{shown(source.at(left.rel))} cannot be brought home: {left.reason}")
    return merge


def _finish(work: Work, holder: Folder, merge: Merge | None, owned: Folder, journal: MoveOut) -> None:
    """After the exchange: merge what was written meanwhile, set the link aside, remember."""
    source = open_real(journal.source) if merge is not None else None
    if source is not None:
        with source:
            again = Merge(owned, source, label=label_of(source.path), seen=merge.seen if merge else {})
            again.run()
            work.note_merged(again, source, source.path, b"", label_of(source.path))
    for attempt in range(MAX_NUMBER):
        try:
            holder.move(journal.copy, holder, aside_name(work.now_ms, attempt))
            break
        except DiskError as reason:
            if reason.errno != errno.EEXIST:
                raise
    holder.sync()
    work.save()
    work.files.clear_journal(journal)
