"""Cold import of a corpus by the daemon and its worker, beside a bare pipeline and beside other programs.

What is counted as ours: processor time of daemon and worker, from the moment the stores appear in the home of
a daemon that rests until `memctl import --wait` returns. What a resident program pays once, at its start, and
what it puts off until nothing comes (sealing, merging the index) is shown below the table.

    MEMD_BENCH_IMPORT   megabytes of the corpora, 50,500
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
import corpus
import peers
from corpus import Profile
from measure import PYTHON, SIX, Row, at, cpu_s, daemon, family, in_turn, memctl, pss_mib, sandbox, section

SIZES = tuple(int(size) for size in os.environ.get("MEMD_BENCH_IMPORT", "50,500").split(","))
ROUNDS = int(os.environ.get("MEMD_BENCH_ROUNDS", "5"))  # a corpus above 50 MB is imported once
FLOOR = Path(__file__).with_name("floor.py")
QUIET_S = 6.0  # without work, after which nothing is put off any more
SAMPLE_S = 0.1
RESTING_S = 0.01  # of processor time in three tenths of a second: what a daemon that rests needs at most


class Cost(NamedTuple):
    cpu_s: float
    wall_s: float


class Imported(NamedTuple):
    """One import by memd: until the wait returned, until nothing was left to tidy, and what is left after."""

    cost: Cost
    later_cpu_s: float
    peak_mib: float
    idle_mib: float
    text_mb: float
    disk_mb: float


def home_of(base: Path) -> Path:
    return base / "home"


def ledger(base: Path) -> Path:
    return home_of(base) / ".local" / "share" / "memd" / "ledger"


def without_re2(base: Path, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a machine on which google-re2 is not installed."""
    folder = base / "hidden"
    folder.mkdir(exist_ok=True)
    (folder / "re2.py").write_text("raise ImportError\n")
    return {**environment, "PYTHONPATH": f"{folder}{os.pathsep}{environment['PYTHONPATH']}"}


