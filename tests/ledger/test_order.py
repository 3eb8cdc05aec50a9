from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memd.harness.model import Event, Link, Parsed, Turn
from memd.ledger.order import MAX_HELD, Order
from support_order import arrange


def event(at: int, record: str = "", parent: str = "", block: int = 0, replaces: int = -1) -> Event:
    return Event(
        session="s",
        origin=f"{at}.{block}",
        kind="message",
        role="user",
        content=f"{at}.{block}",
        at=at,
        record=record,
        parent=parent,
        block=block,
        replaces=replaces,
    )


def texts(events: Sequence[Event]) -> list[str]:
    return [e.content for e in events]


def test_without_chains_file_order_is_the_order() -> None:
    order = Order()
    assert texts(order.feed(Parsed(events=[event(1), event(2, block=1), event(3)]))) == ["1.0", "2.1", "3.0"]
    assert not order.is_holding


def test_a_record_waits_for_its_parent_over_chunks_and_follows_it() -> None:
    order = Order()
    assert texts(order.feed(Parsed(events=[event(1, "reply", "prompt")]))) == []
    assert order.is_holding
    assert texts(order.feed(Parsed(events=[event(2, "prompt"), event(3, "x")]))) == ["2.0", "1.0", "3.0"]
    assert not order.is_holding


def test_all_blocks_of_a_parent_come_before_what_waited_for_it() -> None:
    order = Order()
    order.feed(Parsed(events=[event(1, "reply", "prompt")]))
    both = [event(2, "prompt", block=0), event(2, "prompt", block=1)]
    assert texts(order.feed(Parsed(events=both))) == ["2.0", "2.1", "1.0"]


def test_a_link_without_a_parent_ends_the_waiting() -> None:
    order = Order()
    order.feed(Parsed(events=[event(1, "a", "gone"), event(2, "b", "a")]))
    ended = order.feed(Parsed(links=[Link(session="s", record="gone", at=3)]))
    assert texts(ended) == ["1.0", "2.0"]


def test_a_link_can_wait_itself() -> None:
    order = Order()
    order.feed(
        Parsed(events=[event(1, "a", "quiet")], links=[Link(session="s", record="quiet", at=2, parent="p")])
    )
    assert texts(order.feed(Parsed(events=[event(3, "p")]))) == ["3.0", "1.0"]


def test_a_circle_and_a_parent_that_never_comes_lose_nothing() -> None:
    order = Order()
    held = [event(1, "a", "b"), event(2, "b", "a"), event(3, "c", "c"), event(4, "d", "never")]
    assert order.feed(Parsed(events=held)) == []
    assert texts(order.flush()) == ["1.0", "2.0", "3.0", "4.0"]
    assert not order.is_holding


def test_nobody_waits_again_for_what_was_flushed() -> None:
    order = Order()
    order.feed(Parsed(events=[event(1, "a", "never")]))
    order.flush()
    assert texts(order.feed(Parsed(events=[event(2, "b", "a"), event(3, "c", "never")]))) == ["2.0", "3.0"]


def test_too_many_waiting_records_are_flushed() -> None:
    order = Order()
    out = []
    for at in range(MAX_HELD + 1):
        out += order.feed(Parsed(events=[event(at, f"r{at}", "never")]))
    assert texts(out) == [f"{at}.0" for at in range(MAX_HELD + 1)]


def test_a_replaced_event_that_still_waits_never_goes_out() -> None:
    order = Order()
    order.feed(Parsed(events=[event(1, "a", "p")]))
    out = order.feed(Parsed(events=[event(2, "b", replaces=1), event(3, "p")]))
    assert texts(out) == ["2.0", "3.0"]


def test_a_turn_reaches_what_still_waits() -> None:
    order = Order()
    order.feed(Parsed(events=[event(1, "a", "p")]))
    order.feed(Parsed(turns=[Turn(session="s", first=0, last=1, is_side=True)]))
    assert [e.is_side for e in order.flush()] == [True]


NAMES = st.sampled_from(["", "a", "b", "c", "d"])
RECORDS = st.lists(st.tuples(NAMES, NAMES, st.booleans()), max_size=20)


@given(RECORDS, st.lists(st.integers(0, 20), max_size=5))
def test_any_split_gives_the_same_order_and_every_event_once(
    records: list[tuple[str, str, bool]], cuts: list[int]
) -> None:
    items: list[Event | Link] = []
    seen: set[str] = set()
    for at, (name, parent, is_link) in enumerate(records):
        waits = parent if parent not in seen else ""  # an adapter names only what has not come yet
        if name:
            seen.add(name)
        if is_link and name:
            items.append(Link(session="s", record=name, at=at, parent=waits))
        else:
            items.append(event(at, name, waits))
    bounds = sorted({0, len(items), *(cut for cut in cuts if cut <= len(items))})
    parts = [items[a:b] for a, b in itertools.pairwise(bounds)] or [items]

    def parsed(part: Sequence[Event | Link]) -> Parsed:
        return Parsed(
            events=[i for i in part if isinstance(i, Event)], links=[i for i in part if isinstance(i, Link)]
        )

    def run(chunks: Sequence[Sequence[Event | Link]]) -> list[str]:
        order = Order()
        out = [e for chunk in chunks for e in order.feed(parsed(chunk))]
        return texts(out + order.flush())

    whole = run([items])
    assert run(parts) == whole
    assert sorted(whole) == sorted(i.content for i in items if isinstance(i, Event))
    assert whole == texts(arrange([parsed(items)]))
