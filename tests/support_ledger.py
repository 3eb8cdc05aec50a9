"""Entries and batches for the ledger's tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memd.harness.model import Loss, Session
from memd.ledger.store.interface import Appended, Batch, Entry
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter

S1 = "11111111-0000-4000-8000-000000000001"
S2 = "22222222-0000-4000-8000-000000000002"
CWD = "/home/dev/proj"


def event_id(text: str) -> str:
    return "native:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def entry(text: str, *, session: str = S1, at: int = 0, **more: Any) -> Entry:
    """One event whose id is made of its text, unless `id` says otherwise."""
    fields: dict[str, Any] = {
        "id": event_id(text),
        "session": session,
        "kind": "message",
        "role": "user",
        "content": text,
        "at": at,
        "occurred_at": "2026-02-03T10:00:00.000Z",
    }
    return Entry(**{**fields, **more})


def batch(*entries: Entry, harness: str = "claude", **more: Any) -> Batch:
    """A batch of these entries; every session it names began in `CWD`, unless `sessions` says otherwise."""
    names = dict.fromkeys(one.session for one in entries)
    fields: dict[str, Any] = {
        "harness": harness,
        "entries": entries,
        "sessions": tuple(Session(id=name, cwd=CWD) for name in names),
    }
    return Batch(**{**fields, **more})


def loss(what: str, count: int = 1, session: str = S1) -> Loss:
    return Loss(session=session, what=what, sentence=f"{what} was left out.", count=count)


class Ledger:
    """A writer and a reader in one folder, closed at the end of the block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.writer = SqliteWriter(bytes(root))
        self.reader = SqliteReader(bytes(root))

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.reader.close()
        self.writer.close()

    def put(self, *entries: Entry, **more: Any) -> Appended:
        return self.writer.append(batch(*entries, **more))

    def texts(self, session: str = S1, harness: str = "claude", *, side: bool = False) -> list[str]:
        return [event.content for event in self.reader.export(harness, session, side=side)]

    def sequences(self, session: str = S1, harness: str = "claude") -> list[int]:
        return [event.sequence for event in self.reader.export(harness, session)]

    def problems(self) -> list[tuple[str, str]]:
        return [(problem.what, problem.sentence) for problem in self.reader.check().problems]

    def forget(self, selection: Any) -> Any:
        found = self.writer.begin_forget(selection)
        while self.writer.forget_step():
            pass
        return found


def all_bytes(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below a folder with its content; sealed segments decompressed."""
    from memd.ledger.segments import decompress

    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            yield path, decompress(data) if path.suffix == ".zst" else data


def holding(root: Path, words: Iterable[bytes]) -> list[str]:
    """The files below a folder that hold one of these words."""
    wanted = tuple(words)
    return [path.name for path, data in all_bytes(root) if any(word in data for word in wanted)]
