"""A kill at every write in the life of a run: going on from there ends where an undisturbed life ends.

What a session is told is claimed once, however often it is tried. `MEMD_FULL_SWEEPS=1` tries every point,
otherwise every few.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.ledger.store.sqlite import SqliteWriter
from memd.ledger.store.workstreams import Work
from memd.workstream import handoff
from memd.workstream.delivery import Claimed
from support_faults import Killed
from support_ledger_faults import LedgerFaults, faulty, is_dead, killing
from support_ledger_flows import begin, life, outcome
from support_workstreams import CWD

pytestmark = pytest.mark.faults

STRIDE = 1 if os.environ.get("MEMD_FULL_SWEEPS") else 4


def dies(root: Path, at: int, told: list[Claimed]) -> bool:
    faults = LedgerFaults()
    with faulty(root, faults) as open_:
        writer = open_()
        faults.calls.clear()
        doomed = killing(at)
        faults.__dict__.update(doomed.__dict__)
        faults._happens = faults.kill
        with contextlib.suppress(Killed, MemdError):
            life(writer, told)
        return is_dead(faults)


def test_a_life_that_a_kill_cut_off_goes_on_to_the_same_end(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    writer = SqliteWriter(bytes(begun))
    begin(writer)
    writer.close()
    traced = tmp_path / "traced"
    shutil.copytree(begun, traced)
    faults = LedgerFaults()
    undisturbed: list[Claimed] = []
    with faulty(traced, faults) as open_:
        writer = open_()
        faults.calls.clear()
        life(writer, undisturbed)
        count = len(faults.calls)
    expected = outcome(traced)
    assert len(undisturbed) == 1
    assert count > 30
    for at in range(0, count, STRIDE):
        root = tmp_path / f"try-{at}"
        shutil.copytree(begun, root)
        told: list[Claimed] = []
        assert dies(root, at, told)
        writer = SqliteWriter(bytes(root))
        life(writer, told)
        writer.close()
        assert len(told) <= 1
        assert outcome(root) == expected
        shutil.rmtree(root)


def test_a_claim_that_the_disk_refused_is_no_claim(tmp_path: Path) -> None:
    root = tmp_path / "ledger"
    writer = SqliteWriter(bytes(root))
    begin(writer)

    def fails(work: Work) -> None:
        assert handoff.accept(work, "h1", handoff.Receiver(harness="claude", cwd=CWD)).state == "accepted"
        raise MemdError("the disk is full")

    with pytest.raises(MemdError):
        writer.work(fails)
    row = writer.work(lambda work: work.handoff("h1"))
    assert row is not None
    assert row.state == "open"
    writer.close()
