"""What each test of a run tried and came to, also where several processes run the tests.

A pytest plug-in, for every process that runs tests: what a test tried goes out with its last report.
`Recorder` is for the process that prints the table: it puts together what the reports say.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import pytest

import support_points

PROPERTY = "memd tried"
_examples = re.compile(r"(\d+) passing examples?, (\d+) failing")
_began: dict[str, float] = {}
_tried: dict[str, tuple[int, list[str]]] = {}


def _cpu_s() -> float:
    return sum(os.times()[:4])  # this process and its children that have ended


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _began[item.nodeid] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    support_points.taken()
    try:
        return (yield)
    finally:
        _tried[item.nodeid] = support_points.taken()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "teardown":
        points, figures = _tried.pop(item.nodeid, (0, []))
        said = _examples.findall(getattr(item, "hypothesis_statistics", ""))
        points += sum(int(passed) + int(failed) for passed, failed in said)
        took = _cpu_s() - _began.pop(item.nodeid, _cpu_s())
        report.user_properties.append((PROPERTY, {"points": points, "figures": figures, "cpu_s": took}))
    return report


class Tally:
    """What one test came to: passed, failed, skipped or none; points tried, figures, why it was skipped."""

    def __init__(self, outcome: str = "none") -> None:
        self.outcome = outcome
        self.points = 0
        self.figures: list[str] = []
        self.reason = ""
        self.cpu_s = 0.0

    def note(self, report: pytest.TestReport) -> None:
        """One of its reports: of setting up, of the test, of taking down."""
        if report.failed:
            self.outcome = "failed"
        elif report.skipped and self.outcome != "failed":
            self.outcome, self.reason = "skipped", _reason(report.longrepr)
        elif report.when == "call" and self.outcome == "none":
            self.outcome = "passed"
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, Mapping):
                self.points, self.cpu_s = value["points"], value["cpu_s"]
                self.figures = list(value["figures"])


class Recorder:
    """Asks nothing, prints nothing: keeps what was collected and how it ended."""

    def __init__(self) -> None:
        self.tests: dict[str, Tally] = {}
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Since it was made."""
        return time.monotonic() - self._began

    def _expect(self, names: Iterable[str]) -> None:
        for name in names:
            self.tests.setdefault(name, Tally())

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Iterable[str]) -> None:
        self._expect(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests.setdefault(report.nodeid, Tally()).note(report)


def _reason(longrepr: object) -> str:
    text = longrepr[2] if isinstance(longrepr, tuple | list) else str(longrepr)
    return str(text).removeprefix("Skipped: ").strip()
