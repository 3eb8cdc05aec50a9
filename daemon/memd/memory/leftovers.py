"""What a crash can leave half-written, and taking it away: files with memd's temporary names, links of ours.

They are copies, and what they are copies of is still there; so this is all that memd ever deletes.
"""

from __future__ import annotations

import stat
from collections.abc import Container

from memd import disk
from memd.disk import Folder
from memd.errors import DiskError
from memd.memory.tree import MAX_DEPTH


def remove_temporaries(path: bytes) -> None:
    """Clean one folder; raises DiskError."""
    with disk.open_folder(path) as folder:
        clean_folder(folder)


def clean_folder(folder: Folder) -> None:
    for name in folder.names():
        facts = folder.look(name) if disk.is_temporary(name) else None
        if facts is not None and stat.S_ISREG(facts.st_mode):
            folder.remove(name)


def clean_links(folder: Folder, texts: Container[bytes]) -> None:
    """Remove links with temporary names that say one of these; others may be on their way aside."""
    for name in folder.names():
        facts = folder.look(name) if disk.is_temporary(name) else None
        if facts is not None and stat.S_ISLNK(facts.st_mode) and folder.read_link(name) in texts:
            folder.remove(name)


def clean_tree(root: Folder, depth: int = 0) -> None:
    """Clean a folder and all below it; what cannot be entered is passed over. Raises DiskError."""
    clean_folder(root)
    for name in root.names() if depth < MAX_DEPTH else ():
        facts = root.look(name)
        if facts is None or not stat.S_ISDIR(facts.st_mode):
            continue
        try:
            below = root.folder(name)
        except DiskError:
            continue
        with below:
            clean_tree(below, depth + 1)
