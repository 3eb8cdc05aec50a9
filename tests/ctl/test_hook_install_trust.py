"""The conversation with Codex's app server: bounded, about our hooks only, and over when it is over."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from memctl import codex_trust
from memd.errors import MemdError, TryAgain, Unavailable
from support_daemon import SOURCES

OURS = "/usr/bin/python3 -I -S /h/memd_hook.py codex Stop || true"
THEIRS = "~/other.sh"

FAKE = """
    import json, os, sys
    home, mode = os.environ["CODEX_HOME"], {mode!r}
    trusted = home + "/trusted.json"
    open(home + "/pid", "w").write(str(os.getpid()))
    def say(**message):
        print(json.dumps(message), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if mode == "hang":
            continue
        if mode == "leave":
            sys.exit(0)
        if mode == "flood":
            sys.stdout.write("x" * 20_000_000)
        if "id" not in asked:
            continue
        known = json.load(open(trusted)) if os.path.exists(trusted) else {{}}
        if mode == "old" and asked["method"] == "hooks/list":
            say(id=asked["id"], error={{"code": -32601, "message": "unknown method"}})
        elif asked["method"] == "hooks/list":
            say(method="configWarning", params={{"summary": "no"}})
            print("not json", flush=True)
            hooks = [
                {{"key": str(n), "command": command, "eventName": "stop", "sourcePath": path,
                 "currentHash": "sha256:" + str(n), "enabled": mode != "off",
                 "trustStatus": "trusted" if str(n) in known else "untrusted"}}
                for n, (command, path) in enumerate({hooks!r})
            ]
            odd = [7, {{"command": 1}}]
            say(id=asked["id"], result={{"data": [{{"cwd": "/", "hooks": hooks + odd}}, 3]}})
        elif asked["method"] == "config/batchWrite":
            (edit,) = asked["params"]["edits"]
            assert edit["keyPath"] == "hooks.state" and edit["mergeStrategy"] == "upsert"
            json.dump({{**known, **edit["value"]}}, open(trusted, "w"))
            say(id=asked["id"], result={{"status": "ok"}})
        else:
            say(id=asked["id"], result={{}})
    if mode == "linger":
        import time
        time.sleep(60)
"""


class Codex:
    """A stand-in for Codex in a folder of its own."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "codex home"
        self.home.mkdir()
        self.hooks_file = os.fsencode(self.home / "hooks.json")
        self.folder = tmp_path / "bin"
        self.folder.mkdir()

    def program(self, mode: str = "", *, hooks: list[tuple[str, str]] | None = None) -> str:
        own = str(self.home / "hooks.json")
        listed = [(OURS, own), (THEIRS, own), (OURS, "/project/hooks.json")] if hooks is None else hooks
        path = self.folder / "codex"
        body = textwrap.dedent(FAKE.format(mode=mode, hooks=listed))
        path.write_text(f"#!{sys.executable}\n{body}")
        path.chmod(0o755)
        return str(path)

    def pid(self) -> int:
        return int((self.home / "pid").read_text())


@pytest.fixture
def codex(tmp_path: Path) -> Codex:
    return Codex(tmp_path)


def test_only_our_hooks_in_our_file_are_told_and_trusted(codex: Codex) -> None:
    program = codex.program()
    (before,) = codex_trust.status(program, codex.hooks_file)
    assert (before.command, before.status, before.is_running) == (OURS, "untrusted", False)
    (after,) = codex_trust.trust(program, codex.hooks_file)
    assert after.is_running
    assert json.loads((codex.home / "trusted.json").read_text()) == {"0": {"trusted_hash": "sha256:0"}}
    assert not psutil.pid_exists(codex.pid())


def test_what_is_trusted_is_not_written_again(codex: Codex) -> None:
    program = codex.program()
    codex_trust.trust(program, codex.hooks_file)
    (codex.home / "trusted.json").chmod(0o400)
    before = (codex.home / "trusted.json").stat().st_mtime_ns
    codex_trust.trust(program, codex.hooks_file)
    assert (codex.home / "trusted.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("mode", "error", "says"),
    [
        ("hang", TryAgain, "no answer within"),
        ("leave", Unavailable, "ended in the middle"),
        ("flood", Unavailable, "ended in the middle"),
        ("old", Unavailable, "refused hooks/list: unknown method"),
    ],
)
def test_a_codex_that_does_not_answer_is_left_in_time(
    codex: Codex, mode: str, error: type[MemdError], says: str
) -> None:
    with pytest.raises(error, match=says) as met:
        codex_trust.status(codex.program(mode), codex.hooks_file, 1.0)
    assert "/hooks" in met.value.remedy
    assert not psutil.pid_exists(codex.pid())


def test_a_codex_that_stays_is_ended(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_trust, "END_S", 0.1)
    codex_trust.status(codex.program("linger"), codex.hooks_file)
    assert not psutil.pid_exists(codex.pid())


def test_a_program_that_cannot_be_run_is_named(codex: Codex) -> None:
    with pytest.raises(Unavailable, match="cannot run /gone/codex"):
        codex_trust.status("/gone/codex", codex.hooks_file)


# ------------------------------------------------------------------------------- on a terminal


def install(codex: Codex, answer: str) -> tuple[int, str]:
    """`install-hooks --trust` on a terminal, where a person types the answer; its status and the screen."""
    main, other = pty.openpty()
    home = codex.home.parent / "home"
    home.mkdir(exist_ok=True)
    environment: dict[str, Any] = {
        "HOME": str(home),
        "PATH": f"{codex.folder}:/usr/bin:/bin",
        "PYTHONPATH": SOURCES,
        "CODEX_HOME": str(codex.home),
        "TERM": "dumb",
    }
    child = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "memctl",
            "install-hooks",
            "--agent",
            "codex",
            "--apply",
            "--trust",
        ],
        env=environment,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    os.write(main, answer.encode())
    seen = b""
    while True:
        try:
            more = os.read(main, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not more:
            break
        seen += more
    os.close(main)
    return child.wait(30), seen.decode()


def test_a_person_at_a_terminal_is_asked_once_and_may_say_no(codex: Codex) -> None:
    codex.program()
    status, screen = install(codex, "n\n")
    assert status == 0
    assert screen.count("[y/N]") == 1
    assert OURS in screen
    assert THEIRS not in screen
    assert "once you trust them" in screen
    assert not (codex.home / "trusted.json").exists()
    status, screen = install(codex, "y\n")
    assert (status, screen.count("[y/N]")) == (0, 1)
    assert "Codex trusts memd's hooks" in screen
    assert (codex.home / "trusted.json").exists()
    status, screen = install(codex, "")
    assert (status, screen.count("[y/N]")) == (0, 0), "nothing is left to be asked for"
