"""What a plan decides, over values alone; most of all what no file system at hand can show."""

from __future__ import annotations

import unicodedata

import pytest

from memd.memory.names import aside_name, fitted, free_name, label_of, numbered, stamp, superseded_name
from memd.memory.plan import (
    Copy,
    Folding,
    Found,
    Keep,
    MakeFolder,
    MergeIndex,
    MoveAside,
    Plan,
    Replace,
    digests_wanted,
    make_plan,
)

FOLDS = Folding(case=True, form=True)


def note(rel: bytes, digest: bytes, mtime_ns: int = 0, size: int = 1) -> Found:
    return Found(rel, "file", size=size, mtime_ns=mtime_ns, digest=digest)


def plan(owned: list[Found], incoming: list[Found], **kwargs: object) -> Plan:
    return make_plan(owned, incoming, label=b"login", **kwargs)  # type: ignore[arg-type]


def test_twins_in_one_source_are_both_kept_where_their_names_are_one() -> None:
    steps = plan([], [note(b"Note.md", b"a", 1), note(b"note.md", b"b", 2)], folding=FOLDS).steps
    first, folder, second = steps
    assert isinstance(first, Copy) and first.to == b"Note.md"
    assert isinstance(folder, MakeFolder)
    assert isinstance(second, Replace) and second.to == b"Note.md" and second.rel == b"note.md"


def test_twins_stay_two_notes_where_their_names_are_two() -> None:
    steps = plan([], [note(b"Note.md", b"a"), note(b"note.md", b"b")]).steps
    assert [s.to for s in steps if isinstance(s, Copy)] == [b"Note.md", b"note.md"]


@pytest.mark.parametrize("newer", [True, False])
def test_a_twin_of_an_owned_note_takes_part_in_the_usual_way(newer: bool) -> None:
    composed, decomposed = "é.md".encode(), unicodedata.normalize("NFD", "é.md").encode()
    made = plan([note(composed, b"a", 1)], [note(decomposed, b"b", 2 if newer else 1)], folding=FOLDS)
    (step,) = [s for s in made.steps if not isinstance(s, MakeFolder)]
    assert isinstance(step, Replace if newer else Keep)
    if isinstance(step, Replace):
        assert step.to == composed


def test_a_twin_with_the_same_content_is_the_same_note() -> None:
    made = plan([note(b"NOTE.md", b"a")], [note(b"note.MD", b"a")], folding=FOLDS)
    assert (made.steps, made.unchanged) == ((), 1)


def test_a_memory_md_in_small_letters_is_the_index_only_where_names_fold() -> None:
    owned, incoming = [note(b"MEMORY.md", b"a")], [note(b"memory.md", b"b")]
    assert isinstance(plan(owned, incoming, folding=FOLDS).steps[-1], MergeIndex)
    assert isinstance(plan(owned, incoming).steps[-1], Copy)


def test_a_folder_and_a_file_that_fold_to_one_name_are_both_kept() -> None:
    made = plan([], [note(b"Topic", b"a"), Found(b"topic", "folder"), note(b"topic/x", b"b")], folding=FOLDS)
    assert [s.to for s in made.steps if isinstance(s, Copy)] == [b"Topic", b"topic.login/x"]


def test_names_that_are_no_text_fold_without_trouble() -> None:
    made = plan([note(b"\xff\xfe", b"a", 5)], [note(b"\xff\xfe", b"b", 1)], folding=FOLDS)
    assert isinstance(made.steps[-1], Keep)


def test_only_files_of_equal_size_have_to_be_read() -> None:
    owned = [note(b"a", b"", size=3), note(b"b", b"", size=4), Found(b"c", "folder")]
    assert digests_wanted(owned, [note(b"x", b"", size=4)]) == {b"b"}


def test_what_an_interrupted_run_prepared_is_used() -> None:
    owned = [note(b"n", b"old", 1), Found(b"_superseded", "folder")]
    kept = superseded_name(b"n", b"agent", 1)
    (step,) = plan([*owned, note(kept, b"new")], [note(b"n", b"new", 2)]).steps
    assert isinstance(step, Replace) and step.is_prepared and step.kept == kept


