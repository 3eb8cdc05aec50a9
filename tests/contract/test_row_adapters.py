"""What every adapter that reads a database must hold, whatever is in its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.harness import registry
from memd.harness.losses import CLASSES
from memd.harness.model import (
    MAX_EVENT_BYTES,
    MAX_STATE_BYTES,
    METADATA_KEYS,
    Environment,
    Event,
    Parsed,
    event_id,
)

NAMES = [name for name, adapter in registry.adapters().items() if adapter.parse_rows is not None]
QUERIES = [(name, query.name) for name in NAMES for query in registry.resolve(name).queries]
TYPES = {"is_error": bool, "exit_code": int, "loss_count": int}
quietly = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)

Row = tuple[object, ...]

WORDS = ("text", "tool", "reasoning", "file", "compaction", "step-start", "completed", "running", "error",
         "user", "assistant", "system", "id", "ses_1", "msg_1", "bash", "<!-- memd:workstream-packet:v1 -->",
         '"quoted words"', "\ud83d", "\0", "é" * 9)  # fmt: skip
KEYS = ("type", "text", "tool", "callID", "state", "status", "input", "output", "error", "metadata", "exit",
        "time", "start", "end", "synthetic", "summary", "content", "role", "data")  # fmt: skip

leaves = (
    st.sampled_from(WORDS)
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=6)
)
objects = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=14,
)
parts = st.one_of(
    st.builds(
        lambda kind, more: {"type": kind, **more},
        st.sampled_from(WORDS[:6]),
        st.dictionaries(st.sampled_from(KEYS[1:]), objects, max_size=6),
    ),
    st.builds(
        lambda status, tool, output: {
            "type": "tool",
            "tool": tool,
            "callID": "c",
            "state": {"status": status, "input": {"a": 1}, "output": output, "time": {"start": 1, "end": 2}},
        },
        st.sampled_from(WORDS[6:9]),
        st.sampled_from(WORDS),
        st.sampled_from(WORDS),
    ),
)
documents = parts.map(lambda part: json.dumps(part).encode("utf-8", "replace"))
lists = st.lists(
    st.builds(
        lambda kind, data: {"type": kind, "data": data},
        st.sampled_from((*WORDS[:3], "tool_call", "tool_result", "finish", "binary")) | objects,
        st.dictionaries(st.sampled_from(KEYS), objects, max_size=5) | objects,
    ),
    max_size=4,
).map(lambda found: json.dumps(found).encode("utf-8", "replace"))
values = (
    st.sampled_from(WORDS)
    | st.none()
    | st.integers()
    | st.integers(1_796_000_000_000, 1_796_000_000_050)
    | st.floats()
    | st.binary(max_size=12)
    | documents
)


def rows(name: str, query: str) -> st.SearchStrategy[list[Row]]:
    """Rows of one query: some of any values, most with ids and times that look right."""
    (columns,) = [found.columns for found in registry.resolve(name).queries if found.name == query]
    short = st.integers(0, 4)
    ids = {
        column: short.map(lambda number, column=column: f"{column}_{number}")
        for column in columns
        if column in ("id", "session", "message")
    }
    times = st.integers(1_796_000_000_000, 1_796_000_000_020)
    likely: dict[str, st.SearchStrategy[object]] = {
        **ids,
        "updated": times,
        "created": times,
        "started": times,
        "role": st.sampled_from(("user", "assistant", "system")),
        "parent": st.sampled_from((None, "session_0")),
        "completed": st.sampled_from((None, 1_796_000_000_030)),
        "failed": st.sampled_from((None, None, "MessageAbortedError", "APIError")),
        "settled": st.sampled_from((None, None, 1)),
        "ordinal": st.integers(0, 9),
        "size": st.sampled_from((50, 50, 2 << 20)),
        "data": documents | st.none(),
        "parts": lists | lists | documents | st.none(),
        "place": st.integers(0, 9),
        "summary": st.integers(0, 1),
    }
    plain = st.tuples(*(likely.get(column, values) for column in columns))
    wild = st.tuples(*(values for _ in columns)) | st.lists(values, max_size=len(columns) + 1).map(tuple)
    return st.lists(plain | plain | plain | wild, max_size=12)


def parse(name: str, query: str, found: Sequence[Row], state: bytes = b"") -> Parsed:
    adapter = registry.resolve(name)
    assert adapter.parse_rows is not None
    return adapter.parse_rows(query, found, state)


def check(name: str, found: Sequence[Row], parsed: Parsed) -> None:
    """The bounds of one answer."""
    assert parsed.consumed == len(found)
    assert len(parsed.state) <= MAX_STATE_BYTES
    places = [event.at for event in parsed.events]
    assert places == sorted(places)
    for event in parsed.events:
        assert 0 <= event.at < 1 << 63
        assert event.origin
        assert event.session
        assert len(event.content.encode("utf-8")) <= MAX_EVENT_BYTES
        assert event_id(name, event).startswith("native:")
        assert set(event.metadata) <= METADATA_KEYS
        for key, value in event.metadata.items():
            assert type(value) is TYPES.get(key, str)
            if isinstance(value, str):
                assert len(value.encode("utf-8")) <= 512
    for loss in parsed.losses:
        assert CLASSES[loss.what] == loss.sentence
        assert loss.count > 0
        loss.session.encode("utf-8")
    for session in parsed.sessions:
        assert session.id
        session.cwd.encode("utf-8")


def shown(name: str, pieces: Sequence[Parsed]) -> dict[tuple[str, str], Event]:
    """What a ledger holds afterwards: each event once per session, the first of its id."""
    held: dict[tuple[str, str], Event] = {}
    for piece in pieces:
        for event in piece.events:
            held.setdefault((event.session, event_id(name, event)), event)
    return held


def losses(pieces: Sequence[Parsed]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for loss in (loss for piece in pieces for loss in piece.losses):
        counts[loss.session, loss.what] = counts.get((loss.session, loss.what), 0) + loss.count
    return counts


@pytest.mark.parametrize(("name", "query"), QUERIES)
@given(data=st.data())
@quietly
def test_any_rows_and_any_state_give_a_bounded_answer(name: str, query: str, data: st.DataObject) -> None:
    found = data.draw(rows(name, query))
    state = data.draw(st.just(b"") | st.binary(max_size=60))
    check(name, found, parse(name, query, found, state))


@pytest.mark.parametrize(("name", "query"), QUERIES)
@given(data=st.data())
@quietly
def test_any_split_gives_the_same_events_and_losses(name: str, query: str, data: st.DataObject) -> None:
    found = data.draw(rows(name, query))
    whole = parse(name, query, found)
    pieces, state = [], b""
    for row in found:
        pieces.append(parse(name, query, [row], state))
        state = pieces[-1].state
    assert shown(name, pieces).keys() == shown(name, [whole]).keys()
    assert losses(pieces) == losses([whole])


@pytest.mark.parametrize(("name", "query"), QUERIES)
@given(data=st.data())
@quietly
def test_twice_gives_the_same_ids_and_counts_nothing_again(
    name: str, query: str, data: st.DataObject
) -> None:
    found = data.draw(rows(name, query))
    first = parse(name, query, found)
    assert parse(name, query, found) == first
    again = parse(name, query, found, first.state)
    assert shown(name, [again]).keys() <= shown(name, [first]).keys()
    assert not again.losses


@pytest.mark.parametrize("name", NAMES)
def test_queries_begin_with_the_cursor_and_only_select(name: str) -> None:
    for query in registry.resolve(name).queries:
        assert query.columns[:2] == ("updated", "id")
        assert query.sql.split()[0].lower() in ("select", "with")
        assert {":updated", ":id", ":limit"} <= set(query.sql.replace(",", " ").replace(")", " ").split())
        assert ";" not in query.sql


@pytest.mark.parametrize("name", NAMES)
def test_only_one_kind_of_query_waits_for_rest(name: str) -> None:
    adapter = registry.resolve(name)
    assert not adapter.queries[0].is_at_rest
    assert len({query.name for query in adapter.queries}) == len(adapter.queries)
    assert adapter.scattered or any(store.database for store in adapter.stores(_anywhere()))


def _anywhere() -> Environment:
    return Environment(home=b"/home/dev")
