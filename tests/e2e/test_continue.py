"""`memctl continue`: from anywhere to the checkout that was used last, and a bare run there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support_cases import expectation, make
from support_daemon import Home
from support_git import checkout

CASE = "40-continue-registry"
SESSION = "2a8d3c1e-0000-4000-8000-0000000000%02d"

PROGRAM = """#!/bin/sh
case "$1" in --help|--version) echo claude; exit 0;; esac
{ pwd; printf '%s\\n' "$PWD" "$MEMD_RUN_ID" "$@"; } > "$HOME/launched"
exit 23
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(PROGRAM)
    (programs / "claude").chmod(0o755)
    made.environment["PATH"] = f"{programs}{os.pathsep}{made.environment['PATH']}"
    yield made
    made.memctl("down")
    made.end_all()


def spoke_in(home: Home, cwd: Path, number: int) -> str:
    """A session of Claude Code that was held there; its id."""
    session = SESSION % number
    folder = home.path / ".claude" / "projects" / f"-work-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "type": "user",
        "message": {"role": "user", "content": "hello"},
        "uuid": f"00000000-0000-4000-8000-0000000000{number:02d}",
        "parentUuid": None,
        "sessionId": session,
        "cwd": str(cwd),
        "timestamp": "2026-02-07T09:00:00.000Z",
        "version": "2.1.197",
    }
    (folder / f"{session}.jsonl").write_text(json.dumps(record) + "\n")
    return session


def registry(home: Home) -> Path:
    return home.path / ".local/share/memd/projects.json"


def save(home: Home, *links: dict[str, Any]) -> bytes:
    path = registry(home)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    usual = {"ledger": "local", "workspace": "default", "linked_at": "2026-02-07T09:00:00Z"}
    path.write_text(json.dumps({"version": 1, "links": [{**usual, **link} for link in links]}))
    return path.read_bytes()


def launched(home: Home) -> list[str]:
    """Where the program was started, by the kernel and by its environment, in which run, with which words."""
    return (home.path / "launched").read_text().splitlines()


def test_the_case_of_the_five_links(home: Home, tmp_path: Path) -> None:
    made = tmp_path / "made"
    make(CASE, made)
    expected = expectation(CASE)
    links = json.loads((made / "registry.json").read_text())
    for number, link in enumerate(links):
        spoke_in(home, Path(os.path.realpath(link["path"])), number)
    mismatch = next(link for link in links if link["project"] == expected["scope_mismatch"])
    (Path(mismatch["path"]) / ".memd.toml").write_text('project = "elsewhere"\n')
    before = save(home, *links)
    done = home.memctl("continue", cwd="/")
    assert done.returncode == 23, done.stderr
    lines = done.stderr.splitlines()
    passed = [line for line in lines if line.startswith("memctl: passed over ")]
    assert sorted(line.split()[3].split("/")[1] for line in passed) == sorted(expected["skips"])
    assert any("cannot be read" in line and "/two in" in line for line in passed)
    assert any("belongs to default/elsewhere" in line for line in passed)
    assert any("/one in" in line and str(tmp_path / "made/work/other") in line for line in passed)
    chosen = next(link for link in links if link["project"] == expected["picks"])
    assert f"memctl: going on with default/{chosen['project']} in {chosen['path']}" in lines
    cwd, pwd, run, *words = launched(home)
    assert (cwd, pwd) == (chosen["path"], chosen["path"])
    assert run
    assert words == ["--resume", SESSION % links.index(chosen)]
    after = json.loads(registry(home).read_bytes())["links"]
    unchanged = [link for link in json.loads(before)["links"] if link["project"] != expected["picks"]]
    assert [link for link in after if link["project"] != expected["picks"]] == unchanged
    assert "linked" not in done.stdout


