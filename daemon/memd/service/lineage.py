"""Which sessions were started by an agent inside another session, where no run's id tells it.

An agent that starts another agent is its ancestor; the session of the inner one is nobody's next session, and
what was left for that is not for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from memd import processes

MAX_AGENTS = 200
MAX_ANCESTORS = 64

Key = tuple[str, str]
"""A harness and a session."""


class Lineage:
    """The processes that hooks named as theirs, and their sessions; the newest `MAX_AGENTS`."""

    def __init__(
        self,
        start_of: Callable[[int], str] = processes.start_of,
        parent_of: Callable[[int], int] = processes.parent_of,
    ) -> None:
        self._start_of = start_of
        self._parent_of = parent_of
        self._agents: OrderedDict[int, tuple[str, Key]] = OrderedDict()

    def note(self, pid: int, session: Key) -> None:
        """A session began in that process; 0: it does not say."""
        start = self._start_of(pid) if pid > 1 else ""
        if start:
            self._agents[pid] = (start, session)
            self._agents.move_to_end(pid)
            while len(self._agents) > MAX_AGENTS:
                self._agents.popitem(last=False)

    def end(self, session: Key) -> None:
        for pid in [pid for pid, (_, known) in self._agents.items() if known == session]:
            del self._agents[pid]

    def is_next(self, pid: int, session: Key) -> bool:
        """Whether that very process had another session of the same harness before."""
        start, known = self._agents.get(pid, ("", session))
        return known[0] == session[0] and known != session and start == self._start_of(pid)

    def is_inside(self, pid: int, session: Key) -> bool:
        """Whether that process was started below the process of another session that goes on."""
        if not self._agents or pid <= 1:
            return False
        above = self._parent_of(pid)
        for _ in range(MAX_ANCESTORS):
            if above <= 1:
                return False
            start, known = self._agents.get(above, ("", session))
            if known != session and start == self._start_of(above):
                return True
            above = self._parent_of(above)
        return False
