"""Rollouts that Codex 0.171.0 really wrote. What was typed and answered is in `expected.json`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from memd.harness import registry
from support_imports import Reading, events_of, losses_of, messages_of, readings
from support_order import conversation

FIXTURES = Path(__file__).parents[1] / "fixtures" / "codex"
NAMES = sorted(path.name for path in FIXTURES.iterdir())


def load(name: str, tmp_path: Path) -> tuple[dict[str, Any], list[Reading]]:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / name, home)
    found = readings(home, "codex")
    return json.loads((home / "expected.json").read_bytes()), found


def said(expected: dict[str, Any]) -> list[list[str]]:
    """The visible conversation of a run: what was typed, and each reply of a turn that was finished."""
    messages: list[list[str]] = []
    turns = [one for one in expected["model_requests"] if one["kind"] == "turn"]
    for prompt in (text for text in expected["typed"] if not text.startswith("/")):
        messages.append(["user", prompt])
        for turn in turns:
            reply = turn["reply"]
            if prompt.endswith(turn["prompt_tail"]) and reply and not reply.startswith("SLOW-DONE"):
                messages.append(["assistant", reply])
    return messages


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"cleared", "forked", "rewound", "subagent"}))
def test_fixture_gives_exactly_its_conversation_in_order(name: str, tmp_path: Path) -> None:
    expected, found = load(name, tmp_path)
    assert [conversation(one.events) for one in found] == [said(expected)]
    assert [one.session.cwd for one in found] == [expected["cwd"]]


def test_cleared_thread_is_followed_by_another(tmp_path: Path) -> None:
    _expected, found = load("cleared", tmp_path)
    assert [conversation(one.events) for one in found] == [
        [["user", "keep SENTINEL-clr1"], ["assistant", "ACK SENTINEL-clr1"]],
        [["user", "fresh SENTINEL-clr2"], ["assistant", "ACK SENTINEL-clr2"]],
    ]


def test_fork_is_stitched_to_the_beginning_it_shares(tmp_path: Path) -> None:
    _expected, found = load("forked", tmp_path)
    fork = next(one.session for one in found if one.session.forked_from)
    assert messages_of(found, fork.id) == [
        ["user", "base SENTINEL-fork1"],
        ["assistant", "ACK SENTINEL-fork1"],
        ["user", "on the fork SENTINEL-fork2"],
        ["assistant", "ACK SENTINEL-fork2"],
    ]
    assert messages_of(found, fork.forked_from)[2:] == [
        ["user", "on the original SENTINEL-fork3"],
        ["assistant", "ACK SENTINEL-fork3"],
    ]


def test_thread_goes_on_in_further_files_after_turns_were_taken_back(tmp_path: Path) -> None:
    _expected, found = load("rewound", tmp_path)
    threads = {one.session.id for one in found}
    (fork,) = (one.session for one in found if one.session.forked_from)
    main = fork.forked_from
    said = [
        ["user", "one SENTINEL-r1"],
        ["assistant", "ACK SENTINEL-r1"],
        ["user", "two SENTINEL-r2 three SENTINEL-r3"],
        ["assistant", "ACK SENTINEL-r2 SENTINEL-r3"],
        ["user", "four SENTINEL-r4 five SENTINEL-r5"],
        ["assistant", "ACK SENTINEL-r4 SENTINEL-r5"],
        ["user", "ignored"],
        ["assistant", "ACK"],
        ["user", "six SENTINEL-r6"],
        ["assistant", "ACK SENTINEL-r6"],
    ]
    assert threads == {main, fork.id}
    assert messages_of(found, main) == said
    assert messages_of(found, fork.id) == [
        *said,
        ["user", "seven SENTINEL-r7"],
        ["assistant", "ACK SENTINEL-r7"],
    ]
    aside = [event.content for event in events_of(found, main) if event.is_side]
    assert aside == ["two SENTINEL-r2", "ACK SENTINEL-r2", "four SENTINEL-r4", "ACK SENTINEL-r4"]
    assert losses_of(found, main)["branch"] == 2


def test_files_of_one_thread_are_kin_and_their_names_are_in_order(tmp_path: Path) -> None:
    _expected, found = load("rewound", tmp_path)
    kin = registry.resolve("codex").kin
    shifts: dict[bytes, list[int]] = {}
    for reading in sorted(found, key=lambda one: one.path):
        shifts.setdefault(kin(reading.path), []).append(reading.session.shift)
    assert sorted(len(parts) for parts in shifts.values()) == [1, 3]
    assert all(parts == sorted(parts) and parts[0] == 0 for parts in shifts.values())
    places = [event.at for one in found for event in one.events if not one.session.forked_from]
    assert len(set(places)) == len(places)


def test_sub_agent_is_a_side_session_of_its_parent(tmp_path: Path) -> None:
    expected, found = load("subagent", tmp_path)
    main, side = sorted(found, key=lambda one: one.session.is_side)
    assert side.session.is_side
    assert side.session.parent == main.session.id
    assert all(event.is_side and event.session == side.session.id for event in side.events)
    assert messages_of(found, main.session.id) == [
        ["user", expected["typed"][0]],
        ["assistant", "parent done SENTINEL-sub2"],
    ]
    assert losses_of(found, main.session.id)["sub-agent"] == 1


def test_summary_of_a_compaction_is_no_reply(tmp_path: Path) -> None:
    _expected, (reading,) = load("compacted", tmp_path)
    holding = [event for event in reading.events if "LAB SUMMARY" in event.content]
    assert [(event.kind, event.role) for event in holding] == [("compaction", "assistant")]


def test_tool_calls_and_results_are_paired_by_id(tmp_path: Path) -> None:
    _expected, (reading,) = load("tool-use", tmp_path)
    calls = [event.metadata["tool_call_id"] for event in reading.events if event.kind == "tool_call"]
    results = {
        event.metadata["tool_call_id"]: event.metadata["exit_code"]
        for event in reading.events
        if event.kind == "tool_result"
    }
    assert len(calls) == 6
    assert list(results) == calls
    assert list(results.values()) == [0, 2, 0, 0, 0, 0]


def test_killed_turn_keeps_prompt_call_and_output(tmp_path: Path) -> None:
    _expected, (reading,) = load("interrupted", tmp_path)
    assert [event.kind for event in reading.events][-2:] == ["tool_call", "tool_result"]
    assert reading.events[-1].content.endswith("ran-before-kill\n")


def test_injected_context_is_never_a_message(tmp_path: Path) -> None:
    _expected, (reading,) = load("injected", tmp_path)
    assert not any("SENTINEL-packet" in event.content for event in reading.events)


@pytest.mark.parametrize("name", NAMES)
def test_fixture_is_read_to_its_end_without_damage(name: str, tmp_path: Path) -> None:
    _expected, found = load(name, tmp_path)
    assert found
    for reading in found:
        assert reading.at == os.path.getsize(reading.path)
        assert not {"malformed", "unknown-type", "unknown-shape", "unknown-block"} & set(reading.losses())
        told = [session for part in reading.parts for session in part.sessions]
        assert told == [reading.session]


@pytest.mark.parametrize("name", NAMES)
def test_system_prompts_and_environment_stay_outside(name: str, tmp_path: Path) -> None:
    _expected, found = load(name, tmp_path)
    texts = [event.content for one in found for event in one.events]
    for words in ("<environment_context>", "<permissions instructions>", "You are a coding agent"):
        assert not any(words in text for text in texts)
