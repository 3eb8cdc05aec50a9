"""What becomes of an entry, whatever stands there. The numbers group promises that belong together."""

from __future__ import annotations

import os
import socket

import pytest

from memd import disk
from memd.errors import NeedsConfirmation
from memd.memory.key import project_key
from support_memory import (
    OLD_NS,
    World,
    by_login,
    leads_to,
    link,
    notes,
    put,
    read,
    snapshot,
    superseded,
    tree,
)

# ------------------------------------------------------------------------ 1 to 11


def test_01_an_absent_entry_becomes_a_link_to_the_owned_folder(world: World) -> None:
    login, agent = world.login(), world.agent()
    (entry,) = world.enroll(agent)
    assert (entry.outcome, entry.changed) == ("linked", True)
    assert os.readlink(world.entry(login, agent)) == world.owned(agent)
    assert os.path.isdir(world.owned(agent))


def test_02_a_note_written_under_one_login_is_read_under_the_other(world: World) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    world.enroll(agent)
    put(world.entry(one, agent) + b"/note.md", b"shared")
    assert read(world.entry(two, agent) + b"/note.md") == b"shared"


def test_03_a_right_link_is_left_alone(world: World) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    before = snapshot(world.home, world.work, world.state)
    (entry,) = world.heal()
    assert (entry.outcome, entry.changed) == ("linked", False)
    assert snapshot(world.home, world.work, world.state) == before
    assert os.listdir(os.path.dirname(world.entry(login, agent))) == [b"memory"]


@pytest.mark.parametrize("text", ["relative", "through a link", "with a slash", "with dots"])
def test_03_a_right_link_in_another_spelling_is_left_alone(world: World, text: str) -> None:
    login, agent = world.login(), world.agent()
    entry, owned = world.entry(login, agent), world.owned(agent)
    os.makedirs(owned)
    os.symlink(agent, world.top + b"/shortcut")
    spelling = {
        "relative": os.path.relpath(owned, os.path.dirname(entry)),
        "through a link": world.top + b"/shortcut/.memd/memory",
        "with a slash": owned + b"/",
        "with dots": owned + b"/../memory/.",
    }[text]
    link(spelling, entry)
    before = snapshot(world.home)
    assert [e.outcome for e in world.enroll(agent)] == ["linked"]
    assert snapshot(world.home) == before


def test_04_a_link_into_another_agents_folder_is_left_and_nothing_is_copied(world: World) -> None:
    login, agent, other = world.login(), world.agent(), world.agent(b"other")
    put(world.owned(other) + b"/theirs.md", b"theirs")
    link(world.owned(other), world.entry(login, agent))
    (entry,) = world.enroll(agent)
    assert entry.outcome == "skipped" and "foreign link" in entry.reason and entry.remedy
    assert os.readlink(world.entry(login, agent)) == world.owned(other)
    assert tree(world.owned(agent)) == {}


def test_05_a_stale_link_inside_the_agent_home_is_merged_and_its_target_kept(world: World) -> None:
    login, agent = world.login(), world.agent()
    old = agent + b"/old-memory"
    put(old + b"/note.md", b"from before")
    before = snapshot(old)
    link(old, world.entry(login, agent))
    (entry,) = world.enroll(agent)
    assert (entry.outcome, entry.added) == ("migrated", 1)
    assert os.readlink(entry.set_aside) == old
    assert snapshot(old) == before
    assert notes(world.owned(agent)) == {b"note.md": b"from before"}
    assert leads_to(world.entry(login, agent), world.owned(agent))


