"""A harness with a store in every directory it works in: found through its own list, as that grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.harness.model import Adapter, Environment, Session
from memd.harness.model import Store as Place
from memd.harness.registry import resolve
from memd.ledger import messages, sources
from memd.ledger.glance import MAX_READ_BYTES, Disk
from support_crush import Store, list_projects
from support_worker import Worker, entries


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    made = Worker(tmp_path)
    yield made
    made.end()


def said(worker: Worker, count: int) -> list[tuple[str, str]]:
    """The texts of the next events, with the directories of their sessions."""
    found: list[tuple[str, str]] = []
    cwds: dict[str, str] = {}
    while len(found) < count:
        read = worker.read()
        assert read is not None, found
        cwds.update(
            {session.id: session.cwd for batch in messages.batches(read) for session in batch.sessions}
        )
        found += [(entry.content, cwds.get(entry.session, "")) for entry in entries(read)]
        worker.tell(messages.Acknowledge(number=read.number))
    return found


def project(home: Path, name: str, words: str, folder: str = "") -> tuple[Path, Path]:
    place = home / name
    place.mkdir(exist_ok=True)
    store = Store(home / folder if folder else place / ".crush")
    store.session(f"s-{name}")
    store.say(f"m-{name}", words, to=f"s-{name}")
    return place, store.path.parent


def test_the_stores_that_the_harness_lists_are_read_also_when_the_list_grows(
    worker: Worker, tmp_path: Path
) -> None:
    data = tmp_path / ".local/share/crush"
    first = project(tmp_path, "one", "from one")
    list_projects(data, first)
    worker.begin()
    worker.tell(messages.Watched(is_watched=True))
    assert said(worker, 1) == [("from one", str(tmp_path / "one"))]
    list_projects(data, first, project(tmp_path, "two", "from two"))
    worker.tell(messages.Look(paths=(os.fsencode(data / "projects.json"),)))
    assert said(worker, 1) == [("from two", str(tmp_path / "two"))]


def test_a_list_that_is_made_later_is_noticed(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / ".local/share").mkdir(parents=True)
    worker.begin()
    worker.tell(messages.Watched(is_watched=True))
    worker.tell(messages.Flush(token=1))
    while not isinstance(news := worker.news(), messages.Flushed):
        assert news is not None
    data = tmp_path / ".local/share/crush"
    list_projects(data, project(tmp_path, "one", "from one"))
    worker.tell(messages.Look(paths=(os.fsencode(data),)))
    assert said(worker, 1) == [("from one", str(tmp_path / "one"))]


def test_the_folder_of_the_list_is_watched(worker: Worker, tmp_path: Path) -> None:
    data = tmp_path / ".local/share/crush"
    list_projects(data)
    worker.begin()
    while not isinstance(news := worker.news(), messages.Folders):
        assert news is not None
    assert os.fsencode(data) in news.folders


def test_sessions_of_a_shared_store_come_when_their_project_is_known(worker: Worker, tmp_path: Path) -> None:
    data = tmp_path / ".local/share/crush"
    one = project(tmp_path, "one", "from one", "far")
    two = project(tmp_path, "two", "from two", "far")
    store = Store(tmp_path / "far")
    store.edit(tmp_path / "one/a.py", "s-one")
    store.edit(tmp_path / "two/a.py", "s-two")
    list_projects(data, one)
    worker.begin()
    worker.tell(messages.Watched(is_watched=True))
    assert set(said(worker, 1)) == {("from one", str(tmp_path / "one"))}
    list_projects(data, one, two)
    worker.tell(messages.Look(paths=(os.fsencode(data / "projects.json"),)))
    assert ("from two", str(tmp_path / "two")) in said(worker, 1)


def test_a_folder_that_is_named_is_a_checkout_with_its_store(tmp_path: Path) -> None:
    project(tmp_path, "one", "hello")
    ((_, store),) = sources.stores_in(resolve("crush"), os.fsencode(tmp_path / "one"))
    assert (store.root, store.cwd) == (os.fsencode(tmp_path / "one/.crush"), os.fsencode(tmp_path / "one"))


# ------------------------------------------------------------------------------ the look at the disk


def adapter(*places: Place) -> Adapter:
    return Adapter(
        name="made-up",
        title="Made Up",
        stores=lambda environment: (),
        scattered=lambda environment, glance: places,
        identify=lambda path, head, flavor: Session(id=""),
    )


def test_whoever_shares_a_store_is_named_once(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    made = adapter(
        Place(root=root, patterns=("db",), shared=(b"/a",)),
        Place(root=root, patterns=("db",), cwd=b"/b", shared=(b"/c",)),
        Place(root=root, patterns=("db",), cwd=b"/d"),
    )
    ((_, store),) = sources.stores([made], [Environment(home=b"/h"), Environment(home=b"/i")])
    assert (store.cwd, store.shared) == (b"/b", (b"/a", b"/c", b"/d"))


def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    disk, root = Disk(), os.fsencode(tmp_path)
    (tmp_path / "small").write_bytes(b"text")
    (tmp_path / "link").symlink_to("small")
    (tmp_path / "large").write_bytes(bytes(MAX_READ_BYTES + 1))
    os.mkfifo(tmp_path / "fifo")
    assert [disk.read(root + name) for name in (b"/small", b"/link")] == [b"text", b"text"]
    assert [disk.read(root + name) for name in (b"/large", b"/fifo", b"", b"/none", b"/a\0b")] == [None] * 5


def test_owners_and_tops_of_checkouts_are_told(tmp_path: Path) -> None:
    disk, root = Disk(), os.fsencode(tmp_path)
    assert disk.owner(root) == os.getuid()
    assert [disk.owner(root + name) for name in (b"/none", b"/a\0b")] == [None, None]
    assert disk.checkout(root) == b""
    assert disk.checkout(b"relative") == b""
    for part in ("objects", "refs"):
        (tmp_path / "w/.git" / part).mkdir(parents=True)
    (tmp_path / "w/.git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "w/a").mkdir()
    assert disk.checkout(root + b"/w/a") == os.path.realpath(root) + b"/w"
