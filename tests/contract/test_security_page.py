"""SECURITY.md names the tests that hold its promises: they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def defined() -> set[str]:
    return {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(
            r"^\s*(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 25
    assert sorted(named - defined()) == []


def test_every_promise_names_a_test() -> None:
    promises = PAGE.split("## What memd promises")[1].split("\n## ")[0].strip().split("\n\n")
    assert len(promises) >= 8
    assert [promise[:60] for promise in promises if "`test_" not in promise] == []


def test_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"`((?:requirements|tests|\.ci)/[\w./-]+)`", PAGE)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_page_gives_a_private_way_to_report_and_no_address() -> None:
    assert "private security advisory" in PAGE
    assert not re.search(r"[\w.]+@[\w.]+\.\w+", PAGE)