def test_06_a_full_merge(world: World) -> None:
    login, agent = world.login(b".claude-work"), world.agent()
    memory, owned = world.entry(login, agent), world.owned(agent)
    for folder, name, body, age in (
        (memory, b"login-newer.md", b"new from login", 9),
        (owned, b"login-newer.md", b"old from agent", 1),
        (memory, b"agent-newer.md", b"old from login", 1),
        (owned, b"agent-newer.md", b"new from agent", 9),
        (memory, b"equal.md", b"equal", 1),
        (owned, b"equal.md", b"equal", 9),
        (memory, b"login-only.md", b"login only", 1),
        (owned, b"agent-only.md", b"agent only", 1),
    ):
        put(folder + b"/" + name, body, ns=OLD_NS + age)
    put(owned + b"/MEMORY.md", b"# M\n\n- [A](agent-newer.md) - agent's\n- [L](login-newer.md) - agent's\n")
    put(memory + b"/MEMORY.md", b"# M\n\n- [L](login-newer.md) - login's\n- [A](agent-newer.md) - login's\n")
    before = tree(memory)

    (entry,) = world.enroll(agent)

    assert (entry.added, entry.replaced, entry.superseded, entry.unchanged) == (1, 1, 1, 1)
    found = notes(owned)
    assert found[b"login-newer.md"] == b"new from login"
    assert found[b"agent-newer.md"] == b"new from agent"
    assert {b"equal.md", b"login-only.md", b"agent-only.md"} < set(found)
    assert found[b"MEMORY.md"].splitlines()[2:] == [
        b"- [A](agent-newer.md) - agent's",
        b"- [L](login-newer.md) - login's",
    ]
    kept = superseded(owned)
    assert kept.pop(b"_superseded/login-newer.md.agent.2023-11-14T22-13-20-000Z") == b"old from agent"
    assert kept.pop(b"_superseded/agent-newer.md.claude-work.2023-11-14T22-13-20-000Z") == b"old from login"
    ((name, body),) = kept.items()
    assert name.startswith(b"_superseded/MEMORY.md.agent.") and b"agent's\n- [L]" in body
    assert entry.set_aside == os.path.dirname(memory) + b"/memory.pre-shared"
    assert tree(entry.set_aside) == before


def test_07_a_taken_set_aside_name_is_not_touched(world: World) -> None:
    login, agent = world.login(), world.agent()
    folder = os.path.dirname(world.entry(login, agent))
    put(folder + b"/memory/note.md", b"now")
    put(folder + b"/memory.pre-shared/note.md", b"earlier")
    (entry,) = world.enroll(agent)
    assert entry.set_aside.startswith(folder + b"/memory.pre-shared-2026-")
    assert read(folder + b"/memory.pre-shared/note.md") == b"earlier"
    assert read(entry.set_aside + b"/note.md") == b"now"
    assert notes(world.owned(agent)) == {b"note.md": b"now"}


def test_07_a_set_aside_name_taken_by_a_dangling_link_is_not_touched(world: World) -> None:
    login, agent = world.login(), world.agent()
    folder = os.path.dirname(world.entry(login, agent))
    put(folder + b"/memory/note.md", b"now")
    link(b"/nowhere", folder + b"/memory.pre-shared")
    (entry,) = world.enroll(agent)
    assert os.readlink(folder + b"/memory.pre-shared") == b"/nowhere"
    assert read(entry.set_aside + b"/note.md") == b"now"


def test_08_a_second_run_after_a_migration_changes_nothing(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.entry(login, agent) + b"/note.md", b"x")
    put(world.entry(login, agent) + b"/MEMORY.md", b"- [N](note.md)\n")
    put(world.owned(agent) + b"/MEMORY.md", b"- [O](other.md)\n")
    world.enroll(agent)
    before = snapshot(world.home, world.work, world.state)
    (entry,) = world.heal()
    assert (entry.outcome, entry.changed) == ("linked", False)
    assert entry.set_aside and entry.healed_at_ms
    assert snapshot(world.home, world.work, world.state) == before


def test_09_a_project_that_is_not_enrolled_is_not_touched(world: World) -> None:
    login, agent, other = world.login(), world.agent(), world.agent(b"other")
    put(world.entry(login, other) + b"/note.md", b"not yours")
    world.enroll(agent)
    before = snapshot(world.entry(login, other), other)
    assert world.heal(cwd=other) == ()
    assert snapshot(world.entry(login, other), other) == before
    empty = world.login(b".claude-new")
    world.ownership().heal(cwd=other, now_ms=world.tick())
    assert not os.path.exists(empty + b"/projects")


def test_10_a_missing_config_home_is_skipped_and_not_created(world: World) -> None:
    agent = world.agent()
    missing = world.home + b"/.claude-gone"
    assert world.enroll(agent, configured=(missing,)) == ()
    assert world.ownership(configured=(missing,)).heal(now_ms=world.tick()) == ()
    assert not os.path.exists(missing)


def test_11_a_temporary_agent_does_not_get_into_a_real_login(world: World) -> None:
    login, agent = world.login(), world.agent()
    (entry,) = world.enroll(agent, temp_roots=(world.work,))
    assert entry.outcome == "skipped" and "temporary" in entry.reason
    assert not os.path.exists(login + b"/projects")


