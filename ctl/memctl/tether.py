"""A run's connection while its child runs: found again when it is lost, without holding anything up.

    idle --broken--> lost --dialled--> taking up --answered--> idle
                       ^---- no daemon, no answer, refused ----'

What was said and not answered is said again once the run was taken up. The person hears of an outage once, if
it lasts longer than a moment, and once of its end.
"""

from __future__ import annotations

import contextlib
import select
import time

from memctl.conversation import Broken, Conversation, say
from memd import protocol_runs as runs
from memd.errors import MemdError

NOTICE_S = 1.0  # an outage that is over by then is not worth a word
REACH_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)  # pauses between two tries to reach a daemon; the last one repeats
ANSWER_S = 10.0


class Tether:
    """Of one run. is_over: memd does not follow it any more."""

    def __init__(self, line: Conversation, ready: runs.Ready) -> None:
        self.line = line
        self.run = ready.run
        self.is_over = False
        self._unsaid: list[runs.AnyStep] = []  # not answered yet; the first one may have been said
        self._is_waiting = False
        self._child = 0
        self._tries = 0
        self._lost_at = self._next_at = self._answer_by = 0.0
        self._is_told = False

    def begin(self, pid: int) -> None:
        """The child is there."""
        self._child = pid
        self._unsaid = [runs.Started(run=self.run, pid=pid)]

    def descriptors(self) -> list[int]:
        return [self.line.fileno()] if self.line.is_open else []

    def serve(self) -> float | None:
        """Do what is due now; seconds until something is again."""
        if self.is_over:
            return None
        now = time.monotonic()
        with contextlib.suppress(Broken):
            if not self.line.is_open:
                self._reach(now)
            elif self._is_waiting:
                self._hear(now)
            elif not self._unsaid and self._has_input():
                self._lose(now)  # the daemon says nothing by itself: it is gone
        if self.is_over:
            return None
        try:
            self._go_on(time.monotonic())
        except Broken:
            self._lose(now)
        return self._left(time.monotonic())

    def settle(self) -> None:
        """Wait for the answer that is under way, if there is one."""
        if self.line.is_open and self._is_waiting and not self.is_over:
            with contextlib.suppress(Broken, MemdError):
                self.line.hear(runs.Noted, timeout_s=ANSWER_S)
                self._unsaid.pop(0)
            self._is_waiting = False

    def unsaid(self) -> list[runs.AnyStep]:
        """What must be said before the end."""
        return list(self._unsaid)

    # -------------------------------------------------------------------------- its states

    def _has_input(self) -> bool:
        return bool(select.select([self.line], [], [], 0)[0])

    def _go_on(self, now: float) -> None:
        if self.line.is_open and self._unsaid and not self._is_waiting:
            self.line.tell(self._unsaid[0])
            self._is_waiting, self._answer_by = True, now + ANSWER_S

    def _hear(self, now: float) -> None:
        """The answer, if it is there."""
        if not self._has_input():
            if now >= self._answer_by:
                self._lose(now)
            return
        try:
            self.line.hear(runs.Noted, timeout_s=2.0)
        except Broken:
            self._lose(now)
            return
        except MemdError as reason:
            self._is_waiting = False
            if reason.code in ("gone", "refused"):
                self.is_over = True
                say(f"memd does not follow this run any more: {reason}")
            else:
                self._lose(now)  # a daemon that is not ready yet, or of another version: try again
            return
        self._is_waiting = False
        self._unsaid.pop(0)
        if not self._unsaid and self._lost_at:
            if self._is_told:
                say("memd is back, and this run goes on as before")
            self._lost_at, self._tries, self._is_told = 0.0, 0, False

    def _lose(self, now: float) -> None:
        self.line.close()
        self._is_waiting = False
        if not self._lost_at:
            self._lost_at, self._tries, self._next_at = now, 0, now
        else:
            self._put_off(now)

    def _put_off(self, now: float) -> None:
        self._next_at = now + REACH_S[min(self._tries, len(REACH_S) - 1)]
        self._tries += 1

    def _reach(self, now: float) -> None:
        if not self._is_told and now >= self._lost_at + NOTICE_S:
            self._is_told = True
            say("memd is away; the agent is not disturbed, and this run is taken up again when memd is back")
        if now < self._next_at:
            return
        try:
            self.line.open(start=False, timeout_s=ANSWER_S)
        except Broken:
            self._put_off(now)
            return
        again = [step for step in self._unsaid if not isinstance(step, runs.TakeUp)]
        self._unsaid = [runs.TakeUp(run=self.run), *again]

    def _left(self, now: float) -> float | None:
        if self.is_over:
            return None
        if not self.line.is_open:
            due = [self._next_at] if self._is_told else [self._next_at, self._lost_at + NOTICE_S]
            return max(0.0, min(due) - now)
        return max(0.0, self._answer_by - now) if self._is_waiting else None
