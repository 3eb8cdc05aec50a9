"""How Hypothesis draws: the same examples in every ordinary run, others and more of them in a search.

MEMD_SEARCH=10 pytest ...     ten times as many examples of every property, drawn by chance
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a search every property has so many times the examples it has otherwise, whoever said how many."""
    if not SEARCH:
        return
    properties = {getattr(obj, "__func__", obj) for item in items if (obj := getattr(item, "obj", None))}
    for one in filter(is_hypothesis_test, properties):
        own = one._hypothesis_internal_use_settings or settings.default
        one._hypothesis_internal_use_settings = settings(own, max_examples=own.max_examples * SEARCH)
