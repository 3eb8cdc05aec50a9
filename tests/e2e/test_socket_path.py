"""What may stand at the socket path, and paths longer than a socket address (cases 33 and 34)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memctl import hook
from support_daemon import Home, eventually

CASES = Path(__file__).resolve().parent.parent / "cases"


def build(case: str, dest: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-B", CASES / case / "make.py", dest, *words], check=True, capture_output=True
    )


@pytest.fixture
def ended() -> Iterator[list[Home]]:
    homes: list[Home] = []
    yield homes
    for home in homes:
        home.end_all()


def _home_at(dest: Path, state: str, ended: list[Home]) -> Home:
    build("33-socket-path-states", dest, "--state", state)
    home = Home(dest / "home", MEMD_SOCKET=(dest / "sock.txt").read_text())
    ended.append(home)
    return home


def test_a_dead_socket_is_taken_over(tmp_path: Path, ended: list[Home]) -> None:
    home = _home_at(tmp_path, "dead", ended)
    home.start()
    path = os.fsencode((tmp_path / "sock.txt").read_text())
    assert os.lstat(path).st_mode & 0o777 == 0o600
    assert hook.is_private(os.path.dirname(path))


def test_a_live_socket_is_left_to_its_owner_however_slow(tmp_path: Path, ended: list[Home]) -> None:
    home = _home_at(tmp_path, "live", ended)
    path = (tmp_path / "sock.txt").read_text()
    stub = subprocess.Popen(
        [sys.executable, tmp_path / "stub.py", path], stdout=subprocess.PIPE, env=home.environment
    )
    try:
        assert stub.stdout is not None
        assert stub.stdout.readline() == b"ready\n"
        before = os.lstat(path).st_ino
        late = home.spawn()
        _, said = late.communicate(timeout=20)
        assert late.returncode == 75
        assert b"in use" in said
        assert os.lstat(path).st_ino == before
        hook.dial(os.fsencode(path), 2.0).close()
    finally:
        stub.kill()
        stub.communicate()


@pytest.mark.parametrize(
    ("state", "word"), [("file", b"a file"), ("link", b"a symbolic link"), ("dir", b"a directory")]
)
def test_anything_else_at_the_path_is_named_and_left(
    tmp_path: Path, ended: list[Home], state: str, word: bytes
) -> None:
    home = _home_at(tmp_path, state, ended)
    child = home.spawn()
    _, said = child.communicate(timeout=20)
    assert child.returncode == 77
    assert word in said
    assert b"Traceback" not in said
    inside = {"file": "s.sock", "link": "target.txt", "dir": "s.sock/inside.txt"}[state]
    assert (tmp_path / "run" / inside).read_text() == "notes of somebody\n"
    assert (tmp_path / "run" / "s.sock").is_symlink() == (state == "link")


def test_of_ten_starters_on_a_dead_socket_one_stays_and_all_clients_reach_it(
    tmp_path: Path, ended: list[Home]
) -> None:
    home = _home_at(tmp_path, "dead", ended)
    children = [home.spawn() for _ in range(10)]
    eventually(lambda: sum(child.poll() is None for child in children) == 1 and home.answers())
    pids = {home.json("status")["pid"] for _ in range(10)}
    assert pids == {child.pid for child in children if child.poll() is None}
    assert sorted(child.returncode for child in children if child.poll() is not None) == [75] * 9


def test_homes_deeper_than_a_socket_address_have_each_their_daemon(tmp_path: Path, ended: list[Home]) -> None:
    build("34-socket-path-too-long", tmp_path)
    places = set()
    pids = set()
    for name in ("long", "edge"):
        home = Home(Path((tmp_path / f"{name}.txt").read_text()))
        ended.append(home)
        child = home.start()
        assert home.json("status", cwd="/")["pid"] == child.pid
        assert home.json("status", cwd=home.path)["pid"] == child.pid
        place = home.socket()
        assert len(place) <= hook.SOCKET_LIMIT
        assert hook.is_private(os.path.dirname(place))
        places.add(place)
        pids.add(child.pid)
    assert len(places) == len(pids) == 2


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_fallback_folder_open_to_others_is_refused_by_daemon_and_client(
    tmp_path: Path, ended: list[Home], mode: int
) -> None:
    home = Home(tmp_path / "home")
    ended.append(home)
    folder = os.path.dirname(home.socket())
    os.mkdir(folder, 0o700)
    try:
        os.chmod(folder, mode)
        child = home.spawn()
        _, said = child.communicate(timeout=20)
        assert child.returncode == 77
        assert b"chmod 700" in said
        answer = home.memctl("status")
        assert answer.returncode == 69
        assert "open to others" in answer.stderr
    finally:
        os.rmdir(folder)


def test_a_path_given_by_hand_that_is_too_long_is_refused_with_its_length(
    tmp_path: Path, ended: list[Home]
) -> None:
    home = Home(tmp_path / "home", MEMD_SOCKET=str(tmp_path / ("x" * 120) / "s.sock"))
    ended.append(home)
    child = home.spawn()
    _, said = child.communicate(timeout=20)
    assert child.returncode == 64
    assert b"107" in said or b"103" in said
