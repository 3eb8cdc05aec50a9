"""The registry of checkouts: what it holds, and what it never writes over."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memctl import registry
from memctl.registry import Link
from memd.errors import ConfigError, Refused, TryAgain, UsageError

GOOD: dict[str, Any] = {
    "ledger": "local",
    "workspace": "default",
    "project": "app",
    "path": "/home/me/app",
    "linked_at": "2026-01-02T03:04:05Z",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "data/memd/projects.json"
    if sys.platform == "darwin":
        path = home / "Library/Application Support/memd/data/projects.json"
    path.parent.mkdir(parents=True)
    return path


def folder(home: Path, name: str) -> bytes:
    path = os.fsencode(os.path.realpath(home)) + b"/" + os.fsencode(name)
    os.mkdir(path)
    return path


def write(file: Path, *links: dict[str, Any], version: object = 1) -> bytes:
    file.write_text(json.dumps({"version": version, "links": list(links)}))
    return file.read_bytes()


def test_a_first_note_makes_the_file_for_this_user_alone(home: Path, file: Path) -> None:
    file.parent.rmdir()
    registry.note("default", "app", folder(home, "app"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    document = json.loads(file.read_text())
    assert document["version"] == 1
    assert [set(link) for link in document["links"]] == [set(registry.FIELDS)]
    assert document["links"][0]["ledger"] == "local"


def test_the_checkout_used_last_takes_the_place_of_the_one_before(home: Path, file: Path) -> None:
    first, second, other = (folder(home, name) for name in ("one", "two", "three"))
    registry.note("default", "app", first)
    registry.note("default", "lib", other)
    registry.note("default", "app", second)
    assert [(row.project, row.path) for row in registry.links()] == [("lib", other), ("app", second)]


def test_links_of_another_ledger_and_workspace_stay(home: Path, file: Path) -> None:
    write(file, {**GOOD, "ledger": "https://db.example/x"}, {**GOOD, "workspace": "acme"}, GOOD)
    path = folder(home, "app")
    registry.note("default", "app", path)
    assert [(row.ledger, row.workspace, row.path) for row in registry.links()] == [
        ("https://db.example/x", "default", b"/home/me/app"),
        ("local", "acme", b"/home/me/app"),
        ("local", "default", path),
    ]


def test_odd_bytes_of_a_path_come_back(home: Path, file: Path) -> None:
    path = folder(home, os.fsdecode(b'b\xe9 t\xc3\xa9\n"q'))
    registry.note("default", "app", path)
    assert [row.path for row in registry.links()] == [path]
    assert file.read_bytes().isascii()


def test_only_the_physical_path_of_a_directory_is_noted(home: Path, file: Path) -> None:
    target = folder(home, "app")
    link = os.path.dirname(target) + b"/link"
    os.symlink(target, link)
    for path in (link, target + b"/", target + b"/gone", b"app"):
        with pytest.raises(UsageError):
            registry.note("default", "app", path)
    assert not file.exists()


BROKEN = {
    "not json": b"{",
    "empty": b"",
    "not utf-8": b'{"version":1,"links":[]}\xff',
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "another version": b'{"version":2,"links":[]}',
    "a version of another type": b'{"version":true,"links":[]}',
    "no version": b'{"links":[]}',
    "no links": b'{"version":1}',
    "links that are no list": b'{"version":1,"links":{}}',
    "an unknown field": b'{"version":1,"links":[],"more":1}',
    "a field twice": b'{"version":1,"version":1,"links":[]}',
    "a link twice": json.dumps({"version": 1, "links": [GOOD, GOOD]}).encode(),
    "a link with a field twice": b'{"version":1,"links":[{"path":"/a","path":"/b"}]}',
    "a link without a time": json.dumps(
        {"version": 1, "links": [{k: v for k, v in GOOD.items() if k != "linked_at"}]}
    ).encode(),
    "a link with more": json.dumps({"version": 1, "links": [{**GOOD, "store": "x"}]}).encode(),
    "a number for a path": json.dumps({"version": 1, "links": [{**GOOD, "path": 1}]}).encode(),
    "a path that is none": b'{"version":1,"links":['
    + json.dumps({**GOOD, "path": "\ud800"}).encode()
    + b"]}",
    "too many links": json.dumps(
        {"version": 1, "links": [{**GOOD, "project": str(n)} for n in range(registry.MAX_LINKS + 1)]}
    ).encode(),
    "too long": b" " * registry.MAX_BYTES + b'{"version":1,"links":[]}',
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_understood_is_refused_and_left_as_it_is(home: Path, file: Path, case: str) -> None:
    file.write_bytes(BROKEN[case])
    with pytest.raises(ConfigError, match="cannot be used"):
        registry.links()
    with pytest.raises(ConfigError):
        registry.note("default", "app", folder(home, "app"))
    assert file.read_bytes() == BROKEN[case]


def test_a_link_in_place_of_the_file_is_refused_and_its_target_left(home: Path, file: Path) -> None:
    target = home / "elsewhere.json"
    text = write(target, GOOD)
    file.symlink_to(target)
    with pytest.raises(ConfigError, match="link"):
        registry.note("default", "app", folder(home, "app"))
    assert file.is_symlink()
    assert target.read_bytes() == text


def test_a_dangling_link_or_a_folder_is_refused(home: Path, file: Path) -> None:
    file.symlink_to(home / "nowhere.json")
    with pytest.raises(ConfigError):
        registry.note("default", "app", folder(home, "app"))
    assert not (home / "nowhere.json").exists()
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError):
        registry.links()


def test_a_full_registry_takes_no_more_and_loses_nothing(home: Path, file: Path) -> None:
    text = write(file, *({**GOOD, "project": str(n)} for n in range(registry.MAX_LINKS)))
    with pytest.raises(Refused, match="10000"):
        registry.note("default", "app", folder(home, "app"))
    assert file.read_bytes() == text
    registry.note("default", "7", folder(home, "seven"))  # one that is there may still be renewed
    assert len(registry.links()) == registry.MAX_LINKS


def test_whoever_holds_the_lock_is_waited_for_only_so_long(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "LOCK_S", 0.0)
    with open(file.parent / "projects.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TryAgain):
            registry.note("default", "app", folder(home, "app"))
    assert not file.exists()


def test_many_at_once_lose_no_link(home: Path, file: Path) -> None:
    script = (
        "import os, sys; from memctl import registry; registry.note('default', sys.argv[1], os.getcwdb())"
    )
    children = []
    for number in range(4):
        cwd = folder(home, f"app{number}")
        children.append(
            subprocess.Popen([sys.executable, "-c", script, f"app{number}"], cwd=cwd, env=_env(home))
        )
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    assert {row.project for row in registry.links()} == {"app0", "app1", "app2", "app3"}
    assert sorted(path.name for path in file.parent.iterdir()) == ["projects.json", "projects.lock"]


def _env(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def link(project: str, path: bytes = b"/p", workspace: str = "default", ledger: str = "local") -> Link:
    return Link(ledger, workspace, project, path, "2026-01-02T03:04:05Z")


def test_another_name_keeps_path_and_time() -> None:
    rows = [link("a", b"/a"), link("b", b"/b")]
    assert registry.rekeyed(rows, "local", ("default", "a"), ("acme", "c")) == [
        link("c", b"/a", workspace="acme"),
        link("b", b"/b"),
    ]


def test_a_link_that_the_new_name_has_already_stays_and_the_old_one_goes() -> None:
    rows = [link("a", b"/a"), link("b", b"/b")]
    assert registry.rekeyed(rows, "local", ("default", "a"), ("default", "b")) == [link("b", b"/b")]


def test_another_name_changes_neither_other_ledgers_nor_itself() -> None:
    rows = [link("a", ledger="https://db.example"), link("a", workspace="acme")]
    assert registry.rekeyed(rows, "local", ("default", "a"), ("default", "c")) == rows
    assert registry.rekeyed([link("a")], "local", ("default", "a"), ("default", "a")) == [link("a")]


def test_a_change_that_changes_nothing_writes_nothing(home: Path, file: Path) -> None:
    text = write(file, GOOD)
    before = file.stat()
    assert not registry.change(lambda rows: rows)
    assert file.read_bytes() == text
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert file.stat().st_ino == before.st_ino
