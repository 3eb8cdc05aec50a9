"""What a start hook is told, and to whom nothing is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from memd import disk
from memd.harness.packets import PACKET_MARKER
from memd.ledger.store.workstreams import Run
from memd.service import hooks
from memd.service.lineage import Lineage
from memd.workstream import scope
from support_hook_service import Desk, told
from support_ledger import S1, entry
from support_workstreams import Lines

OTHER_RUN = "0199a000-0000-7000-8000-00000000b001"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "flush", lambda fd: None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


async def worked(desk: Desk) -> None:
    """Codex has worked in the workstream and is done."""
    run = await desk.launch("codex", session="c1")
    desk.lines.put(entry("first request", session="c1"), entry("first reply", session="c1"), harness="codex")
    await desk.runs.exited(run.id, 0)


async def test_handoff_packet_and_memory_come_in_this_order(desk: Desk) -> None:
    await worked(desk)
    await desk.note()
    desk.topics.text = "MEMORY BLOCK"
    run = await desk.launch(session=S1)
    text = await desk.start(S1, run=run)
    places = [
        text.index(part) for part in ("the port stays 8123", PACKET_MARKER, "first reply", "MEMORY BLOCK")
    ]
    assert places == sorted(places)
    after = desk.found(run)
    assert (after.session, after.is_told) == (S1, True)


async def test_a_second_start_gets_no_packet_but_the_memory_again(desk: Desk) -> None:
    await worked(desk)
    desk.topics.text = "MEMORY BLOCK"
    run = await desk.launch(session=S1)
    assert "first reply" in await desk.start(S1, run=run)
    for source in ("compact", "resume"):
        assert await desk.start(S1, run=run, source=source) == "MEMORY BLOCK"


async def test_two_starts_at_once_are_told_once(desk: Desk) -> None:
    await worked(desk)
    await desk.note()
    run = await desk.launch(session=S1)
    texts: list[str] = []

    async def start() -> None:
        texts.append(await desk.start(S1, run=run))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(start)
    assert sorted(len(text) > 0 for text in texts) == [False, False, False, True]
    assert "the port stays 8123" in "".join(texts)
    assert "first reply" in "".join(texts)


async def test_a_compaction_takes_no_handoff(desk: Desk) -> None:
    id = await desk.note()
    assert await desk.start("s1", source="compact") == ""
    assert desk.handoff_state(id) == "open"
    assert "the port stays 8123" in await desk.start("s2", source="clear")
    assert desk.handoff_state(id) == "accepted"


async def test_a_cleared_conversation_joins_the_workstream_and_is_told_no_packet(desk: Desk) -> None:
    await worked(desk)
    run = await desk.launch(session=S1)
    await desk.start(S1, run=run)
    assert await desk.start("after-clear", run=run, source="clear") == ""
    assert desk.found(run).session == "after-clear"
    assert "after-clear" in [one.session for one in desk.lines.reader.workstreams.linked(run.workstream)]
    assert await desk.start("after-clear", run=run, source="clear") == ""  # the hook is installed twice


@pytest.mark.parametrize("source", ["startup", "fork"])
async def test_a_conversation_that_codex_begins_after_another_joins_the_workstream_too(
    desk: Desk, source: str
) -> None:
    """Codex tells of `/new` and `/fork` as it tells of a first start; the process is the same."""
    run = await desk.launch("codex")
    desk.hooks._lineage = Lineage(str, lambda pid: 0)
    for id in ("first", "second"):
        start = {"session_id": id, "source": "startup" if id == "first" else source}
        assert told(await desk.fire("SessionStart", "codex", run=run, **start)) == ""
        await desk.fire("UserPromptSubmit", "codex", run=run, session_id=id)
    assert desk.found(run).session == "second"
    linked = desk.lines.reader.workstreams.linked(run.workstream)
    assert {one.session for one in linked} == {"first", "second"}
    await desk.fire("SessionStart", "codex", run=run, session_id="other", source="resume")
    assert desk.found(run).session == "second"


async def test_a_direct_launch_gets_handoff_and_memory_and_no_packet(desk: Desk) -> None:
    await worked(desk)
    await desk.note()
    desk.topics.text = "MEMORY BLOCK"
    text = await desk.start("s1")
    assert "the port stays 8123" in text
    assert text.endswith("\nMEMORY BLOCK")
    assert "first reply" not in text


@pytest.mark.parametrize("run", ["x", "0199A000-0000-7000-8000-00000000B001", "../../etc", OTHER_RUN])
async def test_an_id_that_is_no_run_is_as_none(desk: Desk, run: str) -> None:
    await desk.note()
    assert "the port stays 8123" in await desk.start("s1", run=run)


@pytest.mark.parametrize("session", ["x" * 513, "a\u202eb", "ghp_" + "a1B2" * 9])
async def test_an_id_that_cannot_be_kept_takes_no_handoff(desk: Desk, session: str) -> None:
    id = await desk.note()
    desk.topics.text = "MEMORY BLOCK"
    assert await desk.start(session) == "MEMORY BLOCK"
    assert desk.handoff_state(id) == "open"
    run = await desk.launch()
    assert await desk.start(session, run=run) == "MEMORY BLOCK"
    assert desk.found(run).session == ""


async def test_a_run_that_is_over_is_as_none(desk: Desk) -> None:
    await worked(desk)
    run = await desk.launch(session=S1)
    await desk.runs.exited(run.id, 0)
    await desk.note()
    text = await desk.start(S1, run=run)
    assert "the port stays 8123" in text
    assert "first reply" not in text


async def test_an_agent_inside_the_run_links_nothing_and_is_told_nothing(desk: Desk) -> None:
    await worked(desk)
    desk.topics.text = "MEMORY BLOCK"
    run = await desk.launch(session=S1)
    await desk.start(S1, run=run)
    await desk.fire("UserPromptSubmit", run=run, session_id=S1)
    id = await desk.note()
    assert await desk.start("inner", run=run) == ""  # of the same harness
    assert told(await desk.fire("SessionStart", "codex", run=run, session_id="other")) == ""
    assert await desk.start("subagent", run=run, agent_id="a1") == ""
    assert await desk.start("subagent", agent_id="a1") == ""
    assert await desk.start("a-stranger", run=run, pid=1) == ""
    assert desk.found(run).session == S1
    assert desk.handoff_state(id) == "open"


async def test_an_agent_type_alone_is_the_session_itself(desk: Desk) -> None:
    await desk.note()
    assert "the port stays 8123" in await desk.start("s1", agent_type="reviewer")


async def test_claudes_hooks_under_grok_are_not_claudes(desk: Desk) -> None:
    id = await desk.note()
    run = await desk.launch()
    grok: dict[str, object] = {"hookEventName": "session_start", "sessionId": "g1"}
    assert await desk.fire("SessionStart", run=run, **grok) == ""
    assert desk.found(run).session == ""
    assert desk.handoff_state(id) == "open"


@pytest.mark.parametrize("stdin", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"session_id":7}', b"{}" * 9])
async def test_a_payload_without_a_session_is_told_nothing(desk: Desk, stdin: bytes) -> None:
    id = await desk.note()
    body = desk.message("SessionStart", "claude", "", 1, stdin)
    assert await desk.hooks.answer(body) == ""
    assert desk.handoff_state(id) == "open"


async def test_a_fork_takes_link_and_claim_with_it_at_its_first_prompt(desk: Desk) -> None:
    await worked(desk)
    run = await desk.launch(session=S1)
    assert "first reply" in await desk.start(S1, run=run, source="resume")
    assert await desk.fire("UserPromptSubmit", run=run, session_id="fork") == ""
    assert desk.found(run).session == "fork"
    delivery = desk.lines.reader.workstreams.delivery(run.id)
    assert delivery is not None
    assert delivery.session == "fork"


async def test_nothing_is_claimed_for_a_hook_that_left(desk: Desk) -> None:
    await worked(desk)
    id = await desk.note()
    run = await desk.launch(session=S1)
    assert await desk.start(S1, run=run, is_there=False) == ""
    assert desk.handoff_state(id) == "open"
    assert not desk.found(run).is_told


async def test_a_prompt_tells_what_the_start_could_not(desk: Desk) -> None:
    await worked(desk)
    run = await desk.launch(session=S1)
    assert await desk.start(S1, run=run, is_there=False) == ""
    printed = await desk.fire("UserPromptSubmit", run=run, session_id=S1)
    assert '"hookEventName":"UserPromptSubmit"' in printed
    assert "first reply" in told(printed)
    assert await desk.fire("UserPromptSubmit", run=run, session_id=S1) == ""


async def test_while_the_ledger_opens_nothing_is_said_and_nothing_claimed(
    desk: Desk, autojump_clock: MockClock
) -> None:
    await worked(desk)
    run = await desk.launch(session=S1)
    desk.records.opening = trio.Event()
    began = trio.current_time()
    async with desk.keeping():
        assert await desk.start(S1, run=run) == ""
        assert trio.current_time() - began <= 1.5
        began = trio.current_time()
        assert await desk.fire("UserPromptSubmit", run=run, session_id=S1) == ""
        assert trio.current_time() - began <= 0.2
        desk.records.opening.set()
    assert desk.found(run).session == S1  # linked all the same, later
    assert not desk.found(run).is_told


async def test_memory_is_put_right_in_the_login_and_not_waited_for_for_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "LINK_S", 0.01)
    desk.healing.hangs = True
    await desk.note()
    login = "/home/dev/.claude-work"
    text = await desk.start("s1", transcript_path=f"{login}/projects/-home-dev-proj/s1.jsonl")
    assert "the port stays 8123" in text
    assert desk.healing.ensured == [(bytes(desk.cwd), login.encode())]
    assert desk.healing.seen == [login.encode()]


async def test_memory_that_is_in_order_costs_no_turn_of_its_own(desk: Desk) -> None:
    desk.healing.is_right = True
    desk.topics.text = "MEMORY BLOCK"
    path = "/home/dev/.claude-work/projects/-home-dev-proj/s1.jsonl"
    assert await desk.start("s1", transcript_path=path) == "MEMORY BLOCK"
    assert desk.healing.ensured == []


async def test_without_an_open_handoff_nobody_looks_where_the_session_belongs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    resolve = scope.resolve
    monkeypatch.setattr(scope, "resolve", lambda cwd, home: asked.append(cwd) or resolve(cwd, home))
    await desk.start("s1")
    assert asked == []
    await desk.note()
    assert "the port stays 8123" in await desk.start("s2")
    assert asked == [bytes(desk.cwd)]


async def test_a_store_that_a_transcript_shows_is_followed(desk: Desk) -> None:
    for home in ("/elsewhere/codex", f"{desk.home}/.codex"):
        path = f"{home}/sessions/2026/11/30/rollout-x.jsonl"
        await desk.fire("SessionStart", "codex", session_id="c1", transcript_path=path)
    assert [one.variables for one in desk.environments.all()] == [{}, {"CODEX_HOME": b"/elsewhere/codex"}]


async def test_the_scope_is_the_markers(desk: Desk) -> None:
    (desk.cwd / ".memd.toml").write_text('workspace = "clients"\nproject = "other"\n')
    id = await desk.note(workspace="clients", project="other")
    assert "the port stays 8123" in await desk.start("s1")
    assert desk.handoff_state(id) == "accepted"


async def test_a_broken_marker_leaves_the_memory(desk: Desk) -> None:
    (desk.cwd / ".memd.toml").write_text("workspace = [\n")
    desk.topics.text = "MEMORY BLOCK"
    assert await desk.start("s1") == "MEMORY BLOCK"


async def test_a_run_has_the_scope_it_was_launched_with(desk: Desk) -> None:
    run = await desk.launch(session=S1)
    (desk.cwd / ".memd.toml").write_text('project = "other"\n')
    id = await desk.note()
    assert "the port stays 8123" in await desk.start(S1, run=run)
    assert desk.handoff_state(id) == "accepted"


@pytest.mark.parametrize(("harness", "limit"), [("claude", 10_000), ("codex", 9_000), ("pi", 30_000)])
@pytest.mark.parametrize("line", ["日本語のメモ。\n", 'a "quoted" \\ line\n', "plain words\n"])
async def test_all_parts_together_stay_within_the_harness_limit(
    desk: Desk, harness: str, limit: int, line: str
) -> None:
    run = await desk.launch("opencode", session="o1")
    for number in range(40):
        desk.lines.put(entry(f"{number} " + line * 100, session="o1"), harness="opencode")
    await desk.runs.exited(run.id, 0)
    await desk.note(line * 200)
    desk.topics.text = line * 5000
    again = await desk.launch(harness)
    event = {"claude": "SessionStart", "codex": "SessionStart", "pi": "context"}[harness]
    printed = await desk.fire(event, harness, run=again, session_id="new-one")
    size = len(printed.encode()) if harness == "codex" else len(printed)
    assert limit * 0.8 < size <= limit
    assert PACKET_MARKER in printed


async def test_a_memory_block_alone_fills_the_room_and_no_more(desk: Desk) -> None:
    desk.topics.text = 'a "line" of it\n' * 5000
    printed = await desk.fire("SessionStart", session_id="s1")
    assert 9_500 < len(printed) <= 10_000


async def test_a_plug_in_links_first_and_asks_later(desk: Desk) -> None:
    await worked(desk)
    run: Run = await desk.launch("pi")
    assert await desk.fire("start", "pi", run=run, session_id="p1") == ""
    assert desk.found(run).session == "p1"
    assert not desk.found(run).is_told
    assert await desk.fire("prompt", "pi", run=run, session_id="p1") == ""
    text = await desk.fire("context", "pi", run=run, session_id="p1")
    assert text.startswith(PACKET_MARKER)
    assert await desk.fire("context", "pi", run=run, session_id="p1") == ""
    assert await desk.fire("context", "pi", run=run, session_id="sub", is_inner=True) == ""
