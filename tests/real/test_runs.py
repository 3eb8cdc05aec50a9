"""A managed run of a real program: seen while it goes on, killed, cut off from memd, begun again.

source  Claude Code 2.1.197, codex-cli 0.171.0, OpenCode 1.18.33, Pi 1.6.0, OMP 18.2.3, run 2026-11
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from real.harnesses import HARNESSES
from real.managed import EXTRA, PROJECT, Desk, eventually, family, finish, kill_all, packets_in, prompt_of
from real.namespace import HOME
from real.product import MEMCTL, PYTHON_PATH
from real.screen import why_no_screen

pytestmark = pytest.mark.real

Open = Callable[..., Desk]
needs_screen = pytest.mark.skipif(bool(why_no_screen()), reason=why_no_screen() or "there is one")


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "pi", "omp"])
def test_event_is_in_the_ledger_while_the_program_still_runs(open_desk: Open, name: str) -> None:
    desk = open_desk(name)
    running = desk.start(name, "USE_TOOL echo SENTINEL-tool ;; HOLD go SENTINEL-held")
    desk.wait_for_turn("SENTINEL-held", step=1)
    eventually(lambda: bool(desk.found("SENTINEL-held")), "the prompt in the ledger")
    assert running.is_alive
    assert desk.found("SENTINEL-held")[0]["sequence"] > 0
    desk.world.release("go")
    finish(running)
    assert any("RELEASED" in row["content"] for row in desk.found("RELEASED"))


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("claude", "codex"),
        ("codex", "claude"),
        ("opencode", "codex"),
        ("pi", "claude"),
        ("omp", "claude"),
    ],
)
def test_killed_run_frees_the_workstream_at_once_and_its_tail_is_told(
    open_desk: Open, name: str, after: str
) -> None:
    desk = open_desk(name, after)
    running = desk.start(name, "USE_TOOL expr 41000 + 987 ;; HOLD never SENTINEL-killed")
    desk.wait_for_turn("SENTINEL-killed", step=1)
    eventually(lambda: desk.is_stored(name, b"41987"), "the program to write down what it did")
    kill_all(family(running))
    running.finish()
    (told,) = desk.run(after, "hello")  # a workstream that is held would cost 5 s and be refused
    assert packets_in(told) == 1
    assert "SENTINEL-killed" in told.text
    assert "41987" in told.text


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "pi", "omp"])
def test_daemon_killed_and_started_anew_disturbs_no_run(open_desk: Open, name: str) -> None:
    other = "codex" if name == "claude" else "claude"
    desk = open_desk(name, other)
    running = desk.start(name, "HOLD go SENTINEL-through")
    desk.wait_for_turn("SENTINEL-through")
    desk.world.run("kill", "-9", str(desk.memd.pid()))
    desk.memd.up()
    desk.world.release("go")
    done = finish(running)
    assert "RELEASED SENTINEL-through" in done.out
    (told,) = desk.run(other, "hello")
    assert "RELEASED SENTINEL-through" in told.text


def test_agent_goes_on_and_keeps_its_exit_code_when_memd_stays_away(open_desk: Open) -> None:
    desk = open_desk("claude", "codex")
    running = desk.start("claude", "HOLD go SENTINEL-alone")
    desk.wait_for_turn("SENTINEL-alone")
    desk.world.run("kill", "-9", str(desk.memd.pid()))
    desk.world.release("go")
    assert "RELEASED SENTINEL-alone" in finish(running).out
    desk.memd.up()
    (told,) = desk.run("codex", "hello")
    assert "RELEASED SENTINEL-alone" in told.text


def test_exit_code_of_a_failing_program_is_its_own(open_desk: Open) -> None:
    desk = open_desk("claude")
    argv = HARNESSES["claude"].turn("hello", ("--resume", "00000000-0000-4000-8000-000000000000"))
    alone = desk.world.run(*argv, cwd=PROJECT, may_fail=True)
    managed = desk.memd.ctl("run", *argv, cwd=PROJECT, may_fail=True)
    assert alone.status != 0
    assert managed.status == alone.status
    assert "No conversation found" in managed.err + managed.out


@pytest.mark.parametrize(("name", "store"), [("claude", ".claude/projects"), ("codex", ".codex/sessions")])
def test_session_whose_transcript_is_gone_is_begun_anew(open_desk: Open, name: str, store: str) -> None:
    desk = open_desk(name)
    desk.run(name, "SAY kept SENTINEL-old")
    desk.world.run("find", f"{HOME}/{store}", "-name", "*.jsonl", "-delete")
    (fresh,) = desk.run(name, "SAY and SENTINEL-new")
    assert packets_in(fresh) == 1
    assert "SENTINEL-old" in fresh.text
    (resumed,) = desk.run(name, "hello")
    assert "and SENTINEL-new" in resumed.text
    assert packets_in(resumed) == 1


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_agent_started_by_an_agent_is_told_nothing_and_changes_nothing(open_desk: Open, name: str) -> None:
    desk = open_desk("pi", name)
    desk.run("pi", "SAY told SENTINEL-before")
    path = desk.world.environment()["PATH"]  # Codex gives its tools a login shell's
    inner = " ".join(HARNESSES[name].turn("SENTINEL-inner", EXTRA.get(name, ())))
    turns = desk.run(name, f"USE_TOOL PATH={path} {inner} </dev/null ;; SAY outer SENTINEL-outer")
    inside = [turn for turn in turns if prompt_of(turn) == "SENTINEL-inner"]
    outside = [turn for turn in turns if turn not in inside]
    assert [packets_in(turn) for turn in inside] == [0]
    assert packets_in(outside[0]) == 1
    (resumed,) = desk.run(name, "hello")
    assert "outer SENTINEL-outer" in resumed.text


@needs_screen
@pytest.mark.parametrize(
    ("name", "rests", "clear", "question", "ready"),
    [
        ("claude", "for shortcuts", "/clear", "", "for shortcuts"),
        ("codex", "Worked for", "/new", "Where should the new conversation run", "for agents"),
        ("pi", "ACK", "/new", "", "New session started"),
        ("omp", "ACK", "/new", "", "New session started"),
    ],
)
def test_second_start_in_one_run_delivers_nothing_twice(
    open_desk: Open, name: str, rests: str, clear: str, question: str, ready: str
) -> None:
    """A conversation that is begun after another belongs to the workstream, and is told no packet."""
    other = "codex" if name == "claude" else "claude"
    desk = open_desk(name, other)
    desk.run(other, "SAY told SENTINEL-before")
    harness = HARNESSES[name]
    with desk.screen(name) as screen:
        screen.wait(harness.ready, timeout_s=60)
        screen.say("hello SENTINEL-first")
        screen.wait("ACK SENTINEL-first", timeout_s=60)
        screen.wait(rests)
        screen.say(clear)
        if question:
            screen.wait(question)
            screen.key("Enter")
        screen.wait_gone("SENTINEL-first")
        screen.wait(ready)
        screen.say("hello SENTINEL-second")
        screen.wait("ACK SENTINEL-second", timeout_s=60)
        screen.wait(rests)
        screen.say(harness.leave)
        assert screen.status() == 0
    first, second = (desk.wait_for_turn(f"SENTINEL-{word}") for word in ("first", "second"))
    assert packets_in(first) == 1
    assert "SENTINEL-before" in first.text
    assert packets_in(second) == 0
    assert "SENTINEL-before" not in second.text
    assert {row["role"] for row in desk.found("SENTINEL-second")} == {"user", "assistant"}
    (resumed,) = desk.run(name, "hello")
    assert "ACK SENTINEL-second" in resumed.text


def test_workstream_search_inside_a_run_finds_what_others_said(open_desk: Open) -> None:
    desk = open_desk("codex", "claude")
    desk.run("codex", "SAY told SENTINEL-deep")
    command = f"PYTHONPATH={PYTHON_PATH} {' '.join(MEMCTL)} workstream-search told"
    turns = desk.run("claude", f"USE_TOOL {command}")
    assert "SENTINEL-deep" in json.dumps(turns[-1].body["messages"][-1])
