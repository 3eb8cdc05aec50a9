"""`memctl run` without a name: which agent goes on, and in what."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_desk import Desk


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    return shared


def direct(desk: Desk, name: str, text: str, cwd: Path | None = None) -> None:
    """An agent that is started without memd."""
    subprocess.run(
        [desk.fakes.folder / name],
        env={**desk.home.environment, "FAKE_DO": f"say:{text}"},
        cwd=cwd or desk.checkout,
        check=True,
    )
    desk.fakes.clear()


def test_where_nobody_has_worked_nothing_is_made(desk: Desk) -> None:
    done = desk.run("--yolo")
    assert done.returncode != 0
    assert "no session was found for this directory" in done.stderr
    assert "memctl run claude" in done.stderr
    assert desk.fakes.starts() == []
    assert desk.workstreams() == []


def test_the_newest_session_of_this_directory_goes_on(desk: Desk) -> None:
    direct(desk, "claude", "older")
    time.sleep(0.005)
    direct(desk, "codex", "newer")
    elsewhere = desk.checkout / "below"
    elsewhere.mkdir()
    direct(desk, "pi", "newest_but_elsewhere", cwd=elsewhere)
    done = desk.run("--yolo", do="say:more")
    assert done.returncode == 0, done.stderr
    assert desk.fakes.last()["name"] == "codex"
    assert desk.args()[0] == "resume"
    assert desk.args()[-1] == "--dangerously-bypass-approvals-and-sandbox"
    assert "going on in session" in done.stderr
    assert desk.words() == ["newer", "re newer", "more", "re more"]


def test_then_the_workstream_has_its_say_whatever_is_newer_in_stores(desk: Desk) -> None:
    direct(desk, "codex", "first")
    desk.ok(do="say:taken_over")
    fresh = desk.ok("claude", do="say:by_name")["args"]
    assert fresh[0] == "--session-id"
    direct(desk, "pi", "newer_file")
    start = desk.ok(do="say:goes_on")
    assert start["name"] == "claude"
    assert start["args"] == ["--resume", fresh[1]]


def test_a_harness_that_is_never_started_unasked_is_passed_over(desk: Desk) -> None:
    direct(desk, "claude", "older")
    time.sleep(0.005)
    direct(desk, "omp", "newer")
    assert desk.ok(do="say:more")["name"] == "claude"


def test_where_only_such_a_harness_worked_it_is_named(desk: Desk) -> None:
    desk.ok("omp", do="say:before")
    done = desk.run(do="say:more")
    assert done.returncode == 65
    assert "omp worked here last" in done.stderr
    assert "memctl run omp" in done.stderr


def test_a_missing_program_is_passed_over_and_if_all_are_missing_they_are_named(desk: Desk) -> None:
    direct(desk, "claude", "older")
    time.sleep(0.005)
    direct(desk, "codex", "newer")
    desk.fakes.remove("codex")
    assert desk.ok(do="say:more")["name"] == "claude"
    desk.fakes.remove("claude")
    done = desk.run()
    assert done.returncode == 69
    assert "claude" in done.stderr
    assert "codex" in done.stderr


def test_a_swept_session_does_not_count(desk: Desk) -> None:
    direct(desk, "claude", "older")
    time.sleep(0.005)
    direct(desk, "codex", "newer")
    assert desk.home.memctl("import", "--wait").returncode == 0
    for path in desk.home.path.glob(".codex/sessions/**/*.jsonl"):
        if str(desk.checkout) in path.read_text():
            path.unlink()
    assert desk.ok(do="say:more")["name"] == "claude"


def test_a_new_workstream_begins_a_fresh_session_of_the_newest_harness(desk: Desk) -> None:
    direct(desk, "claude", "older")
    time.sleep(0.005)
    direct(desk, "codex", "newer")
    start = desk.ok("--new", "other", do="say:begun")
    assert (start["name"], start["args"]) == ("codex", [])
    names = {one["name"]: one["workstream_id"] for one in desk.workstreams()}
    assert desk.words(names["other"]) == ["begun", "re begun"]


def test_fresh_without_a_name_begins_a_new_session_of_the_same_agent(desk: Desk) -> None:
    first = desk.ok("claude", do="say:one")["args"]
    start = desk.ok("--fresh", do="say:two")
    assert (start["name"], start["args"][0]) == ("claude", "--session-id")
    assert start["args"] != first


def test_in_another_folder_of_the_checkout_the_workstream_goes_on(desk: Desk) -> None:
    session = desk.ok("claude", do="say:above")["args"][1]
    below = desk.checkout / "src"
    below.mkdir()
    args = desk.ok(do="say:below", cwd=below)["args"]
    assert args[0] == "--resume"
    assert session in args[1]
    assert desk.words() == ["above", "re above", "below", "re below"]


@pytest.mark.parametrize(
    "words", [["--executable", "/bin/true"], ["--", "--model"], ["--workstream", "nope"]]
)
def test_what_needs_a_name_is_refused_without_one(desk: Desk, words: list[str]) -> None:
    done = desk.run(*words)
    assert done.returncode in (64, 65)
    assert desk.fakes.starts() == []
    assert desk.workstreams() == []


def test_a_pi_session_of_another_folder_is_not_taken_up_there(desk: Desk) -> None:
    session = desk.ok("pi", do="say:above")["args"][1]
    below = desk.checkout / "src"
    below.mkdir()
    done = desk.run("pi", do="say:below", cwd=below)
    assert "only" in done.stderr
    assert "--session-id" in desk.args()
    assert session not in desk.args()
    assert os.path.realpath(below) == desk.fakes.last()["cwd"]
