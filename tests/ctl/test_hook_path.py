"""What a hook tells the daemon and prints, and what an agent may do to it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.harness.hooking import HookEvent
from support_hooks import INTERPRETER, command, notes, placed, run, state_of_daemon

EVENT = HookEvent(name="Stop", role="activity", harmless="{}")


@pytest.fixture
def hook_file(tmp_path: Path) -> Path:
    return placed(tmp_path / ".local" / "share")


def listening(home: Path) -> socket.socket:
    """The socket of this home."""
    folder = home / "run" / "memd"
    folder.mkdir(mode=0o700, parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "memd.sock"))
    listener.listen(8)
    return listener


@contextlib.contextmanager
def daemon(home: Path, reply: bytes) -> Iterator[list[bytes]]:
    """Answers every message with these bytes; gives the messages."""
    heard: list[bytes] = []
    listener = listening(home)

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.settimeout(10)
                data = bytearray()
                while more := peer.recv(1 << 20):
                    data += more
                    line, newline, body = data.partition(b"\n")
                    if newline and len(body) >= int(line.split()[2]):
                        heard.append(bytes(data))
                        peer.sendall(reply)
                        break

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield heard
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def answer(text: bytes, code: bytes = b"0") -> bytes:
    body = code + b"\n" + text
    return b"memd1 t %d\n" % len(body) + body


def test_the_message_is_a_header_of_five_fields_and_stdin_as_it_came(tmp_path: Path, hook_file: Path) -> None:
    stdin = b'{"a":"\xff\0\n"}'
    with daemon(tmp_path, answer(b"")) as heard:
        run(command(hook_file, "claude", EVENT), tmp_path, stdin, MEMD_RUN_ID="r-1")
    line, _, body = heard[0].partition(b"\n")
    assert line == b"memd1 h %d" % len(body)
    harness, event, cwd, run_id, pid, rest = body.split(b"\0", 5)
    assert (harness, event, cwd, run_id) == (b"claude", b"Stop", bytes(tmp_path), b"r-1")
    assert int(pid) == os.getpid()
    assert rest == stdin


def test_what_the_daemon_says_is_printed_to_the_byte(tmp_path: Path, hook_file: Path) -> None:
    text = '日本\u2028 \\ "x" \n\n'.encode() + b"\0\xff" + b"y" * 100_000
    with daemon(tmp_path, answer(text)):
        done = run(command(hook_file, "claude", EVENT), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, text, b"")
    assert notes(tmp_path) == []


@pytest.mark.parametrize(
    "reply",
    [
        b"memd1 j 2\n{}",
        answer(b"text", b"70"),
        b"memd1 t 0\n",
        b"memd1 t 1\n0",
        b"memd1 t 90\n0\nhalf",
        b"memd1 t 99999999999\n",
        b"memd1 t -3\n",
        b"memd2 t 2\n0\n",
        b"\n",
        b"x" * 500,
    ],
)
def test_nothing_but_a_whole_answer_is_printed(tmp_path: Path, hook_file: Path, reply: bytes) -> None:
    with daemon(tmp_path, reply):
        done = run(command(hook_file, "claude", EVENT), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def test_a_daemon_that_answers_a_byte_at_a_time_is_not_waited_for(tmp_path: Path, hook_file: Path) -> None:
    listener = listening(tmp_path)

    def drip() -> None:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            peer.sendall(b"memd1 t 90000\n0\n")
            while True:  # until the hook goes
                if select.select([peer], [], [], 0.05)[0] and not peer.recv(1 << 16):
                    break
                peer.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    done = run(command(hook_file, "claude", EVENT), tmp_path)
    assert time.monotonic() - began < 2.0
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")
    assert len(notes(tmp_path)) == 1
    thread.join(10)
    listener.close()


def test_a_large_stdin_is_read_to_its_end_and_cut(tmp_path: Path, hook_file: Path) -> None:
    stdin = b"x" * (18 << 20)
    event = HookEvent(name="Stop", role="activity", matters=True)
    with daemon(tmp_path, answer(b"")) as heard:
        done = run(command(hook_file, "claude", event), tmp_path, stdin)
    assert done.returncode == 0
    assert len(heard[0].partition(b"\n")[2]) == 16 << 20


def test_words_that_are_no_utf8_arrive_as_they_were(tmp_path: Path, hook_file: Path) -> None:
    argv = [os.fsencode(word) for word in command(hook_file, "claude", EVENT)]
    argv[4:6] = [b"h\xff", b"e\xfe"]
    with daemon(tmp_path, answer(b"")) as heard:
        run(argv, tmp_path)  # type: ignore[arg-type]
    assert heard[0].partition(b"\n")[2].startswith(b"h\xff\0e\xfe\0")


def test_a_directory_that_is_gone_is_no_trouble(tmp_path: Path, hook_file: Path) -> None:
    argv = command(hook_file, "claude", EVENT)
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = run(["sh", "-c", script, "sh", *argv], tmp_path)
    assert (done.returncode, done.stdout) == (0, b"{}")
    assert len(notes(tmp_path)) == 1


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_standard_files_may_be_closed(tmp_path: Path, hook_file: Path, closing: str) -> None:
    argv = command(hook_file, "claude", EVENT)
    with daemon(tmp_path, answer(b"told")) as heard:
        done = run(["sh", "-c", f'"$@" {closing}', "sh", *argv], tmp_path)
    assert done.returncode == 0
    assert done.stdout == (b"" if ">&-" in closing.replace("2>&-", "") else b"told")
    assert len(heard) == 1
    assert heard[0].endswith(b"\0")


def test_an_agent_that_closed_our_stdout_is_no_trouble(tmp_path: Path, hook_file: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with daemon(tmp_path, answer(b"told")):
        child = subprocess.Popen(
            command(hook_file, "claude", EVENT),
            env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")},
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
        )
        os.close(writing)
        errors = child.communicate(timeout=20)[1]
    assert (child.returncode, errors) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_answer_is_harmless(
    tmp_path: Path, hook_file: Path, number: signal.Signals
) -> None:
    event = HookEvent(name="SessionStart", role="start", matters=True, harmless="{}")
    with state_of_daemon(tmp_path, "hang"):
        child = subprocess.Popen(
            command(hook_file, "claude", event),
            env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdin is not None
        # more than the pipe holds: when it was taken, the hook runs and has set up what it does on signals
        child.stdin.write(b"x" * 200_000)
        child.stdin.flush()
        child.send_signal(number)
        out, errors = child.communicate(timeout=20)
    assert (child.returncode, out, errors) == (0, b"{}", b"")


@pytest.mark.parametrize("words", [[], ["claude"], ["--else"], ["claude", "--else", "{}"]])
def test_too_few_words_are_said_in_one_line(tmp_path: Path, hook_file: Path, words: list[str]) -> None:
    done = run([INTERPRETER, "-I", "-S", str(hook_file), *words], tmp_path)
    assert done.returncode == 0
    assert done.stdout == (b"{}" if "{}" in words else b"")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("broken", [None, b"", b"def main(:\n", b"raise SystemExit(3)\n", b"\0\xff"])
def test_a_missing_or_broken_part_gives_the_harmless_answer(
    tmp_path: Path, hook_file: Path, broken: bytes | None
) -> None:
    part = hook_file.with_name("memd_hook_path.py")
    if broken is None:
        part.unlink()
    else:
        part.write_bytes(broken)
    done = run(command(hook_file, "claude", EVENT), tmp_path, b"{}")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def test_a_runtime_folder_that_others_can_enter_is_not_talked_to(tmp_path: Path, hook_file: Path) -> None:
    with daemon(tmp_path, answer(b"told")) as heard:
        (tmp_path / "run" / "memd").chmod(0o755)
        done = run(command(hook_file, "claude", EVENT), tmp_path)
    assert (done.returncode, done.stdout) == (0, b"{}")
    assert heard == []


def test_an_agent_that_keeps_our_stdin_open_is_answered(tmp_path: Path, hook_file: Path) -> None:
    part = hook_file.with_name("memd_hook_path.py")
    part.write_text(part.read_text().replace("STDIN_S = 5.0", "STDIN_S = 0.2"))
    reading, writing = os.pipe()
    os.write(writing, b'{"a":1}')
    with daemon(tmp_path, answer(b"told")) as heard:
        child = subprocess.Popen(
            command(hook_file, "claude", EVENT),
            env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")},
            stdin=reading,
            stdout=subprocess.PIPE,
        )
        out, _ = child.communicate(timeout=20)
    os.close(reading)
    os.close(writing)
    assert (child.returncode, out) == (0, b"told")
    assert heard[0].endswith(b'\0{"a":1}')
