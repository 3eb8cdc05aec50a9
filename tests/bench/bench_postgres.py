"""The ledger on a PostgreSQL server beside the one in a file: the same figures, for scale.

The server is a real one on this machine, with everything flushed as it would be. A network adds its round
trips.

    MEMD_BENCH_EVENTS     events put in (20,000)
    MEMD_BENCH_SEARCH     events searched (50,000)
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_store import MARKS, batches, entry, queries, timed
from measure import ROOT, Row, at, section
from texts import conversation

from memd.ledger.store.interface import Filter
from memd.ledger.store.sqlite import SqliteWriter
from memd.ledger.store.sqlite_reader import SqliteReader

EVENTS = int(os.environ.get("MEMD_BENCH_EVENTS", "20000"))
SEARCHED = int(os.environ.get("MEMD_BENCH_SEARCH", "50000"))
SHOWN = 1e9
MACHINES = 8
LEASES = 100


def put(writer: Any, made: list[Any]) -> list[float]:
    """Milliseconds of each batch."""
    spent = []
    for one in made:
        before = time.perf_counter()
        writer.append(one)
        spent.append((time.perf_counter() - before) * 1e3)
        if writer.wants_checkpoint():
            writer.checkpoint()
    return spent


def timed_work(writer: Any) -> list[float]:
    """Milliseconds of a small transaction."""
    spent = []
    for _ in range(LEASES):
        before = time.perf_counter()
        writer.work(lambda work: work.active_runs())
        spent.append((time.perf_counter() - before) * 1e3)
    return spent


def writing(folder: Path, engine: Callable[[str, str], Any]) -> list[Row]:
    events = list(conversation(EVENTS))
    text_bytes = sum(len(one.text.encode()) for one in events)
    made = list(batches(entry(one) for one in events))
    local = SqliteWriter(bytes(folder / "put"))
    near = put(local, made)
    near_work = timed_work(local)
    local.rest()
    local.close()
    reader = SqliteReader(bytes(folder / "put"))
    here = reader.stats()
    reader.close()
    remote = engine("put", "one").writer()
    far = put(remote, made)
    far_work = timed_work(remote)
    remote.close()
    reader = engine("put", "one").reader()
    there = reader.stats()
    reader.close()
    print(
        f"{EVENTS} events, {text_bytes / 1e6:.1f} MB of text: {sum(far) * 1e3 / EVENTS:.0f} us an event,"
        f" in a file {sum(near) * 1e3 / EVENTS:.0f}"
    )
    near_bytes = here.database_bytes + here.segment_bytes
    rows = [
        Row("one batch, for scale", far, near, "ms", SHOWN),
        Row("one batch, for scale", far, near, "ms", SHOWN, 0.95),
        Row("one small transaction, for scale", far_work, near_work, "ms", SHOWN, 0.95),
        Row("bytes, of the text", [there.database_bytes / 1e6], [text_bytes / 1e6], "MB", SHOWN),
        Row("bytes, of those in files", [there.database_bytes / 1e6], [near_bytes / 1e6], "MB", SHOWN),
    ]
    return [*rows, together(engine, made, sum(far))]


def together(engine: Callable[[str, str], Any], made: list[Any], alone_ms: float) -> Row:
    """The same batches, dealt to eight machines that write at once."""
    gate = threading.Barrier(MACHINES + 1)

    def write(number: int) -> None:
        writer = engine("eight", f"m{number}").writer()
        gate.wait()
        for one in made[number::MACHINES]:
            writer.append(one)
        writer.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(MACHINES)]
    for thread in threads:
        thread.start()
    gate.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return Row("eight writers, of one", [(time.perf_counter() - began) * 1e3], [alone_ms], "ms", SHOWN)


def searching(folder: Path, engine: Callable[[str, str], Any]) -> list[Row]:
    local = SqliteWriter(bytes(folder / "found"))
    remote = engine("found", "one").writer()
    for one in batches(entry(said) for said in conversation(SEARCHED, median=300)):
        local.append(one)
        remote.append(one)
        if local.wants_checkpoint():
            local.checkpoint()
    local.rest()
    local.close()
    remote._link.run("vacuum analyze")  # as the server does by itself after a while
    remote.close()
    near, far = SqliteReader(bytes(folder / "found")), engine("found", "one").reader()
    rows = []
    for name, asked in queries().items():
        spent = []
        for reader in (far, near):

            def look(words: Any, reader: Any = reader) -> object:
                return reader.search(" ".join(words), Filter(), marks=MARKS)

            timed(look, asked)  # warms it
            spent.append(timed(look, asked))
        rows.append(Row(f"{name}, for scale", spent[0], spent[1], "ms", SHOWN, 0.95))
        print(f"{name:<18} p50 {at(spent[0], 0.5):7.2f} ms, in a file {at(spent[1], 0.5):7.2f}")
    near.close()
    far.close()
    return rows


def main() -> int:
    sys.path.insert(0, str(ROOT / "tests"))
    from support_postgres import Server, why_not

    if reason := why_not():
        print(f"the ledger on a server is left out: {reason}")
        return 0
    from memd.ledger.store.postgres.engine import Machine, PostgresEngine

    missed = 0
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        os.chmod(folder, 0o755)
        server = Server(Path(folder) / "s", options=("shared_buffers=128MB",)).make().start()

        def engine(schema: str, machine: str) -> Any:
            return PostgresEngine(server.connection(), schema, Machine(machine, machine))

        try:
            for title, bench in (
                ("The ledger on a server: putting in", writing),
                ("The ledger on a server: searching", searching),
            ):
                missed += section(title, bench(Path(folder), engine))
        finally:
            server.stop()
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
