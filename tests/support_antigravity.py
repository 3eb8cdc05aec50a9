"""An Antigravity store to write into, and the generated fixtures: no file of the real program.

`python tests/support_antigravity.py` writes `tests/fixtures/antigravity` anew; a test sees to it that they
hold the same.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import apsw

FIXTURES = Path(__file__).parent / "fixtures" / "antigravity"
CWD = "/home/dev/demo"
T0 = 1_770_000_000_000
U = "7c0d5c1e-2222-4222-8333-{:012d}"
PACKET = "<!-- memd:workstream-packet:v1 -->\n> OLD PACKET"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field1(payload: bytes) -> bytes:
    return b"\x0a" + varint(len(payload)) + payload


def blob(uri: str) -> bytes:
    """Metadata with fields beside the two that count."""
    return b"\x10\x07" + field1(b"\x18\x01" + field1(uri.encode()) + b"\x25abcd") + b"\x31" + bytes(8)


def uri(path: str | Path) -> str:
    return Path(path).as_uri()


class Antigravity:
    """The program's folder below a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / ".gemini" / "antigravity-cli"
        (self.folder / "conversations").mkdir(parents=True, exist_ok=True)
        self.history = self.folder / "history.jsonl"

    def path(self, session: str) -> Path:
        return self.folder / "conversations" / f"{session}.db"

    def conversation(self, session: str, data: bytes | None = None, cwd: str | Path = CWD) -> Path:
        path = self.path(session)
        connection = apsw.Connection(str(path))
        connection.execute(
            "create table trajectory_metadata_blob (id text default 'main', data blob, primary key (id))"
        )
        connection.execute("create table trajectory_blob (data blob)")
        connection.execute("insert into trajectory_blob values (?)", (b"SECRET-TRAJECTORY",))
        self.tell(session, blob(uri(cwd)) if data is None else data, connection)
        connection.close()
        return path

    def tell(self, session: str, data: bytes | str, connection: apsw.Connection | None = None) -> None:
        db = connection or apsw.Connection(str(self.path(session)))
        db.execute("insert or replace into trajectory_metadata_blob values ('main', ?)", (data,))
        if connection is None:
            db.close()

    def raw(self, line: str) -> None:
        with self.history.open("a", encoding="utf-8") as file:
            file.write(line)

    def prompt(
        self, text: object, session: str = "", *, time: object = T0, cwd: object = CWD, **more: Any
    ) -> None:
        named = {"conversationId": session} if session else {}
        record = {"display": text, "timestamp": time, "workspace": str(cwd), **named, **more}
        self.raw(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_fixtures(root: Path) -> None:
    """Every scenario below `root`, each a home; the first holds what the recipe of the format holds."""
    recipe = Antigravity(root / "recipe")
    recipe.conversation(U.format(1))
    recipe.prompt("start the migration", time=T0 + 100)
    recipe.prompt("now add an index", U.format(1), time=T0 + 60_000)
    recipe.prompt("/model", U.format(1), time=T0 + 61_000, type="slash_command")
    recipe.prompt("other", U.format(1), time=T0 + 62_000, cwd="/elsewhere")
    recipe.prompt("not mine", U.format(2), time=T0 + 63_000)

    many = Antigravity(root / "many")
    for number in range(12):
        many.prompt(f"prompt {number} MARK-MANY", U.format(10 + number % 3), time=T0 + number * 1000)

    odd = Antigravity(root / "odd")
    mine = U.format(20)
    odd.prompt("ünïcødé 東京 \u2028 MARK-ODD", mine, time=T0)
    odd.prompt("ls -l", mine, time=T0 + 1000, type="shell")
    odd.prompt("SECRET-TYPE", mine, time=T0 + 2000, type="hologram")
    odd.prompt(None, mine, time=T0 + 3000)
    odd.prompt("SECRET-TIME", mine, time="yesterday")
    odd.prompt("SECRET-TIME", mine, time=-1)
    odd.prompt("SECRET-TIME", mine, time=True)
    odd.prompt("SECRET-PLACE", mine, time=T0 + 4000, cwd="relative")
    odd.prompt("SECRET-ID", "../../etc/passwd", time=T0 + 5000)
    odd.prompt(PACKET, mine, time=T0 + 6000)
    odd.prompt("  ", mine, time=T0 + 7000)
    odd.prompt("MARK-LAST", mine, time=T0 + 8000)
    for scenario, (told, hidden) in MANIFESTS.items():
        manifest = {
            "generated": "by tests/support_antigravity.py from the documented format, not by Antigravity",
            "cwd": CWD,
            "expect_in_ledger": told,
            "never_in_ledger": hidden,
        }
        (root / scenario / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")


MANIFESTS: dict[str, tuple[list[str], list[str]]] = {
    "recipe": (["now add an index", "not mine"], ["/model", "other", "SECRET-TRAJECTORY"]),
    "many": (["MARK-MANY"], []),
    "odd": (["MARK-ODD", "MARK-LAST"], ["SECRET", "OLD PACKET", "ls -l"]),
}


def dump(path: Path) -> list[str]:
    """What a database holds, as text."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        held = [repr(row) for row in connection.execute("select sql from sqlite_schema order by name")]
        held += [repr(row) for row in connection.execute("select * from trajectory_metadata_blob")]
        return held + [repr(row) for row in connection.execute("select * from trajectory_blob")]
    finally:
        connection.close()


if __name__ == "__main__":
    shutil.rmtree(FIXTURES, ignore_errors=True)
    write_fixtures(FIXTURES)