def test_it_is_a_bare_run_there_with_the_same_words(home: Home) -> None:
    app = checkout(home.path / "wörk dir" / "app")
    session = spoke_in(home, app, 1)
    save(home, {"project": "app", "path": str(app)})
    done = home.memctl("continue", "--yolo", cwd="/")
    assert done.returncode == 23, done.stderr
    by_continue = launched(home)[3:]
    assert home.memctl("run", "--yolo", cwd=app).returncode == 23
    assert launched(home)[3:] == by_continue
    assert session in by_continue
    assert home.memctl("continue", "--fresh", cwd="/").returncode == 23
    assert session not in launched(home)


def test_a_run_makes_its_checkout_the_one_to_continue_in(home: Home) -> None:
    one, two = (checkout(home.path / name) for name in ("one", "two"))
    for number, path in enumerate((one, two)):
        spoke_in(home, path, number)
        assert home.memctl("run", "claude", cwd=path).returncode == 23
    (links := json.loads(registry(home).read_text())["links"]).sort(key=lambda link: str(link["project"]))
    assert [(link["project"], link["path"]) for link in links] == [("one", str(one)), ("two", str(two))]
    links[0]["linked_at"], links[1]["linked_at"] = "2026-02-07T09:00:00Z", "2026-02-07T08:00:00-02:00"
    save(home, *links)
    assert home.memctl("continue", cwd="/").returncode == 23
    assert launched(home)[0] == str(two)


def test_only_links_of_the_workspace_and_of_this_ledger_count(home: Home) -> None:
    app = checkout(home.path / "app")
    (app / ".memd.toml").write_text('workspace = "acme"\nproject_strategy = "repo-root"\n')
    other = checkout(home.path / "other")
    spoke_in(home, app, 1)
    save(
        home,
        {"project": "app", "workspace": "acme", "path": str(app), "linked_at": "2020-01-01T00:00:00Z"},
        {"project": "other", "path": str(other)},
        {"project": "app", "workspace": "acme", "ledger": "https://x", "path": str(other)},
    )
    done = home.memctl("continue", "--workspace", "acme", cwd="/")
    assert done.returncode == 23, done.stderr
    assert launched(home)[0] == str(app)
    none = home.memctl("continue", "--workspace", "none", cwd="/")
    assert (none.returncode, none.stdout) == (65, "")
    assert "no checkout in workspace 'none' was worked in yet" in none.stderr


def test_without_a_good_link_nothing_is_started_and_the_count_is_told(home: Home, tmp_path: Path) -> None:
    empty = home.memctl("continue")
    assert empty.returncode == 65
    assert "memctl run" in empty.stderr
    links = [{"project": f"p{number}", "path": str(tmp_path / f"gone{number}")} for number in range(30)]
    save(home, *links, {"project": "relative", "path": "app"}, {"project": "nul", "path": "/a\0b"})
    done = home.memctl("continue")
    assert done.returncode == 65
    assert "of 32 saved checkouts none can be used" in done.stderr
    assert done.stderr.count("passed over") == 20
    assert "and 12 more" in done.stderr
    assert not (home.path / "launched").exists()


def test_a_run_that_fails_there_is_not_tried_elsewhere(home: Home) -> None:
    app, other = checkout(home.path / "app"), checkout(home.path / "other")
    spoke_in(home, other, 1)
    save(
        home,
        {"project": "app", "path": str(app), "linked_at": "2026-03-01T00:00:00Z"},
        {"project": "other", "path": str(other)},
    )
    done = home.memctl("continue", cwd="/")
    assert done.returncode not in (0, 23)
    assert "no session was found for this directory" in done.stderr
    assert not (home.path / "launched").exists()


@pytest.mark.parametrize("text", ["{", '{"version":2,"links":[]}', '{"version":1,"version":1,"links":[]}'])
def test_a_registry_that_is_not_understood_is_refused_and_left(home: Home, text: str) -> None:
    path = registry(home)
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(text)
    done = home.memctl("continue")
    assert (done.returncode, done.stdout) == (78, "")
    assert "memd leaves it as it is" in done.stderr
    app = checkout(home.path / "app")
    run = home.memctl("run", "claude", cwd=app)
    assert run.returncode == 23
    assert "was not noted" in run.stderr
    assert path.read_text() == text
