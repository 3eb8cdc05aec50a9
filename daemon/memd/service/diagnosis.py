"""What the running daemon tells `memctl doctor`: each finding with its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memctl.paths import shown
from memd.protocol import Agent, Entry, Finding

KEPT_BYTES = 1_000_000  # of old notes in one place, from which on a note is due
WATCH_SHARE = 0.5  # of the user's watch limit, from which on a note is due


def findings(
    *,
    agents: Sequence[Agent],
    entries: Sequence[Entry],
    kept: Sequence[tuple[bytes, int, int]],
    config_error: str,
    memory_trouble: str,
    watch_state: str,
    watch_trouble: str,
    watched: int,
    watch_limits: Mapping[str, int],
    overdue_s: float,
) -> tuple[Finding, ...]:
    out: list[Finding] = []
    if config_error:
        out.append(
            Finding(
                level="problem",
                subject="configuration",
                message=config_error,
                remedy="Correct the file, then run `memctl reload`; until then the last good settings hold.",
            )
        )
    else:
        out.append(Finding(level="ok", subject="configuration", message="read without complaint"))
    if memory_trouble:
        out.append(
            Finding(
                level="problem",
                subject="healing",
                message=memory_trouble,
                remedy="Remove the cause; memd tries again every few seconds.",
            )
        )
    if overdue_s:
        out.append(
            Finding(
                level="problem",
                subject="healing",
                message=f"nothing was looked at for {overdue_s:.0f} s",
                remedy="Restart the daemon: `memctl down`, then `memctl up`.",
            )
        )
    out.append(_watching(watch_state, watch_trouble, watched, watch_limits))
    if not agents:
        out.append(
            Finding(
                level="note",
                subject="agents",
                message="no agent home is enrolled",
                remedy="Run `memctl enroll PATH` with the directory your agent lives in.",
            )
        )
    for agent in agents:
        out += _of_agent(agent, [entry for entry in entries if entry.agent == agent.home])
    out += [_kept(*one) for one in kept if one[2] >= KEPT_BYTES]
    return tuple(out)


def unread(rows: Sequence[tuple[str, str, str]], needing: int) -> Iterator[Finding]:
    """rows: path, reason and remedy of what cannot be read of the stores; needing: how many need a person"""
    named = [row for row in rows if row[2]]
    for path, reason, remedy in named:
        message = reason if path in reason else f"cannot read {path}: {reason}"
        yield Finding(level="warning", subject="sessions", message=message, remedy=remedy)
    if needing > len(named):
        more = f"{needing - len(named)} more files or folders cannot be read"
        yield Finding(level="warning", subject="sessions", message=more)


def _kept(path: bytes, files: int, size_bytes: int) -> Finding:
    """Old versions grow without end, because memd deletes nothing: people may."""
    return Finding(
        level="note",
        subject="kept",
        message=f"{shown(path)} holds {files} old notes, {size_bytes / 1e6:.1f} MB",
        remedy="Delete what you no longer want; memd does not need it.",
    )


def _watching(state: str, trouble: str, watched: int, limits: Mapping[str, int]) -> Finding:
    if state == "limited":
        return Finding(
            level="warning",
            subject="watching",
            message=f"no system events: {trouble}; looking every few seconds instead",
            remedy="Raise fs.inotify.max_user_watches (or max_user_instances) with sysctl.",
        )
    limit = limits.get("max_user_watches", 0)
    if limit and watched > limit * WATCH_SHARE:
        return Finding(
            level="note",
            subject="watching",
            message=f"{watched} folders watched of {limit} the system allows",
            remedy="Raise fs.inotify.max_user_watches with sysctl before it runs out.",
        )
    return Finding(
        level="ok", subject="watching", message=f"{watched} folder{'' if watched == 1 else 's'}, {state}"
    )


def _of_agent(agent: Agent, entries: Sequence[Entry]) -> Iterator[Finding]:
    name = shown(agent.home)
    clean = True
    for entry in entries:
        where = shown(entry.path)
        if entry.outcome in ("skipped", "failed"):
            clean = False
            yield Finding(
                level="warning" if entry.outcome == "skipped" else "problem",
                subject=name,
                message=f"{where}: {entry.outcome}: {entry.reason}",
                remedy=entry.remedy,
            )
        elif entry.reason:
            yield Finding(level="note", subject=name, message=f"{where}: {entry.reason}", remedy=entry.remedy)
        for left in entry.left_behind:
            clean = False
            yield Finding(
                level="warning",
                subject=name,
                message=f"left behind: {shown(left.path)}: {left.reason}",
                remedy=left.remedy,
            )
    if clean:
        logins = len(entries)
        yield Finding(
            level="ok" if logins else "note",
            subject=name,
            message=f"memory shared by {logins} login{'' if logins == 1 else 's'}",
            remedy="" if logins else "Start Claude Code once under each login.",
        )
