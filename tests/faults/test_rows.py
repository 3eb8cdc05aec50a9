"""The table of faults tells the truth about the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faults.counting import Tally
from faults.rows import ROWS, Row
from faults.run import belongs, show

ROOT = Path(__file__).resolve().parents[2]
OF_THE_RUNNER = {"tests/faults/test_rows.py", "tests/faults/test_runner.py"}


def test_every_row_is_there_once() -> None:
    assert [row.number for row in ROWS] == list(range(1, 26))
    assert all(row.tests for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_every_test_that_a_row_names_is_there(row: Row) -> None:
    for name in row.tests:
        path, _, function = name.partition("::")
        if path.count("/") == 1 and not (ROOT / path).exists():
            pytest.skip(f"there is no {path} yet: the table says missing")
        assert (ROOT / path).exists(), name
        if function:
            text = (ROOT / path).read_text()
            assert re.search(rf"^(async )?def {function}\(", text, re.MULTILINE), name


def test_every_file_of_faults_belongs_to_a_row() -> None:
    named = {name.partition("::")[0] for row in ROWS for name in row.tests}
    here = {f"tests/faults/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    assert here - named <= OF_THE_RUNNER, "say in tests/faults/rows.py what it proves"


def test_a_test_belongs_by_its_whole_name() -> None:
    assert belongs("tests/a.py::test_b[1]", "tests/a.py::test_b")
    assert belongs("tests/a.py::test_b", "tests/a.py")
    assert belongs("tests/soak/test_a.py::test_b", "tests/soak")
    assert not belongs("tests/a.py::test_bc", "tests/a.py::test_b")


def test_the_table_says_what_failed_was_skipped_and_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    tests = {name: Tally("passed") for row in ROWS for name in row.tests}
    assert show(ROWS, tests, 1.0)
    first = ROWS[0].tests[0]
    tests[first].outcome = "failed"
    assert not show(ROWS, tests, 1.0)
    assert f"  1 failed: {first}" in capsys.readouterr().out
    tests[first].outcome, tests[first].reason = "skipped", "no such thing here"
    assert show(ROWS, tests, 1.0)
    assert "  1 skipped 1: no such thing here" in capsys.readouterr().out
    tests[first].outcome = "none"
    assert not show(ROWS, tests, 1.0), "it never came to run"
    del tests[first]
    assert not show(ROWS, tests, 1.0)
    assert f"  1 missing: {first}" in capsys.readouterr().out
