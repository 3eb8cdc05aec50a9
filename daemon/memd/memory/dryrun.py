"""What healing an entry would do, in words. Reads the same things and writes nothing."""

from __future__ import annotations

import contextlib
import os

import msgspec

from memctl.paths import shown
from memd import disk
from memd.disk import Folder
from memd.memory.agents import Enrolment
from memd.memory.config_homes import ConfigHome
from memd.memory.decide import Decision, Facts
from memd.memory.home import OwnedPlace
from memd.memory.look import ENTRY, open_holder
from memd.memory.merge import Merge
from memd.memory.names import ASIDE
from memd.memory.record import Record
from memd.memory.report import counted, in_words, left_behind
from memd.memory.sources import open_real
from memd.memory.work import folding_of_home, label
from memd.protocol import Entry


def planned(
    enrolment: Enrolment,
    place: OwnedPlace,
    record: Record,
    login: ConfigHome,
    facts: Facts,
    decision: Decision,
    entry: Entry,
) -> Entry:
    """The result that a run would give for an entry that it would act on; raises DiskError."""
    link = f"link {shown(facts.path)} to {shown(enrolment.owned)}"
    steps = []
    if place.state == "in-login":
        steps.append(f"bring the content of {shown(enrolment.owned)}, a link into a login, home")
    if decision.action in ("link", "replace"):
        folder = os.path.dirname(facts.path)
        if not os.path.isdir(folder):
            steps.append(f"make the folder {shown(folder)}")
        return msgspec.structs.replace(entry, outcome="linked", changed=True, steps=(*steps, link))
    entry = msgspec.structs.replace(entry, outcome="migrated", changed=True)
    with contextlib.ExitStack() as stack:
        source = _source(login, facts, decision)
        if source is not None:
            stack.enter_context(source)
            owned = None
            if place.state == "folder" and (owned := open_real(enrolment.owned)) is not None:
                stack.enter_context(owned)
            known = record.source_at(source.path, source.facts().st_ino)
            merge = Merge(
                owned,
                source,
                label=label(login),
                seen=known.seen_by_rel() if known else {},
                carried_once=record.carried_once() if owned else {},
                folding=folding_of_home(enrolment),
            )
            plan, changes_index = merge.plan()
            steps += in_words(plan, changes_index)
            entry = counted(entry, plan.tally())
            entry = msgspec.structs.replace(entry, left_behind=left_behind(source.path, plan.left))
    aside = f"set {shown(facts.path)} aside as {ASIDE.decode()}"
    return msgspec.structs.replace(entry, steps=(*steps, aside, link))


def _source(login: ConfigHome, facts: Facts, decision: Decision) -> Folder | None:
    if decision.action == "merge-target":
        return disk.open_folder(facts.target)
    if decision.action != "take":
        return None
    holder = open_holder(login, facts.path)
    if holder is None:
        return None
    with holder:
        return holder.folder(ENTRY)
