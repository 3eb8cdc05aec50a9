"""Events on their way into the ledger: provenance is scrubbed and cut like text, and ids come before both."""

from __future__ import annotations

import pytest

from memd.harness.model import Event
from memd.ledger.assembly import MAX_METADATA_BYTES, Assembly
from memd.ledger.messages import Rules
from memd.ledger.store.interface import Entry
from memd.ledger.store.values import unpack

SECRET = "ghp_" + "a1B2" * 9


def event(content: str = "hello", record: str = "r1", **metadata: str | bool | int) -> Event:
    return Event(
        session="s1",
        origin=record,
        record=record,
        kind="tool_call",
        role="assistant",
        content=content,
        at=0,
        metadata=metadata,
    )


def entries(*events: Event, **rules: tuple[str, ...]) -> list[Entry]:
    return Assembly(Rules(**rules))._entries("claude", events)  # type: ignore[arg-type]


def test_no_secret_is_left_in_what_says_where_a_text_came_from() -> None:
    long = "é" * 250 + SECRET + "日本" * 400  # straddles the cut
    [made] = entries(event(record=long, tool=long, tool_call_id=SECRET, is_error=True, exit_code=3))
    for text in (made.record, made.metadata["tool"], made.metadata["tool_call_id"]):
        assert isinstance(text, str)
        assert SECRET[:12] not in text
        assert len(text.encode()) <= MAX_METADATA_BYTES
        assert "\ufffd" not in text
    assert made.record.startswith("é" * 250)
    assert (made.metadata["is_error"], made.metadata["exit_code"]) == (True, 3)


def test_events_whose_records_are_equal_once_they_are_cut_stay_two() -> None:
    one, other = entries(event(record="x" * 600 + "1"), event(record="x" * 600 + "2"))
    assert one.record == other.record
    assert one.id != other.id


def test_another_rule_of_what_is_secret_gives_no_other_ids() -> None:
    [before] = entries(event("the codename is walrus"))
    [after] = entries(event("the codename is walrus"), extra_patterns=("walrus",))
    assert "walrus" in before.content
    assert "walrus" not in after.content
    assert after.id == before.id


@pytest.mark.parametrize("damaged", ["{", "[]", "5", '{"a": [1]}', '{"a": null}', "\x00", '"text"'])
def test_metadata_that_is_damaged_reads_as_none(damaged: str) -> None:
    assert unpack(damaged) == {}
    assert unpack("") == {}
    assert unpack('{"tool":"Bash","is_error":true}') == {"tool": "Bash", "is_error": True}
