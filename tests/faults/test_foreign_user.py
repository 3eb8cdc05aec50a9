"""Another user of the machine gets no answer: by the modes alone, and through modes that somebody opened."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home

pytestmark = pytest.mark.faults

SCRIPT = (
    "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(5)\n"
    "try:\n s.connect(sys.argv[1])\n"
    ' s.sendall(b\'memd1 j 13\\n{"op":"ping"}\')\n print("got", s.recv(10))\n'
    "except OSError as e:\n print(type(e).__name__)\n"
)


@pytest.fixture
def open_top() -> Iterator[Path]:
    """Somewhere that everybody can reach."""
    with tempfile.TemporaryDirectory(prefix="memd-foreign-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def as_nobody(path: bytes) -> str:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [*nobody, "/usr/bin/env", "-i", "python3", "-S", "-c", SCRIPT, os.fsdecode(path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    if "setpriv" in done.stderr or done.returncode:
        pytest.skip(f"cannot become another user: {done.stderr.strip()}")
    return done.stdout.strip()


def test_the_modes_alone_keep_another_user_out(open_top: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    home = Home(open_top / "home", runtime=open_top / "run")
    with home.daemon():
        assert as_nobody(home.socket()) == "PermissionError"
        assert home.answers()


def test_a_socket_below_a_folder_that_everybody_may_write_to_is_refused(open_top: Path) -> None:
    run = open_top / "run"
    home = Home(open_top / "home", runtime=run)
    (run / "memd").mkdir()
    os.chmod(run / "memd", 0o777)
    child = home.spawn()
    try:
        _, said = child.communicate(timeout=20)
        assert child.returncode not in (0, None)
        assert b"0700" in said
    finally:
        home.end_all()
