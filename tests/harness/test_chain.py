"""Which record waits for which."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memd.harness.chain import RECENT, WINDOW, Chain, ChainState
from memd.harness.model import MAX_STATE_BYTES, Event, Link, Parsed
from support_order import arrange


def run(records: list[tuple[str, str]], cuts: frozenset[int] = frozenset()) -> tuple[list[str], list[Link]]:
    """The order in which events of these (record, parent) are placed, the state saved at each cut."""
    chain = Chain(ChainState())
    events, links = [], []
    for at, (record, parent) in enumerate(records):
        if at in cuts:
            state = msgspec.msgpack.encode(chain.state())
            assert len(state) < MAX_STATE_BYTES
            chain = Chain(msgspec.msgpack.decode(state, type=ChainState))
        hint = chain.step(record, parent)
        links += [Link(session="s", record=missing, at=at) for missing in chain.given_up]
        events.append(
            Event(
                session="s",
                origin=str(at),
                kind="message",
                role="user",
                content=record,
                at=at,
                record=record,
                parent=hint,
            )
        )
    placed = arrange([Parsed(events=events, links=links)])
    return [event.content for event in placed], links


def test_file_order_stands_where_parents_come_first() -> None:
    assert run([("a", ""), ("b", "a"), ("c", "b"), ("d", "a")]) == (["a", "b", "c", "d"], [])


def test_record_waits_for_a_parent_close_behind() -> None:
    assert run([("c", "b"), ("d", "c"), ("a", ""), ("b", "a"), ("e", "d")]) == (["a", "b", "c", "d", "e"], [])


def test_shared_parent_keeps_file_order() -> None:
    assert run([("x", "p"), ("y", "p"), ("p", ""), ("z", "p")])[0] == ["p", "x", "y", "z"]


def test_missing_parent_is_given_up_and_nothing_is_lost() -> None:
    records = [("a0", "gone"), *((f"a{n}", f"a{n - 1}") for n in range(1, 3 * WINDOW))]
    order, links = run(records)
    assert order == [record for record, _parent in records]
    assert [(link.record, link.parent) for link in links] == [("gone", "")]


def test_circle_is_cut_and_nothing_is_lost() -> None:
    records = [("a", "c"), ("b", "a"), ("c", "b"), *((f"r{n}", "") for n in range(2 * WINDOW))]
    order, links = run(records)
    assert sorted(order) == sorted(record for record, _parent in records)
    assert len(links) == 1


def test_own_parent_waits_for_nothing() -> None:
    assert run([("a", "a"), ("b", "a")]) == (["a", "b"], [])


def test_parent_long_past_does_not_stop_the_chain() -> None:
    records = [("a", ""), *((f"r{n}", "") for n in range(2 * RECENT)), ("b", "a"), ("c", "b")]
    records += [(f"s{n}", "") for n in range(2 * WINDOW)]
    assert sorted(run(records)[0]) == sorted(record for record, _parent in records)


def test_endless_ids_are_no_ids() -> None:
    long = "x" * 1000
    assert run([(long, "gone" * 100), ("b", long), ("c", "b")]) == ([long, "b", "c"], [])


NAMES = st.sampled_from("abcdefgh")


@given(
    st.lists(st.tuples(NAMES, NAMES | st.just("") | st.just("gone")), max_size=90),
    st.sets(st.integers(0, 90)),
)
def test_any_cut_gives_the_same_and_nothing_is_lost(records: list[tuple[str, str]], cuts: set[int]) -> None:
    whole = run(records)
    assert run(records, frozenset(cuts)) == whole
    assert sorted(whole[0]) == sorted(record for record, _parent in records)
