"""What Kiro's hooks carry and print, and where they are written."""

from __future__ import annotations

from memd.harness.hooking import Heard
from memd.harness.kiro_hooks import HOOKS, SECOND, THIRD
from memd.harness.model import Environment


def test_a_payload_names_session_and_directory() -> None:
    payload = {"hook_event_name": "agentSpawn", "cwd": "/w", "session_id": "s", "tool_input": {"path": "x"}}
    assert HOOKS.hear("agentSpawn", payload) == Heard(session="s", cwd="/w")
    assert HOOKS.hear("agentSpawn", {"session_id": ["s"], "cwd": 7}) == Heard()


def test_only_a_start_prints_and_it_prints_plain_text() -> None:
    told = {event.name: HOOKS.answer(event.name, 'a "text"\n') for event in HOOKS.events}
    assert told == {
        "agentSpawn": 'a "text"\n',
        "userPromptSubmit": "",
        "SessionStart": 'a "text"\n',
        "UserPromptSubmit": "",
    }
    assert {event.harmless for event in HOOKS.events} == {""}


def test_each_engine_has_its_own_events_in_its_own_place() -> None:
    agents, listed = HOOKS.settings(Environment(home=b"/h"))
    assert (agents.path, agents.form, agents.each, agents.events) == (
        b"/h/.kiro/agents", "json-flat", "*.json", SECOND,
    )  # fmt: skip
    assert (listed.path, listed.form, listed.each, listed.events) == (
        b"/h/.kiro/hooks/memd.json", "json-list", "", THIRD,
    )  # fmt: skip
    assert {event.name for event in HOOKS.events} == {*SECOND, *THIRD}


def test_kiro_home_moves_them_unless_it_is_blank() -> None:
    def path(value: bytes) -> bytes:
        return HOOKS.settings(Environment(home=b"/h", variables={"KIRO_HOME": value}))[0].path

    moved = HOOKS.settings(Environment(home=b"/h", variables={"KIRO_HOME": b"/k"}))
    assert [settings.path for settings in moved] == [
        b"/k/agents", b"/k/hooks/memd.json", b"/h/.kiro/agents", b"/h/.kiro/hooks/memd.json",
    ]  # fmt: skip
    assert [path(value) for value in (b"/k/", b" ", b"relative")] == [
        b"/k/agents", b"/h/.kiro/agents", b"/h/.kiro/agents",
    ]  # fmt: skip


def test_a_packet_of_the_second_engine_is_not_cut() -> None:
    spawn = HOOKS.event("agentSpawn")
    assert spawn is not None
    assert spawn.output_bytes == 65536
    assert spawn.matcher is None
