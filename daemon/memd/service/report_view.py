"""What `memctl report` tells: one document, which is a contract, and a short text made of it. Pure.

The page is made of the same document by memctl. Texts that agents and people wrote stand in it as they are:
whoever shows them takes care. Of very long ones the beginning stands there.
"""

from __future__ import annotations

import collections
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from memctl.paths import shown
from memd.ledger import search
from memd.ledger.store.history import Count, History
from memd.ledger.store.interface import SessionRow
from memd.ledger.store.workstreams import Handoff, Run
from memd.ledger.terminal import strip_terminal
from memd.service import page, work_view
from memd.service.page import Ink, count

VERSION = 1
MAX_TITLE = 300
MAX_SUMMARY = 2000
MAX_ITEM = 300
MAX_ITEMS = 10
MAX_CWD = 4096
TOP = 5  # checkouts of the text
DAY_S = 86400
FIRST_S = 631_152_000.0  # 1990: no agent ran before
BARS = "▁▂▃▄▅▆▇█"
LEAD_DAYS = "  per day      "

Zone = datetime.tzinfo | None
"""None: the zone of this machine."""


def document(
    history: History,
    *,
    since: str,
    now_ms: int,
    home: bytes,
    version: str,
    facts: Mapping[str, Any],
    zone: Zone = None,
) -> dict[str, Any]:
    """facts: `health`, `ledger` and `memory`, as they stand in the document."""
    days, undated = by_day(history.counts, since_s=search.instant(since), now_s=now_ms / 1000, zone=zone)
    within = sum(day["events"] for day in days)
    return {
        "version": VERSION,
        "made_at": page.utc(now_ms),
        "made_by": f"memd {version}",
        "since": since or None,
        "utc_offset": offset(now_ms / 1000, zone),
        "home": shown(home),
        "health": facts["health"],
        "ledger": facts["ledger"],
        "totals": {
            "sessions": history.session_count,
            "side_sessions": history.side_count,
            "sessions_by_harness": dict(history.harnesses),
            "runs": history.run_count,
            "handoffs": history.handoff_count,
            "events": within,
            "events_undated": undated,
            "events_before": max(history.event_count - within - undated, 0),
        },
        "left_out": {
            "sessions": history.session_count - len(history.sessions),
            "runs": history.run_count - len(history.runs),
            "handoffs": history.handoff_count - len(history.handoffs),
        },
        "days": days,
        "sessions": [_session(row, history) for row in history.sessions],
        "workstreams": [
            {
                "workstream_id": row.id,
                "name": row.name,
                "workspace": row.place.workspace,
                "project": row.place.project,
            }
            for row in history.workstreams.values()
        ],
        "runs": [_run(run) for run in history.runs],
        "handoffs": [_handoff(row) for row in history.handoffs],
        "memory": facts["memory"],
    }


def _session(row: SessionRow, history: History) -> dict[str, Any]:
    native = row.harness, row.id
    return {
        "id": row.id,
        "harness": row.harness,
        "cwd": row.cwd[:MAX_CWD],
        "title": _cut(row.title, MAX_TITLE),
        "started": row.started or row.last_activity,
        "last_activity": row.last_activity or row.started,
        "events": row.events,
        "side_events": row.side_events,
        "side_sessions": history.sides.get(native, 0),
        "losses": row.losses,
        "harness_version": row.version,
        "forked_from": row.forked_from or None,
        "workstream_ids": list(history.links.get(native, ())),
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "harness": run.harness,
        "workstream_id": run.workstream,
        "session": run.session or run.expected or None,
        "cwd": shown(run.cwd)[:MAX_CWD],
        "state": run.state,
        "phase": run.phase,
        "began_at": page.utc(run.began_ms),
        "ended_at": page.utc(run.ended_ms) if run.ended_ms else None,
        "exit_code": run.exit_code,
        "machine": run.launcher.machine or None,
    }


