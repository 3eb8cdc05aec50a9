"""The kernel's bounds on file events: its queue overflows, its watches and its instances are used up.

The queue is made to overflow by a daemon that is stopped while more happens than it holds; the bounds on
watches and instances are those of a user namespace of its own. Nothing of the machine is changed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import support_points
from faults.test_burst import sessions, write
from support_daemon import Home, eventually

pytestmark = [pytest.mark.faults, pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")]

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
WITHIN_S = 40  # for a machine with a lot to do; the next look at everything comes only after 60


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home((tmp_path / "home").resolve(), runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def flood(folder: Path) -> None:
    """More events than the queue of a watch on this folder holds."""
    count = int(QUEUE.read_text())
    if count > 100_000:
        pytest.skip(f"the queue holds {count} events here")
    one, two = (os.open(folder / name, os.O_CREAT | os.O_WRONLY) for name in ("one.txt", "two.txt"))
    try:
        for _ in range(count // 2 + 100):  # of two equal events in a row one is kept
            os.write(one, b"x")
            os.write(two, b"x")
    finally:
        os.close(one)
        os.close(two)
    support_points.tried(count)


def test_after_an_overflow_everything_is_found(home: Home) -> None:
    """New sessions, sessions that grew, new folders, and memory of an agent in a login."""
    projects = home.path / ".claude" / "projects"
    agent = home.path / "work"
    (agent / ".git").mkdir(parents=True)
    (home.path / ".claude").mkdir()
    (home.path / ".claude/.credentials.json").write_text("{}")
    write(projects / "-work-p0", 0)
    child = home.start()
    assert home.memctl("enroll", str(agent)).returncode == 0
    (link,) = (Path(row["path"]) for row in home.json("where", str(agent))["entries"])
    eventually(lambda: sessions(home) == 1 and link.is_symlink())
    for round_ in range(1, 4):
        child.send_signal(signal.SIGSTOP)
        flood(projects / "-work-p0")
        write(projects / "-work-p0", round_)
        write(projects / f"-work-new{round_}", 100 + round_)
        grown = next((projects / "-work-p0").glob("00000000-*.jsonl"))
        line = grown.read_text().splitlines()[0]
        with grown.open("a") as file:
            file.write(
                line.replace("number0", f"grown{round_}").replace('"uuid": "0', f'"uuid": "{round_}') + "\n"
            )
        link.unlink()
        link.mkdir()
        (link / f"note{round_}.md").write_text("a note\n")
        child.send_signal(signal.SIGCONT)
        eventually(lambda count=1 + 2 * round_: sessions(home) == count, WITHIN_S)
        eventually(lambda word=f"grown{round_}": word in home.memctl("search", word).stdout, WITHIN_S)
        eventually(link.is_symlink, WITHIN_S)
        assert (link / f"note{round_}.md").read_text() == "a note\n"


@pytest.mark.parametrize(
    "bound", ["max_inotify_watches=3", "max_inotify_watches=0", "max_inotify_instances=0"]
)
def test_with_too_few_watches_or_instances_everything_is_found_by_looking(home: Home, bound: str) -> None:
    name, _, count = bound.partition("=")
    script = f'echo {count} > /proc/sys/user/{name} && exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", script, "sh", sys.executable, "-P", "-m", "memd"]
    tried = subprocess.run([*command[:6], "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no user namespaces here: {tried.stderr.strip()[:80]}")
    child = subprocess.Popen(
        command,
        env=home.environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        projects = home.path / ".claude" / "projects"
        write(projects / "-work-p0", 0)
        eventually(lambda: home.answers() or child.poll() is not None)
        eventually(lambda: sessions(home) == 1, WITHIN_S)
        eventually(lambda: home.json("status")["watch"]["state"] == "limited", WITHIN_S)
        for number in range(1, 50):
            write(projects / f"-work-p{number % 20}", number)
        eventually(lambda: sessions(home) == 50, WITHIN_S)
        support_points.tried(50)
    finally:
        child.kill()
        child.wait()
