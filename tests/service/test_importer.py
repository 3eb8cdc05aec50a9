"""A worker that dies costs nothing that it sent, and nobody but itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import trio

from memd.ledger import messages
from memd.ledger.store.interface import Appended, Batch
from memd.service.importer import Importer
from memd.service.lane import Lane


class Writer:
    """Keeps the sources of what was put in."""

    def __init__(self) -> None:
        self.put: list[bytes] = []

    def append_all(self, batches: Iterable[Batch], is_awaited: Callable[[], bool]) -> list[Appended]:
        sources = [batch.source for batch in batches]
        self.put += sources
        return [Appended() for _ in sources]


def read(number: int, *, is_live: bool) -> messages.Read:
    batch = Batch(harness="claude", source=b"%d" % number, cursor=b"x")
    return messages.read(number, (batch,), is_live=is_live, is_more=not is_live)


def dying(folder: Path, *sent: messages.Read) -> str:
    """A worker that is told how to begin, sends this, hears nothing more and ends."""
    said = folder / "said"
    said.write_bytes(b"".join(map(messages.pack, sent)))
    begin = messages.Begin(environments=(), rules=messages.Rules(), scratch=bytes(folder))
    size = sum(len(messages.pack(one)) for one in (begin, messages.Watched(is_watched=False)))
    program = folder / "worker"
    program.write_text(f"#!/bin/sh\nhead -c {size} >/dev/null\nexec 0<&-\ncat '{said}'\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("is_live", [False, True])
async def test_what_a_worker_sent_before_it_died_is_in_when_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_live: bool
) -> None:
    monkeypatch.setattr(sys, "executable", dying(tmp_path, *(read(n, is_live=is_live) for n in (1, 2))))
    writer = Writer()
    as_engine: Any = writer
    begun_with: list[list[bytes]] = []

    def cursors(after: bytes, limit: int) -> dict[bytes, bytes]:
        begun_with.append(list(writer.put))
        return {}

    importer = Importer(
        as_engine, Lane(), cursors=cursors, scratch=bytes(tmp_path), on_folders=lambda folders: None
    )
    with trio.fail_after(20):
        await importer._one_worker()
        await importer._one_worker()
    assert begun_with == [[], [b"1", b"2"]]