@pytest.mark.parametrize("roots", [("work", "home"), ("home",), ()])
def test_11_other_pairs_of_temporary_and_real_are_allowed(world: World, roots: tuple[str, ...]) -> None:
    world.login()
    temporary = tuple(world.top + b"/" + root.encode() for root in roots)
    (entry,) = world.enroll(world.agent(), temp_roots=temporary)
    assert (entry.outcome, entry.changed) == ("linked", True)


def test_11_a_temporary_folder_that_holds_the_home_turns_nothing_off(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", os.fsdecode(world.home))
    world.login()
    (entry,) = world.enroll(world.agent())
    assert entry.outcome == "linked"


# ------------------------------------------------------------------------ 14 to 17


def test_14_another_projects_entry_stays_a_real_folder(world: World) -> None:
    login, agent, other = world.login(), world.agent(), world.agent(b"proj/inner")
    put(world.entry(login, other) + b"/note.md", b"inner")
    before = snapshot(world.entry(login, other))
    world.enroll(agent)
    world.heal()
    assert snapshot(world.entry(login, other)) == before


def test_16_all_logins_are_linked_in_one_run(world: World) -> None:
    logins = [world.login(name) for name in (b".claude", b".claude-work", b".claude2", b".claude_x")]
    agent = world.agent()
    put(world.entry(logins[2], agent) + b"/note.md", b"only here")
    entries = by_login(world.enroll(agent))
    assert {e.outcome for e in entries.values()} == {"linked", "migrated"}
    assert entries[b".claude2"].outcome == "migrated"
    for login in logins:
        assert leads_to(world.entry(login, agent), world.owned(agent))
        assert read(world.entry(login, agent) + b"/note.md") == b"only here"


def test_17_the_first_run_reports_what_it_did_and_the_second_nothing(world: World) -> None:
    one, _, agent = world.login(), world.login(b".claude-work"), world.agent()
    put(world.entry(one, agent) + b"/note.md", b"x")
    assert sorted(e.outcome for e in world.enroll(agent) if e.changed) == ["linked", "migrated"]
    assert [e for e in world.heal() if e.changed] == []


# ----------------------------------------------------------------------- 20 to 23


def test_20_an_empty_real_folder_is_set_aside(world: World) -> None:
    login, agent = world.login(), world.agent()
    os.makedirs(world.entry(login, agent))
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and os.listdir(entry.set_aside) == []
    assert leads_to(world.entry(login, agent), world.owned(agent))


@pytest.mark.parametrize("text", [b"/nowhere/at/all", b"memory"])
def test_20_a_dangling_link_or_a_loop_is_set_aside(world: World, text: bytes) -> None:
    login, agent = world.login(), world.agent()
    link(text, world.entry(login, agent))
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and os.readlink(entry.set_aside) == text
    assert leads_to(world.entry(login, agent), world.owned(agent))


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_20_a_link_out_of_the_agent_home_is_reported(world: World, kind: str) -> None:
    login, agent = world.login(), world.agent()
    target = world.top + b"/elsewhere"
    put(target + b"/note.md" if kind == "folder" else target, b"theirs")
    link(target, world.entry(login, agent))
    before = snapshot(world.home, target)
    (entry,) = world.enroll(agent)
    assert entry.outcome == "skipped" and "foreign link" in entry.reason
    assert snapshot(world.home, target) == before


@pytest.mark.parametrize("kind", ["file", "fifo", "socket"])
def test_20_what_is_neither_folder_nor_link_is_reported_and_left(world: World, kind: str) -> None:
    login, agent = world.login(), world.agent()
    path = world.entry(login, agent)
    os.makedirs(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX) as sock:
        if kind == "socket":
            os.chdir(os.path.dirname(path))
            sock.bind("memory")
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            put(path, b"a stray file")
        before = snapshot(world.home)
        (entry,) = world.enroll(agent)
        assert entry.outcome == "skipped" and "no folder" in entry.reason and entry.remedy
        assert snapshot(world.home) == before


@pytest.mark.parametrize("name", ["projects", "key"])
def test_20_a_config_home_or_a_parent_that_is_a_file_is_reported(world: World, name: str) -> None:
    login, agent = world.login(), world.agent()
    key_folder = os.path.dirname(world.entry(login, agent))
    path = os.path.dirname(key_folder) if name == "projects" else key_folder
    put(path, b"in the way")
    (entry,) = world.enroll(agent)
    assert entry.outcome == "skipped" and os.path.basename(path).decode() in entry.reason
    assert read(path) == b"in the way"


def test_20_a_config_home_that_is_a_file_is_no_login(world: World) -> None:
    path = put(world.home + b"/.claude-file", b"x")
    assert world.enroll(world.agent(), configured=(path,)) == ()


def test_20_an_agent_inside_a_bigger_repository_means_the_repository(world: World) -> None:
    login, repo = world.login(), world.agent(b"repo")
    inner = world.agent(b"repo/agents/one", git=False)
    with pytest.raises(NeedsConfirmation) as caught:
        world.ownership().enroll(inner, confirmed=False, now_ms=world.tick())
    assert caught.value.path == repo
    assert not os.path.exists(repo + b"/.memd") and world.ownership().agents() == ()
    done = world.ownership().enroll(inner, confirmed=True, now_ms=world.tick())
    assert done.agent.home == repo
    assert leads_to(world.entry(login, repo), world.owned(repo))
    assert not os.path.exists(inner + b"/.memd")


def test_20_a_key_folder_that_is_a_link_within_the_login_is_gone_through(world: World) -> None:
    login, agent = world.login(), world.agent()
    entry = world.entry(login, agent)
    real = login + b"/projects/kept-here"
    put(real + b"/memory/note.md", b"x")
    link(b"kept-here", os.path.dirname(entry))
    (told,) = world.enroll(agent)
    assert told.outcome == "migrated"
    assert leads_to(real + b"/memory", world.owned(agent)) and os.path.islink(os.path.dirname(entry))
    assert notes(world.owned(agent)) == {b"note.md": b"x"}


def test_20_a_key_folder_that_leads_out_of_the_login_is_reported(world: World) -> None:
    login, agent = world.login(), world.agent()
    outside = world.top + b"/outside"
    put(outside + b"/memory/note.md", b"x")
    link(outside, os.path.dirname(world.entry(login, agent)))
    before = snapshot(outside, world.home)
    (told,) = world.enroll(agent)
    assert told.outcome == "skipped" and "leads out" in told.reason
    assert snapshot(outside, world.home) == before


def test_20_a_projects_folder_shared_with_another_login_is_healed_once(world: World) -> None:
    one, two, agent = world.login(b".claude-a"), world.login(b".claude-b"), world.agent()
    put(world.entry(two, agent) + b"/note.md", b"x")
    link(two + b"/projects", one + b"/projects")
    entries = by_login(world.enroll(agent))
    assert entries[b".claude-a"].outcome == "linked" and entries[b".claude-b"].outcome == "migrated"
    assert read(world.entry(one, agent) + b"/note.md") == b"x"
    assert superseded(world.owned(agent)) == {}


def long_agent(world: World) -> bytes:
    return world.agent(b"/".join([b"very-long-name-of-a-folder"] * 8))


@pytest.mark.parametrize("older", [0, 1, 2])
def test_19_the_folder_of_a_long_path_is_the_one_that_is_there(world: World, older: int) -> None:
    login, agent = world.login(), long_agent(world)
    key = project_key(agent).encode()
    assert len(key) > 200
    found = [login + b"/projects/" + key[:201] + b"old%d" % n for n in range(older)]
    for folder in found:
        put(folder + b"/memory/note.md", b"x")
    (entry,) = world.enroll(agent)
    assert entry.outcome == ("linked", "migrated", "skipped")[older]
    if older == 2:
        assert "folders share" in entry.reason and tree(world.owned(agent)) == {}
    else:
        folder = found[0] if found else login + b"/projects/" + key
        assert leads_to(folder + b"/memory", world.owned(agent))
        assert os.listdir(login + b"/projects") == [os.path.basename(folder)]


@pytest.mark.parametrize("kind", ["absent", "folder", "link"])
def test_20_a_read_only_login_is_reported(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    login, agent = world.login(), world.agent()
    path = world.entry(login, agent)
    os.makedirs(os.path.dirname(path))
    if kind == "folder":
        put(path + b"/note.md", b"x")
    elif kind == "link":
        link(b"/nowhere", path)
    before = snapshot(world.home)
    monkeypatch.setattr(disk.Folder, "is_writable", lambda self: False)
    (entry,) = world.enroll(agent)
    assert entry.outcome == "skipped" and "read-only" in entry.reason and entry.remedy
    assert snapshot(world.home) == before and tree(world.owned(agent)) == {}


def test_29_a_link_to_more_than_a_memory_folder_is_refused(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(agent + b"/.git/config", b"secret")
    put(agent + b"/.instar/config.json", b"secret")
    for target in (agent, agent + b"/.instar", agent + b"/.memd", agent + b"/.git", world.work, b"/"):
        os.makedirs(target, exist_ok=True)
        path = world.entry(login, agent)
        link(target, path)
        (entry,) = world.enroll(agent)
        assert entry.outcome == "skipped", target
        assert os.readlink(path) == target
        os.unlink(path)
    assert tree(world.owned(agent)) == {}


def test_29_an_owned_folder_of_instar_is_kept_and_a_link_to_its_parent_refused(world: World) -> None:
    login, agent = world.login(), world.agent()
    owned = agent + b"/.instar/agent-memory"
    put(owned + b"/note.md", b"kept")
    link(agent + b"/.instar", world.entry(login, agent))
    (entry,) = world.enroll(agent)
    assert entry.outcome == "skipped" and "refused" in entry.reason
    os.unlink(world.entry(login, agent))
    world.heal()
    assert os.readlink(world.entry(login, agent)) == owned
    assert not os.path.exists(agent + b"/.memd")


def test_30_an_owned_folder_that_is_a_link_into_a_login_is_brought_home(world: World) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    memory, owned = world.entry(one, agent), world.owned(agent)
    put(memory + b"/note.md", b"lives in the login")
    link(memory, owned)
    link(owned, world.entry(two, agent))
    entries = by_login(world.enroll(agent))
    assert os.path.isdir(owned) and not os.path.islink(owned)
    assert notes(owned) == {b"note.md": b"lives in the login"}
    assert entries[b".claude"].outcome == "migrated"
    assert leads_to(memory, owned) and leads_to(world.entry(two, agent), owned)
    assert superseded(owned) == {}
    before = snapshot(world.home, world.work, world.state)
    world.heal()
    assert snapshot(world.home, world.work, world.state) == before


def test_30_an_owned_folder_that_is_any_other_link_is_reported(world: World) -> None:
    world.login()
    agent = world.agent()
    world.enroll(agent)
    os.rmdir(world.owned(agent))
    os.makedirs(world.top + b"/drive")
    link(world.top + b"/drive", world.owned(agent))
    (entry,) = world.heal()
    assert entry.outcome == "skipped" and "is a link" in entry.reason and entry.remedy
    assert os.listdir(world.top + b"/drive") == []


def test_31_an_empty_folder_leaves_no_superseded_copies(world: World) -> None:
    login, agent = world.login(), world.agent()
    put(world.owned(agent) + b"/MEMORY.md", b"- [A](a.md)\n")
    os.makedirs(world.entry(login, agent))
    world.enroll(agent)
    assert tree(world.owned(agent)) == {b"MEMORY.md": b"- [A](a.md)\n"}


def test_33_a_linked_login_counts_once_and_other_tools_are_left_alone(world: World) -> None:
    agent = world.agent()
    real = world.login(b"claude-real", parent=world.top)
    os.symlink(real, world.home + b"/.claude")
    os.symlink(real, world.home + b"/.claude-again")
    for other in (b".claude-mem", b".claude-backup", b".claude-notes"):
        os.makedirs(world.home + b"/" + other)
    entries = world.enroll(agent)
    assert [e.outcome for e in entries] == ["linked"]
    assert leads_to(world.entry(real, agent), world.owned(agent))
    for other in (b".claude-mem", b".claude-backup", b".claude-notes"):
        assert os.listdir(world.home + b"/" + other) == []


@pytest.mark.parametrize("kind", ["folder", "absent"])
def test_34_foreign_transcripts_beside_the_entry_are_reported(world: World, kind: str) -> None:
    login, agent, other = world.login(), world.agent(b"a-b"), world.agent(b"a/b")
    assert project_key(agent) == project_key(other)
    entry = world.entry(login, agent)
    put(os.path.dirname(entry) + b"/x.jsonl", b'{"cwd": "%b", "type": "user"}\n' % other)
    if kind == "folder":
        put(entry + b"/note.md", b"the other's")
    before = snapshot(login)
    (told,) = world.enroll(agent)
    assert told.outcome == "skipped" and os.fsdecode(other) in told.reason and told.remedy
    assert snapshot(login) == before
    assert tree(world.owned(agent)) == {}
