"""memctl's own small files: whole or not at all, and never over something it has not read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from memctl import files
from memd.errors import DiskError, Refused


def encoded(path: Path) -> bytes:
    return os.fsencode(path)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "unit"
    files.write(encoded(path), b"text\n", over=None)
    assert path.read_bytes() == b"text\n"
    assert names(path.parent) == ["unit"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_a_file_that_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "unit"
    path.write_bytes(b"edited\n")
    with pytest.raises(Refused, match="changed while"):
        files.write(encoded(path), b"ours\n", over=b"as read\n")
    with pytest.raises(Refused):
        files.remove(encoded(path), only=b"as read\n")
    assert path.read_bytes() == b"edited\n"
    assert names(tmp_path) == ["unit"]


def test_a_file_that_appeared_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "unit"
    real = os.link

    def somebody_is_faster(old: bytes, new: bytes, *, follow_symlinks: bool) -> None:
        path.write_bytes(b"theirs\n")
        real(old, new, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "link", somebody_is_faster)
    with pytest.raises(Refused, match="appeared"):
        files.write(encoded(path), b"ours\n", over=None)
    assert path.read_bytes() == b"theirs\n"
    assert names(tmp_path) == ["unit"]


def test_a_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"theirs\n")
    link = tmp_path / "unit"
    link.symlink_to(target)
    assert files.read(encoded(link)) == (None, "link")
    with pytest.raises(Refused):
        files.remove(encoded(link), only=b"theirs\n")
    assert target.read_bytes() == b"theirs\n"


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert files.read(encoded(tmp_path / "fifo")) == (None, "other")
    assert files.read(encoded(tmp_path / "absent")) == (None, "absent")
    assert files.read(encoded(tmp_path)) == (None, "other")


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "unit"
    path.write_bytes(b"old\n")

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskError, match="No space left"):
        files.write(encoded(path), b"new\n", over=b"old\n")
    assert path.read_bytes() == b"old\n"
    assert names(tmp_path) == ["unit"]


def test_what_a_killed_writer_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f".unit.{os.getpid()}.new").write_bytes(b"half")
    files.write(encoded(tmp_path / "unit"), b"whole\n", over=None)
    assert names(tmp_path) == ["unit"]


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(old: bytes, new: bytes, *, follow_symlinks: bool) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    files.write(encoded(tmp_path / "unit"), b"text\n", over=None)
    assert names(tmp_path) == ["unit"]
    assert (tmp_path / "unit").read_bytes() == b"text\n"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match=r"file: Not a directory"):
        files.make_folder(encoded(tmp_path / "file" / "folder"))
    with pytest.raises(DiskError, match="Not a directory"):
        files.make_folder(encoded(tmp_path / "file"))


def test_a_file_keeps_its_mode_and_owner_whatever_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_bytes(b"old\n")
    path.chmod(0o664)
    facts = path.stat()
    mask = os.umask(0o077)
    try:
        copy = files.back_up(encoded(path), b"old\n", facts, 1_700_000_000)
        files.write(encoded(path), b"new\n", b"old\n", like=facts)
    finally:
        os.umask(mask)
    assert path.read_bytes() == b"new\n"
    assert names(tmp_path) == ["settings", "settings.bak-1700000000"]
    for one in (path, Path(os.fsdecode(copy))):
        found = one.stat()
        assert (found.st_mode & 0o777, found.st_uid, found.st_gid) == (0o664, facts.st_uid, facts.st_gid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_somebody_elses_file_stays_theirs(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_bytes(b"old\n")
    os.chown(path, 12345, 23456)
    files.write(encoded(path), b"new\n", b"old\n", like=path.stat())
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_two_changes_in_one_second_have_two_copies(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_bytes(b"one\n")
    facts = path.stat()
    files.back_up(encoded(path), b"one\n", facts, 7)
    files.back_up(encoded(path), b"two\n", facts, 7)
    assert names(tmp_path) == ["settings", "settings.bak-7", "settings.bak-7.1"]
    assert (tmp_path / "settings.bak-7").read_bytes() == b"one\n"


def test_a_file_that_is_too_large_is_never_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 8)
    (tmp_path / "fits").write_bytes(b"12345678")
    (tmp_path / "large").write_bytes(b"123456789")
    assert files.read(encoded(tmp_path / "fits")) == (b"12345678", "file")
    with pytest.raises(Refused, match="large is larger"):
        files.read(encoded(tmp_path / "large"))


def test_a_folder_that_cannot_be_flushed_is_no_error_and_a_failed_flush_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    number = errno.EINVAL

    def flush(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(number, os.strerror(number))
        real(fd)

    monkeypatch.setattr(os, "fsync", flush)
    path = os.fsencode(tmp_path / "file")
    files.write(path, b"text", None)
    assert files.read(path) == (b"text", "file")
    number = errno.EIO
    with pytest.raises(DiskError):
        files.write(path, b"other", b"text")
