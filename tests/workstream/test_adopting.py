"""A session that is bound to a workstream because somebody says so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memd.errors import NotFound
from memd.workstream.adopting import Adopted, adopt
from memd.workstream.lease import Busy, unseen
from memd.workstream.selection import NameTaken, Wanted
from support_ledger import S1, S2, entry
from support_runs import Runs
from support_workstreams import CWD, PLACE, Lines


def bind(lines: Lines, session: str = S1, harness: str = "claude", **wanted: str) -> Adopted:
    lines.clock.go(10)
    return lines.work(
        lambda work: adopt(work, PLACE, CWD, harness, session, Wanted(**wanted), "fresh", unseen)
    )


def test_a_checkout_without_workstreams_gets_one_and_what_was_said_stands_in_it(
    lines: Lines, runs: Runs
) -> None:
    lines.put(entry("said long ago"), entry("and answered", at=1))
    done = bind(lines)
    assert (done.workstream.name, done.is_new, done.others) == ("default", True, ())
    assert lines.view("fresh") == ["said long ago", "and answered"]
    made = runs.prepare()
    assert made.current is not None
    assert (made.current.session, made.may_adopt) == (S1, False)


def test_it_becomes_the_session_that_its_harness_resumes_and_its_workstream_the_selected_one(
    lines: Lines, runs: Runs
) -> None:
    runs.close(runs.launch(session=S2).id)
    runs.close(runs.launch(new="other").id)
    lines.put(entry("a"), entry("b", session=S2))
    done = bind(lines, workstream="default")
    assert (done.workstream.id, done.is_new) == ("w1", False)
    assert runs.current() == S1
    assert runs.prepare().workstream.name == "default"


def test_a_workstream_that_had_it_keeps_it(lines: Lines, runs: Runs) -> None:
    elsewhere = replace(PLACE, worktree="elsewhere")
    run = runs.launch(session=S1, place=elsewhere)
    lines.put(entry("said there"))
    runs.close(run.id)
    done = bind(lines)
    assert done.others == ("w1",)
    assert lines.view("w1") == lines.view("fresh") == ["said there"]


def test_what_it_had_been_told_is_not_told_again(lines: Lines, runs: Runs) -> None:
    run = runs.launch(session=S1)
    lines.put(entry("a"))
    runs.close(run.id)
    before = runs.linked(S1)
    assert before is not None
    assert before.told == 1
    bind(lines)
    after = runs.linked(S1)
    assert after is not None
    assert after.told == 1


def test_a_workstream_that_somebody_works_in_is_left_alone(lines: Lines, runs: Runs) -> None:
    run = runs.launch(session=S2)
    with pytest.raises(Busy, match="already active"):
        bind(lines)
    assert runs.linked(S1) is None
    runs.close(run.id)
    assert bind(lines).workstream.id == "w1"


def test_names_that_are_taken_or_not_there_bind_nothing(lines: Lines, runs: Runs) -> None:
    runs.close(runs.launch(session=S2).id)
    with pytest.raises(NotFound):
        bind(lines, workstream="none")
    with pytest.raises(NameTaken):
        bind(lines, new="default")
    assert runs.names() == ["default"]
    assert bind(lines, new="rescued").workstream.name == "rescued"
    assert runs.prepare().workstream.name == "rescued"
