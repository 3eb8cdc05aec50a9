"""Modules that are loaded when they are first needed: a daemon at rest does not pay for what runs seldom.

There is this way and no other. The importing module says it once, at its top, in a form that type checkers
and the contracts of imports still see:

    if TYPE_CHECKING:
        from memd.service import report
    else:
        report = seldom.module("memd.service.report")

Loading takes a few milliseconds, where not said otherwise at that place. What a hook or a claim of a lease
needs is never loaded this way.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class _Seldom(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


def module(name: str) -> ModuleType:
    """The module of that name, which is loaded by the first use of something in it."""
    return _Seldom(name)
