"""Every adapter there is, found by walking this package, and the words people and peers use for them.

A module of this package that defines `ADAPTER` is an adapter; nothing else needs to be edited to add one.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import MappingProxyType

import memd.harness
from memd.errors import UsageError
from memd.harness.model import Adapter


@functools.cache
def adapters() -> MappingProxyType[str, Adapter]:
    """Adapters by name, in the order of their names."""
    found: dict[str, Adapter] = {}
    for info in sorted(pkgutil.iter_modules(memd.harness.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"memd.harness.{info.name}")
        adapter = getattr(module, "ADAPTER", None)
        if isinstance(adapter, Adapter):
            found[adapter.name] = adapter
    return MappingProxyType(dict(sorted(found.items())))


@functools.cache
def _words() -> MappingProxyType[str, str]:
    words: dict[str, str] = {}
    for name, adapter in adapters().items():
        for word in (name, *adapter.aliases):
            if words.setdefault(word.casefold(), name) != name:
                raise AssertionError(f"{word!r} names both {words[word.casefold()]} and {name}")
    return MappingProxyType(words)


def canonical(word: str) -> str | None:
    """The name of the harness that a word means (name, wire name or alias, any case); None: unknown."""
    return _words().get(word.strip().casefold().replace("_", "-"))


def resolve(word: str) -> Adapter:
    """The adapter that a wire name, an alias or a name means.

    raises  UsageError for a word that means none
    """
    name = canonical(word)
    if name is None:
        raise UsageError(f"no harness is called {word!r}", remedy=f"Use one of: {', '.join(adapters())}.")
    return adapters()[name]
