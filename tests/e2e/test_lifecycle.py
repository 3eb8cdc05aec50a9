"""The daemon from start to stop, as its commands show it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memctl import hook
from support_daemon import Home, eventually, request


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def test_up_starts_shows_the_status_and_down_stops(home: Home) -> None:
    up = home.memctl("up")
    assert up.returncode == 0, up.stderr
    assert "healthy" in up.stdout
    pid = home.json("status")["pid"]
    again = home.memctl("up")
    assert again.returncode == 0
    assert home.json("status")["pid"] == pid
    assert home.memctl("down").returncode == 0
    down = home.memctl("status")
    assert down.returncode == 69
    assert "memctl up" in down.stderr
    assert home.memctl("down").returncode == 0
    assert not os.path.exists(home.path / ".local/state/memd/address")


def test_status_never_starts_a_daemon_and_every_other_command_does(home: Home) -> None:
    assert home.memctl("status").returncode == 69
    assert json.loads(home.memctl("status", "--json").stdout)["health"] == "down"
    assert home.memctl("doctor").returncode == 1
    assert home.memctl("where", ".").returncode == 0
    assert home.memctl("status").returncode == 0


def test_sigterm_under_load_ends_within_two_seconds_and_answers_or_refuses_everybody(home: Home) -> None:
    child = home.start()
    path = home.socket()
    outcomes: list[str] = []

    def client() -> None:
        while True:
            try:
                kind, body = request(path, b"j", b'{"op":"ping"}', 2.0)
            except hook.Unreachable:
                outcomes.append("gone")
                return
            outcomes.append("answered" if kind == b"j" and body.startswith(b'{"re":"pong"') else "odd")

    idle = [hook.dial(path, 5.0) for _ in range(50)]
    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(outcomes) > 200)
    began = time.monotonic()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    took = time.monotonic() - began
    for thread in threads:
        thread.join(20)
    for sock in idle:
        sock.close()
    assert child.returncode == 0
    assert took < 2.0
    assert set(outcomes) == {"answered", "gone"}


def test_a_killed_daemon_leaves_nothing_that_stops_the_next(home: Home) -> None:
    for _ in range(3):
        child = home.start()
        child.kill()
        child.communicate()
    home.start()
    assert home.json("status")["health"] == "healthy"


def test_a_broken_configuration_keeps_the_last_good_one_and_is_named(home: Home) -> None:
    home.start()
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[memory]\nheal = false\n")
    assert home.memctl("reload").returncode == 0
    config.write_text("[memory]\nheal = 7\n")
    reload = home.memctl("reload")
    assert reload.returncode == 78
    assert "config.toml:2" in reload.stderr
    report = home.json("status")
    assert report["health"] == "attention"
    assert "config.toml:2" in report["config_error"]
    assert home.memctl("doctor").returncode == 1
    shown = home.memctl("config", "--show")
    assert shown.returncode == 78
    assert "config.toml:2" in shown.stderr


def test_a_configuration_that_was_mended_is_in_force_and_out_of_the_status_without_a_restart(
    home: Home,
) -> None:
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[log]\nlevel = "loud"\n')
    home.start()
    assert home.memctl("reload").returncode == 78
    assert "config.refused" in home.memctl("status").stdout
    config.write_text('[log]\nlevel = "debug"\n')
    report = home.json("status")
    assert report["config_error"] == ""
    assert report["errors"] == []
    assert report["health"] == "healthy"
    assert "config" not in home.memctl("doctor").stdout.partition("problem")[2]


def test_sighup_re_reads_the_configuration(home: Home) -> None:
    child = home.start()
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[nonsense]\n")
    child.send_signal(signal.SIGHUP)
    eventually(lambda: "nonsense" in home.json("status")["config_error"])
    config.unlink()
    child.send_signal(signal.SIGHUP)
    eventually(lambda: home.json("status")["config_error"] == "")


def test_a_daemon_started_on_a_broken_configuration_still_serves(home: Home) -> None:
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[")
    home.start()
    assert "config.toml:1" in home.json("status")["config_error"]


def test_of_fifty_starts_at_once_exactly_one_serves(home: Home) -> None:
    children = [home.spawn() for _ in range(50)]
    eventually(lambda: sum(child.poll() is None for child in children) == 1 and home.answers(), 60)
    (winner,) = [child for child in children if child.poll() is None]
    assert home.json("status")["pid"] == winner.pid


def test_another_user_cannot_talk_to_the_socket_even_when_its_modes_are_opened(home: Home) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    home.start()
    path = home.socket()
    at = os.path.dirname(path)
    while at not in (b"/", b"/tmp"):
        os.chmod(at, os.stat(at).st_mode | 0o055)
        at = os.path.dirname(at)
    os.chmod(path, 0o666)
    script = (
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(5)\ns.connect(sys.argv[1])\n"
        'try:\n s.sendall(b\'memd1 j 13\\n{"op":"ping"}\')\n got=s.recv(10)\n'
        "except OSError:\n got=b''\nprint(got)\n"
    )
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [*nobody, "/usr/bin/python3", "-c", script, path],
        capture_output=True,
        text=True,
        check=False,
    )
    if "setpriv" in done.stderr or done.returncode == 127:
        pytest.skip(f"cannot become another user: {done.stderr.strip()}")
    assert done.stdout == "b''\n", done.stderr
    os.chmod(path, 0o600)
    os.chmod(os.path.dirname(path), 0o700)
    assert home.answers()


def test_a_ping_beside_a_thousand_silent_peers_is_answered(home: Home) -> None:
    home.start()
    path = home.socket()
    idle = [hook.dial(path, 5.0) for _ in range(1000)]
    try:
        for _ in range(20):
            assert request(path, b"j", b'{"op":"ping"}')[1].startswith(b'{"re":"pong"')
    finally:
        for sock in idle:
            sock.close()


def test_garbage_of_every_kind_gets_one_reply_or_the_end_and_the_daemon_lives(home: Home) -> None:
    home.start()
    path = home.socket()
    for garbage in (
        b"\0" * (1 << 20),
        b"memd1 j 1048576\n" + b"[" * (1 << 20),
        b"memd1 j 10000\n" + b'{"op":' * 1666 + b"    ",
        b'memd1 j 16\n{"op":"launch!"}',
        b"memd1 h 3\n\xff\xff\xff",
        b"\n\n\n",
    ):
        sock = hook.dial(path, 5.0)
        try:
            sock.sendall(garbage)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(100)
        except OSError:
            pass
        finally:
            sock.close()
    assert home.answers()
    log = (home.path / ".local/state/memd/memd.log").read_text()
    assert "Traceback" not in log


def test_a_daemon_older_than_the_package_is_named_and_restarted_by_up(home: Home, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    (newer / "memd").mkdir(parents=True)
    (newer / "memd" / "__init__.py").write_text(
        "import os, sys\n__version__ = '9.9.9'\n"
        "__path__.extend(os.path.join(p, 'memd') for p in sys.path "
        "if os.path.isfile(os.path.join(p, 'memd', 'protocol.py')))\n"
    )
    upgraded = {"PYTHONPATH": f"{newer}{os.pathsep}{home.environment['PYTHONPATH']}"}
    assert home.memctl("up").returncode == 0
    status = home.memctl("status", **upgraded)
    assert "9.9.9" in status.stdout
    assert "memctl up" in status.stdout
    assert home.memctl("up", **upgraded).returncode == 0
    report = json.loads(home.memctl("status", "--json", **upgraded).stdout)
    assert report["version"] == "9.9.9"


def test_the_daemon_keeps_none_of_the_shells_secrets(home: Home) -> None:
    up = home.memctl("up", ANTHROPIC_AUTH_TOKEN="made-up-value", CLAUDE_CONFIG_DIR="/nowhere")
    assert up.returncode == 0
    pid = home.json("status")["pid"]
    environment = Path(f"/proc/{pid}/environ")
    if not environment.exists():
        pytest.skip("no /proc here")
    assert b"made-up-value" not in environment.read_bytes()
    assert b"CLAUDE_CONFIG_DIR" not in environment.read_bytes()


def test_logs_are_rotated_private_and_readable_by_people_and_programs(home: Home) -> None:
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[log]\nmax_bytes = 10000\nkeep = 2\n")
    child = home.start()
    for _ in range(120):
        config.write_text("[log]\nmax_bytes = nonsense\n")
        child.send_signal(signal.SIGHUP)
        home.memctl("reload")
        if (home.path / ".local/state/memd/memd.log.1").exists():
            break
    state = home.path / ".local/state/memd"
    logs = sorted(path.name for path in state.glob("memd.log*"))
    assert logs == ["memd.log", "memd.log.1"]
    assert all((state / name).stat().st_mode & 0o777 == 0o600 for name in logs)
    assert all("event" in json.loads(line) for line in (state / "memd.log.1").read_text().splitlines())
    shown = home.memctl("logs", "-n", "3")
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) <= 3


def test_memctl_explains_unknown_words_without_a_traceback(home: Home) -> None:
    for words in (["nonsense"], ["heal", "--nope"], ["status", "--nope"], []):
        done = home.memctl(*words)
        assert done.returncode == 64, words
        assert "Traceback" not in done.stderr
    assert home.memctl("--help").returncode == 0
    assert len(home.memctl("--help").stdout.splitlines()) <= 50


def test_nothing_is_imported_before_a_configuration_was_ever_understood(home: Home) -> None:
    """Nobody knows yet what it keeps out."""
    config = home.path / ".config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[import]\nignore_paths = [\n")
    folder = home.path / ".claude/projects/-work-one"
    folder.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "00000000-0000-4000-8000-000000000001",
        "cwd": "/work/one",
        "sessionId": "11111111-0000-4000-8000-000000000001",
        "message": {"role": "user", "content": "the kowari plan"},
    }
    (folder / "11111111-0000-4000-8000-000000000001.jsonl").write_text(json.dumps(record) + "\n")
    home.start()
    assert home.memctl("import", "--wait").returncode == 0
    assert home.json("search", "kowari") == []
    config.write_text("[import]\n")
    assert home.memctl("reload").returncode == 0
    assert home.memctl("import", "--wait").returncode == 0
    assert len(home.json("search", "kowari")) == 1
