"""How Hypothesis draws: the same examples in every ordinary run, others and more of them in a search.

MEMD_SEARCH=10 pytest ...     ten times as many examples of every property, drawn by chance
MEMD_FAULT_TABLE=1 pytest ... at the end the table of faults, as `tests/faults/run.py` prints it
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

SEARCH = int(os.environ.get("MEMD_SEARCH") or 0)
SLOW = [HealthCheck.too_slow]  # a machine that does much else is no fault of a test

settings.register_profile("ordinary", derandomize=True, deadline=None, suppress_health_check=SLOW)
settings.register_profile("search", deadline=None, suppress_health_check=SLOW, print_blob=True)
settings.load_profile("search" if SEARCH else "ordinary")


RECORDER = "memd's recorder of faults"


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("MEMD_FAULT_TABLE"):
        from faults import counting

        config.pluginmanager.register(counting)
        if not hasattr(config, "workerinput"):  # in the one process that prints
            config.pluginmanager.register(counting.Recorder(), RECORDER)


def pytest_terminal_summary(config: pytest.Config) -> None:
    recorder = config.pluginmanager.get_plugin(RECORDER)
    if recorder is not None:
        from faults.rows import ROWS
        from faults.run import show

        show(ROWS, recorder.tests, recorder.seconds())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a search every property has so many times the examples it has otherwise, whoever said how many."""
    if not SEARCH:
        return
    properties = {getattr(obj, "__func__", obj) for item in items if (obj := getattr(item, "obj", None))}
    for one in filter(is_hypothesis_test, properties):
        own = one._hypothesis_internal_use_settings or settings.default
        one._hypothesis_internal_use_settings = settings(own, max_examples=own.max_examples * SEARCH)
