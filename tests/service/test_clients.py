"""The state of a checkout at the end of a run is told by the git of its client, whichever daemon asks."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memd import disk
from memd.errors import DiskError
from memd.ledger.store.workstreams import Process, Run
from memd.service import clients
from memd.service.clients import Clients
from memd.workstream.launch import Client
from support_git import checkout

HEAD = "0123456789abcdef0123456789abcdef01234567"


def run_in(cwd: Path, id: str = "r1") -> Run:
    return Run(
        id=id,
        workstream="w1",
        harness="claude",
        cwd=os.fsencode(cwd),
        launcher=Process(1, ""),
        boot="b",
        expires_ms=0,
        began_ms=0,
        sync_after=0,
        sync_through=0,
    )


def own_git(folder: Path) -> Path:
    """A git that only the client has, and that tells with which variables it was asked."""
    folder.mkdir()
    git = folder / "git"
    git.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *rev-parse*) echo {HEAD};;\n'
        '*branch*) echo "$HOME $XDG_CONFIG_HOME $AWS_SECRET";; esac\n'
    )
    git.chmod(git.stat().st_mode | stat.S_IXUSR)
    return folder


def client(path: Path, **variables: bytes) -> Client:
    return Client(cwd=b"/", home=b"/home/me", path=os.fsencode(path), variables=variables)


async def test_git_is_the_clients_also_for_a_daemon_that_was_started_anew(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path / "state" / "clients.json")
    mine = client(own_git(tmp_path / "bin"), XDG_CONFIG_HOME=b"/home/me/conf", AWS_SECRET=b"no")
    first = Clients(file, b"/home/daemon")
    await first.note("r1", mine)
    for knows in (first, Clients(file, b"/home/daemon")):
        found = await knows.checkpoint(run_in(tmp_path))
        assert (found.head, found.branch) == (HEAD, "/home/me /home/me/conf")
    assert stat.S_IMODE((tmp_path / "state" / "clients.json").stat().st_mode) == 0o600


async def test_a_client_that_nobody_remembers_has_the_systems_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkout(tmp_path / "app")
    monkeypatch.setenv("PATH", os.fspath(own_git(tmp_path / "bin")))  # of the daemon: counts for nothing
    found = await Clients(os.fsencode(tmp_path / "none.json"), b"/").checkpoint(run_in(path))
    assert found.head != HEAD
    assert found.branch == "main"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"r1": 5}', b"\xff\0"])
async def test_a_damaged_file_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "clients.json"
    file.write_bytes(content)
    knows = Clients(os.fsencode(file), b"/")
    await knows.note("r1", client(own_git(tmp_path / "bin")))
    assert (await Clients(os.fsencode(file), b"/").checkpoint(run_in(tmp_path))).head == HEAD


async def test_runs_that_are_over_go_and_the_file_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_RUNS", 2)
    file = tmp_path / "clients.json"
    knows = Clients(os.fsencode(file), b"/")
    for id in ("r1", "r2", "r3"):
        await knows.note(id, client(tmp_path))
    assert b"r1" not in file.read_bytes()
    knows.forget("r3")
    knows.forget("never heard of")
    await knows.note("r4", client(tmp_path))
    assert b"r3" not in file.read_bytes()
    assert b"r2" in file.read_bytes()


async def test_only_runs_that_go_on_are_taken_over_from_an_earlier_daemon(tmp_path: Path) -> None:
    file = tmp_path / "clients.json"
    first = Clients(os.fsencode(file), b"/")
    for id in ("r1", "r2"):
        await first.note(id, client(own_git(tmp_path / id)))
    knows = Clients(os.fsencode(file), b"/")
    knows.keep({"r2", "r9"})
    await knows.note("r3", client(tmp_path))
    assert (await knows.checkpoint(run_in(tmp_path, "r1"))).head == ""
    assert (await knows.checkpoint(run_in(tmp_path, "r2"))).head == HEAD
    assert b'"r1"' not in file.read_bytes()


async def test_a_disk_that_refuses_costs_no_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DiskError("write", b"clients.json", OSError(28, "no space left"))

    monkeypatch.setattr(disk, "replace_file", refuse)
    knows = Clients(os.fsencode(tmp_path / "clients.json"), b"/")
    await knows.note("r1", client(own_git(tmp_path / "bin")))
    assert (await knows.checkpoint(run_in(tmp_path))).head == HEAD
