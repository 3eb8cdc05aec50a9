"""A small OpenCode database to write into, and rows without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

from memd.harness.opencode_rows import COLUMNS

SCHEMA = """
create table session(id text primary key, project_id text not null, parent_id text, directory text not null,
  title text not null, version text not null, time_created integer not null, time_updated integer not null);
create table message(id text primary key, session_id text not null, time_created integer not null,
  time_updated integer not null, data text not null);
create table part(id text primary key, message_id text not null, session_id text not null,
  time_created integer not null, time_updated integer not null, data text not null);
create table credential(id text primary key, secret text not null);
create index message_session on message(session_id, time_created, id);
create index part_message on part(message_id, id);
"""
T0 = 1_796_000_000_000


class Store:
    """OpenCode at work: every call is one committed change, stamped with the next second."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = apsw.Connection(str(path))
        self.db.execute("pragma journal_mode=wal")
        self.db.execute(SCHEMA)
        self.db.execute("insert into credential values('1', 'SECRET-OF-THE-HARNESS')")
        self.now = T0

    def tick(self, ms: int = 1000) -> int:
        self.now += ms
        return self.now

    def session(self, name: str = "ses_1", parent: str | None = None) -> str:
        t = self.tick()
        self.db.execute(
            "insert into session values(?,?,?,?,?,?,?,?)", (name, "p", parent, "/w", "title", "1.18.33", t, t)
        )
        return name

    def message(self, name: str, role: str, session: str = "ses_1", at: int = 0, **data: Any) -> str:
        t = self.tick()
        facts = {"role": role, "time": {"created": at or t}, **data}
        row = (name, session, at or t, t, json.dumps(facts))
        self.db.execute("insert into message values(?,?,?,?,?)", row)
        self.db.execute("update session set time_updated = ? where id = ?", (t, session))
        return name

    def change(self, name: str, **data: Any) -> None:
        """Merge into a message's data; `completed=True` stamps it."""
        t = self.tick()
        facts = json.loads(self.db.execute("select data from message where id = ?", (name,)).get)
        if data.pop("completed", False):
            facts["time"]["completed"] = t
        row = (json.dumps({**facts, **data}), t, name)
        self.db.execute("update message set data = ?, time_updated = ? where id = ?", row)

    def part(self, name: str, message: str, **data: Any) -> str:
        t = self.tick()
        session = self.db.execute("select session_id from message where id = ?", (message,)).get
        row = (name, message, session, t, t, json.dumps(data))
        self.db.execute(
            "insert into part values(?,?,?,?,?,?) on conflict(id) do update"
            " set data = excluded.data, time_updated = excluded.time_updated",
            row,
        )
        return name

    def say(self, name: str, text: str, session: str = "ses_1") -> str:
        self.message(name, "user", session)
        self.part(f"{name}_p", name, type="text", text=text)
        return name

    def answer(self, name: str, text: str, session: str = "ses_1") -> str:
        self.message(name, "assistant", session)
        self.part(f"{name}_p", name, type="text", text=text, time={"start": self.now, "end": self.now})
        self.change(name, completed=True)
        return name


def tool(status: str, output: str = "", **more: Any) -> dict[str, Any]:
    state = {"status": status, "input": {"command": "make"}, "time": {"start": T0}, **more}
    if output:
        state["output"] = output
    return {"type": "tool", "tool": "bash", "callID": "call_1", "state": state}


def row(data: object = None, **values: object) -> tuple[object, ...]:
    """One row as the database gives it, of a complete reply unless `values` say otherwise."""
    stored = data if isinstance(data, bytes) or data is None else json.dumps(data).encode()
    facts: dict[str, object] = {
        "updated": T0 + 5,
        "id": "prt_1",
        "session": "ses_1",
        "message": "msg_1",
        "parent": None,
        "directory": b"/w",
        "title": b"title",
        "version": "1.18.33",
        "started": T0,
        "role": "assistant",
        "created": T0 + 1,
        "completed": T0 + 4,
        "failed": None,
        "summary": 0,
        "settled": None,
        "ordinal": 0,
        "size": None if stored is None else len(stored),
        "data": stored,
    }
    facts.update(values)
    return tuple(facts[name] for name in COLUMNS)
