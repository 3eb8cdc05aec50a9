"""Material for judging any adapter of files: its captured stores, and hostile variations of their lines."""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from memd.harness import registry
from memd.harness.model import Adapter, Environment, Event, Parsed, Session, Store
from support_imports import head_of, load, sources
from support_order import arrange

FIXTURES = Path(__file__).parent / "fixtures"
SMALL = 3000  # bytes; longer lines teach a test nothing new


def file_adapters() -> list[str]:
    """Names of the adapters that read files record by record."""
    return [name for name, adapter in registry.adapters().items() if adapter.parse is not None]


@functools.cache
def captured(name: str) -> tuple[tuple[str, Store, bytes, bytes], ...]:
    """Every source in the adapter's fixtures: scenario, store, path below the root, content."""
    adapter = registry.resolve(name)
    found = []
    for scenario in sorted((FIXTURES / name).glob("*")):
        for store in adapter.stores(Environment(home=os.fsencode(scenario))):
            if not store.database and not store.documents:
                for path in sources(store):
                    found.append((scenario.name, store, path[len(store.root) + 1 :], load(path)))
    return tuple(found)


def opened(adapter: Adapter, store: Store, path: bytes, data: bytes) -> Session:
    """The session of a captured source."""
    head = head_of(adapter, store, path, data)
    assert head is not None
    session = adapter.identify(path, head, store.flavor)
    assert session is not None
    return session


@functools.cache
def lines(name: str) -> tuple[bytes, ...]:
    """Different lines of the fixtures, without their newlines."""
    seen = {line for *_where, data in captured(name) for line in data.split(b"\n") if line}
    return tuple(sorted(line for line in seen if len(line) <= SMALL))


@functools.cache
def words(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys and the short string values that stand in the fixtures."""
    keys: set[str] = set()
    values: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                keys.add(key)
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)
        elif isinstance(value, str) and len(value) <= 40:
            values.add(value)

    for line in lines(name):
        collect(json.loads(line))
    return tuple(sorted(keys)), tuple(sorted(values))


def records(name: str) -> st.SearchStrategy[bytes]:
    """Objects with the harness's own keys and words in places where nobody expects them."""
    keys, values = words(name)
    leaves = (
        st.sampled_from(values)
        | st.text(max_size=8)
        | st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
    )
    inner = st.recursive(
        leaves,
        lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(keys), one, max_size=5),
        max_leaves=12,
    )
    return st.dictionaries(st.sampled_from(keys), inner, max_size=8).map(_dump)


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


@st.composite
def twisted(draw: st.DrawFn, name: str) -> bytes:
    """A real line with one value exchanged, one key missing, or one stretch of bytes damaged."""
    line = draw(st.sampled_from(lines(name)))
    match draw(st.integers(0, 4)):
        case 0:
            return line
        case 1:
            start = draw(st.integers(0, len(line)))
            end = min(len(line), start + draw(st.integers(0, 12)))
            return line[:start] + draw(st.binary(max_size=6)).replace(b"\n", b"") + line[end:]
        case 2:
            return line[: draw(st.integers(0, len(line)))]
        case _:
            record = json.loads(line)
            spot: Any = record
            while isinstance(spot, dict) and spot:
                key = draw(st.sampled_from(sorted(spot)))
                if isinstance(spot[key], dict) and spot[key] and draw(st.booleans()):
                    spot = spot[key]
                    continue
                if draw(st.booleans()):
                    del spot[key]
                else:
                    spot[key] = draw(
                        st.sampled_from([None, 7, "", "x", [], {}, True, [{"type": "text"}], -1.5])
                    )
                break
            return _dump(record)


def transcripts(name: str) -> st.SearchStrategy[bytes]:
    """Files that look more or less like the harness's, with and without an end to their last line."""
    raw = st.binary(max_size=40)
    pieces = st.lists(st.one_of(twisted(name), records(name), raw), max_size=12)
    return st.builds(
        lambda parts, end: b"\n".join(parts) + end, pieces, st.sampled_from([b"", b"\n", b"\n\n"])
    )


def piecewise(adapter: Adapter, data: bytes, cuts: Sequence[int], state: bytes = b"") -> list[Parsed]:
    """The file as if it had grown to each cut in turn, and then to its end."""
    assert adapter.parse is not None
    parts, at = [], 0
    for cut in (*sorted(cuts), len(data)):
        if cut < at:
            continue
        parsed = adapter.parse(data[at:cut], at, state)
        parts.append(parsed)
        state = parsed.state
        at += parsed.consumed
    return parts


def shown(parts: Sequence[Parsed]) -> tuple[list[Event], list[Any], Counter[str], dict[str, Session]]:
    """What a ledger makes of parts, wherever they were cut: events in order, turns, losses, sessions."""
    events = [msgspec.structs.replace(event, replaces=-1) for event in arrange(parts)]
    turns = [turn for part in parts for turn in part.turns]
    losses: Counter[str] = Counter()
    for part in parts:
        for loss in part.losses:
            losses[loss.what] += loss.count
    return events, turns, losses, merged(session for part in parts for session in part.sessions)


def merged(told: Iterator[Session]) -> dict[str, Session]:
    known: dict[str, Session] = {}
    for one in told:
        before = known.get(one.id, one)
        known[one.id] = msgspec.structs.replace(
            one,
            cwd=before.cwd or one.cwd,
            started=before.started or one.started,
            title=one.title or before.title,
            version=before.version or one.version,
        )
    return known
