"""An agent under `memctl run` has the terminal as if nobody stood between."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import eventually
from support_desk import MEMCTL, Desk


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    shared.home.memctl("up")
    return shared


def line(*words: str) -> str:
    return shlex.join([*MEMCTL, "run", *words])


def test_what_is_typed_goes_to_the_child_and_what_it_prints_comes_out(desk: Desk) -> None:
    screen = desk.screen("claude", do="tty read say:hello")
    screen.until("foreground 100")
    screen.type("some words\n")
    screen.until("read some words")
    assert screen.wait() == 0
    start = desk.fakes.last()
    assert start["group"] == screen.pid
    assert start["ppid"] == screen.pid


@pytest.mark.parametrize(("key", "number"), [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_a_key_reaches_a_child_that_handles_it_once(desk: Desk, key: str, number: int) -> None:
    screen = desk.screen("claude", do="signals:1 say:afterwards exit:4")
    screen.until("ready")
    screen.type(key)
    assert screen.wait() == 4, screen.text()
    assert f"got {int(number)}\n" in screen.text()
    assert desk.words() == ["afterwards", "re afterwards"]


@pytest.mark.parametrize("key", ["\x03", "\x1c"])
def test_a_key_that_kills_the_child_does_not_kill_the_launcher(desk: Desk, key: str) -> None:
    screen = desk.screen("claude", do="say:before mark:there wait")
    eventually((desk.home.path / "there").exists)
    screen.type(key)
    assert screen.wait() == 1
    assert "workstream 'default'" in screen.text()
    assert desk.words() == ["before", "re before"]


def test_a_change_of_size_reaches_the_child(desk: Desk) -> None:
    screen = desk.screen("claude", do="signals:1 tty")
    screen.until("ready")
    screen.resize(66)
    assert screen.wait() == 0
    assert f"got {int(signal.SIGWINCH)}\n" in screen.text()
    assert "foreground 66" in screen.text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_sent_to_the_launcher_alone_is_meant_for_the_child(desk: Desk, number: int) -> None:
    screen = desk.screen("claude", do="signals:1 say:afterwards exit:6")
    screen.until("ready")
    os.kill(screen.pid, number)
    assert screen.wait() == 6
    assert f"got {int(number)}\n" in screen.text()
    assert desk.words() == ["afterwards", "re afterwards"]


def test_a_terminal_that_goes_away_ends_the_child_and_the_run_is_closed(desk: Desk) -> None:
    screen = desk.screen("claude", do="say:before mark:there wait")
    eventually((desk.home.path / "there").exists)
    screen.hang_up()
    screen.wait()
    assert desk.words() == ["before", "re before"]
    assert not any("ended without a word" in text for text in desk.said())


def ignored(text: str) -> set[str]:
    return {row for row in text.splitlines() if row.startswith("Sig")}


@pytest.mark.parametrize("trap", ["", "trap '' HUP; ", "trap '' INT QUIT; "])
def test_signals_are_as_the_shell_left_them(desk: Desk, trap: str) -> None:
    fake = desk.fakes.folder / "claude"
    without = desk.terminal(["/bin/sh", "-c", f"{trap}exec {fake}"], FAKE_DO="state")
    assert without.wait() == 0
    under = desk.terminal(["/bin/sh", "-c", f"{trap}exec {line('claude')}"], FAKE_DO="state")
    assert under.wait() == 0
    assert len(ignored(under.text())) == 2
    assert ignored(under.text()) == ignored(without.text())


def test_descriptors_of_the_shell_reach_the_child(desk: Desk) -> None:
    shell = desk.terminal(["/bin/sh", "-c", f"exec {line('claude')} 7</dev/null"], FAKE_DO="say:hello")
    assert shell.wait() == 0
    assert 7 in desk.fakes.last()["fds"]


def test_ctrl_z_stops_both_and_fg_goes_on_with_both(desk: Desk) -> None:
    bash = desk.terminal(
        ["/bin/bash", "--norc", "--noprofile", "-i"], FAKE_DO="say:hello mark:there wait exit:9", PS1="$ "
    )
    bash.type(line("claude") + "; echo status=$?\n")
    eventually((desk.home.path / "there").exists)
    for _ in range(2):
        bash.forget()
        bash.type("\x1a")
        bash.until("Stopped")
        eventually(lambda: state(desk.fakes.last()["pid"]) == "T")
        bash.forget()
        bash.type("fg\n")
        eventually(lambda: state(desk.fakes.last()["pid"]) == "S")
    desk.fakes.go()
    bash.until("new event")
    bash.type("exit\n")
    bash.wait()
    assert desk.words() == ["hello", "re hello"]


def test_a_child_that_stops_itself_gives_the_shell_its_terminal(desk: Desk) -> None:
    bash = desk.terminal(["/bin/bash", "--norc", "--noprofile", "-i"], FAKE_DO="stop say:hello", PS1="$ ")
    bash.type(line("claude") + "\n")
    bash.until("Stopped")
    bash.forget()
    bash.type("echo here=$((1+1))\n")
    bash.until("here=2")
    bash.type("fg\n")
    bash.until("continued")
    bash.until("new event")
    bash.type("exit\n")
    bash.wait()
    assert desk.words() == ["hello", "re hello"]


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_without_a_job_shell_a_child_that_stops_is_waited_for(desk: Desk) -> None:
    screen = desk.screen("claude", do="stop say:hello")
    eventually(lambda: desk.fakes.starts() and state(desk.fakes.last()["pid"]) == "T")
    os.kill(desk.fakes.last()["pid"], signal.SIGCONT)
    screen.until("continued")
    assert screen.wait() == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_ends_it_before_there_is_a_child_leaves_nothing(desk: Desk, number: int, status: int) -> None:
    holder = desk.begin("claude", do="wait")
    eventually(desk.fakes.starts)
    waiting = desk.begin("--wait", "codex", do="say:hello")
    assert waiting.stderr is not None
    assert b"waiting" in waiting.stderr.readline()
    waiting.send_signal(number)
    assert waiting.wait(20) == status
    assert b"interrupted before the agent started" in waiting.stderr.read()
    assert len(desk.fakes.starts()) == 1
    desk.fakes.go()
    assert holder.wait(20) == 0


def test_a_child_that_is_killed_leaves_the_terminal_as_it_was(desk: Desk) -> None:
    bash = desk.terminal(["/bin/sh", "-c", f"{line('claude')}; stty -a"], FAKE_DO="raw die:9")
    assert bash.wait() == 0
    assert " icanon" in bash.text()
    assert " echo " in bash.text()


def test_a_variable_that_only_our_interpreter_set_is_not_the_childs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.fakes.folder / "codex").write_text("#!/bin/sh\nenv\n")
    monkeypatch.delitem(desk.home.environment, "LANG")
    assert "LC_CTYPE" not in desk.run("codex").stdout
    assert "LC_CTYPE=C\n" in desk.run("codex", LC_CTYPE="C").stdout
