"""What an agent pays for a hook, and what others feel of an import.

A hook is the installed command with 2 KB on stdin, from its start to its end, beside the same interpreter
that does nothing, in turn: a Stop, and a SessionStart that is answered with a memory block of some 2 KB; with
the daemon at rest, while it imports, and without one. Beside them the start hook of agent-memory-git, the
quickest of the programs that do such things by hooks, in a home where it has nothing to say.

What others feel of an import: a request that writes nothing, and urgent work that needs the writer. The first
is a round trip through the socket while the daemon imports, and the same to a bare trio server in
turn: both wait for a processor, so what ours takes longer is the daemon's share. The second runs the writer's
lane as the daemon does, with groups of batches as the worker makes them, and asks how long urgent work waits
for its turn: at most one batch, and the end of its group's transaction.

    MEMD_BENCH_LOAD   megabytes of the corpus that is imported meanwhile, 500
    MEMD_BENCH_HOOKS  rounds of each hook, 200
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import corpus
import peers
import trio
from bench_import import home_of, show, stage, wait_for_rest
from corpus import Profile
from measure import PYTHON, Row, at, daemon, in_turn, sandbox, section

from memctl import hook
from memd.harness.hooking import command_words
from memd.harness.model import Environment
from memd.harness.registry import adapters
from memd.ledger import messages, sources
from memd.ledger.assembly import Assembly
from memd.ledger.messages import Rules
from memd.ledger.outbox import Outbox
from memd.ledger.reading import Reader
from memd.ledger.rules import Wanted
from memd.ledger.store.interface import Batch
from memd.ledger.store.sqlite import SqliteWriter
from memd.service.arrivals import Arrivals
from memd.service.lane import BULK, Lane

HOOK_ROUNDS = int(os.environ.get("MEMD_BENCH_HOOKS", "200"))
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
PASS = (INTERPRETER, "-I", "-S", "-c", "pass")
TOPICS = 15  # whose lines make a block of about 2 KB
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
C_CLIENT = r"""
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char in[1 << 16], out[1 << 17], reply[1 << 16];
    size_t n = 0;
    ssize_t r;
    while (n < sizeof in && (r = read(0, in + n, sizeof in - n)) > 0) n += r;
    char who[4096];
    int w = snprintf(who, sizeof who, "claude%cStop%c%s%c%c%d%c", 0, 0, argv[2], 0, 0, (int)getppid(), 0);
    int h = snprintf(out, sizeof out, "memd1 h %zu\n", (size_t)w + n);
    memcpy(out + h, who, w);
    memcpy(out + h + w, in, n);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, argv[1], sizeof at.sun_path - 1);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (argc != 3 || connect(s, (struct sockaddr *)&at, sizeof at)) return 1;
    if (write(s, out, h + w + n) < 0) return 2;
    while ((r = read(s, reply, sizeof reply)) > 0)
        if (write(1, reply, r) < 0) return 3;
    return 0;
}
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
    lane, arrivals = Lane(), Arrivals()
    writer = SqliteWriter(os.fsencode(root))
    waits: list[float] = []
    made = [group for group, _ in zip(groups(folder), range(GROUPS), strict=False)]
    for number, group in enumerate(made, 1):
        read = messages.read(number, group, is_more=number < len(made))
        arrivals.add(read, len(messages.pack(read)))

    async def fill(scope: trio.CancelScope) -> None:
        numbers = (0,)
        while numbers[-1] < len(made):
            numbers, left, *_ = arrivals.take()
            while left:
                put = await lane.run(partial(writer.append_all, left, partial(lane.is_wanted, BULK)), BULK)
                left = left.after(len(put))
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


def call_ms(command: Sequence[str], environment: dict[str, str], stdin: bytes, least: int = 0) -> float:
    """Milliseconds from the start of a command until its output and it ended; `least` bytes must come out."""
    given, giving = os.pipe()
    taking, taken = os.pipe()
    os.write(giving, stdin)
    os.close(giving)
    actions = [
        (os.POSIX_SPAWN_DUP2, given, 0),
        (os.POSIX_SPAWN_DUP2, taken, 1),
    ]
    began = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    os.close(taken)
    os.close(given)
    printed = 0
    while more := os.read(taking, 65536):
        printed += len(more)
    status = os.waitpid(pid, 0)[1]
    took = (time.perf_counter() - began) * 1e3
    os.close(taking)
    if printed < least:
        raise SystemExit(f"{command} printed {printed} bytes and ended with {status}")
    return took


