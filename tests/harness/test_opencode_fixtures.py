"""Databases that OpenCode 1.18.33 wrote, judged by what was typed and what the model answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memd.harness.opencode import ADAPTER
from support_rows import HERE, RowImport, fixture, trace

SCENARIOS = sorted(path.name for path in (HERE / "fixtures" / "opencode").iterdir())
DATABASE = ".local/share/opencode/opencode.db"


def imported(scenario: str, tmp_path: Path, limit: int = 1000) -> tuple[RowImport, dict[str, Any]]:
    home = fixture("opencode", scenario, tmp_path)
    before = trace(home)
    reader = RowImport(ADAPTER, home / DATABASE, tmp_path / "scratch")
    reader.round(limit=limit)
    reader.at_rest(limit=limit)
    assert trace(home) == before
    assert not any((tmp_path / "scratch").glob("*"))
    return reader, json.loads((HERE / "fixtures" / "opencode" / scenario / "expected.json").read_text())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_typed_and_answered_is_there_once_and_in_order(scenario: str, tmp_path: Path) -> None:
    reader, expected = imported(scenario, tmp_path)
    events = {event.content: event for event in reader.events()}.values()
    typed = [event.content for event in events if event.role == "user" and not event.is_side]
    assert typed == [text for text in expected["typed"] if not text.startswith("/")]
    replies = [
        event.content
        for event in events
        if event.kind == "message" and event.role == "assistant" and event.content != "SLOW-START "
    ]
    assert replies == [
        request["reply"]
        for request in expected["model_requests"]
        if request["kind"] == "turn" and request["reply"] and not request["reply"].startswith("SLOW-DONE")
    ]
    calls = [
        event.metadata["tool"]
        for event in sorted(reader.events(), key=lambda event: event.at)
        if event.kind == "tool_call"
    ]
    assert calls == [name for request in expected["model_requests"] for name in request["calls"]]
    summaries = [event.content for event in events if event.kind == "compaction"]
    assert summaries == [r["reply"] for r in expected["model_requests"] if r["kind"] == "compaction"]
    main = [session for session in reader.sessions.values() if not session.is_side]
    assert {(session.cwd, session.version) for session in main} == {(expected["cwd"], expected["version"])}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_reading_row_by_row_gives_the_same_events_and_losses(scenario: str, tmp_path: Path) -> None:
    at_once, _ = imported(scenario, tmp_path / "a")
    by_row, _ = imported(scenario, tmp_path / "b", limit=1)
    assert by_row.events() == at_once.events()
    assert by_row.losses == at_once.losses


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_second_round_gives_nothing_new_and_counts_nothing_again(scenario: str, tmp_path: Path) -> None:
    reader, _ = imported(scenario, tmp_path)
    losses = reader.losses.copy()
    assert reader.round() == []
    reader.cursors.clear()
    assert reader.round() == []
    assert reader.at_rest() == []
    assert reader.losses == losses


def test_rows_of_a_killed_turn_that_are_only_in_the_log_are_there(tmp_path: Path) -> None:
    reader, _ = imported("interrupted", tmp_path)
    tools = [event for event in reader.events() if event.kind in ("tool_call", "tool_result")]
    assert [event.kind for event in tools] == ["tool_call", "tool_result"]
    assert tools[1].content == "ran-before-kill\n"
    assert tools[1].metadata["exit_code"] == 0


def test_a_fork_shares_the_events_it_copied(tmp_path: Path) -> None:
    reader, _ = imported("forked", tmp_path)
    assert reader.said() == [
        ["user", "base SENTINEL-fork1"],
        ["assistant", "ACK SENTINEL-fork1"],
        ["user", "on the fork SENTINEL-fork2"],
        ["assistant", "ACK SENTINEL-fork2"],
        ["user", "on the original SENTINEL-fork3"],
        ["assistant", "ACK SENTINEL-fork3"],
    ]
    fork = next(session.id for session in reader.sessions.values() if "fork" in session.title)
    assert [text for _, text in reader.said(fork)] == [
        "base SENTINEL-fork1",
        "ACK SENTINEL-fork1",
        "on the fork SENTINEL-fork2",
        "ACK SENTINEL-fork2",
    ]


def test_a_sub_agent_is_beside_the_main_line_and_counted(tmp_path: Path) -> None:
    reader, _ = imported("subagent", tmp_path)
    child = next(session for session in reader.sessions.values() if session.is_side)
    assert child.parent in reader.sessions
    assert all(event.is_side == (event.session == child.id) for event in reader.events())
    assert any(event.content == "DONE SENTINEL-sub1" for event in reader.events(child.id))
    assert "DONE SENTINEL-sub1" not in [text for _, text in reader.said()]
    assert dict(reader.losses) == {(child.parent, "sub-agent"): 1}


def test_reasoning_and_injected_context_are_left_out_and_counted(tmp_path: Path) -> None:
    thought, _ = imported("reasoning", tmp_path / "a")
    assert [what for _, what in thought.losses.elements()] == ["reasoning"]
    injected, _ = imported("injected", tmp_path / "b")
    assert [what for _, what in injected.losses.elements()] == ["synthetic", "synthetic"]
    for reader in (thought, injected):
        text = "\n".join(event.content for event in reader.events())
        assert "HIDDEN-REASONING" not in text
        assert "memd-packet" not in text


def test_an_answer_that_was_stopped_says_so(tmp_path: Path) -> None:
    reader, _ = imported("escaped", tmp_path)
    partial = next(event for event in reader.events() if event.content == "SLOW-START ")
    assert partial.metadata == {"status": "aborted"}


def test_tools_keep_their_call_ids_results_and_times(tmp_path: Path) -> None:
    reader, _ = imported("tool-use", tmp_path)
    calls = [event for event in reader.events() if event.kind == "tool_call"]
    results = [event for event in reader.events() if event.kind == "tool_result"]
    assert [event.metadata["tool_call_id"] for event in calls] == [
        event.metadata["tool_call_id"] for event in results
    ]
    assert len({event.metadata["tool_call_id"] for event in calls}) == 6
    failed = results[1]
    assert (failed.metadata["exit_code"], failed.metadata["status"]) == (2, "completed")
    assert calls[0].content == (
        'bash: {"command":"printf \'alpha\\\\nbeta\\\\n\'","description":"lab command"}'
    )
    assert (calls[0].occurred_at, results[0].occurred_at) == (
        "2026-11-30T19:12:45.435Z",
        "2026-11-30T19:12:45.621Z",
    )
