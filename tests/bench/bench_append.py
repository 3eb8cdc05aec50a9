"""One line appended to a long transcript: what the import of it costs, and how soon it can be found.

The watcher's bare callback is measured on the same folder layout at the same step, in turn with ours. The
peer's server is watched through its own database.

    MEMD_BENCH_APPEND   megabytes of the long transcript, 100
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import peers
from bench_heal import BARE, STEP_MS
from corpus import cache, long_session
from corpus_claude import Claude
from measure import PYTHON, Row, daemon, family, in_turn, memctl, sandbox, section

LONG_MB = float(os.environ.get("MEMD_BENCH_APPEND", "100"))
SHORT_MB = 1.0
ROUNDS = 30
SETTLE_S = 0.25
PATIENCE_S = 60.0


class Transcript:
    """A session that is written to a copy of a generated file and can grow by a line."""

    def __init__(self, projects: Path, megabytes: float, number: int) -> None:
        made = cache() / f"long-{megabytes:g}mb.jsonl"
        session = f"{number:08d}-0000-4000-8000-000000000000"
        if not made.exists():
            unfinished = made.with_suffix(f".{os.getpid()}")
            long_session(unfinished, megabytes, session="SESSION-" + "0" * 28)
            os.rename(unfinished, made)
        self.path = projects / f"-home-user-work-long-{number}" / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True)
        with made.open("rb") as source, self.path.open("wb") as target:
            for line in source:
                target.write(line.replace(b"SESSION-" + b"0" * 28, session.encode()))
        self._claude = Claude(_NoText(), "/home/user/work/long", session, _soon())  # type: ignore[arg-type]
        self.count = 0

    def grow(self) -> str:
        """Append one line; gives a word that stands nowhere else."""
        self.count += 1
        word = f"quokka{self.path.stem[:8]}x{self.count}"
        self._claude.user(f"appended {word} here")
        line = self._claude.lines.pop().encode() + b"\n"
        with self.path.open("ab") as file:
            file.write(line)
        return word


class _NoText:
    """What `Claude` needs of a text source to write a line of given words."""

    def __init__(self) -> None:
        import random

        self.random = random.Random(1)

    def uuid(self) -> str:
        h = f"{self.random.getrandbits(128):032x}"
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def _soon() -> object:
    import datetime

    return datetime.datetime.now()


def run_ns(pids: list[int]) -> int:
    """Nanoseconds on a processor of all threads there are now; finer than the clock ticks of `cpu_s`."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += int((task / "schedstat").read_text().split()[0])
    return total


def wait_for(connection: apsw.Connection, sql: str, word: str) -> None:
    """Until a query finds something, asked every millisecond."""
    began = time.perf_counter()
    while connection.execute(sql, (word,)).fetchone() is None:
        time.sleep(0.001)
        if time.perf_counter() - began > PATIENCE_S:
            raise SystemExit(f"{word} was never found")


class Ours:
    """A daemon at rest that has both transcripts in its ledger."""

    def __init__(self, base: Path, environment: dict[str, str], pid: int) -> None:
        projects = base / "home" / ".claude" / "projects"
        self.long, self.short = Transcript(projects, LONG_MB, 1), Transcript(projects, SHORT_MB, 2)
        if memctl(environment, "import", "--wait") != 0:
            raise SystemExit("the import failed")
        time.sleep(8)  # merging, sealing, a fresh worker after a back-fill
        self.daemon = pid
        path = base / "home" / ".local" / "share" / "memd" / "ledger" / "ledger.sqlite3"
        self.connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self.work: dict[Path, list[float]] = {self.long.path: [], self.short.path: []}
        self.share: list[float] = []
        self._turn = 0

    def latency_ms(self, transcript: Transcript) -> float:
        """From the append to the hit; notes the worker's processor time for it, and the daemon's."""
        self._turn += 1
        time.sleep(SETTLE_S + 0.013 * (self._turn % 7))  # meet every phase of the watcher's step
        worker = [pid for pid in family(self.daemon) if pid != self.daemon]
        before, daemon_before = run_ns(worker), run_ns([self.daemon])
        began = time.perf_counter()
        word = transcript.grow()
        wait_for(self.connection, "select rowid from event_text where event_text match ?", word)
        took = (time.perf_counter() - began) * 1e3
        time.sleep(SETTLE_S)
        self.work[transcript.path].append((run_ns(worker) - before) / 1e6)
        self.share.append((run_ns([self.daemon]) - daemon_before) / 1e6)
        return took


