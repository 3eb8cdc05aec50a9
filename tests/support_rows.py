"""What an importer does with a database store, in its simplest form, and stores to try it on."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memd.harness.model import Adapter, Event, Parsed, Query, Session, Store, event_id
from memd.ledger.snapshot import fetch, read_snapshot

HERE = Path(__file__).parent
FAR = 1 << 60


class RowImport:
    """Rounds over one database: a cursor per query, one state, every event once per session."""

    def __init__(self, adapter: Adapter, path: Path, scratch: Path, store: Store | None = None) -> None:
        self.adapter = adapter
        self.store = store
        self.path = path
        self.scratch = scratch
        self.state = b""
        self.cursors: dict[str, tuple[int, str]] = {}
        self.parsed: list[Parsed] = []
        self.losses: Counter[tuple[str, str]] = Counter()
        self.sessions: dict[str, Session] = {}

    def round(self, *, limit: int = 1000, now: int = FAR) -> Sequence[Event]:
        """Everything that is complete now; what it gave that was not there before."""
        return self._read([query for query in self.adapter.queries if not query.is_at_rest], limit, now)

    def at_rest(self, *, until: int = FAR, session: str = "", limit: int = 1000) -> Sequence[Event]:
        queries = [query for query in self.adapter.queries if query.is_at_rest]
        return self._read(queries, limit, FAR, until, session)

    def _read(
        self, queries: list[Query], limit: int, now: int, until: int = 0, session: str = ""
    ) -> Sequence[Event]:
        before = {key for key, _ in self._all()}
        assert self.adapter.parse_rows is not None
        for query in queries:
            updated, row_id = self.cursors.get(query.name, (0, ""))
            if query.overlap_ms:
                updated, row_id = max(0, min(updated, now) - query.overlap_ms), ""
            is_cut = True
            while is_cut:
                found = read_snapshot(
                    os.fsencode(self.path),
                    os.fsencode(self.scratch),
                    lambda connection, query=query, at=(updated, row_id): fetch(
                        connection,
                        query,
                        updated=at[0],
                        row_id=at[1],
                        limit=limit,
                        until=until,
                        session=session,
                        store=self.store,
                    ),
                )
                assert isinstance(found, tuple), found
                rows, is_cut = found
                assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
                if rows:
                    updated, row_id = rows[-1][:2]
                    self.cursors[query.name] = max(self.cursors.get(query.name, (0, "")), (updated, row_id))
                self.take(self.adapter.parse_rows(query.name, rows, self.state))
        return [event for key, event in self._all() if key not in before]

    def take(self, parsed: Parsed) -> None:
        self.state = parsed.state
        self.parsed.append(parsed)
        for loss in parsed.losses:
            self.losses[loss.session, loss.what] += loss.count
        self.sessions.update({session.id: session for session in parsed.sessions})

    def _all(self) -> list[tuple[tuple[str, str], Event]]:
        held: dict[tuple[str, str], Event] = {}
        for parsed in self.parsed:
            for event in parsed.events:
                held.setdefault((event.session, event_id(self.adapter.name, event)), event)
        return list(held.items())

    def events(self, session: str | None = None) -> list[Event]:
        """The events in their order, of one session or of all, each once for every session it stands in."""
        found = [event for _, event in self._all() if session in (None, event.session)]
        return sorted(found, key=lambda event: (event.at, event.session, event.block))

    def said(self, session: str | None = None) -> list[list[str]]:
        """The messages of the main line as `[role, text]`; what a fork copied stands once."""
        held: dict[str, list[str]] = {}
        for event in self.events(session):
            if event.kind == "message" and not event.is_side:
                held.setdefault(event_id(self.adapter.name, event), [event.role, event.content])
        return list(held.values())


def fixture(harness: str, scenario: str, to: Path) -> Path:
    """A copy of a captured home."""
    home = to / "home"
    shutil.copytree(HERE / "fixtures" / harness / scenario, home)
    return home


def build_case(name: str, to: Path, *arguments: str) -> Path:
    """The folder of a hard case, built."""
    script = HERE / "cases" / name / "make.py"
    subprocess.run([sys.executable, "-B", script, to, *arguments], check=True, capture_output=True)
    return to


def trace(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file below a folder with the hash of its bytes and the time of its last change."""
    return {
        os.path.relpath(path, folder): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.lstat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }
