"""What `memctl status` says: one value with the facts, and the page people read, rendered here.

The daemon renders, so that the command needs nothing but a socket. Both forms come from the same value.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from memctl.paths import shown
from memd.ledger.store.workstreams import Run, Workstream
from memd.protocol import Agent, Entry
from memd.service import hook_view
from memd.service.hook_view import HookRows
from memd.service.ledger import LedgerState
from memd.service.page import Ink, age, count, filled, wrapped
from memd.service.topics import TopicsState


class WatchState(msgspec.Struct, frozen=True, kw_only=True):
    state: str  # watching, polling, limited, starting
    folders: int
    trouble: str = ""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run that goes on now. agent_pid: 0 while its program is not there, or not any more"""

    run_id: str
    harness: str
    workspace: str
    project: str
    workstream: str
    workstream_id: str
    launcher_pid: int
    agent_pid: int
    since: str
    phase: str  # prepared, planned, running, exited


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in one document; this is the JSON of `memctl status --json`, with paths as text."""

    health: str  # healthy, attention, degraded
    health_line: str
    version: str
    installed: str  # the client's package; differs: the daemon is older
    pid: int
    uptime_s: float
    socket: str
    clients: int
    served: int
    config: str
    config_error: str
    service: str  # socket activation, service manager, detached
    watch: WatchState
    watch_limits: dict[str, int]
    memory_trouble: str
    errors: tuple[tuple[str, str], ...]
    agents: tuple[dict[str, object], ...]
    runs: tuple[RunRow, ...]
    ledger: LedgerState
    topics: TopicsState
    hooks: HookRows


def run_rows(runs: Sequence[Run], workstreams: Mapping[str, Workstream]) -> tuple[RunRow, ...]:
    """workstreams: those of the runs, by id; a run whose workstream is gone is left out"""
    return tuple(
        RunRow(
            run_id=run.id,
            harness=run.harness,
            workspace=workstream.place.workspace,
            project=workstream.place.project,
            workstream=workstream.name,
            workstream_id=workstream.id,
            launcher_pid=run.launcher.pid,
            agent_pid=run.agent.pid if run.agent is not None and run.phase == "running" else 0,
            since=_utc(run.began_ms),
            phase=run.phase,
        )
        for run in runs
        if (workstream := workstreams.get(run.workstream)) is not None
    )


def agent_rows(agents: Sequence[Agent], entries: Sequence[Entry]) -> tuple[dict[str, object], ...]:
    """Agents with their logins as plain values for JSON."""
    rows: list[dict[str, object]] = []
    for agent in agents:
        logins = [entry_row(entry) for entry in entries if entry.agent == agent.home]
        rows.append(
            {
                "home": shown(agent.home),
                "owned": shown(agent.owned),
                "enrolled_at": _utc(agent.enrolled_at_ms),
                "logins": logins,
            }
        )
    return tuple(rows)


def entry_row(entry: Entry) -> dict[str, object]:
    return {
        "config_home": shown(entry.config_home),
        "path": shown(entry.path),
        "outcome": entry.outcome,
        "healed_at": _utc(entry.healed_at_ms) if entry.healed_at_ms else None,
        "reason": entry.reason,
        "remedy": entry.remedy,
        "set_aside": shown(entry.set_aside) if entry.set_aside else None,
        "counts": {
            "added": entry.added,
            "replaced": entry.replaced,
            "superseded": entry.superseded,
            "unchanged": entry.unchanged,
        },
        "left_behind": [
            {"path": shown(left.path), "reason": left.reason, "remedy": left.remedy}
            for left in entry.left_behind
        ],
    }


def judge(
    entries: Sequence[Entry],
    watch: WatchState,
    config_error: str,
    trouble: str,
    is_other: bool,
    topics: TopicsState,
    *,
    is_enrolled: bool = True,
    has_good_config: bool = True,
    unreadable: int = 0,
    worker_trouble: str = "",
    server_trouble: str = "",
) -> tuple[str, str]:
    """Health in a word and in a line, worst thing first."""
    if worker_trouble:
        return "degraded", f"nothing is imported: {worker_trouble}"
    if server_trouble:
        return "degraded", server_trouble
    if trouble:
        return "degraded", f"memory links are not being healed: {trouble}"
    failed = [entry for entry in entries if entry.outcome == "failed"]
    if failed:
        return "degraded", f"{count(len(failed), 'memory link')} could not be healed"
    if config_error:
        return "attention", (
            "the configuration is broken; the last good one is in use"
            if has_good_config
            else "the configuration is broken; nothing is healed or imported until it is corrected"
        )
    if topics.config_error:
        return "attention", "memory.jsonc is broken; nothing is written to memory until it is corrected"
    if topics.trouble:
        return "attention", f"memory topics: {topics.trouble}"
    skipped = [entry for entry in entries if entry.outcome == "skipped"]
    if skipped:
        return "attention", f"{count(len(skipped), 'login')} left alone, see below"
    left = sum(len(entry.left_behind) for entry in entries)
    if left:
        return "attention", f"{count(left, 'file')} left behind in old memory folders, see below"
    if unreadable:
        return "attention", f"{_unread(unreadable)}; `memctl doctor` says which and what to do"
    if topics.is_drifting:
        return (
            "attention",
            f"{topics.unlisted} topics are not in the memory index; run `memctl memory repair`",
        )
    if is_other:
        return "attention", "the daemon is of another version than the installed package; run `memctl up`"
    if watch.state == "limited":
        return "attention", f"no system events ({watch.trouble}); looking every few seconds instead"
    if not is_enrolled:
        return "healthy", "no agent enrolled yet: `memctl enroll PATH`"
    return "healthy", "everything is linked" if entries else "no login to link yet"


def lasting(rows: Sequence[tuple[str, str]], over: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The recent errors, without those of states that are over: what is mended asks nobody for anything."""
    return tuple(row for row in rows if row[1].partition(":")[0] not in over)


