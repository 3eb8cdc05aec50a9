"""Enrolling agents: what is asked first, what is refused, where the registry stands when something is off."""

from __future__ import annotations

import json
import os

import pytest

from memd.errors import ConfigError, NeedsConfirmation, NotFound, Refused, UsageError
from support_memory import World, leads_to, link, put, read, snapshot


def test_enrolling_twice_is_enrolling_once(world: World) -> None:
    login, agent = world.login(), world.agent()
    first = world.ownership().enroll(agent, confirmed=False, now_ms=world.tick())
    before = snapshot(world.home, world.work, world.data)
    second = world.ownership().enroll(agent, confirmed=False, now_ms=world.tick())
    assert (first.is_new, second.is_new) == (True, False)
    assert first.agent == second.agent == world.ownership().agents()[0]
    assert snapshot(world.home, world.work, world.data) == before
    assert leads_to(world.entry(login, agent), world.owned(agent))


def test_owned_memory_is_kept_out_of_git(world: World) -> None:
    agent = world.agent()
    world.enroll(agent)
    assert b"\n*\n" in read(agent + b"/.memd/.gitignore")


def test_a_gitignore_that_somebody_changed_is_left(world: World) -> None:
    agent = world.agent()
    put(agent + b"/.memd/.gitignore", b"!memory\n")
    world.enroll(agent)
    assert read(agent + b"/.memd/.gitignore") == b"!memory\n"


@pytest.mark.parametrize("inner", [b"repo/deep/inside", b"repo"])
def test_a_worktree_or_subfolder_asks_before_the_repository_is_enrolled(world: World, inner: bytes) -> None:
    repo = world.agent(b"repo")
    path = world.agent(inner, git=False)
    if path == repo:
        world.ownership().enroll(path, confirmed=False, now_ms=world.tick())
        assert [a.home for a in world.ownership().agents()] == [repo]
        return
    with pytest.raises(NeedsConfirmation, match="repo"):
        world.ownership().enroll(path, confirmed=False, now_ms=world.tick())
    assert world.ownership().agents() == ()


def test_a_path_through_a_link_enrols_the_real_directory(world: World) -> None:
    agent = world.agent()
    link(agent, world.top + b"/shortcut")
    done = world.ownership().enroll(world.top + b"/shortcut", confirmed=False, now_ms=world.tick())
    assert done.agent.home == agent


def test_what_is_no_directory_is_not_enrolled(world: World) -> None:
    for path in (world.work + b"/missing", put(world.work + b"/file")):
        with pytest.raises(NotFound):
            world.ownership().enroll(path, confirmed=True, now_ms=world.tick())
    with pytest.raises((NotFound, UsageError)):
        world.ownership().enroll(b"relative", confirmed=True, now_ms=world.tick())
    assert not os.path.exists(world.data)


def test_a_directory_in_a_login_is_refused(world: World) -> None:
    login = world.login()
    os.makedirs(login + b"/agents/one")
    with pytest.raises(Refused, match="login"):
        world.ownership().enroll(login + b"/agents/one", confirmed=True, now_ms=world.tick())
    with pytest.raises(Refused):
        world.ownership().enroll(b"/", confirmed=True, now_ms=world.tick())
    assert world.ownership().agents() == ()


@pytest.mark.parametrize("place", [b"/.memd", b"/.memd/memory"])
def test_something_odd_where_the_owned_folder_belongs_is_refused(world: World, place: bytes) -> None:
    agent = world.agent()
    put(agent + place, b"in the way")
    with pytest.raises(Refused):
        world.ownership().enroll(agent, confirmed=True, now_ms=world.tick())
    assert read(agent + place) == b"in the way" and world.ownership().agents() == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b'{"version": 1, "agents": [{"home": 3}]}',
        b'{"version": 1, "extra": 1}',
        b"\xff",
    ],
)
def test_a_registry_that_is_not_understood_is_never_overwritten(world: World, content: bytes) -> None:
    world.login()
    path = put(world.data + b"/agents.json", content)
    for call in (
        lambda: world.ownership().enroll(world.agent(), confirmed=True, now_ms=1),
        lambda: world.ownership().agents(),
        lambda: world.ownership().heal(now_ms=1),
        lambda: world.ownership().recover(now_ms=1),
    ):
        with pytest.raises(ConfigError) as caught:
            call()
        assert "agents.json" in str(caught.value) and caught.value.remedy
    assert read(path) == content


