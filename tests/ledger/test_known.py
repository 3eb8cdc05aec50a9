"""What the worker knows of its sources: few bytes each, and never another one's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memd.ledger import known as module
from memd.ledger.known import Known

PATHS = st.sampled_from([b"/s/%d" % number for number in range(12)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("cursor"), PATHS, st.binary(max_size=40)),
        st.tuples(st.just("looks"), PATHS, st.integers(0, 3)),
        st.tuples(st.just("forget"), PATHS, st.just(0)),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([1, 3, 4096]))
def test_every_source_keeps_its_own_cursor_and_looks(
    steps: list[tuple[str, bytes, bytes | int]], shelves: int
) -> None:
    usual, module.SHELVES = module.SHELVES, shelves
    try:
        _compare(steps)
    finally:
        module.SHELVES = usual


def _compare(steps: list[tuple[str, bytes, bytes | int]]) -> None:
    known = Known()
    cursors: dict[bytes, bytes] = {}
    looks: dict[bytes, int] = {}
    for step, path, value in steps:
        if step == "cursor":
            assert isinstance(value, bytes)
            known.set_cursor(path, value)
            cursors[path] = value
        elif step == "looks":
            assert isinstance(value, int)
            known.set_looks(path, (value, 1))
            looks[path] = value
        else:
            known.forget_looks()
            looks.clear()
        touched = cursors.keys() | looks.keys()
        for one in touched:
            assert known.cursor(one) == cursors.get(one, b"")
            assert known.has_looks(one) == (one in looks)
            assert [known.is_as_it_was(one, (n, 1)) for n in range(4)] == [
                looks.get(one) == n for n in range(4)
            ]
    assert known.cursor(b"/elsewhere") == b""
    assert not known.has_looks(b"/elsewhere")


def test_a_source_counts_once_however_often_it_is_told() -> None:
    known = Known()
    known.add({b"/a": b"one", b"/b": b"two"})
    known.add({b"/a": b"three"})
    known.set_looks(b"/b", (1,))
    assert len(known) == 2
    assert known.cursor(b"/a") == b"three"
