"""A Crush database to write into, and the generated fixtures: no file of the real program.

`python tests/support_crush.py` writes `tests/fixtures/crush` anew; a test sees to it that they hold the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw

from memd.harness.crush_rows import COLUMNS

FIXTURES = Path(__file__).parent / "fixtures" / "crush"
T0 = 1_770_000_000
PACKET = "<!-- memd:workstream-packet:v1 -->\n> OLD PACKET"

SCHEMA = """
create table sessions (
  id text primary key, parent_session_id text,
  title text, created_at integer not null, updated_at integer not null);
create table messages (
  id text primary key, session_id text not null, role text not null,
  parts text not null, updated_at integer not null,
  is_summary_message integer not null default 0);
create table files (id text primary key, session_id text not null, path text not null);
create table read_files (session_id text not null, path text not null, read_at integer not null);
create index idx_messages_session_id on messages (session_id);
create trigger touch_session after insert on messages begin
  update sessions set updated_at = new.updated_at where id = new.session_id and updated_at < new.updated_at;
end;
"""

RECIPE = (
    "insert into sessions values ('s-top', null, 'Parser', 1770000000, 1770000300)",
    "insert into sessions values ('s-child', 's-top', 'helper', 1770000010, 1770000020)",
    """insert into messages values ('m1','s-top','user',
       '[{"type":"text","data":{"text":"Why does the lexer loop?"}}]', 1770000001, 0)""",
    """insert into messages values ('m2','s-top','assistant',
       '[{"type":"reasoning","data":{"thinking":"SECRET-THOUGHT"}},
         {"type":"text","data":{"text":"It never consumes EOF."}},
         {"type":"tool_call","data":
           {"id":"c1","name":"view","input":"{\\"path\\":\\"lex.py\\"}","finished":true}},
         {"type":"tool_call","data":
           {"id":"c2","name":"bash","input":"{}","finished":false}}]', 1770000002, 0)""",
    """insert into messages values ('m3','s-top','tool',
       '[{"type":"tool_result","data":{"tool_call_id":"c1","name":"view","content":"def lex(): ...",
         "is_error":false}}]', 1770000003, 0)""",
    """insert into messages values ('m4','s-top','assistant',
       '[{"type":"text","data":{"text":"Summary: lexer fixed."}}]', 1770000004, 1)""",
)


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def text(words: str) -> dict[str, Any]:
    return part("text", text=words)


FINISH = part("finish", reason="end_turn", time=T0)


class Store:
    """Crush at work: every call is one committed change, stamped with the next second."""

    def __init__(self, folder: Path, *, is_wal: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "crush.db"
        is_new = not self.path.exists()
        self.db = apsw.Connection(str(self.path))
        if is_wal:
            self.db.execute("pragma journal_mode=wal")
        if is_new:
            self.db.execute(SCHEMA)
        last = self.db.execute("select max(updated_at) from messages").get
        self.now = max(T0, last or 0)

    def close(self) -> None:
        self.db.close()

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.db.execute(statement)

    def session(self, name: str = "s1", parent: str | None = None, title: str = "title") -> str:
        self.now += 1
        self.db.execute("insert into sessions values(?,?,?,?,?)", (name, parent, title, self.now, self.now))
        return name

    def message(
        self, name: str, role: str, *parts: Mapping[str, Any], to: str = "s1", summary: int = 0
    ) -> str:
        self.now += 1
        row = (name, to, role, json.dumps(parts, ensure_ascii=False), self.now, summary)
        self.db.execute("insert into messages values(?,?,?,?,?,?)", row)
        return name

    def change(self, name: str, *parts: Mapping[str, Any]) -> None:
        """Crush writes a message again as it grows."""
        self.now += 1
        row = (json.dumps(parts, ensure_ascii=False), self.now, name)
        self.db.execute("update messages set parts = ?, updated_at = ? where id = ?", row)

    def say(self, name: str, words: str, to: str = "s1") -> str:
        return self.message(name, "user", text(words), to=to)

    def answer(self, name: str, words: str, to: str = "s1") -> str:
        return self.message(name, "assistant", text(words), FINISH, to=to)

    def edit(self, path: object, session: str = "s1") -> None:
        count = self.db.execute("select count(*) from files").get
        self.db.execute("insert into files values(?,?,?)", (f"f{count}", session, str(path)))


def list_projects(data: Path, *projects: tuple[Path, Path]) -> None:
    """Crush's list of where it was started, and with which data folder."""
    data.mkdir(parents=True, exist_ok=True)
    found = [
        {"path": str(path), "data_dir": str(folder), "last_accessed": "2026-02-01T10:00:00Z"}
        for path, folder in projects
    ]
    (data / "projects.json").write_text(json.dumps({"projects": found}))


def row(parts: object, **values: object) -> tuple[object, ...]:
    """One row as the queries give it."""
    stored = parts if isinstance(parts, bytes) or parts is None else json.dumps(parts).encode()
    facts: dict[str, object] = {
        "updated": T0 * 1000,
        "id": "m1",
        "session": "s1",
        "parent": None,
        "cwd": b"/w",
        "title": b"title",
        "started": T0,
        "role": "assistant",
        "summary": 0,
        "place": 1,
        "touched": T0 * 1000,
        "size": None if stored is None else len(stored),
        "parts": stored,
    }
    facts.update(values)
    return tuple(facts[name] for name in COLUMNS)


def write_fixtures(root: Path) -> None:
    """One scenario: what the recipe of the format holds, in a checkout's own store."""
    store = Store(root / "recipe" / "demo" / ".crush", is_wal=False)
    store.run(*RECIPE)
    store.edit("/home/dev/demo/lex.py", "s-child")
    store.close()
    manifest = {
        "generated": "by tests/support_crush.py from the documented format, not by Crush",
        "expect_in_ledger": ["Why does the lexer loop?", "It never consumes EOF.", "Summary: lexer fixed."],
        "never_in_ledger": ["SECRET-THOUGHT"],
    }
    (root / "recipe" / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")


def dump(path: Path) -> list[str]:
    """What a database holds, as text."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        held = [repr(row) for row in connection.execute("select sql from sqlite_schema order by name")]
        for table in ("sessions", "messages", "files", "read_files"):
            held += [repr(row) for row in connection.execute(f"select * from {table} order by 1, 2")]
        return held
    finally:
        connection.close()


if __name__ == "__main__":
    shutil.rmtree(FIXTURES, ignore_errors=True)
    write_fixtures(FIXTURES)
