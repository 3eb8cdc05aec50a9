"""What every engine promises of the ordered view of a workstream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memd.harness.model import Session, Turn
from memd.ledger.store.interface import Filter, Selection
from memd.ledger.store.workstreams import RunGone, Untold
from support_engines import Engines, Lines
from support_ledger import CWD, S1, S2, batch, entry
from support_workstreams import run


@pytest.fixture
def lines(engines: Engines) -> Iterator[Lines]:
    with engines.open() as made:
        made.workstream()
        yield made


def untold(
    lines: Lines, session: str, harness: str = "claude", after: int = 0, through: int = 1 << 40
) -> Untold:
    return lines.reader.workstreams.untold(
        "w1", harness, session, after=after, through=through, limit=256, max_characters=100
    )


def texts(found: Untold) -> list[str]:
    return [event.content for event in found.events]


@pytest.mark.parametrize("state", ["finished", "cancelled", "expired"])
def test_what_is_said_of_a_run_that_is_over_is_refused(lines: Lines, state: str) -> None:
    lines.work(lambda work: work.put_run(run(state=state)))
    with pytest.raises(RunGone):
        lines.say("run-1", entry("late"))
    assert lines.texts() == []
    lines.put(entry("another"))
    assert lines.texts() == ["another"]
    assert lines.problems() == []


def test_events_of_a_linked_session_join_while_they_are_imported(lines: Lines) -> None:
    lines.put(entry("elsewhere", session=S2))
    lines.link(S1)
    lines.put(entry("a"), entry("b"))
    lines.put(entry("c"), entry("not linked", session=S2))
    assert lines.view() == ["a", "b", "c"]
    assert lines.sequences_of() == [1, 2, 3]


def test_events_of_a_session_linked_later_are_appended_in_order(lines: Lines) -> None:
    lines.put(entry("a"), entry("b"))
    lines.link(S2, "codex")
    lines.put(entry("x", session=S2), harness="codex")
    lines.link(S1)
    assert lines.view() == ["x", "a", "b"]
    assert lines.sequences_of() == [1, 2, 3]


def test_linking_again_gives_no_event_a_second_sequence(lines: Lines) -> None:
    lines.put(entry("a"))
    lines.link(S1)
    lines.link(S1, told=1)
    lines.put(entry("a"), entry("b"))
    assert lines.sequences_of() == [1, 2]


def test_a_copied_session_adds_only_what_is_new(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a"), entry("b"))
    lines.link(S2)
    lines.put(entry("a", session=S2), entry("b", session=S2), entry("c", session=S2))
    assert lines.view() == ["a", "b", "c"]


def test_a_session_may_be_in_two_workstreams_with_their_own_numbers(lines: Lines) -> None:
    lines.workstream("w2")
    lines.link(S1)
    lines.put(entry("a"))
    lines.link(S2, workstream="w2")
    lines.put(entry("x", session=S2))
    lines.link(S1, workstream="w2")
    lines.put(entry("b"))
    assert (lines.view("w1"), lines.view("w2")) == (["a", "b"], ["x", "a", "b"])
    assert (lines.sequences_of("w1"), lines.sequences_of("w2")) == ([1, 2], [1, 2, 3])


def test_a_fork_brings_the_beginning_it_shares(lines: Lines) -> None:
    lines.put(entry("a", at=0), entry("b", at=10), entry("not shared", at=20), harness="codex")
    lines.link(S2, "codex")
    fork = Session(id=S2, cwd=CWD, forked_from=S1, forked_at=20)
    lines.writer.append(batch(entry("c", session=S2, at=30), harness="codex", sessions=[fork]))
    assert lines.view() == ["a", "b", "c"]


def test_a_fork_whose_parent_is_imported_later_still_brings_its_beginning(lines: Lines) -> None:
    lines.link(S2, "codex")
    fork = Session(id=S2, cwd=CWD, forked_from=S1, forked_at=20)
    lines.writer.append(batch(entry("c", session=S2, at=30), harness="codex", sessions=[fork]))
    lines.put(entry("a", at=0), entry("b", at=10), entry("not shared", at=20), harness="codex")
    assert sorted(lines.view()) == ["a", "b", "c"]


def test_what_leaves_the_main_line_is_not_shown_and_keeps_its_number(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a", at=0), entry("rewound", at=1), entry("b", at=2))
    lines.writer.append(batch(turns=[Turn(session=S1, first=1, last=1, is_side=True)]))
    assert (lines.view(), lines.sequences_of()) == (["a", "b"], [1, 3])
    lines.writer.append(batch(turns=[Turn(session=S1, first=1, last=1, is_side=False)]))
    assert (lines.view(), lines.sequences_of()) == (["a", "rewound", "b"], [1, 2, 3])


def test_a_branch_that_is_taken_up_joins_then(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a", at=0), entry("branch", at=1, is_side=True), entry("b", at=2))
    assert lines.view() == ["a", "b"]
    lines.writer.append(batch(turns=[Turn(session=S1, first=1, last=1, is_side=False)]))
    assert (lines.view(), lines.sequences_of()) == (["a", "b", "branch"], [1, 2, 3])


def test_what_is_replaced_leaves_the_view(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a", at=0), entry("a reply", at=1))
    lines.put(entry("a summary", at=2, kind="compaction", replaces=1))
    assert lines.view() == ["a", "a summary"]
    assert lines.problems() == []


def test_own_events_are_not_untold(lines: Lines) -> None:
    lines.link(S1)
    lines.link(S2, "codex")
    lines.put(entry("mine"))
    lines.put(entry("theirs", session=S2), harness="codex")
    lines.put(entry("mine too"))
    assert texts(untold(lines, S1)) == ["theirs"]
    assert texts(untold(lines, S2, "codex")) == ["mine", "mine too"]
    assert texts(untold(lines, "")) == ["mine", "theirs", "mine too"]


def test_what_a_copy_shares_is_its_own(lines: Lines) -> None:
    lines.link(S1)
    lines.link(S2)
    lines.put(entry("a"), entry("b"), entry("c", session=S2), entry("a", session=S2))
    assert texts(untold(lines, S2)) == ["b"]


def test_what_a_fork_shares_with_its_parent_is_its_own(lines: Lines) -> None:
    lines.link(S1, "codex")
    lines.link(S2, "codex", is_current=False)
    lines.put(entry("a", at=0), entry("later", at=20), harness="codex")
    fork = Session(id=S2, cwd=CWD, forked_from=S1, forked_at=20)
    lines.writer.append(batch(entry("c", session=S2, at=30), harness="codex", sessions=[fork]))
    assert texts(untold(lines, S2, "codex")) == ["later"]


def test_untold_counts_all_and_gives_the_newest(lines: Lines) -> None:
    lines.link(S1)
    lines.put(*(entry(f"{number} " + "x" * 200, at=number) for number in range(20)))
    found = lines.reader.workstreams.untold(
        "w1", "codex", S2, after=2, through=18, limit=3, max_characters=10
    )
    assert found.count == 16
    assert [event.sequence for event in found.events] == [16, 17, 18]
    assert [len(event.content) for event in found.events] == [10, 10, 10]


def test_a_cursor_goes_on_over_own_events_only(lines: Lines) -> None:
    lines.link(S1)
    lines.link(S2, "codex")
    lines.put(entry("mine"), entry("mine too"))
    lines.put(entry("theirs", session=S2), harness="codex")
    lines.put(entry("mine three"))
    assert lines.work(lambda work: work.told_further("w1", "claude", S1, 0)) == 2
    assert lines.work(lambda work: work.told_further("w1", "claude", S1, 3)) == 4


def test_forgotten_events_leave_the_view_and_no_number_is_given_twice(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("keep"), entry("a word to forget"), entry("keep too"))
    lines.forget(Selection(matching="forget"))
    assert (lines.view(), lines.sequences_of()) == (["keep", "keep too"], [1, 3])
    lines.put(entry("a word to forget"), entry("new"))
    assert lines.sequences_of() == [1, 3, 4]
    assert lines.problems() == []


def test_a_forgotten_session_leaves_the_view(lines: Lines) -> None:
    lines.link(S1)
    lines.link(S2, "codex")
    lines.put(entry("gone"))
    lines.put(entry("stays", session=S2), harness="codex")
    lines.forget(Selection(session=S1))
    assert lines.view() == ["stays"]


def test_what_is_said_of_a_run_joins_its_workstream(lines: Lines) -> None:
    lines.work(lambda work: work.put_run(run()))
    said = entry(
        "HEAD abc", id="managed-run:run-1:checkpoint", kind="checkpoint", role="", session="unresolved:run-1"
    )
    assert lines.say("run-1", said).stored == 1
    assert lines.say("run-1", said).duplicates == 1
    assert (lines.view(), lines.sequences_of()) == (["HEAD abc"], [1])
    assert not lines.work(lambda work: work.is_established("w1"))


def test_a_search_of_a_workstream_finds_its_events_under_its_numbers(lines: Lines) -> None:
    lines.put(entry("the port elsewhere", session="other"))
    lines.link(S2, "codex")
    lines.put(entry("first words", session=S2), harness="codex")
    lines.link(S1)
    lines.put(entry("the port is 8123"))
    found = lines.reader.search("port", Filter(workstream="w1"))
    assert [(hit.sequence, hit.content) for hit in found] == [(2, "the port is 8123")]
    assert lines.reader.search("port", Filter(workstream="none")) == []


def test_a_search_of_a_workstream_finds_what_has_no_directory(lines: Lines) -> None:
    lines.link("bare")
    lines.writer.append(batch(entry("the port is 8123", session="bare"), sessions=()))
    assert [hit.sequence for hit in lines.reader.search("port", Filter(workstream="w1"))] == [1]


def test_the_tail_is_newest_first_and_can_be_paged(lines: Lines) -> None:
    lines.link(S1)
    lines.put(*(entry(str(number), at=number) for number in range(5)))
    first = lines.reader.workstreams.tail("w1", limit=2)
    assert [event.content for event in first] == ["4", "3"]
    more = lines.reader.workstreams.tail("w1", limit=2, before=first[-1].sequence)
    assert [event.content for event in more] == ["2", "1"]
    assert lines.reader.workstreams.tail("none") == []
