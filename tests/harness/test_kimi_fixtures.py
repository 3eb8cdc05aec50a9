"""Journals that Kimi Code 2.1.0 really wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.harness.kimi import ADAPTER
from memd.harness.model import Environment, event_id
from support_captured import all_text, described, expected, imported, manifest, scenarios
from support_cases import expectation, make
from support_imports import messages_of, readings

SCENARIOS = scenarios("kimi")


def test_every_scenario_is_there() -> None:
    assert len(SCENARIOS) == 9


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_captured_home_gives_exactly_its_events_and_losses(scenario: str) -> None:
    assert described(imported("kimi", scenario)) == expected("kimi", scenario)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_must_be_there_is_there_and_what_must_not_is_not(scenario: str) -> None:
    judge, text = manifest("kimi", scenario), all_text(imported("kimi", scenario))
    assert [mark for mark in judge["expect_in_ledger"] if mark not in text] == []
    assert [mark for mark in judge["never_in_ledger"] if mark in text] == []
    assert "harness text removed" not in text
    assert "system-reminder" not in text


def test_a_message_that_stands_twice_is_taken_once() -> None:
    (found,) = imported("kimi", "simple")
    journal = Path(os.fsdecode(found.path)).read_text()
    assert journal.count('"please remember the word MARK-SONE"') == 3
    assert messages_of([found], found.session.id) == [
        ["user", "please remember the word MARK-SONE"],
        ["assistant", "ACK MARK-SONE"],
    ]


def test_the_copied_beginning_of_a_fork_has_the_ids_of_its_parent() -> None:
    found = {one.session.id: one for one in imported("kimi", "forked")}
    (fork,) = (one for one in found.values() if one.session.forked_from)
    base = found[fork.session.forked_from]
    ids = [[event_id("kimi", event) for event in one.events] for one in (base, fork)]
    assert len(ids[0]) == 2
    assert ids[1][:2] == ids[0]


def test_a_tool_call_and_its_result_are_paired_and_an_unfinished_one_has_none() -> None:
    (found,) = imported("kimi", "tool-use")
    call, result = (event for event in found.events if event.kind.startswith("tool"))
    assert call.metadata["tool_call_id"] == result.metadata["tool_call_id"] != ""
    (found,) = imported("kimi", "interrupted-tool")
    assert found.events[-1].kind == "tool_call"


def test_times_are_those_of_the_journal() -> None:
    (found,) = imported("kimi", "simple")
    assert found.session.started == "2026-11-30T19:13:06.423Z"
    assert [event.occurred_at for event in found.events] == [
        "2026-11-30T19:13:06.544Z",
        "2026-11-30T19:13:06.635Z",
    ]


def test_journal_that_was_rewritten_in_place_has_new_words_and_the_old_ids(tmp_path: Path) -> None:
    case = "25-kimi-rewritten-in-place"
    expect = expectation(case)
    ids: dict[str, str] = {}
    for step in ("1", "2", "3"):
        make(case, tmp_path, "--step", step)
        (found,) = readings(tmp_path / "home", "kimi")
        for event in found.events:
            ids.setdefault(event_id("kimi", event), event.content)
    assert found.session.id == "session_" + expect["session"]
    assert list(ids.values()) == [text for _role, text in expect["messages_after"]["3"]]
    for word in expect["never"]:
        assert not any(word in text for text in ids.values())


def test_sessions_of_the_home_that_is_named_are_looked_at() -> None:
    home = b"/home/dev"
    for value, root in (
        (b"/srv/kimi/", b"/srv/kimi/sessions"),
        (b"  ", b"/home/dev/.kimi-code/sessions"),
        (b"", b"/home/dev/.kimi-code/sessions"),
    ):
        (store,) = ADAPTER.stores(Environment(home=home, variables={"KIMI_CODE_HOME": value}))
        assert (store.root, store.rewrites) == (root, True)
