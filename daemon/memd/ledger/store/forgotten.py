"""The record of what a person has forgotten, as SQLite keeps it; what it means is in `forget_record`."""

from __future__ import annotations

import secrets

import apsw

from memd.ledger.store import database
from memd.ledger.store.forget_record import Record


class Forgotten(Record):
    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__()
        self._connection = connection
        self.load()

    def load(self) -> None:
        """Read what the database holds; to be called after it changed."""
        self.take(
            self._connection.execute("select value from meta where key = 'forget_secret'").get or b"",
            (
                (what, digest, until)
                for what, digest, until in database.fetch(
                    self._connection, "select what, hash, until from forget_rules"
                )
            ),
            has_ids=bool(self._connection.execute("select exists(select 1 from forget_ids)").get),
        )

    def make_secret(self) -> None:
        """To be called inside the transaction that writes the first record."""
        if not self._secret:
            self._secret = secrets.token_bytes(32)
            self._connection.execute("insert into meta values('forget_secret', ?)", (self._secret,))

    def _holds(self, digest: bytes) -> bool:
        return bool(self._connection.execute("select 1 from forget_ids where hash = ?", (digest,)).get)
