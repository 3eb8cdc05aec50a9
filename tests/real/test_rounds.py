"""Quit one agent, continue in another: shown on what the real programs send to their models.

source  Claude Code 2.1.197, codex-cli 0.171.0, OpenCode 1.18.33, Pi 1.6.0, OMP 18.2.3, run 2026-11
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from real.managed import PROJECT, Desk, packets_in

pytestmark = pytest.mark.real

Open = Callable[..., Desk]


def test_work_goes_round_from_claude_over_codex_opencode_and_pi_back_to_claude(open_desk: Open) -> None:
    desk = open_desk("claude", "codex", "opencode", "pi")
    said: list[str] = []
    for name in ("claude", "codex", "opencode", "pi"):
        (turn,) = desk.run(name, f"SAY {name} answers SENTINEL-said_{name}")
        assert packets_in(turn) == (1 if said else 0)
        assert [word for word in said if word not in turn.text] == []
        said += [f"SENTINEL-said_{name}"]

    (turn,) = desk.run("claude", "hello SENTINEL-last")
    assert packets_in(turn) == 1
    assert [word for word in said if word not in turn.text] == []
    # its own words stand in its own conversation, asked and answered, and not in what it is told besides
    assert turn.text.count("claude answers SENTINEL-said_claude") == 2
    assert len(desk.sessions("claude")) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("codex", "claude"), ("claude", "codex"), ("pi", "opencode"), ("claude", "pi"), ("claude", "omp")],
)
def test_agent_that_takes_over_is_told_once_and_then_resumed(
    open_desk: Open, first: str, second: str
) -> None:
    desk = open_desk(first, second)
    desk.run(first, "SAY noted SENTINEL-begun")

    (told,) = desk.run(second, "SAY understood SENTINEL-taken")
    assert packets_in(told) == 1
    assert "SENTINEL-begun" in told.text

    (resumed,) = desk.run(second, "SAY fine SENTINEL-again")
    assert "understood SENTINEL-taken" in resumed.text  # the conversation itself
    assert packets_in(resumed) == 1  # the one that it keeps from the start
    assert len(desk.sessions(second)) == 1

    (back,) = desk.run(first, "hello")
    assert "noted SENTINEL-begun" in back.text
    assert "understood SENTINEL-taken" in back.text
    assert "fine SENTINEL-again" in back.text
    assert len(desk.sessions(first)) == 1


def test_work_of_a_direct_launch_reaches_the_next_managed_one(open_desk: Open) -> None:
    """Events of a linked session belong to its workstream, whoever started the program."""
    desk = open_desk("claude", "codex")
    desk.run("claude", "hello SENTINEL-managed")
    (direct,) = desk.direct("claude", "SAY indeed SENTINEL-direct", "--continue")
    assert packets_in(direct) == 0
    (told,) = desk.run("codex", "hello")
    assert "SENTINEL-managed" in told.text
    assert "SENTINEL-direct" in told.text


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "pi", "omp"])
def test_handoff_reaches_the_next_session_however_it_is_started_and_no_other(
    open_desk: Open, name: str
) -> None:
    desk = open_desk(name)
    desk.memd.ctl("handoff", "create", "the port is SENTINEL-port", cwd=PROJECT)
    (first,) = desk.direct(name, "hello SENTINEL-one")
    (second,) = desk.direct(name, "hello SENTINEL-two")
    assert first.text.count("SENTINEL-port") == 1
    assert packets_in(first) == 0
    assert "SENTINEL-port" not in second.text
