"""The main line of a tree: what leaves it when a branch is left, and what comes back."""

from __future__ import annotations

import random

import pytest

from memd.harness.model import MAX_STATE_BYTES
from memd.harness.pi_branches import MAX_HELD, MAX_JUMPS, Branches, BranchState
from support_order import arrange
from support_pi import Tree, beside, cuts, lost, parse, told


def said(tree: Tree) -> list[str]:
    return [text for _, text in told(parse(tree.data))]


def test_a_branch_that_was_left_is_beside_the_main_line() -> None:
    tree = Tree()
    tree.say("one")
    fork = tree.answer("two")
    tree.say("wrong way")
    tree.answer("wrong answer")
    tree.say("right way", parent=fork)
    tree.answer("right answer")
    parts = parse(tree.data)
    assert said(tree) == ["one", "two", "right way", "right answer"]
    assert beside(parts) == ["wrong way", "wrong answer"]
    assert lost(parts) == {"branch": 1}


def test_a_branch_that_is_taken_up_again_comes_back() -> None:
    tree = Tree()
    fork = tree.say("one")
    left = tree.answer("a")
    tree.say("b", parent=fork)
    tree.say("a again", parent=left)
    assert said(tree) == ["one", "a", "a again"]
    assert beside(parse(tree.data)) == ["b"]


def test_a_second_root_leaves_everything() -> None:
    tree = Tree()
    tree.say("one")
    tree.answer("two")
    tree.say("from the start", parent=None)
    assert said(tree) == ["from the start"]


def test_a_branch_that_held_only_bookkeeping_is_no_loss() -> None:
    tree = Tree()
    fork = tree.say("one")
    tree.entry("label", targetId=fork, label="here")
    tree.answer("two", parent=fork)
    assert said(tree) == ["one", "two"]
    assert lost(parse(tree.data)) == {}


def test_usage_that_is_booked_on_an_old_branch_does_not_go_there() -> None:
    tree = Tree()
    fork = tree.say("one")
    tree.answer("two")
    leaf = tree.leaf
    tree.entry("model_usage", parent=fork, purpose="title")
    tree.say("three", parent=leaf)
    assert said(tree) == ["one", "two", "three"]
    assert lost(parse(tree.data)) == {}


def test_a_missing_parent_hides_nothing() -> None:
    tree = Tree()
    tree.say("one")
    tree.say("two", parent="deadbeef")
    tree.say("three", parent=tree.leaf)
    tree.raw(b'{"type":"message","id":"a00')
    tree.say("four", parent="a0000099")
    assert said(tree) == ["one", "two", "three", "four"]


def test_an_entry_that_is_its_own_parent_hides_nothing() -> None:
    tree = Tree()
    tree.say("one")
    tree.say("two", parent=f"{0xA0000000 + tree.count + 1:08x}")
    tree.say("three")
    assert said(tree) == ["one", "two", "three"]


def test_a_summary_of_a_branch_is_a_compaction_of_the_new_line() -> None:
    tree = Tree()
    fork = tree.say("one")
    tree.answer("long way")
    tree.entry("branch_summary", parent=fork, fromId=tree.leaf, summary="tried the long way")
    tree.say("two")
    parts = parse(tree.data)
    assert told(parts) == [["user", "one"], ["compaction", "tried the long way"], ["user", "two"]]
    summary = next(event for event in arrange(parts) if event.kind == "compaction")
    assert summary.metadata["summary_type"] == "branch"


def test_a_list_of_version_1_is_one_line() -> None:
    tree = Tree(version=1)
    for n in range(4):
        tree.raw({"type": "message", "timestamp": f"2026-01-01T00:00:0{n}.000Z",
                  "message": {"role": "user", "content": f"turn {n}"}})  # fmt: skip
    assert said(tree) == ["turn 0", "turn 1", "turn 2", "turn 3"]


def test_a_stray_parent_is_in_the_metadata() -> None:
    tree = Tree()
    fork = tree.say("one")
    tree.say("two")
    tree.say("three", parent=fork)
    events = arrange(parse(tree.data))
    assert [event.metadata.get("parent_id") for event in events] == [None, None, fork]


