"""Files are old or new, names are taken only when free, and what is reported as written is on the drive."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memd import disk
from memd.errors import DiskError, TryAgain
from support_faults import Faults, failing, installed


@pytest.fixture
def top(tmp_path: Path) -> bytes:
    return os.fsencode(os.path.realpath(tmp_path))


def content(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# ---------------------------------------------------------------------- whole files


def test_a_file_is_flushed_before_it_gets_its_name_and_its_folder_after(top: bytes) -> None:
    disk.replace_file(top + b"/file", b"old")
    with installed(Faults(only_writes=True)) as faults:
        disk.replace_file(top + b"/file", b"new")
    assert faults.calls == ["open", "write", "fsync", "replace", "fsync"]
    assert content(top + b"/file") == b"new"
    assert stat.S_IMODE(os.stat(top + b"/file").st_mode) == 0o600


def test_missing_parents_are_made_private_and_durable(top: bytes) -> None:
    with installed(Faults(only_writes=True)) as faults:
        disk.replace_file(top + b"/a/b/file", b"x")
    assert faults.calls[:4] == ["mkdir", "fsync", "mkdir", "fsync"]
    assert stat.S_IMODE(os.stat(top + b"/a").st_mode) == stat.S_IMODE(os.stat(top + b"/a/b").st_mode) == 0o700


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_an_error_leaves_the_old_file_and_no_other(top: bytes, number: int) -> None:
    disk.replace_file(top + b"/file", b"old")
    for at in range(4):
        faults = Faults(at, failing(number), only_writes=True)
        with installed(faults), pytest.raises(DiskError) as caught:
            disk.replace_file(top + b"/file", b"new")
        assert caught.value.errno == number and os.fsdecode(top) in str(caught.value)
        assert os.listdir(top) == [b"file"] and content(top + b"/file") == b"old"


def test_a_failed_flush_is_followed_by_writing_anew(top: bytes) -> None:
    with installed(Faults(2, failing(errno.EIO), only_writes=True)) as faults:
        with pytest.raises(DiskError):
            disk.replace_file(top + b"/file", b"new")
        disk.replace_file(top + b"/file", b"new")
    assert faults.calls == ["open", "write", "fsync", "unlink", "open", "write", "fsync", "replace", "fsync"]


def test_short_writes_are_gone_on_with(top: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    disk.replace_file(top + b"/file", b"longer than three bytes")
    assert content(top + b"/file") == b"longer than three bytes"


def test_reading_has_a_limit_and_never_waits(top: bytes) -> None:
    disk.replace_file(top + b"/file", b"12345")
    os.mkfifo(top + b"/fifo")
    assert disk.read_file(top + b"/file", 5) == b"12345"
    assert disk.read_file(top + b"/none", 5) is None
    with pytest.raises(DiskError, match="larger"):
        disk.read_file(top + b"/file", 4)
    with pytest.raises(DiskError):
        disk.read_file(top + b"/fifo", 5)


# ------------------------------------------------------------------------ free names


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling"])
@pytest.mark.parametrize("in_steps", [False, True])
def test_a_move_never_replaces(
    top: bytes, kind: str, in_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_steps:
        monkeypatch.setattr(disk, "_renameat2", lambda *_: failing(errno.EINVAL)())
    new = top + b"/new"
    {"file": lambda: open(new, "wb").close(), "folder": lambda: os.mkdir(new)}.get(
        kind, lambda: os.symlink(top if kind == "link" else b"/nowhere", new)
    )()
    before = os.lstat(new)
    for old in (b"file", b"folder", b"link"):
        if old == b"file":
            disk.replace_file(top + b"/file", b"x")
        elif old == b"folder":
            os.mkdir(top + b"/folder")
        else:
            os.symlink(b"text", top + b"/link")
        with disk.open_folder(top) as folder:
            with pytest.raises(DiskError) as caught:
                folder.move(old, folder, b"new")
            assert caught.value.errno == errno.EEXIST
            assert os.lstat(new).st_ino == before.st_ino
            folder.move(old, folder, b"free-" + old)
        assert os.path.lexists(top + b"/free-" + old) and not os.path.lexists(top + b"/" + old)


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_two_names_are_exchanged(
    top: bytes, kind: str, in_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_steps:
        monkeypatch.setattr(disk, "_renameat2", lambda *_: failing(errno.EINVAL)())
    if kind == "file":
        disk.replace_file(top + b"/theirs", b"theirs")
    else:
        disk.replace_file(top + b"/theirs/note", b"theirs")
    os.symlink(b"ours", top + b"/ours")
    with disk.open_folder(top) as folder:
        folder.swap(b"theirs", folder, b"ours")
    assert os.readlink(top + b"/theirs") == b"ours"
    assert content(top + (b"/ours" if kind == "file" else b"/ours/note")) == b"theirs"
    assert sorted(os.listdir(top)) == [b"ours", b"theirs"]


def test_an_exchange_in_steps_that_is_cut_off_keeps_both(top: bytes) -> None:
    for at in range(12):
        folder_path = top + b"/%d" % at
        disk.replace_file(folder_path + b"/theirs", b"theirs")
        disk.replace_file(folder_path + b"/ours", b"ours")
        faults = Faults(at, failing(errno.EIO))
        with disk.open_folder(folder_path) as folder, installed(faults):
            disk._renameat2 = lambda *_: failing(errno.EINVAL)()
            try:
                folder.swap(b"theirs", folder, b"ours")
            except DiskError:
                pass
        kept = {name: content(folder_path + b"/" + name) for name in os.listdir(folder_path)}
        assert set(kept.values()) == {b"theirs", b"ours"}
        assert all(body == b"ours" for name, body in kept.items() if disk.is_temporary(name))


def test_creating_says_when_the_name_is_taken(top: bytes) -> None:
    with disk.open_folder(top) as folder:
        assert folder.create(b"file", b"first") is True
        assert folder.create(b"file", b"second") is False
        assert folder.ensure_folder(b"sub") is True and folder.ensure_folder(b"sub") is False
        os.symlink(b"sub", top + b"/link")
        with pytest.raises(DiskError):
            folder.ensure_folder(b"link")
        with pytest.raises(DiskError):
            folder.folder(b"link")
        with pytest.raises(DiskError):
            folder.read(b"link", 10)
    assert content(top + b"/file") == b"first" and len(os.listdir(top)) == 3


def test_temporary_names_are_told_from_all_others() -> None:
    assert disk.is_temporary(disk.temporary_name())
    for name in (b".memd-.tmp", b"memd-0123456789abcdef.tmp", b".memd-0123456789abcdef.tmp.md", b"x.tmp"):
        assert not disk.is_temporary(name)


# ----------------------------------------------------------------------------- locks


def test_a_lock_is_held_by_one_and_free_with_its_process(top: bytes) -> None:
    path = top + b"/a/lock"
    code = "import sys; from memd import disk; lock = disk.take_lock(sys.argv[1].encode()); print(1)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    holder = subprocess.Popen(
        [sys.executable, "-u", "-c", code + "; input()", os.fsdecode(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
    with pytest.raises(TryAgain, match="lock"):
        disk.take_lock(path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert holder.stdin is not None
    holder.stdin.close()
    disk.take_lock(path, wait_s=5).release()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_lock_is_waited_for(top: bytes) -> None:
    first = disk.take_lock(top + b"/lock")
    got: list[bool] = []

    def wait() -> None:
        with disk.take_lock(top + b"/lock", wait_s=20):
            got.append(True)

    other = threading.Thread(target=wait)
    other.start()
    first.release()
    other.join(20)
    assert got == [True]


def test_a_folder_is_locked_without_making_anything(top: bytes) -> None:
    lock = disk.take_folder_lock(top)
    assert lock is not None and os.listdir(top) == []
    with pytest.raises(TryAgain):
        disk.take_folder_lock(top)
    lock.release()


def test_a_link_where_the_lock_file_belongs_is_refused(top: bytes) -> None:
    os.symlink(top + b"/elsewhere", top + b"/lock")
    with pytest.raises(DiskError):
        disk.take_lock(top + b"/lock")
    assert not os.path.lexists(top + b"/elsewhere")


def test_an_empty_folder_is_removed_and_one_with_something_in_it_is_not(tmp_path: Path) -> None:
    with disk.make_folders(os.fsencode(tmp_path / "a" / "b")) as folder:
        folder.ensure_folder(b"empty")
        folder.ensure_folder(b"full")
        with folder.folder(b"full") as full:
            full.create(b"kept", b"x")
        folder.remove_folder(b"empty")
        folder.remove_folder(b"empty")
        with pytest.raises(DiskError):
            folder.remove_folder(b"full")
        assert folder.names() == [b"full"]
