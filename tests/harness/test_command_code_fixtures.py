"""Session files that Command Code 1.64.0 really wrote."""

from __future__ import annotations

import pytest

from memd.harness.command_code import ADAPTER
from memd.harness.model import Environment, OutputLimit, event_id
from support_captured import all_text, described, expected, imported, manifest, scenarios

SCENARIOS = scenarios("command-code")


def test_every_scenario_is_there() -> None:
    assert len(SCENARIOS) == 9


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_captured_home_gives_exactly_its_events_and_losses(scenario: str) -> None:
    assert described(imported("command-code", scenario)) == expected("command-code", scenario)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_must_be_there_is_there_and_what_must_not_is_not(scenario: str) -> None:
    judge, text = manifest("command-code", scenario), all_text(imported("command-code", scenario))
    assert [mark for mark in judge["expect_in_ledger"] if mark not in text] == []
    assert [mark for mark in judge["never_in_ledger"] if mark in text] == []
    assert "harness text removed" not in text
    assert "hook_context" not in text


def test_files_beside_a_session_are_none() -> None:
    for scenario in SCENARIOS:
        for found in imported("command-code", scenario):
            assert found.path.endswith(f"/{found.session.id}.jsonl".encode())


def test_a_fork_names_its_parent_and_shares_its_ids() -> None:
    found = {one.session.id: one for one in imported("command-code", "forked")}
    (fork,) = (one for one in found.values() if one.session.forked_from)
    base = found[fork.session.forked_from]
    ids = [[event_id("command-code", event) for event in one.events] for one in (base, fork)]
    assert len(ids[0]) == 2
    assert ids[1][:2] == ids[0]
    assert {event.session for event in fork.events} == {fork.session.id}


def test_messages_have_their_own_times_not_that_of_the_turn() -> None:
    (found,) = imported("command-code", "simple")
    assert [event.occurred_at for event in found.events] == [
        "2026-11-30T19:11:40.177Z",
        "2026-11-30T19:11:40.239Z",
    ]


def test_what_is_killed_in_the_middle_of_a_turn_never_was() -> None:
    for scenario in ("interrupted", "interrupted-tool"):
        (found,) = imported("command-code", scenario)
        assert [event.content for event in found.events] == ["first MARK-SK1", "ACK MARK-SK1"]


def test_no_variable_moves_the_store_and_little_may_be_told_at_once() -> None:
    home = b"/home/dev"
    (store,) = ADAPTER.stores(Environment(home=home, variables={"XDG_DATA_HOME": b"/else"}))
    assert store.root == b"/home/dev/.commandcode/projects"
    assert not store.rewrites
    assert ADAPTER.start_output_limit == OutputLimit(4_000)
