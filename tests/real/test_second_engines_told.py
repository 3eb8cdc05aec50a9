"""Kimi Code, Command Code and Grok Build: what their models are told of work that was done elsewhere.

source  Kimi Code 2.1.0, Command Code 1.64.0, Grok Build 0.2.111, Claude Code 2.1.197, run 2026-12
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from real.harnesses import HARNESSES
from real.managed import MARKER, Desk, packets_in
from real.test_second_engines import ask, needs_screen, on_the_screen, said, type_in

pytestmark = pytest.mark.real

Open = Callable[..., Desk]


def test_kimi_is_told_before_its_prompt_and_claude_after_it(open_desk: Open) -> None:
    desk = open_desk("claude", "kimi")
    desk.run("claude", "SAY noted SENTINEL-begun")

    (told,) = desk.run("kimi", "SAY understood SENTINEL-taken")
    assert packets_in(told) == 1
    assert told.text.index("SENTINEL-begun") < told.text.index("SENTINEL-taken")

    (resumed,) = desk.run("kimi", "SAY fine SENTINEL-again")
    assert "understood SENTINEL-taken" in resumed.text
    assert packets_in(resumed) == 1  # the one that it keeps from the start

    (back,) = desk.run("claude", "SAY seen SENTINEL-back")
    assert "understood SENTINEL-taken" in back.text
    assert "fine SENTINEL-again" in back.text

    (last,) = desk.run("kimi", "hello SENTINEL-last")
    assert packets_in(last) == 2
    assert last.text.count("noted SENTINEL-begun") == 2  # asked and answered, in the first packet alone
    assert "seen SENTINEL-back" in last.text
    (session,) = desk.sessions("kimi")
    assert [text for text in said(desk, "kimi", session) if MARKER in text or "SENTINEL-b" in text] == []


def test_new_grok_session_is_told_by_rules_and_one_that_goes_on_after_its_answer(open_desk: Open) -> None:
    desk = open_desk("claude", "grok")
    desk.run("claude", "SAY noted SENTINEL-begun")

    (told,) = desk.run("grok", "SAY understood SENTINEL-taken")
    assert packets_in(told) == 1
    assert "noted SENTINEL-begun" in told.text
    assert len(desk.sessions("claude")) == 1  # Grok runs Claude Code's hooks as well

    (back,) = desk.run("claude", "SAY seen SENTINEL-back")
    assert "understood SENTINEL-taken" in back.text

    answered, after = desk.run("grok", "SAY fine SENTINEL-again")
    assert "understood SENTINEL-taken" in answered.text
    assert packets_in(answered) == 0
    assert packets_in(after) == 1
    assert "seen SENTINEL-back" in after.text

    (resumed,) = desk.run("grok", "hello SENTINEL-last")
    assert packets_in(resumed) == 1  # the one that it keeps: nothing came since
    (session,) = desk.sessions("grok")
    assert [text for text in said(desk, "grok", session) if MARKER in text or "SENTINEL-b" in text] == []


def test_grok_with_rules_of_a_persons_own_is_told_after_its_first_answer(open_desk: Open) -> None:
    desk = open_desk("claude", "grok")
    desk.run("claude", "SAY noted SENTINEL-begun")
    answered, after = desk.run("grok", "SAY fine SENTINEL-taken", "--rules", "SENTINEL-mine")
    assert "SENTINEL-mine" in answered.text
    assert packets_in(answered) == 0
    assert packets_in(after) == 1
    assert "noted SENTINEL-begun" in after.text


@needs_screen
def test_command_code_is_told_on_the_screen_and_what_a_query_was_not_told_stays_due(open_desk: Open) -> None:
    desk = open_desk("claude", "command-code")
    desk.run("claude", "SAY noted SENTINEL-begun")

    (query,) = desk.run("command-code", "SAY fine SENTINEL-query")
    assert packets_in(query) == 0

    with on_the_screen(desk, "command-code") as screen:
        ask(screen, "SENTINEL-shown")
    told = desk.wait_for_turn("SENTINEL-shown")
    assert "fine SENTINEL-query" in told.text
    assert packets_in(told) == 1
    assert "noted SENTINEL-begun" in told.text
    (session,) = desk.sessions("command-code")
    assert [text for text in said(desk, "command-code", session) if MARKER in text] == []

    (back,) = desk.run("claude", "hello")
    assert "fine SENTINEL-query" in back.text
    assert "ACK SENTINEL-shown" in back.text


@needs_screen
@pytest.mark.parametrize(
    ("name", "clear", "again"),
    [
        ("kimi", "/new", 0),
        ("command-code", "/clear", 0),
        ("grok", "/new", 1),
    ],  # Grok's rules are the process's
)
def test_second_conversation_in_one_run_joins_the_workstream_and_gets_no_packet_of_its_own(
    open_desk: Open, name: str, clear: str, again: int
) -> None:
    """Grok's rules are those of its process: there the one packet stands before both."""
    desk = open_desk("claude", name)
    desk.run("claude", "SAY noted SENTINEL-begun")
    with on_the_screen(desk, name) as screen:
        ask(screen, "SENTINEL-first")
        type_in(screen, clear)
        screen.wait_gone("SENTINEL-first")
        screen.wait(HARNESSES[name].ready)
        ask(screen, "SENTINEL-second")
    first, second = (desk.wait_for_turn(f"SENTINEL-{word}") for word in ("first", "second"))
    assert packets_in(first) == 1
    assert "SENTINEL-begun" in first.text
    assert packets_in(second) == again
    assert {row["role"] for row in desk.found("SENTINEL-second")} == {"user", "assistant"}
    (resumed,) = desk.run(name, "hello")
    assert "ACK SENTINEL-second" in resumed.text
