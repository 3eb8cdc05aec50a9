"""An owned folder that is synced: conflict copies are merged and kept, and while it is away memd waits."""

from __future__ import annotations

import os
import time

import pytest

from memd import disk
from memd.memory.ownership import Ownership
from memd.memory.record import Records
from support_memory import OLD_NS, World, leads_to, notes, put, read, snapshot, superseded, tree

MARK = b".sync-conflict-20260203-101500-ABCDEFG"
OLD_STAMP = b"2023-11-14T22-13-20-000Z"


@pytest.fixture
def owned(world: World) -> bytes:
    world.login()
    agent = world.agent()
    world.enroll(agent)
    return world.owned(agent)


def test_a_later_copy_has_the_name_and_both_texts_are_kept(world: World, owned: bytes) -> None:
    put(owned + b"/note.md", b"ours", ns=OLD_NS)
    put(owned + b"/note" + MARK + b".md", b"theirs", ns=OLD_NS + 10**9)
    (entry,) = world.heal()
    assert notes(owned) == {b"note.md": b"theirs"}
    assert superseded(owned) == {
        b"_superseded/note.md.agent." + OLD_STAMP: b"ours",
        b"_superseded/note.md.conflict.2023-11-14T22-13-21-000Z": b"theirs",
    }
    assert (entry.outcome, entry.changed, entry.replaced) == ("linked", True, 1)


def test_an_earlier_copy_is_kept_once_as_it_is(world: World, owned: bytes) -> None:
    put(owned + b"/note.md", b"ours", ns=OLD_NS + 1)
    copy = put(owned + b"/note" + MARK + b".md", b"theirs", ns=OLD_NS, mode=0o640)
    facts = os.stat(copy)
    (entry,) = world.heal()
    assert notes(owned) == {b"note.md": b"ours"}
    kept = b"_superseded/note.md.conflict." + OLD_STAMP
    assert superseded(owned) == {kept: b"theirs"}
    there = os.stat(owned + b"/" + kept)
    assert (there.st_ino, there.st_mode, there.st_mtime_ns) == (
        facts.st_ino,
        facts.st_mode,
        facts.st_mtime_ns,
    )
    assert entry.superseded == 1


def test_lines_of_an_index_copy_are_merged_and_those_of_a_note_that_won_follow_it(
    world: World, owned: bytes
) -> None:
    put(owned + b"/MEMORY.md", b"# M\n\n- [A](a.md) - old words\n- [O](ours.md)\n", ns=OLD_NS)
    put(owned + b"/ours.md", b"o")
    put(owned + b"/a.md", b"old", ns=OLD_NS)
    put(owned + b"/a" + MARK + b".md", b"new", ns=OLD_NS + 1)
    put(owned + b"/theirs.md", b"t")
    text = b"# M\n\n- [A](a.md) - new words\n- [T](theirs.md)\n"
    put(owned + b"/MEMORY" + MARK + b".md", text, ns=OLD_NS + 1)
    world.heal()
    assert (
        read(owned + b"/MEMORY.md") == b"# M\n\n- [A](a.md) - new words\n- [O](ours.md)\n- [T](theirs.md)\n"
    )
    assert set(notes(owned)) == {b"MEMORY.md", b"a.md", b"ours.md", b"theirs.md"}
    assert text in superseded(owned).values()


@pytest.mark.parametrize(
    "name",
    [
        b"deep/er/note.sync-conflict-20260203-101500-ABCDEFG.md",
        b"deep/er/note (laptop's conflicted copy 2026-02-03).md",
        b"deep/er/note (conflicted copy 2026-02-03 101500).md",
        b"deep/er/note.md (SFConflict me@example.org 2026-02-03-10-15-00)",
    ],
)
def test_a_copy_in_a_subfolder_is_merged_and_kept_below_the_same_folder(
    world: World, owned: bytes, name: bytes
) -> None:
    put(owned + b"/deep/er/note.md", b"ours", ns=OLD_NS + 1)
    put(owned + b"/" + name, b"theirs", ns=OLD_NS)
    world.heal()
    assert notes(owned) == {b"deep/er/note.md": b"ours"}
    assert superseded(owned) == {b"_superseded/deep/er/note.md.conflict." + OLD_STAMP: b"theirs"}


