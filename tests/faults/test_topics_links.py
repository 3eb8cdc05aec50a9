"""Names in a memory folder that turn into links, folders and pipes while memd works there."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.protocol_memory import WriteTopic
from support_topics import Home, put, read, topic

pytestmark = pytest.mark.faults

ROUNDS = 250
SECRET = b"SECRET outside of the folder"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    put(made.home + b"/outside.md", SECRET)
    put(made.shared + b"/MEMORY.md", b"# Memory Index\n\n- [One](one.md) 2026-09-05 -- first\n")
    put(made.shared + b"/one.md", topic("One", "text one"))
    return made


@contextlib.contextmanager
def swapping(home: Home, name: bytes) -> Iterator[None]:
    """Somebody exchanges a name for a link that leads out of the folder, and back, as fast as he can."""
    path, link = home.shared + b"/" + name, home.home + b"/link"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                os.symlink(home.home + b"/outside.md", link)
                os.rename(path, home.home + b"/aside")
                os.rename(link, path)
            with contextlib.suppress(OSError):
                os.rename(home.home + b"/aside", path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", [b"one.md", b"MEMORY.md", b".ocl-removed", b".lock"])
def test_a_link_that_appears_between_a_look_and_a_use_leads_nowhere(home: Home, name: bytes) -> None:
    put(home.shared + b"/" + name, read(home.shared + b"/" + name) if name.endswith(b".md") else b"")
    topics = home.topics()
    outcomes = set()
    with swapping(home, name):
        for number in range(ROUNDS):
            works: tuple[Callable[[], object], ...] = (
                lambda: topics.write(WriteTopic(topic="One", summary="s", body=f"text {number}")),  # noqa: B023
                lambda: topics.read("One"),
                topics.repair,
                lambda: topics.pin("One", number % 2 == 0),  # noqa: B023
            )
            try:
                works[number % len(works)]()
                outcomes.add("done")
            except MemdError as reason:
                assert reason.remedy
                outcomes.add("refused")
    assert read(home.home + b"/outside.md") == SECRET
    assert outcomes <= {"done", "refused"}
    for found in os.listdir(home.shared):
        path = home.shared + b"/" + found
        if os.path.isfile(path) and not os.path.islink(path):
            assert SECRET not in read(path)


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket"])
@pytest.mark.parametrize("name", [b"one.md", b"MEMORY.md", b".ocl-removed"])
def test_what_is_no_file_is_refused_at_once_and_left(home: Home, name: bytes, kind: str) -> None:
    path = home.shared + b"/" + name
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            os.mkdir(path)
        case _:
            os.mknod(path, 0o600 | 0o140000)
    before = os.lstat(path)
    with pytest.raises(MemdError):
        home.write("One", "more")
    assert os.lstat(path).st_ino == before.st_ino
    assert read(home.home + b"/outside.md") == SECRET
