"""A launcher's conversation: what a launch goes on in, what its child is started with, what fails well."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from memd import disk
from memd import protocol_runs as asked
from memd.errors import MemdError, NotFound, Refused, TryAgain, UsageError
from memd.ledger.store.workstreams import RunGone
from memd.service.candidates import Candidates
from memd.service.plans import LINK_S
from memd.workstream import report
from memd.workstream.bare import NoProgram, NothingToContinue
from memd.workstream.lease import Busy
from memd.workstream.linking import UnknownSession
from support_launches import ADDRESS, SESSIONS, Floor
from support_ledger import entry

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Floor]:
    made = Floor(tmp_path)
    with made.lines:
        yield made


async def test_a_client_is_told_which_variables_count(floor: Floor) -> None:
    greeted = await floor.say(asked.Greet())
    assert {"HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "MEMD_IGNORE_MARKER"} <= set(
        greeted.variables
    )


async def test_a_plan_says_program_arguments_directory_and_environment(floor: Floor) -> None:
    ready = await floor.prepare("claude", "--model", "m", variables={"CLAUDE_CONFIG_DIR": b" "})
    plan = await floor.plan(ready)
    assert plan.executable == bytes(floor.root / "bin" / "claude")
    assert plan.arguments[:3] == (b"--model", b"m", b"--session-id")
    assert UUID4.fullmatch(os.fsdecode(plan.arguments[3]))
    assert plan.cwd == bytes(floor.cwd)
    assert plan.set["MEMD_RUN_ID"] == ready.run.encode()
    assert plan.set["MEMD_WORKSTREAM_ID"] == ready.workstream_id.encode()
    assert plan.set["MEMD_SOCKET"] == ADDRESS
    assert plan.unset == ("CLAUDE_CONFIG_DIR",)
    assert (ready.workstream, ready.workspace, ready.project) == ("default", "default", "proj")
    assert floor.run(ready).expected == os.fsdecode(plan.arguments[3])


async def test_nothing_is_linked_or_selected_before_the_child_is_there(floor: Floor) -> None:
    ready = await floor.prepare("claude", new="other")
    await floor.plan(ready)
    assert floor.lines.reader.workstreams.linked(ready.workstream_id) == []
    await floor.say(asked.Started(run=ready.run, pid=os.getpid()))
    [linked] = floor.lines.reader.workstreams.linked(ready.workstream_id)
    assert linked.session == floor.run(ready).session == floor.run(ready).expected
    agent = floor.run(ready).agent
    assert agent is not None
    assert (agent.pid, bool(agent.start)) == (os.getpid(), True)


async def test_a_linked_session_that_is_there_goes_on(floor: Floor) -> None:
    await floor.whole("claude", "--resume", SESSIONS[1], during=lambda: floor.transcript(SESSIONS[1]))
    assert await floor.args("claude", "-p", "hi") == ["-p", "hi", "--resume", SESSIONS[1]]


async def test_one_that_is_gone_is_replaced_and_somebody_is_told(floor: Floor) -> None:
    await floor.whole("claude", "--resume", SESSIONS[1])
    ready = await floor.prepare("claude")
    assert any("no longer has session" in line for line in ready.notices)
    plan = await floor.plan(ready)
    assert plan.arguments[0] == b"--session-id"


async def test_a_store_that_cannot_be_read_does_not_cost_the_session(floor: Floor) -> None:
    path = floor.transcript(SESSIONS[1])
    await floor.whole("claude", "--resume", SESSIONS[1])
    path.rename(floor.root / "elsewhere")
    path.symlink_to(floor.root / "elsewhere")
    ready = await floor.prepare("claude")
    assert any("--fresh" in line for line in ready.notices)
    assert (await floor.plan(ready)).arguments == (b"--resume", SESSIONS[1].encode())


async def test_fresh_asks_nobody_and_looks_nowhere(floor: Floor) -> None:
    await floor.whole("claude", "--resume", SESSIONS[1])
    ready = await floor.prepare("claude", "--fresh", is_terminal=True)
    assert ready.notices == ()
    assert ready.choices == ()
    plan = await floor.plan(ready)
    assert plan.arguments[0] == b"--session-id"
    assert len(plan.arguments) == 2


async def test_a_persons_own_selector_wins_and_is_linked_when_it_is_an_id(floor: Floor) -> None:
    floor.rollout(SESSIONS[1])
    await floor.whole("codex", "resume", SESSIONS[1])
    ready = await floor.prepare("codex", "resume", SESSIONS[2])
    plan = await floor.plan(ready)
    assert plan.arguments == (b"resume", SESSIONS[2].encode())
    assert floor.run(ready).expected == SESSIONS[2]
    await floor.say(asked.Cancel(run=ready.run))
    ready = await floor.prepare("codex", "resume", "--last")
    await floor.plan(ready)
    assert floor.run(ready).expected == ""


async def test_a_utility_links_nothing_and_is_asked_nothing(floor: Floor) -> None:
    floor.transcript(SESSIONS[1])
    ready = await floor.prepare("claude", "--version", is_terminal=True)
    assert ready.choices == ()
    assert (await floor.plan(ready)).arguments == (b"--version",)
    assert floor.run(ready).is_passing
    assert floor.healer.calls == []


async def test_other_names_and_flags_of_a_word(floor: Floor) -> None:
    for word in ("Claude", "claude-code", "CLAUDE_CODE", "claudecode"):
        ready = await floor.prepare(word)
        assert ready.harness == "claude"
        await floor.say(asked.Cancel(run=ready.run))
    with pytest.raises(UsageError, match="nothing"):
        await floor.prepare("nothing")
    with pytest.raises(NoProgram, match="codex"):
        await floor.prepare("codex", path=b"/nowhere")
    assert floor.names() == []


# ---------------------------------------------------------------------------- taking over


def seen(floor: Floor, *sessions: str) -> None:
    """Sessions of this checkout that are in the ledger and in the store."""
    for number, session in enumerate(sessions):
        floor.transcript(session)
        moment = f"2026-02-03T10:{number:02}:00Z"
        said = entry(f"said in {session}", session=session, occurred_at=moment)
        floor.lines.put(said, sessions=[session_at(floor, session)])


def session_at(floor: Floor, session: str):  # type: ignore[no-untyped-def]
    from memd.harness.model import Session

    return Session(id=session, cwd=str(floor.cwd), title=f"about {session[:8]}\n\x1b[31m<!--")


async def test_at_most_eight_sessions_are_offered_newest_first(floor: Floor) -> None:
    seen(floor, *SESSIONS[:11])
    floor.transcript(SESSIONS[10]).unlink()
    ready = await floor.prepare("claude", is_terminal=True)
    assert [one.session for one in ready.choices] == list(reversed(SESSIONS[2:10]))
    assert "\x1b" not in ready.choices[0].title
    assert "\n" not in ready.choices[0].title
    assert (await floor.plan(ready)).arguments[0] == b"--session-id"  # nobody has chosen


async def test_what_was_chosen_is_resumed_and_nothing_else_can_be_chosen(floor: Floor) -> None:
    seen(floor, SESSIONS[1], SESSIONS[2])
    ready = await floor.prepare("claude", is_terminal=True)
    with pytest.raises(UsageError):
        await floor.say(asked.Choose(run=ready.run, session=SESSIONS[3], is_decided=True))
    await floor.say(asked.Choose(run=ready.run, session=SESSIONS[1], is_decided=True))
    assert (await floor.plan(ready)).arguments == (b"--resume", SESSIONS[1].encode())


async def test_the_lease_is_renewed_while_somebody_thinks_and_with_the_answer(floor: Floor) -> None:
    seen(floor, SESSIONS[1])
    ready = await floor.prepare("claude", is_terminal=True)
    for decided in (False, False, True):
        floor.lines.clock.go(80)
        await floor.say(asked.Choose(run=ready.run, is_decided=decided))
        assert floor.run(ready).expires_ms == floor.lines.clock.ms + 90_000


async def test_an_answer_that_comes_after_somebody_else_took_over_is_refused(floor: Floor) -> None:
    seen(floor, SESSIONS[1])
    ready = await floor.prepare("claude", is_terminal=True)
    floor.alive.unknown.add(floor.run(ready).launcher)
    floor.lines.clock.go(91)
    await floor.prepare("codex", pid=1)
    with pytest.raises(RunGone):
        await floor.say(asked.Choose(run=ready.run, session=SESSIONS[1], is_decided=True))
    with pytest.raises((RunGone, TryAgain)):
        await floor.plan(ready)


# ------------------------------------------------------------------------------- no name


async def test_without_a_name_the_newest_session_goes_on_unasked(floor: Floor) -> None:
    seen(floor, SESSIONS[1], SESSIONS[2])
    ready = await floor.prepare(is_terminal=True)
    assert ready.harness == "claude"
    assert ready.choices == ()
    assert any(SESSIONS[2] in line for line in ready.notices)
    assert (await floor.plan(ready)).arguments == (b"--resume", SESSIONS[2].encode())


async def test_without_a_name_and_without_sessions_nothing_is_made(floor: Floor) -> None:
    with pytest.raises(NothingToContinue):
        await floor.prepare()
    floor.records.hangs = True
    with pytest.raises(TryAgain, match="still reading"):
        await floor.prepare()
    floor.records.hangs = False
    with pytest.raises(NotFound):
        await floor.prepare(workstream="nothing")
    for more in ({"native": ("--model",)}, {"executable": b"/bin/true"}):
        with pytest.raises(UsageError):
            await floor.prepare("", *more.pop("native", ()), **more)  # type: ignore[arg-type, misc]
    assert floor.names() == []


# ---------------------------------------------------------------------------- what fails


async def test_whoever_comes_second_learns_who_was_first_and_hears_nothing_twice(floor: Floor) -> None:
    (floor.cwd / ".memd.toml").write_text('workspace = "acme"\n')
    first = await floor.prepare("claude")
    assert any("acme" in line for line in first.notices)
    with pytest.raises(Busy, match=f"pid {os.getpid()}"):
        await floor.prepare("codex", pid=1)
    await floor.say(asked.Cancel(run=first.run))
    again = await floor.prepare("codex", pid=1, is_retry=True)
    assert again.notices == ()


async def test_whoever_waits_gets_what_was_waited_for_and_not_what_others_began(floor: Floor) -> None:
    first = await floor.prepare("claude")
    with pytest.raises(Busy):
        await floor.prepare("codex", pid=1)
    beside = await floor.prepare("codex", new="side", pid=os.getppid())
    await floor.plan(beside)
    await floor.say(asked.Started(run=beside.run, pid=os.getppid()))
    with pytest.raises(Busy, match="'default'"):
        await floor.prepare("codex", pid=1, is_retry=True)
    await floor.plan(first)
    await floor.say(asked.Exited(run=first.run, code=0))
    assert (await floor.prepare("codex", pid=1, is_retry=True)).workstream == "default"


async def test_what_is_waited_for_may_be_gone_by_then(floor: Floor) -> None:
    first = await floor.prepare("claude")
    with pytest.raises(Busy):
        await floor.prepare("codex", pid=1)
    await floor.say(asked.Cancel(run=first.run))
    assert (await floor.prepare("codex", pid=1, is_retry=True)).workstream == "default"


async def test_a_utility_is_started_beside_whoever_has_the_workstream(floor: Floor) -> None:
    first = await floor.prepare("claude", variables={"CLAUDE_CONFIG_DIR": b" "})
    beside = await floor.prepare("claude", "mcp", "list", pid=1, variables={"CLAUDE_CONFIG_DIR": b" "})
    assert (beside.workstream, beside.workstream_id, beside.choices) == ("", "", ())
    plan = await floor.plan(beside)
    assert (plan.arguments, plan.cwd, plan.set) == ((b"mcp", b"list"), bytes(floor.cwd), {})
    assert plan.unset == ("CLAUDE_CONFIG_DIR",)
    for step in (asked.Started(run=beside.run, pid=1), asked.TakeUp(run=beside.run)):
        assert await floor.say(step) == asked.Noted()
    assert await floor.say(asked.Exited(run=beside.run, code=0)) == asked.Closed(workstream="", events=0)
    with pytest.raises(RunGone):
        await floor.say(asked.TakeUp(run=beside.run))
    assert [run.id for run in floor.runs.active()] == [first.run]
    with pytest.raises(Busy):
        await floor.prepare("claude", "-p", "hi", pid=1)


async def test_a_plan_that_fails_gives_the_workstream_free(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise UnknownSession("it looks like a secret")

    ready = await floor.prepare("claude")
    monkeypatch.setattr(floor.runs, "plan", refused)
    with pytest.raises(UnknownSession):
        await floor.plan(ready)
    assert floor.names() == []
    await floor.prepare("claude", pid=1)


async def test_a_launcher_that_cannot_be_seen_is_refused(floor: Floor) -> None:
    with pytest.raises(Refused, match="cannot see"):
        await floor.prepare("claude", pid=0)
    assert floor.names() == []


@pytest.mark.parametrize("cwd", [b"", b"relative", b"/with\0nul"])
async def test_a_directory_that_cannot_be_one_is_refused(floor: Floor, cwd: bytes) -> None:
    with pytest.raises(MemdError):
        await floor.prepare("claude", cwd=cwd)
    assert floor.names() == []


async def test_a_conversation_that_another_daemon_began_is_begun_again(floor: Floor) -> None:
    ready = await floor.prepare("claude", new="other")
    floor.anew()
    with pytest.raises(TryAgain):
        await floor.plan(ready)
    again = await floor.prepare("claude", new="other")
    assert again.run != ready.run
    await floor.plan(again)
    await floor.say(asked.TakeUp(run=again.run))
    with pytest.raises(Refused):
        await floor.say(asked.TakeUp(run=again.run), pid=1)


async def test_a_child_that_could_not_be_started_is_a_loss_with_the_reason(floor: Floor) -> None:
    ready = await floor.prepare("claude")
    await floor.plan(ready)
    closed = await floor.say(asked.Exited(run=ready.run, failure="/bin/claude: Exec\x1b format error"))
    assert isinstance(closed, asked.Closed)
    text = "\n".join(floor.lines.view(ready.workstream_id))
    assert report.NOT_STARTED in text
    assert "Exec format error" in text
    assert floor.run(ready).state == "finished"


async def test_what_was_not_told_and_not_read_is_said_at_the_end(
    floor: Floor, autojump_clock: trio.testing.MockClock
) -> None:
    await floor.whole("codex", during=lambda: floor.lines.put(entry("x", session="c1"), harness="codex"))
    floor.lines.put(entry("x", session="c1"), harness="codex")
    ready = await floor.prepare("codex")
    await floor.plan(ready)
    await floor.say(asked.Started(run=ready.run, pid=os.getpid()))
    floor.records.hangs = True
    closed = await floor.say(asked.Exited(run=ready.run, code=3))
    assert any("could not be read to its end" in line for line in closed.notices)
    assert floor.run(ready).exit_code == 3


# --------------------------------------------------------------------- memory, environments


async def test_the_memory_of_the_login_that_is_launched_is_put_right(floor: Floor) -> None:
    await floor.args("claude")
    await floor.args("claude", variables={"CLAUDE_CONFIG_DIR": b"/logins/work"})
    await floor.args("codex")
    assert floor.healer.calls == [
        (bytes(floor.cwd), bytes(floor.home / ".claude")),
        (bytes(floor.cwd), b"/logins/work"),
    ]


async def test_a_slow_memory_holds_nobody_up(floor: Floor) -> None:
    floor.healer.hangs = True
    ready = await floor.prepare("claude")
    began = trio.current_time()
    await floor.plan(ready)
    assert LINK_S <= trio.current_time() - began < LINK_S + 5


async def test_a_store_that_a_client_names_is_followed_from_then_on(floor: Floor) -> None:
    await floor.args("codex")
    assert floor.changes == 0
    await floor.args("codex", variables={"CODEX_HOME": b"/elsewhere/codex", "SECRET_TOKEN": b"/x"})
    assert floor.changes == 1
    [_, seen] = floor.environments.all()
    assert seen.variables == {"CODEX_HOME": b"/elsewhere/codex"}
    assert seen.home == bytes(floor.home)


async def test_a_session_in_a_store_that_is_not_used_here_is_not_resumed(floor: Floor) -> None:
    other = bytes(floor.home / "other")
    floor.rollout(SESSIONS[1], home="other")
    await floor.whole("codex", "resume", SESSIONS[1], variables={"CODEX_HOME": other})
    again = await floor.args("codex", variables={"CODEX_HOME": other})
    assert again == ["resume", SESSIONS[1]]
    ready = await floor.prepare("codex")
    assert any("not used here" in line for line in ready.notices)
    assert (await floor.plan(ready)).arguments == ()


async def test_the_help_of_a_program_is_asked_once_for_what_matters(floor: Floor) -> None:
    log = floor.root / "asked"
    program = floor.root / "bin" / "pi"
    program.write_text(f"#!/bin/sh\necho x >> {log}\necho 'usage: pi --session-id ID --approve --help'\n")
    for _ in range(2):
        assert (await floor.args("pi"))[0] == "--session-id"
    await floor.args("claude")
    assert log.read_text() == "x\n"
    program.write_text("#!/bin/sh\necho 'usage: pi --session ID'\n# of another version\n")
    assert await floor.args("pi") == []


async def test_a_list_that_cannot_be_had_costs_nobody_the_launch(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise TryAgain("the ledger did not answer")

    monkeypatch.setattr(Candidates, "to_adopt", slow)
    ready = await floor.prepare("claude", is_terminal=True)
    assert ready.choices == ()
    assert any("cannot be listed" in line for line in ready.notices)
    assert (await floor.plan(ready)).arguments[0] == b"--session-id"