class Slow:
    """The same rules without bounds: parents in a dict, the main line walked anew each time."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.leaf: str | None = None
        self.places: dict[str, int] = {}

    def step(self, entry: str, parent: str | None, at: int) -> None:
        if parent is not None and parent not in self.parents:
            parent = self.leaf
        self.parents[entry] = parent
        self.places[entry] = at
        self.leaf = entry

    def main(self) -> set[int]:
        line, entry = set(), self.leaf
        while entry is not None:
            line.add(self.places[entry])
            entry = self.parents[entry]
        return line


@pytest.mark.parametrize("seed", range(30))
def test_any_walk_through_any_tree_gives_the_path_to_the_leaf(seed: int) -> None:
    dice = random.Random(seed)
    slow, state, sides = Slow(), BranchState(), {}
    names: list[str] = []
    for number in range(120):
        name = f"{dice.getrandbits(32):08x}" if dice.random() < 0.8 else f"snowflake-{number}"
        kind = dice.random()
        parent: str | None = names[-1] if names else None
        if names and kind < 0.25:
            parent = dice.choice(names)
        elif kind < 0.28:
            parent = None
        elif kind < 0.3:
            parent = "ffffffff"
        at = number * 100
        branches = Branches(state)
        turns = branches.step(name, parent, at, is_visible=True)
        state = branches.state()
        for first, last, is_side in turns:
            for place in sides:
                if first <= place <= last:
                    sides[place] = is_side
        sides[at] = False
        slow.step(name, parent, at)
        names.append(name)
        assert {place for place, is_side in sides.items() if not is_side} == slow.main()


@pytest.mark.parametrize("seed", range(5))
def test_a_wild_tree_is_the_same_however_it_is_cut(seed: int) -> None:
    dice = random.Random(seed)
    tree, names = Tree(), []
    for number in range(60):
        parent = dice.choice(names) if names and dice.random() < 0.3 else ...
        names.append(tree.say(f"turn {number}", parent=parent))
    whole = parse(tree.data)
    for part in range(4):
        parts = parse(tree.data, cuts=cuts(tree.data, seed * 10 + part))
        assert arrange(parts) == arrange(whole)
        assert lost(parts) == lost(whole)


def test_the_state_stays_small_in_a_long_session_with_many_branches() -> None:
    branches = Branches(BranchState())
    for number in range(3 * MAX_HELD):
        parent = f"{number - 2:08x}" if number % 7 == 0 else f"{number - 1:08x}"
        branches.step(f"{number:08x}", parent, number * 5000, is_visible=True)
    state = branches.state()
    assert len(state.ids) <= 4 * MAX_HELD
    assert len(state.jumps) <= MAX_JUMPS
    assert len(state.ids) + len(state.places) + 12 * len(state.jumps) < MAX_STATE_BYTES


def test_a_branch_in_a_long_session_is_still_told() -> None:
    branches = Branches(BranchState())
    for number in range(3 * MAX_HELD):
        branches.step(f"{number:08x}", f"{number - 1:08x}" if number else None, number * 100, is_visible=True)
    last = 3 * MAX_HELD
    assert branches.step(f"{last:08x}", f"{last - 4:08x}", last * 100, is_visible=True) == [
        ((last - 3) * 100, (last - 1) * 100, True)
    ]
    branches = Branches(branches.state())
    assert branches.step("cccccccc", f"{5:08x}", last * 100 + 50, is_visible=True) == []  # long forgotten


def test_offsets_beyond_two_gibibytes_are_told_apart() -> None:
    branches = Branches(BranchState())
    branches.step("00000001", None, 0, is_visible=True)
    branches.step("00000002", "00000001", 3 << 30, is_visible=True)
    branches.step("00000003", "00000002", (3 << 30) + 10, is_visible=True)
    assert branches.step("00000004", "00000002", (3 << 30) + 20, is_visible=True) == [
        ((3 << 30) + 10, (3 << 30) + 10, True)
    ]


@pytest.mark.parametrize(
    "state",
    [
        BranchState(ids=b"abc"),
        BranchState(ids=b"abcd"),
        BranchState(ids=b"abcd" * 4, places=b"\xff" * 16, leaf=3, jumps=[(2, 9), (3, -7), (1, 0)]),
        BranchState(dropped=-5, ids=b"abcd", places=b"abcd", leaf=1 << 60),
        BranchState(origin=1 << 62, ids=b"abcd", places=b"\xff" * 4, leaf=0),
    ],
)
def test_any_state_will_do(state: BranchState) -> None:
    branches = Branches(state)
    for number in range(20):
        branches.step(f"{number:08x}", f"{number // 2:08x}", number, is_visible=True)
    assert len(branches.state().ids) >= 80
