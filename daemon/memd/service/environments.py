"""Which environments' stores are followed: this home's, and those that clients named with their variables.

A client with `CODEX_HOME` or `XDG_DATA_HOME` set keeps its sessions elsewhere; once seen, that place is
followed from then on, also after a restart. The daemon's own variables never decide.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from memd import disk
from memd.errors import DiskError
from memd.harness.model import Environment

MAX_SEEN = 64  # of each kind: those with a place, and those without one
PLACE = "PWD"  # the place of an entry, among its variables
MAX_FILE_BYTES = 1 << 20


class Environments:
    """`all` gives what the importer follows; `see` adds to it, durably."""

    def __init__(self, home: bytes, path: bytes, on_change: Callable[[], None]) -> None:
        self._home = home
        self._path = path
        self._on_change = on_change
        self._config_homes: tuple[bytes, ...] = ()
        self._seen: list[dict[str, bytes]] = _load(path)
        self._is_later = _is_later(path)
        self._is_saved = True

    def see(self, variables: Mapping[str, bytes], place: bytes = b"") -> None:
        """A client's store variables; relative values mean nothing and are left out. `HOME`: its home.

        place  where it starts a harness that keeps a store in each place
        """
        chosen = {name: value for name, value in sorted(variables.items()) if value.startswith(b"/")}
        if chosen.get("HOME") == self._home:
            del chosen["HOME"]
        if place:
            chosen[PLACE] = place
        if not chosen:
            return
        if chosen == (self._seen or [{}])[-1] or (chosen in self._seen and not place):
            if not self._is_saved:
                self._save()
            return
        same = [seen for seen in self._seen if (PLACE in seen) == bool(place) and seen != chosen]
        dropped = same[: len(same) + 1 - MAX_SEEN] if len(same) >= MAX_SEEN else []
        self._seen = [*(seen for seen in self._seen if seen != chosen and seen not in dropped), chosen]
        self._save()
        self._on_change()

    def _save(self) -> None:
        """A refusal costs nothing while this daemon lives; the next client has it tried again.

        A file of a later memd stays as it is.
        """
        if self._is_later:
            return
        try:
            disk.replace_file(self._path, msgspec.json.encode(self._seen))
            self._is_saved = True
        except DiskError:
            self._is_saved = False

    def set_config_homes(self, config_homes: Iterable[bytes]) -> None:
        """Claude Code's logins, as healing knows them."""
        fresh = tuple(sorted({os.path.realpath(path) for path in config_homes}))
        if fresh != self._config_homes:
            self._config_homes = fresh
            self._on_change()

    def all(self) -> tuple[Environment, ...]:
        usual = Environment(home=self._home, config_homes=self._config_homes)
        return (usual, *(self._of(seen) for seen in self._seen))

    def at(self, place: bytes) -> Environment:
        """Of the last client that started a harness in that place, for a child there."""
        last = next((seen for seen in reversed(self._seen) if seen.get(PLACE) == place), {PLACE: place})
        return replace(self._of(last), is_child=True)

    def _of(self, seen: dict[str, bytes]) -> Environment:
        variables = {name: value for name, value in seen.items() if name not in ("HOME", PLACE)}
        places = (seen[PLACE],) if PLACE in seen else ()
        return Environment(home=seen.get("HOME", self._home), variables=variables, places=places)


class _Later(msgspec.Struct):
    version: int


def _is_later(path: bytes) -> bool:
    """Whether a later memd wrote the file, which then is an object that says so."""
    try:
        text = disk.read_file(path, MAX_FILE_BYTES)
        return text is not None and msgspec.json.decode(text, type=_Later).version > 1
    except (DiskError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _load(path: bytes) -> list[dict[str, bytes]]:
    try:
        text = disk.read_file(path, MAX_FILE_BYTES)
        return msgspec.json.decode(text, type=list[dict[str, bytes]]) if text else []
    except (DiskError, msgspec.DecodeError):
        return []
