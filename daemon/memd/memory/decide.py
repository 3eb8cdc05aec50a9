"""What to do about one entry, `<config home>/projects/<key>/memory`. Pure: facts in, a decision out.

what is there                                   what is done
----------------------------------------------  ------------------------------------------------------
the owned folder, by whatever link              linked: nothing
nothing                                         link: the link is made
a real folder                                   take: merged, set aside, linked
a link into the agent home                      merge-target: target merged and kept, the link set aside
a link to nothing, or in circles                aside: set aside, linked
a link to nothing where the owned folder was    replace: exchanged, nothing to set aside
a link to what a login holds                    wait: it may be right once that login is healed
a link to something else ("foreign link")       skip
a link to the agent home itself, or the like    skip: everything in there would be taken for memory
anything that is neither folder nor link        skip
a mount point, a folder that is read-only       skip
an entry whose parents are no folders           skip
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import msgspec

from memctl.paths import shown

Action = Literal["linked", "link", "take", "merge-target", "aside", "replace", "wait", "skip"]
ACTS = frozenset({"link", "take", "merge-target", "aside", "replace"})

MOVE_IT = "Move it away, and the link is made at the next look."
FOREIGN = (
    "If two agents share this key, rename one of their directories; otherwise remove the link, or leave it."
)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at an entry, as far as it was looked at."""

    path: bytes
    kind: Literal["absent", "folder", "link", "odd", "blocked"]
    obstacle: str = ""  # of blocked: what is in the way
    ino: int = 0
    is_owned: bool = False  # it is the owned folder, links followed
    is_mount: bool = False
    is_writable: bool = True  # names can be changed beside it
    text: bytes = b""  # of a link: what it says
    target: bytes = b""  # of a link: the real path it leads to; empty: nowhere
    target_is_folder: bool = False
    target_root: bytes = b""  # the project the target belongs to, when it is in the agent home


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on besides the entry."""

    home: bytes  # the agent home, a real path
    owned: bytes
    owned_ino: int = 0  # 0: there is no owned folder yet
    others: tuple[bytes, ...] = ()  # the other agent homes
    logins: tuple[bytes, ...] = ()  # all config homes, as real paths
    targets: Mapping[bytes, int] = {}  # folders that links of ours lead to or led to, and their inodes


class Decision(msgspec.Struct, frozen=True):
    action: Action
    reason: str = ""
    remedy: str = ""


def decide(facts: Facts, about: Circumstances) -> Decision:
    if facts.is_owned:
        return Decision("linked")
    if facts.kind == "blocked":
        return Decision("skip", facts.obstacle, MOVE_IT)
    if facts.kind == "odd":
        return Decision("skip", "something that is no folder stands where the memory folder belongs", MOVE_IT)
    if facts.is_mount:
        return Decision("skip", "it is a mount point", "Unmount it; then it is merged and linked.")
    decision = _link(facts, about) if facts.kind == "link" else _plain(facts)
    if decision.action in ACTS and not facts.is_writable:
        folder = os.path.dirname(facts.path)
        return Decision("skip", f"{shown(folder)} is read-only", "Make it writable for you.")
    return decision


def _plain(facts: Facts) -> Decision:
    return Decision("take" if facts.kind == "folder" else "link")


def _link(facts: Facts, about: Circumstances) -> Decision:
    if not facts.target:
        return _dangling(facts, about)
    target = facts.target
    foreign = Decision("skip", f"foreign link: it leads to {shown(target)}", FOREIGN)
    if not facts.target_is_folder:
        return foreign
    if is_within(target, about.owned):
        return Decision("aside")
    if _is_too_much(target, about):
        reason = f"refused: it leads to {shown(target)}, which holds more than memory"
        return Decision("skip", reason, "Remove the link; the right one is made at the next look.")
    if any(is_within(target, login) for login in about.logins):
        return Decision("wait", foreign.reason, foreign.remedy)
    if facts.target_root == about.home and is_within(target, about.home):
        return Decision("merge-target")
    return foreign


def _dangling(facts: Facts, about: Circumstances) -> Decision:
    says = os.path.normpath(os.path.join(os.path.dirname(facts.path), facts.text))
    foreign = Decision("skip", f"foreign link: it leads to {shown(says)}, which is not there", FOREIGN)
    if facts.text == about.owned:
        return Decision("link")
    belongs_to_another = any(is_within(says, other) for other in about.others) and not is_within(
        says, about.home
    )
    if facts.text in about.targets:
        was_moved = about.owned_ino != 0 and about.targets[facts.text] == about.owned_ino
        return foreign if belongs_to_another and not was_moved else Decision("replace")
    return foreign if belongs_to_another else Decision("aside")


def _is_too_much(target: bytes, about: Circumstances) -> bool:
    """Whether a folder is the agent home, holds the owned folder or a login, or is git's or a tool's."""
    reserved = (about.home, about.home + b"/.memd", about.home + b"/.instar")
    return (
        target in reserved
        or is_within(about.owned, target)
        or is_within(target, about.home + b"/.git")
        or any(is_within(login, target) for login in about.logins)
    )


def is_within(path: bytes, folder: bytes) -> bool:
    """Whether a path is that folder or lies in it, by its text; both absolute and normal."""
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def temporary_objection(home: bytes, login: bytes, roots: tuple[bytes, ...]) -> str:
    """Why an agent in a temporary folder must not get into a login that is none; empty when it may."""
    for root in roots:
        if is_within(home, root) and not any(is_within(login, other) for other in roots):
            return f"the agent lies in the temporary folder {shown(root)}, the login does not"
    return ""
