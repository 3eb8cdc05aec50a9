"""Sessions and projects for people: carried, adopted, renamed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd import disk
from memd.errors import NotFound, Refused, UsageError
from memd.protocol_work import AdoptSession, CarrySession, CreateHandoff, RenameProject, Workstreams
from memd.service import orphans
from memd.workstream.selection import NameTaken
from support_ledger import S1, S2, entry
from support_work import Desk
from support_workstreams import Lines, handoff


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(disk, "flush", lambda fd: None)
    with Lines(tmp_path / "ledger") as lines:
        yield Desk(lines, tmp_path)


def transcript(login: Path, text: bytes = b"{}\n") -> Path:
    path = login / "projects" / "-home-dev-proj" / f"{S1}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    return path


# ------------------------------------------------------------------------------------ carrying


async def test_a_session_is_carried_into_the_login_in_use(desk: Desk) -> None:
    old, new = desk.home / ".claude", desk.home / ".claude work"
    original = transcript(old)
    new.mkdir()
    desk.lines.put(entry("a"))
    variables = {**desk.variables, "CLAUDE_CONFIG_DIR": bytes(new)}
    text = await desk.say(CarrySession, session=S1, variables=variables)
    assert f"session {S1} is in {new} now" in text
    assert "from " + str(old) in text
    assert "1 file copied" in text
    command = text.splitlines()[-1].strip()
    assert shlex.split(command) == [f"CLAUDE_CONFIG_DIR={new}", "claude", "--resume", S1]
    assert "go on in /home/dev/proj with:" in text
    assert (new / "projects" / "-home-dev-proj" / f"{S1}.jsonl").read_bytes() == original.read_bytes()
    again = await desk.json(CarrySession, session=S1, variables=variables)
    assert again == {
        "session": S1,
        "to": str(new),
        "from": str(old),
        "copied": [],
        "extended": [],
        "unchanged": [f"-home-dev-proj/{S1}.jsonl"],
        "left_out": [],
        "has_gone_on": False,
        "cwd": "/home/dev/proj",
    }


async def test_without_a_login_in_the_environment_it_is_the_usual_one(desk: Desk) -> None:
    other = desk.home / ".claude-work"
    transcript(other)
    usual = desk.home / ".claude"
    usual.mkdir()
    with pytest.raises(NotFound, match="no login has"):
        await desk.say(CarrySession, session=S1)
    desk.environments.set_config_homes([bytes(other)])
    text = await desk.say(CarrySession, session=S1)
    assert f"is in {usual} now" in text
    assert text.splitlines()[-1] == f"  claude --resume {S1}"


async def test_logins_that_somebody_names_are_taken(desk: Desk) -> None:
    source, target = desk.home / "a", desk.home / "b"
    transcript(source)
    target.mkdir()
    done = await desk.json(CarrySession, session=S1, source=bytes(source), to=bytes(target))
    assert (done["from"], done["to"], len(done["copied"])) == (str(source), str(target), 1)
    with pytest.raises(NotFound, match="no login"):
        await desk.say(CarrySession, session=S1, source=bytes(source), to=bytes(desk.home / "none"))


async def test_a_launch_carries_what_it_saw_in_a_login_that_nobody_else_knows(desk: Desk) -> None:
    source, target = desk.home / "a", desk.home / "b"
    original = transcript(source)
    target.mkdir()
    carrying = desk.answers._sessions._carrying
    assert "was copied from" in await carrying.bring(S1, bytes(original), bytes(target))
    assert "already" in await carrying.bring(S1, bytes(original), bytes(target))
    original.write_bytes(b"[]\n")
    with pytest.raises(Refused):
        await carrying.bring(S1, bytes(original), bytes(target))


# ------------------------------------------------------------------------------------ adopting


async def test_a_session_is_bound_to_this_checkout_by_its_id(desk: Desk) -> None:
    desk.lines.put(entry("fix the migration"))
    text = await desk.say(AdoptSession, session=S1)
    assert f"session {S1} of claude is part of workstream 'default' now" in text
    assert "fix the migration" in text
    assert "`memctl run claude` goes on with it" in text
    [row] = await desk.json(Workstreams)
    assert (row["name"], row["current"], row["linked_harnesses"]) == ("default", True, ["claude"])
    done = await desk.json(AdoptSession, session=S1, new="rescued")
    assert (done["workstream"], done["is_new"], done["also_in"]) == ("rescued", True, [row["workstream_id"]])


async def test_which_harness_must_be_said_only_where_it_is_not_clear(desk: Desk) -> None:
    desk.lines.put(entry("a"))
    desk.lines.put(entry("b"), harness="codex")
    with pytest.raises(UsageError, match="several harnesses"):
        await desk.say(AdoptSession, session=S1)
    done = await desk.json(AdoptSession, session=S1, harness="Codex")
    assert done["harness"] == "codex"


async def test_what_is_no_session_of_its_own_is_not_bound(desk: Desk) -> None:
    for id in ("none", "", "../x"):
        with pytest.raises(NotFound, match="in the ledger"):
            await desk.say(AdoptSession, session=id)
    with pytest.raises(UsageError, match="no harness is called"):
        await desk.say(AdoptSession, session=S1, harness="none")
    with pytest.raises(UsageError, match="exclude each other"):
        await desk.say(AdoptSession, session=S1, workstream="a", new="b")
    assert await desk.json(Workstreams) == []


# ------------------------------------------------------------------------------------ projects


async def test_a_project_takes_all_it_has_to_its_new_name(desk: Desk) -> None:
    run = desk.launch(session=S2)
    desk.lines.put(entry("a", session=S2))
    desk.steps.close(run.id)
    await desk.say(CreateHandoff, summary="go on")
    done = await desk.json(RenameProject, project="app", to_project=" shop ")
    assert done == {
        "workspace": "default",
        "project": "shop",
        "previous_workspace": "default",
        "previous_project": "app",
        "workstreams": 1,
        "handoffs": 1,
    }
    assert await desk.json(Workstreams) == []
    assert len(await desk.json(Workstreams, project="shop")) == 1
    text = await desk.say(RenameProject, project="shop", to_workspace="acme")
    assert text == "default/shop is now acme/shop: 1 workstream and 1 handoff\n"
    assert len(await desk.json(Workstreams, project="shop", workspace="acme")) == 1


async def test_names_that_are_taken_unknown_or_impossible_change_nothing(desk: Desk) -> None:
    desk.steps.close(desk.launch(session=S2).id)
    desk.lines.work(lambda work: work.put_handoff(handoff(project="other")))
    with pytest.raises(NameTaken):
        await desk.say(RenameProject, project="app", to_project="other")
    with pytest.raises(NotFound):
        await desk.say(RenameProject, project="none", to_project="x")
    for name in ("_global", "a\nb", "x" * 300):
        with pytest.raises(UsageError):
            await desk.say(RenameProject, project="app", to_project=name)
    assert len(await desk.json(Workstreams)) == 1


# ------------------------------------------------------------------------------------- orphans


def test_only_directories_that_are_certainly_gone_are_said_to_be(tmp_path: Path) -> None:
    there, file, gone = tmp_path / "there", tmp_path / "file", str(tmp_path / "gone")
    there.mkdir()
    file.write_text("")
    (tmp_path / "dangling").symlink_to(gone)
    inside = str(file / "x")
    asked = [
        *(str(there), gone, gone, str(file), inside, str(tmp_path / "dangling")),
        *("", "relative", "/x\0y", f"{gone}\ufffd", f"{gone}[REDACTED]", f"/{'x' * 5000}"),
    ]
    assert orphans.gone(asked) == {gone, str(file), inside, str(tmp_path / "dangling")}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_directory_that_may_not_be_looked_at_is_not_said_to_be_gone(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "in").mkdir(parents=True)
    closed.chmod(0)
    try:
        assert orphans.gone([str(closed / "in")]) == set()
    finally:
        closed.chmod(0o700)
