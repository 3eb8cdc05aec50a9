"""The least an import can do, on one core: read, decode, extract, redact, hash, insert, index.

    floor.py CORPUS DATABASE [--gate re2|stdlib|none]

No order, no losses, no cursors, no segments, no second process; a dozen kinds of secrets. Prints one line of
JSON with the seconds it took. Texts are cut at the 64 KiB of the ledger, and all of them are indexed.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import msgspec

CAP = 64 * 1024
BATCH = 2000
PATTERNS = (
    r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{40,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"AKIA[0-9A-Z]{16}",
    r"xox[baprs]-[A-Za-z0-9-]{10,}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"(?i:bearer)\s+[A-Za-z0-9._~+/-]{20,}=*",
    r"(?i:(?:password|passwd|secret|api[_-]?key|token))\s*[:=]\s*['\"]?[^\s'\"]{8,}",
    r"[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@",
)
LITERALS = (
    ("sk-",), ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), ("github_pat_",), ("glpat-",), ("AKIA",), ("xox",),
    ("AIza",), ("eyJ",), ("PRIVATE KEY",), ("earer", "EARER"),
    ("assw", "ecret", "oken", "pi_key", "pi-key", "piKey", "PASSW", "SECRET", "TOKEN", "API"), ("://",),
)  # fmt: skip
TABLES = """
create table ev(id integer primary key, session int, off int, sub int, kind text, role text, ts text, h blob,
    text text, unique(session, off, sub));
create virtual table f using fts5(text, content='ev', content_rowid='id',
    tokenize="unicode61 remove_diacritics 2");
"""


class Block(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    content: Any = None


class Message(msgspec.Struct, gc=False):
    role: str = ""
    content: str | list[Block] = ""


class Record(msgspec.Struct, gc=False):
    type: str
    timestamp: str | None = None
    isSidechain: bool = False
    message: Message | None = None
    isCompactSummary: bool = False
    payload: msgspec.Raw = msgspec.Raw(b"")


class Payload(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None
    content: Any = None
    name: str | None = None
    arguments: str | None = None
    output: Any = None
    input: Any = None
    message: Any = None


Found = tuple[int, int, str, str, str | None, str]
record_of = msgspec.json.Decoder(Record).decode
payload_of = msgspec.json.Decoder(Payload).decode


def flat(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, dict) and part.get("text"))
    return ""


def visible(blob: bytes) -> Iterator[Found]:
    """Place, block, kind, role, time and text of all that is visible in a file."""
    at = 0
    for line in blob.split(b"\n"):
        here = at
        at += len(line) + 1
        if len(line) < 3:
            continue
        record = record_of(line)
        kind, when = record.type, record.timestamp
        if record.message is not None and not record.isSidechain:
            role, content = record.message.role, record.message.content
            if isinstance(content, str):
                yield here, 0, "compact" if record.isCompactSummary else "message", role, when, content[:CAP]
                continue
            for index, block in enumerate(content):
                if block.type == "text":
                    yield here, index, "message", role, when, (block.text or "")[:CAP]
                elif block.type == "tool_use":
                    given = bytes(block.input)[:CAP].decode("utf-8", "replace")
                    yield here, index, "call", "tool", when, f"{block.name} {given}"
                elif block.type == "tool_result":
                    yield here, index, "result", "tool", when, flat(block.content)[:CAP]
        elif kind == "response_item" or kind == "compacted":
            payload = payload_of(record.payload)
            what = payload.type or ""
            if kind == "compacted":
                yield here, 0, "compact", "system", when, (payload.message or "")[:CAP]
            elif what == "message":
                if payload.role != "developer":
                    yield here, 0, "message", payload.role or "", when, flat(payload.content)[:CAP]
            elif what.endswith("_call_output"):
                yield here, 0, "result", "tool", when, flat(payload.output)[:CAP]
            elif what.endswith("_call"):
                given = (payload.arguments or payload.input or "")[:CAP]
                yield here, 0, "call", "tool", when, f"{payload.name} {given}"


def redaction(gate: str) -> Callable[[str], str]:
    """Patterns run only where the gate says so: all at once by google-re2, or by substrings."""
    each = [re.compile(pattern) for pattern in PATTERNS]
    if gate == "none":
        return lambda text: text
    if gate == "re2":
        import re2

        together = re2.Set.SearchSet()
        for pattern in PATTERNS:
            together.Add(pattern)
        together.Compile()

        def by_set(text: str) -> str:
            for number in together.Match(text) or ():
                text = each[number].sub("[x]", text)
            return text

        return by_set

    def by_substring(text: str) -> str:
        for literals, pattern in zip(LITERALS, each, strict=True):
            for literal in literals:
                if literal in text:
                    text = pattern.sub("[x]", text)
                    break
        return text

    return by_substring


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("database")
    parser.add_argument("--gate", default="re2", choices=("re2", "stdlib", "none"))
    options = parser.parse_args()
    redact = redaction(options.gate)
    connection = apsw.Connection(options.database)
    connection.execute("pragma journal_mode=wal; pragma synchronous=normal; pragma cache_size=-64000")
    connection.execute(TABLES)
    names = sorted(glob.glob(os.path.join(options.corpus, ".c*", "**", "*.jsonl"), recursive=True))
    wall, cpu = time.perf_counter(), time.process_time()
    number = size = 0
    rows: list[tuple[Any, ...]] = []

    def flush() -> None:
        connection.execute("begin immediate")
        connection.executemany("insert or ignore into ev values(?,?,?,?,?,?,?,?,?)", rows)
        connection.executemany("insert into f(rowid, text) values(?,?)", ((row[0], row[8]) for row in rows))
        connection.execute("commit")
        rows.clear()

    for session, name in enumerate(names):
        with open(name, "rb") as file:
            blob = file.read()
        for at, block, kind, role, when, text in visible(blob):
            text = redact(text)
            number += 1
            size += len(text)
            digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
            rows.append((number, session, at, block, kind, role, when, digest, text))
            if len(rows) >= BATCH:
                flush()
    if rows:
        flush()
    took = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    print(json.dumps({**took, "events": number, "text_mb": size / 1e6}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
