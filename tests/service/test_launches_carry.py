"""A linked session of Claude Code that lies in another login than the one that is launched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from memd import disk
from memd import protocol_runs as asked
from memd.errors import Refused
from support_launches import SESSIONS, Floor

S = SESSIONS[1]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


class Carrier:
    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes, bytes]] = []
        self.trouble = ""

    async def __call__(self, session: str, transcript: bytes, login: bytes) -> str:
        await trio.lowlevel.checkpoint()
        self.calls.append((session, transcript, login))
        if self.trouble:
            raise Refused(self.trouble)
        return "copied"


@pytest.fixture
def carrier() -> Carrier:
    return Carrier()


@pytest.fixture
def floor(tmp_path: Path, carrier: Carrier) -> Iterator[Floor]:
    made = Floor(tmp_path, carrier)
    with made.lines:
        yield made


WORK = ".claude-work"


async def in_another_login(floor: Floor, lines: int = 1) -> bytes:
    """A linked session in `~/.claude-work`; its transcript."""
    path = floor.transcript(S, login=WORK, lines=lines)
    await floor.whole("claude", "--resume", S, variables={"CLAUDE_CONFIG_DIR": bytes(floor.home / WORK)})
    return bytes(path)


async def test_on_a_terminal_somebody_is_asked_and_a_yes_copies_it(floor: Floor, carrier: Carrier) -> None:
    path = await in_another_login(floor)
    ready = await floor.prepare("claude", is_terminal=True)
    assert WORK in ready.carry
    assert ready.choices == ()
    assert carrier.calls == []
    await floor.say(asked.Choose(run=ready.run, carry=True, is_decided=True))
    plan = await floor.plan(ready)
    assert carrier.calls == [(S, path, bytes(floor.home / ".claude"))]
    assert plan.arguments == (b"--resume", S.encode())
    assert "copied" in plan.notices


async def test_a_no_begins_a_new_one_and_copies_nothing(floor: Floor, carrier: Carrier) -> None:
    await in_another_login(floor)
    ready = await floor.prepare("claude", is_terminal=True)
    await floor.say(asked.Choose(run=ready.run, carry=False, is_decided=True))
    assert (await floor.plan(ready)).arguments[0] == b"--session-id"
    assert carrier.calls == []


@pytest.mark.parametrize("native", [(), ("-p", "hi")])
async def test_without_somebody_to_ask_a_new_one_begins_and_it_is_said_how(
    floor: Floor, carrier: Carrier, native: tuple[str, ...]
) -> None:
    await in_another_login(floor)
    ready = await floor.prepare("claude", *native, is_terminal=bool(native))
    assert ready.carry == ""
    assert any("--carry" in line and WORK in line for line in ready.notices)
    assert b"--session-id" in (await floor.plan(ready)).arguments
    assert carrier.calls == []


async def test_carry_copies_it_unasked(floor: Floor, carrier: Carrier) -> None:
    await in_another_login(floor)
    ready = await floor.prepare("claude", carry=True, is_terminal=True)
    assert ready.carry == ""
    assert (await floor.plan(ready)).arguments == (b"--resume", S.encode())
    assert len(carrier.calls) == 1


async def test_what_cannot_be_copied_begins_anew_and_says_why(floor: Floor, carrier: Carrier) -> None:
    await in_another_login(floor)
    carrier.trouble = "it has gone on separately"
    ready = await floor.prepare("claude", carry=True)
    plan = await floor.plan(ready)
    assert plan.arguments[0] == b"--session-id"
    assert any("gone on separately" in line for line in plan.notices)


async def test_a_copy_that_is_behind_is_not_simply_gone_on_with(floor: Floor) -> None:
    floor.transcript(S)
    await in_another_login(floor, lines=3)
    ready = await floor.prepare("claude", is_terminal=True)
    assert WORK in ready.carry


async def test_a_copy_that_is_ahead_goes_on(floor: Floor) -> None:
    await in_another_login(floor)
    floor.transcript(S, lines=3)
    ready = await floor.prepare("claude", is_terminal=True)
    assert ready.carry == ""
    assert (await floor.plan(ready)).arguments == (b"--resume", S.encode())


async def test_without_a_way_to_copy_it_is_said_where_it_lies(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    with floor.lines:
        await in_another_login(floor)
        ready = await floor.prepare("claude", is_terminal=True, carry=True)
        assert ready.carry == ""
        assert any(WORK in line for line in ready.notices)
        assert (await floor.plan(ready)).arguments[0] == b"--session-id"
