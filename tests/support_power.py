"""A power cut: what a block device holds at some moment, mounted again.

A file system ext4 lies in an image file, mounted with `noauto_da_alloc`: there a rename can reach the disk
before the bytes do, which its default hides. What the kernel has not written to the device yet is not in the
image, so a copy of the image is what a power cut at that moment leaves. A journal that was committed in
between (the system does that every few seconds) is the other half: flushing some other file commits all names
made until then, and no bytes that nobody flushed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

IMAGE_BYTES = 24 << 20
OPTIONS = "loop,noauto_da_alloc,commit=300"


class Device:
    """An image, and the folder it is mounted at."""

    def __init__(self, folder: Path) -> None:
        self.image = folder / "device.img"
        self.mounted = folder / "mnt"
        self.mounted.mkdir(parents=True)
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", "-O", "^has_journal", str(self.image))
        _run("tune2fs", "-O", "has_journal", "-J", "size=4", str(self.image))
        self.mount()
        (self.mounted / "other").write_bytes(b"0")
        self._other = -1

    def mount(self) -> None:
        _run("mount", "-o", OPTIONS, str(self.image), str(self.mounted))

    def unmount(self) -> None:
        _run("umount", str(self.mounted))

    def commit(self) -> None:
        """Let the file system write its journal, and no bytes but those of another file."""
        path = self.mounted / "other"
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, b"%d" % os.getpid())
            os.fchmod(fd, 0o600 if os.fstat(fd).st_mode & 0o40 else 0o640)
            os.fsync(fd)
        finally:
            os.close(fd)

    def cut(self, to: Path) -> None:
        """Keep what the device holds now."""
        _run("cp", "--sparse=always", str(self.image), str(to))

    @contextlib.contextmanager
    def after(self, image: Path) -> Iterator[None]:
        """The same folder as it is found after that power cut."""
        shutil.move(image, self.image)
        self.mount()
        try:
            yield
        finally:
            self.unmount()


def why_not(folder: Path) -> str:
    """Why power cannot be cut here; empty when it can."""
    if os.getuid() != 0:
        return "mounting an image needs root"
    if shutil.which("mkfs.ext4") is None or shutil.which("tune2fs") is None:
        return "mkfs.ext4 is not installed"
    try:
        Device(folder).unmount()
    except (OSError, RuntimeError) as reason:
        return f"no ext4 on a loop device here: {reason}"
    return ""


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
