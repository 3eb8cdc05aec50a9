"""Random trees of notes in random logins: nothing is lost, nothing is mixed, once is enough."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.protocol import Entry
from support_memory import OLD_NS, World, bodies, leads_to, notes, put, snapshot, tree

EXAMPLES = 1000 if os.environ.get("MEMD_FULL_SWEEPS") else 60
ROOM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # many small trees

LONG = b"l" * 250 + b".md"
NAMES = st.sampled_from(
    [
        *(b"MEMORY.md", b"a.md", b"A.md", b"b c.md", b"x", b"\xff", LONG, b"_superseded"),
        *("é.md".encode(), "e\u0301.md".encode()),
    ]
)
BODIES = st.sampled_from(
    [
        *(b"one", b"two", b"three\n", b"- [A](a.md)\n", b"- [X](x)"),
        b"# H\r\n- [A](./a.md) x\n\n- [B](<b c.md>)\n",
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
KINDS = st.sampled_from(["file"] * 8 + ["link", "fifo", "folder"])
TREES = st.dictionaries(PATHS, st.tuples(KINDS, BODIES, st.integers(-2, 2)), max_size=8)


def grow(folder: bytes, wanted: dict[bytes, tuple[str, bytes, int]]) -> None:
    os.makedirs(folder, exist_ok=True)
    for rel, (kind, body, age) in sorted(wanted.items()):
        path = folder + b"/" + rel
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if kind == "folder":
                os.makedirs(path, exist_ok=True)
            elif kind == "fifo":
                os.mkfifo(path)
            elif kind == "link":
                os.symlink(body.strip() if age else b"a.md", path)
            else:
                put(path, body, ns=OLD_NS + age)
        except OSError:  # something generated before it is in the way
            continue


def outcomes(entries: tuple[Entry, ...]) -> set[str]:
    return {entry.outcome for entry in entries}


@settings(max_examples=EXAMPLES, deadline=None)
@given(owned=TREES, incoming=st.lists(TREES, min_size=1, max_size=3), again=TREES)
def test_any_trees_are_merged_without_loss_and_only_once(
    owned: dict[bytes, tuple[str, bytes, int]],
    incoming: list[dict[bytes, tuple[str, bytes, int]]],
    again: dict[bytes, tuple[str, bytes, int]],
) -> None:
    with tempfile.TemporaryDirectory(prefix="memd-test-", dir=ROOM) as top:
        world = World(Path(top))
        agent = world.agent()
        logins = [world.login(b".claude-%d" % n) for n in range(len(incoming))]
        grow(world.owned(agent), owned)
        for login, wanted in zip(logins, incoming, strict=True):
            grow(world.entry(login, agent), wanted)
            put(login + b"/settings.json", b"{}")
            put(login + b"/projects/other/memory/a.md", b"another's")
        before = bodies(world.home, world.work)
        others = snapshot(
            *(login + part for login in logins for part in (b"/settings.json", b"/projects/other"))
        )
        mine = tree(world.owned(agent))

        assert outcomes(world.enroll(agent)) == {"migrated"}

        assert before <= bodies(world.home, world.work)
        assert snapshot(*others) == others
        assert set(mine.values()) <= bodies(world.owned(agent))
        known = before | {b""}
        for rel, body in notes(world.owned(agent)).items():
            assert body in known or rel == b"MEMORY.md", (rel, body)
        for login in logins:
            assert leads_to(world.entry(login, agent), world.owned(agent))
        settled = snapshot(world.home, world.work)
        for _ in range(2):
            assert not any(entry.changed for entry in world.heal())
        assert not any(entry.changed for entry in world.recover())
        assert snapshot(world.home, world.work) == settled

        late = world.login(b".claude-late")
        grow(world.entry(late, agent), again)
        before = bodies(world.home, world.work)
        assert outcomes(world.heal()) == {"linked", "migrated"}
        assert before <= bodies(world.home, world.work)
        settled = snapshot(world.home, world.work)
        assert not any(entry.changed for entry in world.heal())
        assert snapshot(world.home, world.work) == settled

        done = world.ownership().unenroll(agent, now_ms=world.tick())
        assert outcomes(done.entries) == {"returned"}
        assert before <= bodies(world.home, world.work)
        ours = tree(world.owned(agent))
        for login in (*logins, late):
            copy = tree(world.entry(login, agent))
            assert set(copy) >= set(ours) and {copy[rel] for rel in ours} == set(ours.values())
