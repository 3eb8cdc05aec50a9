"""Every value of every record may have any type: an adapter counts a loss and goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memd.harness.registry import adapters
from support_adapters import FIXTURES

NAMES = [name for name, adapter in adapters().items() if adapter.parse is not None]
ODD: tuple[Any, ...] = ([], {}, [[1]], {"type": []}, -1, 1 << 70, 1.5, True, None, "", "\ud83d", "x" * 300)


def shapes(name: str) -> list[dict[str, Any]]:
    """One record of each shape that the captured sessions hold."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((FIXTURES / name).rglob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and len(line) < 20_000:
                found.setdefault(shape(record), record)
    return list(found.values())


def shape(value: Any) -> str:
    """The keys, and the words that say what something is; not what it holds."""
    if isinstance(value, dict):
        inner = (f"{k}:{v if k in ('type', 'role') else shape(v)}" for k, v in sorted(value.items()))
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted({shape(item) for item in value})) + "]"
    return type(value).__name__


def spoiled(record: Any) -> Iterator[Any]:
    """The record with one value, at any depth, replaced by something odd."""
    keys = (
        record.keys() if isinstance(record, dict) else range(len(record)) if isinstance(record, list) else ()
    )
    for key in list(keys):
        kept = record[key]
        for odd in ODD:
            record[key] = odd
            yield record
        record[key] = kept
        for _ in spoiled(kept):
            yield record
        record[key] = kept


@pytest.mark.parametrize("name", NAMES)
def test_any_value_of_a_record_may_have_any_type(name: str) -> None:
    adapter = adapters()[name]
    assert adapter.parse is not None
    records = shapes(name)
    assert len(records) > 5
    begun = json.dumps(records[0]).encode() + b"\n"
    for record in records:
        for odd in spoiled(record):
            line = json.dumps(odd).encode() + b"\n"
            parsed = adapter.parse(begun + line, 0, b"")
            assert parsed.consumed == len(begun + line)
            assert all(isinstance(event.content, str) for event in parsed.events)
            assert all(isinstance(event.role, str) for event in parsed.events)
            adapter.identify(b"a/b.jsonl", line, "")
