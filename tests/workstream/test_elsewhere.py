"""Going on with a workstream of another checkout: what is told before, and what stands in the way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memd.errors import NotFound, Refused, UsageError
from memd.ledger.store.workstreams import Elsewhere
from memd.workstream import elsewhere
from memd.workstream.checkpoint import Checkpoint
from memd.workstream.selection import NameTaken
from support_workstreams import CWD, PLACE, WALL_MS, Lines, workstream

A, B = "a" * 40, "b" * 40
LEFT = f"HEAD {A}\nBranch main"
DIRTY = f"{LEFT}\nDirty {'0' * 64}\nChanged paths:\n- HEAD x"


@pytest.mark.parametrize(
    ("left", "here", "told"),
    [
        (LEFT, Checkpoint(head=A), []),
        (LEFT, Checkpoint(head=B), ["This checkout is at bbbbbbbbbbbb, not at aaaaaaaaaaaa."]),
        (LEFT, Checkpoint(), ["This checkout has no commit; there it was aaaaaaaaaaaa."]),
        ("No repository checkpoint was available.", Checkpoint(head=B), []),
        ("", Checkpoint(head=B), []),
        (DIRTY, Checkpoint(head=A), ["There were changes there that were not committed; they are not here."]),
        (
            LEFT,
            Checkpoint(head=A, dirty_hash="x"),
            ["This checkout has changes that are not committed."],
        ),
    ],
)
def test_what_is_different_here_is_said(left: str, here: Checkpoint, told: list[str]) -> None:
    assert elsewhere.differences(left, here) == told


def test_a_checkpoint_names_one_commit() -> None:
    assert elsewhere.head_of(DIRTY) == A
    assert elsewhere.head_of(f"Branch x\n- HEAD {A}") == ""
    assert elsewhere.head_of("") == ""


def test_where_it_was_is_told_in_one_line() -> None:
    one = Elsewhere(workstream=workstream(), machine="laptop", cwd=CWD, used_ms=WALL_MS, checkpoint=LEFT)
    said = elsewhere.where(one, "/home/dev/proj", "2 hours ago")
    assert said == "last used on laptop in /home/dev/proj (2 hours ago), at commit aaaaaaaaaaaa"
    here = replace(one, machine="", checkpoint="")
    assert elsewhere.where(here, "~/proj", "now") == "last used in ~/proj (now), at no commit that is known"
    assert elsewhere.question(one, said, ["It rains."]).endswith(
        "aaaaaaaaaaaa. It rains. Go on with it here?"
    )


def test_it_is_found_by_name_or_id_and_never_guessed(lines: Lines) -> None:
    lines.workstream("w1", name="one")
    lines.workstream("w2", name="one", place=replace(PLACE, worktree="2" * 64))
    here = replace(PLACE, worktree="3" * 64)
    looking = lines.reader.workstreams
    assert elsewhere.named(looking, here, workstream_id="w2").workstream.id == "w2"
    with pytest.raises(UsageError, match="2 checkouts"):
        elsewhere.named(looking, here, name="one")
    with pytest.raises(NotFound, match="in any checkout"):
        elsewhere.named(looking, here, name="two")
    with pytest.raises(NotFound):
        elsewhere.named(looking, replace(here, repository="other"), workstream_id="w1")


def test_it_is_bound_once_and_not_over_another_of_its_name(lines: Lines) -> None:
    lines.workstream("w1", name="one")
    here = replace(PLACE, worktree="3" * 64)
    if not lines.reader.workstreams.is_shared:
        with pytest.raises(Refused, match="one machine"):
            lines.work(lambda work: elsewhere.bind(work, here, "w1"))
        return
    lines.work(lambda work: elsewhere.bind(work, here, "w1"))
    lines.work(lambda work: elsewhere.bind(work, here, "w1"))
    assert [row.id for row in lines.reader.workstreams.workstreams(here)] == ["w1"]
    other = replace(PLACE, worktree="4" * 64)
    lines.workstream("w4", name="one", place=other)
    with pytest.raises(NameTaken, match="of its own"):
        lines.work(lambda work: elsewhere.bind(work, other, "w1"))
