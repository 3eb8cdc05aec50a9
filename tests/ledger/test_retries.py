"""What could not be read for a moment is tried again: soon, then ever more seldom, until it was read."""

from __future__ import annotations

import math

from memd.ledger.retries import MAX_PATHS, PAUSES_S, Retries


def test_pauses_grow_to_the_longest_and_begin_anew_once_it_was_read() -> None:
    retries = Retries()
    now, seen = 0.0, []
    for _ in range(len(PAUSES_S) + 2):
        retries.note(b"/a", now)
        seen.append(retries.due - now)
        assert retries.take(retries.due - 0.01) == []
        now = retries.due
        assert retries.take(now) == [b"/a"]
        assert retries.take(now) == [], "until it is noted again"
    assert seen == [*PAUSES_S, PAUSES_S[-1], PAUSES_S[-1]]
    retries.settle((b"/a",))
    retries.note(b"/a", now)
    assert retries.due == now + PAUSES_S[0]


def test_what_was_read_meanwhile_is_not_tried() -> None:
    retries = Retries()
    retries.note(b"/a", 0.0)
    retries.note(b"/b", 1.0)
    retries.settle((b"/a", b"/never noted"))
    assert retries.due == 1.0 + PAUSES_S[0]
    assert retries.take(100.0) == [b"/b"]
    assert retries.due == math.inf


def test_it_keeps_no_more_than_so_many() -> None:
    retries = Retries()
    for number in range(MAX_PATHS + 10):
        retries.note(b"/%d" % number, 0.0)
    assert len(retries.take(1e9)) == MAX_PATHS
