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


def test_a_benchmark_that_is_named_replaces_its_own_sections_and_says_so(run: ModuleType) -> None:
    measure = importlib.import_module("measure")
    measure.section("one", [measure.Row("a", [1.0], [1.0], "ms", 2.0)])
    measure.section("two", [measure.Row("b", [1.0], [1.0], "ms", 2.0)])
    first = run.replaced(f"above\n{run.BEGIN}\n{run.END}\n", run.render((0.1, 0.2), [], is_quick=False))
    measure.SECTIONS[:] = [("two", [measure.Row("b", [3.0], [1.0], "ms", 2.0)])]
    page = run.replaced(first, run.anew(first, (0.5, 0.75)))
    assert "### One\n\n| what" in page
    assert page.count("### Two\n\nMeasured by itself on ") == 1
    assert "load average 0.5 at the start and 0.8 at the end" in page
    assert "| b | p50 | 3 ms |  | 1 ms |  | 3.00 | 2 | **missed** |" in page
    assert "| a | p50 | 1 ms |  | 1 ms |  | 1.00 | 2 | met |" in page
    assert "load average 0.1 at the start" in page
    assert run.replaced(page, run.anew(page, (0.5, 0.75))) == page
