"""docs/conformance.md: every scenario has its row, and every test that a row names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\w+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
SEVEN = {"C": 14, "K": 14, "M": 11, "Q": 17, "G": 9, "V": 11, "X": 7}
TEST = re.compile(r"`([a-z0-9_/]+\.py)::(test_\w+)`")


def rows(section: str) -> dict[str, str]:
    """Its numbers, and the cell that names tests."""
    _, _, rest = PAGE.partition(f"\n## {section}\n")
    assert rest, section
    found = ROW.findall(rest.partition("\n## ")[0])
    cells = {number: tests for number, _, tests in found if number != "#"}
    assert len(cells) == sum(number != "#" for number, _, _ in found), "a number stands there twice"
    return cells


@cache
def functions_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_every_test_that_is_named_is_there() -> None:
    named = TEST.findall(PAGE)
    assert len(named) > 200
    missing = [f"{file}::{name}" for file, name in named if name not in functions_in(file)]
    assert missing == []


def test_every_scenario_has_a_row_with_a_test() -> None:
    numbers = {
        "Workstreams and runs": [str(number) for number in range(1, 88)],
        "Whole runs": [f"A{number}" for number in range(1, 16)],
        "Agents": [f"B{number}" for number in range(1, 53)],
        "Seven more agents": [
            f"{letter}{number}" for letter, count in SEVEN.items() for number in range(1, count + 1)
        ],
        "Promise by promise": [
            f"{letter}{number}"
            for letter, count in {"L": 10, "H": 9, "R": 5}.items()
            for number in range(1, count + 1)
        ],
        "Faults": ["18", "19", "21", "22"],
    }
    for section, wanted in numbers.items():
        found = rows(section)
        assert list(found) == wanted
        assert [number for number, cell in found.items() if not TEST.search(cell)] == []


def test_every_hard_case_is_a_folder_of_cases_and_is_tried() -> None:
    folders = {path.name.partition("-")[0]: path.name for path in (ROOT / "tests/cases").iterdir()}
    found = rows("Hard cases")
    assert list(found) == ["26", "27", "28", "29", "30", "31", "32", "40", "41"]
    for number, cell in found.items():
        tried = {file for file, _ in TEST.findall(cell)}
        texts = "".join((ROOT / "tests" / file).read_text(encoding="utf-8") for file in tried)
        supports = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("support_*.py"))
        assert folders[number] in texts + supports
