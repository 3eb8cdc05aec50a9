"""`memctl run` by every word there is for an agent: the right program, and its session under another word."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_kept_engines
import support_stand_ins
from support_desk import Desk

PROGRAMS = {
    "claude": ("claude", "claude-code"),
    "codex": ("codex", "codex-cli"),
    "opencode": ("opencode", "open-code"),
    "pi": ("pi",),
    "omp": ("omp", "oh-my-pi"),
    "crush": ("crush",),
    "kimi": ("kimi", "kimi-code", "kimi-cli"),
    "command-code": ("command-code", "commandcode", "cmdc", "cmd"),
    "kiro-cli": ("kiro", "kiro-cli", "kiro-v2", "kiro-cli-v2", "kiro-v3", "kiro-cli-v3"),
    "grok": ("grok", "grok-build"),
    "agy": ("antigravity", "antigravity-cli", "agy", "Antigravity_CLI"),
}
WORDS = [(word, program) for program, words in PROGRAMS.items() for word in words]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    support_stand_ins.install(made.fakes.folder)
    support_kept_engines.install(made.fakes.folder)
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    return shared


@pytest.mark.parametrize(("word", "program"), WORDS)
def test_every_word_starts_its_program(desk: Desk, word: str, program: str) -> None:
    start = desk.ok(word)
    assert (start["name"], start["cwd"]) == (program, str(desk.checkout))
    version = desk.ok(word, "--version")
    assert (version["name"], version["args"]) == (program, ["--version"])


@pytest.mark.parametrize(
    ("first", "then", "option"),
    [
        ("kimi", "kimi-cli", "--session"),
        ("command-code", "cmdc", "--session"),
        ("grok", "grok-build", "--resume"),
    ],
)
def test_the_session_goes_on_under_another_word(desk: Desk, first: str, then: str, option: str) -> None:
    desk.ok(first, do="say:first")
    (row,) = desk.json("sessions", "--cwd", str(desk.checkout))
    assert desk.ok(then, do="say:second")["args"] == [option, row["id"]]
    assert desk.words() == ["first", "re first", "second", "re second"]
    assert desk.ok(first, option)["args"] == [option]  # bare: the program's own list, untouched


def test_the_list_of_workstreams_names_no_session_and_no_path(desk: Desk) -> None:
    desk.ok("kimi", do="say:first")
    (row,) = desk.json("sessions", "--cwd", str(desk.checkout))
    for words in (["workstreams"], ["workstreams", "--json"]):
        told = desk.home.memctl(*words, cwd=desk.checkout).stdout
        assert "kimi" in told
        assert row["id"] not in told
        assert str(desk.checkout) not in told


def test_a_giant_first_line_costs_its_file_and_no_other(desk: Desk) -> None:
    desk.ok("command-code", do="say:first")
    (row,) = desk.json("sessions", "--cwd", str(desk.checkout))
    giant = desk.home.path / ".commandcode/projects/x/0b7c3d1e-0000-4000-8000-000000000001.jsonl"
    header = {"type": "session", "version": 3, "id": giant.stem, "cwd": str(desk.checkout)}
    header |= {"timestamp": "2026-12-01T00:00:00Z", "title": "x" * (1 << 20)}
    giant.write_text(json.dumps(header) + "\n")
    assert desk.ok("command-code", do="say:second")["args"] == ["--session", row["id"]]
    assert desk.words() == ["first", "re first", "second", "re second"]
    assert [one["id"] for one in desk.json("sessions", "--cwd", str(desk.checkout))] == [row["id"]]


@pytest.mark.parametrize("name", ["kimi", "command-code"])
def test_a_bare_launch_takes_over_the_newest_session_of_the_pool(desk: Desk, name: str) -> None:
    desk.home.memctl("up")
    subprocess.run(
        [desk.fakes.folder / name],
        env={**desk.home.environment, "FAKE_DO": "say:before"},
        cwd=desk.checkout,
        check=True,
    )
    start = desk.ok("--yolo", do="say:after")
    (row,) = desk.json("sessions", "--cwd", str(desk.checkout))
    assert (start["name"], start["args"]) == (name, ["--session", row["id"], "--yolo"])
    assert desk.words() == ["before", "re before", "after", "re after"]


def test_no_bare_launch_starts_grok(desk: Desk) -> None:
    desk.ok("grok", do="say:before")
    done = desk.run(do="say:after")
    assert done.returncode != 0
    assert [start["name"] for start in desk.fakes.starts()] == ["grok"]


@pytest.mark.parametrize(
    ("name", "store"), [("kimi", ".kimi-code"), ("command-code", ".commandcode"), ("grok", ".grok")]
)
def test_a_session_that_is_gone_is_named_and_a_new_one_begins(desk: Desk, name: str, store: str) -> None:
    desk.ok(name, do="say:first")
    (gone,) = desk.json("sessions", "--cwd", str(desk.checkout))
    shutil.rmtree(desk.home.path / store)
    done = desk.run(name, do="say:second")
    assert done.returncode == 0, done.stderr
    assert "no longer has session" in done.stderr
    assert gone["id"] not in desk.args()
    assert desk.words() == ["first", "re first", "second", "re second"]
    rows = {row["id"] for row in desk.json("sessions", "--cwd", str(desk.checkout))}
    assert desk.ok(name, do="say:third")["args"][1] in rows - {gone["id"]}


def test_a_query_of_command_code_says_that_it_is_not_told(desk: Desk) -> None:
    desk.ok("codex", do="say:the_port_is_8123")
    done = desk.run("command-code", "-p", "go", do="say:go")
    assert done.returncode == 0, done.stderr
    assert "until it is on the screen" in done.stderr
