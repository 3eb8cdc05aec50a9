"""The ledger's store beside plain SQL: putting in, sealing, sizes, searching, the time of one batch.

The floor of putting in is a table and an external-content index with one insert each, `synchronous=FULL` and
2,000 events in a transaction: no ids, no places, no segments, no batches that let others in between.

    MEMD_BENCH_EVENTS   events put in (20,000)
    MEMD_BENCH_SEARCH   events searched (100,000; the stated target is for 1,000,000)
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import apsw
from measure import Row, at, in_turn, section
from texts import Said, Words, conversation

from memd.harness.model import Session
from memd.ledger.store.interface import BATCH_BYTES, BATCH_EVENTS, GROUP_EVENTS, Batch, Entry, Filter
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter

EVENTS = int(os.environ.get("MEMD_BENCH_EVENTS", "20000"))
SEARCHED = int(os.environ.get("MEMD_BENCH_SEARCH", "100000"))
FLOOR_BATCH = 2000
TOGETHER = 3 * GROUP_EVENTS // BATCH_EVENTS  # batches, as of three groups of the worker
MARKS = ("[", "]")
TOKENIZER = 'tokenize="unicode61 remove_diacritics 2"'


def entry(said: Said) -> Entry:
    digest = hashlib.sha256(f"{said.session} {said.at}".encode()).hexdigest()
    is_tool = said.kind.startswith("tool")
    return Entry(
        id="native:" + digest,
        session=f"{said.session:036d}",
        kind=said.kind,  # type: ignore[arg-type]
        role=said.role,
        content=said.text,
        at=said.at,
        occurred_at=said.occurred_at,
        record=digest[:36],
        metadata={"tool_call_id": "toolu_" + digest[:24]} if is_tool else {},
    )


def batches(entries: Iterable[Entry]) -> Iterator[Batch]:
    """Cut as the worker cuts: no batch over the bounds, one source per session."""
    group: list[Entry] = []
    size = 0
    for one in entries:
        if group and (len(group) >= BATCH_EVENTS or size + len(one.content) > BATCH_BYTES):
            yield batch(group)
            group, size = [], 0
        group.append(one)
        size += len(one.content)
    if group:
        yield batch(group)


def batch(group: list[Entry]) -> Batch:
    names = dict.fromkeys(one.session for one in group)
    sessions = [Session(id=name, cwd=f"/home/dev/project-{int(name) % 200}") for name in names]
    return Batch(
        harness="claude",
        source=names.popitem()[0].encode(),
        cursor=bytes(200),
        entries=group,
        sessions=sessions,
    )


def floor_database(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for name, value in (("journal_mode", "wal"), ("synchronous", "full"), ("cache_size", -64000)):
        connection.pragma(name, value)
    connection.pragma("wal_autocheckpoint", 4000)
    connection.execute(
        "create table ev(id integer primary key, session int, off int, sub int, kind text, role text,"
        " ts text, text text, unique(session, off, sub)); create virtual table f using fts5(text,"
        f" content='ev', content_rowid='id', {TOKENIZER})"
    )
    return connection


def floor_put(folder: Path, events: Sequence[Said]) -> float:
    """CPU milliseconds of the floor."""
    path = folder / "floor.sqlite3"
    for file in folder.glob("floor.sqlite3*"):
        file.unlink()
    connection = floor_database(path)
    began = time.process_time()
    for start in range(0, len(events), FLOOR_BATCH):
        group = events[start : start + FLOOR_BATCH]
        connection.execute("begin immediate")
        connection.executemany(
            "insert into ev values(?,?,?,?,?,?,?,?)",
            (
                (start + n + 1, one.session, one.at, 0, one.kind, one.role, one.occurred_at, one.text)
                for n, one in enumerate(group)
            ),
        )
        connection.executemany(
            "insert into f(rowid, text) values(?, ?)",
            ((start + n + 1, one.text) for n, one in enumerate(group)),
        )
        connection.execute("commit")
    spent = (time.process_time() - began) * 1e3
    connection.close()
    return spent


class Ours:
    """The store, filled anew at each round; keeps what the last round showed."""

    def __init__(self, folder: Path, made: Sequence[Batch]) -> None:
        self.root = folder / "ledger"
        self._made = made
        self._together = [made[at : at + TOGETHER] for at in range(0, len(made), TOGETHER)]
        self.batch_ms: list[float] = []
        self.later_ms = 0.0
        self.bytes = 0

    def put(self) -> float:
        """CPU milliseconds of all batches, as the daemon puts them in: several go in together."""
        writer = self._anew()
        began = time.process_time()
        for some in self._together:
            writer.append_all(some)
            if writer.wants_checkpoint():
                writer.checkpoint()
        spent = (time.process_time() - began) * 1e3
        began = time.process_time()
        writer.rest()
        self.later_ms = (time.process_time() - began) * 1e3
        writer.close()
        reader = SqliteReader(bytes(self.root))
        stats = reader.stats()
        reader.close()
        self.bytes = stats.database_bytes + stats.segment_bytes
        return spent

    def put_alone(self) -> None:
        """Note how long each batch takes with the end of its transaction: so long somebody waits at most."""
        writer = self._anew()
        for one in self._made:
            before = time.perf_counter()
            writer.append(one)
            self.batch_ms.append((time.perf_counter() - before) * 1e3)
            if writer.wants_checkpoint():
                writer.checkpoint()
        writer.close()

    def _anew(self) -> SqliteWriter:
        shutil.rmtree(self.root, ignore_errors=True)
        return SqliteWriter(bytes(self.root))


def putting_in(folder: Path) -> list[Row]:
    events = list(conversation(EVENTS))
    text_bytes = sum(len(one.text.encode()) for one in events)
    ours = Ours(folder, list(batches(entry(one) for one in events)))
    mine, floor = in_turn(5, ours.put, lambda: floor_put(folder, events))
    ours.put_alone()
    print(
        f"{EVENTS} events, {text_bytes / 1e6:.1f} MB of text; {at(mine, 0.5) * 1e3 / EVENTS:.1f} us an event,"
        f" floor {at(floor, 0.5) * 1e3 / EVENTS:.1f}; sealing and merging later {ours.later_ms:.0f} ms;"
        f" a batch p50 {at(ours.batch_ms, 0.5):.1f} p95 {at(ours.batch_ms, 0.95):.1f}"
        f" max {max(ours.batch_ms):.1f} ms"
    )
    return [
        Row("putting in, CPU", mine, floor, "ms", 1.5),
        Row("database and segments, of the text", [ours.bytes / 1e6], [text_bytes / 1e6], "MB", 2.5),
        Row("one batch in the writer, of 20 ms", ours.batch_ms, [20.0], "ms", 1.0, 0.95),
    ]


# ------------------------------------------------------------------------------- searching


def queries(seed: int = 5) -> dict[str, list[list[str]]]:
    words = [word for word in Words().words if word.isalnum()]
    draw = random.Random(seed)

    def some(*ranks: tuple[int, int]) -> list[str]:
        return [draw.choice(words[first:last]) for first, last in ranks]

    return {
        "a common word": [some((3, 100)) for _ in range(25)],
        "a middling word": [some((400, 4000)) for _ in range(25)],
        "a rare word": [some((10_000, 40_000)) for _ in range(25)],
        "two common words": [some((3, 60), (3, 100)) for _ in range(25)],
        "three words": [some((3, 120), (100, 600), (200, 2000)) for _ in range(25)],
    }


def floor_search(connection: apsw.Connection, words: Sequence[str]) -> None:
    """The newest 500 hits by relevance, then snippets of 20: the same in plain statements."""
    expression = " AND ".join(f'"{word}"' for word in words)
    best = connection.execute(
        "select rowid, s from (select rowid, bm25(f) as s from f where f match ? order by rowid desc"
        " limit 500) order by s limit 20",
        (expression,),
    ).fetchall()
    for number, _score in best:
        connection.execute(
            "select snippet(f, 0, '[', ']', '…', 24), kind, role, ts, ev.text from f"
            " join ev on ev.id = f.rowid where f match ? and f.rowid = ?",
            (expression, number),
        ).fetchall()


def timed(work: Callable[[Sequence[str]], object], asked: Sequence[Sequence[str]]) -> list[float]:
    spent = []
    for words in asked:
        began = time.perf_counter()
        work(words)
        spent.append((time.perf_counter() - began) * 1e3)
    return spent


def searching(folder: Path) -> list[Row]:
    root = folder / "searched"
    writer = SqliteWriter(bytes(root))
    floor = floor_database(folder / "floor-search.sqlite3")
    floor.pragma("synchronous", "off")
    number = 0
    for made in batches(entry(one) for one in conversation(SEARCHED, median=300)):
        writer.append(made)
        floor.execute("begin")
        for one in made.entries:
            number += 1
            floor.execute(
                "insert into ev values(?,?,?,0,?,?,?,?)",
                (number, one.session, one.at, one.kind, one.role, one.occurred_at, one.content),
            )
            floor.execute("insert into f(rowid, text) values(?, ?)", (number, one.content))
        floor.execute("commit")
        if writer.wants_checkpoint():
            writer.checkpoint()
    floor.execute("insert into f(f) values('optimize')")
    writer.rest()
    writer.checkpoint()
    floor.pragma("cache_size", -16000)
    reader = SqliteReader(bytes(root))
    mine: dict[str, list[float]] = {}
    plain: dict[str, list[float]] = {}
    for name, asked in queries().items():
        for _ in range(2):  # the first round warms both
            mine[name] = timed(lambda words: reader.search(" ".join(words), Filter(), marks=MARKS), asked)
            plain[name] = timed(lambda words: floor_search(floor, words), asked)
        spent = f"{at(mine[name], 0.5):6.2f} {at(mine[name], 0.95):6.2f}"
        print(
            f"{name:<18} p50, p95: {spent} ms; floor {at(plain[name], 0.5):6.2f} {at(plain[name], 0.95):6.2f}"
        )
    common = queries()["two common words"]
    scoped = timed(
        lambda words: reader.search(" ".join(words), Filter(cwd="/home/dev/project-7"), marks=MARKS), common
    )
    rows = [
        Row(
            f"search of {SEARCHED} events",
            [*chain(*mine.values())],
            [*chain(*plain.values())],
            "ms",
            1.5,
            0.95,
        ),
        Row("two common words in one directory", scoped, plain["two common words"], "ms", 1.5, 0.95),
    ]
    reader.close()
    writer.close()
    floor.close()
    return rows


def main() -> int:
    missed = 0
    for title, bench in (("The store: putting in", putting_in), ("The store: searching", searching)):
        with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
            missed += section(title, bench(Path(folder)))
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
