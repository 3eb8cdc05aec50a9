"""Unenrolling: every login gets its own folder back, and nothing depends on memd any more."""

from __future__ import annotations

import os
import shutil

import pytest

from memd import disk
from memd.errors import DiskError, NotFound
from memd.memory import unenroll as unenrolling
from support_memory import World, by_login, leads_to, link, notes, put, read, snapshot, superseded, tree


def test_every_login_gets_a_folder_with_a_copy(world: World) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    put(world.entry(one, agent) + b"/sub/note.md", b"note")
    put(world.entry(one, agent) + b"/MEMORY.md", b"- [N](sub/note.md)\n")
    put(world.owned(agent) + b"/sub/note.md", b"older", ns=1)
    world.enroll(agent)
    before = tree(world.owned(agent))
    done = world.ownership().unenroll(agent, now_ms=world.tick())
    assert {e.outcome for e in done.entries} == {"returned"}
    for login in (one, two):
        assert not os.path.islink(world.entry(login, agent))
        assert tree(world.entry(login, agent)) == before
    assert tree(world.owned(agent)) == before
    assert world.ownership().agents() == () and world.ownership().entries() == ()
    assert not [
        p for p in snapshot(world.home) if os.path.islink(p) or disk.is_temporary(os.path.basename(p))
    ]
    shutil.rmtree(agent)
    assert read(world.entry(two, agent) + b"/sub/note.md") == b"note"


def test_healing_leaves_an_unenrolled_agent_alone(world: World) -> None:
    _, agent = world.login(), world.agent()
    world.enroll(agent)
    world.ownership().unenroll(agent, now_ms=world.tick())
    before = snapshot(world.home, world.work)
    assert world.heal() == () and world.recover() == ()
    assert snapshot(world.home, world.work) == before


def test_enrolling_again_merges_both_sides_without_copies(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"note")
    world.enroll(agent)
    world.ownership().unenroll(agent, now_ms=world.tick())
    put(world.entry(login, agent) + b"/new.md", b"written while it was out")
    world.enroll(agent)
    assert notes(world.owned(agent)) == {b"note.md": b"note", b"new.md": b"written while it was out"}
    assert superseded(world.owned(agent)) == {}


def test_a_link_made_by_hand_to_another_login_stays(world: World) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    put(world.entry(one, agent) + b"/note.md", b"note")
    link(world.entry(one, agent), world.entry(two, agent))
    world.enroll(agent)
    entries = by_login(world.ownership().unenroll(agent, now_ms=world.tick()).entries)
    assert entries[b".claude"].outcome == "returned" and entries[b".claude-work"].outcome == "skipped"
    assert os.readlink(world.entry(two, agent)) == world.entry(one, agent)
    assert read(world.entry(two, agent) + b"/note.md") == b"note"


def test_a_link_made_by_hand_to_the_owned_folder_is_set_aside(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/note.md", b"note")
    text = os.path.relpath(world.owned(agent), os.path.dirname(world.entry(login, agent)))
    link(text, world.entry(login, agent))
    world.enroll(agent)
    world.ownership().unenroll(agent, now_ms=world.tick())
    assert tree(world.entry(login, agent)) == {b"note.md": b"note"}
    assert os.readlink(world.entry(login, agent) + b".pre-shared") == text


def test_what_is_written_while_the_copy_is_made_is_copied_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"note")
    world.enroll(agent)
    swap = disk.Folder.swap

    def swap_and_write(self: disk.Folder, name: bytes, other: disk.Folder, other_name: bytes) -> None:
        put(world.owned(agent) + b"/late.md", b"late")
        swap(self, name, other, other_name)

    monkeypatch.setattr(disk.Folder, "swap", swap_and_write)
    world.ownership().unenroll(agent, now_ms=world.tick())
    assert tree(world.entry(login, agent)) == {b"note.md": b"note", b"late.md": b"late"}


def test_an_agent_that_cannot_leave_stays_enrolled_and_can_try_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    put(world.entry(one, agent) + b"/note.md", b"note")
    world.enroll(agent)

    def full(*_: object) -> None:
        raise DiskError("write", world.entry(two, agent), OSError(28, "No space left on device"))

    with monkeypatch.context() as patch:
        patch.setattr(unenrolling, "give_back", full)
        done = world.ownership().unenroll(agent, now_ms=world.tick())
    assert {e.outcome for e in done.entries} == {"failed"} and all(e.remedy for e in done.entries)
    assert [a.home for a in world.ownership().agents()] == [agent]
    assert {e.outcome for e in world.ownership().entries()} == {"failed"}
    assert world.heal() == ()
    assert leads_to(world.entry(one, agent), world.owned(agent))
    world.recover()
    assert world.ownership().agents() == ()
    assert tree(world.entry(two, agent)) == {b"note.md": b"note"}


def test_an_agent_whose_home_is_gone_can_leave(world: World) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    shutil.rmtree(agent)
    done = world.ownership().unenroll(agent, now_ms=world.tick())
    assert [e.outcome for e in done.entries] == ["returned"]
    assert os.listdir(world.entry(login, agent)) == []
    assert world.ownership().agents() == ()


def test_a_path_that_is_not_enrolled_is_told(world: World) -> None:
    with pytest.raises(NotFound, match="no agent"):
        world.ownership().unenroll(world.agent(), now_ms=world.tick())


def test_a_subfolder_of_the_agent_home_means_the_agent(world: World) -> None:
    agent = world.agent()
    world.enroll(agent)
    os.makedirs(agent + b"/src")
    assert world.ownership().unenroll(agent + b"/src", now_ms=world.tick()).agent.home == agent
