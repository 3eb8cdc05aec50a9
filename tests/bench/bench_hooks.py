"""What others feel of an import: a request that writes nothing, and urgent work that needs the writer.

The first is a round trip through the socket while the daemon imports, and the same to a bare trio server in
turn: both wait for a processor, so what ours takes longer is the daemon's share. The second runs the writer's
lane as the daemon does, with groups of batches as the worker makes them, and asks how long urgent work waits
for its turn: at most one group.

    MEMD_BENCH_LOAD   megabytes of the corpus that is imported meanwhile, 500
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import corpus
import trio
from bench_import import home_of, show, stage, wait_for_rest
from corpus import Profile
from measure import PYTHON, Row, at, daemon, sandbox, section

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
BARE = """
import os, socket, sys, trio
async def answer(stream):
    await stream.receive_some(65536)
    await stream.send_all(b"memd1 j 2\\n{}")
async def main():
    sock = trio.socket.socket(socket.AF_UNIX)
    await sock.bind(sys.argv[1])
    sock.listen(64)
    await trio.serve_listeners(answer, [trio.SocketListener(sock)])
trio.run(main)
"""
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


def pings(count: int, *addresses: bytes) -> list[list[float]]:
    """Round trips to each of the addresses, in turn."""
    found: list[list[float]] = [[] for _ in addresses]
    for _ in range(count):
        for samples, address in zip(found, addresses, strict=True):
            samples.append(ping_ms(address))
            time.sleep(PAUSE_S)
    return found


@contextlib.contextmanager
def bare_server(address: bytes, environment: dict[str, str]) -> Iterator[None]:
    """A trio program that reads a message and answers with a few bytes."""
    child = subprocess.Popen([PYTHON, "-c", BARE, os.fsdecode(address)], env=environment)
    try:
        while not os.path.exists(address):
            time.sleep(0.01)
        yield
    finally:
        child.kill()
        child.wait()


def request_rows() -> list[Row]:
    folder = corpus.kept(Profile(LOAD_MB, LOAD_MB * 4))
    with sandbox() as (base, environment):
        stage(base, folder)
        address, bare = os.fsencode(base / "run" / "memd" / "memd.sock"), os.fsencode(base / "bare.sock")
        with daemon(environment) as child, bare_server(bare, environment):
            wait_for_rest(child.pid, environment)
            idle, _ = pings(PINGS // 2, address, bare)
            show(base)
            while not _has_begun(base):
                time.sleep(0.01)
            busy, floor = pings(PINGS, address, bare)
    share = at(busy, 0.99) - at(floor, 0.99)
    return [
        Row("the daemon's share of a request's p99 / 2 ms", [share], [2.0], "ms", 1.0),
        Row("a request during an import / a bare server's", busy, floor, "ms", 4.0),
        Row("a request during an import / a bare server's", busy, floor, "ms", 4.0, 0.99),
        Row("without an import / the same (for scale)", idle, busy, "ms", 9.0, 0.99),
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
        Row("urgent work waits for the writer / 20 ms", waits, [20.0], "ms", 1.0),
        Row("urgent work waits for the writer / 20 ms", waits, [20.0], "ms", 1.0, 0.95),
    ]


def main() -> int:
    missed = section(f"requests while {LOAD_MB} MB are imported", request_rows())
    return missed + section("the writer's lane during a back-fill", lane_rows())


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
