"""Inputs that have broken real tools, with what must become of them; the cases lie under `tests/cases`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.memory.index import index_keys
from memd.protocol import Entry
from support_cases import build, expectation
from support_memory import World, bodies, by_login, leads_to, read, snapshot, superseded, tree


def healed(world: World, agent: bytes) -> dict[bytes, Entry]:
    return by_login(world.enroll(agent))


def made(world: World, case: str) -> dict[str, str]:
    """Build a case in the world's folders."""
    return build(case, Path(os.fsdecode(world.top)))


@pytest.mark.parametrize("enrolled", ["both", "only the second"])
def test_two_agents_with_one_key_do_not_get_each_others_notes(world: World, enrolled: str) -> None:
    expected = expectation("01-two-agents-one-key")
    printed = made(world, "01-two-agents-one-key")
    first, second = os.fsencode(printed["healed"]), os.fsencode(printed["heal_now"])
    world.login(b".claude-spare")
    if enrolled == "both":
        assert healed(world, first)[b".claude"].outcome == "linked"
    before = snapshot(first, second)
    link = world.entry(world.home + b"/.claude", second)
    text = os.readlink(link)

    entries = healed(world, second)

    assert entries[b".claude"].outcome == "skipped" and expected["reports"] in entries[b".claude"].reason
    assert os.readlink(link) == text == world.top + b"/" + expected["link_still_points_to"].encode()
    assert snapshot(first, second) == before
    for path in expected["absent"]:
        assert not os.path.lexists(world.top + b"/" + path.encode())
    outcome = entries[b".claude-spare"].outcome
    assert outcome == ("skipped" if enrolled == "both" else "linked")


def test_a_hand_made_link_between_logins_is_left_and_right_after_the_first_run(world: World) -> None:
    expected = expectation("04-hand-made-link-between-logins")
    printed = made(world, "04-hand-made-link-between-logins")
    agent, real, by_hand = (os.fsencode(printed[k]) for k in ("agent", "real", "hand_made"))
    text = os.readlink(by_hand)

    entries = healed(world, agent)

    assert sorted(entries) == [name.encode() for name in expected["configs"]]
    assert (
        entries[b".claude"].outcome == "migrated" and entries[b".claude"].set_aside == real + b".pre-shared"
    )
    assert entries[b".claude-work"].outcome == "linked" and not entries[b".claude-work"].changed
    assert os.readlink(by_hand) == text and leads_to(by_hand, world.owned(agent))
    assert read(by_hand + b"/tabs.md") == b"use tabs\n"
    assert len(superseded(world.owned(agent))) == expected["superseded_count"]
    for path in expected["absent"]:
        assert not os.path.lexists(world.top + b"/" + path.encode())
    before = snapshot(world.home, world.work)
    assert [e.changed for e in world.heal()] == [False, False]
    assert snapshot(world.home, world.work) == before


def test_what_is_no_folder_is_left_and_reported_and_stops_nothing(world: World) -> None:
    expected = expectation("05-memory-is-not-a-folder")
    printed = made(world, "05-memory-is-not-a-folder")
    agent, key = os.fsencode(printed["agent"]), printed["key"]

    entries = healed(world, agent)

    for name in expected["healed"]:
        assert entries[name.encode()].outcome == "migrated"
        assert leads_to(entries[name.encode()].path, world.owned(agent))
    for name in expected["reported"]:
        entry = entries[name.encode()]
        assert entry.outcome == "skipped" and entry.reason and entry.remedy and entry.path
    for path, body in expected["content_kept"].items():
        assert read(world.top + b"/" + path.format(key=key).encode()) == body.encode()
    for body in expected["content_somewhere"]["agent"]:
        assert any(body.encode() in found for found in bodies(agent))


def test_odd_index_lines_lose_nothing_and_list_nothing_twice(world: World) -> None:
    expected = expectation("06-index-merge-odd-lines")
    printed = made(world, "06-index-merge-odd-lines")
    agent = os.fsencode(printed["agent"])
    logins = [world.home + b"/.claude", world.home + b"/.claude-win"]
    earlier = [read(world.entry(login, agent) + b"/MEMORY.md") for login in logins]

    entries = healed(world, agent)

    owned = world.owned(agent)
    for name, body in expected["agent_file"].items():
        assert body.encode() in read(owned + b"/" + name.encode())
    for body in expected["superseded_has"]:
        assert any(body.encode() in found for found in superseded(owned).values())
    keys = index_keys(read(owned + b"/MEMORY.md"))
    for name, count in expected["index_lines_for"].items():
        assert keys.count(name.encode()) == count
    assert not any(b"\r" in key for key in keys) and len(set(keys)) == len(keys)
    everything = bodies(world.home, agent)
    for body in expected["content_somewhere"]["home+agent"]:
        assert any(body.encode() in found for found in everything)
    for body in expected["never_in_agent_folder"]:
        assert not any(body.encode() in found for found in bodies(agent))
    assert set(earlier) <= everything
    one = os.path.dirname(entries[b".claude"].path)
    assert tree(one + b"/memory.pre-shared") == {b"old.md": b"kept from an earlier time\n"}
    assert os.path.basename(entries[b".claude"].set_aside).startswith(b"memory.pre-shared-2")
