"""The memory settings in force. A broken file keeps the last good ones, also over a restart of the daemon.

The file is looked at before every use; it is read again only when it changed. The rules come from the first
of these that has any: our file, openclaude's, openpi's, else general ones. Everything else, `shared_dir`
above all, comes from our file alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from memctl.paths import shown
from memd import disk
from memd.errors import ConfigError, DiskError
from memd.memory.shared.rules import GENERAL, MAX_FILE_BYTES, REMEDY, Rules, parse

Signature = tuple[int, int, int, int] | None


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What holds now."""

    rules: Rules = Rules(lists=GENERAL)
    error: str = ""  # what is wrong with our file; then nothing may be written
    source: str = ""  # our file, for people
    rules_source: str = ""  # the file that the three lists come from; empty: the general ones


class Configuration:
    """`in_force` always answers."""

    def __init__(self, ours: bytes, theirs: Sequence[bytes], last_good: bytes) -> None:
        """
        ours       our `memory.jsonc`
        theirs     those of other tools, the first with rules counts
        last_good  where the last good settings are kept
        """
        self.ours = ours
        self.theirs = tuple(theirs)
        self._last_good = last_good
        self._seen: tuple[Signature, ...] | None = None
        self._in_force = InForce()
        self._is_kept = True

    def in_force(self) -> InForce:
        """Looks at the files; raises nothing."""
        seen = tuple(_signature(path) for path in (self.ours, *self.theirs))
        if seen != self._seen:
            self._in_force = self._read()
            self._seen = seen if self._is_kept else None  # what could not be kept is tried again
        return self._in_force

    def _read(self) -> InForce:
        source = shown(self.ours)
        try:
            own = _rules(self.ours) or Rules()
            error = ""
            self._keep(own)
        except (ConfigError, DiskError) as reason:
            own, error = self._kept(), str(reason)
        lists, rules_source = own.lists, source
        for path in self.theirs if lists.is_empty() else ():
            with contextlib.suppress(ConfigError, DiskError):
                found = _rules(path)
                if found is not None and not found.lists.is_empty():
                    lists, rules_source = found.lists, shown(path)
                    break
        if lists.is_empty():
            lists, rules_source = GENERAL, ""
        rules = msgspec.structs.replace(own, lists=lists)
        return InForce(rules=rules, error=error, source=source, rules_source=rules_source)

    def _keep(self, rules: Rules) -> None:
        self._is_kept = True
        if rules != self._kept():
            try:
                disk.replace_file(self._last_good, msgspec.json.encode(rules))
            except DiskError:
                self._is_kept = False

    def _kept(self) -> Rules:
        try:
            data = disk.read_file(self._last_good, MAX_FILE_BYTES * 8)
            return msgspec.json.decode(data, type=Rules) if data else Rules()
        except (DiskError, msgspec.DecodeError, UnicodeDecodeError):
            return Rules()


def is_sharing(path: bytes) -> bool:
    """Whether another tool's file says that it uses the shared folder."""
    try:
        found = _rules(path)
    except (ConfigError, DiskError):
        return False
    return found is not None and found.shared_dir


def _rules(path: bytes) -> Rules | None:
    """None when there is no such file; a link is followed, since people keep settings elsewhere."""
    text = disk.read_file(os.path.realpath(path), MAX_FILE_BYTES + 1)
    if text is not None:
        return parse(text, shown(path))
    if disk.look(path) is not None:
        raise ConfigError(f"{shown(path)}: a link to nothing", remedy=REMEDY)
    return None


def _signature(path: bytes) -> Signature:
    try:
        facts = disk.follow(path)
    except DiskError:
        return (0, 0, 0, 0)
    return None if facts is None else (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
