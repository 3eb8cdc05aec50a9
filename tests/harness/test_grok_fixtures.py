"""Sessions that Grok Build 0.2.111 really wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memd.harness.grok import ADAPTER
from memd.harness.model import Environment, event_id
from support_captured import FIXTURES, all_text, described, expected, imported, manifest, scenarios
from support_imports import Reading, readings

SCENARIOS = scenarios("grok")


def test_every_scenario_is_there() -> None:
    assert len(SCENARIOS) == 11


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_captured_home_gives_exactly_its_events_and_losses(scenario: str) -> None:
    assert described(imported("grok", scenario)) == expected("grok", scenario)


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "rewritten/before"])
def test_what_must_be_there_is_there_and_what_must_not_is_not(scenario: str) -> None:
    judge, text = manifest("grok", scenario), all_text(imported("grok", scenario))
    # the log that is read holds also what the other one has lost
    marks = judge["expect_in_ledger"] + judge.get("only_in_side_files", [])
    assert [mark for mark in marks if mark not in text] == []
    assert [mark for mark in judge["never_in_ledger"] if mark in text] == []
    assert "harness text removed" not in text
    assert "<user_info>" not in text


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_session_is_read_from_one_log(scenario: str) -> None:
    found = imported("grok", scenario)
    assert {one.path.rsplit(b"/", 1)[-1] for one in found} == {b"updates.jsonl"}
    assert len({one.session.id for one in found}) == len(found)


def test_a_fork_names_its_parent_and_shares_its_ids() -> None:
    found = {one.session.id: one for one in imported("grok", "forked")}
    (fork,) = (one for one in found.values() if one.session.forked_from)
    base = found[fork.session.forked_from]
    ids = [[event_id("grok", event) for event in one.events] for one in (base, fork)]
    assert len(ids[0]) == 2
    assert ids[1][:2] == ids[0]


def test_processes_that_count_from_one_again_give_different_events() -> None:
    (found,) = imported("grok", "resumed")
    names = [event.record for event in found.events]
    assert len(set(names)) < len(names)
    assert len({event_id("grok", event) for event in found.events}) == len(names)


def test_times_are_milliseconds_and_not_the_seconds_beside_them() -> None:
    (found,) = imported("grok", "simple")
    assert [event.occurred_at for event in found.events] == [
        "2026-11-30T19:10:34.027Z",
        "2026-11-30T19:10:34.035Z",
    ]


def test_what_was_said_before_a_compaction_is_kept_and_has_its_ids() -> None:
    (before,), (after,) = imported("grok", "rewritten/before"), imported("grok", "rewritten/after")
    ids = [[event_id("grok", event) for event in one.events] for one in (before, after)]
    assert ids[1][: len(ids[0])] == ids[0]
    assert after.events[len(ids[0])].kind == "compaction"


# --------------------------------------------- where there is no `updates.jsonl`


def chat_only(scenario: str, tmp_path: Path) -> list[Reading]:
    home = tmp_path / scenario
    shutil.copytree(FIXTURES / "grok" / scenario, home)
    for log in home.rglob("updates.jsonl"):
        log.unlink()
    return readings(home, "grok")


def test_without_the_first_log_the_second_is_read(tmp_path: Path) -> None:
    (found,) = chat_only("tool-use", tmp_path)
    assert [(event.kind, event.content) for event in found.events] == [
        ("message", "<user_query>\nlook around MARK-STOOL THINK\nUSE_TOOL ls -1\n</user_query>"),
        (
            "tool_call",
            'run_terminal_command: {"command":"ls -1","description":"list the files"}',
        ),
        ("tool_result", "exit: 0\nmain.py\nnotes.txt\n"),
        ("message", "TOOL DONE MARK-STOOL"),
    ]
    assert found.losses() == {"system-prompt": 1, "reasoning": 2}


def test_the_second_log_gives_the_same_ids_after_it_was_rewritten(tmp_path: Path) -> None:
    (before,), (after,) = (chat_only(f"rewritten/{when}", tmp_path) for when in ("before", "after"))
    first, then = ({event_id("grok", event): event for event in one.events} for one in (before, after))
    kept = [event.content.split("\n")[1] for name, event in then.items() if name in first]
    # the second is a new reply, in the very words of the first one
    assert kept == [
        "turn three MARK-SB3 PAD 24",
        "padding line 00001 of synthetic text for the compaction test.",
    ]
    new = [event for name, event in then.items() if name not in first]
    assert [event.kind for event in new] == ["compaction", "message"]
    assert "MARK-SUMMARY" in new[0].content


def test_sessions_of_the_home_that_is_named_are_looked_at() -> None:
    home = b"/home/dev"
    for value, root in ((b"/srv/grok/", b"/srv/grok/sessions"), (b" ", b"/home/dev/.grok/sessions")):
        (store,) = ADAPTER.stores(Environment(home=home, variables={"GROK_HOME": value}))
        assert (store.root, store.rewrites) == (root, True)
