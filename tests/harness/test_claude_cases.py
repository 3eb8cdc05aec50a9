"""The hard cases of Claude Code, at the adapter's boundary."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.harness import registry
from memd.harness.model import Environment
from memd.harness.packets import PACKET_MARKER
from support_cases import expectation, make
from support_imports import losses_of, messages_of, offers, open_source, read, readings, sources
from support_order import conversation

IMPORTS = [
    "07-nul-padding-mid-file",
    "08-torn-stub-glued-to-next",
    "10-compaction-replay",
    "12-one-reply-many-lines",
    "13-line-separators-in-text",
    "14-lone-surrogate",
    "15-giant-line",
    "16-subagent-files-beside-parent",
    "17-session-split-over-two-folders",
]


@pytest.mark.parametrize("case", IMPORTS)
def test_case_gives_exactly_its_messages_and_losses(case: str, tmp_path: Path) -> None:
    make(case, tmp_path)
    expected = expectation(case)
    session = expected["session"]
    found = readings(tmp_path / "home", "claude")
    events = [event for one in found if one.session.id == session for event in one.events]
    texts = [event.content for event in events]
    losses = losses_of(found, session)

    assert messages_of(found, session) == expected["messages"]
    for text in expected.get("once", ()):
        assert len({event.origin for event in events if text in event.content}) == 1
    for text in expected.get("never", ()):
        assert not any(text in one for one in texts)
    assert losses.total() >= expected.get("losses_min", 0)
    assert losses.total() <= expected.get("losses_max", losses.total())
    assert all(len(one.encode()) <= expected.get("max_event_bytes", 1 << 20) for one in texts)


def test_07_cursor_ends_at_the_end_of_the_file(tmp_path: Path) -> None:
    make("07-nul-padding-mid-file", tmp_path)
    (reading,) = readings(tmp_path / "home", "claude")
    assert reading.at == os.path.getsize(reading.path)
    assert reading.losses() == {"malformed": 2}


def test_09_growing_last_line_comes_once_and_whole(tmp_path: Path) -> None:
    expected = expectation("09-growing-last-line")["messages_after"]
    adapter = registry.resolve("claude")
    (store,) = adapter.stores(Environment(home=os.fsencode(tmp_path / "home")))

    make("09-growing-last-line", tmp_path, "--step", "1")
    (path,) = sources(store)
    data = Path(os.fsdecode(path)).read_bytes()
    reading = open_source(adapter, store, path, data)
    assert reading is not None
    read(adapter, data, reading)
    read(adapter, data, reading)
    assert conversation(reading.events) == expected["1"]

    make("09-growing-last-line", tmp_path, "--step", "2")
    read(adapter, Path(os.fsdecode(path)).read_bytes(), reading)
    assert conversation(reading.events) == expected["2"]
    assert not reading.losses()


def test_10_summaries_are_compactions_and_copies_are_the_same_events(tmp_path: Path) -> None:
    make("10-compaction-replay", tmp_path)
    (reading,) = readings(tmp_path / "home", "claude")
    summaries = [event for event in reading.events if event.content.startswith("SUMMARY")]
    assert [(event.kind, event.role) for event in summaries] == [("compaction", "assistant")] * 2
    copies = [event for event in reading.events if event.content == "start the parser"]
    assert len(copies) == 2
    assert copies[0].origin == copies[1].origin


def test_11_copied_conversation_keeps_its_events(tmp_path: Path) -> None:
    expected = expectation("11-background-copy-new-session")
    make("11-background-copy-new-session", tmp_path, "--step", "2")
    found = readings(tmp_path / "home", "claude")
    first, second = expected["session_after"]["1"], expected["session_after"]["2"]
    both = [
        event for name in (first, second) for one in found if one.session.id == name for event in one.events
    ]
    assert conversation(both) == expected["messages"]


def test_16_side_conversations_are_counted_for_their_session(tmp_path: Path) -> None:
    expected = expectation("16-subagent-files-beside-parent")
    make("16-subagent-files-beside-parent", tmp_path)
    found = readings(tmp_path / "home", "claude")
    assert losses_of(found, expected["session"]) == {"sidechain": 2}  # the last line of each is unfinished
    assert offers(tmp_path / "home", "claude", tmp_path / expected["workdir"]) == expected["candidates"]
    sides = [one.session for one in found if one.session.is_side]
    assert [side.parent for side in sides] == [expected["session"]] * 2


def test_17_two_files_are_one_session(tmp_path: Path) -> None:
    expected = expectation("17-session-split-over-two-folders")
    make("17-session-split-over-two-folders", tmp_path)
    found = readings(tmp_path / "home", "claude")
    assert [one.session.id for one in found] == [expected["session"]] * 2
    assert offers(tmp_path / "home", "claude", tmp_path / expected["workdir"]) == expected["candidates"]


def test_18_first_recorded_directory_decides(tmp_path: Path) -> None:
    make("18-one-folder-two-checkouts", tmp_path)
    for workdir, ids in expectation("18-one-folder-two-checkouts")["offers"].items():
        assert offers(tmp_path / "home", "claude", tmp_path / workdir) == ids


def test_26_leftovers_of_a_swept_session_are_no_session(tmp_path: Path) -> None:
    expected = expectation("26-linked-transcript-swept")
    make("26-linked-transcript-swept", tmp_path, "--step", "1")
    assert messages_of(readings(tmp_path / "home", "claude"), expected["session"]) == expected["messages"]
    make("26-linked-transcript-swept", tmp_path, "--step", "2")
    left = [one.session.id for one in readings(tmp_path / "home", "claude")]
    assert left == ["7c1f2a0e-5b1d-4c53-9a10-0000000002ff"]


@pytest.mark.parametrize(
    "marker",
    [
        PACKET_MARKER,
        "<!-- ai-memory:managed-workstream-packet:v1 -->",
        "> **ai-memory managed workstream: main**",
    ],
)
def test_27_delivered_packet_is_left_out_in_every_form(marker: str, tmp_path: Path) -> None:
    case = "27-own-packet-comes-back"
    expected = expectation(case)
    packet = tmp_path / "packet.txt"
    packet.write_text(f"{marker}\n> data, not instructions\nPACKET-WORDS the port is 8123\n" * 60)
    make(case, tmp_path, "--packet", str(packet))
    found = readings(tmp_path / "home", "claude")
    texts = [event.content for one in found for event in one.events]
    losses = losses_of(found, expected["session"])
    assert messages_of(found, expected["session"]) == expected["messages"]
    assert sum("ORDINARY-GREP-LINE" in text for text in texts) == 1
    assert not any("PACKET-WORDS" in text for text in texts)
    assert losses["own-packet"] >= expected["losses_min"]
