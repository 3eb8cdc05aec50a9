"""Sessions that Claude Code 2.1.197 really wrote. What was typed and answered is in `expected.json`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from support_imports import Reading, events_of, losses_of, messages_of, readings
from support_order import conversation

FIXTURES = Path(__file__).parents[1] / "fixtures" / "claude"
NAMES = sorted(path.name for path in FIXTURES.iterdir())


def load(name: str, tmp_path: Path) -> tuple[dict[str, Any], list[Reading]]:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / name, home)
    found = readings(home, "claude")
    return json.loads((home / "expected.json").read_bytes()), found


def said(expected: dict[str, Any]) -> list[list[str]]:
    """The visible conversation of a run: what was typed, and each reply of a turn that was finished.

    Prompts and turns are told apart by the end of the prompt that each model request recorded.
    """
    messages: list[list[str]] = []
    turns = [one for one in expected["model_requests"] if one["kind"] == "turn"]
    for prompt in (text for text in expected["typed"] if not text.startswith("/")):
        messages.append(["user", prompt])
        for turn in turns:
            reply = turn["reply"]
            if prompt.endswith(turn["prompt_tail"]) and reply and not reply.startswith("SLOW-DONE"):
                messages.append(["assistant", reply])
    return messages


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"cleared", "escaped", "forked", "queued", "rewound"}))
def test_fixture_gives_exactly_its_conversation_in_order(name: str, tmp_path: Path) -> None:
    expected, found = load(name, tmp_path)
    main = [one for one in found if not one.session.is_side]
    assert [conversation(one.events) for one in main] == [said(expected)]
    assert [one.session.cwd for one in main] == [expected["cwd"]]


def test_cleared_session_goes_on_under_a_new_id(tmp_path: Path) -> None:
    _expected, found = load("cleared", tmp_path)
    spoken = sorted(conversation(one.events) for one in found)
    assert spoken == [
        [["user", "fresh SENTINEL-clr2"], ["assistant", "ACK SENTINEL-clr2"]],
        [["user", "keep SENTINEL-clr1"], ["assistant", "ACK SENTINEL-clr1"]],
    ]


def test_escaped_turn_keeps_what_was_said_before_it(tmp_path: Path) -> None:
    _expected, (reading,) = load("escaped", tmp_path)
    assert conversation(reading.events) == [
        ["user", "start SENTINEL-esc0"],
        ["assistant", "ACK SENTINEL-esc0"],
        ["user", "USE_TOOL echo ran-before-esc ;; SLOW 40 SENTINEL-esc1"],
        ["assistant", "SLOW-START\n\n"],
        ["user", "after SENTINEL-esc2"],
        ["assistant", "ACK SENTINEL-esc2"],
    ]
    assert reading.losses() == {"synthetic": 1}  # the notice that the person interrupted


def test_prompt_typed_while_the_model_works_stands_where_it_was_read(tmp_path: Path) -> None:
    expected, (reading,) = load("queued", tmp_path)
    assert conversation(reading.events) == [
        ["user", expected["typed"][0]],
        ["user", "queued words SENTINEL-q2"],
        ["assistant", "first done SENTINEL-q1"],
        ["user", "! echo shell-line"],
        ["assistant", "ACK"],
    ]
    assert [event.kind for event in reading.events][:4] == ["message", "tool_call", "tool_result", "message"]
    assert not reading.losses()


def test_turn_that_was_taken_back_is_beside_the_main_line(tmp_path: Path) -> None:
    _expected, found = load("rewound", tmp_path)
    (reading,) = found
    assert messages_of(found, reading.session.id) == [
        ["user", "one SENTINEL-r1"],
        ["assistant", "ACK SENTINEL-r1"],
        ["user", "two SENTINEL-r2three SENTINEL-r3"],
        ["assistant", "ACK SENTINEL-r2three SENTINEL-r3"],
    ]
    aside = [event.content for event in events_of(found, reading.session.id) if event.is_side]
    assert aside == ["two SENTINEL-r2", "ACK SENTINEL-r2"]
    assert reading.losses()["branch"] == 1


def test_fork_shares_the_events_of_its_beginning(tmp_path: Path) -> None:
    _expected, found = load("forked", tmp_path)
    one, other = sorted(found, key=lambda reading: reading.session.id)
    shared = {event.origin for event in one.events} & {event.origin for event in other.events}
    assert len(shared) == 2
    assert conversation(one.events)[:2] == conversation(other.events)[:2]
    assert conversation(one.events)[2:] != conversation(other.events)[2:]


def test_compaction_is_two_events_and_no_message(tmp_path: Path) -> None:
    _expected, (reading,) = load("compacted", tmp_path)
    compactions = [event for event in reading.events if event.kind == "compaction"]
    assert compactions[0].content == "Conversation compacted"
    assert "LAB SUMMARY" in compactions[1].content
    assert reading.losses() == {"synthetic": 1, "command": 2}


def test_tool_calls_and_results_are_paired_by_id(tmp_path: Path) -> None:
    _expected, (reading,) = load("tool-use", tmp_path)
    calls = [event.metadata["tool_use_id"] for event in reading.events if event.kind == "tool_call"]
    results = [event.metadata["tool_use_id"] for event in reading.events if event.kind == "tool_result"]
    assert len(calls) == 6
    assert calls == results
    failed = [event for event in reading.events if event.metadata.get("is_error")]
    assert [event.content.split("\n")[0] for event in failed] == ["Exit code 2"]


def test_killed_turn_keeps_prompt_call_and_result(tmp_path: Path) -> None:
    _expected, (reading,) = load("interrupted", tmp_path)
    assert [event.kind for event in reading.events][-2:] == ["tool_call", "tool_result"]
    assert reading.events[-1].content == "ran-before-kill"


def test_sub_agent_is_counted_and_not_mixed_in(tmp_path: Path) -> None:
    _expected, found = load("subagent", tmp_path)
    main = next(one for one in found if not one.session.is_side)
    assert losses_of(found, main.session.id) == {"sidechain": 5}
    assert [event.content for event in main.events if event.kind == "message"][-1].startswith("parent done")


def test_injected_context_is_never_a_message(tmp_path: Path) -> None:
    _expected, (reading,) = load("injected", tmp_path)
    assert not any("SENTINEL-packet" in event.content for event in reading.events)
    assert reading.losses() == {"attachment": 4}


def test_hidden_reasoning_is_one_loss(tmp_path: Path) -> None:
    _expected, (reading,) = load("reasoning", tmp_path)
    assert reading.losses() == {"reasoning": 1}
    assert not any(event.content == "private plan" for event in reading.events)


@pytest.mark.parametrize("name", NAMES)
def test_fixture_is_read_to_its_end_without_damage(name: str, tmp_path: Path) -> None:
    _expected, found = load(name, tmp_path)
    assert found
    for reading in found:
        assert reading.at == os.path.getsize(reading.path)
        assert not {"malformed", "unknown-type", "unknown-shape", "unknown-block"} & set(reading.losses())


def test_title_and_version_are_told(tmp_path: Path) -> None:
    _expected, (reading,) = load("two-prompts", tmp_path)
    told = [session for part in reading.parts for session in part.sessions]
    assert {session.title for session in told} == {"", "Lab session"}
    assert {session.version for session in told} == {"", "2.1.197"}
    assert {session.id for session in told} == {reading.session.id}
