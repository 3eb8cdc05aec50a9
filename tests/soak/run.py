"""A working day, played fast: agents write, hooks call, runs begin and end, memd is killed and started again.

    python tests/soak/run.py [--minutes 60] [--events 1000000] [--home FOLDER] [--samples FILE]

The day has 24 hours of `minutes` / 24 each. Nights and noon are quiet; at seven, eight and ten memd ends
(twice by kill -9, once as it is asked to) and starts again, each time with a run in the middle of its work.
Printed are a line for each hour and then what was judged: whether memory, descriptors, threads and disk stay
flat from noon on, whether the log turned over, whether all hooks and runs ended well, and whether each thing
that was said is in the ledger once. Exit status 1 when anything is not so.

`--minutes 10` plays 170,000 events and finds a leak of half a megabyte a minute: what `.ci/run` does. Among
the tests is a form of MEMD_SOAK_MINUTES, usually 2, of fewer events.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "daemon"), str(ROOT / "ctl"), str(HERE.parent)]

import apsw  # noqa: E402

from memd.harness import registry  # noqa: E402
from soak.agents import Agent, hook_payload  # noqa: E402
from soak.measure import Judgement, Sample, bytes_below, judged, taken  # noqa: E402
from support_daemon import eventually  # noqa: E402
from support_desk import Desk  # noqa: E402
from support_hooks import command, placed  # noqa: E402

HOURS = (0, 0, 0, 0, 0, 0, 1, 3, 6, 9, 9, 8, 2, 6, 9, 9, 8, 6, 3, 2, 2, 1, 0, 0)
"""How busy each hour is."""
DEATHS = {7: signal.SIGKILL, 8: signal.SIGTERM, 10: signal.SIGKILL}
TICK_S = 0.25
HOOK_EVERY_S = 0.7
RUN_EVERY_S = 4.0
LOOK_EVERY_S = 3.0
SAMPLES_AN_HOUR = 10
LOG_BYTES, LOG_KEEP = 10_000, 2
END_S = 1800.0  # for the rest of an import and a check of all that was said


@dataclass
class Counts:
    hooks: list[float] = field(default_factory=list)
    runs: int = 0
    lifetimes: int = 0
    complaints: list[str] = field(default_factory=list)


class Day:
    def __init__(self, home: Path, minutes: float, events: int, samples: Path | None = None) -> None:
        self.desk = Desk(home)
        self.home = self.desk.home
        self.minutes, self.events = minutes, events
        self.hour_s = minutes * 60 / 24
        self.agents = [Agent(name, self.home.path, n) for n, name in enumerate(("claude", "codex", "pi"))]
        self.samples: list[Sample] = []
        self._samples_file = samples
        self._log_file, self._turns = 0, 0
        self.counts = Counts()
        self._alive = threading.Lock()  # memctl starts a memd that is away: not while one is being started
        self._over = threading.Event()
        config = self.home.path / ".config" / "memd"
        config.mkdir(parents=True, exist_ok=True)
        log = f'[log]\nlevel = "debug"\nmax_bytes = {LOG_BYTES}\nkeep = {LOG_KEEP}\n'
        (config / "config.toml").write_text(log)
        self.hook_file = placed(self.home.path / ".local" / "share")
        self.child = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        """A memd that answers. What it says on standard error is read: a pipe that is full would hold it."""
        child = self.home.start()
        assert child.stderr is not None
        threading.Thread(target=_drain, args=(child.stderr,), daemon=True).start()
        return child

    # ------------------------------------------------------------------------------ all that happens

    def play(self) -> list[Judgement]:
        began = time.monotonic()
        threads = [threading.Thread(target=self._forever, args=(work,)) for work in (self._hooks, self._runs)]
        for thread in threads:
            thread.start()
        try:
            for hour, weight in enumerate(HOURS):
                if hour in DEATHS:
                    self._die(DEATHS[hour])
                self._hour(began, hour, weight)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        return self._end()

    def _hour(self, began: float, hour: int, weight: int) -> None:
        until = self.events * sum(HOURS[: hour + 1]) // sum(HOURS)
        wanted = until - self.events * sum(HOURS[:hour]) // sum(HOURS)
        written = 0
        start, end = began + hour * self.hour_s, began + (hour + 1) * self.hour_s
        next_sample = start
        while (now := time.monotonic()) < end:
            due = int(wanted * min(1.0, (now - start + TICK_S) / self.hour_s)) - written
            for n, agent in enumerate(self.agents):
                agent.write((due + n) // len(self.agents))
            written += due
            if now >= next_sample:
                self._sample(now - began)
                next_sample += self.hour_s / SAMPLES_AN_HOUR
            self._over.wait(max(0.0, min(TICK_S, end - time.monotonic())))
        for agent in self.agents[: 1 if wanted > written else 0]:
            agent.write(wanted - written)
        self._sample(time.monotonic() - began)
        last = self.samples[-1]
        ledger, log = last.ledger_bytes / (1 << 20), last.log_bytes / (1 << 20)
        print(
            f"{hour:02}:00 {last.events:>9,} said  {last.pss_kb / 1024:6.1f} MiB "
            f"{last.descriptors:4} descriptors {last.threads:3} threads "
            f"{ledger:6.1f} + {log:4.1f} MiB ledger and log "
            f"{last.other_bytes / 1024:6.0f} KiB else",
            flush=True,
        )

    def _forever(self, work: Callable[[], Iterator[float]]) -> None:
        try:
            for pause in work():
                if self._over.wait(pause):
                    return
        except Exception as reason:  # noqa: BLE001 - it is told at the end
            self.counts.complaints.append(f"{work.__name__}: {type(reason).__name__}: {reason}")

    def _hooks(self) -> Iterator[float]:
        """Hooks of sessions that nobody launched, also while memd is away."""
        rng = random.Random("hooks")
        while True:
            harness, name = rng.choice(
                (("claude", "SessionStart"), ("claude", "Stop"), ("codex", "UserPromptSubmit"))
            )
            hooks = registry.resolve(harness).hooks
            event = hooks.event(name) if hooks is not None else None
            assert event is not None
            session = f"0b7c3d1e-0000-4000-8000-{rng.randrange(200):012d}"
            before = time.monotonic()
            done = subprocess.run(
                command(self.hook_file, harness, event),
                input=hook_payload(session),
                env=self.home.environment,
                capture_output=True,
                check=False,
            )
            self.counts.hooks.append(time.monotonic() - before)
            if (done.returncode, done.stderr) != (0, b""):
                self.counts.complaints.append(f"hook {harness} {name}: {done.returncode} {done.stderr!r}")
            yield HOOK_EVERY_S

    def _runs(self) -> Iterator[float]:
        """Runs of three agents under one workstream, and somebody who looks now and then."""
        next_look = 0.0
        while True:
            for harness in ("claude", "codex", "pi"):
                with self._alive:
                    self._run(harness, "say:soak_run_here say:and_here")
                    if time.monotonic() >= next_look:
                        for words in (
                            ("status", "--json"),
                            ("search", "lexer"),
                            ("sessions",),
                            ("workstreams",),
                        ):
                            self._memctl(*words)
                        next_look = time.monotonic() + LOOK_EVERY_S
                yield RUN_EVERY_S

    def _run(self, harness: str, do: str) -> None:
        done = self.desk.run(harness, do=do)
        self.counts.runs += 1
        if done.returncode != 0:
            self.counts.complaints.append(f"run {harness}: {done.returncode} {done.stderr[-300:]}")
        self.desk.fakes.clear()

    def _memctl(self, *words: str) -> None:
        done = self.home.memctl(*words, cwd=self.desk.checkout)
        if done.returncode not in (0, 1):
            self.counts.complaints.append(f"memctl {words[0]}: {done.returncode} {done.stderr[-300:]}")

    def _die(self, how: signal.Signals) -> None:
        """memd ends and comes back, in the middle of a run."""
        with self._alive:
            running = self.desk.begin("claude", do="say:soak_before wait say:soak_after")
            eventually(lambda: self.desk.fakes.starts() or running.poll() is not None)
            self.child.send_signal(how)
            self.child.wait()
            self._over.wait(1.0)  # somebody's hooks meet nobody meanwhile
            self.child = self._start()
            self.counts.lifetimes += 1
            self.desk.fakes.go()
            said = running.communicate(timeout=60)
            if running.returncode != 0:
                self.counts.complaints.append(
                    f"a run over {how.name}: {running.returncode} {said[1][-300:]!r}"
                )
            self.desk.fakes.clear()

    # ---------------------------------------------------------------------------------- the judgement

    def _folders(self) -> tuple[Path, Path]:
        return self.home.path / ".local" / "share" / "memd", self.home.path / ".local" / "state" / "memd"

    def _sample(self, at_s: float) -> None:
        memory, alone, descriptors, threads = taken(self.child.pid)
        data, state = self._folders()
        now_file = _file_number(state / "memd.log")
        self._turns += self._log_file not in (0, now_file)
        self._log_file = now_file or self._log_file
        log = _size(data / "ledger" / "ledger.sqlite3-wal")
        sample = Sample(
            at_s=at_s,
            life=self.counts.lifetimes,
            events=sum(agent.events for agent in self.agents),
            pss_kb=memory,
            daemon_kb=alone,
            descriptors=descriptors,
            threads=threads,
            database_bytes=_pages_bytes(data / "ledger" / "ledger.sqlite3"),
            segments_bytes=bytes_below(data / "ledger" / "segments"),
            log_bytes=log,
            other_bytes=bytes_below(data, ("ledger",)) + bytes_below(state),
            turns=self._turns,
        )
        self.samples.append(sample)
        if self._samples_file is not None:
            with self._samples_file.open("a") as file:
                file.write(json.dumps(asdict(sample)) + "\n")

    def _end(self) -> list[Judgement]:
        done = self.home.memctl("import", "--wait", timeout_s=END_S)
        if done.returncode != 0:
            self.counts.complaints.append(f"import --wait: {done.stderr[-300:]}")
        checked = self.home.memctl("ledger", "check", timeout_s=END_S)
        data, state = self._folders()
        logs = sorted(path.stat().st_size for path in state.rglob("*.log*"))
        notes = len(list((state / "spool").iterdir())) if (state / "spool").is_dir() else 0
        self.home.stop(self.child)
        said = sum(agent.events for agent in self.agents)
        kept, different = _kept(data / "ledger" / "ledger.sqlite3")
        hooks = sorted(self.counts.hooks)
        slow = hooks[int(len(hooks) * 0.95)] if hooks else 0.0
        return [
            *judged(self.samples, self.minutes / 60),
            Judgement(
                "log",
                f"{len(logs)} files, {sum(logs)} bytes, seen to begin anew {self._turns} times",
                2 <= len(logs) <= LOG_KEEP + 1 and sum(logs) <= (LOG_KEEP + 1) * (LOG_BYTES + 4096),
            ),
            Judgement(
                "what was said",
                f"{said:,} said, {kept:,} kept, {different:,} of them different",
                said == kept == different,
            ),
            Judgement(
                "ledger check",
                checked.stdout.strip().splitlines()[-1][:80] if checked.stdout else checked.stderr,
                checked.returncode == 0,
            ),
            Judgement("spool", f"{notes} notes left", notes == 0),
            Judgement(
                "hooks",
                f"{len(hooks)} calls, median {statistics.median(hooks or [0]) * 1000:.0f} ms,"
                f" p95 {slow * 1000:.0f} ms",
                bool(hooks),
            ),
            Judgement(
                "runs",
                f"{self.counts.runs} ended, {self.counts.lifetimes} over a restart",
                self.counts.runs > 0,
            ),
            Judgement(
                "complaints", "; ".join(self.counts.complaints[:5]) or "none", not self.counts.complaints
            ),
        ]

    def close(self) -> None:
        self._over.set()
        self.desk.close()


def _pages_bytes(database: Path) -> int:
    """What the database comes to, whether it stands in its file already or still in the log."""
    try:
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.CantOpenError:
        return 0
    connection.set_busy_timeout(5000)
    try:
        pages, free, size = (
            connection.pragma(word) for word in ("page_count", "freelist_count", "page_size")
        )
    finally:
        connection.close()
    return int((pages - free) * size)  # type: ignore[operator]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _file_number(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _drain(pipe: IO[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):  # it was closed at the end
        while pipe.read1(65536):  # type: ignore[attr-defined]
            pass


def _kept(database: Path) -> tuple[int, int]:
    """Places of sessions in which stands what an agent of ours said, and how many different things."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        ours = "content glob 'soak-*-[0-9]* *'"
        places = connection.execute(
            f"select count(*) from session_events s join events e on e.n = s.event where e.{ours}"
        ).get
        return places, connection.execute(f"select count(distinct content) from events where {ours}").get
    finally:
        connection.close()


def play(home: Path, minutes: float, events: int, samples: Path | None = None) -> list[Judgement]:
    """Plays the day and prints it."""
    day = Day(home, minutes, events, samples)
    print(
        f"a day in {minutes:g} minutes, {events:,} events, load {os.getloadavg()[0]:.1f} at its begin",
        flush=True,
    )
    try:
        found = day.play()
    finally:
        day.close()
    print()
    for one in found:
        print(f"{'ok ' if one.is_good else 'NO '} {one.what:20} {one.figures}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} at its end", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--events", type=int, default=0, help="usually as many as make a million in an hour")
    parser.add_argument("--home", type=Path, help="a folder that stays; usually a temporary one")
    parser.add_argument("--samples", type=Path, help="a file to which each look at memd is added, as JSON")
    words = parser.parse_args()
    with contextlib.ExitStack() as stack:
        home = words.home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memd-soak-")))
        found = play(home, words.minutes, words.events or int(1_000_000 * words.minutes / 60), words.samples)
    return 0 if all(one.is_good for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