def to_json(report: Report) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def to_text(report: Report, *, now_ms: int, color: bool, width: int) -> str:
    """A page of at most `width` columns where lines can be broken; remedies on lines of their own.

    Moments are told by how long ago they were: that is the same in every time zone.
    """
    ink = Ink(color)
    shade = {"healthy": ink.green, "attention": ink.yellow}.get(report.health, ink.red)
    title = f"memd {report.version}  "
    said, *more = filled(f"{report.health}: {report.health_line}", width - len(title))
    out = [ink.bold(title.rstrip()) + "  " + shade(report.health) + said.removeprefix(report.health)]
    out += [" " * len(title) + line for line in more]
    if report.installed and report.installed != report.version:
        words = f"{report.installed} (the daemon runs {report.version}; `memctl up` restarts it)"
        out += wrapped(words, width, "  installed  ")
    words = f"pid {report.pid}, up {_duration(report.uptime_s)}, {report.service}"
    out += wrapped(words, width, "  daemon     ")
    out += wrapped(report.socket, width, "  socket     ")
    out += wrapped(report.config, width, "  config     ")
    if report.config_error:
        out += wrapped(report.config_error, width, "             ", ink.red)
    limit = report.watch_limits.get("max_user_watches")
    of = f" of {limit} allowed" if limit else ""
    words = f"{count(report.watch.folders, 'folder')}{of} ({report.watch.state})"
    out += wrapped(words, width, "  watching   ")
    out += _ledger_lines(report.ledger, width, ink)
    out += _topics_lines(report.topics, width, ink)
    out += _run_lines(report.runs, now_ms, width)
    for line, is_trouble in hook_view.lines(report.hooks, width):
        out.append(ink.yellow(line) if is_trouble else line)
    for stamp, words in report.errors:
        out += wrapped(f"{_ago(stamp, now_ms)}: {words}", width, "  error      ", ink.red)
    for agent in report.agents:
        out += ["", ink.bold(str(agent["home"])), f"  memory in  {agent['owned']}"]
        logins = agent["logins"]
        assert isinstance(logins, list)
        if not logins:
            out.append("  no login found yet (~/.claude* or CLAUDE_CONFIG_DIR)")
        longest = max((len(str(row["config_home"])) for row in logins), default=0)
        for row in logins:
            out += _login_lines(row, longest, now_ms, width, ink)
    return "\n".join(out) + "\n"


