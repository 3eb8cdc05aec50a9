"""Plug-ins and extensions when memd is away, hung, odd or not to be trusted: the harness notices nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hooks.stub import Stub, text
from hooks.support_plugins import KINDS, Desk, needs_node, packets, prompt, read, told
from support_daemon import SOURCES

pytestmark = needs_node

SLACK_MS = 2000  # for a busy machine; the limits themselves are 2000 and 250


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@contextmanager
def listener(path: Path, backlog: int) -> Iterator[socket.socket]:
    """A socket at which nobody answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(backlog)
        yield listening


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_there_costs_nothing(desk: Desk, kind: str) -> None:
    shutil.rmtree(desk.runtime)
    played = desk.play(kind, prompt(kind, "s1"))
    assert told(kind, played.results[0]) == []
    assert played.results[0]["ms"] < 250
    assert played.said == []


@pytest.mark.parametrize("kind", KINDS)
def test_dead_socket_costs_nothing(desk: Desk, kind: str) -> None:
    with listener(desk.socket, 1):
        pass
    played = desk.play(kind, prompt(kind, "s1"))
    assert told(kind, played.results[0]) == []
    assert played.results[0]["ms"] < 250
    assert played.said == []


@pytest.mark.parametrize("kind", KINDS)
def test_memd_that_comes_later_is_asked_again(desk: Desk, kind: str) -> None:
    process = desk.start(kind, [prompt(kind, "s1"), {"do": "hold"}, prompt(kind, "s1")])
    assert process.stdout is not None
    first = process.stdout.readline()
    with desk.stub():
        (second,) = read(process).results
    assert "packet" not in first
    assert told(kind, second) == ["packet for s1"]


@pytest.mark.parametrize("kind", ["pi", "opencode"])
def test_hung_memd_costs_two_seconds_twice_and_keeps_no_process_alive(desk: Desk, kind: str) -> None:
    with desk.stub(lambda message: None) as stub:
        played = desk.play(kind, *[prompt(kind, "s1")] * 5)
    assert all(told(kind, result) == [] for result in played.results)
    slow = [result["ms"] for result in played.results if result["ms"] > 500]
    assert len(slow) == 2
    assert max(slow) < 2000 + SLACK_MS
    assert stub.events().count("context") <= 2
    assert played.said == []


@pytest.mark.parametrize("kind", KINDS)
def test_answer_that_came_while_the_harness_itself_was_busy_is_heard(desk: Desk, kind: str) -> None:
    desk.context_ms = 200
    with desk.stub():
        played = desk.play(kind, prompt(kind, "s1", busy=500))
    assert told(kind, played.results[0]) == ["packet for s1"]


@pytest.mark.parametrize("kind", KINDS)
def test_memd_that_dropped_us_while_the_harness_itself_was_busy_is_asked_again(desk: Desk, kind: str) -> None:
    with desk.stub(silent_s=0.1) as stub:
        played = desk.play(kind, prompt(kind, "s1", busy=1300))
    assert told(kind, played.results[0]) == ["packet for s1"]
    assert stub.events().count("context") == 1


@pytest.mark.parametrize("kind", ["pi", "omp", "opencode"])
def test_end_waits_a_quarter_of_a_second_for_a_hung_memd(desk: Desk, kind: str) -> None:
    about = {"session": "s1", "event": {"sessionID": "s1", "reason": "quit"}}
    with desk.stub(lambda message: packets(message) if message.event == "context" else None):
        end = "dispose" if kind == "opencode" else "session_shutdown"
        played = desk.play(kind, prompt(kind, "s1"), {"do": end, **about})
    assert 200 < played.results[1]["ms"] < 250 + SLACK_MS


@pytest.mark.parametrize("kind", ["pi", "omp"])
def test_report_waits_for_nobody(desk: Desk, kind: str) -> None:
    with desk.stub(lambda message: None):
        played = desk.play(kind, {"do": "turn_end", "session": "s1"})
    assert played.results[0]["ms"] < 200
    assert played.said == []


@pytest.mark.parametrize("kind", KINDS)
def test_full_backlog_is_given_up(desk: Desk, kind: str) -> None:
    with listener(desk.socket, 0):
        waiting = []
        try:
            while True:
                peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                waiting.append(peer)
                peer.settimeout(0)
                peer.connect(str(desk.socket))
        except BlockingIOError:
            pass
        played = desk.play(kind, prompt(kind, "s1"))
        for peer in waiting:
            peer.close()
    assert told(kind, played.results[0]) == []
    assert played.results[0]["ms"] < 2000 + SLACK_MS
    assert played.said == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\n",
        b"\0" * 100,
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"memd1 t",
        b"memd1 t -1\n0\nx",
        b"memd1 t 99999999999\n0\nx",
        b"memd1 t 999999999\n0\nx",
        b"memd1 t 20\n0\ncut short",
        b"memd1 j 2\n{}",
        b"memd2 t 3\n0\nx",
        b"memd1 t 0\n",
        b"memd1 t 1\n0",
        b"x" * 70_000,
        text("an error for people", status=b"70"),
    ],
)
def test_odd_answer_is_none(desk: Desk, answer: bytes) -> None:
    for kind in ("pi", "opencode"):
        with Stub(desk.socket, lambda message: answer):
            played = desk.play(kind, prompt(kind, "s1"))
        desk.socket.unlink()
        assert told(kind, played.results[0]) == []
        assert played.said == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_folder_that_others_can_enter_is_not_trusted(desk: Desk, kind: str, mode: int) -> None:
    with desk.stub() as stub:
        desk.folder.chmod(mode)
        played = desk.play(kind, prompt(kind, "s1"))
    assert told(kind, played.results[0]) == []
    assert stub.messages == []


