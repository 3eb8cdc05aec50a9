"""The enrolled agent homes: `agents.json` in the data folder. The only writer of that file.

    {"version": 1, "agents": [{"home": "<base64>", "home_text": "/home/x/proj", "owned": ...,
                               "owned_text": ..., "enrolled_at_ms": 0, "is_leaving": false}]}

Paths are base64 because they need not be text; the `_text` fields are for people and never read. A person put
these entries there, so a file that is not understood is never overwritten: memd says what is wrong with it.

An agent that `is_leaving` is being unenrolled: its links are turned back into folders, and none is made.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memctl.paths import shown
from memd import disk
from memd.errors import ConfigError, Refused
from memd.memory.leftovers import remove_temporaries
from memd.protocol import Agent

VERSION = 1
MAX_FILE_BYTES = 16 << 20
LOCK_WAIT_S = 10.0

INSTAR_FOLDER = (b".instar", b"agent-memory")
OWN_FOLDER = (b".memd", b"memory")


class Enrolment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    home: bytes
    home_text: str = ""
    owned: bytes
    owned_text: str = ""
    enrolled_at_ms: int
    is_leaving: bool = False

    def agent(self) -> Agent:
        return Agent(home=self.home, owned=self.owned, enrolled_at_ms=self.enrolled_at_ms)


class _Version(msgspec.Struct):
    version: int


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = VERSION
    agents: tuple[Enrolment, ...] = ()


class Agents:
    """The registry. Reads the file anew each time: other processes change it, too."""

    def __init__(self, data: bytes) -> None:
        self.path = data + b"/agents.json"
        self._lock = data + b"/agents.lock"

    def all(self) -> tuple[Enrolment, ...]:
        """In the order of enrolment; raises ConfigError or Refused when the file is not understood."""
        data = disk.read_file(self.path, MAX_FILE_BYTES)
        if data is None:
            return ()
        try:
            version = msgspec.json.decode(data, type=_Version).version
            if version != VERSION:
                raise Refused(
                    f"{shown(self.path)} has version {version}; this memd reads version {VERSION}",
                    remedy="Use the memd that wrote it, or move the file away and enroll again.",
                )
            return msgspec.json.decode(data, type=_File).agents
        except (msgspec.DecodeError, UnicodeDecodeError) as reason:
            raise ConfigError(
                f"{shown(self.path)} is not a registry of agents: {reason}",
                remedy="Correct the file, or move it away and enroll again; no memory is lost by that.",
            ) from None

    def add(self, home: bytes, owned: bytes, *, now_ms: int) -> tuple[Enrolment, bool]:
        """The enrolment of that home and whether it is new; one that was leaving stays after all."""
        new = Enrolment(
            home=home,
            home_text=shown(home),
            owned=owned,
            owned_text=shown(owned),
            enrolled_at_ms=now_ms,
        )

        def change(agents: tuple[Enrolment, ...]) -> tuple[Enrolment, ...]:
            if any(a.home == home for a in agents):
                return tuple(_with_leaving(a, False) if a.home == home else a for a in agents)
            return (*agents, new)

        before, after = self._change(change)
        is_new = not any(a.home == home for a in before)
        return next(a for a in after if a.home == home), is_new

    def mark_leaving(self, home: bytes) -> None:
        self._change(lambda agents: tuple(_with_leaving(a, True) if a.home == home else a for a in agents))

    def remove(self, home: bytes) -> None:
        self._change(lambda agents: tuple(a for a in agents if a.home != home))

    def clean(self) -> None:
        """Take away what a crash left half-written."""
        if disk.look(self._lock) is not None:
            with disk.take_lock(self._lock, wait_s=LOCK_WAIT_S):
                remove_temporaries(self._lock.rpartition(b"/")[0])

    def _change(
        self, change: Callable[[tuple[Enrolment, ...]], tuple[Enrolment, ...]]
    ) -> tuple[tuple[Enrolment, ...], tuple[Enrolment, ...]]:
        with disk.take_lock(self._lock, wait_s=LOCK_WAIT_S):
            before = self.all()
            after = change(before)
            if after != before:
                content = msgspec.json.format(msgspec.json.encode(_File(agents=after)), indent=2)
                disk.replace_file(self.path, content + b"\n")
        return before, after


def owned_folder(home: bytes) -> bytes:
    """Where the memory of an agent to be enrolled is kept: where it is already, else our place."""
    instar = home + b"/" + b"/".join(INSTAR_FOLDER)
    if disk.look(instar) is not None:
        return instar
    return home + b"/" + b"/".join(OWN_FOLDER)


def _with_leaving(enrolment: Enrolment, is_leaving: bool) -> Enrolment:
    return msgspec.structs.replace(enrolment, is_leaving=is_leaving)
