"""What is remembered between runs, what is watched, what a dry run says, and what locks are for."""

from __future__ import annotations

import os
import threading

import pytest

from memd import disk
from memd.errors import TryAgain
from memd.memory.record import Records
from memd.memory.sources import WATCHED_MS
from support_memory import OLD_NS, World, by_login, leads_to, link, notes, put, read, snapshot


def test_results_are_known_after_a_restart(world: World) -> None:
    login, spare, agent = world.login(), world.login(b".claude-spare"), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"x")
    os.mkfifo(world.entry(login, agent) + b"/fifo")
    put(world.entry(spare, agent), b"a stray file")
    told = by_login(world.enroll(agent))
    known = by_login(world.ownership().entries())
    assert set(known) == set(told)
    entry = known[b".claude"]
    assert (entry.outcome, entry.changed, entry.healed_at_ms) == ("linked", False, world.now_ms)
    assert entry.set_aside == told[b".claude"].set_aside
    assert entry.left_behind == told[b".claude"].left_behind != ()
    assert known[b".claude-spare"].outcome == "skipped" and known[b".claude-spare"].reason


def test_looking_writes_nothing(world: World) -> None:
    world.login()
    owner = world.ownership()
    owner.agents(), owner.entries(), owner.config_homes(), owner.watch_points()
    owner.heal(now_ms=1)
    owner.recover(now_ms=1)
    assert not os.path.exists(world.state) and not os.path.exists(world.data)


def test_a_dry_run_says_everything_and_writes_nothing(world: World) -> None:
    names = (b".claude", b".claude-abs", b".claude-file", b".claude-link", b".claude-was")
    logins = dict(zip(names, map(world.login, names), strict=True))
    agent = world.agent()
    world.ownership().enroll(agent, confirmed=True, now_ms=world.tick())
    for login in logins.values():
        os.unlink(world.entry(login, agent))
    put(world.owned(agent) + b"/both.md", b"older", ns=OLD_NS)
    memory = world.entry(logins[b".claude"], agent)
    put(memory + b"/both.md", b"newer", ns=OLD_NS + 1)
    put(memory + b"/new.md", b"new")
    put(memory + b"/MEMORY.md", b"- [N](new.md)\n")
    os.mkfifo(memory + b"/fifo")
    os.rmdir(os.path.dirname(world.entry(logins[b".claude-abs"], agent)))
    put(world.entry(logins[b".claude-file"], agent), b"x")
    link(b"/nowhere", world.entry(logins[b".claude-link"], agent))
    put(agent + b"/old/kept.md", b"old")
    link(agent + b"/old", world.entry(logins[b".claude-was"], agent))
    before = snapshot(world.home, world.work, world.state, world.data)

    entries = by_login(world.heal(dry_run=True))

    assert snapshot(world.home, world.work, world.state, world.data) == before
    full = entries[b".claude"]
    assert (full.outcome, full.changed, full.added, full.replaced) == ("migrated", True, 1, 1)
    steps = "\n".join(full.steps)
    for words in ("copy new.md", "replace both.md", "merge the index", "leave fifo behind", "set ", "link "):
        assert words in steps
    assert [b.path for b in full.left_behind] == [memory + b"/fifo"]
    assert entries[b".claude-abs"].steps[0].startswith("make the folder")
    assert entries[b".claude-file"].outcome == "skipped" and not entries[b".claude-file"].steps
    assert entries[b".claude-link"].outcome == "migrated"
    assert any("copy kept.md" in step for step in entries[b".claude-was"].steps)
    done = by_login(world.heal())
    for name, entry in entries.items():
        assert (entry.outcome, entry.changed, entry.added) == (
            done[name].outcome,
            done[name].changed,
            done[name].added,
        )


def test_a_dry_run_before_there_is_an_owned_folder(world: World) -> None:
    agent = world.agent()
    world.enroll(agent)
    os.rmdir(world.owned(agent))
    login = world.login()
    put(world.entry(login, agent) + b"/MEMORY.md", b"- [A](a.md)\n")
    (entry,) = world.heal(dry_run=True)
    assert entry.outcome == "migrated" and "merge the index MEMORY.md" in entry.steps
    assert not os.path.exists(world.owned(agent))


