"""Workstreams, links, runs and handoffs as the store keeps them; what forgetting takes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.ledger.store.interface import Selection
from support_ledger import S1, entry, holding
from support_workstreams import Lines, handoff


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger") as made:
        made.workstream()
        yield made


@pytest.mark.parametrize(
    "selection",
    [
        Selection(session=S1),
        Selection(project="/home/dev"),
        Selection(before="2030-01-01"),
        Selection(matching="Pört"),
        Selection(matching="zebra"),
        Selection(harness="claude", matching="port zebra"),
    ],
    ids=lambda selection: repr(selection)[:60],
)
def test_forgetting_takes_handoffs_of_the_same(lines: Lines, selection: Selection) -> None:
    row = handoff(from_harness="claude", from_session=S1, summary="the port stays", files=("zebra.py",))
    lines.work(lambda work: work.put_handoff(row))
    assert lines.writer.plan_forget(selection).handoffs == 1
    assert lines.forget(selection).handoffs == 1
    assert lines.reader.workstreams.handoff("h1") is None
    lines.close()
    assert holding(lines.root, [b"zebra"]) == []


def test_words_of_a_workstream_are_gone_from_the_files_when_forgotten(lines: Lines) -> None:
    lines.link(S1)
    lines.put(entry("a zebra crosses"))
    lines.forget(Selection(matching="zebra"))
    lines.close()
    assert holding(lines.root, [b"zebra"]) == []
