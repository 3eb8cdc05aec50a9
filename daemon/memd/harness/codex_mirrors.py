"""Codex messages that stand twice, and replies that turn out to be a compaction's summary.

A message is written as a `response_item` and as an `event_msg`, in either order and not always both. The form
that comes first is taken; the other form of the same text in the same turn is its mirror. A compaction writes
its summary as a reply and, a few records later, a `compacted` record whose message ends with that very text.
Only sums of texts are remembered, so the state stays small.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

MAX_PENDING = 16  # messages of the running turn whose mirror may still come
MAX_SUMS = 4  # parts of one message that are told apart
MIN_SUMMARY = 16  # characters; a shorter reply may end a summary by chance


class Pending(msgspec.Struct, array_like=True):
    """A message that was taken and whose mirror may still come."""

    role: str
    is_item: bool
    sums: list[bytes]


class Reply(msgspec.Struct, array_like=True):
    """The last reply that had no mirror: a compaction may claim it."""

    at: int
    length: int  # characters
    sum: bytes


def sum_of(text: str) -> bytes:
    """Eight bytes that stand for a text, white space around it aside."""
    return hashlib.blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Mirrors:
    def __init__(self, pending: Sequence[Pending], reply: Reply | None) -> None:
        self.pending = list(pending)
        self.reply = reply

    def new_turn(self) -> None:
        self.pending.clear()

    def match(self, role: str, is_item: bool, sums: Sequence[bytes]) -> set[bytes]:
        """The sums under which the other form of this message was taken already; that form is used up."""
        for index, one in enumerate(self.pending):
            if one.role == role and one.is_item != is_item:
                same = set(one.sums).intersection(sums)
                if same:
                    del self.pending[index]
                    return same
        return set()

    def expect(self, role: str, is_item: bool, sums: Sequence[bytes]) -> None:
        """This form was taken: leave its mirror out when it comes."""
        # the other side has had its say: what has no mirror by now gets none
        self.pending = [one for one in self.pending if one.role == role]
        self.pending.append(Pending(role, is_item, list(sums[:MAX_SUMS])))
        del self.pending[:-MAX_PENDING]

    def summary_of(self, text: str) -> Reply | None:
        """The reply that a compaction with this message repeats, if the last one is it. Ends the wait."""
        reply, self.reply = self.reply, None
        if reply is None or reply.length < MIN_SUMMARY or sum_of(text[-reply.length :]) != reply.sum:
            return None
        return reply
