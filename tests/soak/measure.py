"""What memd takes: memory, descriptors, threads, disk; and whether that stays flat."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_LOG_BYTES = (
    128 << 20
)  # of the write-ahead log: it is folded back when there is time, and at this size at last


@dataclass(frozen=True)
class Sample:
    """at_s since the day began; life: which daemon; pss_kb over all of memd's processes, daemon_kb of the
    first alone; database_bytes: of its pages, wherever they stand; log_bytes: of its write-ahead log; turns:
    how often memd's log was seen to begin anew."""

    at_s: float
    life: int
    events: int
    pss_kb: int
    daemon_kb: int
    descriptors: int
    threads: int
    database_bytes: int
    segments_bytes: int
    log_bytes: int
    other_bytes: int
    turns: int = 0

    @property
    def ledger_bytes(self) -> int:
        return self.database_bytes + self.segments_bytes


@dataclass(frozen=True)
class Judgement:
    what: str
    figures: str
    is_good: bool


def processes(pid: int) -> list[int]:
    """A process and all that came of it."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def taken(pid: int) -> tuple[int, int, int, int]:
    """PSS in KiB of a daemon with its worker and of the daemon alone, descriptors and threads of both."""
    memory = alone = descriptors = threads = 0
    for one in processes(pid):
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            descriptors += len(os.listdir(f"/proc/{one}/fd"))
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue  # it ended just now
        pss = int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")))
        memory += pss
        alone += pss if one == pid else 0
        threads += int(next(line.split()[1] for line in status.splitlines() if line.startswith("Threads:")))
    return memory, alone, descriptors, threads


def bytes_below(folder: Path, without: tuple[str, ...] = ()) -> int:
    """Bytes of files on the disk."""
    total = 0
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in without]
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total


def slope(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """Per hour: the middle of the slopes between any two that lie at least a quarter of the time apart."""
    apart = (samples[-1].at_s - samples[0].at_s) / 4
    slopes = [
        (of(late) - of(early)) / (late.at_s - early.at_s)
        for n, early in enumerate(samples)
        for late in samples[n + 1 :]
        if late.at_s - early.at_s >= apart
    ]
    return statistics.median(slopes) * 3600 if slopes else 0.0


def judged(samples: Sequence[Sample], hours: float) -> list[Judgement]:
    """Of the longest life, its first third left out: caches are still filling then.

    hours  how long the day took: what may grow is said per hour, and no less than what one look differs from
           the next by is asked of a short day
    """
    lives = {sample.life for sample in samples}
    longest = max(lives, key=lambda life: sum(sample.life == life for sample in samples))
    life = [sample for sample in samples if sample.life == longest]
    steady = life[len(life) // 3 :]
    first, last = steady[: max(2, len(steady) // 3)], steady[-max(2, len(steady) // 3) :]

    def middle(part: Sequence[Sample], of: Callable[[Sample], float]) -> float:
        return statistics.median(of(sample) for sample in part)

    allowed = max(1.0 * hours, 6.0)

    def grows(what: str, of: Callable[[Sample], float], most: float, unit: str = "") -> Judgement:
        early, late = middle(first, of), middle(last, of)
        figures = f"{early:.1f} -> {late:.1f}{unit} ({slope(steady, of):+.1f}{unit} an hour)"
        return Judgement(what, f"{figures}; may grow by {most:.0f}{unit}", late - early <= most)

    def an_event(what: str, of: Callable[[Sample], float]) -> Judgement:
        per_event = [of(sample) / sample.events for sample in (first[0], last[-1]) if sample.events]
        return Judgement(
            what,
            " -> ".join(f"{one:.0f}" for one in per_event) + " bytes an event; may grow by a quarter",
            len(per_event) < 2 or per_event[1] <= per_event[0] * 1.25,
        )

    return [
        grows("memory", lambda s: s.pss_kb / 1024, allowed, " MiB"),
        grows("of the daemon", lambda s: s.daemon_kb / 1024, allowed, " MiB"),
        grows("of its worker", lambda s: (s.pss_kb - s.daemon_kb) / 1024, allowed, " MiB"),
        grows("descriptors", lambda s: s.descriptors, 4),
        grows("threads", lambda s: s.threads, 4),
        an_event("database", lambda s: s.database_bytes),
        an_event("segments", lambda s: s.segments_bytes),
        Judgement(
            "database's log",
            f"at most {max(sample.log_bytes for sample in samples) / (1 << 20):.1f} MiB",
            max(sample.log_bytes for sample in samples) <= MAX_LOG_BYTES,
        ),
        grows("log, state and spool", lambda s: s.other_bytes / 1024, 1024, " KiB"),
    ]
