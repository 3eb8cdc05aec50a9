"""The ordered view of a workstream: which events join, in what order, and what is shown of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support_ledger import S1, entry
from support_workstreams import Lines


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger") as made:
        made.workstream()
        yield made


def test_repair_keeps_the_view_and_brings_back_what_is_missing(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a"), entry("b"))
    lines.writer._connection.execute("delete from session_events where position = 2")
    lines.writer._connection.execute("delete from events where content = 'b'")
    assert lines.view() == ["a"]
    lines.writer.repair()
    assert lines.view() == ["a", "b"]
    assert lines.problems() == []
