"""What status says about hooks: when each last fired, and what they left while no daemon answered. Pure."""

from __future__ import annotations

import time

import msgspec

from memd.service.page import age, count, span, wrapped

LEAD = "  hooks      "


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Notes that nobody took yet. oldest_ms: wall clock; 0: there is none, or it does not say"""

    count: int = 0
    oldest_ms: int = 0


class HooksState(msgspec.Struct, frozen=True, kw_only=True):
    """fired: harness -> event -> milliseconds of the wall clock; 0: never"""

    fired: dict[str, dict[str, int]]
    waiting: Waiting
    trouble: str = ""


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """last_at, age_s: None: never, as far as memd remembers"""

    harness: str
    event: str
    last_at: str | None
    age_s: float | None


class HookRows(msgspec.Struct, frozen=True, kw_only=True):
    """waiting: notes of hooks that no daemon has taken in yet; oldest_s: the age of the oldest, None: none"""

    fired: tuple[Fired, ...]
    waiting: int
    oldest_s: float | None
    trouble: str = ""


def rows(state: HooksState, now_ms: int) -> HookRows:
    return HookRows(
        fired=tuple(
            Fired(
                harness=harness,
                event=event,
                last_at=_utc(at_ms) if at_ms else None,
                age_s=_age_s(at_ms, now_ms) if at_ms else None,
            )
            for harness, events in state.fired.items()
            for event, at_ms in events.items()
        ),
        waiting=state.waiting.count,
        oldest_s=_age_s(state.waiting.oldest_ms, now_ms) if state.waiting.oldest_ms else None,
        trouble=state.trouble,
    )


def lines(shown: HookRows, width: int) -> list[tuple[str, bool]]:
    """Lines for the page, each with whether it tells of trouble."""
    by_harness: dict[str, list[str]] = {}
    for one in shown.fired:
        when = "never" if one.age_s is None else age(0, int(one.age_s * 1000))
        by_harness.setdefault(one.harness, []).append(f"{one.event} {when}")
    found: list[tuple[str, bool]] = []
    for harness, events in by_harness.items():
        found += [(line, False) for line in wrapped(f"{harness}: {', '.join(events)}", width, _lead(found))]
    if shown.waiting:
        oldest = f", the oldest for {span(int(shown.oldest_s * 1000))}" if shown.oldest_s is not None else ""
        text = f"{count(shown.waiting, 'note')} of hooks still to be taken in{oldest}"
        found += [(line, True) for line in wrapped(text, width, _lead(found))]
    if shown.trouble:
        found += [(line, True) for line in wrapped(shown.trouble, width, _lead(found))]
    return found


def _lead(found: list[tuple[str, bool]]) -> str:
    return " " * len(LEAD) if found else LEAD


def _age_s(at_ms: int, now_ms: int) -> float:
    return max(now_ms - at_ms, 0) / 1000


def _utc(at_ms: int) -> str:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return "unknown"
