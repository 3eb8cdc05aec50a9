"""Kiro's two engines, read from generated stores: which files are sessions, and what is in them."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from memd.harness.kiro import ADAPTER
from memd.harness.kiro_records import V2, V3
from memd.harness.model import Environment, Event, Parsed, event_id
from support_imports import Reading, losses_of, readings
from support_kiro import CWD, FIXTURES, PACKET, Second, Third, U, dumps, part, write_fixtures, write_unseen

SESSION = U.format(7)


def only(home: Path) -> Reading:
    (reading,) = readings(home, "kiro")
    return reading


def said(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.kind, event.role, event.content) for event in events]


def lost(home: Path) -> Counter[str]:
    reading = only(home)
    return losses_of([reading], reading.session.id)


def test_the_fixtures_are_what_the_generator_writes(tmp_path: Path) -> None:
    write_fixtures(tmp_path)
    fresh = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {path.relative_to(FIXTURES): path.read_bytes() for path in FIXTURES.rglob("*") if path.is_file()}
    assert fresh == kept


@pytest.mark.parametrize("scenario", sorted(path.name for path in FIXTURES.iterdir()))
def test_what_must_be_there_is_there_and_what_must_not_is_not(scenario: str) -> None:
    judge = json.loads((FIXTURES / scenario / "MANIFEST.json").read_text())
    reading = only(FIXTURES / scenario)
    text = "\n".join(event.content for event in reading.events)
    assert [mark for mark in judge["expect_in_ledger"] if mark not in text] == []
    assert [mark for mark in judge["never_in_ledger"] if mark in text] == []
    assert reading.session.cwd == judge["cwd"]


def test_the_recipe_of_the_second_engine_gives_four_events_and_two_losses() -> None:
    reading = only(FIXTURES / "v2-recipe")
    assert said(reading.events) == [
        ("message", "user", "List the TODOs"),
        ("message", "assistant", "Searching."),
        ("tool_call", "assistant", 'grep: {"pattern":"TODO"}'),
        ("tool_result", "tool", "a.py:3\nb.py:9"),
    ]
    assert reading.events[0].occurred_at == "2026-02-02T02:40:01.000Z"
    call, result = reading.events[2:]
    assert call.metadata == {"tool": "grep", "tool_call_id": "k1"}
    assert result.metadata == {"tool_call_id": "k1", "is_error": False}
    assert reading.losses() == {"image": 1, "unknown-version": 1}


def test_the_recipe_of_the_third_engine_gives_four_events_and_two_losses() -> None:
    reading = only(FIXTURES / "v3-recipe")
    assert said(reading.events) == [
        ("message", "user", "Bump the version"),
        ("message", "assistant", "Bumped to 1.4."),
        ("tool_call", "assistant", 'fs_write: {"path":"VERSION"}'),
        ("tool_result", "tool", "written"),
    ]
    assert reading.events[0].occurred_at == "2026-02-01T10:00:02Z"
    assert reading.events[3].metadata == {"tool_call_id": "x", "is_error": False}
    assert reading.losses() == {"private": 1, "reasoning": 1}


def test_everything_left_out_of_the_second_engine_is_counted() -> None:
    assert only(FIXTURES / "v2-odd").losses() == {
        "own-packet": 1,
        "unknown-block": 2,  # what it thought, and a text among results
        "unknown-type": 1,
        "unknown-version": 1,
    }


def test_everything_left_out_of_the_third_engine_is_counted() -> None:
    assert only(FIXTURES / "v3-odd").losses() == {
        "private": 5,
        "own-packet": 2,
        "reasoning": 2,
        "unknown-shape": 1,
        "unknown-type": 1,
    }


def test_names_inputs_and_ids_of_tools_are_found_under_every_spelling() -> None:
    calls = [event for event in only(FIXTURES / "v2-odd").events if event.kind == "tool_call"]
    assert [(event.content, event.metadata["tool_call_id"]) for event in calls] == [
        ('bash: {"c":"ls"}', "k2"),
        ('tool: {"id":"k3","command":"whole"}', "k3"),
    ]
    results = [event for event in only(FIXTURES / "v2-odd").events if event.kind == "tool_result"]
    assert [(event.content, event.metadata.get("is_error")) for event in results] == [
        ("MARK-FAILED", True),
        ("from output", None),
        ('{"id":"k3","status":"only this"}', None),
    ]


def test_equal_records_without_an_id_are_two_events(tmp_path: Path) -> None:
    twice = [event for event in only(FIXTURES / "v2-odd").events if event.content == "MARK-TWICE"]
    assert len({event_id("kiro", event) for event in twice}) == 2


def test_a_record_keeps_its_id_when_it_is_written_elsewhere_in_the_file(tmp_path: Path) -> None:
    session = Second(tmp_path / ".kiro", SESSION, CWD)
    session.prompt("first")
    session.raw(dumps({"version": "v1", "kind": "Prompt", "data": {"content": [part("x")]}}))
    session.reply("second")
    before = [event_id("kiro", event) for event in only(tmp_path).events]
    session.path.write_bytes(b'{"version":"v1","kind":"Rating"}\n' + session.path.read_bytes())
    assert [event_id("kiro", event) for event in only(tmp_path).events] == before


def test_what_is_of_another_version_or_named_otherwise_is_invisible(tmp_path: Path) -> None:
    write_unseen(tmp_path / ".kiro")
    assert readings(tmp_path, "kiro") == []


def test_a_bool_is_no_version_of_the_data_model(tmp_path: Path) -> None:
    Third(tmp_path / ".kiro", f"sess_{SESSION}", CWD, dataModelVersion=True).prompt("hello")
    assert readings(tmp_path, "kiro") == []


def test_every_directory_of_a_session_is_told(tmp_path: Path) -> None:
    Third(tmp_path / ".kiro", f"sess_{SESSION}", "/elsewhere", CWD, "relative").prompt("hello")
    session = only(tmp_path).session
    assert (session.cwd, session.also) == ("/elsewhere", (CWD,))


def test_kiro_home_moves_both_engines_and_the_third_is_looked_for_at_home_too() -> None:
    places = ADAPTER.stores(Environment(home=b"/h", variables={"KIRO_HOME": b"/k/"}))
    assert [(store.root, store.flavor) for store in places] == [
        (b"/k/sessions/cli", V2),
        (b"/k/sessions", V3),
        (b"/h/.kiro/sessions", V3),
    ]
    assert all(store.rewrites for store in places)


@pytest.mark.parametrize("blank", [b"", b"  ", b"\t"])
def test_a_blank_kiro_home_counts_as_unset(blank: bytes) -> None:
    places = ADAPTER.stores(Environment(home=b"/h", variables={"KIRO_HOME": blank}))
    assert places == ADAPTER.stores(Environment(home=b"/h"))
    assert [store.root for store in places] == [b"/h/.kiro/sessions/cli", b"/h/.kiro/sessions"]


def test_the_engines_do_not_read_each_others_stores(tmp_path: Path) -> None:
    name = os.fsencode(f"b/sess_{SESSION}/messages.jsonl")
    third = {"schemaVersion": "1.0.0", "dataModelVersion": 1, "workspacePaths": [CWD]}
    about = {**third, "id": f"sess_{SESSION}", "session_id": SESSION, "cwd": CWD}
    head = json.dumps(about).encode()
    assert ADAPTER.identify(name, head, V3) is not None
    assert ADAPTER.identify(name, head, V2) is None
    assert ADAPTER.identify(f"{SESSION}.jsonl".encode(), head, V2) is not None
    assert ADAPTER.identify(f"{SESSION}.jsonl".encode(), head, V3) is None


def test_a_record_of_the_other_engine_in_a_file_is_not_read_as_one(tmp_path: Path) -> None:
    second = Second(tmp_path / ".kiro", SESSION, CWD)
    second.raw('{"id":"1","timestamp":"t","payload":{"type":"user","content":"SECRET"}}\n')
    assert only(tmp_path).events == []
    assert lost(tmp_path) == {"unknown-version": 1}


def test_a_packet_is_dropped_and_a_quotation_of_one_is_kept(tmp_path: Path) -> None:
    session = Second(tmp_path / ".kiro", SESSION, CWD)
    session.prompt(f"\n  {PACKET}", f"what is this? {PACKET}")
    session.result("k", PACKET)
    assert [event.content[:12] for event in only(tmp_path).events] == ["what is this"]
    assert lost(tmp_path) == {"own-packet": 2}


def test_an_unfinished_line_waits_for_its_end(tmp_path: Path) -> None:
    session = Second(tmp_path / ".kiro", SESSION, CWD)
    session.prompt("first")
    whole = dumps({"version": "v1", "kind": "Prompt", "data": {"message_id": "m", "content": [part("x")]}})
    session.raw(whole[:30])
    assert (len(only(tmp_path).events), lost(tmp_path)) == (1, {})
    session.raw(whole[30:])
    assert lost(tmp_path) == {"unknown-block": 1}


def test_a_torn_record_is_a_loss_and_the_one_glued_to_it_is_read(tmp_path: Path) -> None:
    session = Third(tmp_path / ".kiro", f"sess_{SESSION}", CWD)
    session.prompt("first")
    with session.path.open("a") as file:
        file.write('{"id":"2","timestamp":"x","payl')
    session.prompt("second")
    assert [event.content for event in only(tmp_path).events] == ["first", "second"]
    assert lost(tmp_path) == {"malformed": 1}


def test_parsing_needs_no_state() -> None:
    assert ADAPTER.parse is not None
    data = b"".join(path.read_bytes() for path in sorted(FIXTURES.glob("*-recipe/**/*.jsonl")))
    parsed: Parsed = ADAPTER.parse(data, 0, b"")
    assert len(parsed.events) == 8


@pytest.mark.parametrize("engine", [Second, Third])
def test_halves_of_pairs_and_odd_bytes_are_replaced(engine: type[Second | Third], tmp_path: Path) -> None:
    session = engine(tmp_path / ".kiro", SESSION if engine is Second else f"sess_{SESSION}", CWD)
    session.prompt("halfMARK")
    session.prompt("oddMARK")
    data = session.path.read_bytes()
    data = data.replace(b"halfMARK", rb"half\ud83d").replace(b"oddMARK", b"odd\xff")
    session.path.write_bytes(data)
    assert [event.content for event in only(tmp_path).events] == ["half\ufffd", "odd\ufffd"]
    assert lost(tmp_path) == {"encoding": 1}
