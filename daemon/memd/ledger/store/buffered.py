"""A writer whose server may be away: batches wait on this machine, everything else says so at once.

    server there, nothing waits     batches go straight to it
    server away, or something waits batches go to the queue, in order, durably; the import goes on
    server back                     the queue is brought in from its front, each group once

Runs, links and handoffs are decided on the server or not at all: what is asked of them while it is away
raises `Unreachable`. What memd says of a run that is over by the time it gets there stays in the ledger
without a place in the workstream.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from memd.errors import MemdError, TryAgain
from memd.ledger.store.interface import (
    GROUP_BYTES,
    GROUP_EVENTS,
    Appended,
    Batch,
    Forgetting,
    NotTaken,
    Selection,
    T,
    Writer,
    never,
)
from memd.ledger.store.waiting import Queue, Waiting
from memd.ledger.store.workstreams import RunGone, Work

RETRY_S: Final = 5.0
"""From a try that found no server to the next one that is made for what waits."""

REST_S: Final = 300.0


class Remote(Writer, Protocol):
    """The writer on the server. token: names a group, which is put in once under it."""

    def append_all(
        self, batches: Iterable[Batch], is_awaited: Callable[[], bool] = never, *, token: str = ""
    ) -> list[Appended]: ...

    def has_taken(self, token: str) -> bool: ...


class BufferedWriter:
    """Implements `interface.Writer`. Owns neither the queue's file nor the connection's settings."""

    def __init__(self, remote: Remote, queue: Queue, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._remote = remote
        self._queue = queue
        self._clock = clock
        self._again_at = 0.0
        self.trouble = ""

    @property
    def waiting(self) -> Waiting:
        return self._queue.state

    def rest_s(self) -> float:
        """How long to wait with the next `tidy` when nothing comes."""
        return RETRY_S if self._queue.state.groups else REST_S

    def close(self) -> None:
        self._queue.close()
        self._remote.close()

    # -------------------------------------------------------------------------------- appending

    def append(self, batch: Batch) -> Appended:
        return self.append_all((batch,))[0]

    def append_all(self, batches: Iterable[Batch], is_awaited: Callable[[], bool] = never) -> list[Appended]:
        """What became of them; of batches that wait nothing is known yet.

        They go in a group at a time, each all or none, and whoever needs the writer goes before the next one:
        a server takes many times as long as a file.
        """
        done: list[Appended] = []
        coming = tuple(batches)
        while len(done) < len(coming) and not (done and is_awaited()):
            try:
                done += self._append_group(_first_group(coming[len(done) :]))
            except MemdError:
                if not done:
                    raise
                break  # the others are not in; whoever tries them again is told why
        return done

    def _append_group(self, batches: Sequence[Batch]) -> list[Appended]:
        token = secrets.token_hex(16)
        if not self._queue.state.groups and self._is_due():
            try:
                done = self._remote.append_all(batches, token=token)
            except RunGone:
                raise
            except MemdError as reason:
                self._note_trouble(reason)
            else:
                self._note_success()
                self._queue.note({batch.source: batch.cursor for batch in batches if batch.source})
                return done
        self._queue.put(batches, token)
        return [Appended() for _ in batches]

    def _is_due(self) -> bool:
        return self._clock() >= self._again_at

    def _note_trouble(self, reason: MemdError) -> None:
        self.trouble = str(reason)
        self._again_at = self._clock() + RETRY_S

    def _note_success(self) -> None:
        self.trouble = ""
        self._again_at = 0.0

    def drain_step(self) -> bool:
        """Bring in the group that has waited longest; whether there may be more to do now."""
        group = self._queue.first()
        if group is None:
            self.trouble = ""
            return False
        try:
            if not self._remote.has_taken(group.token):
                self._bring(group.batches, group.token)
        except NotTaken as reason:
            self._queue.set_aside(group.n, str(reason))
        except MemdError as reason:
            self._note_trouble(reason)
            return False
        else:
            self._queue.drop(group.n)
        self._note_success()
        return True

    def _bring(self, batches: Sequence[Batch], token: str) -> None:
        try:
            self._remote.append_all(batches, token=token)
        except RunGone:
            self._remote.append_all([replace(batch, run="") for batch in batches], token=token)

    # --------------------------------------------------------------------------- asked at once

    def work(self, do: Callable[[Work], T]) -> T:
        done = self._remote.work(do)
        self._again_at = 0.0
        return done

    def cursor(self, source: bytes) -> bytes:
        return self._queue.cursor(source)

    def drop_source(self, source: bytes) -> None:
        self._queue.note({source: None})
        self._remote.drop_source(source)

    def plan_forget(self, selection: Selection) -> Forgetting:
        self._drain()
        return self._remote.plan_forget(selection)

    def begin_forget(self, selection: Selection) -> Forgetting:
        """What waits comes in first: it may be meant."""
        self._drain()
        return self._remote.begin_forget(selection)

    def _drain(self) -> None:
        while self.drain_step():
            pass
        if self._queue.state.groups:
            self._remote.has_taken("")  # says why not
            raise TryAgain("what waits on this machine is still being brought to the ledger's server")

    def forget_step(self) -> bool:
        return self._remote.forget_step()

    def repair(self) -> int:
        return self._remote.repair()

    # ----------------------------------------------------------------------------- housekeeping

    def tidy(self) -> bool:
        self._queue.settle()
        if self._queue.state.groups:
            return self._is_due() and self.drain_step()
        return self._is_due() and self._remote.tidy()

    def wants_checkpoint(self, *, is_quiet: bool = False) -> bool:
        return False

    def checkpoint(self) -> None:
        """The server's own business."""


def page(
    queue: Queue, remote: Callable[[], Mapping[bytes, bytes]], after: bytes, limit: int
) -> Mapping[bytes, bytes]:
    """Where sources were left: what the server says while nothing waits for it, else what stands here."""
    if not queue.state.groups:
        try:
            found = remote()
        except MemdError:
            pass
        else:
            queue.note(found)
            return found
    return queue.cursors(after, limit)


def _first_group(batches: Sequence[Batch]) -> Sequence[Batch]:
    """As many of them, in their order, as a group holds; at least one."""
    events = size = 0
    for number, batch in enumerate(batches):
        events += len(batch.entries)
        size += sum(len(entry.content) for entry in batch.entries)
        if number and (events > GROUP_EVENTS or size > GROUP_BYTES):
            return batches[:number]
    return batches
