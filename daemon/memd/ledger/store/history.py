"""What a ledger says of a stretch of time: the answer of `Reader.history`. Values only, as in `interface`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from memd.ledger.store.interface import SessionRow
from memd.ledger.store.workstreams import Handoff, Run, Workstream

Native = tuple[str, str]
"""A session: harness, and the harness's own id."""

SLACK_S = 15 * 3600
"""How far the text of a time may be from the instant it means: further than any zone is from UTC."""


class Count(msgspec.Struct, frozen=True, gc=False):
    """Events of one harness that occurred within ten minutes. Copies in several sessions count once.

    at     the beginning of the ten minutes, RFC 3339; anything for events that do not say when
    bytes  their text
    """

    at: str
    harness: str
    events: int
    bytes: int


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What there was since a moment, bounded; the counts say how much there is beyond.

    sessions       main ones, newest activity first; `session_count`: how many there are
    harnesses      how many sessions each harness has, also of those that are not shown
    side_count     side conversations (of agents that an agent started); `sides`: per shown session
    links          the workstreams of a shown session, by their ids
    runs, handoffs newest first. Runs that never started a child, and utilities, are left out
    workstreams    those that links, runs and handoffs name, by their ids
    counts         in no order; may begin up to `SLACK_S` before the moment
    event_count    all events of the ledger
    """

    sessions: Sequence[SessionRow]
    session_count: int
    harnesses: Mapping[str, int]
    side_count: int
    sides: Mapping[Native, int]
    links: Mapping[Native, Sequence[str]]
    runs: Sequence[Run]
    run_count: int
    handoffs: Sequence[Handoff]
    handoff_count: int
    workstreams: Mapping[str, Workstream]
    counts: Sequence[Count]
    event_count: int


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one answer holds."""

    sessions: int = 2000
    runs: int = 2000
    handoffs: int = 200


USUAL = Bounds()


def named_workstreams(
    links: Mapping[Native, Sequence[str]], runs: Sequence[Run], handoffs: Sequence[Handoff]
) -> list[str]:
    """The ids of workstreams that these name."""
    found = {id for ids in links.values() for id in ids}
    found |= {run.workstream for run in runs}
    found |= {row.workstream for row in handoffs if row.workstream}
    return sorted(found)
