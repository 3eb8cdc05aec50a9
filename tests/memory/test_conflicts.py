"""Conflict copies that syncing programs leave: recognised by name, merged by the rules of every merge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.memory import conflicts
from memd.memory.plan import Copy, Found, Keep, MergeIndex, Plan, Replace


def note(rel: bytes, digest: bytes, mtime_ns: int = 1, size: int = 1) -> Found:
    return Found(rel, "file", size=size, mtime_ns=mtime_ns, digest=digest)


def rounds(owned: list[Found]) -> list[tuple[Plan, tuple[Found, ...]]]:
    return [(one.plan, one.copies) for one in conflicts.make(owned)]


COPY = b"note.sync-conflict-20260203-101500-ABCDEF7.md"


@pytest.mark.parametrize(
    ("name", "original"),
    [
        (COPY, b"note.md"),
        (b"sub/dir/note.sync-conflict-20260203-101500-ABCDEFG.md", b"sub/dir/note.md"),
        (b"LICENSE.sync-conflict-20260203-101500-ABCDEFG", b"LICENSE"),
        (b"a.b.sync-conflict-20260203-101500-ABCDEFG.md", b"a.b.md"),
        (b"note (laptop's conflicted copy 2026-02-03).md", b"note.md"),
        (b"note.sync-conflict-20260203-101500.md", b"note.md"),
        (b"note.md (SFConflict me@example.org 2026-02-03-10-15-00)", b"note.md"),
        (b"note.md (SFConflict 2026-02-03-10-15-00)", b"note.md"),
        (b"note (Case Conflict).md", None),
        (b"note (conflicted copy 2026-02-03 101500).md", b"note.md"),
        (b"note_conflict-20260203-101500.md", b"note.md"),
        (b"note (SFConflict me@example.org 2026-02-03-10-15-00).md", b"note.md"),
        (b"\xff.sync-conflict-20260203-101500-ABCDEFG.md", b"\xff.md"),
        (
            b"n.sync-conflict-20260203-101500-ABCDEFG.sync-conflict-20260204-101500-ABCDEFG.md",
            b"n.md",
        ),
        (b"note.md", None),
        (b"note (1).md", None),
        (b".syncthing.LICENSE.sync-conflict-20260203-101500-ABCDEFG.tmp", None),
        (b"~syncthing~LICENSE.sync-conflict-20260203-101500-ABCDEFG.tmp", None),
        (b".stversions/note.sync-conflict-20260203-101500-ABCDEFG.md", None),
        (b"note-laptop.md", None),
        (b"how a sync-conflict-20260203 happens.md", None),
        (b".sync-conflict-20260203-101500-ABCDEFG.md", None),
        (b"note.sync-conflict-20260203-101500-abcdefg.md", None),
        (b"note.sync-conflict-20260203-101500-ABCDEFG/real.md", None),
    ],
)
def test_names_are_told_apart(name: bytes, original: bytes | None) -> None:
    assert conflicts.original_of(name) == original


@given(st.binary(max_size=200))
def test_any_name_is_judged(name: bytes) -> None:
    original = conflicts.original_of(name)
    assert original is None or (original != name and conflicts.original_of(original) is None)


def test_the_later_of_the_two_has_the_name_and_the_other_is_kept() -> None:
    [(older, _)] = rounds([note(b"note.md", b"ours", 5), note(COPY, b"theirs", 3)])
    [_folder, kept] = older.steps
    assert isinstance(kept, Keep)
    assert (kept.source, kept.kept.startswith(b"_superseded/note.md.conflict.")) == (COPY, True)
    [(newer, _)] = rounds([note(b"note.md", b"ours", 3), note(COPY, b"theirs", 5)])
    [_folder, replaced] = newer.steps
    assert isinstance(replaced, Replace)
    assert (replaced.to, replaced.source) == (b"note.md", COPY)
    assert replaced.kept.startswith(b"_superseded/note.md.agent.")


def test_an_index_is_merged_as_one() -> None:
    copy = b"MEMORY.sync-conflict-20260203-101500-ABCDEFG.md"
    [(plan, _)] = rounds([note(b"MEMORY.md", b"ours"), note(copy, b"theirs")])
    [step] = [step for step in plan.steps if isinstance(step, MergeIndex)]
    assert step.source == copy


def test_a_copy_whose_note_is_gone_brings_it_back() -> None:
    [(plan, _)] = rounds([note(COPY, b"theirs")])
    [step] = plan.steps
    assert isinstance(step, Copy)
    assert (step.to, step.source) == (b"note.md", COPY)


def test_equal_copies_ask_for_no_step_and_history_is_left_alone() -> None:
    same = [note(b"note.md", b"same"), note(COPY, b"same")]
    assert [plan.steps for plan, _ in rounds(same)] == [()]
    assert conflicts.make([note(b"note.md", b"a"), note(b"_superseded/" + COPY, b"b")]) == []
    assert conflicts.make([note(b"note.md", b"a"), Found(COPY, "folder")]) == []


def test_several_copies_of_one_note_come_one_after_the_other_the_oldest_first() -> None:
    second = b"note (conflicted copy 2026-02-04 101500).md"
    found = rounds([note(b"note.md", b"a", 1), note(second, b"c", 9), note(COPY, b"b", 5)])
    assert [[copy.target for copy in copies] for _, copies in found] == [[COPY], [second]]
    assert [[getattr(step, "source", b"") for step in plan.steps][-1] for plan, _ in found] == [COPY, second]


@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        (b"a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n", True),
        (b"<<<<<<< HEAD\r\nours\r\n=======\r\ntheirs\r\n>>>>>>> other\r\n", True),
        (b"how marks look: <<<<<<< HEAD, ======= and >>>>>>> other\n", False),
        (b"Title\n=======\ntext\n", False),
        (b">>>>>>> a\n=======\n<<<<<<< b\n", False),
        (b"", False),
    ],
)
def test_a_merge_that_git_left_open_is_seen(text: bytes, is_marked: bool) -> None:
    assert conflicts.has_marks(text) == is_marked
