"""Whether a folder lies on a file system that other machines see. Linux tells; elsewhere nobody does.

A lock there may be held by a process of another machine, and that its number is free here says nothing.
"""

from __future__ import annotations

import os

from memd import disk
from memd.errors import DiskError

MAX_BYTES = 4 << 20

FOREIGN = frozenset(
    {
        b"nfs",
        b"nfs4",
        b"cifs",
        b"smb3",
        b"smbfs",
        b"9p",
        b"virtiofs",
        b"afs",
        b"ceph",
        b"lustre",
        b"glusterfs",
        b"ocfs2",
        b"gfs2",
        b"davfs",
        b"vboxsf",
        b"vmhgfs",
        b"fuse.sshfs",
        b"fuse.glusterfs",
        b"fuse.rclone",
        b"fuse.vmhgfs-fuse",
    }
)


def is_foreign(path: bytes) -> bool:
    """For an existing path, its links resolved."""
    try:
        table = disk.read_file(b"/proc/self/mountinfo", MAX_BYTES)
    except DiskError:
        return False
    return kind_of(table or b"", os.path.realpath(path)) in FOREIGN


def kind_of(table: bytes, path: bytes) -> bytes:
    """The file system type of a path by the kernel's table of mounts; empty when it is not in there. Pure."""
    best, kind = b"", b""
    for line in table.splitlines():
        left, _, right = line.partition(b" - ")
        words = left.split(b" ")
        if len(words) < 5 or not right:
            continue
        point = _unescaped(words[4])
        base = b"" if point == b"/" else point
        if (path == point or path.startswith(base + b"/")) and len(point) >= len(best):
            best, kind = point, right.split(b" ")[0]
    return kind


def _unescaped(word: bytes) -> bytes:
    """The kernel writes blanks and the like as three octal digits."""
    first, *rest = word.split(b"\\")
    out = [first]
    for part in rest:
        digits = part[:3]
        if len(digits) == 3 and all(c in b"01234567" for c in digits):
            out.append(bytes([int(digits, 8) & 0xFF]) + part[3:])
        else:
            out.append(b"\\" + part)
    return b"".join(out)
