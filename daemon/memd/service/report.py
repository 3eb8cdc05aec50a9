"""The answer to `memctl report`: what the ledger says of a stretch of time, beside how memd is now."""

from __future__ import annotations

import msgspec

import memd
from memctl import paths
from memd import protocol
from memd.errors import UsageError
from memd.ledger import search
from memd.ledger.store.history import History
from memd.service import report_view as view
from memd.service.healer import now_ms
from memd.service.ledger import Ledger
from memd.service.overview import Overview


async def report(overview: Overview, ledger: Ledger, request: protocol.Report) -> str:
    """raises UsageError, and TryAgain when the ledger takes too long"""
    if request.since and search.instant(request.since) is None:
        raise UsageError(f"{request.since!r} is not a time", remedy="Write it as 2026-02-03T10:00:00Z.")
    history: History = await ledger.ask(lambda reader: reader.history(request.since))
    facts = await overview.facts()
    found = view.document(
        history,
        since=request.since,
        now_ms=now_ms(),
        home=paths.home_dir(),
        version=memd.__version__,
        facts={
            "health": {"state": facts.health, "line": facts.health_line},
            "ledger": {
                "engine": facts.ledger.engine,
                "state": facts.ledger.state,
                "events": history.event_count,
                "sessions": facts.ledger.sessions,
                "losses": facts.ledger.losses,
                "bytes": facts.ledger.bytes,
                "left_sources": facts.ledger.left_sources,
            },
            "memory": {"agents": facts.agents, "topics": facts.topics},
        },
    )
    encoded = msgspec.json.encode(found)
    if request.form == "json":
        return msgspec.json.format(encoded, indent=2).decode() + "\n"
    width = max(40, min(request.width, 400))
    return view.text(msgspec.json.decode(encoded), color=request.color, width=width, now_s=now_ms() / 1000)
