"""Session files that Pi 1.6.0 and OMP 18.2.3 wrote, judged by their manifests."""

from __future__ import annotations

import pytest

from memd.harness import omp, pi
from memd.harness.model import MAX_STATE_BYTES, Adapter, event_id
from support_order import arrange
from support_pi import cuts, imported, lost, manifest, parse, scenarios, sources, told

CAPTURED = [(adapter, name) for adapter in (pi.ADAPTER, omp.ADAPTER) for name in scenarios(adapter.name)]
captured = pytest.mark.parametrize(
    ("adapter", "scenario"), CAPTURED, ids=[f"{adapter.name}-{name}" for adapter, name in CAPTURED]
)


@captured
def test_what_must_be_there_is_there_and_what_must_not_is_not(adapter: Adapter, scenario: str) -> None:
    judge = manifest(adapter.name, scenario)
    text = "\n".join(event.content for events in imported(adapter, scenario).values() for event in events)
    assert [mark for mark in judge["expect_in_ledger"] if mark not in text] == []
    assert [mark for mark in judge["never_in_ledger"] if mark in text] == []
    assert "harness text removed" not in text


@captured
def test_any_split_gives_the_same_and_twice_gives_the_same_ids(adapter: Adapter, scenario: str) -> None:
    for path in sources(adapter.name, scenario):
        data = path.read_bytes()
        whole = parse(data, adapter=adapter)
        assert sum(part.consumed for part in whole) == len(data)
        for seed in range(5):
            parts = parse(data, adapter=adapter, cuts=cuts(data, seed))
            assert arrange(parts) == arrange(whole)
            assert lost(parts) == lost(whole)
            assert parts[-1].state == whole[-1].state
            assert len(parts[-1].state) <= MAX_STATE_BYTES


@captured
def test_sessions_say_where_they_were(adapter: Adapter, scenario: str) -> None:
    judge = manifest(adapter.name, scenario)
    for path in sources(adapter.name, scenario):
        name = path.name.removesuffix(".jsonl")
        session = adapter.identify(b"bucket/" + path.name.encode(), path.read_bytes()[:65536], "")
        assert session is not None
        assert session.id == name.partition("_")[2]
        assert (session.cwd, session.is_side) == (judge["cwd"], False)
        assert session.started.replace(":", "-").replace(".", "-") == name.partition("_")[0]
        assert parse(path.read_bytes(), adapter=adapter)[0].sessions[0] == session


@pytest.mark.parametrize("adapter", [pi.ADAPTER, omp.ADAPTER], ids=["pi", "omp"])
class TestBoth:
    def test_a_tool_call_and_its_result_are_paired(self, adapter: Adapter) -> None:
        (events,) = imported(adapter, "tool-use").values()
        assert [event.kind for event in events] == ["message", "tool_call", "tool_result", "message"]
        call, result = events[1:3]
        assert call.content.startswith('bash: {"command":"ls -1"')
        assert call.metadata["tool_call_id"] == result.metadata["tool_call_id"] != ""
        assert result.content.startswith("main.py\nnotes.txt\n")
        assert result.metadata["is_error"] is False

    def test_reasoning_is_one_loss_with_its_count(self, adapter: Adapter) -> None:
        (path,) = sources(adapter.name, "tool-use")
        assert lost(parse(path.read_bytes(), adapter=adapter))["reasoning"] == 2

    def test_a_fork_gives_the_events_it_copied_the_same_ids(self, adapter: Adapter) -> None:
        base, fork = imported(adapter, "forked").values()
        ids = [[event_id(adapter.name, event) for event in events] for events in (base, fork)]
        assert ids[1][: len(base)] == ids[0]
        assert [event.content for event in fork[len(base) :]] == ["forked turn MARK-SFORK", "ACK MARK-SFORK"]

    def test_a_fork_names_the_session_it_came_from(self, adapter: Adapter) -> None:
        base, fork = [
            parse(path.read_bytes(), adapter=adapter)[0].sessions[0]
            for path in sources(adapter.name, "forked")
        ]
        assert fork.forked_from == base.id
        assert base.forked_from == ""

    def test_a_compaction_is_kept_once_and_hides_nothing(self, adapter: Adapter) -> None:
        (events,) = imported(adapter, "compacted").values()
        kinds = [event.kind for event in events]
        assert kinds == ["message"] * 12 + ["compaction"] + ["message"] * 2
        assert "MARK-SUMMARY" in events[12].content
        assert not any(event.is_side for event in events)

    def test_a_tool_that_was_killed_has_no_result(self, adapter: Adapter) -> None:
        (events,) = imported(adapter, "interrupted-tool").values()
        assert events[-1].kind == "tool_call"
        assert "status" not in events[-1].metadata

    def test_a_prompt_without_an_answer_is_there(self, adapter: Adapter) -> None:
        (events,) = imported(adapter, "interrupted").values()
        assert events[-1].content == "never finished MARK-SK2 SLOW 30"

    def test_what_an_extension_handed_in_is_counted(self, adapter: Adapter) -> None:
        (path,) = sources(adapter.name, "injected")
        parts = parse(path.read_bytes(), adapter=adapter)
        assert lost(parts)["attachment"] == 1
        assert told(parts) == [["user", "question MARK-SQ1"], ["assistant", "ACK MARK-INJECTED"]]


def test_bookkeeping_is_silent_and_instructions_are_counted() -> None:
    for name in scenarios("pi"):
        for path in sources("pi", name):
            assert lost(parse(path.read_bytes())).keys() <= {"system-prompt", "reasoning", "attachment"}
    for name in scenarios("omp"):
        for path in sources("omp", name):
            found = lost(parse(path.read_bytes(), adapter=omp.ADAPTER))
            assert found.keys() <= {"reasoning", "attachment"}


def test_the_title_of_an_omp_session_is_its_last_one() -> None:
    (path,) = sources("omp", "interrupted")
    parts = parse(path.read_bytes(), adapter=omp.ADAPTER)
    assert [session.title for session in parts[0].sessions][-1] == "ACK MARK-SK1"
