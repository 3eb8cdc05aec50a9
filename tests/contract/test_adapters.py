"""What every adapter that reads files must hold, whatever is in them."""

from __future__ import annotations

import json
import os

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
    Parsed,
    Session,
    event_id,
)
from support_adapters import FIXTURES, captured, file_adapters, lines, opened, piecewise, shown, transcripts
from support_records import line as one_line

NAMES = file_adapters()
TYPES = {"is_error": bool, "exit_code": int, "loss_count": int}
SLOW_START = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
quietly = settings(suppress_health_check=SLOW_START, deadline=None, max_examples=40)


def parse(name: str, chunk: bytes, base: int = 0, state: bytes = b"") -> Parsed:
    adapter = registry.resolve(name)
    assert adapter.parse is not None
    return adapter.parse(chunk, base, state)


def check(name: str, chunk: bytes, base: int, parsed: Parsed, shift: int | None = 0) -> None:
    """The bounds of one answer; `shift` None: places are not known, the state was no adapter's."""
    assert 0 <= parsed.consumed <= len(chunk)
    assert parsed.consumed == chunk.rfind(b"\n") + 1
    assert len(parsed.state) <= MAX_STATE_BYTES
    places = [event.at for event in parsed.events]
    assert places == sorted(places)
    for event in parsed.events:
        if shift is not None:
            assert base <= event.at - shift < base + parsed.consumed
        assert event.origin
        assert len(event.content.encode("utf-8")) <= MAX_EVENT_BYTES
        assert event_id(name, event).startswith("native:")
        assert set(event.metadata) <= METADATA_KEYS
        for key, value in event.metadata.items():
            kind = TYPES.get(key, str)
            assert type(value) is kind
            if isinstance(value, str):
                assert len(value.encode("utf-8")) <= 512
    for loss in parsed.losses:
        assert CLASSES[loss.what] == loss.sentence
        assert loss.count > 0
    for session in parsed.sessions:
        session.cwd.encode("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_there_are_captured_stores(name: str) -> None:
    assert (FIXTURES / name).is_dir()
    assert len(captured(name)) >= 3
    assert len(lines(name)) >= 20


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@quietly
def test_any_bytes_give_a_bounded_answer(name: str, data: st.DataObject) -> None:
    chunk = data.draw(st.binary(max_size=300) | transcripts(name))
    base = data.draw(st.integers(0, 1 << 40))
    check(name, chunk, base, parse(name, chunk, base))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@quietly
def test_any_state_gives_a_bounded_answer(name: str, data: st.DataObject) -> None:
    state = data.draw(st.binary(max_size=60))
    chunk = data.draw(transcripts(name))
    check(name, chunk, 0, parse(name, chunk, 0, state), None)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@quietly
def test_any_split_gives_the_same_events(name: str, data: st.DataObject) -> None:
    whole = data.draw(transcripts(name))
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=6))
    adapter = registry.resolve(name)
    assert shown(piecewise(adapter, whole, cuts)) == shown(piecewise(adapter, whole, ()))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@quietly
def test_parsing_twice_gives_the_same_ids(name: str, data: st.DataObject) -> None:
    whole = data.draw(transcripts(name))
    first, second = parse(name, whole), parse(name, whole)
    assert [event_id(name, event) for event in first.events] == [
        event_id(name, event) for event in second.events
    ]
    assert first == second


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@quietly
def test_any_beginning_of_a_file_can_be_asked_for_its_session(name: str, data: st.DataObject) -> None:
    adapter = registry.resolve(name)
    path = data.draw(st.binary(max_size=80) | st.sampled_from([path for _s, _st, path, _d in captured(name)]))
    session = adapter.identify(path, data.draw(transcripts(name)), "")
    assert session is None or isinstance(session, Session)
    if session is not None:
        state = adapter.begin(session, "")
        assert len(state) <= MAX_STATE_BYTES
        chunk = data.draw(transcripts(name))
        check(name, chunk, 0, parse(name, chunk, 0, state), session.shift)


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_near_the_end_of_a_fixture_loses_nothing(name: str) -> None:
    """At each of the last 4,096 bytes: what is there then comes, and the rest comes later."""
    adapter = registry.resolve(name)
    assert adapter.parse is not None
    for _scenario, store, path, data in captured(name):
        session = opened(adapter, store, path, data)
        begun = adapter.begin(session, store.flavor)
        whole = shown(piecewise(adapter, data, (), begun))
        window = data.rfind(b"\n", 0, max(0, len(data) - 4096)) + 1
        head = adapter.parse(data[:window], 0, begun)
        assert head.consumed == window
        seen: dict[int, bytes] = {}  # consumed -> state: the rest depends on these two alone
        for cut in range(window, len(data) + 1):
            part = adapter.parse(data[window:cut], window, head.state)
            if part.consumed in seen:
                assert part.state == seen[part.consumed]
                continue
            seen[part.consumed] = part.state
            at = window + part.consumed
            rest = adapter.parse(data[at:], at, part.state)
            assert shown([head, part, rest]) == whole


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_a_fixture_can_be_a_chunk_of_its_own(name: str) -> None:
    adapter = registry.resolve(name)
    for _scenario, store, path, data in captured(name):
        session = opened(adapter, store, path, data)
        begun = adapter.begin(session, store.flavor)
        ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
        assert shown(piecewise(adapter, data, ends, begun)) == shown(piecewise(adapter, data, (), begun))
        for part in piecewise(adapter, data, ends, begun):
            assert len(part.state) <= MAX_STATE_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_session_of_the_records_is_the_session_of_the_file(name: str) -> None:
    adapter = registry.resolve(name)
    for _scenario, store, path, data in captured(name):
        session = opened(adapter, store, path, data)
        (part,) = piecewise(adapter, data, (), adapter.begin(session, store.flavor))
        if not session.id:  # it holds many, and its records name them
            assert all(event.session for event in part.events)
            continue
        assert {event.session for event in part.events} <= {session.id}
        assert {told.id for told in part.sessions} <= {session.id}
        assert {loss.session for loss in part.losses} <= {session.id, session.parent}


@pytest.mark.parametrize("name", NAMES)
def test_records_of_megabytes_are_shortened(name: str) -> None:
    for line in lines(name):
        for text in (b'"text":"', b'"content":"', b'"output":"', b'"message":"'):
            if text in line:
                giant = line.replace(text, text + b"x" * (2 << 20), 1) + b"\n"
                check(name, giant, 0, parse(name, giant))
                break


@pytest.mark.parametrize("name", NAMES)
def test_unknown_record_is_a_loss_and_the_rest_goes_on(name: str) -> None:
    for _scenario, store, path, data in captured(name)[:3]:
        hologram = {"type": "hologram", "payload": {"type": "hologram"}, "kind": "hologram"}
        end = data.find(b"\n") + 1
        if not opened(registry.resolve(name), store, path, data).id:  # records name their session
            end = data.rfind(b"\n", 0, -1) + 1
            hologram = {**json.loads(data[end:]), **hologram}
        odd = one_line(hologram)
        plain, more = parse(name, data), parse(name, data[:end] + odd + data[end:])
        assert [event.content for event in more.events] == [event.content for event in plain.events]
        assert sum(loss.count for loss in more.losses) == sum(loss.count for loss in plain.losses) + 1


@pytest.mark.parametrize("name", list(registry.adapters()))
def test_stores_are_absolute_whatever_the_home_is_called(name: str) -> None:
    home = os.fsencode("/home/caf") + b"\xe9"
    for store in registry.resolve(name).stores(Environment(home=home)):
        assert store.root.startswith(home + b"/")
        assert store.patterns
