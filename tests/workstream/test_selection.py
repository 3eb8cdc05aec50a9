"""Which workstream a launch is about, what may be taken over, and which harness goes on unasked."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import NotFound, UsageError
from memd.ledger.store.interface import SessionRow
from memd.ledger.store.workstreams import Workstream
from memd.workstream import adoption, bare, selection
from memd.workstream.adoption import Launch
from memd.workstream.bare import Found
from memd.workstream.ids import new_id
from memd.workstream.selection import NameTaken, New, Wanted
from support_workstreams import linked, workstream


def named(*names: str, selected: str = "") -> list[Workstream]:
    return [workstream(name, selected_ms=9 if name == selected else 0) for name in names]


# ------------------------------------------------------------------------------------ selection


def test_the_first_launch_makes_the_default() -> None:
    assert selection.choose([], Wanted()) == New("default")


def test_the_workstream_selected_last_is_used_again() -> None:
    rows = [workstream("b", selected_ms=5), workstream("a", selected_ms=3), workstream("c")]
    assert selection.choose(rows, Wanted()) is rows[0]


def test_whoever_waits_for_one_gets_that_one_whatever_is_selected_meanwhile() -> None:
    rows = [workstream("b", selected_ms=5), workstream("a", selected_ms=3)]
    assert selection.choose(rows, Wanted(awaited="a")) is rows[1]
    assert selection.choose(rows, Wanted(awaited="gone")) is rows[0]
    assert selection.choose(rows, Wanted(new="c", awaited="a")) == New("c")
    assert selection.choose(rows, Wanted(workstream="b", awaited="a")) is rows[0]


def test_one_that_no_child_was_started_under_is_not_selected() -> None:
    rows = named("new-one")
    assert selection.choose(rows, Wanted()) == New("default")
    rows = named("new-one", "default")
    assert selection.choose(rows, Wanted()) is rows[1]


def test_a_name_must_exist_to_be_selected_and_must_not_to_be_made() -> None:
    rows = named("a", "b", selected="a")
    assert selection.choose(rows, Wanted(workstream="b")) is rows[1]
    assert selection.choose(rows, Wanted(new="c")) == New("c")
    with pytest.raises(NotFound, match="managed workstream 'c'"):
        selection.choose(rows, Wanted(workstream="c"))
    with pytest.raises(NameTaken) as refused:
        selection.choose(rows, Wanted(new="b"))
    assert "--workstream" in refused.value.remedy


def test_both_wishes_at_once_are_refused() -> None:
    with pytest.raises(UsageError):
        selection.choose(named("a"), Wanted(workstream="a", new="b"))


@pytest.mark.parametrize("name", ["a", " trimmed ", "ünïcødé 東京", "x" * 128, "a.b-c_d"])
def test_names_that_may_be(name: str) -> None:
    assert selection.checked_name(name) == name.strip()


@pytest.mark.parametrize(
    "name", ["", "  ", "a/b", "a\\b", "x" * 129, "a\nb", "a\x00b", "a\u202eb", "a\u200bb"]
)
def test_names_that_may_not_be(name: str) -> None:
    with pytest.raises(UsageError, match="invalid workstream name"):
        selection.checked_name(name)


def test_a_new_selection_is_the_newest_wherever_the_clock_is() -> None:
    rows = [workstream("a", selected_ms=1000), workstream("b", selected_ms=10)]
    assert selection.selected_at(rows, 50) == 1001
    assert selection.selected_at(rows, 5000) == 5000
    assert selection.selected_at([], 5) == 5


def test_renaming_changes_the_name_alone() -> None:
    rows = named("a", "b", selected="a")
    assert selection.renamed(rows, rows[0], "c") == workstream("a", name="c", selected_ms=9)
    assert selection.renamed(rows, rows[0], "a") == rows[0]
    with pytest.raises(NameTaken):
        selection.renamed(rows, rows[0], "b")
    with pytest.raises(UsageError):
        selection.renamed(rows, rows[0], "x/y")


# ------------------------------------------------------------------------------------- adoption


@pytest.mark.parametrize(
    "field",
    ["is_established", "has_link", "is_new", "is_fresh", "is_passing", "has_selector", "is_batch"],
)
def test_one_condition_that_fails_is_enough_not_to_ask(field: str) -> None:
    assert adoption.may_adopt(Launch(is_established=False))
    assert not adoption.may_adopt(Launch(**{"is_established": False, field: True}))
    assert not adoption.may_adopt(Launch(is_established=False, is_terminal=False))


def session(id: str, **more: object) -> SessionRow:
    fields: dict[str, object] = {
        "id": id,
        "harness": "claude",
        "cwd": "/w",
        "title": id,
        "started": "",
        "last_activity": "2026-02-03T10:00:00Z",
        "events": 2,
        "side_events": 0,
        "losses": 0,
    }
    return SessionRow(**{**fields, **more})  # type: ignore[arg-type]


def test_sessions_of_exactly_this_directory_are_offered_newest_first() -> None:
    rows = [
        session("old", last_activity="2026-02-01T10:00:00Z"),
        session("new", last_activity="2026-02-03T12:00:00+01:00"),
        session("newest", last_activity="2026-02-03T11:30:00Z"),
        session("below", cwd="/w/sub"),
        session("elsewhere", cwd="/x"),
        session("sub-agent", is_side=True),
        session("empty", events=0),
        session("linked"),
        session("-rf"),
        session("a/b"),
    ]
    offered = adoption.candidates(rows, "/w", {"linked"})
    assert [one.session for one in offered] == ["newest", "new", "old"]


def test_at_most_eight_are_offered() -> None:
    rows = [session(str(number)) for number in range(20)]
    assert len(adoption.candidates(rows, "/w", ())) == 8


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 1), ("  ", 1), ("0", 0), ("n", 0), ("NEW", 0), ("1", 1), ("3", 3), (None, 0)],
)
def test_answers_that_are_understood(text: str | None, number: int) -> None:
    assert adoption.answer(text, 3).number == number


@pytest.mark.parametrize("text", ["4", "-1", "x", "1 2", "٣", "99999999999", "1.0"])
def test_other_answers_are_asked_for_again(text: str) -> None:
    assert adoption.answer(text, 3).number is None
    assert adoption.ask_again(3) == "Enter 0 through 3."


@given(st.text(max_size=6), st.integers(1, 8))
def test_no_answer_chooses_what_was_not_offered(text: str, count: int) -> None:
    number = adoption.answer(text, count).number
    assert number is None or 0 <= number <= count


@pytest.mark.parametrize("id", ["", ".", "..", "-x", "a/b", "a\\b", "x" * 513, "a\nb", "a\u202eb"])
def test_ids_that_cannot_be_put_in_a_command_line(id: str) -> None:
    assert not adoption.is_usable(id)


def test_long_ids_are_shown_cut() -> None:
    assert adoption.shown_id("x" * 64) == "x" * 64
    assert adoption.shown_id("x" * 65) == "x" * 64 + "…"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (2 * 86400, "2 days ago"),
        (60 * 86400, "2 months ago"),
    ],
)
def test_ages_in_words(seconds: int, words: str) -> None:
    assert adoption.age("1970-01-12T13:46:40Z", 1_000_000 + seconds) == words
    assert adoption.age("", 1_000_000) == ""


# ------------------------------------------------------------------------------------ bare mode


FOUND = [
    Found(harness="codex", session="c", updated=5.0),
    Found(harness="claude", session="a", updated=9.0),
    Found(harness="pi", session="p", updated=9.0),
]


def test_the_newest_session_decides_then_the_name() -> None:
    ranked = bare.newest_first(FOUND, {"claude", "codex", "pi"}, {})
    assert [one.harness for one in ranked] == ["claude", "pi", "codex"]


def test_a_harness_whose_program_is_missing_is_passed_over() -> None:
    assert [one.harness for one in bare.newest_first(FOUND, {"codex"}, {})] == ["codex"]
    with pytest.raises(bare.NoProgram, match="claude, pi, codex"):
        bare.newest_first(FOUND, set(), {})


def test_an_empty_directory_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(bare.NothingToContinue, match="no session was found for this directory") as refused:
        bare.newest_first([], {"claude"}, {})
    assert refused.value.remedy == "Begin with `memctl run claude`; from then on no name is needed."
    with pytest.raises(bare.NothingToContinue, match="codex: locked"):
        bare.newest_first([], {"claude"}, {"codex": "locked"})


def test_an_empty_directory_is_begun_with_an_agent_that_is_installed() -> None:
    for installed, says in (
        ({"pi", "codex", "claude"}, "`memctl run claude`, `memctl run codex` or `memctl run pi`"),
        ({"pi"}, "`memctl run pi`;"),
        (set(), "Install an agent"),
    ):
        with pytest.raises(bare.NothingToContinue, match="no session was found") as refused:
            bare.newest_first([], installed, {})
        assert says in refused.value.remedy


def test_where_only_an_agent_worked_that_is_never_started_unasked_that_one_is_named() -> None:
    with pytest.raises(bare.NothingToContinue, match="omp worked here last") as refused:
        bare.newest_first([], {"claude"}, {}, ["omp"])
    assert "memctl run omp" in refused.value.remedy


def test_an_established_workstream_goes_on_with_its_own_harness() -> None:
    sessions = [
        linked("c1", "codex", is_current=False),
        linked("p1", "pi"),
        linked("a1", "claude"),
    ]
    assert bare.resolve(sessions, "codex", {"claude", "codex"}) == ("claude", "")
    assert bare.resolve([], "codex", {"claude", "codex"}) == ("codex", "")
    assert bare.resolve([linked("k", "kiro", flavor="v3")], "codex", {"kiro"}) == ("kiro", "v3")


def test_harnesses_that_are_never_started_unasked_are_refused() -> None:
    pool = {"claude", "codex", "kimi"}
    bare.check(pool, "kimi", ["kimi", "claude"])
    for harness, available in (("grok", ["grok"]), ("claude", ["claude", "omp"]), ("claude", ["codex"])):
        with pytest.raises(UsageError):
            bare.check(pool, harness, available)


# ------------------------------------------------------------------------------------------ ids


def test_ids_are_uuids_of_version_seven_that_sort_by_time() -> None:
    first, second = new_id(1_790_000_000_000, b"\xff" * 10), new_id(1_790_000_000_001, b"\x00" * 10)
    assert first < second
    assert uuid.UUID(first).version == 7
    assert uuid.UUID(first).variant == uuid.RFC_4122
    assert uuid.UUID(first).int >> 80 == 1_790_000_000_000
