"""Search over a large ledger, beside the same statements through apsw and beside `rg` over raw files.

The ledger is filled through the store's own interface with invented events; the raw files hold the same
events as JSON Lines. Both are kept in the cache. The rows are over queries of all kinds, from a rare word to
common ones and three words; what each kind takes stands above them. `rg` seeks the same words on all lines.

    MEMD_BENCH_LEDGER   events in the ledger, 1000000
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec
import peers
from corpus import cache
from corpus_text import COMMON, Text
from measure import Row, at, daemon, memctl, sandbox, section

from memctl import hook
from memd.harness.model import Kind, Session
from memd.ledger.store.interface import BATCH_BYTES, BATCH_EVENTS, Batch, Entry, Filter
from memd.ledger.store.sqlite import SqliteReader, SqliteWriter

EVENTS = int(os.environ.get("MEMD_BENCH_LEDGER", "1000000"))
PER_SESSION = 120
PER_FILE = 20_000
QUERIES = 40
RG_QUERIES = 5
VERSION = 1


class Said(NamedTuple):
    session: int
    kind: Kind
    role: str
    text: str


def said(count: int) -> Iterator[Said]:
    """Events of all kinds, with the sizes that sessions have."""
    text = Text(11)
    kinds: tuple[tuple[Kind, str, str, int], ...] = (
        ("message", "assistant", "prose", 200),
        ("tool_call", "assistant", "code", 140),
        ("tool_result", "tool", "output", 500),
    )
    for number in range(count):
        kind, role, pool, median = text.random.choices(kinds, weights=(30, 35, 35))[0]
        length = text.size(median, 1.0, 10, 4096)
        yield Said(number // PER_SESSION, kind, role, text.cut(pool, length))


def batches(count: int) -> Iterator[Batch]:
    group: list[Entry] = []
    size = 0
    for number, one in enumerate(said(count)):
        if group and (len(group) == BATCH_EVENTS or size + len(one.text) > BATCH_BYTES):
            yield _batch(group)
            group, size = [], 0
        group.append(
            Entry(
                id="native:" + hashlib.sha256(b"%d" % number).hexdigest(),
                session=f"{one.session:036d}",
                kind=one.kind,
                role=one.role,
                content=one.text,
                at=number,
                occurred_at=f"2026-{1 + number * 11 // count:02d}-15T10:00:00.000Z",
            )
        )
        size += len(one.text)
    if group:
        yield _batch(group)


def _batch(group: list[Entry]) -> Batch:
    names = dict.fromkeys(entry.session for entry in group)
    sessions = [Session(id=name, cwd=f"/home/user/work/project-{int(name) % 200}") for name in names]
    return Batch(harness="claude", entries=group, sessions=sessions)


def filled() -> Path:
    """A folder with `ledger` and `raw`, made if it is not in the cache."""
    folder = cache() / f"search-{VERSION}-{EVENTS}"
    if folder.is_dir():
        return folder
    unfinished = folder.with_suffix(f".{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "raw").mkdir(parents=True)
    writer = SqliteWriter(os.fsencode(unfinished / "ledger"))
    encoder = msgspec.json.Encoder()
    written = 0
    for batch in batches(EVENTS):
        writer.append(batch)
        if writer.wants_checkpoint():
            writer.checkpoint()
        with (unfinished / "raw" / f"{written // PER_FILE:04d}.jsonl").open("ab") as file:
            file.write(encoder.encode_lines(batch.entries))
        written += len(batch.entries)
    writer.seal_all()
    writer.checkpoint()
    writer.close()
    os.rename(unfinished, folder)
    return folder


def queries() -> dict[str, list[list[str]]]:
    text = Text(11)
    words = [word for word in text.words if word.isalnum() and word not in COMMON[:10]]
    common = [word for word in COMMON if len(word) > 2]
    draw = random.Random(5)

    def some(*pools: Sequence[str]) -> list[list[str]]:
        return [[draw.choice(pool) for pool in pools] for _ in range(QUERIES)]

    return {
        "a common word": some(common),
        "a middling word": some(words[400:4000]),
        "a rare word": some(words[10_000:40_000]),
        "two common words": some(common, common),
        "three words": some(common, words[100:600], words[200:2000]),
    }


class Plain:
    """The statements of a search and nothing else: newest 500, the best 20 of them, their snippets."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.pragma("cache_size", -8 * 1024)

    def search(self, words: Sequence[str], cwd: str = "") -> int:
        execute = self._connection.execute
        expression = "content : (" + " AND ".join(f'"{word}"' for word in words) + ")"
        if cwd:
            place = execute("select n from checkouts where path = ?", (cwd,)).get
            expression += f' AND scope : ("c{place}")'
        execute("begin")
        newest = execute(
            "select rowid, bm25(event_text, 1.0, 0.0) as score from event_text where event_text match ?"
            " order by rowid desc limit 500",
            (expression,),
        ).fetchall()
        newest.sort(key=lambda one: one[1])
        for number, _score in newest[:20]:
            execute(
                "select snippet(event_text, 0, '[', ']', '…', 24), id, kind, role, occurred_at, e.content"
                " from event_text join events e on e.n = event_text.rowid"
                " where event_text match ? and event_text.rowid = ?",
                (expression, number),
            ).fetchall()
            execute(
                "select native, position from session_events join sessions on n = session where event = ?",
                (number,),
            ).fetchall()
        execute("commit")
        return min(len(newest), 20)