@contextlib.contextmanager
def bare_watch(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [PYTHON, "-c", BARE, str(folder), str(STEP_MS)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


class Callback:
    def __init__(self, folder: Path, child: subprocess.Popen[str]) -> None:
        self.path, self._child, self._turn = folder / "watched.jsonl", child, 0
        self.path.write_bytes(b"{}\n")

    def latency_ms(self) -> float:
        self._turn += 1
        time.sleep(SETTLE_S + 0.013 * (self._turn % 7))
        began = time.perf_counter()
        with self.path.open("ab") as file:
            file.write(b"{}\n")
        assert self._child.stdout is not None
        while True:
            path, _, now = self._child.stdout.readline().strip().rpartition(" ")
            if path.endswith("watched.jsonl") and float(now) > began:
                return (float(now) - began) * 1e3


def our_rows() -> tuple[list[Row], list[float]]:
    with sandbox() as (base, environment):
        watched = base / "watched"
        watched.mkdir()
        (base / "home" / ".claude" / "projects").mkdir(parents=True)
        with daemon(environment) as child, bare_watch(watched, environment) as bare:
            ours, callback = Ours(base, environment, child.pid), Callback(watched, bare)
            slow, quick, floor = in_turn(
                ROUNDS,
                lambda: ours.latency_ms(ours.long),
                lambda: ours.latency_ms(ours.short),
                callback.latency_ms,
            )
            ours.connection.close()
    long_work, short_work = ours.work[ours.long.path][1:], ours.work[ours.short.path][1:]
    print(f"  the daemon's own share of an append: {sorted(ours.share)[len(ours.share) // 2]:.2f} ms")
    rows = [
        Row(f"import work, {LONG_MB:g} MB file / the 3 ms allowed", long_work, [3.0], "ms", 1.0),
        Row(f"import work, {LONG_MB:g} MB / {SHORT_MB:g} MB file", long_work, short_work, "ms", 1.2),
        Row(f"append to searchable, {LONG_MB:g} MB / bare callback", slow, floor, "ms", 2.0),
        Row(f"append to searchable, {SHORT_MB:g} MB / bare callback", quick, floor, "ms", 2.0),
    ]
    return rows, slow


def peer_latency_ms() -> list[float]:
    """From an append to the row in the database of agentsview's server; empty when it cannot be had."""
    program = peers.program(peers.AGENTSVIEW, "agentsview")
    if not program:
        return []
    with sandbox() as (base, _environment):
        home = base / "peer"
        transcript = Transcript(home / ".claude" / "projects", LONG_MB, 1)
        environment = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
        with (base / "log").open("wb") as output:
            server = subprocess.Popen(
                [peers.native(program), "serve", "--no-browser", "--no-update-check", "--port", "0"],
                env=environment,
                cwd=home,
                stdout=output,
                stderr=output,
            )
        try:
            database = _database(home, server)
            return [_peer_append_ms(transcript, database) for _ in range(6)][1:]
        finally:
            server.terminate()
            server.wait(20)


def _database(home: Path, server: subprocess.Popen[bytes]) -> apsw.Connection:
    """The peer's database once it holds the transcript."""
    began = time.perf_counter()
    while time.perf_counter() - began < 4 * PATIENCE_S:
        if server.poll() is not None:
            raise SystemExit("agentsview ended")
        time.sleep(0.5)
        for path in home.glob(".agentsview/*.db"):
            with contextlib.suppress(apsw.Error):
                connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
                connection.set_busy_timeout(2000)
                before = connection.execute("select count(*) from messages").get
                time.sleep(3)
                if before and before == connection.execute("select count(*) from messages").get:
                    return connection
    raise SystemExit("agentsview never read the transcript")


def _peer_append_ms(transcript: Transcript, database: apsw.Connection) -> float:
    time.sleep(1)
    began = time.perf_counter()
    word = transcript.grow()
    sql = "select 1 from messages where id > (select max(id) - 5 from messages) and instr(content, ?) > 0"
    wait_for(database, sql, word)
    return (time.perf_counter() - began) * 1e3


def main() -> int:
    rows, slow = our_rows()
    theirs = peer_latency_ms()
    if theirs:
        rows.append(Row("append to searchable / agentsview's server", slow, theirs, "ms", 0.05))
    return section("one line appended to a transcript", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
