"""What others feel of an import: a request that writes nothing, and urgent work that needs the writer.

The first is a whole round trip through the socket, client included, while the daemon imports. The second
runs the writer's lane as the daemon does, with groups of batches as the worker makes them, and asks how long
urgent work waits for its turn: at most one group.

    MEMD_BENCH_LOAD   megabytes of the corpus that is imported meanwhile, 500
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import corpus
import trio
from bench_import import home_of, show, stage, wait_for_rest
from corpus import Profile
from measure import Row, daemon, sandbox, section

from memctl import hook
from memd.harness.model import Environment
from memd.harness.registry import adapters
from memd.ledger import sources
from memd.ledger.assembly import Assembly
from memd.ledger.messages import Rules
from memd.ledger.outbox import Outbox
from memd.ledger.reading import Reader
from memd.ledger.rules import Wanted
from memd.ledger.store.interface import Batch
from memd.ledger.store.sqlite import SqliteWriter
from memd.service.lane import BULK, Lane

LOAD_MB = int(os.environ.get("MEMD_BENCH_LOAD", "500"))
PINGS = 1000
PAUSE_S = 0.004
PING = b'{"op":"ping"}'
GROUPS = 300
BETWEEN_S = 0.003


def ping_ms(address: bytes) -> float:
    began = time.perf_counter()
    sock = hook.dial(address, 5.0)
    try:
        sock.sendall(hook.frame(b"j", PING))
        hook.read_reply(sock)
    finally:
        sock.close()
    return (time.perf_counter() - began) * 1e3


def pings(address: bytes, count: int) -> list[float]:
    found = []
    for _ in range(count):
        found.append(ping_ms(address))
        time.sleep(PAUSE_S)
    return found


def request_rows() -> list[Row]:
    folder = corpus.kept(Profile(LOAD_MB, LOAD_MB * 4))
    with sandbox() as (base, environment), daemon(environment) as child:
        stage(base, folder)
        address = os.fsencode(base / "run" / "memd" / "memd.sock")
        wait_for_rest(child.pid, environment)
        idle = pings(address, PINGS)
        show(base)
        while not _has_begun(base):
            time.sleep(0.01)
        busy = pings(address, PINGS)
    return [
        Row("a request while an import runs / the 2 ms allowed", busy, [2.0], "ms", 1.0, 0.99),
        Row("the same, idle (for scale)", idle, [2.0], "ms", 1.0, 0.99),
    ]


def _has_begun(base: Path) -> bool:
    folder = home_of(base) / ".local" / "share" / "memd" / "ledger" / "segments"
    return any(folder.rglob("*.jsonl"))


def groups(folder: Path) -> Iterator[tuple[Batch, ...]]:
    """A corpus in groups of batches, as the worker sends them."""
    known = {name: adapter for name, adapter in adapters().items() if name in ("claude", "codex")}
    reader, assembly, outbox, wanted = Reader(known), Assembly(Rules()), Outbox(), Wanted(Rules())
    environment = Environment(home=os.fsencode(folder))
    for adapter, store in sources.stores(list(known.values()), [environment]):
        for source in sources.walk(adapter, store).sources:
            cursor, is_more = b"", True
            while is_more:
                made = assembly.read(adapter, source, cursor, reader, wanted, time.monotonic())
                cursor, is_more = made.cursor, made.is_more
                for batch in made.batches:
                    outbox.put(batch, is_live=False)
                while outbox.is_due:
                    yield outbox.take()[0]
    if outbox:
        yield outbox.take()[0]


async def lane_waits(folder: Path, root: Path) -> list[float]:
    """Milliseconds that urgent work waits for the writer while groups go in one after the other."""
    lane = Lane()
    writer = SqliteWriter(os.fsencode(root))
    waits: list[float] = []
    made = [group for group, _ in zip(groups(folder), range(GROUPS), strict=False)]

    async def fill(scope: trio.CancelScope) -> None:
        for group in made:
            await lane.run(partial(writer.append_all, group), BULK)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, nursery.cancel_scope)
        while True:
            await trio.sleep(BETWEEN_S)
            began = time.perf_counter()
            await lane.run(lambda: None)
            waits.append((time.perf_counter() - began) * 1e3)
    writer.close()
    return waits


def lane_rows() -> list[Row]:
    folder = corpus.kept(Profile(50, 200))
    with sandbox() as (base, _environment):
        waits = trio.run(lane_waits, folder, base / "ledger")
    return [
        Row("urgent work waits for the writer / the 20 ms allowed", waits, [20.0], "ms", 1.0),
        Row("urgent work waits for the writer / the 20 ms allowed", waits, [20.0], "ms", 1.0, 0.95),
    ]


def main() -> int:
    missed = section(f"requests while {LOAD_MB} MB are imported", request_rows())
    return missed + section("the writer's lane during a back-fill", lane_rows())


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