def test_folder_that_is_a_link_is_not_trusted(desk: Desk) -> None:
    with desk.stub() as stub:
        desk.folder.rename(desk.runtime / "elsewhere")
        desk.folder.symlink_to(desk.runtime / "elsewhere")
        played = desk.play("pi", prompt("pi", "s1"))
    assert told("pi", played.results[0]) == []
    assert stub.messages == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_folder_and_address_of_another_user_are_not_trusted(desk: Desk, tmp_path: Path) -> None:
    with desk.stub() as stub:
        os.chown(desk.folder, 12345, 12345)
        played = desk.play("pi", prompt("pi", "s1"))
        assert told("pi", played.results[0]) == []
        os.chown(desk.folder, 0, 0)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        with Stub(elsewhere / "s", packets) as other:
            published(desk, elsewhere / "s")
            os.chown(desk.home / ".local/state/memd/address", 12345, 12345)
            played = desk.play("pi", prompt("pi", "s1"))
            assert told("pi", played.results[0]) == ["packet for s1"]
            assert other.messages == []
        assert "context" in stub.events()


def published(desk: Desk, path: Path) -> None:
    folder = desk.home / ".local/state/memd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "address").write_bytes(os.fsencode(path))


def test_address_that_memd_published_comes_before_the_computed_one(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    published(desk, elsewhere / "s")
    with desk.stub() as computed, Stub(elsewhere / "s", packets) as stub:
        desk.play("pi", prompt("pi", "s1"))
        assert "context" in stub.events()
        named = tmp_path / "named"
        named.mkdir(mode=0o700)
        with Stub(named / "s", packets) as third:
            desk.play("pi", prompt("pi", "s2"), MEMD_SOCKET=str(named / "s"))
            assert "context" in third.events()
    assert computed.messages == []


@pytest.mark.parametrize("address", [b"relative/path", b"/no/such/folder/s\0x", b"", b"/\xff/s"])
def test_address_that_is_none_leaves_the_computed_one(desk: Desk, address: bytes) -> None:
    published(desk, Path("x"))
    (desk.home / ".local/state/memd/address").write_bytes(address)
    with desk.stub():
        played = desk.play("pi", prompt("pi", "s1"))
    assert told("pi", played.results[0]) == ["packet for s1"]


def test_address_that_is_a_pipe_or_a_link_holds_nobody_up(desk: Desk, tmp_path: Path) -> None:
    folder = desk.home / ".local/state/memd"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "address")
    with desk.stub():
        played = desk.play("pi", prompt("pi", "s1"))
        assert told("pi", played.results[0]) == ["packet for s1"]
        (folder / "address").unlink()
        (tmp_path / "target").write_text("/nowhere/s")
        (folder / "address").symlink_to(tmp_path / "target")
        played = desk.play("pi", prompt("pi", "s2"))
    assert told("pi", played.results[0]) == ["packet for s2"]


def test_socket_without_a_runtime_folder_is_where_memctl_looks(desk: Desk) -> None:
    del desk.environment["XDG_RUNTIME_DIR"]
    found = subprocess.run(
        [sys.executable, "-c", "from memctl import hook; print(hook.computed_socket().decode())"],
        env={**desk.environment, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=True,
    )
    path = Path(found.stdout.strip())
    path.parent.mkdir(mode=0o700)
    try:
        with Stub(path, packets):
            played = desk.play("pi", prompt("pi", "s1"))
    finally:
        shutil.rmtree(path.parent)
    assert told("pi", played.results[0]) == ["packet for s1"]


@pytest.mark.parametrize("kind", ["pi", "omp"])
def test_harness_of_another_shape_is_not_disturbed(desk: Desk, kind: str) -> None:
    odd = {"session": "s", "entries": "broken", "event": {"reason": 7}}
    names = ("session_start", "before_agent_start", "turn_end", "session_compact", "session_shutdown")
    with desk.stub():
        played = desk.play(kind, *({"do": name, **odd} for name in names))
    assert played.said == []


@pytest.mark.parametrize("about", [None, {}, {"sessionID": 7}, {"info": None}, {"info": {"id": "ses_1"}}])
def test_event_of_another_shape_does_not_disturb_opencode(desk: Desk, about: object) -> None:
    names = ("session.created", "session.idle", "session.compacted", "session.deleted", "tui.toast.show")
    with desk.stub():
        played = desk.play("opencode", *({"do": name, "event": about} for name in names))
    assert played.said == []
