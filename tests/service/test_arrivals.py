"""What the worker read goes in together, in order, and nobody waits for what is not needed."""

from __future__ import annotations

import pytest

from memd.ledger import messages
from memd.ledger.messages import Read
from memd.ledger.store.interface import Batch
from memd.service.arrivals import TOGETHER_BYTES, Arrivals
from support_ledger import batch, entry

PIECE = TOGETHER_BYTES // 3


def read(number: int, *, is_live: bool = False, is_more: bool = True) -> Read:
    batch = Batch(harness="claude", source=b"%d" % number, cursor=b"x")
    return messages.read(number, (batch,), is_live=is_live, is_more=is_more)


def test_back_fill_goes_in_together_up_to_a_bound() -> None:
    arrivals = Arrivals()
    for number in range(1, 8):
        arrivals.add(read(number), PIECE)
        assert arrivals.is_due == (number >= 3)
    taken = [arrivals.take() for _ in range(3)]
    assert [one.numbers for one in taken] == [(1, 2, 3), (4, 5, 6), (7,)]
    assert [batch.source for batch in taken[0].batches] == [b"1", b"2", b"3"]
    assert [one.size for one in taken] == [3 * PIECE, 3 * PIECE, PIECE]
    assert not arrivals
    assert not arrivals.is_due


@pytest.mark.parametrize("last", [read(2, is_live=True), read(2, is_more=False)])
def test_what_somebody_waits_for_and_the_last_are_due_with_what_came_before(last: Read) -> None:
    arrivals = Arrivals()
    arrivals.add(read(1), 10)
    assert not arrivals.is_due
    arrivals.add(last, 10)
    assert arrivals.is_due
    taken = arrivals.take()
    assert taken.numbers == (1, 2)
    assert taken.is_live == last.is_live


def test_one_that_is_too_large_goes_alone() -> None:
    arrivals = Arrivals()
    arrivals.add(read(1), 9 * TOGETHER_BYTES)
    arrivals.add(read(2, is_more=False), 10)
    assert arrivals.take().numbers == (1,)
    assert arrivals.take().numbers == (2,)


def test_it_knows_how_many_events_wait() -> None:
    arrivals = Arrivals()
    for number, count in enumerate((3, 0, 2)):
        coming = batch(*(entry(f"{number} {at}") for at in range(count)))
        arrivals.add(messages.read(number, (coming,), is_more=True), 2 * PIECE)
    assert arrivals.events == 5
    arrivals.take()
    assert arrivals.events == 2
    arrivals.take()
    arrivals.take()
    assert arrivals.events == 0


def test_batches_are_unpacked_in_order_and_go_on_after_those_that_are_in() -> None:
    arrivals = Arrivals()
    for number in (0, 10):
        group = [batch(entry(f"{number + at}"), source=b"%d" % (number + at)) for at in range(3)]
        arrivals.add(messages.read(number, group, is_more=number == 0), 10)
    coming = arrivals.take().batches
    sources = [b"0", b"1", b"2", b"10", b"11", b"12"]
    for count in range(7):
        left = coming.after(count)
        assert [one.source for one in left] == sources[count:]
        assert (len(left), left.events, bool(left)) == (6 - count, 6 - count, count < 6)
        assert [one.source for one in left.after(1)] == sources[count + 1 :]
    assert coming.after(4).harness == "claude"
