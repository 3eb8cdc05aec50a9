"""Finding sources: patterns, bounds, links, and file systems on which changes come unseen."""

from __future__ import annotations

import os
from pathlib import Path

from memd.harness.model import Environment, Store
from memd.harness.registry import adapters
from memd.ledger import sources

CLAUDE = adapters()["claude"]


def store(root: Path, *patterns: str) -> Store:
    return Store(root=os.fsencode(root), patterns=patterns)


def names(walk: sources.Walk) -> list[bytes]:
    return sorted(source.rel for source in walk.sources)


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("{}\n")


def test_patterns_match_part_by_part(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "p/a.jsonl", "p/q/a.jsonl", "p/a.txt", "p/q/r/s.jsonl")
    assert names(sources.walk(CLAUDE, store(tmp_path, "*/*.jsonl"))) == [b"p/a.jsonl"]
    everywhere = sources.walk(CLAUDE, store(tmp_path, "**/*.jsonl"))
    assert names(everywhere) == [b"a.jsonl", b"p/a.jsonl", b"p/q/a.jsonl", b"p/q/r/s.jsonl"]
    below = sources.walk(CLAUDE, store(tmp_path, "**/*.jsonl"), os.fsencode(tmp_path / "p" / "q"))
    assert names(below) == [b"p/q/a.jsonl", b"p/q/r/s.jsonl"]


def test_links_are_never_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    make(outside, "x/a.jsonl")
    make(inside, "p/b.jsonl")
    (inside / "linked").symlink_to(outside / "x")
    (inside / "p" / "c.jsonl").symlink_to(outside / "x" / "a.jsonl")
    (inside / "p" / "loop").symlink_to(inside)
    walk = sources.walk(CLAUDE, store(inside, "**/*.jsonl"))
    assert names(walk) == [b"p/b.jsonl"]
    assert all(b"linked" not in folder and b"loop" not in folder for folder in walk.folders)
    assert sources.look(CLAUDE, store(inside, "**/*.jsonl"), os.fsencode(inside / "p/c.jsonl")) is None


def test_only_a_folder_at_rest_is_known_by_its_time(tmp_path: Path) -> None:
    make(tmp_path, "old/a.jsonl", "fresh/b.jsonl")
    os.utime(tmp_path / "old", (1_000_000_000, 1_000_000_000))
    seen = sources.walk(CLAUDE, store(tmp_path, "*/*.jsonl")).folders
    old, fresh = os.fsencode(tmp_path / "old"), os.fsencode(tmp_path / "fresh")
    assert (seen[old], seen[fresh]) == (sources.mtime(old), sources.UNSURE)
    make(tmp_path, "old/c.jsonl")
    assert sources.mtime(old) != seen[old]


def test_a_walk_stops_at_its_bound_and_says_so(tmp_path: Path) -> None:
    make(tmp_path, *(f"p/{n}.jsonl" for n in range(12)))
    walk = sources.walk(CLAUDE, store(tmp_path, "*/*.jsonl"), limit=10)
    assert len(walk.sources) == 10
    assert walk.is_cut


def test_a_pipe_or_a_folder_with_the_right_name_is_no_source(tmp_path: Path) -> None:
    make(tmp_path, "p/a.jsonl")
    os.mkfifo(tmp_path / "p" / "pipe.jsonl")
    (tmp_path / "p" / "folder.jsonl").mkdir()
    assert names(sources.walk(CLAUDE, store(tmp_path, "*/*.jsonl"))) == [b"p/a.jsonl"]


def test_a_hint_at_a_databases_log_means_the_database(tmp_path: Path) -> None:
    make(tmp_path, "opencode.db", "opencode.db-wal")
    database = Store(root=os.fsencode(tmp_path), patterns=("opencode.db",), database=True)
    found = sources.look(CLAUDE, database, os.fsencode(tmp_path / "opencode.db-wal"))
    assert found is not None
    assert found.rel == b"opencode.db"
    assert found.size == 6  # both


def test_one_real_store_is_followed_once_however_many_logins_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    (tmp_path / ".claude-two").symlink_to(tmp_path / ".claude")
    home = os.fsencode(tmp_path)
    environment = Environment(home=home, config_homes=(home + b"/.claude", home + b"/.claude-two"))
    roots = [found.root for _, found in sources.stores([CLAUDE], [environment])]
    assert len(roots) == len(set(roots))


def test_stores_are_found_from_their_root_their_home_and_what_lies_between(tmp_path: Path) -> None:
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    codex = adapters()["codex"]
    for folder in (tmp_path, tmp_path / ".codex", tmp_path / ".codex" / "sessions"):
        roots = [found.root for _, found in sources.stores_in(codex, os.fsencode(folder))]
        assert os.fsencode(tmp_path / ".codex" / "sessions") in roots


def test_mounts_on_which_others_write_unseen_are_told_apart(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_bytes(
        b"22 28 0:21 / /proc rw - proc proc rw\n"
        b"30 28 8:1 / /home rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        b"31 28 0:40 / /net/my\\040home rw master:2 - nfs4 server:/x rw\n"
        b"32 28 0:41 / /mnt/far rw - fuse.sshfs user@host: rw\n"
        b"nonsense\n"
    )
    assert sources.remote_roots(str(table)) == [b"/net/my home", b"/mnt/far"]
    assert sources.remote_roots(str(tmp_path / "absent")) == []


def test_a_log_is_no_source_where_another_says_the_same_and_more(tmp_path: Path) -> None:
    make(tmp_path, "b/s1/chat_history.jsonl", "b/s1/updates.jsonl", "b/s2/chat_history.jsonl")
    grok = adapters()["grok"]
    place = store(tmp_path, "*/*/updates.jsonl", "*/*/chat_history.jsonl")
    assert names(sources.walk(grok, place)) == [b"b/s1/updates.jsonl", b"b/s2/chat_history.jsonl"]
    for path, is_source in (("b/s1/chat_history.jsonl", False), ("b/s2/chat_history.jsonl", True)):
        assert (sources.look(grok, place, os.fsencode(tmp_path / path)) is not None) == is_source


def test_sources_that_nobody_wants_count_toward_the_limit_and_are_not_kept(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        make(tmp_path, f"p/{name}.jsonl")
    place = store(tmp_path, "*/*.jsonl")
    walk = sources.walk(CLAUDE, place, is_wanted=lambda source: source.rel == b"p/b.jsonl")
    assert names(walk) == [b"p/b.jsonl"]
    assert (walk.count, walk.is_cut) == (3, False)
    assert sources.walk(CLAUDE, place, limit=2, is_wanted=lambda source: False).is_cut