@pytest.mark.parametrize("name", ["record.json", "known.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"entries": 1, "targets": 1}', b"\xff\x00"])
def test_state_that_is_not_understood_is_put_aside_and_the_work_goes_on(
    world: World, name: str, content: bytes
) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"x")
    world.enroll(agent)
    (path,) = [p for p in snapshot(world.state) if p.endswith(b"/" + name.encode())]
    put(path, content)
    put(world.entry(login, agent) + b"/other.md", b"y")
    os.unlink(world.entry(login, agent))
    world.ownership().config_homes((world.login(b"far", parent=world.top),))
    world.heal()
    assert leads_to(world.entry(login, agent), world.owned(agent))
    assert notes(world.owned(agent)) == {b"note.md": b"x", b"other.md": b"y"}
    assert read(path) != content
    assert read(path + b".unreadable-1") == content


def test_journals_that_are_not_understood_stop_nothing(world: World) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    folder = os.path.dirname(next(p for p in snapshot(world.state) if p.endswith(b"record.json")))
    put(folder + b"/journal-0.json", b"{")
    os.unlink(world.entry(login, agent))
    world.recover()
    assert leads_to(world.entry(login, agent), world.owned(agent))


def test_what_was_set_aside_is_looked_at_for_a_week(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"x")
    (entry,) = world.enroll(agent)
    world.now_ms += WATCHED_MS
    put(entry.set_aside + b"/too-late.md", b"y")
    assert [e.changed for e in world.heal()] == [False]
    assert notes(world.owned(agent)) == {b"note.md": b"x"}


def test_a_set_aside_folder_that_was_deleted_stops_nothing(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"x")
    (entry,) = world.enroll(agent)
    os.rename(entry.set_aside, world.top + b"/taken-away")
    assert [(e.outcome, e.changed) for e in world.heal()] == [("linked", False)]
    put(entry.set_aside + b"/another.md", b"somebody else's folder of that name")
    assert [e.changed for e in world.heal()] == [False]


def test_a_real_folder_made_again_by_a_session_is_healed_again(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"one", ns=OLD_NS)
    first = world.enroll(agent)[0]
    os.unlink(world.entry(login, agent))
    put(world.entry(login, agent) + b"/note.md", b"two")
    (second,) = world.heal()
    assert second.outcome == "migrated" and second.set_aside != first.set_aside
    assert notes(world.owned(agent)) == {b"note.md": b"two"}
    assert read(first.set_aside + b"/note.md") == b"one"


def test_a_login_that_appears_is_linked_and_one_that_is_made_again_too(world: World) -> None:
    agent = world.agent()
    assert world.enroll(agent) == ()
    login = world.login(b".claude-late")
    assert [e.outcome for e in world.heal()] == ["linked"]
    os.rename(login, world.top + b"/removed")
    assert world.heal() == ()
    world.login(b".claude-late")
    assert [(e.outcome, e.changed) for e in world.heal()] == [("linked", True)]


def test_only_the_agent_that_a_directory_belongs_to_is_healed(world: World) -> None:
    login, one, two = world.login(), world.agent(b"one"), world.agent(b"two")
    world.enroll(one)
    world.enroll(two)
    os.unlink(world.entry(login, one))
    os.unlink(world.entry(login, two))
    os.makedirs(one + b"/src/deep")
    assert [e.agent for e in world.heal(cwd=one + b"/src/deep")] == [one]
    assert os.path.lexists(world.entry(login, one)) and not os.path.lexists(world.entry(login, two))


# ---------------------------------------------------------------------------- watching


def test_watch_points_are_the_real_folders_in_which_things_appear(world: World) -> None:
    one, agent = world.login(), world.agent()
    real = world.login(b"linked-login", parent=world.top)
    os.symlink(real, world.home + b"/.claude-linked")
    missing = world.top + b"/not/there/yet"
    world.enroll(agent)
    points = world.ownership(configured=(missing,)).watch_points()
    assert set(points) == {
        world.home,
        world.top,
        *(login + part for login in (one, real) for part in (b"", b"/projects")),
        os.path.dirname(world.entry(one, agent)),
        os.path.dirname(world.entry(real, agent)),
    }
    assert all(os.path.isdir(point) and os.path.realpath(point) == point for point in points)


def test_a_folder_that_may_become_a_login_is_watched(world: World) -> None:
    world.enroll(world.agent())
    young = world.home + b"/.claude-young"
    os.makedirs(young)
    assert young in world.ownership().watch_points()
    os.makedirs(young + b"/projects/odd")
    assert young + b"/projects" in world.ownership().watch_points()
    put(young + b"/.credentials.json", b"{}")
    assert [e.config_home for e in world.heal()] == [young]


def test_watch_points_never_lead_out_of_a_login(world: World) -> None:
    login, agent = world.login(), world.agent()
    os.makedirs(world.top + b"/outside")
    os.symlink(world.top + b"/outside", login + b"/projects")
    world.enroll(agent)
    assert world.top + b"/outside" not in world.ownership().watch_points()


# ------------------------------------------------------------------------------- locks


def test_an_agent_that_another_process_works_on_is_told(world: World) -> None:
    agent = world.agent()
    files = Records(world.state).of(agent)
    with files.lock(), pytest.raises(TryAgain, match="another memd"), files.lock(wait_s=0):
        raise AssertionError("two at a time")


def test_healing_waits_for_the_lock_and_then_finds_it_done(world: World) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    os.unlink(world.entry(login, agent))
    results: list[bool] = []
    with Records(world.state).of(agent).lock():
        other = threading.Thread(target=lambda: results.extend(e.changed for e in world.heal()))
        other.start()
        os.symlink(world.owned(agent), world.entry(login, agent))
    other.join(20)
    assert results == [False]


def test_a_lookup_that_finds_all_well_takes_no_lock(world: World) -> None:
    _, agent = world.login(), world.agent()
    world.enroll(agent)
    with Records(world.state).of(agent).lock():
        assert [e.outcome for e in world.heal()] == ["linked"]


def test_trouble_with_one_entry_stops_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, agent = world.login(b".claude-a"), world.login(b".claude-b"), world.agent()
    world.ownership().enroll(agent, confirmed=True, now_ms=world.tick())
    for login in (one, two):
        os.unlink(world.entry(login, agent))
        put(world.entry(login, agent) + b"/note.md", os.path.basename(login))
    swap = disk.Folder.swap

    def busy(self: disk.Folder, name: bytes, other: disk.Folder, other_name: bytes) -> None:
        if self.path.startswith(one):
            raise disk.DiskError("exchange", self.at(name), OSError(16, "Device or resource busy"))
        swap(self, name, other, other_name)

    with monkeypatch.context() as patch:
        patch.setattr(disk.Folder, "swap", busy)
        entries = by_login(world.heal())
    assert entries[b".claude-a"].outcome == "failed" and "Unmount" in entries[b".claude-a"].remedy
    assert entries[b".claude-b"].outcome == "migrated"
    assert sorted(os.listdir(os.path.dirname(world.entry(one, agent)))) == [b"memory"]
    assert {e.outcome for e in world.ownership().entries()} == {"failed", "linked"}
    assert {e.outcome for e in world.heal()} == {"migrated", "linked"}


def test_an_entry_that_changes_all_the_time_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    os.unlink(world.entry(login, agent))
    make = disk.Folder.make_link

    def taken(self: disk.Folder, text: bytes, name: bytes) -> None:
        os.mkdir(world.entry(login, agent))
        try:
            make(self, text, name)
        finally:
            os.rmdir(world.entry(login, agent))

    monkeypatch.setattr(disk.Folder, "make_link", taken)
    (entry,) = world.heal()
    assert entry.outcome == "failed" and "changes" in entry.reason
