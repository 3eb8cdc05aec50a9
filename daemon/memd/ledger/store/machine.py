"""Which machine this is, for a ledger that several share: an id, made once and kept in the data folder.

Neither the host's name nor the system's machine id will do: both may be the same on copies of one system.
Whoever copies a data folder to another machine takes the file `machine` out of it there.
"""

from __future__ import annotations

import re
import secrets
import socket

from memd import disk

FILE = b"machine"

_id = re.compile(r"[0-9a-f]{32}")


def id_of(root: bytes) -> str:
    """The id of the machine whose ledger folder this is. raises DiskError"""
    with disk.make_folders(root) as folder:
        for _ in range(2):
            if folder.look(FILE) is not None:
                found = folder.read(FILE, 200).decode("ascii", "replace").strip()
                if _id.fullmatch(found):
                    return found
                folder.remove(FILE)  # cut short: nothing was ever written under it
            folder.create(FILE, secrets.token_hex(16).encode() + b"\n")
        return folder.read(FILE, 200).decode("ascii").strip()


def host_name() -> str:
    """How people call this machine."""
    name = socket.gethostname().partition(".")[0]
    return "".join(sign for sign in name if sign.isprintable())[:64] or "localhost"
