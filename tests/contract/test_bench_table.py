"""The table of figures replaces itself and nothing else, and says what was not measured."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[1] / "bench"
PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("run", "measure"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("run")


def test_only_what_is_between_the_marks_is_replaced(run: ModuleType) -> None:
    page = f"above\n{run.BEGIN}\nold \\1 table\n{run.END}\nbelow\n"
    once = run.replaced(page, r"new \g<0> table")
    assert once == f"above\n{run.BEGIN}\n\nnew \\g<0> table\n{run.END}\nbelow\n"
    assert run.replaced(once, r"new \g<0> table") == once


def test_the_page_has_its_place_for_figures(run: ModuleType) -> None:
    text = PAGE.read_text()
    assert text.count(run.BEGIN) == text.count(run.END) == 1
    assert text.index(run.BEGIN) < text.index(run.END)


def test_rows_say_what_was_met_missed_and_only_shown(run: ModuleType) -> None:
    measure = importlib.import_module("measure")
    measure.section(
        "a part",
        [
            measure.Row("met", [1.0, 2.0, 3.0], [2.0], "ms", 1.5),
            measure.Row("not met", [4.0], [2.0], "ms", 1.5, 0.95),
            measure.Row("size (for scale)", [4.0], [2.0], "ms", 9.0),
        ],
    )
    table = run.render((0.5, 7.25), ["bench_other"], is_quick=False)
    assert "| met | p50 | 2 ms | 1–3 | 2 ms |  | 1.00 | 1.5 | met |" in table
    assert "| not met | p95 | 4 ms |  | 2 ms |  | 2.00 | 1.5 | **missed** |" in table
    assert "| size (for scale) | p50 | 4 ms |  | 2 ms |  | 2.00 |  |  |" in table
    assert "bench_other could not be measured" in table
    assert "load average 0.5 at the start and 7.2 at the end" in table


def test_every_benchmark_is_in_the_one_command(run: ModuleType) -> None:
    assert {path.stem for path in BENCH.glob("bench_*.py")} == set(run.BENCHES)
