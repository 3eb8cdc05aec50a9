"""Kimi Code, Command Code and Grok Build: what their sessions bring into the ledger, also while they go on.

source  Kimi Code 2.1.0, Command Code 1.64.0, Grok Build 0.2.111, run 2026-12
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from real.harnesses import HARNESSES
from real.managed import PROJECT, Desk, eventually, finish, packets_in
from real.screen import Screen, why_no_screen

pytestmark = pytest.mark.real

Open = Callable[..., Desk]
ENGINES = ("kimi", "command-code", "grok")
needs_screen = pytest.mark.skipif(bool(why_no_screen()), reason=why_no_screen() or "there is one")
_BURST_S = 0.4  # Kimi Code takes Enter for a part of what was pasted until this long after a letter


def ledger(desk: Desk, name: str, session: str) -> list[tuple[str, str]]:
    """Kind and content of all that the ledger has of a session, in its order."""
    done = desk.memd.ctl("export", "--session", session, "--harness", name)
    rows = [json.loads(line) for line in done.out.splitlines()]
    return [(row["kind"], row["content"].removeprefix("• ")) for row in rows]  # Kimi's mark on its screen


def ledgers(desk: Desk, name: str) -> list[list[tuple[str, str]]]:
    """The same of all sessions of a harness here."""
    return [ledger(desk, name, session) for session in desk.sessions(name)]


def said(desk: Desk, name: str, session: str) -> list[str]:
    return [content for kind, content in ledger(desk, name, session) if kind == "message"]


@contextmanager
def on_the_screen(desk: Desk, name: str, *words: str) -> Iterator[Screen]:
    """A managed run on a terminal that takes input; it is quit at the end."""
    with desk.screen(name, *words) as screen:
        screen.wait(HARNESSES[name].ready, timeout_s=60)
        yield screen
        type_in(screen, HARNESSES[name].leave)
        assert screen.status(60) == 0


def type_in(screen: Screen, text: str) -> None:
    screen.type(text)
    screen.wait(text[-20:])
    time.sleep(_BURST_S)  # a real program's sense of time cannot be faked
    screen.key("Enter")


def ask(screen: Screen, word: str) -> None:
    """One prompt, answered."""
    type_in(screen, f"hello {word}")
    screen.wait(f"ACK {word}", timeout_s=60)


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_said_is_in_the_ledger_once_and_reasoning_is_not(open_desk: Open, name: str) -> None:
    desk = open_desk(name)
    desk.direct(name, "USE_TOOL echo SENTINEL-tool ;; THINK deeply SENTINEL-said")
    desk.memd.ctl("import", "--wait")
    (session,) = desk.sessions(name)
    rows = ledger(desk, name, session)
    assert [kind for kind, _ in rows] == ["message", "tool_call", "tool_result", "message"]
    assert "echo SENTINEL-tool" in rows[1][1]
    assert rows[2][1].rstrip().endswith("SENTINEL-tool")
    assert rows[3][1] == "THOUGHT SENTINEL-tool SENTINEL-said"
    assert "HIDDEN-REASONING" not in str(rows)


@pytest.mark.parametrize("name", ENGINES)
def test_run_is_resumed_and_what_it_says_is_imported_once(open_desk: Open, name: str) -> None:
    desk = open_desk(name)
    desk.run(name, "SAY one SENTINEL-first")
    (again,) = desk.run(name, "SAY two SENTINEL-second")
    assert "one SENTINEL-first" in again.text
    assert packets_in(again) == 0
    (session,) = desk.sessions(name)
    assert said(desk, name, session) == [
        "SAY one SENTINEL-first",
        "one SENTINEL-first",
        "SAY two SENTINEL-second",
        "two SENTINEL-second",
    ]


@pytest.mark.parametrize("name", ENGINES)
def test_fork_is_a_session_of_its_own_with_what_it_was_begun_from(open_desk: Open, name: str) -> None:
    desk = open_desk(name)
    desk.direct(name, "SAY one SENTINEL-first")
    desk.memd.ctl("import", "--wait")
    (parent,) = desk.sessions(name)
    if name == "kimi":
        desk.world.run("kimi", "fork", parent, "-y", cwd=PROJECT)
        desk.memd.ctl("import", "--wait")
        (copy,) = set(desk.sessions(name)) - {parent}
        desk.direct(name, "SAY two SENTINEL-second", "--session", copy)
    else:
        desk.direct(name, "SAY two SENTINEL-second", "--resume", parent, "--fork-session")
    desk.memd.ctl("import", "--wait")
    (copy,) = set(desk.sessions(name)) - {parent}
    first = ["SAY one SENTINEL-first", "one SENTINEL-first"]
    assert said(desk, name, parent) == first
    assert said(desk, name, copy) == [*first, "SAY two SENTINEL-second", "two SENTINEL-second"]


@pytest.mark.parametrize("name", ENGINES)
def test_what_came_so_far_is_in_the_ledger_while_the_program_still_answers(
    open_desk: Open, name: str
) -> None:
    desk = open_desk(name)
    running = desk.start(name, "USE_TOOL echo SENTINEL-tool ;; USE_TOOL true ;; HOLD go SENTINEL-held")
    desk.wait_for_turn("SENTINEL-held", step=2)
    eventually(lambda: "SENTINEL-held" in str(ledgers(desk, name)), "the prompt in the ledger")
    assert running.is_alive
    desk.world.release("go")
    finish(running)
    assert any("RELEASED" in row["content"] for row in desk.found("RELEASED"))


@needs_screen
@pytest.mark.parametrize(
    ("name", "summary"),
    [("kimi", "SCRIPTED SUMMARY"), ("command-code", "SCRIPTED SUMMARY"), ("grok", "Context compacted")],
)
def test_what_came_before_a_compaction_stays_and_comes_once(open_desk: Open, name: str, summary: str) -> None:
    desk = open_desk(name)
    desk.run(name, "USE_TOOL true ;; USE_TOOL true ;; USE_TOOL true ;; SAY one SENTINEL-first")
    if name == "command-code":
        desk.run(name, "BIG 300000")  # it compacts what is older than 30,000 tokens
    desk.run(name, "SAY two SENTINEL-second")
    with on_the_screen(desk, name) as screen:
        screen.wait("SAY two SENTINEL-second", timeout_s=60)
        type_in(screen, "/compact")
        desk.world.wait_for_request(lambda request: "SCRIPTED SUMMARY" in str(request.reply), timeout_s=60)
        screen.wait("(?i)compact(ed|ion complete)", timeout_s=60)
        ask(screen, "SENTINEL-third")
    (session,) = desk.sessions(name)
    rows = ledger(desk, name, session)
    messages = [content for kind, content in rows if kind == "message"]
    for text in ("one SENTINEL-first", "two SENTINEL-second", "hello SENTINEL-third", "ACK SENTINEL-third"):
        assert messages.count(text) == 1, text
    (compaction,) = [content for kind, content in rows if kind == "compaction"]
    assert summary in compaction
