"""What a person has forgotten, and therefore must not come back from any store, whatever its cursor says.

Two records, neither of which keeps content: hashes of the ids of events that were taken away, and rules for
what had not been imported yet (a session, a directory, everything before a time). A rule reaches up to the
moment it was made: what is said in the session later was not forgotten. The hashes are keyed with a secret
of this ledger, so that they tell nothing to somebody who guesses a text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from memd.ledger import search
from memd.ledger.store.interface import Entry

HASH_BYTES = 16
MAX_REMEMBERED = 1024


class Record:
    """The rules, in memory; the hashes of ids are asked for by the engine, and only where there are any."""

    def __init__(self) -> None:
        self._secret = b""
        self._rules: dict[tuple[str, bytes], float] = {}
        self._before = float("-inf")
        self._has_ids = False
        self._reach: dict[tuple[str, str, str], float] = {}  # how far the rules for one session reach
        self.is_anything = False

    def take(self, secret: bytes, rules: Iterable[tuple[str, bytes, str]], *, has_ids: bool) -> None:
        """What the database holds: rules as (what, hash, until)."""
        self._rules.clear()
        self._reach.clear()
        self._before = float("-inf")
        self._secret = secret
        for what, digest, until in rules:
            moment = search.instant(until)
            if moment is None:
                continue
            if what == "before":
                self._before = max(self._before, moment)
            else:
                held = self._rules.get((what, digest), moment)
                self._rules[what, digest] = max(held, moment)
        self._has_ids = has_ids
        self.is_anything = self._has_ids or bool(self._rules) or self._before > float("-inf")

    def _holds(self, digest: bytes) -> bool:
        """Whether that hash of an id was written down."""
        raise NotImplementedError

    def hash_of(self, what: str, *parts: str) -> bytes:
        digest = hashlib.blake2b(digest_size=HASH_BYTES, key=self._secret)
        for part in (what, *parts):
            digest.update(part.encode("utf-8", "replace"))
            digest.update(b"\0")
        return digest.digest()

    def is_event(self, harness: str, entry: Entry, cwd: str) -> bool:
        """Whether this event was forgotten, or would have been had it been here."""
        if self._has_id(entry.id):
            return True
        moment = search.instant(entry.occurred_at)
        if moment is not None and moment < self._before:
            return True
        until = self._until(harness, entry.session, cwd)
        return until is not None and (moment is None or moment <= until)

    def is_id(self, event_id: str) -> bool:
        return self._has_ids and self._has_id(event_id)

    def is_session(self, harness: str, session: str, cwd: str) -> bool:
        """Whether the session was forgotten as a whole, by its id or by where it began."""
        return self._until(harness, session, cwd) is not None

    def _has_id(self, event_id: str) -> bool:
        if not self._has_ids:
            return False
        return self._holds(self.hash_of("event", event_id))

    def _until(self, harness: str, session: str, cwd: str) -> float | None:
        if not self._rules:
            return None
        known = self._reach.get((harness, session, cwd))
        if known is None:
            moments = [
                self._rules.get(("session", self.hash_of("session", name, session))) for name in (harness, "")
            ]
            place = cwd
            while place:
                moments.append(self._rules.get(("project", self.hash_of("project", place))))
                above = os.path.dirname(place)
                if above == place:
                    break
                place = above
            known = max((moment for moment in moments if moment is not None), default=float("-inf"))
            if len(self._reach) >= MAX_REMEMBERED:
                self._reach.clear()
            self._reach[harness, session, cwd] = known
        return None if known == float("-inf") else known
