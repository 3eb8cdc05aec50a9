"""Where the memory of a project lies in each login, and what stands there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memd.checkout import project_root
from memd.memory.config_homes import ConfigHome, find_config_homes
from memd.memory.key import project_key
from memd.memory.where import entry_path, entry_paths, entry_state, places


class Machine:
    """A project with an owned folder, and one login with a `projects/<key>` for it."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.root = top / "work/proj"
        self.owned = self.root / ".memd/memory"
        self.owned.mkdir(parents=True)
        self.key = project_key(os.fsencode(self.root))
        self.login = self.home / ".claude"
        self.folder = self.login / "projects" / self.key
        self.folder.mkdir(parents=True)
        self.entry = self.folder / "memory"

    def state(self, *, owned: bool = True) -> str:
        folder = os.fsencode(self.owned) if owned else None
        login = ConfigHome(os.fsencode(self.login), os.path.realpath(os.fsencode(self.login)))
        (place,) = places(os.fsencode(self.root), self.key, folder, [login])
        assert place.config_home == os.fsencode(self.login)
        assert place.path == os.fsencode(self.entry)
        return place.state


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(Path(os.path.realpath(tmp_path)))


def test_link_to_the_owned_folder_is_linked(machine: Machine) -> None:
    machine.entry.symlink_to(machine.owned)
    assert machine.state() == "linked"


def test_link_of_any_spelling_is_linked(machine: Machine) -> None:
    (machine.home / "alias").symlink_to(machine.owned)
    machine.entry.symlink_to(os.path.relpath(machine.home / "alias", machine.folder))
    assert machine.state() == "linked"


def test_link_is_not_linked_while_no_agent_owns_it(machine: Machine) -> None:
    machine.entry.symlink_to(machine.owned)
    assert machine.state(owned=False) == "foreign-link"


def test_nothing_there_is_absent(machine: Machine) -> None:
    assert machine.state() == "absent"
    machine.folder.rmdir()
    assert machine.state() == "absent"
    machine.folder.parent.rmdir()
    assert machine.state() == "absent"


def test_real_folder_is_a_folder(machine: Machine) -> None:
    machine.entry.mkdir()
    assert machine.state() == "folder"
    assert machine.state(owned=False) == "folder"


def test_folder_that_the_owned_one_leads_to_is_still_a_folder(machine: Machine) -> None:
    """The data lies in the login then, and would go with it."""
    machine.entry.mkdir()
    machine.owned.rmdir()
    machine.owned.symlink_to(machine.entry)
    assert machine.state() == "folder"


@pytest.mark.parametrize("target", ["nowhere", "memory", "../../../gone"])
def test_link_to_nothing_is_dangling(target: str, machine: Machine) -> None:
    machine.entry.symlink_to(target)
    assert machine.state() == "dangling"


def test_link_to_an_owned_folder_that_is_gone_is_dangling(machine: Machine) -> None:
    machine.entry.symlink_to(machine.owned)
    machine.owned.rmdir()
    assert machine.state() == "dangling"


def test_link_elsewhere_is_foreign(machine: Machine) -> None:
    (machine.home / "other").mkdir()
    machine.entry.symlink_to(machine.home / "other")
    assert machine.state() == "foreign-link"


def test_link_to_a_file_is_foreign(machine: Machine) -> None:
    (machine.home / "note.md").touch()
    machine.entry.symlink_to(machine.home / "note.md")
    assert machine.state() == "foreign-link"


def test_plain_file_is_a_file(machine: Machine) -> None:
    machine.entry.touch()
    assert machine.state() == "file"
    machine.entry.unlink()
    os.mkfifo(machine.entry)
    assert machine.state() == "file"


@pytest.mark.parametrize("what", ["file", "dangling", "loop", "link to a file"])
@pytest.mark.parametrize("which", ["projects", "key"])
def test_something_in_the_way_blocks(what: str, which: str, machine: Machine) -> None:
    machine.folder.rmdir()
    obstacle = machine.folder
    if which == "projects":
        machine.folder.parent.rmdir()
        obstacle = machine.folder.parent
    if what == "file":
        obstacle.touch()
    else:
        (machine.home / "a file").touch()
        obstacle.symlink_to(
            {"dangling": "nowhere", "loop": obstacle.name, "link to a file": machine.home / "a file"}[what]
        )
    assert machine.state() == "blocked"


