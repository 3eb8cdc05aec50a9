"""Getting at the store in use: which one it is, open, and for work that changes something locked and swept.

The store is the shared folder or the local one, as `memory.jsonc` says at this very moment. While that file
is broken nothing is written. Reading takes no lock, since every file is exchanged whole.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

import msgspec

from memd import disk
from memd.errors import ConfigError
from memd.memory.leftovers import remove_temporaries
from memd.memory.shared.clock import Clock
from memd.memory.shared.configuration import Configuration, InForce
from memd.memory.shared.lock import StoreLock
from memd.memory.shared.record import Records
from memd.memory.shared.rules import REMEDY
from memd.memory.shared.store import Store, open_store
from memd.memory.shared.work import Work


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Folders, as absolute paths."""

    shared: bytes  # ~/.agents/memory
    local: bytes  # memd's own store
    kept: bytes  # where texts go that were replaced
    state: bytes


class Active(msgspec.Struct, frozen=True, kw_only=True):
    """The store in use."""

    path: bytes
    is_shared: bool
    in_force: InForce

    @property
    def notes(self) -> tuple[str, ...]:
        error = self.in_force.error
        return (f"{error}; the last good settings hold, and nothing is written",) if error else ()


class Access:
    """One object for a daemon: it remembers the locks it looked at and the stores it has swept."""

    def __init__(
        self,
        places: Places,
        configuration: Configuration,
        clock: Clock,
        make_lock: Callable[[bytes, Clock], StoreLock],
    ) -> None:
        self.places = places
        self.configuration = configuration
        self.clock = clock
        self._make_lock = make_lock
        self._locks: dict[bytes, StoreLock] = {}
        self._swept: set[bytes] = set()
        self._guard = threading.Lock()

    def active(self) -> Active:
        in_force = self.configuration.in_force()
        is_shared = in_force.rules.shared_dir
        path = self.places.shared if is_shared else self.places.local
        return Active(path=path, is_shared=is_shared, in_force=in_force)

    def for_writing(self) -> Active:
        """raises ConfigError while `memory.jsonc` is broken"""
        active = self.active()
        if active.in_force.error:
            raise ConfigError(f"nothing was written: {active.in_force.error}", remedy=REMEDY)
        return active

    @contextlib.contextmanager
    def reading(self, active: Active) -> Iterator[Store | None]:
        """The store, open; None when there is none. Nothing is made."""
        store = open_store(active.path)
        if store is None:
            yield None
            return
        with store:
            yield store

    @contextlib.contextmanager
    def locked(self, store: Store, active: Active, *, waits: bool) -> Iterator[Work]:
        """raises Busy, DiskError"""
        real = os.path.realpath(active.path)
        with self.lock_of(active.path).held(store.folder, is_shared=active.is_shared, waits=waits):
            records = self.records(active.path)
            kept = self.places.kept + b"/" + os.path.basename(records.folder)
            if real not in self._swept:
                store.sweep()
                for path in (records.folder, os.path.dirname(records.folder), kept):
                    if disk.look(path) is not None:
                        remove_temporaries(path)
                self._swept.add(real)
            yield Work(store, records, active.in_force.rules, self.clock, kept)

    def records(self, path: bytes) -> Records:
        return Records(self.places.state, os.path.realpath(path))

    def lock_of(self, path: bytes) -> StoreLock:
        real = os.path.realpath(path)
        with self._guard:
            lock = self._locks.get(real)
            if lock is None:
                lock = self._locks[real] = self._make_lock(self.records(path).folder, self.clock)
        return lock
