"""Who may write to a workstream: the lease of a run, as decisions over values. Pure.

A lease is the exclusive right of one run to its workstream. It is good for `LEASE_S` on a clock that nobody
sets and that runs through a suspend; its holder is the launcher and the agent that this one started, each
known by number and start. The daemon renews it while it sees either of them. What a lease is worth at a
moment:

    held    the clock has not run out, or the holder is seen alive
    lapsed  the clock has run out and nothing is known of the holder: whoever comes may take it, and until
            then its holder may still come back and renew it
    free    launcher and agent are both known to be gone, or the machine was started anew since

A run that lost its lease to another one is over for good, also when that one has finished since. Evidence
comes in as an argument: `alive` for a process that is stopped as well, `unknown` where the system does not
say. With `unknown` throughout, only the clock counts.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Literal

import msgspec

from memd.errors import MemdError
from memd.ledger.store.workstreams import Moment, Process, Run, RunGone, State

LEASE_S = 90
BEAT_S = 30

Seen = Literal["alive", "gone", "unknown"]
See = Callable[[Process], Seen]
Standing = Literal["held", "lapsed", "free"]


class Busy(MemdError):
    """Another run has the workstream. Whoever wants it may try again in a moment.

    workstream  its name
    """

    code = "busy"
    remedy = "Quit the other agent, wait for it with --wait, or work beside it with --new NAME."
    exit_status = 75

    def __init__(self, message: str, *, workstream: str = "") -> None:
        super().__init__(message)
        self.workstream = workstream


def unseen(_process: Process) -> Seen:
    """No evidence: only the clock counts."""
    return "unknown"


def evidence(run: Run, see: See) -> Seen:
    """What is known of a run's holder, launcher and agent together.

    Gone means both, and that no agent can be there of which nobody told: between the plan and the word that
    the child was started a dead launcher proves nothing.
    """
    seen = [see(run.launcher)]
    if run.phase == "exited":
        agent: Seen = "gone"
    elif run.agent is not None:
        agent = see(run.agent)
    else:
        agent = "gone" if run.phase == "prepared" else "unknown"
    seen.append(agent)
    if "alive" in seen:
        return "alive"
    return "gone" if seen == ["gone", "gone"] else "unknown"


def standing(run: Run, moment: Moment, seen: Seen = "unknown") -> Standing:
    """What the lease of a run is worth now. A run that is not active has none: free."""
    if run.state != "active" or run.boot != moment.boot or seen == "gone":
        return "free"
    if seen == "alive" or moment.ms < run.expires_ms:
        return "held"
    return "lapsed"


def opened(run: Run, moment: Moment) -> Run:
    """The run with a lease that begins now."""
    return msgspec.structs.replace(
        run, state="active", boot=moment.boot, expires_ms=moment.ms + LEASE_S * 1000
    )


def renewed(run: Run | None, moment: Moment) -> Run:
    """The run with a lease from now on, also after the clock ran out, as long as nobody claimed it.

    raises  RunGone
    """
    if run is None:
        raise RunGone("this run is not known any more")
    if run.state != "active":
        raise RunGone(f"run {run.id} is over: {_WHY[run.state]}")
    if run.boot != moment.boot:
        raise RunGone(f"run {run.id} is over: the machine was started anew")
    return opened(run, moment)


def ended(run: Run, moment: Moment, state: State, exit_code: int | None = None) -> Run:
    """The run without a lease, for good. One that has ended already stays as it is."""
    if run.state != "active":
        return run
    return msgspec.structs.replace(
        run, state=state, expires_ms=moment.ms, ended_ms=moment.wall_ms, exit_code=exit_code
    )


def conflict(run: Run, name: str, moment: Moment) -> Busy:
    """The refusal that names the holder."""
    since = datetime.datetime.fromtimestamp(run.began_ms / 1000).astimezone()
    agent = f", agent pid {run.agent.pid}" if run.agent is not None else ""
    left_s = (run.expires_ms - moment.ms + 999) // 1000
    until = f"its lease runs for another {left_s} s" if left_s > 0 else "it is still alive"
    if run.launcher.machine:
        agent += f" on {run.launcher.machine}"
    return Busy(
        f"workstream is already active: {run.harness} has {name!r} (launcher pid {run.launcher.pid}{agent},"
        f" since {since:%Y-%m-%d %H:%M:%S}, {_ago(moment.wall_ms - run.began_ms)}); {until}",
        workstream=name,
    )


_WHY = {
    "finished": "it was finished",
    "cancelled": "it was cancelled",
    "expired": "its lease ran out and the workstream was free for others",
}


def _ago(ms: int) -> str:
    seconds = max(ms, 0) // 1000
    if seconds < 60:
        return f"{seconds} s ago"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    return f"{seconds // 3600} h ago"