def test_a_copy_whose_note_is_gone_brings_it_back_unless_it_was_deleted_here(
    world: World, owned: bytes
) -> None:
    login = world.home + b"/.claude-two"
    agent = os.path.dirname(os.path.dirname(owned))
    put(world.entry(world.login(b".claude-two"), agent) + b"/deleted.md", b"carried", ns=OLD_NS)
    world.heal()
    assert leads_to(world.entry(login, agent), owned)
    os.unlink(owned + b"/deleted.md")
    put(owned + b"/deleted" + MARK + b".md", b"carried", ns=OLD_NS)
    put(owned + b"/gone" + MARK + b".md", b"only here", ns=OLD_NS)
    world.heal()
    assert notes(owned) == {b"gone.md": b"only here"}
    assert set(superseded(owned).values()) == {b"carried", b"only here"}


def test_several_copies_of_one_note_leave_the_last_words_and_keep_every_one(
    world: World, owned: bytes
) -> None:
    put(owned + b"/n.md", b"0", ns=OLD_NS)
    for number in range(1, 9):
        put(
            owned + b"/n.sync-conflict-2026020%d-101500-ABCDEFG.md" % number,
            b"%d" % number,
            ns=OLD_NS + number,
        )
    world.heal()
    assert notes(owned) == {b"n.md": b"8"}
    assert set(superseded(owned).values()) == {b"%d" % number for number in range(9)}


def test_a_second_look_changes_nothing_and_takes_no_lock(world: World, owned: bytes) -> None:
    put(owned + b"/note.md", b"ours", ns=OLD_NS)
    put(owned + b"/note" + MARK + b".md", b"theirs", ns=OLD_NS + 1)
    put(owned + b"/MEMORY" + MARK + b".md", b"- [N](note.md)\n")
    world.heal()
    before = snapshot(world.home, world.work)
    with Records(world.state).of(os.path.dirname(os.path.dirname(owned))).lock():
        assert [(e.outcome, e.changed) for e in world.heal()] == [("linked", False)]
    assert snapshot(world.home, world.work) == before


def test_two_machines_that_merge_the_same_copies_end_with_the_same_files(world: World, owned: bytes) -> None:
    other = world.agent(b"other")
    world.enroll(other)
    for folder in (owned, world.owned(other)):
        put(folder + b"/note.md", b"ours", ns=OLD_NS)
        put(folder + b"/note" + MARK + b".md", b"theirs", ns=OLD_NS + 10**9)
        put(folder + b"/MEMORY.md", b"- [N](note.md) - ours\n", ns=OLD_NS)
        put(folder + b"/MEMORY" + MARK + b".md", b"- [N](note.md) - theirs\n", ns=OLD_NS + 10**9)
        world.heal(cwd=os.path.dirname(os.path.dirname(folder)))
    assert tree(owned) == tree(world.owned(other))
    assert len(tree(owned)) == 6


@pytest.mark.parametrize(
    "name",
    [
        b".syncthing.LICENSE.sync-conflict-20260203-101500-ABCDEFG.tmp",
        b"~syncthing~note.sync-conflict-20260203-101500-ABCDEFG.md.tmp",
        b".syncthing.note.md.tmp",
        b".stversions/note.sync-conflict-20260203-101500-ABCDEFG.md",
    ],
)
def test_what_a_syncing_program_has_not_finished_or_has_put_by_is_left_alone(
    world: World, owned: bytes, name: bytes
) -> None:
    put(owned + b"/" + name, b"half", ns=OLD_NS)
    before = snapshot(world.home, world.work)
    world.heal()
    assert snapshot(world.home, world.work) == before


def test_a_copy_that_came_a_moment_ago_waits_for_the_next_look(world: World, owned: bytes) -> None:
    put(owned + b"/note.md", b"ours", ns=OLD_NS)
    put(owned + b"/note" + MARK + b".md", b"half of", ns=OLD_NS + 1)
    before = snapshot(world.home, world.work)
    now_ms = time.time_ns() // 1_000_000
    world.ownership().heal(now_ms=now_ms)
    assert snapshot(world.home, world.work) == before
    world.ownership().heal(now_ms=now_ms + 10_000)
    assert notes(owned) == {b"note.md": b"half of"}


