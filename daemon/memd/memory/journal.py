"""What is being done to an agent's memory right now, written down before the first step of it.

There is one journal per thing that is being done. A crash or an error leaves it behind; whoever works on the
agent next finishes what it says. Every state in between can be told from what is on the disk:

    TakeOver   the entry still has the inode `ino`, or the link does and that inode has moved to `aside`.
               A link of ours at `aside` before the exchange was made ahead for it
    Recheck    nothing but notes is on the way
    Rejoin     the same; each conflict copy is where it was, or kept
    MoveOut    the owned folder is still a link, or it is a folder and `copy` is that link
    GiveBack   the entry is still the link, or it is a folder and `copy` is that link
"""

from __future__ import annotations

import msgspec

from memd.memory.acting import Won
from memd.memory.plan import AnyStep


class Doing(msgspec.Struct, frozen=True, kw_only=True, tag_field="doing"):
    path: bytes  # what it is done to: the entry, the source, the owned folder
    config_home: bytes = b""
    won: tuple[Won, ...] = ()
    steps: tuple[AnyStep, ...] = ()


class TakeOver(Doing, frozen=True, kw_only=True, tag="take-over"):
    """A folder, or a link that is not right, gives way to the link to the owned folder."""

    ino: int
    aside: bytes  # the name beside the entry that the old thing gets
    source: bytes = b""  # the folder that is merged; empty: none. Of a folder, the entry itself


class Recheck(Doing, frozen=True, kw_only=True, tag="recheck"):
    """A folder that was set aside has something new."""

    ino: int


class Rejoin(Doing, frozen=True, kw_only=True, tag="rejoin"):
    """Conflict copies in the owned folder are brought into its notes."""


class MoveOut(Doing, frozen=True, kw_only=True, tag="move-out"):
    """The owned folder is a link into a login: its content is brought home."""

    copy: bytes  # the name beside the owned folder under which it is put together
    source: bytes


class GiveBack(Doing, frozen=True, kw_only=True, tag="give-back"):
    """A link to the owned folder gives way to a folder with a copy of its content."""

    copy: bytes  # the name beside the entry under which it is put together


Journal = TakeOver | Recheck | Rejoin | MoveOut | GiveBack
