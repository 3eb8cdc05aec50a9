"""What a merge makes of notes of every kind. The numbers group promises that belong together."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from memd import disk
from memd.memory import merge as merging
from memd.memory.ownership import Ownership
from support_memory import (
    OLD_NS,
    World,
    bodies,
    leads_to,
    link,
    notes,
    put,
    read,
    snapshot,
    superseded,
    tree,
)

YEAR_10000_NS = 253_402_300_800 * 10**9


def test_15_the_owned_order_and_lines_stay_when_nothing_won(world: World) -> None:
    login, agent = world.login(), world.agent()
    index = b"# Memory\n\n- [B](b.md) - ours\n- [A](a.md) - ours\n"
    put(world.owned(agent) + b"/MEMORY.md", index)
    put(world.entry(login, agent) + b"/MEMORY.md", b"- [A](a.md) - theirs\n- [C](c.md) - new\n- [B](b.md)\n")
    world.enroll(agent)
    lines = read(world.owned(agent) + b"/MEMORY.md").splitlines()
    assert [x for x in lines if x.startswith(b"-")] == [
        b"- [B](b.md) - ours",
        b"- [A](a.md) - ours",
        b"- [C](c.md) - new",
    ]


def test_21_a_fragment_left_by_a_cut_off_copy_never_wins(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/.memd-0123456789abcdef.tmp", b"the full no")
    put(world.entry(login, agent) + b"/note.md", b"the full note", ns=OLD_NS)
    world.enroll(agent)
    assert notes(world.owned(agent)).get(b"note.md") == b"the full note"
    world.recover()
    assert tree(world.owned(agent)) == {b"note.md": b"the full note"}


def test_23_a_note_written_to_the_old_folder_after_the_merge_gets_into_the_live_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, agent = world.login(), world.agent()
    memory = world.entry(login, agent)
    put(memory + b"/early.md", b"early")
    run = merging.Merge.run

    def run_and_write(self: merging.Merge) -> bool:
        done = run(self)
        if not os.path.islink(memory):
            put(memory + b"/late.md", b"late")
        return done

    monkeypatch.setattr(merging.Merge, "run", run_and_write)
    world.enroll(agent)
    assert notes(world.owned(agent)) == {b"early.md": b"early", b"late.md": b"late"}


def test_23_what_an_open_handle_writes_later_is_merged_by_a_later_run(world: World) -> None:
    login, agent = world.login(), world.agent()
    memory = world.entry(login, agent)
    put(memory + b"/note.md", b"draft", ns=OLD_NS)
    handle = os.open(memory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with open(memory + b"/note.md", "ab") as note:
            world.enroll(agent)
            note.write(b", finished")
        fd = os.open("new.md", os.O_WRONLY | os.O_CREAT, dir_fd=handle)
        os.write(fd, b"through the old folder")
        os.close(fd)
    finally:
        os.close(handle)
    (entry,) = world.heal()
    assert (entry.outcome, entry.changed, entry.added, entry.replaced) == ("linked", True, 1, 1)
    found = notes(world.owned(agent))
    assert found == {b"note.md": b"draft, finished", b"new.md": b"through the old folder"}
    before = snapshot(world.home, world.work, world.state)
    assert [e.changed for e in world.heal()] == [False]
    assert snapshot(world.home, world.work, world.state) == before


@pytest.mark.parametrize("incoming_is_newer", [True, False])
@pytest.mark.parametrize("incoming", ["file", "folder"])
def test_24_a_file_and_a_folder_of_one_name_are_both_kept(
    world: World, incoming: str, incoming_is_newer: bool
) -> None:
    login, agent = world.login(), world.agent()
    memory, owned = world.entry(login, agent), world.owned(agent)
    with_file, with_folder = (memory, owned) if incoming == "file" else (owned, memory)
    put(with_file + b"/topic.md", b"a file")
    put(with_folder + b"/topic.md/inner.md", b"in a folder")
    newer = memory if incoming_is_newer else owned
    os.utime(newer + b"/topic.md", ns=(OLD_NS, OLD_NS))
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and entry.left_behind == ()
    expected = (
        {b"topic.md/inner.md": b"in a folder", b"topic.claude.md": b"a file"}
        if incoming == "file"
        else {b"topic.md": b"a file", b"topic.claude.md/inner.md": b"in a folder"}
    )
    assert tree(owned) == expected
    before = snapshot(world.home, world.work)
    world.heal()
    assert snapshot(world.home, world.work) == before


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("place", ["note.md", "folder", "MEMORY.md", "_superseded"])
def test_25_a_link_sitting_in_the_owned_folder_is_never_written_through(
    world: World, place: str, is_live: bool
) -> None:
    login, agent = world.login(), world.agent()
    memory, owned, outside = world.entry(login, agent), world.owned(agent), world.top + b"/outside"
    put(memory + b"/note.md", b"new", ns=OLD_NS + 1)
    put(memory + b"/other.md", b"older", ns=OLD_NS)
    put(memory + b"/folder/inner.md", b"inner")
    put(memory + b"/MEMORY.md", b"- [N](note.md)\n")
    put(owned + b"/other.md", b"newer", ns=OLD_NS + 1)
    is_folder = place in ("folder", "_superseded")
    if is_live:
        put(outside + b"/kept.md" if is_folder else outside, b"outside")
    os.symlink(outside, owned + b"/" + place.encode())
    before = snapshot(outside)
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated"
    assert snapshot(outside) == before
    everything = bodies(owned)
    assert {b"new", b"older", b"newer", b"inner", b"- [N](note.md)\n"} <= everything
    links = [p for p, facts in snapshot(owned).items() if stat.S_ISLNK(facts[1])]  # type: ignore[arg-type]
    assert [os.readlink(p) for p in links] == [outside]
    if is_live:
        assert os.readlink(owned + b"/" + place.encode()) == outside
    else:
        assert not os.path.islink(owned + b"/" + place.encode())
    settled = snapshot(world.home, world.work)
    world.heal()
    assert snapshot(world.home, world.work) == settled


@pytest.mark.parametrize("length", [225, 251, 252, 255])
def test_26_notes_with_long_names_that_collide_are_both_kept(world: World, length: int) -> None:
    login, agent = world.login(), world.agent()
    name = b"n" * (length - 3) + b".md"
    put(world.owned(agent) + b"/" + name, b"older", ns=OLD_NS)
    put(world.entry(login, agent) + b"/" + name, b"newer", ns=OLD_NS + 1)
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and entry.left_behind == ()
    assert notes(world.owned(agent)) == {name: b"newer"}
    ((kept, body),) = superseded(world.owned(agent)).items()
    assert body == b"older" and len(os.path.basename(kept)) <= 255


def test_26_notes_with_odd_names_are_carried(world: World) -> None:
    login, agent = world.login(), world.agent()
    names = (b"a\nb.md", b"a(1).md", b"two words.md", b"caf\xe9.md", b"-rf", b"*", b".hidden", b"\xff\xfe")
    for name in names:
        put(world.entry(login, agent) + b"/" + name, b"body of " + name)
        put(world.owned(agent) + b"/" + name, b"older " + name, ns=OLD_NS)
    world.enroll(agent)
    assert notes(world.owned(agent)) == {name: b"body of " + name for name in names}
    assert set(superseded(world.owned(agent)).values()) == {b"older " + name for name in names}


def test_27_equal_times_keep_the_owned_copy_and_one_nanosecond_decides(world: World) -> None:
    one, two, agent = world.login(b".claude-a"), world.login(b".claude-b"), world.agent()
    ns = OLD_NS + 123_456_789
    put(world.entry(one, agent) + b"/tie.md", b"first", ns=ns)
    put(world.entry(two, agent) + b"/tie.md", b"second", ns=ns)
    put(world.entry(one, agent) + b"/later.md", b"first", ns=ns)
    put(world.entry(two, agent) + b"/later.md", b"second", ns=ns + 1)
    world.enroll(agent)
    assert notes(world.owned(agent)) == {b"tie.md": b"first", b"later.md": b"second"}
    assert os.stat(world.owned(agent) + b"/tie.md").st_mtime_ns == ns


@pytest.mark.parametrize("ns", [-1, -(10**18), 4_102_444_800 * 10**9, YEAR_10000_NS, 2**62])
def test_27_absurd_times_are_merged_without_trouble(world: World, ns: int) -> None:
    login, agent = world.login(), world.agent()
    for folder, body in ((world.owned(agent), b"ours"), (world.entry(login, agent), b"theirs")):
        put(folder + b"/note.md", body, ns=ns)
        put(folder + b"/other.md", body, ns=OLD_NS if body == b"ours" else ns)
    put(world.entry(login, agent) + b"/new.md", b"new", ns=ns)
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and entry.left_behind == ()
    assert notes(world.owned(agent))[b"note.md"] == b"ours"
    assert {b"ours", b"theirs", b"new"} <= bodies(world.owned(agent))
    assert [e.changed for e in world.heal()] == [False]


def test_28_odd_index_lines_give_one_line_per_file(world: World) -> None:
    login, agent = world.login(), world.agent()
    owned, memory = world.owned(agent), world.entry(login, agent)
    for name in (b"a b.md", b"a(1).md", b"n.md"):
        put(memory + b"/" + name, b"body")
    put(owned + b"/MEMORY.md", b"# M\n\n- [S](a%20b.md)\n- [P](a\\(1\\).md)\n- [N](n.md#part)")
    index = "\ufeff# M\r\n\r\n- [S](<a b.md>)\r\n- [P](a(1).md)\r\n- [N](./n.md)\r\n- [\xff](x.md)\r\n"
    put(memory + b"/MEMORY.md", index.encode("latin-1", "replace") + b"- \xff\xfe bytes\r\n")
    world.enroll(agent)
    text = read(owned + b"/MEMORY.md")
    for key in (b"a%20b.md", b"a\\(1\\).md", b"n.md#part"):
        assert text.count(key) == 1
    assert b"<a b.md>" not in text and b"./n.md" not in text
    assert b"\xff\xfe bytes" in text


def test_28_an_index_that_brings_nothing_is_not_rewritten(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/MEMORY.md", b"- [A](a.md)\n", ns=OLD_NS)
    put(world.entry(login, agent) + b"/MEMORY.md", b"- [A](a.md)")
    before = snapshot(world.owned(agent) + b"/MEMORY.md")
    world.enroll(agent)
    assert snapshot(world.owned(agent) + b"/MEMORY.md") == before
    assert superseded(world.owned(agent)) == {}


def test_28_lines_for_notes_that_stayed_behind_do_not_get_into_the_index(world: World) -> None:
    login, agent = world.login(), world.agent()
    memory = world.entry(login, agent)
    put(world.top + b"/secret.md", b"outside")
    put(memory + b"/good.md", b"good")
    link(world.top + b"/secret.md", memory + b"/linked.md")
    put(memory + b"/MEMORY.md", b"- [Good](good.md)\n- [Linked](linked.md)\n")
    (entry,) = world.enroll(agent)
    assert read(world.owned(agent) + b"/MEMORY.md") == b"- [Good](good.md)\n"
    (left,) = entry.left_behind
    assert left.path == entry.set_aside + b"/linked.md" and "link" in left.reason and left.remedy
    assert b"outside" not in bodies(agent)


def test_28_an_index_past_the_part_that_is_read_is_warned_about(world: World) -> None:
    login, agent = world.login(), world.agent()
    for folder, half in ((world.owned(agent), b"a"), (world.entry(login, agent), b"b")):
        put(folder + b"/MEMORY.md", b"".join(b"- [%b%d](%b%d.md)\n" % (half, n, half, n) for n in range(100)))
    (entry,) = world.enroll(agent)
    assert "200 lines" in entry.reason and entry.remedy
    (entry,) = world.heal()
    assert "200 lines" in entry.reason
    put(world.owned(agent) + b"/MEMORY.md", b"- [a1](a1.md)\n")
    (entry,) = world.heal()
    assert entry.reason == ""


def test_links_within_the_folder_are_copied_as_content(world: World) -> None:
    login, agent = world.login(), world.agent()
    memory = world.entry(login, agent)
    put(memory + b"/sub/real.md", b"content")
    link(b"sub/real.md", memory + b"/relative.md")
    link(memory + b"/sub/real.md", memory + b"/absolute.md")
    link(b"../relative.md", memory + b"/sub/chain.md")
    link(b"sub", memory + b"/folder")
    link(b"../../x/../../../etc/passwd", memory + b"/out.md")
    link(b"loop", memory + b"/loop")
    (entry,) = world.enroll(agent)
    found = tree(world.owned(agent))
    assert found == dict.fromkeys(
        (b"sub/real.md", b"relative.md", b"absolute.md", b"sub/chain.md"), b"content"
    )
    assert not any(os.path.islink(world.owned(agent) + b"/" + name) for name in found)
    names = sorted(os.path.basename(left.path) for left in entry.left_behind)
    assert names == [b"folder", b"loop", b"out.md"]


def test_devices_and_fifos_stay_behind_and_the_rest_goes_on(world: World) -> None:
    login, agent = world.login(), world.agent()
    memory = world.entry(login, agent)
    put(memory + b"/z.md", b"z")
    os.mkfifo(memory + b"/fifo")
    (entry,) = world.enroll(agent)
    assert tree(world.owned(agent)) == {b"z.md": b"z"}
    assert [left.path for left in entry.left_behind] == [entry.set_aside + b"/fifo"]
    (told,) = world.heal()
    assert told.left_behind == entry.left_behind and not told.changed
    os.unlink(entry.set_aside + b"/fifo")
    (told,) = world.heal()
    assert told.left_behind == ()


def test_modes_of_notes_are_kept_and_folders_are_private(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/sub/shared.md", b"x", mode=0o664)
    put(world.entry(login, agent) + b"/script", b"x", mode=0o4755)
    world.enroll(agent)
    owned = world.owned(agent)
    assert stat.S_IMODE(os.stat(owned + b"/sub/shared.md").st_mode) == 0o664
    assert stat.S_IMODE(os.stat(owned + b"/script").st_mode) == 0o755
    assert stat.S_IMODE(os.stat(owned).st_mode) == stat.S_IMODE(os.stat(owned + b"/sub").st_mode) == 0o700


def test_history_that_comes_in_keeps_its_own_names(world: World) -> None:
    login, agent = world.login(), world.agent()
    memory, owned = world.entry(login, agent), world.owned(agent)
    put(memory + b"/_superseded/a.md.x.2026", b"one", ns=OLD_NS + 5)
    put(memory + b"/_superseded/b.md.x.2026", b"incoming", ns=OLD_NS + 5)
    put(owned + b"/_superseded/b.md.x.2026", b"owned", ns=OLD_NS)
    world.enroll(agent)
    assert tree(owned) == {
        b"_superseded/a.md.x.2026": b"one",
        b"_superseded/b.md.x.2026": b"owned",
        b"_superseded/b.md.x.2026.2": b"incoming",
    }


def test_what_was_deleted_on_purpose_does_not_return(world: World) -> None:
    one, agent = world.login(), world.agent()
    put(world.entry(one, agent) + b"/gone.md", b"not wanted any more", ns=OLD_NS)
    put(world.entry(one, agent) + b"/MEMORY.md", b"- [Gone](gone.md)\n- [Kept](kept.md)\n")
    put(world.entry(one, agent) + b"/kept.md", b"kept")
    world.enroll(agent)
    owned = world.owned(agent)
    os.unlink(owned + b"/gone.md")
    put(owned + b"/MEMORY.md", b"- [Kept](kept.md)\n")
    world.heal()
    world.recover()
    two = world.login(b".claude-work")
    put(world.entry(two, agent) + b"/gone.md", b"not wanted any more", ns=OLD_NS)
    put(world.entry(two, agent) + b"/MEMORY.md", b"- [Gone](gone.md)\n- [New](new.md)\n")
    put(world.entry(two, agent) + b"/new.md", b"new")
    world.heal()
    assert notes(owned) == {
        b"MEMORY.md": b"- [Kept](kept.md)\n- [New](new.md)\n",
        b"kept.md": b"kept",
        b"new.md": b"new",
    }


def test_a_note_written_anew_after_it_was_deleted_is_taken(world: World) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    put(world.entry(one, agent) + b"/note.md", b"same words", ns=OLD_NS)
    world.enroll(agent)
    os.unlink(world.owned(agent) + b"/note.md")
    os.unlink(world.entry(two, agent))
    put(world.entry(two, agent) + b"/note.md", b"same words", ns=(world.now_ms + 60_000) * 10**6)
    world.heal()
    assert notes(world.owned(agent)) == {b"note.md": b"same words"}


def test_an_owned_folder_that_is_given_up_is_filled_from_what_was_set_aside(
    world: World,
) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"kept aside")
    world.enroll(agent)
    os.unlink(world.owned(agent) + b"/note.md")
    os.rmdir(world.owned(agent))
    world.enroll(agent)
    assert notes(world.owned(agent)) == {b"note.md": b"kept aside"}
    assert leads_to(world.entry(login, agent), world.owned(agent))


def test_a_lost_state_folder_loses_no_note_and_makes_no_copies(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"new", ns=OLD_NS + 1)
    put(world.owned(agent) + b"/note.md", b"old", ns=OLD_NS)
    world.enroll(agent)
    before = snapshot(world.home, world.work)
    fresh = Ownership(home=world.home, data=world.data, state=world.top + b"/another-state")
    assert [e.outcome for e in fresh.recover(now_ms=world.tick())] == ["linked"]
    assert snapshot(world.home, world.work) == before


def test_32_names_that_turn_out_to_be_one_are_both_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/note.md", b"owned", ns=OLD_NS)
    put(world.entry(login, agent) + b"/Note.md", b"incoming", ns=OLD_NS + 1)
    move = disk.Folder.move

    def fold(self: disk.Folder, name: bytes, to: disk.Folder, new: bytes) -> None:
        if to.path == world.owned(agent) and new.lower() in (n.lower() for n in to.names()):
            raise disk.DiskError("move", to.at(new), FileExistsError(errno.EEXIST, "File exists"))
        move(self, name, to, new)

    monkeypatch.setattr(disk.Folder, "move", fold)
    (entry,) = world.enroll(agent)
    assert (entry.outcome, entry.replaced, entry.left_behind) == ("migrated", 1, ())
    assert notes(world.owned(agent)) == {b"note.md": b"incoming"}
    assert list(superseded(world.owned(agent)).values()) == [b"owned"]


def test_a_history_on_another_file_system_leaves_the_note_behind_and_links(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/note.md", b"owned", ns=OLD_NS)
    put(world.entry(login, agent) + b"/note.md", b"incoming", ns=OLD_NS + 1)
    put(world.entry(login, agent) + b"/other.md", b"other", ns=OLD_NS + 1)
    swap = disk.Folder.swap

    def apart(self: disk.Folder, name: bytes, other: disk.Folder, other_name: bytes) -> None:
        if other.path.endswith(b"_superseded"):
            raise disk.DiskError("exchange", self.at(name), OSError(errno.EXDEV, "Invalid cross-device link"))
        swap(self, name, other, other_name)

    with monkeypatch.context() as patch:
        patch.setattr(disk.Folder, "swap", apart)
        (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and leads_to(entry.path, world.owned(agent))
    assert [(b.path, b.remedy.split()[0]) for b in entry.left_behind] == [
        (entry.set_aside + b"/note.md", "Unmount")
    ]
    assert tree(world.owned(agent)) == {b"note.md": b"owned", b"other.md": b"other"}
    (entry,) = world.heal()
    assert (entry.replaced, entry.left_behind) == (1, ())
    assert notes(world.owned(agent))[b"note.md"] == b"incoming"


def test_an_unreadable_note_is_left_behind_and_taken_when_it_can_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, agent = world.login(), world.agent()
    memory = world.entry(login, agent)
    put(memory + b"/locked.md", b"locked", ns=OLD_NS)
    put(memory + b"/open.md", b"open", ns=OLD_NS)
    put(memory + b"/MEMORY.md", b"- [L](locked.md)\n- [O](open.md)\n")
    chunks = disk.Folder.chunks

    def denied(self: disk.Folder, name: bytes) -> object:
        if name == b"locked.md":
            raise disk.DiskError("read", self.at(name), PermissionError(errno.EACCES, "Permission denied"))
        return chunks(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(disk.Folder, "chunks", denied)
        (entry,) = world.enroll(agent)
        assert [b.path for b in entry.left_behind] == [entry.set_aside + b"/locked.md"]
        assert notes(world.owned(agent)) == {b"open.md": b"open", b"MEMORY.md": b"- [O](open.md)\n"}
        before = snapshot(world.state)
        assert world.heal()[0].left_behind == entry.left_behind
        assert snapshot(world.state) == before
    os.chmod(entry.set_aside + b"/locked.md", 0o600)
    (entry,) = world.heal()
    assert (entry.added, entry.left_behind) == (1, ())
    assert notes(world.owned(agent))[b"locked.md"] == b"locked"
    assert b"[L](locked.md)" in notes(world.owned(agent))[b"MEMORY.md"]


def test_what_is_kept_is_told_with_its_size(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/note.md", b"owned", ns=OLD_NS)
    put(world.entry(login, agent) + b"/note.md", b"incoming", ns=OLD_NS + 1)
    assert world.ownership().kept() == ()
    (entry,) = world.enroll(agent)
    kept = {k.path: (k.files, k.size_bytes) for k in world.ownership().kept()}
    assert kept == {entry.set_aside: (1, 8), world.owned(agent) + b"/_superseded": (1, 5)}
