"""What the engine of one machine keeps in memory when there is nothing to do."""

from __future__ import annotations

from pathlib import Path

import apsw

from support_ledger import Ledger, entry

MOST_LEFT = 1 << 20


def test_an_idle_ledger_holds_no_cache_of_what_it_wrote(tmp_path: Path) -> None:
    before = apsw.memory_used()
    with Ledger(tmp_path / "ledger") as ledger:
        for part in range(20):
            ledger.put(*(entry(f"{part} {at} {part * at} word{at}" * 20, at=at) for at in range(150)))
        worked = apsw.memory_used() - before
        ledger.writer.rest()
        assert apsw.memory_used() - before < MOST_LEFT < worked
        ledger.put(entry("one more", at=10_000))
        assert ledger.problems() == []
