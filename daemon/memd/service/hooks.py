"""What the hooks of running agents ask and tell."""

from __future__ import annotations

from memd.service.environments import Environments
from memd.service.handoffs import Handoffs
from memd.service.healer import Healer
from memd.service.ledger import Ledger
from memd.service.runs import Runs
from memd.service.topics import MemoryTopics


class HookService:
    """Answers hook messages: links sessions, tells what there is to tell, has transcripts looked at."""

    def __init__(
        self,
        *,
        runs: Runs,
        handoffs: Handoffs,
        ledger: Ledger,
        healer: Healer,
        topics: MemoryTopics,
        environments: Environments,
        home: bytes,
        state: bytes,
    ) -> None:
        self._runs = runs
        self._handoffs = handoffs
        self._ledger = ledger
        self._healer = healer
        self._topics = topics
        self._environments = environments
        self._home = home
        self._state = state

    async def answer(self, body: bytes) -> str:
        """What the hook prints; raises nothing that a hook should see."""
        return ""

    async def keep(self) -> None:
        """What goes on besides; for ever."""
        import trio

        await trio.sleep_forever()