def test_project_folder_that_is_a_link_inside_the_login_is_gone_through(machine: Machine) -> None:
    machine.folder.rename(machine.folder.with_name("renamed"))
    machine.folder.symlink_to("renamed")
    assert machine.state() == "absent"
    machine.entry.mkdir()
    assert machine.state() == "folder"


def test_projects_that_lead_out_of_the_login_block(machine: Machine) -> None:
    outside = machine.home / "shared"
    machine.folder.parent.rename(outside)
    machine.folder.parent.symlink_to(outside)
    assert machine.state() == "blocked"
    machine.entry.mkdir()
    assert machine.state() == "blocked"
    machine.entry.rmdir()
    machine.entry.symlink_to(machine.owned)
    assert machine.state() == "linked", "however it came about"


def test_name_that_is_too_long_is_unreadable(machine: Machine) -> None:
    long = machine.login / "projects" / ("x" * 300) / "memory"
    assert entry_state(os.fsencode(long), os.fsencode(machine.owned)) == "unreadable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("which", ["login", "projects", "key"])
def test_locked_folder_is_unreadable(which: str, machine: Machine) -> None:
    machine.entry.mkdir()
    locked = {"login": machine.login, "projects": machine.folder.parent, "key": machine.folder}[which]
    locked.chmod(0)
    try:
        assert machine.state() == "unreadable"
    finally:
        locked.chmod(0o700)


def test_every_login_has_a_place_in_order(machine: Machine) -> None:
    for name in (".claude-work", ".claude-spare"):
        (machine.home / name / "projects").mkdir(parents=True)
    machine.entry.symlink_to(machine.owned)
    (machine.home / ".claude-work/projects" / machine.key / "memory").mkdir(parents=True)
    logins = find_config_homes(os.fsencode(machine.home))
    found = places(os.fsencode(machine.root), machine.key, os.fsencode(machine.owned), logins)
    assert [(os.path.basename(place.config_home), place.state) for place in found] == [
        (b".claude", "linked"),
        (b".claude-spare", "absent"),
        (b".claude-work", "folder"),
    ]


def test_looking_creates_nothing(machine: Machine) -> None:
    machine.folder.rmdir()
    machine.state()
    assert list((machine.login / "projects").iterdir()) == []


# ------------------------------------------------------------------- keys over 200 units


def long_root(machine: Machine) -> tuple[bytes, str]:
    root = os.fsencode(machine.root) + b"/x" * 120
    return root, project_key(root)


def test_long_key_is_looked_up_among_the_folders_that_are_there(machine: Machine) -> None:
    root, key = long_root(machine)
    login = os.fsencode(machine.login)
    assert entry_path(root, key, login).path == login + b"/projects/" + key.encode() + b"/memory"
    older = machine.login / "projects" / (key[:201] + "older1")
    older.mkdir()
    assert entry_path(root, key, login).path == os.fsencode(older / "memory")
    assert [entry.path for entry in entry_paths(root, key, login)] == [
        os.fsencode(older / "memory"),
        login + b"/projects/" + key.encode() + b"/memory",
    ], "a version of today makes the second one at its next start"
    (machine.login / "projects" / key).mkdir()
    (entry,) = entry_paths(root, key, login)
    assert entry.path == login + b"/projects/" + key.encode() + b"/memory"


def test_several_folders_for_a_long_key_block(machine: Machine) -> None:
    root, key = long_root(machine)
    for name in ("older1", "older2"):
        (machine.login / "projects" / (key[:201] + name)).mkdir()
    login = ConfigHome(os.fsencode(machine.login), os.fsencode(machine.login))
    (place,) = places(root, key, os.fsencode(machine.owned), [login])
    assert place.state == "blocked"
    assert place.path.endswith(key.encode() + b"/memory")
    assert "2 folders" in entry_path(root, key, login.path).problem


def test_place_of_a_directory_below_the_root_is_the_roots(machine: Machine) -> None:
    (machine.root / ".git").mkdir()
    root = project_root(os.fsencode(machine.root / "src/deep"))
    login = ConfigHome(os.fsencode(machine.login), os.fsencode(machine.login))
    (place,) = places(root, project_key(root), None, [login])
    assert place.path == os.fsencode(machine.entry)