def test_a_registry_of_another_version_is_refused(world: World) -> None:
    path = put(world.data + b"/agents.json", b'{"version": 2, "homes": []}')
    with pytest.raises(Refused, match="version 2"):
        world.ownership().agents()
    assert read(path) == b'{"version": 2, "homes": []}'


def test_the_registry_has_a_copy_for_people_of_every_path(world: World) -> None:
    agent = world.agent(b"pr\xff\nj")
    world.enroll(agent)
    (row,) = json.loads(read(world.data + b"/agents.json"))["agents"]
    assert row["home_text"].endswith("pr\\xff\\nj") and row["enrolled_at_ms"] > 0
    assert world.ownership().agents()[0].home == agent


def test_a_home_and_login_with_bytes_that_are_no_text(world: World) -> None:
    login, agent = world.login(b".claude-\xff"), world.agent(b"w\xf6rk/proj")
    put(world.entry(login, agent) + b"/n\xe9.md", b"x")
    (entry,) = world.enroll(agent)
    assert entry.outcome == "migrated" and leads_to(entry.path, world.owned(agent))
    assert [e.changed for e in world.heal()] == [False]


def test_a_lost_agent_home_is_told_and_nothing_is_made(world: World) -> None:
    login, agent = world.login(), world.agent()
    world.enroll(agent)
    os.rename(agent, agent + b"-moved")
    before = snapshot(world.home, world.work)
    (entry,) = world.heal()
    assert entry.outcome == "skipped" and "not there" in entry.reason and entry.remedy
    assert snapshot(world.home, world.work) == before
    assert os.path.lexists(world.entry(login, agent))


def test_an_agent_home_that_a_repository_grew_around_is_told(world: World) -> None:
    world.login()
    agent = world.agent(b"repo/agent", git=False)
    world.enroll(agent)
    os.makedirs(world.work + b"/repo/.git")
    (entry,) = world.heal()
    assert entry.outcome == "skipped" and "belongs to the project" in entry.reason


def test_a_dangling_link_to_where_the_owned_folder_was_is_replaced(world: World) -> None:
    login, agent = world.login(), world.agent(b"a-b")
    world.enroll(agent)
    moved = world.work + b"/a/b"
    os.makedirs(world.work + b"/a")
    os.rename(agent, moved)
    assert world.entry(login, agent) == world.entry(login, moved)
    (entry,) = [e for e in world.enroll(moved) if e.agent == moved]
    assert (entry.outcome, entry.changed) == ("linked", True)
    assert leads_to(world.entry(login, moved), world.owned(moved))
    assert os.listdir(os.path.dirname(entry.path)) == [b"memory"]


def test_a_dangling_link_of_another_agent_that_is_away_is_left(world: World) -> None:
    login, agent = world.login(), world.agent(b"a-b")
    world.enroll(agent)
    os.rename(agent, world.top + b"/unmounted")
    other = world.agent(b"a/b")
    entry = next(e for e in world.enroll(other) if e.agent == other)
    assert entry.outcome == "skipped" and "foreign link" in entry.reason
    assert os.readlink(world.entry(login, other)) == world.owned(agent)


def test_seen_config_homes_are_remembered(world: World) -> None:
    agent = world.agent()
    world.enroll(agent)
    far = world.login(b"odd-name", parent=world.top)
    assert world.ownership().config_homes() == ()
    assert [c.path for c in world.ownership().config_homes((far, b"", b"relative"))] == [far]
    assert [c.path for c in world.ownership().config_homes()] == [far]
    (entry,) = world.heal()
    assert entry.config_home == far and leads_to(entry.path, world.owned(agent))


def test_where_says_what_stands_in_every_login(world: World) -> None:
    one, two, agent = world.login(), world.login(b".claude-work"), world.agent()
    world.enroll(agent)
    os.unlink(world.entry(two, agent))
    os.makedirs(agent + b"/deep/er")
    reply = world.ownership().where(agent + b"/deep/er")
    assert (reply.root, reply.owned) == (agent, world.owned(agent))
    assert [(p.config_home, p.state) for p in reply.entries] == [(one, "linked"), (two, "absent")]
    assert world.ownership().where(world.agent(b"other")).owned == b""