def _handoff(row: Handoff) -> dict[str, Any]:
    def cut(items: Sequence[str]) -> list[str]:
        return [_cut(item, MAX_ITEM) for item in items[:MAX_ITEMS]]

    return work_view.handoff(
        row,
        summary=_cut(row.summary, MAX_SUMMARY),
        questions=cut(row.questions),
        steps=cut(row.steps),
        files=cut(row.files),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# ------------------------------------------------------------------------------------- days


def by_day(
    counts: Sequence[Count], *, since_s: float | None, now_s: float, zone: Zone = None
) -> tuple[list[dict[str, Any]], int]:
    """The days with events, first to last, in local time; how many events name no time that can be.

    The day of `since` begins there, to ten minutes.
    """
    days: dict[str, dict[str, Any]] = {}
    undated = 0
    for one in counts:
        at_s = search.instant(one.at)
        if at_s is None or not FIRST_S <= at_s <= now_s + DAY_S:
            undated += one.events if since_s is None else 0  # else it is not known whether they are within
            continue
        if since_s is not None and at_s + 600 <= since_s:
            continue
        name = f"{datetime.datetime.fromtimestamp(at_s, zone):%Y-%m-%d}"
        day = days.setdefault(name, {"day": name, "events": 0, "bytes": 0, "by_harness": {}})
        day["events"] += one.events
        day["bytes"] += one.bytes
        day["by_harness"][one.harness] = day["by_harness"].get(one.harness, 0) + one.events
    return [days[name] for name in sorted(days)], undated


def offset(now_s: float, zone: Zone = None) -> str:
    """How far the clock on the wall is from UTC now, as `+02:00`."""
    moment = datetime.datetime.fromtimestamp(now_s, zone)
    return f"{moment.astimezone(zone):%z}"[:3] + ":" + f"{moment.astimezone(zone):%z}"[3:5]


# ------------------------------------------------------------------------------------- text


def text(found: Mapping[str, Any], *, color: bool, width: int, now_s: float, zone: Zone = None) -> str:
    """A summary without anything that an agent said."""
    ink = Ink(color)
    totals, ledger = found["totals"], found["ledger"]
    out = [ink.bold(f"report of {found['made_by']}") + f"  {_stretch(found, now_s, zone)}"]

    def line(name: str, words: str, paint: Any = str) -> None:
        out.extend(page.wrapped(words, width, f"  {name:<11}  ", paint))

    sides = totals["side_sessions"]
    beside = f", {sides:,} side conversation{'' if sides == 1 else 's'}" if sides else ""
    line("sessions", f"{totals['sessions']:,}{beside}")
    if totals["sessions_by_harness"]:
        line("harnesses", ", ".join(f"{name} {n:,}" for name, n in totals["sessions_by_harness"].items()))
    out += _busiest(found)
    size = f"{ledger['bytes'] / 1e6:,.1f} MB on the disk"
    line("events", f"{totals['events']:,} of {ledger['events']:,} in the ledger, {size}")
    if found["days"]:
        chart = sparks(found["days"], now_s, min(60, max(width - 34, 7)), zone)
        fits = chart.startswith("nothing")  # words; bars have blanks in them
        out += page.wrapped(chart, width, LEAD_DAYS) if fits else [LEAD_DAYS + chart]
    active = sum(run["state"] == "active" for run in found["runs"])
    line("runs", f"{totals['runs']:,}" + (f", {active} of them now" if active else ""))
    waiting = sum(row["state"] == "open" for row in found["handoffs"])
    line("handoffs", f"{totals['handoffs']:,}" + (f", {waiting} open" if waiting else ""))
    line("memory", _memory(found["memory"]))
    health = found["health"]
    shade = {"healthy": ink.green, "attention": ink.yellow}.get(health["state"], ink.red)
    line("health", f"{health['state']}: {health['line']}", shade)
    return "\n".join(out) + "\n"


def _stretch(found: Mapping[str, Any], now_s: float, zone: Zone) -> str:
    if found["since"]:
        since = datetime.datetime.fromtimestamp(search.instant(found["since"]) or 0.0, zone)
        return f"since {since:%Y-%m-%d %H:%M}"
    return f"since {found['days'][0]['day']}" if found["days"] else "nothing is in the ledger yet"


def _busiest(found: Mapping[str, Any]) -> list[str]:
    """The directories with the most sessions of those that are told."""
    seen = collections.Counter(_place(row["cwd"], found["home"]) for row in found["sessions"])
    rows = sorted(seen.items(), key=lambda one: (-one[1], one[0]))
    out: list[str] = []
    for place, number in rows[:TOP]:
        out.append(f"  {'' if out else 'directories':<11}  {number:>5,}  {place}")
    if len(rows) > TOP:
        out.append(f"  {'':<11}         and {len(rows) - TOP:,} more")
    return out


def _place(cwd: str, home: str) -> str:
    flat = " ".join(strip_terminal(cwd).split()) or "(no directory)"
    return "~" + flat[len(home) :] if home != "/" and (flat + "/").startswith(home + "/") else flat


def _memory(memory: Mapping[str, Any]) -> str:
    links = [login for agent in memory["agents"] for login in agent["logins"]]
    well = sum(login["outcome"] in ("linked", "migrated") for login in links)
    if not memory["agents"]:
        words = "no agent enrolled"
    else:
        words = f"{well} of {count(len(links), 'login')} linked, {count(len(memory['agents']), 'agent')}"
    return f"{words}; {count(memory['topics']['topics'], 'topic')}"


def sparks(days: Sequence[Mapping[str, Any]], now_s: float, most: int, zone: Zone = None) -> str:
    """A small chart of the last days, the highest named."""
    events = {day["day"]: day["events"] for day in days}
    today = datetime.datetime.fromtimestamp(now_s, zone).date()
    first = min(datetime.date.fromisoformat(days[0]["day"]), today)
    length = max(1, min(most, (today - first).days + 1))
    row = [events.get(str(today - datetime.timedelta(days=back)), 0) for back in range(length - 1, -1, -1)]
    highest = max(row)
    if not highest:
        return f"nothing in the last {count(length, 'day')}"
    bars = "".join(BARS[(len(BARS) * n - 1) // highest] if n else " " for n in row)
    return f"{bars}  at most {highest:,}"