class Hooked:
    """A home with installed hooks and a shared memory folder."""

    def __init__(self, base: Path, environment: dict[str, str]) -> None:
        self.environment = environment
        home = base / "home"
        place = "from memctl.hooks import files as f; f.place(); print(f.hook_file().decode())"
        done = subprocess.run([PYTHON, "-c", place], env=environment, capture_output=True, check=True)
        self.hook_file = done.stdout.decode().strip()
        (home / ".config" / "memd").mkdir(parents=True)
        (home / ".config" / "memd" / "memory.jsonc").write_text('{"shared_dir": true}')
        folder = home / ".agents" / "memory"
        folder.mkdir(parents=True)
        lines = []
        for number in range(TOPICS):
            (folder / f"topic-{number}.md").write_text("what was learnt\n")
            lines.append(f"- [topic {number}](topic-{number}.md) - what was learnt about it some time ago\n")
        (folder / "MEMORY.md").write_text("".join(lines))
        (home / "app").mkdir()
        transcript = home / ".claude" / "projects" / "-app" / "7c1f2a0e.jsonl"
        payload = {"session_id": "7c1f2a0e", "transcript_path": str(transcript), "cwd": str(home / "app")}
        self.stdin = json.dumps({**payload, "hook_event_name": "", "x": "y" * 1800}).encode()

    def fire(self, event: str, least: int = 0) -> Callable[[], float]:
        """One call of the command that is installed for an event of Claude Code."""
        hooks = adapters()["claude"].hooks
        assert hooks is not None
        known = hooks.event(event)
        assert known is not None
        words = command_words("claude", known)
        command = [INTERPRETER, "-I", "-S", self.hook_file, *words]
        return lambda: call_ms(command, self.environment, self.stdin, least)

    def nothing(self) -> float:
        return call_ms(PASS, self.environment, self.stdin)

    def peer(self) -> Callable[[], float] | None:
        program = peers.program(peers.AGENT_MEMORY_GIT, "mem")
        if not program:
            return None
        command = [program, "hook", "--tool", "claude-code", "session-start"]
        environment = {name: self.environment[name] for name in ("HOME", "PATH", "LANG")}
        return lambda: call_ms(command, environment, self.stdin)


def c_client() -> str:
    """The least that can be the client of a hook, compiled once; empty where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    name = hashlib.sha256(C_CLIENT.encode()).hexdigest()[:12]
    path = corpus.cache() / f"client-{name}"
    if not path.exists() and compiler:
        path.parent.mkdir(parents=True, exist_ok=True)
        source = path.with_suffix(".c")
        source.write_text(C_CLIENT)
        done = subprocess.run(
            [compiler, "-O2", "-w", "-o", str(path), str(source)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"  the C client is left out: {done.stderr.strip()[:200]}")
    elif not path.exists():
        print("  the C client is left out: there is no compiler")
    return str(path) if path.exists() else ""


def _beside(what: str, ours: Sequence[float], floor: Sequence[float]) -> list[Row]:
    return [Row(what, ours, floor, "ms", 1.25), Row(what, ours, floor, "ms", 1.5, 0.95)]


def hook_rows() -> list[Row]:
    """At rest, and without a daemon."""
    with sandbox() as (base, environment):
        made = Hooked(base, environment)
        measures = [made.nothing, made.fire("Stop"), made.fire("SessionStart", 1000)]
        names = []
        if client := c_client():
            names.append("c")
            command = (client, str(base / "run" / "memd" / "memd.sock"), str(base / "home" / "app"))
            measures.append(lambda: call_ms(command, environment, made.stdin, 5))
        theirs = made.peer()
        if theirs is not None:
            names.append("peer")
            measures.append(theirs)
        with daemon(environment) as child:
            wait_for_rest(child.pid, environment)
            floor, stop, start, *others = in_turn(HOOK_ROUNDS, *measures)
        beside = dict(zip(names, others, strict=True))
        bare, absent = in_turn(HOOK_ROUNDS // 4, made.nothing, made.fire("Stop"))
    rows = [
        *_beside("a Stop hook / python -I -S -c pass", stop, floor),
        *_beside("a start hook / python -I -S -c pass", start, floor),
        Row("a Stop hook without a daemon / pass", absent, bare, "ms", 1.4),
    ]
    if "c" in beside:
        rows.append(Row("a Stop hook / the same from a C program (for scale)", stop, beside["c"], "ms", 20.0))
    if "peer" in beside:
        rows.append(Row("a start hook / agent-memory-git's", start, beside["peer"], "ms", 0.30))
    return rows


def busy_hook_rows() -> list[Row]:
    """While a corpus is imported."""
    folder = corpus.kept(Profile(LOAD_MB, LOAD_MB * 4))
    with sandbox() as (base, environment):
        stage(base, folder)
        made = Hooked(base, environment)
        with daemon(environment) as child:
            wait_for_rest(child.pid, environment)
            show(base)
            while not _has_begun(base):
                time.sleep(0.01)
            measures = (made.nothing, made.fire("Stop"), made.fire("SessionStart", 1000))
            floor, stop, start = in_turn(HOOK_ROUNDS, *measures)
    return [
        *_beside("a Stop hook / python -I -S -c pass", stop, floor),
        *_beside("a start hook / python -I -S -c pass", start, floor),
    ]


def main() -> int:
    missed = section("an agent's hooks", hook_rows())
    missed += section(f"the same while {LOAD_MB} MB are imported", busy_hook_rows())
    missed += section(f"requests while {LOAD_MB} MB are imported", request_rows())
    return missed + section("the writer's lane during a back-fill", lane_rows())


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
