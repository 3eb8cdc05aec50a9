"""The index of SQLite is kept in pieces (FTS5, its `automerge`, `crisismerge` and `merge`).

Every transaction leaves one piece more or two, and each is one more place for a search to look in. While
little comes SQLite merges them on the way. During a back-fill each of these merges would be done over by the
next one: they are left alone until there are `MANY`, and merged once nothing comes.
"""

from __future__ import annotations

from typing import Final

import apsw

from memd.ledger.store import database
from memd.ledger.store.interface import Batch

MANY: Final = 400
"""So many pieces cost a search a tenth of a second: from there on they are merged during a back-fill too."""

FILL_BYTES: Final = 64 << 10
"""Characters that come at once, from which on it is a back-fill."""

SETTINGS: Final = {"automerge": 64, "crisismerge": 1000, "hashsize": 2 << 20}
"""How it is at rest: merged on the way where 64 pieces are of one size, never all of them in one stroke. What
goes in together becomes one piece, for which two megabytes are room."""

MERGE_PAGES: Final = 64
MERGE_ALL_EVENTS: Final = 5000
"""After so many new events, if they are a tenth of all, the whole index is made one piece."""


class Pieces:
    """Belongs to the writer, whose connection it uses."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._is_merging_all = False
        self.is_merged = False  # nothing is left to merge, as far as one can tell without asking
        self.reset()

    def settle(self) -> None:
        """Have the settings of rest; also where a back-fill was cut off, or an older memd kept the index."""
        known = dict(database.fetch(self._connection, "select k, v from event_text_config"))
        if any(known.get(name) != value for name, value in SETTINGS.items()):
            try:
                with database.transaction(self._connection):
                    for name, value in SETTINGS.items():
                        self._set(name, value)
            finally:
                self.reset()

    def expect(self, batch: Batch) -> None:
        """That is going to be put in, in the transaction that is open."""
        self._coming += sum([len(entry.content) for entry in batch.entries])
        is_filling = self._coming >= FILL_BYTES and self._count < MANY
        if is_filling and self._is_automatic:
            self._set("automerge", 0)
        elif not self._is_automatic and self._count >= MANY:
            self._set("automerge", SETTINGS["automerge"])

    def note(self) -> None:
        """They are in."""
        self._coming = 0
        self._count += 2
        self.is_merged = False

    def merge(self, total: int) -> bool:
        """Bring the index closer to one piece: what came lately always, all of it when much has come.

        total    of the events that there are
        returns  whether something is left to do; a transaction of its own
        """
        if self.is_merged:
            return False
        merged: int = self._connection.execute("select value from meta where key = 'index_merged'").get or 0
        is_due = total - merged >= max(MERGE_ALL_EVENTS, total // 10)
        pages = MERGE_PAGES
        if is_due and not self._is_merging_all:
            self._is_merging_all = True
            pages = -MERGE_PAGES  # chooses all pieces; the steps that follow go on with them
        with database.transaction(self._connection):
            if not self._is_automatic:
                self._set("automerge", SETTINGS["automerge"])
            before = self._connection.total_changes()
            self._set("merge", pages)
            # a step without anything to do changes fewer than two rows
            self.is_merged = self._connection.total_changes() - before < 2
            if self.is_merged and self._is_merging_all:
                self._is_merging_all = False
                self._connection.execute("insert or replace into meta values('index_merged', ?)", (total,))
        if self.is_merged:
            self.reset()
        return not self.is_merged

    def _set(self, name: str, value: int) -> None:
        self._connection.execute("insert into event_text(event_text, rank) values(?, ?)", (name, value))
        if name == "automerge":
            self._is_automatic = value > 0

    def reset(self) -> None:
        """Ask anew how it is: at first, and after a transaction that was taken back."""
        self._coming = 0  # characters in the transaction that is open
        connection = self._connection
        self._is_automatic = (
            connection.execute("select v from event_text_config where k = 'automerge'").get != 0
        )
        self._count: int = connection.execute("select count(distinct segid) from event_text_idx").get
