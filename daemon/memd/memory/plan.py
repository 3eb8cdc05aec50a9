"""What a merge of one folder of notes into another will do, step by step. Pure: values in, steps out.

The rules:

- Union. A note that is only incoming is copied; one that is the same in both is left alone.
- Of two different notes with one name the one with the later mtime, in nanoseconds, gets the name. On a tie
  it is the owned one. The loser is kept under `_superseded/`.
- `_superseded/` of the incoming folder is history already: it keeps its own names, and never wins or loses.
- The top-level `MEMORY.md` is an index and merged as such, after everything else.
- What stands in the owned folder and is no note (a folder where a note should go, a link that leads
  somewhere, a device) keeps its name, and the incoming note gets another one. A link to nothing makes room.
- What was merged from this very folder before, and has not changed in it, is not merged again; and a note
  that was carried in once and is gone from the owned folder was deleted on purpose: it does not come back.
- Names that the owned folder's file system takes for one (`Note.md`, `note.md`) are one name.

Steps are in an order in which they can be done. Each is atomic, and a plan made anew half-way through leads
to the same end.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from memd.memory.names import (
    INDEX,
    MAX_NUMBER,
    OWNED_LABEL,
    SUPERSEDED,
    free_name,
    numbered,
    superseded_name,
)

Kind = Literal["file", "folder", "link", "other"]


class Found(msgspec.Struct, frozen=True):
    """One name in a tree: `rel` is its path within it. Of a link that leads to a file in the same tree, size,
    times and digest are that file's."""

    rel: bytes
    kind: Kind
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    ino: int = 0
    mode: int = 0o600
    digest: bytes = b""  # empty: not read
    target: bytes = b""  # of a link: the regular file in the same tree that it leads to
    is_live: bool = False  # of a link: it leads to something
    trouble: str = ""  # why it cannot be read
    is_denied: bool = False  # permissions are why: trying again is of no use before something changes


class Folding(msgspec.Struct, frozen=True):
    """Which names a file system takes for the same."""

    case: bool = False
    form: bool = False  # composed and decomposed characters

    def slot(self, rel: bytes) -> bytes:
        if not (self.case or self.form):
            return rel
        text = rel.decode("utf-8", "surrogateescape")
        if self.form:
            text = unicodedata.normalize("NFC", text)
        if self.case:
            text = unicodedata.normalize("NFC", text.casefold()) if self.form else text.casefold()
        return text.encode("utf-8", "surrogateescape")


class Step(msgspec.Struct, frozen=True, tag_field="do"):
    """Paths are within the owned folder, unless they say otherwise."""


class MakeFolder(Step, frozen=True, tag="make-folder"):
    to: bytes


class MoveAside(Step, frozen=True, tag="move-aside"):
    """A link to nothing in the owned folder makes room."""

    at: bytes
    kept: bytes


class Take(Step, frozen=True):
    """Something incoming: `rel` is its name and `source` where its bytes are, both in the incoming folder."""

    rel: bytes
    source: bytes
    digest: bytes
    mtime_ns: int
    mode: int


class Copy(Take, frozen=True, tag="copy"):
    """A note that the owned folder does not have."""

    to: bytes


class Replace(Take, frozen=True, tag="replace"):
    """The incoming note is newer: it is written to `kept`, and then the two names are exchanged."""

    to: bytes
    kept: bytes
    old: Found
    is_prepared: bool = False  # `kept` has the incoming note already: an earlier run was cut off


class Keep(Take, frozen=True, tag="keep"):
    """The incoming note is older: a copy of it goes to `kept`."""

    kept: bytes


class MergeIndex(Take, frozen=True, tag="merge-index"):
    """The text is made when everything else is done; the old one goes to `kept` when the new one differs."""

    kept: bytes


AnyStep = MakeFolder | Copy | Replace | Keep | MoveAside | MergeIndex