def _ledger_lines(ledger: LedgerState, width: int, ink: Ink) -> list[str]:
    size = f"{ledger.bytes / 1e6:.1f} MB"
    line = f"{count(ledger.events, 'event')} of {count(ledger.sessions, 'session')}, {size}"
    if ledger.state != "running":
        line = f"{ledger.state}; {line}" if ledger.events else ledger.state
    out = wrapped(line, width, "  ledger     ")
    if ledger.left_sources:
        left = f"{count(ledger.left_sources, 'file')} ({ledger.left_bytes / 1e6:.1f} MB) still to be read"
        out += wrapped(left, width, "             ")
    if ledger.waiting_batches:
        size = f"{count(ledger.waiting_batches, 'group')} ({ledger.waiting_bytes / 1e6:.1f} MB)"
        out += wrapped(
            f"{size} of what was read: waiting here for the ledger's server since {ledger.waiting_since}",
            width,
            "             ",
            ink.yellow,
        )
    if ledger.waiting_aside:
        aside = f"{count(ledger.waiting_aside, 'group')} that the server does not take are kept here"
        out += wrapped(aside, width, "             ", ink.red)
    if ledger.trouble:
        out += wrapped(ledger.trouble, width, "             ", ink.red)
    if ledger.unreadable_needing:
        words = f"{_unread(ledger.unreadable_needing)}: see `memctl doctor`"
        out += wrapped(words, width, "             ", ink.yellow)
    return out


def _unread(number: int) -> str:
    return f"{count(number, 'file')} or folder{'' if number == 1 else 's'} of sessions cannot be read"


def _run_lines(runs: Sequence[RunRow], now_ms: int, width: int) -> list[str]:
    out: list[str] = []
    for run in runs:
        who = f"pid {run.agent_pid}" if run.agent_pid else f"launcher pid {run.launcher_pid}, {run.phase}"
        where = f"{run.workspace}/{run.project}"
        began = f"began {_ago(run.since, now_ms)}"
        line = f"{run.harness} in workstream {run.workstream!r} of {where}, {who}, {began}"
        out += wrapped(line, width, "             " if out else "  running    ")
    return out


def _topics_lines(topics: TopicsState, width: int, ink: Ink) -> list[str]:
    kind = "shared" if topics.is_shared else "local"
    words = f"{count(topics.topics, 'topic')} ({kind}) in {topics.store}"
    out = wrapped(words, width, "  memory     ") if topics.store else []
    for words in (topics.config_error, topics.trouble):
        if words:
            out += wrapped(words, width, "             ", ink.red)
    if topics.is_drifting:
        words = f"{topics.unlisted} topics are not in its index; `memctl memory repair` lists them"
        out += wrapped(words, width, "             ", ink.yellow)
    return out


def _login_lines(row: dict[str, object], longest: int, now_ms: int, width: int, ink: Ink) -> list[str]:
    outcome = str(row["outcome"])
    shade = {"linked": ink.green, "migrated": ink.green, "skipped": ink.yellow}.get(outcome, ink.red)
    when = f"  healed {_ago(str(row['healed_at']), now_ms)}" if row["healed_at"] else ""
    head = f"  {row['config_home']!s:<{longest}}  "
    out = [head + shade(outcome) + when]
    if len(head + outcome + when) > width:
        out = [head.rstrip(), f"      {shade(outcome)}{when}"]
    if row["reason"]:
        out += wrapped(str(row["reason"]), width, "      ")
    if row["remedy"]:
        out += wrapped(str(row["remedy"]), width, "      -> ")
    left = row["left_behind"]
    assert isinstance(left, list)
    for item in left:
        out += wrapped(f"left behind: {item['path']}: {item['reason']}", width, "      ", ink.yellow)
        if item["remedy"]:
            out += wrapped(str(item["remedy"]), width, "      -> ")
    return out


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def _ago(stamp: str, now_ms: int) -> str:
    """How long ago that moment was, in words; one that is not understood stays as it is."""
    try:
        moment = datetime.datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return age(int(moment.timestamp() * 1000), now_ms)


def _utc(at_ms: int) -> str:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return "unknown"
