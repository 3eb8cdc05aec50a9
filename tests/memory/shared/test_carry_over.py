"""Carry-over: everything once, nothing over anything, whatever stands in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import support_cases
from memd import disk
from memd.errors import MemdError, Refused
from memd.memory.shared.lock import Busy
from support_topics import NOW_MS, Home, put, read, topic, tree

MARK = b".shared-dir-migrated"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def local(home: Home, **topics: bytes) -> None:
    """A local store with these topics, each listed."""
    lines = b"".join(
        b"- [Our %b](%b.md) [pin] 2026-09-05 -- ours\n" % (n.encode(), n.encode()) for n in topics
    )
    put(home.local + b"/MEMORY.md", b"# Memory Index\n\n" + lines)
    for name, body in topics.items():
        put(home.local + b"/" + name.encode() + b".md", body)


def test_case_38_a_carry_over_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    support_cases.make("38-carry-over-interrupted", tmp_path)
    expected = support_cases.expectation("38-carry-over-interrupted")
    home = Home(tmp_path)
    before = {path: read(os.fsencode(tmp_path / path)) for path in expected["unchanged"]}
    old_lines = [line for line in home.index().splitlines() if line.startswith(b"-")]
    local_before = tree(home.local)
    done = home.topics().carry_overs.local()
    assert done.outcome == "carried"
    assert home.files() == expected["index_files"]
    assert home.index().splitlines()[2:4] == old_lines
    assert [e.file.decode() for e in home.entries() if e.is_pinned] == expected["pinned"]
    assert home.index().splitlines()[4:] == [
        b"- [Topic A](a.md) 2026-01-03 -- about a",
        b"- [Topic B](b-memd.md) [pin] 2026-01-03 -- about b",
        b"- [Topic C](c-memd-2.md) 2026-01-03 -- about c",
        b"- [Topic D](d.md) 2026-01-03 -- about d",
    ]
    topics = sorted(name.decode() for name in os.listdir(home.shared) if name not in (b"MEMORY.md",))
    assert topics == sorted(expected["shared_files"])
    assert {path: read(os.fsencode(tmp_path / path)) for path in before} == before
    assert all((tmp_path / path).exists() for path in expected["exists"])
    assert tree(home.local) == {**local_before, MARK: b""}
    assert not any(b"SECRET-OUTSIDE" in text for text in tree(home.shared).values())
    after = tree(home.shared)
    assert home.topics().carry_overs.local().outcome == "done-before"
    put(home.local + b"/later.md", topic("Later", "x"))
    home.topics().list_topics()
    assert tree(home.shared) == after


def test_nothing_to_carry_leaves_no_mark(home: Home) -> None:
    home.topics().list_topics()
    assert not os.path.exists(home.local)
    put(home.local + b"/MEMORY.md", b"# Memory Index\n\n- [Gone](gone.md) -- x\n")
    assert home.topics().carry_overs.local().outcome == "nothing"
    assert os.listdir(home.local) == [b"MEMORY.md"]


def test_the_first_use_of_the_shared_folder_carries_the_local_topics_over(tmp_path: Path) -> None:
    home = Home(tmp_path, shared_dir=False)
    topics = home.topics()
    home.write("Docker", "our text", pin=True)
    put(home.config, b'{"shared_dir": true}')
    assert [row.name for row in topics.list_topics().topics] == ["Docker"]
    assert topics.read("Docker").path == home.shared + b"/docker.md"
    assert os.path.exists(home.local + b"/" + MARK)
    put(home.config, b"{}")
    home.write("Later", "x")
    put(home.config, b'{"shared_dir": true}')
    assert [row.name for row in topics.list_topics().topics] == ["Docker"]


def test_topics_that_no_line_mentions_are_carried_too(home: Home) -> None:
    put(home.local + b"/lost.md", topic("Lost", "x"))
    put(home.local + b"/bare.md", b"x")
    home.topics().carry_overs.local()
    assert [(e.name, e.file) for e in home.entries()] == [("bare", b"bare.md"), ("Lost", b"lost.md")]


def test_equal_bytes_are_one_topic_and_different_ones_two_whatever_they_decode_to(home: Home) -> None:
    put(home.shared + b"/a.md", b"caf\xe9")
    put(home.shared + b"/b.md", b"same")
    local(home, a=b"caf\xe8", b=b"same")
    home.topics().carry_overs.local()
    assert home.files() == ["a-memd.md", "b.md"]
    assert read(home.shared + b"/a.md") == b"caf\xe9"
    assert read(home.shared + b"/a-memd.md") == b"caf\xe8"


def test_an_identical_topic_that_is_listed_gets_no_second_line(home: Home) -> None:
    put(home.shared + b"/a.md", b"same")
    put(home.shared + b"/MEMORY.md", b"- [Theirs](a.md) -- x")
    local(home, a=b"same")
    home.topics().carry_overs.local()
    assert home.index() == b"- [Theirs](a.md) -- x"
    assert os.path.exists(home.local + b"/" + MARK)


def test_what_was_removed_in_either_store_stays_away(home: Home) -> None:
    local(home, a=b"a", b=b"b", c=b"c")
    put(home.shared + b"/.ocl-removed", b"a.md\nc-memd.md\n")
    put(home.shared + b"/c.md", b"another c")
    put(home.shared + b"/c-memd.md", b"c")
    put(home.local + b"/.ocl-removed", b"b.md\n")
    done = home.topics().carry_overs.local()
    assert home.files() == []
    reasons = {row.file: row.reason for row in done.left}
    assert reasons == dict.fromkeys((b"a.md", b"b.md", b"c.md"), "it was removed on purpose")
    assert sorted(os.listdir(home.shared)) == [b".ocl-removed", b"MEMORY.md", b"c-memd.md", b"c.md"]


@pytest.mark.parametrize("obstacle", ["folder", "link", "line"])
def test_a_name_that_anything_has_is_taken(home: Home, obstacle: str) -> None:
    local(home, a=b"ours", b=b"also ours")
    os.makedirs(home.shared)
    match obstacle:
        case "folder":
            os.mkdir(home.shared + b"/a.md")
        case "link":
            os.symlink(home.home + b"/outside.md", home.shared + b"/a.md")
        case _:
            put(home.shared + b"/MEMORY.md", b"- [Somebody's](a.md) -- its file is missing\n")
    home.topics().carry_overs.local()
    assert read(home.shared + b"/a-memd.md") == b"ours"
    assert "a-memd.md" in home.files()
    assert "b.md" in home.files()
    assert not os.path.lexists(home.home + b"/outside.md")


def test_odd_things_in_the_local_store_are_left_and_the_rest_goes_on(home: Home) -> None:
    local(home, a=b"a")
    put(
        home.local + b"/MEMORY.md",
        read(home.local + b"/MEMORY.md")
        + b"- [Index](MEMORY.md) -- x\n- [Text](notes.txt) -- x\n"
        + b"- [Dir](dir.md) -- x\n- [Link](link.md) -- x\n",
    )
    put(home.local + b"/notes.txt", b"x")
    os.mkdir(home.local + b"/dir.md")
    put(home.home + b"/secret.md", b"SECRET")
    os.symlink(home.home + b"/secret.md", home.local + b"/link.md")
    put(home.local + b"/br[a]cket.md", b"x")
    done = home.topics().carry_overs.local()
    assert home.files() == ["a.md"]
    assert {row.file for row in done.left} == {
        b"MEMORY.md",
        b"notes.txt",
        b"dir.md",
        b"link.md",
        b"br[a]cket.md",
    }
    assert os.path.exists(home.local + b"/" + MARK)


def test_three_versions_of_a_topic_are_three_files_however_often_it_runs(home: Home) -> None:
    put(home.shared + b"/a.md", b"first")
    put(home.shared + b"/a-memd.md", b"second")
    local(home, a=b"third")
    for _ in range(3):
        home.topics().carry_overs.local()
        os.unlink(home.local + b"/" + MARK)
    assert home.files() == ["a-memd-2.md"]
    assert sorted(os.listdir(home.shared)) == [b"MEMORY.md", b"a-memd-2.md", b"a-memd.md", b"a.md"]


def test_files_of_other_tools_with_their_suffixes_are_ordinary_topics(home: Home) -> None:
    local(home, **{"a-oclm": b"x", "a-opim": b"y"})
    home.topics().carry_overs.local()
    assert home.files() == ["a-oclm.md", "a-opim.md"]


def test_a_held_lock_carries_nothing_marks_nothing_and_is_told_and_tried_again(home: Home) -> None:
    local(home, a=b"a")
    put(home.shared + b"/.lock", b"1\t%d\tx" % NOW_MS, mtime_ms=NOW_MS)
    topics = home.topics()
    with pytest.raises(Busy):
        topics.carry_overs.local()
    listed = topics.list_topics()
    assert listed.topics == ()
    assert "not carried over yet" in listed.notes[0]
    assert not os.path.exists(home.local + b"/" + MARK)
    assert os.listdir(home.shared) == [b".lock"]
    os.unlink(home.shared + b"/.lock")
    listed = topics.list_topics()
    assert (len(listed.topics), listed.notes) == (1, ())


def test_one_folder_under_two_names_is_not_carried_into_itself(home: Home) -> None:
    os.makedirs(os.path.dirname(home.shared))
    os.symlink(home.local, home.shared)
    local(home, a=b"a")
    assert home.topics().carry_overs.local().outcome == "same-folder"
    assert home.write("New").outcome == "created"
    assert sorted(os.listdir(home.local)) == [b"MEMORY.md", b"a.md", b"new.md"]


def test_a_topic_that_cannot_be_read_is_carried_when_it_can(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    local(home, a=b"a", big=b"x" * 200)
    with monkeypatch.context() as patch:
        patch.setattr("memd.memory.shared.store.MAX_TOPIC_BYTES", 150)
        topics = home.topics()
        assert "cannot be read" in topics.list_topics().notes[0] or topics.carry_overs.trouble
        assert home.files() == ["a.md"]
        assert not os.path.exists(home.local + b"/" + MARK)
    home.topics().list_topics()
    assert home.files() == ["a.md", "big.md"]
    assert os.path.exists(home.local + b"/" + MARK)


def test_without_the_shared_folder_there_is_nowhere_to_carry_to(tmp_path: Path) -> None:
    home = Home(tmp_path, shared_dir=False)
    with pytest.raises(Refused, match="not in use"):
        home.topics().carry_overs.local()


# ------------------------------------------------------------------ from other tools


def test_another_tools_store_is_carried_over_and_left_as_it_is(home: Home) -> None:
    theirs = home.home + b"/.config/opencode/memory"
    put(theirs + b"/MEMORY.md", b"# Memory Index\n\n- [Theirs](a.md) [pin] 2026-09-05 -- x")
    put(theirs + b"/a.md", b"their a")
    put(theirs + b"/" + MARK, b"")
    put(home.shared + b"/a.md", b"another a")
    before = tree(theirs)
    assert home.topics().carry_overs.from_folder(theirs).outcome == "carried"
    assert home.index().splitlines()[-1] == b"- [Theirs](a-memd.md) [pin] 2026-09-05 -- x"
    assert tree(theirs) == before
    home.write("Theirs", "an addition")
    after = tree(home.shared)
    assert home.topics().carry_overs.from_folder(theirs).outcome == "nothing"
    assert tree(home.shared) == after
    with pytest.raises(MemdError, match="there is no folder"):
        home.topics().carry_overs.from_folder(home.home + b"/nowhere")


def test_topics_of_claude_code_are_offered_and_taken_when_chosen(home: Home) -> None:
    agent = home.home + b"/agent/.memd/memory"
    put(
        agent + b"/MEMORY.md",
        "# Memory\n\n- [Build](build.md) — how it is built\n- [Up](../x.md) — no\n".encode(),
    )
    put(agent + b"/build.md", b"---\nname: build\n---\nmake\n", mtime_ms=NOW_MS)
    put(agent + b"/other.md", b"---\nname: other\ndescription: more\n---\nx\n", mtime_ms=NOW_MS)
    topics = home.topics()
    looked = topics.carry_overs.from_claude(agent, (), False)
    assert looked.outcome == "looked"
    assert [(row.file, row.name, row.is_copied) for row in looked.topics] == [
        ("build.md", "Build", True),
        ("other.md", "other", True),
    ]
    assert not os.path.exists(home.shared)
    with pytest.raises(Refused, match=r"nothing\.md"):
        topics.carry_overs.from_claude(agent, ("nothing.md",), False)
    topics.carry_overs.from_claude(agent, ("build.md",), False)
    assert home.index().splitlines()[2:] == [b"- [Build](build.md) 2026-09-21 -- how it is built"]
    topics.carry_overs.from_claude(agent, (), True)
    assert home.files() == ["build.md", "other.md"]
    assert topics.carry_overs.from_claude(agent, (), True).outcome == "carried"
    assert home.files() == ["build.md", "other.md"]


def test_what_a_kill_left_half_written_beside_the_mark_goes_at_the_next_look(home: Home) -> None:
    local(home, a=topic("A", "a"))
    assert home.topics().carry_overs.local().outcome == "carried"
    half = disk.temporary_name()
    put(home.local + b"/" + half, b"")
    home.topics().list_topics()
    assert half not in os.listdir(home.local)
    assert read(home.local + b"/" + MARK) == b""