def test_a_copy_that_is_written_while_it_is_merged_keeps_what_was_written(
    world: World, owned: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(owned + b"/note.md", b"ours", ns=OLD_NS + 1)
    copy = put(owned + b"/note" + MARK + b".md", b"half", ns=OLD_NS)
    move, written = disk.Folder.move, []

    def late(self: disk.Folder, name: bytes, to: disk.Folder, new: bytes) -> None:
        if not written and MARK in name:
            written.append(put(copy, b"half and half"))
        move(self, name, to, new)

    monkeypatch.setattr(disk.Folder, "move", late)
    world.heal()
    assert written
    assert notes(owned) == {b"note.md": b"half and half"}
    assert set(superseded(owned).values()) == {b"ours", b"half and half"}


def test_the_index_waits_for_a_copy_of_a_note_that_is_not_at_rest(world: World, owned: bytes) -> None:
    now_ms = time.time_ns() // 1_000_000
    put(owned + b"/MEMORY.md", b"- [A](a.md) - old words\n", ns=OLD_NS)
    put(owned + b"/MEMORY" + MARK + b".md", b"- [A](a.md) - new words\n", ns=OLD_NS + 1)
    put(owned + b"/a.md", b"old", ns=OLD_NS)
    young = put(owned + b"/a" + MARK + b".md", b"new", ns=(now_ms + 60_000) * 10**6)
    before = snapshot(world.home, world.work)
    world.ownership().heal(now_ms=now_ms + 60_000)
    assert snapshot(world.home, world.work) == before
    world.ownership().heal(now_ms=now_ms + 70_000)
    assert notes(owned) == {b"MEMORY.md": b"- [A](a.md) - new words\n", b"a.md": b"new"}
    assert not os.path.lexists(young)


@pytest.mark.parametrize("where", ["copy", "note"])
def test_a_merge_that_git_left_open_is_told_and_left_until_it_is_finished(
    world: World, owned: bytes, where: str
) -> None:
    marked = b"<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"
    note = put(owned + b"/note.md", marked if where == "note" else b"ours", ns=OLD_NS)
    copy = put(owned + b"/note" + MARK + b".md", marked if where == "copy" else b"theirs", ns=OLD_NS + 1)
    before = snapshot(world.home, world.work)
    (entry,) = world.heal()
    assert snapshot(world.home, world.work) == before
    assert [(left.path, "git left a merge open" in left.reason) for left in entry.left_behind] == [
        (copy, True)
    ]
    put(note if where == "note" else copy, b"decided", ns=OLD_NS + 2)
    (entry,) = world.heal()
    assert notes(owned) == {b"note.md": b"decided"} and entry.left_behind == ()


def test_a_copy_that_cannot_be_kept_stays_and_is_told(world: World, owned: bytes) -> None:
    put(owned + b"/_superseded", b"a file where the folder belongs", ns=OLD_NS)
    put(owned + b"/note.md", b"ours", ns=OLD_NS + 1)
    copy = put(owned + b"/note" + MARK + b".md", b"theirs", ns=OLD_NS)
    before = tree(owned)
    (entry,) = world.heal()
    assert {b"ours", b"theirs", b"a file where the folder belongs"} <= set(tree(owned).values())
    assert [left.path for left in entry.left_behind] == [copy] and entry.left_behind[0].remedy
    assert before.items() <= tree(owned).items()


def test_a_dry_run_names_the_copies_and_writes_nothing(world: World, owned: bytes) -> None:
    put(owned + b"/note.md", b"ours")
    put(owned + b"/note" + MARK + b".md", b"theirs")
    before = snapshot(world.home, world.work, world.state)
    (entry,) = world.heal(dry_run=True)
    assert [("conflict copy note.sync" in step, "into note.md" in step) for step in entry.steps] == [
        (True, True)
    ]
    assert snapshot(world.home, world.work, world.state) == before


def test_copies_are_merged_where_no_login_is(world: World) -> None:
    agent = world.agent()
    world.enroll(agent)
    put(world.owned(agent) + b"/note" + MARK + b".md", b"theirs", ns=OLD_NS)
    assert world.heal() == ()
    assert notes(world.owned(agent)) == {b"note.md": b"theirs"}


# -------------------------------------------------------------------------------- away


@pytest.mark.parametrize("gone", [b"/.memd/memory", b"/.memd"])
@pytest.mark.parametrize("again", ["heal", "recover", "dry-run", "state lost"])
def test_a_folder_that_is_away_is_waited_for_and_nothing_is_made_meanwhile(
    world: World, gone: bytes, again: str
) -> None:
    one, two, agent = world.login(), world.login(b".claude-two"), world.agent()
    put(world.entry(one, agent) + b"/note.md", b"x")
    world.enroll(agent)
    owned = world.owned(agent)
    put(owned + b"/later.md", b"y")
    os.unlink(world.entry(two, agent))
    put(world.entry(two, agent) + b"/new.md", b"z")
    os.rename(agent + gone, world.top + b"/swapped-out")
    before = snapshot(world.home, world.work)
    if again == "state lost":
        fresh = Ownership(home=world.home, data=world.data, state=world.top + b"/another-state")
        entries = fresh.recover(now_ms=world.tick())
    elif again == "recover":
        entries = world.recover()
    else:
        entries = world.heal(dry_run=again == "dry-run")
    assert snapshot(world.home, world.work) == before
    assert [(e.outcome, e.reason.startswith("away: "), bool(e.remedy)) for e in entries] == [
        ("skipped", True, True)
    ] * 2
    os.rename(world.top + b"/swapped-out", agent + gone)
    world.heal()
    assert notes(owned) == {b"note.md": b"x", b"later.md": b"y", b"new.md": b"z"}
    assert all(leads_to(world.entry(login, agent), owned) for login in (one, two))
    assert {e.outcome for e in world.ownership().entries()} == {"linked"}


def test_a_folder_that_goes_between_the_look_and_the_work_is_not_made(
    world: World, owned: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, login = os.path.dirname(os.path.dirname(owned)), world.home + b"/.claude"
    os.unlink(world.entry(login, agent))
    put(owned + b"/note.md", b"x")
    from memd.memory import home

    def swapped(top: bytes, path: bytes) -> disk.Folder:
        if os.path.isdir(owned):
            os.rename(owned, world.top + b"/swapped-out")
        return opened(top, path)

    opened = home.open_known
    with monkeypatch.context() as patch:
        patch.setattr(home, "open_known", swapped)
        (entry,) = world.heal()
    assert entry.outcome == "skipped" and entry.reason.startswith("away: ")
    assert not os.path.lexists(owned) and not os.path.lexists(world.entry(login, agent))
    os.rename(world.top + b"/swapped-out", owned)
    assert [(e.outcome, e.changed) for e in world.heal()] == [("linked", True)]
    assert notes(world.entry(login, agent)) == {b"note.md": b"x"}


def test_work_that_was_cut_off_goes_on_when_the_folder_is_back(
    world: World, owned: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, login = os.path.dirname(os.path.dirname(owned)), world.home + b"/.claude"
    os.unlink(world.entry(login, agent))
    put(world.entry(login, agent) + b"/note.md", b"x")

    class Cut(BaseException):
        pass

    def cut(*_: object) -> None:
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(disk.Folder, "swap", cut)
        with pytest.raises(Cut):
            world.heal()
    os.rename(owned, world.top + b"/swapped-out")
    before = snapshot(world.home, world.work)
    world.heal()
    assert snapshot(world.home, world.work) == before
    os.rename(world.top + b"/swapped-out", owned)
    world.heal()
    assert leads_to(world.entry(login, agent), owned) and notes(owned) == {b"note.md": b"x"}


def test_the_first_folder_of_an_agent_is_made_as_ever(world: World) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    assert leads_to(world.entry(login, agent), world.owned(agent))
    late = world.agent(b"late")
    world.enroll(late)
    assert os.path.isdir(world.owned(late))
