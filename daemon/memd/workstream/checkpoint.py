"""What git says of a checkout when a run ends. Asks only; never writes.

source  git-status(1), "Porcelain Format Version 1" and "Pathname Format Notes and -z", git 2.39
"""

from __future__ import annotations

import os
import re

import msgspec

from memd.git import Git

MAX_PATHS = 256
DETACHED = "(detached HEAD)"
NONE = "No repository checkpoint was available."

_hash = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Empty fields are not known; outside git all are.

    dirty_hash     SHA-256 of git's short status; empty when nothing differs from HEAD
    changed_paths  at most `MAX_PATHS`, decoded for people
    """

    head: str = ""
    branch: str = ""
    dirty_hash: str = ""
    changed_paths: tuple[str, ...] = ()


def git_checkpoint(cwd: bytes, git: Git) -> Checkpoint:
    """The state of the checkout round a directory. Blocks for as long as git takes, up to its time limit."""
    head = git.text(cwd, ("rev-parse", "HEAD"))
    branch = git.text(cwd, ("branch", "--show-current"))
    status = git.ask(cwd, ("status", "--porcelain=v1", "-z"))
    has_head = head is not None and _hash.fullmatch(head.strip())
    return Checkpoint(
        head=head.strip().decode("ascii") if has_head and head is not None else "",
        branch="" if branch is None else _text(branch.strip()) or DETACHED,
        dirty_hash=status.sha256 if status is not None and status.size else "",
        changed_paths=() if status is None else changed_paths(status.head),
    )


def changed_paths(status: bytes) -> tuple[str, ...]:
    """The paths of a short status with NULs; of a rename or copy the new one and then the old one.

    status  its beginning is enough; what is cut off at its end is left out
    """
    found: list[str] = []
    records = iter(status.split(b"\0")[:-1])
    for record in records:
        if len(record) < 4:
            continue
        found.append(_text(record[3:]))
        if record[:1] in b"RC" or record[1:2] in b"RC":
            old = next(records, b"")
            if old:
                found.append(_text(old))
        if len(found) >= MAX_PATHS:
            break
    return tuple(found[:MAX_PATHS])


def render(checkpoint: Checkpoint) -> str:
    """The checkpoint as the ledger keeps it."""
    lines = []
    if checkpoint.head:
        lines.append(f"HEAD {checkpoint.head}")
    if checkpoint.branch:
        lines.append(f"Branch {checkpoint.branch}")
    if checkpoint.dirty_hash:
        lines.append(f"Dirty {checkpoint.dirty_hash}")
    if checkpoint.changed_paths:
        more = " (the first of them)" if len(checkpoint.changed_paths) == MAX_PATHS else ""
        lines.append(f"Changed paths{more}:")
        lines += [f"- {path}" for path in checkpoint.changed_paths]
    return "\n".join(lines) or NONE


def _text(path: bytes) -> str:
    """A path on one line, for people."""
    text = os.fsdecode(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
