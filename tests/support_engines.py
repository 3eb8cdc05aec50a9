"""Ledgers on either engine, told alike, for the tests that both must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from memd.ledger.store.interface import Reader, Writer
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter
from support_postgres import Server
from support_workstreams import Clock
from support_workstreams import Lines as SqliteLines

ENGINES = ("sqlite", "postgresql")


class Lines(SqliteLines):
    """A ledger of any engine, whose writer has a clock that tests set."""

    writer: Writer  # type: ignore[assignment]
    reader: Reader  # type: ignore[assignment]

    def __init__(self, root: Path, clock: Clock, writer: Writer, reader: Reader) -> None:
        self.root = root
        self.clock = clock
        self.writer = writer  # type: ignore[assignment]
        self.reader = reader  # type: ignore[assignment]


class Engines:
    """server: of PostgreSQL, None for SQLite; schema: where this test has its tables"""

    def __init__(self, folder: Path, server: Server | None, schema: str) -> None:
        self.folder = folder
        self.server = server
        self.schema = schema

    @property
    def name(self) -> str:
        return "sqlite" if self.server is None else "postgresql"

    @property
    def refusals(self) -> type[Exception]:
        """What a constraint that is broken looks like: a bug, whoever breaks it."""
        if self.server is None:
            return apsw.ConstraintError
        import psycopg

        return psycopg.errors.UniqueViolation

    def open(self, machine: str = "m1", clock: Clock | None = None) -> Lines:
        """The same ledger each time. machine: who opens it, where several may"""
        clock = clock or Clock()
        root = self.folder / "ledger"
        if self.server is None:
            writer: Any = SqliteWriter(bytes(root), clock=clock)
            return Lines(root, clock, writer, SqliteReader(bytes(root)))
        engine = self.engine(machine, clock)
        return Lines(root, clock, engine.writer(), engine.reader())

    def engine(self, machine: str = "m1", clock: Clock | None = None, **words: str) -> Any:
        from memd.ledger.store.postgres.engine import Machine, PostgresEngine

        assert self.server is not None
        connection = self.server.connection()
        for name, value in words.items():
            connection += f" {name}={value}"
        return PostgresEngine(connection, self.schema, Machine(machine, f"host-{machine}"), clock=clock)