def timed(asked: Sequence[Sequence[str]], *works: Callable[[Sequence[str]], object]) -> list[list[float]]:
    """Milliseconds of each work for each query, in turn, after a round that warms all of them."""
    spent: list[list[float]] = [[] for _ in works]
    for is_counted in (False, True):
        for words in asked:
            for samples, work in zip(spent, works, strict=True):
                began = time.perf_counter()
                work(words)
                if is_counted:
                    samples.append((time.perf_counter() - began) * 1e3)
    return spent


def ripgrep(program: str, folder: Path) -> Callable[[Sequence[str]], object]:
    """All lines of the raw files in which the words stand: one `rg`, piped into another for each more."""

    def search(words: Sequence[str]) -> None:
        command = [program, "--no-config", "-i", "-w", "-F", "-I", "-N", "--", words[0], str(folder)]
        first = subprocess.Popen(command, stdout=subprocess.PIPE)
        last = first
        for word in words[1:]:
            again = [program, "--no-config", "-i", "-w", "-F", "--", word]
            last = subprocess.Popen(again, stdin=last.stdout, stdout=subprocess.PIPE)
        assert last.stdout is not None
        while last.stdout.read(1 << 20):
            pass
        for child in {first, last}:
            child.wait()

    return search


def main() -> int:
    folder = filled()
    raw_mb = sum(path.stat().st_size for path in (folder / "raw").iterdir()) / 1e6
    reader = SqliteReader(os.fsencode(folder / "ledger"))
    plain = Plain(folder / "ledger" / "ledger.sqlite3")
    program = peers.program(peers.RIPGREP, "rg")
    everything: list[float] = []
    all_plain: list[float] = []
    all_rg: list[float] = []

    def search(words: Sequence[str], where: Filter | None = None) -> None:
        reader.search(" ".join(words), where or Filter(), marks=("[", "]"))

    for name, asked in queries().items():
        ours, floor = timed(asked, search, plain.search)
        theirs: list[float] = []
        if program:
            [theirs] = timed(asked[:RG_QUERIES], ripgrep(program, folder / "raw"))
        print(f"  {name:<18} p50, p95: {_two(ours)}; same statements {_two(floor)}; rg {_two(theirs)} ms")
        everything += ours
        all_plain += floor
        all_rg += theirs
    place = "/home/user/work/project-7"
    scoped = Filter(cwd=place)
    inside, plain_inside = timed(
        queries()["two common words"],
        lambda words: search(words, scoped),
        lambda words: plain.search(words, place),
    )
    rows = [
        Row("a search / the same statements", everything, all_plain, "ms", 1.5, 0.95),
        Row("two words in one directory / the same", inside, plain_inside, "ms", 1.5, 0.95),
    ]
    if all_rg:
        rows.append(Row(f"a search / rg over {raw_mb:.0f} MB", everything, all_rg, "ms", 0.15, 0.95))
    reader.close()
    rows.append(
        Row("through the daemon / a search (for scale)", through(folder), everything, "ms", 9.0, 0.95)
    )
    return section(f"search, {EVENTS} events", rows)


def _two(samples: Sequence[float]) -> str:
    return f"{at(samples, 0.5):7.2f} {at(samples, 0.95):7.2f}" if samples else "left out"


def through(folder: Path) -> list[float]:
    """The same queries over the socket of a daemon that has this ledger."""
    with sandbox() as (base, environment):
        target = base / "home" / ".local" / "share" / "memd" / "ledger"
        target.parent.mkdir(parents=True)
        shutil.copytree(folder / "ledger", target)
        with daemon(environment):
            memctl(environment, "search", "warm")
            address = os.fsencode(base / "run" / "memd" / "memd.sock")
            asked = [words for some in queries().values() for words in some]
            [spent] = timed(asked, lambda words: _ask(address, " ".join(words)))
            return spent


def _ask(address: bytes, query: str) -> None:
    sock = hook.dial(address, 20.0)
    try:
        body = msgspec.json.encode({"op": "search", "query": query, "form": "json"})
        sock.sendall(hook.frame(b"j", body))
        hook.read_reply(sock)
    finally:
        sock.close()


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