class Left(msgspec.Struct, frozen=True):
    """Something that stays where it is, and why."""

    rel: bytes
    reason: str
    remedy: str
    is_trouble: bool = False  # it belongs into the owned folder, but could not be read or written


class Tally(msgspec.Struct):
    """What became of the incoming notes; the index is not counted."""

    added: int = 0
    replaced: int = 0
    superseded: int = 0
    unchanged: int = 0


class Plan(msgspec.Struct, frozen=True):
    steps: tuple[AnyStep, ...] = ()
    left: tuple[Left, ...] = ()
    unchanged: int = 0  # notes that both folders have
    withheld: tuple[bytes, ...] = ()  # notes that were deleted on purpose
    live: tuple[tuple[bytes, bytes], ...] = ()  # path and digest of what is incoming and in place
    present: tuple[bytes, ...] = ()  # the files that the owned folder has in the end

    def tally(self) -> Tally:
        """What becomes of the incoming notes when all goes well."""
        kinds = [type(step) for step in self.steps]
        return Tally(
            added=kinds.count(Copy),
            replaced=kinds.count(Replace),
            superseded=kinds.count(Keep),
            unchanged=self.unchanged,
        )


UNREADABLE = "Make it readable for you; the next run takes it over."
NO_NOTE = "Delete it, or leave it: it stays where it is."
LINKED_OUT = "Put a copy of the file itself into the owned folder if the note belongs to the agent."
INDEX_TAKEN = "Make MEMORY.md in the owned folder a regular file, then add the kept lines that you want."


def digests_wanted(owned: Iterable[Found], incoming: Iterable[Found]) -> frozenset[bytes]:
    """The owned files that a plan must be able to compare: those with the size of an incoming one."""
    sizes = {f.size for f in incoming if f.kind == "file" or f.target}
    return frozenset(f.rel for f in owned if (f.kind == "file" or f.target) and f.size in sizes)


def make_plan(
    owned: Iterable[Found],
    incoming: Iterable[Found],
    *,
    label: bytes,
    merged: Mapping[bytes, bytes] | None = None,
    carried_once: Mapping[tuple[bytes, bytes], int] | None = None,
    folding: Folding | None = None,
    is_plain_copy: bool = False,
) -> Plan:
    """The steps that bring `incoming` into `owned`.

    owned, incoming  the two trees in any order; digests where `digests_wanted` asks for them, and of every
                     incoming file
    label            what the incoming folder is called in the names of what loses
    merged           path and digest of what was merged from this folder before
    carried_once     (path, digest) of notes that have been in the owned folder, with the time in ns when
                     memd carried them there: what is older than that and missing was deleted on purpose
    is_plain_copy    the index is copied like any other file, not merged
    """
    planner = _Planner(owned, label, merged or {}, carried_once or {}, folding or Folding())
    index = []
    for found in sorted(incoming, key=lambda f: f.rel):
        if planner.is_index(found) and not is_plain_copy:
            index.append(found)
        else:
            planner.take(found)
    for found in index:
        planner.take_index(found)
    return planner.plan()


