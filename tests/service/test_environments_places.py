"""Environments of clients that started a harness which keeps a store in every place."""

from __future__ import annotations

import os
from pathlib import Path

from memd.service.environments import MAX_SEEN, Environments


def made(path: Path, changes: list[int] | None = None) -> Environments:
    home = os.fsencode(path)
    return Environments(home, home + b"/environments.json", lambda: (changes or []).append(1))


def test_a_place_is_followed_with_the_variables_it_was_named_with(tmp_path: Path) -> None:
    known = made(tmp_path)
    known.see({"XDG_DATA_HOME": b"/x"}, b"/w")
    known.see({}, b"/v")
    usual, first, second = known.all()
    assert (usual.places, first.places, second.places) == ((), (b"/w",), (b"/v",))
    assert (first.variables, second.variables) == ({"XDG_DATA_HOME": b"/x"}, {})
    again = made(tmp_path)
    assert again.all() == known.all()


def test_the_last_client_of_a_place_says_how_a_child_there_looks(tmp_path: Path) -> None:
    known = made(tmp_path)
    known.see({"A": b"/1"}, b"/w")
    known.see({"A": b"/2"}, b"/w")
    assert known.at(b"/w").variables == {"A": b"/2"}
    known.see({"A": b"/1"}, b"/w")
    child = known.at(b"/w")
    assert (child.variables, child.places, child.is_child) == ({"A": b"/1"}, (b"/w",), True)
    assert len(known.all()) == 3


def test_a_place_nobody_named_is_looked_at_all_the_same(tmp_path: Path) -> None:
    child = made(tmp_path).at(b"/w")
    assert (child.home, child.variables, child.places) == (os.fsencode(tmp_path), {}, (b"/w",))


def test_many_places_push_out_no_other_environment(tmp_path: Path) -> None:
    known = made(tmp_path)
    known.see({"CODEX_HOME": b"/codex"})
    for number in range(MAX_SEEN + 5):
        known.see({}, b"/w/%d" % number)
    everything = known.all()
    assert {"CODEX_HOME": b"/codex"} in [one.variables for one in everything]
    assert next(one.places for one in everything if one.places) == (b"/w/5",)
    assert len([one for one in everything if one.places]) == MAX_SEEN


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    changes: list[int] = []
    known = made(tmp_path, changes)
    for _ in range(3):
        known.see({}, b"/w")
        known.see({"CODEX_HOME": b"/codex"})
    assert len(known.all()) == 3
