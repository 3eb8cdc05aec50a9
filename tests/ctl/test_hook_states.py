"""A hook while the daemon is away or stuck, by the command that is installed, for each event there is."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memd.harness.hooking import HookEvent
from support_hooks import EVENTS, IDS, ROOT, STATES, STUB, command, notes, placed, run, state_of_daemon

EXPECT = json.loads((STUB / "expect.json").read_text())
PAYLOAD = json.dumps({"session_id": "7c1f2a0e", "hook_event_name": "x", "cwd": "/"}).encode()


@pytest.mark.parametrize("state", STATES)
def test_every_event_of_every_harness_gets_its_harmless_answer(tmp_path: Path, state: str) -> None:
    hook_file = placed(tmp_path / ".local" / "share")

    def fire(one: tuple[str, HookEvent]) -> tuple[float, subprocess.CompletedProcess[bytes]]:
        began = time.monotonic()
        done = run(command(hook_file, *one), tmp_path, PAYLOAD)
        return time.monotonic() - began, done

    with state_of_daemon(tmp_path, state), ThreadPoolExecutor(len(EVENTS)) as pool:
        for (_, event), name, (took, done) in zip(EVENTS, IDS, pool.map(fire, EVENTS), strict=True):
            assert took < EXPECT["max_seconds"], name
            assert done.returncode == EXPECT["exit_code"], name
            assert done.stdout == event.harmless.encode(), name
            assert done.stderr.count(b"\n") <= EXPECT["max_stderr_lines"], name


@pytest.mark.parametrize("state", STATES)
def test_exactly_the_bytes_of_the_command_are_printed(tmp_path: Path, state: str) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    event = HookEvent(name="PreToolUse", role="activity", harmless='{"decision":"allow"}')
    with state_of_daemon(tmp_path, state):
        done = run(command(hook_file, "antigravity", event), tmp_path, PAYLOAD)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"decision":"allow"}', b"")


@pytest.mark.parametrize("state", STATES)
def test_the_command_by_hand_takes_the_answer_from_the_table(tmp_path: Path, state: str) -> None:
    argv = [sys.executable, "-P", "-m", "memctl", "hook", "claude-code", "SessionStart"]
    path = f"{ROOT / 'daemon'}:{ROOT / 'ctl'}"
    with state_of_daemon(tmp_path, state):
        done = run(argv, tmp_path, PAYLOAD, PYTHONPATH=path)
        odd = run(
            [*argv[:-2], "no-such-harness", "Event", "--else", "{}"], tmp_path, PAYLOAD, PYTHONPATH=path
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (odd.returncode, odd.stdout) == (0, b"{}")


@pytest.mark.parametrize(("state", "least_s"), [("hang", 0.25), ("deaf", 0.25)])
def test_only_an_answer_that_matters_is_waited_for(tmp_path: Path, state: str, least_s: float) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    plain = HookEvent(name="Stop", role="activity")
    matters = HookEvent(name="SessionStart", role="start", matters=True)
    with state_of_daemon(tmp_path, state):
        took = []
        for event in (plain, matters):
            began = time.monotonic()
            run(command(hook_file, "claude", event), tmp_path)
            took.append(time.monotonic() - began)
    assert least_s <= took[0] < 1.9
    assert 2.0 <= took[1] < 4.0


def test_a_note_is_left_for_each_call_and_holds_no_content(tmp_path: Path) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    event = HookEvent(name="Stop", role="activity")
    before = time.time() * 1000
    done = run(
        command(hook_file, "claude", event), tmp_path, b'{"prompt":"secret"}', MEMD_RUN_ID="0199a000-0000"
    )
    assert done.returncode == 0
    (note,) = notes(tmp_path)
    assert note.stat().st_mode & 0o777 == 0o600
    words = note.read_bytes().split(b"\0")
    assert words[:5] == [b"memd-note1", b"claude", b"Stop", bytes(tmp_path), b"0199a000-0000"]
    assert int(words[5]) > 1
    assert before - 1000 <= int(words[6]) <= time.time() * 1000
    assert words[7:] == [b""]


def test_text_that_exists_nowhere_else_is_kept(tmp_path: Path) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    event = HookEvent(name="Stop", role="activity", keeps=True)
    run(command(hook_file, "antigravity", event), tmp_path, b'{"a":"\0b"}')
    (note,) = notes(tmp_path)
    assert note.read_bytes().split(b"\0", 7)[7] == b'{"a":"\0b"}'


def test_ten_hooks_at_once_leave_ten_notes_and_no_process(tmp_path: Path) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    event = HookEvent(name="Stop", role="activity")
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    children = [
        subprocess.Popen(command(hook_file, "claude", event), env=environment, stdin=subprocess.DEVNULL)
        for _ in range(10)
    ]
    assert [child.wait(timeout=20) for child in children] == [0] * 10
    assert len(notes(tmp_path)) == 10


def test_the_notes_are_bounded_in_number(tmp_path: Path) -> None:
    hook_file = placed(tmp_path / ".local" / "share")
    folder = tmp_path / ".local" / "state" / "memd" / "spool"
    folder.mkdir(parents=True)
    for number in range(512):
        (folder / f"{number}-1").touch()
    done = run(command(hook_file, "claude", HookEvent(name="Stop", role="activity")), tmp_path)
    assert done.returncode == 0
    assert len(notes(tmp_path)) == 512


@pytest.mark.parametrize("where", [".local", ".local/state/memd/spool"])
def test_a_state_folder_that_cannot_be_used_keeps_no_hook_from_answering(tmp_path: Path, where: str) -> None:
    hook_file = placed(tmp_path / "elsewhere")
    path = tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    event = HookEvent(name="Stop", role="activity", harmless="{}")
    done = run(command(hook_file, "claude", event), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def test_its_help_is_for_people(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", "-m", "memctl", "hook", "--help"]
    done = run(argv, tmp_path, PYTHONPATH=f"{ROOT / 'daemon'}:{ROOT / 'ctl'}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"HARNESS" in done.stdout