class _Planner:
    """The owned folder as it will be after the steps so far."""

    def __init__(
        self,
        owned: Iterable[Found],
        label: bytes,
        merged: Mapping[bytes, bytes],
        carried_once: Mapping[tuple[bytes, bytes], int],
        folding: Folding,
    ) -> None:
        self._slots = {folding.slot(f.rel): f for f in owned}
        self._label = label
        self._merged = merged
        self._carried_once = carried_once
        self._folding = folding
        self._moved: dict[bytes, bytes] = {}  # incoming folders that go under another name
        self._steps: list[AnyStep] = []
        self._left: list[Left] = []
        self._withheld: list[bytes] = []
        self._live: list[tuple[bytes, bytes]] = []
        self._unchanged = 0

    def plan(self) -> Plan:
        return Plan(
            steps=tuple(self._steps),
            left=tuple(self._left),
            unchanged=self._unchanged,
            withheld=tuple(self._withheld),
            live=tuple(self._live),
            present=tuple(sorted(f.rel for f in self._slots.values() if f.kind == "file" or f.target)),
        )

    def is_index(self, found: Found) -> bool:
        return b"/" not in found.rel and self._folding.slot(found.rel) == self._folding.slot(INDEX)

    # ------------------------------------------------------------------ notes

    def take(self, found: Found) -> None:
        if not self._is_new(found):
            return
        rel = self._settled(found.rel)
        here = self._at(rel)
        if here is not None and here.trouble and here.kind != "folder":
            self._cannot_compare(found, here)
        elif here is not None and _is_same(here, found):
            self._have(found)
        elif rel.startswith(SUPERSEDED + b"/"):
            self._copy_to_free(found, lambda n: numbered(rel, n))
        elif here is None:
            if not self._is_withheld(found):
                self._copy(found, rel)
        elif here.kind == "file":
            if found.mtime_ns > here.mtime_ns:
                self._replace(found, here)
            else:
                self._keep(found, here.rel)
        elif here.kind == "link" and not here.is_live:
            self._move_aside(here)
            self._copy(found, rel)
        else:
            self._copy_to_free(found, lambda n: free_name(rel, self._label, n))

    def take_index(self, found: Found) -> None:
        if not self._is_new(found):
            return
        here = self._at(INDEX)
        if here is None:
            if self._is_withheld(found):
                return
        elif here.trouble:
            self._cannot_compare(found, here)
            return
        elif here.kind == "link" and not here.is_live:
            self._move_aside(here)
        elif here.kind != "file":
            self._keep(found, INDEX)
            reason = (
                "MEMORY.md in the owned folder is no regular file; the incoming one is kept in _superseded"
            )
            self._left.append(Left(found.rel, reason, INDEX_TAKEN))
            return
        elif _is_same(here, found):
            self._have(found)
            return
        self._live.append((found.rel, found.digest))
        kept = superseded_name(INDEX, OWNED_LABEL, here.mtime_ns) if here else b""
        self._steps.append(MergeIndex(*_taken(found), self._settled(kept)))

    def _is_new(self, found: Found) -> bool:
        """Whether there is something to merge; what cannot be merged is noted as left behind."""
        if found.trouble:
            reason = f"it cannot be read: {found.trouble}"
            self._left.append(Left(found.rel, reason, UNREADABLE, is_trouble=True))
            return False
        if found.kind == "other":
            self._left.append(Left(found.rel, "it is a device, FIFO or socket", NO_NOTE))
            return False
        if found.kind == "link" and not found.target:
            way = "is no file within the folder" if found.is_live else "is not there"
            self._left.append(Left(found.rel, f"it is a link to something that {way}", LINKED_OUT))
            return False
        return found.kind != "folder" and self._merged.get(found.rel) != found.digest

    def _cannot_compare(self, found: Found, here: Found) -> None:
        reason = f"the one in the owned folder cannot be read: {here.trouble}"
        self._left.append(Left(found.rel, reason, UNREADABLE, is_trouble=True))

    def _have(self, found: Found) -> None:
        self._unchanged += 1
        self._live.append((found.rel, found.digest))

    def _is_withheld(self, found: Found) -> bool:
        carried_at = self._carried_once.get((found.rel, found.digest))
        if carried_at is None or found.mtime_ns > carried_at:
            return False
        self._withheld.append(found.rel)
        return True

    # ------------------------------------------------------------------ steps

    def _copy(self, found: Found, to: bytes) -> None:
        self._make_room(to)
        self._live.append((found.rel, found.digest))
        self._steps.append(Copy(*_taken(found), to))
        self._put(to, found)

    def _copy_to_free(self, found: Found, candidate: Callable[[int], bytes]) -> None:
        to = self._free(candidate, found.digest)
        if to is None:
            self._left.append(Left(found.rel, "every name for it is taken", NO_NOTE))
        elif self._at(to) is not None:
            self._have(found)
        elif not self._is_withheld(found):
            self._copy(found, to)

    def _replace(self, found: Found, here: Found) -> None:
        kept = self._free(lambda n: superseded_name(here.rel, OWNED_LABEL, here.mtime_ns, n), found.digest)
        if kept is None:
            self._left.append(Left(found.rel, "every name for the older note is taken", NO_NOTE))
            return
        self._make_room(kept)
        self._steps.append(
            Replace(*_taken(found), here.rel, kept, here, is_prepared=self._at(kept) is not None)
        )
        self._live.append((found.rel, found.digest))
        self._put(here.rel, found)
        self._put(kept, here)

    def _keep(self, found: Found, rel: bytes) -> None:
        kept = self._free(lambda n: superseded_name(rel, self._label, found.mtime_ns, n), found.digest)
        if kept is None:
            self._left.append(Left(found.rel, "every name for the older note is taken", NO_NOTE))
        elif self._at(kept) is None:
            self._make_room(kept)
            self._steps.append(Keep(*_taken(found), kept))
            self._put(kept, found)

    def _move_aside(self, here: Found) -> None:
        """Free the name of a link to nothing; below `_superseded` it just gets another one in its folder."""
        is_history = here.rel == SUPERSEDED or here.rel.startswith(SUPERSEDED + b"/")
        for number in range(1, MAX_NUMBER):
            if is_history:
                kept = free_name(here.rel, OWNED_LABEL, number)
            else:
                kept = self._settled(superseded_name(here.rel, OWNED_LABEL, here.mtime_ns, number))
            if self._at(kept) is None:
                self._make_room(kept)
                self._steps.append(MoveAside(here.rel, kept))
                del self._slots[self._folding.slot(here.rel)]
                self._slots[self._folding.slot(kept)] = msgspec.structs.replace(here, rel=kept)
                return

    def _make_room(self, rel: bytes) -> None:
        """The folders above a name that is about to be made."""
        folder = rel.rpartition(b"/")[0]
        if not folder:
            return
        here = self._at(folder)
        if here is not None and here.kind == "folder":
            return
        self._make_room(folder)
        if here is not None:
            self._move_aside(here)
        self._steps.append(MakeFolder(folder))
        self._slots[self._folding.slot(folder)] = Found(folder, "folder")

    # ----------------------------------------------------------------- places

    def _at(self, rel: bytes) -> Found | None:
        return self._slots.get(self._folding.slot(rel))

    def _put(self, rel: bytes, found: Found) -> None:
        new = msgspec.structs.replace(found, rel=rel, kind="file", target=b"")
        self._slots[self._folding.slot(rel)] = new

    def _free(self, candidate: Callable[[int], bytes], digest: bytes) -> bytes | None:
        """The first of some names that is free, or has this very content already."""
        for number in range(1, MAX_NUMBER):
            rel = self._settled(candidate(number))
            here = self._at(rel)
            if here is None or (here.kind == "file" and here.digest == digest):
                return rel
        return None

    def _settled(self, rel: bytes) -> bytes:
        """`rel` below folders that exist or can be made: a folder whose name is taken goes by another one."""
        folder, _, name = rel.rpartition(b"/")
        if not folder:
            return rel
        settled = self._moved.get(folder)
        if settled is None:
            settled = self._moved[folder] = self._folder(self._settled(folder))
        return settled + b"/" + name

    def _folder(self, rel: bytes) -> bytes:
        number = 0
        while True:
            name = free_name(rel, self._label, number) if number else rel
            here = self._at(name)
            if here is None or (here.kind == "link" and not here.is_live):
                return name
            if here.kind == "folder":
                return here.rel
            number += 1


def _taken(found: Found) -> tuple[bytes, bytes, bytes, int, int]:
    return found.rel, found.target or found.rel, found.digest, found.mtime_ns, found.mode


def _is_same(here: Found, found: Found) -> bool:
    return (here.kind == "file" or bool(here.target)) and here.digest == found.digest != b""
