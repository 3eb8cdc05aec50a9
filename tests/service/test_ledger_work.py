"""The daemon's ledger as runs use it: transactions, what memd says itself, scrubbing, what is imported."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from memd.errors import NotFound
from memd.ledger.messages import Rules
from memd.ledger.store.workstreams import RunGone
from memd.service.ledger import Ledger
from memd.service.watcher import Watcher
from support_ledger import S1, batch, entry
from support_workstreams import linked, run, workstream


@asynccontextmanager
async def opened(root: Path, rules: Rules | None = None) -> AsyncIterator[Ledger]:
    ledger = Ledger(os.fsencode(root), Watcher(step_ms=50, poll=True))
    ledger.configure((), rules or Rules())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.run)
        with trio.fail_after(30):
            yield ledger
        nursery.cancel_scope.cancel()


async def test_what_is_done_in_a_transaction_is_seen_by_whoever_asks(tmp_path: Path) -> None:
    async with opened(tmp_path / "ledger") as ledger:
        await ledger.work(lambda work: work.put_workstream(workstream()))
        await ledger.work(lambda work: work.put_linked("w1", linked(S1)))
        await ledger.append(batch(entry("a")))
        tail = await ledger.ask(lambda reader: reader.workstreams.tail("w1"))
        assert [event.content for event in tail] == ["a"]
        with pytest.raises(RunGone):
            await ledger.append(batch(entry("b"), run="never heard of"))
        await ledger.work(lambda work: work.put_run(run()))
        await ledger.append(batch(entry("b"), run="run-1"))
        tail = await ledger.ask(lambda reader: reader.workstreams.tail("w1"))
        assert [event.content for event in tail] == ["b", "a"]


async def test_scrubbing_goes_by_the_rules_that_imports_go_by(tmp_path: Path) -> None:
    async with opened(tmp_path / "ledger", Rules(extra_patterns=("mine-[0-9]+",))) as ledger:
        assert "mine-42" not in await ledger.scrub("it is mine-42")
        ledger.configure((), Rules())
        assert await ledger.scrub("it is mine-42") == "it is mine-42"


async def test_what_is_not_imported_is_known(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / ".memd.toml").write_text("[import]\nenabled = false\n")
    ledger = Ledger(os.fsencode(tmp_path / "ledger"), Watcher(step_ms=50, poll=True))
    assert await ledger.imports("claude", os.fsencode(tmp_path))
    assert not await ledger.imports("claude", os.fsencode(private))
    ledger.configure((), Rules(harnesses=("codex",)))
    assert not await ledger.imports("claude", os.fsencode(tmp_path))
    ledger.configure((), Rules(is_enabled=False))
    assert not await ledger.imports("codex", os.fsencode(tmp_path))


async def test_a_refusal_inside_a_question_comes_as_it_is(tmp_path: Path) -> None:
    def refuse(_reader: object) -> None:
        raise NotFound("nothing here")

    async with opened(tmp_path / "ledger") as ledger:
        for _ in range(6):  # more often than there are readers
            with pytest.raises(NotFound, match="nothing here"):
                await ledger.ask(refuse)
        assert await ledger.ask(lambda reader: reader.workstreams.active_runs()) == []