@contextmanager
def sampled(pid: int) -> Iterator[list[float]]:
    """Summed PSS of a process and all below it, every SAMPLE_S."""
    samples: list[float] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(SAMPLE_S):
            try:
                samples.append(pss_mib(family(pid)))
            except (FileNotFoundError, ProcessLookupError):
                continue  # one of them just ended

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def stage(base: Path, folder: Path) -> None:
    """A copy of the corpus beside the home, of links where the file system allows it."""
    for store in (".claude", ".codex"):
        if (folder / store).is_dir():
            shutil.copytree(folder / store, base / "staged" / store, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def show(base: Path) -> None:
    """Let the staged corpus appear in the home."""
    for store in (base / "staged").iterdir():
        store.rename(home_of(base) / store.name)


def spent(pid: int) -> float:
    """Processor seconds of the daemon and of workers, also of those that ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / ticks
    return cpu_s(family(pid)) + ended


def our_import(folder: Path, *, has_re2: bool = True, watch_memory: bool = False) -> Imported:
    with sandbox() as (base, environment):
        if not has_re2:
            environment = without_re2(base, environment)
        stage(base, folder)
        with daemon(environment) as child:
            wait_for_rest(child.pid, environment)
            before, began = spent(child.pid), time.perf_counter()
            with sampled(child.pid) if watch_memory else no_samples() as samples:
                show(base)
                if memctl(environment, "import", "--wait") != 0:
                    raise SystemExit("the import failed")
                cost = Cost(spent(child.pid) - before, time.perf_counter() - began)
            wait_until_sealed(base)
            if watch_memory:
                wait_for_quiet(child.pid)
            later = spent(child.pid) - before - cost.cpu_s
            idle = pss_mib(family(child.pid))
        disk = sum(path.stat().st_size for path in ledger(base).rglob("*") if path.is_file())
        return Imported(cost, later, max(samples, default=0.0), idle, text_mb(base), disk / 1e6)


@contextmanager
def no_samples() -> Iterator[list[float]]:
    yield []


def wait_for_rest(pid: int, environment: dict[str, str]) -> None:
    """The ledger open, the worker begun, and nobody at work."""
    if memctl(environment, "import", "--wait") != 0:
        raise SystemExit("the daemon does not import")
    before = -1.0
    while (now := spent(pid)) > before + RESTING_S:
        before = now
        time.sleep(0.3)


def wait_until_sealed(base: Path) -> None:
    """Until no more than one segment of each harness is left unsealed."""
    connection = apsw.Connection(str(ledger(base) / "ledger.sqlite3"), flags=apsw.SQLITE_OPEN_READONLY)
    while connection.execute("select count(*) from segments where state = 'closed'").get:
        time.sleep(0.1)
    connection.close()


def wait_for_quiet(pid: int) -> None:
    """Until nothing is put off any more: the index merged, memory given back."""
    before = -1.0
    while (now := spent(pid)) > before + 0.05:
        before = now
        time.sleep(QUIET_S)


def text_mb(base: Path) -> float:
    connection = apsw.Connection(str(ledger(base) / "ledger.sqlite3"), flags=apsw.SQLITE_OPEN_READONLY)
    size: int = connection.execute("select sum(octet_length(content)) from events").get or 0
    connection.close()
    return size / 1e6


def floor_import(folder: Path, gate: str) -> Cost:
    with sandbox() as (base, environment):
        command = [PYTHON, str(FLOOR), str(folder), str(base / "floor.db"), "--gate", gate]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        told = json.loads(done.stdout)
        return Cost(told["cpu_s"], told["wall_s"])


def peer_import(folder: Path, command: list[str]) -> Cost:
    """A whole run of a peer over the corpus, in a home that knows nothing of it."""
    with sandbox() as (base, _environment):
        environment = peers.home(base, folder, "peer")
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, env=environment, cwd=environment["HOME"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Cost(cpu, time.perf_counter() - began)


def claude_part(folder: Path) -> Path:
    """The same corpus without Codex."""
    part = folder.with_name(folder.name + "-claude")
    part.mkdir(exist_ok=True)
    if not (part / ".claude").exists():
        shutil.copytree(folder / ".claude", part / ".claude", copy_function=_link)
    return part


def bare_imports_mib() -> float:
    with sandbox() as (_base, environment):
        code = f"{SIX}\nimport time\nprint(flush=True)\ntime.sleep(600)"
        child = subprocess.Popen([PYTHON, "-c", code], env=environment, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        memory = pss_mib([child.pid])
        child.kill()
        child.communicate()
    return memory


class Bench:
    """One corpus, imported by everybody in turn."""

    def __init__(self, megabytes: int) -> None:
        self.megabytes = megabytes
        self.rounds = ROUNDS if megabytes <= 50 else 1
        self.folder = corpus.kept(Profile(megabytes, megabytes * 4))
        self.claude = claude_part(self.folder)
        self.kept: list[Imported] = []

    def rows(self) -> list[Row]:
        rows = self._beside_all()
        rows += self._beside_cc_search()
        return rows + self._at_rest()

    def _ours(self, folder: Path, *, has_re2: bool = True) -> Cost:
        made = our_import(folder, has_re2=has_re2)
        if has_re2 and folder == self.folder:
            self.kept.append(made)
        return made.cost

    def _in_turn(self, *measures: Callable[[], Cost]) -> list[list[Cost]]:
        if self.rounds == 1:
            return [[measure()] for measure in measures]
        found: list[list[Cost]] = [[] for _ in measures]

        def kept(number: int) -> Callable[[], float]:
            def measure() -> float:
                found[number].append(measures[number]())
                return 0.0

            return measure

        in_turn(self.rounds, *(kept(number) for number in range(len(measures))))
        return [costs[1:] for costs in found]

    def _beside_all(self) -> list[Row]:
        """Ours, the floor and the peer in turn; ours and the floor also as if google-re2 were not there."""
        program = peers.program(peers.AGENTSVIEW, "agentsview")
        measures: list[Callable[[], Cost]] = [
            lambda: self._ours(self.folder),
            lambda: floor_import(self.folder, "re2"),
            lambda: self._ours(self.folder, has_re2=False),
            lambda: floor_import(self.folder, "stdlib"),
        ]
        if program:
            measures.append(lambda: peer_import(self.folder, [peers.native(program), "sync"]))
        ours, floor, plain, plain_floor, *others = self._in_turn(*measures)
        later = at([one.later_cpu_s for one in self.kept], 0.5)
        print(f"  sealing that follows the {self.megabytes} MB: {later:.2f} s of processor time")
        rows = [
            Row("CPU / floor, both with re2", cpu(ours), cpu(floor), "s", 1.5),
            Row("wall / floor (for scale)", wall(ours), wall(floor), "s", 9.0),
            Row("CPU / floor, both without re2", cpu(plain), cpu(plain_floor), "s", 1.5),
        ]
        for theirs in others:
            rows += [
                Row("CPU / agentsview sync, with re2", cpu(ours), cpu(theirs), "s", 0.25),
                Row("CPU / agentsview sync, without re2 (shown)", cpu(plain), cpu(theirs), "s", 9.0),
                Row("wall / agentsview sync (for scale)", wall(ours), wall(theirs), "s", 9.0),
            ]
        return rows

    def _beside_cc_search(self) -> list[Row]:
        program = peers.program(peers.CC_SEARCH, "cc-search")
        if not program:
            return []
        ours, theirs = self._in_turn(
            lambda: self._ours(self.claude), lambda: peer_import(self.claude, [program, "--reindex"])
        )
        target = 1.0 if self.megabytes <= 50 else 1.2
        return [
            Row("CPU / cc-search, Claude part", cpu(ours), cpu(theirs), "s", target),
            Row("wall / cc-search, Claude part (for scale)", wall(ours), wall(theirs), "s", 9.0),
        ]

    def _at_rest(self) -> list[Row]:
        """From an import of its own: looking at memory takes time, and so does coming to rest."""
        last = our_import(self.folder, watch_memory=True)
        print(f"  sealing and merging that follow: {last.later_cpu_s:.2f} s of processor time")
        rows = [Row("database and segments / visible text", [last.disk_mb], [last.text_mb], "MB", 2.5)]
        if self.megabytes >= 500:
            idle = [1.5 * bare_imports_mib() + 20]
            rows += [
                Row("peak memory (PSS) / the 200 MiB allowed", [last.peak_mib], [200.0], "MiB", 1.0),
                Row("idle memory (PSS) / 1.5 x imports + 20 MiB", [last.idle_mib], idle, "MiB", 1.0),
            ]
        return rows


def cpu(costs: list[Cost]) -> list[float]:
    return [cost.cpu_s for cost in costs]


def wall(costs: list[Cost]) -> list[float]:
    return [cost.wall_s for cost in costs]


def main() -> int:
    missed = 0
    for megabytes in SIZES:
        bench = Bench(megabytes)
        missed += section(f"import, {megabytes} MB", bench.rows())
    return missed


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