def test_a_loser_that_is_kept_already_is_not_kept_again() -> None:
    kept = superseded_name(b"n", b"login", 1)
    owned = [note(b"n", b"ours", 2), Found(b"_superseded", "folder"), note(kept, b"theirs")]
    assert plan(owned, [note(b"n", b"theirs", 1)]).steps == ()


def test_a_taken_name_for_a_loser_gets_a_number() -> None:
    kept = superseded_name(b"n", b"login", 1)
    owned = [note(b"n", b"ours", 2), Found(b"_superseded", "folder"), note(kept, b"something else")]
    (step,) = plan(owned, [note(b"n", b"theirs", 1)]).steps
    assert isinstance(step, Keep) and step.kept == kept + b".2"


def test_folders_are_made_only_for_what_goes_into_them() -> None:
    gone = {(b"sub/gone.md", b"a"): 10}
    made = plan([], [Found(b"sub", "folder"), note(b"sub/gone.md", b"a", 5)], carried_once=gone)
    assert made.steps == () and made.withheld == (b"sub/gone.md",)


def test_a_dangling_link_in_the_way_of_history_goes_aside_within_its_folder() -> None:
    owned = [note(b"n", b"new", 2), Found(b"_superseded", "link")]
    steps = plan(owned, [note(b"n", b"old", 1)]).steps
    assert isinstance(steps[0], MoveAside) and steps[0].kept == b"_superseded.agent"
    assert isinstance(steps[1], MakeFolder) and isinstance(steps[2], Keep)


def test_an_owned_note_that_cannot_be_read_leaves_the_incoming_one_behind() -> None:
    owned = [Found(b"n", "file", size=1, mtime_ns=1, trouble="I/O error")]
    made = plan(owned, [note(b"n", b"new", 2)])
    assert made.steps == () and made.left[0].is_trouble


def test_what_was_merged_from_a_source_is_not_merged_again() -> None:
    incoming = [note(b"a", b"1"), note(b"b", b"2")]
    (step,) = plan([], incoming, merged={b"a": b"1", b"b": b"other"}).steps
    assert isinstance(step, Copy) and step.to == b"b"


# ------------------------------------------------------------------------------ names


def test_stamps_are_utc_and_never_fail() -> None:
    assert stamp(0) == b"1970-01-01T00-00-00-000Z"
    assert stamp(1_790_000_000_123_456_789) == b"2026-09-21T14-13-20-123Z"
    assert stamp(-1) == b"1969-12-31T23-59-59-999Z"
    assert stamp(253_402_300_800 * 10**9) == b"253402300800000ms"
    assert stamp(-(2**63)).endswith((b"Z", b"ms")) and stamp(2**63 - 1).endswith((b"Z", b"ms"))


def test_labels_are_the_login_without_its_dot() -> None:
    assert label_of(b"/home/x/.claude-work") == b"claude-work"
    assert label_of(b"/home/x/.") == label_of(b"/") == b"login"
    assert len(label_of(b"/x/" + b"l" * 255)) == 64


def test_free_names_keep_the_extension() -> None:
    assert free_name(b"sub/note.md", b"work") == b"sub/note.work.md"
    assert free_name(b"note", b"work", 3) == b"note.work.3"
    assert free_name(b".hidden", b"work") == b".hidden.work"
    assert numbered(b"a/b.md", 2) == b"a/b.md.2"


@pytest.mark.parametrize("name", [b"n" * 255, "ü".encode() * 127, b"\xff" * 255, "🦊".encode() * 63])
@pytest.mark.parametrize("suffix", [b".agent.2026-02-03T10-00-00-000Z.9999", b".x"])
def test_long_names_are_shortened_at_a_character_and_stay_apart(name: bytes, suffix: bytes) -> None:
    short, other = fitted(name, suffix), fitted(name[:-4] + b"zzzz", suffix)
    assert len(short) <= 255 and short.endswith(suffix) and (short != other or len(name + suffix) <= 255)
    head = short.partition(b"~")[0]
    if b"\xff" not in name:
        head.decode("utf-8")


def test_set_aside_names_never_repeat() -> None:
    names = [aside_name(1_790_000_000_000, n) for n in range(4)]
    assert names[0] == b"memory.pre-shared" and names[1] == b"memory.pre-shared-2026-09-21T14-13-20-000Z"
    assert len(set(names)) == 4
